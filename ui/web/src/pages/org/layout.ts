// Where the boxes of the org chart stand: who leads leaders stands over them, who leads nobody stands in a stack below.
export interface Person { id: string; name: string; role: string; status: string; reports: readonly (Person | null)[] }
export interface Box { id: string; name: string; role: string; status: string; reports: number; x: number; y: number; parent?: string }
export interface Chart { boxes: Box[]; lines: string[]; width: number; height: number }

export const box = { w: 184, h: 44 }
const gap = { x: 24, y: 32, stack: 10, indent: 20 }

const reportsOf = (p: Person) => p.reports.filter((r): r is Person => r !== null)

export function chartOf(roots: readonly Person[]): Chart {
  const boxes: Box[] = []
  const lines: string[] = []
  let height = 0
  const add = (p: Person, x: number, y: number, parent?: string) => {
    boxes.push({ id: p.id, name: p.name, role: p.role, status: p.status, reports: reportsOf(p).length, x, y, ...(parent ? { parent } : {}) })
    height = Math.max(height, y + box.h)
  }
  /** place draws p and all below it, and returns how wide that is. */
  const place = (p: Person, x: number, y: number, parent?: string): number => {
    const below = reportsOf(p)
    const next = y + box.h + gap.y
    if (below.every((r) => reportsOf(r).length === 0)) {
      add(p, x, y, parent)
      below.forEach((r, i) => {
        const top = y + box.h + gap.stack + i * (box.h + gap.stack)
        add(r, x + gap.indent, top, p.id)
        lines.push(`M${x + gap.indent / 2} ${i === 0 ? y + box.h : top - box.h / 2 - gap.stack}V${top + box.h / 2}H${x + gap.indent}`)
      })
      return box.w + (below.length > 0 ? gap.indent : 0)
    }
    let at = x
    const middles: number[] = []
    for (const r of below) {
      const index = boxes.length
      const wide = place(r, at, next, p.id)
      const own = boxes.slice(index).find((b) => b.id === r.id)
      middles.push((own?.x ?? at) + box.w / 2)
      at += wide + gap.x
    }
    const wide = Math.max(at - gap.x - x, box.w)
    const left = ((middles[0] ?? x) + (middles.at(-1) ?? x)) / 2 - box.w / 2
    add(p, left, y, parent)
    const middle = left + box.w / 2
    const line = y + box.h + gap.y / 2
    lines.push(`M${middle} ${y + box.h}V${line}`, `M${Math.min(...middles)} ${line}H${Math.max(...middles)}`, ...middles.map((m) => `M${m} ${line}V${next}`))
    return wide
  }
  let at = 0
  for (const root of roots) at += place(root, at, 0) + gap.x
  return { boxes, lines, width: Math.max(0, at - gap.x), height }
}

/** Whether one agent stands below another, or is it: then it can not lead it. */
export function isUnder(boxes: readonly Box[], id: string, lead: string): boolean {
  for (let at: string | undefined = id; at; at = boxes.find((b) => b.id === at)?.parent) if (at === lead) return true
  return false
}
