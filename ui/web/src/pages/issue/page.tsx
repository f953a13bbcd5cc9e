import { Link, useParams } from '@tanstack/react-router'
import { useCompany } from '../../company'
import { useIssue } from '../../data'
import { Page as Frame } from '../../frame/page'
import { Id } from '../../parts/values'
import { t } from '../../text/en'
import { IssueBody } from './body'

export function Page() {
  const company = useCompany()
  const { issue: id } = useParams({ strict: false }) as { issue: string }
  const issue = useIssue(id).data
  const title = issue ? `${issue.identifier} ${issue.title}` : id
  return (
    <Frame title={title} command={`selvage issue show ${id}`} head={
      <nav aria-label={t.nav.issues} className="flex min-w-0 items-center gap-2 text-base"><Link to={`/${company.issuePrefix}/issues`} className="text-ink2 hover:text-ink">{t.issues.title}</Link><span className="text-ink3">/</span><Id id={issue?.identifier ?? id} text={issue?.identifier ?? id} /></nav>}>
      <IssueBody id={id} />
    </Frame>
  )
}
