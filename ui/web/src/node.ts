// When the node of this page is lost: which other nodes this browser can reach, and how the page moves over.
import { standing } from './http'
import { store } from './store'

type Beat = { mesh: string; name: string }

/** What is known of the node that serves this page. */
export const here = store<Beat | undefined>(undefined)

/** Where another node of the same mesh answered; searching: they are being asked. */
export const elsewhere = store<{ searching: boolean; url?: string; name?: string }>({ searching: false })

const peersKey = 'selvage.peers'
const draftsKey = 'selvage.draft.'
const probeTimeout = 1_500
const searchAgain = 3_000
const nearPorts = 4 // ports on each side that a mesh on one machine may use
const maxPeers = 64

/** rememberPeers keeps the addresses that the members serve at, for when nobody can be asked. */
export function rememberPeers(urls: string[]): void {
  try {
    localStorage.setItem(peersKey, JSON.stringify(urls.slice(0, maxPeers)))
  } catch { /* a browser that stores nothing finds only its own machine's nodes */ }
}

/** candidates lists where other nodes may be: what they said, and on this machine the ports beside ours. */
export function candidates(at: Location | URL, stored: string | null): string[] {
  let known: string[] = []
  try {
    known = (JSON.parse(stored ?? '[]') as unknown[]).filter((u): u is string => typeof u === 'string')
  } catch { /* damaged: as if none were known */ }
  const near: string[] = []
  if (['127.0.0.1', 'localhost', '[::1]'].includes(at.hostname) && at.port !== '') {
    for (let d = 1; d <= nearPorts; d++) {
      for (const port of [Number(at.port) + d, Number(at.port) - d]) {
        if (port > 0 && port < 65_536) near.push(`${at.protocol}//${at.hostname}:${port}`)
      }
    }
  }
  return [...new Set([...known, ...near])].filter((u) => u !== at.origin)
}

async function beatOf(url: string, fetcher: typeof fetch = fetch): Promise<Beat | undefined> {
  try {
    const response = await fetcher(`${url}/board.json`, { signal: AbortSignal.timeout(probeTimeout), cache: 'no-store', credentials: 'omit' })
    return response.ok ? ((await response.json()) as Beat) : undefined
  } catch {
    return undefined
  }
}

export async function learnHere(): Promise<void> {
  const beat = await beatOf(location.origin)
  if (beat) here.set(beat)
}

/** search asks all candidates at once and takes the first of the same mesh. */
export async function search(list: string[], mesh: string | undefined, fetcher: typeof fetch = fetch): Promise<{ url: string; name: string } | undefined> {
  try {
    return await Promise.any(list.map(async (url) => {
      const beat = await beatOf(url, fetcher)
      if (!beat || (mesh !== undefined && beat.mesh !== mesh)) throw new Error('another mesh, or nobody')
      return { url, name: beat.name }
    }))
  } catch {
    return undefined
  }
}

/** Texts that were begun and not sent; a page with one is not left by itself. */
export const drafts = {
  get(name: string): string {
    try { return sessionStorage.getItem(draftsKey + name) ?? '' } catch { return '' }
  },
  set(name: string, text: string): void {
    try {
      if (text === '') sessionStorage.removeItem(draftsKey + name)
      else sessionStorage.setItem(draftsKey + name, text)
    } catch { /* nothing is kept */ }
  },
  any(): boolean {
    try { return Object.keys(sessionStorage).some((name) => name.startsWith(draftsKey)) } catch { return false }
  },
}

const movedFrom = 'from-node'

/** moveTo opens the same address at another node. */
export function moveTo(url: string): void {
  const next = new URL(location.pathname + location.search, url)
  next.searchParams.set(movedFrom, here.get()?.name ?? '')
  location.assign(next)
}

/** arrivedFrom tells once which node was lost before the page moved here. */
export function arrivedFrom(): string | undefined {
  const at = new URL(location.href)
  const from = at.searchParams.get(movedFrom)
  if (from === null) return undefined
  at.searchParams.delete(movedFrom)
  history.replaceState(history.state, '', at)
  return from
}

/** watchNode looks for another node while this one is lost, until stopped. */
export function watchNode(): () => void {
  let stopped = false
  let searching = false
  const look = async () => {
    if (stopped || searching || !standing.get().lost) return
    searching = true
    while (!stopped && standing.get().lost) {
      elsewhere.set((e) => ({ ...e, searching: true }))
      const own = await beatOf(location.origin)
      if (own) {
        standing.set((s) => ({ ...s, lost: false, heard: Date.now() }))
        break
      }
      const found = await search(candidates(location, localStorage.getItem(peersKey)), here.get()?.mesh)
      elsewhere.set({ searching: false, ...found })
      if (found && !drafts.any()) {
        moveTo(found.url)
        break
      }
      await new Promise((done) => setTimeout(done, searchAgain))
    }
    if (!standing.get().lost) elsewhere.set({ searching: false })
    searching = false
  }
  const off = standing.on(() => void look())
  // While a browser is offline no request is sent that could fail.
  const gone = () => standing.set((s) => ({ ...s, lost: true }))
  addEventListener('offline', gone)
  return () => {
    stopped = true
    removeEventListener('offline', gone)
    off()
  }
}
