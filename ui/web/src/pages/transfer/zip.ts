// A zip file of a package, made in the page: its files are stored as they are. The node reads it as it reads any zip.
import type { Schemas } from '../../http'

const table = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1
  return c
})

export function crc32(b: Uint8Array): number {
  let c = 0xffffffff
  for (const x of b) c = (table[(c ^ x) & 255] as number) ^ (c >>> 8)
  return (c ^ 0xffffffff) >>> 0
}

/** bytesOf returns a file of a package: text, or bytes in base64. */
export function bytesOf(of: Schemas['PortableFile']): Uint8Array<ArrayBuffer> {
  const file = of as string | { data: string }
  if (typeof file === 'string') return new TextEncoder().encode(file) as Uint8Array<ArrayBuffer>
  return Uint8Array.from(atob(file.data), (c) => c.charCodeAt(0))
}

const utf8Names = 0x0800
const begun = 0x0021 // 1980-01-01: a package has no times

/** zipOf packs files in the order of their names: the same files give the same bytes. */
export function zipOf(files: Record<string, Uint8Array<ArrayBuffer>>): Blob {
  const parts: Uint8Array<ArrayBuffer>[] = []
  const central: Uint8Array<ArrayBuffer>[] = []
  let at = 0
  const names = Object.keys(files).sort()
  for (const name of names) {
    const data = files[name] as Uint8Array<ArrayBuffer>
    const title = new TextEncoder().encode(name) as Uint8Array<ArrayBuffer>
    const fields = (view: DataView, from: number) => {
      view.setUint16(from, 20, true)
      view.setUint16(from + 2, utf8Names, true)
      view.setUint16(from + 8, begun, true)
      view.setUint32(from + 10, crc32(data), true)
      view.setUint32(from + 14, data.length, true)
      view.setUint32(from + 18, data.length, true)
      view.setUint16(from + 22, title.length, true)
    }
    const local = new DataView(new ArrayBuffer(30))
    local.setUint32(0, 0x04034b50, true)
    fields(local, 4)
    const entry = new DataView(new ArrayBuffer(46))
    entry.setUint32(0, 0x02014b50, true)
    entry.setUint16(4, 20, true)
    fields(entry, 6)
    entry.setUint32(42, at, true)
    parts.push(new Uint8Array(local.buffer), title, data)
    central.push(new Uint8Array(entry.buffer), title)
    at += 30 + title.length + data.length
  }
  const size = central.reduce((sum, p) => sum + p.length, 0)
  const end = new DataView(new ArrayBuffer(22))
  end.setUint32(0, 0x06054b50, true)
  end.setUint16(8, names.length, true)
  end.setUint16(10, names.length, true)
  end.setUint32(12, size, true)
  end.setUint32(16, at, true)
  return new Blob([...parts, ...central, new Uint8Array(end.buffer)], { type: 'application/zip' })
}
