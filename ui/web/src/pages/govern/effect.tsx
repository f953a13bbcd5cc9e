// The effect of an act: five dimensions from 0 to 1, drawn against the threshold of its place.
import type { Schemas } from '../../http'
import { tr } from '../../text/en.rooms'

export type Effect = Schemas['ApiEffect']
export const dimensions = ['risk', 'fairness', 'privacy', 'novelty', 'security'] as const

/** level writes a level without needless digits: 0.35, 0, 1.3. */
export const level = (n: number) => String(Math.round(n * 1000) / 1000)

/** saidOf tells an effect in words. */
export function saidOf(effect: Effect, magnitude: number, threshold: number): string {
  return tr.decisions.said(dimensions.map((d) => `${tr.decisions.dimension[d]} ${level(effect[d])}`).join(', '), level(magnitude), level(threshold))
}

const fill = (over: boolean) => (over ? 'bg-warn' : 'bg-accent')
const part = (n: number) => `${Math.max(0, Math.min(1, n)) * 100}%`

/** Five bars in a row of a list; the line is the threshold, which their magnitude is compared with. */
export function EffectBars({ effect, magnitude, threshold }: { effect: Effect; magnitude: number; threshold: number }) {
  const said = saidOf(effect, magnitude, threshold)
  return (
    <span className="inline-flex items-center gap-2 align-middle">
      <span role="img" aria-label={said} title={said} className="relative inline-flex h-5 items-end gap-[2px]">
        {dimensions.map((d) => <span key={d} className={`w-[5px] rounded-[1px] ${effect[d] > 0 ? fill(effect[d] > threshold) : 'bg-line2'}`} style={{ height: effect[d] > 0 ? part(Math.max(effect[d], 0.08)) : 1 }} />)}
        <span className="absolute inset-x-[-2px] border-t border-dashed border-ink3" style={{ bottom: part(threshold) }} />
      </span>
      <span aria-hidden="true" className={`text-xs ${magnitude > threshold ? 'font-strong text-warn' : 'text-ink3'}`}>{level(magnitude)}</span>
    </span>
  )
}

const most = Math.sqrt(dimensions.length) // the magnitude of an effect that is 1 in everything

/** The same, large: one line a dimension with its number, and the magnitude on its own scale. */
export function EffectLines({ effect, magnitude, threshold }: { effect: Effect; magnitude: number; threshold: number }) {
  const line = (name: string, value: number, of: number, at: number) => (
    <li key={name} className="grid h-7 grid-cols-[80px_minmax(0,1fr)_44px] items-center gap-3">
      <span className={name === tr.decisions.magnitude ? 'font-strong' : 'text-ink2'}>{name}</span>
      <span aria-hidden="true" className="relative h-2 rounded-full bg-ground3">
        <span className={`absolute inset-y-0 left-0 rounded-full ${fill(value > at)}`} style={{ width: part(value / of) }} />
        <span className="absolute -inset-y-1 border-l border-dashed border-ink3" style={{ left: part(at / of) }} />
      </span>
      <span className={`text-right ${value > at ? 'font-strong text-warn' : ''}`}>{level(value)}</span>
    </li>
  )
  return (
    <div className="text-sm">
      <ul>
        {dimensions.map((d) => line(tr.decisions.dimension[d] ?? d, effect[d], 1, threshold))}
        {line(tr.decisions.magnitude, magnitude, most, threshold)}
      </ul>
      <p className="mt-1 text-xs text-ink3">{tr.decisions.threshold(level(threshold))}{magnitude > threshold ? `: ${tr.decisions.magnitude} ${tr.decisions.over}` : ''}</p>
    </div>
  )
}
