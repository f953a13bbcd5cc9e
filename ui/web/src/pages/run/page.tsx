// One run: what it writes at the left, facts at the right.
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { memo, useEffect, useMemo, useRef, useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useMembers, useNames, useRead, useWrite } from '../../data'
import { number, short, sizeOf as bytesText, words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { typing } from '../../keys'
import { Ansi } from '../../parts/ansi'
import { Button, IconButton } from '../../parts/button'
import { Diff, Patch } from '../../parts/diff'
import { Input } from '../../parts/form'
import { Icon } from '../../parts/icons'
import { Markdown } from '../../parts/markdown'
import { Confirm } from '../../parts/overlay'
import { useScale } from '../../parts/scale'
import { Empty, ErrorBox, Facts, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { download } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Lasting, Money, Time, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { useRunLog } from './log'
import { isPatch, sizeOf, textOf, type Entry, type ToolCall, type Transcript } from './transcript'

type Run = Schemas['ApiRunView']
const isLive = (status: string) => status === 'queued' || status === 'running' || status === 'scheduled_retry'

export function Page() {
  const company = useCompany()
  const { run: id } = useParams({ strict: false }) as { run: string }
  const run = useRead(keys.run(id), '/api/heartbeat-runs/{runId}', { path: { runId: id } })
  const agents = useAgents(company.id).data
  const row = run.data
  const agent = agents?.find((a) => a.id === row?.agentId)
  const title = `${t.nav.run} ${id.slice(-6)}`
  return (
    <Frame title={title} scroll={false} command={`selvage run show ${id}`} tools={row && <Tools run={row} />} head={
      <div className="flex min-w-0 items-center gap-2 text-base">
        <Link to={`/${company.issuePrefix}/agents/${agent?.urlKey ?? row?.agentId ?? ''}`} className="min-w-0 text-ink2 hover:text-ink">{agent ? <Who id={agent.id} name={agent.name} /> : t.nav.agents}</Link>
        <span className="text-ink3">/</span><h1 className="sr-only">{title}</h1><Id id={id} />
        {row && <span className="max-tab:hidden"><StatusMark status={row.status} /></span>}
      </div>}>
      <Loaded of={run}>{(r) => <Body key={r.id} run={r} />}</Loaded>
    </Frame>
  )
}

function Tools({ run }: { run: Run }) {
  const company = useCompany()
  const go = useNavigate()
  const [asking, setAsking] = useState(false)
  const again = () => [keys.run(run.id), keys.liveRuns(company.id), keys.runs(company.id)]
  const cancel = useWrite({
    call: () => post('/api/heartbeat-runs/{runId}/cancel', { path: { runId: run.id } }), reread: again,
    onDone: () => { setAsking(false); toast({ text: t.run.cancelled }) },
  })
  const retry = useWrite({
    call: (): Promise<unknown> => run.status === 'scheduled_retry' && run.contextSnapshot.issueId
      ? post('/api/issues/{id}/scheduled-retry/retry-now', { path: { id: run.contextSnapshot.issueId } })
      : post('/api/agents/{id}/wakeup', { path: { id: run.agentId } }, { source: 'on_demand', triggerDetail: 'manual', reason: 'retry_failed_run', payload: run.contextSnapshot.issueId ? { issueId: run.contextSnapshot.issueId } : {} }),
    reread: again,
    onDone: (answer) => {
      toast({ text: t.run.retried })
      const made = (answer as { id?: string } | undefined)?.id
      if (made && made !== run.id && run.status !== 'scheduled_retry') void go({ to: `/${company.issuePrefix}/runs/${made}` })
    },
  })
  return (
    <>
      {(!isLive(run.status) || run.status === 'scheduled_retry') && <Button icon="play" busy={retry.isPending} onClick={() => retry.mutate(undefined)}>{t.run.retry}</Button>}
      {isLive(run.status) && <Button icon="stop" look="danger" onClick={() => setAsking(true)}>{t.run.cancel}</Button>}
      <Confirm open={asking} onClose={() => setAsking(false)} title={t.run.cancelAsk} body={t.run.cancelBody} action={t.run.cancel} busy={cancel.isPending} onConfirm={() => cancel.mutate(undefined)} />
    </>
  )
}

function Body({ run }: { run: Run }) {
  const { raw } = useSearch({ strict: false }) as { raw?: string }
  const go = useNavigate()
  const live = isLive(run.status)
  const log = useRunLog(run.id, live, !!run.startedAt || !!run.logRef)
  const [find, setFind] = useState('')
  const [hit, setHit] = useState(0)
  const entries = useMemo(() => (raw ? rawEntries(log.raw()) : log.transcript.shown()), [log.version, raw])
  const hits = useMemo(() => {
    const q = find.trim().toLowerCase()
    return q === '' ? [] : entries.flatMap((e, i) => (textOf(e).toLowerCase().includes(q) ? [i] : []))
  }, [entries, find])
  const step = (by: number) => setHit((n) => (hits.length === 0 ? 0 : (n + by + hits.length) % hits.length))
  const toggle = () => void go({ to: '.', search: (raw ? {} : { raw: 1 }) as never, replace: true })
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return
      if (e.key === 'r') { e.preventDefault(); toggle() }
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  })
  const { totals } = log.transcript
  return (
    <div className="flex min-h-0 grow flex-col overflow-y-auto desk:flex-row desk:overflow-visible">
      <div className="flex min-h-[60dvh] min-w-0 grow flex-col desk:min-h-0">
        <div className="no-print flex h-10 shrink-0 items-center gap-2 border-b border-line px-4 text-xs text-ink2">
          <Input data-find aria-label={t.run.find} placeholder={t.run.find} value={find} className="!h-7 !w-36 !text-sm tab:!w-52"
            onChange={(e) => { setFind(e.target.value); setHit(0) }}
            onKeyDown={(e) => { if (e.key === 'Enter') { e.preventDefault(); step(e.shiftKey ? -1 : 1) } else if (e.key === 'Escape') { setFind(''); e.currentTarget.blur() } }} />
          {find.trim() !== '' && <span aria-live="polite" className="whitespace-nowrap">{hits.length === 0 ? t.run.noHit : t.run.hits(hit + 1, hits.length)}</span>}
          {hits.length > 1 && <span className="flex"><IconButton small icon="left" label={t.run.previous} onClick={() => step(-1)} /><IconButton small icon="right" label={t.run.next} onClick={() => step(1)} /></span>}
          <span className="grow" />
          {totals.model && <span className="truncate max-tab:hidden">{totals.model}</span>}
          {totals.output > 0 && <span className="whitespace-nowrap max-tab:hidden" title={t.run.tokensOf(number(totals.input), number(totals.cached), number(totals.output))}>{short(totals.input + totals.output)} {t.run.tokens.toLowerCase()}</span>}
          {live && <StatusMark status={run.status} label={run.status === 'running' ? t.run.liveNow : statusText(run.status)} />}
          <Button small look={raw ? 'plain' : 'quiet'} aria-pressed={!!raw} title={`${t.run.raw} (r)`} onClick={toggle}>{t.run.raw}</Button>
          <IconButton small icon="export" label={t.run.download} onClick={() => download(`run-${run.id}.log`, log.raw(), 'text/plain')} />
        </div>
        {log.error && entries.length === 0 ? <ErrorBox error={log.error} onRetry={log.again} /> : entries.length === 0 ? (
          log.reading ? <div aria-busy="true" className="grow" /> : <Empty icon="file" title={live ? t.run.nothingYet : t.run.nothing} why={live ? (run.waiting?.text ?? t.run.nothingWhy) : run.logRef ? undefined : t.run.gone} />
        ) : <Log entries={entries} version={log.version} live={live} hit={hits[hit]} dropped={raw ? 0 : log.transcript.dropped} />}
      </div>
      <Side run={run} transcript={log.transcript} version={log.version} />
    </div>
  )
}

const rawEntries = (text: string): Entry[] => text.split('\n').map((line, i) => ({ id: i, at: '', kind: 'line', stream: 'stdout', text: line }))

const nearEnd = 48 // px from the end within which it is followed

function Log({ entries, version, live, hit, dropped }: { entries: Entry[]; version: number; live: boolean; hit: number | undefined; dropped: number }) {
  const scroll = useRef<HTMLDivElement>(null)
  const [pinned, setPinned] = useState(live)
  const scale = useScale()
  const list = useVirtualizer({ count: entries.length, getScrollElement: () => scroll.current, estimateSize: () => 22 * scale, overscan: 20, getItemKey: (i) => entries[i]?.id ?? i, paddingStart: 8, paddingEnd: 16 })
  const size = list.getTotalSize()
  useEffect(() => {
    const box = scroll.current
    if (pinned && box && hit === undefined) box.scrollTop = box.scrollHeight
  }, [version, pinned, size, hit])
  useEffect(() => {
    if (hit === undefined) return
    setPinned(false)
    list.scrollToIndex(hit, { align: 'center' })
  }, [hit])
  const items = list.getVirtualItems()
  const scrolled = () => {
    const box = scroll.current
    if (box) setPinned(box.scrollHeight - box.scrollTop - box.clientHeight < nearEnd)
  }
  return (
    <div className="relative min-h-0 grow">
      <div ref={scroll} tabIndex={0} role="log" aria-live="off" aria-label={t.run.transcript} onWheel={(e) => { if (e.deltaY < 0) setPinned(false) }} onScroll={scrolled} className="absolute inset-0 overflow-y-auto outline-offset-[-2px]" data-pinned={pinned}>
        {dropped > 0 && <p className="px-4 py-1 text-xs text-warn">{t.run.dropped(number(dropped))}</p>}
        <div className="relative" style={{ height: size }}>
          {items.map((v) => {
            const e = entries[v.index]
            return e && <div key={v.key} ref={list.measureElement} data-index={v.index} className={`absolute inset-x-0 px-4 ${v.index === hit ? 'bg-warn/15' : ''}`} style={{ transform: `translateY(${v.start}px)` }}><EntryOf entry={e} /></div>
          })}
        </div>
      </div>
      {!pinned && live && <Button className="absolute bottom-3 right-4 shadow-float" small icon="down" onClick={() => setPinned(true)}>{t.run.follow}</Button>}
    </div>
  )
}

const EntryOf = memo(function EntryOf({ entry: e }: { entry: Entry }) {
  switch (e.kind) {
    case 'line': return <div className={`min-h-[18px] ${e.stream === 'stderr' ? 'border-l-2 border-bad pl-2' : e.stream === 'system' ? 'text-ink3' : ''}`}><Ansi text={e.text} /></div>
    case 'said': return e.thinking
      ? <div className="my-1 border-l-2 border-line2 pl-3 text-sm text-ink2"><span className="text-xs text-ink3">{t.run.thinking}</span><p className="whitespace-pre-wrap break-words">{e.text}</p></div>
      : <div className="my-2 max-w-[76ch]"><Markdown text={e.text} /></div>
    case 'told': return <Folded head={<span className="text-ink3">{t.run.prompt}</span>} what={e.text.replace(/\s+/g, ' ').slice(0, 200)} edge={sizeText(e.text)}><pre className="whitespace-pre-wrap break-words font-mono text-xs">{e.text}</pre></Folded>
    case 'note': return <p className={`my-1 text-sm ${e.bad ? 'text-bad' : 'text-ink3'}`}>{e.text}</p>
    case 'tool': return <ToolOf call={e.call} />
  }
})

function sizeText(of: string): string {
  const { lines, bytes } = sizeOf(of)
  return t.run.size(number(lines), bytesText(bytes))
}

function Folded({ head, what, edge, children, open: first = false }: { head: React.ReactNode; what: string; edge: React.ReactNode; children: React.ReactNode; open?: boolean }) {
  const [open, setOpen] = useState(first)
  return (
    <div className="my-1 rounded border border-line">
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)} className="flex h-8 w-full items-center gap-2 px-2 text-left text-sm hover:bg-ground2">
        <span className={`text-ink3 transition-transform ${open ? 'rotate-90' : ''}`}><Icon name="right" size={12} /></span>
        <span className="shrink-0 font-strong">{head}</span><code className="min-w-0 grow truncate font-mono text-xs text-ink2">{what}</code><span className="shrink-0 text-xs text-ink3">{edge}</span>
      </button>
      {open && <div className="flex flex-col gap-2 border-t border-line p-2">{children}</div>}
    </div>
  )
}

function ToolOf({ call }: { call: ToolCall }) {
  const edge = !call.done ? <StatusMark status="running" label={t.run.runs} /> : call.bad ? <StatusMark status="failed" label={sizeText(call.result ?? '')} /> : call.result ? sizeText(call.result) : t.run.noResult
  return (
    <Folded head={call.name} what={call.what} edge={edge} open={!!call.diff}>
      {call.diff ? call.diff.map((d, i) => <Diff key={i} before={d.before} after={d.after} />) : call.input && <div><p className="mb-1 text-xs text-ink3">{t.run.input}</p><pre className="max-h-80 overflow-auto whitespace-pre-wrap break-words font-mono text-xs">{call.input}</pre></div>}
      {call.result && <div><p className="mb-1 text-xs text-ink3">{t.run.result}</p>{isPatch(call.result) ? <Patch text={call.result} /> : <div className="max-h-96 overflow-auto"><Ansi text={call.result} /></div>}</div>}
    </Folded>
  )
}

interface Workspace { cwd?: string | null; repoUrl?: string | null; branchName?: string | null; repoRef?: string | null; strategy?: string | null }

function Side({ run, transcript, version }: { run: Run; transcript: Transcript; version: number }) {
  const company = useCompany()
  const names = useNames(company.id)
  const members = useMembers().data
  const issues = useRead(keys.run(run.id, 'issues'), '/api/heartbeat-runs/{runId}/issues', { path: { runId: run.id } }).data ?? []
  const operations = useRead(keys.run(run.id, 'operations'), '/api/heartbeat-runs/{runId}/workspace-operations', { path: { runId: run.id } }).data ?? []
  const nodeName = (id: string | undefined | null) => members?.find((m) => m.id === id)?.name ?? (id ? id.slice(0, 8) : undefined)
  const usage = (run.usageJson ?? {}) as { inputTokens?: number; cachedInputTokens?: number; outputTokens?: number; costUsd?: number; model?: string }
  const totals = useMemo(() => ({ ...transcript.totals }), [version])
  const [input, cached, output] = usage.outputTokens ? [usage.inputTokens ?? 0, usage.cachedInputTokens ?? 0, usage.outputTokens] : [totals.input, totals.cached, totals.output]
  const of = run.contextSnapshot
  const live = isLive(run.status)
  const place = of.paperclipWorkspace as unknown as Workspace | null
  const path = (id: string) => `/${company.issuePrefix}/runs/${id}`
  const model = usage.model ?? totals.model
  return (
    <aside aria-label={t.run.facts} className="w-full shrink-0 border-line p-4 max-desk:border-t desk:w-[320px] desk:overflow-y-auto desk:border-l wide:w-[360px]">
      <Facts rows={[
        [t.run.status, <StatusMark status={run.status} />],
        !!run.error && ['', <span className="text-bad">{run.error}</span>],
        !!run.waiting && [t.run.waits, <span>{run.waiting.text}{run.waiting.do && <span className="block text-xs text-ink2">{run.waiting.do}</span>}</span>],
        [t.run.agent, <Link to={`/${company.issuePrefix}/agents/${run.agentId}`} className="hover:underline"><Who id={run.agentId} name={names(run.agentId).name} /></Link>],
        ...issues.map((i): [string, React.ReactNode] => [t.run.issue, <Link key={i.issueId} to={`/${company.issuePrefix}/issues/${i.identifier}`} className="flex items-center gap-1.5 hover:underline"><StatusMark status={i.status} bare /><span className="whitespace-nowrap text-xs text-ink3">{i.identifier}</span><span className="truncate">{i.title}</span></Link>]),
        [t.run.began, <Time at={run.startedAt ?? run.createdAt} />],
        [t.run.lasted, <Lasting from={run.startedAt} to={run.finishedAt} />],
        [t.run.node, nodeName(run.nodeId) ?? '–'],
        run.status === 'running' ? [t.run.lease, t.run.leaseHeld(nodeName(run.nodeId) ?? '?')] : !live && [t.run.lease, t.run.leaseOver],
        !!model && [t.run.model, model],
        output > 0 && [t.run.tokens, <span title={t.run.tokensOf(number(input), number(cached), number(output))}>{short(input)} → {short(output)}{cached > 0 && <span className="text-xs text-ink3"> ({short(cached)} ↺)</span>}</span>],
        totals.cents !== undefined && [t.run.cost, <span><Money cents={totals.cents} /> <span className="text-xs text-ink3">{t.run.costTold}</span></span>],
        totals.tools > 0 && [t.run.tools, number(totals.tools)],
        run.exitCode !== null && [t.run.exit, String(run.exitCode)],
        !!run.sessionIdAfter && [t.run.session, <Id id={run.sessionIdAfter} />],
        !!run.retryOfRunId && [t.run.retryOf, <Link to={path(run.retryOfRunId)} className="text-accent">{run.retryOfRunId.slice(-6)}</Link>],
        !!run.execution.successorRunId && [t.run.retriedBy, <Link to={path(run.execution.successorRunId)} className="text-accent">{run.execution.successorRunId.slice(-6)}</Link>],
        !!run.scheduledRetryAt && run.status === 'scheduled_retry' && [t.run.retryAt, <Time at={run.scheduledRetryAt} />],
      ]} />
      <Section title={t.run.why}>
        <p className="text-sm">{t.run.source[run.invocationSource] ?? words(run.invocationSource)}{of.actorId && <span className="text-ink2"> {t.run.by(names(of.actorId).name)}</span>}{of.wakeCommentId && <span className="text-ink2">, {t.run.comment}</span>}</p>
        {of.wakeReason && <p className="text-xs text-ink2">{words(of.wakeReason)}</p>}
      </Section>
      <Placement run={run} />
      <Section title={t.run.checkout}>
        {place?.cwd ? <Facts rows={[
          [t.run.directory, <Id id={place.cwd} text={place.cwd.length > 26 ? `…${place.cwd.slice(-25)}` : place.cwd} />],
          !!place.repoUrl && [t.run.repository, <span className="break-all">{place.repoUrl}</span>],
          !!(place.branchName ?? place.repoRef) && [t.run.branch, place.branchName ?? place.repoRef]]} /> : <p className="text-sm text-ink3">{t.run.none}</p>}
      </Section>
      {totals.files.length > 0 && <Section title={t.run.files}><ul className="text-sm">{totals.files.map((f) => <li key={f} className="truncate font-mono text-xs leading-6" title={f}>{f}</li>)}</ul></Section>}
      {operations.length > 0 && <Section title={t.run.operations}><ul className="text-sm">{operations.map((o) => <li key={o.id} className="flex h-7 items-center gap-2"><StatusMark status={o.status} bare /><span className="truncate" title={o.command ?? ''}>{words(o.phase)}</span><span className="ml-auto text-xs text-ink3"><Lasting from={o.startedAt} to={o.finishedAt} /></span></li>)}</ul></Section>}
      {!!run.phases?.length && <Section title={t.run.steps}><ol className="text-sm">{run.phases.map((p, i) => <li key={i} className="flex h-7 items-center gap-2"><span aria-hidden="true" className="size-1.5 rounded-full bg-line2" /><span>{words(p.phase)}</span><span className="ml-auto text-xs text-ink3"><Lasting from={p.at} to={run.phases?.[i + 1]?.at ?? run.finishedAt} /></span></li>)}</ol></Section>}
    </aside>
  )
}

/** Why it is where it is: the nodes that were weighed, with their scores or why they could not. */
function Placement({ run }: { run: Run }) {
  const placed = useRead(keys.run(run.id, 'placement'), '/api/heartbeat-runs/{runId}/placement', { path: { runId: run.id } })
  return (
    <Section title={t.run.where}>
      {placed.error ? <p className="text-sm text-ink3">{t.run.noRecord}</p> : placed.data && (
        <div className="flex flex-col gap-1 text-sm">
          <p>{placed.data.summary || t.run.notPlaced}</p>
          {!!placed.data.candidates?.length && (
            <ul className="rounded border border-line" title={t.run.scoreWhy}>
              {placed.data.candidates.map((c) => (
                <li key={c.nodeId} className="flex min-h-8 flex-wrap items-center gap-x-2 border-b border-line px-2 last:border-0">
                  <span className={c.nodeId === placed.data.nodeId ? 'font-strong' : ''}>{c.name ?? c.nodeId.slice(0, 8)}</span>
                  {c.nodeId === placed.data.nodeId && <span className="text-ok"><Icon name="check" size={14} /></span>}
                  {c.affinity && <Badge>{words(c.affinity)}</Badge>}
                  <span className="ml-auto text-xs text-ink2">{c.refusal ?? `${t.run.score} ${number(c.score)} · ${t.run.load} ${number(c.load / 10)} %`}</span>
                </li>
              ))}
              {placed.data.omitted > 0 && <li className="px-2 py-1 text-xs text-ink3">{t.run.omitted(placed.data.omitted)}</li>}
            </ul>
          )}
        </div>
      )}
    </Section>
  )
}
