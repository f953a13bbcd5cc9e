// The files that tell an agent how it works.
import { useState } from 'react'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { put } from '../../http'
import { Button } from '../../parts/button'
import { TextArea } from '../../parts/form'
import { Markdown } from '../../parts/markdown'
import { Empty, Loaded } from '../../parts/states'
import { Badge } from '../../parts/status'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import type { AgentDetail } from './page'

export function Instructions({ agent }: { agent: AgentDetail }) {
  const bundle = useRead(keys.agent(agent.id, 'instructions'), '/api/agents/{id}/instructions-bundle', { path: { id: agent.id } })
  const [path, setPath] = useState<string>()
  return (
    <Loaded of={bundle} rows={4}>
      {(b) => {
        const files = b.files ?? []
        const open = path ?? files.find((f) => f.isEntryFile)?.path ?? files[0]?.path
        if (!open) return <Empty icon="file" title={t.agent.noFiles} why={t.agent.noFilesWhy}><Button onClick={() => setPath(b.entryFile || 'AGENTS.md')}>{t.agent.write}</Button></Empty>
        return (
          <div className="grid gap-4 desk:grid-cols-[200px_minmax(0,1fr)]">
            <ul className="flex flex-col gap-px">{(files.some((f) => f.path === open) ? files : [...files, { path: open, isEntryFile: open === b.entryFile }]).map((f) => (
              <li key={f.path}><button type="button" aria-current={f.path === open} onClick={() => setPath(f.path)} className={`flex h-8 w-full items-center gap-2 rounded px-2 text-left text-sm ${f.path === open ? 'bg-ground3 font-strong' : 'hover:bg-ground3'}`}><span className="min-w-0 grow truncate">{f.path}</span>{f.isEntryFile && <Badge>{t.agent.entry}</Badge>}</button></li>
            ))}</ul>
            <File key={open} agent={agent} path={open} isNew={!files.some((f) => f.path === open)} />
          </div>
        )
      }}
    </Loaded>
  )
}

function File({ agent, path, isNew }: { agent: AgentDetail; path: string; isNew: boolean }) {
  const file = useRead(keys.agent(agent.id, `instructions.${path}`), '/api/agents/{id}/instructions-bundle/file', { path: { id: agent.id }, query: { path } }, { enabled: !isNew })
  const [text, setText] = useState<string | undefined>(isNew ? '' : undefined)
  const save = useWrite({
    call: (content: string) => put('/api/agents/{id}/instructions-bundle/file', { path: { id: agent.id } }, { path, content }),
    reread: () => [keys.agent(agent.id)], onDone: () => { setText(undefined); toast({ text: t.agent.savedFile }) },
  })
  if (text !== undefined) {
    return (
      <form onSubmit={(e) => { e.preventDefault(); save.mutate(text) }} className="flex flex-col gap-2">
        <TextArea autoFocus aria-label={path} rows={24} className="font-mono !text-xs" value={text} onChange={(e) => setText(e.target.value)} />
        <div className="flex justify-end gap-2"><Button onClick={() => setText(undefined)}>{t.common.cancel}</Button><Button look="primary" type="submit" busy={save.isPending}>{t.agent.saveFile}</Button></div>
      </form>
    )
  }
  return (
    <Loaded of={file} rows={6}>
      {(f) => (
        <article className="min-w-0 rounded border border-line">
          <header className="flex h-10 items-center gap-2 border-b border-line bg-ground2 px-3 text-sm"><code className="min-w-0 grow truncate font-mono text-xs">{f.path}</code>{f.editable ? <Button small onClick={() => setText(f.content)}>{t.common.edit}</Button> : <span className="text-xs text-ink3">{t.agent.readOnly}</span>}</header>
          <div className="p-3">{f.markdown ? <Markdown text={f.content} file /> : <pre className="whitespace-pre-wrap break-words font-mono text-xs">{f.content}</pre>}</div>
        </article>
      )}
    </Loaded>
  )
}
