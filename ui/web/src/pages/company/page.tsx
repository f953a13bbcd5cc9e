// The settings of a company: its name and looks, its money, its policies, and whether it works.
import { useState, type ReactNode } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { say, useWrite, type Company } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Checkbox, Field, Input, TextArea } from '../../parts/form'
import { Confirm } from '../../parts/overlay'
import { Facts, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Money, Time } from '../../parts/values'
import { t } from '../../text/en'
import { Labels } from './labels'
import { tp } from '../../text/en.pages'

type Verb = 'pause' | 'resume' | 'archive' | 'activate'
const MiB = 1024 * 1024

export function Page() {
  const company = useCompany()
  return (
    <Frame title={tp.company.title} command={`selvage company show ${company.issuePrefix}`}>
      <div className="parts w-full max-w-[720px] p-4 huge:max-w-[1720px]">
        <Form key={`${company.id} ${company.updatedAt}`} company={company} />
        <Logo company={company} />
        <Labels key={company.id} company={company.id} />
        <Work company={company} />
        <Section title={tp.company.facts}><Facts rows={[[tp.company.prefix, company.issuePrefix], [tp.company.issues, number(company.issueCounter)], [tp.company.spent, <Money cents={company.spentMonthlyCents} />], [tp.company.created, <Time at={company.createdAt} />], ['ID', <Id id={company.id} />]]} /></Section>
      </div>
    </Frame>
  )
}

function Form({ company: c }: { company: Company }) {
  const first = { name: c.name, description: c.description ?? '', brandColor: c.brandColor ?? '', budget: c.budgetMonthlyCents > 0 ? String(c.budgetMonthlyCents / 100) : '', agents: c.requireBoardApprovalForNewAgents, strategy: c.requireBoardApprovalForCeoStrategy, max: String(c.attachmentMaxBytes / MiB) }
  const [now, setNow] = useState(first)
  const save = useWrite<Schemas['ApiPatchCompany'], unknown>({ call: (body) => patch('/api/companies/{companyId}', { path: { companyId: c.id } }, body), reread: () => [keys.companies(), keys.dashboard(c.id), keys.budgets(c.id)], onDone: () => toast({ text: tp.company.saved }) })
  const changes: Schemas['ApiPatchCompany'] = {
    ...(now.name.trim() !== c.name ? { name: now.name.trim() } : {}), ...(now.description !== first.description ? { description: now.description || null } : {}), ...(now.brandColor !== first.brandColor ? { brandColor: now.brandColor || null } : {}),
    ...(now.budget !== first.budget ? { budgetMonthlyCents: Math.round(Number(now.budget || 0) * 100) } : {}), ...(now.agents !== first.agents ? { requireBoardApprovalForNewAgents: now.agents } : {}), ...(now.strategy !== first.strategy ? { requireBoardApprovalForCeoStrategy: now.strategy } : {}),
    ...(now.max !== first.max ? { attachmentMaxBytes: Math.round(Number(now.max) * MiB) } : {}),
  }
  const wrong = now.name.trim() === '' ? t.part.required(tp.company.name) : undefined
  const text = (name: 'name' | 'description' | 'budget' | 'max') => ({ value: now[name], onChange: (e: { target: { value: string } }) => setNow({ ...now, [name]: e.target.value }) })
  return (
    <form className="flex flex-col gap-6" onSubmit={(e) => { e.preventDefault(); if (!wrong) save.mutate(changes) }}>
      <Section title={tp.company.who}><div className="flex flex-col gap-3">
        <Field label={tp.company.name} wrong={wrong}><Input maxLength={200} {...text('name')} /></Field>
        <Field label={tp.company.description}><TextArea {...text('description')} /></Field>
        <Field label={tp.company.color}><Colour value={now.brandColor} onChange={(brandColor) => setNow({ ...now, brandColor })} /></Field>
      </div></Section>
      <Section title={tp.company.money}><Field label={tp.company.budget} hint={tp.company.budgetHint}><Input type="number" min={0} step="0.01" {...text('budget')} /></Field></Section>
      <Section title={tp.company.policies}><div className="flex flex-col gap-2">
        <Checkbox label={tp.company.approveAgents} checked={now.agents} onChange={(agents) => setNow({ ...now, agents })} />
        <Checkbox label={tp.company.approveStrategy} checked={now.strategy} onChange={(strategy) => setNow({ ...now, strategy })} />
      </div></Section>
      <Section title={tp.company.files}><Field label={tp.company.maxMiB}><Input type="number" min={1} step="any" {...text('max')} /></Field></Section>
      <div className="flex justify-end"><Button look="primary" type="submit" disabled={Object.keys(changes).length === 0 || !!wrong} busy={save.isPending}>{t.common.save}</Button></div>
    </form>
  )
}

/** A colour as a swatch and as text; empty is none. */
function Colour({ value, onChange, id }: { value: string; onChange: (v: string) => void; id?: string }) {
  return <span className="flex gap-2"><input id={id} type="color" value={/^#[0-9a-f]{6}$/i.test(value) ? value : '#888888'} onChange={(e) => onChange(e.target.value)} className="h-8 w-12 rounded border border-line2 bg-ground p-1" /><Input aria-label={tp.company.color} value={value} placeholder="#0f766e" pattern="#[0-9a-fA-F]{6}" onChange={(e) => onChange(e.target.value)} className="!w-32" />{value && <Button look="quiet" onClick={() => onChange('')}>{t.common.none}</Button>}</span>
}

function Logo({ company: c }: { company: Company }) {
  const [busy, setBusy] = useState(false)
  const set = useWrite<string | null, unknown>({ call: (logoAssetId) => patch('/api/companies/{companyId}', { path: { companyId: c.id } }, { logoAssetId }), reread: () => [keys.companies()], onDone: () => toast({ text: tp.company.logoSaved }) })
  const upload = (file: File | undefined) => {
    if (!file) return
    const form = new FormData()
    form.append('file', file)
    setBusy(true)
    void (post('/api/companies/{companyId}/logo', { path: { companyId: c.id } }, form)).then((asset) => set.mutateAsync(asset.assetId)).catch(say).finally(() => setBusy(false))
  }
  return (
    <Section title={tp.company.logo}>
      <div className="flex items-center gap-3">
        {c.logoUrl ? <img src={c.logoUrl} alt={tp.company.logo} className="size-12 rounded border border-line object-contain" /> : <span aria-hidden="true" className="inline-flex size-12 items-center justify-center rounded bg-accent text-xl font-strong text-onaccent">{c.issuePrefix[0]}</span>}
        <label className="inline-flex h-8 shrink-0 cursor-pointer items-center whitespace-nowrap rounded border border-line2 px-3 text-sm font-strong hover:bg-ground2 has-[:focus-visible]:outline-2 has-[:focus-visible]:outline-accent"><input type="file" accept="image/png,image/jpeg,image/gif,image/webp,image/svg+xml" disabled={busy} className="sr-only" onChange={(e) => { upload(e.target.files?.[0]); e.target.value = '' }} />{busy ? t.common.loading : tp.company.upload}</label>
        {c.logoAssetId && <Button look="quiet" onClick={() => set.mutate(null)}>{tp.company.removeLogo}</Button>}
        <span className="text-xs text-ink3">{tp.company.logoHint}</span>
      </div>
    </Section>
  )
}

function Work({ company: c }: { company: Company }) {
  const [asking, setAsking] = useState<'pause' | 'archive'>()
  const verb = useWrite<Verb, unknown>({
    call: (v) => { const o = { path: { companyId: c.id } }; return v === 'pause' ? post('/api/companies/{companyId}/pause', o) : v === 'resume' ? post('/api/companies/{companyId}/resume', o) : v === 'archive' ? post('/api/companies/{companyId}/archive', o) : patch('/api/companies/{companyId}', o, { status: 'active' }) },
    reread: () => [keys.companies(), keys.dashboard(c.id)], onDone: (_a, v) => { setAsking(undefined); toast({ text: v === 'pause' ? tp.company.paused(c.name) : v === 'archive' ? tp.company.archived(c.name) : tp.company.resumed(c.name) }) },
  })
  const row = (said: ReactNode, button: ReactNode) => <div className="flex min-h-12 flex-wrap items-center gap-3 border-b border-line px-3 py-2 text-sm last:border-0"><span className="grow">{said}</span>{button}</div>
  return (
    <Section title={tp.company.work}>
      <div className="rounded border border-line">
        {c.status === 'archived' ? row(<StatusMark status="archived" />, <Button onClick={() => verb.mutate('activate')} busy={verb.isPending}>{tp.company.activate}</Button>) : (
          <>
            {row(<StatusMark status={c.status} label={c.status === 'paused' ? tp.company.pausedNow : tp.company.activeNow} />, c.status === 'paused' ? <Button icon="play" busy={verb.isPending} onClick={() => verb.mutate('resume')}>{tp.company.resume}</Button> : <Button icon="pause" onClick={() => setAsking('pause')}>{tp.company.pause}</Button>)}
            {row(<span className="text-ink2">{tp.company.archiveBody}</span>, <Button look="danger" onClick={() => setAsking('archive')}>{tp.company.archive}</Button>)}
          </>
        )}
      </div>
      <Confirm open={!!asking} onClose={() => setAsking(undefined)} title={asking === 'archive' ? tp.company.archiveAsk(c.name) : tp.company.pauseAsk(c.name)} body={asking === 'archive' ? tp.company.archiveBody : tp.company.pauseBody} action={asking === 'archive' ? tp.company.archive : tp.company.pause} busy={verb.isPending} onConfirm={() => asking && verb.mutate(asking)} />
    </Section>
  )
}
