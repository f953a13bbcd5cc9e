// A company as a package: what it would hold, then a zip file of it.
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useCompany } from '../../company'
import { number } from '../../format'
import { Page as Frame } from '../../frame/page'
import { post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Checkbox } from '../../parts/form'
import { Loaded, Section } from '../../parts/states'
import { StatusMark } from '../../parts/status'
import { Tab, Tabs } from '../../parts/tabs'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { bytesOf, zipOf } from './zip'

const parts = ['company', 'agents', 'projects', 'issues', 'skills'] as const

export function Page() {
  const company = useCompany()
  const go = useNavigate()
  const [include, setInclude] = useState<Record<(typeof parts)[number], boolean>>({ company: true, agents: true, projects: true, issues: true, skills: true })
  const preview = useQuery({
    queryKey: ['export', company.id, include], retry: 0, staleTime: 0,
    queryFn: ({ signal }) => post('/api/companies/{companyId}/exports/preview', { path: { companyId: company.id }, signal }, { include }),
  })
  const save = (of: Schemas['ApiExportPreview']) => {
    const blob = zipOf(Object.fromEntries(Object.entries(of.files ?? {}).map(([name, file]) => [name, bytesOf(file)])))
    const link = document.createElement('a')
    link.href = URL.createObjectURL(blob)
    link.download = `${of.rootPath || company.issuePrefix.toLowerCase()}.zip`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
    toast({ text: t.transfer.saved(link.download) })
  }
  return (
    <Frame title={t.transfer.export} command={`selvage company export ./${company.issuePrefix.toLowerCase()} --company ${company.issuePrefix}`}
      tools={<Button look="primary" icon="export" busy={preview.isPending} onClick={() => preview.data && save(preview.data)}>{t.transfer.save}</Button>}>
      <Tabs value="export" onChange={(v) => void go({ to: `/${company.issuePrefix}/company/${v}` })} tabs={[{ value: 'import', label: t.transfer.import }, { value: 'export', label: t.transfer.export }]}>
        <Tab value="export" className="flex w-full max-w-page flex-col gap-4 p-4">
          <p className="text-sm text-ink2">{t.transfer.exportWhy}</p>
          <fieldset className="flex flex-wrap gap-x-5 gap-y-2"><legend className="sr-only">{t.transfer.parts}</legend>{parts.map((p) => <Checkbox key={p} label={t.transfer.part[p]} checked={include[p]} onChange={(on) => setInclude({ ...include, [p]: on })} />)}</fieldset>
          <Loaded of={preview} rows={6}>
            {(of) => (
              <>
                {of.warnings.map((w) => <p key={w} className="text-sm"><StatusMark status="warn" label={w} /></p>)}
                <Section title={t.transfer.holds(number(of.counts.files))} aside={<span className="text-xs text-ink3">{t.transfer.counts(of.counts)}</span>}><FileList files={of.files} /></Section>
              </>
            )}
          </Loaded>
        </Tab>
      </Tabs>
    </Frame>
  )
}

const maxListed = 400

/** The files of a package: one opened shows its text. */
export function FileList({ files }: { files: Schemas['ApiExported']['files'] }) {
  const names = Object.keys(files ?? {}).sort()
  return (
    <div className="rounded border border-line text-sm">
      {names.slice(0, maxListed).map((name) => {
        const file = files?.[name]
        return (
          <details key={name} className="border-b border-line last:border-0">
            <summary className="flex min-h-8 cursor-pointer items-center px-3 font-mono text-xs">{name}</summary>
            <pre className="max-h-80 overflow-auto whitespace-pre-wrap break-words border-t border-line bg-ground2 px-3 py-2 font-mono text-xs">{typeof file === 'string' ? file : t.transfer.binary}</pre>
          </details>
        )
      })}
      {names.length > maxListed && <p className="px-3 py-2 text-ink3">{t.transfer.more(names.length - maxListed)}</p>}
    </div>
  )
}
