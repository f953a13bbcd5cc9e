// The routines: what starts them, when they come next, how the last one ended; run now, or make one.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { client, say, useNames, useRead, useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Select } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { Folders, useFolders } from './folders'
import { cronOf, ownZone, routineOf, scheduleSchema, useRoutineSchema } from '../routine/form'
import { Preview } from '../routine/preview'
import { inWords } from '../routine/words'

type Routine = Schemas['ApiRoutineInList']

/** The next time of the triggers that are on, "" for none. */
const nextOf = (r: Routine) => r.triggers.filter((x) => x.enabled && x.nextRunAt).map((x) => x.nextRunAt!).sort()[0] ?? ''
const startedBy = (r: Routine) => r.triggers.filter((x) => x.enabled).map((x) => x.cronExpression ? `${inWords(x.cronExpression) ?? x.cronExpression}${x.timezone && x.timezone !== 'UTC' ? ` ${x.timezone}` : ''}` : t.routines.webhook).join(', ') || t.routines.byHand

export function Page() {
  const company = useCompany()
  const names = useNames(company.id)
  const routines = useRead(keys.routines(company.id), '/api/companies/{companyId}/routines', { path: { companyId: company.id } })
  const go = useNavigate()
  const [creating, setCreating] = useState(false)
  const [folding, setFolding] = useState(false)
  const { folder } = useSearch({ strict: false }) as { folder?: string }
  const folders = useFolders(company.id)
  const to = (r: Routine) => `/${company.issuePrefix}/routines/${r.id}`
  const run = (r: Routine) => void post('/api/routines/{id}/run', { path: { id: r.id } }, {}).then(() => toast({ text: t.routines.started(r.title) }), say).finally(() => void client.invalidateQueries({ queryKey: keys.routines(company.id) }))
  const columns: Column<Routine>[] = [
    { id: 'title', head: t.routines.name, width: 'minmax(0,1fr)', cell: (r) => <Link to={to(r)} className="font-strong hover:underline">{r.title}</Link>, sort: (a, b) => a.title.localeCompare(b.title) },
    { id: 'status', head: t.routines.status, width: '104px', cell: (r) => <StatusMark status={r.status} /> },
    { id: 'assignee', head: t.routines.assignee, width: '132px', from: 'tab', cell: (r) => (r.assigneeAgentId ? <Who id={r.assigneeAgentId} name={names(r.assigneeAgentId).name} /> : '–') },
    ...(folders.length > 0 ? [{ id: 'folder', head: tp.routine.folder, width: '112px', from: 'desk' as const, cell: (r: Routine) => folders.find((f) => f.id === r.folderId)?.name ?? '–' }] : []),
    { id: 'trigger', head: t.routines.trigger, width: 'minmax(0,220px)', from: 'desk', cell: (r) => <span className="text-ink2" title={startedBy(r)}>{startedBy(r)}</span> },
    { id: 'next', head: t.routines.next, width: '88px', from: 'tab', cell: (r) => <Time at={nextOf(r) || null} />, sort: (a, b) => nextOf(a).localeCompare(nextOf(b)) },
    { id: 'last', head: t.routines.last, width: '132px', from: 'desk', cell: (r) => (r.lastRun ? <StatusMark status={r.lastRun.status} /> : '–') },
    { id: 'run', head: '', width: '28px', cell: (r) => <IconButton small icon="play" label={`${t.routines.run}: ${r.title}`} onClick={() => run(r)} /> },
  ]
  return (
    <Frame title={t.nav.routines} command="selvage routine list" scroll={false} bar={<>{folders.length > 0 && <Select aria-label={tp.routine.folder} value={folder ?? ''} onChange={(e) => void go({ to: '.', search: (e.target.value ? { folder: e.target.value } : {}) as never, replace: true })} choices={[{ value: '', label: t.common.all }, ...folders.map((f) => ({ value: f.id, label: f.name })), { value: 'none', label: tp.routine.noFolder }]} />}<Button small onClick={() => setFolding(true)}>{tp.routine.folders}</Button></>} tools={<Button look="primary" icon="plus" onClick={() => setCreating(true)}>{tp.routine.create}</Button>}>
      <Loaded of={routines}>{(rows) => <Table label={t.nav.routines} rows={folder ? rows.filter((r) => (folder === 'none' ? !r.folderId : r.folderId === folder)) : rows} columns={columns} keyOf={(r) => r.id} onOpen={(r) => void go({ to: to(r) })} empty={<Empty icon="routines" title={t.routines.empty} why={t.routines.emptyWhy} />} />}</Loaded>
      {folding && <Folders company={company.id} onClose={() => setFolding(false)} />}
      {creating && <Create onClose={() => setCreating(false)} />}
    </Frame>
  )
}

function Create({ onClose }: { onClose: () => void }) {
  const company = useCompany()
  const go = useNavigate()
  const schema = useRoutineSchema()
  const create = useWrite({
    call: async (v: Values) => {
      const { when: _when, cron: _cron, zone, ...body } = v
      const made = await post('/api/companies/{companyId}/routines', { path: { companyId: company.id } }, routineOf(body, body))
      const cron = cronOf(v)
      // The routine is there already: its page shows that it has no trigger, and has the button to add one.
      if (cron) await post('/api/routines/{id}/triggers', { path: { id: made.id } }, { kind: 'schedule', cronExpression: cron, timezone: String(zone ?? 'UTC') }).catch((error: unknown) => say(error))
      return made
    },
    reread: () => [keys.routines(company.id)],
    onDone: (made) => { onClose(); toast({ text: tp.routine.made(made.title) }); void go({ to: `/${company.issuePrefix}/routines/${made.id}` }) },
  })
  return <FormDialog title={tp.routine.create} size="medium" busy={create.isPending} onClose={onClose} onSave={(v) => create.mutate(v)} initial={{ when: '0 9 * * 1-5', zone: ownZone(), priority: 'medium', concurrencyPolicy: 'coalesce_if_active', catchUpPolicy: 'skip_missed' }}
    schema={(v) => ({ ...schema(v), properties: { ...schema(v).properties, ...scheduleSchema(v).properties } })} foot={(v) => <Preview cron={cronOf(v)} zone={String(v['zone'] ?? 'UTC')} />} />
}
