// Model providers and prices, of this company and of all: add, test, set a price.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { say, useMembers, useRead, useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, put, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Input } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { Confirm, Menu } from '../../parts/overlay'
import { Empty, Loaded, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

type Provider = Schemas['ApiModelProviderRow']
type Price = Schemas['ApiModelPriceRow'] & { mesh: boolean }
type Check = Schemas['Check']

const kinds = ['openai', 'anthropic', 'openrouter', 'gemini', 'ollama', 'vllm', 'llamacpp', 'openai_compatible']

// Prices are kept in micro-cents for a million tokens.
const perDollar = 100_000_000
const dollars = new Intl.NumberFormat(undefined, { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol', minimumFractionDigits: 2, maximumFractionDigits: 8 })
const priceOf = (n: number) => (n > 0 ? dollars.format(n / perDollar) : '–')

const schemaOf = (isNew: boolean): Schema => ({
  required: ['name', 'kind'],
  properties: {
    ...(isNew ? { scope: { type: 'string', title: tp.models.scope, enum: ['company', 'mesh'], labels: { company: tp.models.company, mesh: tp.models.mesh } } } : {}),
    name: { type: 'string', title: tp.models.name }, kind: { type: 'string', title: tp.models.kind, enum: kinds }, baseUrl: { type: 'string', title: tp.models.url },
    apiKey: { type: 'string', writeOnly: true, title: tp.models.apiKey, description: tp.models.apiKeyHint }, models: { type: 'array', items: { type: 'string' }, title: tp.models.models, description: tp.models.modelsHint },
    priority: { type: 'integer', title: tp.models.priority, description: tp.models.priorityHint, minimum: 0 }, free: { type: 'boolean', title: tp.models.free },
  },
})

/** bodyOf makes the names of models what the API takes. */
const bodyOf = ({ models, scope: _scope, ...rest }: Values): Record<string, unknown> => ({ ...rest, ...(models === undefined ? {} : { models: (Array.isArray(models) ? models : []).map(String).filter(Boolean).map((name) => ({ name })) }) })

export function Page() {
  const company = useCompany()
  const own = useRead(keys.models(company.id, 'providers'), '/api/companies/{companyId}/model-providers', { path: { companyId: company.id } })
  const mesh = useRead(keys.models('mesh', 'providers'), '/api/instance/model-providers')
  const [editing, setEditing] = useState<Provider | 'new'>()
  const [removing, setRemoving] = useState<Provider>()
  const [checks, setChecks] = useState<Record<string, Check | 'busy'>>({})
  const members = useMembers().data
  const reread = () => [keys.models(company.id), keys.models('mesh')]
  const at = (p: Provider) => ({ companyId: company.id, id: p.id })
  const save = useWrite<{ of: Provider | 'new'; values: Values; changes: Values }, unknown>({
    call: ({ of, values, changes }) => {
      if (of !== 'new') return of.companyId ? patch('/api/companies/{companyId}/model-providers/{id}', { path: at(of) }, bodyOf(changes)) : patch('/api/instance/model-providers/{id}', { path: { id: of.id } }, bodyOf(changes))
      const body = bodyOf(values) as Schemas['ApiNewModelProvider']
      return values['scope'] === 'mesh' ? post('/api/instance/model-providers', {}, body) : post('/api/companies/{companyId}/model-providers', { path: { companyId: company.id } }, body)
    },
    reread, onDone: (_a, { of, values }) => { setEditing(undefined); toast({ text: of === 'new' ? tp.models.made(String(values['name'])) : tp.models.changed }) },
  })
  const remove = useWrite<Provider, unknown>({ call: (p) => (p.companyId ? del('/api/companies/{companyId}/model-providers/{id}', { path: at(p) }) : del('/api/instance/model-providers/{id}', { path: { id: p.id } })), reread, onDone: (_a, p) => { setRemoving(undefined); toast({ text: tp.models.removed(p.name) }) } })
  const test = (p: Provider) => {
    setChecks((now) => ({ ...now, [p.id]: 'busy' }))
    void (p.companyId ? post('/api/companies/{companyId}/model-providers/{id}/test', { path: at(p) }) : post('/api/instance/model-providers/{id}/test', { path: { id: p.id } }))
      .then((c) => setChecks((now) => ({ ...now, [p.id]: c as Check })), (error: unknown) => { say(error); setChecks(({ [p.id]: _gone, ...rest }) => rest) })
  }
  const rows = [...(own.data ?? []).filter((p) => p.companyId), ...(mesh.data ?? []).filter((p) => !(own.data ?? []).some((o) => o.id === p.id && o.companyId))]
  const columns: Column<Provider>[] = [
    { id: 'name', head: tp.models.name, width: 'minmax(96px,1fr)', cell: (p) => <span className="font-strong">{p.name}</span>, sort: (a, b) => a.name.localeCompare(b.name) },
    { id: 'kind', head: tp.models.kind, width: '104px', from: 'tab', cell: (p) => p.kind.replace(/_/g, ' ') },
    { id: 'scope', head: tp.models.scope, width: '104px', from: 'tab', cell: (p) => (p.companyId ? tp.models.company : tp.models.mesh) },
    { id: 'url', head: tp.models.url, width: 'minmax(0,1fr)', from: 'desk', cell: (p) => <code className="font-mono text-xs text-ink2">{p.baseUrl || '–'}</code> },
    { id: 'models', head: tp.models.models, width: 'minmax(0,140px)', from: 'wide', cell: (p) => <span className="text-ink2">{(p.models ?? []).map((m) => m.name).join(', ') || t.common.all}</span> },
    { id: 'key', head: tp.models.key, width: '56px', from: 'desk', cell: (p) => (p.hasKey ? tp.models.hasKey : tp.models.noKey) },
    { id: 'status', head: tp.models.status, width: 'minmax(80px,220px)', cell: (p) => <State provider={p} check={checks[p.id]} node={(id) => members?.find((m) => m.id === id)?.name ?? ''} />, text: (p) => (p.disabled ? tp.models.off : tp.models.on) },
    { id: 'test', head: '', width: '56px', cell: (p) => <Button small busy={checks[p.id] === 'busy'} onClick={() => test(p)}>{tp.models.test}</Button> },
    { id: 'more', head: '', width: '28px', cell: (p) => <Menu align="end" label={t.common.actions} items={[{ label: tp.models.edit, icon: 'settings', onSelect: () => setEditing(p) }, { label: p.disabled ? tp.models.turnOn : tp.models.turnOff, icon: p.disabled ? 'play' : 'pause', onSelect: () => save.mutate({ of: p, values: { name: p.name }, changes: { disabled: !p.disabled } }) }, null, { label: tp.models.remove, icon: 'close', danger: true, onSelect: () => setRemoving(p) }]}><IconButton small icon="more" label={`${t.common.actions} ${p.name}`} /></Menu> },
  ]
  const of = editing !== undefined && editing !== 'new' ? editing : undefined
  return (
    <Frame title={tp.models.title} command="selvage model provider list" tools={<Button look="primary" icon="plus" onClick={() => setEditing('new')}>{tp.models.add}</Button>}>
      <div className="flex w-full max-w-page flex-col gap-6 p-4">
        <Section title={tp.models.providers}><Loaded of={own} rows={3}>{() => <div className="flex flex-col overflow-hidden rounded border border-line"><Table label={tp.models.providers} rows={rows} columns={columns} keyOf={(p) => p.id} empty={<Empty icon="models" title={tp.models.empty} why={tp.models.emptyWhy} />} /></div>}</Loaded></Section>
        <Prices />
      </div>
      {editing && <FormDialog key={of?.id ?? 'new'} title={of ? of.name : tp.models.add} schema={schemaOf(!of)} action={of ? t.common.save : t.common.create} busy={save.isPending} onClose={() => setEditing(undefined)}
        initial={of ? { name: of.name, kind: of.kind, baseUrl: of.baseUrl || undefined, models: (of.models ?? []).map((m) => m.name), priority: of.priority, free: of.free } : { scope: 'company' }}
        onSave={(values, changes) => save.mutate({ of: editing, values, changes })} />}
      <Confirm open={!!removing} onClose={() => setRemoving(undefined)} title={tp.models.removeAsk(removing?.name ?? '')} body={tp.models.removeBody} action={tp.models.remove} busy={remove.isPending} onConfirm={() => removing && remove.mutate(removing)} />
    </Frame>
  )
}

function State({ provider: p, check, node }: { provider: Provider; check: Check | 'busy' | undefined; node: (id: string) => string }) {
  if (check === 'busy') return <span className="text-ink3">{tp.models.testing}</span>
  if (check) return <span title={check.message}><StatusMark status={check.ok ? 'ok' : 'bad'} label={check.ok ? `${tp.models.found((check.models ?? []).length)} · ${tp.models.took(check.tookMs)} ${node(check.nodeId)}` : check.message} /></span>
  return <StatusMark status={p.disabled ? 'paused' : 'active'} label={p.disabled ? tp.models.off : tp.models.on} />
}

const priceSchema: Schema = {
  required: ['model', 'input'],
  properties: {
    scope: { type: 'string', title: tp.models.scope, enum: ['company', 'mesh'], labels: { company: tp.models.company, mesh: tp.models.mesh } }, model: { type: 'string', title: tp.models.model, description: tp.models.modelHint },
    input: { type: 'number', title: tp.models.input, minimum: 0, description: tp.models.perMillion }, output: { type: 'number', title: tp.models.output, minimum: 0 }, cacheRead: { type: 'number', title: tp.models.cacheRead, minimum: 0 }, cacheWrite: { type: 'number', title: tp.models.cacheWrite, minimum: 0 },
  },
}

function Prices() {
  const company = useCompany()
  const own = useRead(keys.models(company.id, 'prices'), '/api/companies/{companyId}/model-prices', { path: { companyId: company.id } })
  const [editing, setEditing] = useState<Price | 'new'>()
  const [find, setFind] = useState('')
  const reread = () => [keys.models(company.id), keys.models('mesh')]
  const save = useWrite<Values, unknown>({
    call: ({ scope, model, ...money }) => {
      const body = { model: String(model), ...Object.fromEntries(Object.entries(money).map(([k, v]) => [k, Math.round(Number(v) * perDollar)])) } as Schemas['ApiSetModelPrice']
      return scope === 'mesh' ? put('/api/instance/model-prices', {}, body) : put('/api/companies/{companyId}/model-prices', { path: { companyId: company.id } }, body)
    },
    reread, onDone: () => { setEditing(undefined); toast({ text: tp.models.priced }) },
  })
  const remove = useWrite<Price, unknown>({ call: (p) => (p.mesh ? del('/api/instance/model-prices', { query: { model: p.model } }) : del('/api/companies/{companyId}/model-prices', { path: { companyId: company.id }, query: { model: p.model } })), reread, onDone: () => toast({ text: tp.models.unpriced }) })
  const money = (id: 'input' | 'output' | 'cacheRead' | 'cacheWrite', from?: 'tab' | 'desk'): Column<Price> => ({ id, head: tp.models[id], width: 'clamp(56px, 7vw, 96px)', right: true, ...(from ? { from } : {}), cell: (p) => priceOf(p[id]), sort: (a, b) => a[id] - b[id] })
  const sourceOf = (s: string) => (s === 'company' ? tp.models.company : s === 'mesh' || s === 'instance' ? tp.models.mesh : tp.models.builtin)
  const columns: Column<Price>[] = [
    { id: 'model', head: tp.models.model, width: 'minmax(72px,1fr)', cell: (p) => <code className="font-mono text-xs">{p.model}</code>, sort: (a, b) => a.model.localeCompare(b.model) },
    money('input'), money('output'), money('cacheRead', 'desk'), money('cacheWrite', 'desk'),
    { id: 'source', head: tp.models.source, width: '112px', from: 'tab', cell: (p) => <Badge>{sourceOf(p.source)}</Badge> },
    { id: 'more', head: '', width: '28px', cell: (p) => <Menu align="end" label={t.common.actions} items={[{ label: tp.models.price, icon: 'costs', onSelect: () => setEditing(p) }, ...(sourceOf(p.source) === tp.models.builtin ? [] : [{ label: tp.models.remove, icon: 'close' as const, danger: true, onSelect: () => remove.mutate(p) }])]}><IconButton small icon="more" label={`${t.common.actions} ${p.model}`} /></Menu> },
  ]
  const of = editing !== undefined && editing !== 'new' ? editing : undefined
  return (
    <Section title={tp.models.prices} aside={<span className="flex items-center gap-2"><span className="text-xs text-ink3 max-tab:hidden">{tp.models.perMillion}</span><Input aria-label={tp.models.findPrice} placeholder={tp.models.findPrice} value={find} onChange={(e) => setFind(e.target.value)} className="!h-6 !w-40 !text-xs" /><Button small icon="plus" onClick={() => setEditing('new')}>{tp.models.price}</Button></span>}>
      <Loaded of={own} rows={4}>{(rows) => {
        const shown = rows.map((p): Price => ({ ...p, mesh: p.source !== 'company' })).filter((p) => p.model.toLowerCase().includes(find.toLowerCase()))
        return <div className="flex max-h-[560px] flex-col overflow-hidden rounded border border-line"><Table dense label={tp.models.prices} rows={shown} columns={columns} keyOf={(p) => `${p.source} ${p.model}`} empty={<Empty icon="costs" title={find ? t.common.nothingFound : tp.models.noPrices} why={find ? undefined : tp.models.noPricesWhy} />} /></div>
      }}</Loaded>
      {editing && <FormDialog title={tp.models.price} schema={priceSchema} action={t.common.save} busy={save.isPending} onClose={() => setEditing(undefined)}
        initial={of ? { scope: of.mesh && of.source !== 'built-in' && of.source !== 'builtin' ? 'mesh' : 'company', model: of.model, input: of.input / perDollar, output: of.output / perDollar, ...(of.cacheRead ? { cacheRead: of.cacheRead / perDollar } : {}), ...(of.cacheWrite ? { cacheWrite: of.cacheWrite / perDollar } : {}) } : { scope: 'company' }}
        onSave={(v) => save.mutate(v)} />}
    </Section>
  )
}
