// The switches of the contract that are experimental: those that are on, and the rest folded.
import { useState } from 'react'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { patch, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Checkbox } from '../../parts/form'
import { Loaded, Section } from '../../parts/states'
import { toast } from '../../parts/toast'
import { tp } from '../../text/en.pages'

type Switches = Schemas['ApiExperimental']

/** wordsOf makes words of the name of a switch: enableAgentChat is "agent chat". */
export const wordsOf = (name: string) => name.replace(/^enable/, '').replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()

export function Experimental() {
  const now = useRead(keys.mesh('experimental'), '/api/instance/settings/experimental')
  const [all, setAll] = useState(false)
  const save = useWrite<Partial<Switches>, unknown>({
    call: (body) => patch('/api/instance/settings/experimental', {}, body),
    optimistic: (body) => [{ key: keys.mesh('experimental'), change: (row) => ({ ...(row as Switches), ...body }) }],
    reread: () => [keys.mesh('experimental')], onDone: () => toast({ text: tp.mesh.saved }),
  })
  return (
    <Section title={tp.mesh.experimental} aside={<Button small look="quiet" onClick={() => setAll(!all)}>{all ? tp.mesh.onlyOn : tp.mesh.allSwitches}</Button>}>
      <p className="mb-2 text-sm text-ink2">{tp.mesh.experimentalWhy}</p>
      <Loaded of={now} rows={3}>{(s) => {
        const rows = Object.entries(s).filter((e): e is [string, boolean] => typeof e[1] === 'boolean').filter(([, on]) => all || on)
        return rows.length === 0 ? <p className="text-sm text-ink3">{tp.mesh.noneOn}</p> : <div className="grid gap-2 tab:grid-cols-2">{rows.map(([name, on]) => <Checkbox key={name} label={wordsOf(name)} checked={on} onChange={(to) => save.mutate({ [name]: to })} />)}</div>
      }}</Loaded>
    </Section>
  )
}
