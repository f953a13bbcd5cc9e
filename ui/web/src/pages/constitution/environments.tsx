import { keys } from '../../cache'
import { useMaybeCompany } from '../../company'
import { useProjects, useRead, useWrite } from '../../data'
import { put, type Schemas } from '../../http'
import { Select } from '../../parts/form'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Dialog } from '../../parts/overlay'
import { toast } from '../../parts/toast'
import { tr } from '../../text/en.rooms'
import { level } from '../govern/effect'

const g = tr.govern
type Of = { companyId?: string; projectId?: string }

/** The environments of the mesh, of the company on screen and of its projects: the nearest that is set holds. */
export function Environments({ onClose }: { onClose: () => void }) {
  const company = useMaybeCompany()
  const projects = useProjects(company?.id).data ?? []
  return (
    <Dialog open onClose={onClose} title={g.environments} size="medium">
      <p className="mb-3 text-sm text-ink2">{g.environmentsWhy}</p>
      <Lines label={g.environments}>
        <Place of={{}} name={g.ofMesh} />
        {company && <Place of={{ companyId: company.id }} name={g.ofCompany(company.name)} />}
        {company && projects.slice(0, 50).map((p) => <Place key={p.id} of={{ companyId: company.id, projectId: p.id }} name={p.name} inner />)}
      </Lines>
    </Dialog>
  )
}

function Place({ of, name, inner }: { of: Of; name: string; inner?: boolean }) {
  const key = keys.govern('place', of)
  const place = useRead(key, '/api/v1/govern/place', { query: of })
  const set = useWrite<string, unknown>({ call: (environment) => put('/api/v1/govern/place', {}, { ...of, environment } as Schemas['ApiPlaceBody']), reread: () => [keys.govern('place'), keys.govern('rules')], onDone: () => toast({ text: g.saved }) })
  const now = place.data
  return (
    <LineOf>
      <Front><span className={inner ? 'pl-4' : 'font-strong'}>{name}</span></Front>
      {now && <span className="text-xs text-ink3">{g.holds(level(now.threshold))}</span>}
      <Select small aria-label={`${g.place}: ${name}`} value={now?.environment ?? 'none'} disabled={!now || set.isPending} onChange={(e) => set.mutate(e.target.value)} choices={Object.entries(g.places).map(([value, label]) => ({ value, label: value === 'none' && !of.companyId ? g.unset : label }))} />
    </LineOf>
  )
}
