// One table of pages: the router, the rail, the palette, the keys and the screenshots are made from these rows.
import type { ComponentType } from 'react'
import type { IconName } from '../parts/icons'
import { t } from '../text/en'

export interface PageRow {
  /** The address; /$company is the prefix of a company's issues. */
  path: string
  title: string
  load: () => Promise<{ Page: ComponentType }>
  /** Where the rail shows it. */
  rail?: 'top' | 'work' | 'company' | 'mesh' | 'governance' | 'kernel'
  icon?: IconName
  /** g and this letter open it. */
  go?: string
  /** The command that shows the same; {company} is the prefix. */
  command?: string
}

export const pages: readonly PageRow[] = [
  { path: '/$company', title: t.nav.home, load: () => import('./home/page'), rail: 'top', icon: 'home', go: 'h', command: 'selvage inbox' },
  { path: '/$company/inbox', title: t.nav.inbox, load: () => import('./inbox/page'), rail: 'top', icon: 'inbox', go: 'i', command: 'selvage approval list' },
  { path: '/$company/issues', title: t.nav.issues, load: () => import('./issues/page'), rail: 'work', icon: 'issues', go: 's', command: 'selvage issue list' },
  { path: '/$company/issues/$issue', title: t.nav.issues, load: () => import('./issue/page') },
  { path: '/$company/agents', title: t.nav.agents, load: () => import('./agents/page'), rail: 'work', icon: 'agents', go: 'a', command: 'selvage agent list' },
  { path: '/$company/agents/$agent', title: t.nav.agents, load: () => import('./agent/page') },
  { path: '/$company/routines', title: t.nav.routines, load: () => import('./routines/page'), rail: 'work', icon: 'routines', go: 'r', command: 'selvage routine list' },
  { path: '/$company/routines/$routine', title: t.nav.routines, load: () => import('./routine/page') },
  { path: '/$company/projects', title: t.nav.projects, load: () => import('./projects/page'), rail: 'work', icon: 'projects', go: 'p', command: 'selvage project list' },
  { path: '/$company/projects/$project', title: t.nav.projects, load: () => import('./project/page') },
  { path: '/$company/goals', title: t.nav.goals, load: () => import('./goals/page'), rail: 'work', icon: 'goals', go: 'o', command: 'selvage goal list' },
  { path: '/$company/approvals', title: t.nav.approvals, load: () => import('./approvals/page'), rail: 'company', icon: 'approvals', go: 'v', command: 'selvage approval list' },
  { path: '/$company/approvals/$approval', title: t.nav.approvals, load: () => import('./approval/page') },
  { path: '/$company/org', title: t.nav.org, load: () => import('./org/page'), rail: 'company', icon: 'org', go: 't', command: 'selvage agent list' },
  { path: '/$company/costs', title: t.nav.costs, load: () => import('./costs/page'), rail: 'company', icon: 'costs', go: 'c', command: 'selvage cost' },
  { path: '/$company/activity', title: t.nav.activity, load: () => import('./activity/page'), rail: 'company', icon: 'activity', go: 'y', command: 'selvage activity' },
  { path: '/$company/memory', title: t.nav.memory, load: () => import('./memory/page'), rail: 'company', icon: 'memory', go: 'm', command: 'selvage memory stats' },
  { path: '/$company/skills', title: t.nav.skills, load: () => import('./skills/page'), rail: 'company', icon: 'skills', go: 'k', command: 'selvage skill list' },
  { path: '/$company/skills/$skill', title: t.nav.skills, load: () => import('./skill/page') },
  { path: '/$company/apps', title: t.nav.apps, load: () => import('./apps/page'), rail: 'company', icon: 'apps', go: 'f', command: 'selvage app list' },
  { path: '/$company/company/settings/secrets', title: t.nav.secrets, load: () => import('./secrets/page'), rail: 'company', icon: 'secrets', go: 'x', command: 'selvage secret list' },
  { path: '/$company/company/settings/models', title: t.nav.models, load: () => import('./models/page'), rail: 'company', icon: 'models', go: 'd', command: 'selvage model provider list' },
  { path: '/$company/company/settings/members', title: t.nav.members, load: () => import('./members/page'), rail: 'company', icon: 'people', go: 'u', command: 'selvage member list' },
  { path: '/$company/company/settings', title: t.nav.settings, load: () => import('./company/page'), rail: 'company', icon: 'settings', go: 'e', command: 'selvage company show' },
  { path: '/$company/runs/$run', title: t.nav.run, load: () => import('./run/page') },
  { path: '/mesh/nodes', title: t.nav.nodes, load: () => import('./nodes/page'), rail: 'mesh', icon: 'nodes', go: 'n', command: 'selvage members' },
  { path: '/mesh/ledger', title: t.nav.ledger, load: () => import('./ledger/page'), rail: 'mesh', icon: 'ledger', go: 'l', command: 'selvage ledger' },
  { path: '/mesh/adapters', title: t.nav.adapters, load: () => import('./adapters/page'), rail: 'mesh', icon: 'adapters', go: 'b', command: 'selvage adapter list' },
  { path: '/mesh/settings', title: t.nav.meshSettings, load: () => import('./mesh/page'), rail: 'mesh', icon: 'settings', go: 'w', command: 'selvage settings show' },
  { path: '/mesh/constitution', title: t.nav.constitution, load: () => import('./constitution/page'), rail: 'governance', icon: 'constitution', go: 'C', command: 'selvage govern rules' },
  { path: '/mesh/constitution/rule', title: t.nav.rule, load: () => import('./rule/page'), command: 'selvage govern review' },
  { path: '/mesh/decisions', title: t.nav.decisions, load: () => import('./decisions/page'), rail: 'governance', icon: 'decisions', go: 'D', command: 'selvage govern decisions' },
  { path: '/mesh/permits', title: t.nav.permits, load: () => import('./permits/page'), rail: 'governance', icon: 'approvals', go: 'E', command: 'selvage govern permit list' },
  { path: '/mesh/amendments', title: t.nav.amendments, load: () => import('./amendments/page'), rail: 'governance', icon: 'amendments', go: 'A', command: 'selvage govern amendments' },
  { path: '/mesh/amendments/$amendment', title: t.nav.amendments, load: () => import('./amendment/page') },
  { path: '/mesh/tree', title: t.nav.tree, load: () => import('./tree/page'), rail: 'governance', icon: 'tree', go: 'T', command: 'selvage tree' },
  { path: '/mesh/processes', title: t.nav.processes, load: () => import('./processes/page'), rail: 'kernel', icon: 'processes', go: 'P', command: 'selvage ps' },
  { path: '/mesh/topics', title: t.nav.topics, load: () => import('./topics/page'), rail: 'kernel', icon: 'topics', go: 'M', command: 'selvage topic list' },
  { path: '/mesh/messages', title: t.nav.messages, load: () => import('./messages/page'), rail: 'kernel', icon: 'messages', go: 'I', command: 'selvage ipc inbox' },
  { path: '/mesh/services', title: t.nav.services, load: () => import('./services/page'), rail: 'kernel', icon: 'services', go: 'S', command: 'selvage service list' },
  { path: '/mesh/cron', title: t.nav.cron, load: () => import('./cron/page'), rail: 'kernel', icon: 'routines', go: 'K', command: 'selvage cron list' },
  { path: '/$company/company/import', title: t.transfer.import, load: () => import('./transfer/import'), icon: 'file', command: 'selvage company import' },
  { path: '/$company/company/export', title: t.transfer.export, load: () => import('./transfer/export'), icon: 'export', command: 'selvage company export' },
  { path: '/companies/import', title: t.transfer.import, load: () => import('./transfer/import') },
  { path: '/$company/start', title: t.start.title, load: () => import('./start/page'), command: 'selvage onboard' },
  { path: '/start', title: t.start.title, load: () => import('./start/page') },
  { path: '/companies', title: t.nav.companies, load: () => import('./companies/page'), icon: 'companies', command: 'selvage company list' },
]
