// Declared processes: how many of each the mesh keeps, where they run, and what happened to them.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { del, type Schemas } from '../../http'
import { sizeOf } from '../../format'
import { Button } from '../../parts/button'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm } from '../../parts/overlay'
import { Empty, Facts, Loaded } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { ProcessForm } from './form'
import { lineOf, tookOf } from './words'

type Declaration = Schemas['ApiDeclaration']
const p = tr.processes

export function Declared() {
  const all = useRead(keys.kernel('declared'), '/api/v1/declared-processes')
  const [removing, setRemoving] = useState<Declaration>()
  const [changing, setChanging] = useState<Declaration>()
  const remove = useWrite<string, unknown>({ call: (name) => del('/api/v1/declared-processes/{name}', { path: { name } }), reread: () => [keys.kernel('declared'), keys.kernel('processes')], onDone: (_a, name) => { setRemoving(undefined); toast({ text: p.removed(name) }) } })
  return (
    <div className="w-full max-w-page p-4">
      <Loaded of={all} rows={4}>{(rows) => rows.length === 0 ? <Empty icon="processes" title={p.noDeclared} why={p.noDeclaredWhy} /> : (
        <ul className="flex flex-col gap-4">
          {rows.map((d) => (
            <li key={d.id} data-declared={d.name} className="rounded border border-line p-3">
              <div className="flex flex-wrap items-center gap-2">
                <h2 className="font-strong">{d.name}</h2><Badge>{p.kinds[d.backend] ?? d.backend}</Badge><StatusMark status={d.running === d.replicas ? 'ok' : 'warn'} label={p.running(d.running, d.replicas)} />
                <span className="ml-auto flex gap-2"><Button small onClick={() => setChanging(d)}>{p.redeclare}</Button><Button small look="danger" onClick={() => setRemoving(d)}>{p.remove}</Button></span>
              </div>
              <code className="mt-1 block truncate font-mono text-xs text-ink2">{d.image || lineOf(d.command)}</code>
              <div className="mt-3 grid gap-4 items-start desk:grid-cols-[280px_minmax(0,1fr)]">
                <Facts rows={[d.app !== '' && [p.app, d.app], [p.restart, p.restarts5[d.restart] ?? d.restart], d.group !== '' && [p.group, d.group], d.limits.max_memory_bytes > 0 && [p.limit['memory'] ?? '', sizeOf(d.limits.max_memory_bytes)], d.limits.max_cpu_time_ms > 0 && [p.limit['cpu'] ?? '', tookOf(d.limits.max_cpu_time_ms)], d.labels.length > 0 && [p.labels, d.labels.join(', ')], d.env.length > 0 && [p.env, d.env.join(', ')], [p.generation, d.generation], [p.by, <Id id={d.declared_by} />], [p.changed, <Time at={d.updated_at} />]]} />
                <Lines label={p.instances}>
                  {d.instances.map((i, at) => <LineOf key={at}><Front><StatusMark status={i.state} label={p.states[i.state] ?? i.state} /> {i.error && <span className="text-bad">{i.error}</span>}</Front>{i.address ? <Link to="/mesh/processes" search={{ show: i.address } as never} className="font-mono text-xs text-accent hover:underline">{i.address}</Link> : <span className="text-xs text-ink3">{i.node}</span>}<span className="text-xs text-ink3">{p.restarts} {i.restarts} · {p.failovers} {i.failovers}</span></LineOf>)}
                </Lines>
              </div>
            </li>
          ))}
        </ul>
      )}</Loaded>
      {changing && <ProcessForm declared of={changing} onClose={() => setChanging(undefined)} />}
      <Confirm open={!!removing} onClose={() => setRemoving(undefined)} title={p.removeAsk(removing?.name ?? '')} body={p.removeBody} action={p.remove} busy={remove.isPending} onConfirm={() => removing && remove.mutate(removing.name)} />
    </div>
  )
}
