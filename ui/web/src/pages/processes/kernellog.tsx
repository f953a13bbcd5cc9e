// The kernel's log of a node: its boot, and what happened to its processes.
import { keepPreviousData } from '@tanstack/react-query'
import { keys } from '../../cache'
import { poll, useRead } from '../../data'
import type { Schemas } from '../../http'
import { Select } from '../../parts/form'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { NodeChoice, type Search } from './page'
import { tookOf } from './words'

type Event = Schemas['Event']
const p = tr.processes
const mark: Record<string, string> = { debug: 'note', info: 'ok', warn: 'warn', error: 'bad' }

const columns: Column<Event>[] = [
  { id: 'level', head: p.level, width: '88px', cell: (e) => <StatusMark status={mark[e.level] ?? 'note'} label={p.levels[e.level] ?? e.level} /> },
  { id: 'since', head: p.since, width: '96px', right: true, from: 'tab', cell: (e) => <span className="font-mono text-xs text-ink2">{tookOf(e.since_ms)}</span> },
  { id: 'of', head: p.phase, width: '116px', from: 'tab', cell: (e) => <code className="font-mono text-xs">{e.kind ?? e.phase ?? ''}</code> },
  { id: 'pid', head: 'PID', width: '40px', from: 'tab', cell: (e) => e.pid ?? '' },
  { id: 'message', head: p.message, width: 'minmax(0,1fr)', cell: (e) => <span title={e.message}>{e.message}</span> },
  { id: 'time', head: p.time, width: '72px', right: true, from: 'tab', cell: (e) => <span className="text-xs text-ink3"><Time at={e.timestamp} /></span> },
]

export function KernelLog({ search: s, set }: { search: Search; set: (next: Search) => void }) {
  const query = { node: s.node, level: s.level }
  const all = useRead(keys.kernel('log', query), '/api/v1/dmesg', { query }, { refetchInterval: poll, placeholderData: keepPreviousData })
  return (
    <>
      <div className="no-print flex h-11 shrink-0 items-center gap-1.5 border-b border-line px-4">
        <NodeChoice value={s.node} onChange={(node) => set({ node })} any={p.thisNode} />
        <Select aria-label={p.level} value={s.level ?? ''} onChange={(e) => set({ level: e.target.value })} choices={[{ value: '', label: p.all }, ...['info', 'warn', 'error'].map((l) => ({ value: l, label: p.from(p.levels[l] ?? l) }))]} />
      </div>
      <Loaded of={all}>{(rows) => <Table label={p.tabs['log'] ?? ''} rows={[...rows].reverse()} columns={columns} keyOf={(e) => String(e.seq)} dense empty={<Empty icon="ledger" title={p.noEvents} why={p.noEventsWhy} />} />}</Loaded>
    </>
  )
}
