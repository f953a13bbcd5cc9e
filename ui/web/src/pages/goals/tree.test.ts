import { expect, test } from 'vitest'
import { asTree } from './tree'

const goal = (id: string, parentId: string | null = null) => ({ id, parentId })
const lines = (rows: { id: string; parentId: string | null }[]) => asTree(rows).map((l) => '-'.repeat(l.depth) + l.row.id)

test('children stand below their parent, whatever order they came in', () => {
  expect(lines([goal('c', 'b'), goal('a'), goal('b', 'a'), goal('d')])).toEqual(['a', '-b', '--c', 'd'])
})
test('a parent that is not in the list makes a root', () => {
  expect(lines([goal('b', 'gone'), goal('c', 'b')])).toEqual(['b', '-c'])
})
test('a circle loses no row and ends', () => {
  expect(lines([goal('a', 'b'), goal('b', 'a')])).toEqual(['a', '-b'])
})
