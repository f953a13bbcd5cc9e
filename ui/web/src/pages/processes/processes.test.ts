import { describe, expect, it } from 'vitest'
import { sizeOf } from '../../format'
import { base64Of, isNewer, mayOf } from '../apps/archive'
import { asTree } from '../goals/tree'
import { payloadText } from '../messages/payload'
import { added, mostKept, type Message } from '../topics/tail'
import { bodyOf, wrongIn } from './form'
import { watchesOf } from './watched'
import { argsOf, leafOf, limitsOf, lineOf, outputOf, tookOf, type Row } from './words'

describe('a command line', () => {
  it('is divided as a shell divides it', () => {
    expect(argsOf(`sh -c 'echo "a b"' "it's" a\\ b ''`).args).toEqual(['sh', '-c', 'echo "a b"', "it's", 'a b', ''])
    expect(argsOf('  ').args).toEqual([])
    expect(argsOf(`echo 'open`).open).toBe(true)
  })
  it('is written so that it is read back', () => {
    const args = ['sh', '-c', `it's "so"; echo $HOME`, '', 'plain/path-1']
    expect(argsOf(lineOf(args)).args).toEqual(args)
  })
})

it('sizes and times are short', () => {
  expect([0, 1023, 16_830_464, 256 << 20].map(sizeOf)).toEqual(['0 B', '1023 B', '16.1 MiB', '256 MiB'])
  expect([660, 12_345, 300_000].map(tookOf)).toEqual(['660 ms', '12.3 s', '5 min 0 s'])
})

const row = (node: string, pid: number, parent = 0): Row => ({ node, pid, parent_pid: parent, address: `${node}:${pid}`, resource_usage: { memory_bytes: 300, cpu_time_ms: 5, disk_bytes: 0, messages_sent: 0, tool_calls: 0, cost_cents: 0 }, capabilities: { resource_limits: { max_memory_bytes: 400, max_cpu_time_ms: 0, max_disk_bytes: 0, max_messages: 0, max_tool_calls: 0, max_cost_cents: 0 } } }) as Row

it('processes stand below their parents, each node by itself', () => {
  const tree = asTree([row('n1', 0), row('n1', 7, 3), row('n1', 3), row('n2', 0), row('n2', 3)].map(leafOf))
  expect(tree.map((l) => '-'.repeat(l.depth) + l.row.address)).toEqual(['n1:0', '-n1:3', '--n1:7', 'n2:0', '-n2:3'])
})

it('use is told against limits, and a limit of 0 is none', () => {
  expect(limitsOf(row('n1', 3)).slice(0, 2)).toEqual([{ name: 'memory', used: 300, of: 400, text: '300 B of 400 B' }, { name: 'cpu', used: 5, of: 0, text: '5 ms, no limit' }])
})

it('links and monitors are told by address, also those of other nodes', () => {
  expect(watchesOf({ links: [4], monitors: [{ ref: 'm1', process: 5 }], far: [{ ref: '', process: 'n2:7' }, { ref: 'm2', process: 'n3:8' }] } as never, 'n1')).toEqual([{ of: 'n1:4', ref: '' }, { of: 'n1:5', ref: 'm1' }, { of: 'n2:7', ref: '' }, { of: 'n3:8', ref: 'm2' }])
})

it('output is the pieces of the lines of a log', () => expect(outputOf('{"chunk":"a\\n"}\n{"other":1}\nbroken\n{"chunk":"b"}\n')).toBe('a\nb'))

it('what is asked for has what was filled in', () => {
  expect(bodyOf({ backend: 'native', command: 'sleep 60', memory: 64, cpu: 1.5, env: ['A=b=c', ''], node: 'n2' })).toEqual({ backend: 'native', command: ['sleep', '60'], node: 'n2', env: { A: 'b=c' }, capabilities: { resource_limits: { max_memory_bytes: 64 << 20, max_cpu_time_ms: 1500 } } })
  expect(bodyOf({ backend: 'wasm', command: '' }, { sha256: 'h', size: 3 })).toEqual({ backend: 'wasm', command: [], module: 'h', module_bytes: 3 })
  expect(Object.keys(wrongIn({ command: `'`, env: ['=x'] })).sort()).toEqual(['command', 'env'])
})

it('the newest messages come first, once, and are bounded', () => {
  const m = (height: number) => ({ height }) as Message
  expect(added([m(2), m(1)], [m(2), m(3), m(4)]).map((x) => x.height)).toEqual([4, 3, 2, 1])
  expect(added([], Array.from({ length: mostKept + 9 }, (_, i) => m(i)))).toHaveLength(mostKept)
})

it('an archive becomes base64, and versions are compared by number', () => {
  expect(base64Of(new Uint8Array([0, 255, 16]).buffer)).toBe('AP8Q')
  expect([isNewer('1.10.0', '1.9.9'), isNewer('1.0.0', '1.0.0'), isNewer('0.9.0', '1.0.0')]).toEqual([true, false, false])
})

it('what an app may do is told in words, with the values of its settings', () => {
  expect(mayOf('shell')).toBe('start programs (shell)')
  expect(mayOf('network ${urls}', { urls: 'https://example.com' })).toBe('use the network: https://example.com')
  expect(mayOf('network ${urls}')).toBe('use the network: what the setting urls says')
  expect(mayOf('moon x')).toBe('moon: x')
})

it('a payload is read as its text, or as JSON', () => {
  expect(payloadText({ kind: 'text', text: 'Hello' })).toBe('Hello')
  expect(payloadText({ kind: 'json', json: { a: 1 } })).toBe('{"a":1}')
  expect(payloadText({ kind: 'tool_call', name: 'grep', args: {} })).toBe('tool_call {"name":"grep","args":{}}')
  expect(payloadText(undefined)).toBe('')
})
