// A schedule in words. Only what is common is put so; what is not is shown as it is written.
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December']
const shortDays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const shortMonths = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']

const two = (n: number) => String(n).padStart(2, '0')
const list = (all: readonly string[]) => (all.length < 2 ? (all[0] ?? '') : `${all.slice(0, -1).join(', ')} and ${all[all.length - 1]}`)

/** numbers are the values of a field; undefined for * and for what has steps. */
function numbers(field: string, names: readonly string[] = [], first = 0): number[] | undefined {
  const value = (s: string) => {
    const at = names.indexOf(s.toLowerCase())
    return at >= 0 ? at + first : /^\d+$/.test(s) ? Number(s) : NaN
  }
  const out: number[] = []
  for (const part of field.split(',')) {
    const [from, to] = part.split('-')
    const a = value(from ?? '')
    const b = to === undefined ? a : value(to)
    if (Number.isNaN(a) || Number.isNaN(b) || b < a) return undefined
    for (let n = a; n <= b; n++) out.push(n)
  }
  return out
}

/** inWords says when a schedule fires, or undefined where that takes more than a short sentence. */
export function inWords(cron: string): string | undefined {
  const fields = cron.trim().split(/\s+/)
  const [minute, hour, day, month, weekday] = fields
  if (fields.length !== 5 || !minute || !hour || !day || !month || !weekday) return undefined
  const season = month === '*' ? '' : numbers(month, shortMonths, 1)
  if (season === undefined) return undefined
  const within = season === '' ? '' : ` in ${list(season.map((n) => months[n - 1] ?? String(n)))}`
  const every = /^\*\/(\d+)$/
  if (day === '*' && weekday === '*') {
    if (minute === '*' && hour === '*') return `every minute${within}`
    const step = every.exec(minute)
    if (step && hour === '*') return `every ${step[1]} minutes${within}`
    const hours = every.exec(hour)
    if (hours && /^\d+$/.test(minute)) return `every ${hours[1]} hours at :${two(Number(minute))}${within}`
  }
  const minutes = numbers(minute)
  if (!minutes || minutes.length > 4) return undefined
  if (hour === '*') return day === '*' && weekday === '*' ? `every hour at ${list(minutes.map((m) => `:${two(m)}`))}${within}` : undefined
  const hours = numbers(hour)
  if (!hours || hours.length * minutes.length > 6) return undefined
  const at = `at ${list(hours.flatMap((h) => minutes.map((m) => `${two(h)}:${two(m)}`)))}`
  if (day !== '*' && weekday !== '*') return undefined
  if (day !== '*') {
    const of = numbers(day)
    return of ? `on day ${list(of.map(String))} of ${within ? within.slice(4) : 'every month'} ${at}` : undefined
  }
  if (weekday === '*') return `every day${within} ${at}`
  const of = numbers(weekday, shortDays)?.map((n) => n % 7)
  if (!of) return undefined
  const set = [...new Set(of)].sort()
  if (set.length === 7) return `every day${within} ${at}`
  if (set.join() === '1,2,3,4,5') return `every weekday${within} ${at}`
  return `every ${list([...set.filter((n) => n > 0), ...set.filter((n) => n === 0)].map((n) => days[n] ?? ''))}${within} ${at}`
}
