// The projects with their lead, issues and target; a title opens one.
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useProjects, useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Checkbox, Field, Input } from '../../parts/form'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Who } from '../../parts/values'
import { statusText, t } from '../../text/en'

type Project = Schemas['ApiProjectInList']

export function Page() {
  const company = useCompany()
  const names = useNames(company.id)
  const projects = useProjects(company.id)
  const [creating, setCreating] = useState(false)
  const [archived, setArchived] = useState(false)
  const go = useNavigate()
  const columns: Column<Project>[] = [
    { id: 'name', head: t.projects.name, width: 'minmax(0,1fr)', cell: (p) => <Link to={`/${company.issuePrefix}/projects/${p.id}`} className="font-strong hover:underline">{p.name}</Link>, sort: (a, b) => a.name.localeCompare(b.name) },
    { id: 'status', head: t.projects.status, width: '128px', cell: (p) => <StatusMark status={p.pausedAt ? 'paused' : p.status} /> },
    { id: 'lead', head: t.projects.lead, width: '140px', from: 'tab', cell: (p) => (p.leadAgentId ? <Who id={p.leadAgentId} name={names(p.leadAgentId).name} /> : '–') },
    { id: 'issues', head: t.projects.issues, width: '72px', right: true, from: 'tab', cell: (p) => p.taskCount, sort: (a, b) => a.taskCount - b.taskCount },
    { id: 'target', head: t.projects.target, width: '104px', right: true, from: 'desk', cell: (p) => p.targetDate ?? '–' },
  ]
  return (
    <Frame title={t.nav.projects} command="selvage project list" scroll={false} tools={<><Checkbox label={statusText('archived')} checked={archived} onChange={setArchived} /><Button look="primary" icon="plus" onClick={() => setCreating(true)}>{t.projects.create}</Button></>}>
      <Loaded of={projects}>{(rows) => <Table label={t.nav.projects} rows={rows.filter((p) => !!p.archivedAt === archived)} columns={columns} keyOf={(p) => p.id} onOpen={(p) => void go({ to: `/${company.issuePrefix}/projects/${p.id}` })} empty={<Empty icon="projects" title={t.projects.empty} why={t.projects.emptyWhy} />} />}</Loaded>
      <Dialog open={creating} onClose={() => setCreating(false)} title={t.projects.create}><Create company={company.id} onClose={() => setCreating(false)} /></Dialog>
    </Frame>
  )
}

function Create({ company, onClose }: { company: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const [wrong, setWrong] = useState<string>()
  const create = useWrite({
    call: () => post('/api/companies/{companyId}/projects', { path: { companyId: company } }, { name: name.trim() }),
    reread: () => [keys.projects(company)],
    onDone: onClose,
  })
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (name.trim() === '') setWrong(t.part.required(t.projects.name)); else create.mutate(undefined) }}>
      <Field label={t.projects.name} wrong={wrong}><Input autoFocus name="name" value={name} onChange={(e) => { setName(e.target.value); setWrong(undefined) }} /></Field>
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={create.isPending}>{t.common.create}</Button></DialogFoot>
    </form>
  )
}
