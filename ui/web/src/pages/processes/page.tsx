// Everything that works on the nodes: the tree of processes with their use, what is declared, and the kernel's logs.
import { keepPreviousData } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { poll, useMembers, useRead } from '../../data'
import { Page as Frame } from '../../frame/page'
import { sizeOf } from '../../format'
import { Button, IconButton } from '../../parts/button'
import { Checkbox, Select } from '../../parts/form'
import { Drawer } from '../../parts/overlay'
import { rem } from '../../parts/scale'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Tab, Tabs } from '../../parts/tabs'
import { Lasting } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { asTree, type Leaf } from '../goals/tree'
import { Declared } from './declared'
import { KernelLog } from './kernellog'
import { ProcessForm } from './form'
import { One } from './one'
import { leafOf, limitsOf, tookOf } from './words'

const p = tr.processes
type Line = Leaf<ReturnType<typeof leafOf>>
export interface Search { tab?: string; node?: string; all?: boolean; app?: string; show?: string; level?: string }

const near = (l: Line, name: string) => { const of = limitsOf(l.row).find((x) => x.name === name); return of && of.of > 0 && of.used >= 0.8 * of.of ? 'text-warn font-strong' : '' }
const columns: Column<Line>[] = [
  { id: 'address', head: p.address, width: 'minmax(76px,0.5fr)', cell: (l) => <span className="flex items-center" style={{ paddingLeft: rem(l.depth * 14) }}><code className={`font-mono text-xs ${l.row.pid === 0 ? 'font-strong' : ''}`}>{l.row.address}</code></span>, text: (l) => l.row.address },
  { id: 'name', head: p.name, width: 'minmax(0,1fr)', cell: (l) => <span className={l.row.pid === 0 ? 'text-ink3' : ''}>{l.row.name}</span> },
  { id: 'app', head: p.app, width: 'minmax(0,0.4fr)', from: 'desk', cell: (l) => <span className="text-ink2">{l.row.app}</span>, text: (l) => l.row.app },
  { id: 'kind', head: p.kind, width: '84px', from: 'tab', cell: (l) => <span className="text-ink2">{p.kinds[l.row.kind] ?? l.row.kind}</span> },
  { id: 'state', head: p.state, width: '108px', cell: (l) => <StatusMark status={l.row.state} label={p.states[l.row.state] ?? l.row.state} /> },
  { id: 'memory', head: p.memory, width: '84px', right: true, from: 'tab', cell: (l) => <span className={near(l, 'memory')}>{sizeOf(l.row.resource_usage.memory_bytes)}</span>, sort: (a, b) => a.row.resource_usage.memory_bytes - b.row.resource_usage.memory_bytes },
  { id: 'cpu', head: p.cpu, width: '92px', right: true, from: 'tab', cell: (l) => <span className={near(l, 'cpu')}>{tookOf(l.row.resource_usage.cpu_time_ms)}</span>, sort: (a, b) => a.row.resource_usage.cpu_time_ms - b.row.resource_usage.cpu_time_ms },
  { id: 'restarts', head: p.restarts, width: '72px', right: true, from: 'wide', cell: (l) => l.row.restarts },
  { id: 'age', head: p.age, width: '80px', right: true, from: 'desk', cell: (l) => <span className="text-xs text-ink3"><Lasting from={l.row.started_at} to={l.row.ended_at} /></span> },
]

export function Page() {
  const go = useNavigate()
  const s = useSearch({ strict: false }) as Search
  const set = (next: Search) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...s, ...next }).filter(([, v]) => v)) as never, replace: true })
  const tab = s.tab ?? 'processes'
  const [form, setForm] = useState<'spawn' | 'declare'>()
  const commands: Record<string, string> = { processes: `selvage ps${s.all ? ' --all' : ''}${s.node ? ` --node ${s.node}` : ''}${s.app ? ` --app ${s.app}` : ''}`, declared: 'selvage process declared', log: `selvage dmesg${s.node ? ` --node ${s.node}` : ''}${s.level ? ` --level ${s.level}` : ''}` }
  return (
    <Frame title={p.title} command={commands[tab] ?? 'selvage ps'} scroll={false}
      tools={tab === 'log' ? undefined : <Button look="primary" icon="plus" onClick={() => setForm(tab === 'declared' ? 'declare' : 'spawn')}>{tab === 'declared' ? p.declare : p.spawn}</Button>}
      drawer={tab === 'processes' && s.show ? <Shown address={s.show} onClose={() => set({ show: '' })} /> : undefined}>
      <Tabs value={tab} onChange={(to) => void go({ to: '.', search: (to === 'processes' ? {} : { tab: to }) as never, replace: true })} tabs={Object.entries(p.tabs).map(([value, label]) => ({ value, label }))}>
        <Tab value="processes" className="flex min-h-0 grow flex-col outline-none"><Tree search={s} set={set} /></Tab>
        <Tab value="declared" className="flex min-h-0 grow flex-col overflow-y-auto outline-none"><Declared /></Tab>
        <Tab value="log" className="flex min-h-0 grow flex-col outline-none"><KernelLog search={s} set={set} /></Tab>
      </Tabs>
      {form && <ProcessForm declared={form === 'declare'} onClose={() => setForm(undefined)} />}
    </Frame>
  )
}

export function NodeChoice({ value, onChange, any }: { value: string | undefined; onChange: (node: string) => void; any: string }) {
  const members = (useMembers().data ?? []).filter((m) => m.status !== 'revoked')
  return <Select aria-label={p.node} value={value ?? ''} onChange={(e) => onChange(e.target.value)} choices={[{ value: '', label: any }, ...members.map((m) => ({ value: m.name, label: m.name })).sort((a, b) => a.label.localeCompare(b.label))]} />
}

function Tree({ search: s, set }: { search: Search; set: (next: Search) => void }) {
  const query = { all: s.all || undefined, node: s.node, app: s.app }
  const all = useRead(keys.kernel('processes', query), '/api/v1/processes', { query }, { refetchInterval: poll, placeholderData: keepPreviousData })
  return (
    <>
      <div className="no-print flex h-11 shrink-0 items-center gap-3 border-b border-line px-4"><NodeChoice value={s.node} onChange={(node) => set({ node })} any={p.anyNode} /><Checkbox label={p.ended} checked={!!s.all} onChange={(on) => set({ all: on })} />{s.app && <span className="flex items-center gap-1 text-sm text-ink2">{p.ofApp(s.app)}<IconButton small icon="close" label={p.everyApp} onClick={() => set({ app: '' })} /></span>}</div>
      <Loaded of={all}>{(rows) => <Table label={p.title} rows={asTree(rows.map(leafOf))} columns={columns} keyOf={(l) => l.row.address} onOpen={(l) => set({ show: l.row.address })} openKey={s.show} dense empty={<Empty icon="processes" title={p.noMatch} why={p.emptyWhy} />} />}</Loaded>
    </>
  )
}

function Shown({ address, onClose }: { address: string; onClose: () => void }) {
  const one = useRead(keys.kernel('processes', address), '/api/v1/processes/{id}', { path: { id: address } }, { refetchInterval: poll / 2 })
  return <Drawer label={address} onClose={onClose} head={<span><code className="font-mono text-sm">{address}</code>{one.data && <span className="ml-2">{one.data.name}</span>}</span>}><Loaded of={one} rows={8}>{(r) => <One key={r.address} row={r} />}</Loaded></Drawer>
}
