// The folders of routines: made, renamed and deleted in one dialog.
import { useState } from 'react'
import { keys } from '../../cache'
import { useRead, useWrite } from '../../data'
import { del, patch, post, type Schemas } from '../../http'
import { Button } from '../../parts/button'
import { Input } from '../../parts/form'
import { LineOf, Lines } from '../../parts/lines'
import { Dialog, DialogFoot } from '../../parts/overlay'
import { toast } from '../../parts/toast'
import { t } from '../../text/en'
import { tp } from '../../text/en.pages'

const x = tp.routine
export const folderKey = (company: string) => [...keys.routines(company), 'folders']
export const useFolders = (company: string) => useRead(folderKey(company), '/api/companies/{companyId}/folders', { path: { companyId: company }, query: { kind: 'routine' } }).data?.folders ?? []

export function Folders({ company, onClose }: { company: string; onClose: () => void }) {
  const all = useFolders(company)
  const [name, setName] = useState('')
  const reread = () => [folderKey(company), keys.routines(company)]
  const add = useWrite<undefined, unknown>({ call: () => post('/api/companies/{companyId}/folders', { path: { companyId: company } }, { name: name.trim(), kind: 'routine' } as Schemas['ApiNewFolder']), reread, onDone: () => setName('') })
  return (
    <Dialog open onClose={onClose} title={x.folders} size="medium">
      {all.length === 0 ? <p className="mb-3 text-sm text-ink3">{x.noFolders}</p> : <Lines label={x.folders}>{all.map((f) => <Folder key={`${f.id} ${f.name}`} company={company} id={f.id} name={f.name} reread={reread} />)}</Lines>}
      <form className="mt-3 flex gap-2" onSubmit={(e) => { e.preventDefault(); if (name.trim()) add.mutate(undefined) }}><Input aria-label={x.folderName} placeholder={x.folderName} maxLength={80} value={name} onChange={(e) => setName(e.target.value)} /><Button type="submit" icon="plus" disabled={!name.trim()} busy={add.isPending}>{x.newFolder}</Button></form>
      <DialogFoot><Button look="primary" onClick={onClose}>{t.common.close}</Button></DialogFoot>
    </Dialog>
  )
}

function Folder({ company, id, name, reread }: { company: string; id: string; name: string; reread: () => (readonly unknown[])[] }) {
  const [text, setText] = useState(name)
  const at = { path: { companyId: company, folderId: id } }
  const rename = useWrite<undefined, unknown>({ call: () => patch('/api/companies/{companyId}/folders/{folderId}', at, { name: text.trim() }), reread, onDone: () => toast({ text: x.folderRenamed(text.trim()) }) })
  const remove = useWrite<undefined, unknown>({ call: () => del('/api/companies/{companyId}/folders/{folderId}', at), reread, onDone: () => toast({ text: x.folderRemoved(name) }) })
  return (
    <LineOf>
      <form className="flex min-w-0 grow gap-2" onSubmit={(e) => { e.preventDefault(); if (text.trim() && text.trim() !== name) rename.mutate(undefined) }}>
        <Input aria-label={x.folderOf(name)} maxLength={80} value={text} onChange={(e) => setText(e.target.value)} /><Button type="submit" disabled={!text.trim() || text.trim() === name} busy={rename.isPending}>{x.rename}</Button>
      </form>
      <Button look="danger" aria-label={x.removeFolder(name)} title={x.removeFolderWhy} busy={remove.isPending} onClick={() => remove.mutate(undefined)}>{t.common.remove}</Button>
    </LineOf>
  )
}
