// Markdown of people and agents, sanitised. The library comes on demand: until then the text stands as it is.
import { memo, useEffect, useMemo, useState } from 'react'

type Renderer = (text: string, breaks: boolean) => string
let renderer: Renderer | undefined
let loading: Promise<Renderer> | undefined

function load(): Promise<Renderer> {
  return (loading ??= import('./markdown-render').then((m) => (renderer = m.render)))
}

/** A line ends where its writer ended it in comments; `file` is text of a file, whose lines are wrapped at some width. */
export const Markdown = memo(function Markdown({ text, file = false }: { text: string; file?: boolean }) {
  const [render, setRender] = useState<Renderer | undefined>(() => renderer)
  useEffect(() => {
    if (!render) void load().then((r) => setRender(() => r))
  }, [render])
  const html = useMemo(() => render?.(text, !file), [render, text, file])
  if (html === undefined) return <div className="prose whitespace-pre-wrap">{text}</div>
  return <div className="prose" dangerouslySetInnerHTML={{ __html: html }} />
})
