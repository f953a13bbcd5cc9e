// Topics of the mesh and of the company: what each keeps, and at their side the messages as they come.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useNames, useRead, useWrite } from '../../data'
import { number, sizeOf } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, post, put, seenHeight, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Input } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { useFlashing } from '../../parts/flash'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm, Menu } from '../../parts/overlay'
import { Empty, ErrorBox, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { ScopeChoice, useScope } from './scope'
import { mostKept, useTail, type Message } from './tail'

type Topic = Schemas['Topic']
const x = tr.topics
const back = 10_000 // entries before the newest, of which messages are shown at first

export function Page() {
  const go = useNavigate()
  const { of, pattern = '' } = useSearch({ strict: false }) as { of?: string; pattern?: string }
  const set = (next: { of?: string; pattern?: string }) => void go({ to: '.', search: Object.fromEntries(Object.entries({ of, pattern, ...next }).filter(([, v]) => v)) as never, replace: true })
  const scope = useScope(of)
  const { companyId, flag } = scope
  const all = useRead(keys.topics(companyId ?? 'mesh'), '/api/v1/topics', { query: { companyId } })
  const [publishing, setPublishing] = useState(false)
  const publish = useWrite<Values, Schemas['Published']>({
    call: (v) => post('/api/v1/topics/{topic}', { path: { topic: String(v['topic']) } }, { ...(companyId ? { companyId } : {}), ...(v['json'] ? { payload: JSON.parse(String(v['text'])) as unknown } : { text: String(v['text']) }) }),
    reread: () => [keys.topics(companyId ?? 'mesh')], onDone: (a) => { setPublishing(false); toast({ text: x.published(a.topic) }) },
  })
  return (
    <Frame title={x.title} command={pattern ? `selvage topic read '${pattern}'${flag}` : `selvage topic list${flag}`} tools={<Button look="primary" icon="plus" onClick={() => setPublishing(true)}>{x.publish}</Button>}
      bar={<>
        <ScopeChoice scope={scope} onChange={(to) => set({ of: to, pattern: '' })} />
        <Follow key={pattern} pattern={pattern} onChange={(p) => set({ pattern: p })} />
      </>}>
      <div className="grid w-full max-w-page gap-x-8 gap-y-6 p-4 desk:grid-cols-[400px_minmax(0,1fr)]">
        <div className="flex min-w-0 flex-col gap-6">
          <Section title={x.title}><Loaded of={all} rows={4}>{(page) => page.topics.length === 0 ? <Empty icon="topics" title={x.empty} why={x.emptyWhy} /> : <ul aria-label={x.title} className="rounded border border-line">{page.topics.map((topic) => <One key={topic.topic} topic={topic} companyId={companyId} on={pattern === topic.topic} onOpen={() => set({ pattern: pattern === topic.topic ? '' : topic.topic })} />)}</ul>}</Loaded></Section>
          <Subscriptions companyId={companyId} />
        </div>
        <Messages key={`${companyId ?? 'mesh'} ${pattern}`} pattern={pattern || '**'} companyId={companyId} />
      </div>
      {publishing && <FormDialog title={x.publish} action={x.publish} size="medium" busy={publish.isPending} initial={/[*+>#]/.test(pattern) ? {} : { topic: pattern }} onClose={() => setPublishing(false)} onSave={(v) => publish.mutate(v)} check={(v): Record<string, string> => (v['json'] && !isJson(String(v['text'] ?? '')) ? { text: x.noJson } : {})}
        schema={{ required: ['topic', 'text'], properties: { topic: { type: 'string', title: x.topic }, text: { type: 'string', format: 'multiline', title: x.text }, json: { type: 'boolean', title: x.json } } }} />}
    </Frame>
  )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** The pattern that is followed: it holds when Enter is pressed. */
function Follow({ pattern, onChange }: { pattern: string; onChange: (pattern: string) => void }) {
  const [text, setText] = useState(pattern)
  return (
    <form className="flex items-center gap-1.5" onSubmit={(e) => { e.preventDefault(); onChange(text.trim()) }}>
      <Input data-find aria-label={x.pattern} placeholder={x.pattern} title={x.patternHint} value={text} onChange={(e) => setText(e.target.value)} className="!w-44 shrink-0 font-mono text-xs tab:!w-64" />
      {pattern && <Button small icon="close" onClick={() => onChange('')}>{x.clear}</Button>}
    </form>
  )
}

function One({ topic, companyId, on, onOpen }: { topic: Topic; companyId: string | undefined; on: boolean; onOpen: () => void }) {
  const path = { path: { topic: topic.topic }, query: { companyId } }
  const [open, setOpen] = useState<'keep' | 'remove'>()
  const done = (text: string) => () => { setOpen(undefined); toast({ text }) }
  const reread = () => [keys.topics(companyId ?? 'mesh')]
  const keep = useWrite<Values, unknown>({ call: (v) => put('/api/v1/topics/{topic}', path, v), reread, onDone: done(x.retained) })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/v1/topics/{topic}', path), reread, onDone: done(x.removed(topic.topic)) })
  return (
    <li className={`flex items-center gap-1 border-b border-line pr-1 last:border-0 ${on ? 'bg-ground3' : ''}`}>
      <button type="button" aria-pressed={on} onClick={onOpen} className="flex min-h-10 min-w-0 grow items-center gap-3 px-3 py-1 text-left text-sm hover:bg-ground2"><code className="min-w-0 grow truncate font-mono text-xs">{topic.topic}</code><span className="text-xs text-ink2">{number(topic.messages)}</span><span className="text-xs text-ink3 max-tab:hidden">{sizeOf(topic.bytes)}</span><span className="text-xs text-ink3"><Time at={topic.lastAt} /></span></button>
      <Menu align="end" label={topic.topic} items={[{ label: x.retention, onSelect: () => setOpen('keep') }, null, { label: x.remove, danger: true, onSelect: () => setOpen('remove') }]}><IconButton small icon="more" label={`${t.common.actions}: ${topic.topic}`} /></Menu>
      {open === 'keep' && <FormDialog title={`${x.retention}: ${topic.topic}`} action={t.common.save} busy={keep.isPending} initial={{ messages: topic.keep.messages, bytes: topic.keep.bytes, seconds: topic.keep.seconds }} onClose={() => setOpen(undefined)} onSave={(v) => keep.mutate(v)}
        schema={{ properties: { messages: { type: 'integer', minimum: 1, title: x.most }, bytes: { type: 'integer', minimum: 1, title: x.bytes }, seconds: { type: 'integer', minimum: 1, title: x.seconds } } }} />}
      <Confirm open={open === 'remove'} onClose={() => setOpen(undefined)} title={x.removeAsk(topic.topic)} body={x.removeBody} action={x.remove} busy={remove.isPending} onConfirm={() => remove.mutate(undefined)} />
    </li>
  )
}

function Messages({ pattern, companyId }: { pattern: string; companyId: string | undefined }) {
  const [from, setFrom] = useState(() => Math.max(1, seenHeight() - back))
  const tail = useTail(pattern, companyId, from)
  const flashing = useFlashing(tail.messages.length > 0 ? tail.messages : undefined, (m) => String(m.height), () => '')
  return (
    <Section title={x.follow} aside={<>{from > 1 && <Button small look="quiet" onClick={() => setFrom(1)}>{x.earlier}</Button>}<span data-tail={tail.state}><StatusMark status={tail.state === 'live' ? 'running' : 'pending'} label={tail.state === 'live' ? x.live : x.again} /></span></>}>
      {tail.error !== undefined ? <ErrorBox error={tail.error} /> : tail.messages.length === 0 ? <p className="rounded border border-line px-3 py-6 text-center text-sm text-ink2">{x.waits}</p> : (
        <ul aria-label={x.follow} aria-live="polite" className="rounded border border-line">{tail.messages.map((m) => <Said key={m.height} message={m} companyId={companyId} flash={flashing.has(String(m.height))} />)}</ul>
      )}
      {tail.messages.length === mostKept && <p className="mt-1 text-xs text-ink3">{x.more(number(mostKept))}</p>}
    </Section>
  )
}

/** Who said it: an agent or a person by name, a process by its address. */
function From({ from, companyId }: { from: string; companyId: string | undefined }) {
  const names = useNames(companyId)
  const at = from.indexOf(':')
  const [kind, id] = [from.slice(0, at), from.slice(at + 1)]
  if (kind !== 'agent' && kind !== 'user') return <Id id={from} text={from} />
  const { name } = names(id)
  return <Who id={id} name={name} person={kind === 'user'} />
}

function Said({ message: m, companyId, flash }: { message: Message; companyId: string | undefined; flash: boolean }) {
  return (
    <li data-message={m.height} className={`border-b border-line px-3 py-2 last:border-0 ${flash ? 'flash' : ''}`}>
      <p className="flex flex-wrap items-center gap-x-3 text-xs text-ink3"><code className="font-mono text-ink2">{m.topic}</code><span>{x.number(number(m.number))}</span><From from={m.from} companyId={companyId} /><span className="ml-auto"><Time at={m.at} /></span></p>
      <pre className={`mt-0.5 max-h-60 overflow-auto whitespace-pre-wrap break-words text-sm ${m.json ? 'font-mono text-xs' : 'font-sans'}`}>{m.json ? JSON.stringify(m.payload, null, 2) : m.text}</pre>
    </li>
  )
}

function Subscriptions({ companyId }: { companyId: string | undefined }) {
  const key = keys.topics(companyId ?? 'mesh', 'subscriptions')
  const all = useRead(key, '/api/v1/subscriptions', { query: { companyId } })
  const [adding, setAdding] = useState(false)
  const reread = () => [key]
  const add = useWrite<Values, unknown>({ call: (v) => put('/api/v1/subscriptions/{subscription}', { path: { subscription: String(v['name']) }, query: { companyId } }, { pattern: String(v['pattern']), ...(v['from'] === undefined ? {} : { from: Number(v['from']) }) }), reread, onDone: () => { setAdding(false); toast({ text: x.subscribed }) } })
  const drop = useWrite<string, unknown>({ call: (subscription) => del('/api/v1/subscriptions/{subscription}', { path: { subscription }, query: { companyId } }), reread, onDone: () => toast({ text: x.unsubscribed }) })
  return (
    <Section title={x.subscriptions} aside={<Button small icon="plus" onClick={() => setAdding(true)}>{x.subscribe}</Button>}>
      <Loaded of={all} rows={2}>{({ subscriptions }) => subscriptions.length === 0 ? <p className="text-sm text-ink2">{x.noSubscriptions}</p> : <Lines label={x.subscriptions}>{subscriptions.map((s) => <LineOf key={s.subscription}><Front><span className="font-strong">{s.subscription}</span> <code className="font-mono text-xs text-ink2">{s.pattern}</code></Front><span className="text-xs text-ink3" title={x.position}>{number(s.position)}</span><IconButton small icon="close" label={`${x.unsubscribe}: ${s.subscription}`} onClick={() => drop.mutate(s.subscription)} /></LineOf>)}</Lines>}</Loaded>
      {adding && <FormDialog title={x.subscribe} action={x.subscribe} busy={add.isPending} onClose={() => setAdding(false)} onSave={(v) => add.mutate(v)} schema={{ required: ['name', 'pattern'], properties: { name: { type: 'string', title: x.name }, pattern: { type: 'string', title: x.pattern, description: x.patternHint }, from: { type: 'integer', minimum: 0, title: x.from, description: x.fromHint } } }} />}
    </Section>
  )
}
