// Which buttons of the pages are pressed by the steps of testnet/board. The buttons are read from the sources: a new one
// that no step presses fails the test, unless the table below says why nobody can.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'

const src = join(import.meta.dirname, '../src')

/** What no step presses, by file and text, each with the reason. */
const keyed = 'a board with signing keys signs with their files: no step after it could sign as administrator'
const later = 'it needs two versions of an app, one signed by each of two keys'
const unpressed = {
  'frame/banner.tsx Continue on .*': 'the page moves by itself unless a text is not sent; the test of the move has none',
  'pages/adapters/page.tsx .* of .* are asked': 'what the button says while it is busy',
  'pages/agent/kept.tsx Changed': 'a revision that names no field; others are pressed',
  'pages/agent/page.tsx Clear the error': 'an agent is in error only after failures that a mesh of a test does not have',
  'pages/inbox/page.tsx Raise': 'a warning of a budget has it; a stop is raised by its approval, which a step does',
  'pages/inbox/page.tsx Clear the error': 'an agent is in error only after failures that a mesh of a test does not have',
  'pages/amendment/page.tsx Sign': keyed,
  'pages/amendment/page.tsx Cancel': keyed,
  'pages/amendments/page.tsx Propose to drop it': keyed,
  'pages/amendments/page.tsx Propose': keyed,
  'pages/constitution/packs.tsx Apply': 'the rules of a pack would hold for all steps after it',
  'pages/apps/page.tsx Roll back to .*': later,
  'pages/apps/page.tsx Roll back': later,
  'pages/constitution/filters.tsx Begin anew with .*': 'it needs an agent that acted while the filters spoke; the test of the API has one',
  'pages/costs/page.tsx Show all .* limits': 'it needs more limits than the steps set',
  'pages/costs/page.tsx without a project': 'the filter of what has no project; others are pressed',
  'pages/ledger/page.tsx Cancel': 'the chain of a test is checked before one could press it',
  'pages/mesh/page.tsx Trust the machine': 'the steps end on a mesh where people sign in',
  'pages/skill/tries.tsx Stop the try': 'a try takes an agent that reads skills',
  'pages/skill/tries.tsx Remove': 'a try takes an agent that reads skills',
  'pages/skills/page.tsx Install': 'the catalogue of the program is installed already',
  'pages/topics/page.tsx From the oldest': 'seen from 10,000 entries on',
}

const sourcesIn = (dir) => readdirSync(join(src, dir), { withFileTypes: true }).flatMap((f) => (f.isDirectory() ? sourcesIn(join(dir, f.name)) : /\.tsx?$/.test(f.name) && !/\.(test|d)\.tsx?$/.test(f.name) ? [join(dir, f.name)] : []))

/** The catalogue, as modules give it: { t, tp, tr }. */
async function catalogue() {
  const out = {}
  for (const file of readdirSync(join(src, 'text'))) {
    const js = ts.transpileModule(readFileSync(join(src, 'text', file), 'utf8'), { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 } }).outputText
    Object.assign(out, await import(`data:text/javascript;base64,${Buffer.from(js).toString('base64')}`))
  }
  return out
}

const blank = '\u0001'
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** patternOf is what a text of the catalogue matches: a function has anything where it is given something. */
function patternOf(value) {
  if (typeof value === 'string') return `^${escaped(value)}$`
  if (typeof value !== 'function') return undefined
  try {
    return `^${escaped(String(value(...Array(value.length).fill(blank)))).replaceAll(blank, '.*')}$`
  } catch {
    return undefined
  }
}

/** namesIn are the texts that an expression may be. */
function namesIn(node, scope) {
  if (!node) return []
  if (ts.isJsxExpression(node) || ts.isParenthesizedExpression(node)) return namesIn(node.expression, scope)
  if (ts.isConditionalExpression(node)) return [...namesIn(node.whenTrue, scope), ...namesIn(node.whenFalse, scope)]
  if (ts.isBinaryExpression(node)) return namesIn(node.right, scope)
  if (ts.isCallExpression(node)) return namesIn(node.expression, scope)
  if (ts.isPropertyAccessExpression(node)) {
    const path = []
    let at = node
    for (; ts.isPropertyAccessExpression(at); at = at.expression) path.unshift(at.name.text)
    const root = ts.isIdentifier(at) ? scope[at.text] : undefined
    const pattern = root && patternOf(path.reduce((v, name) => v?.[name], root))
    return pattern ? [pattern] : []
  }
  return []
}

/** sites are the buttons of a source: { file, name }. */
function sitesOf(file, texts) {
  const source = ts.createSourceFile(file, readFileSync(join(src, file), 'utf8'), ts.ScriptTarget.Latest, true, ts.ScriptKind.TSX)
  const scope = { ...texts }
  const out = new Set()
  const keep = (names, part) => names.forEach((name) => out.add(part ? name.slice(1, -1) : name))
  const attribute = (element, name) => {
    const found = element.attributes.properties.find((p) => ts.isJsxAttribute(p) && p.name.text === name)
    return found?.initializer
  }
  const look = (node) => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer && ts.isPropertyAccessExpression(node.initializer)) {
      const root = ts.isIdentifier(node.initializer.expression) ? scope[node.initializer.expression.text] : undefined
      const value = root?.[node.initializer.name.text]
      if (value && typeof value === 'object') scope[node.name.text] = value
    }
    if (ts.isJsxSelfClosingElement(node) || ts.isJsxOpeningElement(node)) {
      const tag = node.tagName.getText()
      if (tag === 'IconButton') keep(namesIn(attribute(node, 'label'), scope))
      else if (tag === 'Confirm') keep(namesIn(attribute(node, 'action'), scope))
      else if (tag === 'FormDialog') keep(attribute(node, 'action') ? namesIn(attribute(node, 'action'), scope) : [patternOf(texts.t.common.create)])
      else if (tag === 'Button' || tag === 'button') {
        const label = attribute(node, 'aria-label')
        if (label) keep(namesIn(label, scope))
        else if (ts.isJsxOpeningElement(node)) node.parent.children.forEach((child) => keep(namesIn(child, scope), tag === 'button')) // a plain one may say more
      }
    }
    if (ts.isObjectLiteralExpression(node)) {
      const of = (name) => node.properties.find((p) => ts.isPropertyAssignment(p) && p.name.getText() === name)
      if (of('label') && of('onSelect')) keep(namesIn(of('label').initializer, scope))
    }
    ts.forEachChild(node, look)
  }
  look(source)
  return [...out].map((name) => ({ file, name }))
}

/** reach are the sources that a source is made of. */
function reach(file, all, seen = new Set()) {
  if (seen.has(file)) return seen
  seen.add(file)
  for (const [, from] of readFileSync(join(src, file), 'utf8').matchAll(/from '(\.[^']+)'/g)) {
    const at = relative(src, join(src, dirname(file), from))
    const found = [`${at}.tsx`, `${at}.ts`].find((f) => all.has(f))
    if (found) reach(found, all, seen)
  }
  return seen
}

const recorder = () => {
  const told = (e) => {
    const at = e.target instanceof Element ? e.target.closest('button, [role=menuitem]') : null
    if (at) window.pressedOne(location.pathname, (at.getAttribute('aria-label') ?? at.textContent).trim())
  }
  addEventListener('click', told, true)
  addEventListener('pointerup', told, true)
}

/** pressing remembers what is pressed in contexts that it is given, and says what never was. */
const keyOf = ({ file, name }) => `${file} ${name.replace(/^\^|\$$/g, '')}`

export async function pressing() {
  const all = new Set(sourcesIn('.').map((f) => f.replace(/^\.\//, '')))
  const texts = await catalogue()
  const rows = [...readFileSync(join(src, 'pages/table.ts'), 'utf8').matchAll(/path: '([^']+)'.*?import\('\.\/([^']+)'\)/g)].map(([, path, file]) => ({ path, file: `pages/${file}.tsx` }))
  rows.push({ path: '/sign-in', file: 'pages/signin/page.tsx' }, { path: '/invite/$token', file: 'pages/invite/page.tsx' })
  const pages = rows.map(({ path, file }) => ({ of: reach(file, all), is: new RegExp(`^${path.replace(/\$\w+/g, '[^/]+')}/?$`), fixed: path.split('/').filter((p) => p && !p.startsWith('$')).length }))
    .sort((a, b) => b.fixed - a.fixed)
  const sites = [...all].filter((f) => f.endsWith('.tsx') && !f.startsWith('dev/')).flatMap((f) => sitesOf(f, texts))
  const pressed = new Map() // path and text, to the page
  return {
    async follow(context) {
      await context.exposeBinding('pressedOne', (_from, path, name) => pressed.set(`${path}\n${name}`, pages.find((p) => p.is.test(path))))
      await context.addInitScript(recorder)
    },
    all: sites.length,
    excused: Object.keys(unpressed).length,
    never() {
      const events = [...pressed].map(([key, page]) => ({ name: key.slice(key.indexOf('\n') + 1), page }))
      return sites.filter(({ file, name }) => {
        const is = new RegExp(name)
        const everywhere = file.startsWith('frame/') || file.startsWith('parts/')
        return !events.some((e) => is.test(e.name) && (everywhere || e.page?.of.has(file))) && !unpressed[keyOf({ file, name })]
      }).map(keyOf)
    },
    /** Entries of the table of exceptions that are no button any more. */
    stale: () => Object.keys(unpressed).filter((key) => !sites.some((s) => keyOf(s) === key)),
  }
}
