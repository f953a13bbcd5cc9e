// Permits: what somebody may do once, or until a time, because the rules or a person said so; who used it, and its end.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useMaybeCompany } from '../../company'
import { useCompanies, useNamesIn, useRead, useWrite } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Select } from '../../parts/form'
import { Confirm, Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Tab, Tabs } from '../../parts/tabs'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { Elevate, Elevations } from './elevations'

type Permit = Schemas['ApiPermit']
interface Search { tab?: string; status?: string; company?: string; show?: string }
const x = tr.permits
const limit = 500

const Mark = ({ of }: { of: string }) => <StatusMark status={x.marks[of] ?? 'note'} label={x.states[of] ?? of} />

export function Page() {
  const go = useNavigate()
  const s = useSearch({ strict: false }) as Search
  const set = (next: Search) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...s, ...next }).filter(([, v]) => v)) as never, replace: true })
  const companies = useCompanies().data ?? []
  const company = companies.find((c) => c.issuePrefix === s.company)
  const here = useMaybeCompany()
  const tab = s.tab ?? 'permits'
  const query = { companyId: company?.id, status: s.status, limit }
  const all = useRead(keys.govern('permits', query), '/api/v1/govern/permits', { query }, { enabled: tab === 'permits' })
  const [asking, setAsking] = useState(false)
  const elevating = company ?? here
  const names = useNamesIn((all.data ?? []).map((p) => p.companyId), (company ?? here)?.id)
  const columns: Column<Permit>[] = [
    { id: 'status', head: x.status, width: '120px', cell: (p) => <Mark of={p.status} /> },
    { id: 'action', head: x.action, width: 'minmax(0,1fr)', cell: (p) => <code className="font-mono text-xs">{p.action}</code>, sort: (a, b) => a.action.localeCompare(b.action) },
    { id: 'agent', head: x.agent, width: '160px', from: 'tab', cell: (p) => <Who id={p.agent_id} name={names(p.agent_id).name} /> },
    { id: 'once', head: x.holds, width: '112px', from: 'tab', cell: (p) => (p.once ? x.once : x.many) },
    { id: 'uses', head: x.uses, width: '64px', right: true, from: 'desk', cell: (p) => number(p.uses) },
    { id: 'until', head: x.until, width: '96px', right: true, cell: (p) => <span className="text-xs text-ink3"><Time at={p.until} /></span> },
  ]
  const rows = all.data ?? []
  const one = rows.find((p) => p.id === s.show)
  return (
    <Frame title={x.title} command={tab === 'permits' ? 'selvage govern permit list' : 'selvage govern elevation list'} scroll={false} tools={tab === 'elevations' && elevating && <Button look="primary" icon="plus" onClick={() => setAsking(true)}>{tr.elevations.ask}</Button>}
      drawer={tab === 'permits' && one && <Drawer label={one.action} onClose={() => set({ show: '' })} head={<code className="font-mono text-sm">{one.action}</code>}><One key={one.id} permit={one} name={names(one.agent_id).name} prefix={companies.find((c) => c.id === one.companyId)?.issuePrefix} /></Drawer>}>
      <Tabs value={tab} onChange={(to) => void go({ to: '.', search: (to === 'permits' ? {} : { tab: to }) as never, replace: true })} tabs={[{ value: 'permits', label: x.title }, { value: 'elevations', label: tr.elevations.title }]}>
        <Tab value="permits" className="flex min-h-0 grow flex-col outline-none">
          <div className="no-print flex h-11 shrink-0 items-center gap-1.5 border-b border-line px-4">
            <Select aria-label={x.status} value={s.status ?? ''} onChange={(e) => set({ status: e.target.value })} choices={[{ value: '', label: t.common.all }, ...Object.entries(x.states).filter(([k]) => k !== 'waiting').map(([value, label]) => ({ value, label }))]} />
            <Select aria-label={t.nav.company} value={company?.issuePrefix ?? ''} onChange={(e) => set({ company: e.target.value })} choices={[{ value: '', label: x.allCompanies }, ...companies.map((c) => ({ value: c.issuePrefix, label: c.name }))]} />
          </div>
          <Loaded of={all}>{(list) => <Table label={x.title} rows={list} columns={columns} keyOf={(p) => p.id ?? ''} onOpen={(p) => set({ show: p.id ?? '' })} openKey={one?.id ?? undefined} empty={<Empty icon="approvals" title={x.empty} why={x.emptyWhy} />} />}</Loaded>
        </Tab>
        <Tab value="elevations" className="flex min-h-0 grow flex-col outline-none"><Elevations company={company} here={here?.id} status={s.status} set={set} /></Tab>
      </Tabs>
      {asking && elevating && <Elevate company={elevating.id} onClose={() => setAsking(false)} />}
    </Frame>
  )
}

function One({ permit: p, name, prefix }: { permit: Permit; name: string; prefix: string | undefined }) {
  const [ending, setEnding] = useState(false)
  const end = useWrite<undefined, unknown>({ call: () => post('/api/v1/govern/permits/{id}/revoke', { path: { id: p.id ?? '' } }), reread: () => [keys.govern('permits')], onDone: () => { setEnding(false); toast({ text: x.ended }) } })
  return (
    <div className="flex flex-col gap-5">
      {p.status === 'granted' && <div><Button look="danger" onClick={() => setEnding(true)}>{x.end}</Button></div>}
      <Facts rows={[
        [x.status, <Mark of={p.status} />], [x.agent, <Who id={p.agent_id} name={name} />], [x.holds, p.once ? x.once : x.many], [x.granted, <Time at={p.grantedAt} />], [x.until, <Time at={p.until} />], [x.uses, number(p.uses)],
        !!p.usedAt && [x.used, <span><Time at={p.usedAt} /> {p.usedBy}</span>], !!p.reason && [x.reason, p.reason], p.rules.length > 0 && [x.rules, <span className="flex flex-wrap gap-1">{p.rules.map((r) => <Link key={r} to="/mesh/constitution" search={{ show: r } as never}><Badge>{r}</Badge></Link>)}</span>],
        [x.version, number(p.constitution)], !!p.height && [x.entry, <Link to="/mesh/ledger" search={{ show: p.height } as never} className="font-mono text-xs text-accent hover:underline">{number(p.height)}</Link>],
        !!p.approvalId && [x.approval, prefix ? <Link to={`/${prefix}/approvals/${p.approvalId}`} className="text-accent hover:underline">{x.approvalOf}</Link> : <Id id={p.approvalId} />], [x.arguments, <Id id={p.arguments_sha256} />], ['ID', <Id id={p.id ?? ''} />]]} />
      <p className="text-xs text-ink3">{x.why}</p>
      <Confirm open={ending} onClose={() => setEnding(false)} title={x.endAsk(p.action)} body={x.endBody} action={x.end} busy={end.isPending} onConfirm={() => end.mutate(undefined)} />
    </div>
  )
}
