// The company's memory: what is newest, or a search with why each hit is there; add to it, change, forget; which model embeds it.
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useNames, useRead, useWrite } from '../../data'
import { number, short, sizeOf } from '../../format'
import { Page as Frame } from '../../frame/page'
import { del, patch, post, type Schemas } from '../../http'
import { Button, IconButton } from '../../parts/button'
import { Input, Select } from '../../parts/form'
import { FormDialog } from '../../parts/formdialog'
import type { Schema, Values } from '../../parts/jsonform'
import { Markdown } from '../../parts/markdown'
import { Confirm } from '../../parts/overlay'
import { Empty, Facts, Loaded, Section } from '../../parts/states'
import { Badge } from '../../parts/status'
import { csvOf, download, type Column } from '../../parts/table'
import { toast } from '../../parts/toast'
import { Id, Time, Who } from '../../parts/values'
import { t } from '../../text/en'
import { Embedding } from './embedding'
import { tp } from '../../text/en.pages'

interface Search { q?: string; by?: 'both' | 'words' | 'vectors'; kind?: string; tag?: string }
type Found = Schemas['ApiResult']
type Memory = Found['memory']
type Hit = { memory: Memory } & Partial<Pick<Found, 'score' | 'why'>>

const limit = 50
const most = 500 // in the list without a search
const settle = 250 // ms without typing, before the node is asked

function useSettled(value: string): string {
  const [now, setNow] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setNow(value), settle)
    return () => clearTimeout(timer)
  }, [value])
  return now
}

const parts = (n: number) => n.toFixed(4)

export function Page() {
  const company = useCompany()
  const search = useSearch({ strict: false }) as Search
  const go = useNavigate()
  const set = (next: Search) => void go({ to: '.', search: Object.fromEntries(Object.entries({ ...search, ...next }).filter(([, v]) => v)) as never, replace: true })
  const [text, setText] = useState(search.q ?? '')
  const settled = useSettled(text.trim())
  useEffect(() => { if (settled !== (search.q ?? '')) set({ q: settled }) }, [settled])
  const [adding, setAdding] = useState(false)
  const [ending, setEnding] = useState<Hit>()
  const [editing, setEditing] = useState<Memory>()
  const [shown, setShown] = useState(limit)
  const body: Schemas['ApiSearchBody'] = { companyId: company.id, limit, ...(search.q ? { query: search.q, by: search.by ?? 'both' } : {}), ...(search.kind ? { kinds: [search.kind] } : {}), ...(search.tag ? { tags: [search.tag] } : {}) }
  const found = useQuery({ queryKey: keys.memory(company.id, body), enabled: !!search.q, placeholderData: keepPreviousData, queryFn: ({ signal }) => post('/api/v1/memory/search', { signal }, body) })
  const newest = useRead(keys.memory(company.id, { list: shown, kind: search.kind, tag: search.tag }), '/api/v1/memory', { query: { companyId: company.id, limit: shown, kind: search.kind, tag: search.tag } }, { enabled: !search.q, placeholderData: keepPreviousData })
  const stats = useRead(keys.memory(company.id, 'stats'), '/api/v1/memory/stats', { query: { companyId: company.id } })
  const again = () => [keys.memory(company.id)]
  const add = useWrite<Values, unknown>({
    call: ({ tags, expiresAt, ...rest }) => post('/api/v1/memory', {}, { companyId: company.id, ...rest, text: String(rest['text'] ?? ''), ...(Array.isArray(tags) ? { tags: tags.map(String).filter(Boolean) } : {}), ...(expiresAt ? { expiresAt: new Date(String(expiresAt)).toISOString() } : {}) }),
    reread: again, onDone: () => { setAdding(false); toast({ text: tp.memory.added }) },
  })
  const change = useWrite<{ of: Memory; changes: Values }, unknown>({
    call: ({ of, changes: { tags, expiresAt, ...rest } }) => patch('/api/v1/memory/{id}', { path: { id: of.id } }, { ...rest, ...(tags === undefined ? {} : { tags: (Array.isArray(tags) ? tags : []).map(String).filter(Boolean) }), ...(expiresAt === undefined ? {} : { expiresAt: expiresAt ? new Date(String(expiresAt)).toISOString() : null }) } as Schemas['ApiChangeBody']),
    reread: again, onDone: () => { setEditing(undefined); toast({ text: tp.memory.changed }) },
  })
  const forget = useWrite({ call: (id: string) => del('/api/v1/memory/{id}', { path: { id } }), reread: again, onDone: () => { setEnding(undefined); toast({ text: tp.memory.forgotten }) } })
  const schema: Schema = {
    required: ['text'],
    properties: { text: { type: 'string', format: 'multiline', title: tp.memory.text }, kind: { type: 'string', title: tp.memory.kind, default: 'note' }, tags: { type: 'array', items: { type: 'string' }, title: tp.memory.tags }, importance: { type: 'integer', minimum: 0, maximum: 1000, title: tp.memory.importance }, expiresAt: { type: 'string', format: 'date', title: tp.memory.expires }, private: { type: 'boolean', title: tp.memory.private } },
  }
  const rows: readonly Hit[] = search.q ? found.data?.results ?? [] : (newest.data?.memories ?? []).map((memory) => ({ memory }))
  const line = (h: Hit) => <Line key={h.memory.id} hit={h} onEdit={() => setEditing(h.memory)} onForget={() => setEnding(h)} onKind={(kind) => set({ kind })} onTag={(tag) => set({ tag })} />
  const names = useNames(company.id)
  const columns: Column<Hit>[] = [
    { id: 'id', head: 'ID', width: '', cell: (h) => h.memory.id }, { id: 'kind', head: tp.memory.kind, width: '', cell: (h) => h.memory.kind }, { id: 'text', head: tp.memory.text, width: '', cell: (h) => h.memory.text }, { id: 'tags', head: tp.memory.tags, width: '', cell: (h) => (h.memory.tags ?? []).join(' ') },
    { id: 'by', head: tp.memory.author, width: '', cell: (h) => names(h.memory.authorId).name }, { id: 'at', head: t.issue.created, width: '', cell: (h) => h.memory.createdAt ?? '' }, { id: 'score', head: tp.memory.score, width: '', cell: (h) => h.score ?? '' },
  ]
  return (
    <Frame title={tp.memory.title} command={search.q ? `selvage memory search '${search.q}'` : 'selvage memory list'} tools={<Button look="primary" icon="plus" onClick={() => setAdding(true)}>{tp.memory.add}</Button>}
      bar={<>
        <Input data-find type="search" aria-label={tp.memory.find} placeholder={tp.memory.find} value={text} onChange={(e) => setText(e.target.value)} className="!w-64 shrink-0 tab:!w-96" />
        {search.q && <Select aria-label={tp.memory.by} value={search.by ?? 'both'} onChange={(e) => set({ by: e.target.value as NonNullable<Search['by']> })} choices={Object.entries(tp.memory.bys).map(([value, label]) => ({ value, label }))} />}
        {(['kind', 'tag'] as const).map((k) => search[k] && <Button key={k} small icon="close" onClick={() => set({ [k]: '' })}>{search[k]}</Button>)}
        {rows.length > 0 && <span className="ml-auto"><IconButton icon="export" label={t.issues.csv} onClick={() => download(`${company.issuePrefix.toLowerCase()}-memory.csv`, csvOf(rows, columns))} /></span>}
      </>}>
      <div className="grid w-full max-w-page gap-x-8 gap-y-4 p-4 desk:grid-cols-[minmax(0,1fr)_260px]">
        {search.q ? (
          <Section title={tp.memory.search} aside={found.data && <span className="text-xs text-ink3">{tp.memory.considered(number(found.data.considered))}{rows.length === limit ? ` · ${tp.memory.limited(limit)}` : ''}</span>}>
            {found.data?.building && <p className="mb-2 text-sm text-warn">{tp.memory.building(number(found.data.building.done), number(found.data.building.of))}</p>}
            <Loaded of={found} rows={5}>{() => rows.length === 0 ? <Empty icon="search" title={tp.memory.noHit} why={tp.memory.noHitWhy} /> : <ul className="rounded border border-line">{rows.map(line)}</ul>}</Loaded>
          </Section>
        ) : (
          <Section title={tp.memory.newest} aside={newest.data && <span className="text-xs text-ink3">{tp.memory.listed(number(rows.length), number(newest.data.total))}</span>}>
            <Loaded of={newest} rows={5}>{(list) => rows.length === 0 ? (search.kind || search.tag ? <Empty icon="search" title={tp.memory.noHit} why={tp.memory.noKind} /> : <Empty icon="memory" title={tp.memory.empty} why={tp.memory.emptyWhy} />) : <>
              <ul className="rounded border border-line">{rows.map(line)}</ul>
              {list.next && shown < most && <div className="mt-2 text-center"><Button busy={newest.isPlaceholderData} onClick={() => setShown((n) => Math.min(most, n * 3))}>{tp.memory.more}</Button></div>}
              {list.next && shown >= most && <p className="mt-2 text-sm text-ink3">{tp.memory.rest(number(most))}</p>}
            </>}</Loaded>
          </Section>
        )}
        <div className="flex min-w-0 flex-col gap-4">
        <Section title={tp.memory.stats}>
          <Loaded of={stats} rows={3}>{(s) => <Facts rows={[
            [tp.memory.memories, `${number(s.memories)} / ${short(s.maxMemories)}`], [tp.memory.bytes, `${sizeOf(s.bytes)} / ${sizeOf(s.maxBytes)}`], [tp.memory.indexed, number(s.indexed)], [tp.memory.words, number(s.words)],
            [tp.memory.models, (s.models ?? []).length === 0 ? <span className="text-ink3">{tp.memory.noModel}</span> : (s.models ?? []).map((m) => <span key={m.model} className="block">{m.model} <span className="text-xs text-ink3">{number(m.vectors)} × {m.dimensions}</span></span>)]]} />}</Loaded>
        </Section>
        <Embedding />
        </div>
      </div>
      {editing && <FormDialog title={tp.memory.change} action={t.common.save} schema={schema} busy={change.isPending} onClose={() => setEditing(undefined)}
        initial={{ text: editing.text, kind: editing.kind, tags: editing.tags ?? [], importance: editing.importance, expiresAt: editing.expiresAt?.slice(0, 10), private: editing.private }}
        onSave={(_v, changes) => (Object.keys(changes).length === 0 ? setEditing(undefined) : change.mutate({ of: editing, changes }))} />}
      {adding && <FormDialog title={tp.memory.add} schema={schema} busy={add.isPending} onClose={() => setAdding(false)} onSave={(v) => add.mutate(v)} />}
      <Confirm open={!!ending} onClose={() => setEnding(undefined)} title={tp.memory.forgetAsk} body={<><p className="mb-2 rounded border border-line bg-ground2 p-2">{ending?.memory.text.slice(0, 300)}</p>{tp.memory.forgetBody}</>} action={tp.memory.forget} busy={forget.isPending} onConfirm={() => ending && forget.mutate(ending.memory.id)} />
    </Frame>
  )
}

function Line({ hit: { memory: m, score, why }, onEdit, onForget, onKind, onTag }: { hit: Hit; onEdit: () => void; onForget: () => void; onKind: (k: string) => void; onTag: (k: string) => void }) {
  const company = useCompany()
  const names = useNames(company.id)
  return (
    <li data-memory={m.id} className="flex flex-col gap-1.5 border-b border-line px-3 py-2.5 last:border-0">
      <div className="flex items-start gap-2"><div className="min-w-0 grow text-base"><Markdown text={m.text} /></div><Button small look="quiet" onClick={onEdit}>{t.common.edit}</Button><Button small look="quiet" onClick={onForget}>{tp.memory.forget}</Button></div>
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-ink3">
        <button type="button" title={tp.memory.about} onClick={() => onKind(m.kind)}><Badge>{m.kind}</Badge></button>
        {(m.tags ?? []).map((tag) => <button key={tag} type="button" title={tp.memory.about} onClick={() => onTag(tag)} className="text-accent hover:underline">#{tag}</button>)}
        {m.private && <Badge meaning="wait">{tp.memory.privateMark}</Badge>}
        <Who id={m.authorId} name={names(m.authorId).name} person={m.authorType !== 'agent'} />
        <Time at={m.createdAt} />{m.importance > 0 && <span>{tp.memory.importance.split(',')[0]} {m.importance}</span>}{m.issueId && <Link to={`/${company.issuePrefix}/issues/${m.issueId}`} className="text-accent hover:underline">{t.agent.issue}</Link>}{m.runId && <Link to={`/${company.issuePrefix}/runs/${m.runId}`} className="text-accent hover:underline">{t.nav.run}</Link>}<Id id={m.id} />
      </div>
        {why && <details className="text-xs">
          <summary className="text-ink2">{tp.memory.why} · {tp.memory.score} {parts(score ?? 0)}</summary>
          <div className="mt-1 flex flex-col gap-0.5 pl-4 text-ink2">
            <span>{why.wordRank ? tp.memory.wordRank(why.wordRank, why.wordScore.toFixed(2)) : tp.memory.noWords}{(why.words ?? []).length > 0 && <span className="text-ink3"> ({(why.words ?? []).map((w) => `${w.word} ${w.score.toFixed(2)}`).join(', ')})</span>}</span>
            <span>{why.vectorRank ? tp.memory.vectorRank(why.vectorRank, why.cosine?.toFixed(3) ?? '–') : tp.memory.noVectors}</span>
            <span>{tp.memory.recency(why.recency.toFixed(2))} · {tp.memory.weight(why.importance.toFixed(2))}</span>
            <span className="text-ink3">{tp.memory.formula}</span>
          </div>
        </details>}
    </li>
  )
}
