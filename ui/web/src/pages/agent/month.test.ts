import { describe, expect, it } from 'vitest'
import { schemaOf } from '../../parts/adapterform'
import { wrongOf } from '../../parts/jsonform'
import { nextWake, perDay } from './month'

describe('the month of an agent', () => {
  it('counts runs by the day they began and how they ended', () => {
    const run = (status: string, at: string) => ({ status, createdAt: at })
    expect(perDay([run('succeeded', '2026-11-02T23:59:00Z'), run('failed', '2026-11-02T01:00:00Z'), run('running', '2026-11-03T00:00:00Z'), run('succeeded', '2026-10-01T00:00:00Z')], ['2026-11-02', '2026-11-03']))
      .toEqual([{ date: '2026-11-02', good: 1, bad: 1, other: 0 }, { date: '2026-11-03', good: 0, bad: 0, other: 1 }])
  })
  it('knows the next wake only with a timer', () => {
    expect(nextWake({}, null)).toBeUndefined()
    expect(nextWake({ heartbeat: { enabled: false, intervalSec: 60 } }, null)).toBeUndefined()
    expect(nextWake({ heartbeat: { enabled: true, intervalSec: 60 } }, '2026-11-02T00:00:00Z')).toEqual({ every: 60, at: Date.parse('2026-11-02T00:01:00Z') })
  })
})

describe('schemaOf', () => {
  it('makes a form of the fields of an adapter', () => {
    const schema = schemaOf([{ key: 'command', label: 'Program', type: 'text', required: true }, { key: 'env', label: 'Variables', type: 'list' }, { key: 'args', label: 'Arguments', type: 'list' }, { key: 'effort', label: 'Effort', type: 'select', options: [{ value: 'low', label: 'low' }] }])
    expect(schema.properties?.['env']?.type).toBe('object')
    expect(schema.properties?.['args']?.items?.type).toBe('string')
    expect(schema.properties?.['effort']?.enum).toEqual(['low'])
    expect(wrongOf(schema, {})).toEqual({ command: 'Program: required' })
  })
})
