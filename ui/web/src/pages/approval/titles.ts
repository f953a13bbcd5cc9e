import { keys } from '../../cache'
import { useRead, type AttentionItem } from '../../data'
import { titleOf } from './waiting'

/** useTitleOf names items that wait for a person: an approval by what it asks, everything else by its subject. */
export function useTitleOf(company: string, items: readonly AttentionItem[]): (item: AttentionItem) => string {
  const some = items.some((i) => i.sourceKind === 'approval')
  const all = useRead(keys.approvals(company, { status: 'pending' }), '/api/companies/{companyId}/approvals', { path: { companyId: company }, query: { status: 'pending', limit: 500 } }, { enabled: some }).data
  return (item) => {
    const approval = item.sourceKind === 'approval' ? all?.find((a) => a.id === item.subject.id) : undefined
    return approval ? titleOf(approval) : item.subject.title
  }
}
