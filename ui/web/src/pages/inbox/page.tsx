// The inbox: all that waits for a person, one after the other. A key handles an item and goes to the next.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { client, say, useAttention, useRead, useWrite, type AttentionItem } from '../../data'
import { exactMoney, number, words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, post } from '../../http'
import { forList, typing } from '../../keys'
import { Button } from '../../parts/button'
import { Field, Input, Select } from '../../parts/form'
import { Drawer } from '../../parts/overlay'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Time } from '../../parts/values'
import { t } from '../../text/en'
import { ApprovalBody, useDecide } from '../approval/body'
import { Asked } from '../issue/asked'
import { IssueBody } from '../issue/body'
import { useTitleOf } from '../approval/titles'
import { GoOn, useGoOn } from '../start/goon'
import { neighbour, sortOf } from './order'

const markOf: Record<string, string> = { approval: 'pending_approval', budget_alert: 'warn', failed_run: 'failed', blocker_attention: 'blocked', agent_error_alert: 'error', issue_thread_interaction: 'pending', waiting_run: 'queued', recovery_action: 'warn', review: 'in_review', join_request: 'pending' }
const excerpt = (i: AttentionItem) => { const d = i.detail as { summaryExcerpt?: unknown; failureReasonExcerpt?: unknown } | null; return [d?.summaryExcerpt, d?.failureReasonExcerpt].find((x): x is string => typeof x === 'string' && x !== '') }

const step = 100 // rows that are drawn at first, and more each time

export function Page() {
  const company = useCompany()
  const goOn = useGoOn(company)
  const { kind, show } = useSearch({ strict: false }) as { kind?: string; show?: string }
  const go = useNavigate()
  const feed = useAttention(company.id)
  const all = sortOf(feed.data?.items ?? [])
  const rows = kind ? all.filter((i) => i.sourceKind === kind) : all
  const nameOf = useTitleOf(company.id, all)
  const [cursor, setCursor] = useState<string>()
  const [many, setMany] = useState(step)
  const list = useRef<HTMLUListElement>(null)
  const at = rows.findIndex((i) => i.id === (show ?? cursor))
  const drawn = rows.slice(0, Math.max(many, at + 20)) // keys go on where the list is not drawn yet
  const left = (feed.data?.totalCount ?? 0) - all.length
  const now = rows[at]
  const set = (next: { kind?: string | undefined; show?: string | undefined }) => void go({ to: '.', search: Object.fromEntries(Object.entries({ kind, show, ...next }).filter(([, v]) => v)) as never, replace: true })
  const open = rows.find((i) => i.id === show)
  const next = (from: string) => {
    const to = neighbour(rows.map((r) => r.id), from)
    setCursor(to)
    if (show) set({ show: to })
  }
  const again = () => { for (const key of [keys.attention(company.id), keys.badges(company.id)]) void client.invalidateQueries({ queryKey: key }) }
  const decide = useDecide(company.id)
  const dismiss = (i: AttentionItem, kindOf: 'dismiss' | 'snooze') => {
    next(i.id)
    const until = new Date(Date.now() + 86_400_000).toISOString()
    const undo = () => void del('/api/companies/{companyId}/inbox-dismissals/{itemKey}', { path: { companyId: company.id, itemKey: i.dismissalKey } }).catch(say).finally(again)
    post('/api/companies/{companyId}/inbox-dismissals', { path: { companyId: company.id } }, { itemKey: i.dismissalKey, kind: kindOf, ...(kindOf === 'snooze' ? { snoozedUntil: until } : {}) })
      .then(() => toast({ text: kindOf === 'snooze' ? t.inbox.snoozed : t.inbox.dismissed, undo }), say).finally(again)
  }
  const joined = (i: AttentionItem, yes: boolean) => {
    next(i.id)
    const path = { companyId: company.id, requestId: i.subject.id }
    ;(yes ? post('/api/companies/{companyId}/join-requests/{requestId}/approve', { path }) : post('/api/companies/{companyId}/join-requests/{requestId}/reject', { path }))
      .then(() => toast({ text: yes ? t.home.approved : t.home.rejected }), say).finally(again)
  }
  const yesNo = (i: AttentionItem, yes: boolean) => {
    if (i.sourceKind === 'approval') { next(i.id); decide.mutate({ id: i.subject.id, verdict: yes ? 'approve' : 'reject' }) }
    else if (i.sourceKind === 'join_request') joined(i, yes)
    else set({ show: i.id })
  }
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return
      const move = (to: number) => {
        const row = rows[Math.max(0, Math.min(rows.length - 1, to))]
        if (!row) return
        setCursor(row.id)
        if (show) set({ show: row.id })
        list.current?.querySelector(`[data-item="${CSS.escape(row.id)}"]`)?.scrollIntoView({ block: 'nearest' })
      }
      if (e.key === 'j' || e.key === 'ArrowDown') move(at + 1)
      else if (e.key === 'k' || e.key === 'ArrowUp') move(at - 1)
      else if (!now) return
      else if ((e.key === 'Enter' && forList(e.target as Element, list.current)) || e.key === 'o') set({ show: now.id })
      else if (e.key === 'a') yesNo(now, true)
      else if (e.key === 'r') yesNo(now, false)
      else if (e.key === 'e') dismiss(now, 'dismiss')
      else if (e.key === 'z') dismiss(now, 'snooze')
      else return
      e.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  })
  const kinds = [...new Set(all.map((i) => i.sourceKind))]
  return (
    <Frame title={t.nav.inbox} command={`selvage inbox --company ${company.issuePrefix}`}
      bar={<><Select aria-label={t.inbox.kind} value={kind ?? ''} onChange={(e) => set({ kind: e.target.value, show: '' })} choices={[{ value: '', label: `${t.common.all} (${feed.data?.totalCount ?? 0})` }, ...kinds.map((k) => ({ value: k, label: `${t.inbox.kinds[k] ?? words(k)} (${feed.data?.countsBySourceKind?.[k] ?? 0})` }))]} /><span className="grow" /><span className="whitespace-nowrap text-xs text-ink3 max-desk:hidden">{t.inbox.keys}</span></>}
      drawer={open && <Drawer label={open.subject.title} onClose={() => set({ show: '' })} head={<Link to={hrefOf(open, company.issuePrefix)} className="hover:underline">{t.inbox.kinds[open.sourceKind] ?? words(open.sourceKind)}</Link>}><Detail key={open.id} item={open} onDone={() => next(open.id)} onDismiss={() => dismiss(open, 'dismiss')} /></Drawer>}>
      {goOn && <GoOn company={company} agents={goOn.agents} />}
      <Loaded of={feed} rows={8}>
        {() => rows.length === 0 ? goOn ? null : <Empty icon="inbox" title={t.inbox.empty} why={t.inbox.emptyWhy} /> : (
          <ul ref={list} aria-label={t.nav.inbox}>
            {drawn.map((i) => (
              <li key={i.id} data-item={i.id} aria-current={i.id === now?.id} onClick={(e) => { setCursor(i.id); if (!(e.target as Element).closest('a, button')) set({ show: i.id }) }}
                className={`flex min-h-12 cursor-pointer flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1.5 ${i.id === now?.id ? 'bg-ground2 shadow-[inset_2px_0_0_var(--accent)]' : 'hover:bg-ground2'}`}>
                <StatusMark status={markOf[i.sourceKind] ?? 'pending'} bare label={words(i.sourceKind)} />
                <span className="min-w-0 grow basis-56"><span className="flex items-baseline gap-2"><Link to={hrefOf(i, company.issuePrefix)} className="truncate hover:underline">{nameOf(i)}</Link><span className="shrink-0 text-xs text-ink3">{t.inbox.kinds[i.sourceKind] ?? words(i.sourceKind)}</span></span><span className="block truncate text-xs text-ink2">{excerpt(i) ?? i.whyNow}</span></span>
                <span className="text-xs text-ink3"><Time at={i.activityAt ?? i.createdAt} /></span>
                <span className="flex gap-1">
                  {i.sourceKind === 'approval' || i.sourceKind === 'join_request' ? <><Button small onClick={() => yesNo(i, true)}>{t.home.approve}</Button><Button small look="quiet" onClick={() => yesNo(i, false)}>{t.home.reject}</Button></>
                    : <><Button small onClick={() => set({ show: i.id })}>{i.sourceKind === 'issue_thread_interaction' ? t.asked.answer : t.home.look}</Button><Button small look="quiet" onClick={() => dismiss(i, 'dismiss')}>{t.inbox.dismiss}</Button></>}
                </span>
              </li>
            ))}
            {rows.length > drawn.length ? <li className="p-4"><Button onClick={() => setMany(drawn.length + step)}>{t.common.more}</Button></li>
              : left > 0 && <li className="p-4 text-sm text-ink3">{t.inbox.first(number(all.length), number(all.length + left))}</li>}
          </ul>
        )}
      </Loaded>
    </Frame>
  )
}

const hrefOf = (i: AttentionItem, prefix: string) => (i.subject.href?.startsWith('/') ? i.subject.href : i.subject.identifier ? `/${prefix}/issues/${i.subject.identifier}` : `/${prefix}/inbox`)

function Detail({ item: i, onDone, onDismiss }: { item: AttentionItem; onDone: () => void; onDismiss: () => void }) {
  const company = useCompany()
  if (i.sourceKind === 'approval') return <ApprovalBody id={i.subject.id} narrow onDone={onDone} />
  if (i.sourceKind === 'issue_thread_interaction') return <Question item={i} onDone={onDone} />
  const runId = (i.detail as { runId?: string } | null)?.runId
  const issue = i.subject.kind === 'issue' ? i.subject.identifier ?? i.subject.id : undefined
  return (
    <div className="flex flex-col gap-4">
      <Why>{i.whyNow}{excerpt(i) && <span className="block text-sm text-ink2">{excerpt(i)}</span>}</Why>
      <div className="flex flex-wrap gap-2">
        {i.sourceKind === 'agent_error_alert' && <ClearError id={i.subject.id} onDone={onDone} />}
        {runId && <Link to={`/${company.issuePrefix}/runs/${runId}`} className="inline-flex h-8 items-center rounded border border-line2 px-3 text-sm font-strong hover:bg-ground2">{t.inbox.lookRun}</Link>}
        {i.subject.kind === 'agent' && <Link to={`/${company.issuePrefix}/agents/${i.subject.id}?tab=runs`} className="inline-flex h-8 items-center rounded border border-line2 px-3 text-sm font-strong hover:bg-ground2">{t.inbox.lookAgent}</Link>}
        <Button look="quiet" onClick={onDismiss}>{t.inbox.dismiss}</Button>
      </div>
      {i.sourceKind === 'budget_alert' && <Raise item={i} onDone={onDone} />}
      {issue && <IssueBody id={issue} narrow />}
    </div>
  )
}
const Why = ({ children }: { children: ReactNode }) => <p className="rounded border border-line bg-ground2 p-3">{children}</p>

function ClearError({ id, onDone }: { id: string; onDone: () => void }) {
  const company = useCompany()
  const clear = useWrite({ call: () => post('/api/agents/{id}/clear-error', { path: { id } }), reread: () => [keys.agents(company.id), keys.agent(id), keys.attention(company.id)], onDone })
  return <Button look="primary" busy={clear.isPending} onClick={() => clear.mutate(undefined)}>{t.agent.clearError}</Button>
}

function Question({ item: i, onDone }: { item: AttentionItem; onDone: () => void }) {
  const company = useCompany()
  const issue = (i.subject.metadata as { issueId?: string } | null)?.issueId ?? i.relatedIssue?.id ?? ''
  const all = useRead(keys.issue(issue, 'interactions'), '/api/issues/{id}/interactions', { path: { id: issue } }, { enabled: issue !== '' })
  return (
    <Loaded of={all} rows={4}>
      {(list) => {
        const asked = list.find((x) => x.id === i.subject.id)
        return (
          <div className="flex flex-col gap-4">
            {i.relatedIssue && <Link to={`/${company.issuePrefix}/issues/${i.relatedIssue.identifier}`} className="flex items-center gap-2 text-sm hover:underline"><StatusMark status={i.relatedIssue.status} bare /><span className="text-xs text-ink3">{i.relatedIssue.identifier}</span>{i.relatedIssue.title}</Link>}
            {asked ? <Asked of={asked} company={company.id} onDone={onDone} /> : <Why>{i.whyNow}</Why>}
          </div>
        )
      }}
    </Loaded>
  )
}

function Raise({ item: i, onDone }: { item: AttentionItem; onDone: () => void }) {
  const company = useCompany()
  const of = i.subject.metadata as { amountLimit?: number; amountObserved?: number } | null
  const [text, setText] = useState(String(Math.ceil((of?.amountLimit ?? 0) * 1.5) / 100))
  const raise = useWrite({
    call: () => post('/api/companies/{companyId}/budget-incidents/{incidentId}/resolve', { path: { companyId: company.id, incidentId: i.subject.id } }, { action: 'raise_budget_and_resume', amount: Math.round(Number(text) * 100) }),
    reread: () => [keys.attention(company.id), keys.budgets(company.id), keys.agents(company.id)], onDone: () => { toast({ text: t.costs.raised }); onDone() },
  })
  return (
    <form className="flex items-end gap-2" onSubmit={(e) => { e.preventDefault(); raise.mutate(undefined) }}>
      <Field label={t.approvals.newLimit} hint={of?.amountLimit !== undefined ? t.costs.spentOf(exactMoney(of.amountObserved ?? 0), exactMoney(of.amountLimit)) : undefined}><Input type="number" min={0} step="0.01" value={text} onChange={(e) => setText(e.target.value)} /></Field><Button look="primary" type="submit" busy={raise.isPending}>{t.costs.raise}</Button>
    </form>
  )
}
