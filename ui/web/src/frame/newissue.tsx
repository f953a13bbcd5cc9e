import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useMaybeCompany } from '../company'
import { useAgents, useCreateIssue, useProjects } from '../data'
import { drafts } from '../node'
import { Button } from '../parts/button'
import { Field, Input, Select, TextArea } from '../parts/form'
import { Dialog, DialogFoot } from '../parts/overlay'
import { toast } from '../parts/toast'
import { useStore } from '../store'
import { statusText, t } from '../text/en'
import { newIssue } from './state'

/** The dialog of a new issue, opened from anywhere with c. */
export function NewIssue() {
  const start = useStore(newIssue)
  const company = useMaybeCompany()
  if (!start || !company) return null
  return <Dialog open onClose={() => newIssue.set(undefined)} title={t.issues.create} size="medium"><Form company={company.id} prefix={company.issuePrefix} start={start} /></Dialog>
}

function Form({ company, prefix, start }: { company: string; prefix: string; start: { parentId?: string; assigneeAgentId?: string; projectId?: string; status?: string } }) {
  const agents = useAgents(company).data ?? []
  const projects = useProjects(company).data ?? []
  const go = useNavigate()
  const [title, setTitle] = useState('')
  const [description, setDescription] = useState(() => drafts.get('issue'))
  const [rest, setRest] = useState({ status: start.status ?? 'todo', priority: 'medium', assigneeAgentId: start.assigneeAgentId ?? '', projectId: start.projectId ?? '' })
  const [wrong, setWrong] = useState<string>()
  const create = useCreateIssue(company, (made) => {
    newIssue.set(undefined)
    drafts.set('issue', '')
    toast({ text: t.issues.created(made.identifier ?? '') })
    void go({ to: `/${prefix}/issues/${made.identifier ?? made.id}` })
  })
  const send = () => {
    if (title.trim() === '') return setWrong(t.issues.titleNeeded)
    create.mutate({ title: title.trim(), ...(description ? { description } : {}), status: rest.status, priority: rest.priority,
      ...(rest.assigneeAgentId ? { assigneeAgentId: rest.assigneeAgentId } : {}), ...(rest.projectId ? { projectId: rest.projectId } : {}), ...(start.parentId ? { parentId: start.parentId } : {}) })
  }
  const pick = (name: keyof typeof rest) => ({ value: rest[name], onChange: (e: React.ChangeEvent<HTMLSelectElement>) => setRest({ ...rest, [name]: e.target.value }) })
  const choice = (value: string) => ({ value, label: statusText(value) })
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); send() }} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) send() }}>
      <Field label={t.issues.titleField} wrong={wrong}><Input autoFocus name="title" value={title} maxLength={500} onChange={(e) => { setTitle(e.target.value); setWrong(undefined) }} /></Field>
      <Field label={t.issues.description}><TextArea rows={6} name="description" value={description} onChange={(e) => { setDescription(e.target.value); drafts.set('issue', e.target.value) }} /></Field>
      <div className="grid grid-cols-2 gap-3">
        <Field label={t.issues.assignee}><Select {...pick('assigneeAgentId')} choices={[{ value: '', label: t.issues.unassigned }, ...agents.map((a) => ({ value: a.id, label: a.name }))]} /></Field>
        <Field label={t.issues.project}><Select {...pick('projectId')} choices={[{ value: '', label: t.common.none }, ...projects.map((p) => ({ value: p.id, label: p.name }))]} /></Field>
        <Field label={t.issues.status}><Select {...pick('status')} choices={['backlog', 'todo'].map(choice)} /></Field>
        <Field label={t.issues.priority}><Select {...pick('priority')} choices={['critical', 'high', 'medium', 'low'].map((p) => ({ value: p, label: t.priority[p] ?? p }))} /></Field>
      </div>
      <DialogFoot><Button onClick={() => newIssue.set(undefined)}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={create.isPending}>{t.common.create}</Button></DialogFoot>
    </form>
  )
}
