// A routine: what starts it and when next, what became of its runs, and how it is changed.
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useProjects, useRead, useWrite } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { FormDialog, ShownOnce } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Markdown } from '../../parts/markdown'
import { Confirm, Menu } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { Badge, PriorityMark, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { blankValues, ownZone, routineOf, runSchema, triggerSchema, useRoutineSchema } from './form'
import { Preview, Times, useNext, When } from './preview'

type Routine = Schemas['ApiRoutineDetail']
type Trigger = Schemas['RoutineTrigger']
type Run = Schemas['ApiRoutineRunRow']

export function Page() {
  const { routine: id } = useParams({ strict: false }) as { routine: string }
  const routine = useRead(keys.routine(id), '/api/routines/{id}', { path: { id } })
  return routine.data ? <Shown routine={routine.data} /> : <Frame title={t.nav.routines}><Loaded of={routine}>{() => null}</Loaded></Frame>
}

/** again are the keys that a write of the routine makes old. */
const useAgain = (id: string) => {
  const company = useCompany()
  return () => [keys.routine(id), keys.routines(company.id)]
}

function Shown({ routine: r }: { routine: Routine }) {
  const company = useCompany()
  const go = useNavigate()
  const schema = useRoutineSchema()
  const again = useAgain(r.id)
  const [open, setOpen] = useState<'edit' | 'run' | 'remove'>()
  const change = useWrite<Record<string, unknown>, unknown>({ call: (body) => patch('/api/routines/{id}', { path: { id: r.id } }, body as Schemas['ApiSaveRoutine']), reread: again,
    onDone: (_a, body) => { setOpen(undefined); toast({ text: body['status'] === 'paused' ? tp.routine.paused(r.title) : body['status'] === 'active' ? tp.routine.resumed(r.title) : tp.routine.saved }) } })
  const run = useWrite<Values, unknown>({ call: (variables) => post('/api/routines/{id}/run', { path: { id: r.id } }, Object.keys(variables).length > 0 ? { variables } : {}), reread: again, onDone: () => { setOpen(undefined); toast({ text: tp.routine.started }) } })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/routines/{id}', { path: { id: r.id } }), reread: () => [keys.routines(company.id)], onDone: () => { toast({ text: tp.routine.removed(r.title) }); void go({ to: `/${company.issuePrefix}/routines` }) } })
  const blanks = r.variables ?? []
  const rests = r.status !== 'active'
  return (
    <Frame title={r.title} command={`selvage routine show '${r.title}'`}
      head={<h1 className="mr-2 flex min-w-0 items-center gap-2 text-lg font-strong"><Link to={`/${company.issuePrefix}/routines`} aria-label={tp.routine.all} className="text-ink3 hover:text-ink">{t.nav.routines}</Link><span className="text-ink3">/</span><span className="truncate">{r.title}</span></h1>}
      tools={<>
        <Button onClick={() => setOpen('edit')}>{tp.routine.edit}</Button>
        {r.status !== 'archived' && <Button icon={rests ? 'play' : 'pause'} busy={change.isPending} onClick={() => change.mutate({ status: rests ? 'active' : 'paused' })}>{rests ? tp.routine.resume : tp.routine.pause}</Button>}
        <Button look="primary" icon="play" disabled={r.status === 'archived'} busy={run.isPending} onClick={() => (blanks.length > 0 ? setOpen('run') : run.mutate({}))}>{tp.routine.run}</Button>
        <Menu align="end" label={tp.routine.more} items={[{ label: tp.routine.remove, icon: 'close', danger: true, onSelect: () => setOpen('remove') }]}><IconButton icon="more" label={tp.routine.more} /></Menu>
      </>}>
      <div className="grid w-full max-w-page gap-x-8 gap-y-4 p-4 desk:grid-cols-[minmax(0,1fr)_320px]">
        <div className="flex min-w-0 flex-col gap-4">
          {r.description && <div className="text-base"><Markdown text={r.description} /></div>}
          <Triggers routine={r} />
          <Runs routine={r} />
          <Revisions routine={r} />
        </div>
        <div className="flex min-w-0 flex-col gap-4"><Next triggers={r.triggers ?? []} /><RoutineFacts routine={r} /></div>
      </div>
      {open === 'edit' && <FormDialog title={tp.routine.edit} size="medium" schema={schema} action={t.common.save} busy={change.isPending} onClose={() => setOpen(undefined)}
        initial={{ ...blankValues(blanks), title: r.title, description: r.description ?? undefined, assigneeAgentId: r.assigneeAgentId ?? undefined, projectId: r.projectId ?? undefined, goalId: r.goalId ?? undefined, folderId: r.folderId ?? undefined, labelIds: r.labelIds ?? [], priority: r.priority, concurrencyPolicy: r.concurrencyPolicy, catchUpPolicy: r.catchUpPolicy }}
        onSave={(values, changes) => (Object.keys(changes).length > 0 ? change.mutate({ ...routineOf(changes, values, blanks), baseRevisionId: r.latestRevisionId }) : setOpen(undefined))} />}
      {open === 'run' && <FormDialog title={tp.routine.run} schema={runSchema(blanks)} action={tp.routine.run} busy={run.isPending} onClose={() => setOpen(undefined)} onSave={(values) => run.mutate(values)} />}
      <Confirm open={open === 'remove'} onClose={() => setOpen(undefined)} title={tp.routine.removeAsk(r.title)} body={tp.routine.removeBody} action={tp.routine.remove} busy={remove.isPending} onConfirm={() => remove.mutate(undefined)} />
    </Frame>
  )
}

function Triggers({ routine: r }: { routine: Routine }) {
  const again = useAgain(r.id)
  const [editing, setEditing] = useState<Trigger | 'new'>()
  const [removing, setRemoving] = useState<Trigger>()
  const [once, setOnce] = useState<{ webhookUrl: string; webhookSecret: string }>()
  const add = useWrite<Values, Schemas['ApiTriggerAnswer']>({ call: (body) => post('/api/routines/{id}/triggers', { path: { id: r.id } }, body), reread: again, onDone: (a) => { setEditing(undefined); if (a.secretMaterial) setOnce(a.secretMaterial) } })
  const change = useWrite<{ id: string; body: Record<string, unknown> }, unknown>({ call: ({ id, body }) => patch('/api/routine-triggers/{id}', { path: { id } }, body), reread: again, onDone: () => setEditing(undefined) })
  const remove = useWrite<string, unknown>({ call: (id) => del('/api/routine-triggers/{id}', { path: { id } }), reread: again, onDone: () => setRemoving(undefined) })
  const rotate = useWrite<string, Schemas['ApiTriggerAnswer']>({ call: (id) => post('/api/routine-triggers/{id}/rotate-secret', { path: { id } }), reread: again, onDone: (a) => a.secretMaterial && setOnce(a.secretMaterial) })
  return (
    <Section title={tp.routine.triggers} aside={<Button small icon="plus" onClick={() => setEditing('new')}>{tp.routine.addTrigger}</Button>}>
      {(r.triggers ?? []).length === 0 ? <Empty icon="routines" title={tp.routine.noTriggers} why={tp.routine.noTriggersWhy} /> : (
        <Lines label={tp.routine.triggers}>{(r.triggers ?? []).map((x) => (
          <LineOf key={x.id}>
            <StatusMark status={x.enabled ? 'active' : 'paused'} bare label={x.enabled ? tp.routine.on : tp.routine.off} />
            <Front>{x.cronExpression ? <When cron={x.cronExpression} zone={x.timezone} /> : x.kind === 'webhook' ? <>{tp.routine.kinds['webhook']} <span className="text-ink3">{tp.routine.signings[x.signingMode ?? ''] ?? x.signingMode}</span></> : tp.routine.kinds[x.kind] ?? x.kind}{x.label && <span className="ml-2 text-ink2">{x.label}</span>}</Front>
            {x.lastFiredAt && <span className="text-xs text-ink3">{tp.routine.last} <Time at={x.lastFiredAt} /></span>}
            {x.kind === 'webhook' && <Button small onClick={() => rotate.mutate(x.id)}>{tp.routine.rotate}</Button>}
            <Button small onClick={() => change.mutate({ id: x.id, body: { enabled: !x.enabled } })}>{x.enabled ? tp.routine.turnOff : tp.routine.turnOn}</Button>
            <Button small onClick={() => setEditing(x)}>{t.common.edit}</Button><IconButton small icon="close" label={tp.routine.removeTrigger} onClick={() => setRemoving(x)} />
          </LineOf>
        ))}</Lines>
      )}
      {editing === 'new' && <NewTrigger busy={add.isPending} onClose={() => setEditing(undefined)} onSave={(v) => add.mutate(v)} />}
      {editing && editing !== 'new' && <FormDialog title={t.common.edit} schema={triggerSchema(editing.kind, false)} action={t.common.save} busy={change.isPending} onClose={() => setEditing(undefined)}
        initial={{ cronExpression: editing.cronExpression ?? undefined, timezone: editing.timezone ?? undefined, signingMode: editing.signingMode ?? undefined, replayWindowSec: editing.replayWindowSec ?? undefined, label: editing.label ?? undefined }}
        foot={(v) => editing.kind === 'schedule' && <Preview cron={String(v['cronExpression'] ?? '')} zone={String(v['timezone'] ?? 'UTC')} />} onSave={(_v, body) => (Object.keys(body).length > 0 ? change.mutate({ id: editing.id, body }) : setEditing(undefined))} />}
      <Confirm open={!!removing} onClose={() => setRemoving(undefined)} title={tp.routine.removeTrigger} body={tp.routine.removeTriggerBody} action={t.common.remove} busy={remove.isPending} onConfirm={() => removing && remove.mutate(removing.id)} />
      {once && <ShownOnce title={tp.routine.secretOnce} why={tp.routine.secretWhy} values={[{ label: tp.routine.address, text: once.webhookUrl }, { label: tp.routine.secret, text: once.webhookSecret }]} onClose={() => setOnce(undefined)} />}
    </Section>
  )
}

function NewTrigger({ busy, onClose, onSave }: { busy: boolean; onClose: () => void; onSave: (v: Values) => void }) {
  return <FormDialog title={tp.routine.addTrigger} schema={(v) => triggerSchema(String(v['kind'] ?? 'schedule'), true)} initial={{ kind: 'schedule', timezone: ownZone(), signingMode: 'bearer' }} busy={busy} onClose={onClose}
    foot={(v) => v['kind'] === 'schedule' && <Preview cron={String(v['cronExpression'] ?? '')} zone={String(v['timezone'] ?? 'UTC')} />}
    onSave={(v) => { const has = triggerSchema(String(v['kind']), true).properties ?? {}; onSave(Object.fromEntries(Object.entries(v).filter(([k]) => k in has))) }} />
}

const shown = 10

/** The next times of all schedules that are on, together. */
function Next({ triggers }: { triggers: readonly Trigger[] }) {
  const on = triggers.filter((x) => x.enabled && x.cronExpression)
  return (
    <Section title={tp.routine.nextOf(shown)}>
      {on.length === 0 ? <p className="text-sm text-ink3">{tp.routine.noNext}</p> : on.map((x) => <NextOf key={x.id} trigger={x} named={on.length > 1} />)}
    </Section>
  )
}
function NextOf({ trigger: x, named }: { trigger: Trigger; named: boolean }) {
  const next = useNext(x.cronExpression ?? '', x.timezone ?? 'UTC')
  return <div className="mb-2 rounded border border-line px-3 py-2">{named && <p className="mb-1 text-xs text-ink3"><When cron={x.cronExpression ?? ''} zone={x.timezone} /></p>}<Loaded of={next} rows={3}>{(times) => <Times times={times} />}</Loaded></div>
}

function Runs({ routine: r }: { routine: Routine }) {
  const company = useCompany()
  const all = useRead(keys.routine(r.id, 'runs'), '/api/routines/{id}/runs', { path: { id: r.id }, query: { limit: 200 } })
  const columns: Column<Run>[] = [
    { id: 'status', head: tp.routine.status, width: '132px', cell: (x) => <StatusMark status={x.status} /> },
    { id: 'became', head: tp.routine.outcome, width: 'minmax(0,1fr)', cell: (x) => (x.linkedIssue ? <Link to={`/${company.issuePrefix}/issues/${x.linkedIssue.identifier}`} className="hover:underline"><span className="text-xs text-ink3">{x.linkedIssue.identifier}</span> {x.linkedIssue.title}</Link> : <span className="text-ink3">{x.failureReason ?? '–'}</span>) },
    { id: 'state', head: t.issues.status, width: '112px', from: 'desk', cell: (x) => (x.linkedIssue ? <StatusMark status={x.linkedIssue.status} /> : '–') },
    { id: 'source', head: tp.routine.source, width: '104px', from: 'tab', cell: (x) => x.trigger?.label ?? words(x.trigger?.kind ?? x.source) },
    { id: 'at', head: tp.routine.fired, width: '80px', right: true, cell: (x) => <span className="text-xs text-ink3"><Time at={x.triggeredAt} /></span> },
  ]
  return <Section title={tp.routine.runs}><Loaded of={all} rows={4}>{(rows) => <div className="flex max-h-[420px] flex-col overflow-hidden rounded border border-line"><Table label={tp.routine.runs} rows={rows} columns={columns} keyOf={(x) => x.id} empty={<Empty icon="activity" title={tp.routine.noRuns} why={tp.routine.noRunsWhy} />} /></div>}</Loaded></Section>
}

function Revisions({ routine: r }: { routine: Routine }) {
  const company = useCompany()
  const names = useNames(company.id)
  const again = useAgain(r.id)
  const all = useRead(keys.routine(r.id, 'revisions'), '/api/routines/{id}/revisions', { path: { id: r.id } })
  const restore = useWrite<string, unknown>({ call: (revisionId) => post('/api/routines/{id}/revisions/{revisionId}/restore', { path: { id: r.id, revisionId } }), reread: again, onDone: () => toast({ text: tp.routine.restored }) })
  if (!all.data || all.data.length < 2) return null
  return (
    <Section title={tp.routine.revisions}>
      <Lines label={tp.routine.revisions}>{all.data.map((v) => (
        <LineOf key={v.id}><span className="w-8 text-ink3">{v.revisionNumber}</span><Front>{v.changeSummary ?? v.title}</Front><span className="text-xs text-ink2">{names(v.createdByAgentId ?? v.createdByUserId).name}</span><span className="text-xs text-ink3"><Time at={v.createdAt} /></span>{v.id === r.latestRevisionId ? <Badge meaning="ok">{tp.routine.inForce}</Badge> : <Button small busy={restore.isPending} onClick={() => restore.mutate(v.id)}>{tp.routine.restore}</Button>}</LineOf>
      ))}</Lines>
    </Section>
  )
}

function RoutineFacts({ routine: r }: { routine: Routine }) {
  const company = useCompany()
  const names = useNames(company.id)
  const project = useProjects(company.id).data?.find((p) => p.id === r.projectId)
  return (
    <Section title={tp.routine.facts}>
      <Facts rows={[
        [tp.routine.status, <StatusMark status={r.status} />], [tp.routine.assignee, r.assigneeAgentId ? <Link to={`/${company.issuePrefix}/agents/${r.assigneeAgentId}`} className="hover:underline"><Who id={r.assigneeAgentId} name={names(r.assigneeAgentId).name} /></Link> : '–'],
        !!project && [tp.routine.project, <Link to={`/${company.issuePrefix}/projects/${project.id}`} className="hover:underline">{project.name}</Link>], [tp.routine.priority, <PriorityMark priority={r.priority} />],
        [tp.routine.concurrency, tp.routine.concurrencies[r.concurrencyPolicy] ?? words(r.concurrencyPolicy)], [tp.routine.catchUp, tp.routine.catchUps[r.catchUpPolicy] ?? words(r.catchUpPolicy)], r.activityGatePolicy !== 'always' && [tp.routine.gate, words(r.activityGatePolicy)],
        (r.variables ?? []).length > 0 && [tp.routine.variables, (r.variables ?? []).map((v) => v.name).join(', ')], !!r.activeIssue && [tp.routine.activeIssue, <Link to={`/${company.issuePrefix}/issues/${r.activeIssue.identifier}`} className="text-accent hover:underline">{r.activeIssue.identifier} {statusText(r.activeIssue.status)}</Link>],
        [t.routines.last, <Time at={r.lastTriggeredAt} />], [t.issue.created, <Time at={r.createdAt} />], ['ID', <Id id={r.id} />]]} />
    </Section>
  )
}
