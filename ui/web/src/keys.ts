// Whether a key is meant for a text and not for the board.
export function typing(e: KeyboardEvent): boolean {
  const at = e.target as HTMLElement | null
  if (!at || typeof at.closest !== 'function') return false
  return at.isContentEditable || at.closest('input:not([type=checkbox]), textarea, select, [role=menu], [role=listbox]') !== null
}

/** forList says whether a key is meant for the list: what can be pressed in it takes its own. */
export const forList = (target: Element, list: Element | null) => target === document.body || target.id === 'page' || (!!list?.contains(target) && !target.closest('a, button, input, select, textarea'))
