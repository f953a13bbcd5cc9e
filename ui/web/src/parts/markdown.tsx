// Markdown of people and agents, sanitised. The library comes on demand: until then the text stands as it is.
import { useEffect, useState } from 'react'

type Renderer = (text: string) => string
let renderer: Renderer | undefined
let loading: Promise<Renderer> | undefined

function load(): Promise<Renderer> {
  return (loading ??= import('./markdown-render').then((m) => (renderer = m.render)))
}

export function Markdown({ text }: { text: string }) {
  const [render, setRender] = useState<Renderer | undefined>(() => renderer)
  useEffect(() => {
    if (!render) void load().then((r) => setRender(() => r))
  }, [render])
  if (!render) return <div className="prose whitespace-pre-wrap">{text}</div>
  return <div className="prose" dangerouslySetInnerHTML={{ __html: render(text) }} />
}
