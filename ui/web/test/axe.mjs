// axe-core over a page: what it finds serious or critical. It is evaluated by the browser's own protocol, which the
// page's policy does not bind.
import { readFileSync } from 'node:fs'

const source = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')

export async function faultsOf(page) {
  // All pages have one style sheet: it is read once for a document, at the first page that is looked at there.
  const preload = !(await page.evaluate(() => 'axe' in window))
  if (preload) await page.evaluate(source)
  const found = await page.evaluate((read) => window.axe.run(document, { preload: read, resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }), preload)
  // What axe lets pass: a button in a link, and a page that has no title or two.
  const own = await page.evaluate(() => {
    const inside = [...document.querySelectorAll('a a, a button, button a, button button')].map((e) => `${e.tagName} in a link or button: ${e.outerHTML.slice(0, 160)}`)
    const heads = [...document.querySelectorAll('h1:not([aria-level])')].map((e) => e.textContent)
    return heads.length === 1 ? inside : [...inside, `${heads.length} headings of the first level: ${heads.join(', ')}`]
  })
  return own.concat(found.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 3).map((n) => `${n.target.join(' ')} ${n.html.slice(0, 160)} ${n.any.map((a) => a.message).join(' ').slice(0, 200)}`).join(' | ')}`))
}
