// What of the frame is open; pages may open it too.
import { store } from '../store'

export const sheet = store(false) // the rail, on phones
export const palette = store(false)
export const help = store(false)
/** The dialog of a new issue, with what its fields begin with. */
export const newIssue = store<undefined | { parentId?: string; assigneeAgentId?: string; projectId?: string; status?: string }>(undefined)
