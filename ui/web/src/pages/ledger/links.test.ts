import { expect, test } from 'vitest'
import { brokenAt } from './links'

const entry = (height: number, previousHash: string, hash: string) => ({ height, previousHash, hash })

test('entries that name the hash before them are linked', () => {
  expect(brokenAt([entry(1, '', 'a'), entry(2, 'a', 'b'), entry(3, 'b', 'c')])).toBeUndefined()
})
test('the first entry that names another hash is told', () => {
  expect(brokenAt([entry(1, '', 'a'), entry(2, 'a', 'b'), entry(3, 'x', 'c')])).toBe(3)
})
test('over a gap nothing can be said', () => {
  expect(brokenAt([entry(1, '', 'a'), entry(5, 'x', 'b')])).toBeUndefined()
})
