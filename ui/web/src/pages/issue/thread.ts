// The thread of an issue: comments, runs and changes of state in the order of time.
import type { Activity, Comment } from '../../data'
import type { Schemas } from '../../http'
import { words } from '../../format'

export type IssueRun = Schemas['ApiIssueRun']
export type Entry =
  | { kind: 'comment'; at: string; id: string; comment: Comment }
  | { kind: 'run'; at: string; id: string; run: IssueRun }
  | { kind: 'change'; at: string; id: string; change: Activity; text: string }

// Actions that the thread tells by what they made.
const told = new Set(['issue.comment_added', 'issue.comment.created', 'heartbeat.invoked'])

export function threadOf(comments: readonly Comment[], runs: readonly IssueRun[], activity: readonly Activity[]): Entry[] {
  const entries: Entry[] = [
    ...comments.map((comment): Entry => ({ kind: 'comment', at: comment.createdAt ?? '', id: comment.id, comment })),
    ...runs.map((run): Entry => ({ kind: 'run', at: run.startedAt ?? run.createdAt ?? '', id: run.runId, run })),
    ...activity.filter((a) => !told.has(a.action) && a.entityType === 'issue').map((change): Entry => ({ kind: 'change', at: change.createdAt ?? '', id: change.id, change, text: changeText(change) })),
  ]
  return entries.sort((a, b) => a.at.localeCompare(b.at) || a.id.localeCompare(b.id))
}

/** changeText says in words what an entry of the activity changed. */
export function changeText(a: Pick<Activity, 'action' | 'details'>): string {
  const d = (a.details ?? {}) as Record<string, unknown>
  const before = (d['_previous'] ?? d['previous'] ?? {}) as Record<string, unknown>
  const parts: string[] = []
  for (const name of ['status', 'priority', 'title']) {
    if (a.action === 'issue.updated' && typeof d[name] === 'string') parts.push(`${name}${typeof before[name] === 'string' ? ` ${words(String(before[name]))}` : ''} → ${name === 'title' ? String(d[name]) : words(String(d[name]))}`)
  }
  return parts.length > 0 ? parts.join(', ') : words(a.action.replace(/^issue\./, ''))
}
