import { QueryClient, QueryObserver } from '@tanstack/react-query'
import { describe, expect, it, vi } from 'vitest'
import { invalidator, keys, keysOf, newcomers, onRunLog, patchFrom, patcher, tails, tellLog, withNames } from './cache'
import type { LiveEvent, Payload } from './live'

const event = (payload: Payload, type = 'activity.logged'): LiveEvent => ({ id: 1, companyId: 'c', type, createdAt: '', payload })

describe('an event', () => {
  it('of an issue reads its list, its page by both names and the counts again', () => {
    const all = keysOf(event({ entityType: 'issue', entityId: 'i', action: 'issue.updated', details: { identifier: 'ACM-7' } })).map((k) => k.join(' '))
    expect(all).toEqual(expect.arrayContaining(['issues c', 'issue i', 'issue ACM-7', 'dashboard c', 'attention c', 'badges c', 'activity c']))
    expect(all).not.toContain('agents c')
  })
  it('of an issue reads it again under the name that its page has', () => {
    const client = new QueryClient()
    client.setQueryData(keys.issue('ACM-7'), { id: 'i' })
    client.setQueryData(keys.issue('ACM-8'), { id: 'j' })
    expect(withNames(client, keysOf(event({ entityType: 'issue', entityId: 'i', action: 'issue.thread_interaction_created' })))).toContainEqual(['issue', 'ACM-7'])
    expect(withNames(client, [keys.issue('i')])).toEqual([['issue', 'i'], ['issue', 'ACM-7']])
  })
  it('of what lies on an issue names the issue', () => {
    expect(keysOf(event({ entityType: 'document', entityId: 'd', details: { issueId: 'i' } }))).toContainEqual(['issue', 'i'])
  })
  it('of a trigger reads the routine again that it names', () => {
    expect(keysOf(event({ entityType: 'routine_trigger', entityId: 't', details: { routineId: 'r' } }))).toContainEqual(['routine', 'r'])
    expect(keysOf(event({ entityType: 'routine', entityId: 'r' }))).toContainEqual(['routine', 'r'])
  })
  it('of a memory or of a price reads its page again', () => {
    expect(keysOf(event({ entityType: 'memory', entityId: 'm' }))).toContainEqual(['memory', 'c'])
    expect(keysOf(event({ entityType: 'model_price', entityId: 'm' }))).toContainEqual(['models', 'c'])
  })
  it('of the mesh reads what is on screen of it again', () => {
    const of = (entityType: string) => keysOf({ ...event({ entityType, entityId: 'x' }), companyId: '' })
    expect(of('amendment')).toEqual(expect.arrayContaining([['govern', 'amendments'], ['govern', 'rules']]))
    expect(of('cron_job')).toContainEqual(['cron', 'mesh'])
    expect(of('topic')).toContainEqual(['topics', 'mesh'])
    expect(of('service')).toContainEqual(['kernel', 'services'])
  })
  it('of a denial or of any change reads decisions again', () => {
    expect(keysOf(event({ entityType: 'decision', entityId: 'd', action: 'governance.denied' }))).toContainEqual(['govern', 'decisions'])
    expect(keysOf(event({ entityType: 'issue', entityId: 'i' }))).toContainEqual(['govern', 'decisions'])
  })
  it('of a comment reads its thread again, and neither the list nor the rest of the issue', () => {
    const all = keysOf(event({ entityType: 'issue', entityId: 'i', action: 'issue.comment_added', details: { identifier: 'ACM-7' } })).map((k) => k.join(' '))
    expect(all).toEqual(expect.arrayContaining(['issue i comments', 'issue ACM-7 comments', 'issue ACM-7 activity', 'attention c']))
    expect(all).not.toContain('issues c')
    expect(all).not.toContain('issue i')
  })
  it('of a comment has it on screen, once, and says where its text is cut', () => {
    const client = new QueryClient()
    const key = keys.issue('ACM-7', 'comments')
    const comment = (commentId: string, bodySnippet: string) => event({ entityType: 'issue', entityId: 'i', action: 'issue.comment_added', actorType: 'user', actorId: 'u', details: { identifier: 'ACM-7', commentId, bodySnippet } })
    client.setQueryData(key, [{ id: '0f', body: 'mine' }])
    for (const c of [comment('c-1', 'mine'), comment('c-2', 'theirs'), comment('c-2', 'theirs'), comment('c-3', 'ä'.repeat(60))]) patchFrom(client, c)
    const rows = client.getQueryData<{ id: string; body: string }[]>(key)!
    expect(rows.map((r) => r.id)).toEqual(['c-1', 'c-2', 'c-3'])
    expect(rows[1]).toMatchObject({ body: 'theirs', authorUserId: 'u', authorAgentId: null })
    expect(rows[2]!.body.endsWith('ä…')).toBe(true)
  })
  it('of a new issue puts it into the lists on screen that have it, and reads no list', async () => {
    const client = new QueryClient()
    const row = (id: string, priority: string) => ({ id, priority })
    const watched = (query: Record<string, unknown>, rows: unknown[]) => {
      client.setQueryData(keys.issues('c', query), rows)
      new QueryObserver(client, { queryKey: keys.issues('c', query), queryFn: () => rows, staleTime: Infinity }).subscribe(() => undefined)
      return () => client.getQueryData<{ id: string }[]>(keys.issues('c', query))!.map((r) => r.id)
    }
    const all = watched({ limit: 5 }, [row('a', 'critical'), row('b', 'medium'), row('d', 'low')])
    const project = watched({ projectId: 'p', limit: 5 }, [])
    const other = watched({ projectId: 'q', limit: 5 }, [])
    const full = watched({ limit: 1 }, [row('a', 'critical')])
    const later = watched({ updatedSince: '2026-02', status: 'todo' }, [])
    const odd = watched({ colour: 'red' }, [])
    const read = vi.fn((id: string) => Promise.resolve({ id, priority: 'medium', status: 'todo', projectId: 'p', createdAt: '2026-01-05' }))
    const told = newcomers(client, read)
    const made = event({ entityType: 'issue', entityId: 'n', action: 'issue.created' })
    await told(made)
    await told(made)
    await told(event({ entityType: 'issue', entityId: 'x', action: 'issue.updated' }))
    expect([all(), project(), other(), full(), later(), odd()]).toEqual([['a', 'n', 'b', 'd'], ['n'], [], ['a'], [], []])
    expect(read.mock.calls).toEqual([['n'], ['n']])
    await Promise.all(Array.from({ length: 9 }, (_, i) => told(event({ entityType: 'issue', entityId: `m${i}`, action: 'issue.child_created' }))))
    expect(read).toHaveBeenCalledTimes(2 + 4)
  })
  it('of a new issue that cannot be read leaves the lists', async () => {
    const client = new QueryClient()
    client.setQueryData(keys.issues('c', {}), [])
    new QueryObserver(client, { queryKey: keys.issues('c', {}), queryFn: () => [], staleTime: Infinity }).subscribe(() => undefined)
    await newcomers(client, () => Promise.reject(new Error('404')))(event({ entityType: 'issue', entityId: 'n', action: 'issue.created' }))
    expect(client.getQueryData(keys.issues('c', {}))).toEqual([])
  })
  it('of a log reads nothing again', () => expect(keysOf(event({ runId: 'r', chunk: 'x' }, 'heartbeat.run.log'))).toEqual([]))
  it('of a status is on screen before anything is read', () => {
    const client = new QueryClient()
    client.setQueryData(keys.agents('c'), [{ id: 'a', status: 'idle' }, { id: 'b', status: 'idle' }])
    client.setQueryData(keys.liveRuns('c'), [{ id: 'r', status: 'running' }, { id: 's', status: 'queued' }])
    client.setQueryData(keys.issues('c', { limit: 9 }), [{ id: 'i', status: 'todo' }])
    patchFrom(client, event({ agentId: 'a', status: 'running' }, 'agent.status'))
    patchFrom(client, event({ runId: 'r', status: 'succeeded' }, 'heartbeat.run.status'))
    patchFrom(client, event({ runId: 's', status: 'running' }, 'heartbeat.run.status'))
    client.setQueryData(keys.issue('ACM-7'), { id: 'i', status: 'todo', title: 'old' })
    patchFrom(client, event({ entityType: 'issue', entityId: 'i', action: 'issue.updated', details: { identifier: 'ACM-7', status: 'done', changes: { status: { from: 'todo', to: 'done' }, title: { from: 'old', to: 'new' }, assigneeAgentId: { from: 'a', to: null } } } }))
    expect(client.getQueryData(keys.agents('c'))).toEqual([{ id: 'a', status: 'running' }, { id: 'b', status: 'idle' }])
    expect(client.getQueryData(keys.liveRuns('c'))).toEqual([{ id: 's', status: 'running' }])
    expect(client.getQueryData(keys.issues('c', { limit: 9 }))).toMatchObject([{ id: 'i', status: 'done', title: 'new', assigneeAgentId: null }])
    expect(client.getQueryData(keys.issue('ACM-7'))).toMatchObject({ status: 'done', title: 'new' })
  })
})

it('a burst of events reads each entry once, and again a second later', () => {
  let now = 0
  const due: [() => void, number][] = []
  const invalidateQueries = vi.fn()
  const tell = invalidator({ invalidateQueries } as unknown as QueryClient, () => now, (f, ms) => due.push([f, now + ms]))
  const run = () => { const [f, at] = due.shift()!; now = at; f() }
  for (let i = 0; i < 100; i++) tell([keys.issues('c'), keys.issue('i')])
  run()
  expect(invalidateQueries).toHaveBeenCalledTimes(2)
  for (let i = 0; i < 100; i++) tell([keys.issue('i')])
  run()
  expect(invalidateQueries).toHaveBeenCalledTimes(2)
  run()
  expect(invalidateQueries).toHaveBeenCalledTimes(3)
  expect(now).toBeGreaterThanOrEqual(1000)
  expect(now).toBeLessThan(3000)
  tell([keys.issues('c')])
  run()
  run()
  expect(invalidateQueries).toHaveBeenCalledTimes(4)
  expect(now).toBeGreaterThanOrEqual(3000)
  expect(due).toHaveLength(0)
})

it('an answer that is older than an event does not take back what the event said', async () => {
  const client = new QueryClient()
  const key = keys.issues('c', { limit: 9 })
  let answer: (rows: unknown) => void = () => undefined
  const read = () => client.fetchQuery({ queryKey: key, queryFn: () => new Promise((done) => { answer = done }) })
  const { tell, end } = patcher(client)
  const renamed = (to: string) => tell(event({ entityType: 'issue', entityId: 'i', action: 'issue.updated', details: { changes: { title: { from: '', to } } } }))
  let reading = read()
  answer([{ id: 'i', title: 'first' }])
  await reading
  renamed('second')
  reading = read()
  renamed('third')
  answer([{ id: 'i', title: 'second' }])
  await reading
  expect(client.getQueryData(key)).toMatchObject([{ title: 'third' }])
  reading = read()
  answer([{ id: 'i', title: 'of another' }])
  await reading
  expect(client.getQueryData(key)).toMatchObject([{ title: 'of another' }])
  end()
})

it('the last line of a run is kept, and who reads along gets all of it', () => {
  const got: string[] = []
  const off = onRunLog('r', (c) => got.push(c.chunk))
  tellLog(event({ runId: 'r', chunk: 'one\ntwo\n' }, 'heartbeat.run.log'))
  off()
  tellLog(event({ runId: 'r', chunk: 'three' }, 'heartbeat.run.log'))
  expect(got).toEqual(['one\ntwo\n'])
  expect(tails.get().get('r')).toBe('three')
  for (let i = 0; i < 500; i++) tellLog(event({ runId: `x${i}`, chunk: 'y' }, 'heartbeat.run.log'))
  expect(tails.get().size).toBeLessThanOrEqual(200)
})
