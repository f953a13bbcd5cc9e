// Light, dark or as the system has it; kept in this browser.
import { store } from './store'

export type Theme = 'light' | 'dark' | 'system'
const name = 'selvage.theme'
const dark = () => matchMedia('(prefers-color-scheme: dark)')

function stored(): Theme {
  try {
    const kept = localStorage.getItem(name)
    return kept === 'light' || kept === 'dark' ? kept : 'system'
  } catch {
    return 'system'
  }
}

export const theme = store<Theme>(stored())

function show(): void {
  const now = theme.get()
  document.documentElement.dataset['theme'] = now === 'system' ? (dark().matches ? 'dark' : 'light') : now
}

export function beginTheme(): void {
  show()
  theme.on(show)
  dark().addEventListener('change', show)
}

export function setTheme(next: Theme): void {
  try {
    localStorage.setItem(name, next)
  } catch { /* it lasts as long as the page */ }
  theme.set(next)
}
export const toggleTheme = () => setTheme(document.documentElement.dataset['theme'] === 'dark' ? 'light' : 'dark')
