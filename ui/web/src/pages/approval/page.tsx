import { Link, useParams } from '@tanstack/react-router'
import { keys } from '../../cache'
import { useCompany } from '../../company'
import { useRead } from '../../data'
import { Page as Frame } from '../../frame/page'
import { Id } from '../../parts/values'
import { t } from '../../text/en'
import { ApprovalBody } from './body'
import { titleOf } from './waiting'

export function Page() {
  const company = useCompany()
  const { approval: id } = useParams({ strict: false }) as { approval: string }
  const approval = useRead(keys.approval(id), '/api/approvals/{id}', { path: { id } }).data
  return (
    <Frame title={approval ? titleOf(approval) : t.nav.approvals} command={`selvage approval show ${id}`} head={<nav aria-label={t.nav.approvals} className="flex min-w-0 items-center gap-2 text-base"><Link to={`/${company.issuePrefix}/approvals`} className="text-ink2 hover:text-ink">{t.nav.approvals}</Link><span className="text-ink3">/</span><Id id={id} /></nav>}>
      <ApprovalBody id={id} />
    </Frame>
  )
}
