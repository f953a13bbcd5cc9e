// The companies, and the first one of an empty mesh.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompanies, useWrite, type Company } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post } from '../../http'
import { Button } from '../../parts/button'
import { Field, Input, TextArea } from '../../parts/form'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Money, Time } from '../../parts/values'
import { t } from '../../text/en'

const columns: Column<Company>[] = [
  { id: 'prefix', head: t.issues.key, width: '64px', cell: (c) => <span className="font-mono text-xs">{c.issuePrefix}</span> },
  { id: 'name', head: t.switcher.name, width: 'minmax(0,1fr)', cell: (c) => <Link to={`/${c.issuePrefix}`} className="font-strong hover:underline">{c.name}</Link>, sort: (a, b) => a.name.localeCompare(b.name) },
  { id: 'status', head: t.issues.status, width: '104px', cell: (c) => <StatusMark status={c.status} />, from: 'tab' },
  { id: 'spent', head: t.home.spend, width: '128px', right: true, cell: (c) => <Money cents={c.spentMonthlyCents} />, from: 'tab' },
  { id: 'created', head: t.issue.created, width: '72px', right: true, cell: (c) => <span className="text-xs text-ink3"><Time at={c.createdAt} /></span> },
]

export function Page() {
  const companies = useCompanies()
  const go = useNavigate()
  const search = useSearch({ strict: false }) as { new?: number }
  const [creating, setCreating] = useState(false)
  const open = creating || !!search.new
  const close = () => { setCreating(false); void go({ to: '/companies', replace: true }) }
  return (
    <Frame title={t.nav.companies} command="selvage company list" scroll={false} tools={<Button look="primary" icon="plus" onClick={() => setCreating(true)}>{t.switcher.create}</Button>}>
      <Loaded of={companies}>{(all) => <Table label={t.nav.companies} rows={all} columns={columns} keyOf={(c) => c.id} onOpen={(c) => void go({ to: `/${c.issuePrefix}` })} empty={<Empty icon="companies" title={t.home.noCompany} why={t.home.noCompanyWhy} />} />}</Loaded>
      <Dialog open={open} onClose={close} title={t.switcher.create}><Create onClose={close} /></Dialog>
    </Frame>
  )
}

function Create({ onClose }: { onClose: () => void }) {
  const go = useNavigate()
  const [name, setName] = useState('')
  const [description, setDescription] = useState('')
  const [wrong, setWrong] = useState<string>()
  const create = useWrite({
    call: () => post('/api/companies', {}, { name: name.trim(), ...(description.trim() ? { description: description.trim() } : {}) }) as Promise<Company>,
    reread: () => [keys.companies()],
    onDone: (made) => { onClose(); setTimeout(() => void go({ to: `/${made.issuePrefix}` })) },
  })
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (name.trim() === '') setWrong(t.part.required(t.switcher.name)); else create.mutate(undefined) }}>
      <Field label={t.switcher.name} wrong={wrong}><Input autoFocus name="name" placeholder={t.switcher.namePlaceholder} value={name} onChange={(e) => { setName(e.target.value); setWrong(undefined) }} /></Field>
      <Field label={t.switcher.goal}><TextArea name="description" value={description} onChange={(e) => setDescription(e.target.value)} /></Field>
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={create.isPending}>{t.common.create}</Button></DialogFoot>
    </form>
  )
}
