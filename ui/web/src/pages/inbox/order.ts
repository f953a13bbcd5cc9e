// The order of the inbox, and where one is after an item is handled.
const rank: Record<string, number> = { critical: 0, high: 1, medium: 2, low: 3 }

/** sortOf puts the most severe first, and of those the oldest. */
export function sortOf<T extends { severity: string; createdAt: string | null; id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (rank[a.severity] ?? 4) - (rank[b.severity] ?? 4) || (a.createdAt ?? '').localeCompare(b.createdAt ?? '') || a.id.localeCompare(b.id))
}

/** neighbour is the item after one, or before it where it is the last. */
export function neighbour(ids: readonly string[], of: string): string | undefined {
  const i = ids.indexOf(of)
  return i < 0 ? ids[0] : (ids[i + 1] ?? ids[i - 1])
}
