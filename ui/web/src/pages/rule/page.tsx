// One rule as a proposal: what it asks, a dry run on the last acts, and the amendment that proposes it.
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useRef, useState } from 'react'
import { useWrite } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { drafts } from '../../node'
import { Button } from '../../parts/button'
import { Field, Input, Select, TextArea } from '../../parts/form'
import { ErrorBox, Loaded, Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { amended, useRules } from '../govern/data'
import { Review } from '../govern/review'
import { listOf, type Rule } from '../govern/rules'

const e = tr.editor
const g = tr.govern
const usual = 12_000

export interface Draft { id: string; title: string; branch: string; severity: string; on: string; when: string; reason: string; reference: string; about: string }
const empty: Draft = { id: '', title: '', branch: 'judicial', severity: 'warning', on: '', when: '', reason: '', reference: '', about: '' }
const draftOf = (r: Rule): Draft => ({ ...empty, id: r.id, title: r.title, branch: r.branch, severity: r.severity, on: r.on.join(', '), when: r.when, reason: r.reason, reference: r.reference ?? '' })

/** bodyOf is the amendment that a draft proposes. */
export function bodyOf(d: Draft): Schemas['ApiDraftBody'] {
  return { title: d.about.trim() || d.id.trim(), rules: [{ id: d.id.trim(), branch: d.branch as 'judicial', severity: d.severity as 'warning', when: d.when.trim(), reason: d.reason.trim(), ...(d.title.trim() ? { title: d.title.trim() } : {}), ...(listOf(d.on).length > 0 ? { on: listOf(d.on) } : {}), ...(d.reference.trim() ? { reference: d.reference.trim() } : {}) }] }
}

/** lacking names what a draft has to have. */
export function lacking(d: Draft): Partial<Record<keyof Draft, string>> {
  return { ...(d.id.trim() ? {} : { id: e.noId }), ...(d.when.trim() ? {} : { when: e.noPredicate }), ...(d.reason.trim() ? {} : { reason: e.noReason }) }
}

function kept(name: string): Draft | undefined {
  try {
    return JSON.parse(drafts.get(name)) as Draft
  } catch {
    return undefined
  }
}

export function Page() {
  const { id } = useSearch({ strict: false }) as { id?: string }
  const rules = useRules()
  return (
    <Frame title={id ? e.of(id) : g.newRule} command="selvage govern review --rule JSON">
      <Loaded of={rules}>{(c) => { const of = c.rules.find((r) => r.id === id); return <Editor key={id ?? ''} name={`rule ${id ?? ''}`} start={of ? draftOf(of) : empty} fixed={!!of} variables={c.variables} /> }}</Loaded>
    </Frame>
  )
}

function Editor({ name, start, fixed, variables }: { name: string; start: Draft; fixed: boolean; variables: readonly Schemas['ApiVariable'][] }) {
  const go = useNavigate()
  const [draft, setDraft] = useState<Draft>(() => kept(name) ?? start)
  const [last, setLast] = useState(usual)
  const [tried, setTried] = useState(false)
  const [found, setFound] = useState<Schemas['ApiReview']>()
  const [broken, setBroken] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const predicate = useRef<HTMLTextAreaElement>(null)
  const wrong = lacking(draft)
  const set = (change: Partial<Draft>) => {
    const next = { ...draft, ...change }
    setDraft(next)
    drafts.set(name, JSON.stringify(next))
  }
  const ready = () => { setTried(true); return Object.keys(wrong).length === 0 }
  const tryIt = () => {
    if (!ready()) return
    setBusy(true)
    setBroken(undefined)
    post('/api/v1/govern/review', {}, { draft: bodyOf(draft), last }).then(setFound, (error: unknown) => { setFound(undefined); setBroken(error) }).finally(() => setBusy(false))
  }
  const propose = useWrite({ call: (d: Draft) => post('/api/v1/govern/amendments', {}, bodyOf(d)), reread: amended, onDone: (a) => { drafts.set(name, ''); toast({ text: e.proposed }); void go({ to: `/mesh/amendments/${a.id}` }) } })
  const read = variables.filter((v) => v.branches.includes(draft.branch))
  const insert = (word: string) => {
    const at = predicate.current?.selectionStart ?? draft.when.length
    set({ when: draft.when.slice(0, at) + word + draft.when.slice(predicate.current?.selectionEnd ?? at) })
    predicate.current?.focus()
  }
  const text = (of: keyof Draft) => ({ value: draft[of], onChange: (x: { target: { value: string } }) => set({ [of]: x.target.value }) })
  return (
    <div className="grid w-full max-w-page gap-x-8 gap-y-6 p-4 desk:grid-cols-[minmax(0,1fr)_320px]">
      <form className="flex min-w-0 flex-col gap-3" onSubmit={(x) => { x.preventDefault(); if (ready()) propose.mutate(draft) }}>
        <div className="grid gap-3 tab:grid-cols-3">
          <Field label={e.id} {...(fixed ? {} : { hint: e.idHint })} wrong={tried ? wrong.id : undefined}><Input {...text('id')} readOnly={fixed} maxLength={64} className="font-mono text-xs" /></Field>
          <Field label={g.branch}><Select {...text('branch')} choices={Object.entries(g.branches).map(([value, label]) => ({ value, label }))} /></Field>
          <Field label={g.severity} hint={g.does[draft.severity]}><Select {...text('severity')} choices={Object.entries(g.severities).map(([value, label]) => ({ value, label }))} /></Field>
        </div>
        <Field label={g.title}><Input {...text('title')} maxLength={500} /></Field>
        <Field label={e.predicate} hint={e.predicateHint} wrong={tried ? wrong.when : undefined}><TextareaOf inner={predicate} {...text('when')} /></Field>
        <Field label={e.on} hint={e.onHint}><Input {...text('on')} /></Field>
        <Field label={e.reason} hint={e.reasonHint} wrong={tried ? wrong.reason : undefined}><Input {...text('reason')} maxLength={500} /></Field>
        <div className="grid gap-3 tab:grid-cols-2">
          <Field label={e.reference}><Input {...text('reference')} maxLength={500} /></Field>
          <Field label={e.about} hint={e.aboutHint}><Input {...text('about')} maxLength={500} /></Field>
        </div>
        <Section title={e.dry} aside={<span className="flex items-center gap-2"><label className="flex items-center gap-2 text-xs text-ink3">{e.last}<Input type="number" min={1} max={20_000} value={String(last)} onChange={(x) => setLast(Math.max(1, Math.min(20_000, Math.round(Number(x.target.value)) || 1)))} className="!h-6 !w-24 text-xs" /></label><Button small busy={busy} onClick={tryIt}>{e.try}</Button></span>}>
          {broken !== undefined ? <ErrorBox error={broken} /> : found ? <Review of={found} /> : <p className="text-sm text-ink3">{e.dryWhy}</p>}
        </Section>
        <div className="flex justify-end gap-2"><Button onClick={() => { drafts.set(name, ''); void go({ to: '/mesh/constitution' }) }}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={propose.isPending}>{e.propose}</Button></div>
      </form>
      <Section title={e.reads}>
        {draft.branch !== 'executive' && <p className="mb-2 text-xs text-ink3">{e.unread}</p>}
        <ul className="rounded border border-line">
          {read.map((v) => <li key={v.name} className="border-b border-line last:border-0"><button type="button" onClick={() => insert(v.name)} className="block w-full px-3 py-1.5 text-left text-sm hover:bg-ground2"><code className="font-mono text-xs">{v.name}</code> <span className="text-xs text-ink3">{v.type}</span><span className="block text-xs text-ink2">{v.about}</span></button></li>)}
        </ul>
      </Section>
    </div>
  )
}

const TextareaOf = ({ inner, ...rest }: { inner: React.RefObject<HTMLTextAreaElement | null> } & React.TextareaHTMLAttributes<HTMLTextAreaElement>) => <TextArea {...rest} ref={inner} spellCheck={false} maxLength={2048} className="font-mono text-xs" />
