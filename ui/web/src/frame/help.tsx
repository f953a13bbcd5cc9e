import { pages } from '../pages/table'
import { Dialog } from '../parts/overlay'
import { useStore } from '../store'
import { t } from '../text/en'
import { help } from './state'

const rows: [string, string][] = [
  ['Ctrl/⌘ K', t.keys.palette], ['c', t.keys.newIssue], ['j  k', t.keys.move], ['Enter', t.keys.open], ['o', t.keys.drawer], ['x', t.keys.select], ['e', t.keys.done], ['/', t.keys.search], ['Esc', t.keys.close], ['?', t.keys.help],
]

export function Help() {
  const open = useStore(help)
  const all = [...rows, ...pages.flatMap((p): [string, string][] => (p.go ? [[`g ${p.go}`, t.keys.go(p.title)]] : []))]
  return (
    <Dialog open={open} onClose={() => help.set(false)} title={t.keys.title} size="medium">
      <dl className="grid grid-cols-1 gap-x-8 tab:grid-cols-2">
        {all.map(([key, what]) => <div key={key} className="flex h-8 items-center gap-3 border-b border-line text-sm"><dt className="w-20 shrink-0"><kbd className="rounded border border-line2 bg-ground2 px-1.5 py-0.5 font-mono text-xs">{key}</kbd></dt><dd className="truncate text-ink2">{what}</dd></div>)}
      </dl>
    </Dialog>
  )
}
