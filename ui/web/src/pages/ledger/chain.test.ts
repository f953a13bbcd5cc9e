import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { hex } from './chain'
import { shake256 } from './shake'

test('SHAKE-256 is the one of the standard', () => {
  for (const n of [0, 1, 135, 136, 137, 500]) {
    const b = Uint8Array.from({ length: n }, (_, i) => (i * 7) & 255)
    expect(hex(shake256(32, b))).toBe(createHash('shake256', { outputLength: 32 }).update(b).digest('hex'))
  }
})
