// The rules in force, by branch; what each reads and does; earlier versions; the packs; the environments.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { useMaybeCompany } from '../../company'
import { useWrite } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post } from '../../http'
import { Button } from '../../parts/button'
import { Input, Select } from '../../parts/form'
import { Confirm, Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { amended, useRules } from '../govern/data'
import { level } from '../govern/effect'
import type { Rule } from '../govern/rules'
import { Environments } from './environments'
import { Filters } from './filters'
import { Packs } from './packs'

interface Search { version?: number; show?: string; q?: string; branch?: string; severity?: string }
const g = tr.govern
const severities = ['critical', 'blocking', 'warning', 'advisory']
const rank = (r: Rule) => severities.indexOf(r.severity)

const columns: Column<Rule>[] = [
  { id: 'rule', head: g.rule, width: '92px', cell: (r) => <code className="font-mono text-xs">{r.id}</code>, sort: (a, b) => a.id.localeCompare(b.id) },
  { id: 'branch', head: g.branch, width: '96px', from: 'tab', cell: (r) => g.branches[r.branch] ?? r.branch, sort: (a, b) => a.branch.localeCompare(b.branch) },
  { id: 'severity', head: g.severity, width: '104px', cell: (r) => <StatusMark status={r.severity} label={g.severities[r.severity] ?? r.severity} />, sort: (a, b) => rank(a) - rank(b) },
  { id: 'title', head: g.title, width: 'minmax(96px,0.6fr)', cell: (r) => r.title || <span className="text-ink2">{r.reason}</span>, sort: (a, b) => a.title.localeCompare(b.title) },
  { id: 'predicate', head: g.predicate, width: 'minmax(0,1.4fr)', from: 'desk', cell: (r) => <code className="font-mono text-xs text-ink2" title={r.when}>{r.when}</code> },
  { id: 'reference', head: g.reference, width: '136px', from: 'wide', cell: (r) => <span className="text-ink3">{r.reference ?? ''}</span> },
]

/** found says whether a rule has a text in what people read of it. */
export const found = (r: Rule, q: string) => `${r.id} ${r.title} ${r.when} ${r.reason} ${r.reference ?? ''} ${r.on.join(' ')}`.toLowerCase().includes(q.trim().toLowerCase())

export function Page() {
  const go = useNavigate()
  const s = useSearch({ strict: false }) as Search
  const set = (next: Search) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...s, ...next }).filter(([, v]) => v)) as never, replace: true })
  const rules = useRules(s.version)
  const newest = useRules().data?.version
  const [open, setOpen] = useState<'packs' | 'environments' | 'filters'>()
  const here = useMaybeCompany()
  const c = rules.data
  const rows = (c?.rules ?? []).filter((r) => (!s.q || found(r, s.q)) && (!s.branch || r.branch === s.branch) && (!s.severity || r.severity === s.severity))
  const one = c?.rules.find((r) => r.id === s.show)
  const choice = (label: string, all: Record<string, string>) => [{ value: '', label }, ...Object.entries(all).map(([value, name]) => ({ value, label: name }))]
  return (
    <Frame title={t.nav.constitution} command={s.version ? `selvage govern rules --version ${s.version}` : 'selvage govern rules'} scroll={false}
      tools={<><Button onClick={() => setOpen('environments')}>{g.environments}</Button><Button onClick={() => setOpen('packs')}>{g.packs}</Button>{here && <Button onClick={() => setOpen('filters')}>{tr.filters.button}</Button>}<Button look="primary" icon="plus" onClick={() => void go({ to: '/mesh/constitution/rule' })}>{g.newRule}</Button></>}
      bar={<>
        <Input data-find type="search" aria-label={g.find} placeholder={g.find} value={s.q ?? ''} onChange={(e) => set({ q: e.target.value })} className="!w-44 shrink-0 tab:!w-56" />
        <Select aria-label={g.branch} value={s.branch ?? ''} onChange={(e) => set({ branch: e.target.value })} choices={choice(g.branch, g.branches)} />
        <Select aria-label={g.severity} value={s.severity ?? ''} onChange={(e) => set({ severity: e.target.value })} choices={choice(g.severity, g.severities)} />
        {newest !== undefined && newest > 1 && <Select aria-label={g.version} value={String(s.version ?? newest)} onChange={(e) => set({ version: Number(e.target.value) === newest ? 0 : Number(e.target.value) })} choices={Array.from({ length: Math.min(newest, 200) }, (_, i) => ({ value: String(newest - i), label: g.versionOf(newest - i) }))} />}
        {c && <span data-constitution={c.version} className="flex flex-wrap items-center gap-x-2 text-sm text-ink2 tab:ml-2 tab:flex-nowrap tab:whitespace-nowrap"><StatusMark status={c.inForce ? 'in_force' : 'withdrawn'} label={`${g.versionOf(c.version)}, ${c.inForce ? g.since(number(c.height)) : g.old}`} /><span>{g.threshold.toLowerCase()} {level(c.threshold)}</span><Id id={c.constitution} /></span>}
      </>}
      drawer={one && <Drawer label={one.id} onClose={() => set({ show: '' })} head={<code className="font-mono text-sm">{one.id}</code>}><One key={one.id} rule={one} current={c?.inForce ?? false} /></Drawer>}>
      <Loaded of={{ ...rules, data: c && rows }}>
        {(all) => <Table label={t.nav.constitution} rows={all} columns={columns} keyOf={(r) => r.id} onOpen={(r) => set({ show: r.id })} openKey={one?.id} empty={<Empty icon="constitution" title={g.noRule}><Button onClick={() => set({ q: '', branch: '', severity: '' })}>{t.issues.clear}</Button></Empty>} />}
      </Loaded>
      {open === 'filters' && here && <Filters company={here} onClose={() => setOpen(undefined)} />}
      {open === 'packs' && <Packs last={c?.pack} onClose={() => setOpen(undefined)} />}
      {open === 'environments' && <Environments onClose={() => setOpen(undefined)} />}
    </Frame>
  )
}

function One({ rule: r, current }: { rule: Rule; current: boolean }) {
  const go = useNavigate()
  const [asking, setAsking] = useState(false)
  const drop = useWrite({ call: () => post('/api/v1/govern/amendments', {}, { title: g.dropTitle(r.id), dropRules: [r.id] }), reread: amended, onDone: (a) => { toast({ text: tr.editor.proposed }); void go({ to: `/mesh/amendments/${a.id}` }) } })
  return (
    <div className="flex flex-col gap-4">
      <Facts rows={[
        [g.branch, g.branches[r.branch] ?? r.branch], [g.severity, <StatusMark status={r.severity} label={`${g.severities[r.severity] ?? r.severity}: ${g.does[r.severity] ?? ''}`} />], r.title !== '' && [g.title, r.title],
        [g.on, r.on.length === 0 ? g.everything : <span className="flex flex-wrap gap-1 py-1">{r.on.map((x) => <Badge key={x}>{x}</Badge>)}</span>], [g.reason, r.reason], r.reference !== null && [g.reference, r.reference]]} />
      <section aria-label={g.predicate}>
        <h3 className="mb-1 text-xs text-ink3">{g.predicate}</h3>
        <pre tabIndex={0} className="overflow-x-auto whitespace-pre-wrap break-words rounded border border-line bg-ground2 p-3 font-mono text-xs">{r.when}</pre>
      </section>
      {r.genesis && <p className="text-sm text-ink2">{r.core ? g.core : g.genesis}</p>}
      {current && <div className="flex flex-wrap gap-2"><Button onClick={() => void go({ to: '/mesh/constitution/rule', search: { id: r.id } as never })}>{g.change}</Button>{!r.genesis && <Button look="danger" onClick={() => setAsking(true)}>{g.drop}</Button>}</div>}
      <Confirm open={asking} onClose={() => setAsking(false)} title={g.dropAsk(r.id)} body={g.dropBody} action={g.drop} busy={drop.isPending} onConfirm={() => drop.mutate(undefined)} />
    </div>
  )
}
