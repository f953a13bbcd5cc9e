// A project: its issues, where its files are, its goals and its limit.
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useIssues, useMembers, useNames, useRead, useWrite, type Issue } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { newIssue } from '../../frame/state'
import { del, patch, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Combobox } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Schema } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Markdown } from '../../parts/markdown'
import { Confirm, Menu } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { Badge, PriorityMark, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { Limit, PolicyDialog } from '../costs/limits'
import { Environment } from './environment'

type Project = Schemas['ApiProjectRow']
type Workspace = Schemas['Workspace']

const states = ['backlog', 'planned', 'in_progress', 'completed', 'cancelled']
const maxIssues = 200

export function Page() {
  const { project: id } = useParams({ strict: false }) as { project: string }
  const company = useCompany()
  const project = useRead(keys.project(id), '/api/projects/{id}', { path: { id }, query: { companyId: company.id } })
  return project.data ? <Shown project={project.data} /> : <Frame title={t.nav.projects}><Loaded of={project}>{() => null}</Loaded></Frame>
}

/** usePatch changes the project; what is on screen changes at once. */
function usePatch(project: Project, done: string) {
  const company = useCompany()
  return useWrite<Record<string, unknown>, unknown>({
    call: (change) => patch('/api/projects/{id}', { path: { id: project.id } }, change as Schemas['ApiPatchProject']),
    optimistic: (change) => [{ key: keys.project(project.id), change: (row) => (row && typeof row === 'object' && 'goalIds' in row ? { ...row, ...change } : row) }],
    reread: () => [keys.project(project.id), keys.projects(company.id)],
    onDone: () => toast({ text: done }),
  })
}

function Shown({ project: p }: { project: Project }) {
  const company = useCompany()
  const agents = useAgents(company.id).data ?? []
  const [editing, setEditing] = useState(false)
  const change = usePatch(p, tp.project.saved)
  const archive = usePatch(p, p.archivedAt ? tp.project.restored(p.name) : tp.project.archived(p.name))
  const schema: Schema = {
    required: ['name'],
    properties: {
      name: { type: 'string', title: tp.project.name }, description: { type: 'string', format: 'multiline', title: tp.project.description },
      status: { type: 'string', title: tp.project.status, enum: states, labels: Object.fromEntries(states.map((s) => [s, statusText(s)])) },
      leadAgentId: { type: 'string', title: tp.project.lead, enum: agents.map((a) => a.id), labels: Object.fromEntries(agents.map((a) => [a.id, a.name])) },
      targetDate: { type: 'string', format: 'date', title: tp.project.target },
    },
  }
  return (
    <Frame title={p.name} command={`selvage project show '${p.name}'`}
      head={<h1 className="mr-2 flex min-w-0 items-center gap-2 text-lg font-strong"><Link to={`/${company.issuePrefix}/projects`} aria-label={tp.project.all} className="text-ink3 hover:text-ink">{t.nav.projects}</Link><span className="text-ink3">/</span><span className="truncate">{p.name}</span></h1>}
      tools={<>
        <Button onClick={() => setEditing(true)}>{tp.project.edit}</Button>
        <Button look="primary" icon="plus" onClick={() => newIssue.set({ projectId: p.id })}>{tp.project.newIssue}</Button>
        <Menu align="end" label={t.nav.more} items={[{ label: p.archivedAt ? tp.project.restore : tp.project.archive, icon: 'file', onSelect: () => archive.mutate({ archivedAt: p.archivedAt ? null : new Date().toISOString() }) }]}><IconButton icon="more" label={t.nav.more} /></Menu>
      </>}>
      <div className="grid w-full max-w-page gap-x-8 gap-y-4 p-4 desk:grid-cols-[minmax(0,1fr)_300px]">
        <div className="flex min-w-0 flex-col gap-4">
          <div className="text-base">{p.description ? <Markdown text={p.description} /> : <p className="text-ink3">{tp.project.noDescription}</p>}</div>
          <Issues project={p} />
          <Workspaces project={p} />
          <Environment project={p} />
          <Checkouts project={p} />
        </div>
        <div className="flex min-w-0 flex-col gap-4"><ProjectFacts project={p} /><Goals project={p} /><Budget project={p} /></div>
      </div>
      {editing && <FormDialog title={tp.project.edit} schema={schema} action={t.common.save} busy={change.isPending} onClose={() => setEditing(false)}
        initial={{ name: p.name, description: p.description ?? undefined, status: p.status, leadAgentId: p.leadAgentId ?? undefined, targetDate: p.targetDate?.slice(0, 10) }}
        onSave={(_v, changes) => (Object.keys(changes).length === 0 ? setEditing(false) : change.mutate(changes, { onSuccess: () => setEditing(false) }))} />}
    </Frame>
  )
}

function Issues({ project }: { project: Project }) {
  const company = useCompany()
  const go = useNavigate()
  const names = useNames(company.id)
  const issues = useIssues(company.id, { projectId: project.id, limit: maxIssues })
  const to = (i: Issue) => `/${company.issuePrefix}/issues/${i.identifier ?? i.id}`
  const columns: Column<Issue>[] = [
    { id: 'status', head: '', width: '16px', cell: (i) => <StatusMark status={i.status} bare />, text: (i) => statusText(i.status) },
    { id: 'key', head: t.issues.key, width: '72px', from: 'tab', cell: (i) => <span className="text-xs text-ink3">{i.identifier}</span>, sort: (a, b) => (a.issueNumber ?? 0) - (b.issueNumber ?? 0) },
    { id: 'title', head: t.issues.titleField, width: 'minmax(0,1fr)', cell: (i) => <Link to={to(i)} className="hover:underline">{i.title}</Link>, sort: (a, b) => a.title.localeCompare(b.title) },
    { id: 'assignee', head: t.issues.assignee, width: '120px', from: 'tab', cell: (i) => (i.assigneeAgentId ? <Who id={i.assigneeAgentId} name={names(i.assigneeAgentId).name} /> : <span className="text-ink3">–</span>) },
    { id: 'priority', head: t.issues.priority, width: '84px', from: 'desk', cell: (i) => <PriorityMark priority={i.priority} /> },
    { id: 'updated', head: t.issue.updated, width: '72px', right: true, cell: (i) => <span className="text-xs text-ink3"><Time at={i.updatedAt} /></span> },
  ]
  return (
    <Section title={tp.project.issues} aside={<Link to={`/${company.issuePrefix}/issues`} search={{ project: project.id, status: 'all' } as never} className="text-sm text-accent hover:underline">{tp.project.allIssues}</Link>}>
      <Loaded of={issues} rows={4}>{(rows) => <div className="flex max-h-[420px] flex-col overflow-hidden rounded border border-line"><Table label={tp.project.issues} rows={rows} columns={columns} keyOf={(i) => i.id} onOpen={(i) => void go({ to: to(i) })} empty={<Empty icon="issues" title={tp.project.noIssues} why={tp.project.noIssuesWhy} />} /></div>}</Loaded>
    </Section>
  )
}

const workspaceSchema: Schema = {
  required: ['name'],
  properties: {
    name: { type: 'string', title: tp.project.name }, sourceType: { type: 'string', title: tp.project.source, enum: ['local_path', 'git_repo', 'non_git_path'], labels: tp.project.sources },
    cwd: { type: 'string', title: tp.project.cwd, description: tp.project.cwdHint }, repoUrl: { type: 'string', title: tp.project.repoUrl }, repoRef: { type: 'string', title: tp.project.repoRef },
    setupCommand: { type: 'string', title: tp.project.setup }, cleanupCommand: { type: 'string', title: tp.project.cleanup }, isPrimary: { type: 'boolean', title: tp.project.isPrimary },
  },
}

function Workspaces({ project }: { project: Project }) {
  const key = keys.project(project.id, 'workspaces')
  const all = useRead(key, '/api/projects/{id}/workspaces', { path: { id: project.id } })
  const [editing, setEditing] = useState<Workspace | 'new'>()
  const [removing, setRemoving] = useState<Workspace>()
  const reread = () => [key, keys.project(project.id)]
  const save = useWrite<{ of: Workspace | 'new'; body: Record<string, unknown> }, unknown>({
    call: ({ of, body }) => (of === 'new' ? post('/api/projects/{id}/workspaces', { path: { id: project.id } }, body) : patch('/api/projects/{id}/workspaces/{workspaceId}', { path: { id: project.id, workspaceId: of.id } }, body)),
    reread, onDone: () => setEditing(undefined),
  })
  const remove = useWrite({ call: (w: Workspace) => del('/api/projects/{id}/workspaces/{workspaceId}', { path: { id: project.id, workspaceId: w.id } }), reread, onDone: () => setRemoving(undefined) })
  const open = editing !== undefined && editing !== 'new' ? editing : undefined
  return (
    <Section title={tp.project.workspaces} aside={<Button small icon="plus" onClick={() => setEditing('new')}>{tp.project.newWorkspace}</Button>}>
      <Loaded of={all} rows={2}>
        {(rows) => rows.length === 0 ? <Empty icon="projects" title={tp.project.noWorkspaces} why={tp.project.noWorkspacesWhy} /> : (
          <Lines label={tp.project.workspaces}>{rows.map((w) => (
            <LineOf key={w.id}>
              <Front><span className="font-strong">{w.name}</span> <code className="ml-1 font-mono text-xs text-ink2">{w.repoUrl ?? w.cwd ?? ''}{w.repoRef ? ` @ ${w.repoRef}` : ''}</code></Front>
              {w.isPrimary ? <Badge meaning="ok">{tp.project.primary}</Badge> : <Button small look="quiet" onClick={() => save.mutate({ of: w, body: { isPrimary: true } })}>{tp.project.makePrimary}</Button>}
              {(w.runtimeServices ?? []).map((s) => <Badge key={s.id}>{s.serviceName}: {statusText(s.status)}</Badge>)}
              <Button small onClick={() => setEditing(w)}>{t.common.edit}</Button><IconButton small icon="close" label={tp.project.removeWorkspace(w.name)} onClick={() => setRemoving(w)} />
            </LineOf>
          ))}</Lines>
        )}
      </Loaded>
      {editing && <FormDialog key={open?.id ?? 'new'} title={open ? open.name : tp.project.newWorkspace} schema={workspaceSchema} action={open ? t.common.save : t.common.create} busy={save.isPending} onClose={() => setEditing(undefined)}
        initial={open ? { name: open.name, sourceType: open.sourceType, cwd: open.cwd ?? undefined, repoUrl: open.repoUrl ?? undefined, repoRef: open.repoRef ?? undefined, setupCommand: open.setupCommand ?? undefined, cleanupCommand: open.cleanupCommand ?? undefined, isPrimary: open.isPrimary } : { sourceType: 'local_path' }}
        onSave={(values, changes) => save.mutate({ of: editing, body: open ? changes : values })} />}
      <Confirm open={!!removing} onClose={() => setRemoving(undefined)} title={tp.project.removeWorkspace(removing?.name ?? '')} body={tp.project.removeWorkspaceBody} action={t.common.remove} busy={remove.isPending} onConfirm={() => removing && remove.mutate(removing)} />
    </Section>
  )
}

type Checkout = Schemas['ApiExecutionWorkspaceRow']

function Checkouts({ project }: { project: Project }) {
  const company = useCompany()
  const members = useMembers().data
  const all = useRead(keys.project(project.id, 'checkouts'), '/api/companies/{companyId}/execution-workspaces', { path: { companyId: company.id }, query: { projectId: project.id, limit: 100 } })
  const columns: Column<Checkout>[] = [
    { id: 'name', head: tp.project.name, width: 'minmax(0,1fr)', cell: (c) => c.name }, { id: 'status', head: tp.project.status, width: '104px', cell: (c) => <StatusMark status={c.status} /> },
    { id: 'branch', head: tp.project.branch, width: 'minmax(0,1fr)', from: 'tab', cell: (c) => <code className="font-mono text-xs">{c.branchName ?? '–'}</code> }, { id: 'node', head: tp.project.node, width: '72px', from: 'desk', cell: (c) => members?.find((m) => m.id === c.nodeId)?.name ?? '–' },
    { id: 'used', head: tp.project.used, width: '80px', right: true, cell: (c) => <span className="text-xs text-ink3"><Time at={c.lastUsedAt} /></span> },
  ]
  if (!all.data || all.data.length === 0) return null
  return <Section title={tp.project.checkouts}><div className="flex max-h-[300px] flex-col overflow-hidden rounded border border-line"><Table label={tp.project.checkouts} rows={all.data} columns={columns} keyOf={(c) => c.id} /></div></Section>
}

function ProjectFacts({ project: p }: { project: Project }) {
  const company = useCompany()
  const names = useNames(company.id)
  return (
    <Section title={tp.project.facts}>
      <Facts rows={[
        [tp.project.status, <StatusMark status={p.archivedAt ? 'archived' : p.pausedAt ? 'paused' : p.status} />], !!p.pauseReason && ['', <span className="text-warn">{words(p.pauseReason)}</span>],
        [tp.project.lead, p.leadAgentId ? <Link to={`/${company.issuePrefix}/agents/${p.leadAgentId}`} className="hover:underline"><Who id={p.leadAgentId} name={names(p.leadAgentId).name} /></Link> : '–'],
        [tp.project.target, p.targetDate?.slice(0, 10) ?? '–'], !!p.codebase.repoUrl && [tp.project.repository, <code className="break-all font-mono text-xs">{p.codebase.repoUrl}</code>],
        !!p.codebase.effectiveLocalFolder && [tp.project.folder, <Id id={p.codebase.effectiveLocalFolder} />], [tp.project.created, <Time at={p.createdAt} />], ['ID', <Id id={p.id} />]]} />
    </Section>
  )
}

function Goals({ project: p }: { project: Project }) {
  const company = useCompany()
  const all = useRead(keys.goals(company.id), '/api/companies/{companyId}/goals', { path: { companyId: company.id } }).data ?? []
  const ids = p.goalIds ?? []
  const change = usePatch(p, tp.project.saved)
  const set = (goalIds: string[]) => change.mutate({ goalIds })
  const rest = all.filter((g) => !ids.includes(g.id))
  return (
    <Section title={tp.project.goals} aside={rest.length > 0 && <Combobox align="end" label={tp.project.addGoal} choices={rest.map((g) => ({ value: g.id, label: g.title }))} onChange={(id) => set([...ids, id])}><IconButton small icon="plus" label={tp.project.addGoal} /></Combobox>}>
      {ids.length === 0 ? <p className="text-sm text-ink3">{tp.project.none}</p> : <ul>{ids.map((id) => <li key={id} className="flex min-h-8 items-center gap-2 text-sm"><span className="min-w-0 grow">{all.find((g) => g.id === id)?.title ?? id}</span><IconButton small icon="close" label={t.common.remove} onClick={() => set(ids.filter((x) => x !== id))} /></li>)}</ul>}
    </Section>
  )
}

function Budget({ project: p }: { project: Project }) {
  const company = useCompany()
  const overview = useRead(keys.budgets(company.id, 'overview'), '/api/companies/{companyId}/budgets/overview', { path: { companyId: company.id } })
  const [editing, setEditing] = useState(false)
  const policy = overview.data?.policies?.find((x) => x.scopeType === 'project' && x.scopeId === p.id)
  return (
    <Section title={tp.project.budget} aside={!policy && <Button small onClick={() => setEditing(true)}>{tp.project.setBudget}</Button>}>
      {policy ? <ul className="rounded border border-line"><Limit policy={policy} narrow onEdit={() => setEditing(true)} /></ul> : <p className="text-sm text-ink3">{tp.project.noBudget}</p>}
      {editing && <PolicyDialog policy={policy} scope={{ type: 'project', id: p.id }} onClose={() => setEditing(false)} />}
    </Section>
  )
}
