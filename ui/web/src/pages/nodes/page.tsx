// The nodes: who leads, who votes, who is away, how far each is, who asks to be let in, what the doctor found.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { keys } from '../../cache'
import { client, poll, useAutopilot, useDoctor, useJoinRequests, useMembers, useMesh, say, type Member } from '../../data'
import { number, words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post } from '../../http'
import { Button } from '../../parts/button'
import { Drawer } from '../../parts/overlay'
import { Empty, ErrorBox, Facts, Rows, Section } from '../../parts/states'
import { Badge, inkOf, meaningOf, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { again, behindOf, One, roleOf, wayOf } from './one'
import { placesOf } from './places'

export function Page() {
  const members = useMembers(poll)
  const mesh = useMesh(poll).data
  const pilot = useAutopilot().data
  const { show } = useSearch({ strict: false }) as { show?: string }
  const go = useNavigate()
  const open = (id: string) => void go({ to: '.', search: (id ? { show: id } : {}) as never, replace: true })
  const rows = members.data ?? []
  const shown = rows.find((m) => m.id === show || m.name === show)
  const columns: Column<Member>[] = [
    { id: 'name', head: t.nodes.name, width: 'minmax(80px,1.6fr)', cell: (m) => <span className="flex items-center gap-2"><span className="truncate font-strong">{m.name}</span>{m.here && <span className="max-tab:hidden"><Badge>{t.nodes.here}</Badge></span>}</span>, sort: (a, b) => a.name.localeCompare(b.name) },
    { id: 'status', head: t.nodes.status, width: '112px', cell: (m) => <StatusMark status={m.status} /> },
    { id: 'role', head: t.nodes.role, width: '84px', cell: roleOf },
    { id: 'scheduling', head: t.nodes.scheduling, width: '96px', from: 'tab', cell: (m) => <span title={m.schedulingReason ?? undefined}>{statusText(m.scheduling)}</span> },
    { id: 'runs', head: t.nodes.runs, width: '48px', from: 'tab', cell: (m) => m.runs, sort: (a, b) => a.runs - b.runs },
    { id: 'latency', head: tp.nodes.latency, width: '72px', from: 'tab', cell: wayOf, sort: (a, b) => (a.latencyMs ?? 0) - (b.latencyMs ?? 0) },
    { id: 'behind', head: tp.nodes.follows, width: '112px', from: 'desk', cell: (m) => behindOf(m, pilot) },
    { id: 'version', head: t.nodes.version, width: '88px', from: 'desk', cell: (m) => m.version ?? '–' },
    { id: 'labels', head: t.nodes.labels, width: 'minmax(0,0.6fr)', from: 'wide', cell: (m) => <span className="flex gap-1">{(m.labels ?? []).map((l) => <Badge key={l}>{l}</Badge>)}</span> },
    { id: 'address', head: t.nodes.address, width: '148px', from: 'wide', cell: (m) => <code className="font-mono text-xs text-ink2">{m.addresses?.[0] ?? '–'}</code> },
    { id: 'joined', head: t.nodes.joined, width: '80px', right: true, from: 'desk', cell: (m) => <span className="text-xs text-ink3"><Time at={m.admittedAt} /></span> },
  ]
  return (
    <Frame title={t.nodes.title} command="selvage members"
      drawer={shown && <Drawer label={shown.name} onClose={() => open('')} head={shown.name}><One key={shown.id} member={shown} pilot={pilot} /></Drawer>}>
      {members.data === undefined ? (members.error ? <ErrorBox error={members.error} onRetry={again} /> : <Rows />) : rows.length === 0 ? <Empty icon="nodes" title={t.common.nothingFound} why={t.nodes.emptyWhy} /> : (
        <div className="flex w-full max-w-page flex-col gap-6 p-4">
          <div className="grid gap-6 desk:grid-cols-[minmax(0,1fr)_300px]">
            <Section title={t.nodes.map}><MeshMap members={rows.filter((m) => m.status !== 'revoked')} onOpen={open} /></Section>
            <div>
              {mesh && <Section title={mesh.name || t.nav.mesh}><Facts rows={[
                ['ID', <Id id={mesh.id} />], [t.nodes.height, number(mesh.height)], pilot && [t.nodes.term, number(pilot.term)],
                [t.nodes.status, <span><StatusMark status={mesh.quorum ? 'ok' : 'bad'} label={mesh.quorum ? 'quorum' : 'no quorum'} />{pilot && <span className="block text-ink2">{t.nodes.tolerance(pilot.failureTolerance)}</span>}</span>]]} /></Section>}
              <Requests />
            </div>
          </div>
          <Section title={t.nodes.title}><div className="flex flex-col overflow-hidden rounded border border-line"><Table label={t.nodes.title} rows={[...rows].sort((a, b) => a.name.localeCompare(b.name))} columns={columns} keyOf={(m) => m.id} openKey={shown?.id} onOpen={(m) => open(m.id)} /></div></Section>
          <Doctor />
        </div>
      )}
    </Frame>
  )
}

/** The mesh with its leader in the middle, or above the others; a line is the thinner the longer the way is from this node. */
function MeshMap({ members, onOpen }: { members: readonly Member[]; onOpen: (id: string) => void }) {
  const leader = members.find((m) => m.leader)
  const others = members.filter((m) => m !== leader)
  const { size, at } = placesOf(leader, others, innerWidth < 600)
  const here = members.find((m) => m.here)
  const label = members.map((m) => `${m.name}: ${roleOf(m)}, ${statusText(m.status)}, ${t.home.runs(m.runs)}${m.latencyMs === null ? '' : `, ${wayOf(m)}`}`).join('; ')
  const from = here && at.get(here.id)
  return (
    <svg role="img" aria-label={`${t.nodes.map}. ${label}`} viewBox={`0 0 ${size.w} ${size.h}`} className={`${size.h > 300 ? '' : 'max-h-[max(320px,34vh)]'} w-full rounded border border-line bg-ground2`}>
      {leader && others.map((m) => { const p = at.get(m.id)!; return <line key={m.id} x1={at.get(leader.id)!.x} y1={at.get(leader.id)!.y} x2={p.x} y2={p.y} stroke={m.status === 'alive' ? 'var(--line2)' : 'var(--bad)'} strokeWidth="1" strokeDasharray={m.voter ? undefined : '4 4'} /> })}
      {from && members.filter((m) => m.latencyMs !== null).map((m) => {
        const p = at.get(m.id)!
        return (
          <g key={m.id} aria-hidden="true">
            <line x1={from.x} y1={from.y} x2={p.x} y2={p.y} stroke="var(--accent)" strokeOpacity="0.45" strokeWidth={weightOf(m.latencyMs ?? 0)} />
            <text x={(from.x + p.x) / 2} y={(from.y + p.y) / 2 - 7} textAnchor="middle" fontSize="11" fill="var(--ink2)" stroke="var(--ground2)" strokeWidth="4" paintOrder="stroke">{wayOf(m)}</text>
          </g>
        )
      })}
      {members.map((m) => {
        const p = at.get(m.id)!
        return (
          <g key={m.id} aria-hidden="true" transform={`translate(${p.x} ${p.y})`} className={`cursor-pointer ${inkOf[meaningOf(m.status)]}`} onClick={() => onOpen(m.id)}>
            <rect x="-64" y="-30" width="128" height="60" rx="6" fill="var(--ground)" stroke={m.here ? 'var(--accent)' : 'var(--line2)'} strokeWidth={m.here ? 2 : 1} />
            <circle cx="-48" cy="-13" r="4.5" fill="currentColor" />
            <text x="-37" y="-9" fontSize="13" fontWeight="550" fill="var(--ink)">{m.name.slice(0, 12)}</text>
            <text x="-52" y="7" fontSize="11" fill="var(--ink2)">{roleOf(m)} · {t.home.runs(m.runs)}</text>
            <text x="-52" y="21" fontSize="11" fill="var(--ink3)">{m.scheduling === 'open' ? (m.version ?? '').slice(0, 18) : statusText(m.scheduling)}</text>
          </g>
        )
      })}
    </svg>
  )
}

/** A way of half a millisecond is drawn six wide, one of a tenth of a second one. */
const weightOf = (latency: number) => Math.max(1, Math.min(6, 5 - Math.log10(Math.max(latency, 0.1)) * 2))

function Requests() {
  const requests = useJoinRequests().data ?? []
  const decide = (code: string, name: string, yes: boolean) => post(yes ? '/api/v1/mesh/requests/{code}/approve' : '/api/v1/mesh/requests/{code}/reject', { path: { code } })
    .then(() => toast({ text: yes ? t.nodes.approved(name) : t.nodes.refused(name) }), say).finally(() => void client.invalidateQueries({ queryKey: keys.mesh('requests') }))
  return (
    <Section title={t.nodes.requests}>
      {requests.length === 0 && <p className="text-sm text-ink3">{t.nodes.noRequests}</p>}
      {requests.map((r) => (
        <div key={r.code} data-request={r.name} className="mb-2 rounded border border-line p-3 text-sm">
          <p className="flex items-center gap-2"><StatusMark status="pending" bare /><span className="font-strong">{r.name}</span><span className="text-ink3">{r.address}</span></p>
          <p data-code className="my-1 font-mono text-lg tracking-widest">{r.code}</p>
          <p className="mb-2 text-xs text-ink3">{t.nodes.compare}</p>
          <span className="flex gap-2"><Button small onClick={() => void decide(r.code, r.name, true)}>{t.nodes.approve}</Button><Button small look="quiet" onClick={() => void decide(r.code, r.name, false)}>{t.nodes.refuse}</Button></span>
        </div>
      ))}
    </Section>
  )
}

function Doctor() {
  const found = useDoctor().data
  if (!found) return null
  const order = ['bad', 'problem', 'warn', 'warning', 'note', 'ok']
  const rows = [...found].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))
  return (
    <Section title={t.nodes.doctor}>
      <ul className="rounded border border-line">
        {rows.map((c) => (
          <li key={c.name} className="grid min-h-9 grid-cols-[20px_minmax(0,1fr)] items-center gap-x-3 tab:grid-cols-[20px_96px_minmax(0,1fr)] border-b border-line px-4 py-1.5 text-sm last:border-0">
            <StatusMark status={c.level} bare /><span className="truncate">{words(c.name)}</span><span className="min-w-0 break-words text-ink2 max-tab:col-start-2">{c.found}{c.do && <span className="text-ink3"> — {c.do}</span>}</span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
