// What floats: dialogs, the drawer, menus. Dialogs are the platform's own: it traps the focus, closes on Escape
// and makes the rest inert. What opens inside a dialog is put into it (usePortal), as nothing is above it.
import { createContext, useContext, useEffect, useLayoutEffect, useRef, useState, type ReactElement, type ReactNode } from 'react'
import { DropdownMenu } from 'radix-ui'
import { t } from '../text/en'
import { announce } from './announce'
import { Button, IconButton } from './button'
import { Icon, type IconName } from './icons'

const Portal = createContext<HTMLElement | null>(null)
export const usePortal = () => useContext(Portal)

const widths = { small: 'w-[420px]', medium: 'w-[560px]', large: 'w-[880px]' }

/** useModal shows a native dialog while it is open. Where it closes, the focus goes back to what had it before. */
function useModal(open: boolean) {
  const ref = useRef<HTMLDialogElement>(null)
  const [element, setElement] = useState<HTMLElement | null>(null)
  useLayoutEffect(() => {
    const dialog = ref.current
    if (!dialog || !open) return
    const before = document.activeElement
    dialog.showModal()
    // A dialog puts the focus on its first button, which closes it; who opened a form wants to type.
    dialog.querySelector<HTMLElement>('input:not([type=hidden]), textarea, select')?.focus()
    setElement(dialog)
    return () => {
      dialog.close()
      setTimeout(() => { if (document.activeElement === document.body) (before instanceof HTMLElement && before !== document.body && before.isConnected ? before : mainOf())?.focus({ preventScroll: true }) })
    }
  }, [open])
  return { ref, element }
}
const mainOf = () => document.getElementById('page')

/** The rail on a narrow screen: it covers the page from the left. */
export function Sheet({ open, onClose, label, children }: { open: boolean; onClose: () => void; label: string; children: ReactNode }) {
  const { ref, element } = useModal(open)
  if (!open) return null
  return (
    <dialog ref={ref} aria-label={label} onCancel={(e) => { e.preventDefault(); onClose() }} onMouseDown={(e) => { if (e.target === ref.current) onClose() }}
      className="no-print appear m-0 h-dvh max-h-none w-[264px] max-w-none border-0 border-r border-line bg-ground p-0 text-ink">
      <Portal.Provider value={element}>{children}</Portal.Provider>
    </dialog>
  )
}

export function Dialog({ open, onClose, title, children, size = 'small', bare }: { open: boolean; onClose: () => void; title: string; children: ReactNode; size?: keyof typeof widths; bare?: boolean }) {
  const { ref, element } = useModal(open)
  if (!open) return null
  return (
    <dialog ref={ref} aria-label={title} onCancel={(e) => { e.preventDefault(); onClose() }} onMouseDown={(e) => { if (e.target === ref.current) onClose() }}
      className={`appear ${bare ? 'mt-[12vh]' : 'my-auto'} mx-auto max-h-[calc(100dvh-32px)] max-w-[calc(100vw-32px)] overflow-visible rounded border border-line bg-ground p-0 text-ink shadow-float ${widths[size]}`}>
      <Portal.Provider value={element}>
        {bare ? children : (
          <div className="flex max-h-[calc(100dvh-34px)] flex-col">
            <header className="flex h-12 shrink-0 items-center border-b border-line pl-4 pr-2">
              <h2 className="grow text-lg font-strong">{title}</h2>
              <IconButton icon="close" label={t.common.close} onClick={onClose} />
            </header>
            <div className="overflow-y-auto p-4">{children}</div>
          </div>
        )}
      </Portal.Provider>
    </dialog>
  )
}

/** The row of buttons at a dialog's foot. */
export const DialogFoot = ({ children }: { children: ReactNode }) => <div className="mt-4 flex justify-end gap-2">{children}</div>

/** Asks before what cannot be undone. */
export function Confirm({ open, onClose, title, body, action, onConfirm, busy }: { open: boolean; onClose: () => void; title: string; body: ReactNode; action: string; onConfirm: () => void; busy?: boolean }) {
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      <div className="text-base text-ink2">{body}</div>
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="danger" busy={busy} onClick={onConfirm}>{action}</Button></DialogFoot>
    </Dialog>
  )
}

/** The drawer beside a list: not modal, so the list stays usable. The frame leaves it room; on phones it covers the page. */
export function Drawer({ label, onClose, head, children }: { label: string; onClose: () => void; head: ReactNode; children: ReactNode }) {
  const ref = useRef<HTMLElement>(null)
  useEffect(() => {
    announce(t.common.beside(label))
    return () => { setTimeout(() => { if (document.activeElement === document.body) mainOf()?.focus({ preventScroll: true }) }) }
  }, [label])
  useEffect(() => {
    const close = (e: KeyboardEvent) => {
      if (e.key === 'Escape' && !e.defaultPrevented && !document.querySelector('dialog[open], [data-radix-popper-content-wrapper]')) onClose()
    }
    addEventListener('keydown', close)
    return () => removeEventListener('keydown', close)
  }, [onClose])
  return (
    <aside ref={ref} aria-label={label} className="slide fixed inset-0 z-30 flex flex-col bg-ground desk:static desk:w-[380px] desk:shrink-0 desk:border-l wide:w-[460px]">
      <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line pl-4 pr-2">
        <div className="min-w-0 grow truncate font-strong">{head}</div>
        <IconButton icon="close" label={t.common.close} onClick={onClose} />
      </header>
      <div className="min-h-0 grow overflow-y-auto p-4">{children}</div>
    </aside>
  )
}

export interface MenuItem { label: string; icon?: IconName; onSelect: () => void; danger?: boolean; mark?: ReactNode; disabled?: boolean }

/** A menu of actions; null between two items draws a line. */
export function Menu({ children, items, align = 'start', label }: { children: ReactElement; items: readonly (MenuItem | null)[]; align?: 'start' | 'end'; label?: string }) {
  const portal = usePortal()
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{children}</DropdownMenu.Trigger>
      <DropdownMenu.Portal container={portal}>
        <DropdownMenu.Content align={align} sideOffset={4} collisionPadding={8} aria-label={label} className="appear z-50 max-h-80 min-w-44 max-w-80 overflow-y-auto rounded border border-line bg-ground p-1 shadow-float">
          {items.map((item, i) => item === null ? <DropdownMenu.Separator key={i} className="my-1 h-px bg-line" /> : (
            <DropdownMenu.Item key={i} disabled={item.disabled ?? false} onSelect={item.onSelect} className={`flex h-8 items-center gap-2 rounded px-2 text-sm outline-none data-[disabled]:opacity-50 data-[highlighted]:bg-ground3 ${item.danger ? 'text-bad' : ''}`}>
              {item.icon && <Icon name={item.icon} />}{item.mark}<span className="truncate">{item.label}</span>
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  )
}
