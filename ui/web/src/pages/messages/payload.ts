// What a message carries, as text: the kinds of payloads of the kernel.

/** payloadText is what is read of a payload: its text, or the rest as JSON. */
export function payloadText(payload: unknown): string {
  if (typeof payload === 'string') return payload
  if (payload === null || typeof payload !== 'object') return payload === undefined ? '' : JSON.stringify(payload)
  const { kind, ...rest } = payload as Record<string, unknown>
  const values = Object.values(rest)
  if (values.length === 1) return typeof values[0] === 'string' ? values[0] : JSON.stringify(values[0])
  return `${typeof kind === 'string' ? `${kind} ` : ''}${JSON.stringify(rest)}`
}
