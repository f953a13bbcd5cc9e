// An invite as its link opens it: who invites to which company, as what; then sign in and join.
import { useParams } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post, Refusal } from '../../http'
import { Button } from '../../parts/button'
import { Icon } from '../../parts/icons'
import { ErrorBox, Rows } from '../../parts/states'
import { Time } from '../../parts/values'
import { t } from '../../text/en'

export function Page() {
  const { token = '' } = useParams({ strict: false }) as { token?: string }
  const invite = useQuery({ queryKey: ['invite', token], retry: 0, queryFn: ({ signal }) => get('/api/invites/{token}', { path: { token }, signal }) })
  const session = useQuery({ queryKey: ['session', 'invite'], retry: 0, queryFn: ({ signal }) => get('/api/auth/get-session', { signal }).catch((e: unknown) => { if (e instanceof Refusal) return null; throw e }) })
  const user = (session.data as { user?: { name?: string; email?: string } | null } | null | undefined)?.user
  const [wrong, setWrong] = useState<unknown>()
  const [busy, setBusy] = useState(false)
  const [asked, setAsked] = useState(false)
  const join = async () => {
    setBusy(true)
    setWrong(undefined)
    try {
      const done = (await post('/api/invites/{token}/accept', { path: { token } }, { requestType: 'human' })) as { status?: string }
      if (done.status === 'pending_approval') return setAsked(true)
      const prefix = (await get('/api/companies')).find((c) => c.id === invite.data?.companyId)?.issuePrefix
      location.assign(prefix ? `/${prefix}` : '/')
    } catch (error) {
      setWrong(error)
    } finally {
      setBusy(false)
    }
  }
  const i = invite.data
  return (
    <main className="flex h-full items-center justify-center overflow-y-auto bg-ground2 p-4">
      <div className="flex w-full max-w-[420px] flex-col gap-3 rounded border border-line bg-ground p-6">
        <p className="flex items-center gap-2 text-sm text-ink2"><span className="text-accent"><Icon name="people" /></span>{t.app}</p>
        {invite.error ? <ErrorBox error={invite.error} /> : !i || session.isPending ? <Rows n={3} /> : (
          <>
            <h1 className="text-xl font-strong">{t.invite.title(i.companyName)}</h1>
            <p className="text-sm text-ink2">{t.invite.as(i.invitedByUserName ?? '', t.invite.roles[i.humanRole ?? ''] ?? i.humanRole ?? '')} {i.expiresAt && <>{t.invite.until} <Time at={i.expiresAt} />.</>}</p>
            {i.inviteMessage && <p className="rounded border border-line bg-ground2 p-3 text-sm">{i.inviteMessage}</p>}
            {asked ? <p role="status" className="text-sm">{t.invite.asked}</p> : user ? (
              <><p className="text-sm text-ink2">{t.invite.signedIn(user.name || user.email || '')}</p><Button look="primary" busy={busy} onClick={() => void join()}>{t.invite.join}</Button></>
            ) : <a href={`/sign-in?to=${encodeURIComponent(location.pathname)}`} className="inline-flex h-8 items-center justify-center rounded bg-accent px-3 text-sm font-strong text-onaccent">{t.invite.signIn}</a>}
            {wrong !== undefined && <ErrorBox error={wrong} />}
          </>
        )}
      </div>
    </main>
  )
}
