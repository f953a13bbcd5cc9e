// What waits for an approval, in words and as a diff of what is there now and what would be.
import { exactMoney, words } from '../../format'
import type { Schemas } from '../../http'

export type Approval = Schemas['Approval']
type Payload = Record<string, unknown>
const text = (v: unknown): string => (typeof v === 'string' ? v : '')

/** titleOf names an approval. */
export function titleOf(a: Pick<Approval, 'type' | 'payload'>): string {
  const p = (a.payload ?? {}) as Payload
  const named = text(p['title']) || text(p['name'])
  const kind = words(a.type)
  const title = kind.charAt(0).toUpperCase() + kind.slice(1)
  if (a.type === 'budget_override_required') return `${title}: ${text(p['scopeName'])}`
  return a.type === 'request_board_approval' && named ? named : named ? `${title}: ${named}` : title
}

// Told above the diff, in words.
const told = ['title', 'summary', 'plan', 'guidance', 'recommendedAction', 'risks', 'details']

/** lines writes an object as one line a field, so that a diff of two reads well. */
export function lines(of: unknown, at = ''): string[] {
  if (Array.isArray(of)) return of.length === 0 ? [] : of.flatMap((v, i) => lines(v, `${at}[${i}]`))
  if (of && typeof of === 'object') return Object.entries(of).sort(([a], [b]) => a.localeCompare(b)).flatMap(([k, v]) => lines(v, at ? `${at}.${k}` : k))
  if (of === null || of === undefined || of === '') return []
  return String(of).split('\n').map((l, i) => (i === 0 ? `${at}: ${l}` : `  ${l}`))
}

/** commandOf returns what is there before and after an approval, what is said of it, and the amount that it proposes. */
export function commandOf(a: Pick<Approval, 'type' | 'payload'>): { before: string; after: string; text: string; amount?: number } {
  const p = (a.payload ?? {}) as Payload
  const said = ['summary', 'plan', 'details', 'guidance'].map((n) => text(p[n])).filter(Boolean).join('\n\n')
  if (a.type === 'budget_override_required') {
    const [now, observed, next] = ['budgetAmount', 'observedAmount', 'proposedAmount'].map((n) => Number(p[n] ?? 0)) as [number, number, number]
    const of = (limit: number, state: string) => [`${text(p['scopeType'])}: ${text(p['scopeName'])}`, `window: ${words(text(p['windowKind']))}`, `spent: ${exactMoney(observed)}`, `limit: ${exactMoney(limit)}`, `state: ${state}`].join('\n')
    return { before: of(now, 'paused'), after: of(next, 'works'), text: said, amount: next }
  }
  const rest = Object.fromEntries(Object.entries(p).filter(([k]) => !told.includes(k)))
  const before = p['before'] ?? p['beforeConfig'] ?? p['current']
  const after = p['after'] ?? p['afterConfig'] ?? p['proposed']
  if (before && after) return { before: lines(before).join('\n'), after: lines(after).join('\n'), text: said }
  const action = text(p['recommendedAction'])
  const what = [...(action ? [`action: ${action}`] : []), ...lines(rest)]
  return { before: '', after: [a.type, ...what.map((l) => `  ${l}`)].join('\n'), text: said }
}
