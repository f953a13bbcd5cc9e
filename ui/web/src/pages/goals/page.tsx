// The goals as a tree; a new one is made under another, a click changes one.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useNames, useRead, useWrite } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Schema } from '../../parts/jsonform'
import { Confirm } from '../../parts/overlay'
import { rem } from '../../parts/scale'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Time, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { asTree, type Leaf } from './tree'

type Goal = Schemas['Goal']

export function Page() {
  const company = useCompany()
  const names = useNames(company.id)
  const [editing, setEditing] = useState<Goal | 'new'>()
  const goals = useRead(keys.goals(company.id), '/api/companies/{companyId}/goals', { path: { companyId: company.id } })
  const columns: Column<Leaf<Goal>>[] = [
    { id: 'status', head: '', width: '16px', cell: (g) => <StatusMark status={g.row.status} bare /> },
    { id: 'title', head: t.goals.title, width: 'minmax(0,1fr)', cell: (g) => <span className="truncate" style={{ paddingLeft: rem(g.depth * 20) }}>{g.row.title}</span> },
    { id: 'level', head: t.goals.level, width: '88px', from: 'tab', cell: (g) => <span className="text-ink2">{words(g.row.level)}</span> },
    { id: 'owner', head: t.goals.owner, width: '140px', from: 'tab', cell: (g) => (g.row.ownerAgentId ? <Who id={g.row.ownerAgentId} name={names(g.row.ownerAgentId).name} /> : '–') },
    { id: 'made', head: t.issue.created, width: '72px', right: true, from: 'desk', cell: (g) => <span className="text-xs text-ink3"><Time at={g.row.createdAt} /></span> },
  ]
  return (
    <Frame title={t.nav.goals} command="selvage goal list" scroll={false} tools={<Button look="primary" icon="plus" onClick={() => setEditing('new')}>{t.goals.create}</Button>}>
      <Loaded of={goals}>{(rows) => <Table label={t.nav.goals} rows={asTree(rows)} columns={columns} keyOf={(g) => g.row.id} onOpen={(g) => setEditing(g.row)} empty={<Empty icon="goals" title={t.goals.empty} why={t.goals.emptyWhy} />} />}</Loaded>
      {editing && <Edit key={editing === 'new' ? 'new' : editing.id} of={editing} goals={goals.data ?? []} onClose={() => setEditing(undefined)} />}
    </Frame>
  )
}

const levels = ['company', 'team', 'agent', 'task']
const states = ['planned', 'active', 'achieved', 'cancelled']

function Edit({ of, goals, onClose }: { of: Goal | 'new'; goals: readonly Goal[]; onClose: () => void }) {
  const company = useCompany()
  const agents = useAgents(company.id).data ?? []
  const [removing, setRemoving] = useState(false)
  const goal = of === 'new' ? undefined : of
  const reread = () => [keys.goals(company.id)]
  const save = useWrite<Record<string, unknown>, unknown>({
    call: (body) => (goal ? patch('/api/goals/{id}', { path: { id: goal.id } }, body) : post('/api/companies/{companyId}/goals', { path: { companyId: company.id } }, body as Schemas['ApiNewGoal'])),
    reread, onDone: onClose,
  })
  const remove = useWrite<string, unknown>({ call: (id) => del('/api/goals/{id}', { path: { id } }), reread, onDone: onClose })
  const above = goals.filter((g) => g.id !== goal?.id)
  const schema: Schema = {
    required: ['title'],
    properties: {
      title: { type: 'string', title: t.goals.title }, description: { type: 'string', format: 'multiline', title: t.issues.description },
      parentId: { type: 'string', title: t.goals.above, enum: above.map((g) => g.id), labels: Object.fromEntries(above.map((g) => [g.id, g.title])) },
      level: { type: 'string', title: t.goals.level, enum: levels }, status: { type: 'string', title: t.goals.status, enum: states, labels: Object.fromEntries(states.map((s) => [s, statusText(s)])) },
      ownerAgentId: { type: 'string', title: t.goals.owner, enum: agents.map((a) => a.id), labels: Object.fromEntries(agents.map((a) => [a.id, a.name])) },
    },
  }
  if (removing && goal) return <Confirm open onClose={() => setRemoving(false)} title={t.goals.removeAsk(goal.title)} body={t.goals.removeBody} action={t.common.remove} busy={remove.isPending} onConfirm={() => remove.mutate(goal.id)} />
  return <FormDialog title={goal ? goal.title : t.goals.create} schema={schema} action={goal ? t.common.save : t.common.create} busy={save.isPending} onClose={onClose}
    initial={goal ? { title: goal.title, description: goal.description ?? undefined, parentId: goal.parentId ?? undefined, level: goal.level, status: goal.status, ownerAgentId: goal.ownerAgentId ?? undefined } : { level: 'company', status: 'planned' }}
    foot={() => goal && <Button small look="danger" className="self-start" onClick={() => setRemoving(true)}>{t.common.remove}</Button>}
    onSave={(values, changes) => (goal ? (Object.keys(changes).length > 0 ? save.mutate(changes) : onClose()) : save.mutate({ ...values, ...(values['parentId'] && values['level'] === 'company' ? { level: 'team' } : {}) }))} />
}
