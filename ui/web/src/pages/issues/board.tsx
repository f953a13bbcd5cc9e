// Issues as a board: a column for each state. A card is dragged, or moved with Shift and an arrow.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { useNames, type Issue } from '../../data'
import { number } from '../../format'
import { PriorityMark, StatusMark } from '../../parts/status'
import { Avatar } from '../../parts/values'
import { statusText, t } from '../../text/en'

const maxCards = 60 // of a column
const kind = 'application/x-issue'

/** columnsOf puts issues into their states, the newest change first. */
export function columnsOf<T extends { status: string; updatedAt: string | null }>(issues: readonly T[], states: readonly string[]): { status: string; issues: T[] }[] {
  return states.map((status) => ({ status, issues: issues.filter((i) => i.status === status).sort((a, b) => (b.updatedAt ?? '').localeCompare(a.updatedAt ?? '')) }))
}

export function Board({ issues, states, company, pathOf, onMove, onOpen, openKey, flashing }: { issues: readonly Issue[]; states: readonly string[]; company: string; pathOf: (i: Issue) => string; onMove: (i: Issue, status: string) => void; onOpen: (i: Issue) => void; openKey: string | undefined; flashing: ReadonlySet<string> }) {
  const names = useNames(company)
  const [over, setOver] = useState<string>()
  return (
    <div className="flex min-h-0 grow gap-3 overflow-x-auto p-3">
      {columnsOf(issues, states).map((column) => (
        <section key={column.status} aria-label={statusText(column.status)} data-column={column.status}
          onDragOver={(e) => { if (e.dataTransfer.types.includes(kind)) { e.preventDefault(); setOver(column.status) } }} onDragLeave={() => setOver((o) => (o === column.status ? undefined : o))}
          onDrop={(e) => { e.preventDefault(); setOver(undefined); const moved = issues.find((i) => i.id === e.dataTransfer.getData(kind)); if (moved && moved.status !== column.status) onMove(moved, column.status) }}
          className={`flex w-[264px] shrink-0 flex-col rounded border ${over === column.status ? 'border-accent bg-accent/10' : 'border-line bg-ground2'}`}>
          <header className="flex h-9 shrink-0 items-center px-3 text-sm"><StatusMark status={column.status} /><span className="ml-2 text-xs text-ink3">{number(column.issues.length)}</span></header>
          <ul className="flex min-h-0 grow flex-col gap-2 overflow-y-auto px-2 pb-2">
            {column.issues.slice(0, maxCards).map((i) => (
              <li key={i.id} draggable tabIndex={0} data-card={i.identifier} onDragStart={(e) => { e.dataTransfer.setData(kind, i.id); e.dataTransfer.effectAllowed = 'move' }} onClick={(e) => { if (!(e.target as Element).closest('a')) onOpen(i) }}
                onKeyDown={(e) => {
                  const to = states[states.indexOf(column.status) + (e.key === 'ArrowRight' ? 1 : -1)]
                  if (e.shiftKey && (e.key === 'ArrowRight' || e.key === 'ArrowLeft') && to) { e.preventDefault(); onMove(i, to) } else if (e.key === 'Enter' && e.target === e.currentTarget) onOpen(i)
                }}
                className={`cursor-grab rounded border bg-ground p-2 text-sm hover:border-line2 ${i.id === openKey ? 'border-accent' : 'border-line'} ${flashing.has(i.id) ? 'flash' : ''}`}>
                <span className="flex items-center gap-1.5 text-xs text-ink3">{i.identifier}<span className="ml-auto flex items-center gap-1.5"><PriorityMark priority={i.priority} bare />{i.assigneeAgentId && <Avatar id={i.assigneeAgentId} name={names(i.assigneeAgentId).name} size={18} />}</span></span>
                <Link to={pathOf(i)} draggable={false} className="line-clamp-2 break-words hover:underline">{i.title}</Link>
              </li>
            ))}
            {column.issues.length > maxCards && <li className="px-1 text-xs text-ink3">{t.issues.moreCards(number(column.issues.length - maxCards))}</li>}
          </ul>
        </section>
      ))}
    </div>
  )
}
