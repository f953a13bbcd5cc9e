// A package into a new company or into this one: what would happen is shown first; then all of it is done or nothing.
import { useNavigate } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { keys } from '../../cache'
import { useMaybeCompany } from '../../company'
import { client, useRead, useWrite, type Company } from '../../data'
import { Page as Frame } from '../../frame/page'
import { get, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Field, Input, Select } from '../../parts/form'
import { ErrorBox, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Tab, Tabs } from '../../parts/tabs'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { useRouterState } from '@tanstack/react-router'
import { FileList } from './export'
import { filesOf } from '../start/starter'

type Preview = Schemas['ApiImportPreview']
type Row = { key: string; kind: string; slug: string; action: string; as: string; reason: string | null }

const actionMark: Record<string, string> = { create: 'ok', update: 'warn', skip: 'cancelled' }
const columns: Column<Row>[] = [
  { id: 'kind', head: t.transfer.kind, width: '88px', cell: (r) => t.transfer.kinds[r.kind] ?? r.kind },
  { id: 'as', head: t.transfer.as, width: 'minmax(0,1fr)', cell: (r) => <span className="truncate">{r.as}</span> },
  { id: 'action', head: t.transfer.action, width: '112px', cell: (r) => <StatusMark status={actionMark[r.action] ?? 'ok'} label={t.transfer.actions[r.action] ?? r.action} /> },
  { id: 'reason', head: t.transfer.reason, width: 'minmax(0,1fr)', from: 'tab', cell: (r) => <span className="truncate text-sm text-ink2">{r.reason}</span> },
]

export function Page() {
  const found = useMaybeCompany()
  const addressed = useRouterState({ select: (s) => !s.location.pathname.startsWith('/companies/') })
  const company = addressed ? found : undefined
  const go = useNavigate()
  const form = <Tab value="import" className="flex w-full max-w-[880px] flex-col gap-4 p-4"><Import company={company} /></Tab>
  return (
    <Frame title={t.transfer.import} command="selvage company import">
      <Tabs value="import" onChange={(v) => company && void go({ to: `/${company.issuePrefix}/company/${v}` })} tabs={[{ value: 'import', label: t.transfer.import }, ...(company ? [{ value: 'export', label: t.transfer.export }] : [])]}>{form}</Tabs>
    </Frame>
  )
}

function Import({ company }: { company: Company | undefined }) {
  const go = useNavigate()
  const teams = useRead(keys.mesh('teams'), '/api/teams/catalog').data ?? []
  const [from, setFrom] = useState('zip')
  const [file, setFile] = useState<File>()
  const [url, setUrl] = useState('')
  const [into, setInto] = useState('new')
  const [name, setName] = useState('')
  const [collision, setCollision] = useState('rename')
  const [shown, setShown] = useState<Preview>()
  const picked = useRef<HTMLInputElement>(null)
  const changed = <T,>(set: (v: T) => void) => (v: T) => { set(v); setShown(undefined) }
  const team = teams.find((x) => x.id === from)
  const ready = from === 'zip' ? !!file : from === 'github' ? url.startsWith('https://') : !!team
  /** send does both: the preview and the import take the same. */
  const send = async (preview: boolean): Promise<unknown> => {
    const target = into === 'here' && company ? { mode: 'existing_company', companyId: company.id } : { mode: 'new_company', ...(name.trim() ? { newCompanyName: name.trim() } : {}) }
    const choice = { target, agents: 'all', collisionStrategy: collision }
    const call = (options: { query?: Record<string, string> }, body: unknown) => preview ? post('/api/companies/import/preview', options, body) : post('/api/companies/import', options, body)
    if (from === 'zip' && file) return call({ query: { meta: JSON.stringify(choice) } }, new Blob([file], { type: 'application/zip' }))
    return call({}, { ...choice, source: team ? { type: 'inline', rootPath: team.slug, files: await filesOf(team) } : { type: 'github', url: url.trim() } })
  }
  const look = useWrite({ call: () => send(true) as Promise<Preview>, onDone: setShown })
  const apply = useWrite({
    call: () => send(false) as Promise<Schemas['ApiImported']>, reread: () => [keys.companies()],
    onDone: async (done) => {
      toast({ text: t.transfer.done(done.company.name, done.agents.length, done.projects.length) })
      const all = await client.fetchQuery({ queryKey: keys.companies(), queryFn: () => get('/api/companies'), staleTime: 0 })
      const made = all.find((c) => c.id === done.company.id)
      await client.invalidateQueries()
      if (made) void go({ to: `/${made.issuePrefix}` })
    },
  })
  return (
    <>
      <form className="grid gap-3 tab:grid-cols-2" onSubmit={(e) => { e.preventDefault(); look.mutate(undefined) }}>
        <Field label={t.transfer.from}><Select value={from} onChange={(e) => changed(setFrom)(e.target.value)} choices={[{ value: 'zip', label: t.transfer.zip }, { value: 'github', label: 'GitHub' }, ...teams.map((x) => ({ value: x.id, label: x.name }))]} /></Field>
        {from === 'zip' && <Field label={t.transfer.file}><input ref={picked} type="file" accept=".zip,application/zip" className="h-8 text-sm" onChange={(e) => changed(setFile)(e.target.files?.[0])} /></Field>}
        {from === 'github' && <Field label={t.transfer.url}><Input type="url" placeholder="https://github.com/owner/repository" value={url} onChange={(e) => changed(setUrl)(e.target.value)} /></Field>}
        {team && <p className="self-end text-sm text-ink2">{team.description}</p>}
        {company && <Field label={t.transfer.into}><Select value={into} onChange={(e) => changed(setInto)(e.target.value)} choices={[{ value: 'new', label: t.transfer.newCompany }, { value: 'here', label: company.name }]} /></Field>}
        {into === 'new' ? <Field label={t.transfer.name} hint={t.transfer.nameHint}><Input value={name} maxLength={200} onChange={(e) => changed(setName)(e.target.value)} /></Field>
          : <Field label={t.transfer.collision}><Select value={collision} onChange={(e) => changed(setCollision)(e.target.value)} choices={(['rename', 'skip', 'replace'] as const).map((v) => ({ value: v, label: t.transfer.collisions[v] }))} /></Field>}
        <div className="flex gap-2 tab:col-span-2"><Button look={shown ? 'plain' : 'primary'} type="submit" disabled={!ready} busy={look.isPending}>{t.transfer.look}</Button></div>
      </form>
      {look.error !== null && !shown && <ErrorBox error={look.error} />}
      {shown && <Shown of={shown} busy={apply.isPending} onApply={() => apply.mutate(undefined)} />}
    </>
  )
}

function Shown({ of, busy, onApply }: { of: Preview; busy: boolean; onApply: () => void }) {
  const rows: Row[] = [
    ...of.plan.agentPlans.map((p) => ({ key: `agent ${p.slug}`, kind: 'agent', slug: p.slug, action: p.action, as: p.plannedName, reason: p.reason })),
    ...of.plan.projectPlans.map((p) => ({ key: `project ${p.slug}`, kind: 'project', slug: p.slug, action: p.action, as: p.plannedName, reason: p.reason })),
    ...of.plan.issuePlans.map((p) => ({ key: `issue ${p.slug}`, kind: 'issue', slug: p.slug, action: p.action, as: p.plannedTitle, reason: p.reason })),
  ]
  const name = of.targetCompanyName ?? of.manifest.company?.name ?? ''
  const lines = [...of.errors.map((text) => ['bad', text] as const), ...of.warnings.map((text) => ['warn', text] as const), ...of.envInputs.map((e) => ['note', t.transfer.variable(e.key, e.agentSlug ?? e.projectSlug ?? '', e.requirement)] as const), ...of.toFillIn.map((f) => ['note', `${t.transfer.fillIn(f.setting, f.agentName)} ${f.do}`] as const)]
  return (
    <>
      <Section title={t.transfer.would(t.transfer.companyActions[of.plan.companyAction] ?? of.plan.companyAction, name)} aside={<Button look="primary" busy={busy} disabled={of.errors.length > 0} onClick={onApply}>{t.transfer.apply}</Button>}>
        {lines.length > 0 && <ul className="mb-3 flex flex-col gap-1 text-sm">{lines.map(([mark, text]) => <li key={text} className="flex gap-2"><StatusMark status={mark} bare /><span className="min-w-0 break-words">{text}</span></li>)}</ul>}
        <div className="flex max-h-[440px] flex-col overflow-hidden rounded border border-line"><Table label={t.transfer.look} rows={rows} columns={columns} keyOf={(r) => r.key} /></div>
      </Section>
      <Section title={t.transfer.holds(String(Object.keys(of.files ?? {}).length))}><FileList files={of.files} /></Section>
    </>
  )
}
