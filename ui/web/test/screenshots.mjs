// node test/screenshots.mjs URL PREFIX DIR [NAMES]: every page of a company at a node, in light, dark and phone width.
// With the prefix "-" only the pages that need no company are taken. It fails when a page's console has an error.
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, browser, watch } from './browser.mjs'

const [url, prefix, dir, only] = process.argv.slice(2)
if (!dir) {
  console.error('usage: node test/screenshots.mjs URL PREFIX DIR [NAME,NAME…]')
  process.exit(2)
}
mkdirSync(dir, { recursive: true })

const settings = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1440, height: 900 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1440, height: 900 } },
  { name: 'phone', colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
]

// The addresses are read from the table of pages, so that a new page is taken too.
const table = readFileSync(new URL('../src/pages/table.ts', import.meta.url), 'utf8')
const paths = [...table.matchAll(/path: '([^']+)'/g)].map((m) => m[1])

const named = {}
if (prefix !== '-') {
  const company = (await ask(url, '/api/companies')).find((c) => c.issuePrefix === prefix)
  if (!company) throw new Error(`no company has the prefix ${prefix}`)
  const first = async (what, key) => (await ask(url, `/api/companies/${company.id}/${what}`))?.[0]?.[key]
  Object.assign(named, {
    $company: prefix, $issue: await first('issues?sortField=updated&limit=1', 'identifier'), $agent: await first('agents', 'urlKey'), $routine: await first('routines', 'id'),
    $project: await first('projects', 'id'), $approval: await first('approvals', 'id'), $run: await first('heartbeat-runs', 'id'), $skill: await first('skills', 'id'),
  })
}

const addresses = paths.flatMap((path) => {
  const address = path.replace(/\$\w+/g, (name) => named[name] ?? '$')
  const name = path.replace('/$company', '').replace(/\/\$\w+/g, '-one').replace(/^\//, '').replace(/\//g, '-') || 'home'
  return address.includes('$') ? [] : [{ name, address }]
})
if (prefix !== '-') {
  addresses.push({ name: 'issues-drawer', address: `/${prefix}/issues?show=${named.$issue}` }, { name: 'palette', address: `/${prefix}`, keys: ['Control+k'] }, { name: 'new-issue', address: `/${prefix}`, keys: ['c'] })
}

const chrome = await browser()
let bad = 0
for (const { name: setting, ...options } of settings) {
  const context = await chrome.newContext({ ...options, locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce' })
  for (const { name, address, keys } of addresses) {
    if (only && !only.split(',').includes(name)) continue
    const page = await context.newPage()
    const wrong = watch(page)
    await page.goto(url + address, { waitUntil: 'domcontentloaded' })
    await page.locator('#page').waitFor({ timeout: 30_000 })
    await page.waitForFunction(() => !document.querySelector('[aria-busy=true]'), undefined, { timeout: 15_000 }).catch(() => wrong.push('it still loads after 15 s'))
    for (const key of keys ?? []) await page.keyboard.press(key)
    await page.waitForTimeout(250)
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    if (over > 0) wrong.push(`it is ${over} px wider than the window`)
    await page.screenshot({ path: join(dir, `${name}.${setting}.png`) })
    for (const w of wrong) console.error(`${address} (${setting}): ${w}`)
    bad += wrong.length
    await page.close()
  }
  await context.close()
}
await chrome.close()
console.log(`${dir}: ${addresses.length} addresses in ${settings.length} settings, ${bad} faults`)
process.exit(bad > 0 ? 1 : 0)
