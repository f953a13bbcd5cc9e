// What happened in the company, newest first: filtered by a word.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useRead, type Activity } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { Input } from '../../parts/form'
import { Empty, Loaded } from '../../parts/states'
import { Table, type Column } from '../../parts/table'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'

const limit = 500

/** The issue that a line is about, where its details name one. */
function issueOf(a: Activity): string | undefined {
  const d = a.details as { identifier?: unknown } | null
  return typeof d?.identifier === 'string' ? d.identifier : undefined
}

export function Page() {
  const company = useCompany()
  const names = useNames(company.id)
  const go = useNavigate()
  const filter = (useSearch({ strict: false }) as { q?: string }).q ?? ''
  const all = useRead(keys.activity(company.id, { limit }), '/api/companies/{companyId}/activity', { path: { companyId: company.id }, query: { limit } })
  const who = (a: Activity) => names(a.agentId ?? a.actorId).name
  const columns: Column<Activity>[] = [
    { id: 'at', head: t.activity.when, width: '72px', cell: (a) => <span className="text-xs text-ink3"><Time at={a.createdAt} /></span>, text: (a) => a.createdAt ?? '' },
    { id: 'who', head: t.activity.who, width: '148px', cell: (a) => <Who id={a.agentId ?? a.actorId} name={who(a)} person={!a.agentId} />, text: who },
    { id: 'what', head: t.activity.what, width: 'minmax(0,1fr)', cell: (a) => words(a.action), text: (a) => a.action },
    { id: 'about', head: t.activity.about, width: '140px', from: 'tab', text: (a) => issueOf(a) ?? `${a.entityType} ${a.entityId}`, cell: (a) => { const issue = issueOf(a); return issue ? <Link to={`/${company.issuePrefix}/issues/${issue}`} className="hover:underline">{issue}</Link> : <span className="text-ink3">{words(a.entityType)}</span> } },
    { id: 'height', head: t.activity.height, width: '80px', right: true, from: 'desk', cell: (a) => <span className="font-mono text-xs text-ink3">{a.height}</span>, text: (a) => String(a.height) },
  ]
  const shown = (rows: readonly Activity[]) => rows.filter((a) => `${a.action} ${who(a)} ${issueOf(a) ?? ''} ${a.entityType}`.toLowerCase().includes(filter.toLowerCase()))
  return (
    <Frame title={t.nav.activity} command="selvage activity list" scroll={false}
      bar={<Input aria-label={t.activity.filter} placeholder={t.activity.filter} value={filter} onChange={(e) => void go({ to: '.', search: (e.target.value ? { q: e.target.value } : {}) as never, replace: true })} />}>
      <Loaded of={all}>{(rows) => <Table label={t.nav.activity} rows={shown(rows)} columns={columns} keyOf={(a) => a.id} empty={<Empty icon="activity" title={t.activity.empty} why={t.activity.emptyWhy} />} />}</Loaded>
    </Frame>
  )
}
