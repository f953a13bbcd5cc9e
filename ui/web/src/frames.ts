// Reads server-sent events from bytes that come in pieces.
export interface Frame {
  id: string | undefined
  event: string
  data: string
}

// A frame longer than this is no frame of ours.
const maxFrame = 4 * 1024 * 1024

/** framesOf returns a function that takes pieces of a stream and returns the frames that they complete; comments go to remarked. */
export function framesOf(remarked?: (comment: string) => void): (piece: string) => Frame[] {
  let rest = ''
  return (piece) => {
    rest += piece
    if (rest.length > maxFrame) throw new Error('the event stream sent a frame that is too long')
    const parts = rest.split('\n\n')
    rest = parts.pop() ?? ''
    return parts.flatMap((part) => {
      const frame: Frame = { id: undefined, event: 'message', data: '' }
      const data: string[] = []
      for (const line of part.split('\n')) {
        if (line.startsWith(':')) remarked?.(line.slice(1).trim())
        if (line === '' || line.startsWith(':')) continue
        const colon = line.indexOf(':')
        const name = colon < 0 ? line : line.slice(0, colon)
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
        if (name === 'id') frame.id = value
        else if (name === 'event') frame.event = value
        else if (name === 'data') data.push(value)
      }
      frame.data = data.join('\n')
      return data.length > 0 ? [frame] : []
    })
  }
}
