import { describe, expect, it } from 'vitest'
import { columnsOf } from '../pages/issues/board'
import { changedOf } from './flash'

describe('what flashes', () => {
  it('is what changed or came, and nothing at the first reading', () => {
    const now = new Map([['a', '1'], ['b', '2']])
    expect(changedOf(undefined, now).size).toBe(0)
    expect([...changedOf(new Map([['a', '1'], ['b', '1']]), now)]).toEqual(['b'])
    expect([...changedOf(new Map([['a', '1']]), now)]).toEqual(['b'])
  })
})

describe('the board of issues', () => {
  it('has a column for each state, the newest change first', () => {
    const of = (id: string, status: string, updatedAt: string) => ({ id, status, updatedAt })
    expect(columnsOf([of('a', 'todo', '1'), of('b', 'todo', '2'), of('c', 'done', '1')], ['todo', 'blocked']).map((c) => c.issues.map((i) => i.id))).toEqual([['b', 'a'], []])
  })
})
