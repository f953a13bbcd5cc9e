// The chain checked in the browser: each hash is computed here from the bytes that are stored, each signature checked with
// WebCrypto. The node is asked for bytes alone; what it says of them is not believed.
//
// Proven so: batches are chained by SHA-256 and signed (Ed25519) by the node whose ID is the hash of the key; entries are
// chained by SHAKE-256, name their batch, and say of it what its signed header says; heights and time only rise.
// Not proven: which nodes were members (that is in payloads, of which the chain holds the hashes).
import { shake256 } from './shake'

export interface Records {
  meshId: string
  records: readonly { index: number; record: string; entries: readonly string[] }[]
  keys: Record<string, string>
}

/** Where a check stands: what the next record must name. */
export interface Chain {
  index: number
  batch: string
  head: string
  height: number
  time: number
  batches: number
  /** Signatures that hold, and those of keys that are not known or of an algorithm that this browser has not. */
  signed: number
  unchecked: number
}

/** A check from genesis begins with nothing. */
export const genesis: Chain = { index: 0, batch: '0'.repeat(64), head: '0'.repeat(64), height: 0, time: 0, batches: 0, signed: 0, unchecked: 0 }

export class Broken extends Error {
  constructor(readonly height: number, readonly index: number, reason: string) {
    super(reason)
  }
}

type Bytes = Uint8Array<ArrayBuffer>
const decoder = new TextDecoder()
const encoder = new TextEncoder()
export const hex = (b: Uint8Array) => Array.from(b, (x) => x.toString(16).padStart(2, '0')).join('')
const plain = (text: string): Bytes => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
const joined = (...parts: readonly Uint8Array[]): Bytes => {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0))
  let at = 0
  for (const p of parts) {
    out.set(p, at)
    at += p.length
  }
  return out
}
const sha256 = async (b: Bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', b))

/** Reads bytes in order; what ends too soon throws. */
class Reader {
  at = 0
  private readonly view: DataView
  constructor(readonly b: Bytes) {
    this.view = new DataView(b.buffer, b.byteOffset, b.byteLength)
  }
  take(n: number): Bytes {
    if (n > this.b.length - this.at) throw new RangeError('the bytes end too soon')
    this.at += n
    return this.b.subarray(this.at - n, this.at)
  }
  byte(): number { return this.take(1)[0] as number }
  u32(): number { this.take(4); return this.view.getUint32(this.at - 4) }
  u64(): number {
    this.take(8)
    const n = this.view.getBigUint64(this.at - 8)
    if (n > BigInt(Number.MAX_SAFE_INTEGER)) throw new RangeError('a number is too large for this page')
    return Number(n)
  }
  uvarint(): number {
    let n = 0
    for (let shift = 1; ; shift *= 128) {
      const x = this.byte()
      n += (x & 127) * shift
      if (x < 128) return n
      if (shift > 2 ** 40) throw new RangeError('a number is too large')
    }
  }
  bytes(): Bytes { return this.take(this.uvarint()) }
  text(): string { return decoder.decode(this.bytes()) }
  hash(): string { return hex(this.take(32)) }
  get left(): number { return this.b.length - this.at }
}

export interface EntryRead {
  height: number; time: number; prev: string; index: number; position: number; batch: string; payloadHash: string
  kind: string; company: string; actor: readonly [string, string]; credential: readonly [string, string]; run: string; outcome: string; reason: string
  changes: { action: string; entityType: string; entityId: string; details: string }[]
}

/** readEntry reads an entry from its bytes. */
export function readEntry(b: Bytes): EntryRead {
  const r = new Reader(b)
  if (r.byte() !== 1) throw new RangeError('an entry of another version: update the page')
  const e: EntryRead = {
    height: r.u64(), time: r.u64(), prev: r.hash(), index: r.u64(), position: r.u32(), batch: r.hash(), payloadHash: r.hash(),
    kind: r.text(), company: r.text(), actor: [r.text(), r.text()], credential: [r.text(), r.text()], run: r.text(), outcome: r.text(), reason: r.text(), changes: [],
  }
  for (let n = r.uvarint(); n > 0; n--) e.changes.push({ action: r.text(), entityType: r.text(), entityId: r.text(), details: r.text() })
  if (r.left !== 0) throw new RangeError('bytes after the end of an entry')
  return e
}

/** entryHash computes the hash that the next entry names. */
export const entryHash = (b: Bytes): string => {
  const domain = encoder.encode('selvage/entry/v1')
  return hex(shake256(32, Uint8Array.of(domain.length), domain, b))
}

interface Header { kind: string; company: string; actor: readonly [string, string]; credential: readonly [string, string]; run: string; payloadHash: string }

/** readHeader reads the header of a command: a CBOR map of small whole numbers to texts, bytes and pairs. */
function readHeader(b: Bytes): Header {
  const r = new Reader(b)
  const head = (): [number, number] => {
    const x = r.byte()
    const small = x & 31
    return [x >> 5, small < 24 ? small : small === 24 ? r.byte() : small === 25 ? r.byte() * 256 + r.byte() : r.u32()]
  }
  const want = (major: number) => {
    const [m, n] = head()
    if (m !== major) throw new RangeError('a header of another form')
    return n
  }
  const text = () => decoder.decode(r.take(want(3)))
  const pair = (): readonly [string, string] => {
    if (want(5) !== 2 || want(0) !== 1) throw new RangeError('a header of another form')
    const first = text()
    if (want(0) !== 2) throw new RangeError('a header of another form')
    return [first, text()]
  }
  const out: Header = { kind: '', company: '', actor: ['', ''], credential: ['', ''], run: '', payloadHash: '' }
  for (let n = want(5); n > 0; n--) {
    switch (want(0)) {
      case 1: out.kind = text(); break
      case 2: out.company = text(); break
      case 3: out.actor = pair(); break
      case 4: out.credential = pair(); break
      case 5: out.run = text(); break
      case 6: out.payloadHash = hex(r.take(want(2))); break
      case 7: text(); break
      case 8: r.take(want(2)); break
      default: throw new RangeError('a header field of a newer version: update the page')
    }
  }
  if (r.left !== 0) throw new RangeError('bytes after the end of a header')
  return out
}

/** The Merkle tree hash of RFC 6962 over leaves that are hashes already. */
async function rootOf(leaves: readonly Bytes[]): Promise<Bytes> {
  let row = await Promise.all(leaves.map((l) => sha256(joined(Uint8Array.of(0), l))))
  while (row.length > 1) {
    const next: Bytes[] = []
    for (let i = 0; i < row.length; i += 2) {
      const right = row[i + 1]
      next.push(right ? await sha256(joined(Uint8Array.of(1), row[i] as Bytes, right)) : (row[i] as Bytes))
    }
    row = next
  }
  return row[0] as Bytes
}

/** A Signer checks a signature; undefined: it cannot. */
export type Signer = (key: Bytes, message: Bytes, signature: Bytes) => Promise<boolean | undefined>

/** signer returns how this browser checks Ed25519, or undefined where it has not the algorithm. */
export async function signer(): Promise<Signer | undefined> {
  const keys = new Map<string, Promise<CryptoKey>>()
  const load = (raw: Bytes) => {
    const name = hex(raw)
    const key = keys.get(name) ?? crypto.subtle.importKey('raw', raw, { name: 'Ed25519' }, false, ['verify'])
    keys.set(name, key)
    return key
  }
  try {
    await crypto.subtle.generateKey({ name: 'Ed25519' }, false, ['sign', 'verify'])
  } catch {
    return undefined
  }
  return async (key, message, signature) => crypto.subtle.verify({ name: 'Ed25519' }, await load(key), signature, message)
}

const same = (a: readonly [string, string], b: readonly [string, string]) => a[0] === b[0] && a[1] === b[1]

/**
 * checkRecords checks the records that follow a chain and returns where it stands then. The first fault throws Broken.
 * A check that begins in the middle takes the first record's word for what lies before.
 */
export async function checkRecords(from: Chain, page: Records, sign: Signer | undefined, middle = false): Promise<Chain> {
  const c = { ...from }
  const keys = new Map(Object.entries(page.keys).map(([id, key]) => [id, plain(key)] as const))
  let open = middle // nothing is known yet of the entry before
  let first = middle // nor of the batch before
  for (const row of page.records) {
    const broken = (reason: string) => new Broken(c.height + 1, row.index, reason)
    try {
      const raw = plain(row.record)
      const r = new Reader(raw)
      if (r.byte() !== 1) throw broken('a record of another version: update the page')
      const prev = r.hash()
      const index = r.u64()
      r.u64() // the term
      if (prev !== c.batch && !first) throw broken('the batch does not name the hash of the one before it')
      if (index <= c.index) throw broken('batches are out of order')
      const batch = hex(await sha256(joined(encoder.encode('selvage/batch-record/v1'), raw)))
      const magic = r.take(4)
      if (decoder.decode(magic.subarray(0, 3)) !== 'slb' || magic[3] !== 1) throw broken('a batch of another version: update the page')
      const time = r.u64()
      const mesh = r.take(16)
      const origin = r.take(16)
      const sequences = r.take(24)
      const count = r.u32()
      const signature = r.take(64)
      if (hex(mesh) !== page.meshId) throw broken('the batch is of another mesh')
      const headers: Header[] = []
      const digests: Promise<Bytes>[] = []
      for (let i = 0; i < count; i++) {
        const header = r.take(r.u32())
        r.take(r.u32()) // what the command said lies elsewhere
        headers.push(readHeader(header))
        digests.push(sha256(header))
      }
      if (r.left !== 0) throw broken('bytes after the last command')
      const key = keys.get(hex(origin))
      if (key && hex(shake256(16, key)) !== hex(origin)) throw broken('the key is not that of the node that is named')
      if (!key || !sign) c.unchecked++
      else {
        const message = joined(encoder.encode('selvage/batch/v1'), mesh, sequences, await rootOf(await Promise.all(digests)))
        if (!(await sign(key, message, signature))) throw broken(`the signature of node ${hex(origin).slice(0, 8)} does not hold`)
        c.signed++
      }
      if (c.batches === 0 && !middle && headers[0]?.kind !== 'mesh.genesis') throw broken('the chain does not begin with the founding of the mesh')
      c.time = Math.max(c.time, time)
      let last = -1
      for (const text of row.entries) {
        const bytes = plain(text)
        const e = readEntry(bytes)
        if (open && last === -1) c.height = e.height - 1
        if (e.height !== c.height + 1) throw broken(`an entry has the height ${e.height}`)
        if (e.prev !== c.head && !open) throw broken('the entry does not name the hash of the one before it')
        if (e.index !== index || e.batch !== batch || e.position >= count || e.position <= last) throw broken('the entry names another batch')
        const h = headers[e.position] as Header
        if (e.kind !== h.kind || e.company !== h.company || !same(e.actor, h.actor) || !same(e.credential, h.credential) || e.run !== h.run || e.payloadHash !== h.payloadHash) throw broken('the entry says something else than what was signed')
        if (e.time < c.time) throw broken('time goes back')
        c.time = e.time
        c.head = entryHash(bytes)
        c.height = e.height
        last = e.position
        open = false
      }
      c.index = index
      c.batch = batch
      c.batches++
      first = false
    } catch (error) {
      throw error instanceof Broken ? error : broken(error instanceof Error ? error.message : String(error))
    }
  }
  return c
}
