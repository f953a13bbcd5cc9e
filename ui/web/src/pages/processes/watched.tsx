// What a process is told of others: links, by which it ends with them, and monitors, by which it is told of their end.
import { useState } from 'react'
import { keys } from '../../cache'
import { poll, useRead, useWrite } from '../../data'
import { del, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Section } from '../../parts/states'
import { Badge } from '../../parts/status'
import { toast } from '../../parts/toast'
import { tr } from '../../text/en.rooms'
import type { Row } from './words'

const x = tr.watched

/** watchesOf are the links of a process, and then its monitors, each with the address of the other; those of other nodes come last. */
export function watchesOf(all: Schemas['ApiWatches'], node: string): { of: string; ref: string }[] {
  const far = all.far.map((f) => ({ of: f.process, ref: f.ref }))
  return [...all.links.map((pid) => ({ of: `${node}:${pid}`, ref: '' })), ...all.monitors.map((m) => ({ of: `${node}:${m.process}`, ref: m.ref })), ...far]
}

/** Links and monitors are of one node, and that node alone tells them: no entry of the chain does. */
export function Watched({ row: r }: { row: Row }) {
  const query = { process: r.pid }
  const key = keys.kernel('links', r.address)
  const all = useRead(key, '/api/v1/ipc/links', { query }, { refetchInterval: poll }).data
  const [adding, setAdding] = useState(false)
  const reread = () => [key]
  const add = useWrite<Values, unknown>({ call: (v) => { const body = { to: String(v['to']).trim() }; return v['how'] === 'link' ? post('/api/v1/ipc/links', { query }, body) : post('/api/v1/ipc/monitors', { query }, body) }, reread, onDone: () => { setAdding(false); toast({ text: x.added }) } })
  const unlink = useWrite<string, unknown>({ call: (of) => del('/api/v1/ipc/links/{link}', { path: { link: of }, query }), reread, onDone: () => toast({ text: x.dropped }) })
  const drop = useWrite<string, unknown>({ call: (ref) => del('/api/v1/ipc/monitors/{monitor}', { path: { monitor: ref }, query }), reread, onDone: () => toast({ text: x.dropped }) })
  if (!all) return null
  const watches = watchesOf(all, r.node)
  return (
    <Section title={x.title} aside={<Button small icon="plus" onClick={() => setAdding(true)}>{x.add}</Button>}>
      {watches.length === 0 ? <p className="text-sm text-ink2">{x.none}</p> : (
        <Lines label={x.title}>
          {watches.map((w) => <LineOf key={w.of + w.ref}><Front><code className="font-mono text-xs">{w.of}</code></Front><Badge>{w.ref ? x.monitor : x.link}</Badge><IconButton small icon="close" label={w.ref ? x.demonitor : x.unlink} onClick={() => (w.ref ? drop.mutate(w.ref) : unlink.mutate(w.of))} /></LineOf>)}
        </Lines>
      )}
      {adding && <FormDialog title={x.add} action={x.add} busy={add.isPending} initial={{ how: 'monitor' }} onClose={() => setAdding(false)} onSave={(v) => add.mutate(v)}
        schema={{ required: ['to', 'how'], properties: { to: { type: 'string', title: x.to, description: x.toHint }, how: { type: 'string', title: x.how, enum: Object.keys(x.hows), labels: x.hows } } }} />}
    </Section>
  )
}
