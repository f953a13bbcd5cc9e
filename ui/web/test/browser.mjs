// A Chromium for tests and screenshots, and what both do with it.
import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'

const places = [process.env.SELVAGE_CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].filter(Boolean)

export async function browser() {
  const executablePath = places.find((p) => existsSync(p))
  if (!executablePath) throw new Error('there is no Chromium: make system installs it, or set SELVAGE_CHROMIUM')
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--force-color-profile=srgb'] })
}

/** watch gathers what a page must not do: errors in its console, and requests to other places than nodes. */
export function watch(page, allowed = () => false) {
  const wrong = []
  page.on('pageerror', (e) => wrong.push(`error: ${e.message}`))
  page.on('console', (m) => {
    if (m.type() === 'error' && !allowed(m.text(), m.location().url)) wrong.push(`console: ${m.text()} ${m.location().url}`)
  })
  page.on('request', (r) => {
    const url = new URL(r.url())
    if (!['127.0.0.1', 'localhost'].includes(url.hostname) && !['data:', 'blob:'].includes(url.protocol)) wrong.push(`request to ${r.url()}`)
  })
  return wrong
}

/** ask asks a node. A busy machine may be without a leader for a moment: a write that changed nothing is sent again. */
export const ask = async (url, path, method = 'GET', body) => {
  for (let left = 120; ; left--) {
    const response = await fetch(url + path, { method, headers: { 'content-type': 'application/json' }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    const text = await response.text()
    if (response.ok) return text ? JSON.parse(text) : undefined
    if (left === 0 || method === 'GET' || response.status !== 503 || !text.includes('"outcome":"none"')) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    await new Promise((done) => setTimeout(done, 500))
  }
}
