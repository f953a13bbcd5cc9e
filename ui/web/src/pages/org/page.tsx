// Who reports to whom: a tree that folds, each agent with its state.
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useRead } from '../../data'
import { words } from '../../format'
import { Page as Frame } from '../../frame/page'
import type { Schemas } from '../../http'
import { IconButton } from '../../parts/button'
import { Empty, Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Who } from '../../parts/values'
import { t } from '../../text/en'

type Node = Schemas['OrgNode']

export function Page() {
  const company = useCompany()
  const chart = useRead([...keys.agents(company.id), 'org'], '/api/companies/{companyId}/org', { path: { companyId: company.id } })
  return (
    <Frame title={t.nav.org} command="selvage org">
      <Loaded of={chart}>{(roots) => roots.length === 0 ? <Empty icon="org" title={t.org.empty} why={t.org.emptyWhy} /> : (
        <ul role="tree" aria-label={t.nav.org} className="p-4">{roots.map((n) => n && <Branch key={n.id} node={n} prefix={company.issuePrefix} />)}</ul>
      )}</Loaded>
    </Frame>
  )
}

function Branch({ node, prefix }: { node: Node; prefix: string }) {
  const [open, setOpen] = useState(true)
  const reports = node.reports.filter((r) => r !== null)
  return (
    <li role="treeitem" aria-expanded={reports.length > 0 ? open : undefined} aria-selected={false}>
      <div className="flex min-h-9 items-center gap-3 text-sm">
        {reports.length > 0 ? <IconButton small icon={open ? 'down' : 'right'} label={`${open ? t.org.fold : t.org.unfold} ${node.name}`} onClick={() => setOpen(!open)} /> : <span className="w-7" />}
        <Link to={`/${prefix}/agents/${node.id}`} className="hover:underline"><Who id={node.id} name={node.name} /></Link>
        <span className="text-ink3">{words(node.role)}</span>
        <StatusMark status={node.status} />
        {reports.length > 0 && <span className="text-xs text-ink3">{t.org.reports(reports.length)}</span>}
      </div>
      {open && reports.length > 0 && <ul role="group" className="ml-3.5 border-l border-line pl-4">{reports.map((r) => <Branch key={r.id} node={r} prefix={prefix} />)}</ul>}
    </li>
  )
}
