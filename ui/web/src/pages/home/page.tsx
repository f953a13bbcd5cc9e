// Home: does anything need me, is the work moving, is the mesh well – in this order, without a click.
import { Link, useNavigate } from '@tanstack/react-router'
import { tails } from '../../cache'
import { useCompany } from '../../company'
import { poll, say, seldom, useAgents, useAttention, useDashboard, useDoctor, useIssues, useJoinRequests, useLiveRuns, useMembers, useNames, useRead, type AttentionItem, type Company, type LiveRun, type Member } from '../../data'
import { keys } from '../../cache'
import { client } from '../../data'
import { shortId, words } from '../../format'
import { newIssue } from '../../frame/state'
import { Page as Frame } from '../../frame/page'
import { post } from '../../http'
import { Button } from '../../parts/button'
import { Bar, Line, StackBar, StackedBars } from '../../parts/charts'
import { spansOf } from '../../parts/ansi'
import { useFlashing } from '../../parts/flash'
import { Empty, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark, type Meaning } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Avatar, Lasting, Money, Time, Who } from '../../parts/values'
import { useStorePart } from '../../store'
import { statusText, t } from '../../text/en'
import { useTitleOf } from '../approval/titles'
import { GoOn, useGoOn } from '../start/goon'

export function Page() {
  const company = useCompany()
  return (
    <Frame title={t.nav.home} command={`selvage inbox --company ${company.issuePrefix}`} tools={<Button icon="plus" onClick={() => newIssue.set({})}>{t.home.giveWork}</Button>}>
      <div className="flex w-full max-w-page flex-col gap-6 p-4 huge:grid huge:grid-cols-2 huge:items-start">
        <NeedsYou company={company.id} prefix={company.issuePrefix} of={company} />
        <div className="contents huge:flex huge:min-w-0 huge:flex-col huge:gap-6">
          <Moving company={company.id} prefix={company.issuePrefix} />
          <Mesh company={company.id} />
          <Lately company={company.id} prefix={company.issuePrefix} />
        </div>
      </div>
    </Frame>
  )
}

const box = 'rounded border border-line'
// As many as leave room for what moves and for the mesh: all three are answered at a glance.
const maxNeeds = Math.min(12, Math.max(3, Math.floor((innerHeight - 600) / 48)))

function NeedsYou({ company, prefix, of }: { company: string; prefix: string; of: Company }) {
  const goOn = useGoOn(of)
  const attention = useAttention(company)
  const requests = useJoinRequests(seldom).data ?? []
  const nameOf = useTitleOf(company, attention.data?.items ?? [])
  return (
    <Section title={t.home.needsYou} aside={attention.data && attention.data.totalCount > maxNeeds && <Link to={`/${prefix}/inbox`} className="text-sm text-accent">{t.common.all} {attention.data.totalCount}</Link>}>
      <div className={box}>
        {goOn && <GoOn company={of} agents={goOn.agents} />}
        {requests.map((r) => (
          <Need key={r.code} mark="pending" title={t.home.pendingNode(r.name)} why={r.address} at={r.askedAt}>
            <Link to="/mesh/nodes" className="text-sm text-accent">{t.home.look}</Link>
          </Need>
        ))}
        <Loaded of={attention} rows={3}>
          {(feed) => {
            const items = (feed.items ?? []).slice(0, maxNeeds)
            if (items.length === 0 && (requests.length > 0 || goOn)) return null
            if (items.length === 0) return <div className="flex min-h-14 items-center gap-3 px-4 text-sm"><StatusMark status="ok" bare label={t.home.nothingNeeds} /><span>{t.home.nothingNeeds} <span className="text-ink3">{t.home.nothingNeedsWhy}</span></span></div>
            return items.map((item) => <NeedOf key={item.id} item={item} title={nameOf(item)} company={company} prefix={prefix} />)
          }}
        </Loaded>
      </div>
    </Section>
  )
}

const markOf: Record<string, string> = { approval: 'pending_approval', budget_alert: 'error', failed_run: 'failed', blocker_attention: 'blocked', agent_error_alert: 'error', issue_thread_interaction: 'pending', decision: 'pending', review: 'in_review', join_request: 'pending' }

const excerptOf = (item: AttentionItem): string | undefined => {
  const said = (item.detail as { summaryExcerpt?: unknown } | null)?.summaryExcerpt
  return typeof said === 'string' && said !== '' ? said : undefined
}

function NeedOf({ item, title, company, prefix }: { item: AttentionItem; title: string; company: string; prefix: string }) {
  const subject = item.subject
  const decide = (verb: 'approve' | 'reject') => {
    post(verb === 'approve' ? '/api/approvals/{id}/approve' : '/api/approvals/{id}/reject', { path: { id: subject.id } })
      .then(() => toast({ text: verb === 'approve' ? t.home.approved : t.home.rejected }), say)
      .finally(() => void client.invalidateQueries({ queryKey: keys.attention(company) }))
  }
  const href = subject.href?.startsWith('/') ? subject.href : subject.identifier ? `/${prefix}/issues/${subject.identifier}` : `/${prefix}/inbox`
  return (
    <Need mark={markOf[item.sourceKind] ?? 'pending'} kind={t.inbox.kinds[item.sourceKind] ?? words(item.sourceKind)} title={title} why={excerptOf(item) ?? item.whyNow} at={item.activityAt ?? item.createdAt} href={href}>
      {item.sourceKind === 'approval' ? (
        <><Button small onClick={() => decide('approve')}>{t.home.approve}</Button><Button small look="quiet" onClick={() => decide('reject')}>{t.home.reject}</Button></>
      ) : <Link to={href} aria-label={`${t.home.look}: ${title}`} className="rounded border border-line2 px-2 text-xs font-strong leading-[22px] hover:bg-ground2">{t.home.look}</Link>}
    </Need>
  )
}

function Need({ mark, kind, title, why, at, href, children }: { mark: string; kind?: string; title: string; why?: string; at: string | null; href?: string; children: React.ReactNode }) {
  return (
    <div role="group" aria-label={title} className="flex min-h-9 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1.5 last:border-0">
      <StatusMark status={mark} bare {...(kind ? { label: kind } : {})} />
      <span className="min-w-0 grow basis-40 tab:basis-56">
        <span className="flex items-baseline gap-2">{href ? <Link to={href} className="truncate hover:underline">{title}</Link> : <span className="truncate">{title}</span>}{kind && <span className="shrink-0 text-xs text-ink3">{kind}</span>}</span>
        {why && <span className="block truncate text-xs text-ink2">{why}</span>}
      </span>
      <span className="text-xs text-ink3 max-tab:hidden"><Time at={at} /></span>
      <span className="flex items-center gap-1">{children}</span>
    </div>
  )
}

const day = 86_400_000

function Moving({ company, prefix }: { company: string; prefix: string }) {
  const runs = useLiveRuns(company)
  const dashboard = useDashboard(company)
  const reserved = useRead(keys.budgets(company, 'reservations'), '/api/companies/{companyId}/budgets/reservations', { path: { companyId: company } }).data
  const spentBy = (run: string) => (reserved ?? []).filter((r) => r.heartbeatRunId === run).reduce((sum, r) => sum + r.spent, 0)
  const flashing = useFlashing(runs.data, (r) => r.id, (r) => `${r.status} ${r.currentStatusMessage ?? ''}`)
  const since = new Date(Math.floor(Date.now() / day) * day - 6 * day).toISOString()
  const done = useIssues(company, { status: 'done', updatedSince: since, limit: 500 }).data
  const perDay = Array.from({ length: 7 }, (_, i) => {
    const date = new Date(Date.parse(since) + i * day).toISOString().slice(0, 10)
    return { label: date, value: (done ?? []).filter((d) => d.completedAt?.slice(0, 10) === date).length }
  })
  return (
    <Section title={t.home.moving} aside={runs.data && runs.data.length > 0 && <span className="text-xs text-ink3">{t.home.runs(runs.data.length)}</span>}>
      <div className={box}>
        <Loaded of={runs} rows={3}>
          {(all) => (all.length === 0 ? <div className="flex min-h-14 items-center px-4 text-sm"><span>{t.home.nothingMoves} <span className="text-ink3">{t.home.nothingMovesWhy}</span></span></div> : [...all].sort((a, b) => Number(!!b.startedAt) - Number(!!a.startedAt)).slice(0, 12).map((run) => <RunRow key={run.id} run={run} prefix={prefix} spent={spentBy(run.id)} flash={flashing.has(run.id)} />))}
        </Loaded>
      </div>
      <Loaded of={dashboard} rows={2}>
        {(d) => {
          const open = Math.max(0, d.tasks.open - d.tasks.inProgress - d.tasks.blocked)
          const week = perDay.reduce((sum, p) => sum + p.value, 0)
          return (
            <div className="mt-4 grid gap-x-8 gap-y-4 tab:grid-cols-2 wide:grid-cols-[2fr_1fr_1fr]">
              <div><h3 className="mb-2 text-xs text-ink3">{t.home.issuesByState}</h3>
                <Link to={`/${prefix}/issues`} className="block"><StackBar label={t.home.issuesByState} parts={[
                  { label: statusText('in_progress'), value: d.tasks.inProgress, meaning: 'work' }, { label: statusText('blocked'), value: d.tasks.blocked, meaning: 'bad' },
                  { label: t.issues.open.toLowerCase(), value: open, meaning: 'none' }, { label: statusText('done'), value: d.tasks.done, meaning: 'ok' }]} /></Link></div>
              <div><h3 className="mb-1 flex justify-between text-xs text-ink3"><span>{t.home.doneWeek}</span><span className="text-ink">{week}</span></h3><Line label={t.home.doneWeek} points={perDay} meaning="ok" /></div>
              <div><h3 className="mb-1 text-xs text-ink3">{t.home.runsPerDay}</h3>
                <StackedBars label={t.home.runsPerDay} height={40} axis={false} bars={(d.runActivity ?? []).map((r) => ({ label: r.date, parts: [
                  { label: statusText('succeeded'), value: r.succeeded + r.recovered, meaning: 'ok' as Meaning }, { label: statusText('failed'), value: r.failed, meaning: 'bad' as Meaning }, { label: t.home.otherRuns, value: r.other, meaning: 'none' as Meaning }] }))} /></div>
            </div>
          )
        }}
      </Loaded>
    </Section>
  )
}

function RunRow({ run, prefix, spent, flash }: { run: LiveRun; prefix: string; spent: number; flash: boolean }) {
  const issue = useRead(keys.run(run.id, 'issues'), '/api/heartbeat-runs/{runId}/issues', { path: { runId: run.id } }, { enabled: !!run.issueId }).data?.[0]
  const tail = useStorePart(tails, (all) => all.get(run.id))
  const go = useNavigate()
  const members = useMembers().data
  const node = members?.find((m) => m.id === run.nodeId)?.name
  const text = tail ? spansOf(tail).map((s) => s.text).join('') : (run.currentStatusMessage ?? run.lastAssistantSnippet ?? run.waiting?.text ?? t.home.noLine)
  const to = `/${prefix}/runs/${run.id}`
  return (
    <div onClick={() => void go({ to })} className={`row grid cursor-pointer grid-cols-[20px_minmax(0,1fr)_auto] items-center gap-3 border-b border-line px-4 last:border-0 hover:bg-ground2 tab:grid-cols-[20px_128px_minmax(0,1fr)_auto] desk:grid-cols-[20px_128px_minmax(0,280px)_minmax(0,1fr)_auto] ${flash ? 'flash' : ''}`}>
      <StatusMark status={run.status} bare />
      <Link to={to} className="flex min-w-0 items-center gap-1.5"><Avatar id={run.agentId} name={run.agentName} /><span className="truncate">{run.agentName}</span></Link>
      <span className="min-w-0 truncate text-sm max-desk:hidden">{issue ? <Link to={`/${prefix}/issues/${issue.identifier}`} onClick={(e) => e.stopPropagation()} className="hover:underline"><span className="mr-1 text-xs text-ink3">{issue.identifier}</span> {issue.title}</Link> : <span className="text-ink3">{words(run.invocationSource)}</span>}</span>
      <code className="min-w-0 truncate font-mono text-xs text-ink2 max-tab:hidden">{text}</code>
      <span className="flex items-center gap-3 text-xs text-ink3">{spent > 0 && <Money cents={spent} />}{node && <span>{node}</span>}<Lasting from={run.startedAt ?? run.createdAt} /></span>
    </div>
  )
}

function Mesh({ company }: { company: string }) {
  const members = useMembers(poll)
  const doctor = useDoctor().data
  const dashboard = useDashboard(company).data
  const agents = useAgents(company).data
  useNames(company)
  const worst = doctor?.find((c) => c.level === 'bad' || c.level === 'problem') ?? doctor?.find((c) => c.level === 'warn' || c.level === 'warning')
  const now = new Date()
  const days = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).getUTCDate()
  const part = (now.getUTCDate() - 1 + now.getUTCHours() / 24) / days
  const spent = dashboard?.costs.monthSpendCents ?? 0
  const count = (status: string) => agents?.filter((a) => a.status === status).length ?? 0
  return (
    <Section title={t.home.mesh}>
      <div className="flex flex-wrap gap-3 [&>*]:grow [&>*]:basis-56">
        {members.isError && members.data === undefined ? <div className={`${box} p-3 text-sm text-ink3`}>{t.home.meshForAdmins}</div> : members.data?.filter((m) => m.status !== 'revoked').sort((a, b) => a.name.localeCompare(b.name)).map((m) => <Tile key={m.id} m={m} />)}
        {dashboard && (
          <div className={`${box} flex flex-col gap-1.5 p-3`}>
            <span className="text-xs text-ink3">{t.home.spend}</span>
            <span className="flex items-baseline gap-1.5"><span className="text-lg font-strong"><Money cents={spent} /></span><span className="text-xs text-ink2">{dashboard.costs.monthBudgetCents > 0 ? <>{t.home.of} <Money cents={dashboard.costs.monthBudgetCents} /></> : t.home.noBudget}</span></span>
            {dashboard.costs.monthBudgetCents > 0 && <Bar value={spent} of={dashboard.costs.monthBudgetCents} label={t.home.spend} />}
            {part > 0.03 && spent > 0 && <span className="text-xs text-ink3"><Money cents={Math.round(spent / part)} /> {t.home.byMonthEnd}</span>}
          </div>
        )}
        {agents && agents.length > 0 && (
          <div className={`${box} flex flex-col gap-2 p-3`}>
            <span className="text-xs text-ink3">{t.home.agents}</span>
            <StackBar label={t.home.agents} parts={(['running', 'error', 'paused', 'idle'] as const).map((s) => ({ label: statusText(s), value: s === 'idle' ? count('idle') + count('active') : count(s), meaning: ({ running: 'work', error: 'bad', paused: 'warn', idle: 'none' } as const)[s] }))} />
          </div>
        )}
        {doctor && (
          <Link to="/mesh/nodes" className={`${box} flex flex-col gap-1 p-3 hover:bg-ground2`}>
            <span className="text-xs text-ink3">{t.home.doctor}</span>
            {worst ? <><StatusMark status={worst.level} label={words(worst.name)} /><span className="text-sm text-ink2">{worst.found}</span></> : <StatusMark status="ok" label={t.home.healthy} />}
          </Link>
        )}
      </div>
      {members.data === undefined && !members.isError && <Empty title={t.common.loading} />}
    </Section>
  )
}

const lately = 8

function Lately({ company, prefix }: { company: string; prefix: string }) {
  const names = useNames(company)
  const rows = useRead(keys.activity(company, { lately }), '/api/companies/{companyId}/activity', { path: { companyId: company }, query: { limit: lately } }).data
  if (!rows || rows.length === 0) return null
  return (
    <Section title={t.home.lately} aside={<Link to={`/${prefix}/activity`} className="text-sm text-accent">{t.common.all}</Link>}>
      <ul className={box}>
        {rows.map((a) => {
          const who = names(a.agentId ?? a.actorId).name
          const issue = (a.details as { identifier?: unknown } | null)?.identifier
          return (
            <li key={a.id} className="flex min-h-8 items-center gap-2 border-b border-line px-4 text-sm last:border-0">
              <Who id={a.agentId ?? a.actorId} name={who} person={!a.agentId} /><span className="min-w-0 grow truncate text-ink2">{words(a.action)}{typeof issue === 'string' && <> <Link to={`/${prefix}/issues/${issue}`} className="text-ink underline decoration-line2 underline-offset-2 hover:decoration-ink">{issue}</Link></>}</span><span className="text-xs text-ink3"><Time at={a.createdAt} /></span>
            </li>
          )
        })}
      </ul>
    </Section>
  )
}

function Tile({ m }: { m: Member }) {
  return (
    <Link to="/mesh/nodes" className={`${box} flex flex-col gap-1.5 p-3 hover:bg-ground2`}>
      <span className="flex items-center gap-2"><StatusMark status={m.status} bare /><span className="font-strong">{m.name}</span><span className="ml-auto"><Badge meaning={m.leader ? 'ok' : 'none'}>{m.leader ? t.home.leader : m.voter ? t.home.voter : t.home.follower}</Badge></span></span>
      <span className="flex items-center gap-2 text-xs text-ink2"><span>{t.home.runs(m.runs)}</span>{m.scheduling !== 'open' && <span className="text-warn">{statusText(m.scheduling)}</span>}<code className="ml-auto font-mono">{shortId(m.id)}</code></span>
    </Link>
  )
}
