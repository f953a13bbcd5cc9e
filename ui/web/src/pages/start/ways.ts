// How agents can work here: the programs, upstreams, model servers and keys that the nodes have, the best first, and a demo
// that needs none of them. Taking one tests it and makes ready what it needs.
import { get, patch, post, type Schemas } from '../../http'
import { t } from '../../text/en'

type NodeOffers = Schemas['ApiNodeOffers']
type Provider = Schemas['ApiModelProviderRow']
type Adapter = Schemas['ApiAdapterInfo']
type Offer = Schemas['Offer']

export type Way = { id: string; name: string; where: string } & (
  | { kind: 'program'; adapter: string }
  | { kind: 'upstream'; provider: Provider }
  | { kind: 'server'; offer: Offer; nodes: string[]; missing: string[] }
  | { kind: 'key'; variable: string }
  | { kind: 'demo' }
)

/** What an agent is configured with. */
export interface Work { adapterType: string; adapterConfig: Record<string, unknown>; labels: string[] }

export const demo: Way = { id: 'demo', kind: 'demo', name: t.start.demo, where: t.start.demoWhere }

/** waysOf lists what there is. A server that is an upstream already is not listed twice. */
export function waysOf(nodes: readonly NodeOffers[], providers: readonly Provider[], adapters: readonly Adapter[]): Way[] {
  const ways: Way[] = []
  for (const adapter of adapters) {
    const on = nodes.filter((n) => n.offers.some((o) => o.kind === 'program' && o.adapterType === adapter.type)).map((n) => n.name).sort()
    if (on.length > 0 && !adapter.disabled) ways.push({ id: adapter.type, kind: 'program', adapter: adapter.type, name: adapter.displayName || adapter.type, where: t.start.on(on.join(', ')) })
  }
  for (const provider of providers) {
    if (!provider.disabled) ways.push({ id: `upstream ${provider.id}`, kind: 'upstream', provider, name: provider.name, where: provider.baseUrl })
  }
  const served = new Map<string, { offer: Offer; nodes: string[] }>()
  for (const node of nodes) {
    for (const offer of node.offers) {
      if (offer.kind !== 'server' || !offer.baseUrl || providers.some((p) => p.baseUrl === offer.baseUrl)) continue
      const found = served.get(offer.baseUrl) ?? { offer, nodes: [] }
      found.nodes.push(node.name)
      served.set(offer.baseUrl, found)
    }
  }
  for (const [url, { offer, nodes: on }] of served) {
    ways.push({ id: `server ${url}`, kind: 'server', offer, nodes: on, missing: nodes.map((n) => n.name).filter((n) => !on.includes(n)), name: offer.name, where: `${url} ${t.start.on(on.sort().join(', '))}` })
  }
  for (const node of nodes.filter((n) => n.here)) {
    for (const offer of node.offers) if (offer.kind === 'key') ways.push({ id: `key ${offer.name}`, kind: 'key', variable: offer.name, name: offer.name, where: t.start.keyOf(node.name) })
  }
  return [...ways, demo]
}

/** lackingOf lists the adapters with a program that no node has. */
export const lackingOf = (ways: readonly Way[], adapters: readonly Adapter[]): Adapter[] => adapters.filter((a) => a.program && !a.disabled && !ways.some((w) => w.kind === 'program' && w.adapter === a.type))

const preferred: Record<string, readonly string[]> = { anthropic: ['claude-sonnet-4-5', 'claude-haiku-4-5'], openai: ['gpt-5', 'gpt-5-mini'], gemini: ['gemini-2.5-pro', 'gemini-2.5-flash'] }
const dated = (model: string, name: string) => model === name || model.startsWith(`${name}-20`)

/** modelOf takes a model of an upstream: the cheapest known one that is good for work, else the first that answers in words. */
export function modelOf(kind: string, models: readonly string[]): string | undefined {
  for (const name of [...(preferred[kind] ?? [])].reverse()) {
    const found = models.find((m) => dated(m, name))
    if (found) return found
  }
  return models.find((m) => !m.toLowerCase().includes('embed'))
}

const small = /(^|[^0-9.])([0-9]{2,3}m|0?\.[0-9]+b|[1-3](\.[0-9]+)?b)([^a-z0-9]|$)/i

/** thinks is the default agent with a model; a small model has no tools. */
export function thinks(model: string, labels: string[] = []): Work {
  return { adapterType: 'wasm', labels, adapterConfig: { env: { AGENT_MODEL: model, AGENT_ANSWER_STATUS: 'done', ...(small.test(model) ? { AGENT_TOOLS: 'none', AGENT_MAX_TOKENS: '300' } : {}) } } }
}

async function ofUpstream(provider: Provider): Promise<Work> {
  const check = await (provider.companyId
    ? post('/api/companies/{companyId}/model-providers/{id}/test', { path: { companyId: provider.companyId, id: provider.id } })
    : post('/api/instance/model-providers/{id}/test', { path: { id: provider.id } }))
  if (!check.ok) throw new Error(`${provider.name}: ${check.message}`)
  const model = modelOf(provider.kind, check.models ?? [])
  if (!model) throw new Error(t.start.noModel(provider.name))
  return thinks(`${provider.name}/${model}`, provider.labels ?? [])
}

/** take tests a way and makes ready what it needs. What does not work is said by an Error. */
export async function take(way: Way, company: string): Promise<Work> {
  switch (way.kind) {
    case 'demo': return { adapterType: 'wasm', labels: [], adapterConfig: { env: { AGENT_DEMO: '1' } } }
    case 'program': {
      const report = await post('/api/companies/{companyId}/adapters/{type}/test-environment', { path: { companyId: company, type: way.adapter } }, {})
      const wrong = report.checks.find((c) => c.level === 'error')
      if (wrong) throw new Error(`${way.name}: ${wrong.message}${wrong.hint ? ` (${wrong.hint})` : ''}`)
      return { adapterType: way.adapter, labels: [], adapterConfig: report.checks.some((c) => c.code === 'no_upstream') ? { gateway: false } : {} }
    }
    case 'upstream': return ofUpstream(way.provider)
    case 'key': return ofUpstream(await post('/api/instance/model-providers/from-environment', {}, { variable: way.variable }))
    case 'server': return ofServer(way)
  }
}

async function ofServer(way: Way & { kind: 'server' }): Promise<Work> {
  const name = way.offer.name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-')
  const labels: string[] = []
  if (way.missing.length > 0) { // the address is of each node's own machine: only nodes that find the server may use it
    labels.push(`serves-${name}=yes`)
    for (const m of await get('/api/v1/mesh/members')) {
      if (way.nodes.includes(m.name)) await patch('/api/v1/mesh/nodes/{id}', { path: { id: m.id } }, { labels: { [`serves-${name}`]: 'yes' } })
    }
  }
  const models = way.offer.provider === 'openai_compatible' ? { models: (way.offer.models ?? []).map((m) => ({ name: m })) } : {}
  return ofUpstream(await post('/api/instance/model-providers', {}, { name, kind: way.offer.provider, baseUrl: way.offer.baseUrl, labels, free: true, ...models }))
}
