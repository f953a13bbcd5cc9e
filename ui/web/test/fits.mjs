// Whether a page fits its window: nothing scrolls sideways on a phone, and a very large screen has larger text and is used.

/** over is by how many px the page is wider than its window, or what in it sticks out where nothing scrolls. */
export const over = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

/** drawn measures what can be read in the page's main part: its smallest text in px, and where the rightmost ends, of the width. */
export const drawn = (page) => page.evaluate(() => {
  const main = document.getElementById('page')
  const walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT)
  let smallest = Infinity
  let right = 0
  while (walk.nextNode()) {
    const text = walk.currentNode
    const of = text.parentElement
    if (!text.data.trim() || of.closest('svg, .sr-only, [aria-hidden=true]')) continue
    const range = document.createRange()
    range.selectNodeContents(text)
    const box = range.getBoundingClientRect()
    if (box.width < 2 || box.height < 2) continue
    smallest = Math.min(smallest, parseFloat(getComputedStyle(of).fontSize))
    right = Math.max(right, box.right)
  }
  return { smallest, right: right / innerWidth }
})
