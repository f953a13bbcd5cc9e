// The list of issues: filters in the address, keys, a drawer beside it.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useChangeIssue, useIssues, useNames, useProjects, useRead, type Issue } from '../../data'
import { number } from '../../format'
import { newIssue } from '../../frame/state'
import { Page as Frame } from '../../frame/page'
import { Button, IconButton } from '../../parts/button'
import { Choices, Combobox, Input, Select, type Choice } from '../../parts/form'
import { useFlashing } from '../../parts/flash'
import { Dialog, Drawer } from '../../parts/overlay'
import { Empty, ErrorBox, Rows } from '../../parts/states'
import { PriorityMark, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { CopyAsCommand, Id, Time, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { IssueBody } from '../issue/body'
import { Board } from './board'

export interface Filter { q?: string; status?: string; assignee?: string; priority?: string; project?: string; label?: string; show?: string; view?: string }
export const states = ['backlog', 'todo', 'in_progress', 'in_review', 'blocked', 'done', 'cancelled'] as const
const open = ['backlog', 'todo', 'in_progress', 'in_review', 'blocked']
const priorities = ['critical', 'high', 'medium', 'low']
const limit = 1000

/** matches says whether an issue fits what the server does not filter by. */
export function matches(issue: Pick<Issue, 'title' | 'identifier' | 'status' | 'priority' | 'assigneeAgentId' | 'projectId'> & { labelIds?: readonly string[] | null }, f: Filter): boolean {
  const q = f.q?.trim().toLowerCase()
  if (q && !`${issue.identifier ?? ''} ${issue.title}`.toLowerCase().includes(q)) return false
  const status = f.status ?? 'open'
  if (status === 'open' ? !open.includes(issue.status) : status !== 'all' && issue.status !== status) return false
  if (f.assignee && (f.assignee === 'none' ? issue.assigneeAgentId : issue.assigneeAgentId !== f.assignee)) return false
  if (f.priority && issue.priority !== f.priority) return false
  if (f.label && !issue.labelIds?.includes(f.label)) return false
  return !f.project || issue.projectId === f.project
}

const rank = (list: readonly string[], value: string) => { const i = list.indexOf(value); return i < 0 ? list.length : i }

export function Page() {
  const company = useCompany()
  const filter = useSearch({ strict: false }) as Filter
  const go = useNavigate()
  const agents = useAgents(company.id).data ?? []
  const projects = useProjects(company.id).data ?? []
  const labels = useRead(keys.labels(company.id), '/api/companies/{companyId}/labels', { path: { companyId: company.id } }).data ?? []
  const names = useNames(company.id)
  const issues = useIssues(company.id, { limit })
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const change = useChangeIssue(company.id, ({ identifier, change: c }) => toast({ text: t.issues.changed(identifier ?? '', c.status ? statusText(String(c.status)) : t.issues.updated) }))
  const board = filter.view === 'board'
  const rows = useMemo(() => (issues.data ?? []).filter((i) => matches(i, board && !filter.status ? { ...filter, status: 'all' } : filter)), [issues.data, filter])
  const flashing = useFlashing(issues.data, (i) => i.id, (i) => `${i.status} ${i.priority} ${i.assigneeAgentId ?? ''} ${i.title}`)
  const [assigning, setAssigning] = useState<readonly Issue[]>([])
  const assign = (all: readonly Issue[], to: string) => { setAssigning([]); all.forEach((r) => edit(r, { assigneeAgentId: to || null })) }
  const chosen = () => rows.filter((r) => selected.has(r.id))
  const set = (next: Filter) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...filter, ...next }).filter(([, v]) => v)) as never, replace: true })
  const shown = (issues.data ?? []).find((i) => i.identifier === filter.show)
  const page = (issue: Issue) => `/${company.issuePrefix}/issues/${issue.identifier ?? issue.id}`
  const edit = (issue: Issue, c: Parameters<typeof change.mutate>[0]['change']) => change.mutate({ id: issue.id, identifier: issue.identifier, change: c })
  const columns: Column<Issue>[] = useMemo(() => [
    { id: 'status', head: '', width: '16px', cell: (i) => <StatusMark status={i.status} bare />, text: (i) => statusText(i.status), sort: (a, b) => rank(states, a.status) - rank(states, b.status) },
    { id: 'key', head: t.issues.key, width: '72px', cell: (i) => <Id id={i.identifier ?? i.id} text={i.identifier ?? undefined as never} />, text: (i) => i.identifier ?? i.id, sort: (a, b) => (a.issueNumber ?? 0) - (b.issueNumber ?? 0), from: 'tab' },
    { id: 'title', head: t.issues.titleField, width: 'minmax(0,1fr)', cell: (i) => <Link to={page(i)} className="hover:underline">{i.title}</Link>, text: (i) => i.title, sort: (a, b) => a.title.localeCompare(b.title) },
    { id: 'assignee', head: t.issues.assignee, width: '132px', from: 'tab', cell: (i) => (i.assigneeAgentId ? <Who id={i.assigneeAgentId} name={names(i.assigneeAgentId).name} /> : i.assigneeUserId ? <Who person id={i.assigneeUserId} name={names(i.assigneeUserId).name} /> : <span className="text-ink3">–</span>), text: (i) => (i.assigneeAgentId ? names(i.assigneeAgentId).name : '') },
    { id: 'priority', head: t.issues.priority, width: '92px', from: 'desk', cell: (i) => <PriorityMark priority={i.priority} />, text: (i) => i.priority, sort: (a, b) => rank(priorities, a.priority) - rank(priorities, b.priority) },
    { id: 'updated', head: t.issue.updated, width: '72px', right: true, cell: (i) => <span className="text-xs text-ink3"><Time at={i.updatedAt} /></span>, text: (i) => i.updatedAt ?? '', sort: (a, b) => (a.updatedAt ?? '').localeCompare(b.updatedAt ?? '') },
  ], [names, company.issuePrefix])
  const agentChoices: Choice[] = agents.map((a) => ({ value: a.id, label: a.name, hint: a.role }))
  const filtered = Object.entries(filter).some(([k, v]) => k !== 'show' && k !== 'view' && v)
  return (
    <Frame title={t.issues.title} scroll={false} command={`selvage issue list --company ${company.issuePrefix}`}
      bar={<>
        <Input data-find aria-label={t.issues.find} placeholder={t.issues.find} value={filter.q ?? ''} onChange={(e) => set({ q: e.target.value })} onKeyDown={(e) => { if (e.key === 'Escape') e.currentTarget.blur() }} className="!w-40 shrink-0 tab:!w-56" />
        <Select aria-label={t.issues.status} value={filter.status ?? (board ? 'all' : 'open')} onChange={(e) => set({ status: e.target.value === (board ? 'all' : 'open') ? '' : e.target.value })} choices={[{ value: 'open', label: t.issues.open }, { value: 'all', label: t.issues.allStatus }, ...states.map((s) => ({ value: s, label: statusText(s) }))]} />
        <Combobox label={t.issues.assignee} value={filter.assignee} onChange={(v) => set({ assignee: v })} choices={[{ value: '', label: t.common.all }, { value: 'none', label: t.issues.unassigned }, ...agentChoices]}>
          <Button >{filter.assignee ? (filter.assignee === 'none' ? t.issues.unassigned : names(filter.assignee).name) : t.issues.assignee}</Button>
        </Combobox>
        <Select aria-label={t.issues.priority} value={filter.priority ?? ''} onChange={(e) => set({ priority: e.target.value })} choices={[{ value: '', label: t.issues.priority }, ...priorities.map((p) => ({ value: p, label: t.priority[p] ?? p }))]} />
        {projects.length > 0 && <Select aria-label={t.issues.project} value={filter.project ?? ''} onChange={(e) => set({ project: e.target.value })} choices={[{ value: '', label: t.issues.project }, ...projects.map((p) => ({ value: p.id, label: p.name }))]} />}
        {labels.length > 0 && <Select aria-label={t.issue.labels} value={filter.label ?? ''} onChange={(e) => set({ label: e.target.value })} choices={[{ value: '', label: t.issue.labels }, ...labels.map((l) => ({ value: l.id, label: l.name }))]} />}
        <span className="sticky right-0 -mr-4 ml-auto flex gap-1.5 bg-ground pl-2 pr-4"><IconButton icon="list" label={t.issues.list} pressed={!board} onClick={() => set({ view: '' })} /><IconButton icon="board" label={t.issues.board} pressed={board} onClick={() => set({ view: 'board' })} /></span>
      </>}
      tools={<Button look="primary" icon="plus" onClick={() => newIssue.set({})}>{t.issues.create}</Button>}
      drawer={shown && <Drawer label={shown.title} onClose={() => set({ show: '' })} head={<span className="flex items-center gap-2"><Id id={shown.identifier ?? shown.id} text={shown.identifier ?? undefined as never} /><Link to={page(shown)} className="truncate hover:underline">{shown.title}</Link><CopyAsCommand small command={`selvage issue show ${shown.identifier}`} /></span>}><IssueBody id={shown.identifier ?? shown.id} narrow /></Drawer>}>
      {selected.size > 0 && (
        <div role="toolbar" aria-label={t.common.actions} className="flex min-h-10 shrink-0 flex-wrap items-center gap-2 border-b border-line bg-accent/10 px-4 text-sm">
          <span className="font-strong">{t.issues.selected(selected.size)}</span>
          <Select small aria-label={t.issues.setStatus} value="" onChange={(e) => rows.filter((r) => selected.has(r.id)).forEach((r) => edit(r, { status: e.target.value as Issue['status'] }))} choices={[{ value: '', label: t.issues.setStatus }, ...states.map((s) => ({ value: s, label: statusText(s) }))]} />
          <Combobox label={t.issues.setAssignee} onChange={(v) => assign(chosen(), v)} choices={[{ value: '', label: t.issues.unassigned }, ...agentChoices]}><Button small>{t.issues.setAssignee}</Button></Combobox>
          <Select small aria-label={t.issues.setPriority} value="" onChange={(e) => chosen().forEach((r) => edit(r, { priority: e.target.value as Issue['priority'] }))} choices={[{ value: '', label: t.issues.setPriority }, ...priorities.map((p) => ({ value: p, label: t.priority[p] ?? p }))]} />
          {projects.length > 0 && <Select small aria-label={t.issues.setProject} value="" onChange={(e) => chosen().forEach((r) => edit(r, { projectId: e.target.value }))} choices={[{ value: '', label: t.issues.setProject }, ...projects.map((p) => ({ value: p.id, label: p.name }))]} />}
          <Button small look="quiet" onClick={() => setSelected(new Set())}>{t.issues.clearSelection}</Button>
        </div>
      )}
      {issues.data === undefined ? (issues.error ? <ErrorBox error={issues.error} onRetry={() => void issues.refetch()} /> : <Rows n={12} />) : board ? (
        <Board issues={rows} states={filter.status && filter.status !== 'open' && filter.status !== 'all' ? [filter.status] : filter.status === 'open' ? open : states} company={company.id} pathOf={page} openKey={shown?.id} flashing={flashing} onMove={(i, status) => edit(i, { status: status as Issue['status'] })} onOpen={(i) => set({ show: i.identifier ?? '' })} />
      ) : (
        <Table label={t.issues.title} rows={rows} columns={columns} keyOf={(i) => i.id} openKey={shown?.id} selected={selected} onSelect={setSelected}
          onOpen={(i) => (shown?.id === i.id ? void go({ to: page(i) }) : set({ show: i.identifier ?? '' }))}
          flashing={flashing} onKey={{ a: (i) => setAssigning(selected.size > 0 ? chosen() : [i]), e: (i) => edit(i, { status: 'done' }), o: (i) => set({ show: i.identifier ?? '' }) }}
          empty={filtered ? <Empty icon="search" title={t.issues.noMatch}><Button onClick={() => void go({ to: '.', search: {} as never })}>{t.issues.clear}</Button></Empty>
            : <Empty icon="issues" title={t.issues.empty} why={t.issues.emptyWhy} />} />
      )}
      <Dialog open={assigning.length > 0} onClose={() => setAssigning([])} title={assigning.length === 1 ? `${t.issues.setAssignee}: ${assigning[0]?.identifier ?? ''}` : `${t.issues.setAssignee}: ${t.issues.selected(assigning.length)}`}>
        <Choices label={t.issues.assignee} value={assigning[0]?.assigneeAgentId ?? ''} choices={[{ value: '', label: t.issues.unassigned }, ...agentChoices]} onPick={(v) => assign(assigning, v)} />
      </Dialog>
      <footer className="flex h-8 shrink-0 items-center gap-2 border-t border-line px-4 text-xs text-ink3">{t.issues.many(number(rows.length))}{issues.data?.length === limit && <span className="text-warn">{t.issues.limited(number(limit))}</span>}</footer>
    </Frame>
  )
}
