// The gallery of parts: /dev/parts, in development only. A new part gets a box here.
import { useState, type ReactNode } from 'react'
import { Refusal } from '../http'
import { Ansi } from '../parts/ansi'
import { Button, IconButton } from '../parts/button'
import { Bar, Line, StackBar, StackedBars, Stacks } from '../parts/charts'
import { Diff, Patch } from '../parts/diff'
import { Checkbox, Combobox, Field, Input, Select, TextArea } from '../parts/form'
import { JsonForm, wrongOf, type Schema, type Values } from '../parts/jsonform'
import { Markdown } from '../parts/markdown'
import { Confirm, Dialog, Menu } from '../parts/overlay'
import { Empty, ErrorBox, Facts, Rows } from '../parts/states'
import { Badge, Count, PriorityMark, StatusMark } from '../parts/status'
import { Table } from '../parts/table'
import { Tab, Tabs } from '../parts/tabs'
import { toast, Toasts } from '../parts/toast'
import { Avatar, CopyAsCommand, Id, Lasting, Money, Time, Who } from '../parts/values'
import { toggleTheme } from '../theme'

const Box = ({ name, children }: { name: string; children: ReactNode }) => <section className="rounded border border-line p-4"><h2 className="mb-3 font-mono text-xs text-ink3">{name}</h2><div className="flex flex-wrap items-start gap-3">{children}</div></section>
const schema: Schema = { type: 'object', required: ['command'], properties: { command: { type: 'string', description: 'What is run' }, timeoutSec: { type: 'integer', minimum: 1, default: 60 }, mode: { enum: ['fast', 'careful'] }, shell: { type: 'boolean' }, args: { type: 'array', items: { type: 'string' } }, env: { type: 'object' } } }

export function Page() {
  const [dialog, setDialog] = useState(false)
  const [confirm, setConfirm] = useState(false)
  const [values, setValues] = useState<Values>({ args: ['-v'] })
  const [tab, setTab] = useState('a')
  const [chosen, setChosen] = useState('b')
  const points = [3, 5, 4, 8, 6, 9, 12].map((value, i) => ({ label: `d${i}`, value }))
  return (
    <div className="h-full overflow-y-auto p-4">
      <div className="mx-auto grid max-w-[1280px] gap-4 desk:grid-cols-2">
        <Box name="Button, IconButton"><Button look="primary">Primary</Button><Button icon="plus">Plain</Button><Button look="quiet">Quiet</Button><Button look="danger">Danger</Button><Button small>Small</Button><Button busy>Busy</Button><IconButton icon="sun" label="Theme" onClick={toggleTheme} /></Box>
        <Box name="StatusMark, PriorityMark, Badge, Count">{['backlog', 'todo', 'in_progress', 'in_review', 'blocked', 'done', 'cancelled', 'paused', 'queued', 'error'].map((s) => <StatusMark key={s} status={s} />)}{['critical', 'high', 'medium', 'low'].map((p) => <PriorityMark key={p} priority={p} />)}<Badge meaning="ok">leader</Badge><Count n={3} loud /><Count n={12} /></Box>
        <Box name="Money, Time, Lasting, Id, Avatar, Who, CopyAsCommand"><Money cents={1234} /><Money cents={0.4} /><Money cents={12.5} /><Time at={new Date(Date.now() - 250_000).toISOString()} /><Time at="2025-01-02T03:04:05Z" /><Lasting from={new Date(Date.now() - 41_000).toISOString()} /><Id id="01a20cc5-1505-720c-83b8-c86f10ff6744" /><Avatar id="a" name="Wes" /><Who id="b" name="Mia Longname" /><Who person id="c" name="Board" /><CopyAsCommand command="selvage issue list" /></Box>
        <Box name="Field, Input, TextArea, Select, Combobox, Checkbox"><div className="flex w-full flex-col gap-3"><Field label="Name" hint="At most 200 characters"><Input /></Field><Field label="Wrong" wrong="Name: required"><Input /></Field><Field label="Text"><TextArea /></Field><Select aria-label="Pick" choices={[{ value: 'a', label: 'One' }, { value: 'b', label: 'Two' }]} /><Combobox label="Find" value={chosen} onChange={setChosen} choices={[{ value: 'a', label: 'Ada' }, { value: 'b', label: 'Bea', hint: 'engineer' }]}><Button>Combobox</Button></Combobox><Checkbox label="Yes" checked onChange={() => undefined} /></div></Box>
        <Box name="Menu, Dialog, Confirm, toast"><Menu items={[{ label: 'Open', icon: 'open' as never, onSelect: () => undefined }, null, { label: 'Remove', danger: true, onSelect: () => undefined }]}><Button>Menu</Button></Menu><Button onClick={() => setDialog(true)}>Dialog</Button><Button onClick={() => setConfirm(true)}>Confirm</Button><Button onClick={() => toast({ text: 'ACM-7: done', undo: () => toast({ text: 'Undone' }) })}>Toast</Button><Dialog open={dialog} onClose={() => setDialog(false)} title="Dialog">Content</Dialog><Confirm open={confirm} onClose={() => setConfirm(false)} title="Remove it?" body="It cannot be undone." action="Remove" onConfirm={() => setConfirm(false)} /></Box>
        <Box name="StackBar, Bar, Line, StackedBars, Stacks"><div className="flex w-full flex-col gap-4"><StackBar label="Issues" parts={[{ label: 'in progress', value: 4, meaning: 'work' }, { label: 'blocked', value: 1, meaning: 'bad' }, { label: 'done', value: 9, meaning: 'ok' }]} /><Bar value={85} of={100} label="85 of 100" /><Bar value={30} of={100} forecast={120} label="30 of 100" /><Line label="Done" points={points} meaning="ok" /><StackedBars label="Runs" bars={points.map((p) => ({ label: p.label, parts: [{ label: 'succeeded', value: p.value, meaning: 'ok' as const }, { label: 'failed', value: 1, meaning: 'bad' as const }] }))} /><Stacks label="Costs" height={64} bars={points.map((p) => ({ label: p.label, parts: [3, 2, 2, 1, 1, 1].map((v, i) => ({ label: `m${i}`, value: v * p.value })) }))} /></div></Box>
        <Box name="Tabs"><div className="w-full"><Tabs value={tab} onChange={setTab} tabs={[{ value: 'a', label: 'Runs', count: 3 }, { value: 'b', label: 'Keys' }]}><Tab value="a">Runs</Tab><Tab value="b">Keys</Tab></Tabs></div></Box>
        <Box name="Table"><div className="h-40 w-full"><Table label="Rows" rows={points} keyOf={(p) => p.label} selected={new Set(['d1'])} onSelect={() => undefined} columns={[{ id: 'l', head: 'Label', width: '1fr', cell: (p) => p.label }, { id: 'v', head: 'Value', width: '80px', right: true, cell: (p) => p.value, sort: (a, b) => a.value - b.value }]} /></div></Box>
        <Box name="Markdown"><Markdown text={'**Bold**, `code`, [link](https://example.com)\n\n- one\n- two\n\n```\nblock\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |'} /></Box>
        <Box name="Diff, Patch"><div className="flex w-full flex-col gap-2"><Patch text={'--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n'} /><Diff before={'a\nb\nc'} after={'a\nB\nc\nd'} /></div></Box>
        <Box name="Ansi"><Ansi text={'\x1b[32mok\x1b[0m  package \x1b[1mapi\x1b[0m\n\x1b[31mFAIL\x1b[0m  \x1b[2mslow\x1b[0m'} /></Box>
        <Box name="JsonForm"><div className="w-full"><JsonForm schema={schema} values={values} onChange={setValues} wrong={wrongOf(schema, values)} /></div></Box>
        <Box name="Empty, ErrorBox, Rows, Facts"><div className="w-full"><Empty icon="issues" title="No issues" why="An issue is a piece of work."><Button>New issue</Button></Empty><ErrorBox error={new Refusal(409, 'Issue is held', undefined, { owner: 'Wes' }, undefined, 'r-1')} onRetry={() => undefined} /><Rows n={2} /><Facts rows={[['Name', 'n1'], ['Role', 'voter']]} /></div></Box>
      </div>
      <Toasts />
    </div>
  )
}
