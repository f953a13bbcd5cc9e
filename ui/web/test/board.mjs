// node test/board.mjs DIR PORT: the steps of testnet/board on the mesh of three that DIR/testnet.json describes; from PORT
// on are two free ports. Nodes are stopped, started and killed on the way. Each step says what it saw; the first that does
// not see it ends with 1.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { addressesOf } from './addresses.mjs'
import { faultsOf } from './axe.mjs'
import { ask, browser, watch } from './browser.mjs'
import { buttonSteps } from './buttons.mjs'
import { drawn, over } from './fits.mjs'
import { pageSteps } from './pages.mjs'
import { pressing } from './pressed.mjs'
import { asSpoken, heard, stumbles } from './reader.mjs'
import { roomSteps } from './rooms.mjs'

const [dir, port] = process.argv.slice(2)
const { nodes, bin } = JSON.parse(readFileSync(join(dir, 'testnet.json'), 'utf8'))
const url = nodes[0].http
const wait = { timeout: Number(process.env.PATIENCE ?? 180_000) } // less for whoever writes a step

function must(ok, what) {
  if (!ok) throw new Error(what)
}

async function until(good, what) {
  for (const began = Date.now(); !(await good());) {
    must(Date.now() < began + wait.timeout, what)
    await new Promise((done) => setTimeout(done, 100))
  }
}

const chrome = await browser()
// The reader of these steps wants no motion: pages that move take more of the processor. Others, later on, have it.
const reader = { locale: 'en-GB', timezoneId: 'UTC', viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' }
const context = await chrome.newContext(reader)
context.setDefaultTimeout(wait.timeout)
const press = await pressing()
await press.follow(context)
const page = await context.newPage()

// atMonthEnd looks at an address on the last day of this month: in the first hours of one nothing is forecast.
async function atMonthEnd(address, look) {
  const now = new Date()
  const later = await chrome.newContext(reader) // a clock is that of all pages of its context
  later.setDefaultTimeout(wait.timeout)
  await later.clock.setFixedTime(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0, 12))
  const there = await later.newPage()
  await there.goto(address)
  await look(there)
  await later.close()
}

const { pid } = nodes[0]
let next = url // where the page goes on when its first node is dead
const children = [] // nodes that are started on the way
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')))
process.on('SIGTERM', () => process.exit(1))
// A browser writes each answer that refuses, and each node that does not answer, into its console.
const wrong = watch(page, (text) => text.startsWith('Failed to load resource'))

// Which pages were loaded by their address so far, not reached from another.
const loads = new Set()
page.on('request', (r) => { if (r.isNavigationRequest()) loads.add(new URL(r.url()).pathname) })
const wasLoaded = (path) => [...loads].some((at) => new RegExp(`^${path.replace(/\$\w+/g, '[^/]+')}$`).test(at))

const acme = async () => (await ask(url, '/api/companies')).find((c) => c.issuePrefix === 'ACM')

const steps = {
  async 'an empty mesh leads by the hand: a company, what it works with, its CEO, a first task, and its run'() {
    await page.goto(url)
    await page.waitForURL(/\/start$/, wait)
    await page.getByLabel('Name').fill('First Works')
    await page.getByLabel('What is it for?').fill('Find out what we are for')
    await page.getByRole('button', { name: 'Make the company' }).click()
    await page.waitForURL(/\/FIR\/start$/, wait)
    await page.getByText(/^On no node:/).click()
    await page.getByText('npm install -g @anthropic-ai/claude-code').waitFor(wait)
    await page.getByRole('radio', { name: /A demo/ }).check()
    await page.getByRole('button', { name: 'Hire Ada' }).click()
    await page.getByRole('button', { name: 'Give it to Ada' }).click()
    await page.waitForURL(/issue=FIR-1/, wait)
    await page.getByText('The first task is over.').waitFor(wait)
    await page.getByRole('article').getByText('I am Ada, a demo agent').waitFor(wait)
    const { status, description } = await ask(url, '/api/issues/FIR-1')
    must(status === 'done' && description === 'Our goal: Find out what we are for', `the first task is ${status}: ${description}`)
  },
  async 'a starter is one click away, and its agents are given what is there'() {
    await page.goto(`${url}/start`)
    await page.getByRole('button', { name: 'Begin with Research Desk' }).click()
    await page.waitForURL(/\/RES\/start$/, wait)
    await page.getByText(/run on Claude Code, and no node has it/).waitFor(wait)
    await page.getByRole('button', { name: 'Let them work with this' }).click()
    await page.getByRole('button', { name: 'Give it to Noor' }).waitFor(wait)
    const desk = (await ask(url, '/api/companies')).find((c) => c.issuePrefix === 'RES')
    const agents = await ask(url, `/api/companies/${desk.id}/agents`)
    must(agents.length === 4 && agents.every((a) => a.adapterType === 'wasm'), `its agents are ${JSON.stringify(agents.map((a) => [a.name, a.adapterType]))}`)
  },
  async 'another company is made from the list'() {
    await page.goto(`${url}/companies`)
    await page.getByRole('button', { name: 'New company' }).click()
    await page.getByLabel('Name').fill('Acme Survey')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.waitForURL(/\/ACM$/, wait)
    await page.getByText('Nobody works here yet.').first().waitFor(wait)
  },
  async 'a key opens the dialog, and the issue that it makes has its page'() {
    await page.keyboard.press('c')
    await page.getByLabel('Title').fill('Survey comments')
    await page.keyboard.press('Control+Enter')
    await page.waitForURL(/\/ACM\/issues\/ACM-1$/, wait)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    const company = await acme()
    const issues = await ask(url, `/api/companies/${company.id}/issues`)
    must(issues.length === 1 && issues[0].title === 'Survey comments' && issues[0].status === 'todo', `the node has ${JSON.stringify(issues)}`)
  },
  async 'a comment that is written by another is on the page without a reload'() {
    const issue = await ask(url, '/api/issues/ACM-1')
    await ask(url, `/api/issues/${issue.id}/comments`, 'POST', { body: 'From **elsewhere**' })
    await page.locator('[data-comment] strong', { hasText: 'elsewhere' }).waitFor(wait)
  },
  async 'a status is changed from its property, and at the node'() {
    await page.locator('[data-property=status]').click()
    await page.getByRole('option', { name: 'backlog' }).click()
    await page.locator('[data-property=status]', { hasText: 'backlog' }).waitFor(wait)
    for (let i = 0; (await ask(url, '/api/issues/ACM-1')).status !== 'backlog'; i++) {
      must(i < 1_800, 'the node never took the status')
      await page.waitForTimeout(100)
    }
  },
  async 'a change that is refused is put back, and says why'() {
    await page.locator('[data-property=status]').click()
    await page.getByRole('option', { name: 'blocked' }).click()
    await page.getByText(/Entering blocked requires/).first().waitFor(wait)
    await page.locator('[data-property=status]', { hasText: 'backlog' }).waitFor(wait)
  },
  async 'a list shows a new issue live, is moved in by keys, and keeps its filter in the address'() {
    await page.goto(`${url}/ACM/issues`)
    await page.getByRole('row', { name: /Survey comments/ }).waitFor(wait)
    const company = await acme()
    await ask(url, `/api/companies/${company.id}/issues`, 'POST', { title: 'Another one', status: 'todo' })
    await page.getByRole('row', { name: /Another one/ }).waitFor(wait)
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/show=ACM-\d/, wait)
    await page.getByLabel('Find in titles').fill('another')
    await page.waitForURL(/q=another/, wait)
    await page.getByText('1 issues').first().waitFor(wait)
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.waitForURL((u) => !u.search.includes('show='), wait)
  },
  async 'the palette finds an issue'() {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Find or do' }).fill('survey com')
    await page.getByRole('option', { name: /ACM-1 Survey comments/ }).click()
    await page.waitForURL(/\/ACM\/issues\/ACM-1$/, wait)
  },
  async 'the focus goes back where a dialog closes, a link in a list is its own, and a page that comes is told'() {
    const focus = (what) => page.waitForFunction((w) => document.activeElement?.id === w || document.activeElement?.getAttribute('aria-label') === w || document.activeElement?.textContent === w, what, wait)
    await page.goto(`${url}/ACM/goals`)
    await page.getByRole('button', { name: 'New goal' }).first().focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').getByLabel('Goal *').waitFor(wait)
    await page.keyboard.press('Escape')
    await focus('New goal')
    await page.goto(`${url}/ACM/issues`)
    await page.getByRole('row', { name: /Another one/ }).waitFor(wait)
    await page.keyboard.press('j')
    await page.getByRole('link', { name: 'Survey comments' }).focus()
    const slow = async (route) => { await new Promise((done) => setTimeout(done, 1000)); await route.continue() }
    await page.route(/\/api\/issues\/[^/]+$/, slow)
    const slowly = await context.newCDPSession(page)
    await slowly.send('Emulation.setCPUThrottlingRate', { rate: 20 }) // a machine that has much else to do
    await page.keyboard.press('Enter')
    await page.waitForURL(/\/ACM\/issues\/ACM-1$/, wait)
    await focus('page')
    await slowly.send('Emulation.setCPUThrottlingRate', { rate: 1 })
    await page.locator('[data-announcer]', { hasText: 'Survey comments' }).waitFor({ ...wait, state: 'attached' })
    await page.unroute(/\/api\/issues\/[^/]+$/, slow)
    const tree = await page.locator('body').ariaSnapshot()
    for (const said of ['navigation "Main"', 'main:', 'heading "Survey comments" [level=1]', 'article "Comment of', 'complementary "Properties"', 'textbox "Write a comment…"', 'status: live']) must(tree.includes(said), `a screen reader is not told ${said}:\n${tree}`)
    await page.setViewportSize({ width: 390, height: 844 })
    await page.getByRole('button', { name: 'More' }).press('Enter')
    await page.getByRole('dialog', { name: 'Main' }).getByRole('link', { name: 'Goals' }).waitFor(wait)
    await page.keyboard.press('Escape')
    await focus('More')
    await page.setViewportSize({ width: 1440, height: 900 })
  },
  async 'an agent is hired, runs, and its run is watched as it writes'() {
    await page.goto(`${url}/ACM/agents`)
    await page.getByRole('button', { name: 'Hire an agent' }).first().click()
    await page.getByLabel('Name', { exact: true }).fill('Wes')
    await page.getByLabel('What it runs with').selectOption('process')
    await page.getByLabel('Program *').fill('sh')
    await page.getByRole('button', { name: 'Add' }).first().click()
    await page.getByLabel('Arguments 1').fill('-c')
    await page.getByRole('button', { name: 'Add' }).first().click()
    await page.getByLabel('Arguments 2').fill('for i in 1 2 3 4 5 6; do echo "depth $i"; sleep 1; done; exit 3')
    await page.getByText('n1, n2, n3').waitFor(wait)
    await page.getByRole('dialog').getByRole('button', { name: 'Hire an agent' }).click()
    await page.waitForURL(/\/ACM\/agents\/wes$/, wait)
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.waitForURL(/\/ACM\/runs\//, wait)
    await page.getByRole('log').getByText('depth 1').waitFor(wait)
    await page.getByRole('log').getByText('depth 6').waitFor(wait)
    await page.getByRole('complementary', { name: 'Facts' }).getByText('lowest score').waitFor(wait)
    await page.getByRole('complementary', { name: 'Facts' }).getByText('failed').first().waitFor(wait)
    await page.getByLabel('Find in the log').fill('depth 4')
    await page.getByText('1 of 1').waitFor(wait)
  },
  async 'what an agent asks is answered in the inbox, and an approval with one key'() {
    const company = await acme()
    const issue = await ask(url, '/api/issues/ACM-1')
    await ask(url, `/api/issues/${issue.id}/interactions`, 'POST', { kind: 'request_confirmation', title: 'Delete the old chart?', payload: { version: 1, prompt: 'Delete it?', acceptLabel: 'Delete it', rejectLabel: 'Keep it' } })
    const approval = await ask(url, `/api/companies/${company.id}/approvals`, 'POST', { type: 'request_board_approval', payload: { title: 'Buy soundings', summary: 'The old ones are from 1998.' } })
    await page.goto(`${url}/ACM/inbox`)
    await page.locator('[data-item]', { hasText: 'Delete the old chart?' }).getByRole('button', { name: 'Answer' }).click()
    await page.getByRole('article', { name: 'Delete the old chart?' }).getByRole('button', { name: 'Delete it' }).click()
    await page.locator('[data-item]', { hasText: 'Delete the old chart?' }).waitFor({ ...wait, state: 'detached' })
    await page.locator('[data-item]', { hasText: 'Buy soundings' }).click()
    await page.getByText('What happens when it is approved').waitFor(wait)
    await page.keyboard.press('a')
    await page.locator('[data-item]', { hasText: 'Buy soundings' }).waitFor({ ...wait, state: 'detached' })
    const decided = await ask(url, `/api/approvals/${approval.id}`)
    must(decided.status === 'approved', `the approval is ${decided.status}`)
  },
  async 'a limit is set and what is spent adds up'() {
    const company = await acme()
    const [agent] = await ask(url, `/api/companies/${company.id}/agents`)
    await ask(url, `/api/companies/${company.id}/cost-events`, 'POST', { agentId: agent.id, provider: 'local', model: 'm-1', inputTokens: 100, outputTokens: 10, costCents: 125, occurredAt: new Date().toISOString() })
    await page.goto(`${url}/ACM/costs`)
    await page.getByRole('row', { name: /^Total/ }).getByText('1.25').waitFor(wait)
    await page.getByRole('button', { name: 'Set a limit' }).click()
    await page.getByLabel('New limit in dollars').fill('20')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await atMonthEnd(`${url}/ACM/costs`, (later) => later.getByText(/at the end at this rate/).first().waitFor(wait))
  },
  async 'a card is dragged to another state, and a key assigns'() {
    await page.goto(`${url}/ACM/issues?view=board`)
    await page.locator('[data-column=todo] [data-card=ACM-2]').dragTo(page.locator('[data-column=backlog]'))
    await page.locator('[data-column=backlog] [data-card=ACM-2]').waitFor(wait)
    await page.goto(`${url}/ACM/issues?q=another`)
    await page.getByRole('row', { name: /Another one/ }).waitFor(wait)
    await page.keyboard.press('j')
    await page.keyboard.press('a')
    await page.getByRole('dialog').getByRole('combobox').fill('Wes')
    await page.keyboard.press('Enter')
    await page.getByRole('row', { name: /Another one.*Wes/ }).waitFor(wait)
    for (let i = 0; ; i++) {
      const issue = await ask(url, '/api/issues/ACM-2')
      if (issue.status === 'backlog' && issue.assigneeAgentId) break
      must(i < 1_800, `the node has ${issue.status}, ${issue.assigneeAgentId}`)
      await page.waitForTimeout(100)
    }
  },
  ...pageSteps({ page, url, ask, must, wait, atMonthEnd }),
  ...roomSteps({ page, url, ask, must, wait, bin, dir }),
  ...buttonSteps({ page, url, ask, must, wait }),
  async 'an address of the specification opens the page'() {
    const company = await acme()
    await page.goto(`${url}/companies/${company.id}/tasks`)
    await page.waitForURL(/\/ACM\/issues$/, wait)
  },
  async 'a checkout of what another has is put back, and says who has it'() {
    const company = await acme()
    const [wes] = await ask(url, `/api/companies/${company.id}/agents`)
    const bo = await ask(url, `/api/companies/${company.id}/agents`, 'POST', { name: 'Bo', role: 'qa', adapterType: 'process', adapterConfig: { command: 'sleep', args: ['60'] } })
    const issue = await ask(url, `/api/companies/${company.id}/issues`, 'POST', { title: 'Held by one', status: 'backlog', assigneeAgentId: wes.id })
    await page.goto(`${url}/ACM/issues/${issue.identifier}`)
    await page.route('**/checkout', async (route) => {
      await ask(url, `/api/issues/${issue.id}`, 'PATCH', { assigneeAgentId: bo.id })
      await ask(url, `/api/issues/${issue.id}/checkout`, 'POST', { agentId: bo.id, expectedStatuses: ['backlog'] })
      await route.continue()
    })
    await page.getByRole('button', { name: 'Check out for Wes' }).click()
    await page.getByText(/Bo holds it now\./).first().waitFor(wait)
    await page.locator('[data-property=assignee]', { hasText: 'Bo' }).waitFor(wait)
    await page.unroute('**/checkout')
  },
  async 'a hire that waits for the board is approved on its page, and carried out'() {
    const company = await acme()
    await ask(url, `/api/companies/${company.id}`, 'PATCH', { requireBoardApprovalForNewAgents: true })
    const { agent, approval } = await ask(url, `/api/companies/${company.id}/agent-hires`, 'POST', { name: 'Cleo', role: 'designer', adapterType: 'process', adapterConfig: { command: 'true' } })
    must(agent.status === 'pending_approval', `the new agent is ${agent.status}`)
    await page.goto(`${url}/ACM/approvals/${approval.id}`)
    await page.getByText('What happens when it is approved').waitFor(wait)
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByText('What was approved').waitFor(wait)
    const now = await ask(url, `/api/agents/${agent.id}`)
    must(now.status === 'idle', `the agent that was approved is ${now.status}`)
  },
  async 'a budget stop is in the inbox, and a higher limit lets the agent go on'() {
    const company = await acme()
    const agent = (await ask(url, `/api/companies/${company.id}/agents`)).find((a) => a.name === 'Cleo')
    await ask(url, `/api/companies/${company.id}/budgets/policies`, 'POST', { scopeType: 'agent', scopeId: agent.id, amount: 100 })
    await ask(url, `/api/companies/${company.id}/cost-events`, 'POST', { agentId: agent.id, provider: 'local', model: 'm-1', inputTokens: 100, outputTokens: 10, costCents: 150, occurredAt: new Date().toISOString() })
    must((await ask(url, `/api/agents/${agent.id}`)).status === 'paused', 'the limit did not stop the agent')
    await page.goto(`${url}/ACM/inbox`)
    await page.locator('[data-item]', { hasText: 'Cleo' }).first().click()
    await page.getByLabel('New limit in dollars').fill('5')
    await page.getByRole('complementary').getByRole('button', { name: 'Approve' }).click()
    await page.locator('[data-item]', { hasText: 'Cleo' }).waitFor({ ...wait, state: 'detached' })
    must((await ask(url, `/api/agents/${agent.id}`)).status === 'idle', 'the agent does not go on')
  },
  async 'the chain is checked in the browser: hashes, links and signatures'() {
    await page.goto(`${url}/mesh/ledger`)
    await page.getByRole('button', { name: 'Check the whole chain' }).click()
    const told = page.locator('[data-checked]')
    await told.waitFor(wait)
    const words = await told.innerText()
    const { height } = await ask(url, '/api/v1/mesh/ledger')
    must(/^It holds: [\d,]+ entries in [\d,]+ batches, [\d,]+ signatures$/.test(words) && Number(await told.getAttribute('data-checked')) > height - 100, `of ${height} entries it says: ${words}`)
    await page.getByRole('row').nth(2).click()
    await page.locator('[data-entry-check=ok]').waitFor(wait)
    await page.getByText(/^Signed by n\d; the signature holds$/).waitFor(wait)
    await page.route('**/ledger/records*', async (route) => { // a node that lies
      const answer = await route.fetch()
      const body = await answer.json()
      const at = body.records.findIndex((r) => r.index > 10 && r.entries.length > 0)
      if (at >= 0) {
        const bytes = Buffer.from(body.records[at].entries[0], 'base64')
        bytes[93] ^= 1 // in the hash of its payload
        body.records[at].entries[0] = bytes.toString('base64')
      }
      await route.fulfill({ response: answer, json: body })
    })
    await page.getByRole('button', { name: 'Check the whole chain' }).click()
    await page.getByText(/^It is broken at entry \d+: the entry says something else than what was signed/).waitFor(wait)
    await page.unroute('**/ledger/records*')
  },
  async 'a company leaves as a zip file and comes in again after a preview'() {
    await page.goto(`${url}/FIR/company/export`)
    await page.getByRole('button', { name: 'Save as zip' }).waitFor(wait)
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save as zip' }).click()
    const file = join(dir, 'package.zip')
    await (await download).saveAs(file)
    await page.goto(`${url}/companies/import`)
    await page.getByLabel('File').setInputFiles(file)
    await page.getByLabel('Name', { exact: true }).fill('Second Works')
    await page.getByRole('button', { name: 'Show what would happen' }).click()
    await page.getByRole('row', { name: /Agent.*Ada.*is made/ }).waitFor(wait)
    must(!(await ask(url, '/api/companies')).some((c) => c.name === 'Second Works'), 'the preview made the company')
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.waitForURL(/\/SEC$/, wait)
  },
  async 'an issue that is created is in the list before the list is read again'() {
    const company = await acme()
    await page.goto(`${url}/ACM/issues`)
    await page.getByRole('row').nth(1).waitFor(wait)
    await page.locator('[data-line=live]').first().waitFor({ ...wait, state: 'attached' })
    const held = []
    const lists = /\/api\/companies\/[^/]+\/issues\?/
    await page.route(lists, (route) => { held.push(route) })
    await ask(url, `/api/companies/${company.id}/issues`, 'POST', { title: 'Before its list', status: 'todo', priority: 'high' })
    await page.getByRole('row', { name: /Before its list.*high/ }).waitFor(wait)
    await page.unroute(lists)
    for (const route of held) await route.continue().catch(() => {})
  },
  // Each page is opened once, from the one before it as a link does, and looked at three times: a load of its own takes three
  // times as much of the processor. What no step before loaded by its address is loaded here.
  async 'every page fits a phone and a 4K screen, axe finds nothing serious, a screen reader is told it in order, and nothing moves for who wants no motion'() {
    const { addresses } = await addressesOf(url, 'ACM')
    const still = () => page.waitForFunction(() => document.querySelector('main:not([data-before])') && !document.querySelector('[aria-busy=true]'), undefined, wait)
    const load = async (address) => {
      await page.goto(url + address, { waitUntil: 'domcontentloaded' })
      await still()
    }
    const go = async (address) => {
      await page.evaluate((to) => {
        document.querySelector('main').dataset.before = '' // the main part of the next page is another
        history.pushState({}, '', to)
        dispatchEvent(new PopStateEvent('popstate', { state: {} }))
      }, address)
      await still()
    }
    const resized = (width, height) => page.setViewportSize({ width, height }).then(() => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))))
    const desk = () => resized(1440, 900)
    const bad = []
    const axe = async (address) => bad.push(...(await faultsOf(page)).map((f) => `axe found ${address}: ${f}`))
    const listen = async (address) => bad.push(...stumbles(await heard(page)).map((s) => `who listens would stumble ${address}: ${s}`))
    await load('/ACM/issues/ACM-2')
    for (const { address, path } of addresses) {
      await page.setViewportSize({ width: 360, height: 740 })
      await (wasLoaded(path) ? go : load)(address)
      const narrow = await over(page)
      if (narrow > 0) bad.push(`${address} is ${narrow} px wider than a phone`)
      await resized(3840, 2160)
      const { smallest, right } = await drawn(page)
      const wider = await over(page)
      if (wider > 0) bad.push(`${address} is ${wider} px wider than a 4K screen`)
      if (smallest < 18) bad.push(`${address} has text of ${smallest} px on a 4K screen`)
      if (right < (/start|sign-in|import/.test(address) ? 0.25 : /agents$/.test(address) ? 0.2 : 0.6)) bad.push(`${address} ends at ${Math.round(right * 100)} % of a 4K screen`)
      await desk()
      await still()
      const moving = await page.evaluate(() => document.getAnimations().filter((a) => a.playState === 'running' && a.effect.getComputedTiming().duration > 10).length)
      if (moving > 0) bad.push(`${moving} parts of ${address} move for who wants no motion`)
      await axe(address)
      await listen(address)
    }
    for (const address of ['/sign-in', '/ACM/issues?view=board', '/ACM/issues?show=ACM-1']) {
      await load(address)
      await axe(address)
      if (address.includes('show=')) await listen(address)
    }
    const wide = async (what) => (await what.boundingBox()).width
    await resized(3840, 2160)
    must((await wide(page.getByRole('complementary', { name: 'Survey comments' }))) > 690, 'the drawer does not grow')
    must((await wide(page.getByRole('navigation', { name: 'Main' }))) > 340, 'the rail does not grow')
    await page.keyboard.press('c')
    must((await wide(page.getByRole('dialog'))) > 620, 'a dialog does not grow')
    await page.keyboard.press('Escape')
    await desk()
    must(bad.length === 0, bad.join('\n'))
    await page.goto(`${url}/ACM/issues/ACM-1`)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    const said = asSpoken(await heard(page))
    let from = -1
    for (const line of ['navigation: Main', 'link: Inbox', 'main', 'heading 1: Survey comments', 'heading 2: Thread', 'textbox: Write a comment…', 'complementary: Properties']) {
      const next = said.findIndex((s, i) => i > from && s.startsWith(line))
      must(next > from, `after "${said[from]}" nobody says "${line}":\n${said.join('\n')}`)
      from = next
    }
  },
  async 'the page runs its own scripts alone, and no page of another site may frame it'() {
    const answer = await page.request.get(`${url}/ACM/issues`)
    const { 'content-security-policy': policy, 'x-frame-options': frames, 'x-content-type-options': sniff } = answer.headers()
    must(policy.includes("default-src 'none'") && policy.includes("script-src 'self';") && policy.includes("frame-ancestors 'none'") && !policy.includes('unsafe'), `the policy is ${policy}`)
    must(frames === 'DENY' && sniff === 'nosniff', `X-Frame-Options is ${frames}, X-Content-Type-Options ${sniff}`)
    const other = await context.newPage()
    await other.route('http://other.test/', (route) => route.fulfill({ contentType: 'text/html', body: `<iframe src="${url}/"></iframe>` }))
    await other.goto('http://other.test/')
    await other.waitForFunction(() => document.querySelector('iframe'))
    for (let i = 0; !other.frames()[1]?.url().startsWith('chrome-error:'); i++) {
      must(i < 1_800, `the frame shows ${other.frames()[1]?.url()}`)
      await other.waitForTimeout(50)
    }
    await other.close()
    await page.goto(`${url}/ACM`)
    const refused = await page.evaluate(() => new Promise((done) => {
      addEventListener('securitypolicyviolation', (e) => done(e.effectiveDirective))
      const script = document.createElement('script')
      script.textContent = 'window.ran = true'
      document.body.append(script)
      setTimeout(() => done(window.ran ? 'it ran' : 'nothing'), 3_000)
    }))
    must(refused === 'script-src-elem', `an inline script: ${refused}`)
    wrong.splice(0, wrong.length, ...wrong.filter((w) => !w.includes('Content Security Policy') && !w.includes('other.test')))
    must(wrong.length === 0, `the page had faults:\n${wrong.join('\n')}`)
  },
  async 'a browser that is offline says how old the page is, and goes on by itself'() {
    await page.goto(`${url}/ACM/issues/ACM-1`)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    await page.locator('[data-line=live]').first().waitFor({ ...wait, state: 'attached' })
    await context.setOffline(true)
    await page.getByRole('alert').filter({ hasText: /does not answer\. What is on screen is \d+:\d\d old\./ }).waitFor(wait)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    await context.setOffline(false)
    await page.getByRole('alert').filter({ hasText: 'does not answer' }).waitFor({ ...wait, state: 'detached' })
    const issue = await ask(url, '/api/issues/ACM-1')
    await ask(url, `/api/issues/${issue.id}/comments`, 'POST', { body: 'After the break' })
    await page.locator('[data-comment]', { hasText: 'After the break' }).waitFor(wait)
  },
  async 'a node that hears no majority says so with the age of what it shows'() {
    nodes.slice(1).forEach((n) => process.kill(n.pid, 'SIGSTOP'))
    try {
      await page.getByRole('alert').filter({ hasText: /n1 hears no majority of the mesh\. It takes no changes, and what it shows is \d+:\d\d old\./ }).waitFor(wait)
    } finally {
      nodes.slice(1).forEach((n) => process.kill(n.pid, 'SIGCONT'))
    }
    await page.getByRole('alert').filter({ hasText: 'no majority' }).waitFor({ ...wait, state: 'detached' })
  },
  async 'a node that asks to join is let in by its code'() {
    // Requests come over a local network: n3 is started again with an address there. No multicast is sent: lo is never used for it.
    const n3 = nodes[2]
    const run = (name, ...args) => {
      const child = spawn(bin, ['up', '--dir', join(dir, name), '--name', name, ...args])
      child.said = ''
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (d) => { child.said += d })
      children.push(child)
      return child
    }
    process.kill(n3.pid, 'SIGTERM')
    await until(() => ask(n3.http, '/board.json').then(() => false, () => true), 'n3 does not end')
    const again = run('n3', '--mdns', 'lo', '--http', new URL(n3.http).host, '--mesh', `0.0.0.0:${n3.mesh.split(':')[1]}`)
    await until(() => ask(n3.http, '/board.json').then(() => true, () => false), 'n3 does not serve again')
    n3.pid = again.pid
    const { id } = await ask(url, '/api/v1/mesh')
    const at = Number(port)
    const other = await context.newPage()
    await other.goto(`${n3.http}/mesh/nodes`)
    const stranger = run('n5', '--mdns', 'off', '--mesh-id', id, '--seed', `127.0.0.1:${n3.mesh.split(':')[1]}`, '--http', `127.0.0.1:${at}`, '--mesh', `127.0.0.1:${at + 1}`)
    const ask5 = other.locator('[data-request]', { hasText: 'n5' })
    await ask5.getByRole('button', { name: 'Refuse' }).click()
    await ask5.waitFor({ ...wait, state: 'detached' })
    must(!(await ask(url, '/api/v1/mesh/members')).some((m) => m.name === 'n5'), 'the node that was refused is a member')
    stranger.kill('SIGKILL')
    await until(() => stranger.exitCode !== null || stranger.signalCode !== null, 'the node that was refused does not end')
    const fourth = run('n4', '--mdns', 'off', '--mesh-id', id, '--seed', `127.0.0.1:${n3.mesh.split(':')[1]}`, '--http', `127.0.0.1:${at}`, '--mesh', `127.0.0.1:${at + 1}`)
    const ask4 = other.locator('[data-request]', { hasText: 'n4' })
    await ask4.waitFor(wait)
    const code = await ask4.locator('[data-code]').innerText()
    await until(() => fourth.said.includes(code), `the page shows the code ${code}; the node said: ${fourth.said}`)
    await ask4.getByRole('button', { name: 'Approve' }).click()
    await other.getByRole('row', { name: /n4.*alive/ }).waitFor(wait)
    await other.close()
  },
  async 'a node is revoked, after what that means was read'() {
    await page.goto(`${url}/mesh/nodes?show=n4`)
    const drawer = page.getByRole('complementary', { name: 'n4' })
    await drawer.getByRole('button', { name: 'Revoke' }).click()
    const box = page.getByRole('dialog')
    await box.getByRole('listitem').nth(1).waitFor(wait)
    await box.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog', { name: 'n4 is out' }).getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('row', { name: /n4.*revoked/ }).waitFor(wait)
    must((await ask(url, '/api/v1/mesh/members')).some((m) => m.name === 'n4' && m.status === 'revoked'), 'the node is not revoked')
  },
  async 'the node dies, and the page goes on at another node of the mesh'() {
    await page.goto(`${url}/ACM/issues/ACM-1`)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    await page.locator('[data-line=live]').first().waitFor({ ...wait, state: 'attached' })
    // n3 was away, and may have to earn its vote again.
    await until(() => ask(url, '/api/v1/mesh/autopilot').then((p) => p.failureTolerance > 0), 'no node may die')
    process.kill(Number(pid), 'SIGKILL')
    const before = new URL(url).port
    await page.waitForURL((u) => u.port !== before && u.pathname === '/ACM/issues/ACM-1', { timeout: 120_000 })
    await page.getByText(/was lost\. n\d serves this page now\./).first().waitFor(wait)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    next = new URL(page.url()).origin
    await until(() => ask(next, '/api/v1/mesh').then((m) => m.quorum, () => false), 'the others elect no leader')
    // An election may take longer than the page has patience: what was refused is in the box again.
    const box = page.getByLabel('Write a comment…')
    await box.fill('We went on')
    await until(async () => {
      if ((await box.inputValue()) === 'We went on') await box.press('Control+Enter')
      return (await ask(next, '/api/issues/ACM-1/comments').catch(() => [])).some((c) => c.body === 'We went on')
    }, 'the comment never reached the other node')
    await page.getByRole('article').filter({ hasText: 'We went on' }).waitFor(wait)
  },
  async 'where people sign in, the first one claims the mesh with its code'() {
    await page.goto(`${next}/mesh/settings`)
    await page.getByRole('button', { name: 'Ask people to sign in' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Ask people to sign in' }).click()
    await page.waitForURL(/\/sign-in/, wait).catch(() => {})
    await page.goto(next)
    await page.waitForURL(/\/sign-in/, wait)
    await page.getByText('This mesh has no administrator yet').waitFor(wait)
    await page.getByLabel('Your name').fill('Ann')
    await page.getByLabel('Email').fill('ann@example.com')
    await page.getByLabel('Password').fill('correct horse battery')
    await page.getByRole('button', { name: 'Make an account' }).click()
    await page.getByLabel('Claim code').fill(readFileSync(join(nodes.find((n) => n.http === next).dir, 'claim-code'), 'utf8').trim())
    await page.getByRole('button', { name: 'Become administrator' }).click()
    await page.getByText('Needs you').first().waitFor(wait)
  },
  async 'a second person joins by an invite, and may do less'() {
    await page.goto(`${next}/ACM`)
    await page.getByText('Needs you').first().waitFor(wait)
    const path = await page.evaluate(async () => {
      const company = (await (await fetch('/api/companies')).json()).find((c) => c.issuePrefix === 'ACM')
      const made = await fetch(`/api/companies/${company.id}/invites`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ allowedJoinTypes: 'human', humanRole: 'viewer' }) })
      return (await made.json()).invitePath
    })
    const theirs = await chrome.newContext({ locale: 'en-GB', timezoneId: 'UTC', viewport: { width: 1440, height: 900 } })
    await press.follow(theirs)
    const bob = await theirs.newPage()
    await bob.goto(next + path)
    await bob.getByRole('heading', { name: 'Join Acme Survey' }).waitFor(wait)
    await bob.getByRole('link', { name: 'Sign in, or make an account' }).click()
    await bob.getByRole('button', { name: 'I have no account' }).click()
    await bob.getByRole('button', { name: 'I have an account' }).click()
    await bob.getByRole('button', { name: 'I have no account' }).click()
    await bob.getByLabel('Your name').fill('Bob')
    await bob.getByLabel('Email').fill('bob@example.com')
    await bob.getByLabel('Password').fill('another horse battery')
    await bob.getByRole('button', { name: 'Make an account' }).click()
    await bob.getByRole('button', { name: 'Join' }).click()
    await bob.waitForURL(/\/ACM$/, wait)
    await bob.goto(`${next}/ACM/issues/ACM-1`)
    await bob.getByLabel('Write a comment…').fill('May I?')
    await bob.keyboard.press('Control+Enter')
    await bob.getByText(/Viewer access is read-only/).first().waitFor(wait)
    must((await bob.getByLabel('Write a comment…').inputValue()) === 'May I?', 'the text that was refused is lost')
    await bob.goto(`${next}/mesh/nodes`)
    await bob.getByText(/Instance admin required/).first().waitFor(wait)
    await page.goto(`${next}/ACM/issues/ACM-1`)
    await page.getByLabel('Write a comment…').fill('I may')
    await page.keyboard.press('Control+Enter')
    await bob.goto(`${next}/ACM/issues/ACM-1`)
    await bob.getByRole('article').filter({ hasText: 'I may' }).waitFor(wait)
    await theirs.close()
    const again = await chrome.newContext({ locale: 'en-GB', timezoneId: 'UTC' })
    await press.follow(again)
    const back = await again.newPage()
    await back.goto(`${next}/sign-in`)
    await back.getByLabel('Email').fill('bob@example.com')
    await back.getByLabel('Password').fill('another horse battery')
    await back.getByRole('button', { name: 'Sign in', exact: true }).click()
    await back.waitForURL((u) => !u.pathname.startsWith('/sign-in'), wait)
    await again.close()
    await page.goto(`${next}/ACM/company/settings/members`)
    const box = page.getByRole('dialog')
    const act = async (item) => {
      await page.getByRole('button', { name: 'Actions Bob' }).click()
      await page.getByRole('menuitem', { name: item, exact: true }).click()
    }
    await act('Rights…')
    await box.getByRole('button', { name: 'Cancel' }).click()
    await act('Rights…')
    await box.getByRole('checkbox').first().check()
    await box.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The rights of Bob are changed').waitFor(wait)
    await act('Suspend')
    await page.getByRole('row', { name: /Bob.*suspended/ }).waitFor(wait)
    await act('Let work again')
    await page.getByRole('row', { name: /Bob.*active/ }).waitFor(wait)
    await act('Remove')
    await box.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('row', { name: /Bob.*active/ }).waitFor({ ...wait, state: 'detached' })
  },
}

for (const [name, step] of Object.entries(steps)) {
  if (process.env.SKIP && new RegExp(process.env.SKIP).test(name)) continue
  const began = Date.now()
  try {
    await step()
    console.log(`ok: ${((Date.now() - began) / 1000).toFixed(1)} s ${name}`)
  } catch (error) {
    console.error(`failed: ${name}: ${error.message}\nat ${page.url()}\n${wrong.join('\n')}\n${(await page.locator('body').innerText().catch(() => '')).slice(0, 2000)}`)
    if (!process.env.KEEP) process.exit(1)
  }
}
const never = press.never()
const stale = press.stale()
if (!process.env.SKIP && never.length + stale.length > 0) {
  console.error(`failed: of ${press.all} buttons no step presses:\n${never.join('\n')}\nno button any more, but in the table of pressed.mjs:\n${stale.join('\n')}`)
  process.exit(1)
}
console.log(`ok: ${press.all - never.length - press.excused} of ${press.all} buttons are pressed, ${press.excused} have a reason not to be${process.env.SKIP ? `; not:\n${never.join('\n')}` : ''}`)
await chrome.close()
process.exit() // the nodes that it started would keep it
