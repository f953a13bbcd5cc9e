// Ctrl/⌘ K: finds pages, issues, agents, routines, companies and actions.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useId, useMemo, useState } from 'react'
import { useMaybeCompany } from '../company'
import { keys } from '../cache'
import { say, useAgents, useCompanies } from '../data'
import { get, post } from '../http'
import { pages } from '../pages/table'
import { Icon, type IconName } from '../parts/icons'
import { Confirm, Dialog } from '../parts/overlay'
import { toast } from '../parts/toast'
import { Avatar, copy } from '../parts/values'
import { useStore } from '../store'
import { t } from '../text/en'
import { toggleTheme } from '../theme'
import { addressOf } from './rail'
import { help, newIssue, palette } from './state'

interface Item { group: string; label: string; hint?: string; icon?: IconName; mark?: React.ReactNode; run: () => void }
interface Found { results?: { id: string; type: string; title: string; href: string }[] | null }

const maxItems = 40

export function Palette() {
  const open = useStore(palette)
  const [stopping, setStopping] = useState(false)
  const stop = (on: boolean) => {
    setStopping(false)
    post(on ? '/api/v1/mesh/stop' : '/api/v1/mesh/resume').then(() => toast({ text: on ? t.palette.stopped : t.palette.resumed, ...(on ? { undo: () => stop(false) } : {}) }), say)
  }
  return (
    <>
      <Dialog bare open={open} onClose={() => palette.set(false)} title={t.palette.title} size="medium"><Inside onStop={() => setStopping(true)} onResume={() => stop(false)} /></Dialog>
      <Confirm open={stopping} onClose={() => setStopping(false)} title={t.palette.stop} body={t.palette.stopAsk} action={t.palette.stop} onConfirm={() => stop(true)} />
    </>
  )
}

function Inside({ onStop, onResume }: { onStop: () => void; onResume: () => void }) {
  const company = useMaybeCompany()
  const agents = useAgents(company?.id).data
  const companies = useCompanies().data
  const go = useNavigate()
  const [text, setText] = useState('')
  const [slow, setSlow] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  useEffect(() => {
    const timer = setTimeout(() => setSlow(text.trim()), 150)
    return () => clearTimeout(timer)
  }, [text])
  const found = useQuery<Found>({ queryKey: ['search', company?.id, slow], enabled: !!company && slow.length > 1, staleTime: 10_000, placeholderData: keepPreviousData,
    queryFn: ({ signal }) => get('/api/companies/{companyId}/search', { path: { companyId: company?.id ?? '' }, query: { q: slow, limit: 12 }, signal }) as Promise<Found> }).data
  const routines = useQuery({ queryKey: keys.routines(company?.id ?? ''), enabled: !!company && slow.length > 1, staleTime: 10_000,
    queryFn: ({ signal }) => get('/api/companies/{companyId}/routines', { path: { companyId: company?.id ?? '' }, signal }) }).data
  const items = useMemo(() => {
    const to = (address: string) => () => void go({ to: address })
    const all: Item[] = [
      ...(company ? [{ group: t.palette.actions, label: t.palette.newIssue, hint: 'c', icon: 'plus' as const, run: () => newIssue.set({}) }] : []),
      ...pages.filter((p) => !p.path.includes('/$', 2) && (company || !p.path.startsWith('/$company'))).map((p) => ({ group: t.palette.pages, label: p.title, ...(p.go ? { hint: `g ${p.go}` } : {}), icon: p.icon ?? 'file' as const, run: to(addressOf(p, company?.issuePrefix)) })),
      ...(agents ?? []).map((a) => ({ group: t.palette.agents, label: a.name, hint: a.role, mark: <Avatar id={a.id} name={a.name} size={16} />, run: to(`/${company?.issuePrefix}/agents/${a.urlKey ?? a.id}`) })),
      ...(agents ?? []).map((a) => (a.status === 'paused' ? { group: t.palette.actions, label: t.palette.resumeAgent(a.name), icon: 'play' as const, run: (): void => void post('/api/agents/{id}/resume', { path: { id: a.id } }).then(() => toast({ text: t.palette.resumedAgent(a.name) }), say) }
        : { group: t.palette.actions, label: t.palette.pause(a.name), icon: 'pause' as const, run: (): void => void post('/api/agents/{id}/pause', { path: { id: a.id } }).then(() => toast({ text: t.palette.paused(a.name) }), say) })),
      ...(routines ?? []).map((r) => ({ group: t.nav.routines, label: r.title, icon: 'routines' as const, run: to(`/${company?.issuePrefix}/routines/${r.id}`) })),
      ...(companies ?? []).filter((c) => c.status !== 'archived' && c.id !== company?.id).map((c) => ({ group: t.nav.companies, label: c.name, hint: c.issuePrefix, icon: 'companies' as const, run: to(`/${c.issuePrefix}`) })),
      { group: t.palette.actions, label: t.palette.theme, icon: 'sun', run: toggleTheme },
      { group: t.palette.actions, label: t.palette.keys, hint: '?', icon: 'command', run: () => help.set(true) },
      { group: t.palette.actions, label: t.palette.copyCommand, icon: 'command', run: () => void copy(commandOf(location.pathname)) },
      { group: t.palette.actions, label: t.palette.stop, icon: 'stop', run: onStop },
      { group: t.palette.actions, label: t.palette.resume, icon: 'play', run: onResume },
    ]
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    const fits = words.length === 0 ? all.filter((i) => !i.label.startsWith(t.palette.pause(''))) : all.filter((i) => words.every((w) => `${i.label} ${i.group}`.toLowerCase().includes(w)))
    const hits: Item[] = words.length === 0 ? [] : (found?.results ?? []).filter((r) => r.type !== 'agent').map((r) => ({ group: t.palette.found, label: r.title, icon: r.type === 'issue' ? 'issues' as const : 'file' as const, run: to(r.href) }))
    return [...hits, ...fits].slice(0, maxItems)
  }, [agents, companies, company, found, routines, go, onResume, onStop, text])
  const pick = (item: Item | undefined) => {
    if (!item) return
    palette.set(false)
    item.run()
  }
  useEffect(() => {
    void document.getElementById(`${list}-${at}`)?.scrollIntoView({ block: 'nearest' })
  }, [at, list])
  return (
    <div>
      <div className="flex h-12 items-center gap-2 border-b border-line px-4 text-ink3"><Icon name="search" />
        <input autoFocus role="combobox" aria-expanded="true" aria-controls={list} aria-activedescendant={items[at] ? `${list}-${at}` : undefined} aria-label={t.palette.title} placeholder={t.palette.placeholder} value={text}
          className="h-full grow bg-transparent text-lg text-ink outline-none" onChange={(e) => { setText(e.target.value); setAt(0) }}
          onKeyDown={(e) => {
            if (e.key === 'ArrowDown') { e.preventDefault(); setAt((i) => Math.min(i + 1, items.length - 1)) }
            if (e.key === 'ArrowUp') { e.preventDefault(); setAt((i) => Math.max(i - 1, 0)) }
            if (e.key === 'Enter') { e.preventDefault(); pick(items[at]) }
          }} />
      </div>
      <div id={list} role="listbox" aria-label={t.palette.title} className="max-h-[56vh] overflow-y-auto p-2">
        {items.map((item, i) => (
          <div key={`${item.group}-${item.label}-${i}`}>
            {items[i - 1]?.group !== item.group && <div aria-hidden="true" className="px-2 pb-1 pt-2 text-xs text-ink3">{item.group}</div>}
            <div id={`${list}-${i}`} role="option" aria-selected={i === at} onMouseMove={() => setAt(i)} onClick={() => pick(item)} className={`flex h-9 items-center gap-2.5 rounded px-2 ${i === at ? 'bg-ground3' : ''}`}>
              {item.mark ?? (item.icon && <Icon name={item.icon} />)}<span className="grow truncate">{item.label}</span>{item.hint && <kbd className="font-mono text-xs text-ink3">{item.hint}</kbd>}
            </div>
          </div>
        ))}
        {items.length === 0 && <p className="px-2 py-3 text-sm text-ink3">{t.common.nothingFound}</p>}
      </div>
    </div>
  )
}

/** commandOf writes the command that shows what an address shows. */
export function commandOf(path: string): string {
  const [company, kind, id] = path.split('/').filter(Boolean)
  if (kind === 'issues' && id) return `selvage issue show ${id}`
  if (kind === 'agents' && id) return `selvage agent show ${id}`
  if (kind === 'runs' && id) return `selvage run show ${id}`
  const row = pages.find((p) => p.path === path) ?? pages.find((p) => p.path.replace('$company', company ?? '') === path)
  return `${row?.command ?? 'selvage --help'}${company && !['mesh', 'settings', 'companies'].includes(company) ? ` --company ${company}` : ''}`
}
