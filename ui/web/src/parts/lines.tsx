import type { ReactNode } from 'react'

/** A list of lines in a box: what is too little for a table. */
export const Lines = ({ children, label }: { children: ReactNode; label?: string }) => <ul aria-label={label} className="rounded border border-line">{children}</ul>

export const LineOf = ({ children }: { children: ReactNode }) => <li className="flex min-h-10 flex-wrap items-center justify-end gap-x-3 gap-y-1 border-b border-line px-3 py-1 text-sm last:border-0">{children}</li>

/** The name at the front of a line; it takes the room that is left. */
export const Front = ({ children }: { children: ReactNode }) => <span className="min-w-0 grow basis-32 truncate">{children}</span>
