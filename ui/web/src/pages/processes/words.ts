// What the pages of processes write and read: sizes, durations, a command line, limits.
import type { Schemas } from '../../http'
import { moneyOf, number, sizeOf } from '../../format'
import { tr } from '../../text/en.rooms'

export type Row = Schemas['ApiRow']
const p = tr.processes

/** tookOf writes a time of a processor: 660 ms, 12.3 s, 5 min 0 s. */
export function tookOf(ms: number): string {
  if (ms < 1000) return `${ms} ms`
  if (ms < 60_000) return `${Math.round(ms / 100) / 10} s`
  return `${number(Math.floor(ms / 60_000))} min ${Math.floor(ms / 1000) % 60} s`
}

export interface Limit { name: string; used: number; of: number; text: string }

/** limitsOf are what a process has used, each against its limit; a limit of 0 is none. */
export function limitsOf(r: Pick<Row, 'resource_usage' | 'capabilities'>): Limit[] {
  const u = r.resource_usage
  const l = r.capabilities?.resource_limits
  const rows: [string, number, number, (n: number) => string][] = [
    ['memory', u.memory_bytes, l?.max_memory_bytes ?? 0, sizeOf], ['cpu', u.cpu_time_ms, l?.max_cpu_time_ms ?? 0, tookOf], ['disk', u.disk_bytes, l?.max_disk_bytes ?? 0, sizeOf],
    ['messages', u.messages_sent, l?.max_messages ?? 0, number], ['tools', u.tool_calls, l?.max_tool_calls ?? 0, number], ['cost', u.cost_cents, l?.max_cost_cents ?? 0, (n) => moneyOf(n).text],
  ]
  return rows.map(([name, used, of, text]) => ({ name, used, of, text: of > 0 ? p.usedOf(text(used), text(of)) : p.noLimit(text(used)) }))
}

/** argsOf reads a command line: blanks divide, quotes keep together, a backslash takes the next letter as it is. */
export function argsOf(text: string): { args: string[]; open: boolean } {
  const args: string[] = []
  let now: string | undefined
  let quote = ''
  for (let i = 0; i < text.length; i++) {
    const c = text[i]!
    if (c === '\\' && quote !== "'" && i + 1 < text.length) now = (now ?? '') + text[++i]!
    else if (quote) {
      if (c === quote) quote = ''
      else now = (now ?? '') + c
    } else if (c === '"' || c === "'") {
      quote = c
      now ??= ''
    } else if (/\s/.test(c)) {
      if (now !== undefined) args.push(now)
      now = undefined
    } else now = (now ?? '') + c
  }
  if (now !== undefined) args.push(now)
  return { args, open: quote !== '' }
}

/** lineOf writes arguments so that argsOf reads them back. */
export const lineOf = (args: readonly string[]) => args.map((a) => (a !== '' && /^[\w@%+=:,./-]+$/.test(a) ? a : `'${a.replace(/'/g, `'"'"'`)}'`)).join(' ')

/** leafOf gives a process a place in the tree of its node. */
export function leafOf(r: Row): Row & { id: string; parentId: string | null } {
  return { ...r, id: r.address, parentId: r.pid === 0 ? null : `${r.node}:${r.parent_pid}` }
}

/** outputOf is the text of a log: lines of JSON with a piece each. */
export function outputOf(content: string): string {
  return content.split('\n').map((line) => {
    if (line === '') return ''
    try {
      const { chunk } = JSON.parse(line) as { chunk?: unknown }
      return typeof chunk === 'string' ? chunk : ''
    } catch {
      return ''
    }
  }).join('')
}
