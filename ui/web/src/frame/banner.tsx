// What the page says when its node is lost, cut off or slow.
import { useEffect, useState } from 'react'
import { standing } from '../http'
import { lasting } from '../format'
import { arrivedFrom, elsewhere, here, drafts, moveTo } from '../node'
import { Button, IconButton } from '../parts/button'
import { Icon } from '../parts/icons'
import { useAge } from '../parts/values'
import { useStore } from '../store'
import { t } from '../text/en'

const slowFrom = 2_000 // ms
const arrived = arrivedFrom()

export function Banner() {
  const now = useStore(standing)
  const node = useStore(here)
  const [moved, setMoved] = useState(arrived)
  if (now.lost) return <LostBanner since={now.heard} node={node?.name ?? location.host} />
  if (now.cutOff) return <CutOff {...now.cutOff} />
  if (moved) return <Strip><span className="grow">{t.line.moved(moved, node?.name ?? location.host)}</span><IconButton small icon="close" label={t.common.close} onClick={() => setMoved(undefined)} /></Strip>
  if (now.latency !== undefined && now.latency > slowFrom) return <Strip>{t.line.slow(now.latency)}</Strip>
  return null
}

// A screen reader says it once, and not again for each second that it is older.
function Strip({ children, bad }: { children: React.ReactNode; bad?: boolean }) {
  return <div role={bad ? 'alert' : 'status'} aria-atomic="false" aria-relevant="additions" className={`no-print flex min-h-9 shrink-0 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-4 py-1 text-sm ${bad ? 'bg-bad/12' : 'bg-warn/12'}`}>{children}</div>
}

function CutOff({ node, age, at }: { node: string; age: number; at: number }) {
  const passed = useAge(at - age)
  return <Strip bad>{t.line.cutOff(node || location.host, passed)}</Strip>
}

// A request that fails once is no lost node yet.
const patience = 1_000

function LostBanner({ since, node }: { since: number; node: string }) {
  const age = useAge(since)
  const other = useStore(elsewhere)
  const [shown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), patience)
    return () => clearTimeout(timer)
  }, [])
  if (!shown) return null
  return (
    <Strip bad>
      <span className="text-bad"><Icon name="nodes" /></span>
      <span>{t.line.lostBanner(node, age || lasting(0))}</span>
      {other.url ? (
        <><span>{t.line.found(other.name ?? other.url)}</span>{drafts.any() && <span>{t.line.draft}</span>}<Button small onClick={() => other.url && moveTo(other.url)}>{t.line.move(other.name ?? other.url)}</Button></>
      ) : <span className="text-ink2">{other.searching ? t.line.searching : t.line.noneFound}</span>}
    </Strip>
  )
}
