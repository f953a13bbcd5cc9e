// SHAKE-256, which WebCrypto has not: the ledger names entries and nodes by it. 64-bit lanes as pairs of 32 bits.
const rounds = 24
const rate = 136 // bytes of a block

// Round constants and rotations, computed as the standard (FIPS 202 §3.2) says.
const constants = new Int32Array(rounds * 2)
const rotations = new Int32Array(25)
const places = new Int32Array(25)
{
  let lfsr = 1
  for (let round = 0; round < rounds; round++) {
    for (let j = 0; j < 7; j++) {
      if (lfsr & 1) {
        const bit = (1 << j) - 1
        if (bit < 32) constants[round * 2] = (constants[round * 2] as number) ^ (1 << bit)
        else constants[round * 2 + 1] = (constants[round * 2 + 1] as number) ^ (1 << (bit - 32))
      }
      lfsr = lfsr & 0x80 ? (lfsr << 1) ^ 0x171 : lfsr << 1
    }
  }
  let x = 1
  let y = 0
  for (let t = 0; t < 24; t++) {
    rotations[x + 5 * y] = (((t + 1) * (t + 2)) / 2) % 64
    const next = (2 * x + 3 * y) % 5
    x = y
    y = next
  }
  for (let px = 0; px < 5; px++) for (let py = 0; py < 5; py++) places[px + 5 * py] = py + 5 * ((2 * px + 3 * py) % 5)
}

function permute(s: Int32Array): void {
  const c = new Int32Array(10)
  const b = new Int32Array(50)
  for (let round = 0; round < rounds; round++) {
    for (let x = 0; x < 10; x++) c[x] = s[x]! ^ s[x + 10]! ^ s[x + 20]! ^ s[x + 30]! ^ s[x + 40]!
    for (let x = 0; x < 5; x++) {
      const l = ((x + 4) % 5) * 2
      const r = ((x + 1) % 5) * 2
      const low = c[l]! ^ ((c[r]! << 1) | (c[r + 1]! >>> 31))
      const high = c[l + 1]! ^ ((c[r + 1]! << 1) | (c[r]! >>> 31))
      for (let y = 0; y < 50; y += 10) {
        s[x * 2 + y] = s[x * 2 + y]! ^ low
        s[x * 2 + 1 + y] = s[x * 2 + 1 + y]! ^ high
      }
    }
    for (let i = 0; i < 25; i++) {
      const n = rotations[i]!
      const low = s[i * 2]!
      const high = s[i * 2 + 1]!
      const to = places[i]! * 2
      const m = n % 32
      const a = n < 32 ? low : high
      const z = n < 32 ? high : low
      b[to] = m === 0 ? a : (a << m) | (z >>> (32 - m))
      b[to + 1] = m === 0 ? z : (z << m) | (a >>> (32 - m))
    }
    for (let y = 0; y < 50; y += 10) {
      for (let x = 0; x < 10; x++) s[y + x] = b[y + x]! ^ (~b[y + ((x + 2) % 10)]! & b[y + ((x + 4) % 10)]!)
    }
    s[0] = s[0]! ^ constants[round * 2]!
    s[1] = s[1]! ^ constants[round * 2 + 1]!
  }
}

/** shake256 returns the first n bytes, at most a block of 136, of SHAKE-256 of all parts in a row. */
export function shake256(n: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const state = new Int32Array(50)
  const bytes = new Uint8Array(state.buffer) // lanes are little endian, as every machine with a browser is
  let at = 0
  for (const part of parts) {
    for (const x of part) {
      bytes[at] = bytes[at]! ^ x
      if (++at === rate) {
        permute(state)
        at = 0
      }
    }
  }
  bytes[at] = bytes[at]! ^ 0x1f
  bytes[rate - 1] = bytes[rate - 1]! ^ 0x80
  permute(state)
  return bytes.slice(0, n)
}
