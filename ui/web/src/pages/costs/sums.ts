// Costs of days, summed by what one asks for. The table and the chart are made of the same rows, so they add up.
export interface CostRow { agentId?: string; agentName?: string; projectId?: string | null; projectName?: string; provider?: string; model?: string; costCents: number; inputTokens: number; outputTokens: number; cachedInputTokens: number }
export type By = 'agent' | 'project' | 'model' | 'provider'
export interface Only { agent?: string; project?: string; model?: string; provider?: string; day?: string }
export interface Sum { key: string; name: string; cents: number; input: number; output: number; cached: number }

const keyOf = (r: CostRow, by: By): [string, string] => (by === 'agent' ? [r.agentId ?? '', r.agentName ?? ''] : by === 'project' ? [r.projectId ?? '', r.projectName ?? ''] : by === 'model' ? [r.model ?? '', r.model ?? ''] : [r.provider ?? '', r.provider ?? ''])

/** narrowed leaves the rows that one asks for. */
export function narrowed<T extends CostRow>(rows: readonly T[], only: Only): T[] {
  return rows.filter((r) => (!only.agent || r.agentId === only.agent) && (!only.project || (r.projectId ?? '-') === only.project) && (!only.model || r.model === only.model) && (!only.provider || r.provider === only.provider))
}

/** sumBy adds rows up, the dearest first. */
export function sumBy(rows: readonly CostRow[], by: By): Sum[] {
  const all = new Map<string, Sum>()
  for (const r of rows) {
    const [key, name] = keyOf(r, by)
    const sum = all.get(key) ?? { key, name: name || '–', cents: 0, input: 0, output: 0, cached: 0 }
    sum.cents += r.costCents
    sum.input += r.inputTokens
    sum.output += r.outputTokens
    sum.cached += r.cachedInputTokens
    all.set(key, sum)
  }
  return [...all.values()].sort((a, b) => b.cents - a.cents || a.name.localeCompare(b.name))
}

/** bandsOf are the parts of a day's bar in the order of the sums: the first few by name, the rest together. */
export function bandsOf(day: readonly CostRow[], order: readonly Sum[], by: By, most: number): { key: string; value: number }[] {
  const sums = new Map(sumBy(day, by).map((s) => [s.key, s.cents]))
  const named = order.slice(0, most).map((s) => ({ key: s.key, value: sums.get(s.key) ?? 0 }))
  const rest = order.slice(most).reduce((n, s) => n + (sums.get(s.key) ?? 0), 0)
  return rest > 0 ? [...named, { key: '', value: rest }] : named
}

/** forecastOf is what a window will have cost at its end if it goes on so; none for one without an end. */
export function forecastOf(observed: number, windowStart: string, windowEnd: string, now = Date.now()): number | undefined {
  const [from, to] = [Date.parse(windowStart), Date.parse(windowEnd)]
  if (Number.isNaN(from) || Number.isNaN(to) || to <= now || now <= from || to - from > 400 * 86_400_000) return undefined
  const part = (now - from) / (to - from)
  return part < 0.02 ? undefined : observed / part
}
