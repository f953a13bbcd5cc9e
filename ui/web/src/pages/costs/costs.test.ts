import { describe, expect, it } from 'vitest'
import { bandsOf, forecastOf, narrowed, sumBy } from './sums'

const row = (agent: string, model: string, costCents: number) => ({ agentId: agent, agentName: agent.toUpperCase(), model, provider: 'p', costCents, inputTokens: 1, outputTokens: 2, cachedInputTokens: 0 })
const rows = [row('a', 'x', 5), row('b', 'y', 20), row('a', 'y', 7), row('c', 'x', 1)]

describe('costs', () => {
  it('are summed, the dearest first, and narrowed', () => {
    expect(sumBy(rows, 'agent').map((s) => [s.name, s.cents, s.output])).toEqual([['B', 20, 2], ['A', 12, 4], ['C', 1, 2]])
    expect(sumBy(narrowed(rows, { agent: 'a' }), 'model').map((s) => [s.key, s.cents])).toEqual([['y', 7], ['x', 5]])
  })
  it('of no project are a line of their own, and can be asked for alone', () => {
    const two = [{ ...row('a', 'x', 5), projectId: 'p', projectName: 'Charts' }, { ...row('a', 'x', 3), projectId: null, projectName: '' }]
    expect(sumBy(two, 'project').map((s) => [s.key, s.name, s.cents])).toEqual([['p', 'Charts', 5], ['', '–', 3]])
    expect(narrowed(two, { project: '-' }).map((r) => r.costCents)).toEqual([3])
    expect(narrowed(two, { project: 'p' }).map((r) => r.costCents)).toEqual([5])
  })
  it('are drawn in bands that add up to the table', () => {
    const order = sumBy(rows, 'agent')
    const bands = bandsOf(rows, order, 'agent', 1)
    expect(bands).toEqual([{ key: 'b', value: 20 }, { key: '', value: 13 }])
    expect(bands.reduce((n, b) => n + b.value, 0)).toBe(order.reduce((n, s) => n + s.cents, 0))
  })
  it('are forecast by the part of the window that is over', () => {
    expect(forecastOf(100, '2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z', Date.parse('2026-11-16T00:00:00Z'))).toBe(200)
    expect(forecastOf(100, '2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z', Date.parse('2026-12-02T00:00:00Z'))).toBeUndefined()
  })
})
