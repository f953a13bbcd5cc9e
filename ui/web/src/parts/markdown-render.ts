import DOMPurify from 'dompurify'
import { marked } from 'marked'

// What agents write may hold anything: no script, style, form, frame or event handler gets through, no picture of
// another host is loaded (it would tell that host who reads), and a link opens apart.
const allowed = { ALLOWED_TAGS: ['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'a', 'strong', 'em', 'del', 'code', 'pre', 'blockquote', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'img', 'input'],
  ALLOWED_ATTR: ['href', 'title', 'src', 'alt', 'type', 'checked', 'disabled', 'align', 'start'], ALLOW_DATA_ATTR: false }

DOMPurify.addHook('afterSanitizeAttributes', (node) => {
  if (/^H[1-4]$/.test(node.tagName)) node.setAttribute('aria-level', String(Number(node.tagName[1]) + 2)) // what is written is below the headings of its page
  if (node.tagName === 'PRE') node.setAttribute('tabindex', '0') // it scrolls: the keyboard has to reach it
  if (node.tagName === 'A') {
    const to = node.getAttribute('href') ?? ''
    if (!/^(https?:|mailto:|\/(?!\/)|#)/i.test(to)) node.removeAttribute('href')
    else if (/^https?:/i.test(to)) {
      node.setAttribute('target', '_blank')
      node.setAttribute('rel', 'noopener noreferrer nofollow')
    }
  }
  if (node.tagName === 'IMG' && !/^\/(?!\/)/.test(node.getAttribute('src') ?? '')) node.replaceWith(document.createTextNode(node.getAttribute('alt') || ''))
  if (node.tagName === 'INPUT' && node.getAttribute('type') !== 'checkbox') node.remove()
})

const maxText = 200_000

export function render(text: string, breaks = true): string {
  const shown = text.length > maxText ? `${text.slice(0, maxText)}…` : text
  return DOMPurify.sanitize(marked.parse(shown, { async: false, gfm: true, breaks }), allowed)
}
