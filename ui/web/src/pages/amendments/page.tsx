// Amendments of the constitution, newest first, and the keys of the board that sign them.
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm } from '../../parts/overlay'
import { Empty, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Table, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'
import { amended, useAmendments, useRules } from '../govern/data'
import type { Amendment } from '../govern/rules'

const a = tr.amendments
type Key = Schemas['ApiConstitution']['signingKeys'][number]

const columns: Column<Amendment>[] = [
  { id: 'id', head: a.id, width: '40px', cell: (x) => x.id, sort: (x, y) => Number(x.id) - Number(y.id) },
  { id: 'title', head: a.what, width: 'minmax(0,1fr)', cell: (x) => <span className="font-strong">{x.title || a.one(x.id)}</span> },
  { id: 'parts', head: a.changes, width: '168px', from: 'desk', cell: (x) => <span className="text-ink2">{a.parts(x.rules.length, x.dropRules.length, x.keys.length + x.dropKeys.length)}</span> },
  { id: 'status', head: a.status, width: '104px', cell: (x) => <StatusMark status={x.status} label={a.states[x.status] ?? x.status} /> },
  { id: 'signatures', head: a.signatures, width: '84px', from: 'tab', cell: (x) => a.of(x.signed, x.required) },
  { id: 'version', head: a.version, width: '64px', from: 'tab', cell: (x) => x.version ?? '–' },
  { id: 'at', head: a.at, width: '72px', right: true, from: 'tab', cell: (x) => <span className="text-xs text-ink3"><Time at={x.proposedAt} /></span> },
]

export function Page() {
  const go = useNavigate()
  const all = useAmendments()
  const create = <Button look="primary" icon="plus" onClick={() => void go({ to: '/mesh/constitution/rule' })}>{tr.govern.newRule}</Button>
  return (
    <Frame title={a.title} command="selvage govern amendments" tools={create}>
      <div className="flex w-full max-w-page flex-col gap-6 p-4">
        <Loaded of={all}>{(rows) => rows.length === 0 ? <Empty icon="amendments" title={a.empty} why={a.emptyWhy} /> : <div className="flex max-h-[70vh] flex-col overflow-hidden rounded border border-line"><Table label={a.title} rows={rows} columns={columns} keyOf={(x) => x.id} onOpen={(x) => void go({ to: `/mesh/amendments/${x.id}` })} /></div>}</Loaded>
        <SigningKeys />
      </div>
    </Frame>
  )
}

function SigningKeys() {
  const go = useNavigate()
  const rules = useRules()
  const [adding, setAdding] = useState(false)
  const [dropping, setDropping] = useState<Key>()
  const propose = useWrite<Schemas['ApiDraftBody'], Amendment>({ call: (body) => post('/api/v1/govern/amendments', {}, body), reread: amended, onDone: (made) => { setAdding(false); setDropping(undefined); toast({ text: tr.editor.proposed }); void go({ to: `/mesh/amendments/${made.id}` }) } })
  return (
    <Section title={a.keys} aside={<Button small icon="plus" onClick={() => setAdding(true)}>{a.addKey}</Button>}>
      <Loaded of={rules} rows={1}>{(c) => c.signingKeys.length === 0 ? <p className="text-sm text-ink2">{a.keysWhy}</p> : <Lines label={a.keys}>{c.signingKeys.map((k) => <LineOf key={k.id}><Front><span className="font-strong">{k.name}</span></Front><Id id={k.id} /><Id id={k.publicKey} /><Button small look="danger" onClick={() => setDropping(k)}>{a.dropKey}</Button></LineOf>)}</Lines>}</Loaded>
      {adding && <FormDialog title={a.addKey} action={tr.editor.propose} busy={propose.isPending} onClose={() => setAdding(false)} onSave={(v) => propose.mutate({ title: a.keyTitle(String(v['name'])), keys: [{ name: String(v['name']), publicKey: String(v['publicKey']).trim() }] })}
        schema={{ required: ['name', 'publicKey'], properties: { name: { type: 'string', title: a.keyName }, publicKey: { type: 'string', title: a.publicKey, description: a.publicKeyHint } } }} />}
      <Confirm open={!!dropping} onClose={() => setDropping(undefined)} title={a.dropKeyAsk(dropping?.name ?? '')} body={tr.govern.dropBody} action={tr.editor.propose} busy={propose.isPending} onConfirm={() => dropping && propose.mutate({ title: a.dropKeyTitle(dropping.name), dropKeys: [dropping.id] })} />
    </Section>
  )
}
