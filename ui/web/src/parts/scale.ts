// Sizes in the sources are those of a screen up to 2,200 px wide. On a larger one all of them grow with the root's font:
// the build writes those of style sheets as rem (build/scaled.mjs), and what is set from a script goes through here.
import { store, useStore } from '../store'

const base = 14 // px of the root's font where nothing grows

/** rem is a size in px as it is written into a style. */
export const rem = (px: number) => `${px / base}rem`

const read = () => (typeof document === 'undefined' ? 1 : parseFloat(getComputedStyle(document.documentElement).fontSize) / base)
const scale = store(1)
if (typeof document !== 'undefined') {
  const told = () => scale.set(read())
  addEventListener('resize', told)
  addEventListener('load', told) // the style sheet is there
  told()
}

/** useScale is how many px one px of the sources is on this screen, for what is computed in px. */
export const useScale = () => useStore(scale)
