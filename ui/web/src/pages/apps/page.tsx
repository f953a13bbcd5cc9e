// The apps of the company: what is installed, what each may do, and its versions.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useRead, useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { del, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Confirm, Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { mayOf } from './archive'
import { Install } from './install'
import { Offers } from './services'

type App = Schemas['ApiAppRow']
const x = tr.apps
const here = (parts: App['agents']) => parts.filter((p) => !p.gone).length

const columns: Column<App>[] = [
  { id: 'name', head: x.name, width: 'minmax(0,1fr)', cell: (a) => <span><span className="font-strong">{a.name}</span> <span className="text-ink2">{a.description}</span></span>, text: (a) => a.name, sort: (a, b) => a.name.localeCompare(b.name) },
  { id: 'version', head: x.version, width: '72px', cell: (a) => a.version },
  { id: 'state', head: x.state, width: '116px', cell: (a) => <StatusMark status={a.state} label={x.states[a.state] ?? a.state} /> },
  { id: 'agents', head: x.agents, width: '64px', right: true, from: 'tab', cell: (a) => here(a.agents) },
  { id: 'routines', head: x.routines, width: '72px', right: true, from: 'tab', cell: (a) => here(a.routines) },
  { id: 'capabilities', head: x.wants, width: 'minmax(0,0.6fr)', from: 'wide', cell: (a) => <span className="flex gap-1">{a.capabilities.map((c) => <Badge key={c}>{mayOf(c, a.settings ?? {})}</Badge>)}</span>, text: (a) => a.capabilities.join(', ') },
  { id: 'changed', head: x.changed, width: '72px', right: true, from: 'desk', cell: (a) => <span className="text-xs text-ink3"><Time at={a.updatedAt} /></span> },
]

export function Page() {
  const company = useCompany()
  const go = useNavigate()
  const { show } = useSearch({ strict: false }) as { show?: string }
  const open = (name: string) => void go({ to: '.', search: (name ? { show: name } : {}) as never, replace: true })
  const all = useRead(keys.apps(company.id), '/api/companies/{companyId}/apps', { path: { companyId: company.id } })
  const [installing, setInstalling] = useState(false)
  const one = all.data?.find((a) => a.name === show)
  return (
    <Frame title={x.title} command="selvage app list" scroll={false} tools={<Button look="primary" icon="plus" onClick={() => setInstalling(true)}>{x.install}</Button>}
      drawer={one && <Drawer label={one.name} onClose={() => open('')} head={<span>{one.name} <span className="font-normal text-ink2">{one.version}</span></span>}><One key={one.id} app={one} onGone={() => open('')} /></Drawer>}>
      <Loaded of={all}>{(rows) => <Table label={x.title} rows={rows} columns={columns} keyOf={(a) => a.id} onOpen={(a) => open(a.name)} openKey={one?.id} empty={<Empty icon="apps" title={x.empty} why={x.emptyWhy} />} />}</Loaded>
      {installing && <Install onClose={() => setInstalling(false)} />}
    </Frame>
  )
}

function One({ app: a, onGone }: { app: App; onGone: () => void }) {
  const company = useCompany()
  const agents = useAgents(company.id).data
  const path = { path: { companyId: company.id, app: a.name } }
  const [open, setOpen] = useState<'upgrade' | 'remove' | 'back'>()
  const reread = () => [keys.apps(company.id), keys.agents(company.id), keys.routines(company.id)]
  const done = (text: string) => () => { setOpen(undefined); toast({ text }) }
  const start = useWrite<undefined, unknown>({ call: () => post('/api/companies/{companyId}/apps/{app}/start', path), reread, onDone: done(x.started(a.name)) })
  const stop = useWrite<undefined, unknown>({ call: () => post('/api/companies/{companyId}/apps/{app}/stop', path), reread, onDone: done(x.stopped(a.name)) })
  const back = useWrite<undefined, unknown>({ call: () => post('/api/companies/{companyId}/apps/{app}/rollback', path), reread, onDone: done(x.rolledBack(a.name)) })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/companies/{companyId}/apps/{app}', path), reread, onDone: () => { done(x.removed(a.name))(); onGone() } })
  const parts = (list: App['agents'], to?: (id: string) => string | undefined) => <span className="flex flex-col py-1">{list.map((p) => { const at = to?.(p.id); return <span key={p.id}>{at ? <Link to={at} className="text-accent hover:underline">{p.name}</Link> : p.name}{p.gone && <span className="text-xs text-ink3"> {x.gone}</span>}</span> })}</span>
  const prefix = `/${company.issuePrefix}`
  const settings = Object.entries(a.settings ?? {})
  return (
    <div className="flex flex-col gap-5">
      <div className="flex flex-wrap gap-2">
        {a.state === 'running' ? <Button icon="pause" busy={stop.isPending} onClick={() => stop.mutate(undefined)}>{x.stop}</Button> : <Button icon="play" busy={start.isPending} onClick={() => start.mutate(undefined)}>{x.run}</Button>}
        <Button onClick={() => setOpen('upgrade')}>{x.upgrade}</Button>{a.previousVersion !== null && <Button busy={back.isPending} onClick={() => setOpen('back')}>{x.rollbackTo(a.previousVersion)}</Button>}<Button look="danger" onClick={() => setOpen('remove')}>{x.remove}</Button>
      </div>
      <p className="text-sm text-ink2">{a.description}</p>
      <Facts rows={[
        [x.state, <span><StatusMark status={a.state} label={x.states[a.state] ?? a.state} />{a.reason && <span className="block text-bad">{a.reason}</span>}</span>], a.upgradeWatchedUntil !== null && [x.watched, <span><Time at={a.upgradeWatchedUntil} />: {x.watchedWhy}</span>], a.previousVersion !== null && [x.previous, a.previousVersion], a.author !== '' && [x.by, a.author], [x.signer, <Id id={a.signer} />], [x.digest, <Id id={a.digest} />],
        a.agents.length > 0 && [x.agents, parts(a.agents, (id) => { const known = agents?.find((g) => g.id === id); return known && `${prefix}/agents/${known.urlKey}` })], a.routines.length > 0 && [x.routines, parts(a.routines, (id) => `${prefix}/routines/${id}`)], a.skills.length > 0 && [x.skills, parts(a.skills, (id) => `${prefix}/skills/${id}`)], [x.changed, <Time at={a.updatedAt} />],
        [x.runs, <Link to="/mesh/processes" search={{ app: a.name } as never} className="text-accent hover:underline">{x.processes}</Link>]]} />
      <Section title={x.wants}>{a.capabilities.length === 0 ? <p className="text-sm text-ink2">{x.wantsNothing}</p> : <ul className="flex flex-wrap gap-1.5">{a.capabilities.map((c) => <li key={c}><Badge>{mayOf(c, a.settings ?? {})}</Badge></li>)}</ul>}</Section>
      <Offers app={a} />
      {settings.length > 0 && <Section title={x.settings}><Facts rows={settings.map(([name, value]) => [name, <span className="break-words">{value}</span>] as const)} /></Section>}
      {open === 'upgrade' && <Install app={a} onClose={() => setOpen(undefined)} />}
      <Confirm open={open === 'back'} onClose={() => setOpen(undefined)} title={`${x.rollbackTo(a.previousVersion ?? '')}?`} body={x.newer(a.version, a.previousVersion ?? '')} action={x.rollback} busy={back.isPending} onConfirm={() => back.mutate(undefined)} />
      <Confirm open={open === 'remove'} onClose={() => setOpen(undefined)} title={x.removeAsk(a.name)} body={x.removeBody} action={x.remove} busy={remove.isPending} onConfirm={() => remove.mutate(undefined)} />
    </div>
  )
}
