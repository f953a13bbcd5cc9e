// Whether a key is meant for a text and not for the board.
export function typing(e: KeyboardEvent): boolean {
  const at = e.target as HTMLElement | null
  if (!at || typeof at.closest !== 'function') return false
  return at.isContentEditable || at.closest('input:not([type=checkbox]), textarea, select, [role=menu], [role=listbox]') !== null
}
