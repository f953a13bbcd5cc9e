// The labels of a company: made, renamed, recoloured and deleted here; issues and routines carry them.
import { useState } from 'react'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { del, patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm } from '../../parts/overlay'
import { Loaded, Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

type Label = Schemas['Label']
const x = tp.labels
const schema: Schema = { required: ['name', 'color'], properties: { name: { type: 'string', title: x.name }, color: { type: 'string', title: x.color, format: 'color' } } }
const first = '#0f766e'

/** A dot in the colour that people gave a label; its name always stands beside it. */
export const Dot = ({ color }: { color: string }) => <span aria-hidden="true" style={{ background: color }} className="inline-block size-2 shrink-0 rounded-full" />

export const useLabels = (company: string) => useRead(keys.labels(company), '/api/companies/{companyId}/labels', { path: { companyId: company } })

export function Labels({ company }: { company: string }) {
  const all = useLabels(company)
  const [open, setOpen] = useState<Label | 'new'>()
  const [removing, setRemoving] = useState<Label>()
  const reread = () => [keys.labels(company), keys.issues(company)]
  const save = useWrite<Values, Label>({
    call: (v) => { const body = { name: String(v['name']).trim(), color: String(v['color']) }; return open === 'new' || !open ? post('/api/companies/{companyId}/labels', { path: { companyId: company } }, body) : patch('/api/labels/{labelId}', { path: { labelId: open.id } }, body) },
    reread, onDone: (made) => { setOpen(undefined); toast({ text: x.saved(made.name) }) },
  })
  const remove = useWrite<Label, unknown>({ call: (l) => del('/api/labels/{labelId}', { path: { labelId: l.id } }), reread, onDone: (_a, l) => { setRemoving(undefined); toast({ text: x.removed(l.name) }) } })
  return (
    <Section title={x.title} aside={<Button small icon="plus" onClick={() => setOpen('new')}>{x.create}</Button>}>
      <Loaded of={all} rows={2}>{(rows) => rows.length === 0 ? <p className="text-sm text-ink3">{x.none}</p> : (
        <Lines label={x.title}>{rows.map((l) => <LineOf key={l.id}><Dot color={l.color} /><Front>{l.name}</Front><Button small aria-label={x.editOf(l.name)} onClick={() => setOpen(l)}>{t.common.edit}</Button><Button small look="danger" aria-label={x.removeOf(l.name)} onClick={() => setRemoving(l)}>{x.remove}</Button></LineOf>)}</Lines>
      )}</Loaded>
      {open && <FormDialog title={open === 'new' ? x.create : x.edit} action={t.common.save} schema={schema} initial={open === 'new' ? { color: first } : { name: open.name, color: open.color }} busy={save.isPending} onClose={() => setOpen(undefined)} onSave={(v) => save.mutate(v)} />}
      <Confirm open={!!removing} onClose={() => setRemoving(undefined)} title={x.removeAsk(removing?.name ?? '')} body={x.removeBody} action={x.remove} busy={remove.isPending} onConfirm={() => removing && remove.mutate(removing)} />
    </Section>
  )
}
