import { Tabs as Radix } from 'radix-ui'
import type { ReactNode } from 'react'

/** Tabs of a page; keep the value in the address. */
export function Tabs({ value, onChange, tabs, children }: { value: string; onChange: (value: string) => void; tabs: readonly { value: string; label: string; count?: number }[]; children?: ReactNode }) {
  const shown = tabs.some((tab) => tab.value === value) ? value : tabs[0]?.value ?? value // an address may name none of them
  return (
    <Radix.Root value={shown} onValueChange={onChange} activationMode="manual" className="flex min-h-0 grow flex-col">
      <Radix.List className="flex h-9 shrink-0 gap-4 overflow-x-auto border-b border-line px-4">
        {tabs.map((tab) => (
          <Radix.Trigger key={tab.value} value={tab.value} className="-mb-px inline-flex outline-offset-[-2px] items-center gap-1.5 whitespace-nowrap border-b-2 border-transparent text-sm text-ink2 hover:text-ink data-[state=active]:border-accent data-[state=active]:font-strong data-[state=active]:text-ink">
            {tab.label}{tab.count !== undefined && <span className="text-xs text-ink3">{tab.count}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {children}
    </Radix.Root>
  )
}
export const Tab = Radix.Content
