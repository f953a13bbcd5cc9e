import { describe, expect, it } from 'vitest'
import { bodyOf, lacking, type Draft } from '../rule/page'
import { nameOf, ways } from '../tree/paths'
import { level, saidOf } from './effect'
import { changesTo, listOf, textOf, type Rule } from './rules'
import { NoKey, signWith } from './sign'

const rule = (id: string, more: Partial<Rule> = {}): Rule => ({ id, title: '', branch: 'judicial', severity: 'warning', on: [], when: 'true', reason: 'because', reference: null, genesis: false, core: false, ...more })

describe('an amendment', () => {
  it('is shown as what it does to the version that it changes', () => {
    const base = [rule('A'), rule('B')]
    const changes = changesTo(base, { rules: [rule('A', { severity: 'critical' }), rule('C')], dropRules: ['B'] })
    expect(changes.map((c) => [c.id, c.kind])).toEqual([['A', 'superseded'], ['C', 'new'], ['B', 'dropped']])
    expect(changes[0]?.before).toContain('Severity: warning')
    expect(changes[0]?.after).toContain('Severity: critical')
    expect(changes[2]).toMatchObject({ before: textOf(rule('B')), after: '' })
  })
  it('is made of a draft, without what is empty', () => {
    const draft: Draft = { id: ' ACM-1 ', title: '', branch: 'executive', severity: 'critical', on: 'goal.create, spawn', when: ' rank == "worker" ', reason: 'no', reference: '', about: '' }
    expect(bodyOf(draft)).toEqual({ title: 'ACM-1', rules: [{ id: 'ACM-1', branch: 'executive', severity: 'critical', when: 'rank == "worker"', reason: 'no', on: ['goal.create', 'spawn'] }] })
    expect(lacking(draft)).toEqual({})
    expect(Object.keys(lacking({ ...draft, when: ' ', reason: '' }))).toEqual(['when', 'reason'])
  })
})

it('an effect is told in words, without needless digits', () => {
  expect(level(0.30000000004)).toBe('0.3')
  expect(saidOf({ risk: 0.7, fairness: 0, privacy: 0.3, novelty: 0.8, security: 0.6 }, 1.25, 0.7)).toBe('Effect: risk 0.7, fairness 0, privacy 0.3, novelty 0.8, security 0.6; magnitude 1.25, threshold 0.7')
})

it('a list is read with commas or blanks', () => expect(listOf(' a,b  c,\n')).toEqual(['a', 'b', 'c']))

it('a path has ways to it, and an ID its name', () => {
  expect(ways('/companies/1/agents')).toEqual(['/', '/companies', '/companies/1', '/companies/1/agents'])
  expect(nameOf('/companies/1', new Map([['1', 'Acme']]))).toBe('Acme')
  expect(nameOf('/', new Map())).toBe('/')
})

describe('a signature made in the browser', () => {
  // The first test vector of RFC 8032, 7.1.
  const seed = Buffer.from('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex').toString('base64')
  it('is that of Ed25519', async () => {
    const made = await signWith(`${seed}\n`, '')
    expect(Buffer.from(made.publicKey, 'base64').toString('hex')).toBe('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a')
    expect(Buffer.from(made.signature, 'base64').toString('hex')).toBe('e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b')
  })
  it('needs a key', async () => {
    await expect(signWith('no key', 'm')).rejects.toBeInstanceOf(NoKey)
    await expect(signWith(Buffer.from('short').toString('base64'), 'm')).rejects.toBeInstanceOf(NoKey)
  })
})
