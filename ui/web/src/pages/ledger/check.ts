// Checks the chain of the node that serves the page, page by page, and remembers the head: the next check finds out
// whether what was there then still is.
import { get } from '../../http'
import { t } from '../../text/en'
import { Broken, checkRecords, entryHash, genesis, hex, readEntry, signer, type Chain, type Records } from './chain'

const pageSize = 200
const pinned = (mesh: string) => `selvage.head.${mesh}`

export interface Head { height: number; hash: string }

/** pinnedHead is the head of the last check of this browser. */
export function pinnedHead(mesh: string): Head | undefined {
  try {
    const head = JSON.parse(localStorage.getItem(pinned(mesh)) ?? '') as Head
    return typeof head.height === 'number' && typeof head.hash === 'string' ? head : undefined
  } catch {
    return undefined
  }
}

export interface Progress { chain: Chain; of: number }
export interface Checked { chain: Chain; signatures: boolean; since: Head | undefined; ms: number }

/** checkAll checks the chain from genesis, or from a batch on, to the head that the node had when the check began. */
export async function checkAll(told: (p: Progress) => void, stop: AbortSignal, fromIndex = 0): Promise<Checked> {
  const began = performance.now()
  const sign = await signer()
  let chain: Chain = { ...genesis, index: fromIndex }
  let end = 0
  let since: Head | undefined
  for (let first = true; ; first = false) {
    const page = (await get('/api/v1/mesh/ledger/records', { query: { after: chain.index, limit: pageSize }, signal: stop })) as Records & { height: number }
    if (first) {
      end = page.height
      since = pinnedHead(page.meshId)
    }
    const before = chain.height
    chain = await checkRecords(chain, page, sign, first && fromIndex > 0)
    if (since && since.height > before && since.height <= chain.height) {
      const found = hashAt(page, since.height)
      if (found !== undefined && found !== since.hash) throw new Broken(since.height, chain.index, t.ledger.rewritten(since.height))
    }
    told({ chain, of: end })
    if (page.records.length === 0 || chain.height >= end) {
      if (fromIndex === 0 && since && since.height > chain.height) throw new Broken(chain.height + 1, chain.index, t.ledger.shorter(since.height, chain.height))
      if (fromIndex === 0) keep(page.meshId, { height: chain.height, hash: chain.head })
      return { chain, signatures: sign !== undefined, since, ms: performance.now() - began }
    }
  }
}

const bytes = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))

function hashAt(page: Records, height: number): string | undefined {
  for (const row of page.records) {
    for (const text of row.entries) if (readEntry(bytes(text)).height === height) return entryHash(bytes(text))
  }
  return undefined
}

function keep(mesh: string, head: Head): void {
  try {
    localStorage.setItem(pinned(mesh), JSON.stringify(head))
  } catch { /* the next check compares with nothing */ }
}

export interface One { hash: string; prev: string; origin: string; signed: boolean | undefined; details: string[] }

/** checkOne computes the hash of one entry from its bytes, and checks the signature of its batch. */
export async function checkOne(height: number, index: number): Promise<One> {
  const page = (await get('/api/v1/mesh/ledger/records', { query: { after: index - 1, limit: 1 } })) as Records
  const sign = await signer()
  const chain = await checkRecords({ ...genesis, index: index - 1 }, page, sign, true)
  const row = page.records[0]
  const text = row?.entries.find((e) => readEntry(bytes(e)).height === height)
  if (!row || text === undefined) throw new Broken(height, index, t.ledger.missing)
  const entry = readEntry(bytes(text))
  const at = 1 + 32 + 8 + 8 + 4 + 8 + 16 // where a record names the node
  return { hash: entryHash(bytes(text)), prev: entry.prev, origin: hex(bytes(row.record).subarray(at, at + 16)), signed: chain.signed === 1 ? true : undefined, details: entry.changes.map((c) => c.details) }
}
