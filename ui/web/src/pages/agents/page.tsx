// All agents: a grid of who does what, or a list to sort.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { tails } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useLiveRuns, useNames, type Agent, type LiveRun } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { spansOf } from '../../parts/ansi'
import { Button, IconButton } from '../../parts/button'
import { Bar } from '../../parts/charts'
import { Input, Select } from '../../parts/form'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { csvOf, download, Table, type Column } from '../../parts/table'
import { Avatar, Lasting, Money, Time, Who } from '../../parts/values'
import { exactMoney } from '../../format'
import { useStorePart } from '../../store'
import { statusText, t } from '../../text/en'
import { Hire } from './hire'

interface Filter { q?: string; status?: string; view?: string; hire?: string }
const order = ['running', 'error', 'pending_approval', 'paused', 'active', 'idle', 'terminated']

export function Page() {
  const company = useCompany()
  const filter = useSearch({ strict: false }) as Filter
  const go = useNavigate()
  const agents = useAgents(company.id)
  const live = useLiveRuns(company.id).data ?? []
  const names = useNames(company.id)
  const [hiring, setHiring] = useState(!!filter.hire)
  const set = (next: Filter) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...filter, ...next }).filter(([, v]) => v)) as never, replace: true })
  const path = (a: Agent) => `/${company.issuePrefix}/agents/${a.urlKey || a.id}`
  const runOf = (a: Agent) => live.find((r) => r.agentId === a.id && r.status === 'running') ?? live.find((r) => r.agentId === a.id)
  const shown = (all: readonly Agent[]) => all.filter((a) => (!filter.status || a.status === filter.status) && (!filter.q || `${a.name} ${a.role} ${a.title ?? ''}`.toLowerCase().includes(filter.q.toLowerCase())))
    .sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status) || a.name.localeCompare(b.name))
  const columns: Column<Agent>[] = [
    { id: 'status', head: t.agents.status, width: '132px', cell: (a) => <StatusMark status={a.status} />, text: (a) => statusText(a.status), sort: (a, b) => order.indexOf(a.status) - order.indexOf(b.status) },
    { id: 'name', head: t.agents.name, width: 'minmax(0,1fr)', cell: (a) => <Link to={path(a)} className="hover:underline"><Who id={a.id} name={a.name} /></Link>, text: (a) => a.name, sort: (a, b) => a.name.localeCompare(b.name) },
    { id: 'role', head: t.agents.role, width: '104px', from: 'tab', cell: (a) => a.role, sort: (a, b) => a.role.localeCompare(b.role) },
    { id: 'adapter', head: t.agents.adapter, width: '120px', from: 'desk', cell: (a) => <span className="text-ink2">{a.adapterType}</span>, text: (a) => a.adapterType, sort: (a, b) => a.adapterType.localeCompare(b.adapterType) },
    { id: 'boss', head: t.agents.reports, width: '120px', from: 'wide', cell: (a) => (a.reportsTo ? names(a.reportsTo).name : '–'), text: (a) => (a.reportsTo ? names(a.reportsTo).name : '') },
    { id: 'spent', head: t.agents.spent, width: '116px', right: true, from: 'tab', cell: (a) => <Money cents={a.spentMonthlyCents} />, text: (a) => exactMoney(a.spentMonthlyCents), sort: (a, b) => a.spentMonthlyCents - b.spentMonthlyCents },
    { id: 'last', head: t.agents.last, width: '80px', right: true, cell: (a) => <span className="text-xs text-ink3"><Time at={a.lastHeartbeatAt} /></span>, text: (a) => a.lastHeartbeatAt ?? '', sort: (a, b) => (a.lastHeartbeatAt ?? '').localeCompare(b.lastHeartbeatAt ?? '') },
  ]
  const list = filter.view === 'list'
  return (
    <Frame title={t.agents.title} scroll={!list} command={`selvage agent list --company ${company.issuePrefix}`}
      tools={<Button look="primary" icon="plus" onClick={() => setHiring(true)}>{t.agents.hire}</Button>}
      bar={<>
        <Input data-find aria-label={t.agents.find} placeholder={t.agents.find} value={filter.q ?? ''} onChange={(e) => set({ q: e.target.value })} onKeyDown={(e) => { if (e.key === 'Escape') e.currentTarget.blur() }} className="!w-40 shrink-0 tab:!w-56" />
        <Select aria-label={t.agents.status} value={filter.status ?? ''} onChange={(e) => set({ status: e.target.value })} choices={[{ value: '', label: t.agents.all }, ...order.map((s) => ({ value: s, label: statusText(s) }))]} />
        <span className="grow" />
        {agents.data && <span className="whitespace-nowrap text-xs text-ink3 max-tab:hidden">{t.agents.many(number(shown(agents.data).length))}</span>}
        <IconButton icon="board" label={t.agents.grid} pressed={!list} onClick={() => set({ view: '' })} /><IconButton icon="list" label={t.agents.list} pressed={list} onClick={() => set({ view: 'list' })} />
        <IconButton icon="export" label={t.issues.csv} onClick={() => download(`${company.issuePrefix}-agents.csv`, csvOf(shown(agents.data ?? []), columns))} />
      </>}>
      <Loaded of={agents} rows={12}>
        {(all) => {
          const rows = shown(all)
          if (all.length === 0) return <Empty icon="agents" title={t.agents.empty} why={t.agents.emptyWhy}><Button onClick={() => setHiring(true)}>{t.agents.hire}</Button></Empty>
          if (rows.length === 0) return <Empty icon="search" title={t.agents.noMatch}><Button onClick={() => void go({ to: '.', search: {} as never })}>{t.issues.clear}</Button></Empty>
          if (list) return <Table label={t.agents.title} rows={rows} columns={columns} keyOf={(a) => a.id} onOpen={(a) => void go({ to: path(a) })} />
          return <ul className="grid gap-3 p-4 tab:grid-cols-2 desk:grid-cols-3 wide:grid-cols-4 huge:grid-cols-5">{rows.map((a) => <li key={a.id}><Card agent={a} run={runOf(a)} to={path(a)} /></li>)}</ul>
        }}
      </Loaded>
      {hiring && <Hire onClose={() => { setHiring(false); if (filter.hire) set({ hire: '' }) }} />}
    </Frame>
  )
}

function Card({ agent: a, run, to }: { agent: Agent; run: LiveRun | undefined; to: string }) {
  const tail = useStorePart(tails, (all) => (run ? all.get(run.id) : undefined))
  const doing = run ? (tail ? spansOf(tail).map((s) => s.text).join('') : (run.currentStatusMessage ?? run.lastAssistantSnippet ?? statusText(run.status))) : (a.pauseReason ?? a.errorReason ?? t.agents.nothing)
  return (
    <Link to={to} className="flex h-full flex-col gap-2 rounded border border-line p-3 hover:bg-ground2">
      <span className="flex items-start gap-2.5">
        <Avatar id={a.id} name={a.name} size={32} />
        <span className="min-w-0 grow"><span className="block truncate font-strong">{a.name}</span><span className="block truncate text-xs text-ink2">{a.title || a.role}</span></span>
        <StatusMark status={run ? 'running' : a.status} bare={!['error', 'paused', 'pending_approval'].includes(a.status) && !run} />
      </span>
      <span className="flex min-h-5 items-center gap-2 text-xs"><code className={`min-w-0 grow truncate font-mono ${run ? 'text-ink2' : 'text-ink3'}`}>{doing}</code>{run && <span className="text-ink3"><Lasting from={run.startedAt ?? run.createdAt} /></span>}</span>
      <span className="mt-auto flex flex-col gap-1">
        <span className="flex text-xs text-ink2"><Money cents={a.spentMonthlyCents} />{a.budgetMonthlyCents > 0 && <span className="ml-1 text-ink3">{t.home.ofBudget('')}<Money cents={a.budgetMonthlyCents} /></span>}<span className="ml-auto text-ink3">{a.adapterType}</span></span>
        {a.budgetMonthlyCents > 0 && <Bar value={a.spentMonthlyCents} of={a.budgetMonthlyCents} label={`${exactMoney(a.spentMonthlyCents)} ${t.home.ofBudget(exactMoney(a.budgetMonthlyCents))}`} />}
      </span>
    </Link>
  )
}
