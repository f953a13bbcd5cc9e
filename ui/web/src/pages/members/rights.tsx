// The rights of one member, one by one.
import { useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useWrite } from '../../data'
import { patch, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Checkbox } from '../../parts/form'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

type Member = Schemas['ApiMemberRow']
const all = Object.keys(tp.rights.of)

export function Rights({ member: m, name, onClose }: { member: Member; name: string; onClose: () => void }) {
  const company = useCompany()
  const had = (m.grants ?? []).map((g) => g.permissionKey)
  const [now, setNow] = useState<string[]>(had)
  const save = useWrite<string[], unknown>({
    // A right that is kept keeps its scope.
    call: (grants) => patch('/api/companies/{companyId}/members/{memberId}/permissions', { path: { companyId: company.id, memberId: m.id } }, { grants: grants.map((permissionKey) => ({ permissionKey, scope: (m.grants ?? []).find((g) => g.permissionKey === permissionKey)?.scope ?? null })) } as Schemas['ApiMemberPermissions']),
    reread: () => [keys.people(company.id)], onDone: () => { onClose(); toast({ text: tp.rights.changed(name) }) },
  })
  const others = had.filter((k) => !all.includes(k))
  const same = now.length === had.length && now.every((k) => had.includes(k))
  return (
    <Dialog open onClose={onClose} title={tp.rights.title(name)}>
      <p className="mb-3 text-sm text-ink2">{tp.rights.why}</p>
      <div className="flex flex-col gap-2">{[...all, ...others].map((k) => <Checkbox key={k} label={tp.rights.of[k] ?? k} checked={now.includes(k)} onChange={(on) => setNow(on ? [...now, k] : now.filter((x) => x !== k))} />)}</div>
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button><Button look="primary" disabled={same} busy={save.isPending} onClick={() => save.mutate(now)}>{t.common.save}</Button></DialogFoot>
    </Dialog>
  )
}
