// Which topics come into inboxes of the node of this page.
import { useState } from 'react'
import { keys } from '../../cache'
import { poll, useRead, useWrite } from '../../data'
import { number } from '../../format'
import { del, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Loaded, Section } from '../../parts/states'
import { Badge } from '../../parts/status'
import { toast } from '../../parts/toast'
import { tr } from '../../text/en.rooms'

type Subscription = Schemas['InboxSubscription']
const x = tr.subscriptions

export function Subscriptions() {
  const key = keys.kernel('subscriptions')
  const all = useRead(key, '/api/v1/ipc/subscriptions', {}, { refetchInterval: poll })
  const [adding, setAdding] = useState(false)
  const reread = () => [key]
  const add = useWrite<Values, unknown>({ call: (v) => post('/api/v1/ipc/subscriptions', { query: { process: Number(v['process']) } }, { pattern: String(v['pattern']).trim(), ...(v['name'] ? { name: String(v['name']).trim() } : {}), ...(v['from'] === undefined || v['from'] === '' ? {} : { from: Number(v['from']) }) }), reread, onDone: () => { setAdding(false); toast({ text: tr.topics.subscribed }) } })
  const drop = useWrite<Subscription, unknown>({ call: (s) => del('/api/v1/ipc/subscriptions/{subscription}', { path: { subscription: s.id }, query: { process: s.process } }), reread, onDone: () => toast({ text: tr.topics.unsubscribed }) })
  return (
    <Section title={x.title} aside={<Button small icon="plus" onClick={() => setAdding(true)}>{x.add}</Button>}>
      <Loaded of={{ ...all, data: all.data?.subscriptions }} rows={2}>{(rows) => rows.length === 0 ? <p className="text-sm text-ink2">{x.none}</p> : (
        <Lines label={x.title}>{rows.map((s) => (
          <LineOf key={s.id}><Front><code className="font-mono text-xs">{s.pattern}</code>{s.name && <span className="ml-2 text-ink2">{s.name}</span>}</Front><Badge>{x.pid(String(s.process))}</Badge><span className="text-xs text-ink3">{x.upTo(number(s.position))}</span><IconButton small icon="close" label={x.drop(s.pattern)} onClick={() => drop.mutate(s)} /></LineOf>
        ))}</Lines>
      )}</Loaded>
      {adding && <FormDialog title={x.add} action={x.add} busy={add.isPending} onClose={() => setAdding(false)} onSave={(v) => add.mutate(v)}
        schema={{ required: ['process', 'pattern'], properties: { process: { type: 'integer', minimum: 1, title: x.process, description: x.processHint }, pattern: { type: 'string', title: x.pattern, description: x.patternHint }, name: { type: 'string', title: tr.topics.name, description: x.nameHint }, from: { type: 'integer', minimum: 0, title: tr.topics.from, description: tr.topics.fromHint } } }} />}
    </Section>
  )
}
