// Messages between processes, node by node: what waits in inboxes, what is sent again, what could not be delivered.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { poll, useRead, useWrite } from '../../data'
import { number, sizeOf, words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Confirm } from '../../parts/overlay'
import { Empty, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { NodeChoice } from '../processes/page'
import { payloadText } from './payload'
import { Subscriptions } from './subscriptions'

type Inbox = Schemas['ApiInboxRows']['inboxes'][number]
type Parcel = Schemas['ApiOutboxRows']['messages'][number]
type Letter = Schemas['ApiLetterRows']['dead_letters'][number]
const x = tr.messages

const inboxes: Column<Inbox>[] = [
  { id: 'process', head: x.process, width: 'minmax(0,1fr)', cell: (r) => <code className="font-mono text-xs">{r.address}</code> },
  { id: 'queued', head: x.queued, width: '88px', right: true, cell: (r) => number(r.queued), sort: (a, b) => a.queued - b.queued },
  { id: 'taken', head: x.taken, width: '108px', right: true, from: 'tab', cell: (r) => number(r.taken) },
  { id: 'waiting', head: x.waiting, width: '108px', right: true, from: 'tab', cell: (r) => <span className={r.waiting > 0 ? 'font-strong text-warn' : ''}>{number(r.waiting)}</span>, sort: (a, b) => a.waiting - b.waiting },
  { id: 'credits', head: x.credits, width: '72px', right: true, cell: (r) => number(r.credits) },
  { id: 'bytes', head: x.bytes, width: '84px', right: true, from: 'tab', cell: (r) => sizeOf(r.bytes) },
]
const outbox: Column<Parcel>[] = [
  { id: 'to', head: x.to, width: 'minmax(0,0.6fr)', cell: (p) => <code className="font-mono text-xs">{p.message.to}</code> },
  { id: 'from', head: x.from, width: '88px', from: 'tab', cell: (p) => <code className="font-mono text-xs text-ink2">{p.message.from}</code> },
  { id: 'text', head: x.text, width: 'minmax(0,1fr)', from: 'desk', cell: (p) => <span className="text-ink2">{payloadText(p.message.payload)}</span> },
  { id: 'durable', head: x.durable, width: '84px', from: 'tab', cell: (p) => (p.message.durable ? x.isDurable : x.isReliable) },
  { id: 'attempts', head: x.attempts, width: '72px', right: true, cell: (p) => p.attempts },
  { id: 'why', head: x.why, width: 'minmax(0,0.8fr)', from: 'desk', cell: (p) => <span className="text-ink2">{p.why}</span> },
  { id: 'next', head: x.next, width: '72px', right: true, cell: (p) => <span className="text-xs text-ink3"><Time at={p.next_attempt} /></span> },
]

export function Page() {
  const go = useNavigate()
  const { node } = useSearch({ strict: false }) as { node?: string }
  const [sending, setSending] = useState(false)
  const all = useRead(keys.kernel('inboxes', node), '/api/v1/ipc/inboxes', { query: { node } }, { refetchInterval: poll })
  const parcels = useRead(keys.kernel('outbox', node), '/api/v1/ipc/outbox', { query: { node } }, { refetchInterval: poll })
  const send = useWrite<Values, Schemas['ApiMessageSent']>({
    call: (v) => post('/api/v1/ipc/send', {}, { to: String(v['to']).trim(), ...(v['json'] ? { json: JSON.parse(String(v['text'])) as unknown } : { text: String(v['text']) }), ...(v['how'] === 'reliable' ? { reliable: true } : v['how'] === 'durable' ? { durable: true } : {}) }),
    reread: () => [keys.kernel('inboxes'), keys.kernel('outbox'), keys.kernel('letters')], onDone: (a) => { setSending(false); toast({ text: x.sent(words(a.state)) }) },
  })
  return (
    <Frame title={x.title} command={`selvage ipc inbox${node ? ` --node ${node}` : ''}`} tools={<Button look="primary" icon="plus" onClick={() => setSending(true)}>{x.send}</Button>}
      bar={<NodeChoice value={node} onChange={(to) => void go({ to: '.', search: (to ? { node: to } : {}) as never, replace: true })} any={tr.processes.thisNode} />}>
      <div className="flex w-full max-w-page flex-col gap-6 p-4">
        <DeadLetters node={node} />
        <Section title={x.outbox}><Loaded of={{ ...parcels, data: parcels.data?.messages }} rows={2}>{(rows) => rows.length === 0 ? <p className="text-sm text-ink2">{x.noOutbox}</p> : <Box><Table label={x.outbox} rows={rows} columns={outbox} keyOf={(p) => p.message.id} dense /></Box>}</Loaded></Section>
        <Section title={x.inboxes}><Loaded of={{ ...all, data: all.data?.inboxes }} rows={4}>{(rows) => rows.length === 0 ? <Empty icon="inbox" title={x.noInboxes} why={x.inboxesWhy} /> : <Box><Table label={x.inboxes} rows={rows} columns={inboxes} keyOf={(r) => r.address} dense /></Box>}</Loaded></Section>
        {!node && <Subscriptions />}
      </div>
      {sending && <FormDialog title={x.send} action={x.send} size="medium" busy={send.isPending} initial={{ how: 'once' }} onClose={() => setSending(false)} onSave={(v) => send.mutate(v)}
        schema={{ required: ['to', 'text', 'how'], properties: { to: { type: 'string', title: x.to, description: x.toHint }, text: { type: 'string', format: 'multiline', title: x.text }, json: { type: 'boolean', title: tr.topics.json }, how: { type: 'string', title: x.how, enum: Object.keys(x.hows), labels: x.hows } } }} />}
    </Frame>
  )
}

const Box = ({ children }: { children: React.ReactNode }) => <div className="flex max-h-[50vh] flex-col overflow-hidden rounded border border-line">{children}</div>

/** What could not be delivered, with the reason: it is sent again, or deleted. */
function DeadLetters({ node }: { node: string | undefined }) {
  const all = useRead(keys.kernel('letters', node), '/api/v1/ipc/dead-letters', { query: { node } }, { refetchInterval: poll })
  const [asking, setAsking] = useState(false)
  const reread = () => [keys.kernel('letters'), keys.kernel('inboxes'), keys.kernel('outbox')]
  const again = useWrite<number[], Schemas['ApiLettersReplayed']>({ call: (numbers) => post('/api/v1/ipc/dead-letters/replay', { query: { node } }, numbers.length > 0 ? { numbers } : {}), reread, onDone: (a) => toast({ text: x.again(a.sent, a.failed), ...(a.failed > 0 ? { bad: true } : {}) }) })
  const purge = useWrite<undefined, unknown>({ call: () => del('/api/v1/ipc/dead-letters', { query: { node } }), reread, onDone: () => { setAsking(false); toast({ text: x.purged }) } })
  const rows = all.data?.dead_letters ?? []
  return (
    <Section title={x.letters} aside={rows.length > 0 && <><Button small busy={again.isPending} onClick={() => again.mutate([])}>{x.replayAll}</Button><Button small look="danger" onClick={() => setAsking(true)}>{x.purge}</Button></>}>
      <Loaded of={all} rows={2}>{() => rows.length === 0 ? <p className="text-sm text-ink2">{x.noLetters}</p> : (
        <ul aria-label={x.letters} className="rounded border border-line">{[...rows].reverse().map((l) => <One key={l.number} letter={l} busy={again.isPending} onAgain={() => again.mutate([l.number])} />)}</ul>
      )}</Loaded>
      <Confirm open={asking} onClose={() => setAsking(false)} title={x.purgeAsk} body={x.purgeBody} action={x.purge} busy={purge.isPending} onConfirm={() => purge.mutate(undefined)} />
    </Section>
  )
}

function One({ letter: l, busy, onAgain }: { letter: Letter; busy: boolean; onAgain: () => void }) {
  return (
    <li data-letter={l.number} className="border-b border-line px-3 py-2 text-sm last:border-0">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <StatusMark status="bad" label={x.reasons[l.reason] ?? words(l.reason)} /><code className="font-mono text-xs">{l.message.from} → {l.message.to}</code>{l.message.durable && <Badge>{x.isDurable}</Badge>}<Id id={l.message.id} />
        <span className="ml-auto text-xs text-ink3"><Time at={l.at} /></span><Button small busy={busy} onClick={onAgain}>{x.replay}</Button>
      </div>
      <p className="text-ink2">{l.detail}</p>
      <pre className="max-h-32 overflow-auto whitespace-pre-wrap break-words font-mono text-xs text-ink2">{payloadText(l.message.payload)}{l.cut ? '…' : ''}</pre>
    </li>
  )
}
