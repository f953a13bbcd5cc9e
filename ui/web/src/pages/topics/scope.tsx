// Whose: the company on screen, or the mesh. The address keeps it.
import { useMaybeCompany } from '../../company'
import { type Company } from '../../data'
import { Select } from '../../parts/form'
import { tr } from '../../text/en.rooms'

export interface Scope { company: Company | undefined; companyId: string | undefined; flag: string }

/** useScope reads the address: of=mesh is the mesh, else it is the company on screen. */
export function useScope(of: string | undefined): Scope {
  const company = useMaybeCompany()
  const companyId = of === 'mesh' ? undefined : company?.id
  return { company, companyId, flag: companyId ? ` --company ${company?.issuePrefix}` : '' }
}

export function ScopeChoice({ scope, onChange }: { scope: Scope; onChange: (of: string) => void }) {
  return <Select aria-label={tr.topics.whose} value={scope.companyId ? '' : 'mesh'} onChange={(e) => onChange(e.target.value)} choices={[...(scope.company ? [{ value: '', label: scope.company.name }] : []), { value: 'mesh', label: tr.topics.mesh }]} />
}
