// Where the first steps are found again: a row of Home and of the inbox, as long as nobody works or there is no work.
import { Link } from '@tanstack/react-router'
import { useAgents, useDashboard, type Company } from '../../data'
import { StatusMark } from '../../parts/status'
import { t } from '../../text/en'

/** useGoOn says whether the first steps of a company are not over. */
export function useGoOn(company: Company): { agents: number } | undefined {
  const agents = useAgents(company.id).data
  const tasks = useDashboard(company.id).data?.tasks
  if (!agents || !tasks || company.status === 'archived') return undefined
  const work = tasks.open + tasks.inProgress + tasks.blocked + tasks.done
  return agents.length === 0 || work === 0 ? { agents: agents.length } : undefined
}

export function GoOn({ company, agents }: { company: Company; agents: number }) {
  return (
    <div className="flex min-h-12 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1.5 last:border-0">
      <StatusMark status="pending" bare /><span className="min-w-0 grow basis-56"><span className="block">{t.start.goOn}</span><span className="block text-xs text-ink2">{t.start.goOnWhy(agents)}</span></span>
      <Link to={`/${company.issuePrefix}/start`} className="rounded border border-line2 px-2 text-xs font-strong leading-[22px] hover:bg-ground2">{t.start.goOnDo}</Link>
    </div>
  )
}
