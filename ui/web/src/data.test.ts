import { describe, expect, it } from 'vitest'
import { waiting } from './data'
import { Refusal } from './http'

const feed = (from: number, to: number, nextCursor: string | null, totalCount: number) => ({ items: Array.from({ length: to - from }, (_, i) => ({ id: `i${from + i}` })), nextCursor, totalCount })

describe('what waits', () => {
  it('is read page by page, and what comes twice counts once', async () => {
    const asked: unknown[] = []
    const pages = [feed(0, 100, 'i99', 150), feed(98, 149, null, 149)] // one before was handled meanwhile
    const all = await waiting(async (query) => { asked.push(query); return pages.shift()! })
    expect(asked).toEqual([{ limit: 100 }, { limit: 100, cursor: 'i99' }])
    expect(all.items.map((i) => i.id)).toEqual(feed(0, 149, null, 0).items.map((i) => i.id))
    expect(all.totalCount).toBe(149)
  })
  it('is one page where no more wait, and at most five', async () => {
    let reads = 0
    await waiting(async () => { reads++; return feed(0, 3, null, 3) })
    expect(reads).toBe(1)
    const many = await waiting(async ({ cursor }) => { const from = cursor ? Number(cursor) : 0; reads++; return feed(from, from + 100, String(from + 100), 9_000) })
    expect([reads, many.items.length, many.totalCount]).toEqual([6, 500, 9_000])
  })
  it('stays as far as it was read where the end of a page was handled meanwhile, and fails where the node is lost', async () => {
    const refused = new Refusal(400, 'Invalid cursor', undefined, undefined, undefined, undefined)
    const all = await waiting(async ({ cursor }) => { if (cursor) throw refused; return feed(0, 100, 'i99', 120) })
    expect(all.items.length).toBe(100)
    await expect(waiting(async ({ cursor }) => { if (cursor) throw new Error('lost'); return feed(0, 100, 'i99', 120) })).rejects.toThrow('lost')
  })
})
