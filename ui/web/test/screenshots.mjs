// node test/screenshots.mjs URL PREFIX DIR [NAMES]: every page of a company at a node, in light, dark and phone width, or in those
// that SETTINGS names: light,dark,phone,wide,wide-dark,narrow,narrow-dark.
// With the prefix "-" only the pages that need no company are taken. It fails when a page's console has an error.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { addressesOf } from './addresses.mjs'
import { browser, watch } from './browser.mjs'

const [url, prefix, dir, only] = process.argv.slice(2)
if (!dir) {
  console.error('usage: node test/screenshots.mjs URL PREFIX DIR [NAME,NAME…]')
  process.exit(2)
}
mkdirSync(dir, { recursive: true })

const settings = [
  { name: 'light', colorScheme: 'light', viewport: { width: 1440, height: 900 } },
  { name: 'dark', colorScheme: 'dark', viewport: { width: 1440, height: 900 } },
  { name: 'wide', colorScheme: 'light', viewport: { width: 3840, height: 2160 } },
  { name: 'wide-dark', colorScheme: 'dark', viewport: { width: 3840, height: 2160 } },
  { name: 'narrow', colorScheme: 'light', viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 },
  { name: 'narrow-dark', colorScheme: 'dark', viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 },
  { name: 'phone', colorScheme: 'light', viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
].filter(({ name }) => (process.env.SETTINGS ?? 'light,dark,phone').split(',').includes(name))

const { named, addresses } = await addressesOf(url, prefix)
if (prefix !== '-') {
  addresses.push({ name: 'issues-drawer', address: `/${prefix}/issues?show=${named.$issue}` }, { name: 'issues-board', address: `/${prefix}/issues?view=board` },
    { name: 'mesh-permits-elevations', address: '/mesh/permits?tab=elevations' }, { name: 'mesh-processes-declared', address: '/mesh/processes?tab=declared' }, { name: 'mesh-services-drawer', address: '/mesh/services?show=charts' }, { name: 'mesh-nodes-drawer', address: '/mesh/nodes?show=n1' },
    ...(named.$agent ? ['config', 'runs', 'skills'].map((tab) => ({ name: `agents-one-${tab}`, address: `/${prefix}/agents/${named.$agent}?tab=${tab}` })) : []),
    { name: 'palette', address: `/${prefix}`, keys: ['Control+k'] }, { name: 'new-issue', address: `/${prefix}`, keys: ['c'] })
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
