// What a screen reader is told that is only seen otherwise: which page came, what opened beside it.
import { store, useStore } from '../store'

const said = store('')
export const announce = (text: string) => said.set(text)

export function Announcer() {
  return <p role="status" data-announcer className="sr-only">{useStore(said)}</p>
}
