// What is kept of an agent: revisions of its configuration, keys, sessions, skills.
import { useState } from 'react'
import { Link } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useRead, useWrite } from '../../data'
import { words } from '../../format'
import { del, patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Diff } from '../../parts/diff'
import { Combobox, Field, Input } from '../../parts/form'
import { ShownOnce } from '../../parts/formdialog'
import { Confirm, Dialog, DialogFoot } from '../../parts/overlay'
import { Empty, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { t } from '../../text/en'
import { jsonOf } from './configuration'
import type { AgentDetail } from './page'

const rowClass = 'flex min-h-10 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-1 text-sm last:border-0'
const listClass = 'rounded border border-line'

const fields = ['name', 'role', 'title', 'reportsTo', 'capabilities', 'adapterType', 'adapterConfig', 'runtimeConfig'] as const
const hidden = '***REDACTED***'

/** The changes of the configuration. What it was after any of them, or before the first, can be had again. */
export function Revisions({ agent }: { agent: AgentDetail }) {
  const company = useCompany()
  const names = useNames(company.id)
  const all = useRead(keys.agent(agent.id, 'revisions'), '/api/agents/{id}/config-revisions', { path: { id: agent.id } })
  const [open, setOpen] = useState<string>()
  const [back, setBack] = useState<{ id: string; config: unknown }>()
  const restore = useWrite<{ id: string; config: unknown }, unknown>({
    call: ({ id, config }) => {
      if (id !== '') return post('/api/agents/{id}/config-revisions/{revisionId}/rollback', { path: { id: agent.id, revisionId: id } })
      const of = config as Record<string, unknown>
      return patch('/api/agents/{id}', { path: { id: agent.id } }, { ...Object.fromEntries(fields.filter((f) => f in of).map((f) => [f, of[f]])), replaceAdapterConfig: true } as Schemas['ApiPatchAgent'])
    },
    reread: () => [keys.agent(agent.id), keys.agents(company.id)], onDone: () => { setBack(undefined); toast({ text: t.agent.rolledBack }) },
  })
  return (
    <Loaded of={all}>
      {(list) => {
        const rows = [...list].sort((a, b) => (b.createdAt ?? '').localeCompare(a.createdAt ?? ''))
        const first = rows[rows.length - 1]
        if (!first) return <Empty icon="ledger" title={t.agent.noRevisions} why={t.agent.noRevisionsWhy} />
        return (
          <ul className={listClass}>
            {rows.map((r, i) => (
              <li key={r.id} className="border-b border-line">
                <div className="flex min-h-10 flex-wrap items-center gap-x-3 gap-y-1 px-3 py-1 text-sm">
                  <button type="button" aria-expanded={open === r.id} className="min-w-0 grow truncate text-left hover:underline" onClick={() => setOpen(open === r.id ? undefined : r.id)}>{(r.changedKeys ?? []).map(words).join(', ') || t.agent.changed}</button>
                  <span className="text-xs text-ink2">{names(r.createdByAgentId ?? r.createdByUserId).name}</span>{r.rolledBackFromRevisionId && <Badge>{t.agent.source['rollback']}</Badge>}
                  <span className="text-xs text-ink3"><Time at={r.createdAt} /></span>{i === 0 ? <Badge meaning="ok">{t.agent.inForce}</Badge> : <Button small onClick={() => setBack({ id: r.id, config: r.afterConfig })}>{t.agent.restore}</Button>}
                </div>
                {open === r.id && <div className="border-t border-line p-3"><Diff before={jsonOf(r.beforeConfig)} after={jsonOf(r.afterConfig)} /></div>}
              </li>
            ))}
            <li className={rowClass}><span className="grow text-ink2">{t.agent.beforeAll}</span>{JSON.stringify(first.beforeConfig).includes(hidden) ? <span className="text-xs text-ink3">{t.agent.hasSecrets}</span> : <Button small onClick={() => setBack({ id: '', config: first.beforeConfig })}>{t.agent.restore}</Button>}</li>
            <Dialog open={!!back} onClose={() => setBack(undefined)} title={t.agent.rollbackAsk} size="large">
              <Diff before={jsonOf(rows[0]?.afterConfig)} after={jsonOf(back?.config)} />
              <DialogFoot><Button onClick={() => setBack(undefined)}>{t.common.cancel}</Button><Button look="primary" busy={restore.isPending} onClick={() => back && restore.mutate(back)}>{t.agent.restore}</Button></DialogFoot>
            </Dialog>
          </ul>
        )
      }}
    </Loaded>
  )
}

export function Keys({ agent }: { agent: AgentDetail }) {
  const all = useRead(keys.agent(agent.id, 'keys'), '/api/agents/{id}/keys', { path: { id: agent.id } })
  const [name, setName] = useState<string>()
  const [token, setToken] = useState<string>()
  const [ending, setEnding] = useState<{ id: string; name: string }>()
  const again = () => [keys.agent(agent.id, 'keys')]
  const make = useWrite({ call: (n: string) => post('/api/agents/{id}/keys', { path: { id: agent.id } }, { name: n }), reread: again, onDone: (made) => { setName(undefined); setToken(made.token) } })
  const revoke = useWrite({ call: (keyId: string) => del('/api/agents/{id}/keys/{keyId}', { path: { id: agent.id, keyId } }), reread: again, onDone: () => setEnding(undefined) })
  return (
    <Section title={t.agent.keys} aside={<Button small icon="plus" onClick={() => setName('')}>{t.agent.newKey}</Button>}>
      <Loaded of={all} rows={3}>
        {(rows) => rows.length === 0 ? <Empty icon="secrets" title={t.agent.noKeys} why={t.agent.noKeysWhy} /> : (
          <ul className={listClass}>{rows.map((k) => (
            <li key={k.id} className={rowClass}><StatusMark status={k.revokedAt ? 'revoked' : 'active'} label={k.revokedAt ? t.agent.revoked : t.agent.active} /><span className="min-w-0 grow truncate">{k.name}</span><Id id={k.id} /><span className="text-xs text-ink3"><Time at={k.createdAt} /></span>{!k.revokedAt && <Button small look="danger" onClick={() => setEnding(k)}>{t.agent.revoke}</Button>}</li>
          ))}</ul>
        )}
      </Loaded>
      <Dialog open={name !== undefined} onClose={() => setName(undefined)} title={t.agent.newKey}>
        <form onSubmit={(e) => { e.preventDefault(); if (name?.trim()) make.mutate(name.trim()) }}><Field label={t.agent.keyName}><Input autoFocus maxLength={120} value={name ?? ''} onChange={(e) => setName(e.target.value)} /></Field>
          <DialogFoot><Button onClick={() => setName(undefined)}>{t.common.cancel}</Button><Button look="primary" type="submit" disabled={!name?.trim()} busy={make.isPending}>{t.common.create}</Button></DialogFoot></form>
      </Dialog>
      {token && <ShownOnce title={t.agent.keyMade} why={t.agent.keyMadeWhy} values={[{ label: t.agent.keys, text: token }]} onClose={() => setToken(undefined)} />}
      <Confirm open={!!ending} onClose={() => setEnding(undefined)} title={t.agent.revokeAsk(ending?.name ?? '')} body={t.agent.revokeBody} action={t.agent.revoke} busy={revoke.isPending} onConfirm={() => ending && revoke.mutate(ending.id)} />
    </Section>
  )
}

export function Sessions({ agent }: { agent: AgentDetail }) {
  const company = useCompany()
  const all = useRead(keys.agent(agent.id, 'sessions'), '/api/agents/{id}/task-sessions', { path: { id: agent.id } })
  const forget = useWrite({ call: (taskKey: string) => post('/api/agents/{id}/runtime-state/reset-session', { path: { id: agent.id } }, { taskKey }), reread: () => [keys.agent(agent.id, 'sessions')], onDone: () => toast({ text: t.agent.resetDone }) })
  return (
    <Loaded of={all} rows={3}>
      {(rows) => rows.length === 0 ? <Empty icon="activity" title={t.agent.noSessions} why={t.agent.noSessionsWhy} /> : (
        <ul className={listClass}>{rows.map((s) => (
          <li key={s.id} className={rowClass}><span className="min-w-0 grow truncate"><Id id={s.taskKey} /></span>{s.sessionDisplayId && <span className="text-xs text-ink2">{t.agent.session} <Id id={s.sessionDisplayId} /></span>}{s.lastRunId && <Link to={`/${company.issuePrefix}/runs/${s.lastRunId}`} className="text-xs text-accent">{t.agent.lastRun}</Link>}{s.lastError && <span className="text-xs text-bad">{s.lastError}</span>}<span className="text-xs text-ink3"><Time at={s.updatedAt} /></span><Button small onClick={() => forget.mutate(s.taskKey)}>{t.agent.reset}</Button></li>
        ))}</ul>
      )}
    </Loaded>
  )
}

export function Skills({ agent }: { agent: AgentDetail }) {
  const company = useCompany()
  const all = useRead(keys.agent(agent.id, 'skills'), '/api/agents/{id}/skills', { path: { id: agent.id } })
  const library = useRead(keys.skills(company.id), '/api/companies/{companyId}/skills', { path: { companyId: company.id } }).data ?? []
  const sync = useWrite<{ key: string; mode: 'add' | 'remove' }, unknown>({
    call: ({ key, mode }) => post('/api/agents/{id}/skills/sync', { path: { id: agent.id } }, { desiredSkills: [key], mode }),
    reread: () => [keys.agent(agent.id, 'skills'), keys.agent(agent.id)], onDone: (_a, { mode }) => toast({ text: mode === 'add' ? t.agent.added : t.agent.removed }),
  })
  return (
    <Loaded of={all} rows={3}>
      {(set) => {
        const wanted = new Set(set.desiredSkills ?? [])
        const rest = library.filter((s) => !wanted.has(s.key))
        return (
          <Section title={t.agent.skills} aside={set.supported && rest.length > 0 && <Combobox align="end" label={t.agent.add} onChange={(key) => sync.mutate({ key, mode: 'add' })} choices={rest.map((s) => ({ value: s.key, label: s.name }))}><Button small icon="plus">{t.agent.add}</Button></Combobox>}>
            {!set.supported ? <Empty icon="skills" title={t.agent.noSkills} why={t.agent.skillsUnsupported} /> : (set.entries ?? []).length === 0 ? <Empty icon="skills" title={t.agent.noSkills} /> : (
              <ul className={listClass}>{(set.entries ?? []).map((s) => <li key={s.key} className={rowClass}><span className="min-w-0 grow truncate">{s.name}</span><Badge meaning={s.desired ? 'ok' : 'none'}>{words(s.state)}</Badge>{wanted.has(s.key) && <Button small look="quiet" onClick={() => sync.mutate({ key: s.key, mode: 'remove' })}>{t.common.remove}</Button>}</li>)}</ul>
            )}
          </Section>
        )
      }}
    </Loaded>
  )
}
