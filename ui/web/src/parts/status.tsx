import type { ReactNode } from 'react'
import { statusText, t } from '../text/en'

/** What a status means: five meanings and nothing. Each has a colour and, with its shape, is told without one. */
export type Meaning = 'ok' | 'work' | 'wait' | 'warn' | 'bad' | 'none'
type Shape = 'ring' | 'dashed' | 'half' | 'full' | 'check' | 'cross' | 'bars' | 'bang'

const marks: Record<string, [Meaning, Shape]> = {
  backlog: ['none', 'dashed'], todo: ['none', 'ring'], in_progress: ['work', 'half'], in_review: ['wait', 'half'], blocked: ['bad', 'bang'], done: ['ok', 'check'], cancelled: ['none', 'cross'],
  idle: ['none', 'ring'], active: ['ok', 'full'], running: ['work', 'half'], paused: ['warn', 'bars'], error: ['bad', 'bang'], terminated: ['none', 'cross'], pending_approval: ['wait', 'dashed'],
  queued: ['wait', 'dashed'], succeeded: ['ok', 'check'], failed: ['bad', 'bang'], timed_out: ['bad', 'bang'], scheduled_retry: ['warn', 'dashed'], pending: ['wait', 'dashed'], approved: ['ok', 'check'],
  rejected: ['bad', 'cross'], revision_requested: ['warn', 'half'], planned: ['none', 'ring'], achieved: ['ok', 'check'], completed: ['ok', 'check'], archived: ['none', 'cross'],
  alive: ['ok', 'full'], dead: ['bad', 'bang'], revoked: ['none', 'cross'], open: ['ok', 'full'], cordoned: ['warn', 'bars'], draining: ['warn', 'half'],
  ok: ['ok', 'check'], note: ['wait', 'ring'], warn: ['warn', 'bang'], bad: ['bad', 'bang'], warning: ['warn', 'bang'], problem: ['bad', 'bang'],
  starting: ['wait', 'dashed'], suspended: ['warn', 'bars'], stopping: ['warn', 'half'], exited: ['none', 'cross'], unreachable: ['bad', 'bang'], installed: ['none', 'ring'], stopped: ['warn', 'bars'],
  permit: ['ok', 'check'], escalate: ['wait', 'dashed'], deny: ['bad', 'cross'], advisory: ['none', 'ring'], blocking: ['wait', 'bars'], critical: ['bad', 'bang'], proposed: ['wait', 'dashed'], in_force: ['ok', 'check'], withdrawn: ['none', 'cross'],
}
export const meaningOf = (status: string): Meaning => marks[status]?.[0] ?? 'none'
export const inkOf: Record<Meaning, string> = { ok: 'text-ok', work: 'text-work', wait: 'text-wait', warn: 'text-warn', bad: 'text-bad', none: 'text-ink3' }
export const fillOf: Record<Meaning, string> = { ok: 'bg-ok', work: 'bg-work', wait: 'bg-wait', warn: 'bg-warn', bad: 'bg-bad', none: 'bg-line2' }

function shape(name: Shape) {
  const ring = <circle cx="7" cy="7" r="5.25" />
  switch (name) {
    case 'ring': return ring
    case 'dashed': return <circle cx="7" cy="7" r="5.25" strokeDasharray="2.4 1.8" />
    case 'half': return <>{ring}<path d="M7 3.6a3.4 3.4 0 0 1 0 6.8z" fill="currentColor" stroke="none" /></>
    case 'full': return <circle cx="7" cy="7" r="4" fill="currentColor" stroke="none" />
    case 'check': return <><circle cx="7" cy="7" r="6" fill="currentColor" stroke="none" /><path d="M4.4 7.2 6.3 9l3.4-3.8" stroke="var(--ground)" strokeWidth="1.6" /></>
    case 'cross': return <>{ring}<path d="M5.2 5.2l3.6 3.6M8.8 5.2 5.2 8.8" /></>
    case 'bars': return <>{ring}<path d="M5.7 5v4M8.3 5v4" /></>
    case 'bang': return <><circle cx="7" cy="7" r="6" fill="currentColor" stroke="none" /><path d="M7 3.9v3.6M7 9.8v.1" stroke="var(--ground)" strokeWidth="1.7" /></>
  }
}

/** A status: shape, colour and word. Without the word it is still named for a screen reader. */
export function StatusMark({ status, bare, label }: { status: string; bare?: boolean; label?: string }) {
  const [meaning, form] = marks[status] ?? ['none', 'ring']
  const word = label ?? statusText(status)
  return (
    <span className="inline-flex min-w-0 max-w-full items-center gap-1.5 whitespace-nowrap align-middle text-sm" title={bare ? word : undefined}>
      <svg width="14" height="14" viewBox="0 0 14 14" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" className={`shrink-0 ${inkOf[meaning]}`} role={bare ? 'img' : undefined} aria-label={bare ? word : undefined} aria-hidden={bare ? undefined : true}>{shape(form)}</svg>
      {!bare && <span className="truncate">{word}</span>}
    </span>
  )
}

const bars: Record<string, number> = { critical: 4, high: 3, medium: 2, low: 1 }

export function PriorityMark({ priority, bare }: { priority: string; bare?: boolean }) {
  const n = bars[priority] ?? 0
  const word = t.priority[priority] ?? priority
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap align-middle text-sm" title={bare ? word : undefined}>
      <svg width="14" height="14" viewBox="0 0 14 14" className={`shrink-0 ${n === 4 ? 'text-bad' : 'text-ink2'}`} role={bare ? 'img' : undefined} aria-label={bare ? word : undefined} aria-hidden={bare ? undefined : true}>
        {[0, 1, 2, 3].map((i) => <rect key={i} x={1 + i * 3.2} y={9.5 - i * 2.4} width="2.2" height={3.5 + i * 2.4} rx="0.6" fill={i < n ? 'currentColor' : 'var(--line)'} />)}
      </svg>
      {!bare && word}
    </span>
  )
}

export function Badge({ children, meaning = 'none' }: { children: ReactNode; meaning?: Meaning }) {
  return <span className={`inline-flex h-5 items-center whitespace-nowrap rounded border border-line px-1.5 text-xs ${meaning === 'none' ? 'text-ink2' : inkOf[meaning]}`}>{children}</span>
}

/** A count in the rail or on a tab. */
export const Count = ({ n, loud }: { n: number; loud?: boolean }) => (n > 0 ? <span className={`min-w-5 rounded-full px-1.5 text-center text-xs leading-5 ${loud ? 'bg-accent font-strong text-onaccent' : 'bg-ground3 text-ink2'}`}>{n > 999 ? '999+' : n}</span> : null)
