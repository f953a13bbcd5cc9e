// Runs the published command line again and again in one process, which takes a second to start.
// Each line of stdin is {"args"}, each line of stdout {"code", "out", "errs"}. The command
// line parses what is in process.argv and ends by process.exit, as it does where a person starts it.
//
//	node typed.mjs .../paperclipai/dist/index.js
import { realpathSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const file = pathToFileURL(realpathSync(process.argv[2])).href
const start = '\nvoid main();\n'
registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    if (url !== file) return loaded
    const source = loaded.source.toString()
    if (!source.includes(start)) throw new Error('its last line is no longer ' + start.trim())
    return { ...loaded, source: source.replace(start, '\nexport { main };\n') }
  },
})
const { main } = await import(file)

class Exit extends Error {}
process.exit = (code) => {
  process.exitCode ??= code ?? 0 // the first says it: what catches Exit may end once more
  throw new Exit()
}
const answer = process.stdout.write.bind(process.stdout)
for await (const line of createInterface({ input: process.stdin })) {
  const { args } = JSON.parse(line)
  const said = { out: '', errs: '' }
  for (const [to, stream] of Object.entries({ out: process.stdout, errs: process.stderr })) {
    stream.write = (text, ...more) => {
      said[to] += text
      more.find((m) => typeof m === 'function')?.()
      return true
    }
  }
  process.argv = [process.argv[0], process.argv[1], ...args]
  process.exitCode = undefined
  try {
    await main()
  } catch (e) {
    if (!(e instanceof Exit)) throw e
  }
  answer(JSON.stringify({ code: process.exitCode ?? 0, ...said }) + '\n')
}
