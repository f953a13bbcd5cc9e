// Archives of apps: as text for the API, and which of two versions is the newer.
import { tr } from '../../text/en.rooms'

export const mostBytes = 8 * 1024 * 1024

const piece = 32_768 // arguments of one call

/** base64Of writes bytes as the API takes them. */
export function base64Of(bytes: ArrayBuffer): string {
  const all = new Uint8Array(bytes)
  let text = ''
  for (let i = 0; i < all.length; i += piece) text += String.fromCharCode(...all.subarray(i, i + piece))
  return btoa(text)
}

/** isNewer compares versions of the form MAJOR.MINOR.PATCH. */
export function isNewer(a: string, b: string): boolean {
  const [x, y] = [a, b].map((v) => v.split('.').map((n) => Number.parseInt(n, 10) || 0))
  for (let i = 0; i < 3; i++) {
    const d = (x?.[i] ?? 0) - (y?.[i] ?? 0)
    if (d !== 0) return d > 0
  }
  return false
}

/** mayOf says what a capability allows; a setting in it is shown by its value, or by its name while it has none. */
export function mayOf(capability: string, settings: Readonly<Record<string, unknown>> = {}): string {
  const at = capability.indexOf(' ')
  const kind = at < 0 ? capability : capability.slice(0, at)
  const what = at < 0 ? '' : capability.slice(at + 1).replace(/\$\{([\w-]+)\}/g, (_, name: string) => String(settings[name] || tr.apps.setting(name)))
  const word = tr.apps.capability[kind] ?? kind
  return what ? `${word}: ${what}` : word
}
