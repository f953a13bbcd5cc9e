import { Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'
import { InCompany, useAddressed, useStream } from '../company'
import { standing } from '../http'
import { typing } from '../keys'
import { pages } from '../pages/table'
import { announce, Announcer } from '../parts/announce'
import { Sheet } from '../parts/overlay'
import { Empty, Rows } from '../parts/states'
import { Toasts } from '../parts/toast'
import { useStore, useStorePart } from '../store'
import { t } from '../text/en'
import { Banner } from './banner'
import { Help } from './help'
import { NewIssue } from './newissue'
import { Palette } from './palette'
import { addressOf, BottomBar, Rail } from './rail'
import { help, newIssue, palette, sheet } from './state'

/** Frame is what all pages stand in: rail, banner, page; and what opens from anywhere. */
export function Frame() {
  const { company, missing, waiting } = useAddressed()
  useStream(company?.id)
  const nobody = useStorePart(standing, (s) => s.nobody) // the rest changes with each answer
  const go = useNavigate()
  const at = useRouterState({ select: (s) => s.location.pathname })
  useEffect(() => {
    if (nobody) void go({ to: '/sign-in', search: { to: at } as never })
  }, [nobody, go, at])
  useKeys(company?.issuePrefix)
  useArrival(at)
  const open = useStore(sheet)
  return (
    <InCompany.Provider value={company}>
      <a href="#page" className="sr-only focus:not-sr-only">{t.nav.skip}</a>
      <div className="flex h-full">
        <div className="no-print hidden w-[232px] shrink-0 border-r border-line desk:block"><Rail /></div>
        <Sheet open={open} onClose={() => sheet.set(false)} label={t.nav.main}><Rail onGo={() => sheet.set(false)} /></Sheet>
        <div className="flex min-w-0 grow flex-col">
          <Banner />
          <div className="flex min-h-0 grow">{missing ? <Empty icon="companies" title={t.error.notFound} why={t.error.notFoundWhy} /> : waiting ? <div className="grow"><Rows n={14} /></div> : <Outlet />}</div>
          <BottomBar />
        </div>
      </div>
      <Palette /><Help /><NewIssue /><Toasts /><Announcer />
    </InCompany.Provider>
  )
}

const arrival = 300 // ms, in which most pages have their title

/** A page that comes is told, and the focus is at it where what had it went with the last page. */
function useArrival(path: string): void {
  const first = useRef(true)
  useEffect(() => {
    if (first.current) {
      first.current = false
      return
    }
    const settle = () => {
      if (document.activeElement === document.body) document.getElementById('page')?.focus({ preventScroll: true })
    }
    // On a slow machine the page comes later, and what stood for it until then takes the focus with it.
    const came = new MutationObserver(settle)
    const timer = setTimeout(() => {
      announce(document.title)
      settle()
      came.observe(document.body, { childList: true, subtree: true })
    }, arrival)
    const leave = () => came.disconnect() // whoever acts has the focus where they want it
    const acts = ['keydown', 'pointerdown'] as const
    acts.forEach((act) => addEventListener(act, leave))
    // One that must be read first has its title later.
    const late = new MutationObserver(() => announce(document.title))
    const title = document.querySelector('title')
    if (title) late.observe(title, { childList: true })
    return () => {
      clearTimeout(timer)
      late.disconnect()
      leave()
      acts.forEach((act) => removeEventListener(act, leave))
    }
  }, [path])
}

const chordTime = 1_200

/** The keys that work everywhere. */
function useKeys(company: string | undefined): void {
  const go = useNavigate()
  const chord = useRef(0)
  useEffect(() => {
    const pressed = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
        e.preventDefault()
        return palette.set((now) => !now)
      }
      if (typing(e) || e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return
      if (e.key === 'Shift') return // of a capital letter, also after g
      if (Date.now() - chord.current < chordTime) {
        chord.current = 0
        const page = pages.find((p) => p.go === e.key)
        if (page) {
          e.preventDefault()
          e.stopImmediatePropagation()
          void go({ to: addressOf(page, company) })
        }
        return
      }
      if (e.key === 'g') chord.current = Date.now()
      else if (e.key === 'c' && company) { e.preventDefault(); newIssue.set({}) }
      else if (e.key === '?') help.set(true)
      else if (e.key === '/') {
        const find = document.querySelector<HTMLInputElement>('[data-find]')
        if (find) { e.preventDefault(); find.focus() }
      }
    }
    addEventListener('keydown', pressed, true)
    return () => removeEventListener('keydown', pressed, true)
  }, [company, go])
}
