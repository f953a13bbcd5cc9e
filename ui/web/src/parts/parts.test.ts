// @vitest-environment jsdom
import { describe, expect, it } from 'vitest'
import { matches } from '../pages/issues/page'
import { changeText, threadOf } from '../pages/issue/thread'
import { spansOf } from './ansi'
import { diffOf } from './diff'
import { wrongOf } from './jsonform'
import { render } from './markdown-render'
import { createElement } from 'react'
import { StatusMark } from './status'
import { csvOf, type Column } from './table'
import { Money, Time, Who } from './values'

describe('Markdown of agents', () => {
  it('runs nothing', () => {
    for (const bad of ['<script>alert(1)</script>', '<img src=x onerror=alert(1)>', '[x](javascript:alert(1))', '<iframe src="//e"></iframe>', '<svg onload=alert(1)>', '<form action="//e"><button>', '<a href="data:text/html,x">x</a>', '<style>*{}</style>']) {
      const html = render(bad)
      expect(html, bad).not.toMatch(/<script|onerror|onload|javascript:|<iframe|<form|<svg|data:text|<style/i)
    }
  })
  it('loads no picture of another host and opens links apart', () => {
    expect(render('![seen](https://e.example/p.png)')).not.toContain('<img')
    expect(render('![ours](/api/attachments/a/content)')).toContain('<img')
    expect(render('[x](https://e.example)')).toContain('noopener')
  })
  it('writes tables and code', () => expect(render('| a |\n|---|\n| `b` |')).toContain('<td><code>b</code></td>'))
})

describe('diff', () => {
  it('marks what was added and removed, and folds what is the same', () => {
    const same = Array.from({ length: 20 }, (_, i) => `l${i}`)
    const lines = diffOf([...same, 'old', 'end'].join('\n'), [...same, 'new', 'more', 'end'].join('\n'))
    expect(lines[0]).toEqual({ kind: 'folded', n: 17 })
    expect(lines.filter((l) => l.kind === 'removed')).toEqual([{ kind: 'removed', text: 'old' }])
    expect(lines.filter((l) => l.kind === 'added')).toHaveLength(2)
    expect(diffOf('', 'a')).toEqual([{ kind: 'added', text: 'a' }])
    expect(diffOf('a', 'a')).toEqual([{ kind: 'folded', n: 1 }])
  })
})

describe('ANSI', () => {
  it('keeps colours and drops what a terminal would obey', () => {
    const spans = spansOf('\x1b[1;31mred\x1b[0m plain\x1b[2J\x1b]0;title\x07\x1b[38;5;196mx\x1b[39m\x08')
    expect(spans.map((s) => s.text).join('')).toBe('red plainx')
    expect(spans[0]).toMatchObject({ bold: true, fg: 'var(--bad)' })
    expect(spans.find((s) => s.text === 'x')?.fg).toMatch(/^rgb/)
  })
})

it('a form names what is missing or out of bounds, also inside', () => {
  const schema = { properties: { name: { type: 'string' }, n: { type: 'integer', minimum: 1 }, in: { type: 'object', required: ['a'], properties: { a: { type: 'string' } } } }, required: ['name'] }
  expect(Object.keys(wrongOf(schema, { n: 0, in: {} })).sort()).toEqual(['in.a', 'n', 'name'])
  expect(wrongOf(schema, { name: 'x', n: 1, in: { a: 'b' } })).toEqual({})
})

it('an export quotes, and a formula stays a text', () => {
  const csv = csvOf([{ a: '=1+1', b: 'say "hi"' }], [{ id: 'a', head: 'A', width: '', cell: (r) => r.a }, { id: 'b', head: 'B', width: '', cell: (r) => r.b }])
  expect(csv).toBe('"A","B"\r\n"\'=1+1","say ""hi"""\r\n')
})

it('an export has what marks, times and money say, also of columns that a narrow screen hides, and no column of buttons', () => {
  const columns: Column<{ at: string }>[] = [
    { id: 'status', head: '', width: '', cell: () => createElement(StatusMark, { status: 'in_progress', bare: true }) },
    { id: 'at', head: 'When', width: '', from: 'wide', cell: (r) => createElement('span', null, createElement(Time, { at: r.at })) },
    { id: 'cents', head: 'Cost', width: '', cell: () => createElement(Money, { cents: 12.5 }) },
    { id: 'who', head: 'Who', width: '', cell: () => createElement('a', null, createElement(Who, { id: 'x', name: 'Wes' })) },
    { id: 'run', head: '', width: '', cell: () => createElement('button') },
  ]
  expect(csvOf([{ at: '2026-11-20T12:00:00Z' }], columns)).toBe('"status","When","Cost","Who"\r\n"in progress","2026-11-20T12:00:00Z","$0.125","Wes"\r\n')
})

it('the filter of issues fits what the address says', () => {
  const issue = { title: 'Survey', identifier: 'ACM-7', status: 'todo', priority: 'high', assigneeAgentId: null, projectId: 'p' } as Parameters<typeof matches>[0]
  expect(matches(issue, {})).toBe(true)
  expect(matches({ ...issue, status: 'done' }, {})).toBe(false)
  expect(matches(issue, { q: 'acm-7', assignee: 'none', project: 'p', priority: 'high', status: 'todo' })).toBe(true)
  expect(matches(issue, { assignee: 'a' })).toBe(false)
})

it('a thread is in the order of time and says what changed', () => {
  const thread = threadOf([{ id: 'c', createdAt: '2026-01-02' }] as never, [{ runId: 'r', startedAt: '2026-01-03' }] as never,
    [{ id: 'x', action: 'issue.created', entityType: 'issue', createdAt: '2026-01-01' }, { id: 'y', action: 'issue.comment_added', entityType: 'issue', createdAt: '2026-01-02' }] as never)
  expect(thread.map((e) => e.kind)).toEqual(['change', 'comment', 'run'])
  expect(changeText({ action: 'issue.updated', details: { status: 'in_progress', _previous: { status: 'todo' } } as never })).toBe('status todo → in progress')
})
