import { expect, it } from 'vitest'
import { prefixOf } from './company'
import { candidates, search } from './node'
import { afterOf } from './pages/signin/page'

it('other nodes are those that said where they are, and on one machine the ports beside ours', () => {
  const at = new URL('http://127.0.0.1:3100/ACM')
  const list = candidates(at, JSON.stringify(['https://10.0.0.2:3100', 7, 'http://127.0.0.1:3100']))
  expect(list).toContain('https://10.0.0.2:3100')
  expect(list).toContain('http://127.0.0.1:3101')
  expect(list).toContain('http://127.0.0.1:3099')
  expect(list).not.toContain('http://127.0.0.1:3100')
  expect(candidates(new URL('https://board.example/'), 'damaged{')).toEqual([])
})

it('a node of another mesh, or one that is not ready, is not taken', async () => {
  const beats: Record<string, Response> = {
    'http://a/board.json': new Response(JSON.stringify({ mesh: 'other', name: 'x' })), 'http://b/board.json': new Response('{}', { status: 503 }),
    'http://c/board.json': new Response(JSON.stringify({ mesh: 'ours', name: 'n3' })),
  }
  const fetcher = ((url: string) => (beats[url] ? Promise.resolve(beats[url].clone()) : Promise.reject(new TypeError()))) as typeof fetch
  expect(await search(['http://a', 'http://b', 'http://c', 'http://d'], 'ours', fetcher)).toEqual({ url: 'http://c', name: 'n3' })
  expect(await search(['http://a', 'http://b'], 'ours', fetcher)).toBeUndefined()
})

it('an address names its company, and a sign-in returns to pages of this node alone', () => {
  expect(prefixOf('/ACM/issues')).toBe('ACM')
  expect(prefixOf('/mesh/nodes')).toBeUndefined()
  expect(prefixOf('/')).toBeUndefined()
  expect(afterOf('?to=/ACM/issues')).toBe('/ACM/issues')
  for (const bad of ['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)']) expect(afterOf(`?to=${encodeURIComponent(bad)}`)).toBe('/')
})
