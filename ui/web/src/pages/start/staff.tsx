// The second step: what agents work with here, and the first agent. The agents of a starter work with what its package
// says where a node has that; else they are given what is there.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { keys } from '../../cache'
import { client, useRead, type Agent, type Company } from '../../data'
import { patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Field, Input } from '../../parts/form'
import { ErrorBox, Rows } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { t } from '../../text/en'
import { lackingOf, take, waysOf, type Way, type Work } from './ways'

type Adapter = Schemas['ApiAdapterInfo']

/** useReport asks the nodes whether they can carry out an adapter, and what they lack. */
function useReport(company: string, type: string | undefined) {
  return useQuery({
    queryKey: [...keys.mesh('presence'), company, type ?? ''], enabled: !!type, retry: 0,
    queryFn: ({ signal }) => post('/api/companies/{companyId}/adapters/{type}/test-environment', { path: { companyId: company, type: type ?? '' }, signal }, {}),
  })
}

const placed = (work: Work) => ({ adapterType: work.adapterType, adapterConfig: work.adapterConfig, ...(work.labels.length > 0 ? { runtimeConfig: { placement: { labels: work.labels } } } : {}) })

export function Staff({ company, agents, onReady }: { company: Company; agents: readonly Agent[]; onReady: () => void }) {
  const adapters = useRead(keys.mesh('adapters'), '/api/adapters')
  const program = adapters.data?.find((a) => a.program && agents.some((b) => b.adapterType === a.type))
  const report = useReport(company.id, program?.type)
  const hired = agents.length > 0 && adapters.data !== undefined
  const works = hired && (!program || (report.data !== undefined && report.data.status !== 'fail'))
  useEffect(() => {
    if (works) onReady()
  }, [works, onReady])
  if (adapters.data === undefined || (program && report.isPending)) return <Rows n={4} />
  const wrong = report.data?.checks.find((c) => c.level === 'error')
  const idle = program ? agents.filter((a) => a.adapterType === program.type) : []
  return (
    <div className="flex flex-col gap-4">
      {program && <div className="text-sm"><StatusMark status="warn" label={t.start.idle(idle.map((a) => a.name), program.displayName || program.type)} /><p className="mt-1 text-ink2">{wrong?.message} {wrong?.hint && <code className="rounded bg-ground3 px-1 font-mono text-xs">{wrong.hint}</code>}</p></div>}
      <Choose company={company} adapters={adapters.data} idle={idle} onReady={onReady} />
    </div>
  )
}

function Choose({ company, adapters, idle, onReady }: { company: Company; adapters: readonly Adapter[]; idle: readonly Agent[]; onReady: () => void }) {
  const offers = useQuery({ queryKey: keys.mesh('offers'), queryFn: ({ signal }) => post('/api/instance/offers', { signal }, {}), retry: 0, staleTime: 0 })
  const shared = useRead(keys.mesh('providers'), '/api/instance/model-providers').data
  const own = useRead([...keys.mesh('providers'), company.id], '/api/companies/{companyId}/model-providers', { path: { companyId: company.id } }).data
  const [picked, setPicked] = useState<string>()
  const [name, setName] = useState('Ada')
  const [busy, setBusy] = useState(false)
  const [wrong, setWrong] = useState<unknown>()
  if (offers.isPending) return <p className="text-sm text-ink2">{t.agents.looking}</p>
  const providers = [...(own ?? []), ...(shared ?? [])].filter((p, i, all) => all.findIndex((q) => q.id === p.id) === i)
  const ways = waysOf(offers.data ?? [], providers, adapters)
  const way = ways.find((w) => w.id === picked) ?? ways[0]
  const lacking = lackingOf(ways, adapters)
  const send = async () => {
    if (!way) return
    setBusy(true)
    setWrong(undefined)
    try {
      const work = await take(way, company.id)
      if (idle.length > 0) for (const a of idle) await patch('/api/agents/{id}', { path: { id: a.id } }, { ...placed(work), replaceAdapterConfig: true })
      else await post('/api/companies/{companyId}/agents', { path: { companyId: company.id } }, { name: name.trim() || 'Ada', role: 'ceo', title: t.start.ceoTitle, icon: 'crown', capabilities: t.start.ceoDoes, ...placed(work) })
      await client.invalidateQueries({ queryKey: keys.agents(company.id) })
      onReady()
    } catch (error) {
      setWrong(error)
    } finally {
      setBusy(false)
    }
  }
  return (
    <form className="flex flex-col gap-4" onSubmit={(e) => { e.preventDefault(); void send() }}>
      {idle.length === 0 && <Field label={t.start.ceoName}><Input name="ceo" maxLength={200} className="max-w-[280px]" value={name} onChange={(e) => setName(e.target.value)} /></Field>}
      <fieldset>
        <legend className="mb-1 text-sm font-strong text-ink2">{t.start.with}</legend>
        <ul className="rounded border border-line">
          {ways.map((w) => <WayRow key={w.id} way={w} on={w === way} onPick={() => { setPicked(w.id); setWrong(undefined) }} />)}
        </ul>
      </fieldset>
      {lacking.length > 0 && <Lacking company={company.id} adapters={lacking} />}
      {wrong !== undefined && <ErrorBox error={wrong} />}
      <div className="flex items-center gap-3"><Button look="primary" type="submit" busy={busy}>{idle.length > 0 ? t.start.employ : t.start.hire(name.trim() || 'Ada')}</Button>{busy && <span className="text-sm text-ink3">{t.start.testing}</span>}</div>
    </form>
  )
}

function WayRow({ way, on, onPick }: { way: Way; on: boolean; onPick: () => void }) {
  return (
    <li className="border-b border-line last:border-0">
      <label className={`flex min-h-10 items-center gap-3 px-3 py-1 ${on ? 'bg-ground2' : ''}`}>
        <input type="radio" name="way" value={way.id} checked={on} onChange={onPick} className="size-4 accent-(--accent)" />
        <span className="font-strong">{way.name}</span><span className="min-w-0 break-words text-sm text-ink2">{way.where}</span>
      </label>
    </li>
  )
}

/** What is on no node, what is missing and how to get it: the nodes are asked when it is opened. */
function Lacking({ company, adapters }: { company: string; adapters: readonly Adapter[] }) {
  const [open, setOpen] = useState(false)
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)} className="text-sm">
      <summary className="cursor-pointer text-ink2">{t.start.lacking(adapters.map((a) => a.displayName || a.type))}</summary>
      {open && <ul className="mt-2 rounded border border-line">{adapters.map((a) => <LackingRow key={a.type} company={company} adapter={a} />)}</ul>}
    </details>
  )
}

function LackingRow({ company, adapter }: { company: string; adapter: Adapter }) {
  const report = useReport(company, adapter.type)
  const note = useRead([...keys.mesh('adapters'), adapter.type], '/api/adapters/{type}', { path: { type: adapter.type } }).data?.note
  const wrong = report.data?.checks.find((c) => c.level === 'error')
  return (
    <li className="flex flex-col gap-0.5 border-b border-line px-3 py-2 last:border-0">
      <span className="font-strong">{adapter.displayName || adapter.type}</span>
      <span className="text-ink2">{report.isPending ? t.agents.looking : wrong?.message ?? t.start.fine}</span>
      {(wrong?.hint ?? (wrong && note)) && <code className="break-words font-mono text-xs text-ink2">{wrong?.hint ?? note}</code>}
    </li>
  )
}
