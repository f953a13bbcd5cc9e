// Which model of the gateway embeds what the company remembers, and who pays for it.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useNames, useRead, useWrite } from '../../data'
import { number } from '../../format'
import { put, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import { Facts, Loaded, Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

export function Embedding() {
  const company = useCompany()
  const names = useNames(company.id)
  const agents = useAgents(company.id).data ?? []
  const query = { companyId: company.id }
  const chosen = useRead(keys.memory(company.id, 'embedding'), '/api/v1/memory/embedding', { query })
  const far = useRead(keys.memory(company.id, 'stats'), '/api/v1/memory/stats', { query }).data?.embedding
  const [editing, setEditing] = useState(false)
  const save = useWrite<Schemas['ApiEmbeddingBody'], unknown>({ call: (body) => put('/api/v1/memory/embedding', { query }, body), reread: () => [keys.memory(company.id)], onDone: () => { setEditing(false); toast({ text: tp.memory.embedded } ) } })
  return (
    <Section title={tp.memory.embedding} aside={<Button small onClick={() => setEditing(true)}>{chosen.data?.model ? t.common.edit : tp.memory.choose}</Button>}>
      <Loaded of={chosen} rows={2}>{(e) => <>
        {e.model ? <Facts rows={[
          [tp.memory.model, e.version && e.version !== '1' ? `${e.model}@${e.version}` : e.model], [tp.memory.chosenFor, tp.memory.whose[e.of] ?? e.of], [tp.memory.payer, e.agentId ? names(e.agentId).name : tp.memory.lead],
          !!e.questionModel && [tp.memory.questionModel, e.questionModel], !!far && [tp.memory.done, `${number(far.done)} / ${number(far.of)}`], !!far && far.refused > 0 && [tp.memory.refused, number(far.refused)]]} /> : <p className="text-sm text-ink3">{tp.memory.noEmbedding}</p>}
        {far?.problem && <p className="mt-1 text-sm text-warn">{far.problem}</p>}
        {editing && <FormDialog title={tp.memory.embedding} action={t.common.save} busy={save.isPending} onClose={() => setEditing(false)}
          initial={{ model: e.model || undefined, version: e.version || undefined, agentId: e.agentId ?? undefined, questionModel: e.questionModel || undefined }}
          head={<p className="text-sm text-ink2">{tp.memory.embeddingWhy}</p>}
          schema={{ properties: { model: { type: 'string', title: tp.memory.model, description: tp.memory.modelHint }, version: { type: 'string', title: tp.memory.version, description: tp.memory.versionHint }, agentId: { type: 'string', title: tp.memory.payer, enum: agents.map((a) => a.id), labels: Object.fromEntries(agents.map((a) => [a.id, a.name])) }, questionModel: { type: 'string', title: tp.memory.questionModel, description: tp.memory.questionHint }, inherit: { type: 'boolean', title: tp.memory.inherit } } }}
          onSave={(v) => save.mutate(v['inherit'] ? { inherit: true } : Object.fromEntries(Object.entries(v).filter(([k, x]) => k !== 'inherit' && x !== undefined && x !== '')))} />}
      </>}</Loaded>
    </Section>
  )
}
