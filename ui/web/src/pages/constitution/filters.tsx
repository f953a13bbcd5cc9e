// The filters of a company: a second backend beside the rules, which looks at who acts and how that agent has acted.
import { keys } from '../../cache'
import { useRead, useWrite, type Company } from '../../data'
import { number } from '../../format'
import { post, put, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog } from '../../parts/formdialog'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Dialog } from '../../parts/overlay'
import { Loaded, Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { Who } from '../../parts/values'
import { tr } from '../../text/en.rooms'

const x = tr.filters
type Shape = Schemas['ApiFilterShape']

export function Filters({ company, onClose }: { company: Company; onClose: () => void }) {
  const read = useRead(keys.govern('filters', company.id), '/api/v1/govern/filters', { query: { companyId: company.id } })
  if (!read.data) return <Dialog open onClose={onClose} title={x.title(company.name)}><Loaded of={read}>{() => null}</Loaded></Dialog>
  return <Form company={company} shape={read.data} onClose={onClose} />
}

function Form({ company, shape: s, onClose }: { company: Company; shape: Shape; onClose: () => void }) {
  const reread = () => [keys.govern('filters'), keys.govern('rules')]
  const save = useWrite<Record<string, unknown>, unknown>({ call: (body) => put('/api/v1/govern/filters', { query: { companyId: company.id } }, body as Schemas['ApiFilterBody']), reread, onDone: () => { onClose(); toast({ text: x.saved }) } })
  const forget = useWrite<string, unknown>({ call: (agentId) => post('/api/v1/govern/filters/forget', { query: { companyId: company.id } }, { agentId }), reread, onDone: () => toast({ text: x.forgotten }) })
  const level = { type: 'number', minimum: 0, maximum: 1 } as const
  const power = { type: 'integer', minimum: -32, maximum: 0 } as const
  return (
    <FormDialog title={x.title(company.name)} size="medium" action={x.save} busy={save.isPending} onClose={onClose} onSave={(_v, changes) => (Object.keys(changes).length > 0 ? save.mutate(changes) : onClose())}
      initial={{ on: s.on, minCut: s.minCut, maxShift: s.maxShift, permitEvidence: s.permitEvidence, denyEvidence: s.denyEvidence, floor: s.floor }}
      head={<p className="text-sm text-ink2">{x.why}</p>}
      schema={{ required: ['minCut', 'maxShift', 'permitEvidence', 'denyEvidence', 'floor'], properties: { on: { type: 'boolean', title: x.on }, minCut: { ...level, title: x.minCut, description: x.minCutHint }, maxShift: { ...level, title: x.maxShift, description: x.maxShiftHint }, permitEvidence: { ...power, title: x.permit, description: x.powerHint }, denyEvidence: { ...power, title: x.deny, description: x.powerHint }, floor: { ...level, title: x.floor, description: x.floorHint } } }}
      foot={() => s.agents.length > 0 && <Section title={x.agents}><Lines label={x.agents}>{s.agents.map((a) => <LineOf key={a.agentId}><Front><Who id={a.agentId} name={a.name} /></Front><span className="text-xs text-ink3">{x.kept(number(a.acts), a.evidence.toFixed(1))}</span><Button small aria-label={x.forgetOf(a.name)} onClick={() => forget.mutate(a.agentId)}>{x.forget}</Button></LineOf>)}</Lines></Section>} />
  )
}
