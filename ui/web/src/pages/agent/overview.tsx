import { Link, useNavigate } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { keys, tails } from '../../cache'
import { useCompany } from '../../company'
import { daysBack, useCostDays, useIssues, useLiveRuns, useMembers, useNames, useRead, useWrite } from '../../data'
import { exactMoney, lasting, moneyOf, number, words } from '../../format'
import { patch } from '../../http'
import { spansOf } from '../../parts/ansi'
import { Button } from '../../parts/button'
import { Bar, StackBar, StackedBars } from '../../parts/charts'
import { Input } from '../../parts/form'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Lasting, Money, Time, Who } from '../../parts/values'
import { useStorePart } from '../../store'
import { statusText, t } from '../../text/en'
import { nextWake, perDay } from './month'
import type { AgentDetail } from './page'

const maxRuns = 200

const useRuns = (company: string, agent: string) => useRead(keys.runs(company, { agent }), '/api/companies/{companyId}/heartbeat-runs', { path: { companyId: company }, query: { agentId: agent, limit: maxRuns } })

export function Overview({ agent }: { agent: AgentDetail }) {
  return (
    <div className="grid gap-x-8 gap-y-4 desk:grid-cols-[minmax(0,1fr)_300px]">
      <div className="flex min-w-0 flex-col gap-4"><Doing agent={agent} /><Month agent={agent} /></div>
      <div className="flex min-w-0 flex-col gap-4"><AgentFacts agent={agent} /><Budget key={agent.budgetMonthlyCents} agent={agent} /></div>
    </div>
  )
}

function Doing({ agent }: { agent: AgentDetail }) {
  const company = useCompany()
  const runs = (useLiveRuns(company.id).data ?? []).filter((r) => r.agentId === agent.id)
  const wakes = useRead(keys.agent(agent.id, 'wakeups'), '/api/agents/{id}/wakeups', { path: { id: agent.id } }).data ?? []
  const waiting = wakes.filter((w) => ['queued', 'deferred', 'deferred_issue_execution', 'pending'].includes(w.status))
  const wake = nextWake(agent.runtimeConfig, agent.lastHeartbeatAt)
  return (
    <Section title={t.agent.doing}>
      <div className="rounded border border-line">
        {runs.length === 0 && <p className="flex min-h-10 items-center px-3 text-sm text-ink2">{agent.status === 'paused' ? t.agent.pausedFor(agent.pauseReason ?? '–') : agent.errorReason ?? t.agent.idle}</p>}
        {runs.map((r) => <LiveRow key={r.id} run={r} prefix={company.issuePrefix} />)}
        <p className="flex min-h-9 flex-wrap items-center gap-x-2 border-t border-line px-3 text-sm"><span className="text-ink3">{t.agent.nextWake}</span>
          {agent.status === 'paused' ? t.agent.wakePaused : wake ? <>{wake.at === undefined || wake.at <= Date.now() ? t.agent.due : <Time at={new Date(wake.at).toISOString()} />}<span className="text-ink2">{t.agent.wakeTimer(lasting(wake.every * 1000))}</span></> : t.agent.wakeDemand}</p>
        {waiting.length > 0 && <p className="flex min-h-9 items-center gap-2 border-t border-line px-3 text-sm"><span className="text-ink3">{t.agent.pending}</span>{waiting.map((w) => words(w.reason ?? w.source)).slice(0, 4).join(', ')} ({waiting.length})</p>}
      </div>
    </Section>
  )
}

function LiveRow({ run, prefix }: { run: NonNullable<ReturnType<typeof useLiveRuns>['data']>[number]; prefix: string }) {
  const tail = useStorePart(tails, (all) => all.get(run.id))
  const text = tail ? spansOf(tail).map((s) => s.text).join('') : (run.currentStatusMessage ?? run.lastAssistantSnippet ?? run.waiting?.text ?? t.home.noLine)
  return <Link to={`/${prefix}/runs/${run.id}`} className="flex min-h-10 items-center gap-3 border-b border-line px-3 last:border-0 hover:bg-ground2"><StatusMark status={run.status} /><code className="min-w-0 grow truncate font-mono text-xs text-ink2">{text}</code><span className="text-xs text-ink3"><Lasting from={run.startedAt ?? run.createdAt} /></span></Link>
}

const Chart = ({ title, words: said, children }: { title: string; words: ReactNode; children: ReactNode }) => <div className="min-w-0 rounded border border-line p-3"><h3 className="text-xs text-ink3">{title}</h3><div className="my-2">{children}</div><p className="text-xs text-ink2">{said}</p></div>

function Month({ agent }: { agent: AgentDetail }) {
  const runs = useRuns(agent.companyId, agent.id)
  const days = daysBack(30)
  const since = `${days[0]}T00:00:00.000Z`
  const done = (useIssues(agent.companyId, { status: 'done', assigneeAgentId: agent.id, updatedSince: since, limit: 500 }).data ?? []).filter((i) => i.assigneeAgentId === agent.id && (i.completedAt ?? '') >= since)
  const costs = useCostDays(agent.companyId, daysBack(14))
  const money = costs.days.map(({ date, rows }) => ({ label: date, value: rows.reduce((n, r) => n + (r.agentId === agent.id ? r.costCents : 0), 0) }))
  const sum = money.reduce((n, p) => n + p.value, 0)
  const counted = perDay(runs.data ?? [], days)
  const total = (name: 'good' | 'bad' | 'other') => counted.reduce((n, d) => n + d[name], 0)
  const ended = total('good') + total('bad')
  const all = ended + total('other')
  return (
    <Section title={t.agent.month} aside={runs.data?.length === maxRuns && <span className="text-xs text-warn">{t.agent.limited(maxRuns)}</span>}>
      <div className="grid grid-cols-2 gap-3">
        <Chart title={t.agent.runsDay} words={t.agent.runsWords(all)}><StackedBars height={44} axis={false} label={t.agent.runsDay} bars={counted.map((d) => ({ label: d.date, parts: [{ label: statusText('succeeded'), value: d.good, meaning: 'ok' }, { label: statusText('failed'), value: d.bad, meaning: 'bad' }, { label: t.agent.otherRuns, value: d.other, meaning: 'none' }] }))} /></Chart>
        <Chart title={t.agent.success} words={ended === 0 ? t.agent.noRuns : t.agent.successWords(`${Math.round((100 * total('good')) / ended)} %`, total('bad'))}><div className="flex h-11 items-center"><div className="grow"><StackBar legend={false} label={t.agent.success} parts={[{ label: statusText('succeeded'), value: total('good'), meaning: 'ok' }, { label: statusText('failed'), value: total('bad'), meaning: 'bad' }, { label: t.agent.otherRuns, value: total('other'), meaning: 'none' }]} /></div></div></Chart>
        <Chart title={t.agent.money} words={<><Money cents={sum} /> {t.agent.moneyWords}</>}><StackedBars height={44} axis={false} label={t.agent.money} bars={money.map((p) => ({ label: p.label, text: exactMoney(p.value), parts: [{ label: '', value: p.value, meaning: 'work' }] }))} /></Chart>
        <Chart title={t.agent.issuesDone} words={t.agent.doneWords(done.length)}><StackedBars height={44} axis={false} label={t.agent.issuesDone} bars={days.map((date) => ({ label: date, parts: [{ label: statusText('done'), value: done.filter((i) => i.completedAt?.slice(0, 10) === date).length, meaning: 'ok' }] }))} /></Chart>
      </div>
    </Section>
  )
}

function AgentFacts({ agent: a }: { agent: AgentDetail }) {
  const company = useCompany()
  const names = useNames(company.id)
  const state = useRead(keys.agent(a.id, 'state'), '/api/agents/{id}/runtime-state', { path: { id: a.id } }).data
  return (
    <Section title={t.agent.facts}>
      <Facts rows={[
        [t.agents.status, <StatusMark status={a.status} />], !!a.errorReason && ['', <span className="text-bad">{a.errorReason}</span>],
        !!a.title && [t.agents.titleField, a.title], [t.agents.role, a.role],
        [t.agent.manager, a.reportsTo ? <Link to={`/${company.issuePrefix}/agents/${a.reportsTo}`} className="hover:underline"><Who id={a.reportsTo} name={names(a.reportsTo).name} /></Link> : t.agents.nobody],
        [t.agent.env, a.adapterType], [t.agent.hiredAt, <Time at={a.createdAt} />], [t.agent.lastSeen, <Time at={a.lastHeartbeatAt} />],
        !!state && state.totalOutputTokens > 0 && [t.agent.tokens, number(state.totalInputTokens + state.totalOutputTokens)], !!state && state.totalCostCents > 0 && [t.agent.cost, <Money cents={state.totalCostCents} />],
        ['ID', <Id id={a.id} />]]} />
      {a.capabilities && <p className="mt-1 text-sm text-ink2">{a.capabilities}</p>}
    </Section>
  )
}

function Budget({ agent: a }: { agent: AgentDetail }) {
  const [text, setText] = useState(a.budgetMonthlyCents > 0 ? String(a.budgetMonthlyCents / 100) : '')
  const set = useWrite({
    call: (budgetMonthlyCents: number) => patch('/api/agents/{agentId}/budgets', { path: { agentId: a.id } }, { budgetMonthlyCents }),
    reread: () => [keys.agent(a.id), keys.agents(a.companyId), keys.budgets(a.companyId)], onDone: () => toast({ text: t.agent.budgetSet }),
  })
  const cents = Math.round(Number(text || 0) * 100)
  return (
    <Section title={t.agent.budget}>
      <p className="mb-2 text-sm"><Money cents={a.spentMonthlyCents} /> <span className="text-ink2">{a.budgetMonthlyCents > 0 ? t.home.ofBudget(moneyOf(a.budgetMonthlyCents).text) : t.agent.noBudget}</span></p>
      {a.budgetMonthlyCents > 0 && <Bar value={a.spentMonthlyCents} of={a.budgetMonthlyCents} label={`${exactMoney(a.spentMonthlyCents)} ${t.home.ofBudget(exactMoney(a.budgetMonthlyCents))}`} />}
      <form className="mt-2 flex gap-2" onSubmit={(e) => { e.preventDefault(); set.mutate(cents) }}>
        <Input type="number" min={0} step="0.01" aria-label={t.agents.budget} placeholder={t.agents.budget} value={text} onChange={(e) => setText(e.target.value)} /><Button type="submit" disabled={cents === a.budgetMonthlyCents || Number.isNaN(cents)} busy={set.isPending}>{t.agent.setBudget}</Button>
      </form>
    </Section>
  )
}

type Run = NonNullable<ReturnType<typeof useRuns>['data']>[number]

export function Runs({ agent }: { agent: AgentDetail }) {
  const company = useCompany()
  const go = useNavigate()
  const runs = useRuns(company.id, agent.id)
  const members = useMembers().data
  const issues = useIssues(company.id, { limit: 1000 }).data
  const to = (r: Run) => `/${company.issuePrefix}/runs/${r.id}`
  const columns: Column<Run>[] = [
    { id: 'status', head: t.agents.status, width: '132px', cell: (r) => <Link to={to(r)} className="hover:underline"><StatusMark status={r.status} /></Link>, text: (r) => r.status },
    { id: 'issue', head: t.agent.issue, width: 'minmax(0,1fr)', cell: (r) => { const i = issues?.find((x) => x.id === r.contextSnapshot.issueId); return i ? <span>{<span className="text-xs text-ink3">{i.identifier}</span>} {i.title}</span> : <span className="text-ink3">{r.error ?? '–'}</span> } },
    { id: 'why', head: t.agent.why, width: '104px', from: 'tab', cell: (r) => words(r.invocationSource) },
    { id: 'node', head: t.agent.node, width: '64px', from: 'desk', cell: (r) => members?.find((m) => m.id === r.nodeId)?.name ?? '–' },
    { id: 'lasted', head: t.agent.lasted, width: '72px', right: true, from: 'tab', cell: (r) => <Lasting from={r.startedAt} to={r.finishedAt} /> },
    { id: 'began', head: t.agent.began, width: '80px', right: true, cell: (r) => <span className="text-xs text-ink3"><Time at={r.startedAt ?? r.createdAt} /></span> },
  ]
  return <Loaded of={runs}>{(rows) => <div className="flex max-h-[70dvh] flex-col overflow-hidden rounded border border-line"><Table label={t.agent.runs} rows={rows} columns={columns} keyOf={(r) => r.id} onOpen={(r) => void go({ to: to(r) })} empty={<Empty icon="activity" title={t.agent.noRuns} why={t.agent.noRunsWhy} />} /></div>}</Loaded>
}
