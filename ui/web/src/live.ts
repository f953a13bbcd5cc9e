// The one event stream of a tab: it follows a company and the mesh from a height, resumes there after a break, and
// hands each event to who listens. What changes at no company has an empty one; only administrators are told of it. Who is cut off for longer than a node remembers reads everything again.
import { framesOf } from './frames'
import { ask, heed, standing, type Schemas } from './http'
import { store } from './store'

export type LiveEvent = { id: number; companyId: string; type: string; createdAt: string; payload: Payload }

/** The fields of all kinds of payloads: those of activity.logged, heartbeat.run.* and agent.status. */
export interface Payload {
  action?: string
  entityType?: string
  entityId?: string
  actorType?: string
  actorId?: string
  agentId?: string | null
  runId?: string | null
  issueId?: string | null
  status?: string
  stream?: string
  chunk?: string
  seq?: number
  details?: Record<string, unknown>
  [name: string]: unknown
}

export interface Line {
  state: 'connecting' | 'live' | 'broken' | 'idle'
  /** The height of the newest event that was handed on. */
  height: number
  /** When the state began. */
  since: number
}

export const line = store<Line>({ state: 'idle', height: 0, since: Date.now() })

// The node writes a comment every 15 s; a stream that is silent for longer is dead.
const silence = 40_000
const firstPause = 500
const maxPause = 8_000

export interface Following {
  company: string
  onEvent: (event: LiveEvent) => void
  /** Called when events may have been missed: when a stream opens without a height to resume from. */
  onGap: () => void
  after?: number
  /** Called when the node says that it hears no majority any more, or one again; else it is asked how it stands. */
  onStanding?: () => void
  /** For tests. */
  fetcher?: typeof fetch
  wait?: (ms: number) => Promise<void>
}

/** follow opens the stream and returns what closes it. */
export function follow(of: Following): () => void {
  const closing = new AbortController()
  void run(of, closing.signal)
  return () => closing.abort()
}

function turn(state: Line['state'], height: number): void {
  line.set((now) => (now.state === state && now.height === height ? now : { state, height, since: now.state === state ? now.since : Date.now() }))
}

async function run(of: Following, closed: AbortSignal): Promise<void> {
  const wait = of.wait ?? ((ms) => new Promise((done) => setTimeout(done, ms)))
  let height = of.after ?? 0
  let pauseFor = firstPause
  turn('connecting', height)
  while (!closed.aborted) {
    try {
      await read(of, closed, height, () => {
        if (height === 0) of.onGap() // what was read before the stream was open may have changed since
        pauseFor = firstPause
        turn('live', height)
      }, (event, id) => {
        if (id !== undefined) height = id
        of.onEvent(event)
        turn('live', height)
      })
    } catch (error) {
      if (closed.aborted) break
      if (error instanceof Ended && error.status === 401) {
        standing.set((s) => ({ ...s, nobody: true }))
        break
      }
      if (error instanceof Ended && error.status === 400) { // this node does not know the height
        height = 0
        of.onGap()
      }
      if (!(error instanceof Ended)) standing.set((s) => ({ ...s, lost: true }))
    }
    if (closed.aborted) break
    turn('broken', height)
    await wait(pauseFor)
    pauseFor = Math.min(pauseFor * 2, maxPause)
  }
  turn('idle', height)
}

class Ended extends Error {
  constructor(readonly status: number) {
    super(`the event stream answered ${status}`)
  }
}

async function read(of: Following, closed: AbortSignal, after: number, opened: () => void, told: (event: LiveEvent, id: number | undefined) => void): Promise<void> {
  const quiet = new AbortController()
  const stop = AbortSignal.any([closed, quiet.signal])
  let timer = setTimeout(() => quiet.abort(), silence)
  const gone = () => quiet.abort()
  globalThis.addEventListener?.('offline', gone)
  const stands = of.onStanding ?? (() => { ask('get', '/board.json').catch(() => undefined) }) // each answer's headers tell it
  try {
    const began = Date.now()
    const address = `/api/companies/${encodeURIComponent(of.company)}/events?mesh=true${after > 0 ? `&after=${after}` : ''}`
    const response = await (of.fetcher ?? fetch)(address, { headers: { Accept: 'text/event-stream' }, signal: stop, credentials: 'same-origin' })
    heed(response.headers, began)
    if (!response.ok || !response.body) throw new Ended(response.status)
    opened()
    const frames = framesOf((comment) => { if (/^quorum\b/.test(comment)) stands() })
    const decoder = new TextDecoder()
    const reader = response.body.getReader()
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return
      clearTimeout(timer)
      timer = setTimeout(() => quiet.abort(), silence)
      for (const frame of frames(decoder.decode(value, { stream: true }))) {
        told(JSON.parse(frame.data) as LiveEvent, frame.id === undefined ? undefined : Number(frame.id))
      }
    }
  } finally {
    clearTimeout(timer)
    globalThis.removeEventListener?.('offline', gone)
  }
}

export type Run = Schemas['ApiLiveRun']
