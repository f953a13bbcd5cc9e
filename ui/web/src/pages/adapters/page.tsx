// The adapters: what agents run with, on which nodes each is ready, and what the others lack.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useMaybeCompany } from '../../company'
import { say, useMembers, useRead } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { schemaOf } from '../../parts/adapterform'
import { Button } from '../../parts/button'
import { JsonForm, wrongOf, type Values } from '../../parts/jsonform'
import { Drawer } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

type Adapter = Schemas['ApiAdapterInfo']
type Report = Schemas['ApiAdapterReport']
type NodeReport = Schemas['ApiNodeReport']

// What a configuration lacks and not the node: a program or an address that nobody named yet.
const unset = new Set(['command_missing', 'url_invalid'])

const stateOf = (n: NodeReport | undefined) => (!n ? undefined : (n.checks ?? []).some((c) => c.level === 'error') ? ((n.checks ?? []).every((c) => c.level !== 'error' || unset.has(c.code)) ? 'note' : 'bad') : (n.checks ?? []).some((c) => c.level === 'warn') ? 'warn' : 'ok')
const wordOf = { note: tp.adapters.unset, ok: tp.adapters.ready, warn: tp.adapters.warns, bad: tp.adapters.lacks }
const ask = (company: string, type: string, adapterConfig: Values) => post('/api/companies/{companyId}/adapters/{type}/test-environment', { path: { companyId: company, type } }, { adapterConfig })

export function Page() {
  const company = useMaybeCompany()
  const { show } = useSearch({ strict: false }) as { show?: string }
  const go = useNavigate()
  const open = (type: string) => void go({ to: '.', search: (type ? { show: type } : {}) as never, replace: true })
  const all = useRead(keys.mesh('adapters'), '/api/adapters')
  const nodes = (useMembers().data ?? []).filter((m) => m.status !== 'revoked').sort((a, b) => a.name.localeCompare(b.name))
  const [reports, setReports] = useState<Record<string, Report>>({})
  const [asked, setAsked] = useState<[number, number]>()
  const look = async (rows: readonly Adapter[]) => {
    if (!company) return
    for (const [i, a] of rows.entries()) { // one after the other: each asks all nodes
      setAsked([i, rows.length])
      const report = await ask(company.id, a.type, {}).catch((error: unknown) => { say(error) })
      if (report) setReports((now) => ({ ...now, [a.type]: report }))
    }
    setAsked(undefined)
  }
  const columns: Column<Adapter>[] = [
    { id: 'name', head: tp.adapters.name, width: 'minmax(120px,1fr)', cell: (a) => <span className="font-strong">{a.displayName || a.label}</span>, sort: (a, b) => a.displayName.localeCompare(b.displayName) },
    { id: 'type', head: tp.adapters.type, width: 'minmax(0,160px)', from: 'wide', cell: (a) => <code className="font-mono text-xs text-ink2">{a.type}</code> },
    { id: 'program', head: tp.adapters.program, width: '112px', from: 'tab', cell: (a) => (a.program ? <code className="font-mono text-xs">{a.program}</code> : '–') },
    { id: 'integration', head: tp.adapters.integration, width: '96px', from: 'wide', cell: (a) => a.integration },
    { id: 'models', head: tp.adapters.models, width: '56px', from: 'wide', cell: (a) => a.modelsCount || '–' },
    ...nodes.map((n): Column<Adapter> => ({ id: n.id, head: n.name, width: 'minmax(64px,104px)', from: 'tab', cell: (a) => { const state = stateOf((reports[a.type]?.nodes ?? []).find((x) => x.nodeId === n.id)); return state ? <StatusMark status={state} label={wordOf[state]} /> : <span className="text-ink3">–</span> } })),
  ]
  const shown = all.data?.find((a) => a.type === show)
  return (
    <Frame title={tp.adapters.title} command="selvage adapter list" scroll={false} tools={company && <Button icon="search" busy={!!asked} onClick={() => void look(all.data ?? [])}>{asked ? tp.adapters.looking(asked[0], asked[1]) : tp.adapters.look}</Button>}
      drawer={shown && <Drawer label={shown.label} onClose={() => open('')} head={shown.displayName || shown.label}><One key={shown.type} adapter={shown} report={reports[shown.type]} onReport={(r) => setReports((now) => ({ ...now, [shown.type]: r }))} /></Drawer>}>
      <Loaded of={all}>{(rows) => <Table label={tp.adapters.title} rows={rows.filter((a) => !a.disabled)} columns={columns} keyOf={(a) => a.type} openKey={show} onOpen={(a) => open(a.type)} empty={<Empty icon="adapters" title={t.common.nothingFound} />} />}</Loaded>
    </Frame>
  )
}

function One({ adapter: a, report, onReport }: { adapter: Adapter; report: Report | undefined; onReport: (r: Report) => void }) {
  const company = useMaybeCompany()
  const detail = useRead([...keys.mesh('adapters'), a.type], '/api/adapters/{type}', { path: { type: a.type } })
  const [config, setConfig] = useState<Values>({})
  const [busy, setBusy] = useState(false)
  const schema = schemaOf(detail.data?.fields ?? [])
  const wrong = wrongOf(schema, config)
  const test = () => {
    if (!company) return
    setBusy(true)
    void ask(company.id, a.type, config).then(onReport, say).finally(() => setBusy(false))
  }
  const can = Object.entries(a.capabilities).filter(([, v]) => v).map(([k]) => tp.adapters.ability[k] ?? k)
  return (
    <div className="flex flex-col gap-4">
      {detail.data?.note && <p className="text-sm text-ink2">{detail.data.note}</p>}
      <Facts rows={[[tp.adapters.type, <code className="font-mono text-xs">{a.type}</code>], !!a.program && [tp.adapters.program, <code className="font-mono text-xs">{a.program}</code>], can.length > 0 && [tp.adapters.abilities, can.join(', ')], (detail.data?.models ?? []).length > 0 && [tp.adapters.models, (detail.data?.models ?? []).map((m) => m.label).join(', ')]]} />
      <Section title={tp.adapters.nodes} aside={company && <Button small busy={busy} onClick={test}>{tp.adapters.test}</Button>}>
        {!company ? <Empty title={tp.adapters.needsCompany} why={tp.adapters.needsCompanyWhy} /> : !report ? <p className="text-sm text-ink3">{Object.keys(wrong).length > 0 ? tp.adapters.fill : tp.adapters.notAsked}</p> : (
          <ul className="rounded border border-line">{[...(report.nodes ?? [])].sort((x, y) => x.name.localeCompare(y.name)).map((n) => (
            <li key={n.nodeId} className="border-b border-line px-3 py-2 text-sm last:border-0">
              <StatusMark status={stateOf(n) ?? 'note'} label={`${n.name}: ${wordOf[stateOf(n) ?? 'ok']}`} />
              <ul className="mt-1 flex flex-col gap-1">{(n.checks ?? []).map((c, i) => <li key={i} className={`text-xs [overflow-wrap:anywhere] ${c.level === 'error' ? 'text-bad' : c.level === 'warn' ? 'text-warn' : 'text-ink2'}`}>{c.message}{c.detail && <span className="text-ink3"> {c.detail}</span>}{c.hint && <span className="mt-0.5 block text-ink2">{tp.adapters.hint}: <code className="break-all rounded bg-ground3 px-1 font-mono">{c.hint}</code></span>}</li>)}</ul>
            </li>
          ))}</ul>
        )}
      </Section>
      <Section title={tp.adapters.config}><Loaded of={detail} rows={4}>{() => <JsonForm schema={schema} values={config} onChange={setConfig} />}</Loaded></Section>
      {(detail.data?.keys ?? []).length > 0 && <Section title={tp.adapters.keys}><p className="flex flex-wrap gap-1">{(detail.data?.keys ?? []).map((k) => <Badge key={k}>{k}</Badge>)}</p></Section>}
    </div>
  )
}
