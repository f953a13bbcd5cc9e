// The one module that knows HTTP. Everything else calls get, post, patch, put and del, whose paths,
// parameters and answers are typed from the node's own description (api.d.ts, made by `make ui-types`).
import type { components, paths } from './api'
import { store } from './store'

export type Schemas = components['schemas']

type Verb = 'get' | 'post' | 'patch' | 'put' | 'delete'
type Json<R> = R extends { content: { 'application/json': infer T } } ? T : undefined
type Clean<T> = Extract<T, readonly unknown[]> extends never ? T : Exclude<T, null>
type Responses<O> = O extends { responses: infer R } ? R : never
type Success<R> = R extends { 200: infer A } ? Json<A> : R extends { 201: infer A } ? Json<A> : R extends { 202: infer A } ? Json<A> : undefined

export type PathOf<M extends Verb> = { [P in keyof paths]: paths[P] extends { [K in M]: { responses: unknown } } ? P : never }[keyof paths]
type Operation<P extends keyof paths, M extends Verb> = paths[P] extends { [K in M]: infer O } ? O : never
export type Answer<P extends keyof paths, M extends Verb> = Clean<Success<Responses<Operation<P, M>>>>

export type Query = Record<string, string | number | boolean | undefined>

export interface Options {
  /** Values for the {names} of the path. */
  path?: Record<string, string>
  query?: Query
  signal?: AbortSignal
  /** The Idempotency-Key of a write; post draws one when none is given. Repeating a write needs the same. */
  key?: string
}

/** A refusal is an answer that says no; a failure of the network is no refusal but a Lost. */
export class Refusal extends Error {
  override name = 'Refusal'
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | undefined,
    readonly details: unknown,
    /** Seconds until trying again makes sense; undefined: it does not by itself. */
    readonly retryAfter: number | undefined,
    readonly request: string | undefined,
  ) {
    super(message)
  }

  /** Who holds what was asked for, from the details of a 409. */
  get owner(): string | undefined {
    const held = this.details as Record<string, unknown> | null | undefined
    for (const name of ['assigneeAgentId', 'ownerAgentId', 'ownerId', 'owner', 'heldBy', 'assigneeUserId']) {
      const value = held?.[name]
      if (typeof value === 'string' && value !== '') return value
    }
    return undefined
  }

  /** Nobody leads, but the voters that are heard can elect a leader. */
  get electable(): boolean {
    return this.code === 'no_quorum' && (this.details as { enough?: boolean } | undefined)?.enough === true
  }

  get momentary(): boolean {
    return this.status === 503 || this.status === 429
  }
}

/** The node did not answer. */
export class Lost extends Error {
  override name = 'Lost'
}

/** What the answers tell of the node that gave them. */
export interface Standing {
  /** Milliseconds of the last answer's way. */
  latency: number | undefined
  /** When the node last answered, by performance.now() through Date.now(). */
  heard: number
  /** The node cannot be reached. */
  lost: boolean
  /** The node hears no majority: what it shows is `age` milliseconds old, and it takes no writes. */
  cutOff: { node: string; age: number; at: number } | undefined
  /** The node asks for a sign-in. */
  nobody: boolean
}

export const standing = store<Standing>({ latency: undefined, heard: Date.now(), lost: false, cutOff: undefined, nobody: false })

// The raft index of the newest answer: handed back with each request, so that another node answers with it applied.
let height = 0
export const seenHeight = () => height
export const forgetHeight = () => { height = 0 }

const requestTimeout = 30_000
const maxRetries = 2
const electionPatience = 15_000 // a leader that dies costs a second, on a busy machine more
const maxRetryAfter = 5 // seconds; a longer wait is the reader's decision

export function addressOf(path: string, options: Options = {}): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = options.path?.[name]
    if (value === undefined || value === '') throw new Error(`path ${path}: {${name}} has no value`)
    return encodeURIComponent(value)
  })
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(options.query ?? {})) {
    if (value !== undefined && value !== '') query.set(name, String(value))
  }
  const text = query.toString()
  return text ? `${filled}?${text}` : filled
}

function refusalOf(response: Response, text: string): Refusal {
  let body: { error?: unknown; code?: unknown; details?: unknown; message?: unknown } = {}
  try {
    body = JSON.parse(text) as typeof body
  } catch {
    body = { error: text.slice(0, 300) || response.statusText }
  }
  const after = Number(response.headers.get('Retry-After'))
  const code = typeof body.code === 'string' ? body.code : undefined
  const said = [body.error, body.message].find((s) => typeof s === 'string' && s !== '')
  return new Refusal(response.status, typeof said === 'string' ? said : `HTTP ${response.status}`, code, body.details,
    Number.isFinite(after) && after > 0 ? after : undefined, response.headers.get('X-Request-Id') ?? undefined)
}

/** heed reads the headers in which a node says how it stands. */
export function heed(headers: Headers, began: number): void {
  const now = Date.now()
  const seen = Number(headers.get('X-Selvage-Height'))
  if (seen > height) height = seen
  const lostQuorum = headers.get('X-Selvage-Quorum') === 'lost'
  standing.set((s) => ({
    ...s, lost: false, heard: now, latency: now - began,
    cutOff: lostQuorum ? { node: decodeURIComponent(headers.get('X-Selvage-Node-Name') ?? ''), age: Number(headers.get('X-Selvage-Age') ?? 0), at: now } : undefined,
  }))
}

const pause = (ms: number, signal?: AbortSignal) => new Promise<void>((done, fail) => {
  const timer = setTimeout(done, ms)
  signal?.addEventListener('abort', () => { clearTimeout(timer); fail(signal.reason as Error) }, { once: true })
})

async function once(method: string, address: string, body: string | FormData | Blob | undefined, headers: Record<string, string>, signal: AbortSignal | undefined): Promise<Response> {
  const began = Date.now()
  const timeout = AbortSignal.timeout(requestTimeout)
  try {
    const response = await fetch(address, {
      method, headers, credentials: 'same-origin',
      ...(body === undefined ? {} : { body }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    })
    heed(response.headers, began)
    return response
  } catch (error) {
    if (signal?.aborted) throw error
    standing.set((s) => ({ ...s, lost: true }))
    throw new Lost(error instanceof Error ? error.message : String(error))
  }
}

/**
 * Ask sends one request. A 503 or 429 that says when to try again is tried again, a write with the
 * same Idempotency-Key: the ledger answers a repetition with the first outcome.
 */
export async function ask(method: Verb, path: string, options: Options = {}, body?: unknown): Promise<unknown> {
  const verb = method.toUpperCase()
  const address = addressOf(path, options)
  const headers: Record<string, string> = { Accept: 'application/json' }
  if (height > 0) headers['X-Selvage-Height'] = String(height)
  let sent: string | FormData | Blob | undefined
  if (body instanceof FormData) sent = body
  else if (body instanceof Blob) {
    sent = body
    headers['Content-Type'] = body.type
  }
  else if (body !== undefined) {
    sent = JSON.stringify(body)
    headers['Content-Type'] = 'application/json'
  }
  if (method === 'post') headers['Idempotency-Key'] = options.key ?? newKey()
  const repeatable = method === 'get' || method === 'post'
  const began = Date.now()
  for (let attempt = 0; ; attempt++) {
    const response = await once(verb, address, sent, headers, options.signal)
    if (response.ok) {
      if (response.status === 204) return undefined
      const text = await response.text()
      if (!(response.headers.get('Content-Type') ?? '').includes('json')) return text
      return text === '' ? undefined : (JSON.parse(text) as unknown)
    }
    const refusal = refusalOf(response, await response.text())
    if (refusal.status === 401 && !path.startsWith('/api/auth/sign-')) standing.set((s) => ({ ...s, nobody: true }))
    const wait = refusal.retryAfter
    const elects = refusal.code === 'no_leader' || refusal.electable
    const tired = elects ? Date.now() - began > electionPatience : attempt >= maxRetries || refusal.code === 'no_quorum'
    if (!refusal.momentary || !repeatable || tired || wait === undefined || wait > maxRetryAfter) throw refusal
    await pause(wait * 1000, options.signal)
  }
}

/** newKey draws an Idempotency-Key. crypto.randomUUID is only there over TLS and on loopback. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('')
}

export const get = <P extends PathOf<'get'>>(path: P, options?: Options) => ask('get', path as string, options) as Promise<Answer<P, 'get'>>
export const post = <P extends PathOf<'post'>>(path: P, options?: Options, body?: unknown) => ask('post', path as string, options, body ?? {}) as Promise<Answer<P, 'post'>>
export const patch = <P extends PathOf<'patch'>>(path: P, options?: Options, body?: unknown) => ask('patch', path as string, options, body ?? {}) as Promise<Answer<P, 'patch'>>
export const put = <P extends PathOf<'put'>>(path: P, options?: Options, body?: unknown) => ask('put', path as string, options, body ?? {}) as Promise<Answer<P, 'put'>>
export const del = <P extends PathOf<'delete'>>(path: P, options?: Options) => ask('delete', path as string, options) as Promise<Answer<P, 'delete'>>
