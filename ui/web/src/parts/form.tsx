import { useId, useState, type InputHTMLAttributes, type ReactElement, type ReactNode, type Ref, type SelectHTMLAttributes, type TextareaHTMLAttributes, cloneElement } from 'react'
import { Popover } from 'radix-ui'
import { t } from '../text/en'
import { Icon } from './icons'
import { usePortal } from './overlay'

const box = 'w-full rounded border border-line2 bg-ground px-2.5 text-base text-ink disabled:opacity-60 aria-[invalid=true]:border-bad'

/** A label above one input, with a hint or what is wrong below. */
export function Field({ label, hint, wrong, children }: { label: string; hint?: ReactNode; wrong?: string | undefined; children: ReactElement<{ id?: string; 'aria-describedby'?: string; 'aria-invalid'?: boolean }> }) {
  const id = useId()
  const about = `${id}-about`
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-sm font-strong text-ink2">{label}</label>
      {cloneElement(children, { id, ...(hint || wrong ? { 'aria-describedby': about } : {}), ...(wrong ? { 'aria-invalid': true } : {}) })}
      {(hint || wrong) && <p id={about} className={`text-xs ${wrong ? 'text-bad' : 'text-ink3'}`}>{wrong ?? hint}</p>}
    </div>
  )
}

export const Input = ({ className = '', ...rest }: InputHTMLAttributes<HTMLInputElement>) => <input className={`${box} h-8 ${className}`} {...rest} />
export const TextArea = ({ className = '', ...rest }: TextareaHTMLAttributes<HTMLTextAreaElement> & { ref?: Ref<HTMLTextAreaElement> }) => <textarea rows={4} className={`${box} resize-y py-1.5 ${className}`} {...rest} />

export interface Choice { value: string; label: string; mark?: ReactNode; hint?: string }

/** The platform's own select: right on phones and with screen readers. */
export function Select({ choices, className = '', small, ...rest }: { choices: readonly Choice[]; small?: boolean } & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <span className={`relative inline-flex shrink-0 ${className}`}>
      <select className={`w-full appearance-none rounded border border-line2 bg-ground pl-2.5 pr-7 text-ink ${small ? 'h-6 text-xs' : 'h-8 text-sm'}`} {...rest}>
        {choices.map((c) => <option key={c.value} value={c.value}>{c.label}</option>)}
      </select>
      <span className="pointer-events-none absolute right-2 top-1/2 -translate-y-1/2 text-ink3"><Icon name="down" size={12} /></span>
    </span>
  )
}

const maxShown = 50

/** The search and the list of a choice among many. */
export function Choices({ choices, value, label, onPick }: { choices: readonly Choice[]; value?: string | undefined; label: string; onPick: (value: string) => void }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  const found = choices.filter((c) => `${c.label} ${c.hint ?? ''}`.toLowerCase().includes(text.trim().toLowerCase())).slice(0, maxShown)
  const pick = (choice: Choice | undefined) => { if (choice) onPick(choice.value) }
  return (
    <>
      <input autoFocus role="combobox" aria-expanded="true" aria-controls={list} aria-activedescendant={found[at] ? `${list}-${at}` : undefined} aria-label={label} value={text} placeholder={label}
        className="mb-1 h-8 w-full rounded bg-ground2 px-2 text-sm outline-none"
        onChange={(e) => { setText(e.target.value); setAt(0) }}
        onKeyDown={(e) => {
          if (e.key === 'ArrowDown') { e.preventDefault(); setAt((i) => Math.min(i + 1, found.length - 1)) }
          if (e.key === 'ArrowUp') { e.preventDefault(); setAt((i) => Math.max(i - 1, 0)) }
          if (e.key === 'Enter') { e.preventDefault(); pick(found[at]) }
        }} />
      <div id={list} role="listbox" aria-label={label} className="max-h-64 overflow-y-auto">
        {found.map((c, i) => (
          <div key={c.value} id={`${list}-${i}`} role="option" aria-selected={c.value === value} onMouseMove={() => setAt(i)} onClick={() => pick(c)}
            className={`flex h-8 items-center gap-2 rounded px-2 text-sm ${i === at ? 'bg-ground3' : ''}`}>
            {c.mark}<span className="truncate">{c.label}</span>
            {c.hint && <span className="ml-auto truncate text-xs text-ink3">{c.hint}</span>}
            {c.value === value && <span className="ml-auto text-accent"><Icon name="check" size={14} /></span>}
          </div>
        ))}
        {found.length === 0 && <p className="px-2 py-1.5 text-sm text-ink3">{t.common.nothingFound}</p>}
      </div>
    </>
  )
}

/** A choice among many, with a search. The child is the button that opens it. */
export function Combobox({ choices, value, onChange, label, children, align = 'start' }: { choices: readonly Choice[]; value?: string | undefined; onChange: (value: string) => void; label: string; children: ReactElement; align?: 'start' | 'end' }) {
  const [open, setOpen] = useState(false)
  const portal = usePortal()
  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger asChild>{children}</Popover.Trigger>
      <Popover.Portal container={portal}>
        <Popover.Content align={align} sideOffset={4} collisionPadding={8} aria-label={label} className="appear z-50 w-60 rounded border border-line bg-ground p-1 shadow-float">
          <Choices choices={choices} value={value} label={label} onPick={(v) => { setOpen(false); onChange(v) }} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  )
}

export function Checkbox({ label, checked, onChange, hidden }: { label: string; checked: boolean; onChange: (now: boolean) => void; hidden?: boolean }) {
  return (
    <label className="inline-flex items-center gap-2 text-sm">
      <input type="checkbox" checked={checked} onChange={(e) => onChange(e.target.checked)} className="size-4 accent-(--accent)" aria-label={hidden ? label : undefined} />
      {!hidden && label}
    </label>
  )
}
