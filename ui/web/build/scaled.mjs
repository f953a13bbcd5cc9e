// Writes the sizes of the style sheet as parts of the root's font, so that all of them grow with it on a large screen: 14 px
// of the sources are 1 rem. Lines of up to 3 px stay as they are, and so do the widths that media queries ask for.
const base = 14
const least = 4
const round = '999' // px of a radius that is never reached
const size = /(?<![\w.#-])(\d*\.?\d+)px\b/g

const grown = (value) => value.replace(size, (px, n) => (Number(n) < least || n === round ? px : `${+(n / base).toFixed(5)}rem`))

export const scaled = {
  postcssPlugin: 'scaled',
  Once(root) {
    root.walkDecls((decl) => {
      // The root's own font is what the others are measured by; paper has its own sizes.
      if (decl.parent.selector === 'html' || decl.parent.name === 'page' || !decl.value.includes('px')) return
      decl.value = grown(decl.value)
    })
  },
}
