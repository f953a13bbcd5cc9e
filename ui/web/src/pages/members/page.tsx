// People and agents of the company: members with their roles, who asks to join, invitations, one's own keys.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useRead, useWrite } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Select } from '../../parts/form'
import { FormDialog, ShownOnce } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm, Menu } from '../../parts/overlay'
import { Empty, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { Rights } from './rights'

type Member = Schemas['ApiMemberRow']
type Invite = Schemas['ApiInviteRow']
const roles = ['owner', 'admin', 'operator', 'viewer'] as const
const roleChoices = roles.map((r) => ({ value: r, label: tp.members.rolesText[r] ?? r }))

const inviteSchema: Schema = {
  required: ['allowedJoinTypes'],
  properties: {
    allowedJoinTypes: { type: 'string', title: tp.members.who, enum: ['human', 'agent', 'both'], labels: tp.members.whos }, humanRole: { type: 'string', title: tp.members.roleOf, enum: [...roles], labels: tp.members.rolesText },
    agentMessage: { type: 'string', format: 'multiline', title: tp.members.message },
  },
}

export function Page() {
  const [inviting, setInviting] = useState(false)
  return (
    <Frame title={tp.members.title} command="selvage member list" tools={<Button look="primary" icon="plus" onClick={() => setInviting(true)}>{tp.members.invite}</Button>}>
      <div className="flex w-full max-w-page flex-col gap-6 p-4"><Members /><Requests /><Invites inviting={inviting} onClose={() => setInviting(false)} /><MyKeys /></div>
    </Frame>
  )
}

function Members() {
  const company = useCompany()
  const key = [...keys.people(company.id), 'members']
  const all = useRead(key, '/api/companies/{companyId}/members', { path: { companyId: company.id } })
  const [removing, setRemoving] = useState<Member>()
  const [granting, setGranting] = useState<Member>()
  const reread = () => [keys.people(company.id)]
  const change = useWrite<{ id: string; body: Schemas['ApiPatchMember'] }, unknown>({ call: ({ id, body }) => patch('/api/companies/{companyId}/members/{memberId}', { path: { companyId: company.id, memberId: id } }, body), reread, onDone: () => toast({ text: tp.members.changed }) })
  const remove = useWrite<Member, unknown>({ call: (m) => post('/api/companies/{companyId}/members/{memberId}/archive', { path: { companyId: company.id, memberId: m.id } }, {}), reread, onDone: (_a, m) => { setRemoving(undefined); toast({ text: tp.members.removed(nameOf(m)) }) } })
  const may = all.data?.access.canManageMembers ?? false
  const columns: Column<Member>[] = [
    { id: 'name', head: tp.members.name, width: 'minmax(0,1fr)', cell: (m) => <span className="flex min-w-0 items-center gap-2"><Who id={m.principalId} name={nameOf(m)} person={m.principalType !== 'agent'} />{m.user?.email && m.user.email !== nameOf(m) && <span className="truncate text-xs text-ink3 max-tab:hidden">{m.user.email}</span>}</span>, sort: (a, b) => nameOf(a).localeCompare(nameOf(b)) },
    { id: 'role', head: tp.members.role, width: '132px', text: (m) => m.membershipRole ?? '', cell: (m) => (may && m.principalType !== 'agent' ? <Select small aria-label={`${tp.members.role}: ${nameOf(m)}`} value={m.membershipRole ?? ''} onChange={(e) => change.mutate({ id: m.id, body: { membershipRole: e.target.value as (typeof roles)[number] } })} choices={m.membershipRole ? roleChoices : [{ value: '', label: '–' }, ...roleChoices]} /> : tp.members.rolesText[m.membershipRole ?? ''] ?? m.membershipRole ?? '–') },
    { id: 'status', head: tp.members.status, width: '112px', from: 'tab', cell: (m) => <StatusMark status={m.status === 'suspended' ? 'paused' : m.status} label={words(m.status)} /> },
    { id: 'rights', head: tp.members.rights, width: 'minmax(0,160px)', from: 'desk', cell: (m) => <span className="text-xs text-ink2" title={(m.grants ?? []).map((g) => g.permissionKey).join(', ')}>{(m.grants ?? []).map((g) => g.permissionKey).join(', ') || '–'}</span> },
    { id: 'since', head: tp.members.since, width: '80px', right: true, from: 'tab', cell: (m) => <span className="text-xs text-ink3"><Time at={m.createdAt} /></span> },
    { id: 'more', head: '', width: '28px', cell: (m) => (may && m.principalType !== 'agent' ? <Menu align="end" label={t.common.actions} items={[{ label: tp.rights.edit, icon: 'secrets', onSelect: () => setGranting(m) }, { label: m.status === 'suspended' ? tp.members.activate : tp.members.suspend, icon: m.status === 'suspended' ? 'play' : 'pause', onSelect: () => change.mutate({ id: m.id, body: { status: m.status === 'suspended' ? 'active' : 'suspended' } }) }, { label: m.removal.canArchive ? tp.members.remove : m.removal.reason ?? tp.members.remove, icon: 'close', danger: true, disabled: !m.removal.canArchive, onSelect: () => setRemoving(m) }]}><IconButton small icon="more" label={`${t.common.actions} ${nameOf(m)}`} /></Menu> : null) },
  ]
  return (
    <Section title={tp.members.people}>
      <Loaded of={all} rows={3}>{(list) => <div className="flex max-h-[420px] flex-col overflow-hidden rounded border border-line"><Table label={tp.members.people} rows={list.members ?? []} columns={columns} keyOf={(m) => m.id} empty={<Empty icon="people" title={tp.members.noMembers} why={tp.members.noMembersWhy} />} /></div>}</Loaded>
      {granting && <Rights key={granting.id} member={granting} name={nameOf(granting)} onClose={() => setGranting(undefined)} />}
      <Confirm open={!!removing} onClose={() => setRemoving(undefined)} title={tp.members.removeAsk(removing ? nameOf(removing) : '')} body={tp.members.removeBody} action={tp.members.remove} busy={remove.isPending} onConfirm={() => removing && remove.mutate(removing)} />
    </Section>
  )
}
const nameOf = (m: Member) => m.user?.name || m.user?.email || (m.principalId === 'local-board' ? tp.members.you : m.principalId)

function Requests() {
  const company = useCompany()
  const key = [...keys.people(company.id), 'requests']
  const all = useRead(key, '/api/companies/{companyId}/join-requests', { path: { companyId: company.id }, query: { status: 'pending_approval' } })
  const decide = useWrite<{ id: string; yes: boolean }, unknown>({
    call: ({ id, yes }) => { const path = { companyId: company.id, requestId: id }; return yes ? post('/api/companies/{companyId}/join-requests/{requestId}/approve', { path }) : post('/api/companies/{companyId}/join-requests/{requestId}/reject', { path }) },
    reread: () => [keys.people(company.id), keys.attention(company.id), keys.agents(company.id)], onDone: (_a, { yes }) => toast({ text: yes ? tp.members.approved : tp.members.refused }),
  })
  if (!all.data || all.data.length === 0) return null
  return <Section title={tp.members.requests}><Lines>{all.data.map((r) => <LineOf key={r.id}><Front><span className="font-strong">{r.agentName ?? r.requesterUser?.name ?? r.requestEmailSnapshot ?? r.requestIp}</span> <span className="text-ink3">{r.requestType === 'agent' ? tp.members.agent : r.requestEmailSnapshot ?? ''}</span></Front><span className="text-xs text-ink3"><Time at={r.createdAt} /></span><Button small onClick={() => decide.mutate({ id: r.id, yes: true })}>{tp.members.approve}</Button><Button small look="danger" onClick={() => decide.mutate({ id: r.id, yes: false })}>{tp.members.refuse}</Button></LineOf>)}</Lines></Section>
}

function Invites({ inviting, onClose }: { inviting: boolean; onClose: () => void }) {
  const company = useCompany()
  const key = [...keys.people(company.id), 'invites']
  const all = useRead(key, '/api/companies/{companyId}/invites', { path: { companyId: company.id }, query: { state: 'active' } })
  const [made, setMade] = useState<Invite>()
  const reread = () => [key]
  const invite = useWrite<Values, Invite>({ call: (v) => post('/api/companies/{companyId}/invites', { path: { companyId: company.id } }, v), reread, onDone: (row) => { onClose(); setMade(row) } })
  const revoke = useWrite<string, unknown>({ call: (inviteId) => post('/api/invites/{inviteId}/revoke', { path: { inviteId } }), reread, onDone: () => toast({ text: tp.members.revoked }) })
  return (
    <Section title={tp.members.invites}>
      <Loaded of={all} rows={2}>{(list) => (list.invites ?? []).length === 0 ? <Empty icon="people" title={tp.members.noInvites} why={tp.members.noInvitesWhy} /> : <Lines>{(list.invites ?? []).map((i) => <LineOf key={i.id}><StatusMark status={i.state === 'active' ? 'open' : 'pending'} bare label={i.state} /><Front>{tp.members.whos[i.allowedJoinTypes] ?? i.allowedJoinTypes}{i.humanRole ? `, ${tp.members.rolesText[i.humanRole] ?? i.humanRole}` : ''} <span className="text-ink3">{i.inviteMessage ?? ''}</span></Front><span className="text-xs text-ink3">{tp.members.expires} <Time at={i.expiresAt} /></span><Id id={i.id} /><Button small look="danger" onClick={() => revoke.mutate(i.id)}>{tp.members.revoke}</Button></LineOf>)}</Lines>}</Loaded>
      {inviting && <FormDialog title={tp.members.invite} schema={inviteSchema} action={tp.members.invite} initial={{ allowedJoinTypes: 'human', humanRole: 'operator' }} busy={invite.isPending} onClose={onClose} onSave={(v) => invite.mutate(v['allowedJoinTypes'] === 'agent' ? Object.fromEntries(Object.entries(v).filter(([k]) => k !== 'humanRole')) : v)} />}
      {made && <ShownOnce title={tp.members.invited} why={tp.members.invitedWhy} values={[{ label: tp.members.link, text: made.inviteUrl ?? `${location.origin}${made.invitePath ?? ''}` }, ...(made.allowedJoinTypes !== 'human' && (made.onboardingTextUrl ?? made.onboardingTextPath) ? [{ label: tp.members.onboarding, text: made.onboardingTextUrl ?? `${location.origin}${made.onboardingTextPath}` }] : [])]} onClose={() => setMade(undefined)} />}
    </Section>
  )
}

function MyKeys() {
  const all = useRead(keys.mesh('board-keys'), '/api/board-api-keys')
  const [making, setMaking] = useState(false)
  const [token, setToken] = useState<string>()
  const [ending, setEnding] = useState<{ id: string; name: string }>()
  const reread = () => [keys.mesh('board-keys')]
  const make = useWrite<Values, Schemas['ApiBoardKeyRow']>({ call: (v) => post('/api/board-api-keys', {}, v), reread, onDone: (row) => { setMaking(false); setToken(row.token) } })
  const revoke = useWrite<string, unknown>({ call: (keyId) => del('/api/board-api-keys/{keyId}', { path: { keyId } }), reread, onDone: () => setEnding(undefined) })
  const rows = (all.data ?? []).filter((k) => !k.revokedAt)
  return (
    <Section title={tp.members.keys} aside={<Button small icon="plus" onClick={() => setMaking(true)}>{tp.members.newKey}</Button>}>
      <Loaded of={all} rows={2}>{() => rows.length === 0 ? <Empty icon="secrets" title={tp.members.noKeys} why={tp.members.noKeysWhy} /> : <Lines>{rows.map((k) => <LineOf key={k.id}><StatusMark status="active" bare label={tp.members.active} /><Front>{k.name}</Front><span className="text-xs text-ink3">{tp.members.used} {k.lastUsedAt ? <Time at={k.lastUsedAt} /> : tp.members.never}</span>{k.expiresAt && <span className="text-xs text-ink3">{tp.members.expires} <Time at={k.expiresAt} /></span>}<Id id={k.id} /><Button small look="danger" onClick={() => setEnding(k)}>{tp.members.revoke}</Button></LineOf>)}</Lines>}</Loaded>
      {making && <FormDialog title={tp.members.newKey} schema={{ required: ['name'], properties: { name: { type: 'string', title: tp.members.keyName } } }} busy={make.isPending} onClose={() => setMaking(false)} onSave={(v) => make.mutate(v)} />}
      {token && <ShownOnce title={tp.members.keyMade} why={tp.members.keyWhy} values={[{ label: tp.members.key, text: token }]} onClose={() => setToken(undefined)} />}
      <Confirm open={!!ending} onClose={() => setEnding(undefined)} title={tp.members.revokeKey(ending?.name ?? '')} body={tp.members.revokeKeyBody} action={tp.members.revoke} busy={revoke.isPending} onConfirm={() => ending && revoke.mutate(ending.id)} />
    </Section>
  )
}
