// Who reports to whom: a chart that zooms, in which an agent is dragged to whom it shall report to; and the same as a tree.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useRead, useWrite } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import { patch, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Combobox } from '../../parts/form'
import { rem, useScale } from '../../parts/scale'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Avatar, Who } from '../../parts/values'
import { statusText, t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { box, chartOf, isUnder, type Box, type Person } from './layout'

type Node = Schemas['OrgNode']
type Move = (box: Box, to: string | null) => void

const zooms = { least: 0.3, readable: 0.6, large: 1.5, most: 2, step: 1.2 }
const edge = 16

export function Page() {
  const company = useCompany()
  const { view } = useSearch({ strict: false }) as { view?: string }
  const go = useNavigate()
  const see = (next: string) => void go({ to: '.', search: (next ? { view: next } : {}) as never, replace: true })
  const key = [...keys.agents(company.id), 'org']
  const chart = useRead(key, '/api/companies/{companyId}/org', { path: { companyId: company.id } })
  const roots = useMemo(() => (chart.data ?? []).filter((n): n is Node => n !== null) as Person[], [chart.data])
  const all = useMemo(() => chartOf(roots), [roots])
  const nameOf = (id: string | null) => all.boxes.find((b) => b.id === id)?.name ?? t.common.none
  const report = useWrite<{ box: Box; to: string | null; back?: boolean }, unknown>({
    call: ({ box: b, to }) => patch('/api/agents/{id}', { path: { id: b.id } }, { reportsTo: to }),
    reread: () => [keys.agents(company.id)],
    onDone: (_a, { box: b, to, back }) => toast({ text: to ? tp.org.moved(b.name, nameOf(to)) : tp.org.free(b.name), ...(back ? {} : { undo: () => report.mutate({ box: { ...b, ...(to ? { parent: to } : {}) }, to: b.parent ?? null, back: true }) }) }),
  })
  const move: Move = (b, to) => { if ((b.parent ?? null) !== to && !(to && isUnder(all.boxes, to, b.id))) report.mutate({ box: b, to }) }
  return (
    <Frame title={t.nav.org} command="selvage org" scroll={view === 'tree'}
      tools={<><IconButton icon="org" label={tp.org.chart} pressed={view !== 'tree'} onClick={() => see('')} /><IconButton icon="list" label={tp.org.tree} pressed={view === 'tree'} onClick={() => see('tree')} /></>}>
      <Loaded of={chart}>{() => roots.length === 0 ? <Empty icon="org" title={t.org.empty} why={t.org.emptyWhy}><Button onClick={() => void go({ to: `/${company.issuePrefix}/agents`, search: { hire: '1' } as never })}>{t.agents.hire}</Button></Empty>
        : view === 'tree' ? <ul role="tree" aria-label={t.nav.org} className="p-4">{roots.map((n) => <Branch key={n.id} node={n} prefix={company.issuePrefix} boxes={all.boxes} move={move} />)}</ul>
          : <Chart chart={all} prefix={company.issuePrefix} move={move} />}</Loaded>
    </Frame>
  )
}

function Chart({ chart, prefix, move }: { chart: ReturnType<typeof chartOf>; prefix: string; move: Move }) {
  const room = useRef<HTMLDivElement>(null)
  const [zoom, setZoom] = useState(1)
  const scale = useScale()
  const [dragged, setDragged] = useState<Box>()
  const [over, setOver] = useState<string>()
  const by = (factor: number) => setZoom((z) => Math.min(zooms.most, Math.max(zooms.least, z * factor)))
  const fit = (least: number) => {
    const at = room.current
    if (!at) return
    const [w, h] = [(at.clientWidth - 2 * edge) / (chart.width * scale), (at.clientHeight - 2 * edge) / (chart.height * scale)]
    setZoom(Math.max(least, Math.min(w, scale > 1 ? Math.max(1, Math.min(h, zooms.large)) : 1)))
  }
  // At first it is as small as one can still read, with the top in the middle.
  useLayoutEffect(() => fit(zooms.readable), [chart.width, scale])
  const top = chart.boxes.find((b) => !b.parent)
  useLayoutEffect(() => {
    const at = room.current
    if (at && top) at.scrollLeft = (top.x + box.w / 2) * scale * zoom + edge - at.clientWidth / 2
  }, [top?.id, zoom, scale])
  useEffect(() => {
    const at = room.current
    if (!at) return
    const wheel = (e: WheelEvent) => {
      if (!e.ctrlKey && !e.metaKey) return
      e.preventDefault()
      by(e.deltaY < 0 ? zooms.step : 1 / zooms.step)
    }
    at.addEventListener('wheel', wheel, { passive: false })
    return () => at.removeEventListener('wheel', wheel)
  }, [])
  const may = (id: string | null) => !!dragged && (dragged.parent ?? null) !== id && !(id && isUnder(chart.boxes, id, dragged.id))
  const target = (id: string | null) => ({
    onDragOver: (e: React.DragEvent) => { if (may(id)) { e.preventDefault(); setOver(id ?? 'nobody') } },
    onDragLeave: () => setOver(undefined),
    onDrop: (e: React.DragEvent) => { e.preventDefault(); if (dragged && may(id)) move(dragged, id); setDragged(undefined); setOver(undefined) },
  })
  return (
    <div className="relative flex min-h-0 grow flex-col">
      <div className="no-print absolute bottom-4 right-4 z-10 flex items-center gap-1 rounded border border-line bg-ground p-1 text-xs text-ink2">
        <Button small look="quiet" aria-label={tp.org.out} onClick={() => by(1 / zooms.step)}>−</Button><span className="w-12 whitespace-nowrap text-center">{Math.round(zoom * 100)} %</span><Button small look="quiet" aria-label={tp.org.in} onClick={() => by(zooms.step)}>+</Button><Button small look="quiet" onClick={() => fit(zooms.least)}>{tp.org.fit}</Button>
      </div>
      {dragged?.parent && <div {...target(null)} className={`absolute inset-x-4 top-2 z-10 rounded border border-dashed p-2 text-center text-sm ${over === 'nobody' ? 'border-accent bg-ground3' : 'border-line2 bg-ground'}`}>{tp.org.nobody}</div>}
      <div ref={room} tabIndex={0} aria-label={tp.org.chart} role="region" className="min-h-0 grow overflow-auto">
        <div className="relative mx-auto" style={{ width: chart.width * scale * zoom + 2 * edge, height: chart.height * scale * zoom + 2 * edge }}>
          <div className="absolute origin-top-left" style={{ left: edge, top: edge, width: rem(chart.width), height: rem(chart.height), transform: `scale(${zoom})` }}>
            <svg aria-hidden="true" viewBox={`0 0 ${chart.width} ${chart.height}`} className="absolute inset-0 size-full"><path d={chart.lines.join('')} fill="none" stroke="var(--line2)" /></svg>
            {chart.boxes.map((b) => (
              <Link key={b.id} to={`/${prefix}/agents/${b.id}`} data-agent={b.name} draggable title={tp.org.drag} {...target(b.id)} onDragStart={(e) => { e.dataTransfer.effectAllowed = 'move'; e.dataTransfer.setData('text/plain', b.name); setDragged(b) }} onDragEnd={() => { setDragged(undefined); setOver(undefined) }}
                className={`absolute flex items-center gap-2 rounded border bg-ground px-2 hover:bg-ground2 ${over === b.id ? 'border-accent bg-ground3' : 'border-line2'} ${dragged?.id === b.id ? 'opacity-50' : ''}`} style={{ left: rem(b.x), top: rem(b.y), width: rem(box.w), height: rem(box.h) }}>
                <Avatar id={b.id} name={b.name} size={24} />
                <span className="min-w-0 grow leading-tight"><span className="block truncate text-sm font-strong">{b.name}</span><span className="block truncate text-xs text-ink2">{words(b.role)}{b.reports > 0 ? ` · ${t.org.reports(b.reports)}` : ''}</span></span>
                <StatusMark status={b.status} bare label={statusText(b.status)} />
              </Link>
            ))}
          </div>
        </div>
      </div>
    </div>
  )
}

function Branch({ node, prefix, boxes, move }: { node: Person; prefix: string; boxes: readonly Box[]; move: Move }) {
  const [open, setOpen] = useState(true)
  const reports = node.reports.filter((r): r is Person => r !== null)
  const own = boxes.find((b) => b.id === node.id)
  const leads = boxes.filter((b) => !isUnder(boxes, b.id, node.id) && b.id !== own?.parent)
  return (
    <li role="treeitem" aria-expanded={reports.length > 0 ? open : undefined} aria-selected={false}>
      <div className="flex min-h-9 items-center gap-3 text-sm">
        {reports.length > 0 ? <IconButton small icon={open ? 'down' : 'right'} label={`${open ? t.org.fold : t.org.unfold} ${node.name}`} onClick={() => setOpen(!open)} /> : <span className="w-7" />}
        <Link to={`/${prefix}/agents/${node.id}`} className="hover:underline"><Who id={node.id} name={node.name} /></Link>
        <span className="text-ink3 max-tab:hidden">{words(node.role)}</span>
        <StatusMark status={node.status} />
        {reports.length > 0 && <span className="text-xs text-ink3 max-tab:hidden">{t.org.reports(reports.length)}</span>}
        {own && <Combobox align="end" label={tp.org.to(node.name)} choices={[...(own.parent ? [{ value: '', label: tp.org.nobodyChoice }] : []), ...leads.map((b) => ({ value: b.id, label: b.name }))]} onChange={(id) => move(own, id || null)}><IconButton small icon="org" label={tp.org.to(node.name)} /></Combobox>}
      </div>
      {open && reports.length > 0 && <ul role="group" className="ml-3.5 border-l border-line pl-4">{reports.map((r) => <Branch key={r.id} node={r} prefix={prefix} boxes={boxes} move={move} />)}</ul>}
    </li>
  )
}
