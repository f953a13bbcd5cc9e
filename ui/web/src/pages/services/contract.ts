// What a contract says of parameters, as a form: an object with members has a field for each, anything else is JSON.
import type { Schema, Values } from '../../parts/jsonform'

const membersOf = (params: unknown): Schema | undefined => {
  const of = params as Schema | null | undefined
  return of && typeof of === 'object' && (of.type === undefined || of.type === 'object') && of.properties && Object.keys(of.properties).length > 0 ? of : undefined
}

export function paramsSchema(params: unknown, title: string): Schema {
  return membersOf(params) ?? { properties: { params: { title } } }
}

/** paramsOf is what a call sends of what was filled in. */
export function paramsOf(params: unknown, v: Values): { params?: unknown } {
  if (membersOf(params)) return { params: v }
  return v['params'] === undefined ? {} : { params: v['params'] }
}

interface MethodIn { name: string; description?: string; params?: never; result?: never }
export const methodsOf = (value: unknown): MethodIn[] => (Array.isArray(value) ? (value as MethodIn[]) : [])

/** wrongMethods says what is wrong with methods that were typed as JSON. */
export function wrongMethods(value: unknown, told: string): Record<string, string> {
  const all = methodsOf(value)
  return all.length > 0 && all.every((m) => m !== null && typeof m === 'object' && typeof m.name === 'string' && m.name !== '') ? {} : { methods: told }
}
