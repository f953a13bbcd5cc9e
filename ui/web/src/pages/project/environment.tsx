// The variables that runs of a project have: a value that is not shown again, or a secret.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useRead, useWrite } from '../../data'
import { patch, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

type Env = Record<string, unknown>

const secretOf = (v: unknown): string | undefined => (typeof v === 'object' && v !== null && (v as { type?: unknown }).type === 'secret_ref' ? String((v as { secretId?: unknown }).secretId ?? '') : undefined)

export function Environment({ project }: { project: Schemas['ApiProjectRow'] }) {
  const company = useCompany()
  const secrets = useRead(keys.secrets(company.id), '/api/companies/{companyId}/secrets', { path: { companyId: company.id } }).data ?? []
  const env = (typeof project.env === 'object' && project.env !== null ? project.env : {}) as Env
  const [editing, setEditing] = useState<string>()
  const save = useWrite<Env, unknown>({
    call: (next) => patch('/api/projects/{id}', { path: { id: project.id } }, { env: Object.keys(next).length > 0 ? next : null }),
    reread: () => [keys.project(project.id)], onDone: () => { setEditing(undefined); toast({ text: tp.project.saved }) },
  })
  const { [editing ?? '']: old } = env
  const schema = (v: Values): Schema => ({
    required: ['name', ...(v['secret'] ? [] : ['value'])],
    properties: {
      name: { type: 'string', title: tp.env.name }, ...(secrets.length > 0 ? { secret: { type: 'string', title: tp.env.secret, enum: secrets.map((s) => s.id), labels: Object.fromEntries(secrets.map((s) => [s.id, s.name])) } as Schema } : {}),
      ...(v['secret'] ? {} : { value: { type: 'string', writeOnly: true, title: tp.env.value, description: tp.env.valueHint } as Schema }),
    },
  })
  const check = (v: Values): Record<string, string> => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(String(v['name'] ?? '')) ? {} : { name: tp.env.badName })
  return (
    <Section title={tp.env.title} aside={<Button small icon="plus" onClick={() => setEditing('')}>{tp.env.add}</Button>}>
      {Object.keys(env).length === 0 ? <p className="text-sm text-ink3">{tp.env.none}</p> : <Lines label={tp.env.title}>{Object.entries(env).sort(([a], [b]) => a.localeCompare(b)).map(([name, v]) => (
        <LineOf key={name}>
          <Front><code className="font-mono text-xs">{name}</code> <span className="text-xs text-ink3">{secretOf(v) === undefined ? tp.env.kept : tp.env.from(secrets.find((s) => s.id === secretOf(v))?.name ?? secretOf(v) ?? '')}</span></Front>
          <Button small onClick={() => setEditing(name)}>{t.common.edit}</Button><IconButton small icon="close" label={`${t.common.remove} ${name}`} onClick={() => { const { [name]: _gone, ...rest } = env; save.mutate(rest) }} />
        </LineOf>
      ))}</Lines>}
      {editing !== undefined && <FormDialog title={editing === '' ? tp.env.add : editing} action={t.common.save} schema={schema} check={check} busy={save.isPending} onClose={() => setEditing(undefined)}
        initial={editing === '' ? {} : { name: editing, ...(secretOf(old) ? { secret: secretOf(old) } : {}) }}
        onSave={(v) => { const { [editing]: _was, ...rest } = env; save.mutate({ ...rest, [String(v['name'])]: v['secret'] ? { type: 'secret_ref', secretId: v['secret'], version: 'latest' } : v['value'] }) }} />}
    </Section>
  )
}
