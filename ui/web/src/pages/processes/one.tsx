// One process: what it is for, what it uses against its limits, its output, and what may be done with it.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { poll, useCompanies, useMembers, useNames, useWrite } from '../../data'
import { get, post, Refusal } from '../../http'
import { Ansi } from '../../parts/ansi'
import { Button } from '../../parts/button'
import { Bar } from '../../parts/charts'
import { FormDialog } from '../../parts/formdialog'
import { Confirm } from '../../parts/overlay'
import { ErrorBox, Facts, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Lasting, Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { Watched } from './watched'
import { limitsOf, outputOf, type Row } from './words'

const p = tr.processes
const MiB = 1024 * 1024
const tailBytes = 64_000
const spawned = ['native', 'wasm', 'container']

export function One({ row: r }: { row: Row }) {
  const company = useCompanies().data?.find((c) => c.id === r.company)
  const names = useNames(company?.id)
  const here = useMembers().data?.find((m) => m.here)?.name
  const rights = Object.entries(p.rights).filter(([name]) => r.capabilities?.[name as 'can_ipc']).map(([, text]) => text)
  return (
    <div className="flex flex-col gap-5">
      <Signals row={r} />
      <Section title={p.use}>
        <ul className="flex flex-col gap-2">{limitsOf(r).map((l) => <li key={l.name} className="text-sm"><span className="flex justify-between gap-3"><span className="text-ink2">{p.limit[l.name]}</span><span>{l.text}</span></span>{l.of > 0 && <Bar value={l.used} of={l.of} label={`${p.limit[l.name]}: ${l.text}`} />}</li>)}</ul>
      </Section>
      <Facts rows={[
        [p.state, <StatusMark status={r.state} label={p.states[r.state] ?? r.state} />], [p.kind, p.kinds[r.kind] ?? r.kind], company && [p.company, <Link to={`/${company.issuePrefix}`} className="text-accent hover:underline">{company.name}</Link>],
        r.app !== '' && [p.app, company ? <Link to={`/${company.issuePrefix}/apps`} search={{ show: r.app } as never} className="text-accent hover:underline">{r.app}</Link> : r.app],
        r.agent !== '' && company && [p.agent, <Link to={`/${company.issuePrefix}/agents/${r.agent}`} className="text-accent hover:underline">{names(r.agent).name}</Link>], r.run !== '' && company && [p.run, <Link to={`/${company.issuePrefix}/runs/${r.run}`} className="text-accent hover:underline">{r.run.slice(0, 8)}</Link>],
        r.pid !== 0 && [p.parent, `${r.node}:${r.parent_pid}`], [p.role, r.role], r.machine_pid !== 0 && [p.machine, r.machine_pid], [p.restarts, r.restarts], [p.may, rights.length > 0 ? rights.join(', ') : p.nothing],
        [p.started, <Time at={r.started_at} />], [p.age, <Lasting from={r.started_at} to={r.ended_at} />], r.exit_code !== null && [p.exit, p.exitOf(r.exit_code, r.exit_reason)], r.error !== '' && [p.error, <span className="text-bad">{r.error}</span>]]} />
      {r.pid !== 0 && r.state !== 'exited' && r.node === here && <Watched row={r} />}
      {spawned.includes(r.kind) && <Output row={r} />}
    </div>
  )
}

function Signals({ row: r }: { row: Row }) {
  const [asking, setAsking] = useState<'TERM' | 'KILL' | 'limits'>()
  const path = { path: { id: r.address } }
  const reread = () => [keys.kernel('processes')]
  // Another question may have been opened meanwhile: it stays.
  const signal = useWrite<string, unknown>({ call: (s) => post('/api/v1/processes/{id}/kill', path, { signal: s }), reread, onDone: (_a, s) => { setAsking((now) => (now === s ? undefined : now)); toast({ text: p.told(s, r.address) }) } })
  const elevate = useWrite<{ memory: number; cpu: number; reason: string }, unknown>({
    call: (v) => post('/api/v1/processes/{id}/elevate', path, { reason: v.reason, capabilities: { ...r.capabilities, resource_limits: { ...r.capabilities?.resource_limits, max_memory_bytes: Math.round(v.memory * MiB), max_cpu_time_ms: Math.round(v.cpu * 1000) } } }), reread, onDone: () => { setAsking((now) => (now === 'limits' ? undefined : now)); toast({ text: p.elevated }) },
  })
  if (r.pid === 0 || r.state === 'exited' || r.state === 'unreachable') return null
  const own = spawned.includes(r.kind)
  const limits = r.capabilities?.resource_limits
  return (
    <div className="flex flex-wrap gap-2">
      {own && r.state === 'running' && <Button icon="pause" busy={signal.isPending} onClick={() => signal.mutate('STOP')}>{p.suspend}</Button>}
      {own && r.state === 'suspended' && <Button icon="play" busy={signal.isPending} onClick={() => signal.mutate('CONT')}>{p.resume}</Button>}
      {own && <Button onClick={() => setAsking('limits')}>{p.elevate}</Button>}
      <Button look="danger" onClick={() => setAsking('TERM')}>{p.end}</Button><Button look="danger" onClick={() => setAsking('KILL')}>{p.kill}</Button>
      <Confirm open={asking === 'TERM' || asking === 'KILL'} onClose={() => setAsking(undefined)} title={(asking === 'KILL' ? p.killAsk : p.endAsk)(r.address)} body={asking === 'KILL' ? p.killBody : p.endBody} action={asking === 'KILL' ? p.kill : p.end} busy={signal.isPending} onConfirm={() => asking && signal.mutate(asking)} />
      {asking === 'limits' && <FormDialog title={p.elevate} action={p.elevate} busy={elevate.isPending} onClose={() => setAsking(undefined)} initial={{ memory: (limits?.max_memory_bytes ?? 0) / MiB, cpu: (limits?.max_cpu_time_ms ?? 0) / 1000 }}
        schema={{ required: ['memory', 'cpu', 'reason'], properties: { memory: { type: 'number', minimum: 0, title: p.memoryMiB }, cpu: { type: 'number', minimum: 0, title: p.cpuSeconds }, reason: { type: 'string', title: p.reason } } }} onSave={(v) => elevate.mutate({ memory: Number(v['memory']), cpu: Number(v['cpu']), reason: String(v['reason']) })} />}
    </div>
  )
}

/** The newest of its output; it is read on from where it ended. */
function Output({ row: r }: { row: Row }) {
  const live = r.state !== 'exited'
  const log = useQuery({
    queryKey: keys.kernel('output', r.address), refetchInterval: live ? poll / 2 : false, retry: 0,
    queryFn: async ({ signal, client, queryKey }) => {
      const kept = client.getQueryData<{ text: string; next: number }>(queryKey)
      let { text, next } = kept ?? { text: '', next: 0 }
      for (let page = 0; page < 40; page++) { // a log has a bound; what is left comes with the next look
        const got = await get('/api/v1/processes/{id}/log', { path: { id: r.address }, query: { offset: next }, signal })
        const whole = got.content.slice(0, got.content.lastIndexOf('\n') + 1)
        text = (text + outputOf(whole)).slice(-tailBytes)
        next += new TextEncoder().encode(whole).length
        if (got.nextOffset === undefined || whole === '') break
      }
      return { text, next }
    },
  })
  return (
    <Section title={p.output}>
      {log.error && !log.data ? (log.error instanceof Refusal && log.error.status === 404 ? <p className="text-sm text-ink2">{p.noLog}</p> : <ErrorBox error={log.error} />) : log.data?.text ? <div role="log" aria-label={p.output} tabIndex={0} className="max-h-72 overflow-auto rounded border border-line bg-ground2 p-3"><Ansi text={log.data.text} /></div> : <p className="text-sm text-ink3">{p.noOutput}</p>}
    </Section>
  )
}
