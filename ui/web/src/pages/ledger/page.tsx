// The chain: its entries as they come, each decoded, its hash computed and its signature checked in the browser.
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { keys } from '../../cache'
import { client, poll, say, useMembers, useMesh, useRead } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { line } from '../../live'
import { Button } from '../../parts/button'
import { Input } from '../../parts/form'
import { Drawer } from '../../parts/overlay'
import { Empty, ErrorBox, Facts, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { useStorePart } from '../../store'
import { t } from '../../text/en'
import { Broken } from './chain'
import { checkAll, checkOne, type Checked, type Progress } from './check'

type Entry = Schemas['ApiEntry']
const most = 500

const columns: Column<Entry>[] = [
  { id: 'height', head: t.ledger.height, width: '72px', cell: (e) => <span className="font-mono text-xs">{e.height}</span>, sort: (a, b) => a.height - b.height },
  { id: 'kind', head: t.ledger.kind, width: 'minmax(0,1fr)', cell: (e) => <code className="font-mono text-xs">{e.kind}</code>, sort: (a, b) => a.kind.localeCompare(b.kind) },
  { id: 'outcome', head: t.ledger.outcome, width: '112px', from: 'tab', cell: (e) => <StatusMark status={outcomeMark[e.outcome] ?? 'note'} label={t.ledger.outcomes[e.outcome] ?? e.outcome} /> },
  { id: 'actor', head: t.ledger.actor, width: '168px', from: 'tab', cell: (e) => <span className="truncate text-ink2"><Actor of={e} /></span>, text: (e) => `${e.actor.type} ${e.actor.id}` },
  { id: 'hash', head: t.ledger.hash, width: '140px', from: 'desk', cell: (e) => <Id id={e.hash} /> },
  { id: 'time', head: t.ledger.time, width: '72px', right: true, cell: (e) => <span className="text-xs text-ink3"><Time at={e.time} /></span> },
]
const outcomeMark: Record<string, string> = { applied: 'ok', denied: 'bad', deferred: 'pending' }

/** A node is told by its name, as everywhere; its ID stands beside it where one entry is shown. */
function Actor({ of: { actor }, id }: { of: Entry; id?: boolean }) {
  const name = useMembers().data?.find((m) => actor.type === 'node' && m.id === actor.id)?.name
  return <>{actor.type} {name && <span title={actor.id}>{name} </span>}{(!name || id) && <Id id={actor.id} />}</>
}

/** matches says whether an entry has a text in its kind, actor or what it changed. */
export const matches = (e: Entry, q: string) => `${e.kind} ${e.actor.type} ${e.actor.id} ${e.runId} ${e.outcome} ${e.changes.map((c) => `${c.action} ${c.entityType} ${c.entityId}`).join(' ')}`.toLowerCase().includes(q.toLowerCase())

export function Page() {
  const go = useNavigate()
  const { q = '', show } = useSearch({ strict: false }) as { q?: string; show?: number }
  const height = useHeight()
  const after = Math.max(0, height - most)
  const entries = useRead(keys.mesh('entries'), '/api/v1/mesh/ledger/entries', { query: { after, limit: most } }, { enabled: height > 0 })
  const before = useRef(height)
  useEffect(() => {
    if (before.current > 0 && before.current !== height) void client.invalidateQueries({ queryKey: keys.mesh('entries') })
    before.current = height
  }, [height])
  const set = (next: { q?: string; show?: number | undefined }) => void go({ to: '.', search: Object.fromEntries(Object.entries({ q, show, ...next }).filter(([, v]) => v)) as never, replace: true })
  const rows = (entries.data ?? []).filter((e) => q === '' || matches(e, q)).reverse()
  const one = useRead([...keys.mesh('entry'), show], '/api/v1/mesh/ledger/entries/{height}', { path: { height: String(show ?? '') } }, { enabled: show !== undefined })
  const check = useCheck()
  return (
    <Frame title={t.nav.ledger} command="selvage ledger verify" scroll={false}
      tools={check.running ? <Button onClick={check.stop}>{t.common.cancel}</Button> : <Button look="primary" onClick={() => check.start()}>{t.ledger.checkHere}</Button>}
      bar={<><Input data-find type="search" aria-label={t.ledger.find} placeholder={t.ledger.find} value={q} onChange={(e) => set({ q: e.target.value })} className="max-w-[280px]" /><Told check={check} /></>}
      drawer={show !== undefined && <Drawer label={t.ledger.height} onClose={() => set({ show: undefined })} head={<span>{t.ledger.height} {number(show)}</span>}><Loaded of={one} rows={6}>{(e) => <One key={e.height} entry={e} onCheck={() => check.start(e.index - 1)} />}</Loaded></Drawer>}>
      <Loaded of={entries.data ? { ...entries, data: rows } : { ...entries, data: undefined }}>
        {(all) => <Table label={t.nav.ledger} rows={all} columns={columns} keyOf={(e) => String(e.height)} onOpen={(e) => set({ show: e.height })} openKey={show === undefined ? undefined : String(show)} empty={<Empty icon="ledger" title={q ? t.common.nothingFound : t.ledger.empty} why={q ? t.ledger.newest(most) : t.ledger.emptyWhy} />} />}
      </Loaded>
    </Frame>
  )
}

const settled = 1_000 // ms: entries are read at most this often, however many come

/** useHeight is the newest height that the event stream told, or a look at the mesh: entries of other companies are no events here. */
function useHeight(): number {
  const mesh = useMesh(poll).data?.height ?? 0
  const told = useStorePart(line, (l) => l.height)
  const height = Math.max(mesh, told)
  const [shown, setShown] = useState(height)
  const newest = useRef(height)
  newest.current = height
  const waits = height > shown
  useEffect(() => {
    if (!waits) return
    const timer = setTimeout(() => setShown(newest.current), shown === 0 ? 0 : settled)
    return () => clearTimeout(timer)
  }, [waits, shown])
  return shown
}

interface Check { running: boolean; progress?: Progress | undefined; done?: Checked | undefined; broken?: unknown; start: (from?: number) => void; stop: () => void }

function useCheck(): Check {
  const [state, setState] = useState<{ running: boolean; progress?: Progress; done?: Checked; broken?: unknown }>({ running: false })
  const stopping = useRef<AbortController>(undefined)
  useEffect(() => () => stopping.current?.abort(), [])
  const start = (from = 0) => {
    const stop = new AbortController()
    stopping.current = stop
    setState({ running: true })
    checkAll((progress) => setState({ running: true, progress }), stop.signal, from)
      .then((done) => setState({ running: false, done }), (broken: unknown) => setState(stop.signal.aborted ? { running: false } : { running: false, broken }))
  }
  return { ...state, start, stop: () => stopping.current?.abort() }
}

/** What the check found, in words. */
function Told({ check: { running, progress, done, broken } }: { check: Check }) {
  if (broken instanceof Broken) return <span role="alert" className="whitespace-nowrap text-sm"><StatusMark status="bad" label={t.ledger.brokenAt(broken.height, broken.message)} /></span>
  if (broken !== undefined) return <span role="alert" className="text-sm text-bad">{broken instanceof Error ? broken.message : String(broken)}</span>
  if (running) return <span role="status" className="flex items-center gap-2 whitespace-nowrap text-sm text-ink2"><progress className="h-1.5 w-32 accent-(--accent)" max={progress?.of ?? 1} value={progress?.chain.height ?? 0} aria-label={t.ledger.checkHere} />{progress && t.ledger.upTo(number(progress.chain.height), number(progress.of))}</span>
  if (!done) return <span className="whitespace-nowrap text-xs text-ink3 max-desk:hidden">{t.ledger.checkWhy}</span>
  return (
    <span role="status" className="whitespace-nowrap text-sm" data-checked={done.chain.height}>
      <StatusMark status={done.signatures && done.chain.unchecked === 0 ? 'ok' : 'warn'} label={[t.ledger.holds(number(done.chain.batches), number(done.chain.height), number(done.chain.signed)), !done.signatures ? t.ledger.noEd25519 : done.chain.unchecked > 0 ? t.ledger.unchecked(done.chain.unchecked) : '', done.since ? t.ledger.sinceLast(number(done.since.height)) : ''].filter(Boolean).join('. ')} />
    </span>
  )
}

function One({ entry: e, onCheck }: { entry: Entry; onCheck: () => void }) {
  const members = useMembers().data
  const checked = useQuery({ queryKey: ['entryCheck', e.height, e.index], queryFn: () => checkOne(e.height, e.index), retry: 0, staleTime: Infinity })
  const [asking, setAsking] = useState(false)
  const atNode = () => {
    setAsking(true)
    post('/api/v1/mesh/ledger/verify', {}).then((v) => toast(v.firstBadHeight ? { text: t.ledger.badAt(v.firstBadHeight), bad: true } : { text: t.ledger.verified(v.entries) }), say).finally(() => setAsking(false))
  }
  const c = checked.data
  const by = c && (members?.find((m) => m.id === c.origin)?.name ?? c.origin.slice(0, 8))
  return (
    <div className="flex flex-col gap-4">
      <Facts rows={[[t.ledger.kind, <code className="font-mono text-xs">{e.kind}</code>], [t.ledger.outcome, <span>{t.ledger.outcomes[e.outcome] ?? e.outcome}{e.reason ? `: ${e.reason}` : ''}</span>], [t.ledger.actor, <span><Actor of={e} id /></span>],
        [t.ledger.credential, <span>{e.credential.type} {e.credential.id && <Id id={e.credential.id} />}</span>], e.runId !== '' && [t.nav.run, <Id id={e.runId} />], [t.ledger.time, <Time at={e.time} />], [t.ledger.hash, <Id id={e.hash} />], [t.ledger.previous, <Id id={e.previousHash} />], [t.ledger.payload, <Id id={e.payloadHash} />]]} />
      <div className="flex flex-col gap-1.5 rounded border border-line p-3 text-sm" data-entry-check={c && c.hash === e.hash && c.prev === e.previousHash ? 'ok' : 'open'}>
        {checked.error ? <ErrorBox error={checked.error} /> : !c ? <span className="text-ink3">{t.common.loading}</span> : (
          <>
            <StatusMark status={c.hash === e.hash ? 'ok' : 'bad'} label={c.hash === e.hash ? t.ledger.hashHere : t.ledger.hashWrong} />
            <StatusMark status={c.prev === e.previousHash ? 'ok' : 'bad'} label={c.prev === e.previousHash ? t.ledger.linkHere : t.ledger.linkWrong} />
            <StatusMark status={c.signed ? 'ok' : 'warn'} label={c.signed ? t.ledger.signedBy(by ?? '') : t.ledger.unsigned} />
          </>
        )}
      </div>
      <section aria-label={t.ledger.changes}>
        <h3 className="mb-1 text-sm font-strong">{t.ledger.changes}</h3>
        <ul className="flex flex-col gap-1 text-sm">{e.changes.map((change, i) => (
          <li key={i} className="rounded border border-line px-3 py-1.5"><span className="flex flex-wrap items-center gap-x-2"><code className="font-mono text-xs">{change.action}</code><span className="text-ink3">{change.entityType}</span><Id id={change.entityId} /></span>{c?.details[i] && <pre className="mt-1 max-h-40 overflow-auto whitespace-pre-wrap break-all font-mono text-xs text-ink2">{c.details[i]}</pre>}</li>
        ))}</ul>
      </section>
      <div className="flex flex-wrap gap-2"><Button onClick={onCheck}>{t.ledger.checkFrom}</Button><Button look="quiet" busy={asking} onClick={atNode}>{t.ledger.verify}</Button></div>
    </div>
  )
}
