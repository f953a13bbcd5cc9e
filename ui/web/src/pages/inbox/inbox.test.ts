import { describe, expect, it } from 'vitest'
import { commandOf, lines, titleOf } from '../approval/waiting'
import { lackOf } from '../issue/asked'
import { neighbour, sortOf } from './order'

describe('the inbox', () => {
  it('has the most severe first, of those the oldest', () => {
    const item = (id: string, severity: string, createdAt: string) => ({ id, severity, createdAt })
    expect(sortOf([item('a', 'medium', '1'), item('b', 'high', '3'), item('c', 'high', '2')]).map((i) => i.id)).toEqual(['c', 'b', 'a'])
  })
  it('goes to the next item, and from the last to the one before', () => {
    expect(neighbour(['a', 'b', 'c'], 'b')).toBe('c')
    expect(neighbour(['a', 'b', 'c'], 'c')).toBe('b')
    expect(neighbour(['a'], 'a')).toBeUndefined()
  })
})

describe('an approval', () => {
  it('shows a raised budget as before and after', () => {
    const of = commandOf({ type: 'budget_override_required', payload: { scopeType: 'agent', scopeName: 'Mara', windowKind: 'lifetime', budgetAmount: 600, observedAmount: 915, proposedAmount: 1515 } })
    expect(of.amount).toBe(1515)
    expect(of.before).toMatch(/limit: .*6\.00\nstate: paused/)
    expect(of.after).toMatch(/limit: .*15\.15\nstate: works/)
  })
  it('shows everything else as what would be added, without what is told in words', () => {
    const of = commandOf({ type: 'hire_agent', payload: { name: 'Zed', adapterConfig: { command: 'true', args: ['a'] }, summary: 'We need Zed' } })
    expect(of).toEqual({ before: '', after: 'hire_agent\n  adapterConfig.args[0]: a\n  adapterConfig.command: true\n  name: Zed', text: 'We need Zed' })
    expect(titleOf({ type: 'hire_agent', payload: { name: 'Zed' } })).toBe('Hire agent: Zed')
    expect(lines({ a: null, b: 'x\ny' })).toEqual(['b: x', '  y'])
  })
})

describe('lackOf', () => {
  const none = { chosen: {}, other: {}, reasons: {} }
  it('asks for required answers, enough choices and reasons', () => {
    const questions = { questions: [{ id: 'q', prompt: 'Which?', selectionMode: 'single' as const, required: true, options: [] }] }
    expect(lackOf('ask_user_questions', questions, none)).toContain('Which?')
    expect(lackOf('ask_user_questions', questions, { ...none, other: { q: 'this' } })).toBeUndefined()
    expect(lackOf('request_checkbox_confirmation', { minSelected: 1 }, none)).toContain('1')
    expect(lackOf('request_item_verdicts', { items: [{ id: 'i', label: 'One' }], requireReasonOn: ['reject'] }, { ...none, chosen: { i: ['reject'] } })).toContain('One')
    expect(lackOf('request_confirmation', {}, none)).toBeUndefined()
  })
})
