// A form from a JSON schema, as adapters describe their configuration with.
import { useState } from 'react'
import { words } from '../format'
import { t } from '../text/en'
import { IconButton, Button } from './button'
import { Checkbox, Field, Input, Select, TextArea } from './form'

export interface Schema {
  type?: string | readonly string[]
  title?: string
  description?: string
  enum?: readonly unknown[]
  /** What the values of enum are called. */
  labels?: Record<string, string>
  default?: unknown
  properties?: Record<string, Schema>
  required?: readonly string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  minimum?: number
  maximum?: number
  format?: string
  /** A value that is not shown again. */
  writeOnly?: boolean
}
export type Values = Record<string, unknown>

const kindOf = (s: Schema): string => (typeof s.type === 'string' ? s.type : (s.type?.find((k) => k !== 'null') ?? (s.properties ? 'object' : s.enum ? 'string' : 'json')))

/** wrongOf names the fields that are missing or out of bounds: { path: what is wrong }. */
export function wrongOf(schema: Schema, values: Values, at = ''): Record<string, string> {
  const out: Record<string, string> = {}
  for (const [name, s] of Object.entries(schema.properties ?? {})) {
    const path = at ? `${at}.${name}` : name
    const value = values[name]
    const label = s.title ?? words(name)
    if (schema.required?.includes(name) && (value === undefined || value === '' || value === null)) out[path] = t.part.required(label)
    else if (typeof value === 'number' && s.minimum !== undefined && value < s.minimum) out[path] = `${label}: ≥ ${s.minimum}`
    else if (typeof value === 'number' && s.maximum !== undefined && value > s.maximum) out[path] = `${label}: ≤ ${s.maximum}`
    else if (kindOf(s) === 'object' && s.properties && value && typeof value === 'object') Object.assign(out, wrongOf(s, value as Values, path))
  }
  return out
}

export function JsonForm({ schema, values, onChange, wrong = {}, at = '' }: { schema: Schema; values: Values; onChange: (next: Values) => void; wrong?: Record<string, string>; at?: string }) {
  const set = (name: string, value: unknown) => {
    const next = { ...values }
    if (value === undefined || value === '') delete next[name]
    else next[name] = value
    onChange(next)
  }
  return (
    <div className="flex flex-col gap-3">
      {Object.entries(schema.properties ?? {}).map(([name, s]) => {
        const path = at ? `${at}.${name}` : name
        const label = `${s.title ?? words(name)}${schema.required?.includes(name) ? ' *' : ''}`
        const value = values[name]
        const kind = kindOf(s)
        if (kind === 'object' && s.properties) {
          return <fieldset key={name} className="rounded border border-line p-3"><legend className="px-1 text-sm font-strong text-ink2">{label}</legend>
            <JsonForm schema={s} values={(value ?? {}) as Values} onChange={(v) => set(name, v)} wrong={wrong} at={path} /></fieldset>
        }
        if (kind === 'boolean') return <div key={name}><Checkbox label={label} checked={Boolean(value ?? s.default)} onChange={(v) => set(name, v)} />{s.description && <p className="text-xs text-ink3">{s.description}</p>}</div>
        if (kind === 'array' && s.items?.enum) {
          const chosen = (Array.isArray(value) ? value : []) as unknown[]
          return <fieldset key={name} className="flex flex-col gap-1"><legend className="mb-1 text-sm font-strong text-ink2">{label}</legend>{s.items.enum.map((v) => <Checkbox key={String(v)} label={s.items?.labels?.[String(v)] ?? String(v)} checked={chosen.includes(v)} onChange={(on) => set(name, on ? [...chosen, v] : chosen.filter((x) => x !== v))} />)}</fieldset>
        }
        if (kind === 'array' && kindOf(s.items ?? {}) === 'string') return <ListField key={name} label={label} hint={s.description} value={(value ?? []) as string[]} onChange={(v) => set(name, v.length ? v : undefined)} />
        return (
          <Field key={name} label={label} hint={s.description} wrong={wrong[path]}>
            {s.enum ? <Select value={String(value ?? s.default ?? '')} onChange={(e) => set(name, e.target.value)} choices={[...(schema.required?.includes(name) && value ? [] : [{ value: '', label: schema.required?.includes(name) ? t.common.choose : '–' }]), ...s.enum.map((v) => ({ value: String(v), label: s.labels?.[String(v)] ?? String(v) }))]} />
              : kind === 'integer' || kind === 'number' ? <Input type="number" step={kind === 'integer' ? 1 : 'any'} min={s.minimum} max={s.maximum} value={value === undefined ? '' : String(value)} placeholder={s.default === undefined ? '' : String(s.default)} onChange={(e) => set(name, e.target.value === '' ? undefined : Number(e.target.value))} />
                : kind === 'string' ? (s.format === 'multiline' || s.format === 'markdown' ? <TextArea value={String(value ?? '')} onChange={(e) => set(name, e.target.value)} />
                  : <Input type={s.writeOnly || s.format === 'password' ? 'password' : s.format === 'date' || s.format === 'color' ? s.format : 'text'} autoComplete="off" value={String(value ?? '')} placeholder={s.default === undefined ? '' : String(s.default)} onChange={(e) => set(name, e.target.value)} />)
                  : <JsonField value={value} onChange={(v) => set(name, v)} />}
          </Field>
        )
      })}
    </div>
  )
}

function ListField({ label, hint, value, onChange }: { label: string; hint: string | undefined; value: string[]; onChange: (next: string[]) => void }) {
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 text-sm font-strong text-ink2">{label}</legend>
      {value.map((item, i) => (
        <div key={i} className="flex gap-1"><Input aria-label={`${label} ${i + 1}`} value={item} onChange={(e) => onChange(value.map((v, j) => (j === i ? e.target.value : v)))} /><IconButton icon="close" label={t.common.remove} onClick={() => onChange(value.filter((_, j) => j !== i))} /></div>
      ))}
      <Button small className="self-start" icon="plus" onClick={() => onChange([...value, ''])}>{t.part.addRow}</Button>
      {hint && <p className="text-xs text-ink3">{hint}</p>}
    </fieldset>
  )
}

/** A value of any shape, as JSON. */
function JsonField({ value, onChange, ...rest }: { value: unknown; onChange: (next: unknown) => void; id?: string }) {
  const [text, setText] = useState(() => (value === undefined ? '' : JSON.stringify(value, null, 2)))
  const [bad, setBad] = useState(false)
  return (
    <div>
      <TextArea {...rest} className="font-mono text-xs" value={text} aria-invalid={bad} onChange={(e) => {
        setText(e.target.value)
        try {
          onChange(e.target.value.trim() === '' ? undefined : JSON.parse(e.target.value))
          setBad(false)
        } catch {
          setBad(true)
        }
      }} />
      {bad && <p className="text-xs text-bad">{t.part.invalidJson}</p>}
    </div>
  )
}
