// Signs in the browser with a key file of `selvage govern key`: 32 bytes in base64. The key leaves the file for the
// platform's cryptography alone; what is sent is the signature.
const seedBytes = 32
// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410).
const pkcs8 = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20]

export class NoKey extends Error {}

const bytesOf = (text: string) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
const base64 = (bytes: ArrayBuffer) => btoa(String.fromCharCode(...new Uint8Array(bytes)))

/** canSign says whether this page may sign: WebCrypto is there over TLS and on the own machine only. */
export const canSign = () => typeof crypto !== 'undefined' && !!crypto.subtle

/** signWith returns the public key of a file's key and its signature of a message, both in base64. */
export async function signWith(file: string, message: string): Promise<{ publicKey: string; signature: string }> {
  let seed: Uint8Array
  try {
    seed = bytesOf(file.trim())
  } catch {
    throw new NoKey()
  }
  if (seed.length !== seedBytes) throw new NoKey()
  const key = await crypto.subtle.importKey('pkcs8', Uint8Array.from([...pkcs8, ...seed]), 'Ed25519', true, ['sign'])
  const { x = '' } = await crypto.subtle.exportKey('jwk', key)
  const signature = await crypto.subtle.sign('Ed25519', key, new TextEncoder().encode(message))
  return { publicKey: base64(bytesOf(x.replace(/-/g, '+').replace(/_/g, '/')).buffer as ArrayBuffer), signature: base64(signature) }
}
