// What a dry run found: how the last acts would be decided.
import type { Schemas } from '../../http'
import { number } from '../../format'
import { StackBar } from '../../parts/charts'
import { StatusMark } from '../../parts/status'
import { Id, Time } from '../../parts/values'
import { tr } from '../../text/en.rooms'

export function Review({ of: r }: { of: Schemas['ApiReview'] }) {
  const e = tr.editor
  return (
    <div data-review className="flex flex-col gap-3 rounded border border-line p-3">
      <p role="status" className="text-base font-strong">{r.considered === 0 ? e.none : e.it(r.summary)}</p>
      {r.considered > 0 && <StackBar label={e.dry} parts={[{ label: e.permitted, value: r.permitted, meaning: 'ok' }, { label: e.warned, value: r.warned, meaning: 'warn' }, { label: e.deferred, value: r.deferred, meaning: 'wait' }, { label: e.denied, value: r.denied, meaning: 'bad' }]} />}
      <p className="text-sm text-ink2">{r.stricter + r.milder === 0 ? e.same : e.differs(number(r.stricter), number(r.milder))}</p>
      {r.examples.length > 0 && (
        <section aria-label={e.examples}>
          <h3 className="mb-1 text-xs text-ink3">{e.examples}</h3>
          <ul className="rounded border border-line">
            {r.examples.map((x, i) => (
              <li key={`${x.id}${i}`} className="flex flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-1.5 text-sm last:border-0">
                <code className="font-mono text-xs">{x.action}</code><Id id={x.actorId} />
                <span className="inline-flex items-center gap-2"><StatusMark status={x.was} /><span aria-hidden="true" className="text-ink3">→</span><StatusMark status={x.wouldBe} /></span>
                <span className="min-w-0 grow basis-40 break-words text-ink2">{x.rule && <code className="mr-1 font-mono text-xs">{x.rule}</code>}{x.reason}</span><span className="text-xs text-ink3"><Time at={x.at} /></span>
              </li>
            ))}
          </ul>
        </section>
      )}
    </div>
  )
}
