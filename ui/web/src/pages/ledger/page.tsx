// The chain: its newest entries, each with what it changed, and whether each names the hash of the one before.
import { useState } from 'react'
import { keys } from '../../cache'
import { say, useMesh, useRead } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { t } from '../../text/en'
import { brokenAt } from './links'

type Entry = Schemas['ApiEntry']
const most = 200

const columns: Column<Entry>[] = [
  { id: 'height', head: t.ledger.height, width: '72px', cell: (e) => <span className="font-mono text-xs">{e.height}</span>, sort: (a, b) => a.height - b.height },
  { id: 'kind', head: t.ledger.kind, width: 'minmax(0,1fr)', cell: (e) => <code className="font-mono text-xs">{e.kind}</code>, sort: (a, b) => a.kind.localeCompare(b.kind) },
  { id: 'outcome', head: t.ledger.outcome, width: '112px', from: 'tab', cell: (e) => <StatusMark status={e.outcome} /> },
  { id: 'actor', head: t.ledger.actor, width: '168px', from: 'tab', cell: (e) => <span className="truncate text-ink2">{e.actor.type} <Id id={e.actor.id} /></span> },
  { id: 'hash', head: t.ledger.hash, width: '140px', from: 'desk', cell: (e) => <Id id={e.hash} /> },
  { id: 'time', head: t.ledger.time, width: '72px', right: true, cell: (e) => <span className="text-xs text-ink3"><Time at={e.time} /></span> },
]

export function Page() {
  const height = useMesh().data?.height
  const after = Math.max(0, (height ?? 0) - most)
  const entries = useRead([...keys.mesh('entries'), after], '/api/v1/mesh/ledger/entries', { query: { after, limit: most } }, { enabled: height !== undefined })
  const [open, setOpen] = useState<number>()
  const [checking, setChecking] = useState(false)
  const rows = entries.data ?? []
  const shown = rows.find((e) => e.height === open)
  const broken = brokenAt(rows)
  const verify = () => {
    setChecking(true)
    post('/api/v1/mesh/ledger/verify', {}).then((v) => toast(v.firstBadHeight ? { text: t.ledger.badAt(v.firstBadHeight), bad: true } : { text: t.ledger.verified(v.entries) }), say).finally(() => setChecking(false))
  }
  return (
    <Frame title={t.nav.ledger} command="selvage ledger tail" scroll={false} tools={<Button look="primary" busy={checking} onClick={verify}>{t.ledger.verify}</Button>}
      bar={rows.length > 1 ? <StatusMark status={broken === undefined ? 'ok' : 'bad'} label={broken === undefined ? t.ledger.linked : t.ledger.broken(broken)} /> : undefined}
      drawer={shown && <Drawer label={t.ledger.height} onClose={() => setOpen(undefined)} head={<span className="font-strong">{t.ledger.height} {number(shown.height)}</span>}>
        <div className="flex flex-col gap-3 p-4">
          <Facts rows={[[t.ledger.kind, <code className="font-mono text-xs">{shown.kind}</code>], [t.ledger.outcome, <span>{shown.outcome}{shown.reason ? `: ${shown.reason}` : ''}</span>], [t.ledger.actor, <span>{shown.actor.type} <Id id={shown.actor.id} /></span>], [t.ledger.time, <Time at={shown.time} />], [t.ledger.hash, <Id id={shown.hash} />], [t.ledger.previous, <Id id={shown.previousHash} />], [t.ledger.payload, <Id id={shown.payloadHash} />]]} />
          <p className="font-strong text-sm">{t.ledger.changes}</p>
          <ul className="text-sm">{shown.changes.map((c, i) => <li key={i} className="flex min-h-7 items-center gap-2"><code className="font-mono text-xs">{c.action}</code><span className="text-ink3">{c.entityType}</span><Id id={c.entityId} /></li>)}</ul>
        </div>
      </Drawer>}>
      <Loaded of={entries}>{(all) => <Table label={t.nav.ledger} rows={[...all].reverse()} columns={columns} keyOf={(e) => String(e.height)} onOpen={(e) => setOpen(e.height)} openKey={open === undefined ? undefined : String(open)} empty={<Empty icon="ledger" title={t.ledger.empty} why={t.ledger.emptyWhy} />} />}</Loaded>
    </Frame>
  )
}
