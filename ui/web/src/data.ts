// The hooks by which pages read and write. A page takes its data from here or adds a hook of the same form:
// a key of cache.ts, a call of http.ts. Nothing polls but what no event tells of (DESIGN.md, Live).
import { keepPreviousData, QueryClient, useMutation, useQueries, useQuery, useQueryClient, type QueryKey, type UseQueryResult } from '@tanstack/react-query'
import { useCallback, useMemo } from 'react'
import { keys } from './cache'
import { del, get, Lost, patch, post, Refusal, type Options, type Query, type Schemas } from './http'
import { explain } from './parts/states'
import { toast } from './parts/toast'
import { t } from './text/en'

export type Company = Schemas['ApiCompanyRow']
export type Issue = Schemas['ApiListedIssue']
export type ShownIssue = Schemas['ApiShownIssue']
export type Agent = Schemas['ApiAgentRow']
export type LiveRun = Schemas['ApiLiveRun']
export type Member = Schemas['ApiMember']
export type Comment = Schemas['Comment']
export type Activity = Schemas['ActivityRow']
export type AttentionItem = Schemas['ApiAttentionItem']

/** client is the page's one cache. Events keep it fresh, so nothing in it grows stale by itself. */
export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5 * 60_000,
      gcTime: 10 * 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: true,
      retry: (n, error) => (error instanceof Refusal ? false : n < (error instanceof Lost ? 8 : 1)),
      retryDelay: (n) => Math.min(500 * 2 ** n, 5_000),
    },
    mutations: { retry: false },
  },
})

/** What no event tells of is asked for this often by the page that is about it, */
export const poll = 5_000
/** and this often where it stands beside something else. */
export const seldom = 30_000

export function useSession() {
  return useQuery({ queryKey: keys.session(), queryFn: ({ signal }) => get('/api/auth/get-session', { signal }) as Promise<{ user?: { id: string; name: string; email: string } } | null>, staleTime: Infinity })
}
export function useHealth() {
  return useQuery({ queryKey: ['health'], queryFn: ({ signal }) => get('/api/health', { signal }), staleTime: Infinity })
}
export function useCompanies() {
  return useQuery({ queryKey: keys.companies(), queryFn: ({ signal }) => get('/api/companies', { signal }) })
}

/** of makes the hooks of what lies under a company. */
const inCompany = (company: string | undefined): { path: { companyId: string } } => ({ path: { companyId: company ?? '' } })

export function useDashboard(company: string | undefined) {
  return useQuery({ queryKey: keys.dashboard(company ?? ''), enabled: !!company, queryFn: ({ signal }) => get('/api/companies/{companyId}/dashboard', { ...inCompany(company), signal }) })
}
export function useBadges(company: string | undefined) {
  return useQuery({ queryKey: keys.badges(company ?? ''), enabled: !!company, queryFn: ({ signal }) => get('/api/companies/{companyId}/sidebar-badges', { ...inCompany(company), signal }) })
}
const attentionPages = 5 // of a hundred each: the inbox lists what waits up to here, and says how much is left out

/**
 * waiting reads the pages of what waits. What came twice, as something before it was handled meanwhile, counts once; where the
 * page's own end was handled meanwhile, the next page is refused and what was read stands until an event reads it again.
 */
export async function waiting<F extends { items: { id: string }[]; nextCursor: string | null }>(read: (query: { limit: number; cursor?: string }) => Promise<F>): Promise<F> {
  let feed = await read({ limit: 100 })
  for (let page = 1; feed.nextCursor && page < attentionPages; page++) {
    const next = await read({ limit: 100, cursor: feed.nextCursor }).catch((e: unknown) => {
      if (e instanceof Refusal) return undefined
      throw e
    })
    if (!next) break
    const known = new Set(feed.items.map((i) => i.id))
    feed = { ...next, items: [...feed.items, ...next.items.filter((i) => !known.has(i.id))] }
  }
  return feed
}
export function useAttention(company: string | undefined) {
  return useQuery({ queryKey: keys.attention(company ?? ''), enabled: !!company, queryFn: ({ signal }) => waiting((query) => get('/api/companies/{companyId}/attention', { ...inCompany(company), query, signal })) })
}
export function useLiveRuns(company: string | undefined) {
  return useQuery({ queryKey: keys.liveRuns(company ?? ''), enabled: !!company, queryFn: ({ signal }) => get('/api/companies/{companyId}/live-runs', { ...inCompany(company), signal }) })
}
export function useAgents(company: string | undefined) {
  return useQuery({ queryKey: keys.agents(company ?? ''), enabled: !!company, queryFn: ({ signal }) => get('/api/companies/{companyId}/agents', { ...inCompany(company), signal }) })
}
export function useProjects(company: string | undefined) {
  return useQuery({ queryKey: keys.projects(company ?? ''), enabled: !!company, queryFn: ({ signal }) => get('/api/companies/{companyId}/projects', { ...inCompany(company), signal }) })
}
export function useIssues(company: string | undefined, query: Query = {}) {
  return useQuery<Issue[]>({ queryKey: keys.issues(company ?? '', query), enabled: !!company, placeholderData: keepPreviousData, queryFn: ({ signal }) => get('/api/companies/{companyId}/issues', { ...inCompany(company), query, signal }) })
}
/** useIssue reads an issue by its ID or identifier. */
export function useIssue(id: string) {
  return useQuery({ queryKey: keys.issue(id), queryFn: ({ signal }) => get('/api/issues/{id}', { path: { id }, signal }) })
}
export function useIssueComments(id: string) {
  return useQuery({ queryKey: keys.issue(id, 'comments'), queryFn: ({ signal }) => get('/api/issues/{id}/comments', { path: { id }, query: { order: 'asc' }, signal }) })
}
export function useIssueActivity(id: string) {
  return useQuery({ queryKey: keys.issue(id, 'activity'), queryFn: ({ signal }) => get('/api/issues/{id}/activity', { path: { id }, signal }) })
}
export function useIssueRuns(id: string) {
  return useQuery({ queryKey: keys.issue(id, 'runs'), queryFn: ({ signal }) => get('/api/issues/{id}/runs', { path: { id }, signal }) })
}
export function useIssueCost(id: string) {
  return useQuery({ queryKey: keys.issue(id, 'cost'), queryFn: ({ signal }) => get('/api/issues/{id}/cost-summary', { path: { id }, signal }) })
}

// Load, latency and life of nodes are no entries of the chain. What is an entry (who is let in, labels, drain) comes as an event.
const meshQuery = { refetchInterval: poll, retry: 0, staleTime: poll - 1_000 } as const
export function useMesh(every: number = seldom) {
  return useQuery({ queryKey: keys.mesh('info'), queryFn: ({ signal }) => get('/api/v1/mesh', { signal }), ...meshQuery, refetchInterval: every })
}
const membersOf = ({ signal }: { signal: AbortSignal }) => get('/api/v1/mesh/members', { signal })
const named = (all: readonly { id: string; name: string }[]) => all.map(({ id, name }) => ({ id, name }))
export function useMembers(every: number = seldom) {
  return useQuery({ queryKey: keys.mesh('members'), queryFn: membersOf, ...meshQuery, refetchInterval: every })
}
export function useAutopilot() {
  return useQuery({ queryKey: keys.mesh('autopilot'), queryFn: ({ signal }) => get('/api/v1/mesh/autopilot', { signal }), ...meshQuery })
}
export function useDoctor() {
  return useQuery({ queryKey: keys.mesh('doctor'), queryFn: ({ signal }) => get('/api/v1/mesh/doctor', { signal }), ...meshQuery, refetchInterval: seldom })
}
export function useJoinRequests(every: number = poll) {
  return useQuery({ queryKey: keys.mesh('requests'), queryFn: ({ signal }) => get('/api/v1/mesh/requests', { signal }), ...meshQuery, refetchInterval: every })
}

/** Who an ID is: an agent of the company and a node by their names, a person as the board. */
export function useNames(company: string | undefined): (id: string | null | undefined) => { name: string; person: boolean } {
  const agents = useAgents(company).data
  const people = useQuery({ queryKey: keys.people(company ?? ''), enabled: !!company, queryFn: ({ signal }) => get('/api/companies/{companyId}/user-directory', { ...inCompany(company), signal }), retry: 0 }).data
  const nodes = useQuery({ queryKey: keys.mesh('members'), enabled: false, queryFn: membersOf, select: named }).data // as the rail has read them
  return useMemo(() => {
    const byId = new Map<string, { name: string; person: boolean }>((nodes ?? []).map((n) => [n.id, { name: n.name, person: false }]))
    for (const a of agents ?? []) byId.set(a.id, { name: a.name, person: false })
    const users = (people as { users?: { principalId?: string; id?: string; userId?: string; name?: string | null; user?: { id?: string; name?: string | null } | null }[] | null } | undefined)?.users
    for (const u of users ?? []) {
      const id = u.principalId ?? u.userId ?? u.user?.id ?? u.id
      const name = u.user?.name ?? u.name
      if (id) byId.set(id, { name: name || t.common.you, person: true })
    }
    return (id) => (id ? byId.get(id) ?? { name: id === 'local-board' ? t.common.you : id.slice(0, 8), person: true } : { name: t.common.none, person: true })
  }, [agents, people, nodes])
}

const maxNamed = 50 // companies whose agents are read by name on one page

/** useNamesIn is useNames of a page that lists agents of several companies. */
export function useNamesIn(companies: readonly (string | null | undefined)[], here: string | undefined): ReturnType<typeof useNames> {
  const names = useNames(here)
  const others = [...new Set(companies)].filter((c): c is string => !!c && c !== here).slice(0, maxNamed)
  const found = useQueries({
    queries: others.map((company) => ({ queryKey: keys.agents(company), queryFn: ({ signal }: { signal: AbortSignal }) => get('/api/companies/{companyId}/agents', { ...inCompany(company), signal }), retry: 0 })),
    combine: (all) => all.map((q) => q.data),
  })
  return useMemo(() => {
    const byId = new Map(found.flatMap((agents) => agents ?? []).map((a) => [a.id, { name: a.name, person: false }]))
    return (id) => (id ? byId.get(id) : undefined) ?? names(id)
  }, [found, names])
}

/** say tells in a toast why a write did not happen. */
export function say(error: unknown, nameOf?: (id: string) => string): void {
  const { title, what, do: what2 } = explain(error, nameOf)
  toast({ text: [title === t.error.title ? '' : `${title}.`, what, what2].filter(Boolean).join(' '), bad: true })
}

interface Write<V, A> {
  call: (value: V) => Promise<A>
  /** What the cache shows before the answer is there: for each key what becomes of its data. */
  optimistic?: (value: V) => { key: QueryKey; change: (data: unknown) => unknown }[]
  /** What is read again afterwards, besides what events tell. */
  reread?: (value: V, answer: A | undefined) => QueryKey[]
  onDone?: (answer: A, value: V) => void
  nameOf?: (id: string) => string
}

/**
 * useWrite is how a page changes something: the change is on screen at once; a refusal puts it back and says
 * why, and who holds it where it is a conflict.
 */
export function useWrite<V, A>({ call, optimistic, reread, onDone, nameOf }: Write<V, A>) {
  const cache = useQueryClient()
  return useMutation<A, unknown, V, { before: [QueryKey, unknown][] }>({
    mutationFn: call,
    onMutate: async (value) => {
      const before: [QueryKey, unknown][] = []
      for (const { key, change } of optimistic?.(value) ?? []) {
        await cache.cancelQueries({ queryKey: key })
        for (const [found, data] of cache.getQueriesData({ queryKey: key })) {
          if (data === undefined) continue
          before.push([found, data])
          cache.setQueryData(found, change(data))
        }
      }
      return { before }
    },
    onError: (error, _value, kept) => {
      kept?.before.forEach(([key, data]) => cache.setQueryData(key, data))
      say(error, nameOf)
    },
    onSuccess: (answer, value) => onDone?.(answer, value),
    onSettled: (answer, _error, value) => {
      for (const key of reread?.(value, answer) ?? []) void cache.invalidateQueries({ queryKey: key })
    },
  })
}

export type IssueChange = { id: string; identifier?: string | null; change: Partial<Pick<Issue, 'status' | 'priority' | 'title' | 'description' | 'assigneeAgentId' | 'assigneeUserId' | 'projectId'>> & Record<string, unknown> }

/** useChangeIssue changes an issue, in the list and on its page at once. */
export function useChangeIssue(company: string, onDone?: (value: IssueChange) => void) {
  const names = useNames(company)
  const nameOf = useCallback((id: string) => names(id).name, [names])
  return useWrite<IssueChange, unknown>({
    call: ({ id, change }) => patch('/api/issues/{id}', { path: { id } }, change),
    optimistic: ({ id, identifier, change }) => [
      { key: keys.issues(company), change: (rows) => (Array.isArray(rows) ? (rows as Issue[]).map((row) => (row.id === id ? { ...row, ...change } : row)) : rows) },
      ...[id, identifier].filter((k): k is string => !!k).map((k) => ({ key: keys.issue(k), change: (row: unknown) => (isIssue(row) && row.id === id ? { ...row, ...change } : row) })),
    ],
    reread: ({ id, identifier }) => [keys.issues(company), keys.issue(id), ...(identifier ? [keys.issue(identifier)] : []), keys.dashboard(company)],
    onDone: (_answer, value) => onDone?.(value),
    nameOf,
  })
}
const isIssue = (row: unknown): row is ShownIssue => typeof row === 'object' && row !== null && 'identifier' in row && 'statusVersion' in row

export function useCreateIssue(company: string, onDone: (made: { id: string; identifier?: string | null }) => void) {
  return useWrite({
    call: (body: Record<string, unknown>) => post('/api/companies/{companyId}/issues', { path: { companyId: company } }, body) as Promise<{ id: string; identifier?: string | null }>,
    reread: () => [keys.issues(company), keys.dashboard(company)],
    onDone,
  })
}

const dayMs = 86_400_000
/** daysBack are the last n days in UTC, the oldest first, as dates. */
export function daysBack(n: number, now = Date.now()): string[] {
  return Array.from({ length: n }, (_, i) => new Date(now - (n - 1 - i) * dayMs).toISOString().slice(0, 10))
}

/** useCostDays reads what each of some days in UTC cost, by agent, project and model, in one request. */
export function useCostDays(company: string, days: readonly string[]) {
  const query = { from: `${days[0]}T00:00:00.000Z`, to: `${days[days.length - 1]}T23:59:59.999Z` }
  const read = useQuery({ queryKey: keys.costs(company, ['by-day', query]), placeholderData: keepPreviousData, queryFn: ({ signal }) => get('/api/companies/{companyId}/costs/by-day', { ...inCompany(company), query, signal }) })
  return useMemo(() => {
    const of = new Map(days.map((date) => [date, [] as NonNullable<typeof read.data>]))
    for (const row of read.data ?? []) of.get(row.date)?.push(row)
    return { days: days.map((date) => ({ date, rows: of.get(date) ?? [] })), pending: read.isPending, error: read.data ? undefined : read.error }
  }, [read.data, read.isPending, read.error, query.from, query.to])
}

/** useAgentVerb pauses, resumes, ends or wakes an agent. */
export function useAgentVerb(company: string, onDone?: (verb: AgentVerb, answer: unknown) => void) {
  return useWrite<{ id: string; verb: AgentVerb }, unknown>({
    call: ({ id, verb }) => verb === 'invoke' ? post('/api/agents/{id}/heartbeat/invoke', { path: { id } }) : verb === 'pause' ? post('/api/agents/{id}/pause', { path: { id } }) : verb === 'resume' ? post('/api/agents/{id}/resume', { path: { id } })
      : verb === 'terminate' ? post('/api/agents/{id}/terminate', { path: { id } }) : verb === 'approve' ? post('/api/agents/{id}/approve', { path: { id } }) : post('/api/agents/{id}/clear-error', { path: { id } }),
    optimistic: ({ id, verb }) => verb === 'pause' || verb === 'resume' ? [{ key: keys.agents(company), change: (rows) => (Array.isArray(rows) ? (rows as Agent[]).map((a) => (a.id === id ? { ...a, status: verb === 'pause' ? 'paused' : 'idle' } : a)) : rows) }] : [],
    reread: ({ id }) => [keys.agents(company), keys.agent(id), keys.liveRuns(company), keys.runs(company)],
    onDone: (answer, { verb }) => onDone?.(verb, answer),
  })
}
export type AgentVerb = 'pause' | 'resume' | 'terminate' | 'invoke' | 'approve' | 'clear-error'

/** Hooks for others to read and write with, where a call is used once: useRead(keys.goals(id), '/api/…', {…}). */
export function useRead<P extends Parameters<typeof get>[0]>(key: QueryKey, path: P, options: Options = {}, more: { enabled?: boolean; refetchInterval?: number; placeholderData?: typeof keepPreviousData } = {}): UseQueryResult<Awaited<ReturnType<typeof get<P>>>> {
  return useQuery({ queryKey: key, queryFn: ({ signal }) => get(path, { ...options, signal }), ...more }) as UseQueryResult<Awaited<ReturnType<typeof get<P>>>>
}
export { del, get, patch, post }
