// Which company the address names, and the live stream that follows it.
import { useQueryClient } from '@tanstack/react-query'
import { useRouterState } from '@tanstack/react-router'
import { createContext, useContext, useEffect } from 'react'
import { invalidator, keysOf, newcomers, patcher, tellLog, withNames } from './cache'
import { useCompanies, type Company } from './data'
import { get } from './http'
import { follow, type LiveEvent } from './live'

const lastKey = 'selvage.company'

export const rememberCompany = (prefix: string) => { try { localStorage.setItem(lastKey, prefix) } catch { /* the first is taken */ } }

/** lastCompany is the company that was looked at last, else the first. */
export function lastCompany(all: readonly Company[]): Company | undefined {
  let prefix: string | null = null
  try { prefix = localStorage.getItem(lastKey) } catch { /* none is kept */ }
  return all.find((c) => c.issuePrefix === prefix) ?? all.find((c) => c.status !== 'archived') ?? all[0]
}

/** The company that the frame shows: that of the address, or on the mesh's pages the last one. */
export const InCompany = createContext<Company | undefined>(undefined)

/** useCompany is the company of the page; pages under /$company have one. */
export function useCompany(): Company {
  const company = useContext(InCompany)
  if (!company) throw new Error('this page is not under a company')
  return company
}
export const useMaybeCompany = () => useContext(InCompany)

// First parts of addresses that are no company. A prefix has capital letters, so none is taken.
const others = new Set(['', 'mesh', 'settings', 'companies', 'start', 'sign-in', 'dev'])

/** prefixOf returns the company that an address names. */
export function prefixOf(path: string): string | undefined {
  const first = decodeURIComponent(path.split('/')[1] ?? '')
  return others.has(first) ? undefined : first
}

export function useAddressed(): { company: Company | undefined; waiting: boolean; missing: string | undefined } {
  const prefix = useRouterState({ select: (s) => prefixOf(s.location.pathname) })
  const { data, isPending } = useCompanies()
  const all = data ?? []
  const company = prefix ? all.find((c) => c.issuePrefix.toLowerCase() === prefix.toLowerCase() || c.id === prefix) : lastCompany(all)
  useEffect(() => {
    if (prefix && company) rememberCompany(company.issuePrefix)
  }, [prefix, company])
  return { company, waiting: !!prefix && !company && isPending, missing: prefix && !company && !isPending ? prefix : undefined }
}

const listeners = new Set<(event: LiveEvent) => void>()
/** onLive calls f with each event of the company on screen; it returns what ends that. */
export function onLive(f: (event: LiveEvent) => void): () => void {
  listeners.add(f)
  return () => listeners.delete(f)
}

/** useStream keeps the one stream of the tab on the company. */
export function useStream(company: string | undefined): void {
  const cache = useQueryClient()
  useEffect(() => {
    if (!company) return
    const again = invalidator(cache)
    const patches = patcher(cache)
    const comes = newcomers(cache, (id) => get('/api/issues/{id}', { path: { id } }))
    const close = follow({
      company,
      onEvent(event) {
        if (event.type === 'heartbeat.run.log') return tellLog(event)
        patches.tell(event)
        void comes(event)
        again(withNames(cache, keysOf(event)))
        listeners.forEach((told) => told(event))
      },
      onGap: () => void cache.invalidateQueries(),
    })
    return () => { close(); patches.end() }
  }, [company, cache])
}
