import { expect, test } from 'vitest'
import type { Schemas } from '../../http'
import { lackingOf, modelOf, thinks, waysOf } from './ways'

const adapter = (type: string, program?: string) => ({ type, displayName: type.toUpperCase(), disabled: false, ...(program ? { program } : {}) }) as Schemas['ApiAdapterInfo']
const nodes = [
  { nodeId: 'b', name: 'n2', here: false, offers: [{ kind: 'program', name: 'Claude Code', adapterType: 'claude_local' }, { kind: 'key', name: 'OPENAI_API_KEY' }] },
  { nodeId: 'a', name: 'n1', here: true, offers: [{ kind: 'program', name: 'Claude Code', adapterType: 'claude_local' }, { kind: 'server', name: 'Ollama', baseUrl: 'http://127.0.0.1:11434/v1', models: ['llama3.2:3b'] }, { kind: 'key', name: 'ANTHROPIC_API_KEY' }] },
]
const adapters = [adapter('claude_local', 'claude'), adapter('codex_local', 'codex'), adapter('process')]

test('what is present comes first, a demo last, and keys of other nodes are not offered', () => {
  const ways = waysOf(nodes, [], adapters)
  expect(ways.map((w) => w.id)).toEqual(['claude_local', 'server http://127.0.0.1:11434/v1', 'key ANTHROPIC_API_KEY', 'demo'])
  expect(ways[0]?.where).toContain('n1, n2')
  expect(ways[1]).toMatchObject({ nodes: ['n1'], missing: ['n2'] })
})
test('a server that is an upstream already is listed once', () => {
  const provider = { id: 'p', name: 'ollama', baseUrl: 'http://127.0.0.1:11434/v1', disabled: false } as Schemas['ApiModelProviderRow']
  expect(waysOf(nodes, [provider], adapters).map((w) => w.kind)).toEqual(['program', 'upstream', 'key', 'demo'])
})
test('an adapter whose program is on no node is lacking', () => {
  expect(lackingOf(waysOf(nodes, [], adapters), adapters).map((a) => a.type)).toEqual(['codex_local'])
})
test('the cheapest known model is taken, else one that answers in words', () => {
  expect(modelOf('anthropic', ['claude-sonnet-4-5', 'claude-haiku-4-5-20261001'])).toBe('claude-haiku-4-5-20261001')
  expect(modelOf('openai_compatible', ['nomic-embed-text', 'qwen3:8b'])).toBe('qwen3:8b')
  expect(modelOf('openai', ['text-embedding-3'])).toBeUndefined()
})
test('a small model has no tools', () => {
  expect(thinks('small/smollm2-135m').adapterConfig).toMatchObject({ env: { AGENT_TOOLS: 'none' } })
  expect(thinks('a/qwen3-70b').adapterConfig).not.toMatchObject({ env: { AGENT_TOOLS: 'none' } })
})
