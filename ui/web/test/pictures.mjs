// node test/pictures.mjs SCREENSHOTS OUT: the pictures of README and docs/board.md, as WebP, from what make screenshots took.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { browser } from './browser.mjs'

const [from, to] = process.argv.slice(2)
const pictures = { home: 'home.light', issue: 'issues-one.light', run: 'runs-one.dark', agents: 'agents.light', org: 'org.light', costs: 'costs.light', nodes: 'mesh-nodes.dark', ledger: 'mesh-ledger.light', amendment: 'mesh-amendments-one.light', processes: 'mesh-processes.dark' }
const largest = 150_000 // bytes of one picture

mkdirSync(to, { recursive: true })
const chrome = await browser()
const page = await chrome.newPage()
for (const [name, shot] of Object.entries(pictures)) {
  const png = readFileSync(join(from, `${shot}.png`)).toString('base64')
  const url = await page.evaluate(async (data) => {
    const image = new Image()
    image.src = `data:image/png;base64,${data}`
    await image.decode()
    const canvas = document.createElement('canvas')
    canvas.width = image.width
    canvas.height = image.height
    canvas.getContext('2d').drawImage(image, 0, 0)
    return canvas.toDataURL('image/webp', 0.9)
  }, png)
  const bytes = Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')
  if (bytes.length > largest) throw new Error(`${name}.webp has ${bytes.length} bytes, at most ${largest} are wanted`)
  writeFileSync(join(to, `${name}.webp`), bytes)
  console.log(`${name}.webp: ${bytes.length} bytes`)
}
await chrome.close()
