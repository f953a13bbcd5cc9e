// The routines: what starts them, when they come next, how the last one ended; run now.
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { client, say, useNames, useRead } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { IconButton } from '../../parts/button'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'

type Routine = Schemas['ApiRoutineInList']

/** The next time of the triggers that are on, "" for none. */
const nextOf = (r: Routine) => r.triggers.filter((x) => x.enabled && x.nextRunAt).map((x) => x.nextRunAt!).sort()[0] ?? ''
const startedBy = (r: Routine) => r.triggers.filter((x) => x.enabled).map((x) => x.cronExpression ? `${x.cronExpression}${x.timezone ? ` ${x.timezone}` : ''}` : t.routines.webhook).join(', ') || t.routines.byHand

export function Page() {
  const company = useCompany()
  const names = useNames(company.id)
  const routines = useRead(keys.routines(company.id), '/api/companies/{companyId}/routines', { path: { companyId: company.id } })
  const run = (r: Routine) => void post('/api/routines/{id}/run', { path: { id: r.id } }, {}).then(() => toast({ text: t.routines.started(r.title) }), say).finally(() => void client.invalidateQueries({ queryKey: keys.routines(company.id) }))
  const columns: Column<Routine>[] = [
    { id: 'title', head: t.routines.name, width: 'minmax(0,1fr)', cell: (r) => <span className="truncate font-strong">{r.title}</span>, sort: (a, b) => a.title.localeCompare(b.title) },
    { id: 'status', head: t.routines.status, width: '104px', cell: (r) => <StatusMark status={r.status} /> },
    { id: 'assignee', head: t.routines.assignee, width: '132px', from: 'tab', cell: (r) => (r.assigneeAgentId ? <Who id={r.assigneeAgentId} name={names(r.assigneeAgentId).name} /> : '–') },
    { id: 'trigger', head: t.routines.trigger, width: '168px', from: 'desk', cell: (r) => <code className="truncate font-mono text-xs text-ink2">{startedBy(r)}</code> },
    { id: 'next', head: t.routines.next, width: '88px', from: 'tab', cell: (r) => <Time at={nextOf(r) || null} />, sort: (a, b) => nextOf(a).localeCompare(nextOf(b)) },
    { id: 'last', head: t.routines.last, width: '132px', from: 'desk', cell: (r) => (r.lastRun ? <StatusMark status={r.lastRun.status} /> : '–') },
    { id: 'run', head: '', width: '28px', cell: (r) => <IconButton small icon="play" label={`${t.routines.run}: ${r.title}`} onClick={() => run(r)} /> },
  ]
  return (
    <Frame title={t.nav.routines} command="selvage routine list" scroll={false}>
      <Loaded of={routines}>{(rows) => <Table label={t.nav.routines} rows={rows} columns={columns} keyOf={(r) => r.id} empty={<Empty icon="routines" title={t.routines.empty} why={t.routines.emptyWhy} />} />}</Loaded>
    </Frame>
  )
}
