// Installs or upgrades an app: its archive is looked into first; what it asks for is shown, and granted one by one.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useWrite } from '../../data'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Checkbox, Field, Input } from '../../parts/form'
import { JsonForm, wrongOf, type Schema, type Values } from '../../parts/jsonform'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { Facts, Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { Id } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { base64Of, isNewer, mayOf, mostBytes } from './archive'

type App = Schemas['ApiAppRow']
type Preview = Schemas['ApiAppPreview']
const x = tr.apps

export function Install({ app, onClose }: { app?: App | undefined; onClose: () => void }) {
  const company = useCompany()
  const path = { path: { companyId: company.id } }
  const [seen, setSeen] = useState<{ archive: string; preview: Preview }>()
  const [wrong, setWrong] = useState<string>()
  const look = useWrite<File, { archive: string; preview: Preview }>({
    call: async (file) => { const archive = base64Of(await file.arrayBuffer()); return { archive, preview: await post('/api/companies/{companyId}/apps/preview', path, { archive }) } },
    onDone: (a) => (app && a.preview.name !== app.name ? setWrong(x.otherApp(a.preview.name, app.name)) : setSeen(a)),
  })
  const pick = (file: File | undefined) => {
    setWrong(undefined)
    if (!file) return
    if (file.size > mostBytes) return setWrong(x.tooLarge)
    look.mutate(file)
  }
  return (
    <Dialog open onClose={onClose} title={app ? `${x.upgrade}: ${app.name}` : x.install} size="medium">
      {seen ? <Look archive={seen.archive} preview={seen.preview} app={app} onClose={onClose} /> : <>
        <Field label={x.file} hint={x.fileHint} wrong={wrong}><Input type="file" disabled={look.isPending} onChange={(e) => pick(e.target.files?.[0])} className="py-1 text-xs" /></Field>
        <p className="mt-3 text-xs text-ink3">{x.emptyWhy}</p>
        <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button></DialogFoot>
      </>}
    </Dialog>
  )
}

function Look({ archive, preview: p, app, onClose }: { archive: string; preview: Preview; app: App | undefined; onClose: () => void }) {
  const company = useCompany()
  const [granted, setGranted] = useState<ReadonlySet<string>>(new Set())
  const [values, setValues] = useState<Values>(() => Object.fromEntries(p.settings.map((s) => [s.name, app?.settings?.[s.name] ?? (s.default || undefined)]).filter(([, v]) => v !== undefined)))
  const [start, setStart] = useState(true)
  const [trusted, setTrusted] = useState(false)
  const schema: Schema = {
    required: p.settings.filter((s) => s.required && !(app && s.secret)).map((s) => s.name),
    properties: Object.fromEntries(p.settings.map((s) => [s.name, { type: 'string', title: s.name, description: s.about, ...(s.secret ? { writeOnly: true } : {}) }])),
  }
  const wrong = wrongOf(schema, values)
  const all = p.capabilities.every((c) => granted.has(c))
  const upgrade = p.installedVersion !== null
  const older = p.installedVersion !== null && !isNewer(p.version, p.installedVersion)
  const save = useWrite<undefined, App>({
    call: () => {
      const settings = Object.fromEntries(Object.entries(values).filter(([, v]) => v !== undefined && v !== ''))
      const body = { archive, grant: [...granted], settings }
      return upgrade ? post('/api/companies/{companyId}/apps/{app}/upgrade', { path: { companyId: company.id, app: p.name } }, { ...body, rollback: older, newSigner: !p.sameSigner })
        : post('/api/companies/{companyId}/apps', { path: { companyId: company.id } }, { ...body, stopped: !start })
    },
    reread: () => [keys.apps(company.id), keys.agents(company.id)], onDone: (a) => { onClose(); toast({ text: upgrade ? x.upgraded(a.name) : x.installed(a.name) }) },
  })
  const toggle = (c: string, on: boolean) => setGranted((now) => { const next = new Set(now); if (on) next.add(c); else next.delete(c); return next })
  const may = p.problems.length === 0 && all && Object.keys(wrong).length === 0 && (p.sameSigner || trusted)
  return (
    <form className="flex flex-col gap-4" onSubmit={(e) => { e.preventDefault(); if (may) save.mutate(undefined) }}>
      <div><h3 className="font-strong">{p.name} {p.installedVersion !== null ? x.newer(p.installedVersion, p.version) : p.version}</h3><p className="text-sm text-ink2">{p.description}</p></div>
      {p.problems.length > 0 && <div role="alert" className="rounded border border-bad p-3 text-sm"><p className="font-strong text-bad">{x.problems}</p><ul className="list-disc pl-5">{p.problems.map((text) => <li key={text}>{text}</li>)}</ul></div>}
      <Facts rows={[p.author !== '' && [x.by, p.author], [x.signer, <Id id={p.signer} />], [x.digest, <Id id={p.digest} />], p.agents.length > 0 && [x.agents, p.agents.join(', ')], p.routines.length > 0 && [x.routines, p.routines.join(', ')], p.skills.length > 0 && [x.skills, p.skills.join(', ')], Object.keys(p.dependencies ?? {}).length > 0 && [x.needs, Object.entries(p.dependencies ?? {}).map(([name, range]) => `${name} ${range}`).join(', ')]]} />
      {!p.sameSigner && <div className="text-sm text-warn"><p>{x.otherSigner}</p><Checkbox label={x.takeSigner} checked={trusted} onChange={setTrusted} /></div>}
      <Section title={x.wants} aside={p.capabilities.length > 1 && <Button small look="quiet" onClick={() => setGranted(new Set(p.capabilities))}>{x.grantAll}</Button>}>
        {p.capabilities.length === 0 ? <p className="text-sm text-ink2">{x.wantsNothing}</p> : <ul data-capabilities className="flex flex-col gap-1.5 rounded border border-line p-3">{p.capabilities.map((c) => <li key={c}><Checkbox label={mayOf(c, values)} checked={granted.has(c)} onChange={(on) => toggle(c, on)} /></li>)}</ul>}
      </Section>
      {p.settings.length > 0 && <Section title={x.settings}><JsonForm schema={schema} values={values} onChange={setValues} wrong={{}} /></Section>}
      {!upgrade && <Checkbox label={x.start} checked={start} onChange={setStart} />}
      {older && <p className="text-sm text-warn">{x.older}</p>}
      <DialogFoot>{!all && <span className="mr-auto self-center text-xs text-ink3">{x.grantFirst}</span>}<Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" type="submit" disabled={!may} busy={save.isPending}>{upgrade ? x.upgrade : x.install}</Button></DialogFoot>
    </form>
  )
}
