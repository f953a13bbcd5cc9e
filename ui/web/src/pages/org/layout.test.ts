import { expect, test } from 'vitest'
import { box, chartOf, isUnder, type Person } from './layout'

const p = (id: string, ...reports: Person[]): Person => ({ id, name: id, role: 'engineer', status: 'idle', reports })

test('who leads leaders stands over the middle of them, leaves stand in a stack, and no box covers another', () => {
  const chart = chartOf([p('ceo', p('a', p('a1'), p('a2'), p('a3')), p('b'), p('c', p('c1')))])
  const at = (id: string) => chart.boxes.find((b) => b.id === id)!
  expect(at('ceo').x).toBe((at('a').x + at('c').x) / 2)
  expect([at('a1').x, at('a2').x, at('a3').x]).toEqual([20, 20, 20])
  expect(at('a2').y - at('a1').y).toBeGreaterThan(box.h)
  for (const one of chart.boxes) {
    expect(one.x + box.w).toBeLessThanOrEqual(chart.width)
    expect(one.y + box.h).toBeLessThanOrEqual(chart.height)
    for (const other of chart.boxes) {
      if (one !== other) expect(Math.abs(one.x - other.x) >= box.w || Math.abs(one.y - other.y) >= box.h, `${one.id} covers ${other.id}`).toBe(true)
    }
  }
})

test('nobody is led by who is below', () => {
  const { boxes } = chartOf([p('ceo', p('a', p('a1')), p('b'))])
  expect(isUnder(boxes, 'a1', 'ceo')).toBe(true)
  expect(isUnder(boxes, 'a', 'a')).toBe(true)
  expect(isUnder(boxes, 'b', 'a')).toBe(false)
})
