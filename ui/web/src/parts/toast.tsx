import { store, useStore } from '../store'
import { t } from '../text/en'
import { Button, IconButton } from './button'

interface Note { key: number; text: string; bad?: boolean | undefined; undo?: (() => void) | undefined }

const notes = store<readonly Note[]>([])
const lasts = 6_000
const maxNotes = 4
let next = 1

/** toast says shortly what happened; with undo it has a button that takes it back. */
export function toast(note: { text: string; bad?: boolean; undo?: () => void }): void {
  const key = next++
  notes.set((all) => [...all, { key, ...note }].slice(-maxNotes))
  setTimeout(() => drop(key), note.bad ? lasts * 2 : lasts)
}
const drop = (key: number) => notes.set((all) => all.filter((n) => n.key !== key))

export function Toasts() {
  const all = useStore(notes)
  return (
    <div role="status" aria-live="polite" className="no-print fixed bottom-16 left-1/2 z-40 flex w-max max-w-[calc(100vw-32px)] -translate-x-1/2 flex-col gap-2 tab:bottom-4">
      {all.map((n) => (
        <div key={n.key} className={`appear flex min-h-10 items-center gap-2 rounded border bg-ground py-1 pl-3 pr-1 text-sm shadow-float ${n.bad ? 'border-bad' : 'border-line2'}`}>
          <span className="grow break-words">{n.text}</span>
          {n.undo && <Button small onClick={() => { n.undo?.(); drop(n.key) }}>{t.common.undo}</Button>}
          <IconButton small icon="close" label={t.common.close} onClick={() => drop(n.key)} />
        </div>
      ))}
    </div>
  )
}
