// What an event means for the query cache: which entries it changes in place and which are read again.
import type { QueryClient, QueryKey } from '@tanstack/react-query'
import type { LiveEvent } from './live'
import { store } from './store'

/**
 * The keys of the cache: one function for each kind of thing, ['kind', company or id, …]. A page takes its
 * keys from here, so that events find its entries.
 */
export const keys = {
  companies: () => ['companies'] as const,
  session: () => ['session'] as const,
  dashboard: (company: string) => ['dashboard', company] as const,
  badges: (company: string) => ['badges', company] as const,
  attention: (company: string) => ['attention', company] as const,
  liveRuns: (company: string) => ['liveRuns', company] as const,
  runs: (company: string, filter?: unknown) => (filter === undefined ? ['runs', company] as const : ['runs', company, filter] as const),
  run: (id: string, part?: string) => (part ? ['run', id, part] as const : ['run', id] as const),
  issues: (company: string, filter?: unknown) => (filter === undefined ? ['issues', company] as const : ['issues', company, filter] as const),
  /** By ID or identifier; events know both. */
  issue: (id: string, part?: string) => (part ? ['issue', id, part] as const : ['issue', id] as const),
  agents: (company: string) => ['agents', company] as const,
  agent: (id: string, part?: string) => (part ? ['agent', id, part] as const : ['agent', id] as const),
  approvals: (company: string, filter?: unknown) => (filter === undefined ? ['approvals', company] as const : ['approvals', company, filter] as const),
  approval: (id: string, part?: string) => (part ? ['approval', id, part] as const : ['approval', id] as const),
  goals: (company: string) => ['goals', company] as const,
  projects: (company: string) => ['projects', company] as const,
  project: (id: string, part?: string) => (part ? ['project', id, part] as const : ['project', id] as const),
  routines: (company: string) => ['routines', company] as const,
  routine: (id: string, part?: string) => (part ? ['routine', id, part] as const : ['routine', id] as const),
  labels: (company: string) => ['labels', company] as const,
  people: (company: string) => ['people', company] as const,
  costs: (company: string, part?: unknown) => (part === undefined ? ['costs', company] as const : ['costs', company, part] as const),
  budgets: (company: string, part?: string) => (part ? ['budgets', company, part] as const : ['budgets', company] as const),
  activity: (company: string, filter?: unknown) => (filter === undefined ? ['activity', company] as const : ['activity', company, filter] as const),
  secrets: (company: string) => ['secrets', company] as const,
  skills: (company: string) => ['skills', company] as const,
  memory: (company: string, part?: unknown) => (part === undefined ? ['memory', company] as const : ['memory', company, part] as const),
  /** Of a company, or of 'mesh'. */
  models: (company: string, part?: string) => (part ? ['models', company, part] as const : ['models', company] as const),
  /** Of the gate: its rules, decisions and amendments, and the resource tree. */
  govern: (part: string, filter?: unknown) => (filter === undefined ? ['govern', part] as const : ['govern', part, filter] as const),
  apps: (company: string, part?: string) => (part ? ['apps', company, part] as const : ['apps', company] as const),
  /** Of a company, or of 'mesh'. */
  topics: (company: string, part?: unknown) => (part === undefined ? ['topics', company] as const : ['topics', company, part] as const),
  cron: (company: string) => ['cron', company] as const,
  /** Of all nodes; events tell of what is declared and of services. */
  kernel: (part: string, filter?: unknown) => (filter === undefined ? ['kernel', part] as const : ['kernel', part, filter] as const),
  /** Of the mesh. */
  mesh: (part: string) => ['mesh', part] as const,
}

/** What of an issue is read again for a change that touches no more of it; patchFrom writes the rest. */
const partsOf: Record<string, string[]> = {
  'issue.comment_added': ['comments', 'activity'], 'issue.comment_deleted': ['comments', 'activity'],
  'issue.read_marked': [], 'issue.read_unmarked': [], 'issue.push_told': ['activity'],
}

/** keysOf returns the keys of all entries that an event may have changed. */
export function keysOf(event: LiveEvent): QueryKey[] {
  const of = event.companyId || 'mesh'
  const p = event.payload
  if (event.type === 'heartbeat.run.log') return []
  if (event.type.startsWith('heartbeat.run.')) {
    const run = p.runId ? [keys.run(p.runId)] : []
    if (event.type === 'heartbeat.run.event' || event.type === 'heartbeat.run.progress') return [...run, keys.liveRuns(of)]
    const issue = p.issueId ? [keys.issue(p.issueId)] : []
    return [...run, ...issue, keys.mesh('stop'), keys.kernel('processes'), keys.liveRuns(of), keys.runs(of), keys.dashboard(of), keys.badges(of), keys.attention(of), keys.costs(of)]
  }
  if (event.type === 'agent.status') return [keys.agents(of), ...(p.agentId ? [keys.agent(p.agentId)] : []), keys.dashboard(of), keys.badges(of)]
  const about = p.entityId ?? ''
  // A command that the gate let through with a warning is a decision, and no change says so; any change may change the tree.
  const always: QueryKey[] = [keys.activity(of), keys.govern('decisions'), keys.govern('treeRoot')]
  const identifier = p.details?.['identifier']
  const issues = (id: string): QueryKey[] => [keys.issue(id), ...(typeof identifier === 'string' ? [keys.issue(identifier)] : []), keys.issues(of), keys.dashboard(of), keys.badges(of), keys.attention(of)]
  switch (p.entityType) {
    case 'issue': {
      const part = partsOf[p.action ?? '']
      const names = [about, identifier].filter((id) => typeof id === 'string')
      if (part) return [...names.flatMap((id) => part.map((name) => keys.issue(id, name))), ...always, keys.attention(of), keys.badges(of)]
      return [...issues(about), ...always]
    }
    case 'agent': return [...always, keys.agents(of), keys.agent(about), keys.dashboard(of), keys.badges(of)]
    case 'approval': return [...always, keys.approvals(of), keys.approval(about), keys.dashboard(of), keys.badges(of), keys.attention(of)]
    case 'heartbeat_run': return [...always, keys.liveRuns(of), keys.runs(of), keys.run(about)]
    case 'goal': return [...always, keys.goals(of)]
    case 'project': return [...always, keys.projects(of), keys.project(about)]
    case 'routine': case 'routine_trigger': case 'routine_run': {
      const routine = p.details?.['routineId'] // of a trigger and of a run
      return [...always, keys.routines(of), keys.routine(typeof routine === 'string' ? routine : about)]
    }
    case 'label': return [...always, keys.labels(of)]
    case 'company': return [...always, keys.companies(), keys.dashboard(of)]
    case 'cost_event': case 'finance_event': return [...always, keys.costs(of), keys.budgets(of), keys.dashboard(of)]
    case 'budget_policy': case 'budget_incident': return [...always, keys.budgets(of), keys.dashboard(of), keys.attention(of), keys.badges(of)]
    case 'secret': return [...always, keys.secrets(of)]
    case 'company_skill': case 'skill': return [...always, keys.skills(of)]
    case 'memory': return [...always, keys.memory(of)]
    case 'model_provider': case 'model_price': return [...always, keys.models(of), keys.models('mesh')]
    case 'app': return [...always, keys.apps(of), keys.agents(of), keys.routines(of), keys.skills(of)]
    case 'cron_job': return [...always, keys.cron(of)]
    case 'topic': case 'topic_subscription': return [...always, keys.topics(of)]
    case 'decision': return always
    case 'amendment': return [...always, keys.govern('amendments'), keys.govern('amendment'), keys.govern('rules'), keys.govern('packs')]
    case 'governance_permit': return [...always, keys.govern('permits')]
    case 'elevation': return [...always, keys.govern('elevations')]
    case 'resource_tree': return [...always, keys.govern('tree')]
    case 'mesh': return [...always, keys.mesh('stop'), keys.mesh('info'), keys.govern('place'), keys.govern('rules')]
    case 'node': return [...always, keys.mesh('members'), keys.mesh('autopilot'), keys.mesh('requests'), keys.mesh('doctor'), keys.mesh('info')]
    case 'token': return [...always, keys.mesh('tokens')]
    case 'instance_settings': return [...always, keys.mesh('general'), keys.mesh('experimental'), keys.mesh('auth')]
    case 'process': return [...always, ['apps'], keys.kernel('declared'), keys.kernel('processes'), keys.kernel('services')]
    case 'service': return [...always, keys.kernel('services')]
    case 'company_membership': case 'invite': case 'join_request': return [...always, keys.people(of), keys.attention(of), keys.badges(of)]
  }
  // Things of an issue (documents, interactions, attachments…) name it in their details.
  const issueId = p.issueId ?? p.details?.['issueId']
  return typeof issueId === 'string' ? [keys.issue(issueId), ...always, keys.attention(of)] : always
}

const single = new Set(['issue', 'agent', 'project', 'routine', 'approval', 'run'])

/** withNames adds the keys of what a page reads by another name: an event has an issue's ID, its address the identifier. */
export function withNames(client: Pick<QueryClient, 'getQueriesData'>, all: QueryKey[]): QueryKey[] {
  const out = [...all]
  for (const [kind, id, ...part] of all) {
    if (typeof kind !== 'string' || !single.has(kind) || typeof id !== 'string') continue
    for (const [key, data] of client.getQueriesData<{ id?: unknown }>({ queryKey: [kind] })) {
      if (key.length === 2 && key[1] !== id && data?.id === id) out.push([...key, ...part])
    }
  }
  return out
}

/** patch writes into the cache what an event says, so that it is on screen before anything is read again. */
export function patchFrom(client: QueryClient, event: LiveEvent): void {
  const p = event.payload
  if (event.type === 'agent.status' && p.agentId && p.status) {
    const { agentId, status } = p
    client.setQueryData<{ id: string; status: string }[]>(keys.agents(event.companyId), (rows) =>
      rows?.map((row) => (row.id === agentId ? { ...row, status } : row)))
  }
  if (event.type === 'heartbeat.run.status' && p.runId && p.status) {
    const { runId, status } = p
    const over = !['queued', 'running', 'scheduled_retry'].includes(status)
    client.setQueryData<{ id: string; status: string }[]>(keys.liveRuns(event.companyId), (rows) =>
      over ? rows?.filter((row) => row.id !== runId) : rows?.map((row) => (row.id === runId ? { ...row, status } : row)))
  }
  if (event.type === 'activity.logged' && p.action === 'issue.comment_added') patchComment(client, event)
  if (event.type === 'activity.logged' && p.entityType === 'issue' && p.action === 'issue.updated' && p.entityId) {
    const change: Record<string, unknown> = { updatedAt: event.createdAt }
    if (typeof p.details?.['status'] === 'string') change['status'] = p.details['status']
    const told = p.details?.['changes'] as Record<string, { to?: unknown }> | undefined // absent where they were too many
    for (const name of ['status', 'statusVersion', 'priority', 'title', 'assigneeAgentId', 'assigneeUserId', 'projectId', 'goalId']) {
      const to = told?.[name]
      if (to && 'to' in to) change[name] = to.to === '' ? null : to.to
    }
    patchIssue(client, event.companyId, p.entityId, change)
    const { entityId: id } = p
    for (const name of [id, p.details?.['identifier']]) {
      if (typeof name === 'string') client.setQueryData<{ id: string }>(keys.issue(name), (row) => (row?.id === id ? { ...row, ...change } : row))
    }
  }
}

const maxKept = 200

/**
 * patcher writes what events say into the cache, and again into an answer that was under way when they came: it may
 * be older than they are.
 */
export function patcher(client: QueryClient): { tell: (event: LiveEvent) => void; end: () => void } {
  let told = 0
  const kept: { at: number; event: LiveEvent }[] = []
  const began = new Map<string, number>() // of each read under way, how many events had come
  const end = client.getQueryCache().subscribe((e) => {
    if (e.type !== 'updated') return
    const { queryHash } = e.query
    if (e.action.type === 'fetch') began.set(queryHash, told)
    else if (e.action.type === 'error') began.delete(queryHash)
    else if (e.action.type === 'success' && !e.action.manual) {
      const since = began.get(queryHash) ?? told
      began.delete(queryHash)
      for (const k of kept) if (k.at > since) patchFrom(client, k.event)
    }
  })
  return {
    tell(event) {
      told++
      if (began.size > 0) kept.push({ at: told, event })
      else kept.length = 0
      if (kept.length > maxKept) kept.shift()
      patchFrom(client, event)
    },
    end,
  }
}

function patchIssue(client: QueryClient, company: string, id: string, change: Record<string, unknown>): void {
  client.setQueriesData<unknown>({ queryKey: keys.issues(company) }, (rows: unknown) =>
    Array.isArray(rows) && rows.some((row: { id: string }) => row.id === id) ? rows.map((row: { id: string }) => (row.id === id ? { ...row, ...change } : row)) : rows)
}

const maxNewcomers = 4 // reads at a time; where more are created at once, their list is read again anyway
const priorities = ['critical', 'high', 'medium', 'low']
type Newcomer = { id: string; priority: string; createdAt?: string | null; [name: string]: unknown }

/** fits says whether a list with this query has the issue; of a filter that is not known here it says no. */
function fits(query: Record<string, unknown>, issue: Newcomer): boolean {
  return Object.entries(query).every(([name, value]) => name === 'limit' || (name === 'updatedSince' ? String(issue.createdAt ?? '') >= String(value) : name in issue && issue[name] === value))
}

/**
 * newcomers puts an issue that was created into the lists on screen, where the node would list it. The event has its
 * title and state but not its priority, assignee, project or labels, so that one issue is read, not the list of all.
 */
export function newcomers(client: QueryClient, read: (id: string) => Promise<Newcomer>): (event: LiveEvent) => Promise<void> {
  let reading = 0
  return async ({ companyId, payload: p }) => {
    if ((p.action !== 'issue.created' && p.action !== 'issue.child_created') || !p.entityId || reading >= maxNewcomers) return
    const lists = client.getQueryCache().findAll({ queryKey: keys.issues(companyId), type: 'active' })
    if (lists.length === 0) return
    reading++
    try {
      const issue = { lastActivityAt: null, ...(await read(p.entityId)) }
      for (const { queryKey } of lists) {
        const query = (queryKey[2] ?? {}) as Record<string, unknown>
        client.setQueryData<Newcomer[]>(queryKey, (rows) => {
          if (!rows || rows.some((row) => row.id === issue.id) || !fits(query, issue) || rows.length >= Number(query['limit'] ?? Infinity)) return rows
          const at = rows.findIndex((row) => priorities.indexOf(row.priority) >= priorities.indexOf(issue.priority))
          return rows.toSpliced(at < 0 ? rows.length : at, 0, issue)
        })
      }
    } catch { /* the list is read again in three seconds at most */ } finally {
      reading--
    }
  }
}

const snippet = 117 // bytes: an event has at most 120 of a comment, and none of half a letter
type Written = { id: string; body?: string | null }

/** A comment is on screen as its event has it; one that is cut there says so until it is read. */
function patchComment(client: QueryClient, event: LiveEvent): void {
  const { entityId: issue, actorId, actorType, details } = event.payload
  const said = details?.['bodySnippet']
  const id = details?.['commentId']
  if (!issue || typeof said !== 'string' || typeof id !== 'string') return
  patchIssue(client, event.companyId, issue, { updatedAt: event.createdAt })
  const body = new TextEncoder().encode(said).length < snippet ? said : `${said}…`
  const agent = actorType === 'agent'
  const row = { id, issueId: issue, companyId: event.companyId, body, authorAgentId: agent ? actorId : null, authorUserId: agent ? null : actorId, createdAt: event.createdAt, deletedAt: null }
  for (const name of [issue, details?.['identifier']]) {
    if (typeof name !== 'string') continue
    client.setQueryData<Written[]>(keys.issue(name, 'comments'), (rows) => {
      if (!rows || rows.some((r) => r.id === id)) return rows
      const sent = rows.findIndex((r) => ownSent(r, said)) // what this page sent, before the answer has its ID
      return sent < 0 ? [...rows, row] : rows.with(sent, { ...rows[sent], id })
    })
  }
}
const ownSent = (row: Written, said: string) => !row.id.includes('-') && (row.body ?? '').startsWith(said)

// What an event says is to be on screen within 200 ms of its commit. A burst of events reads each entry again at most this often.
const gather = 8 // ms
const again = 1_000 // ms between two reads of the same entry
const seldom = 3_000 // of long lists, which events patch, and of sums
const long = new Set(['issues', 'activity', 'runs', 'dashboard', 'costs', 'budgets', 'attention', 'badges', 'govern', 'memory'])

/** invalidator gathers keys and reads them again: the first event at once, then each key at most once a second, or in three, however many there are. */
export function invalidator(client: Pick<QueryClient, 'invalidateQueries'>, now = () => Date.now(), later: (f: () => void, ms: number) => unknown = setTimeout): (all: QueryKey[]) => void {
  const waiting = new Map<string, QueryKey>()
  const last = new Map<string, number>()
  let due = Infinity // when the next look is
  const look = (ms: number) => {
    const at = now() + ms
    if (at >= due) return
    due = at
    later(() => { if (due === at) flush() }, ms) // an earlier look makes a later one void
  }
  const flush = () => {
    due = Infinity
    const at = now()
    let next = Infinity
    for (const [name, key] of waiting) {
      const may = (last.get(name) ?? -Infinity) + (long.has(String(key[0])) ? seldom : again)
      if (may > at) {
        next = Math.min(next, may - at)
        continue
      }
      waiting.delete(name)
      last.set(name, at)
      void client.invalidateQueries({ queryKey: key })
    }
    if (last.size > 2_000) last.clear()
    if (waiting.size > 0) look(Math.max(next, gather))
  }
  return (all) => {
    for (const key of all) waiting.set(JSON.stringify(key), key)
    if (waiting.size > 0) look(gather)
  }
}

// The last line that each running run wrote, and who reads a run's log along.
const maxTails = 200
export const tails = store<ReadonlyMap<string, string>>(new Map())
type Chunk = { seq: number; stream: string; chunk: string; at: string; truncated: boolean }
const readers = new Map<string, Set<(chunk: Chunk) => void>>()

export function onRunLog(run: string, told: (chunk: Chunk) => void): () => void {
  const all = readers.get(run) ?? new Set()
  readers.set(run, all.add(told))
  return () => {
    all.delete(told)
    if (all.size === 0) readers.delete(run)
  }
}

export function tellLog(event: LiveEvent): void {
  const { runId, chunk, stream, seq, truncated } = event.payload
  if (!runId || typeof chunk !== 'string') return
  readers.get(runId)?.forEach((told) => told({ seq: seq ?? 0, stream: stream ?? '', chunk, at: event.createdAt, truncated: truncated === true }))
  const text = chunk.trimEnd().split('\n').pop()
  if (!text) return
  const next = new Map(tails.get())
  next.delete(runId)
  next.set(runId, text.slice(-300))
  if (next.size > maxTails) next.delete(next.keys().next().value as string)
  tails.set(next)
}
