import { describe, expect, it } from 'vitest'
import { linesOf } from './log'
import { isPatch, sizeOf, Transcript, type Entry } from './transcript'

const read = (...events: unknown[]) => {
  const out = new Transcript()
  out.add({ seq: 1, stream: 'stdout', at: '', chunk: events.map((e) => JSON.stringify(e)).join('\n') + '\n' })
  return out
}
const tool = (e: Entry | undefined) => (e?.kind === 'tool' ? e.call : undefined)

describe('Transcript', () => {
  it('keeps lines of text as they stand, also those that come in pieces or twice', () => {
    const out = new Transcript()
    out.add({ seq: 1, stream: 'stdout', at: '', chunk: 'one\ntw' })
    expect(out.shown().map((e) => e.kind === 'line' && e.text)).toEqual(['one', 'tw'])
    out.add({ seq: 1, stream: 'stdout', at: '', chunk: 'one\ntw' })
    out.add({ seq: 2, stream: 'stderr', at: '', chunk: 'bad\n' })
    out.add({ seq: 3, stream: 'stdout', at: '', chunk: 'o\n{ no json\n' })
    expect(out.shown().map((e) => e.kind === 'line' && `${e.stream} ${e.text}`)).toEqual(['stdout one', 'stderr bad', 'stdout two', 'stdout { no json'])
    expect(out.structured).toBe(false)
  })
  it('reads messages with parts, tools by their ID, and counts a message that is told twice once', () => {
    const usage = { input_tokens: 10, output_tokens: 4, cache_read_input_tokens: 3 }
    const out = read({ type: 'system', subtype: 'init', model: 'm-1' },
      { type: 'assistant', message: { id: 'a', content: [{ type: 'text', text: 'Hello' }], usage } },
      { type: 'assistant', message: { id: 'a', content: [{ type: 'tool_use', id: 't', name: 'Edit', input: { file_path: 'x.md', old_string: 'a', new_string: 'b' } }], usage } },
      { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'ok' }], is_error: true }] } })
    expect(out.totals).toEqual({ model: 'm-1', input: 10, cached: 3, output: 4, tools: 1, files: ['x.md'] })
    expect(tool(out.entries[1])).toMatchObject({ name: 'Edit', what: 'x.md', result: 'ok', bad: true, done: true, diff: [{ path: 'x.md', before: 'a', after: 'b' }] })
  })
  it('takes a total for all before it, and says a last answer once', () => {
    const out = read({ type: 'assistant', message: { id: 'a', content: [{ type: 'text', text: 'Done so' }], usage: { input_tokens: 1, output_tokens: 1 } } },
      { type: 'result', is_error: false, result: 'Done so', total_cost_usd: 0.5, usage: { input_tokens: 30, output_tokens: 7 } })
    expect(out.entries.map((e) => e.kind)).toEqual(['said'])
    expect(out.totals).toMatchObject({ input: 30, output: 7, cents: 50 })
  })
  it('reads items of a thread: commands with their exit, changes of files', () => {
    const out = read({ type: 'item.started', item: { id: 'i', type: 'command_execution', command: 'make' } },
      { type: 'item.completed', item: { id: 'i', type: 'command_execution', command: 'make', aggregated_output: 'no\n', exit_code: 2 } },
      { type: 'item.completed', item: { id: 'j', type: 'file_change', changes: [{ path: 'a.go', kind: 'update' }] } },
      { type: 'turn.completed', usage: { input_tokens: 30, cached_input_tokens: 10, output_tokens: 9 } }, { type: 'turn.failed', error: { message: 'over budget' } })
    expect(tool(out.entries[0])).toMatchObject({ name: 'command_execution', what: 'make', result: 'no\n', bad: true })
    expect(out.totals).toMatchObject({ files: ['a.go'], input: 30, cached: 10, output: 9 })
    expect(out.entries[2]).toMatchObject({ kind: 'note', bad: true, text: 'over budget' })
  })
  it('joins a message that comes in pieces, and reads wrapped tools', () => {
    const out = read({ type: 'message', role: 'assistant', content: 'Hel', delta: true }, { type: 'message', role: 'assistant', content: 'lo', delta: true },
      { type: 'tool_call', subtype: 'started', call_id: 'c', tool_call: { readToolCall: { args: { path: 'a' } } } },
      { type: 'tool_call', subtype: 'completed', call_id: 'c', tool_call: { readToolCall: { args: { path: 'a' }, result: { output: 'text' } } } })
    expect(out.entries[0]).toMatchObject({ kind: 'said', text: 'Hello' })
    expect(out.entries).toHaveLength(2)
    expect(tool(out.entries[1])).toMatchObject({ name: 'read', what: 'a', result: 'text', done: true })
  })
})

describe('a log', () => {
  it('is read in whole lines, counted in bytes', () => {
    const line = JSON.stringify({ ts: 'now', stream: 'stdout', chunk: 'é\n', seq: 4 }) + '\n'
    expect(linesOf(`${line}{"ts":"cut`)).toEqual({ chunks: [{ seq: 4, stream: 'stdout', chunk: 'é\n', at: 'now' }], bytes: line.length + 1 })
  })
  it('has sizes, and patches are known', () => {
    expect(sizeOf('a\nb\n')).toEqual({ lines: 2, bytes: 4 })
    expect(isPatch('--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n')).toBe(true)
    expect(isPatch('- a\n+ b')).toBe(false)
  })
})
