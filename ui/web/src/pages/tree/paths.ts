// Paths of the resource tree.

/** ways are the paths from the root down to one: /, /a, /a/b. */
export function ways(path: string): string[] {
  const parts = path.split('/').filter(Boolean)
  return ['/', ...parts.map((_, i) => `/${parts.slice(0, i + 1).join('/')}`)]
}

export const lastPart = (path: string) => (path === '/' ? '/' : (path.split('/').pop() ?? path))

/** nameOf is what a vertex is called on screen: an ID that has a name is called by it. */
export function nameOf(path: string, names: ReadonlyMap<string, string>): string {
  const last = lastPart(path)
  return names.get(last) ?? last
}
