// The frame of every page: a bar of 48 px with the title and what can be done, the content, and room for a drawer.
import { useEffect, type ReactNode } from 'react'
import { IconButton } from '../parts/button'
import { CopyAsCommand } from '../parts/values'
import { t } from '../text/en'
import { sheet } from './state'

export function Page({ title, head, tools, bar, command, children, drawer, scroll = true }: {
  title: string
  /** Instead of the title. */
  head?: ReactNode
  /** At the right of the bar: filters and at most one primary button. */
  tools?: ReactNode
  /** A second bar below, for filters: on a phone it takes more lines, elsewhere it scrolls sideways where it does not fit. */
  bar?: ReactNode
  /** The command that shows the same. */
  command?: string
  children: ReactNode
  drawer?: ReactNode
  /** The page scrolls as a whole; a list that scrolls itself says no. */
  scroll?: boolean
}) {
  useEffect(() => {
    document.title = `${title} · ${t.app}`
  }, [title])
  return (
    <div className="flex min-h-0 min-w-0 grow">
      <div className="flex min-w-0 grow flex-col">
        <header className="flex min-h-12 shrink-0 flex-wrap items-center gap-x-2 gap-y-1 border-b border-line px-4 py-1">
          <span className="-ml-2 desk:hidden"><IconButton icon="menu" label={t.nav.main} onClick={() => sheet.set(true)} /></span>
          {head ?? <h1 className="mr-2 truncate text-lg font-strong">{title}</h1>}
          <div className="no-print ml-auto flex min-w-0 flex-wrap items-center justify-end gap-1.5">
            {tools}
            {command && <span className="max-tab:hidden"><CopyAsCommand command={command} /></span>}
          </div>
        </header>
        {bar && <div className="no-print flex min-h-11 shrink-0 flex-wrap items-center gap-1.5 border-b border-line px-4 py-1 overflow-x-auto tab:h-11 tab:flex-nowrap">{bar}</div>}
        <main id="page" tabIndex={-1} className={`flex min-h-0 grow flex-col outline-none ${scroll ? 'overflow-y-auto' : ''}`}>{children}</main>
      </div>
      {drawer}
    </div>
  )
}
