import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgents, useRead, useWrite } from '../../data'
import { patch, type Schemas } from '../../http'
import { schemaOf } from '../../parts/adapterform'
import { Button } from '../../parts/button'
import { Diff } from '../../parts/diff'
import { Checkbox, Field, Input, Select, TextArea } from '../../parts/form'
import { JsonForm, wrongOf, type Values } from '../../parts/jsonform'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { Presence, roles } from '../agents/hire'
import type { AgentDetail } from './page'

interface Shape { name: string; title: string; role: string; reportsTo: string; capabilities: string; adapterType: string; adapterConfig: Values; runtimeConfig: Values }

const shapeOf = (a: AgentDetail): Shape => ({ name: a.name, title: a.title ?? '', role: a.role, reportsTo: a.reportsTo ?? '', capabilities: a.capabilities ?? '', adapterType: a.adapterType, adapterConfig: (a.adapterConfig ?? {}) as Values, runtimeConfig: (a.runtimeConfig ?? {}) as Values })
const sorted = (v: unknown): unknown => (Array.isArray(v) ? v.map(sorted) : v && typeof v === 'object' ? Object.fromEntries(Object.entries(v).sort(([a], [b]) => a.localeCompare(b)).map(([k, x]) => [k, sorted(x)])) : v)
export const jsonOf = (v: unknown) => JSON.stringify(sorted(v ?? {}), null, 2)

/** The configuration as a form; what it would change is shown before it is saved. */
export function Configuration({ agent }: { agent: AgentDetail }) {
  const company = useCompany()
  const agents = useAgents(company.id).data ?? []
  const adapters = useRead(keys.mesh('adapters'), '/api/adapters').data ?? []
  const [now, setNow] = useState(() => shapeOf(agent))
  const [looking, setLooking] = useState(false)
  const detail = useRead([...keys.mesh('adapters'), now.adapterType], '/api/adapters/{type}', { path: { type: now.adapterType } })
  const schema = schemaOf(detail.data?.fields ?? [])
  const wrong = wrongOf(schema, now.adapterConfig)
  const before = shapeOf(agent)
  const changed = jsonOf(before) !== jsonOf(now)
  const save = useWrite({
    call: () => {
      const body: Record<string, unknown> = {}
      for (const name of ['name', 'role', 'adapterType'] as const) if (now[name] !== before[name]) body[name] = now[name]
      for (const name of ['title', 'reportsTo', 'capabilities'] as const) if (now[name] !== before[name]) body[name] = now[name] || null
      // A hidden value that is sent back means: as it was.
      if (jsonOf(now.adapterConfig) !== jsonOf(before.adapterConfig) || body['adapterType']) Object.assign(body, { adapterConfig: now.adapterConfig, replaceAdapterConfig: true })
      if (jsonOf(now.runtimeConfig) !== jsonOf(before.runtimeConfig)) body['runtimeConfig'] = now.runtimeConfig
      return patch('/api/agents/{id}', { path: { id: agent.id } }, body as Schemas['ApiPatchAgent'])
    },
    reread: () => [keys.agent(agent.id), keys.agents(company.id)],
    onDone: () => { setLooking(false); toast({ text: t.agent.saved }) },
  })
  const text = (name: 'name' | 'title' | 'role' | 'reportsTo' | 'capabilities') => ({ value: now[name], onChange: (e: { target: { value: string } }) => setNow({ ...now, [name]: e.target.value }) })
  const beat = (now.runtimeConfig['heartbeat'] ?? {}) as { enabled?: boolean; intervalSec?: number }
  const setBeat = (next: Partial<typeof beat>) => setNow({ ...now, runtimeConfig: { ...now.runtimeConfig, heartbeat: { ...beat, ...next } } })
  return (
    <form className="flex max-w-[720px] flex-col gap-4 huge:grid huge:max-w-[1720px] huge:grid-cols-2 huge:gap-x-10" onSubmit={(e) => { e.preventDefault(); setLooking(true) }}>
      <Section title={t.agent.who}>
        <div className="grid gap-3 tab:grid-cols-2">
          <Field label={t.agents.name} wrong={now.name.trim() === '' ? t.agents.nameNeeded : undefined}><Input maxLength={200} {...text('name')} /></Field>
          <Field label={t.agents.titleField}><Input maxLength={200} {...text('title')} /></Field>
          <Field label={t.agents.role}><Select {...text('role')} choices={roles.map((r) => ({ value: r, label: r }))} /></Field>
          <Field label={t.agents.reports}><Select {...text('reportsTo')} choices={[{ value: '', label: t.agents.nobody }, ...agents.filter((a) => a.id !== agent.id && a.status !== 'terminated').map((a) => ({ value: a.id, label: a.name }))]} /></Field>
        </div>
        <div className="mt-3"><Field label={t.agent.capabilities}><TextArea rows={3} {...text('capabilities')} /></Field></div>
      </Section>
      <Section title={t.agent.program}>
        <div className="flex flex-col gap-3">
          <Field label={t.agents.program} hint={now.adapterType !== agent.adapterType ? t.agent.otherAdapter : undefined}><Select value={now.adapterType} onChange={(e) => setNow({ ...now, adapterType: e.target.value, adapterConfig: e.target.value === agent.adapterType ? before.adapterConfig : {} })} choices={[...adapters.filter((a) => !a.disabled).map((a) => ({ value: a.type, label: a.displayName || a.type })), ...(adapters.some((a) => a.type === now.adapterType) ? [] : [{ value: now.adapterType, label: now.adapterType }])]} /></Field>
          <Presence type={now.adapterType} config={now.adapterConfig} ready={!!detail.data && Object.keys(wrong).length === 0} />
          <JsonForm key={now.adapterType} schema={schema} values={now.adapterConfig} onChange={(adapterConfig) => setNow({ ...now, adapterConfig })} wrong={wrong} />
        </div>
      </Section>
      <Section title={t.agent.timer}>
        <div className="flex flex-col gap-3"><Checkbox label={t.agent.timerOn} checked={beat.enabled === true} onChange={(enabled) => setBeat({ enabled })} />
          {beat.enabled && <Field label={t.agent.interval}><Input type="number" min={1} value={beat.intervalSec ?? ''} onChange={(e) => setBeat({ intervalSec: Number(e.target.value) })} /></Field>}</div>
      </Section>
      <div className="sticky bottom-0 flex huge:col-span-2 items-center justify-end gap-3 border-t border-line bg-ground py-3">
        <span className="text-sm text-ink3">{Object.values(wrong)[0] ?? (changed ? '' : t.agent.unchanged)}</span>
        <Button type="submit" disabled={!changed || Object.keys(wrong).length > 0 || now.name.trim() === ''}>{t.agent.save}</Button>
      </div>
      <Dialog open={looking} onClose={() => setLooking(false)} title={t.agent.saveTitle} size="large">
        <Diff before={jsonOf(before)} after={jsonOf(now)} />
        <DialogFoot><Button onClick={() => setLooking(false)}>{t.common.cancel}</Button><Button look="primary" busy={save.isPending} onClick={() => save.mutate(undefined)}>{t.agent.apply}</Button></DialogFoot>
      </Dialog>
    </form>
  )
}
