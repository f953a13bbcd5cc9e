// Costs: each limit with its forecast, what is spent over days, and a table that adds up to what is drawn.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { daysBack, useAgents, useCostDays, useProjects, useRead } from '../../data'
import { exactMoney, moneyOf, number, short } from '../../format'
import { Page as Frame } from '../../frame/page'
import { Button, IconButton } from '../../parts/button'
import { Stacks, tones } from '../../parts/charts'
import { Select } from '../../parts/form'
import { Empty, ErrorBox, Loaded, Rows, Section } from '../../parts/states'
import { csvOf, download, type Column } from '../../parts/table'
import { Money } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { Limit, PolicyDialog, type Policy } from './limits'
import { bandsOf, forecastOf, narrowed, sumBy, type By, type CostRow, type Only, type Sum } from './sums'

interface Search extends Only { by?: By; span?: string }

const spans: Record<string, () => string[]> = {
  month: () => daysBack(new Date().getUTCDate()), '7': () => daysBack(7), '30': () => daysBack(30),
}
const bys: By[] = ['agent', 'project', 'model', 'provider']
const most = tones.length
const none = '-' // costs without a project

export function Page() {
  const company = useCompany()
  const [editing, setEditing] = useState<Policy | 'new'>()
  return (
    <Frame title={t.nav.costs} command={`selvage cost --company ${company.issuePrefix}`} tools={<Button icon="plus" onClick={() => setEditing('new')}>{t.costs.newPolicy}</Button>}>
      <div className="flex w-full max-w-page flex-col gap-6 p-4 huge:grid huge:grid-cols-[minmax(0,1fr)_minmax(0,2fr)] huge:items-start">
        <Limits onEdit={setEditing} />
        <Spent />
      </div>
      {editing && <PolicyDialog policy={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />}
    </Frame>
  )
}

const fewLimits = 6 // those that are closest to their end come first; the rest is a click away

function Limits({ onEdit }: { onEdit: (p: Policy) => void }) {
  const company = useCompany()
  const overview = useRead(keys.budgets(company.id, 'overview'), '/api/companies/{companyId}/budgets/overview', { path: { companyId: company.id } })
  const [all, setAll] = useState(false)
  return (
    <Section title={t.costs.limits} aside={overview.data && overview.data.heldAmount > 0 && <span className="text-xs text-ink3">{t.home.held(moneyOf(overview.data.heldAmount).text)}</span>}>
      <Loaded of={overview} rows={3}>
        {(o) => {
          const policies = [...(o.policies ?? [])].sort((a, b) => Number(b.scopeType === 'company') - Number(a.scopeType === 'company') || b.utilizationPercent - a.utilizationPercent)
          if (policies.length === 0) return <Empty icon="costs" title={t.costs.noLimits} why={t.costs.noLimitsWhy} />
          return <>
            <ul className="rounded border border-line">{(all ? policies : policies.slice(0, fewLimits)).map((p) => <Limit key={p.policyId} policy={p} onEdit={() => onEdit(p)} />)}</ul>
            {!all && policies.length > fewLimits && <Button small look="quiet" className="mt-1" onClick={() => setAll(true)}>{tp.costs.allLimits(policies.length)}</Button>}
          </>
        }}
      </Loaded>
    </Section>
  )
}

function Spent() {
  const search = useSearch({ strict: false }) as Search
  const go = useNavigate()
  const by = search.by ?? 'agent'
  const set = (next: Search) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...search, ...next }).filter(([, v]) => v)) as never, replace: true })
  const company = useCompany()
  const read = useCostDays(company.id, (spans[search.span ?? 'month'] ?? spans['month']!)())
  return (
    <Section title={t.costs.spent} aside={
      <span className="flex gap-1.5">
        <Select small aria-label={t.costs.span} value={search.span ?? 'month'} onChange={(e) => set({ span: e.target.value === 'month' ? '' : e.target.value, day: '' })} choices={[{ value: 'month', label: t.costs.thisMonth }, { value: '7', label: t.costs.days(7) }, { value: '30', label: t.costs.days(30) }]} />
        <Select small aria-label={t.costs.by} value={by} onChange={(e) => set({ by: e.target.value as By })} choices={bys.map((b) => ({ value: b, label: t.costs.bys[b] }))} />
      </span>}>
      <Drawn read={read} by={by} search={search} set={set} />
    </Section>
  )
}

interface Read { days: { date: string; rows: readonly CostRow[] }[]; pending: boolean; error: unknown }
interface Shown { search: Search; set: (next: Search) => void }

function Drawn({ read, by, search, set }: { read: Read; by: By } & Shown) {
  const company = useCompany()
  const days = read.days.map((d) => ({ date: d.date, rows: narrowed(d.rows, search) }))
  const inTable = days.filter((d) => !search.day || d.date === search.day).flatMap((d) => d.rows)
  const order = sumBy(days.flatMap((d) => d.rows), by)
  const sums = sumBy(inTable, by)
  const total = sums.reduce((n, s) => n + s.cents, 0)
  const nameOf = (key: string) => (key === '' ? t.costs.others : order.find((s) => s.key === key)?.name ?? key)
  // A click on a name asks for it alone, divided by the next thing to know of it.
  const narrow = (s: Sum) => {
    if (by === 'agent') set({ agent: s.key, by: 'model' })
    else if (by === 'project') set({ project: s.key || none, by: 'agent' })
    else if (by === 'model') set({ model: s.key, by: 'agent' })
    else if (by === 'provider') set({ provider: s.key, by: 'model' })
  }
  const chips = (['agent', 'project', 'model', 'provider', 'day'] as const).filter((k) => search[k])
  const agents = useAgents(company.id).data
  const projects = useProjects(company.id).data
  const labelOf = { agent: agents?.find((a) => a.id === search.agent)?.name, project: search.project === none ? t.costs.noProject : projects?.find((p) => p.id === search.project)?.name, model: undefined, provider: undefined, day: undefined }
  // What it will be at the end of the month if it goes on so; of the month alone, as other spans have no end.
  const now = new Date()
  const month = [Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1), Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)].map((at) => new Date(at).toISOString())
  const all = order.reduce((n, s) => n + s.cents, 0)
  const forecast = search.span || search.day ? undefined : forecastOf(all, month[0]!, month[1]!)
  const columns: Column<Sum>[] = [
    { id: 'name', head: t.costs.bys[by], width: '', cell: (s) => s.name }, { id: 'cents', head: t.costs.cost, width: '', cell: (s) => exactMoney(s.cents) },
    { id: 'in', head: t.costs.input, width: '', cell: (s) => s.input }, { id: 'cached', head: t.costs.cached, width: '', cell: (s) => s.cached }, { id: 'out', head: t.costs.output, width: '', cell: (s) => s.output },
  ]
  if (read.error) return <ErrorBox error={read.error} />
  if (read.pending) return <Rows n={6} />
  return (
    <div className="flex flex-col gap-4">
      {chips.length > 0 && <div className="flex flex-wrap gap-1.5">{chips.map((k) => <Button key={k} small icon="close" onClick={() => set({ [k]: '' })}>{labelOf[k] ?? search[k]}</Button>)}</div>}
      {all > 0 && <p className="flex flex-wrap items-baseline gap-x-4 text-sm text-ink2"><span className="text-xl font-strong text-ink"><Money cents={all} /></span>{forecast !== undefined && <span>{t.home.forecast(moneyOf(forecast).text)}</span>}</p>}
      {order.length > 0 && <Stacks label={t.costs.spent} height={120} onPick={(date) => set({ day: search.day === date ? '' : date })} picked={search.day}
        bars={days.map((d) => ({ label: d.date, parts: bandsOf(d.rows, order, by, most).map((b) => ({ label: nameOf(b.key), value: b.value, text: exactMoney(b.value) })) }))} />}
      {sums.length === 0 ? <Empty icon="costs" title={t.costs.nothing} why={t.costs.nothingWhy} /> : (
        <div className="overflow-x-auto rounded border border-line">
          <table aria-label={t.costs.spent} className="w-full text-base">
            <thead><tr className="h-8 border-b border-line text-xs text-ink3">{columns.map((c, i) => <th key={c.id} scope="col" className={`px-3 font-normal ${i === 0 ? 'w-[40%] text-left' : 'text-right'} ${i > 1 ? 'max-tab:hidden' : ''}`}>{c.head}</th>)}<th scope="col" className="px-3 text-right font-normal">{t.costs.share}</th></tr></thead>
            <tbody>
              {sums.map((s) => {
                const i = order.findIndex((o) => o.key === s.key)
                return (
                  <tr key={s.key} className="row border-b border-line hover:bg-ground2">
                    <td className="max-w-0 truncate px-3"><span aria-hidden="true" className="mr-2 inline-block size-2.5 rounded-[2px]" style={{ background: tones[i] ?? 'var(--line2)' }} /><button type="button" className="hover:underline" onClick={() => narrow(s)}>{by === 'project' && s.key === '' ? t.costs.noProject : s.name}</button></td>
                    <td className="px-3 text-right"><Money cents={s.cents} /></td>
                    {[s.input, s.cached, s.output].map((n, j) => <td key={j} title={number(n)} className="px-3 text-right text-ink2 max-tab:hidden">{short(n)}</td>)}
                    <td className="px-3 text-right text-ink2">{total > 0 ? `${((100 * s.cents) / total).toFixed(1)} %` : '–'}</td>
                  </tr>
                )
              })}
            </tbody>
            <tfoot><tr className="row font-strong"><td className="px-3">{t.costs.total}</td><td className="px-3 text-right"><Money cents={total} /></td>{(['input', 'cached', 'output'] as const).map((k) => <td key={k} className="px-3 text-right max-tab:hidden">{short(sums.reduce((n, s) => n + s[k], 0))}</td>)}<td className="px-3 text-right"><IconButton small icon="export" label={t.issues.csv} onClick={() => download(`${company.issuePrefix}-costs.csv`, csvOf(sums, columns))} /></td></tr></tfoot>
          </table>
        </div>
      )}
    </div>
  )
}
