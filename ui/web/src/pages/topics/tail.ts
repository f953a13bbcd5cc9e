// Follows the messages of topics by the node's event stream, resumed by height; the newest are kept.
import { useEffect, useState } from 'react'
import { framesOf } from '../../frames'
import { addressOf, heed, Refusal, type Schemas } from '../../http'

export type Message = Schemas['ApiMessage']
export const mostKept = 300
const firstPause = 500
const maxPause = 8_000
const redraw = 80 // ms between two drawings of a burst

/** added puts messages in front, the newest first; one that is there already is not put again. */
export function added(kept: readonly Message[], news: readonly Message[]): readonly Message[] {
  const have = new Set(kept.slice(0, mostKept).map((m) => m.height))
  return [...news.filter((m) => !have.has(m.height)).reverse(), ...kept].slice(0, mostKept)
}

export interface Tail { messages: readonly Message[]; state: 'connecting' | 'live'; error: unknown }

/** useTail follows a pattern from a height on; undefined waits. */
export function useTail(pattern: string, company: string | undefined, from: number | undefined): Tail {
  const [tail, setTail] = useState<Tail>({ messages: [], state: 'connecting', error: undefined })
  useEffect(() => {
    setTail({ messages: [], state: 'connecting', error: undefined })
    if (from === undefined) return
    const closed = new AbortController()
    void follow(pattern, company, from, closed.signal, (change) => setTail((now) => ({ ...now, ...change(now) })))
    return () => closed.abort()
  }, [pattern, company, from])
  return tail
}

async function follow(pattern: string, company: string | undefined, from: number, closed: AbortSignal, told: (change: (now: Tail) => Partial<Tail>) => void): Promise<void> {
  let next = from
  let pause = firstPause
  let waiting: Message[] = []
  let drawing: ReturnType<typeof setTimeout> | undefined
  const draw = () => {
    drawing = undefined
    const news = waiting
    waiting = []
    if (!closed.aborted) told((now) => ({ messages: added(now.messages, news) }))
  }
  while (!closed.aborted) {
    try {
      const began = Date.now()
      const response = await fetch(addressOf('/api/v1/topics/{topic}/events', { path: { topic: pattern }, query: { from: next, companyId: company } }), { headers: { Accept: 'text/event-stream' }, signal: closed, credentials: 'same-origin' })
      heed(response.headers, began)
      if (!response.ok || !response.body) {
        const said = (await response.json().catch(() => ({}))) as { error?: string; code?: string }
        if (response.status < 500) return told(() => ({ error: new Refusal(response.status, said.error ?? response.statusText, said.code, undefined, undefined, undefined) }))
        throw new Error(said.error ?? response.statusText)
      }
      told(() => ({ state: 'live', error: undefined }))
      pause = firstPause
      const frames = framesOf()
      const decoder = new TextDecoder()
      const reader = response.body.getReader()
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        for (const frame of frames(decoder.decode(part.value, { stream: true }))) {
          if (frame.event !== 'message' || frame.id === undefined) continue
          waiting.push(JSON.parse(frame.data) as Message)
          next = Number(frame.id) + 1
          drawing ??= setTimeout(draw, redraw)
        }
      }
    } catch { /* the node is away: the banner says so, and it is tried again */ }
    if (closed.aborted) return
    told(() => ({ state: 'connecting' }))
    await new Promise((done) => setTimeout(done, pause))
    pause = Math.min(pause * 2, maxPause)
  }
}
