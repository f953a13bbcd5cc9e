import { Link, useNavigate, useRouterState } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { useMaybeCompany } from '../company'
import { useAttention, useBadges, useCompanies, useLiveRuns, useMembers } from '../data'
import { line } from '../live'
import { standing } from '../http'
import { here, rememberPeers } from '../node'
import { pages, type PageRow } from '../pages/table'
import { IconButton } from '../parts/button'
import { Icon } from '../parts/icons'
import { Menu } from '../parts/overlay'
import { Count } from '../parts/status'
import { useAge } from '../parts/values'
import { useStore } from '../store'
import { statusText, t } from '../text/en'
import { theme, toggleTheme } from '../theme'
import { help, palette, sheet } from './state'

const groups = [['top', undefined], ['work', t.nav.work], ['company', t.nav.company], ['mesh', t.nav.mesh], ['governance', t.nav.governance], ['kernel', t.nav.kernel]] as const

export const addressOf = (page: PageRow, company: string | undefined) => page.path.replace('$company', company ?? '')

export function Rail({ onGo }: { onGo?: () => void }) {
  const company = useMaybeCompany()
  const badges = useBadges(company?.id).data
  const waits = useAttention(company?.id).data?.totalCount ?? 0 // what the inbox lists, not what the contract's badge counts
  const live = useLiveRuns(company?.id).data
  const members = useMembers().data
  useEffect(() => {
    if (members) rememberPeers(members.filter((m) => !m.here && m.endpoint).map((m) => m.endpoint?.url ?? ''))
  }, [members])
  const at = useRouterState({ select: (s) => s.location.pathname })
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => { void list.current?.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest' }) }, [at, company?.id])
  const alive = members?.filter((m) => m.status === 'alive').length
  const count = (page: PageRow) => {
    if (page.path === '/$company/inbox') return <Count n={waits} loud />
    if (page.path === '/$company/approvals') return <Count n={badges?.approvals ?? 0} />
    if (page.path === '/$company/agents') return live && live.length > 0 ? <span className="inline-flex items-center gap-1 text-xs text-work"><span className="pulse size-1.5 rounded-full bg-work" />{live.length}<span className="sr-only"> {statusText('running')}</span></span> : null
    if (page.path === '/mesh/nodes' && members) return <span className={`text-xs ${alive === members.filter((m) => m.status !== 'revoked').length ? 'text-ok' : 'text-bad'}`}><span aria-hidden="true">●</span> {alive}<span className="sr-only"> {statusText('alive')}</span></span>
    return null
  }
  return (
    <nav aria-label={t.nav.main} className="flex h-full flex-col bg-ground2">
      <div className="flex h-12 shrink-0 items-center gap-1 border-b border-line pl-2 pr-2">
        <Switcher {...(onGo ? { onGo } : {})} />
        <IconButton icon="search" label={`${t.palette.title} (Ctrl K)`} onClick={() => { onGo?.(); palette.set(true) }} />
      </div>
      <div ref={list} className="min-h-0 grow overflow-y-auto px-2 py-2">
        {groups.map(([group, title]) => {
          const rows = pages.filter((p) => p.rail === group && (company || !p.path.startsWith('/$company')))
          if (rows.length === 0) return null
          return (
            <div key={group} className="mb-3">
              {title && <h2 className="px-2 pb-1 text-xs text-ink3">{title}</h2>}
              <ul>
                {rows.map((page) => {
                  const to = addressOf(page, company?.issuePrefix)
                  const on = at === to || (page.path !== '/$company' && page.path !== '/$company/company/settings' && at.startsWith(`${to}/`))
                  return (
                    <li key={page.path}>
                      <Link to={to} {...(onGo ? { onClick: onGo } : {})} aria-current={on ? 'page' : undefined} className={`flex h-8 items-center gap-2.5 rounded px-2 text-base ${on ? 'bg-ground3 font-strong text-ink' : 'text-ink2 hover:bg-ground3 hover:text-ink'}`}>
                        {page.icon && <Icon name={page.icon} />}<span className="grow truncate">{page.title}</span>{count(page)}
                      </Link>
                    </li>
                  )
                })}
              </ul>
            </div>
          )
        })}
      </div>
      <Foot />
    </nav>
  )
}

function Switcher({ onGo }: { onGo?: () => void }) {
  const company = useMaybeCompany()
  const all = useCompanies().data ?? []
  const go = useNavigate()
  const open = (to: string) => { onGo?.(); void go({ to }) }
  return (
    <Menu label={t.switcher.choose} items={[
      ...all.filter((c) => c.status !== 'archived').map((c) => ({ label: c.name, mark: <Mark text={c.issuePrefix} />, onSelect: () => open(`/${c.issuePrefix}`) })),
      null, { label: t.switcher.create, icon: 'plus' as const, onSelect: () => open('/companies?new=1') }, { label: t.switcher.all, icon: 'companies' as const, onSelect: () => open('/companies') }]}>
      <button type="button" className="flex h-8 min-w-0 grow items-center gap-2 rounded px-1.5 text-left font-strong hover:bg-ground3">
        <Mark text={company?.issuePrefix ?? 'S'} /><span className="min-w-0 grow truncate">{company?.name ?? t.app}</span><span className="text-ink3"><Icon name="down" size={12} /></span>
      </button>
    </Menu>
  )
}
const Mark = ({ text }: { text: string }) => <span aria-hidden="true" className="inline-flex size-5 shrink-0 items-center justify-center rounded bg-accent text-xs font-strong leading-none text-onaccent">{text[0]}</span>

function Foot() {
  const now = useStore(standing)
  const stream = useStore(line)
  const node = useStore(here)
  useStore(theme)
  const age = useAge(now.lost ? now.heard : stream.since)
  const state = now.lost ? 'lost' : stream.state === 'live' || stream.state === 'idle' ? 'live' : stream.state
  return (
    <footer className="flex h-10 shrink-0 items-center gap-1 border-t border-line pl-4 pr-2 text-xs text-ink2">
      <span className={`size-2 shrink-0 rounded-full ${state === 'live' ? 'bg-ok' : state === 'lost' ? 'bg-bad' : 'pulse bg-warn'}`} />
      <span role="status" className="sr-only">{t.line[state]}</span>
      <span className="ml-1 grow truncate" data-line={state}>{state === 'live' ? `${t.line.live} · ${node?.name ?? location.host}` : `${t.line[state]} · ${age}`}{state === 'live' && now.latency !== undefined ? ` · ${now.latency} ms` : ''}</span>
      <IconButton small icon="sun" label={t.palette.theme} onClick={toggleTheme} />
      <button type="button" aria-label={t.palette.keys} title={`${t.palette.keys} (?)`} onClick={() => help.set(true)} className="size-6 rounded text-ink2 hover:bg-ground3">?</button>
    </footer>
  )
}

/** The bar at the bottom of a phone. */
export function BottomBar() {
  const company = useMaybeCompany()
  const waits = useAttention(company?.id).data?.totalCount ?? 0
  const at = useRouterState({ select: (s) => s.location.pathname })
  const items = ['/$company', '/$company/inbox', '/$company/issues'].map((path) => pages.find((p) => p.path === path)).filter((p): p is PageRow => !!p && !!company)
  const cell = 'relative flex grow basis-0 flex-col items-center justify-center gap-0.5 text-xs'
  return (
    <nav aria-label={t.nav.main} className="no-print flex h-14 shrink-0 border-t border-line bg-ground2 tab:hidden">
      {items.map((page) => {
        const to = addressOf(page, company?.issuePrefix)
        return (
          <Link key={page.path} to={to} aria-current={at === to ? 'page' : undefined} className={`${cell} ${at === to ? 'text-accent' : 'text-ink2'}`}>
            {page.icon && <Icon name={page.icon} size={18} />}{page.title}
            {page.path === '/$company/inbox' && <span className="absolute left-[calc(50%+8px)] top-0.5"><Count n={waits} loud /></span>}
          </Link>
        )
      })}
      <button type="button" className={`${cell} text-ink2`} onClick={() => sheet.set(true)}><Icon name="menu" size={18} />{t.nav.more}</button>
    </nav>
  )
}
