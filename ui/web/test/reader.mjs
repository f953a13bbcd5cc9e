// What a screen reader says of a page, in reading order, from Chromium's accessibility tree; and what it would stumble over.
// axe looks at elements alone; here the page is read as a whole: its landmarks, its headings in order, every control by its
// name, tables with their heads, and how many regions speak by themselves.
const controls = new Set(['button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'radio', 'switch', 'slider', 'spinbutton', 'tab', 'menuitem', 'option', 'treeitem', 'listbox', 'ComboBoxSelect', 'PopUpButton'])
const landmarks = new Set(['navigation', 'complementary', 'search', 'region', 'dialog'])
const speaking = new Set(['status', 'alert'])
const maxSpeaking = 4 // the line to the node, the announcer, toasts, and a page's own

/** heard returns what is read of the page: [{ role, name, level, id }] in reading order. */
export async function heard(page) {
  const client = await page.context().newCDPSession(page)
  try {
    const { nodes } = await client.send('Accessibility.getFullAXTree')
    const byId = new Map(nodes.map((n) => [n.nodeId, n]))
    const out = []
    const walk = (node, within) => {
      const role = node.role?.value
      const value = (name) => node.properties?.find((p) => p.name === name)?.value?.value
      const row = node.ignored ? undefined : { role, name: node.name?.value?.trim() ?? '', level: value('level'), live: value('live'), within, under: [] }
      if (row && role !== 'InlineTextBox') out.push(row)
      for (const id of node.childIds ?? []) {
        const child = byId.get(id)
        if (child) walk(child, row && role !== 'generic' ? row : within)
      }
      if (row) within?.under.push(row)
    }
    const root = nodes.find((n) => !n.parentId)
    if (root) walk(root, undefined)
    return out
  } finally {
    await client.detach()
  }
}

const inside = (row, role) => { for (let at = row.within; at; at = at.within) if (at.role === role) return at }

/** stumbles says what in these rows a person who listens could not follow. */
export function stumbles(rows) {
  const wrong = []
  const of = (role) => rows.filter((r) => r.role === role)
  if (of('main').length !== 1) wrong.push(`${of('main').length} main landmarks`)
  if (of('navigation').length < 1) wrong.push('no navigation')
  const names = rows.filter((r) => landmarks.has(r.role)).map((r) => `${r.role} "${r.name}"`)
  for (const name of new Set(names.filter((n, i) => names.indexOf(n) !== i))) wrong.push(`two landmarks are called ${name}`)
  for (const r of rows.filter((row) => landmarks.has(row.role) && row.name === '')) wrong.push(`a landmark ${r.role} without a name`)
  const headings = of('heading').filter((h) => !inside(h, 'dialog') && !inside(h, 'navigation') && !inside(h, 'complementary') && !inside(h, 'article'))
  const first = headings.filter((h) => h.level === 1)
  if (first.length !== 1) wrong.push(`${first.length} headings of level 1: ${first.map((h) => h.name).join(', ')}`)
  let last = 1
  for (const h of headings) {
    if (h.level > last + 1) wrong.push(`heading "${h.name}" of level ${h.level} after one of level ${last}`)
    last = h.level
  }
  for (const h of of('heading')) if (h.name === '') wrong.push('a heading without words')
  for (const r of rows) if (controls.has(r.role) && r.name === '') wrong.push(`a ${r.role} without a name in ${r.within?.role} "${r.within?.name ?? ''}"`)
  for (const r of of('link')) if (r.name === 'Open') wrong.push('a link that says Open and not what')
  for (const r of of('image')) if (r.name === '') wrong.push('an image without words')
  for (const table of [...of('table'), ...of('grid')]) {
    if (table.name === '' && !inside(table, 'article')) wrong.push('a table without a name')
    if (!rows.some((r) => r.role === 'columnheader' && inside(r, table.role) === table)) wrong.push(`table "${table.name}" without heads`)
  }
  const loud = rows.filter((r) => speaking.has(r.role) || (r.live && r.live !== 'off' && r.within?.live !== r.live))
  if (loud.length > maxSpeaking) wrong.push(`${loud.length} regions speak by themselves: ${loud.map((r) => `${r.role} "${r.name}"`).join(', ')}`)
  return [...new Set(wrong)]
}

/** asSpoken is what a screen reader says, a line for each row: for a person to read. */
export const asSpoken = (rows) => rows.filter((r) => r.role !== 'generic' && r.role !== 'none' && !(r.role === 'StaticText' && r.name === r.within?.name)).map((r) => `${r.role}${r.level ? ` ${r.level}` : ''}${r.name ? `: ${r.name}` : ''}`)
