// The nodes: who leads, who votes, who is away, who asks to be let in, what the doctor found.
import { keys } from '../../cache'
import { client, say, useAutopilot, useDoctor, useJoinRequests, useMembers, useMesh, type Member } from '../../data'
import { number, words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Menu } from '../../parts/overlay'
import { Empty, ErrorBox, Facts, Rows, Section } from '../../parts/states'
import { Badge, inkOf, meaningOf, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { statusText, t } from '../../text/en'

const again = () => void client.invalidateQueries({ queryKey: ['mesh'] })
const roleOf = (m: Member) => (m.leader ? t.home.leader : m.voter ? t.home.voter : t.home.follower)

export function Page() {
  const members = useMembers()
  const mesh = useMesh().data
  const pilot = useAutopilot().data
  const rows = members.data ?? []
  return (
    <Frame title={t.nodes.title} command="selvage members">
      {members.data === undefined ? (members.error ? <ErrorBox error={members.error} onRetry={again} /> : <Rows />) : rows.length === 0 ? <Empty icon="nodes" title={t.common.nothingFound} why={t.nodes.emptyWhy} /> : (
        <div className="flex w-full max-w-[1440px] flex-col gap-6 p-4">
          <div className="grid gap-6 desk:grid-cols-[minmax(0,1fr)_300px]">
            <Section title={t.nodes.map}><MeshMap members={rows.filter((m) => m.status !== 'revoked')} /></Section>
            <div>
              {mesh && <Section title={mesh.name || t.nav.mesh}><Facts rows={[
                ['ID', <Id id={mesh.id} />], [t.nodes.height, number(mesh.height)], pilot && [t.nodes.term, number(pilot.term)],
                [t.nodes.status, <StatusMark status={mesh.quorum ? 'ok' : 'bad'} label={mesh.quorum ? 'quorum' : 'no quorum'} />], pilot && ['', <span className="text-ink2">{t.nodes.tolerance(pilot.failureTolerance)}</span>]]} /></Section>}
              <Requests />
            </div>
          </div>
          <Section title={t.nodes.title}><div className="flex flex-col overflow-hidden rounded border border-line"><Table label={t.nodes.title} rows={rows} columns={columns} keyOf={(m) => m.id} /></div></Section>
          <Doctor />
        </div>
      )}
    </Frame>
  )
}

const duty = (m: Member, to: 'cordon' | 'uncordon') => post(to === 'cordon' ? '/api/v1/mesh/nodes/{id}/cordon' : '/api/v1/mesh/nodes/{id}/uncordon', { path: { id: m.id } })
  .then(() => toast({ text: to === 'cordon' ? t.nodes.cordoned(m.name) : t.nodes.uncordoned(m.name), ...(to === 'cordon' ? { undo: () => void duty(m, 'uncordon') } : {}) }), say).finally(again)

const columns: Column<Member>[] = [
  { id: 'name', head: t.nodes.name, width: 'minmax(80px,1fr)', cell: (m) => <span className="flex items-center gap-2"><span className="truncate font-strong">{m.name}</span>{m.here && <Badge>{t.nodes.here}</Badge>}</span>, sort: (a, b) => a.name.localeCompare(b.name) },
  { id: 'status', head: t.nodes.status, width: '120px', cell: (m) => <StatusMark status={m.status} /> },
  { id: 'role', head: t.nodes.role, width: '84px', cell: roleOf },
  { id: 'scheduling', head: t.nodes.scheduling, width: '96px', from: 'tab', cell: (m) => <span title={m.schedulingReason ?? undefined}>{statusText(m.scheduling)}</span> },
  { id: 'runs', head: t.nodes.runs, width: '48px', from: 'tab', cell: (m) => m.runs, sort: (a, b) => a.runs - b.runs },
  { id: 'version', head: t.nodes.version, width: '88px', from: 'desk', cell: (m) => m.version ?? '–' },
  { id: 'labels', head: t.nodes.labels, width: 'minmax(0,1fr)', from: 'wide', cell: (m) => <span className="flex gap-1">{(m.labels ?? []).map((l) => <Badge key={l}>{l}</Badge>)}</span> },
  { id: 'address', head: t.nodes.address, width: '160px', from: 'desk', cell: (m) => <code className="font-mono text-xs text-ink2">{m.addresses?.[0] ?? '–'}</code> },
  { id: 'joined', head: t.nodes.joined, width: '72px', right: true, from: 'desk', cell: (m) => <span className="text-xs text-ink3"><Time at={m.admittedAt} /></span> },
  { id: 'more', head: '', width: '28px', cell: (m) => m.status === 'revoked' ? null : <Menu align="end" items={[m.scheduling === 'open' ? { label: t.nodes.cordon, icon: 'pause', onSelect: () => void duty(m, 'cordon') } : { label: t.nodes.uncordon, icon: 'play', onSelect: () => void duty(m, 'uncordon') }]}><IconButton small icon="more" label={`${t.common.actions} ${m.name}`} /></Menu> },
]

/** The mesh as a ring with its leader in the middle of the lines. */
function MeshMap({ members }: { members: readonly Member[] }) {
  const size = { w: 560, h: 260 }
  const leader = members.find((m) => m.leader)
  const others = members.filter((m) => m !== leader)
  const at = new Map<string, { x: number; y: number }>()
  if (leader) at.set(leader.id, { x: size.w / 2, y: size.h / 2 })
  others.forEach((m, i) => {
    const angle = (2 * Math.PI * i) / others.length - Math.PI / (others.length === 2 ? 1 : 2)
    at.set(m.id, { x: size.w / 2 + Math.cos(angle) * 190, y: size.h / 2 + Math.sin(angle) * 88 })
  })
  const words = members.map((m) => `${m.name}: ${roleOf(m)}, ${statusText(m.status)}, ${t.home.runs(m.runs)}`).join('; ')
  return (
    <svg role="img" aria-label={`${t.nodes.map}. ${words}`} viewBox={`0 0 ${size.w} ${size.h}`} className="max-h-[320px] w-full rounded border border-line bg-ground2">
      {leader && others.map((m) => { const p = at.get(m.id)!; return <line key={m.id} x1={size.w / 2} y1={size.h / 2} x2={p.x} y2={p.y} stroke={m.status === 'alive' ? 'var(--line2)' : 'var(--bad)'} strokeWidth="1.5" strokeDasharray={m.voter ? undefined : '4 4'} /> })}
      {members.map((m) => {
        const p = at.get(m.id)!
        return (
          <g key={m.id} transform={`translate(${p.x} ${p.y})`} className={inkOf[meaningOf(m.status)]}>
            <rect x="-58" y="-24" width="116" height="48" rx="6" fill="var(--ground)" stroke={m.here ? 'var(--accent)' : 'var(--line2)'} strokeWidth={m.here ? 2 : 1} />
            <circle cx="-42" cy="-7" r="4.5" fill="currentColor" />
            <text x="-31" y="-3" fontSize="13" fontWeight="550" fill="var(--ink)">{m.name.slice(0, 11)}</text>
            <text x="-46" y="14" fontSize="11" fill="var(--ink2)">{roleOf(m)} · {t.home.runs(m.runs)}</text>
          </g>
        )
      })}
    </svg>
  )
}

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
          <li key={c.name} className="grid min-h-9 grid-cols-[20px_96px_minmax(0,1fr)] items-center gap-3 border-b border-line px-4 py-1.5 text-sm last:border-0">
            <StatusMark status={c.level} bare /><span className="truncate">{words(c.name)}</span><span className="min-w-0 break-words text-ink2">{c.found}{c.do && <span className="text-ink3"> — {c.do}</span>}</span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
