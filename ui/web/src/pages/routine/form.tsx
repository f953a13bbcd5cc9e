// The forms of a routine: what it does, and what starts it.
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useProjects, useRead } from '../../data'
import type { Schemas } from '../../http'
import type { Schema, Values } from '../../parts/jsonform'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { zones } from './preview'

const named = (rows: readonly { id: string; name?: string; title?: string | null }[]) => ({ enum: rows.map((r) => r.id), labels: Object.fromEntries(rows.map((r) => [r.id, r.name ?? r.title ?? r.id])) })

type Variable = Schemas['RoutineVariable']
const builtin = ['date', 'timestamp'] // have a value without being declared

/** blanksOf are the names of the blanks of texts, each once. */
export function blanksOf(...texts: unknown[]): string[] {
  const found = texts.flatMap((text) => [...String(text ?? '').matchAll(/\{\{\s*([A-Za-z][A-Za-z0-9_]*)\s*\}\}/g)].map((m) => m[1] ?? ''))
  return [...new Set(found)].filter((name) => !builtin.includes(name))
}

const blank = 'blank.' // before the name of a blank, in the values of the form
const asText = (v: unknown) => (v === null || v === undefined ? undefined : typeof v === 'string' ? v : JSON.stringify(v))

/** blankValues are the defaults of a routine's blanks as values of the form; routineOf turns them back. */
export const blankValues = (variables: readonly Variable[]): Values => Object.fromEntries(variables.map((v) => [blank + v.name, asText(v.defaultValue)]))
export function routineOf(values: Values, all: Values, variables: readonly Variable[] = []): Values {
  const rest = Object.fromEntries(Object.entries(values).filter(([k]) => !k.startsWith(blank)))
  const names = blanksOf(all['title'], all['description'])
  if (names.length === 0 || !Object.keys(values).some((k) => k.startsWith(blank) || k === 'title' || k === 'description')) return rest
  return { ...rest, variables: names.map((name) => { const was = variables.find((v) => v.name === name); const now = all[blank + name]; return { ...(was ?? { name }), defaultValue: was && asText(was.defaultValue) === now ? was.defaultValue : now ?? null } }) }
}

/** useRoutineSchema is the form of a routine; each blank of its texts has a field for its default. */
export function useRoutineSchema(): (values: Values) => Schema {
  const company = useCompany()
  const agents = (useAgents(company.id).data ?? []).filter((a) => a.status !== 'terminated')
  const projects = useProjects(company.id).data ?? []
  const goals = useRead(keys.goals(company.id), '/api/companies/{companyId}/goals', { path: { companyId: company.id } }).data ?? []
  const folders = useRead([...keys.routines(company.id), 'folders'], '/api/companies/{companyId}/folders', { path: { companyId: company.id }, query: { kind: 'routine' } }).data?.folders ?? []
  const labels = useRead(keys.labels(company.id), '/api/companies/{companyId}/labels', { path: { companyId: company.id } }).data ?? []
  return (values) => ({
    required: ['title'],
    properties: {
      title: { type: 'string', title: tp.routine.title, description: tp.routine.titleHint }, description: { type: 'string', format: 'multiline', title: tp.routine.description },
      ...Object.fromEntries(blanksOf(values['title'], values['description']).map((name) => [blank + name, { type: 'string', title: tp.routine.unlessFilled(name) } as Schema])),
      assigneeAgentId: { type: 'string', title: tp.routine.assignee, description: tp.routine.assigneeHint, ...named(agents) },
      ...(projects.length > 0 ? { projectId: { type: 'string', title: tp.routine.project, ...named(projects) } } : {}), ...(goals.length > 0 ? { goalId: { type: 'string', title: tp.routine.goal, ...named(goals) } } : {}),
      ...(folders.length > 0 ? { folderId: { type: 'string', title: tp.routine.folder, ...named(folders) } } : {}), ...(labels.length > 0 ? { labelIds: { type: 'array', title: tp.routine.labels, items: { type: 'string', ...named(labels) } } as Schema } : {}),
      priority: { type: 'string', title: tp.routine.priority, enum: ['critical', 'high', 'medium', 'low'], labels: t.priority },
      concurrencyPolicy: { type: 'string', title: tp.routine.concurrency, enum: Object.keys(tp.routine.concurrencies), labels: tp.routine.concurrencies },
      catchUpPolicy: { type: 'string', title: tp.routine.catchUp, enum: Object.keys(tp.routine.catchUps), labels: tp.routine.catchUps },
    },
  })
}

const zone = (): Schema => ({ type: 'string', title: tp.routine.zone, enum: zones() })
export const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC'

/** scheduleSchema is the choice of a common schedule or one's own. */
export const scheduleSchema = (values: Values): Schema => ({
  properties: {
    when: { type: 'string', title: tp.routine.when, enum: [...Object.keys(tp.routine.presets), 'custom'], labels: { ...tp.routine.presets, custom: tp.routine.custom } },
    ...(values['when'] === 'custom' ? { cron: { type: 'string', title: tp.routine.cron, description: tp.routine.cronHint } } : {}), ...(values['when'] ? { zone: zone() } : {}),
  },
})
export const cronOf = (values: Values) => String((values['when'] === 'custom' ? values['cron'] : values['when']) ?? '')

/** triggerSchema is the form of a trigger of a kind; a kind is chosen once. */
export function triggerSchema(kind: string, choose: boolean): Schema {
  return {
    required: kind === 'schedule' ? ['kind', 'cronExpression', 'timezone'] : kind === 'webhook' ? ['kind', 'signingMode'] : ['kind'],
    properties: {
      ...(choose ? { kind: { type: 'string', title: tp.routine.kind, enum: Object.keys(tp.routine.kinds), labels: tp.routine.kinds } } : {}),
      ...(kind === 'schedule' ? { cronExpression: { type: 'string', title: tp.routine.cron, description: tp.routine.cronHint }, timezone: zone() } : {}),
      ...(kind === 'webhook' ? { signingMode: { type: 'string', title: tp.routine.signing, enum: Object.keys(tp.routine.signings), labels: tp.routine.signings }, replayWindowSec: { type: 'integer', title: tp.routine.replay, minimum: 30, maximum: 86_400 } } : {}),
      label: { type: 'string', title: tp.routine.label },
    },
  }
}

/** runSchema asks for what the blanks of a routine are filled with. */
export const runSchema = (variables: readonly Schemas['RoutineVariable'][]): Schema => ({
  required: variables.filter((v) => v.required && (v.defaultValue === null || v.defaultValue === undefined)).map((v) => v.name),
  properties: Object.fromEntries(variables.map((v) => [v.name, {
    title: v.label ?? v.name, type: v.type === 'number' ? 'number' : v.type === 'boolean' ? 'boolean' : 'string',
    ...(v.type === 'textarea' ? { format: 'multiline' } : v.type === 'date' ? { format: 'date' } : {}), ...(v.type === 'select' ? { enum: v.options ?? [] } : {}), ...(v.defaultValue === null || v.defaultValue === undefined ? {} : { default: v.defaultValue }),
  }])),
})
