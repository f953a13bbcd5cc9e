// A dialog that is a form from a schema: most of what a page makes or changes.
import { useEffect, useRef, useState, type ReactNode } from 'react'
import { t } from '../text/en'
import { Button } from './button'
import { JsonForm, wrongOf, type Schema, type Values } from './jsonform'
import { Dialog, DialogFoot } from './overlay'
import { copy } from './values'

/** changesOf are the members that differ; null is what was there and is cleared. */
export function changesOf(before: Values, now: Values): Values {
  const out: Values = {}
  for (const name of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const value = now[name] === undefined || now[name] === '' ? null : now[name]
    const old = before[name] === undefined || before[name] === '' ? null : before[name]
    if (JSON.stringify(value) !== JSON.stringify(old)) out[name] = value
  }
  return out
}

interface FormDialogProps {
  title: string
  /** The fields; a function where they depend on what is filled in. */
  schema: Schema | ((values: Values) => Schema)
  initial?: Values
  /** What the button says; "Create" without. */
  action?: string
  busy?: boolean
  size?: 'small' | 'medium' | 'large'
  onClose: () => void
  /** All that is filled in, and what of it differs from the initial values. */
  onSave: (values: Values, changes: Values) => void
  /** Above and below the fields. */
  head?: ReactNode
  foot?: (values: Values) => ReactNode
  /** What is wrong besides what the schema says. */
  check?: (values: Values) => Record<string, string>
}

export function FormDialog(props: FormDialogProps) {
  return <Dialog open onClose={props.onClose} title={props.title} size={props.size ?? 'small'}><Form {...props} /></Dialog>
}

function Form({ schema: of, initial = {}, action, busy, onClose, onSave, head, foot, check }: FormDialogProps) {
  const [values, setValues] = useState<Values>(initial)
  const [tried, setTried] = useState(false)
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => form.current?.querySelector<HTMLElement>('input, textarea, select')?.focus(), [])
  const schema = typeof of === 'function' ? of(values) : of
  const wrong = { ...wrongOf(schema, values), ...check?.(values) }
  const send = () => {
    setTried(true)
    if (Object.keys(wrong).length === 0) onSave(values, changesOf(initial, values))
  }
  return (
    <form ref={form} className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); send() }} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) send() }}>
      {head}
      <JsonForm schema={schema} values={values} onChange={setValues} wrong={tried ? wrong : {}} />
      {foot?.(values)}
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={busy ?? false}>{action ?? t.common.create}</Button></DialogFoot>
    </form>
  )
}

/** What the node shows this once: a token, a key, a webhook's secret. It is in no cache and no address. */
export function ShownOnce({ title, why, values, onClose }: { title: string; why: string; values: readonly { label: string; text: string }[]; onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title={title} size="medium">
      <p className="mb-3 text-sm text-ink2">{why}</p>
      {values.map((v) => (
        <div key={v.label} className="mb-3">
          <h3 className="mb-1 text-xs text-ink3">{v.label}</h3>
          <div className="flex items-start gap-2"><code className="block min-w-0 grow break-all rounded border border-line bg-ground2 p-2 font-mono text-xs">{v.text}</code><Button icon="copy" onClick={() => void copy(v.text)}>{t.common.copy}</Button></div>
        </div>
      ))}
      <DialogFoot><Button look="primary" onClick={onClose}>{t.common.close}</Button></DialogFoot>
    </Dialog>
  )
}
