import { describe, expect, it } from 'vitest'
import { ago, exactMoney, hueOf, lasting, moment, moneyOf, shortId, words } from './format'

describe('money', () => {
  it('says when digits are left out, and exactMoney leaves none out', () => {
    expect(moneyOf(1234).exact).toBe(true)
    expect(moneyOf(1234).text).toContain('12.34')
    expect(moneyOf(12.5).exact).toBe(false)
    expect(exactMoney(12.5)).toContain('0.125')
    expect(exactMoney(0.0123)).toContain('0.000123')
  })
  it('never shows something as nothing', () => {
    expect(moneyOf(0.2).text).toContain('<')
    expect(moneyOf(0).text).toContain('0.00')
  })
})

describe('times', () => {
  const now = Date.parse('2026-11-24T12:00:00Z')
  it('are relative up to a day, then a date', () => {
    expect(ago('2026-11-24T11:59:58Z', now)).toBe('now')
    expect(ago('2026-11-24T11:56:00Z', now)).toMatch(/4.*m/)
    expect(ago('2026-11-24T02:00:00Z', now)).toMatch(/10.*h/)
    expect(ago('2026-11-01T02:00:00Z', now)).toMatch(/Nov/)
    expect(ago('2024-11-01T02:00:00Z', now)).toMatch(/2024/)
    expect(ago('nonsense', now)).toBe('nonsense')
  })
  it('show UTC in full', () => expect(moment('2026-11-24T11:56:00Z')).toContain('2026-11-24T11:56:00.000Z UTC'))
  it('lasting counts', () => {
    expect(lasting(41_000)).toBe('0:41')
    expect(lasting(3_723_000)).toBe('1:02:03')
    expect(lasting(-5)).toBe('0:00')
  })
})

it('IDs are shortened in the middle, and an agent has one hue', () => {
  expect(shortId('01a20cc5-1505-720c-83b8-c86f10ff6744')).toBe('01a2…6744')
  expect(shortId('ACM-7')).toBe('ACM-7')
  expect(hueOf('x')).toBe(hueOf('x'))
  expect(words('in_progress')).toBe('in progress')
  expect(words('adapterType')).toBe('adapter type')
})
