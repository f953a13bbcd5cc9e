// Services of the mesh: their contracts, who provides them, how providers stand as far as this node knows, and calls.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { poll, useRead, useWrite } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, get, post, put, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm, Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { Methods } from './call'
import { methodsOf, wrongMethods } from './contract'

type Service = Schemas['ApiServiceRow']
const x = tr.services

const healthMark: Record<string, string> = { healthy: 'ok', degraded: 'warn', unhealthy: 'bad', unknown: 'idle' }
const breakerMark: Record<string, string> = { closed: 'ok', half_open: 'warn', open: 'bad' }
const Health = ({ of }: { of: string }) => <StatusMark status={healthMark[of] ?? 'note'} label={x.healths[of] ?? of} />

const columns: Column<Service>[] = [
  { id: 'name', head: x.name, width: 'minmax(0,1fr)', cell: (s) => <span className="font-strong">{s.name}</span>, sort: (a, b) => a.name.localeCompare(b.name) },
  { id: 'health', head: x.health, width: '120px', cell: (s) => <Health of={s.health} /> },
  { id: 'version', head: x.version, width: '96px', from: 'tab', cell: (s) => <code className="font-mono text-xs">{s.version}</code> },
  { id: 'provider', head: x.provider, width: 'minmax(0,0.7fr)', from: 'tab', cell: (s) => <code className="font-mono text-xs text-ink2">{s.provider}</code> },
  { id: 'methods', head: x.methods, width: 'minmax(0,1fr)', from: 'desk', cell: (s) => <span className="text-ink2">{s.methods.map((m) => m.name).join(', ')}</span> },
  { id: 'running', head: x.running, width: '88px', right: true, cell: (s) => <span className={s.providers.length === 0 ? 'font-strong text-warn' : ''}>{number(s.providers.length)}</span> },
]

export function Page() {
  const go = useNavigate()
  const { show } = useSearch({ strict: false }) as { show?: string }
  const set = (name: string | undefined) => void go({ to: '.', search: (name ? { show: name } : {}) as never, replace: true })
  // How providers stand is known by this node alone and is no event.
  const all = useRead(keys.kernel('services'), '/api/v1/services', {}, { refetchInterval: poll })
  const [editing, setEditing] = useState<Service | 'new'>()
  const one = all.data?.services.find((s) => s.name === show)
  return (
    <Frame title={x.title} command={show ? `selvage service show ${show}` : 'selvage service list'} scroll={false} tools={<Button look="primary" icon="plus" onClick={() => setEditing('new')}>{x.register}</Button>}
      drawer={one && <Drawer label={one.name} onClose={() => set(undefined)} head={one.name}><One key={one.name} service={one} onEdit={() => setEditing(one)} onGone={() => set(undefined)} /></Drawer>}>
      <Loaded of={{ ...all, data: all.data?.services }}>{(rows) => <Table label={x.title} rows={rows} columns={columns} keyOf={(s) => s.name} onOpen={(s) => set(s.name)} openKey={show} empty={<Empty icon="services" title={x.empty} why={x.emptyWhy} />} />}</Loaded>
      {editing && <Register of={editing === 'new' ? undefined : editing} onClose={() => setEditing(undefined)} />}
    </Frame>
  )
}

function One({ service: s, onEdit, onGone }: { service: Service; onEdit: () => void; onGone: () => void }) {
  const [removing, setRemoving] = useState(false)
  const reread = () => [keys.kernel('services')]
  const probe = useWrite<undefined, Schemas['ApiHealthAnswer']>({ call: () => get('/api/v1/services/{name}/health', { path: { name: s.name } }), reread, onDone: (a) => toast({ text: x.probed(s.name, x.healths[a.health] ?? a.health), bad: a.health === 'unhealthy' }) })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/v1/services/{name}', { path: { name: s.name } }), reread, onDone: () => { onGone(); toast({ text: x.removed(s.name) }) } })
  return (
    <div className="flex flex-col gap-5">
      <div className="flex flex-wrap gap-2"><Button busy={probe.isPending} onClick={() => probe.mutate(undefined)}>{x.probe}</Button><Button onClick={onEdit}>{x.again}</Button><Button look="danger" onClick={() => setRemoving(true)}>{x.remove}</Button></div>
      <Facts rows={[[x.health, <Health of={s.health} />], [x.version, <code className="font-mono text-xs">{s.version}</code>], [x.provider, <Link to="/mesh/processes" search={{ tab: 'declared' } as never} className="text-accent hover:underline">{s.provider}</Link>], [x.probeBy, s.probe || x.noProbe], [x.contract, <Id id={s.contract} />], [x.changed, <Time at={s.updatedAt} />], [x.by, <Id id={s.registeredBy} />]]} />
      <Section title={x.methods}>
        <Methods label={x.methods} all={s.methods} send={(method, params) => post('/api/v1/services/{name}/call', { path: { name: s.name } }, { method, ...params }).then(({ took_ms: took, ...a }) => ({ ...a, took }))} />
      </Section>
      <Section title={x.providers}>
        {s.providers.length === 0 ? <p className="text-sm text-ink2">{x.noProviders(s.provider)}</p> : (
          <Lines label={x.providers}>{s.providers.map((p) => (
            <LineOf key={p.address}>
              <Front><Link to="/mesh/processes" search={{ show: p.address } as never} className="font-mono text-xs text-accent hover:underline">{p.address}</Link></Front>
              <Health of={p.health} /><span data-breaker={p.breaker}><StatusMark status={breakerMark[p.breaker] ?? 'note'} label={x.breakers[p.breaker] ?? p.breaker} /></span>
              {(p.failures > 0 || p.failed_probes > 0 || p.error || p.probed_at) && <span className="w-full text-xs text-ink3">{p.failures > 0 && x.failures(p.failures)} {p.failed_probes > 0 && x.sick(p.failed_probes)} {p.error && <span className="break-words text-bad">{p.error}</span>} {p.probed_at && <>{x.probedAt} <Time at={p.probed_at} /></>}</span>}
            </LineOf>
          ))}</Lines>
        )}
        <p className="mt-1 text-xs text-ink3">{x.known}</p>
      </Section>
      <Confirm open={removing} onClose={() => setRemoving(false)} title={x.removeAsk(s.name)} body={x.removeBody} action={x.remove} busy={remove.isPending} onConfirm={() => remove.mutate(undefined)} />
    </div>
  )
}

function Register({ of: s, onClose }: { of: Service | undefined; onClose: () => void }) {
  const declared = useRead(keys.kernel('declared'), '/api/v1/declared-processes').data ?? []
  const save = useWrite<Values, Service>({
    call: (v) => put('/api/v1/services/{name}', { path: { name: String(v['name']).trim() } }, { version: String(v['version']).trim(), provider: String(v['provider']), methods: methodsOf(v['methods']), ...(v['probe'] ? { probe: String(v['probe']) } : {}) }),
    reread: () => [keys.kernel('services')], onDone: (made) => { onClose(); toast({ text: x.registered(made.name) }) },
  })
  const names = [...new Set([...declared.map((d) => d.name), ...(s ? [s.provider] : [])])].sort()
  return <FormDialog title={s ? x.again : x.register} action={x.register} size="medium" busy={save.isPending} onClose={onClose} onSave={(v) => save.mutate(v)} check={(v) => wrongMethods(v['methods'], x.badMethods)}
    initial={s ? { name: s.name, version: s.version, provider: s.provider, probe: s.probe, methods: s.methods.map(({ name, description, params, result }) => ({ name, ...(description ? { description } : {}), ...(params ? { params } : {}), ...(result ? { result } : {}) })) } : { version: '1', methods: [{ name: 'ping' }] }}
    head={names.length === 0 && <p className="text-sm text-warn">{x.noDeclared}</p>}
    schema={{ required: ['name', 'version', 'provider', 'methods'], properties: {
      ...(s ? {} : { name: { type: 'string', title: x.name } }), version: { type: 'string', title: x.version, description: x.versionHint }, provider: { type: 'string', title: x.provider, description: x.providerHint, enum: names },
      methods: { title: x.methods, description: x.methodsHint }, probe: { type: 'string', title: x.probeBy, description: x.probeHint } } }} />
}
