// Labels of a node as a text, one a line.

const read = (text: string) => new Map(text.split('\n').map((l) => l.trim()).filter(Boolean).map((l) => {
  const at = l.indexOf('=')
  return at < 0 ? [l, ''] as const : [l.slice(0, at).trim(), l.slice(at + 1).trim()] as const
}))

/** The change of labels from one text to another; null takes a label away. */
export function changesOfLabels(before: string, now: string): Record<string, string | null> {
  const was = read(before)
  const is = read(now)
  const out: Record<string, string | null> = {}
  for (const [key, value] of is) if (was.get(key) !== value) out[key] = value
  for (const key of was.keys()) if (!is.has(key)) out[key] = null
  return out
}
