// Which rows changed just now, so that they flash once.
import { useEffect, useRef, useState } from 'react'

const lasts = 900 // ms, as the animation
const none: ReadonlySet<string> = new Set()

/** changedOf returns the keys whose version is another than before; new keys count, a first reading does not. */
export function changedOf(before: ReadonlyMap<string, string> | undefined, now: ReadonlyMap<string, string>): Set<string> {
  const out = new Set<string>()
  if (before) for (const [key, version] of now) if (before.get(key) !== version) out.add(key)
  return out
}

// More than this at once is another list, not a change.
const most = 20

/** useFlashing holds, for a moment, the keys of rows that changed. */
export function useFlashing<T>(rows: readonly T[] | undefined, keyOf: (row: T) => string, versionOf: (row: T) => string): ReadonlySet<string> {
  const before = useRef<Map<string, string> | undefined>(undefined)
  const [flashing, setFlashing] = useState(none)
  useEffect(() => {
    if (!rows) return
    const now = new Map(rows.map((r) => [keyOf(r), versionOf(r)]))
    const changed = changedOf(before.current, now)
    before.current = now
    if (changed.size === 0 || changed.size > most) return
    setFlashing(changed)
    const timer = setTimeout(() => setFlashing(none), lasts)
    return () => clearTimeout(timer)
  }, [rows])
  return flashing
}
