// What is there when the thing itself is not: empty, loading, refused, lost.
import type { ReactNode } from 'react'
import { Lost, Refusal } from '../http'
import { t } from '../text/en'
import { Button } from './button'
import { Icon, type IconName } from './icons'
import { Id } from './values'

/** Says what would be here, why it is not, and has the one button. */
export function Empty({ icon, title, why, children }: { icon?: IconName; title: string; why?: ReactNode; children?: ReactNode }) {
  return (
    <div className="flex flex-col items-center gap-1 px-4 py-10 text-center">
      {icon && <span className="mb-2 text-ink3"><Icon name={icon} size={24} /></span>}
      <p className="font-strong">{title}</p>
      {why && <p className="max-w-md text-sm text-ink2">{why}</p>}
      {children && <div className="mt-3 flex gap-2">{children}</div>}
    </div>
  )
}

/** An error: what happened, what is kept, what to do. nameOf turns the owner of a conflict into a name. */
export function ErrorBox({ error, onRetry, nameOf }: { error: unknown; onRetry?: (() => void) | undefined; nameOf?: (id: string) => string }) {
  const said = explain(error, nameOf)
  return (
    <div role="alert" className="m-4 flex max-w-2xl flex-col gap-1 rounded border border-line2 bg-ground2 p-3 text-sm">
      <p className="font-strong text-bad">{said.title}</p>
      <p className="break-words text-ink">{said.what}</p>
      {said.do && <p className="text-ink2">{said.do}</p>}
      <div className="mt-1 flex items-center gap-3">
        {onRetry && <Button small onClick={onRetry}>{t.common.retry}</Button>}
        {said.request && <span className="text-xs text-ink3">{t.error.request} <Id id={said.request} /></span>}
      </div>
    </div>
  )
}

export function explain(error: unknown, nameOf: (id: string) => string = (id) => id): { title: string; what: string; do?: string; request?: string | undefined } {
  if (error instanceof Lost) return { title: t.error.title, what: t.error.lost }
  if (!(error instanceof Refusal)) return { title: t.error.title, what: error instanceof Error ? error.message : String(error) }
  const base = { what: error.message, request: error.request }
  if (error.status === 409) return { ...base, title: t.error.conflict, do: `${error.owner ? `${t.error.conflictOwner(nameOf(error.owner))} ` : ''}${t.error.kept}` }
  if (error.status === 403) return { ...base, title: t.error.refused, do: t.error.forbidden }
  if (error.status === 404) return { ...base, title: t.error.notFound, do: t.error.notFoundWhy }
  if (error.code === 'outcome_unknown' || error.code === 'timeout') return { ...base, title: t.error.refused, do: t.error.pending }
  if (error.momentary && error.retryAfter) return { ...base, title: t.error.refused, do: t.error.momentary(error.retryAfter) }
  return { ...base, title: error.status >= 500 ? t.error.title : t.error.refused }
}

/** Grey rows while the first answer is under way. */
export function Rows({ n = 8 }: { n?: number }) {
  return (
    <div aria-busy="true" aria-label={t.common.loading} className="flex flex-col">
      {Array.from({ length: n }, (_, i) => <div key={i} className="row flex items-center border-b border-line px-4"><span className="pulse h-3 rounded bg-ground3" style={{ width: `${30 + ((i * 37) % 45)}%` }} /></div>)}
    </div>
  )
}

interface Asked<T> { data: T | undefined; error: unknown; isPending: boolean; refetch: () => unknown }

/** Shows a query's data, or that it loads, or why it is not there. Data that was loaded stays while the node is lost. */
export function Loaded<T>({ of, children, rows }: { of: Asked<T>; children: (data: T) => ReactNode; rows?: number }) {
  if (of.data !== undefined) return <>{children(of.data)}</>
  if (of.error) return <ErrorBox error={of.error} onRetry={() => void of.refetch()} />
  return <Rows {...(rows === undefined ? {} : { n: rows })} />
}

/** A part of a page with a title. */
export function Section({ title, aside, children, id }: { title: string; aside?: ReactNode; children: ReactNode; id?: string }) {
  return (
    <section aria-label={title} id={id} className="min-w-0">
      <header className="flex min-h-9 items-center gap-2"><h2 className="grow text-sm font-strong text-ink2">{title}</h2>{aside}</header>
      {children}
    </section>
  )
}

/** Facts as pairs of a name and a value. */
export function Facts({ rows }: { rows: readonly (readonly [string, ReactNode] | null | undefined | false)[] }) {
  // A row without a name says more of the one above.
  const groups: { name: string; values: ReactNode[] }[] = []
  for (const row of rows) {
    if (!row) continue
    const last = groups.at(-1)
    if (row[0] === '' && last) last.values.push(row[1])
    else groups.push({ name: row[0], values: [row[1]] })
  }
  return (
    <dl className="grid grid-cols-[112px_minmax(0,1fr)] gap-x-3 text-sm">
      {groups.map(({ name, values }) => (
        <div key={name} className="col-span-2 grid grid-cols-subgrid"><dt className="flex min-h-8 items-center text-ink3">{name}</dt>{values.map((value, i) => <dd key={i} className="col-start-2 grid min-h-8 min-w-0 items-center"><div className="min-w-0 break-words">{value}</div></dd>)}</div>
      ))}
    </dl>
  )
}
