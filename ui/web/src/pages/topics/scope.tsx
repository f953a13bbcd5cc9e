// Whose: the company on screen, or the mesh. The address keeps it.
import { useMaybeCompany } from '../../company'
import { poll, type Company } from '../../data'
import { Select } from '../../parts/form'
import { tr } from '../../text/en.rooms'

export interface Scope { company: Company | undefined; companyId: string | undefined; flag: string; polled: { refetchInterval?: number } }

/** useScope reads the address: of=mesh is the mesh, else it is the company on screen. No event tells of what is the mesh's. */
export function useScope(of: string | undefined): Scope {
  const company = useMaybeCompany()
  const companyId = of === 'mesh' ? undefined : company?.id
  return { company, companyId, flag: companyId ? ` --company ${company?.issuePrefix}` : '', polled: companyId ? {} : { refetchInterval: poll } }
}

export function ScopeChoice({ scope, onChange }: { scope: Scope; onChange: (of: string) => void }) {
  return <Select aria-label={tr.topics.whose} value={scope.companyId ? '' : 'mesh'} onChange={(e) => onChange(e.target.value)} choices={[...(scope.company ? [{ value: '', label: scope.company.name }] : []), { value: 'mesh', label: tr.topics.mesh }]} />
}
