import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { addressOf, ask, forgetHeight, get, Lost, post, Refusal, seenHeight, standing } from './http'

type Call = { url: string; init: RequestInit & { headers: Record<string, string> } }
let calls: Call[]
function answers(...list: (Response | Error)[]): void {
  calls = []
  vi.stubGlobal('fetch', (url: string, init: Call['init']) => {
    calls.push({ url, init })
    const next = list.shift()
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next ?? new Response('null', { headers: { 'Content-Type': 'application/json' } }))
  })
}
const json = (body: unknown, status = 200, headers: Record<string, string> = {}) => new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } })

beforeEach(() => { forgetHeight(); vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 200 }) })
afterEach(() => { vi.unstubAllGlobals(); vi.useRealTimers() })

describe('requests', () => {
  it('fill the path and the query', () => {
    expect(addressOf('/api/issues/{id}', { path: { id: 'a/b' }, query: { q: 'x y', none: undefined, empty: '' } })).toBe('/api/issues/a%2Fb?q=x+y')
    expect(() => addressOf('/api/issues/{id}')).toThrow('{id} has no value')
  })
  it('hand back the highest height that they saw', async () => {
    answers(json([], 200, { 'X-Selvage-Height': '41' }), json([], 200, { 'X-Selvage-Height': '7' }), json([]))
    await get('/api/companies')
    await get('/api/companies')
    await get('/api/companies')
    expect(seenHeight()).toBe(41)
    expect(calls.map((c) => c.init.headers['X-Selvage-Height'])).toEqual([undefined, '41', '41'])
  })
  it('repeat a write that was not taken yet, under the same key', async () => {
    answers(json({ error: 'no leader', code: 'no_leader' }, 503, { 'Retry-After': '1' }), json({ id: 'i' }, 201))
    expect(await post('/api/companies', {}, { name: 'A' })).toEqual({ id: 'i' })
    const keys = calls.map((c) => c.init.headers['Idempotency-Key'])
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys[1]).toBe(keys[0])
  })
  it('wait for an election longer than for what is busy', async () => {
    const refused = (code: string, details?: object) => json({ error: code, code, details }, 503, { 'Retry-After': '0.001' })
    answers(...Array.from({ length: 5 }, () => refused('no_leader')), refused('no_quorum', { enough: true }), json({ id: 'i' }, 201))
    expect(await post('/api/companies', {}, { name: 'A' })).toEqual({ id: 'i' })
    answers(refused('busy'), refused('busy'), refused('busy'), json([]))
    await expect(get('/api/companies')).rejects.toThrow('busy')
  })
  it('do not repeat a change that is no creation, nor wait for a quorum', async () => {
    answers(json({ error: 'busy' }, 503, { 'Retry-After': '1' }))
    await expect(ask('patch', '/api/issues/{id}', { path: { id: 'i' } }, {})).rejects.toThrow('busy')
    answers(json({ error: 'No quorum', code: 'no_quorum' }, 503, { 'Retry-After': '1' }))
    await expect(get('/api/companies')).rejects.toMatchObject({ code: 'no_quorum', retryAfter: 1, momentary: true })
    expect(calls).toHaveLength(1)
  })
})

describe('refusals', () => {
  it('of a conflict name who holds it', async () => {
    answers(json({ error: 'Issue is held', details: { assigneeAgentId: 'wes' } }, 409, { 'X-Request-Id': 'r1' }))
    const refusal = await get('/api/companies').catch((e: unknown) => e as Refusal)
    expect(refusal).toBeInstanceOf(Refusal)
    expect(refusal).toMatchObject({ status: 409, owner: 'wes', request: 'r1', message: 'Issue is held' })
  })
  it('that are no JSON are still told', async () => {
    answers(new Response('Bad gateway', { status: 502 }))
    await expect(get('/api/companies')).rejects.toThrow('Bad gateway')
  })
  it('without a credential ask for a sign-in', async () => {
    answers(json({ error: 'Board authentication required' }, 401))
    await expect(get('/api/companies')).rejects.toThrow()
    expect(standing.get().nobody).toBe(true)
  })
})

describe('standing', () => {
  it('a node that does not answer is lost until it does', async () => {
    answers(new TypeError('refused'), json([]))
    await expect(get('/api/companies')).rejects.toBeInstanceOf(Lost)
    expect(standing.get().lost).toBe(true)
    await get('/api/companies')
    expect(standing.get().lost).toBe(false)
  })
  it('a node that is cut off says so, with its age', async () => {
    answers(json([], 200, { 'X-Selvage-Quorum': 'lost', 'X-Selvage-Age': '3000', 'X-Selvage-Node-Name': 'n%201' }), json([]))
    await get('/api/companies')
    expect(standing.get().cutOff).toMatchObject({ node: 'n 1', age: 3000 })
    await get('/api/companies')
    expect(standing.get().cutOff).toBeUndefined()
  })
})
