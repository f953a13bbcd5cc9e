// What an app offers to others: services, with their methods to call, and tools that agents of the company have.
import { Link } from '@tanstack/react-router'
import { keys } from '../../cache'
import { poll, useRead } from '../../data'
import { post, type Schemas } from '../../http'
import { Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { tr } from '../../text/en.rooms'
import { Methods } from '../services/call'

type App = Schemas['ApiAppRow']
const x = tr.apps

export function Offers({ app: a }: { app: App }) {
  // That a replica runs is told by its node a little later, and is no event of the company.
  const waits = a.state === 'running' && a.services.some((s) => !s.running)
  useRead(keys.apps(a.companyId), '/api/companies/{companyId}/apps', { path: { companyId: a.companyId } }, waits ? { refetchInterval: poll } : {})
  return (
    <>
      {a.services.map((s) => <ServiceOf key={s.name} service={s} company={a.companyId} />)}
      {a.tools.length > 0 && <Section title={x.tools}><ul aria-label={x.tools} className="flex flex-wrap gap-1.5">{a.tools.map((name) => <li key={name}><Badge><code className="font-mono">{name}</code></Badge></li>)}</ul><p className="mt-1 text-xs text-ink3">{x.toolsWhy}</p></Section>}
    </>
  )
}

function ServiceOf({ service: s, company }: { service: App['services'][number]; company: string }) {
  // Contracts change with their app, which is an event; whether a provider runs is asked when it is called.
  const contracts = useRead(keys.apps(company, 'services'), '/api/companies/{companyId}/services', { path: { companyId: company } }).data
  const methods = contracts?.find((c) => c.name === s.name)?.methods ?? []
  const [app = '', service = ''] = s.name.split('/')
  return (
    <Section title={`${x.service} ${service}`} aside={<span className="flex items-center gap-2 text-xs text-ink3"><StatusMark status={s.running ? 'running' : 'stopped'} label={s.running ? x.serviceRuns : x.serviceRests} />{s.version}</span>}>
      {s.error && <p className="mb-1 text-sm text-bad">{s.error}</p>}
      <Methods label={`${x.service} ${service}`} all={methods} send={(method, params) => post('/api/companies/{companyId}/services/{app}/{service}/call', { path: { companyId: company, app, service } }, { method, ...params }).then(({ tookMs: took, ...r }) => ({ ...r, took }))} />
      <p className="mt-1 text-xs text-ink3">{x.serviceAt} <code className="font-mono">service:{s.name}</code>{s.process && <>, <Link to="/mesh/processes" search={{ tab: 'declared' } as never} className="text-accent hover:underline">{s.process}</Link></>}</p>
    </Section>
  )
}
