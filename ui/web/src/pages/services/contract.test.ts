import { describe, expect, it } from 'vitest'
import { paramsOf, paramsSchema, wrongMethods } from './contract'

const of = { type: 'object', properties: { a: { type: 'integer' } } }

describe('the parameters of a method', () => {
  it('are fields where the contract names members', () => {
    expect(paramsSchema(of, 'Parameters')).toBe(of)
    expect(paramsOf(of, { a: 1 })).toEqual({ params: { a: 1 } })
  })
  it('are JSON otherwise, and are left out when nothing is typed', () => {
    expect(paramsSchema({ type: 'array' }, 'Parameters').properties).toEqual({ params: { title: 'Parameters' } })
    expect(paramsOf({ type: 'array' }, { params: [1, 2] })).toEqual({ params: [1, 2] })
    expect(paramsOf(null, {})).toEqual({})
  })
})

it('methods need names', () => {
  expect(wrongMethods([{ name: 'add' }], 'no')).toEqual({})
  for (const bad of [undefined, [], [{}], 'add', [null]]) expect(wrongMethods(bad, 'no')).toEqual({ methods: 'no' })
})
