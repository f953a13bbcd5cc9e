import { useEffect } from 'react'
import { ago, exactMoney, hueOf, lasting, moment, moneyOf, shortId } from '../format'
import { store, useStore } from '../store'
import { t } from '../text/en'
import { IconButton } from './button'
import { rem } from './scale'
import { toast } from './toast'

/** Money in cents: two digits, all of them on hover. What is left out is marked. */
export function Money({ cents }: { cents: number }) {
  const { text, exact } = moneyOf(cents)
  return <span title={exactMoney(cents)} className="whitespace-nowrap">{text}{!exact && <span className="text-ink3" aria-hidden="true">…</span>}</span>
}

// One clock for all times on screen.
const clock = store(Date.now())
let clocks = 0
let ticking: ReturnType<typeof setInterval> | undefined

function useClock(): number {
  useEffect(() => {
    if (clocks++ === 0) {
      clock.set(Date.now())
      ticking = setInterval(() => clock.set(Date.now()), 1_000)
    }
    return () => {
      if (--clocks === 0) clearInterval(ticking)
    }
  }, [])
  return useStore(clock)
}

/** A time: relative up to a day, then the date; local and UTC on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  const now = useClock()
  if (!at) return <span className="text-ink3">–</span>
  return <time dateTime={at} title={moment(at)} className="whitespace-nowrap">{ago(at, now)}</time>
}

/** How long something has lasted, or did: counts while it has no end. */
export function Lasting({ from, to }: { from: string | null | undefined; to?: string | null | undefined }) {
  const now = useClock()
  if (!from) return <span className="text-ink3">–</span>
  return <span title={moment(from)} className="whitespace-nowrap">{lasting((to ? Date.parse(to) : now) - Date.parse(from))}</span>
}

/** useAge counts the seconds since a moment. */
export function useAge(since: number): string {
  return lasting(useClock() - since)
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
  } catch { // clipboard is only there over TLS and on loopback
    const area = document.createElement('textarea')
    area.value = text
    area.style.position = 'fixed'
    document.body.append(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }
  toast({ text: `${t.common.copied}: ${text.length > 60 ? `${text.slice(0, 60)}…` : text}` })
}

/** An ID, shortened in the middle: a click copies the whole. */
export function Id({ id, text }: { id: string; text?: string }) {
  return (
    <button type="button" title={`${id}\n${t.common.copy}`} aria-label={`${text ?? shortId(id)}: ${t.common.copy}`} onClick={(e) => { e.stopPropagation(); void copy(id) }}
      className="whitespace-nowrap rounded font-mono text-xs text-ink2 hover:bg-ground3 hover:text-ink">{text ?? shortId(id)}</button>
  )
}

/** The selvage command for what is shown. */
export function CopyAsCommand({ command, small }: { command: string; small?: boolean }) {
  return <IconButton icon="command" small={small ?? false} label={`${t.common.copyCommand}: ${command}`} onClick={() => void copy(command)} />
}

const initials = (name: string) => name.split(/[\s-]+/).filter(Boolean).slice(0, 2).map((w) => w[0]?.toUpperCase() ?? '').join('') || '?'

/** Who did it: an agent in its own hue, a person without one. */
export function Avatar({ id, name, person, size = 20 }: { id: string; name: string; person?: boolean; size?: number }) {
  const style = { width: rem(size), height: rem(size), fontSize: rem(size * 0.45), ...(person ? {} : { background: `oklch(0.86 0.07 ${hueOf(id)})`, color: `oklch(0.3 0.08 ${hueOf(id)})` }) }
  return <span aria-hidden="true" title={name} style={style} className={`inline-flex shrink-0 select-none items-center justify-center font-strong leading-none ${person ? 'rounded-full bg-ground3 text-ink2' : 'rounded'}`}>{initials(name)}</span>
}

export function Who({ id, name, person }: { id: string; name: string; person?: boolean }) {
  return <span className="inline-flex min-w-0 max-w-full items-center gap-1.5 align-middle"><Avatar id={id} name={name} person={person ?? false} /><span className="truncate">{name}</span></span>
}
