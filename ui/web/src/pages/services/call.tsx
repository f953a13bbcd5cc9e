// A call of a method of a service: the parameters that the contract names, and its result in the same place.
import { useState } from 'react'
import { useWrite } from '../../data'
import { number } from '../../format'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import type { Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { paramsOf, paramsSchema } from './contract'

const x = tr.services

export interface Method { name: string; description: string; params?: unknown }
export interface Said { result: unknown; by: string; took: number; attempts: number }
type Send = (method: string, params: { params?: unknown }) => Promise<Said>

/** The methods of a service, each with a button that calls it. */
export function Methods({ label, all, send }: { label: string; all: readonly Method[]; send: Send }) {
  const [calling, setCalling] = useState<Method>()
  return (
    <>
      <Lines label={label}>{all.map((m) => (
        <LineOf key={m.name}><Front><code className="font-mono text-xs font-strong">{m.name}</code>{m.description && <span className="ml-2 text-ink2" title={m.description}>{m.description}</span>}</Front><Button small icon="play" aria-label={x.callOf(m.name)} onClick={() => setCalling(m)}>{x.call}</Button></LineOf>
      ))}</Lines>
      {calling && <Call method={calling} send={send} onClose={() => setCalling(undefined)} />}
    </>
  )
}

function Call({ method: m, send, onClose }: { method: Method; send: Send; onClose: () => void }) {
  const [answer, setAnswer] = useState<Said>()
  const call = useWrite<Values, Said>({ call: (v) => send(m.name, paramsOf(m.params, v)), onDone: setAnswer })
  if (!answer) return <FormDialog title={x.callOf(m.name)} size="medium" action={x.call} busy={call.isPending} schema={paramsSchema(m.params, x.params)} onClose={onClose} onSave={(v) => call.mutate(v)} head={m.description && <p className="text-sm text-ink2">{m.description}</p>} />
  return (
    <Dialog open title={x.callOf(m.name)} size="medium" onClose={onClose}>
      <pre data-result className="max-h-[50vh] overflow-auto whitespace-pre-wrap break-words rounded border border-line bg-ground2 p-2 font-mono text-xs">{JSON.stringify(answer.result, null, 2)}</pre>
      <p className="mt-2 text-sm text-ink2">{x.answered(answer.by, number(answer.took), answer.attempts)}</p>
      <DialogFoot><Button onClick={() => setAnswer(undefined)}>{x.callAgain}</Button><Button look="primary" onClick={onClose}>{t.common.close}</Button></DialogFoot>
    </Dialog>
  )
}
