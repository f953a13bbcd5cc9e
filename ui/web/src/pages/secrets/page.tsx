// The secrets: what they are for, where they are used, who used them. A value goes in and is never shown.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { client, useMembers, useNames, useRead, useWrite } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm, Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

type Secret = Schemas['ApiSecretListItem']

const columns: Column<Secret>[] = [
  { id: 'name', head: tp.secrets.name, width: 'minmax(0,1fr)', cell: (s) => <span className="font-strong">{s.name}</span>, sort: (a, b) => a.name.localeCompare(b.name) },
  { id: 'key', head: tp.secrets.key, width: 'minmax(0,1fr)', from: 'tab', cell: (s) => <code className="font-mono text-xs text-ink2">{s.key}</code> },
  { id: 'status', head: tp.secrets.status, width: '96px', cell: (s) => <StatusMark status={s.status} /> },
  { id: 'provider', head: tp.secrets.provider, width: '132px', from: 'wide', cell: (s) => words(s.provider) },
  { id: 'version', head: tp.secrets.version, width: '64px', right: true, from: 'wide', cell: (s) => s.latestVersion, sort: (a, b) => a.latestVersion - b.latestVersion },
  { id: 'references', head: tp.secrets.references, width: '64px', right: true, from: 'tab', cell: (s) => s.referenceCount, sort: (a, b) => a.referenceCount - b.referenceCount },
  { id: 'used', head: tp.secrets.last, width: '80px', right: true, from: 'desk', cell: (s) => <span className="text-xs text-ink3"><Time at={s.lastResolvedAt} /></span> },
  { id: 'rotated', head: tp.secrets.rotated, width: '80px', right: true, from: 'tab', cell: (s) => <span className="text-xs text-ink3"><Time at={s.lastRotatedAt ?? s.createdAt} /></span> },
]

/** schemaOf is the form of a new secret: a value that is kept here, or a reference to another store. */
const schemaOf = (v: Values): Schema => ({
  required: v['where'] === 'elsewhere' ? ['name', 'provider', 'externalRef'] : ['name', 'value'],
  properties: {
    name: { type: 'string', title: tp.secrets.name }, where: { type: 'string', title: tp.secrets.kept, enum: ['here', 'elsewhere'], labels: { here: tp.secrets.here, elsewhere: tp.secrets.elsewhere } },
    ...(v['where'] === 'elsewhere' ? { provider: { type: 'string', title: tp.secrets.store, enum: Object.keys(tp.secrets.stores), labels: tp.secrets.stores }, externalRef: { type: 'string', title: tp.secrets.reference }, providerVersionRef: { type: 'string', title: tp.secrets.referenceVersion } } : { value: schema.properties!['value']! }),
    description: schema.properties!['description']!,
  },
})

const bodyOf = ({ where, ...rest }: Values): Values => (where === 'elsewhere' ? { ...rest, managedMode: 'external_reference' } : rest)

const schema: Schema = {
  required: ['name', 'value'],
  properties: { name: { type: 'string', title: tp.secrets.name }, value: { type: 'string', writeOnly: true, title: tp.secrets.value, description: tp.secrets.valueHint }, description: { type: 'string', title: tp.secrets.description } },
}

export function Page() {
  const company = useCompany()
  const { show } = useSearch({ strict: false }) as { show?: string }
  const go = useNavigate()
  const open = (id: string) => void go({ to: '.', search: (id ? { show: id } : {}) as never, replace: true })
  const all = useRead(keys.secrets(company.id), '/api/companies/{companyId}/secrets', { path: { companyId: company.id } })
  const [creating, setCreating] = useState(false)
  const create = useWrite<Values, Schemas['ApiSecretRow']>({ call: (v) => post('/api/companies/{companyId}/secrets', { path: { companyId: company.id } }, bodyOf(v)), reread: () => [keys.secrets(company.id)], onDone: (made) => { setCreating(false); toast({ text: tp.secrets.made(made.name) }) } })
  const shown = all.data?.find((s) => s.id === show)
  return (
    <Frame title={tp.secrets.title} command="selvage secret list" scroll={false} tools={<Button look="primary" icon="plus" onClick={() => setCreating(true)}>{tp.secrets.create}</Button>}
      drawer={shown && <Drawer label={shown.name} onClose={() => open('')} head={shown.name}><One key={shown.id} secret={shown} onGone={() => open('')} /></Drawer>}>
      <Loaded of={all}>{(rows) => <Table label={tp.secrets.title} rows={rows} columns={columns} keyOf={(s) => s.id} openKey={show} onOpen={(s) => open(s.id)} empty={<Empty icon="secrets" title={tp.secrets.empty} why={tp.secrets.emptyWhy} />} />}</Loaded>
      {creating && <FormDialog title={tp.secrets.create} schema={schemaOf} initial={{ where: 'here' }} busy={create.isPending} onClose={() => setCreating(false)} onSave={(v) => create.mutate(v)} />}
    </Frame>
  )
}

function One({ secret: s, onGone }: { secret: Secret; onGone: () => void }) {
  const company = useCompany()
  const names = useNames(company.id)
  const members = useMembers().data
  const usage = useRead([...keys.secrets(company.id), s.id, 'usage'], '/api/secrets/{id}/usage', { path: { id: s.id } })
  const events = useRead([...keys.secrets(company.id), s.id, 'events'], '/api/secrets/{id}/access-events', { path: { id: s.id }, query: { limit: 50 } })
  const [doing, setDoing] = useState<'rotate' | 'edit' | 'remove'>()
  const reread = () => [keys.secrets(company.id)]
  const rotate = useWrite<Values, unknown>({ call: (v) => post('/api/secrets/{id}/rotate', { path: { id: s.id } }, v), reread, onDone: () => { setDoing(undefined); toast({ text: tp.secrets.rotatedDone }) } })
  const change = useWrite<Record<string, unknown>, unknown>({ call: (v) => patch('/api/secrets/{id}', { path: { id: s.id } }, v), reread, onDone: () => { setDoing(undefined); toast({ text: tp.secrets.changed }) } })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/secrets/{id}', { path: { id: s.id } }), reread, onDone: () => { toast({ text: tp.secrets.removed(s.name) }); onGone(); client.setQueryData<Secret[]>(keys.secrets(company.id), (rows) => rows?.filter((x) => x.id !== s.id)) } })
  const nameOf = (kind: string, id: string) => (kind === 'agent' ? names(id).name : `${words(kind)} ${id.slice(0, 8)}`)
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap gap-2">
        <Button icon="routines" onClick={() => setDoing('rotate')}>{tp.secrets.rotate}</Button><Button onClick={() => setDoing('edit')}>{tp.secrets.edit}</Button>
        <Button busy={change.isPending} onClick={() => change.mutate({ status: s.status === 'active' ? 'disabled' : 'active' })}>{s.status === 'active' ? tp.secrets.disable : tp.secrets.enable}</Button><Button look="danger" onClick={() => setDoing('remove')}>{tp.secrets.remove}</Button>
      </div>
      <p className="text-sm text-ink2">{s.description ?? ''} <span className="text-ink3">{tp.secrets.never}</span></p>
      <Facts rows={[[tp.secrets.status, <StatusMark status={s.status} />], [tp.secrets.key, <code className="font-mono text-xs">{s.key}</code>], [tp.secrets.provider, words(s.provider)], !!s.externalRef && [tp.secrets.external, <Id id={s.externalRef} />], [tp.secrets.version, s.latestVersion], [tp.secrets.rotated, <Time at={s.lastRotatedAt} />], [t.issue.created, <Time at={s.createdAt} />], ['ID', <Id id={s.id} />]]} />
      <Section title={tp.secrets.bindings}>
        <Loaded of={usage} rows={2}>{(u) => (u.bindings ?? []).length === 0 ? <p className="text-sm text-ink3">{tp.secrets.noBindings}</p> : <Lines>{(u.bindings ?? []).map((b) => <LineOf key={b.id}><Front>{b.label ?? nameOf(b.targetType, b.targetId)}</Front><code className="font-mono text-xs text-ink2">{b.configPath}</code></LineOf>)}</Lines>}</Loaded>
      </Section>
      <Section title={tp.secrets.events}>
        <Loaded of={events} rows={2}>{(rows) => rows.length === 0 ? <p className="text-sm text-ink3">{tp.secrets.noEvents}</p> : <Lines>{rows.map((e) => <LineOf key={e.id}><StatusMark status={e.outcome === 'success' || e.outcome === 'resolved' ? 'ok' : 'bad'} bare label={e.outcome} /><Front>{nameOf(e.consumerType, e.consumerId)} <code className="font-mono text-xs text-ink3">{e.configPath}</code></Front><span className="text-xs text-ink2">{members?.find((m) => m.id === e.nodeId)?.name ?? ''}</span><span className="text-xs text-ink3"><Time at={e.createdAt} /></span></LineOf>)}</Lines>}</Loaded>
      </Section>
      {doing === 'rotate' && <FormDialog title={tp.secrets.rotateAsk(s.name)} head={<p className="text-sm text-ink2">{tp.secrets.rotateWhy}</p>} action={tp.secrets.rotate} schema={{ required: ['value'], properties: { value: schema.properties!['value']! } }} busy={rotate.isPending} onClose={() => setDoing(undefined)} onSave={(v) => rotate.mutate(v)} />}
      {doing === 'edit' && <FormDialog title={tp.secrets.edit} action={t.common.save} schema={{ required: ['name', 'key'], properties: { name: { type: 'string', title: tp.secrets.name }, key: { type: 'string', title: tp.secrets.key }, description: { type: 'string', title: tp.secrets.description } } }} initial={{ name: s.name, key: s.key, description: s.description ?? undefined }} busy={change.isPending} onClose={() => setDoing(undefined)} onSave={(_v, c) => (Object.keys(c).length > 0 ? change.mutate(c) : setDoing(undefined))} />}
      <Confirm open={doing === 'remove'} onClose={() => setDoing(undefined)} title={tp.secrets.removeAsk(s.name)} body={tp.secrets.removeBody} action={tp.secrets.remove} busy={remove.isPending} onConfirm={() => remove.mutate(undefined)} />
    </div>
  )
}
