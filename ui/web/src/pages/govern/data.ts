// What the pages of governance read. No event tells of amendments and rules: they are polled while on screen.
import { keys } from '../../cache'
import { poll, useRead } from '../../data'

export const useRules = (version?: number) => useRead(keys.govern('rules', version ?? 0), '/api/v1/govern/rules', { query: { version } }, version === undefined ? { refetchInterval: poll } : {})
export const useAmendments = () => useRead(keys.govern('amendments'), '/api/v1/govern/amendments', {}, { refetchInterval: poll })
export const amended = () => [keys.govern('amendments'), keys.govern('amendment'), keys.govern('rules')]
