// The form that starts or declares a process.
import { useState } from 'react'
import { keys } from '../../cache'
import { useMembers, useWrite } from '../../data'
import { post, put, type Schemas } from '../../http'
import { Field, Input } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { toast } from '../../parts/toast'
import { tr } from '../../text/en.rooms'
import { argsOf, lineOf } from './words'

const p = tr.processes
const MiB = 1024 * 1024

/** bodyOf is what is asked for. */
export function bodyOf(v: Values, module?: { sha256: string; size: number }): Schemas['ApiSpawnBody'] {
  const text = (name: string) => String(v[name] ?? '').trim()
  const limits = { ...(v['memory'] ? { max_memory_bytes: Number(v['memory']) * MiB } : {}), ...(v['cpu'] ? { max_cpu_time_ms: Math.round(Number(v['cpu']) * 1000) } : {}) }
  const capabilities = { ...(Object.keys(limits).length > 0 ? { resource_limits: limits } : {}), ...(v['network'] ? { can_network: true } : {}) }
  const env = Object.fromEntries(((v['env'] as string[] | undefined) ?? []).filter(Boolean).map((kv) => [kv.slice(0, kv.indexOf('=')), kv.slice(kv.indexOf('=') + 1)]))
  return {
    backend: v['backend'] as 'native', command: argsOf(text('command')).args,
    ...(module ? { module: module.sha256, module_bytes: module.size } : {}), ...(text('image') ? { image: text('image') } : {}), ...(text('name') ? { name: text('name') } : {}), ...(text('node') ? { node: text('node') } : {}),
    ...(text('restart') ? { restart: text('restart') } : {}), ...(Object.keys(env).length > 0 ? { env } : {}), ...(Object.keys(capabilities).length > 0 ? { capabilities } : {}),
  }
}

/** wrongIn names what a schema does not know of. */
export function wrongIn(v: Values): Record<string, string> {
  const bad = ((v['env'] as string[] | undefined) ?? []).find((kv) => kv !== '' && kv.indexOf('=') < 1)
  return { ...(argsOf(String(v['command'] ?? '')).open ? { command: p.unclosed } : {}), ...(bad ? { env: p.badEnv(bad) } : {}) }
}

export function ProcessForm({ declared, of, onClose }: { declared: boolean; of?: Schemas['ApiDeclaration'] | undefined; onClose: () => void }) {
  const members = (useMembers().data ?? []).filter((m) => m.status !== 'revoked')
  const [file, setFile] = useState<File>()
  const save = useWrite<Values, { text: string }>({
    call: async (v) => {
      let module = of?.module ? { sha256: of.module, size: 0 } : undefined
      if (v['backend'] === 'wasm' && file) {
        const form = new FormData()
        form.append('file', file)
        module = await post('/api/v1/modules', {}, form)
      }
      if (v['backend'] === 'wasm' && !module) throw new Error(p.moduleNeeded)
      const body = bodyOf(v, module)
      if (!declared) return { text: p.spawned((await post('/api/v1/processes', {}, body)).address) }
      const { name, ...rest } = body
      const labels = ((v['labels'] as string[] | undefined) ?? []).filter(Boolean)
      const made = await put('/api/v1/declared-processes/{name}', { path: { name: name ?? '' } }, { ...rest, replicas: Number(v['replicas']), ...(labels.length > 0 ? { labels } : {}) })
      return { text: p.declaredDone(made.name) }
    },
    reread: () => [keys.kernel('processes'), keys.kernel('declared')], onDone: ({ text }) => { onClose(); toast({ text }) },
  })
  const schema = (v: Values): Schema => ({
    required: ['backend', ...(declared ? ['name', 'replicas'] : []), ...(v['backend'] === 'native' ? ['command'] : v['backend'] === 'container' ? ['image'] : [])],
    properties: {
      backend: { type: 'string', title: p.what, enum: Object.keys(p.backends), labels: p.backends },
      ...(v['backend'] === 'container' ? { image: { type: 'string', title: p.image } } : {}),
      command: { type: 'string', title: v['backend'] === 'native' ? p.command : p.arguments, description: p.commandHint },
      name: { type: 'string', title: p.name, ...(declared ? {} : { description: p.nameHint }) },
      ...(declared ? { replicas: { type: 'integer', title: p.replicas, minimum: 1, maximum: 64 } } : {}),
      node: { type: 'string', title: p.onNode, enum: members.map((m) => m.name), labels: {}, description: declared ? p.anywhere : p.thisNode },
      ...(declared ? { labels: { type: 'array', title: p.labels, items: { type: 'string' } } } : {}),
      memory: { type: 'number', title: p.memoryMiB, minimum: 1, default: 256 }, cpu: { type: 'number', title: p.cpuSeconds, minimum: 0.001, default: 300 },
      restart: { type: 'string', title: p.restart, enum: Object.keys(p.restarts5), labels: p.restarts5, default: declared ? 'one_for_one' : 'permanent' },
      env: { type: 'array', title: p.env, items: { type: 'string' }, description: p.envHint },
      ...(v['backend'] === 'native' ? {} : { network: { type: 'boolean', title: p.network } }),
    },
  })
  const initial: Values = of ? { backend: of.backend, command: lineOf(of.command), name: of.name, replicas: of.replicas, ...(of.image ? { image: of.image } : {}), ...(of.labels.length > 0 ? { labels: of.labels } : {}), restart: of.restart,
    ...(of.limits.max_memory_bytes > 0 ? { memory: of.limits.max_memory_bytes / MiB } : {}), ...(of.limits.max_cpu_time_ms > 0 ? { cpu: of.limits.max_cpu_time_ms / 1000 } : {}) } : { backend: 'native', ...(declared ? { replicas: 1 } : {}) }
  return <FormDialog title={of ? of.name : declared ? p.declare : p.spawn} action={of ? p.redeclare : declared ? p.declare : p.spawn} size="medium" busy={save.isPending} initial={initial} schema={schema} check={wrongIn} onClose={onClose} onSave={(v) => save.mutate(v)}
    {...(of ? { head: <p className="text-sm text-ink2">{p.again}</p> } : {})}
    foot={(v) => v['backend'] === 'wasm' && <Field label={p.module}><Input type="file" accept=".wasm" className="py-1 text-xs" onChange={(e) => setFile(e.target.files?.[0])} /></Field>} />
}
