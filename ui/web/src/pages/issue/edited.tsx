// What of an issue is changed in place besides its state: text, labels, goal, and what it waits for.
import { Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useIssues, useRead, type IssueChange, type ShownIssue } from '../../data'
import { drafts } from '../../node'
import { Button, IconButton } from '../../parts/button'
import { Choices, Combobox, Select, TextArea } from '../../parts/form'
import { Icon } from '../../parts/icons'
import { Markdown } from '../../parts/markdown'
import { Dialog } from '../../parts/overlay'
import { Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { t } from '../../text/en'

type Set = (change: IssueChange['change']) => void
const listed = 1000

/** The description; it is written as Markdown, and a text that is not saved is kept. */
export function Text({ issue, set }: { issue: ShownIssue; set: Set }) {
  const name = `text.${issue.id}`
  const [text, setText] = useState<string | undefined>(() => drafts.get(name) || undefined)
  const write = (next: string | undefined) => { setText(next); drafts.set(name, next ?? '') }
  if (text === undefined) {
    return (
      <div className="group relative">
        {issue.description ? <Markdown text={issue.description} /> : <p className="text-ink3">{t.issue.noDescription}</p>}
        <Button small look="quiet" className={`-ml-2 !font-normal ${issue.description ? 'mt-1' : 'mt-2'}`} onClick={() => setText(issue.description ?? '')}>{t.issue.editText}</Button>
      </div>
    )
  }
  const save = () => { if (text !== (issue.description ?? '')) set({ description: text.trim() === '' ? null : text }); write(undefined) }
  return (
    <form className="flex flex-col gap-2" onSubmit={(e) => { e.preventDefault(); save() }}>
      <TextArea autoFocus rows={10} aria-label={t.issues.description} value={text} onChange={(e) => write(e.target.value)} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); save() } }} />
      <div className="flex justify-end gap-2"><Button onClick={() => write(undefined)}>{t.common.cancel}</Button><Button look="primary" type="submit">{t.common.save}</Button></div>
    </form>
  )
}

export function LabelsOf({ issue, set }: { issue: ShownIssue; set: Set }) {
  const company = useCompany()
  const all = useRead(keys.labels(issue.companyId), '/api/companies/{companyId}/labels', { path: { companyId: issue.companyId } }).data ?? []
  const has = issue.labelIds ?? []
  const toggle = (id: string) => set({ labelIds: has.includes(id) ? has.filter((l) => l !== id) : [...has, id] })
  const dot = (color: string) => <span aria-hidden="true" style={{ background: color }} className="inline-block size-2 shrink-0 rounded-full" />
  return (
    <span className="flex flex-wrap items-center gap-1">
      {(issue.labels ?? []).map((l) => <Badge key={l.id}><span className="inline-flex items-center gap-1.5">{dot(l.color)}{l.name}</span></Badge>)}
      {all.length === 0 ? <Link to={`/${company.issuePrefix}/company/settings`} className="text-xs text-accent hover:underline">{t.issue.makeLabels}</Link> : (
        <Combobox label={t.issue.labels} onChange={toggle} choices={all.map((l) => ({ value: l.id, label: l.name, mark: <span className="flex items-center gap-2">{has.includes(l.id) ? <Icon name="check" size={14} /> : <span className="w-3.5" />}{dot(l.color)}</span> }))}><IconButton small icon="plus" label={t.issue.setLabels} /></Combobox>
      )}
    </span>
  )
}

export function GoalOf({ issue, set }: { issue: ShownIssue; set: Set }) {
  const goals = useRead(keys.goals(issue.companyId), '/api/companies/{companyId}/goals', { path: { companyId: issue.companyId } }).data ?? []
  if (goals.length === 0) return <>–</>
  return <Select small aria-label={t.issue.goal} value={issue.goalId ?? ''} onChange={(e) => set({ goalId: e.target.value || null })} choices={[{ value: '', label: t.common.none }, ...goals.map((g) => ({ value: g.id, label: g.title }))]} />
}

/** What it waits for, and what waits for it. */
export function Relations({ issue, set, link }: { issue: ShownIssue; set: Set; link: (to: { id: string; identifier?: string | null; title?: string; status?: string }) => ReactNode }) {
  const [adding, setAdding] = useState(false)
  const by = issue.blockedBy ?? []
  return (
    <>
      <Section title={t.issue.blockedBy} aside={<IconButton small icon="plus" label={t.issue.addBlocker} onClick={() => setAdding(true)} />}>
        {by.map((i) => <div key={i.id} className="flex items-center gap-1"><div className="min-w-0 grow">{link(i)}</div><IconButton small icon="close" label={t.issue.removeBlocker(i.identifier ?? i.id)} onClick={() => set({ blockedByIssueIds: by.filter((b) => b.id !== i.id).map((b) => b.id) })} /></div>)}
      </Section>
      {!!issue.blocks?.length && <Section title={t.issue.blocks}>{issue.blocks.map(link)}</Section>}
      <Dialog open={adding} onClose={() => setAdding(false)} title={t.issue.addBlocker} size="medium"><Pick issue={issue} onPick={(id) => { setAdding(false); set({ blockedByIssueIds: [...by.map((b) => b.id), id] }) }} /></Dialog>
    </>
  )
}

function Pick({ issue, onPick }: { issue: ShownIssue; onPick: (id: string) => void }) {
  const all = useIssues(issue.companyId, { limit: listed }).data ?? []
  const out = new Set([issue.id, ...(issue.blockedBy ?? []).map((b) => b.id)])
  return <Choices label={t.issues.find} choices={all.filter((i) => !out.has(i.id)).map((i) => ({ value: i.id, label: i.title, hint: i.identifier ?? '', mark: <StatusMark status={i.status} bare /> }))} onPick={onPick} />
}
