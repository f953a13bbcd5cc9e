import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bytesOf, crc32, zipOf } from './zip'

const text = (s: string) => new TextEncoder().encode(s) as Uint8Array<ArrayBuffer>

test('the sum is the one of the standard', () => expect(crc32(text('123456789'))).toBe(0xcbf43926))
test('bytes in base64 are unpacked', () => expect([...bytesOf({ encoding: 'base64', data: 'AAH/' })]).toEqual([0, 1, 255]))
test('what another program reads of the zip is what was packed', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'zip'))
  const file = join(dir, 'a.zip')
  writeFileSync(file, new Uint8Array(await zipOf({ 'COMPANY.md': text('# Acmé'), 'agents/ada/AGENTS.md': text('lead') }).arrayBuffer()))
  const script = 'import sys,zipfile,json; z=zipfile.ZipFile(sys.argv[1]); assert z.testzip() is None; print(json.dumps({n: z.read(n).decode() for n in z.namelist()}))'
  const got = JSON.parse(execFileSync('python3', ['-c', script, file], { encoding: 'utf8' })) as unknown
  rmSync(dir, { recursive: true })
  expect(got).toEqual({ 'COMPANY.md': '# Acmé', 'agents/ada/AGENTS.md': 'lead' })
})
