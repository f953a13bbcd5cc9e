// What an agent did in a month, counted from its runs.
export interface CountedRun { status: string; createdAt: string | null; startedAt?: string | null; finishedAt?: string | null }

export interface Day { date: string; good: number; bad: number; other: number }

const good = new Set(['succeeded'])
const bad = new Set(['failed', 'timed_out', 'interrupted'])

/** perDay counts runs by the day they began, in UTC. */
export function perDay(runs: readonly CountedRun[], days: readonly string[]): Day[] {
  const out = days.map((date): Day => ({ date, good: 0, bad: 0, other: 0 }))
  const at = new Map(out.map((d) => [d.date, d]))
  for (const r of runs) {
    const day = at.get((r.startedAt ?? r.createdAt ?? '').slice(0, 10))
    if (!day) continue
    if (good.has(r.status)) day.good++
    else if (bad.has(r.status)) day.bad++
    else day.other++
  }
  return out
}

/** nextWake is when its timer wakes an agent: undefined without one. */
export function nextWake(runtimeConfig: unknown, lastHeartbeatAt: string | null): { every: number; at: number | undefined } | undefined {
  const beat = (runtimeConfig as { heartbeat?: { enabled?: unknown; intervalSec?: unknown } } | null)?.heartbeat
  if (beat?.enabled !== true || typeof beat.intervalSec !== 'number' || beat.intervalSec <= 0) return undefined
  const last = lastHeartbeatAt ? Date.parse(lastHeartbeatAt) : NaN
  return { every: beat.intervalSec, at: Number.isNaN(last) ? undefined : last + beat.intervalSec * 1000 }
}
