// What a skill was and how it is tried: an old version with its files, tries by an agent, and what people say.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useNames, useRead, useWrite } from '../../data'
import { words } from '../../format'
import { del, patch, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { TextArea } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Markdown } from '../../parts/markdown'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

type Of = { skill: { id: string; editable: boolean } }

/** An old version with its files; it can be taken back. */
export function OldVersion({ skill: s, version, onClose }: Of & { version: string; onClose: () => void }) {
  const company = useCompany()
  const path = { companyId: company.id, skillId: s.id }
  const of = useRead([...keys.skills(company.id), s.id, 'version', version], '/api/companies/{companyId}/skills/{skillId}/versions/{versionId}', { path: { ...path, versionId: version } })
  const files = of.data?.files ?? []
  const back = useWrite<undefined, unknown>({
    call: async () => { for (const f of files) await patch('/api/companies/{companyId}/skills/{skillId}/files', { path }, { path: f.path, content: f.content }) },
    reread: () => [keys.skills(company.id)], onDone: () => { onClose(); toast({ text: tp.skills.takenBack }) },
  })
  return (
    <Dialog open onClose={onClose} title={of.data ? tp.skills.versionTitle(of.data.versionNumber) : tp.skills.versions} size="large">
      <Loaded of={of} rows={5}>{(v) => <div className="flex flex-col gap-3">
        {v.changeSummary && <p className="text-sm text-ink2">{v.changeSummary}</p>}
        {files.map((f) => <article key={f.path} className="rounded border border-line"><header className="border-b border-line bg-ground2 px-3 py-1.5 font-mono text-xs">{f.path}</header><pre className="max-h-[320px] overflow-auto whitespace-pre-wrap break-words p-3 font-mono text-xs">{f.content}</pre></article>)}
      </div>}</Loaded>
      <DialogFoot>{s.editable && <Button busy={back.isPending} onClick={() => back.mutate(undefined)}>{tp.skills.takeBack}</Button>}<Button look="primary" onClick={onClose}>{t.common.close}</Button></DialogFoot>
    </Dialog>
  )
}

/** Tries: an agent works on a text with the skill, in an issue of its own. */
export function Tries({ skill: s }: Of) {
  const company = useCompany()
  const names = useNames(company.id)
  const agents = (useAgents(company.id).data ?? []).filter((a) => a.status !== 'terminated')
  const path = { companyId: company.id, skillId: s.id }
  const key = [...keys.skills(company.id), s.id, 'tries']
  const all = useRead(key, '/api/companies/{companyId}/skills/{skillId}/test-runs', { path })
  const [trying, setTrying] = useState(false)
  const start = useWrite<Values, unknown>({ call: (v) => post('/api/companies/{companyId}/skills/{skillId}/test-runs', { path }, v as Schemas['ApiSkillTestBody']), reread: () => [key], onDone: () => { setTrying(false); toast({ text: tp.skills.tryBegun }) } })
  const stop = useWrite<string, unknown>({ call: (runId) => post('/api/companies/{companyId}/skills/{skillId}/test-runs/{runId}/cancel', { path: { ...path, runId } }), reread: () => [key] })
  const drop = useWrite<string, unknown>({ call: (runId) => del('/api/companies/{companyId}/skills/{skillId}/test-runs/{runId}', { path: { ...path, runId } }), reread: () => [key] })
  if (!s.editable) return null
  return (
    <Section title={tp.skills.tries} aside={agents.length > 0 && <Button small icon="play" onClick={() => setTrying(true)}>{tp.skills.try}</Button>}>
      <Loaded of={all} rows={1}>{(rows) => rows.length === 0 ? <p className="text-sm text-ink3">{tp.skills.noTries}</p> : <Lines label={tp.skills.tries}>{rows.map((r) => (
        <LineOf key={r.id}>
          <StatusMark status={r.status} bare label={words(r.status)} /><Front><Link to={`/${company.issuePrefix}/issues/${r.issueId}`} className="hover:underline">{names(r.agentId).name}</Link> <span className="text-xs text-ink3">{r.error ?? r.inputSnapshot.slice(0, 80)}</span></Front>
          <span className="text-xs text-ink3"><Time at={r.createdAt} /></span>
          {['queued', 'running', 'pending'].includes(r.status) ? <IconButton small icon="stop" label={tp.skills.stopTry} onClick={() => stop.mutate(r.id)} /> : <IconButton small icon="close" label={t.common.remove} onClick={() => drop.mutate(r.id)} />}
        </LineOf>
      ))}</Lines>}</Loaded>
      {trying && <FormDialog title={tp.skills.try} action={tp.skills.try} busy={start.isPending} onClose={() => setTrying(false)} onSave={(v) => start.mutate(v)}
        schema={{ required: ['agentId', 'content'], properties: { agentId: { type: 'string', title: tp.skills.tryWith, enum: agents.map((a) => a.id), labels: Object.fromEntries(agents.map((a) => [a.id, a.name])) }, content: { type: 'string', format: 'multiline', title: tp.skills.tryOn } } }} />}
    </Section>
  )
}

/** What people say about a skill. */
export function Said({ skill: s }: Of) {
  const company = useCompany()
  const names = useNames(company.id)
  const path = { companyId: company.id, skillId: s.id }
  const key = [...keys.skills(company.id), s.id, 'said']
  const all = useRead(key, '/api/companies/{companyId}/skills/{skillId}/comments', { path })
  const [text, setText] = useState('')
  const say = useWrite<string, unknown>({ call: (body) => post('/api/companies/{companyId}/skills/{skillId}/comments', { path }, { body }), reread: () => [key], onDone: () => setText('') })
  if (!s.editable) return null
  return (
    <Section title={tp.skills.said}>
      <Loaded of={all} rows={1}>{(rows) => <ul className="flex flex-col gap-2">{rows.map((c) => <li key={c.id} className="text-sm"><span className="flex items-center gap-2"><Who id={c.authorAgentId ?? c.authorUserId ?? ''} name={names(c.authorAgentId ?? c.authorUserId ?? '').name} person={!c.authorAgentId} /><span className="text-xs text-ink3"><Time at={c.createdAt} /></span></span><Markdown text={c.body} /></li>)}</ul>}</Loaded>
      <form className="mt-2 flex flex-col gap-2" onSubmit={(e) => { e.preventDefault(); if (text.trim()) say.mutate(text.trim()) }}><TextArea rows={2} aria-label={tp.skills.say} placeholder={tp.skills.say} value={text} onChange={(e) => setText(e.target.value)} /><div className="flex justify-end"><Button small type="submit" disabled={!text.trim()} busy={say.isPending}>{t.issue.send}</Button></div></form>
    </Section>
  )
}
