// The links of the chain, as far as a page can check them without the bytes that are hashed.

interface Link { height: number; hash: string; previousHash: string }

/** brokenAt returns the height of the first entry that does not name the hash of the one before it, undefined when all do. Entries are in order of height. */
export function brokenAt(entries: readonly Link[]): number | undefined {
  for (let i = 1; i < entries.length; i++) {
    const before = entries[i - 1]!
    const entry = entries[i]!
    if (entry.height === before.height + 1 && entry.previousHash !== before.hash) return entry.height
  }
  return undefined
}
