// The kernel's clock: jobs that publish to topics or start processes at times of a schedule.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, post, put, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { Confirm, Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { argsOf, lineOf } from '../processes/words'
import { Preview, Times, useNext, When, zones } from '../routine/preview'
import { ScopeChoice, useScope, type Scope } from '../topics/scope'

type Job = Schemas['ApiCronJob']
const x = tr.cron
const stateOf = (j: Job) => (j.problem ? <StatusMark status="bad" label={x.broken} /> : j.paused ? <StatusMark status="paused" label={x.paused} /> : <StatusMark status="active" label={x.active} />)
/** whole says whether the form shows all of a job: it has no field for variables, modules and images. */
const whole = (j: Job) => !j.process || (j.process.env.length === 0 && j.process.module === '' && j.process.image === '')
const doesOf = (j: Job) => (j.process ? x.starts(j.process.image || lineOf(j.process.command)) : x.publishes(j.topic))

const columns: Column<Job>[] = [
  { id: 'job', head: x.job, width: 'minmax(96px,0.6fr)', cell: (j) => <span className="font-strong">{j.name}</span>, sort: (a, b) => a.name.localeCompare(b.name) },
  { id: 'when', head: x.when, width: 'minmax(0,1fr)', cell: (j) => <When cron={j.cron} zone={j.timezone} />, text: (j) => `${j.cron} ${j.timezone}` },
  { id: 'does', head: x.does, width: 'minmax(0,1fr)', from: 'desk', cell: (j) => <span className="text-ink2">{doesOf(j)}</span> },
  { id: 'state', head: x.state, width: '96px', from: 'tab', cell: stateOf },
  { id: 'fired', head: x.fired, width: '56px', right: true, from: 'desk', cell: (j) => number(j.fired), sort: (a, b) => a.fired - b.fired },
  { id: 'next', head: x.next, width: '80px', right: true, cell: (j) => <span className="text-xs text-ink3"><Time at={j.nextRunAt} /></span> },
]

export function Page() {
  const go = useNavigate()
  const { of, show } = useSearch({ strict: false }) as { of?: string; show?: string }
  const set = (next: { of?: string; show?: string }) => void go({ to: '.', search: Object.fromEntries(Object.entries({ of, show, ...next }).filter(([, v]) => v)) as never, replace: true })
  const scope = useScope(of)
  const all = useRead(keys.cron(scope.companyId ?? 'mesh'), '/api/v1/cron', { query: { companyId: scope.companyId } })
  const [editing, setEditing] = useState<Job | 'new'>()
  const one = all.data?.jobs.find((j) => j.name === show)
  return (
    <Frame title={x.title} command={show ? `selvage cron show ${show}${scope.flag}` : `selvage cron list${scope.flag}`} scroll={false} tools={<Button look="primary" icon="plus" onClick={() => setEditing('new')}>{x.create}</Button>} bar={<ScopeChoice scope={scope} onChange={(to) => set({ of: to, show: '' })} />}
      drawer={one && <Drawer label={one.name} onClose={() => set({ show: '' })} head={one.name}><One key={one.name} job={one} scope={scope} onEdit={() => setEditing(one)} onGone={() => set({ show: '' })} /></Drawer>}>
      <Loaded of={{ ...all, data: all.data?.jobs }}>{(rows) => <Table label={x.title} rows={rows} columns={columns} keyOf={(j) => j.name} onOpen={(j) => set({ show: j.name })} openKey={show} empty={<Empty icon="routines" title={x.empty} why={x.emptyWhy} />} />}</Loaded>
      {editing && <Edit of={editing === 'new' ? undefined : editing} scope={scope} onClose={() => setEditing(undefined)} />}
    </Frame>
  )
}

function One({ job: j, scope, onEdit, onGone }: { job: Job; scope: Scope; onEdit: () => void; onGone: () => void }) {
  const path = { path: { name: j.name }, query: { companyId: scope.companyId } }
  const [removing, setRemoving] = useState(false)
  const reread = () => [keys.cron(scope.companyId ?? 'mesh')]
  const run = useWrite<undefined, unknown>({ call: () => post('/api/v1/cron/{name}/run', path), reread, onDone: () => toast({ text: x.ran(j.name) }) })
  const rest = useWrite<boolean, unknown>({ call: (on) => (on ? post('/api/v1/cron/{name}/pause', path) : post('/api/v1/cron/{name}/resume', path)), reread, onDone: (_a, on) => toast({ text: on ? x.pausedNow(j.name) : x.resumed(j.name) }) })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/v1/cron/{name}', path), reread, onDone: () => { onGone(); toast({ text: x.removed(j.name) }) } })
  const next = useNext(j.cron, j.timezone, !j.paused)
  return (
    <div className="flex flex-col gap-5">
      <div className="flex flex-wrap gap-2">
        <Button icon="play" busy={run.isPending} onClick={() => run.mutate(undefined)}>{x.run}</Button><Button busy={rest.isPending} onClick={() => rest.mutate(!j.paused)}>{j.paused ? x.resume : x.pause}</Button>{whole(j) && <Button onClick={onEdit}>{x.edit}</Button>}<Button look="danger" onClick={() => setRemoving(true)}>{x.remove}</Button>
      </div>
      <Facts rows={[
        [x.state, stateOf(j)], j.problem !== null && [x.problem, <span className="text-bad">{j.problem}</span>], [x.when, <When cron={j.cron} zone={j.timezone} />], [x.does, j.process ? doesOf(j) : <span>{x.publishes('')}<Link to="/mesh/topics" search={{ pattern: j.topic, ...(scope.companyId ? {} : { of: 'mesh' }) } as never} className="text-accent hover:underline">{j.topic}</Link></span>],
        j.text !== '' && [x.text, <code className="break-words font-mono text-xs">{j.text}</code>], [x.missed, x.misseds[j.missed] ?? j.missed], j.process !== null && [x.busy, x.busys[j.busy] ?? j.busy], [x.fired, number(j.fired)]]} />
      <Section title={x.firings}>
        {j.firings.length === 0 ? <p className="text-sm text-ink2">{x.noFirings}</p> : (
          <ul aria-label={x.firings} className="rounded border border-line">
            {j.firings.map((f) => <li key={f.number} className="flex flex-wrap items-center gap-x-3 border-b border-line px-3 py-1.5 text-sm last:border-0"><StatusMark status={f.ok ? 'ok' : 'bad'} label={`${f.number}`} /><span className="min-w-0 grow basis-32 break-words text-ink2">{f.result}</span>{!f.due && <span className="text-xs text-ink3">{x.byHand}</span>}<Link to="/mesh/ledger" search={{ show: f.height } as never} className="font-mono text-xs text-accent hover:underline">{f.height}</Link><span className="text-xs text-ink3"><Time at={f.at} /></span></li>)}
          </ul>
        )}
      </Section>
      {!j.paused && next.data && <Section title={x.nextTimes}><Times times={next.data} /></Section>}
      <p className="text-xs text-ink3"><Id id={j.createdBy} /></p>
      <Confirm open={removing} onClose={() => setRemoving(false)} title={x.removeAsk(j.name)} body={x.removeBody} action={x.remove} busy={remove.isPending} onConfirm={() => remove.mutate(undefined)} />
    </div>
  )
}

function Edit({ of: j, scope, onClose }: { of: Job | undefined; scope: Scope; onClose: () => void }) {
  const save = useWrite<Values, Job>({
    call: (v) => {
      const text = String(v['text'] ?? '')
      const process = v['kind'] === 'process' ? { process: { command: argsOf(String(v['command'])).args, ...(j?.process ? { replicas: j.process.replicas, ...(j.process.labels.length > 0 ? { labels: j.process.labels } : {}), ...(j.process.node_id ? { node: j.process.node_id } : {}) } : {}) } } : { topic: String(v['topic']), ...(text === '' ? {} : v['json'] ? { payload: JSON.parse(text) as unknown } : { text }) }
      return put('/api/v1/cron/{name}', { path: { name: String(v['name']) }, query: { companyId: scope.companyId } }, { cron: String(v['cron']).trim(), timezone: String(v['zone']), missed: v['missed'] as 'once', busy: v['busy'] as 'skip', paused: j?.paused ?? false, ...process })
    },
    reread: () => [keys.cron(scope.companyId ?? 'mesh')], onDone: (made) => { onClose(); toast({ text: x.saved(made.name) }) },
  })
  // A job of a company publishes only: processes are the mesh's.
  const kinds = scope.companyId ? ['topic'] : ['topic', 'process']
  const schema = (v: Values): Schema => ({
    required: ['name', 'cron', 'zone', 'kind', ...(v['kind'] === 'process' ? ['command'] : ['topic'])],
    properties: {
      ...(j ? {} : { name: { type: 'string', title: x.name } }), cron: { type: 'string', title: x.cron, description: x.cronHint }, zone: { type: 'string', title: x.zone, enum: zones() }, kind: { type: 'string', title: x.kind, enum: kinds, labels: x.kinds },
      ...(v['kind'] === 'process' ? { command: { type: 'string', title: tr.processes.command, description: tr.processes.commandHint }, busy: { type: 'string', title: x.busy, enum: Object.keys(x.busys), labels: x.busys } }
        : { topic: { type: 'string', title: x.topic }, text: { type: 'string', format: 'multiline', title: x.text, description: x.textHint }, json: { type: 'boolean', title: x.json } }),
      missed: { type: 'string', title: x.missed, enum: Object.keys(x.misseds), labels: x.misseds },
    },
  })
  const isJson = (text: string) => { try { JSON.parse(text); return true } catch { return false } }
  const initial: Values = j ? { name: j.name, cron: j.cron, zone: j.timezone, kind: j.process ? 'process' : 'topic', missed: j.missed, busy: j.busy, ...(j.process ? { command: lineOf(j.process.command) } : { topic: j.topic, ...(j.text ? { text: j.text, json: j.json } : {}) }) } : { cron: '0 9 * * 1-5', zone: zones()[1] ?? 'UTC', kind: 'topic', missed: 'once', busy: 'skip' }
  return <FormDialog title={j ? j.name : x.create} action={j ? t.common.save : x.create} size="medium" busy={save.isPending} initial={initial} schema={schema} onClose={onClose} onSave={(v) => save.mutate(v)}
    check={(v): Record<string, string> => (v['json'] && v['text'] && !isJson(String(v['text'])) ? { text: tr.topics.noJson } : {})} foot={(v) => <Preview cron={String(v['cron'] ?? '')} zone={String(v['zone'] ?? 'UTC')} />} />
}
