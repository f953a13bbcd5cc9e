import { t } from '../text/en'
import { Page } from '../frame/page'
import { Empty } from './states'
import { CopyAsCommand } from './values'

/** Stands where a page of the board is not built: it says so and names the command that does the same. */
export function Unbuilt({ title, command }: { title: string; command: string }) {
  return (
    <Page title={title}>
      <Empty icon="file" title={t.unbuilt.title} why={t.unbuilt.why}>
        <code className="inline-flex items-center gap-1 rounded border border-line bg-ground2 pl-2 font-mono text-xs">{command}<CopyAsCommand small command={command} /></code>
      </Empty>
    </Page>
  )
}
