// Rows that name the one above them, as the lines of a tree.

export interface Leaf<T> { row: T; depth: number }

/** asTree orders rows below the row above them. A row whose parent is not there, or that is above itself, is a root. */
export function asTree<T extends { id: string; parentId: string | null }>(rows: readonly T[]): Leaf<T>[] {
  const below = new Map<string, T[]>()
  const ids = new Set(rows.map((r) => r.id))
  for (const r of rows) {
    const above = r.parentId && ids.has(r.parentId) ? r.parentId : ''
    below.set(above, [...(below.get(above) ?? []), r])
  }
  const out: Leaf<T>[] = []
  const seen = new Set<string>()
  const walk = (above: string, depth: number) => {
    for (const row of below.get(above) ?? []) {
      if (seen.has(row.id)) continue
      seen.add(row.id)
      out.push({ row, depth })
      walk(row.id, depth + 1)
    }
  }
  walk('', 0)
  for (const row of rows) {
    if (seen.has(row.id)) continue // a circle has no root: its first row stands for one
    seen.add(row.id)
    out.push({ row, depth: 0 })
    walk(row.id, 1)
  }
  return out
}
