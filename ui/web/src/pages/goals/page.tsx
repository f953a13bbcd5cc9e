// The goals as a tree; a new one is made under another.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useRead, useWrite } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Field, Input, Select } from '../../parts/form'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { asTree, type Leaf } from './tree'

type Goal = Schemas['Goal']

export function Page() {
  const company = useCompany()
  const names = useNames(company.id)
  const [creating, setCreating] = useState(false)
  const goals = useRead(keys.goals(company.id), '/api/companies/{companyId}/goals', { path: { companyId: company.id } })
  const columns: Column<Leaf<Goal>>[] = [
    { id: 'status', head: '', width: '16px', cell: (g) => <StatusMark status={g.row.status} bare /> },
    { id: 'title', head: t.goals.title, width: 'minmax(0,1fr)', cell: (g) => <span className="truncate" style={{ paddingLeft: g.depth * 20 }}>{g.row.title}</span> },
    { id: 'level', head: t.goals.level, width: '88px', from: 'tab', cell: (g) => <span className="text-ink2">{words(g.row.level)}</span> },
    { id: 'owner', head: t.goals.owner, width: '140px', from: 'tab', cell: (g) => (g.row.ownerAgentId ? <Who id={g.row.ownerAgentId} name={names(g.row.ownerAgentId).name} /> : '–') },
    { id: 'made', head: t.issue.created, width: '72px', right: true, from: 'desk', cell: (g) => <span className="text-xs text-ink3"><Time at={g.row.createdAt} /></span> },
  ]
  return (
    <Frame title={t.nav.goals} command="selvage goal list" scroll={false} tools={<Button look="primary" icon="plus" onClick={() => setCreating(true)}>{t.goals.create}</Button>}>
      <Loaded of={goals}>{(rows) => <Table label={t.nav.goals} rows={asTree(rows)} columns={columns} keyOf={(g) => g.row.id} empty={<Empty icon="goals" title={t.goals.empty} why={t.goals.emptyWhy} />} />}</Loaded>
      <Dialog open={creating} onClose={() => setCreating(false)} title={t.goals.create}><Create company={company.id} goals={goals.data ?? []} onClose={() => setCreating(false)} /></Dialog>
    </Frame>
  )
}

function Create({ company, goals, onClose }: { company: string; goals: readonly Goal[]; onClose: () => void }) {
  const [title, setTitle] = useState('')
  const [above, setAbove] = useState('')
  const [wrong, setWrong] = useState<string>()
  const create = useWrite({
    call: () => post('/api/companies/{companyId}/goals', { path: { companyId: company } }, { title: title.trim(), ...(above ? { parentId: above, level: 'team' as const } : { level: 'company' as const }) }),
    reread: () => [keys.goals(company)],
    onDone: onClose,
  })
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (title.trim() === '') setWrong(t.part.required(t.goals.title)); else create.mutate(undefined) }}>
      <Field label={t.goals.title} wrong={wrong}><Input autoFocus name="title" value={title} onChange={(e) => { setTitle(e.target.value); setWrong(undefined) }} /></Field>
      <Field label={t.goals.above}><Select value={above} onChange={(e) => setAbove(e.target.value)} choices={[{ value: '', label: t.goals.none }, ...goals.map((g) => ({ value: g.id, label: g.title }))]} /></Field>
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={create.isPending}>{t.common.create}</Button></DialogFoot>
    </form>
  )
}
