// What happened in the company, newest first: filtered by a word.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useMembers, useNames, useRead, type Activity } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { Input, Select } from '../../parts/form'
import { Empty, Loaded } from '../../parts/states'
import { Table, type Column } from '../../parts/table'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

interface Search { q?: string; who?: string; about?: string }

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
  const search = useSearch({ strict: false }) as Search
  const filter = search.q ?? ''
  const set = (next: Search) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...search, ...next }).filter(([, v]) => v)) as never, replace: true })
  const all = useRead(keys.activity(company.id, { limit }), '/api/companies/{companyId}/activity', { path: { companyId: company.id }, query: { limit } })
  const members = useMembers().data
  const who = (a: Activity) => (a.agentId ? names(a.agentId).name : members?.find((m) => m.id === a.actorId || m.id.startsWith(a.actorId))?.name ?? names(a.actorId).name)
  const columns: Column<Activity>[] = [
    { id: 'at', head: t.activity.when, width: '72px', cell: (a) => <span className="text-xs text-ink3"><Time at={a.createdAt} /></span>, text: (a) => a.createdAt ?? '' },
    { id: 'who', head: t.activity.who, width: 'clamp(88px,26vw,148px)', cell: (a) => <Who id={a.agentId ?? a.actorId} name={who(a)} person={!a.agentId} />, text: who },
    { id: 'what', head: t.activity.what, width: 'minmax(0,1fr)', cell: (a) => words(a.action), text: (a) => a.action },
    { id: 'about', head: t.activity.about, width: '140px', from: 'tab', text: (a) => issueOf(a) ?? `${a.entityType} ${a.entityId}`, cell: (a) => { const issue = issueOf(a); return issue ? <Link to={`/${company.issuePrefix}/issues/${issue}`} className="hover:underline">{issue}</Link> : <span className="text-ink3">{words(a.entityType)}</span> } },
    { id: 'height', head: t.activity.height, width: '80px', right: true, from: 'desk', cell: (a) => <span className="font-mono text-xs text-ink3">{a.height}</span>, text: (a) => String(a.height) },
  ]
  const rows = all.data ?? []
  const choices = (of: (a: Activity) => [string, string], none: string) => [{ value: '', label: none }, ...[...new Map(rows.map(of)).entries()].map(([value, label]) => ({ value, label })).sort((a, b) => a.label.localeCompare(b.label))]
  const shown = (list: readonly Activity[]) => list.filter((a) => (!search.who || (a.agentId ?? a.actorId) === search.who) && (!search.about || a.entityType === search.about) && `${a.action} ${who(a)} ${issueOf(a) ?? ''} ${a.entityType}`.toLowerCase().includes(filter.toLowerCase()))
  return (
    <Frame title={t.nav.activity} command="selvage activity list" scroll={false}
      bar={<>
        <Input data-find aria-label={t.activity.filter} placeholder={t.activity.filter} value={filter} onChange={(e) => set({ q: e.target.value })} className="!w-64 shrink-0" />
        <Select aria-label={t.activity.who} value={search.who ?? ''} onChange={(e) => set({ who: e.target.value })} choices={choices((a) => [a.agentId ?? a.actorId, who(a)], tp.activity.anybody)} />
        <Select aria-label={t.activity.about} value={search.about ?? ''} onChange={(e) => set({ about: e.target.value })} choices={choices((a) => [a.entityType, words(a.entityType)], tp.activity.anything)} />
        {rows.length === limit && <span className="ml-auto shrink-0 text-xs text-ink3">{tp.activity.newest(limit)}</span>}
      </>}>
      <Loaded of={all}>{(list) => <Table label={t.nav.activity} rows={shown(list)} columns={columns} keyOf={(a) => a.id} empty={<Empty icon="activity" title={t.activity.empty} why={t.activity.emptyWhy} />} />}</Loaded>
    </Frame>
  )
}
