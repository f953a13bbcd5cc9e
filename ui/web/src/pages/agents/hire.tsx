// Hiring: who the agent is, and what it runs with. Whether a node has its program is asked of the nodes.
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useRead, useWrite } from '../../data'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Field, Input, Select } from '../../parts/form'
import { schemaOf } from '../../parts/adapterform'
import { JsonForm, wrongOf, type Values } from '../../parts/jsonform'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { useQuery } from '@tanstack/react-query'

export const roles = ['general', 'ceo', 'cto', 'cmo', 'cfo', 'pm', 'engineer', 'designer', 'qa', 'devops', 'security', 'researcher']
const first = 'claude_local'

export function Hire({ onClose }: { onClose: () => void }) {
  return <Dialog open onClose={onClose} title={t.agents.hire} size="medium"><Form onClose={onClose} /></Dialog>
}

function Form({ onClose }: { onClose: () => void }) {
  const company = useCompany()
  const go = useNavigate()
  const agents = useAgents(company.id).data ?? []
  const adapters = useRead(keys.mesh('adapters'), '/api/adapters').data ?? []
  const [who, setWho] = useState({ name: '', title: '', role: agents.length === 0 ? 'ceo' : 'engineer', reportsTo: agents.find((a) => a.role === 'ceo')?.id ?? '', budget: '' })
  const [type, setType] = useState(first)
  const [config, setConfig] = useState<Values>({})
  const [tried, setTried] = useState(false)
  const detail = useRead([...keys.mesh('adapters'), type], '/api/adapters/{type}', { path: { type } })
  const schema = schemaOf(detail.data?.fields ?? [])
  const wrong = tried ? wrongOf(schema, config) : {}
  const hire = useWrite({
    call: (body: Schemas['ApiNewHire']) => post('/api/companies/{companyId}/agent-hires', { path: { companyId: company.id } }, body),
    reread: () => [keys.agents(company.id), keys.approvals(company.id)],
    onDone: ({ agent, approval }) => {
      onClose()
      toast({ text: approval ? t.agents.asked(agent.name) : t.agents.hired(agent.name) })
      void go({ to: `/${company.issuePrefix}/agents/${agent.urlKey}` })
    },
  })
  const send = () => {
    setTried(true)
    if (who.name.trim() === '' || Object.keys(wrongOf(schema, config)).length > 0) return
    const cents = Math.round(Number(who.budget || 0) * 100)
    hire.mutate({ name: who.name.trim(), role: who.role as NonNullable<Schemas['ApiNewHire']['role']>, adapterType: type, adapterConfig: config, ...(who.title ? { title: who.title } : {}), ...(who.reportsTo ? { reportsTo: who.reportsTo } : {}), ...(cents > 0 ? { budgetMonthlyCents: cents } : {}) })
  }
  const text = (name: keyof typeof who) => ({ value: who[name], onChange: (e: React.ChangeEvent<HTMLInputElement | HTMLSelectElement>) => setWho({ ...who, [name]: e.target.value }) })
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); send() }}>
      <div className="grid gap-3 tab:grid-cols-2">
        <Field label={t.agents.name} wrong={tried && who.name.trim() === '' ? t.agents.nameNeeded : undefined}><Input autoFocus maxLength={200} {...text('name')} /></Field>
        <Field label={t.agents.titleField}><Input maxLength={200} {...text('title')} /></Field>
        <Field label={t.agents.role}><Select {...text('role')} choices={roles.map((r) => ({ value: r, label: r }))} /></Field>
        <Field label={t.agents.reports}><Select {...text('reportsTo')} choices={[{ value: '', label: t.agents.nobody }, ...agents.filter((a) => a.status !== 'terminated').map((a) => ({ value: a.id, label: a.name }))]} /></Field>
        <Field label={t.agents.program}><Select value={type} onChange={(e) => { setType(e.target.value); setConfig({}); setTried(false) }} choices={adapters.filter((a) => !a.disabled).map((a) => ({ value: a.type, label: a.displayName || a.type }))} /></Field>
        <Field label={t.agents.budget} hint={t.agents.budgetHint}><Input type="number" min={0} step="0.01" {...text('budget')} /></Field>
      </div>
      <Presence type={type} config={config} ready={!!detail.data && Object.keys(wrongOf(schema, config)).length === 0} />
      <Section title={t.agents.config}><JsonForm key={type} schema={schema} values={config} onChange={setConfig} wrong={wrong} /></Section>
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={hire.isPending}>{t.agents.hire}</Button></DialogFoot>
    </form>
  )
}

const settle = 700 // ms without typing, before the nodes are asked

/** useSettled is a value once it has not changed for a while. */
function useSettled<T>(value: T): T {
  const [now, setNow] = useState(value)
  const text = JSON.stringify(value)
  useEffect(() => {
    const timer = setTimeout(() => setNow(value), settle)
    return () => clearTimeout(timer)
  }, [text])
  return now
}

/** Which nodes can run an adapter with a configuration, and what the others lack. */
export function Presence({ type, config, ready }: { type: string; config: Values; ready: boolean }) {
  const company = useCompany()
  const asked = useSettled({ type, config, ready })
  const report = useQuery({
    queryKey: [...keys.mesh('presence'), company.id, asked.type, JSON.stringify(asked.config)], retry: 0, enabled: asked.ready,
    queryFn: ({ signal }) => post('/api/companies/{companyId}/adapters/{type}/test-environment', { path: { companyId: company.id, type: asked.type }, signal }, { adapterConfig: asked.config }),
  })
  const nodes = report.data?.nodes ?? []
  const bad = (n: (typeof nodes)[number]) => (n.checks ?? []).filter((c) => c.level === 'error')
  // Nodes that say the same share a row.
  const rows = new Map<string, typeof nodes>()
  for (const n of nodes) {
    const said = JSON.stringify((n.checks ?? []).map((c) => [c.level, c.message, c.hint]))
    rows.set(said, [...(rows.get(said) ?? []), n])
  }
  return (
    <div aria-live="polite" className="rounded border border-line text-sm">
      <p className="border-b border-line px-3 py-1.5 text-xs text-ink3">{t.agents.present}</p>
      {!ready ? <p className="px-3 py-2 text-ink3">{t.agents.fillFirst}</p> : !asked.ready || report.isPending ? <p className="px-3 py-2 text-ink3">{t.agents.looking}</p> : report.error ? <p className="px-3 py-2 text-ink3">{report.error instanceof Error ? report.error.message : ''}</p> : (
        <>
          {[...rows.values()].map((same) => {
            const n = same[0]
            if (!n) return null
            return (
              <div key={n.nodeId} className="flex min-h-8 flex-wrap items-center gap-x-2 border-b border-line px-3 py-1 last:border-0">
                <StatusMark status={bad(n).length > 0 ? 'bad' : (n.checks ?? []).some((c) => c.level === 'warn') ? 'warn' : 'ok'} label={same.map((x) => x.name).sort().join(', ')} />
                {(n.checks ?? []).filter((c) => c.level !== 'info').slice(0, 3).map((c, i) => <span key={i} className="text-xs text-ink2">{c.message}{c.hint && <code className="ml-1 rounded bg-ground3 px-1 font-mono">{c.hint}</code>}</span>)}
              </div>
            )
          })}
          {nodes.length > 0 && nodes.every((n) => bad(n).length > 0) && <p className="px-3 py-2 text-warn">{t.agents.nowhere}</p>}
        </>
      )}
    </div>
  )
}
