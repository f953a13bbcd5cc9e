// The settings of the mesh: how long things are kept, who may come in, tokens for nodes, the data key, the stop.
import { useState } from 'react'
import { keys } from '../../cache'
import { useMesh, useRead, useWrite } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, put, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { FormDialog, ShownOnce } from '../../parts/formdialog'
import { JsonForm, wrongOf, type Schema, type Values } from '../../parts/jsonform'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { Id, Time } from '../../parts/values'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'
import { Experimental } from './experimental'

type General = Schemas['ApiGeneral']
const MiB = 1024 * 1024
const days = (title: string): Schema => ({ type: 'integer', title, minimum: 0 })

const schema: Schema = {
  properties: {
    runLogDays: days(tp.mesh.runLogs), runLogMiB: { type: 'number', title: tp.mesh.runLogsMax, minimum: 0 }, runEventDays: days(tp.mesh.runEvents), dailyDays: days(tp.mesh.daily), weeklyWeeks: days(tp.mesh.weekly), monthlyMonths: days(tp.mesh.monthly),
    signUps: { type: 'string', title: tp.mesh.signUps, enum: ['open', 'invited', 'closed'], labels: tp.mesh.signUpsOf }, censorUsernameInLogs: { type: 'boolean', title: tp.mesh.censor },
  },
  required: ['runLogDays', 'runLogMiB', 'runEventDays', 'dailyDays', 'weeklyWeeks', 'monthlyMonths', 'signUps'],
}
const valuesOf = (g: General): Values => ({ runLogDays: g.runLogRetention.days, runLogMiB: g.runLogRetention.maxBytes / MiB, runEventDays: g.runEventRetention.days, ...g.backupRetention, signUps: g.signUps, censorUsernameInLogs: g.censorUsernameInLogs })

/** bodyOf sends the groups of which something changed. */
function bodyOf(v: Values, before: Values): Schemas['ApiPatchGeneral'] {
  const n = (k: string) => Number(v[k])
  const differs = (...names: string[]) => names.some((k) => v[k] !== before[k])
  return {
    ...(differs('runLogDays', 'runLogMiB') ? { runLogRetention: { days: n('runLogDays'), maxBytes: Math.round(n('runLogMiB') * MiB) } } : {}), ...(differs('runEventDays') ? { runEventRetention: { days: n('runEventDays') } } : {}),
    ...(differs('dailyDays', 'weeklyWeeks', 'monthlyMonths') ? { backupRetention: { dailyDays: n('dailyDays'), weeklyWeeks: n('weeklyWeeks'), monthlyMonths: n('monthlyMonths') } } : {}),
    ...(differs('signUps') ? { signUps: v['signUps'] as 'open' } : {}), ...(differs('censorUsernameInLogs') ? { censorUsernameInLogs: v['censorUsernameInLogs'] === true } : {}),
  }
}

export function Page() {
  const mesh = useMesh().data
  const general = useRead(keys.mesh('general'), '/api/instance/settings/general')
  return (
    <Frame title={tp.mesh.title} command="selvage settings show">
      <div className="parts w-full max-w-[760px] p-4 huge:max-w-[1720px]">
        {mesh && <Section title={mesh.name || tp.mesh.info}><Facts rows={[[tp.mesh.nodes, number(mesh.members)], [tp.mesh.height, number(mesh.height)], [tp.mesh.features, number(mesh.features)], [tp.mesh.id, <Id id={mesh.id} />]]} /></Section>}
        <Work />
        <Loaded of={general} rows={5}>{(g) => <General key={JSON.stringify(g)} general={g} />}</Loaded>
        <Mode />
        <Tokens />
        <DataKeys />
        <Experimental />
      </div>
    </Frame>
  )
}

function General({ general }: { general: General }) {
  const before = valuesOf(general)
  const [now, setNow] = useState<Values>(before)
  const save = useWrite<Schemas['ApiPatchGeneral'], unknown>({ call: (body) => patch('/api/instance/settings/general', {}, body), reread: () => [keys.mesh('general')], onDone: () => toast({ text: tp.mesh.saved }) })
  const body = bodyOf(now, before)
  const wrong = wrongOf(schema, now)
  return (
    <Section title={tp.mesh.keep}>
      <form onSubmit={(e) => { e.preventDefault(); save.mutate(body) }}>
        <JsonForm schema={schema} values={now} onChange={setNow} wrong={wrong} />
        <div className="mt-3 flex items-center justify-end gap-3"><span className="text-sm text-ink3">{Object.keys(body).length === 0 ? tp.mesh.unchanged : ''}</span><Button look="primary" type="submit" disabled={Object.keys(body).length === 0 || Object.keys(wrong).length > 0} busy={save.isPending}>{tp.mesh.save}</Button></div>
      </form>
    </Section>
  )
}

function Work() {
  const state = useRead(keys.mesh('stop'), '/api/v1/mesh/stop')
  const [asking, setAsking] = useState(false)
  const set = useWrite<boolean, unknown>({ call: (on) => post(on ? '/api/v1/mesh/stop' : '/api/v1/mesh/resume'), reread: () => [keys.mesh('stop')], onDone: (_a, on) => { setAsking(false); toast({ text: on ? t.palette.stopped : t.palette.resumed }) } })
  return (
    <Section title={tp.mesh.work}>
      <Loaded of={state} rows={1}>{(s) => <Lines><LineOf><Front><StatusMark status={s.stopped ? 'paused' : 'active'} label={s.stopped ? tp.mesh.stopped : tp.mesh.running(s.running)} /></Front>{s.stopped ? <Button icon="play" busy={set.isPending} onClick={() => set.mutate(false)}>{tp.mesh.go}</Button> : <Button look="danger" icon="stop" onClick={() => setAsking(true)}>{tp.mesh.stop}</Button>}</LineOf></Lines>}</Loaded>
      <Confirm open={asking} onClose={() => setAsking(false)} title={tp.mesh.stop} body={t.palette.stopAsk} action={tp.mesh.stop} busy={set.isPending} onConfirm={() => set.mutate(true)} />
    </Section>
  )
}

function Mode() {
  const mode = useRead(keys.mesh('auth'), '/api/v1/mesh/auth')
  const [asking, setAsking] = useState(false)
  const set = useWrite<'local_trusted' | 'authenticated', unknown>({ call: (to) => put('/api/v1/mesh/auth', {}, { mode: to }), reread: () => [keys.mesh('auth'), keys.session()], onDone: () => { setAsking(false); toast({ text: tp.mesh.modeSet }) } })
  return (
    <Section title={tp.mesh.mode}>
      <Loaded of={mode} rows={1}>{(m) => {
        const local = m.mode === 'local_trusted'
        return <><Lines><LineOf><Front>{tp.mesh.modes[m.mode] ?? m.mode}</Front><Button onClick={() => setAsking(true)}>{local ? tp.mesh.toAuth : tp.mesh.toLocal}</Button></LineOf></Lines>
          <Confirm open={asking} onClose={() => setAsking(false)} title={local ? tp.mesh.toAuthAsk : tp.mesh.toLocalAsk} body={local ? tp.mesh.toAuthBody : tp.mesh.toLocalBody} action={local ? tp.mesh.toAuth : tp.mesh.toLocal} busy={set.isPending} onConfirm={() => set.mutate(local ? 'authenticated' : 'local_trusted')} /></>
      }}</Loaded>
    </Section>
  )
}

function Tokens() {
  const all = useRead(keys.mesh('tokens'), '/api/v1/mesh/tokens')
  const [making, setMaking] = useState(false)
  const [token, setToken] = useState<string>()
  const reread = () => [keys.mesh('tokens')]
  const make = useWrite<Values, Schemas['ApiCreatedToken']>({ call: (v) => post('/api/v1/mesh/tokens', {}, { uses: Number(v['uses']), ttlSeconds: Math.round(Number(v['hours']) * 3600) }), reread, onDone: (a) => { setMaking(false); setToken(a.token) } })
  const revoke = useWrite<string, unknown>({ call: (id) => del('/api/v1/mesh/tokens/{id}', { path: { id } }), reread, onDone: () => toast({ text: tp.mesh.tokenRevoked }) })
  return (
    <Section title={tp.mesh.tokens} aside={<Button small icon="plus" onClick={() => setMaking(true)}>{tp.mesh.newToken}</Button>}>
      <Loaded of={all} rows={2}>{(rows) => rows.length === 0 ? <Empty icon="nodes" title={tp.mesh.noTokens} why={tp.mesh.noTokensWhy} /> : <Lines>{rows.map((x) => <LineOf key={x.id}><StatusMark status={x.usable ? 'open' : 'revoked'} label={x.usable ? tp.mesh.usable : tp.mesh.over} /><Front>{x.note || tp.mesh.token} <span className="text-ink3">{tp.mesh.used(x.used, x.uses)}</span></Front><span className="text-xs text-ink3">{tp.mesh.expires} <Time at={x.expiresAt} /></span><Id id={x.id} />{x.usable && <Button small look="danger" onClick={() => revoke.mutate(x.id)}>{tp.mesh.revoke}</Button>}</LineOf>)}</Lines>}</Loaded>
      {making && <FormDialog title={tp.mesh.newToken} schema={{ required: ['uses', 'hours'], properties: { uses: { type: 'integer', minimum: 1, title: tp.mesh.uses }, hours: { type: 'number', minimum: 0.1, title: tp.mesh.ttl } } }} initial={{ uses: 1, hours: 1 }} busy={make.isPending} onClose={() => setMaking(false)} onSave={(v) => make.mutate(v)} />}
      {token && <ShownOnce title={tp.mesh.tokenMade} why={tp.mesh.tokenWhy} values={[{ label: tp.mesh.token, text: token }]} onClose={() => setToken(undefined)} />}
    </Section>
  )
}

function DataKeys() {
  const state = useRead(keys.mesh('data-keys'), '/api/v1/mesh/keys')
  const [asking, setAsking] = useState(false)
  const rotate = useWrite<undefined, unknown>({ call: () => post('/api/v1/mesh/keys/rotate'), reread: () => [keys.mesh('data-keys')], onDone: () => { setAsking(false); toast({ text: tp.mesh.rotated }) } })
  return (
    <Section title={tp.mesh.keys} aside={<Button small onClick={() => setAsking(true)}>{tp.mesh.rotate}</Button>}>
      <Loaded of={state} rows={1}>{(k) => <Facts rows={[[tp.mesh.epoch, number(k.epoch)], [tp.mesh.rotatedAt, <Time at={k.rotatedAt} />], k.rotationWanted && ['', <span className="text-warn">{tp.mesh.wanted}</span>]]} />}</Loaded>
      <Confirm open={asking} onClose={() => setAsking(false)} title={tp.mesh.rotateAsk} body={tp.mesh.rotateBody} action={tp.mesh.rotate} busy={rotate.isPending} onConfirm={() => rotate.mutate(undefined)} />
    </Section>
  )
}
