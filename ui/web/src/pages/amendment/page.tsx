// One amendment: what it changes, what it would have decided, who has signed, and the steps to bring it into force.
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Diff } from '../../parts/diff'
import { Field, Input } from '../../parts/form'
import { Front, LineOf, Lines } from '../../parts/lines'
import { Confirm, Dialog, DialogFoot } from '../../parts/overlay'
import { ErrorBox, Facts, Loaded, Rows, Section } from '../../parts/states'
import { Badge, StatusMark } from '../../parts/status'
import { toast } from '../../parts/toast'
import { CopyAsCommand, Id, Time } from '../../parts/values'
import { t } from '../../text/en'
import { tr } from '../../text/en.rooms'
import { amended, useRules } from '../govern/data'
import { Review } from '../govern/review'
import { changesTo, type Amendment } from '../govern/rules'
import { canSign, NoKey, signWith } from '../govern/sign'

const a = tr.amendments
const kindMeaning = { new: 'ok', superseded: 'warn', dropped: 'bad' } as const

export function Page() {
  const { amendment: id = '' } = useParams({ strict: false }) as { amendment?: string }
  const read = useRead(keys.govern('amendment', id), '/api/v1/govern/amendments/{id}', { path: { id } })
  return (
    <Frame title={a.one(id)} command={`selvage govern amendment ${id}`} tools={read.data && <Steps amendment={read.data} />}>
      <Loaded of={read}>{(x) => <One amendment={x} />}</Loaded>
    </Frame>
  )
}

/** What may be done with it now; one button is the next step. */
function Steps({ amendment: x }: { amendment: Amendment }) {
  const path = { path: { id: x.id } }
  const signers = useRules().data?.signingKeys
  const [open, setOpen] = useState<'sign' | 'enact'>()
  const done = (text: string) => () => { setOpen(undefined); toast({ text }) }
  const sign = useWrite<Schemas['ApiSignBody'], unknown>({ call: (body) => post('/api/v1/govern/amendments/{id}/sign', path, body), reread: amended, onDone: done(a.signed) })
  const enact = useWrite<undefined, unknown>({ call: () => post('/api/v1/govern/amendments/{id}/enact', path), reread: amended, onDone: done(a.enacted) })
  const withdraw = useWrite<undefined, unknown>({ call: () => post('/api/v1/govern/amendments/{id}/withdraw', path), reread: amended, onDone: done(a.withdrawn) })
  if (x.status !== 'proposed' || !signers) return null
  const enough = x.signed >= x.required && !x.stale
  return (
    <>
      <Button look="danger" busy={withdraw.isPending} onClick={() => withdraw.mutate(undefined)}>{a.withdraw}</Button>
      {!x.stale && <Button look={enough ? 'plain' : 'primary'} busy={sign.isPending} onClick={() => (signers.length === 0 ? sign.mutate({}) : setOpen('sign'))}>{signers.length === 0 ? a.signAdmin : a.sign}</Button>}
      {enough && <Button look="primary" onClick={() => setOpen('enact')}>{a.enact}</Button>}
      {open === 'sign' && <SignDialog amendment={x} signers={signers} busy={sign.isPending} onClose={() => setOpen(undefined)} onSign={(body) => sign.mutate(body)} />}
      <Confirm open={open === 'enact'} onClose={() => setOpen(undefined)} title={a.enactAsk} body={a.enactBody} action={a.enact} busy={enact.isPending} onConfirm={() => enact.mutate(undefined)} />
    </>
  )
}

function SignDialog({ amendment: x, signers, busy, onClose, onSign }: { amendment: Amendment; signers: Schemas['ApiConstitution']['signingKeys']; busy: boolean; onClose: () => void; onSign: (body: Schemas['ApiSignBody']) => void }) {
  const [file, setFile] = useState<File>()
  const [wrong, setWrong] = useState<string>()
  const send = async () => {
    if (!file) return setWrong(a.notAKey)
    try {
      const { publicKey, signature } = await signWith(await file.slice(0, 1024).text(), x.message)
      const key = signers.find((k) => k.publicKey === publicKey)
      if (!key) return setWrong(a.otherKey)
      onSign({ keyId: key.id, signature })
    } catch (error) {
      setWrong(error instanceof NoKey ? a.notAKey : a.noCrypto)
    }
  }
  const command = `selvage govern sign ${x.id} --key FILE`
  return (
    <Dialog open onClose={onClose} title={a.sign} size="medium">
      <pre tabIndex={0} className="mb-3 max-h-40 overflow-auto whitespace-pre-wrap break-all rounded border border-line bg-ground2 p-3 font-mono text-xs">{x.message}</pre>
      {canSign() ? <Field label={a.file} hint={a.fileHint} wrong={wrong}><Input type="file" onChange={(e) => { setFile(e.target.files?.[0]); setWrong(undefined) }} className="py-1 text-xs" /></Field> : <p className="text-sm text-ink2">{a.noCrypto}</p>}
      <p className="mt-3 flex items-center gap-2 text-xs text-ink3"><code className="font-mono">{command}</code><CopyAsCommand small command={command} /></p>
      <DialogFoot><Button onClick={onClose}>{t.common.cancel}</Button>{canSign() && <Button look="primary" busy={busy} onClick={() => void send()}>{a.sign}</Button>}</DialogFoot>
    </Dialog>
  )
}

function One({ amendment: x }: { amendment: Amendment }) {
  const base = useRules(x.base).data
  const review = useQuery({ queryKey: keys.govern('amendment', [x.id, 'review', x.base]), enabled: x.status === 'proposed' && !x.stale, retry: 0, queryFn: ({ signal }) => post('/api/v1/govern/review', { signal }, { amendmentId: x.id }) })
  const changes = base && changesTo(base.rules, x)
  return (
    <div className="grid w-full max-w-page gap-x-8 gap-y-6 p-4 desk:grid-cols-[minmax(0,1fr)_300px]">
      <div className="flex min-w-0 flex-col gap-6">
        <div>
          <h2 className="text-xl font-strong">{x.title || a.one(x.id)}</h2>
          {x.stale && <p className="mt-1 text-sm text-warn">{a.stale}</p>}
        </div>
        {x.status === 'proposed' && !x.stale && <Section title={a.review}>{review.error ? <ErrorBox error={review.error} onRetry={() => void review.refetch()} /> : review.data ? <Review of={review.data} /> : <Rows n={2} />}</Section>}
        <Section title={a.changes}>
          <div className="flex flex-col gap-3">
            {changes === undefined ? <Rows n={4} /> : changes.map((c) => (
              <div key={c.id} data-change={c.id}><p className="mb-1 flex items-center gap-2 text-sm"><code className="font-mono text-xs">{c.id}</code><Badge meaning={kindMeaning[c.kind]}>{c.kind === 'new' ? a.newRule : c.kind === 'dropped' ? a.dropped : a.superseded}</Badge></p><Diff before={c.before} after={c.after} /></div>
            ))}
            {x.keys.length + x.dropKeys.length > 0 && <Lines label={a.keys}>{x.keys.map((k) => <LineOf key={k.id}><Badge meaning="ok">{a.newRule}</Badge><Front><span className="font-strong">{k.name}</span></Front><Id id={k.publicKey} /></LineOf>)}{x.dropKeys.map((k) => <LineOf key={k}><Badge meaning="bad">{a.dropped}</Badge><Front>{base?.signingKeys.find((s) => s.id === k)?.name ?? ''}</Front><Id id={k} /></LineOf>)}</Lines>}
            {(x.environment !== null || x.threshold !== null) && <Facts rows={[x.environment !== null && [a.environment, tr.govern.places[x.environment || 'none'] ?? x.environment], x.threshold !== null && [a.threshold, x.threshold === 0 ? a.halfOfKeys : x.threshold]]} />}
          </div>
        </Section>
      </div>
      <div className="flex min-w-0 flex-col gap-6">
        <Facts rows={[
          [a.status, <StatusMark status={x.status} label={a.states[x.status] ?? x.status} />], [a.signatures, a.of(x.signed, x.required)], [a.by, <Id id={x.proposedBy} />], [a.at, <Time at={x.proposedAt} />], x.pack !== null && [tr.govern.pack, x.pack],
          [a.base, <Link to="/mesh/constitution" search={{ version: x.base } as never} className="text-accent hover:underline">{x.base}</Link>], x.version !== null && [a.leads, <Link to="/mesh/constitution" search={{ version: x.version } as never} className="text-accent hover:underline">{tr.govern.versionOf(x.version)}</Link>],
          x.height !== null && [tr.decisions.entry, <Link to="/mesh/ledger" search={{ show: x.height } as never} className="text-accent hover:underline">{number(x.height)}</Link>], [a.digest, <Id id={x.digest} />], [tr.govern.hash, <Id id={x.hash} />]]} />
        <Section title={a.signatures}>
          {x.signatures.length === 0 ? <p className="text-sm text-ink2">{a.nobody}</p> : <Lines label={a.signatures}>{x.signatures.map((s) => <LineOf key={`${s.keyId ?? ''}${s.by}`}><Front>{s.keyId ? (base?.signingKeys.find((k) => k.id === s.keyId)?.name ?? s.keyId) : s.by}</Front>{s.signature && <Id id={s.signature} />}<span className="text-xs text-ink3"><Time at={s.at} /></span></LineOf>)}</Lines>}
        </Section>
      </div>
    </div>
  )
}
