// The router: every row of the table of pages, the specification's own addresses, and sign-in.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import { useEffect } from 'react'
import { lastCompany } from './company'
import { useCompanies } from './data'
import { Frame } from './frame/frame'
import { Page } from './frame/page'
import { pages } from './pages/table'
import { Empty, ErrorBox, Rows } from './parts/states'
import { t } from './text/en'

const root = createRootRoute({
  component: Outlet,
  notFoundComponent: () => <Page title={t.error.notFound}><Empty icon="file" title={t.error.notFound} why={t.error.notFoundWhy} /></Page>,
  errorComponent: ({ error }) => <ErrorBox error={error} onRetry={() => location.reload()} />,
})
const frame = createRoute({ getParentRoute: () => root, id: 'frame', component: Frame })

// Addresses of the specification (§14) name a company by its ID: they open the page under its prefix.
const moved: Record<string, string> = {
  '/companies/$id/org': '/org', '/companies/$id/tasks': '/issues', '/companies/$id/agents/$agent': '/agents/$agent', '/companies/$id/costs': '/costs', '/companies/$id/approvals': '/approvals', '/companies/$id/activity': '/activity',
}

function Moved({ to }: { to: string }) {
  const { id, agent } = useParams({ strict: false }) as { id?: string; agent?: string }
  const { data } = useCompanies()
  const go = useNavigate()
  const company = data?.find((c) => c.id === id || c.issuePrefix === id)
  useEffect(() => {
    if (company) void go({ to: `/${company.issuePrefix}${to.replace('$agent', agent ?? '')}`, replace: true })
  }, [company, go, to, agent])
  return data && !company ? <Empty icon="file" title={t.error.notFound} why={t.error.notFoundWhy} /> : <Rows />
}

/** "/" is the dashboard of the company that was looked at last; without one, first use. */
function Start() {
  const { data } = useCompanies()
  const go = useNavigate()
  useEffect(() => {
    if (!data) return
    const company = lastCompany(data)
    void go({ to: company ? `/${company.issuePrefix}` : '/start', replace: true })
  }, [data, go])
  return <Rows />
}

const routes = [
  createRoute({ getParentRoute: () => frame, path: '/', component: Start }),
  ...pages.map((page) => createRoute({ getParentRoute: () => frame, path: page.path, component: lazyRouteComponent(page.load, 'Page') })),
  ...Object.entries(moved).map(([path, to]) => createRoute({ getParentRoute: () => frame, path, component: () => <Moved to={to} /> })),
  createRoute({ getParentRoute: () => frame, path: '/mesh', beforeLoad: () => { throw redirect({ to: '/mesh/nodes' as never }) } }),
]
const alone = [
  createRoute({ getParentRoute: () => root, path: '/sign-in', component: lazyRouteComponent(() => import('./pages/signin/page'), 'Page') }),
  createRoute({ getParentRoute: () => root, path: '/invite/$token', component: lazyRouteComponent(() => import('./pages/invite/page'), 'Page') }),
  ...(import.meta.env.DEV ? [createRoute({ getParentRoute: () => root, path: '/dev/parts', component: lazyRouteComponent(() => import('./dev/parts'), 'Page') })] : []),
]

const shown = ({ error }: { error: unknown }) => <Page title={t.error.page}><ErrorBox error={error} onRetry={() => location.reload()} /></Page>

export const router = createRouter({
  routeTree: root.addChildren([frame.addChildren(routes), ...alone]),
  defaultPreload: 'intent',
  defaultPendingComponent: () => <Rows />,
  defaultErrorComponent: shown,
  scrollRestoration: true,
})
