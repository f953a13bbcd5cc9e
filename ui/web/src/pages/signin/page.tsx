// Sign in, make an account, become the first administrator: for meshes whose people sign in.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useHealth } from '../../data'
import { get, post, Refusal, standing } from '../../http'
import { here } from '../../node'
import { Button } from '../../parts/button'
import { Field, Input } from '../../parts/form'
import { Icon } from '../../parts/icons'
import { useStore } from '../../store'
import { t } from '../../text/en'

/** after is where to go: an address of this page alone. */
export function afterOf(search: string): string {
  const to = new URLSearchParams(search).get('to')?.replace(/^"|"$/g, '') ?? '/'
  return /^\/(?![/\\])/.test(to) && !to.startsWith('/sign-in') ? to : '/'
}

export function Page() {
  const health = useHealth().data as { bootstrapStatus?: string } | undefined
  const node = useStore(here)
  const session = useQuery({ queryKey: ['session', 'sign-in'], retry: 0, queryFn: ({ signal }) => get('/api/auth/get-session', { signal }).catch((e: unknown) => { if (e instanceof Refusal) return null; throw e }) })
  const signedIn = !!(session.data as { user?: unknown } | null | undefined)?.user
  const unclaimed = health?.bootstrapStatus !== undefined && health.bootstrapStatus !== 'ready'
  const [making, setMaking] = useState<boolean>()
  const [values, setValues] = useState({ name: '', email: '', password: '', code: '' })
  const [wrong, setWrong] = useState<string>()
  const [busy, setBusy] = useState(false)
  const claim = unclaimed && signedIn
  const signUp = making ?? unclaimed
  const field = (name: keyof typeof values) => ({ name, value: values[name], onChange: (e: React.ChangeEvent<HTMLInputElement>) => setValues({ ...values, [name]: e.target.value }) })
  const send = async () => {
    setBusy(true)
    setWrong(undefined)
    try {
      const { name, email, password, code } = values
      const invite = /^\/invite\/([^/?]+)/.exec(afterOf(location.search))?.[1]
      if (claim) await post('/api/bootstrap/claim', {}, code ? { code } : {})
      else if (signUp) await post('/api/auth/sign-up/email', {}, { name, email, password, ...(invite ? { inviteToken: invite } : {}) })
      else await post('/api/auth/sign-in/email', {}, { email, password })
      if (unclaimed && !claim) return void session.refetch()
      standing.set((s) => ({ ...s, nobody: false }))
      location.assign(afterOf(location.search))
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <main className="flex h-full items-center justify-center overflow-y-auto bg-ground2 p-4">
      <form className="flex w-full max-w-[380px] flex-col gap-3 rounded border border-line bg-ground p-6" onSubmit={(e) => { e.preventDefault(); void send() }}>
        <p className="flex items-center gap-2 text-sm text-ink2"><span className="text-accent"><Icon name="nodes" /></span>{t.app}{node && <span className="text-ink3">· {node.name}</span>}</p>
        <h1 className="text-xl font-strong">{unclaimed ? t.signin.claim : signUp ? t.signin.signUp : t.signin.title}</h1>
        {unclaimed && <p className="text-sm text-ink2">{t.signin.claimWhy}</p>}
        {claim ? <Field label={t.signin.claimCode} hint={t.signin.claimHow}><Input autoFocus autoComplete="off" className="font-mono" {...field('code')} /></Field> : (
          <>
            {signUp && <Field label={t.signin.name}><Input autoComplete="name" required {...field('name')} /></Field>}
            <Field label={t.signin.email}><Input autoFocus type="email" autoComplete="username" required {...field('email')} /></Field>
            <Field label={t.signin.password}><Input type="password" autoComplete={signUp ? 'new-password' : 'current-password'} required {...field('password')} /></Field>
          </>
        )}
        {wrong && <p role="alert" className="text-sm text-bad">{wrong}</p>}
        <Button look="primary" type="submit" busy={busy}>{claim ? t.signin.claimSubmit : signUp ? t.signin.signUp : t.signin.submit}</Button>
        {!claim && <Button look="quiet" onClick={() => setMaking(!signUp)}>{signUp ? t.signin.have : t.signin.none}</Button>}
      </form>
    </main>
  )
}
