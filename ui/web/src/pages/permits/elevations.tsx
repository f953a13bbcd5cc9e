// Elevations: clearances that an agent has for a time, because the rules or a person gave them; and their end.
import { useState } from 'react'
import { keys } from '../../cache'
import { useAgents, useCompanies, useNamesIn, useRead, useWrite, type Company } from '../../data'
import { number } from '../../format'
import { post, Refusal, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Select } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Confirm } from '../../parts/overlay'
import { Empty, Loaded } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'

type Elevation = Schemas['ApiElevation']
const x = tr.elevations
const most = 500

export function Elevations({ company, here, status, set }: { company: Company | undefined; here: string | undefined; status: string | undefined; set: (next: { status?: string; company?: string }) => void }) {
  const companies = useCompanies().data ?? []
  const query = { companyId: company?.id, status: status && status in x.states ? status : undefined }
  const all = useRead(keys.govern('elevations', query), '/api/v1/govern/elevations', { query })
  const names = useNamesIn((all.data ?? []).map((e) => e.companyId), company?.id ?? here)
  const [ending, setEnding] = useState<Elevation>()
  const end = useWrite<Elevation, unknown>({ call: (e) => post('/api/v1/govern/elevations/{id}/revoke', { path: { id: e.id } }), reread: () => [keys.govern('elevations')], onDone: () => { setEnding(undefined); toast({ text: x.ended }) } })
  const columns: Column<Elevation>[] = [
    { id: 'status', head: x.status, width: '104px', cell: (e) => <StatusMark status={x.marks[e.status] ?? 'note'} label={x.states[e.status] ?? e.status} /> },
    { id: 'agent', head: x.agent, width: 'minmax(0,160px)', cell: (e) => <Who id={e.agentId} name={names(e.agentId).name} />, text: (e) => names(e.agentId).name },
    { id: 'clearances', head: x.clearances, width: 'minmax(0,0.6fr)', from: 'tab', cell: (e) => <span className="flex gap-1">{e.clearances.map((c) => <Badge key={c}>{c}</Badge>)}</span>, text: (e) => e.clearances.join(', ') },
    { id: 'reason', head: x.reason, width: 'minmax(0,1fr)', from: 'desk', cell: (e) => <span className="text-ink2">{e.reason}</span>, text: (e) => e.reason ?? '' },
    { id: 'until', head: x.until, width: '116px', right: true, from: 'tab', cell: (e) => (e.until ? <span className="text-xs text-ink3"><Time at={e.until} /></span> : e.lastHeight ? <span className="text-xs text-ink3">{x.entry(number(e.lastHeight))}</span> : '–') },
    { id: 'end', head: '', width: '64px', right: true, cell: (e) => (e.status === 'in_force' ? <Button small look="danger" onClick={() => setEnding(e)}>{x.end}</Button> : null), text: () => '' },
  ]
  return (
    <>
      <div className="no-print flex h-11 shrink-0 items-center gap-1.5 border-b border-line px-4">
        <Select aria-label={x.status} value={query.status ?? ''} onChange={(e) => set({ status: e.target.value })} choices={[{ value: '', label: t.common.all }, ...Object.entries(x.states).map(([value, label]) => ({ value, label }))]} />
        <Select aria-label={t.nav.company} value={company?.issuePrefix ?? ''} onChange={(e) => set({ company: e.target.value })} choices={[{ value: '', label: tr.permits.allCompanies }, ...companies.map((c) => ({ value: c.issuePrefix, label: c.name }))]} />
      </div>
      <Loaded of={all}>{(list) => <Table label={x.title} rows={list.slice(0, most)} columns={columns} keyOf={(e) => e.id} empty={<Empty icon="approvals" title={x.empty} why={x.emptyWhy} />} />}</Loaded>
      <Confirm open={!!ending} onClose={() => setEnding(undefined)} title={x.endAsk(ending ? names(ending.agentId).name : '')} body={x.endBody} action={x.end} busy={end.isPending} onConfirm={() => ending && end.mutate(ending)} />
    </>
  )
}

const hour = 3_600

/** Asks for clearances of an agent of a company: they are given at once, or wait for a person. */
export function Elevate({ company, onClose }: { company: string; onClose: () => void }) {
  const agents = useAgents(company).data ?? []
  const ask = useWrite<Values, unknown>({
    call: (v) => post('/api/v1/govern/elevations', {}, { agentId: String(v['agent']), clearances: String(v['clearances']).split(/[\s,]+/).filter(Boolean), reason: String(v['reason']), seconds: Math.round(Number(v['hours']) * hour) })
      .catch((error: unknown) => { if (error instanceof Refusal && (error.details as { approvalId?: unknown } | null)?.approvalId) return toast({ text: x.waits }); throw error }),
    reread: () => [keys.govern('elevations'), keys.approvals(company)], onDone: onClose,
  })
  return <FormDialog title={x.ask} action={x.ask} busy={ask.isPending} onClose={onClose} onSave={(v) => ask.mutate(v)} initial={{ hours: 1 }}
    schema={{ required: ['agent', 'clearances', 'hours', 'reason'], properties: { agent: { type: 'string', title: x.agent, enum: agents.map((a) => a.id), labels: Object.fromEntries(agents.map((a) => [a.id, a.name])) }, clearances: { type: 'string', title: x.clearances, description: x.clearancesHint }, hours: { type: 'number', minimum: 0.01, maximum: 24, title: x.hours }, reason: { type: 'string', title: x.reason } } }} />
}
