// First use: four steps, each a real action on the mesh with its result shown. What is done is read from the mesh, so that
// the page can be left and found again: /start without a company, /ACM/start with one.
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { keys } from '../../cache'
import { useMaybeCompany } from '../../company'
import { client, say, useAgents, useCompanies, useRead, useWrite, type Company } from '../../data'
import { Page as Frame } from '../../frame/page'
import { get, post } from '../../http'
import { Button } from '../../parts/button'
import { Field, Input, TextArea } from '../../parts/form'
import { Rows } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { t } from '../../text/en'
import { useRouterState } from '@tanstack/react-router'
import { GiveTask, Watch } from './task'
import { Staff } from './staff'
import { begin, type Team } from './starter'

export function Page() {
  const addressed = useRouterState({ select: (s) => s.location.pathname !== '/start' })
  const company = useMaybeCompany()
  const here = addressed ? company : undefined
  const { issue } = useSearch({ strict: false }) as { issue?: string }
  const agents = useAgents(here?.id)
  const [ready, setReady] = useState(false)
  const staffed = ready || !!issue
  const at = !here ? 0 : !staffed ? 1 : !issue ? 2 : 3
  return (
    <Frame title={t.start.title} command="selvage onboard" tools={here && <Link to={`/${here.issuePrefix}`} className="text-sm text-accent">{t.start.leave}</Link>}>
      <div className="mx-auto flex w-full max-w-[720px] flex-col px-4 py-6">
        <ol className="flex flex-col gap-3">
          <Step n={0} at={at} title={t.start.steps[0]} done={here && t.start.named(here.name, here.issuePrefix)}><Name /></Step>
          <Step n={1} at={at} title={t.start.steps[1]} done={agents.data && t.start.works(agents.data.map((a) => a.name))}>
            {here && (agents.data === undefined ? <Rows n={3} /> : <Staff company={here} agents={agents.data} onReady={() => setReady(true)} />)}
          </Step>
          <Step n={2} at={at} title={t.start.steps[2]} done={issue && t.start.given(issue)}>{here && agents.data && <GiveTask company={here} agents={agents.data} />}</Step>
          <Step n={3} at={at} title={t.start.steps[3]}>{here && issue && <Watch company={here} issue={issue} />}</Step>
        </ol>
      </div>
    </Frame>
  )
}

/** A step is to come, open, or done with its result. */
function Step({ n, at, title, done, children }: { n: number; at: number; title: string; done?: ReactNode; children: ReactNode }) {
  const state = n < at ? 'done' : n === at ? 'open' : 'waiting'
  return (
    <li aria-current={state === 'open' ? 'step' : undefined} data-step={n + 1} className={`rounded border ${state === 'open' ? 'border-line2' : 'border-line'}`}>
      <div className="flex min-h-12 flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
        {state === 'done' ? <StatusMark status="done" bare /> : <span aria-hidden="true" className={`inline-flex size-5 items-center justify-center rounded-full text-xs font-strong leading-none ${state === 'open' ? 'bg-accent text-onaccent' : 'bg-ground3 text-ink2'}`}>{n + 1}</span>}
        <h2 className={`font-strong ${state === 'waiting' ? 'text-ink2' : ''}`}>{title}</h2>
        {state === 'done' && <span className="min-w-0 break-words text-sm text-ink2">{done}</span>}
      </div>
      {state === 'open' && <div className="border-t border-line p-4">{children}</div>}
    </li>
  )
}

function Name() {
  const go = useNavigate()
  const first = useCompanies().data?.length === 0
  const teams = useRead(keys.mesh('teams'), '/api/teams/catalog').data ?? []
  const [name, setName] = useState('')
  const [goal, setGoal] = useState('')
  const [wrong, setWrong] = useState<string>()
  const [busy, setBusy] = useState<string>()
  const open = async (id: string) => {
    const all = await client.fetchQuery({ queryKey: keys.companies(), queryFn: () => get('/api/companies'), staleTime: 0 })
    const made = all.find((c: Company) => c.id === id)
    if (made) void go({ to: `/${made.issuePrefix}/start` })
  }
  const create = useWrite({
    call: async () => {
      const made = (await post('/api/companies', {}, { name: name.trim(), ...(goal.trim() ? { description: goal.trim() } : {}) })) as Company
      if (goal.trim()) await post('/api/companies/{companyId}/goals', { path: { companyId: made.id } }, { title: goal.trim(), level: 'company', status: 'active' })
      return made
    },
    onDone: (made) => void open(made.id),
  })
  const from = (team: Team) => {
    setBusy(team.slug)
    begin(team, name.trim()).then((made) => open(made.id), say).finally(() => setBusy(undefined))
  }
  return (
    <form className="flex flex-col gap-3" onSubmit={(e) => { e.preventDefault(); if (name.trim() === '') setWrong(t.part.required(t.switcher.name)); else create.mutate(undefined) }}>
      {first && <p className="text-sm text-ink2">{t.start.hello}</p>}
      <Field label={t.switcher.name} wrong={wrong}><Input autoFocus name="name" maxLength={200} placeholder={t.switcher.namePlaceholder} value={name} onChange={(e) => { setName(e.target.value); setWrong(undefined) }} /></Field>
      <Field label={t.switcher.goal}><TextArea name="goal" rows={2} maxLength={500} placeholder={t.start.goalPlaceholder} value={goal} onChange={(e) => setGoal(e.target.value)} /></Field>
      <div className="flex items-center gap-3"><Button look="primary" type="submit" busy={create.isPending}>{t.start.make}</Button><Link to="/companies/import" className="text-sm text-accent">{t.start.import}</Link></div>
      {teams.length > 0 && (
        <section aria-label={t.start.starters} className="mt-2">
          <h3 className="mb-2 text-sm font-strong text-ink2">{t.start.starters}</h3>
          <ul className="grid gap-3 tab:grid-cols-3">
            {teams.map((team) => (
              <li key={team.id} className="flex flex-col gap-1 rounded border border-line p-3 text-sm">
                <span className="font-strong">{team.name}</span>
                <span className="grow text-ink2">{team.description}</span>
                <span className="text-xs text-ink3">{t.start.starterHas(team.counts.agents, team.counts.issues)}</span>
                <Button small className="mt-1 self-start" busy={busy === team.slug} disabled={!!busy} onClick={() => from(team)}>{t.start.begin(team.name)}</Button>
              </li>
            ))}
          </ul>
        </section>
      )}
    </form>
  )
}
