// One node: what it is, what runs on it, and what can be done with it.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useMaybeCompany } from '../../company'
import { client, say, useAutopilot, useLiveRuns, useWrite, type Member } from '../../data'
import { words } from '../../format'
import { patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm, Dialog, DialogFoot } from '../../parts/overlay'
import { Facts, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Lasting, Time } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { changesOfLabels } from './labels'

type Pilot = ReturnType<typeof useAutopilot>['data']

export const again = () => void client.invalidateQueries({ queryKey: ['mesh'] })
export const roleOf = (m: Member) => (m.leader ? t.home.leader : m.voter ? t.home.voter : t.home.follower)
/** How long the way is from the node of this page. */
export const wayOf = (m: Member) => (m.here ? '–' : m.latencyMs === null ? '–' : `${m.latencyMs.toFixed(m.latencyMs < 10 ? 1 : 0)} ms`)

/** Whether a node keeps up with the chain, as the autopilot of the leader sees it. */
export function behindOf(m: Member, pilot: Pilot): string {
  const seen = pilot?.servers?.find((s) => s.node === m.id)
  if (m.status === 'revoked' || !seen) return '–'
  if (seen.cannotFollow) return tp.nodes.cannotFollow
  if (!seen.alive) return tp.nodes.gone(seen.goneSeconds)
  return tp.nodes.keepsUp
}

const labelsOf = (m: Member) => (m.labels ?? []).join('\n')

export function One({ member: m, pilot }: { member: Member; pilot: Pilot }) {
  const company = useMaybeCompany()
  const runs = (useLiveRuns(company?.id ?? '').data ?? []).filter((r) => r.nodeId === m.id)
  const [doing, setDoing] = useState<'labels' | 'drain' | 'revoke'>()
  const [told, setTold] = useState<Schemas['ApiRevokedNode']>()
  const path = { id: m.id }
  const reread = () => [['mesh']]
  const duty = (to: 'cordon' | 'drain' | 'uncordon') => (to === 'uncordon' ? post('/api/v1/mesh/nodes/{id}/uncordon', { path }) : post('/api/v1/mesh/nodes/{id}/cordon', { path }, { drain: to === 'drain' }))
    .then(() => { setDoing(undefined); toast({ text: to === 'drain' ? tp.nodes.drained(m.name) : to === 'cordon' ? t.nodes.cordoned(m.name) : t.nodes.uncordoned(m.name), ...(to === 'uncordon' ? {} : { undo: () => void duty('uncordon') }) }) }, say).finally(again)
  const change = useWrite<Schemas['ApiChangeNode'], unknown>({ call: (body) => patch('/api/v1/mesh/nodes/{id}', { path }, body), reread, onDone: () => { setDoing(undefined); toast({ text: tp.nodes.changed(m.name) }) } })
  const revoke = useWrite<undefined, Schemas['ApiRevokedNode']>({ call: () => post('/api/v1/mesh/nodes/{id}/revoke', { path }, {}), reread, onDone: (answer) => { setDoing(undefined); setTold(answer) } })
  const knew = told && (
    <Dialog open onClose={() => setTold(undefined)} title={tp.nodes.revoked(m.name)} size="medium">
      <p className="mb-2 text-sm text-ink2">{told.exposedTotal > 0 ? tp.nodes.exposed(told.exposedTotal) : tp.nodes.nothingExposed}</p>
      {told.exposedTotal > 0 && <Lines label={tp.nodes.exposedList}>{(told.exposed ?? []).slice(0, 100).map((e) => <LineOf key={`${e.type}${e.id}`}><Front>{e.name || e.id}</Front><span className="text-xs text-ink3">{words(e.type)}{e.company ? ` · ${e.company}` : ''}</span></LineOf>)}</Lines>}
      <DialogFoot><Button look="primary" onClick={() => setTold(undefined)}>{t.common.close}</Button></DialogFoot>
    </Dialog>
  )
  if (m.status === 'revoked') return <><Facts rows={[[t.nodes.status, <StatusMark status={m.status} />], [tp.nodes.revokedAt, <Time at={m.revokedAt} />], ['ID', <Id id={m.id} />]]} />{knew}</>
  const pairs = (m.labels ?? []).length > 0
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap gap-2">
        {m.scheduling === 'open' ? <><Button icon="pause" onClick={() => void duty('cordon')}>{t.nodes.cordon}</Button><Button onClick={() => setDoing('drain')}>{tp.nodes.drain}</Button></> : <Button icon="play" onClick={() => void duty('uncordon')}>{t.nodes.uncordon}</Button>}
        <Button look="danger" onClick={() => setDoing('revoke')}>{tp.nodes.revoke}</Button>
      </div>
      <Facts rows={[
        [t.nodes.status, <StatusMark status={m.status} />], [t.nodes.role, roleOf(m)], [tp.nodes.follows, behindOf(m, pilot)], [tp.nodes.latency, m.here ? t.nodes.here : wayOf(m)], [t.nodes.scheduling, <>{statusText(m.scheduling)}{m.schedulingReason && <span className="block text-xs text-ink3">{m.schedulingReason}</span>}</>],
        [t.nodes.version, m.version ?? '–'], [t.nodes.address, <code className="break-all font-mono text-xs">{(m.addresses ?? []).join(' ')}</code>], !!m.endpoint && [tp.nodes.serves, <a href={m.endpoint.url} className="break-all text-accent hover:underline">{m.endpoint.url}</a>],
        [t.nodes.joined, <Time at={m.admittedAt} />], [tp.nodes.admitted, m.admittedHeight], ['ID', <Id id={m.id} />]]} />
      <Section title={t.nodes.labels} aside={<Button small onClick={() => setDoing('labels')}>{t.common.edit}</Button>}>
        {pairs ? <span className="flex flex-wrap gap-1">{(m.labels ?? []).map((l) => <Badge key={l}>{l}</Badge>)}</span> : <p className="text-sm text-ink3">{tp.nodes.noLabels}</p>}
      </Section>
      <Section title={tp.nodes.runsHere}>
        {runs.length === 0 ? <p className="text-sm text-ink3">{m.runs > 0 ? tp.nodes.runsElsewhere(m.runs) : tp.nodes.noRuns}</p> : <Lines label={tp.nodes.runsHere}>{runs.map((r) => <LineOf key={r.id}><StatusMark status={r.status} bare /><Front><Link to={`/${company?.issuePrefix}/runs/${r.id}`} className="hover:underline">{r.agentName}</Link> <span className="text-ink3">{words(r.invocationSource)}</span></Front><span className="text-xs text-ink3"><Lasting from={r.startedAt ?? r.createdAt} /></span></LineOf>)}</Lines>}
      </Section>
      {doing === 'labels' && <FormDialog title={tp.nodes.change(m.name)} action={t.common.save} busy={change.isPending} onClose={() => setDoing(undefined)} initial={{ labels: labelsOf(m), role: m.role === '' ? 'auto' : m.role }}
        schema={{ properties: { labels: { type: 'string', format: 'multiline', title: t.nodes.labels, description: tp.nodes.labelsHint }, role: { type: 'string', title: t.nodes.role, enum: ['auto', 'voter', 'observer'], labels: tp.nodes.roles } } }}
        onSave={(v, c) => { const labels = changesOfLabels(labelsOf(m), String(v['labels'] ?? '')); if (Object.keys(labels).length === 0 && !c['role']) setDoing(undefined); else change.mutate({ ...(Object.keys(labels).length > 0 ? { labels } : {}), ...(c['role'] ? { role: c['role'] as 'auto' } : {}) }) }} />}
      <Confirm open={doing === 'drain'} onClose={() => setDoing(undefined)} title={tp.nodes.drainAsk(m.name)} body={tp.nodes.drainBody(m.runs)} action={tp.nodes.drain} onConfirm={() => void duty('drain')} />
      <Confirm open={doing === 'revoke'} onClose={() => setDoing(undefined)} title={tp.nodes.revokeAsk(m.name)} action={tp.nodes.revoke} busy={revoke.isPending} onConfirm={() => revoke.mutate(undefined)}
        body={<ul className="list-disc pl-5">{[tp.nodes.revokeEnds(m.runs), ...(m.voter && pilot ? [pilot.failureTolerance > 0 ? tp.nodes.revokeVote(pilot.voters) : tp.nodes.revokeLast] : []), tp.nodes.revokeKnows, tp.nodes.revokeForGood].map((line) => <li key={line}>{line}</li>)}</ul>} />
      {knew}
    </div>
  )
}
