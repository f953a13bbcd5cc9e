import { describe, expect, it, vi } from 'vitest'
import { framesOf } from './frames'
import { follow, line, type LiveEvent } from './live'

const event = (id: number, type = 'activity.logged') => `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ id, companyId: 'c', type, payload: {} })}\n\n`

describe('frames', () => {
  it('are put together from pieces, comments left out', () => {
    const read = framesOf()
    const text = `retry: 1000\n: after 5\n\n${event(7)}event: heartbeat.run.log\ndata: {"a":\ndata: 1}\n\n`
    const got = [...text].flatMap((c) => read(c))
    expect(got.map((f) => [f.id, f.event])).toEqual([['7', 'activity.logged'], [undefined, 'heartbeat.run.log']])
    expect(JSON.parse(got[1]!.data)).toEqual({ a: 1 })
  })
})

/** A fetch that answers with these bodies in turn, then never again. */
function streams(...bodies: (string | number)[]) {
  const asked: string[] = []
  const fetcher = ((url: string) => {
    asked.push(url)
    const body = bodies.shift()
    if (body === undefined) return new Promise<Response>(() => undefined)
    if (typeof body === 'number') return Promise.resolve(new Response('', { status: body }))
    return Promise.resolve(new Response(body))
  }) as typeof fetch
  return { asked, fetcher }
}

describe('the stream', () => {
  it('resumes after the last event of an entry', async () => {
    const { asked, fetcher } = streams(event(7) + event(8), event(9))
    const got: LiveEvent[] = []
    const gap = vi.fn()
    const stop = follow({ company: 'c', onEvent: (e) => got.push(e), onGap: gap, fetcher, wait: () => Promise.resolve() })
    await vi.waitFor(() => expect(asked).toHaveLength(3))
    stop()
    expect(gap).toHaveBeenCalledTimes(1) // what was read before the stream was open is read again, and nothing later
    expect(got.map((e) => e.id)).toEqual([7, 8, 9])
    expect(asked).toEqual(['/api/companies/c/events?mesh=true', '/api/companies/c/events?mesh=true&after=8', '/api/companies/c/events?mesh=true&after=9'])
    expect(line.get().height).toBe(9)
  })
  it('tells of a gap when it has no height to resume from, or the node does not know it', async () => {
    const gap = vi.fn()
    const { asked, fetcher } = streams('', ': alive\n\n', event(5), 400, '')
    const stop = follow({ company: 'c', onEvent: () => undefined, onGap: gap, fetcher, wait: () => Promise.resolve() })
    await vi.waitFor(() => expect(asked).toHaveLength(6))
    stop()
    expect(asked[3]).toContain('after=5')
    expect(asked[4]).not.toContain('after')
    expect(gap).toHaveBeenCalled()
  })
  it('tells when the node loses its majority and hears it again', async () => {
    const stood = vi.fn()
    const { asked, fetcher } = streams(`: after 5\n\n: quorum lost\n\n${event(6)}: alive\n\n: quorum\n\n`)
    const stop = follow({ company: 'c', onEvent: () => undefined, onGap: () => undefined, onStanding: stood, fetcher, wait: () => Promise.resolve() })
    await vi.waitFor(() => expect(asked).toHaveLength(2))
    stop()
    expect(stood).toHaveBeenCalledTimes(2)
  })
  it('waits longer from try to try, up to a bound', async () => {
    const waits: number[] = []
    const { fetcher } = streams(503, 503, 503, 503, 503, 503)
    const stop = follow({ company: 'c', onEvent: () => undefined, onGap: () => undefined, fetcher, wait: (ms) => { waits.push(ms); return Promise.resolve() } })
    await vi.waitFor(() => expect(waits.length).toBe(6))
    stop()
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 8000])
  })
})
