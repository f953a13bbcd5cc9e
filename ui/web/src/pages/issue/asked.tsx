// What was asked on an issue, with the form that answers it: questions, confirmations, suggested tasks, verdicts.
import { useState } from 'react'
import type { QueryKey } from '@tanstack/react-query'
import { keys } from '../../cache'
import { useNames, useWrite } from '../../data'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Input, Select } from '../../parts/form'
import { Markdown } from '../../parts/markdown'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Time, Who } from '../../parts/values'
import { t } from '../../text/en'

export type Interaction = Schemas['ApiShownInteraction']

interface Option { id: string; label: string; description?: string | null }
interface Question { id: string; prompt: string; helpText?: string | null; selectionMode: 'single' | 'multi'; required?: boolean; allowOther?: boolean; options: Option[] }
export interface Payload {
  prompt?: string; detailsMarkdown?: string | null; acceptLabel?: string | null; rejectLabel?: string | null; rejectRequiresReason?: boolean; rejectReasonLabel?: string | null
  questions?: Question[]; submitLabel?: string | null
  options?: Option[]; defaultSelectedOptionIds?: string[]; minSelected?: number; maxSelected?: number | null
  tasks?: { clientKey: string; title: string; description?: string | null; priority?: string | null; hiddenInPreview?: boolean }[]
  items?: (Option & { previewMarkdown?: string | null })[]; verdicts?: string[]; requireReasonOn?: string[]; reasonLabel?: string | null
}
export interface Answers { chosen: Record<string, string[]>; other: Record<string, string>; reasons: Record<string, string> }

/** lackOf says what is still to be filled in before an interaction can be answered. */
export function lackOf(kind: string, p: Payload, a: Answers): string | undefined {
  if (kind === 'ask_user_questions') {
    const open = (p.questions ?? []).find((q) => q.required && !(a.chosen[q.id]?.length || a.other[q.id]?.trim()))
    return open ? t.asked.answerFirst(open.prompt) : undefined
  }
  if (kind === 'request_checkbox_confirmation') {
    const n = a.chosen['']?.length ?? 0
    if (n < (p.minSelected ?? 0)) return t.asked.atLeast(p.minSelected ?? 0)
    if (p.maxSelected && n > p.maxSelected) return t.asked.atMost(p.maxSelected)
  }
  if (kind === 'suggest_tasks' && (a.chosen['']?.length ?? 0) === 0) return t.asked.chooseTask
  if (kind === 'request_item_verdicts') {
    const open = (p.items ?? []).find((i) => !a.chosen[i.id]?.[0] || (p.requireReasonOn?.includes(a.chosen[i.id]?.[0] ?? '') && !a.reasons[i.id]?.trim()))
    return open ? t.asked.answerFirst(open.label) : undefined
  }
  return undefined
}

const firstOf = (kind: string, p: Payload): Answers => ({
  chosen: kind === 'suggest_tasks' ? { '': (p.tasks ?? []).map((x) => x.clientKey) } : kind === 'request_checkbox_confirmation' ? { '': p.defaultSelectedOptionIds ?? [] } : {}, other: {}, reasons: {},
})

/** send makes the call that answers. */
export function answerCall(i: Pick<Interaction, 'id' | 'issueId' | 'kind'>, p: Payload, a: Answers): Promise<unknown> {
  const at = { path: { id: i.issueId, interactionId: i.id } }
  switch (i.kind) {
    case 'ask_user_questions': return post('/api/issues/{id}/interactions/{interactionId}/respond', at, { answers: (p.questions ?? []).filter((q) => a.chosen[q.id]?.length || a.other[q.id]?.trim()).map((q) => ({ questionId: q.id, optionIds: a.chosen[q.id] ?? [], ...(a.other[q.id]?.trim() ? { otherText: a.other[q.id]?.trim() } : {}) })) })
    case 'request_item_verdicts': return post('/api/issues/{id}/interactions/{interactionId}/verdicts', at, { verdicts: (p.items ?? []).map((x) => ({ id: x.id, verdict: a.chosen[x.id]?.[0], ...(a.reasons[x.id]?.trim() ? { reason: a.reasons[x.id]?.trim() } : {}) })) })
    case 'suggest_tasks': return post('/api/issues/{id}/interactions/{interactionId}/accept', at, { selectedClientKeys: a.chosen[''] ?? [] })
    case 'request_checkbox_confirmation': return post('/api/issues/{id}/interactions/{interactionId}/accept', at, { selectedOptionIds: a.chosen[''] ?? [] })
  }
  return post('/api/issues/{id}/interactions/{interactionId}/accept', at)
}

/** refuseCall is how people say no: questions have no answer that does, they are withdrawn. */
function refuseCall(i: Pick<Interaction, 'id' | 'issueId' | 'kind'>, reason: string): Promise<unknown> {
  const at = { path: { id: i.issueId, interactionId: i.id } }
  const body = reason ? { reason } : {}
  return i.kind === 'ask_user_questions' || i.kind === 'request_item_verdicts' ? post('/api/issues/{id}/interactions/{interactionId}/cancel', at, body) : post('/api/issues/{id}/interactions/{interactionId}/reject', at, body)
}

export function Asked({ of: i, company, onDone, also = [], first = true }: { of: Interaction; company: string; onDone?: () => void; also?: readonly QueryKey[]; first?: boolean }) {
  const names = useNames(company)
  const p = (i.payload ?? {}) as Payload
  const [a, setA] = useState(() => firstOf(i.kind, p))
  const [refusing, setRefusing] = useState(false)
  const [reason, setReason] = useState('')
  const reread = () => [keys.issue(i.issueId), keys.attention(company), keys.badges(company), ...also]
  const answer = useWrite({ call: () => answerCall(i, p, a), reread, onDone: () => { toast({ text: t.asked.answered }); onDone?.() } })
  const reject = useWrite({ call: () => refuseCall(i, reason.trim()), reread, onDone: () => { toast({ text: t.asked.refused }); onDone?.() } })
  const lack = lackOf(i.kind, p, a)
  const choose = (of: string, id: string, single: boolean) => setA((now) => {
    const before = now.chosen[of] ?? []
    return { ...now, chosen: { ...now.chosen, [of]: single ? [id] : before.includes(id) ? before.filter((x) => x !== id) : [...before, id] } }
  })
  const by = i.createdByAgentId ?? i.createdByUserId
  const option = (of: string, o: Option, single: boolean) => (
    <label key={o.id} className="flex items-start gap-2 py-1 text-sm"><input type={single ? 'radio' : 'checkbox'} name={`${i.id}.${of}`} checked={a.chosen[of]?.includes(o.id) ?? false} onChange={() => choose(of, o.id, single)} className="mt-0.5 size-4 accent-(--accent)" />
      <span>{o.label}{o.description && <span className="block text-xs text-ink2">{o.description}</span>}</span></label>
  )
  return (
    <article aria-label={i.title ?? t.asked.kind[i.kind] ?? i.kind} data-asked={i.id} className="rounded border border-line2">
      <header className="flex min-h-9 flex-wrap items-center gap-2 border-b border-line bg-ground2 px-3 py-1 text-sm"><StatusMark status={i.status} bare /><span className="font-strong">{i.title || t.asked.kind[i.kind]}</span>{by && <Who id={by} name={names(by).name} person={!i.createdByAgentId} />}<span className="ml-auto text-xs text-ink3"><Time at={i.createdAt} /></span></header>
      <form className="flex flex-col gap-3 p-3" onSubmit={(e) => { e.preventDefault(); if (!lack) answer.mutate(undefined) }}>
        {i.summary && <p className="text-sm text-ink2">{i.summary}</p>}
        {p.prompt && <Markdown text={p.prompt} />}
        {p.detailsMarkdown && <Markdown text={p.detailsMarkdown} />}
        {p.questions?.map((q) => (
          <fieldset key={q.id}><legend className="text-sm font-strong">{q.prompt}{q.required ? ' *' : ''}</legend>{q.helpText && <p className="text-xs text-ink3">{q.helpText}</p>}
            {q.options.map((o) => option(q.id, o, q.selectionMode === 'single'))}
            {(q.allowOther || q.options.length === 0) && <Input aria-label={`${q.prompt}: ${t.asked.other}`} placeholder={t.asked.other} value={a.other[q.id] ?? ''} onChange={(e) => setA({ ...a, other: { ...a.other, [q.id]: e.target.value } })} />}
          </fieldset>
        ))}
        {i.kind === 'request_checkbox_confirmation' && <div>{p.options?.map((o) => option('', o, false))}</div>}
        {i.kind === 'suggest_tasks' && <div>{p.tasks?.map((x) => option('', { id: x.clientKey, label: x.title, description: x.description ?? null }, false))}</div>}
        {p.items?.map((x) => (
          <div key={x.id} className="flex flex-wrap items-center gap-2 text-sm"><span className="min-w-0 grow">{x.label}{x.description && <span className="block text-xs text-ink2">{x.description}</span>}</span>
            <Select small aria-label={x.label} value={a.chosen[x.id]?.[0] ?? ''} onChange={(e) => choose(x.id, e.target.value, true)} choices={[{ value: '', label: t.common.choose }, ...(p.verdicts ?? ['approve', 'reject', 'defer']).map((v) => ({ value: v, label: t.asked.verdict[v] ?? v }))]} />
            {p.requireReasonOn?.includes(a.chosen[x.id]?.[0] ?? '') && <Input aria-label={`${x.label}: ${t.asked.reason}`} placeholder={p.reasonLabel ?? t.asked.reason} value={a.reasons[x.id] ?? ''} onChange={(e) => setA({ ...a, reasons: { ...a.reasons, [x.id]: e.target.value } })} />}</div>
        ))}
        {refusing && <Input autoFocus aria-label={p.rejectReasonLabel ?? t.asked.reason} placeholder={p.rejectReasonLabel ?? t.asked.reason} value={reason} onChange={(e) => setReason(e.target.value)} />}
        <div className="flex flex-wrap items-center justify-end gap-2">
          {lack && <span className="mr-auto text-xs text-ink3">{lack}</span>}
          <Button disabled={refusing && !!p.rejectRequiresReason && reason.trim() === ''} busy={reject.isPending} onClick={() => (refusing ? reject.mutate(undefined) : setRefusing(true))}>{refusing ? t.asked.reallyReject(p.rejectLabel || t.asked.reject) : p.rejectLabel || t.asked.reject}</Button>
          <Button look={first ? 'primary' : 'plain'} type="submit" disabled={!!lack} busy={answer.isPending}>{p.acceptLabel || p.submitLabel || t.asked.accept[i.kind] || t.asked.answer}</Button>
        </div>
      </form>
    </article>
  )
}
