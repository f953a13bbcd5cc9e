import { useMemo } from 'react'
import { t } from '../text/en'

export type DiffLine = { kind: 'same' | 'added' | 'removed'; text: string } | { kind: 'folded'; n: number }
const context = 3
const maxCells = 4_000_000 // of the table of the longest common subsequence

/** diffOf compares texts line by line; what is the same and far from a change is folded. */
export function diffOf(before: string, after: string): DiffLine[] {
  const a = before === '' ? [] : before.split('\n')
  const b = after === '' ? [] : after.split('\n')
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const x = a.slice(head, a.length - tail)
  const y = b.slice(head, b.length - tail)
  const same = (text: string): DiffLine => ({ kind: 'same', text })
  return fold([...a.slice(0, head).map(same), ...middle(x, y), ...a.slice(a.length - tail).map(same)])
}

function middle(x: string[], y: string[]): DiffLine[] {
  const out: DiffLine[] = []
  if (x.length * y.length > maxCells) return [...x.map((text): DiffLine => ({ kind: 'removed', text })), ...y.map((text): DiffLine => ({ kind: 'added', text }))]
  const w = y.length + 1
  const longest = new Uint32Array((x.length + 1) * w)
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      longest[i * w + j] = x[i] === y[j] ? longest[(i + 1) * w + j + 1]! + 1 : Math.max(longest[(i + 1) * w + j]!, longest[i * w + j + 1]!)
    }
  }
  let i = 0
  let j = 0
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push({ kind: 'same', text: x[i]! })
      i++
      j++
    } else if (j >= y.length || (i < x.length && longest[(i + 1) * w + j]! >= longest[i * w + j + 1]!)) out.push({ kind: 'removed', text: x[i++]! })
    else out.push({ kind: 'added', text: y[j++]! })
  }
  return out
}

function fold(lines: DiffLine[]): DiffLine[] {
  const near = lines.map(() => false)
  lines.forEach((l, i) => {
    if (l.kind !== 'same') for (let d = -context; d <= context; d++) if (i + d >= 0 && i + d < lines.length) near[i + d] = true
  })
  const out: DiffLine[] = []
  lines.forEach((l, i) => {
    if (near[i]) return void out.push(l)
    const last = out[out.length - 1]
    if (last?.kind === 'folded') last.n++
    else out.push({ kind: 'folded', n: 1 })
  })
  return out
}

/** Two texts, or one in unified form, with added and removed lines marked by sign and colour. */
export function Diff({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => diffOf(before, after), [before, after])
  return (
    <pre className="overflow-x-auto rounded border border-line bg-ground2 py-1 font-mono text-xs">
      {lines.map((l, i) => l.kind === 'folded' ? <div key={i} className="px-3 text-ink3">⋯ {t.part.unchanged(l.n)}</div> : (
        <div key={i} className={`px-3 ${l.kind === 'added' ? 'bg-ok/12' : l.kind === 'removed' ? 'bg-bad/12' : ''}`}>
          <span aria-hidden="true" className={`inline-block w-4 select-none ${l.kind === 'added' ? 'text-ok' : l.kind === 'removed' ? 'text-bad' : ''}`}>{l.kind === 'added' ? '+' : l.kind === 'removed' ? '−' : ' '}</span>
          {l.kind !== 'same' && <span className="sr-only">{l.kind === 'added' ? t.part.added : t.part.removed} </span>}{l.text || ' '}
        </div>
      ))}
    </pre>
  )
}

/** A patch in unified form, as programs write it. */
export function Patch({ text }: { text: string }) {
  return (
    <pre className="overflow-x-auto rounded border border-line bg-ground2 py-1 font-mono text-xs">
      {text.replace(/\n$/, '').split('\n').map((l, i) => {
        const head = /^(diff --git|index |--- |\+\+\+ |@@ )/.test(l)
        return <div key={i} className={`px-3 ${head ? 'text-ink3' : l.startsWith('+') ? 'bg-ok/12' : l.startsWith('-') ? 'bg-bad/12' : ''}`}>{l || ' '}</div>
      })}
    </pre>
  )
}
