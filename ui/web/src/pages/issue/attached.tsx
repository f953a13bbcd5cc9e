// What hangs on an issue: documents, attachments, and the entries of the chain that made it.
import { useRef, useState } from 'react'
import { Link } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useRead, useWrite, type Activity } from '../../data'
import { number, sizeOf, words } from '../../format'
import { del, get, post, put, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Diff } from '../../parts/diff'
import { Field, Input, TextArea } from '../../parts/form'
import { Icon } from '../../parts/icons'
import { Markdown } from '../../parts/markdown'
import { Confirm, Dialog, DialogFoot } from '../../parts/overlay'
import { Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { Id, Time } from '../../parts/values'
import { t } from '../../text/en'

type Document = Schemas['ApiShownDocument']
type Attachment = Schemas['ApiAttachmentRow']
const rowClass = 'group flex min-h-8 items-center gap-2 text-sm'

export function Documents({ issue }: { issue: string }) {
  const all = useRead(keys.issue(issue, 'documents'), '/api/issues/{id}/documents', { path: { id: issue } }).data ?? []
  const [open, setOpen] = useState<string>()
  const [making, setMaking] = useState(false)
  const shown = all.find((d) => d.key === open)
  return (
    <Section title={t.attached.documents} aside={<IconButton small icon="plus" label={t.attached.newDocument} onClick={() => setMaking(true)} />}>
      {all.map((d) => <button key={d.id} type="button" onClick={() => setOpen(d.key)} className={`${rowClass} w-full text-left hover:underline`}><Icon name="file" size={14} /><span className="min-w-0 grow truncate">{d.title || d.key}</span><span className="text-xs text-ink3">{t.attached.revision(d.latestRevisionNumber)}</span></button>)}
      <Dialog open={!!shown} onClose={() => setOpen(undefined)} title={shown?.title || shown?.key || ''} size="large">{shown && <Shown key={shown.latestRevisionId} issue={issue} document={shown} />}</Dialog>
      <Dialog open={making} onClose={() => setMaking(false)} title={t.attached.newDocument} size="large"><Edit issue={issue} onDone={() => setMaking(false)} /></Dialog>
    </Section>
  )
}

function Shown({ issue, document: d }: { issue: string; document: Document }) {
  const [view, setView] = useState<'text' | 'edit' | 'changes'>('text')
  const revisions = useRead(keys.issue(issue, `document.${d.key}`), '/api/issues/{id}/documents/{key}/revisions', { path: { id: issue, key: d.key } }, { enabled: view === 'changes' }).data ?? []
  const order = [...revisions].sort((a, b) => b.revisionNumber - a.revisionNumber)
  if (view === 'edit') return <Edit issue={issue} document={d} onDone={() => setView('text')} />
  return (
    <div>
      <div className="mb-3 flex items-center gap-2 text-xs text-ink3"><Badge>{t.attached.revision(d.latestRevisionNumber)}</Badge><Time at={d.updatedAt} />{d.lockedAt && <Badge meaning="warn">{t.attached.locked}</Badge>}<span className="ml-auto flex gap-1">
        {d.latestRevisionNumber > 1 && <Button small onClick={() => setView(view === 'changes' ? 'text' : 'changes')}>{view === 'changes' ? t.attached.text : t.attached.changes}</Button>}
        {!d.lockedAt && <Button small onClick={() => setView('edit')}>{t.common.edit}</Button>}</span></div>
      {view === 'text' ? <Markdown text={d.body} file /> : order.map((r, i) => <div key={r.id} className="mb-4"><p className="mb-1 text-sm"><span className="font-strong">{t.attached.revision(r.revisionNumber)}</span> <span className="text-ink2">{r.changeSummary}</span> <span className="text-xs text-ink3"><Time at={r.createdAt} /></span></p><Diff before={order[i + 1]?.body ?? ''} after={r.body} /></div>)}
    </div>
  )
}

function Edit({ issue, document: d, onDone }: { issue: string; document?: Document; onDone: () => void }) {
  const [key, setKey] = useState(d?.key ?? '')
  const [body, setBody] = useState(d?.body ?? '')
  const save = useWrite({
    call: () => put('/api/issues/{id}/documents/{key}', { path: { id: issue, key: key.trim() } }, { format: 'markdown', body, title: d?.title ?? null, ...(d ? { baseRevisionId: d.latestRevisionId } : {}) }),
    reread: () => [keys.issue(issue)], onDone,
  })
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (key.trim() && body.trim()) save.mutate(undefined) }}>
      {!d && <Field label={t.attached.key} hint={t.attached.keyHint}><Input autoFocus maxLength={64} value={key} onChange={(e) => setKey(e.target.value.toLowerCase().replace(/[^a-z0-9-_]/g, '-'))} /></Field>}
      <Field label={t.attached.text}><TextArea rows={16} className="font-mono !text-xs" value={body} onChange={(e) => setBody(e.target.value)} /></Field>
      <DialogFoot><Button onClick={onDone}>{t.common.cancel}</Button><Button look="primary" type="submit" disabled={!key.trim() || !body.trim()} busy={save.isPending}>{t.common.save}</Button></DialogFoot>
    </form>
  )
}


export function Attachments({ issue, company, real }: { issue: string; company: string; real: string }) {
  const all = useRead(keys.issue(issue, 'attachments'), '/api/issues/{id}/attachments', { path: { id: issue } }).data ?? []
  const [ending, setEnding] = useState<Attachment>()
  const file = useRef<HTMLInputElement>(null)
  const reread = () => [keys.issue(issue, 'attachments'), keys.issue(issue, 'activity')]
  const send = useWrite({
    call: (f: File) => { const form = new FormData(); form.append('file', f); return post('/api/companies/{companyId}/issues/{id}/attachments', { path: { companyId: company, id: real } }, form) }, reread,
  })
  const remove = useWrite({ call: (id: string) => del('/api/attachments/{id}', { path: { id } }), reread, onDone: () => setEnding(undefined) })
  return (
    <Section title={t.attached.files} aside={<IconButton small icon="plus" label={t.attached.attach} disabled={send.isPending} onClick={() => file.current?.click()} />}>
      <input ref={file} type="file" multiple hidden aria-label={t.attached.attach} onChange={(e) => { for (const f of e.target.files ?? []) send.mutate(f); e.target.value = '' }} />
      {all.map((a) => (
        <div key={a.id} className={rowClass}><Icon name="link" size={14} /><a href={a.openPath} target="_blank" rel="noopener noreferrer" className="min-w-0 grow truncate hover:underline" title={`${a.contentType}\nSHA-256 ${a.sha256}`}>{a.originalFilename ?? a.id}</a><span className="text-xs text-ink3">{sizeOf(a.byteSize)}</span><IconButton small icon="close" label={`${t.common.remove} ${a.originalFilename ?? ''}`} className="opacity-0 focus:opacity-100 group-hover:opacity-100" onClick={() => setEnding(a)} /></div>
      ))}
      <Confirm open={!!ending} onClose={() => setEnding(undefined)} title={t.attached.removeAsk(ending?.originalFilename ?? '')} body={t.attached.removeBody} action={t.common.remove} busy={remove.isPending} onConfirm={() => ending && remove.mutate(ending.id)} />
    </Section>
  )
}

const maxEntries = 8
type Checked = { state: 'checking' | 'ok' | 'bad'; why?: string }

/** The entries of the chain behind an issue. A check compares an entry with the one before it, and asks whether it names the issue. */
export function Chain({ activity, issue }: { activity: readonly Activity[]; issue: string }) {
  const [checked, setChecked] = useState<Record<number, Checked>>({})
  const heights = [...new Map(activity.filter((a) => a.height > 0).sort((a, b) => b.height - a.height).map((a) => [a.height, a])).values()]
  const check = async (height: number) => {
    setChecked((now) => ({ ...now, [height]: { state: 'checking' } }))
    const read = (h: number) => get('/api/v1/mesh/ledger/entries/{height}', { path: { height: String(h) } })
    try {
      const [entry, before] = await Promise.all([read(height), height > 1 ? read(height - 1) : undefined])
      const linked = !before || entry.previousHash === before.hash
      const names = (entry.changes ?? []).some((c) => c.entityId === issue)
      setChecked((now) => ({ ...now, [height]: linked && names ? { state: 'ok', why: entry.hash } : { state: 'bad', why: linked ? t.attached.notNamed : t.attached.notLinked } }))
    } catch (e) {
      setChecked((now) => ({ ...now, [height]: { state: 'bad', why: e instanceof Error ? e.message : String(e) } }))
    }
  }
  if (heights.length === 0) return null
  const shown = heights.slice(0, maxEntries)
  return (
    <Section title={t.attached.chain} aside={<Button small look="quiet" onClick={() => void Promise.all(shown.map((a) => check(a.height)))}>{t.attached.verify}</Button>}>
      {shown.map((a) => {
        const c = checked[a.height]
        return (
          <div key={a.height} className={rowClass}>
            <Link to="/mesh/ledger" search={{ show: a.height } as never} className="font-mono text-xs text-ink2 hover:underline">{number(a.height)}</Link><span className="min-w-0 grow truncate">{words(a.action.replace(/^issue\./, ''))}</span>
            {c?.state === 'checking' ? <span className="pulse text-xs text-ink3">…</span> : c ? <span title={c.why}><StatusMark status={c.state} {...(c.state === 'ok' ? { label: t.attached.linked } : { label: c.why ?? '' })} bare={c.state === 'ok'} /></span> : null}
            {c?.state === 'ok' && c.why && <Id id={c.why} />}
          </div>
        )
      })}
      {heights.length > maxEntries && <p className="text-xs text-ink3">{t.attached.more(heights.length - maxEntries)}</p>}
    </Section>
  )
}
