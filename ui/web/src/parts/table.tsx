// The one list of the board: a grid of rows, virtual above a hundred, moved in with j and k. It is exported as CSV
// from its head, and printed whole.
import { useVirtualizer } from '@tanstack/react-virtual'
import { isValidElement, memo, useEffect, useMemo, useRef, useState, type ReactNode, type RefObject } from 'react'
import { flushSync } from 'react-dom'
import { exactMoney, lasting, words } from '../format'
import { statusText, t } from '../text/en'
import { forList, typing } from '../keys'
import { Icon } from './icons'
import { rem, useScale } from './scale'
import { PriorityMark, StatusMark } from './status'
import { Avatar, Id, Lasting, Money, Time, Who } from './values'

export interface Column<T> {
  id: string
  head: string
  /** A width of CSS grid: '88px', 'minmax(0,1fr)'. One of 60 px or more gets its part of what room is left. */
  width: string
  cell: (row: T) => ReactNode
  /** The head is a button that sorts by this. */
  sort?: (a: T, b: T) => number
  /** Not shown below 600 px ('tab') or 900 px ('desk'). */
  from?: 'tab' | 'desk' | 'wide'
  right?: boolean
  /** What stands in an export, where it is not the text of the cell. */
  text?: (row: T) => string
}

interface TableProps<T> {
  label: string
  rows: readonly T[]
  columns: readonly Column<T>[]
  keyOf: (row: T) => string
  /** A click or Enter. */
  onOpen?: (row: T) => void
  /** The row that is open in the drawer. */
  openKey?: string | undefined
  selected?: ReadonlySet<string>
  onSelect?: (keys: ReadonlySet<string>) => void
  /** Further keys for the row under the cursor: { e: …, a: … }. */
  onKey?: Record<string, (row: T) => void>
  /** Rows that changed just now: they flash once. */
  flashing?: ReadonlySet<string>
  empty?: ReactNode
  dense?: boolean
}

const virtualFrom = 100
const narrow = { tab: 600, desk: 900, wide: 1280 }

const rail = 232

// A column that is a number, a name or a state needs this much of what a title gets.
const share = (px: number) => (px < 60 ? rem(px) : `minmax(${rem(px)},${(px / 700).toFixed(3)}fr)`)
/** trackOf is the width of a column as this screen has it. */
export const trackOf = (width: string) => (/^\d+px$/.test(width) ? share(parseInt(width)) : width.replace(/(\d+)px/g, (_, px) => rem(Number(px))))

/** useWidth is how wide the window would be if the table had all of it: a drawer beside it hides columns too. */
function useWidth(of: RefObject<HTMLDivElement | null>, scale: number): number {
  const [width, setWidth] = useState(() => innerWidth)
  useEffect(() => {
    const told = () => setWidth(Math.min(innerWidth, (of.current?.clientWidth ?? innerWidth) / scale + (innerWidth >= narrow.desk ? rail : 0)))
    const watch = new ResizeObserver(told)
    if (of.current) watch.observe(of.current)
    addEventListener('resize', told)
    return () => { watch.disconnect(); removeEventListener('resize', told) }
  }, [of, scale])
  return width
}

/** usePrinting is true while the page is printed: all rows are there then. */
function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false)
  useEffect(() => {
    const begin = () => flushSync(() => setPrinting(true))
    const end = () => setPrinting(false)
    addEventListener('beforeprint', begin)
    addEventListener('afterprint', end)
    return () => { removeEventListener('beforeprint', begin); removeEventListener('afterprint', end) }
  }, [])
  return printing
}

export function Table<T>({ label, rows, columns, keyOf, onOpen, openKey, selected, onSelect, onKey, flashing, empty, dense }: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null)
  const scale = useScale()
  const width = useWidth(box, scale)
  const [order, setOrder] = useState<{ id: string; down: boolean } | undefined>()
  const shown = useMemo(() => columns.filter((c) => !c.from || width >= narrow[c.from]), [columns, width])
  const sorted = useMemo(() => {
    const by = columns.find((c) => c.id === order?.id)?.sort
    if (!by) return rows
    const all = [...rows].sort(by)
    return order?.down ? all.reverse() : all
  }, [rows, order, columns])
  const [cursor, setCursor] = useState<string | undefined>()
  const scroll = useRef<HTMLDivElement>(null)
  const height = dense ? 32 : 36
  const virtual = sorted.length > virtualFrom && !usePrinting()
  const list = useVirtualizer({ count: sorted.length, getScrollElement: () => scroll.current, estimateSize: () => height * scale, overscan: 12, enabled: virtual })
  useEffect(() => list.measure(), [list, scale, height])
  const at = Math.max(-1, sorted.findIndex((r) => keyOf(r) === (cursor ?? openKey)))

  const toggle = (key: string) => {
    if (!onSelect) return
    const next = new Set(selected)
    if (!next.delete(key)) next.add(key)
    onSelect(next)
  }
  const move = (to: number) => {
    const row = sorted[to]
    if (!row) return
    setCursor(keyOf(row))
    if (virtual) list.scrollToIndex(to)
    else scroll.current?.querySelector(`[data-index="${to}"]`)?.scrollIntoView({ block: 'nearest' })
  }
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return
      const row = sorted[at]
      if (e.key === 'j' || e.key === 'ArrowDown') move(Math.min(at + 1, sorted.length - 1))
      else if (e.key === 'k' || e.key === 'ArrowUp') move(Math.max(at - 1, 0))
      else if (e.key === 'x' && row && onSelect) toggle(keyOf(row))
      else if (e.key === 'Enter' && row && onOpen && forList(e.target as Element, scroll.current)) onOpen(row)
      else if (row && onKey?.[e.key]) onKey[e.key]?.(row)
      else return
      e.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  })

  const tracks = [...(onSelect ? ['20px'] : []), ...shown.map((c) => c.width)].map(trackOf).join(' ')
  const grid = { gridTemplateColumns: tracks }
  const act = useRef<Acts<T>>({ pick: () => undefined, toggle })
  act.current = { pick: (row, key, open) => { setCursor(key); if (open) onOpen?.(row) }, toggle }
  const rowOf = (row: T, i: number, top?: number) => {
    const key = keyOf(row)
    return <Line key={key} row={row} id={key} index={i} top={top} height={height} tracks={tracks} columns={shown as readonly Column<unknown>[]} act={act as RefObject<Acts<unknown>>}
      opens={!!onOpen} selects={!!onSelect} marked={selected?.has(key) ?? false} marking={!!selected?.size} open={key === openKey} here={i === at} flash={flashing?.has(key) ?? false} />
  }
  const all = selected !== undefined && selected.size > 0 && selected.size === sorted.length
  return (
    <div className="relative flex min-h-0 grow flex-col">
      {sorted.length > 0 && <button type="button" aria-label={`${t.issues.csv}: ${label}`} title={t.issues.csv} onClick={() => download(fileOf(label), csvOf(sorted, columns))} className="no-print absolute right-0.5 top-1 z-10 inline-flex size-6 items-center justify-center rounded text-ink3 hover:bg-ground3 hover:text-ink"><Icon name="export" size={12} /></button>}
    <div ref={box} role="table" aria-label={label} aria-rowcount={sorted.length + 1} className="flex min-h-0 grow flex-col">
      <div role="rowgroup" className="relative shrink-0">
        <div role="row" style={grid} className={`${line} h-8 bg-ground text-xs text-ink3`}>
          {onSelect && <span role="columnheader">{sorted.length > 0 && <input type="checkbox" aria-label={t.part.selectAll} checked={all} onChange={() => onSelect(all ? new Set() : new Set(sorted.map(keyOf)))} className="block size-4 accent-(--accent)" />}</span>}
          {shown.map((c) => (
            <div key={c.id} role="columnheader" aria-sort={order?.id === c.id ? (order.down ? 'descending' : 'ascending') : undefined} className={`min-w-0 truncate ${c.right ? 'text-right' : ''}`}>
              {c.sort ? (
                <button type="button" aria-label={c.head === '' ? `${t.part.sort}: ${words(c.id)}` : undefined} className="inline-flex items-center gap-1 hover:text-ink" onClick={() => setOrder((o) => (o?.id !== c.id ? { id: c.id, down: false } : o.down ? undefined : { id: c.id, down: true }))}>
                  {c.head}{order?.id === c.id && <span className={order.down ? '' : 'rotate-180'}><Icon name="down" size={10} /></span>}
                </button>
              ) : c.head}
            </div>
          ))}
        </div>
      </div>
      <div ref={scroll} role={sorted.length === 0 ? undefined : 'rowgroup'} tabIndex={sorted.length === 0 ? undefined : 0} className="min-h-0 grow overflow-y-auto outline-offset-[-2px]">
        {sorted.length === 0 ? empty : virtual ? (
          <div role="presentation" style={{ height: list.getTotalSize(), position: 'relative' }}>
            {list.getVirtualItems().map((v) => { const row = sorted[v.index]; return row === undefined ? null : rowOf(row, v.index, v.start) })}
          </div>
        ) : sorted.map((row, i) => rowOf(row, i))}
      </div>
    </div>
    </div>
  )
}

const line = 'grid items-center gap-3 border-b border-line pl-4 pr-7'

interface Acts<T> { pick: (row: T, key: string, open: boolean) => void; toggle: (key: string) => void }
interface LineProps {
  row: unknown
  id: string
  index: number
  top: number | undefined
  height: number
  tracks: string
  columns: readonly Column<unknown>[]
  /** What a click does now. It is read when it comes, so that a line is not drawn again for it. */
  act: RefObject<Acts<unknown>>
  opens: boolean
  selects: boolean
  marked: boolean
  marking: boolean
  open: boolean
  here: boolean
  flash: boolean
}

/** A line of the table. While one scrolls, those that are on screen already are not drawn again. */
const Line = memo(function Line({ row, id, index, top, height, tracks, columns, act, opens, selects, marked, marking, open, here, flash }: LineProps) {
  return (
    <div role="row" aria-rowindex={index + 2} aria-selected={selects ? marked : undefined} aria-current={here || undefined} data-index={index} data-key={id}
      style={{ gridTemplateColumns: tracks, height: rem(height), ...(top === undefined ? {} : { position: 'absolute', top, left: 0, right: 0 }) }}
      onClick={(e) => act.current.pick(row, id, !(e.target as Element).closest('a, button, input, select'))}
      className={`${line} group text-base ${flash ? 'flash' : ''} ${opens ? 'cursor-pointer' : ''} ${marked ? 'bg-accent/10' : open ? 'bg-ground3' : here ? 'bg-ground2' : 'hover:bg-ground2'} ${here ? 'shadow-[inset_2px_0_0_var(--accent)]' : ''}`}>
      {selects && <span role="cell"><input type="checkbox" tabIndex={-1} aria-label={`${t.keys.select} ${nameIn(columns, row) || id}`} checked={marked} onChange={() => act.current.toggle(id)} className={`block size-4 accent-(--accent) ${marked || marking ? '' : 'opacity-0 focus:opacity-100 group-hover:opacity-100'}`} /></span>}
      {columns.map((c) => <div key={c.id} role="cell" className={`min-w-0 truncate ${c.right ? 'text-right' : ''}`}>{c.cell(row)}</div>)}
    </div>
  )
})

/** plain is the text of a cell: what its marks, names, times and money say, exactly. */
export function plain(node: ReactNode): string {
  if (node === null || node === undefined || typeof node === 'boolean') return ''
  if (Array.isArray(node)) return node.map(plain).join(node.every((n) => isValidElement(n)) ? ' ' : '')
  if (!isValidElement(node)) return typeof node === 'string' || typeof node === 'number' ? String(node) : ''
  const p = node.props as { at?: string | null; from?: string | null; to?: string | null; cents?: number; status?: string; label?: string; priority?: string; name?: string; id?: string; children?: ReactNode }
  switch (node.type) {
    case Time: return p.at ?? ''
    case Lasting: return p.from && p.to ? lasting(Date.parse(p.to) - Date.parse(p.from)) : p.from ?? ''
    case Money: return exactMoney(p.cents ?? 0)
    case StatusMark: return p.label ?? statusText(p.status ?? '')
    case PriorityMark: return t.priority[p.priority ?? ''] ?? p.priority ?? ''
    case Who: return p.name ?? ''
    case Id: return p.id ?? ''
    case Avatar: return ''
  }
  return plain(p.children)
}

/** nameIn is what a row is called: its title or name. */
const nameIn = (columns: readonly Column<unknown>[], row: unknown) => { const c = columns.find((k) => k.id === 'title' || k.id === 'name'); return c ? c.text?.(row) ?? plain(c.cell(row)) : '' }

const fileOf = (label: string) => `${[location.pathname.split('/')[1] ?? '', label].filter(Boolean).join('-').toLowerCase().replace(/[^a-z0-9-]+/g, '-')}.csv`

/** csvOf writes rows for a spreadsheet, with the columns that a narrow screen hides; a text that it would take for a formula is quoted with '. */
export function csvOf<T>(rows: readonly T[], columns: readonly Column<T>[]): string {
  const cell = (text: string) => `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replace(/"/g, '""')}"`
  const all = columns.map((c) => ({ head: c.head || c.id, named: c.head !== '', texts: rows.map((row) => (c.text ? c.text(row) : plain(c.cell(row)))) }))
  const kept = all.filter((c) => c.named || c.texts.some((text) => text !== '')) // a column of buttons has no text
  return [kept.map((c) => cell(c.head)), ...rows.map((_, i) => kept.map((c) => cell(c.texts[i] ?? '')))].map((l) => l.join(',')).join('\r\n') + '\r\n'
}

export function download(name: string, text: string, kind = 'text/csv'): void {
  const url = URL.createObjectURL(new Blob([text], { type: kind }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
