// What the pages of governance read.
import { keys } from '../../cache'
import { useRead } from '../../data'

export const useRules = (version?: number) => useRead(keys.govern('rules', version ?? 0), '/api/v1/govern/rules', { query: { version } })
export const useAmendments = () => useRead(keys.govern('amendments'), '/api/v1/govern/amendments', {})
export const amended = () => [keys.govern('amendments'), keys.govern('amendment'), keys.govern('rules')]
