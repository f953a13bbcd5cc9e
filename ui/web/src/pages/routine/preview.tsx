// The next times of a schedule: asked of the node, as its clock and its time zones decide.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { get, Refusal } from '../../http'
import { Time } from '../../parts/values'
import { tp } from '../../text/en.pages'
import { inWords } from './words'

const settle = 500 // ms without typing, before the node is asked

/** zones are those that the browser knows, its own first. */
export function zones(): string[] {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone
  return [...new Set(['UTC', own, ...Intl.supportedValuesOf('timeZone')])]
}

export function useNext(cron: string, zone: string, enabled = true) {
  return useQuery({ queryKey: ['schedule', cron, zone], enabled: enabled && cron.trim() !== '', retry: 0, staleTime: 60_000, refetchInterval: 60_000,
    queryFn: ({ signal }) => get('/api/v1/schedules/next', { query: { cronExpression: cron, timezone: zone, count: 10 }, signal }) })
}

/** A schedule as a sentence, with its zone. */
export function When({ cron, zone }: { cron: string; zone: string | null }) {
  const said = inWords(cron)
  return <span title={cron}>{said ?? <code className="font-mono text-xs">{cron}</code>} <span className="text-ink3">{zone ?? 'UTC'}</span></span>
}

const weekday = (local: string) => new Intl.DateTimeFormat(undefined, { weekday: 'short', timeZone: 'UTC' }).format(new Date(`${local.slice(0, 19)}Z`))

/** Times as lines: on the clocks of the zone, and how far away. */
export function Times({ times }: { times: readonly { at: string | null; local: string }[] }) {
  return (
    <ol aria-label={tp.routine.next} className="text-sm">
      {times.map((x) => <li key={x.local} className="flex min-h-7 items-center gap-3"><span className="w-9 text-ink3">{weekday(x.local)}</span><span>{x.local.slice(0, 10)}</span><span className="font-strong">{x.local.slice(11, 16)}</span><span className="ml-auto text-xs text-ink3"><Time at={x.at} /></span></li>)}
    </ol>
  )
}

/** What is typed, and when it fires; asked once nothing is typed for a while. */
export function Preview({ cron, zone }: { cron: string; zone: string }) {
  const [asked, setAsked] = useState({ cron, zone })
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ cron, zone }), settle)
    return () => clearTimeout(timer)
  }, [cron, zone])
  const next = useNext(asked.cron, asked.zone)
  if (asked.cron.trim() === '') return null
  return (
    <div aria-live="polite" className="rounded border border-line px-3 py-2">
      <p className="mb-1 text-xs text-ink3">{inWords(asked.cron) ?? tp.routine.next}</p>
      {next.error ? <p className="text-sm text-bad">{next.error instanceof Refusal ? next.error.message : String(next.error)}</p> : next.data ? <Times times={next.data} /> : <p className="text-sm text-ink3">{tp.routine.looking}</p>}
    </div>
  )
}
