// All approvals: those that wait first, with a drawer that decides them.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useRead } from '../../data'
import { number, words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { Select } from '../../parts/form'
import { Drawer } from '../../parts/overlay'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Time, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { ApprovalBody, useDecide } from '../approval/body'
import { titleOf, type Approval } from '../approval/waiting'

const limit = 500
const states = ['pending', 'revision_requested', 'approved', 'rejected', 'cancelled']
interface Filter { status?: string; show?: string }

export function Page() {
  const company = useCompany()
  const filter = useSearch({ strict: false }) as Filter
  const go = useNavigate()
  const names = useNames(company.id)
  const status = filter.status ?? 'pending'
  const all = useRead(keys.approvals(company.id, { status }), '/api/companies/{companyId}/approvals', { path: { companyId: company.id }, query: { status: status === 'all' ? undefined : status, limit } })
  const set = (next: Filter) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...filter, ...next }).filter(([, v]) => v)) as never, replace: true })
  const path = (a: Approval) => `/${company.issuePrefix}/approvals/${a.id}`
  const rows = all.data ?? []
  const after = (id: string) => { const i = rows.findIndex((r) => r.id === id); return rows[i + 1]?.id ?? rows[i - 1]?.id ?? '' }
  const decide = useDecide(company.id, (id) => { if (filter.show === id) set({ show: after(id) }) })
  const columns: Column<Approval>[] = [
    { id: 'status', head: '', width: '16px', cell: (a) => <StatusMark status={a.status} bare /> },
    { id: 'title', head: t.approvals.what, width: 'minmax(0,1fr)', cell: (a) => <Link to={path(a)} className="hover:underline">{titleOf(a)}</Link>, sort: (a, b) => titleOf(a).localeCompare(titleOf(b)) },
    { id: 'type', head: t.approvals.type, width: '180px', from: 'desk', cell: (a) => <span className="text-ink2">{words(a.type)}</span> },
    { id: 'by', head: t.approvals.by, width: '132px', from: 'tab', cell: (a) => { const by = a.requestedByAgentId ?? a.requestedByUserId; return by ? <Who id={by} name={names(by).name} person={!a.requestedByAgentId} /> : '–' } },
    { id: 'at', head: t.approvals.asked, width: '80px', right: true, cell: (a) => <span className="text-xs text-ink3"><Time at={a.createdAt} /></span>, sort: (a, b) => (a.createdAt ?? '').localeCompare(b.createdAt ?? '') },
  ]
  return (
    <Frame title={t.nav.approvals} scroll={false} command={`selvage approval list --company ${company.issuePrefix}`}
      bar={<><Select aria-label={t.approvals.status} value={status} onChange={(e) => set({ status: e.target.value === 'pending' ? '' : e.target.value, show: '' })} choices={[...states.map((s) => ({ value: s, label: statusText(s) })), { value: 'all', label: t.common.all }]} /><span className="grow" /><span className="whitespace-nowrap text-xs text-ink3 max-tab:hidden">{t.approvals.keys}</span></>}
      drawer={filter.show && rows.some((r) => r.id === filter.show) && <Drawer label={t.nav.approvals} onClose={() => set({ show: '' })} head={t.approvals.one}><ApprovalBody key={filter.show} id={filter.show} narrow onDone={(id) => set({ show: after(id) })} /></Drawer>}>
      <Loaded of={all} rows={8}>
        {(list) => <Table label={t.nav.approvals} rows={list} columns={columns} keyOf={(a) => a.id} openKey={filter.show} onOpen={(a) => (filter.show === a.id ? void go({ to: path(a) }) : set({ show: a.id }))}
          onKey={{ a: (a) => { if (a.status === 'pending') decide.mutate({ id: a.id, verdict: 'approve' }) }, r: (a) => { if (a.status === 'pending') decide.mutate({ id: a.id, verdict: 'reject' }) } }}
          empty={<Empty icon="approvals" title={t.approvals.empty} why={t.approvals.emptyWhy} />} />}
      </Loaded>
      <footer className="flex h-8 shrink-0 items-center border-t border-line px-4 text-xs text-ink3">{t.approvals.many(number(rows.length))}</footer>
    </Frame>
  )
}
