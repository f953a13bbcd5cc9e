// Rules as text, and what an amendment does to them.
import type { Schemas } from '../../http'
import { tr } from '../../text/en.rooms'

export type Rule = Schemas['ApiRule']
export type Amendment = Schemas['ApiAmendment']

/** textOf writes a rule in lines that a diff compares. */
export function textOf(r: Pick<Rule, 'title' | 'branch' | 'severity' | 'on' | 'when' | 'reason' | 'reference'>): string {
  const g = tr.govern
  const lines: [string, string][] = [[g.title, r.title], [g.branch, r.branch], [g.severity, r.severity], [g.on, r.on.join(', ') || g.everything], [g.predicate, r.when], [g.reason, r.reason], [g.reference, r.reference ?? '']]
  return lines.filter(([, text]) => text !== '').map(([name, text]) => `${name}: ${text}`).join('\n')
}

export interface RuleChange { id: string; kind: 'new' | 'superseded' | 'dropped'; before: string; after: string }

/** changesTo are what an amendment does to the rules of the version that it changes. */
export function changesTo(base: readonly Rule[], a: Pick<Amendment, 'rules' | 'dropRules'>): RuleChange[] {
  const of = new Map(base.map((r) => [r.id, r]))
  const text = (id: string) => { const r = of.get(id); return r ? textOf(r) : '' }
  return [
    ...a.rules.map((r): RuleChange => ({ id: r.id, kind: of.has(r.id) ? 'superseded' : 'new', before: text(r.id), after: textOf(r) })),
    ...a.dropRules.map((id): RuleChange => ({ id, kind: 'dropped', before: text(id), after: '' })),
  ]
}

/** listOf reads what is typed with commas or blanks between. */
export const listOf = (text: string) => text.split(/[\s,]+/).filter(Boolean)
