// A run's log, read from the node that has it and followed while it grows.
import { useEffect, useRef, useState } from 'react'
import { onRunLog } from '../../cache'
import { get, Refusal } from '../../http'
import { line } from '../../live'
import { useStorePart } from '../../store'
import { Transcript, type Chunk } from './transcript'

const pageBytes = 256_000
const redraw = 80 // ms between two drawings of a growing log
const pauseFor = 400 // ms before a gap is read
const retryAfter = 3_000

interface LogPage { content: string; nextOffset?: number }
type Line = { ts?: string; stream?: string; chunk?: string; seq?: number }

/** linesOf reads the whole lines of a piece of a log, and how many bytes they are. */
export function linesOf(content: string): { chunks: Chunk[]; bytes: number } {
  const whole = content.slice(0, content.lastIndexOf('\n') + 1)
  const chunks: Chunk[] = []
  for (const raw of whole.split('\n')) {
    if (raw === '') continue
    try {
      const l = JSON.parse(raw) as Line
      if (typeof l.chunk === 'string' && typeof l.seq === 'number') chunks.push({ seq: l.seq, stream: l.stream ?? 'stdout', chunk: l.chunk, at: l.ts ?? '' })
    } catch { /* not a line of a log */ }
  }
  return { chunks, bytes: new TextEncoder().encode(whole).length }
}

export interface RunLog { transcript: Transcript; version: number; reading: boolean; error: unknown; raw: () => string; again: () => void }

/** useRunLog reads the log of a run from its beginning; while the run is live it follows the stream of events. A run that has not begun has none. */
export function useRunLog(run: string, live: boolean, begun: boolean): RunLog {
  const [version, setVersion] = useState(0)
  const [reading, setReading] = useState(true)
  const [error, setError] = useState<unknown>()
  const [attempt, setAttempt] = useState(0)
  const kept = useRef({ transcript: new Transcript(), raw: [] as string[], run })
  if (kept.current.run !== run) kept.current = { transcript: new Transcript(), raw: [], run }
  const connected = useStorePart(line, (l) => l.state === 'live')
  const offset = useRef(0)
  useEffect(() => { offset.current = 0 }, [run])

  useEffect(() => {
    const closed = new AbortController()
    const { transcript, raw } = kept.current
    let drawing: ReturnType<typeof setTimeout> | undefined
    let later: ReturnType<typeof setTimeout> | undefined
    let busy = false
    const draw = () => { drawing ??= setTimeout(() => { drawing = undefined; setVersion((v) => v + 1) }, redraw) }
    const take = (chunk: Chunk) => {
      if (chunk.seq <= transcript.last) return
      transcript.add(chunk)
      raw.push(chunk.chunk)
      draw()
    }
    const read = async () => {
      if (busy) return
      busy = true
      try {
        for (let more = true; more;) {
          const page = await get('/api/heartbeat-runs/{runId}/log', { path: { runId: run }, query: { offset: offset.current, limitBytes: pageBytes }, signal: closed.signal }) as LogPage
          const { chunks, bytes } = linesOf(page.content)
          chunks.forEach(take)
          offset.current += bytes
          more = page.nextOffset !== undefined && page.nextOffset !== null && bytes > 0
        }
        setError(undefined)
      } catch (e) {
        if (closed.signal.aborted) return
        if (!(e instanceof Refusal && e.status === 404)) setError(e)
        if (live) plan(retryAfter)
      } finally {
        busy = false
        if (!closed.signal.aborted) { setReading(false); draw() }
      }
    }
    const plan = (ms: number) => { later ??= setTimeout(() => { later = undefined; void read() }, ms) }
    if (begun) void read()
    else setReading(false)
    const end = live ? onRunLog(run, (chunk) => {
      // A frame after a gap, or one that was cut short, is read from the log.
      if (chunk.seq === transcript.last + 1 && !chunk.truncated) take(chunk)
      else if (chunk.seq > transcript.last) plan(pauseFor)
    }) : undefined
    return () => {
      closed.abort()
      clearTimeout(drawing)
      clearTimeout(later)
      end?.()
    }
  }, [run, live, begun, connected, attempt])

  return { transcript: kept.current.transcript, version, reading, error, raw: () => kept.current.raw.join(''), again: () => setAttempt((n) => n + 1) }
}
