// A value that components read along with: the only state beside the query cache and the address.
import { useSyncExternalStore } from 'react'

export interface Store<T> {
  get(): T
  set(next: T | ((now: T) => T)): void
  on(told: () => void): () => void
}

export function store<T>(first: T): Store<T> {
  let value = first
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      const now = typeof next === 'function' ? (next as (now: T) => T)(value) : next
      if (Object.is(now, value)) return
      value = now
      listeners.forEach((told) => told())
    },
    on(told) {
      listeners.add(told)
      return () => listeners.delete(told)
    },
  }
}

export function useStore<T>(s: Store<T>): T {
  return useSyncExternalStore(s.on, s.get)
}

/** useStorePart renders again only when the part changes. */
export function useStorePart<T, P>(s: Store<T>, part: (value: T) => P): P {
  return useSyncExternalStore(s.on, () => part(s.get()))
}
