// Writes dist/SOURCES: the hash of the sources, as Sources in ui/sources.go computes it.
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const skipped = new Set(['node_modules', 'test', '.cache'])

function list(root, at) {
  return readdirSync(join(root, at), { withFileTypes: true }).flatMap((entry) => {
    const name = at ? `${at}/${entry.name}` : entry.name
    if (entry.isDirectory()) return skipped.has(name) ? [] : list(root, name)
    return entry.name.includes('.test.') ? [] : [name]
  })
}

const sum = (data) => createHash('sha256').update(data).digest('hex')

export function sources(root) {
  const names = list(root, '').sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return sum(names.map((name) => `${sum(readFileSync(join(root, name)))}  ${name}\n`).join(''))
}
