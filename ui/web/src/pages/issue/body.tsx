// An issue as its page and the drawer show it: title and facts, one thread, a composer, properties.
import { Link } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useChangeIssue, useIssue, useIssueActivity, useIssueComments, useIssueCost, useIssueRuns, useIssues, useMembers, useNames, useProjects, useRead, useWrite, type Comment, type ShownIssue } from '../../data'
import { short } from '../../format'
import { newIssue } from '../../frame/state'
import { newKey, post } from '../../http'
import { drafts } from '../../node'
import { Button, IconButton } from '../../parts/button'
import { Combobox, Select, TextArea } from '../../parts/form'
import { Markdown } from '../../parts/markdown'
import { Facts, Loaded, Section } from '../../parts/states'
import { PriorityMark, StatusMark } from '../../parts/status'
import { Avatar, Lasting, Money, Time, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { Asked } from './asked'
import { Attachments, Chain, Documents } from './attached'
import { GoalOf, LabelsOf, Relations, Text } from './edited'
import { threadOf, type Entry } from './thread'

const states = ['backlog', 'todo', 'in_progress', 'in_review', 'blocked', 'done', 'cancelled']
const priorities = ['critical', 'high', 'medium', 'low']

export function IssueBody({ id, narrow }: { id: string; narrow?: boolean }) {
  const issue = useIssue(id)
  return (
    <Loaded of={issue}>
      {(row) => (
        <div className={narrow ? 'flex flex-col gap-4' : 'grid w-full max-w-page gap-x-8 gap-y-4 p-4 desk:grid-cols-[minmax(0,1fr)_280px]'}>
          {narrow && <Properties issue={row} />}
          <div className="min-w-0">
            <Title issue={row} small={narrow ?? false} />
            <div className="mt-2"><TextOf issue={row} /></div>
            <Thread id={id} issue={row} />
            <Waiting issue={row} id={id} />
            <Composer issue={row} id={id} />
          </div>
          {!narrow && <Properties issue={row} />}
        </div>
      )}
    </Loaded>
  )
}

function TextOf({ issue }: { issue: ShownIssue }) {
  const change = useChangeIssue(issue.companyId)
  return <Text key={issue.id} issue={issue} set={(c) => change.mutate({ id: issue.id, identifier: issue.identifier, change: c })} />
}

function Title({ issue, small }: { issue: ShownIssue; small: boolean }) {
  const change = useChangeIssue(issue.companyId)
  const [text, setText] = useState<string>()
  const save = () => {
    if (text !== undefined && text.trim() !== '' && text !== issue.title) change.mutate({ id: issue.id, identifier: issue.identifier, change: { title: text.trim() } })
    setText(undefined)
  }
  if (text !== undefined) {
    return <input autoFocus aria-label={t.issues.titleField} value={text} onChange={(e) => setText(e.target.value)} onBlur={save} onKeyDown={(e) => { if (e.key === 'Enter') save(); if (e.key === 'Escape') { e.preventDefault(); setText(undefined) } }}
      className={`-mx-1 w-full rounded border border-line2 bg-ground px-1 font-strong ${small ? 'text-lg' : 'text-xl'}`} />
  }
  const Head = small ? 'h2' : 'h1'
  return <div className="group flex items-start gap-2"><Head className={`min-w-0 break-words font-strong ${small ? 'text-lg' : 'text-xl'}`}>{issue.title}</Head><IconButton small icon="settings" label={t.common.edit} className="opacity-0 focus:opacity-100 group-hover:opacity-100" onClick={() => setText(issue.title)} /></div>
}

const shownEntries = 40

function Thread({ id, issue }: { id: string; issue: ShownIssue }) {
  const comments = useIssueComments(id)
  const runs = useIssueRuns(id).data
  const activity = useIssueActivity(id).data
  const names = useNames(issue.companyId)
  const [all, setAll] = useState(false)
  const entries = useMemo(() => threadOf(comments.data ?? [], runs ?? [], activity ?? []), [comments.data, runs, activity])
  const folded = all ? 0 : Math.max(0, entries.length - shownEntries)
  return (
    <div className="mt-6">
      <Section title={t.issue.thread}>
        <Loaded of={comments} rows={3}>
          {() => (
            <ol className="flex flex-col gap-1">
              {folded > 0 && <li><Button small look="quiet" onClick={() => setAll(true)}>{t.issue.showAll(folded)}</Button></li>}
              {entries.slice(folded).map((e) => <li key={`${e.kind}${e.id}`}><EntryOf entry={e} names={names} prefix={issue.identifier?.split('-')[0] ?? ''} /></li>)}
            </ol>
          )}
        </Loaded>
      </Section>
    </div>
  )
}

function EntryOf({ entry: e, names, prefix }: { entry: Entry; names: ReturnType<typeof useNames>; prefix: string }) {
  if (e.kind === 'comment') return <CommentOf comment={e.comment} names={names} />
  if (e.kind === 'run') {
    return (
      <div className="flex min-h-8 flex-wrap items-center gap-2 pl-1 text-sm text-ink2"><StatusMark status={e.run.status} bare /><Link to={`/${prefix}/runs/${e.run.runId}`} className="text-ink hover:underline">{t.issue.run(statusText(e.run.status))}</Link><Who id={e.run.agentId} name={names(e.run.agentId).name} /><Lasting from={e.run.startedAt} to={e.run.finishedAt} /><span className="ml-auto text-xs text-ink3"><Time at={e.at} /></span></div>
    )
  }
  const by = e.change.actorType === 'system' ? t.issue.system : names(e.change.actorId).name
  return <div className="flex min-h-8 items-center gap-2 pl-1 text-sm text-ink2"><span aria-hidden="true" className="mx-[5px] size-1 rounded-full bg-line2" /><span className="min-w-0 break-words"><span className="text-ink">{by}</span> {e.text}</span><span className="ml-auto shrink-0 text-xs text-ink3"><Time at={e.at} /></span></div>
}

function CommentOf({ comment: c, names }: { comment: Comment; names: ReturnType<typeof useNames> }) {
  const by = c.authorAgentId ?? c.authorUserId ?? ''
  const who = by === '' ? { name: t.issue.system, person: true } : names(by) // the rules speak, too
  return (
    <article aria-label={t.issue.commentBy(who.name)} className="my-1 rounded border border-line" data-comment={c.id}>
      <header className="flex h-9 items-center gap-2 border-b border-line bg-ground2 px-3 text-sm"><Avatar id={by} name={who.name} person={!c.authorAgentId} /><span className="font-strong">{who.name}</span><span className="ml-auto text-xs text-ink3"><Time at={c.createdAt} /></span></header>
      <div className="px-3 py-2">{c.deletedAt ? <p className="text-ink3">{t.issue.deleted}</p> : <Markdown text={c.body ?? ''} />}</div>
    </article>
  )
}

const useAsked = (issue: ShownIssue, id: string) => (useRead(keys.issue(id, 'interactions'), '/api/issues/{id}/interactions', { path: { id: issue.id } }).data ?? []).filter((i) => i.status === 'pending')

/** What was asked here and waits for an answer stands above the composer. */
function Waiting({ issue, id }: { issue: ShownIssue; id: string }) {
  const open = useAsked(issue, id)
  if (open.length === 0) return null
  return <div className="mt-4 flex flex-col gap-3" aria-label={t.asked.waiting}>{open.map((i, n) => <Asked key={i.id} first={n === 0} of={i} company={issue.companyId} also={[keys.issue(id)]} />)}</div>
}

function Composer({ issue, id }: { issue: ShownIssue; id: string }) {
  const name = `comment.${issue.id}`
  const asked = useAsked(issue, id).length > 0 // an answer comes first
  const [text, setText] = useState(() => drafts.get(name))
  const write = (next: string) => { setText(next); drafts.set(name, next) }
  const send = useWrite<{ body: string; key: string }, unknown>({
    call: ({ body, key }) => post('/api/issues/{id}/comments', { path: { id: issue.id }, key }, { body }),
    optimistic: ({ body, key }) => [{ key: keys.issue(id, 'comments'), change: (rows) => [...((rows as Comment[] | undefined) ?? []), { id: key, issueId: issue.id, companyId: issue.companyId, body, authorUserId: 'local-board', authorAgentId: null, createdAt: new Date().toISOString(), deletedAt: null } as unknown as Comment] }],
    reread: () => [keys.issue(id, 'comments'), keys.issue(id, 'activity')],
  })
  const go = () => {
    const body = text.trim()
    if (body === '' || send.isPending) return
    write('')
    send.mutate({ body, key: newKey() }, { onError: () => write(body) })
  }
  return (
    <form className="no-print mt-3" onSubmit={(e) => { e.preventDefault(); go() }}>
      <TextArea aria-label={t.issue.write} placeholder={t.issue.write} rows={3} value={text} onChange={(e) => write(e.target.value)} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); go() } }} />
      <div className="mt-1 flex items-center justify-end gap-3"><span className="hidden text-xs text-ink3 tab:inline">{t.issue.sendHint}</span><Button look={asked ? 'plain' : 'primary'} type="submit" disabled={text.trim() === ''} busy={send.isPending}>{t.issue.send}</Button></div>
    </form>
  )
}

/** Begins an issue for its agent: one agent has it, and who comes second is told who that is. */
function CheckOut({ issue, agent, name, nameOf }: { issue: ShownIssue; agent: string; name: string; nameOf: (id: string) => string }) {
  const checkout = useWrite({
    call: () => post('/api/issues/{id}/checkout', { path: { id: issue.id } }, { agentId: agent, expectedStatuses: [issue.status] }),
    optimistic: () => [issue.id, issue.identifier].filter((k): k is string => !!k).map((k) => ({ key: keys.issue(k), change: (row: unknown) => (row !== null && typeof row === 'object' && 'statusVersion' in row ? { ...row, status: 'in_progress' } : row) })),
    reread: () => [keys.issues(issue.companyId), keys.issue(issue.id), ...(issue.identifier ? [keys.issue(issue.identifier)] : [])],
    nameOf,
  })
  return <Button small busy={checkout.isPending} onClick={() => checkout.mutate(undefined)}>{t.issue.checkOut(name)}</Button>
}

function Properties({ issue }: { issue: ShownIssue }) {
  const company = useCompany()
  const agents = useAgents(issue.companyId).data ?? []
  const projects = useProjects(issue.companyId).data ?? []
  const names = useNames(issue.companyId)
  const cost = useIssueCost(issue.identifier ?? issue.id).data
  const children = useIssues(issue.companyId, { parentId: issue.id, limit: 200 }).data ?? []
  const change = useChangeIssue(issue.companyId)
  const runs = useIssueRuns(issue.identifier ?? issue.id).data ?? []
  const members = useMembers().data
  const live = runs.find((r) => r.status === 'running')
  const set = (c: Parameters<typeof change.mutate>[0]['change']) => change.mutate({ id: issue.id, identifier: issue.identifier, change: c })
  const cell = 'w-full justify-start border-transparent !px-1.5 -ml-1.5 !font-normal hover:border-line2'
  const link = (to: { id: string; identifier?: string | null; title?: string; status?: string }) => <Link key={to.id} to={`/${company.issuePrefix}/issues/${to.identifier ?? to.id}`} className="flex h-8 items-center gap-2 text-sm hover:underline">{to.status && <StatusMark status={to.status} bare />}<span className="text-xs text-ink3">{to.identifier}</span><span className="truncate">{to.title}</span></Link>
  return (
    <aside aria-label={t.issue.properties} className="min-w-0">
      <Facts rows={[
        [t.issues.status, <Combobox label={t.issues.status} value={issue.status} onChange={(v) => set({ status: v as ShownIssue['status'] })} choices={states.map((s) => ({ value: s, label: statusText(s), mark: <StatusMark status={s} bare /> }))}><Button className={cell} data-property="status"><StatusMark status={issue.status} /></Button></Combobox>],
        [t.issues.assignee, <Combobox label={t.issues.assignee} value={issue.assigneeAgentId ?? ''} onChange={(v) => set({ assigneeAgentId: v || null })} choices={[{ value: '', label: t.issues.unassigned }, ...agents.map((a) => ({ value: a.id, label: a.name, hint: a.role, mark: <Avatar id={a.id} name={a.name} size={16} /> }))]}><Button className={cell} data-property="assignee">{issue.assigneeAgentId ? <Who id={issue.assigneeAgentId} name={names(issue.assigneeAgentId).name} /> : issue.assigneeUserId ? <Who person id={issue.assigneeUserId} name={names(issue.assigneeUserId).name} /> : <span className="text-ink3">{t.issues.unassigned}</span>}</Button></Combobox>],
        !!issue.assigneeAgentId && ['backlog', 'todo', 'blocked'].includes(issue.status) && ['', <CheckOut issue={issue} agent={issue.assigneeAgentId} name={names(issue.assigneeAgentId).name} nameOf={(id) => names(id).name} />],
        [t.issues.priority, <Combobox label={t.issues.priority} value={issue.priority} onChange={(v) => set({ priority: v as ShownIssue['priority'] })} choices={priorities.map((p) => ({ value: p, label: t.priority[p] ?? p, mark: <PriorityMark priority={p} bare /> }))}><Button className={cell}><PriorityMark priority={issue.priority} /></Button></Combobox>],
        projects.length > 0 && [t.issues.project, <Select small aria-label={t.issues.project} value={issue.projectId ?? ''} onChange={(e) => set({ projectId: e.target.value || null })} choices={[{ value: '', label: t.common.none }, ...projects.map((p) => ({ value: p.id, label: p.name }))]} />],
        [t.issue.goal, <GoalOf issue={issue} set={set} />],
        [t.issue.labels, <LabelsOf issue={issue} set={set} />],
        !!issue.parentId && [t.issue.parent, issue.ancestors?.[0] ? link(issue.ancestors[0]) : <Link to={`/${company.issuePrefix}/issues/${issue.parentId}`} className="text-accent hover:underline">{t.issue.parent}</Link>],
        live && [t.nav.run, <Link to={`/${company.issuePrefix}/runs/${live.runId}`} className="inline-flex items-center gap-2 hover:underline"><StatusMark status={live.status} bare /><Lasting from={live.startedAt} /><span className="text-xs text-ink3">{members?.find((m) => m.id === (live as { nodeId?: string }).nodeId)?.name}</span></Link>],
        [t.issue.cost, cost ? <span><Money cents={cost.costCents} /> <span className="text-xs text-ink3">{short(cost.inputTokens + cost.outputTokens)} {t.issue.tokens.toLowerCase()}</span></span> : '–'],
        [t.issue.createdBy, names(issue.createdByAgentId ?? issue.createdByUserId).name],
        [t.issue.created, <Time at={issue.createdAt} />],
        [t.issue.updated, <Time at={issue.updatedAt} />],
      ]} />
      <Relations issue={issue} set={set} link={link} />
      <Section title={t.issue.subIssues} aside={<IconButton small icon="plus" label={t.issue.addSub} onClick={() => newIssue.set({ parentId: issue.id })} />}>{children.map(link)}</Section>
      <Documents issue={issue.identifier ?? issue.id} />
      <Attachments issue={issue.identifier ?? issue.id} real={issue.id} company={issue.companyId} />
      <Chain activity={useIssueActivity(issue.identifier ?? issue.id).data ?? []} issue={issue.id} />
    </aside>
  )
}
