// What the gate decided: each decision with its effect against the threshold and the rules that spoke.
import { keepPreviousData } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useMaybeCompany } from '../../company'
import { useCompanies, useMembers, useNames, useNamesIn, useRead, useWrite } from '../../data'
import { moneyOf, number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Input, Select } from '../../parts/form'
import { Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { dimensions, EffectBars, EffectLines, level } from '../govern/effect'

type Made = Schemas['ApiMade']
interface Search { company?: string; decision?: string; rule?: string; action?: string; show?: string }
const d = tr.decisions
const g = tr.govern
const limit = 500
const look = 30_000 // ms: no event tells of what was let through with a warning in another company

/** said reads the address: a typed number is the ID of a decision, too. */
const said = (search: object): Search => Object.fromEntries(Object.entries(search).map(([name, value]) => [name, String(value)]))

export function Page() {
  const go = useNavigate()
  const s = said(useSearch({ strict: false }))
  const set = (next: Search) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...s, ...next }).filter(([, v]) => v)) as never, replace: true })
  const companies = useCompanies().data ?? []
  const company = companies.find((c) => c.issuePrefix === s.company)
  const query = { companyId: company?.id, decision: s.decision, rule: s.rule?.trim(), action: s.action?.trim(), limit }
  const made = useRead(keys.govern('decisions', query), '/api/v1/govern/decisions', { query }, { placeholderData: keepPreviousData, refetchInterval: look })
  const one = useRead(keys.govern('decisions', { id: s.show }), '/api/v1/govern/decisions/{id}', { path: { id: s.show ?? '' } }, { enabled: !!s.show })
  const here = useMaybeCompany()
  const names = useNamesIn((made.data ?? []).map((m) => m.companyId), (company ?? here)?.id)
  const who = (m: Made) => <Actor made={m} nameOf={names} />
  const columns: Column<Made>[] = [
    { id: 'decision', head: d.decision, width: '92px', cell: (m) => <StatusMark status={m.decision} label={d.decisions[m.decision] ?? m.decision} /> },
    { id: 'act', head: d.act, width: 'minmax(96px,0.7fr)', cell: (m) => <span className="inline-flex max-w-full items-center gap-1.5"><code className="truncate font-mono text-xs">{m.action}</code>{m.count > 1 && <Badge>{d.count(m.count)}</Badge>}</span>, text: (m) => m.action, sort: (a, b) => a.action.localeCompare(b.action) },
    { id: 'who', head: d.who, width: '148px', from: 'tab', cell: who, text: (m) => `${m.actorType}:${m.actorId}` },
    { id: 'effect', head: d.effect, width: '92px', cell: (m) => <EffectBars effect={m.effect} magnitude={m.effect_magnitude} threshold={m.threshold} />, text: (m) => dimensions.map((x) => level(m.effect[x])).join(' '), sort: (a, b) => a.effect_magnitude - b.effect_magnitude },
    { id: 'rule', head: d.rule, width: '116px', from: 'desk', cell: (m) => <code className="font-mono text-xs" title={m.spoken_rules.join(', ')}>{m.spoken_rules.join(', ')}</code> },
    { id: 'reason', head: d.reason, width: 'minmax(0,1fr)', from: 'wide', cell: (m) => <span className="text-ink2" title={m.reason}>{m.reason}</span> },
    { id: 'when', head: d.when, width: '64px', right: true, from: 'tab', cell: (m) => <span className="text-xs text-ink3"><Time at={m.lastAt ?? m.at} /></span> },
  ]
  const filtered = !!(s.company || s.decision || s.rule || s.action)
  const flags = [s.decision && `--decision ${s.decision}`, s.rule && `--rule ${s.rule}`, s.action && `--action ${s.action}`].filter(Boolean).join(' ')
  return (
    <Frame title={d.title} command={s.show ? `selvage govern decision ${s.show}` : `selvage govern decisions ${flags}`.trim()} scroll={false}
      bar={<>
        <Select aria-label={d.decision} value={s.decision ?? ''} onChange={(e) => set({ decision: e.target.value })} choices={[{ value: '', label: d.all }, ...Object.entries(d.decisions).map(([value, label]) => ({ value, label }))]} />
        <Select aria-label={t.nav.company} value={company?.issuePrefix ?? ''} onChange={(e) => set({ company: e.target.value })} choices={[{ value: '', label: d.allCompanies }, ...companies.map((c) => ({ value: c.issuePrefix, label: c.name }))]} />
        <Input data-find aria-label={d.action} placeholder={d.action} value={s.action ?? ''} onChange={(e) => set({ action: e.target.value })} className="!w-36 shrink-0" />
        <Input aria-label={d.anyRule} placeholder={d.anyRule} value={s.rule ?? ''} onChange={(e) => set({ rule: e.target.value })} className="!w-28 shrink-0" />
        {made.data?.length === limit && <span className="whitespace-nowrap text-xs text-ink3">{d.first(number(limit))}</span>}
      </>}
      drawer={s.show && <Drawer label={d.decision} onClose={() => set({ show: '' })} head={<span>{d.decision} {s.show}</span>}><Loaded of={one} rows={8}>{(m) => <One key={m.id} made={m} />}</Loaded></Drawer>}>
      <Loaded of={made}>
        {(rows) => <Table label={d.title} rows={rows} columns={columns} keyOf={(m) => m.id} onOpen={(m) => set({ show: m.id })} openKey={s.show}
          empty={filtered ? <Empty icon="search" title={d.noMatch}><Button onClick={() => set({ company: '', decision: '', rule: '', action: '' })}>{t.issues.clear}</Button></Empty> : <Empty icon="decisions" title={d.empty} why={d.emptyWhy} />} />}
      </Loaded>
    </Frame>
  )
}

function Actor({ made: m, nameOf }: { made: Made; nameOf: ReturnType<typeof useNames> }) {
  const { name, person } = nameOf(m.actorId)
  return <Who id={m.actorId} name={m.actorType === 'agent' && person ? (m.role ?? name) : name} person={m.actorType !== 'agent'} />
}

function One({ made: m }: { made: Made }) {
  const companies = useCompanies().data
  const company = companies?.find((c) => c.id === m.companyId)
  const nameOf = useNames(m.companyId ?? undefined)
  const nodes = useMembers().data
  const again = useWrite({
    call: () => post('/api/v1/govern/replay', {}, { id: m.id }),
    onDone: (r) => { const other = r.different[0]; toast(other ? { text: d.differs(other.is, other.reason), bad: true } : { text: d.same }) },
  })
  return (
    <div className="flex flex-col gap-4">
      <div>
        <p className="text-base font-strong"><StatusMark status={m.decision} label={d.decisions[m.decision] ?? m.decision} /> <code className="ml-2 font-mono text-sm font-normal">{m.action}</code></p>
        {m.reason && <p className="mt-1 text-sm text-ink2">{m.reason}</p>}
        {m.count > 1 && <p className="mt-1 text-xs text-ink3">{d.repeated(m.count)}, {d.lastAt} <Time at={m.lastAt} /></p>}
      </div>
      <EffectLines effect={m.effect} magnitude={m.effect_magnitude} threshold={m.threshold} />
      <section aria-label={d.spoke}>
        <h3 className="mb-1 text-xs text-ink3">{d.spoke}</h3>
        {m.rules.length === 0 ? <p className="text-sm text-ink2">{d.silent}</p> : (
          <ul className="rounded border border-line">
            {m.rules.map((r) => (
              <li key={r.id} className="border-b border-line px-3 py-1.5 text-sm last:border-0">
                <span className="flex flex-wrap items-center gap-x-3"><Link to="/mesh/constitution" search={{ show: r.id, version: m.constitution } as never} className="font-mono text-xs text-accent hover:underline">{r.id}</Link><StatusMark status={r.severity} label={g.severities[r.severity] ?? r.severity} /><span className="text-xs text-ink3">{g.branches[r.branch] ?? r.branch}</span></span>
                <span className="block text-ink2">{r.reason}{r.failed && <span className="text-bad"> {d.failed}</span>}</span>
              </li>
            ))}
          </ul>
        )}
        <p className="mt-1 text-xs text-ink3">{d.asked(m.evaluated_rules.length)}</p>
      </section>
      <section aria-label={d.opinions}>
        <h3 className="mb-1 text-xs text-ink3">{d.opinions}</h3>
        <ul className="flex flex-wrap gap-x-4 gap-y-1 text-sm">{m.opinions.map((o) => <li key={o.branch} className="inline-flex items-center gap-2"><span className="text-ink2">{g.branches[o.branch] ?? o.branch}</span><StatusMark status={o.decision} label={d.decisions[o.decision] ?? o.decision} /></li>)}</ul>
      </section>
      <Facts rows={[
        [d.who, <Actor made={m} nameOf={nameOf} />], [d.rank, [m.rank, m.role].filter(Boolean).join(', ')], [t.nav.company, company ? <Link to={`/${company.issuePrefix}`} className="text-accent hover:underline">{company.name}</Link> : d.ofMesh], [d.class, m.class], m.environment !== null && [g.place, g.places[m.environment] ?? m.environment],
        m.amount_cents > 0 && [d.amount, moneyOf(m.amount_cents).text], m.clearances.length > 0 && [d.clearances, <span className="flex flex-wrap gap-1 py-1">{m.clearances.map((c) => <Badge key={c}>{c}</Badge>)}</span>],
        m.runId !== null && company && [d.run, <Link to={`/${company.issuePrefix}/runs/${m.runId}`} className="text-accent hover:underline">{m.runId.slice(0, 8)}</Link>], m.issueId !== null && [d.issue, company ? <Link to={`/${company.issuePrefix}/issues/${m.issueId}`} className="text-accent hover:underline">{m.issueId.slice(0, 8)}</Link> : <Id id={m.issueId} />],
        m.approvalId !== null && [d.approval, company ? <Link to={`/${company.issuePrefix}/approvals/${m.approvalId}`} className="text-accent hover:underline">{m.answer ? (d.answer[m.answer] ?? m.answer) : t.common.open}</Link> : <Id id={m.approvalId} />],
        [d.atNode, m.nodeId ? (nodes?.find((n) => n.id === m.nodeId)?.name ?? m.nodeId.slice(0, 8)) : d.asCommand], [d.constitution, <Link to="/mesh/constitution" search={{ version: m.constitution } as never} className="text-accent hover:underline">{g.versionOf(m.constitution)}</Link>],
        [d.entry, <Link to="/mesh/ledger" search={{ show: m.height } as never} className="text-accent hover:underline">{number(m.height)}</Link>], [d.when, <Time at={m.at} />]]} />
      <div><Button busy={again.isPending} title={d.againWhy} onClick={() => again.mutate(undefined)}>{d.again}</Button></div>
    </div>
  )
}
