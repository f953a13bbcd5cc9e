// A skill: its files, who uses it, its versions, and what a check of it finds.
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useRead, useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { TextArea } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Markdown } from '../../parts/markdown'
import { Confirm, Menu } from '../../parts/overlay'
import { Facts, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { OldVersion, Said, Tries } from './tries'

type Skill = Schemas['ApiSkillDetail']

export function Page() {
  const { skill: id } = useParams({ strict: false }) as { skill: string }
  const company = useCompany()
  const skill = useRead([...keys.skills(company.id), id], '/api/companies/{companyId}/skills/{skillId}', { path: { companyId: company.id, skillId: id } })
  return skill.data ? <Shown skill={skill.data} /> : <Frame title={tp.skills.title}><Loaded of={skill}>{() => null}</Loaded></Frame>
}

function Shown({ skill: s }: { skill: Skill }) {
  const company = useCompany()
  const go = useNavigate()
  const path = { companyId: company.id, skillId: s.id }
  const { file } = useSearch({ strict: false }) as { file?: string }
  const open = file ?? s.fileInventory?.find((f) => f.path === 'SKILL.md')?.path ?? s.fileInventory?.[0]?.path ?? 'SKILL.md'
  const [doing, setDoing] = useState<'edit' | 'file' | 'version' | 'remove'>()
  const [version, setVersion] = useState<string>()
  const reread = () => [keys.skills(company.id)]
  const done = (text: string) => () => { setDoing(undefined); toast({ text }) }
  const change = useWrite<Values, unknown>({ call: (v) => patch('/api/companies/{companyId}/skills/{skillId}', { path }, v), reread, onDone: done(tp.skills.changed) })
  const add = useWrite<Values, unknown>({ call: (v) => patch('/api/companies/{companyId}/skills/{skillId}/files', { path }, { path: v['path'], content: '' }), reread, onDone: (_a, v) => { setDoing(undefined); void go({ to: '.', search: { file: String(v['path']) } as never }) } })
  const keep = useWrite<Values, unknown>({ call: (v) => post('/api/companies/{companyId}/skills/{skillId}/versions', { path }, v), reread, onDone: done(tp.skills.versionKept) })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/companies/{companyId}/skills/{skillId}', { path }), reread: () => [], onDone: () => { toast({ text: tp.skills.removed(s.name) }); void go({ to: `/${company.issuePrefix}/skills` }) } })
  const audit = useWrite<undefined, Schemas['ApiSkillAudit']>({ call: () => post('/api/companies/{companyId}/skills/{skillId}/audit', { path }) })
  const versions = useRead([...keys.skills(company.id), s.id, 'versions'], '/api/companies/{companyId}/skills/{skillId}/versions', { path })
  return (
    <Frame title={s.name} command={`selvage skill show ${s.slug}`}
      head={<h1 className="mr-2 flex min-w-0 items-center gap-2 text-lg font-strong"><Link to={`/${company.issuePrefix}/skills`} aria-label={tp.skills.all} className="text-ink3 hover:text-ink">{tp.skills.title}</Link><span className="text-ink3">/</span><span className="truncate">{s.name}</span></h1>}
      tools={<>
        <Button busy={audit.isPending} onClick={() => audit.mutate(undefined)}>{tp.skills.audit}</Button>{s.editable && <Button onClick={() => setDoing('version')}>{tp.skills.keepVersion}</Button>}
        <Menu align="end" label={t.nav.more} items={[...(s.editable ? [{ label: tp.skills.rename, icon: 'settings' as const, onSelect: () => setDoing('edit') }] : []), { label: tp.skills.remove, icon: 'close', danger: true, onSelect: () => setDoing('remove') }]}><IconButton icon="more" label={t.nav.more} /></Menu>
      </>}>
      <div className="grid w-full max-w-page gap-x-8 gap-y-4 p-4 desk:grid-cols-[200px_minmax(0,1fr)_260px]">
        <Section title={tp.skills.files} aside={s.editable && <IconButton small icon="plus" label={tp.skills.newFile} onClick={() => setDoing('file')} />}>
          <ul className="flex flex-col gap-px">{(s.fileInventory ?? []).map((f) => <li key={f.path}><Link to="." search={{ file: f.path } as never} aria-current={f.path === open} className={`flex h-8 items-center rounded px-2 text-sm ${f.path === open ? 'bg-ground3 font-strong' : 'hover:bg-ground3'}`}><span className="truncate">{f.path}</span></Link></li>)}</ul>
        </Section>
        <File key={open} skill={s} file={open} />
        <div className="flex min-w-0 flex-col gap-4">
          <Section title={tp.skills.facts}>
            <p className="mb-2 text-sm text-ink2">{s.description}</p>
            <Facts rows={[[tp.skills.source, s.sourceLabel || s.sourceBadge], [tp.skills.trust, s.trustLevel.replace(/_/g, ' ')], [tp.skills.key, <Id id={s.key} />], [tp.skills.updated, <Time at={s.updatedAt} />], !s.editable && ['', <span className="text-ink3">{s.editableReason ?? tp.skills.readOnly}</span>]]} />
          </Section>
          {audit.data && <Section title={tp.skills.audited}><div className="rounded border border-line px-3 py-2 text-sm"><StatusMark status={audit.data.verdict === 'pass' ? 'ok' : audit.data.verdict === 'fail' ? 'bad' : 'warn'} label={audit.data.verdict} />{(audit.data.findings ?? []).length === 0 ? <p className="text-ink2">{tp.skills.clean}</p> : <ul className="mt-1 flex flex-col gap-1">{(audit.data.findings ?? []).map((f, i) => <li key={i} className="break-words text-xs text-ink2">{Object.values(f).filter((v) => typeof v === 'string').join(' · ')}</li>)}</ul>}</div></Section>}
          <Section title={tp.skills.used}>{(s.usedByAgents ?? []).length === 0 ? <p className="text-sm text-ink3">{tp.skills.nobody}</p> : <ul>{(s.usedByAgents ?? []).map((a) => <li key={a.id} className="flex min-h-8 items-center text-sm"><Link to={`/${company.issuePrefix}/agents/${a.id}`} className="hover:underline"><Who id={a.id} name={a.name} /></Link></li>)}</ul>}</Section>
          <Section title={tp.skills.versions}><Loaded of={versions} rows={2}>{(rows) => rows.length === 0 ? <p className="text-sm text-ink3">{tp.skills.noVersions}</p> : <Lines>{rows.map((v) => <LineOf key={v.id}><Badge>{v.versionNumber}</Badge><Front>{v.label ?? v.changeSummary ?? ''}</Front>{v.id === s.currentVersionId && <Badge meaning="ok">{tp.routine.inForce}</Badge>}<span className="text-xs text-ink3"><Time at={v.createdAt} /></span><Button small look="quiet" aria-label={`${tp.skills.openVersion} ${v.versionNumber}`} onClick={() => setVersion(v.id)}>{tp.skills.openVersion}</Button></LineOf>)}</Lines>}</Loaded></Section>
          <Tries skill={s} />
          <Said skill={s} />
        </div>
      </div>
      {version && <OldVersion skill={s} version={version} onClose={() => setVersion(undefined)} />}
      {doing === 'edit' && <FormDialog title={tp.skills.rename} action={t.common.save} schema={{ required: ['name'], properties: { name: { type: 'string', title: tp.skills.name }, description: { type: 'string', format: 'multiline', title: tp.skills.description } } }} initial={{ name: s.name, description: s.description ?? undefined }} busy={change.isPending} onClose={() => setDoing(undefined)} onSave={(_v, c) => (Object.keys(c).length > 0 ? change.mutate(c) : setDoing(undefined))} />}
      {doing === 'file' && <FormDialog title={tp.skills.newFile} schema={{ required: ['path'], properties: { path: { type: 'string', title: tp.skills.path } } }} initial={{ path: 'references/' }} busy={add.isPending} onClose={() => setDoing(undefined)} onSave={(v) => add.mutate(v)} />}
      {doing === 'version' && <FormDialog title={tp.skills.keepVersion} schema={{ properties: { label: { type: 'string', title: tp.skills.name }, changeSummary: { type: 'string', format: 'multiline', title: tp.skills.whatChanged } } }} busy={keep.isPending} onClose={() => setDoing(undefined)} onSave={(v) => keep.mutate(v)} />}
      <Confirm open={doing === 'remove'} onClose={() => setDoing(undefined)} title={tp.skills.removeAsk(s.name)} body={tp.skills.removeBody} action={tp.skills.remove} busy={remove.isPending} onConfirm={() => remove.mutate(undefined)} />
    </Frame>
  )
}

function File({ skill, file: path }: { skill: Skill; file: string }) {
  const company = useCompany()
  const of = { companyId: company.id, skillId: skill.id }
  const file = useRead([...keys.skills(company.id), skill.id, 'file', path], '/api/companies/{companyId}/skills/{skillId}/files', { path: of, query: { path } })
  const [text, setText] = useState<string>()
  const save = useWrite<string, unknown>({ call: (content) => patch('/api/companies/{companyId}/skills/{skillId}/files', { path: of }, { path, content }), reread: () => [keys.skills(company.id)], onDone: () => { setText(undefined); toast({ text: tp.skills.saved }) } })
  if (text !== undefined) {
    return (
      <form onSubmit={(e) => { e.preventDefault(); save.mutate(text) }} className="flex min-w-0 flex-col gap-2">
        <TextArea autoFocus aria-label={path} rows={26} className="font-mono !text-xs" value={text} onChange={(e) => setText(e.target.value)} />
        <div className="flex justify-end gap-2"><Button onClick={() => setText(undefined)}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={save.isPending}>{tp.skills.save}</Button></div>
      </form>
    )
  }
  return (
    <Loaded of={file} rows={8}>
      {(f) => (
        <article className="min-w-0 self-start rounded border border-line">
          <header className="flex h-10 items-center gap-2 border-b border-line bg-ground2 px-3"><code className="min-w-0 grow truncate font-mono text-xs">{f.path}</code>{f.editable ? <Button small onClick={() => setText(f.content)}>{tp.skills.edit}</Button> : <span className="text-xs text-ink3">{tp.skills.readOnly}</span>}</header>
          <div className="p-3">{f.markdown ? <Markdown text={f.content.replace(/^---\n[\s\S]*?\n---\n/, '')} file /> : <pre className="whitespace-pre-wrap break-words font-mono text-xs">{f.content}</pre>}</div>
        </article>
      )}
    </Loaded>
  )
}
