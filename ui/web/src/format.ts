// Money, times and IDs as text: pure functions, the platform's Intl and no library.
const locale = typeof navigator === 'undefined' ? 'en' : navigator.language

// Cents may have a fraction (a call of a model costs less than a cent): never rounded silently.
const money = new Intl.NumberFormat(locale, { style: 'currency', currency: 'USD' })

/** moneyOf writes cents short; exact says whether nothing was left out. */
export function moneyOf(cents: number): { text: string; exact: boolean } {
  const shown = Math.round(cents)
  if (cents !== 0 && Math.abs(cents) < 1) return { text: cents > 0 ? `< ${money.format(0.01)}` : `> ${money.format(-0.01)}`, exact: false }
  return { text: money.format(shown / 100), exact: shown === cents }
}

/** exactMoney writes cents with all their digits. */
export function exactMoney(cents: number): string {
  return new Intl.NumberFormat(locale, { style: 'currency', currency: 'USD', minimumFractionDigits: 2, maximumFractionDigits: 8 }).format(cents / 100)
}

const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'always', style: 'narrow' })
const day = 86_400_000

/** ago writes a time relative up to a day, then as a date. */
export function ago(iso: string, now = Date.now()): string {
  const at = Date.parse(iso)
  if (Number.isNaN(at)) return iso
  const ms = at - now
  const size = Math.abs(ms)
  if (size < 5_000) return 'now'
  if (size < 60_000) return relative.format(Math.trunc(ms / 1000), 'second')
  if (size < 3_600_000) return relative.format(Math.trunc(ms / 60_000), 'minute')
  if (size < day) return relative.format(Math.trunc(ms / 3_600_000), 'hour')
  const date = new Date(at)
  const sameYear = date.getFullYear() === new Date(now).getFullYear()
  return new Intl.DateTimeFormat(locale, { month: 'short', day: 'numeric', ...(sameYear ? {} : { year: 'numeric' }) }).format(date)
}

/** moment writes a time in full: local, then ISO in UTC. */
export function moment(iso: string): string {
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return iso
  return `${new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium' }).format(date)}\n${date.toISOString()} UTC`
}

/** lasting writes a duration: 0:41, 12:03, 3:04:05. */
export function lasting(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000))
  const two = (n: number) => String(n).padStart(2, '0')
  const h = Math.floor(s / 3600)
  return h > 0 ? `${h}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`
}

/** shortId shortens an ID in the middle. */
export function shortId(id: string): string {
  return id.length <= 12 ? id : `${id.slice(0, 4)}…${id.slice(-4)}`
}

const count = new Intl.NumberFormat(locale)
export const number = (n: number) => count.format(n)
const compact = new Intl.NumberFormat(locale, { notation: 'compact', maximumFractionDigits: 1 })
export const short = (n: number) => compact.format(n)

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
/** sizeOf writes bytes with three digits at most: 16.1 MiB. */
export function sizeOf(bytes: number): string {
  let n = bytes
  let unit = 0
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024
    unit++
  }
  return `${unit === 0 || n >= 100 ? Math.round(n) : Math.round(n * 10) / 10} ${units[unit]}`
}

/** hueOf gives an agent a stable hue from its ID. */
export function hueOf(id: string): number {
  let h = 2166136261
  for (let i = 0; i < id.length; i++) h = Math.imul(h ^ id.charCodeAt(i), 16777619)
  return (h >>> 0) % 360
}

/** words writes a name of the API as words: in_progress, inProgress → in progress. */
export function words(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[_.-]+/g, ' ').toLowerCase()
}
