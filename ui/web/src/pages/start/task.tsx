// The third and fourth step: a first task, and its run as it grows.
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { keys, tails } from '../../cache'
import { useCreateIssue, useIssue, useIssueComments, useIssueRuns, useMembers, useNames, useRead, type Agent, type Company } from '../../data'
import { Button } from '../../parts/button'
import { Field, Input, TextArea } from '../../parts/form'
import { Markdown } from '../../parts/markdown'
import { spansOf } from '../../parts/ansi'
import { Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Lasting, Who } from '../../parts/values'
import { useStorePart } from '../../store'
import { t } from '../../text/en'

export function GiveTask({ company, agents }: { company: Company; agents: readonly Agent[] }) {
  const go = useNavigate()
  const goal = useRead(keys.goals(company.id), '/api/companies/{companyId}/goals', { path: { companyId: company.id } }).data?.find((g) => g.level === 'company' && g.parentId === null && g.status === 'active')?.title
  const lead = agents.find((a) => a.role === 'ceo') ?? agents[0]
  const [title, setTitle] = useState<string>(t.start.firstTask)
  const [about, setAbout] = useState<string>()
  const [wrong, setWrong] = useState<string>()
  const said = about ?? (goal ? t.start.ourGoal(goal) : company.description ? t.start.ourGoal(company.description) : '')
  const create = useCreateIssue(company.id, (made) => void go({ to: '.', search: { issue: made.identifier ?? made.id } as never, replace: true }))
  const send = () => {
    if (title.trim() === '') return setWrong(t.issues.titleNeeded)
    if (lead) create.mutate({ title: title.trim(), status: 'todo', assigneeAgentId: lead.id, ...(said ? { description: said } : {}), allowDuplicate: true })
  }
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); send() }}>
      <Field label={t.issues.titleField} wrong={wrong}><Input autoFocus name="title" maxLength={500} value={title} onChange={(e) => { setTitle(e.target.value); setWrong(undefined) }} /></Field>
      <Field label={t.issues.description}><TextArea name="about" rows={3} value={said} onChange={(e) => setAbout(e.target.value)} /></Field>
      <div><Button look="primary" type="submit" busy={create.isPending}>{t.start.give(lead?.name ?? '')}</Button></div>
    </form>
  )
}

export function Watch({ company, issue: id }: { company: Company; issue: string }) {
  const issue = useIssue(id)
  const runs = useIssueRuns(id).data ?? []
  const comments = useIssueComments(id).data ?? []
  const members = useMembers().data
  const names = useNames(company.id)
  const run = runs[0]
  const tail = useStorePart(tails, (all) => (run ? all.get(run.runId) : undefined))
  return (
    <Loaded of={issue} rows={3}>
      {(row) => (
        <div className="flex flex-col gap-3">
          <div className="flex flex-wrap items-center gap-x-3 gap-y-1"><StatusMark status={row.status} /><Link to={`/${company.issuePrefix}/issues/${id}`} className="font-strong hover:underline">{id} {row.title}</Link></div>
          {run ? (
            <div className="rounded border border-line">
              <div className="flex min-h-9 flex-wrap items-center gap-x-3 px-3 text-sm">
                <StatusMark status={run.status} bare /><Link to={`/${company.issuePrefix}/runs/${run.runId}`} className="hover:underline">{t.start.run}</Link>
                <span className="text-ink2">{members?.find((m) => m.id === (run as { nodeId?: string }).nodeId)?.name}</span><span className="ml-auto text-xs text-ink3"><Lasting from={run.startedAt} to={run.finishedAt} /></span>
              </div>
              {tail && <pre className="overflow-x-auto border-t border-line bg-ground2 px-3 py-2 font-mono text-xs">{spansOf(tail).map((s) => s.text).join('')}</pre>}
            </div>
          ) : <p className="text-sm text-ink2">{t.start.waits}</p>}
          {comments.map((c) => (
            <article key={c.id} className="rounded border border-line"><header className="flex h-9 items-center border-b border-line bg-ground2 px-3 text-sm"><Who id={c.authorAgentId ?? ''} name={names(c.authorAgentId ?? c.authorUserId).name} person={!c.authorAgentId} /></header><div className="px-3 py-2"><Markdown text={c.body ?? ''} /></div></article>
          ))}
          {(row.status === 'done' || row.status === 'in_review') && (
            <div className="flex flex-wrap items-center gap-3"><p className="text-sm text-ink2">{t.start.over}</p><Link to={`/${company.issuePrefix}`} className="inline-flex h-8 items-center rounded bg-accent px-3 text-sm font-strong text-onaccent">{t.start.home}</Link></div>
          )}
        </div>
      )}
    </Loaded>
  )
}
