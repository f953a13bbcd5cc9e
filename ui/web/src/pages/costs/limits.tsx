// A limit: how much of it is spent, what it will be at its end, and the dialog that sets it.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useProjects, useWrite } from '../../data'
import { exactMoney, moneyOf, words } from '../../format'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Bar } from '../../parts/charts'
import { Checkbox, Field, Input, Select } from '../../parts/form'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Money } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { forecastOf } from './sums'

export type Policy = Schemas['ApiBudgetPolicy']

/** A limit with what is spent of it; narrow: its parts below each other. */
export function Limit({ policy: p, onEdit, narrow }: { policy: Policy; onEdit: () => void; narrow?: boolean }) {
  const forecast = forecastOf(p.observedAmount, p.windowStart, p.windowEnd)
  const state = !p.isActive ? 'archived' : p.status === 'hard_stop' ? 'bad' : p.status === 'ok' ? 'ok' : 'warn'
  return (
    <li className={`grid min-h-14 grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 border-b border-line px-3 py-2 last:border-0 ${narrow ? '' : 'tab:grid-cols-[200px_minmax(0,1fr)_auto]'}`}>
      <span className="min-w-0"><span className="flex items-center gap-2"><StatusMark status={state} bare label={p.paused ? t.costs.stopped : statusText(state)} /><span className="truncate font-strong">{p.scopeName}</span></span><span className="block truncate text-xs text-ink3">{words(p.scopeType)} · {t.costs.window[p.windowKind] ?? words(p.windowKind)}{p.hardStopEnabled ? '' : ` · ${t.costs.soft}`}</span></span>
      <span className={narrow ? 'order-3 col-span-2' : 'max-tab:order-3 max-tab:col-span-2'}>
        <Bar value={p.observedAmount} of={p.amount} {...(forecast === undefined ? {} : { forecast })} label={t.costs.spentOf(exactMoney(p.observedAmount), exactMoney(p.amount))} />
        <span className="mt-1 flex flex-wrap gap-x-3 text-xs text-ink2"><span><Money cents={p.observedAmount} /> {t.home.ofBudget('')}<Money cents={p.amount} /></span>
          {forecast !== undefined && <span className={forecast > p.amount ? 'text-warn' : 'text-ink3'}>{t.costs.forecast(moneyOf(forecast).text)}</span>}{p.paused && <span className="text-bad">{t.costs.stopped}</span>}</span>
      </span>
      <Button small onClick={onEdit}>{p.paused ? t.costs.raise : t.common.edit}</Button>
    </li>
  )
}

const windows = ['calendar_month_utc', 'calendar_week_utc', 'calendar_day_utc', 'rolling_24h', 'rolling_7d', 'rolling_30d', 'lifetime']

/** Sets a limit or changes one; scope says of what, where the page knows it. */
export function PolicyDialog({ policy, scope, onClose }: { policy: Policy | undefined; scope?: { type: Policy['scopeType']; id: string }; onClose: () => void }) {
  const company = useCompany()
  const agents = useAgents(company.id).data ?? []
  const projects = useProjects(company.id).data ?? []
  const [now, setNow] = useState({ scopeType: policy?.scopeType ?? scope?.type ?? 'company', scopeId: policy?.scopeId ?? scope?.id ?? company.id, amount: policy ? String((policy.paused ? Math.ceil(Math.max(policy.observedAmount * 1.5, policy.amount)) : policy.amount) / 100) : '', windowKind: policy?.windowKind ?? 'calendar_month_utc', warnPercent: String(policy?.warnPercent ?? 80), hardStopEnabled: policy?.hardStopEnabled ?? true })
  const cents = Math.round(Number(now.amount) * 100)
  const save = useWrite({
    call: () => post('/api/companies/{companyId}/budgets/policies', { path: { companyId: company.id } }, { ...now, amount: cents, warnPercent: Number(now.warnPercent) }),
    reread: () => [keys.budgets(company.id), keys.agents(company.id), keys.companies(), keys.attention(company.id), keys.dashboard(company.id)],
    onDone: () => { onClose(); toast({ text: policy?.paused ? t.costs.raised : t.costs.saved }) },
  })
  const scopes = now.scopeType === 'agent' ? agents : now.scopeType === 'project' ? projects : [{ id: company.id, name: company.name }]
  const pick = (name: 'scopeId' | 'windowKind' | 'amount' | 'warnPercent') => ({ value: now[name], onChange: (e: { target: { value: string } }) => setNow({ ...now, [name]: e.target.value }) })
  return (
    <Dialog open onClose={onClose} title={policy ? `${t.costs.limit}: ${policy.scopeName}` : t.costs.newPolicy}>
      <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (cents > 0) save.mutate(undefined) }}>
        {policy?.paused && <p className="rounded border border-line bg-ground2 p-2 text-sm">{t.costs.stoppedWhy(exactMoney(policy.observedAmount))}</p>}
        {!policy && <>
          {!scope && <>
          <Field label={t.costs.scope}><Select value={now.scopeType} onChange={(e) => setNow({ ...now, scopeType: e.target.value, scopeId: e.target.value === 'company' ? company.id : (e.target.value === 'agent' ? agents : projects)[0]?.id ?? '' })} choices={['company', 'agent', 'project'].map((v) => ({ value: v, label: words(v) }))} /></Field>
          {now.scopeType !== 'company' && <Field label={words(now.scopeType)}><Select {...pick('scopeId')} choices={scopes.map((s) => ({ value: s.id, label: s.name }))} /></Field>}
          </>}
          <Field label={t.costs.windowField}><Select {...pick('windowKind')} choices={windows.map((w) => ({ value: w, label: t.costs.window[w] ?? words(w) }))} /></Field>
        </>}
        <Field label={t.approvals.newLimit} wrong={now.amount !== '' && !(cents > 0) ? t.costs.positive : undefined}><Input autoFocus type="number" min={0} step="0.01" {...pick('amount')} /></Field>
        <Field label={t.costs.warnAt}><Input type="number" min={1} max={99} {...pick('warnPercent')} /></Field>
        <Checkbox label={t.costs.hardStop} checked={now.hardStopEnabled} onChange={(hardStopEnabled) => setNow({ ...now, hardStopEnabled })} />
        <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" type="submit" disabled={!(cents > 0) || now.scopeId === ''} busy={save.isPending}>{policy?.paused ? t.costs.raise : t.common.save}</Button></DialogFoot>
      </form>
    </Dialog>
  )
}
