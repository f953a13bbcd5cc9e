// Small charts in SVG. Each is an image with words for who does not see it: the words are the numbers.
import { rem } from './scale'
import type { Meaning } from './status'
import { fillOf } from './status'

const colour: Record<Meaning, string> = { ok: 'var(--ok)', work: 'var(--work)', wait: 'var(--wait)', warn: 'var(--warn)', bad: 'var(--bad)', none: 'var(--line2)' }
export interface Part { label: string; value: number; meaning: Meaning }

/** One bar, divided: states with their counts. */
export function StackBar({ parts, label, legend = true }: { parts: readonly Part[]; label: string; legend?: boolean }) {
  const total = parts.reduce((sum, p) => sum + p.value, 0)
  const shown = parts.filter((p) => p.value > 0)
  return (
    <div className="flex flex-col gap-2">
      <div role="img" aria-label={`${label}: ${parts.map((p) => `${p.value} ${p.label}`).join(', ')}`} className="flex h-2 gap-px overflow-hidden rounded-full bg-ground3">
        {shown.map((p) => <span key={p.label} title={`${p.value} ${p.label}`} className={fillOf[p.meaning]} style={{ width: `${(100 * p.value) / total}%` }} />)}
      </div>
      {legend && (
        <ul aria-hidden="true" className="flex flex-wrap gap-x-4 gap-y-1 text-xs text-ink2">
          {parts.map((p) => <li key={p.label} className="inline-flex items-center gap-1.5"><span className={`size-2 rounded-full ${fillOf[p.meaning]}`} /><span className="text-ink">{p.value}</span>{p.label}</li>)}
        </ul>
      )}
    </div>
  )
}

/** How much of something is used: red above all of it, unless it is good to have much. */
export function Bar({ value, of, label, forecast, good }: { value: number; of: number; label: string; forecast?: number; good?: boolean }) {
  const part = of > 0 ? value / of : 0
  const later = of > 0 && forecast !== undefined ? Math.min(100, (100 * forecast) / of) : 0
  return (
    <div role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={of} aria-valuenow={Math.min(value, of)} aria-valuetext={`${Math.round(part * 100)} %`} className="relative h-1.5 overflow-hidden rounded-full bg-ground3">
      {later > part * 100 && <span className={`absolute inset-y-0 left-0 opacity-30 ${(forecast ?? 0) > of ? 'bg-warn' : 'bg-accent'}`} style={{ width: `${later}%` }} />}
      <span className={`relative block h-full rounded-full ${good ? 'bg-accent' : part >= 1 ? 'bg-bad' : part >= 0.8 ? 'bg-warn' : 'bg-accent'}`} style={{ width: `${Math.min(100, part * 100)}%` }} />
    </div>
  )
}

export interface Point { label: string; value: number; text?: string }

/** A line over time, to be read at a glance; its points are named on hover. */
export function Line({ points, label, height = 40, meaning = 'work' }: { points: readonly Point[]; label: string; height?: number; meaning?: Meaning }) {
  const top = Math.max(1, ...points.map((p) => p.value))
  const x = (i: number) => (points.length < 2 ? 50 : (100 * i) / (points.length - 1))
  const y = (v: number) => height - 3 - ((height - 6) * v) / top
  const path = points.map((p, i) => `${i === 0 ? 'M' : 'L'}${x(i).toFixed(2)} ${y(p.value).toFixed(2)}`).join('')
  return (
    <svg role="img" aria-label={`${label}: ${points.map((p) => `${p.label} ${p.text ?? p.value}`).join(', ')}`} viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" width="100%" style={{ height: rem(height) }} className="block overflow-visible">
      {points.length > 1 && <path d={`${path}L100 ${height}L0 ${height}Z`} fill={colour[meaning]} opacity="0.1" />}
      <path d={path} fill="none" stroke={colour[meaning]} strokeWidth="1.5" vectorEffect="non-scaling-stroke" strokeLinejoin="round" />
      {points.map((p, i) => <rect key={p.label} x={x(i) - 50 / points.length} y="0" width={100 / points.length} height={height} fill="transparent"><title>{`${p.label}: ${p.text ?? p.value}`}</title></rect>)}
    </svg>
  )
}

export interface Stack { label: string; parts: readonly Part[]; text?: string }

/** Bars over time, each divided by meaning. */
export function StackedBars({ bars, label, height = 64, axis = true }: { bars: readonly Stack[]; label: string; height?: number; axis?: boolean }) {
  const total = (b: Stack) => b.parts.reduce((sum, p) => sum + p.value, 0)
  const top = Math.max(1, ...bars.map(total))
  const words = bars.filter((b) => total(b) > 0).map((b) => `${b.label}: ${b.text ?? b.parts.filter((p) => p.value > 0).map((p) => `${p.value} ${p.label}`).join(', ')}`)
  return (
    <figure role="img" aria-label={`${label}. ${words.join('; ')}`} className="m-0">
      <div className="flex items-end gap-[3px]" style={{ height: rem(height) }}>
        {bars.map((b) => (
          <div key={b.label} title={`${b.label}: ${b.text ?? (b.parts.filter((p) => p.value > 0).map((p) => `${p.value} ${p.label}`).join(', ') || '0')}`} className="flex h-full min-w-0 grow flex-col justify-end gap-px">
            {total(b) === 0 && <span className="h-px bg-line2" />}
            {[...b.parts].reverse().map((p) => p.value > 0 && <span key={p.label} className={`${fillOf[p.meaning]} rounded-[1px]`} style={{ height: `${(100 * p.value) / top}%`, minHeight: 2 }} />)}
          </div>
        ))}
      </div>
      {axis && bars.length > 1 && <div aria-hidden="true" className="mt-1 flex justify-between text-xs text-ink3"><span>{bars[0]?.label}</span><span>{bars[bars.length - 1]?.label}</span></div>}
    </figure>
  )
}

/** Steps of the accent for things that have no meaning of their own: the first is the largest. */
export const tones = [100, 74, 54, 38, 25].map((part) => `color-mix(in oklch, var(--accent) ${part}%, var(--ground))`)

export interface Band { label: string; value: number; text?: string }

/** Bars over time, each divided into bands of tones; more bands than tones are grey. A click picks a bar. */
export function Stacks({ bars, label, height = 120, onPick, picked }: { bars: readonly { label: string; parts: readonly Band[] }[]; label: string; height?: number; onPick?: (label: string) => void; picked?: string | undefined }) {
  const total = (b: { parts: readonly Band[] }) => b.parts.reduce((sum, p) => sum + p.value, 0)
  const top = Math.max(1, ...bars.map(total))
  const said = (b: (typeof bars)[number]) => `${b.label}: ${b.parts.filter((p) => p.value > 0).map((p) => `${p.label} ${p.text ?? p.value}`).join(', ') || '0'}`
  return (
    <figure aria-label={label} className="m-0">
      <div className="flex items-end gap-[3px]" style={{ height: `max(${rem(height)},16vh)` }}>
        {bars.map((b) => (
          <button key={b.label} type="button" title={said(b)} aria-label={said(b)} aria-pressed={picked === b.label} onClick={() => onPick?.(b.label)}
            className={`flex h-full min-w-0 grow flex-col justify-end gap-px rounded-[2px] hover:bg-ground2 ${picked && picked !== b.label ? 'opacity-40' : ''}`}>
            {total(b) === 0 ? <span className="h-px w-full bg-line2" /> : [...b.parts.entries()].reverse().map(([i, p]) => p.value > 0 && <span key={p.label} className="w-full rounded-[1px]" style={{ height: `${(100 * p.value) / top}%`, minHeight: 2, background: tones[i] ?? 'var(--line2)' }} />)}
          </button>
        ))}
      </div>
      {bars.length > 1 && <div aria-hidden="true" className="mt-1 flex justify-between text-xs text-ink3"><span>{bars[0]?.label}</span><span>{bars[bars.length - 1]?.label}</span></div>}
    </figure>
  )
}
