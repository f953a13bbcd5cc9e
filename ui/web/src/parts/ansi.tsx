import { useMemo, type CSSProperties } from 'react'

export interface Span { text: string; fg?: string | undefined; bold?: boolean | undefined; dim?: boolean | undefined; underline?: boolean | undefined }

const names = ['var(--ink3)', 'var(--bad)', 'var(--ok)', 'var(--warn)', 'var(--work)', 'var(--wait)', 'var(--accent)', 'var(--ink)']

function of256(n: number): string {
  if (n < 16) return names[n % 8]!
  if (n > 231) return `oklch(${(0.25 + ((n - 232) / 23) * 0.65).toFixed(2)} 0 0)`
  const c = n - 16
  const level = (v: number) => (v === 0 ? 0 : 55 + v * 40)
  return `rgb(${level(Math.floor(c / 36))} ${level(Math.floor(c / 6) % 6)} ${level(c % 6)})`
}

/** spansOf reads a terminal's colours and drops all else that a terminal would obey. */
export function spansOf(text: string): Span[] {
  const out: Span[] = []
  let now: Omit<Span, 'text'> = {}
  // CSI … final byte, OSC … BEL or ST, other escapes; then the control characters that are no line break or tab.
  const pattern = /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][\s\S]*?(?:\x07|\x1b\\)|\x1b[@-_]?|[\x00-\x08\x0b-\x1f\x7f]/g
  let from = 0
  const push = (part: string) => { if (part) out.push({ text: part, ...now }) }
  for (let m = pattern.exec(text); m; m = pattern.exec(text)) {
    push(text.slice(from, m.index))
    from = m.index + m[0].length
    if (m[2] === 'm') now = colours(now, m[1] ?? '')
  }
  push(text.slice(from))
  return out
}

function colours(now: Omit<Span, 'text'>, codes: string): Omit<Span, 'text'> {
  let next = { ...now }
  const all = codes.split(/[;:]/).map(Number)
  for (let i = 0; i < all.length; i++) {
    const c = all[i]!
    if (c === 0) next = {}
    else if (c === 1) next.bold = true
    else if (c === 2) next.dim = true
    else if (c === 4) next.underline = true
    else if (c === 22) next.bold = next.dim = false
    else if (c === 24) next.underline = false
    else if (c === 39) next.fg = undefined
    else if ((c >= 30 && c < 38) || (c >= 90 && c < 98)) next.fg = names[c % 10]
    else if (c === 38 || c === 48) {
      const long = all[i + 1] === 2
      if (c === 38) next.fg = long ? `rgb(${all[i + 2] ?? 0} ${all[i + 3] ?? 0} ${all[i + 4] ?? 0})` : of256(all[i + 2] ?? 7)
      i += long ? 4 : 2
    }
  }
  return next
}

/** A program's output with its colours. */
export function Ansi({ text }: { text: string }) {
  const spans = useMemo(() => spansOf(text), [text])
  return (
    <span className="whitespace-pre-wrap break-words font-mono text-xs">
      {spans.map((s, i) => {
        const style: CSSProperties = { ...(s.fg ? { color: s.fg } : {}), ...(s.bold ? { fontWeight: 550 } : {}), ...(s.dim ? { opacity: 0.75 } : {}), ...(s.underline ? { textDecoration: 'underline' } : {}) }
        return <span key={i} style={style}>{s.text}</span>
      })}
    </span>
  )
}
