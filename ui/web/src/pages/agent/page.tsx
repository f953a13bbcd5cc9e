// One agent: what it does now, its month, and everything it is made of.
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useAgentVerb, useRead, type AgentVerb } from '../../data'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { say } from '../../data'
import { Button, IconButton } from '../../parts/button'
import { Confirm, Menu } from '../../parts/overlay'
import { Loaded } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Tab, Tabs } from '../../parts/tabs'
import { toast } from '../../parts/toast'
import { Who } from '../../parts/values'
import { t } from '../../text/en'
import { Link } from '@tanstack/react-router'
import { Configuration } from './configuration'
import { Keys, Revisions, Sessions, Skills } from './kept'
import { Instructions } from './instructions'
import { Overview, Runs } from './overview'

export type AgentDetail = Schemas['ApiAgentDetail']

const tabs = ['overview', 'config', 'runs', 'instructions', 'skills', 'sessions', 'keys', 'revisions'] as const

export function Page() {
  const company = useCompany()
  const { agent: id } = useParams({ strict: false }) as { agent: string }
  const { tab } = useSearch({ strict: false }) as { tab?: string }
  const go = useNavigate()
  // Its key in the address is read once; everything else goes by its ID, which events know.
  const named = useRead(keys.agent(id, 'named'), '/api/agents/{id}', { path: { id }, query: { companyId: company.id } })
  const real = named.data?.id
  const agent = useRead(keys.agent(real ?? id), '/api/agents/{id}', { path: { id: real ?? id } }, { enabled: !!real })
  const row = agent.data ?? named.data
  return (
    <Frame title={row?.name ?? t.agents.title} scroll={false} command={`selvage agent show ${id}`} tools={row && <Tools agent={row} />} head={
      <div className="flex min-w-0 items-center gap-2 text-base"><Link to={`/${company.issuePrefix}/agents`} className="text-ink2 hover:text-ink max-tab:hidden">{t.agents.title}</Link><span className="text-ink3 max-tab:hidden">/</span>
        <h1 className="min-w-0 font-strong">{row ? <Who id={row.id} name={row.name} /> : id}</h1>{row && <span className="max-tab:hidden"><StatusMark status={row.status} /></span>}</div>}>
      <Loaded of={row ? { data: row, error: undefined, isPending: false, refetch: agent.refetch } : named}>
        {(a) => (
          <Tabs value={tab ?? 'overview'} onChange={(v) => void go({ to: '.', search: (v === 'overview' ? {} : { tab: v }) as never, replace: true })} tabs={tabs.map((value) => ({ value, label: t.agent[value] }))}>
            {tabs.map((value) => <Tab key={value} value={value} className="min-h-0 grow overflow-y-auto outline-none"><div className="w-full max-w-page p-4"><Part part={value} agent={a} /></div></Tab>)}
          </Tabs>
        )}
      </Loaded>
    </Frame>
  )
}

function Part({ part, agent }: { part: (typeof tabs)[number]; agent: AgentDetail }) {
  switch (part) {
    case 'overview': return <Overview agent={agent} />
    case 'config': return <Configuration key={agent.updatedAt} agent={agent} />
    case 'runs': return <Runs agent={agent} />
    case 'instructions': return <Instructions agent={agent} />
    case 'skills': return <Skills agent={agent} />
    case 'sessions': return <Sessions agent={agent} />
    case 'keys': return <Keys agent={agent} />
    case 'revisions': return <Revisions agent={agent} />
  }
}

function Tools({ agent }: { agent: AgentDetail }) {
  const company = useCompany()
  const go = useNavigate()
  const [ending, setEnding] = useState(false)
  const verb = useAgentVerb(company.id, (done: AgentVerb, answer) => {
    setEnding(false)
    const undo = (back: AgentVerb) => () => verb.mutate({ id: agent.id, verb: back })
    if (done === 'pause') toast({ text: t.palette.paused(agent.name), undo: undo('resume') })
    else if (done === 'resume') toast({ text: t.palette.resumedAgent(agent.name) })
    else if (done === 'terminate') toast({ text: t.agent.terminated(agent.name) })
    else if (done === 'invoke') {
      const run = (answer as { id?: string; runId?: string } | undefined)
      toast({ text: t.agent.invoked })
      if (run?.id) void go({ to: `/${company.issuePrefix}/runs/${run.id}` })
    }
  })
  const act = (v: AgentVerb) => verb.mutate({ id: agent.id, verb: v })
  const over = agent.status === 'terminated'
  const paused = agent.status === 'paused'
  const forget = () => post('/api/agents/{id}/runtime-state/reset-session', { path: { id: agent.id } }).then(() => toast({ text: t.agent.resetDone }), say)
  if (over) return null
  return (
    <>
      {agent.status === 'pending_approval' ? <Button look="primary" icon="check" busy={verb.isPending} onClick={() => act('approve')}>{t.agent.approve}</Button> : (
        <>
          <Button icon={paused ? 'play' : 'pause'} onClick={() => act(paused ? 'resume' : 'pause')}>{paused ? t.agent.resume : t.agent.pause}</Button>
          <Button look="primary" icon="play" disabled={paused} busy={verb.isPending} onClick={() => act('invoke')}>{t.agent.invoke}</Button>
        </>
      )}
      <Menu align="end" label={t.agent.more} items={[
        ...(agent.status === 'error' ? [{ label: t.agent.clearError, icon: 'check' as const, onSelect: () => act('clear-error') }] : []),
        { label: t.agent.reset, icon: 'routines', onSelect: () => void forget() }, null, { label: t.agent.terminate, icon: 'stop', danger: true, onSelect: () => setEnding(true) }]}>
        <IconButton icon="more" label={t.agent.more} />
      </Menu>
      <Confirm open={ending} onClose={() => setEnding(false)} title={t.agent.terminateAsk(agent.name)} body={t.agent.terminateBody} action={t.agent.terminate} busy={verb.isPending} onConfirm={() => act('terminate')} />
    </>
  )
}
