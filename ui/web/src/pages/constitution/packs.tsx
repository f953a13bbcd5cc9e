import { useState } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Dialog } from '../../parts/overlay'
import { Loaded } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { tr } from '../../text/en.rooms'
import { amended } from '../govern/data'

const g = tr.govern

/** Packs of rules to start from: one click where an administrator's word is enough, else a proposal. */
export function Packs({ last, onClose }: { last: string | null | undefined; onClose: () => void }) {
  const go = useNavigate()
  const all = useRead(keys.govern('packs'), '/api/v1/govern/packs')
  const [open, setOpen] = useState<string>()
  const apply = useWrite<string, Schemas['ApiAmendment']>({
    call: (name) => post('/api/v1/govern/packs/{name}/apply', { path: { name } }), reread: amended,
    onDone: (a, name) => { onClose(); toast({ text: a.status === 'in_force' ? g.applied(name) : g.proposedPack(name) }); void go({ to: `/mesh/amendments/${a.id}` }) },
  })
  return (
    <Dialog open onClose={onClose} title={g.packsTitle} size="medium">
      <Loaded of={all} rows={3}>{(packs) => (
        <ul className="flex flex-col gap-3">
          {packs.map((p) => (
            <li key={p.name} data-pack={p.name} className="rounded border border-line p-3">
              <div className="flex flex-wrap items-center gap-2"><h3 className="font-strong">{p.name}</h3>{p.environment && <Badge>{g.places[p.environment] ?? p.environment}</Badge>}{last === p.name && <Badge meaning="ok">{g.inUse}</Badge>}<span className="ml-auto"><Button small busy={apply.isPending && apply.variables === p.name} onClick={() => apply.mutate(p.name)}>{g.apply}</Button></span></div>
              <p className="mt-1 text-sm text-ink2">{p.about}</p>
              {p.rules.length === 0 ? <p className="mt-1 text-xs text-ink3">{g.packRules(0)}</p> : <button type="button" aria-expanded={open === p.name} className="mt-1 text-xs text-accent hover:underline" onClick={() => setOpen(open === p.name ? undefined : p.name)}>{g.packRules(p.count)}</button>}
              {open === p.name && <ul className="mt-2 border-t border-line">{p.rules.map((r) => <li key={r.id} className="flex flex-wrap items-center gap-x-3 border-b border-line py-1.5 text-sm last:border-0"><code className="w-20 font-mono text-xs">{r.id}</code><span className="w-24"><StatusMark status={r.severity} /></span><span className="min-w-0 grow basis-40 text-ink2">{r.title}</span></li>)}</ul>}
            </li>
          ))}
        </ul>
      )}</Loaded>
    </Dialog>
  )
}
