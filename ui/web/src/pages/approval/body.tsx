// An approval: what was asked, the command that waits for it as a diff, and the decision.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useRead, useWrite } from '../../data'
import { words } from '../../format'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Diff } from '../../parts/diff'
import { Field, Input, TextArea } from '../../parts/form'
import { Markdown } from '../../parts/markdown'
import { Facts, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Money, Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { commandOf, titleOf, type Approval } from './waiting'

export type Verdict = 'approve' | 'reject' | 'request-revision'

/** useDecide approves, rejects or sends an approval back. */
export function useDecide(company: string, onDone?: (id: string) => void) {
  return useWrite<{ id: string; verdict: Verdict; note?: string; amount?: number }, unknown>({
    call: ({ id, verdict, note, amount }) => {
      const body: Schemas['ApiDecideApproval'] = { ...(note ? { decisionNote: note } : {}), ...(amount !== undefined && verdict === 'approve' ? { amount } : {}) }
      return verdict === 'approve' ? post('/api/approvals/{id}/approve', { path: { id } }, body) : verdict === 'reject' ? post('/api/approvals/{id}/reject', { path: { id } }, body) : post('/api/approvals/{id}/request-revision', { path: { id } }, body)
    },
    reread: ({ id }) => [keys.approvals(company), keys.approval(id), keys.attention(company), keys.badges(company)],
    onDone: (_answer, { id, verdict }) => {
      toast({ text: verdict === 'approve' ? t.home.approved : verdict === 'reject' ? t.home.rejected : t.approvals.sentBack })
      onDone?.(id)
    },
  })
}

export function ApprovalBody({ id, narrow, onDone }: { id: string; narrow?: boolean; onDone?: (id: string) => void }) {
  const approval = useRead(keys.approval(id), '/api/approvals/{id}', { path: { id } })
  return <Loaded of={approval} rows={6}>{(a) => <Shown key={a.id + a.status} approval={a} narrow={narrow ?? false} {...(onDone ? { onDone } : {})} />}</Loaded>
}

function Shown({ approval: a, narrow, onDone }: { approval: Approval; narrow: boolean; onDone?: (id: string) => void }) {
  const company = useCompany()
  const names = useNames(company.id)
  const issues = useRead(keys.approval(a.id, 'issues'), '/api/approvals/{id}/issues', { path: { id: a.id } }).data ?? []
  const comments = useRead(keys.approval(a.id, 'comments'), '/api/approvals/{id}/comments', { path: { id: a.id } }).data ?? []
  const decide = useDecide(company.id, onDone)
  const { before, after, text, amount } = commandOf(a)
  const [note, setNote] = useState('')
  const [raised, setRaised] = useState(amount === undefined ? '' : String(amount / 100))
  const by = a.requestedByAgentId ?? a.requestedByUserId
  const open = a.status === 'pending' || a.status === 'revision_requested'
  const act = (verdict: Verdict) => decide.mutate({ id: a.id, verdict, ...(note.trim() ? { note: note.trim() } : {}), ...(amount !== undefined ? { amount: Math.round(Number(raised) * 100) } : {}) })
  const facts = (
    <Facts rows={[
      [t.approvals.status, <StatusMark status={a.status} />], [t.approvals.type, words(a.type)], !!by && [t.approvals.by, <Who id={by} name={names(by).name} person={!a.requestedByAgentId} />],
      [t.approvals.asked, <Time at={a.createdAt} />], !!a.decidedAt && [t.approvals.decided, <Time at={a.decidedAt} />], !!a.decidedByUserId && [t.approvals.decidedBy, names(a.decidedByUserId).name],
      !!a.decisionNote && [t.approvals.note, a.decisionNote], !!a.agentId && [t.approvals.agent, <Link to={`/${company.issuePrefix}/agents/${a.agentId}`} className="hover:underline">{names(a.agentId).name}</Link>], ['ID', <Id id={a.id} />]]} />
  )
  return (
    <div className={narrow ? 'flex flex-col gap-4' : 'grid w-full max-w-page gap-x-8 gap-y-4 p-4 desk:grid-cols-[minmax(0,1fr)_280px]'}>
      <div className="flex min-w-0 flex-col gap-4">
        <h1 className={`break-words font-strong ${narrow ? 'text-lg' : 'text-xl'}`}>{titleOf(a)}</h1>
        {a.refused && <p role="alert" className="rounded border border-line2 bg-ground2 p-3 text-sm text-bad">{t.approvals.refused(a.refused.error)}</p>}
        {text && <Markdown text={text} />}
        {issues.map((i) => <Link key={i.id} to={`/${company.issuePrefix}/issues/${i.identifier}`} className="flex items-center gap-2 text-sm hover:underline"><StatusMark status={i.status} bare /><span className="text-xs text-ink3">{i.identifier}</span>{i.title}</Link>)}
        <Section title={a.status === 'approved' ? t.approvals.did : t.approvals.waits}><Diff before={before} after={after} /></Section>
        {open && (
          <div className="flex flex-col gap-3">
            {amount !== undefined && <Field label={t.approvals.newLimit} hint={<><Money cents={amount} /> {t.approvals.proposed}</>}><Input type="number" min={0} step="0.01" value={raised} onChange={(e) => setRaised(e.target.value)} /></Field>}
            <Field label={t.approvals.noteField}><TextArea rows={2} value={note} onChange={(e) => setNote(e.target.value)} /></Field>
            <div className="flex flex-wrap gap-2">
              <Button look="primary" icon="check" busy={decide.isPending} onClick={() => act('approve')}>{t.home.approve}</Button>
              <Button look="danger" busy={decide.isPending} onClick={() => act('reject')}>{t.home.reject}</Button>
              {a.status === 'pending' && <Button disabled={note.trim() === ''} title={note.trim() === '' ? t.approvals.noteFirst : undefined} busy={decide.isPending} onClick={() => act('request-revision')}>{t.approvals.revise}</Button>}
            </div>
          </div>
        )}
        <Comments approval={a} comments={comments} />
        {narrow && facts}
      </div>
      {!narrow && <aside aria-label={t.run.facts}>{facts}</aside>}
    </div>
  )
}

function Comments({ approval: a, comments }: { approval: Approval; comments: readonly Schemas['ApprovalComment'][] }) {
  const names = useNames(a.companyId)
  const [text, setText] = useState('')
  const send = useWrite({ call: (body: string) => post('/api/approvals/{id}/comments', { path: { id: a.id } }, { body }), reread: () => [keys.approval(a.id, 'comments')], onDone: () => setText('') })
  return (
    <Section title={t.approvals.comments}>
      {comments.map((c) => { const by = c.authorAgentId ?? c.authorUserId ?? ''; return <article key={c.id} className="mb-2 rounded border border-line"><header className="flex h-9 items-center gap-2 border-b border-line bg-ground2 px-3 text-sm"><Who id={by} name={names(by).name} person={!c.authorAgentId} /><span className="ml-auto text-xs text-ink3"><Time at={c.createdAt} /></span></header><div className="px-3 py-2"><Markdown text={c.body} /></div></article> })}
      <form className="flex flex-col items-end gap-2" onSubmit={(e) => { e.preventDefault(); if (text.trim()) send.mutate(text.trim()) }}>
        <TextArea rows={2} aria-label={t.issue.write} placeholder={t.issue.write} value={text} onChange={(e) => setText(e.target.value)} /><Button type="submit" disabled={text.trim() === ''} busy={send.isPending}>{t.issue.send}</Button>
      </form>
    </Section>
  )
}
