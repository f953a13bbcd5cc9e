// What a run wrote, as entries to read: the messages and tool calls of command-line agents, who write a JSON object a
// line, and every other line as it stands. No form of one program is required: fields that are there are read.

export interface Chunk { seq: number; stream: string; chunk: string; at: string }

export interface ToolCall { name: string; what: string; input: string; result?: string; bad?: boolean; done: boolean; files: string[]; diff?: { path: string; before: string; after: string }[] }
export type Entry = { id: number; at: string } & (
  | { kind: 'line'; stream: string; text: string }
  | { kind: 'said'; text: string; thinking: boolean }
  | { kind: 'told'; text: string }
  | { kind: 'tool'; call: ToolCall }
  | { kind: 'note'; text: string; bad: boolean }
)

export interface Totals { model?: string; input: number; cached: number; output: number; cents?: number; tools: number; files: string[] }

type Json = Record<string, unknown>
const object = (v: unknown): Json | undefined => (typeof v === 'object' && v !== null && !Array.isArray(v) ? (v as Json) : undefined)
const text = (v: unknown): string | undefined => (typeof v === 'string' && v !== '' ? v : undefined)
const count = (v: unknown): number => (typeof v === 'number' && Number.isFinite(v) ? v : 0)

/** The newest entries that are kept; of a longer run the raw log has the rest. */
export const maxEntries = 20_000
const maxJson = 4_000_000 // of one line that is not ended
const maxWhat = 200

/** A Transcript grows by the chunks of a log. */
export class Transcript {
  entries: Entry[] = []
  dropped = 0
  last = 0
  bytes = 0
  totals: Totals = { input: 0, cached: 0, output: 0, tools: 0, files: [] }
  /** Whether a program told of itself in JSON lines. */
  structured = false
  private rest = new Map<string, { text: string; at: string }>()
  private calls = new Map<string, number>()
  private usage = new Map<string, { input: number; cached: number; output: number }>()
  private nextId = 1
  private open: number | undefined // a message that still grows in parts

  /** add takes the next chunk; one that was taken before is passed over. */
  add(chunk: Chunk): void {
    if (chunk.seq <= this.last) return
    this.last = chunk.seq
    this.bytes += chunk.chunk.length
    const kept = this.rest.get(chunk.stream)
    const lines = ((kept?.text ?? '') + chunk.chunk).split('\n')
    const end = lines.pop() ?? ''
    for (const line of lines) this.line(chunk.stream, line, kept?.at ?? chunk.at)
    if (end === '') this.rest.delete(chunk.stream)
    else if (end.length > maxJson) {
      this.line(chunk.stream, end, chunk.at)
      this.rest.delete(chunk.stream)
    } else this.rest.set(chunk.stream, { text: end, at: chunk.at })
  }

  /** shown are the entries and, at their end, lines that are not ended yet. */
  shown(): Entry[] {
    const open: Entry[] = []
    let id = -1
    for (const [stream, { text: t, at }] of this.rest) if (!t.startsWith('{')) open.push({ id: id--, at, kind: 'line', stream, text: t })
    return open.length > 0 ? [...this.entries, ...open] : this.entries
  }

  private push(at: string, entry: Omit<Extract<Entry, { kind: 'line' }>, 'id' | 'at'> | Omit<Extract<Entry, { kind: 'said' }>, 'id' | 'at'> | Omit<Extract<Entry, { kind: 'told' }>, 'id' | 'at'> | Omit<Extract<Entry, { kind: 'tool' }>, 'id' | 'at'> | Omit<Extract<Entry, { kind: 'note' }>, 'id' | 'at'>): number {
    const id = this.nextId++
    this.open = undefined
    this.entries.push({ id, at, ...entry } as Entry)
    if (this.entries.length > maxEntries * 1.1) {
      this.dropped += this.entries.length - maxEntries
      this.entries = this.entries.slice(-maxEntries)
    }
    return id
  }

  private line(stream: string, line: string, at: string): void {
    if (stream !== 'system' && line.startsWith('{')) {
      try {
        const event = object(JSON.parse(line))
        if (event && (typeof event['type'] === 'string' || event['jsonrpc'])) {
          this.structured = true
          this.event(event, at)
          return
        }
      } catch { /* a line of text that begins with a brace */ }
    }
    this.push(at, { kind: 'line', stream, text: line.replace(/\r$/, '') })
  }

  private event(e: Json, at: string): void {
    const type = text(e['type']) ?? ''
    const model = text(e['model']) ?? text(object(e['message'])?.['model'])
    if (model) this.totals.model = model
    switch (type) {
      case 'assistant': case 'user': case 'message_end': case 'message': return this.message(e, at)
      case 'item.started': case 'item.updated': case 'item.completed': return this.item(object(e['item']) ?? {}, type === 'item.completed', at)
      case 'tool_use': case 'tool_call': case 'tool_execution_start': case 'tool_execution_end': case 'tool_result': return this.tool(e, at)
      case 'text': case 'reasoning': {
        const said = text(object(e['part'])?.['text']) ?? text(e['text'])
        if (said) this.push(at, { kind: 'said', text: said, thinking: type === 'reasoning' })
        return
      }
      case 'turn.completed': case 'step_finish': return this.used(object(e['usage']) ?? object(e['part']) ?? {}, '', false)
      case 'result': return this.ended(e, at)
      case 'error': case 'turn.failed': {
        const error = object(e['error'])
        this.push(at, { kind: 'note', bad: true, text: text(e['message']) ?? text(object(error?.['data'])?.['message']) ?? text(error?.['message']) ?? text(e['error']) ?? JSON.stringify(e) })
      }
    }
  }

  private message(e: Json, at: string): void {
    const message = object(e['message']) ?? e
    const role = text(message['role']) ?? text(e['type'])
    const usage = object(message['usage']) ?? object(e['usage'])
    if (usage) this.used(usage, text(message['id']) ?? '', false)
    const bad = text(message['errorMessage'])
    if (bad) this.push(at, { kind: 'note', bad: true, text: bad })
    const content = message['content']
    if (typeof content === 'string') {
      if (role === 'user') return void this.push(at, { kind: 'told', text: content })
      const open = this.entries.find((x) => x.id === this.open)
      if (e['delta'] === true && open?.kind === 'said') open.text += content
      else {
        const id = this.push(at, { kind: 'said', text: content, thinking: false })
        if (e['delta'] === true) this.open = id
      }
      return
    }
    for (const part of (Array.isArray(content) ? content : []).map(object)) {
      const said = text(part?.['text']) ?? text(part?.['thinking'])
      switch (part?.['type']) {
        case 'text': if (said) this.push(at, role === 'user' ? { kind: 'told', text: said } : { kind: 'said', text: said, thinking: false }); break
        case 'thinking': case 'reasoning': if (said) this.push(at, { kind: 'said', text: said, thinking: true }); break
        case 'tool_use': case 'toolCall': this.begin(text(part['id']) ?? '', text(part['name']) ?? '?', part['input'] ?? part['arguments'], at); break
        case 'tool_result': this.finish(text(part['tool_use_id']) ?? '', part['content'], part['is_error'] === true, at)
      }
    }
  }

  /** An item of a thread: a message, a command, a change of files, a call of a tool. */
  private item(item: Json, done: boolean, at: string): void {
    const id = text(item['id']) ?? ''
    const kind = text(item['type'])
    const said = text(item['text'])
    if (kind === 'agent_message' || kind === 'reasoning') {
      if (done && said) this.push(at, { kind: 'said', text: said, thinking: kind === 'reasoning' })
      return
    }
    if (kind === 'error') return void (done && this.push(at, { kind: 'note', bad: true, text: text(item['message']) ?? JSON.stringify(item) }))
    const name = text(item['tool']) ?? kind ?? '?'
    const changes = (Array.isArray(item['changes']) ? item['changes'] : []).map(object)
    if (!this.calls.has(id)) this.begin(id, name, item['arguments'] ?? (item['command'] ? { command: item['command'] } : item['query'] ? { query: item['query'] } : changes.length ? { path: changes.map((c) => c?.['path']).join(', ') } : item), at)
    if (!done) return
    const exit = item['exit_code']
    this.finish(id, item['aggregated_output'] ?? item['result'] ?? item['error'] ?? '', (typeof exit === 'number' && exit !== 0) || item['status'] === 'failed', at)
    for (const c of changes) this.touched(text(c?.['path']))
  }

  private tool(e: Json, at: string): void {
    const part = object(e['part'])
    const state = object(part?.['state'])
    const id = text(e['call_id']) ?? text(e['tool_id']) ?? text(e['toolCallId']) ?? text(part?.['callID']) ?? ''
    let name = text(e['tool_name']) ?? text(e['toolName']) ?? text(part?.['tool'])
    let input = e['parameters'] ?? e['args'] ?? state?.['input']
    let result = e['output'] ?? e['result'] ?? state?.['output'] ?? state?.['error']
    const wrapped = object(e['tool_call'])
    if (wrapped) { // { readToolCall: { args, result } }
      const [key, value] = Object.entries(wrapped)[0] ?? []
      name = key?.replace(/ToolCall$/, '')
      input = object(value)?.['args']
      result = object(value)?.['result']
    }
    if (!this.calls.has(id) || id === '') this.begin(id, name ?? '?', input, at)
    const over = e['type'] === 'tool_result' || e['type'] === 'tool_execution_end' || e['subtype'] === 'completed' || state?.['status'] === 'completed' || state?.['status'] === 'error'
    if (over) this.finish(id, result ?? '', e['isError'] === true || e['status'] === 'error' || state?.['status'] === 'error', at)
  }

  private begin(id: string, name: string, given: unknown, at: string): void {
    const input = object(given) ?? {}
    const path = text(input['file_path']) ?? text(input['path']) ?? text(input['filePath'])
    const command = input['command'] ?? input['cmd']
    const what = (Array.isArray(command) ? command.join(' ') : text(command)) ?? path ?? text(input['pattern']) ?? text(input['query']) ?? text(input['url']) ?? text(input['description']) ?? (given === undefined ? '' : JSON.stringify(given))
    const call: ToolCall = { name, what: what.replace(/\s+/g, ' ').slice(0, maxWhat), input: given === undefined ? '' : typeof given === 'string' ? given : JSON.stringify(given, null, 2), done: false, files: [] }
    const diffs = changesOf(path, input)
    if (diffs.length > 0) {
      call.diff = diffs
      for (const d of diffs) {
        call.files.push(d.path)
        this.touched(d.path)
      }
    }
    this.totals.tools++
    this.calls.set(id, this.push(at, { kind: 'tool', call }))
  }

  private finish(id: string, result: unknown, bad: boolean, at: string): void {
    const entry = this.entries.findLast((x) => x.id === this.calls.get(id))
    const said = resultText(result)
    if (entry?.kind !== 'tool') {
      if (said) this.push(at, { kind: 'line', stream: 'stdout', text: said })
      return
    }
    entry.call = { ...entry.call, result: said, bad, done: true }
  }

  private touched(path: string | undefined): void {
    if (path && !this.totals.files.includes(path)) this.totals.files = [...this.totals.files, path]
  }

  /** used counts tokens: of a message that is told more than once the last counts, and a total replaces all. */
  private used(raw: Json, of: string, total: boolean): void {
    const u = object(raw['tokens']) ?? object(raw['stats']) ?? raw
    const cache = object(u['cache'])
    const now = {
      input: count(u['input_tokens'] ?? u['inputTokens'] ?? u['input']),
      cached: count(u['cache_read_input_tokens'] ?? u['cached_input_tokens'] ?? u['cacheReadTokens'] ?? u['cacheRead'] ?? u['cached'] ?? cache?.['read']),
      output: count(u['output_tokens'] ?? u['outputTokens'] ?? u['output']),
    }
    if (total) this.usage.clear()
    this.usage.set(of || `#${this.usage.size}`, now)
    const all = [...this.usage.values()]
    const sum = (name: keyof typeof now) => all.reduce((n, x) => n + x[name], 0)
    this.totals = { ...this.totals, input: sum('input'), cached: sum('cached'), output: sum('output') }
    const cost = typeof raw['cost'] === 'number' ? raw['cost'] : object(u['cost'])?.['total']
    if (typeof cost === 'number') this.totals.cents = (this.totals.cents ?? 0) + cost * 100
  }

  private ended(e: Json, at: string): void {
    const usage = object(e['usage']) ?? object(e['stats'])
    if (usage && count(usage['output_tokens'] ?? usage['outputTokens']) > 0) this.used(usage, 'total', true)
    if (typeof e['total_cost_usd'] === 'number') this.totals.cents = e['total_cost_usd'] * 100
    const bad = e['is_error'] === true || e['status'] === 'error'
    const errors = Array.isArray(e['errors']) ? e['errors'].join('; ') : undefined
    const said = text(errors) ?? text(e['result']) ?? text(object(e['error'])?.['message'])
    const before = this.entries.findLast((x) => x.kind === 'said')
    if (bad) this.push(at, { kind: 'note', bad, text: said ?? 'error' })
    else if (said && !(before?.kind === 'said' && before.text.includes(said))) this.push(at, { kind: 'said', text: said, thinking: false })
  }
}

/** changesOf reads what a call of a tool changes in files. */
function changesOf(path: string | undefined, input: Json): { path: string; before: string; after: string }[] {
  if (!path) return []
  const pair = (of: Json) => ({ path, before: String(of['old_string'] ?? of['old_str'] ?? of['oldString'] ?? of['oldText'] ?? ''), after: String(of['new_string'] ?? of['new_str'] ?? of['newString'] ?? of['newText'] ?? '') })
  if (Array.isArray(input['edits'])) return input['edits'].map(object).filter((x): x is Json => !!x).map(pair)
  if (['new_string', 'new_str', 'newString', 'newText'].some((n) => typeof input[n] === 'string')) return [pair(input)]
  return typeof input['content'] === 'string' ? [{ path, before: '', after: input['content'] }] : []
}

function resultText(result: unknown): string {
  if (typeof result === 'string') return result
  if (Array.isArray(result)) return result.map((p) => text(object(p)?.['text']) ?? (typeof p === 'string' ? p : JSON.stringify(p))).join('\n')
  const o = object(result)
  return text(o?.['output']) ?? (o && Array.isArray(o['content']) ? resultText(o['content']) : o ? JSON.stringify(o, null, 2) : '')
}

/** sizeOf says how long a text is: its lines and bytes. */
export function sizeOf(of: string): { lines: number; bytes: number } {
  return { lines: of === '' ? 0 : of.replace(/\n$/, '').split('\n').length, bytes: new TextEncoder().encode(of).length }
}

/** textOf is what a search in an entry looks through. */
export function textOf(e: Entry): string {
  return e.kind === 'tool' ? `${e.call.name} ${e.call.what} ${e.call.input} ${e.call.result ?? ''}` : e.text
}

/** isPatch reports whether a text is a diff in unified form. */
export const isPatch = (of: string) => /^(diff --git |--- [^\n]*\n\+\+\+ )/m.test(of) && /^@@ /m.test(of)
