// The resource tree: what there is, its hashes up to the root, how agents score, and who may do what where.
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import { keys } from '../../cache'
import { useAgents, useCompanies, useRead, useWrite } from '../../data'
import { useMaybeCompany } from '../../company'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, get, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Bar } from '../../parts/charts'
import { Field, Input, Select } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { rem } from '../../parts/scale'
import { ErrorBox, Facts, Loaded, Rows, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { Icon } from '../../parts/icons'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { level } from '../govern/effect'
import { lastPart, nameOf, ways } from './paths'

type Vertex = Schemas['ApiTreeVertex']
type Grant = Schemas['ApiTreeGrant']
const x = tr.tree
const look = 60_000 // ms: events of this company and of the mesh read the root again, other companies tell nothing; what is below is read when the root is another one

function useChanged(root: string | undefined): void {
  const cache = useQueryClient()
  const before = useRef(root)
  useEffect(() => {
    if (before.current && root !== before.current) void cache.invalidateQueries({ queryKey: keys.govern('tree') })
    before.current = root
  }, [root, cache])
}

export function Page() {
  const { path = '/' } = useSearch({ strict: false }) as { path?: string }
  const go = useNavigate()
  const open = (to: string) => void go({ to: '.', search: (to === '/' ? {} : { path: to }) as never, replace: true })
  const root = useRead(keys.govern('treeRoot'), '/api/v1/tree', { query: { path: '/', depth: 1 } }, { refetchInterval: look })
  useChanged(root.data?.root)
  const commit = useWrite<undefined, unknown>({ call: () => post('/api/v1/tree/commit'), reread: () => [keys.govern('treeRoot')], onDone: () => toast({ text: x.commitDone }) })
  const r = root.data
  return (
    <Frame title={x.title} command={path === '/' ? 'selvage tree' : `selvage tree ${path}`} tools={r && !r.unchanged && <Button busy={commit.isPending} onClick={() => commit.mutate(undefined)}>{x.commit}</Button>}
      bar={r && <span className="flex flex-wrap items-center gap-x-3 text-sm text-ink2 tab:flex-nowrap tab:whitespace-nowrap"><span>{x.root} <Id id={r.root} /></span><span>{number(r.vertices)} {x.vertices.toLowerCase()}</span><StatusMark status={r.unchanged ? 'ok' : 'pending'} label={r.unchanged ? x.unchanged : x.changed} />{r.committed && <span className="text-xs text-ink3">{x.committed} <Time at={r.committed.at} /></span>}</span>}>
      <div className="grid w-full max-w-page gap-x-8 gap-y-6 p-4 desk:grid-cols-[minmax(0,1fr)_400px]">
        <Section title={x.what}>
          <ul role="tree" aria-label={x.what} className="rounded border border-line py-1"><Branch path="/" kind="namespace" kids={r ? r.nodes[0]?.children ?? 0 : 1} depth={0} at={path} onOpen={open} start /></ul>
        </Section>
        <One key={path} path={path} onOpen={open} />
      </div>
    </Frame>
  )
}

/** One vertex as a line, and below it, once it is open, those below: each level is read when it is opened. */
function Branch({ path, kind, kids, depth, at, onOpen, start }: { path: string; kind: string; kids: number; depth: number; at: string; onOpen: (path: string) => void; start?: boolean }) {
  const [open, setOpen] = useState(start ?? ways(at).includes(path))
  const below = useRead(keys.govern('tree', path), '/api/v1/tree', { query: { path, depth: 1 } }, { enabled: open && kids > 0 })
  const names = useVertexNames()
  const pressed = (e: KeyboardEvent) => {
    if (e.key === 'ArrowRight' && kids > 0) setOpen(true)
    else if (e.key === 'ArrowLeft') setOpen(false)
    else if (e.key === 'Enter' || e.key === ' ') onOpen(path)
    else if (e.key === 'ArrowDown' || e.key === 'ArrowUp') move(e.currentTarget, e.key === 'ArrowDown' ? 1 : -1)
    else return
    e.preventDefault()
    e.stopPropagation()
  }
  return (
    <li role="none">
      <div role="treeitem" data-path={path} aria-level={depth + 1} aria-expanded={kids > 0 ? open : undefined} aria-selected={at === path} tabIndex={at === path || start ? 0 : -1} onKeyDown={pressed} onClick={() => onOpen(path)} style={{ paddingLeft: rem(8 + depth * 18) }}
        className={`flex h-8 cursor-pointer items-center gap-1.5 pr-3 text-sm outline-offset-[-2px] ${at === path ? 'bg-ground3' : 'hover:bg-ground2'}`}>
        {kids > 0 ? <span aria-hidden="true" title={open ? x.fold : x.unfold} onClick={(e) => { e.stopPropagation(); setOpen(!open) }} className={`inline-flex size-6 items-center justify-center rounded text-ink3 hover:bg-ground3 ${open ? 'rotate-90' : ''}`}><Icon name="right" size={12} /></span> : <span className="w-6" />}
        <span className="min-w-0 grow truncate">{nameOf(path, names)}</span>
        {kids > 0 && <span className="text-xs text-ink3">{number(kids)}</span>}<Badge>{kind}</Badge>
      </div>
      {open && kids > 0 && (
        <ul role="group">
          {below.error ? <li role="none"><ErrorBox error={below.error} /></li> : below.data === undefined ? <li role="none"><Rows n={2} /></li> : below.data.nodes.slice(1).map((v) => <Branch key={v.path} path={v.path} kind={v.kind} kids={v.children} depth={depth + 1} at={at} onOpen={onOpen} />)}
          {below.data?.more && <li role="none" className="px-4 py-1 text-xs text-ink3">{x.more}</li>}
        </ul>
      )}
    </li>
  )
}

/** move puts the focus on the next line of the tree that is on screen. */
function move(from: Element, by: 1 | -1): void {
  const all = [...(from.closest('[role=tree]')?.querySelectorAll<HTMLElement>('[role=treeitem]') ?? [])]
  all[all.indexOf(from as HTMLElement) + by]?.focus()
}

/** Companies and agents are called by their IDs in the tree; people know their names. */
function useVertexNames(): ReadonlyMap<string, string> {
  const companies = useCompanies().data ?? []
  const agents = useAgents(useMaybeCompany()?.id).data ?? []
  return new Map([...companies.map((c) => [c.id, c.name] as const), ...agents.map((a) => [a.id, a.name] as const)])
}

const scores = ['trust', 'performance', 'difficulty', 'reward', 'reliability', 'velocity'] as const

function One({ path, onOpen }: { path: string; onOpen: (path: string) => void }) {
  const read = useRead(keys.govern('tree', path), '/api/v1/tree', { query: { path, depth: 1 } })
  const names = useVertexNames()
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <nav aria-label={x.path} className="flex flex-wrap items-center gap-1 text-sm">{ways(path).map((p) => <span key={p} className="inline-flex items-center gap-1">{ways(p).length > 2 && <span aria-hidden="true" className="text-ink3">/</span>}<button type="button" onClick={() => onOpen(p)} className={`rounded px-1 hover:bg-ground3 ${p === path ? 'font-strong' : 'text-ink2'}`}>{nameOf(p, names)}</button></span>)}</nav>
      <Loaded of={read} rows={6}>{(tree) => { const v = tree.nodes[0]; return v && <VertexOf vertex={v} /> }}</Loaded>
      <Grants path={path} />
      <Access path={path} />
    </div>
  )
}

function VertexOf({ vertex: v }: { vertex: Vertex }) {
  const facts = Object.entries(v.metadata ?? {}).sort(([a], [b]) => a.localeCompare(b))
  return (
    <>
      <Facts rows={[[x.path, <code className="break-all font-mono text-xs">{v.path}</code>], [x.kind, v.kind], [x.hash, <Id id={v.merkle_hash} />], [x.below, number(v.children)], ...facts.map(([name, value]) => [name, <span className="break-words">{value}</span>] as const)]} />
      {v.kind === 'agent' && <Section title={x.scoring}><ul className="flex flex-col gap-2">{scores.map((s) => <li key={s} className="grid grid-cols-[96px_minmax(0,1fr)_40px] items-center gap-3 text-sm"><span className="text-ink2">{x.scores[s]}</span><Bar good value={v.scoring[s]} of={1} label={`${x.scores[s]} ${level(v.scoring[s])}`} /><span className="text-right">{level(v.scoring[s])}</span></li>)}</ul></Section>}
    </>
  )
}

function Grants({ path }: { path: string }) {
  const key = keys.govern('tree', ['grants', path])
  const all = useRead(key, '/api/v1/tree/grants', { query: { path } })
  const [adding, setAdding] = useState<Grant | 'new'>()
  const reread = () => [keys.govern('tree')]
  const add = useWrite<Values, unknown>({ call: (v) => post('/api/v1/tree/grants', {}, { path: adding && adding !== 'new' ? adding.path : path, subject: String(v['subject']), ...(v['deny'] ? { deny: true } : { role: v['role'] as 'viewer' }), ...(v['delegate'] ? { delegate: true } : {}), ...(v['until'] ? { until: new Date(String(v['until'])).toISOString() } : {}) }), reread, onDone: () => { setAdding(undefined); toast({ text: x.granted }) } })
  const drop = useWrite<Grant, unknown>({ call: (g) => del('/api/v1/tree/grants', { query: { path: g.path, subject: g.subject } }), reread, onDone: () => toast({ text: x.revoked }) })
  return (
    <Section title={x.policy} aside={<Button small icon="plus" onClick={() => setAdding('new')}>{x.grant}</Button>}>
      <Loaded of={all} rows={2}>{(rows) => rows.length === 0 ? <p className="text-sm text-ink2">{x.noGrants}. {x.noGrantsWhy}</p> : <Lines label={x.policy}>{rows.map((g) => <LineOf key={`${g.path} ${g.subject}`}><Front><Id id={g.subject} text={short(g.subject)} /></Front>{g.path !== path && <Id id={g.path} text={lastPart(g.path)} />}<Badge meaning={g.deny ? 'bad' : 'none'}>{g.deny ? x.denied : g.role}</Badge>{g.until && <span className="text-xs text-ink3">{x.until} <Time at={g.until} /></span>}<Button small onClick={() => setAdding(g)}>{t.common.edit}</Button><IconButton small icon="close" label={x.revoke} onClick={() => drop.mutate(g)} /></LineOf>)}</Lines>}</Loaded>
      {adding && <FormDialog title={adding === 'new' ? x.grant : x.regrant} {...(adding === 'new' ? {} : { action: t.common.save, initial: { subject: adding.subject, ...(adding.deny ? { deny: true } : { role: adding.role }), ...(adding.delegate ? { delegate: true } : {}), ...(adding.until ? { until: adding.until.slice(0, 10) } : {}) } })} busy={add.isPending} onClose={() => setAdding(undefined)} onSave={(v) => add.mutate(v)} head={<p className="text-sm text-ink2">{x.at} <code className="font-mono text-xs">{adding === 'new' ? path : adding.path}</code></p>}
        schema={(v) => ({ required: ['subject', ...(v['deny'] ? [] : ['role'])], properties: { ...(adding === 'new' ? { subject: { type: 'string', title: x.subject, description: x.subjectHint } } : {}), ...(v['deny'] ? {} : { role: { type: 'string', title: x.role, enum: Object.keys(x.roles), labels: x.roles } }), deny: { type: 'boolean', title: x.deny }, ...(v['deny'] ? {} : { delegate: { type: 'boolean', title: x.delegate } }), until: { type: 'string', format: 'date', title: x.until } } })} />}
    </Section>
  )
}

const short = (subject: string) => { const [kind = '', id = ''] = subject.split(':'); return id.length > 12 ? `${kind}:${id.slice(0, 8)}…` : subject }

function Access({ path }: { path: string }) {
  const [subject, setSubject] = useState('')
  const [action, setAction] = useState('read')
  const [said, setSaid] = useState<Schemas['ApiAccessAnswer']>()
  const [broken, setBroken] = useState<unknown>()
  const ask = () => { setBroken(undefined); get('/api/v1/tree/access', { query: { path, action, subject: subject.trim() } }).then(setSaid, (error: unknown) => { setSaid(undefined); setBroken(error) }) }
  return (
    <Section title={x.access}>
      <form className="flex flex-wrap items-end gap-2" onSubmit={(e) => { e.preventDefault(); ask() }}>
        <div className="min-w-40 grow"><Field label={x.subject}><Input value={subject} placeholder={x.me} onChange={(e) => setSubject(e.target.value)} /></Field></div>
        <Field label={x.action}><Select value={action} onChange={(e) => setAction(e.target.value)} choices={Object.entries(x.actions).map(([value, label]) => ({ value, label }))} /></Field>
        <Button type="submit">{x.ask}</Button>
      </form>
      {said && <p role="status" className="mt-2 text-sm"><StatusMark status={said.allowed ? 'permit' : 'deny'} label={(said.allowed ? x.may : x.mayNot)(subject.trim() || x.me, x.actions[said.action] ?? said.action)} /> <span className="text-ink2">{said.reason}</span></p>}
      {broken !== undefined && <ErrorBox error={broken} />}
    </Section>
  )
}
