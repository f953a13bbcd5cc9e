// The fields that an adapter describes its configuration with, as a schema for JsonForm.
import type { Schemas } from '../http'
import type { Schema } from './jsonform'

export type ConfigField = Schemas['ConfigField']

export function schemaOf(fields: readonly ConfigField[]): Schema {
  const one = (f: ConfigField): Schema => {
    const base: Schema = { title: f.label, ...(f.hint ? { description: f.hint } : {}), ...(f.default === undefined || f.default === null ? {} : { default: f.default }) }
    switch (f.type) {
      case 'toggle': return { ...base, type: 'boolean' }
      case 'number': return { ...base, type: 'integer', minimum: 0 }
      case 'textarea': return { ...base, type: 'string', format: 'multiline' }
      case 'list': return f.key === 'env' ? { ...base, type: 'object' } : { ...base, type: 'array', items: { type: 'string' } }
      case 'select': return { ...base, type: 'string', enum: (f.options ?? []).map((o) => o.value) }
      case 'password': case 'secret': return { ...base, type: 'string', writeOnly: true }
      case 'json': return { ...base, type: 'object' }
    }
    return { ...base, type: 'string' }
  }
  return { type: 'object', required: fields.filter((f) => f.required).map((f) => f.key), properties: Object.fromEntries(fields.map((f) => [f.key, one(f)])) }
}
