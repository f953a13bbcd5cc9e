// The skills of the company: write one, take one of the catalogue, import one.
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useRead, useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Dialog } from '../../parts/overlay'
import { Empty, Loaded } from '../../parts/states'
import { Badge } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Time } from '../../parts/values'
import { tp } from '../../text/en.pages'

type Skill = Schemas['ApiSkillInList']

export function Page() {
  const company = useCompany()
  const go = useNavigate()
  const all = useRead(keys.skills(company.id), '/api/companies/{companyId}/skills', { path: { companyId: company.id } })
  const [open, setOpen] = useState<'create' | 'catalog' | 'import'>()
  const to = (s: { id: string }) => `/${company.issuePrefix}/skills/${s.id}`
  const reread = () => [keys.skills(company.id)]
  const create = useWrite<Values, Schemas['ApiSkillDetail']>({ call: (v) => post('/api/companies/{companyId}/skills', { path: { companyId: company.id } }, v), reread, onDone: (made) => { setOpen(undefined); toast({ text: tp.skills.made(made.name) }); void go({ to: to(made) }) } })
  const fetchOne = useWrite<Values, Schemas['ApiSkillsImported']>({ call: (v) => post('/api/companies/{companyId}/skills/import', { path: { companyId: company.id } }, v), reread, onDone: (a) => { setOpen(undefined); toast({ text: [tp.skills.imported((a.imported ?? []).length), ...(a.warnings ?? [])].join('. ') }) } })
  const columns: Column<Skill>[] = [
    { id: 'name', head: tp.skills.name, width: 'minmax(0,240px)', cell: (s) => <Link to={to(s)} className="font-strong hover:underline">{s.name}</Link>, sort: (a, b) => a.name.localeCompare(b.name) },
    { id: 'description', head: tp.skills.description, width: 'minmax(0,1fr)', from: 'tab', cell: (s) => <span className="text-ink2">{s.tagline ?? s.description ?? ''}</span> },
    { id: 'source', head: tp.skills.source, width: '120px', cell: (s) => <Badge>{s.sourceLabel || s.sourceBadge}</Badge> },
    { id: 'agents', head: tp.skills.agents, width: '64px', right: true, from: 'tab', cell: (s) => s.attachedAgentCount, sort: (a, b) => a.attachedAgentCount - b.attachedAgentCount },
    { id: 'updated', head: tp.skills.updated, width: '80px', right: true, from: 'desk', cell: (s) => <span className="text-xs text-ink3"><Time at={s.updatedAt} /></span> },
  ]
  return (
    <Frame title={tp.skills.title} command="selvage skill list" scroll={false}
      tools={<><Button onClick={() => setOpen('catalog')}>{tp.skills.fromCatalog}</Button><Button onClick={() => setOpen('import')}>{tp.skills.importFrom}</Button><Button look="primary" icon="plus" onClick={() => setOpen('create')}>{tp.skills.create}</Button></>}>
      <Loaded of={all}>{(rows) => <Table label={tp.skills.title} rows={rows} columns={columns} keyOf={(s) => s.id} onOpen={(s) => void go({ to: to(s) })} empty={<Empty icon="skills" title={tp.skills.empty} why={tp.skills.emptyWhy} />} />}</Loaded>
      {open === 'create' && <FormDialog title={tp.skills.create} size="large" busy={create.isPending} onClose={() => setOpen(undefined)} onSave={(v) => create.mutate(v)}
        schema={{ required: ['name'], properties: { name: { type: 'string', title: tp.skills.name }, description: { type: 'string', title: tp.skills.description }, markdown: { type: 'string', format: 'markdown', title: tp.skills.markdown } } }} />}
      {open === 'import' && <FormDialog title={tp.skills.importFrom} action={tp.skills.importFrom} busy={fetchOne.isPending} onClose={() => setOpen(undefined)} onSave={(v) => fetchOne.mutate(v)} schema={{ required: ['source'], properties: { source: { type: 'string', title: tp.skills.sourceField, description: tp.skills.sourceHint } } }} />}
      <Dialog open={open === 'catalog'} onClose={() => setOpen(undefined)} title={tp.skills.catalog} size="large"><Catalog have={new Set((all.data ?? []).map((s) => s.slug))} /></Dialog>
    </Frame>
  )
}

function Catalog({ have }: { have: ReadonlySet<string> }) {
  const company = useCompany()
  const all = useRead(['skillCatalog'], '/api/skills/catalog')
  const install = useWrite<string, Schemas['ApiSkillDetail']>({ call: (catalogSkillId) => post('/api/companies/{companyId}/skills/install-catalog', { path: { companyId: company.id } }, { catalogSkillId }), reread: () => [keys.skills(company.id)], onDone: (s) => toast({ text: tp.skills.installed(s.name) }) })
  return (
    <Loaded of={all} rows={6}>
      {(rows) => rows.length === 0 ? <Empty icon="skills" title={tp.skills.noCatalog} /> : (
        <Lines>{rows.map((s) => <LineOf key={s.id}><Front><span className="font-strong">{s.name}</span> <span className="text-ink2">{s.description}</span></Front><Badge>{s.category}</Badge>{have.has(s.slug) ? <span className="text-xs text-ok">{tp.skills.have}</span> : <Button small busy={install.isPending && install.variables === s.id} onClick={() => install.mutate(s.id)}>{tp.skills.install}</Button>}</LineOf>)}</Lines>
      )}
    </Loaded>
  )
}
