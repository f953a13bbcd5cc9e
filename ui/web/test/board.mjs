// node test/board.mjs URL PID: the steps of testnet/board. URL is a node of a mesh of three on one machine, PID its process,
// which the last step kills. Each step says what it saw; the first that does not see it ends with 1.
import { ask, browser, watch } from './browser.mjs'
import { pageSteps } from './pages.mjs'

const [url, pid] = process.argv.slice(2)
const wait = { timeout: 60_000 }

function must(ok, what) {
  if (!ok) throw new Error(what)
}

const chrome = await browser()
const context = await chrome.newContext({ locale: 'en-GB', timezoneId: 'UTC', viewport: { width: 1440, height: 900 } })
const page = await context.newPage()
// A browser writes each answer that refuses, and each node that does not answer, into its console.
const wrong = watch(page, (text) => text.startsWith('Failed to load resource'))

const steps = {
  async 'an empty mesh leads to the first company'() {
    await page.goto(url)
    await page.getByText('No company yet').first().waitFor(wait)
    await page.getByRole('button', { name: 'New company' }).click()
    await page.getByLabel('Name').fill('Acme Survey')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Needs you').first().waitFor(wait)
    must(new URL(page.url()).pathname === '/ACM', `the company is at ${page.url()}`)
  },
  async 'a key opens the dialog, and the issue that it makes has its page'() {
    await page.keyboard.press('c')
    await page.getByLabel('Title').fill('Survey comments')
    await page.keyboard.press('Control+Enter')
    await page.waitForURL(/\/ACM\/issues\/ACM-1$/, wait)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    const [company] = await ask(url, '/api/companies')
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
      must(i < 100, 'the node never took the status')
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
    const [company] = await ask(url, '/api/companies')
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
    const [company] = await ask(url, '/api/companies')
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
    const [company] = await ask(url, '/api/companies')
    const [agent] = await ask(url, `/api/companies/${company.id}/agents`)
    await ask(url, `/api/companies/${company.id}/cost-events`, 'POST', { agentId: agent.id, provider: 'local', model: 'm-1', inputTokens: 100, outputTokens: 10, costCents: 125, occurredAt: new Date().toISOString() })
    await page.goto(`${url}/ACM/costs`)
    await page.getByRole('row', { name: /^Total/ }).getByText('1.25').waitFor(wait)
    await page.getByRole('button', { name: 'Set a limit' }).click()
    await page.getByLabel('New limit in dollars').fill('20')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText(/at the end at this rate/).first().waitFor(wait)
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
      must(i < 100, `the node has ${issue.status}, ${issue.assigneeAgentId}`)
      await page.waitForTimeout(100)
    }
  },
  ...pageSteps({ page, url, ask, must, wait }),
  async 'an address of the specification opens the page'() {
    const [company] = await ask(url, '/api/companies')
    await page.goto(`${url}/companies/${company.id}/tasks`)
    await page.waitForURL(/\/ACM\/issues$/, wait)
  },
  async 'no page of another site may frame or be loaded'() {
    const policy = (await page.request.get(url)).headers()['content-security-policy']
    must(policy.includes("frame-ancestors 'none'") && !policy.includes('unsafe'), `the policy is ${policy}`)
    must(wrong.length === 0, `the page had faults:\n${wrong.join('\n')}`)
  },
  async 'the node dies, and the page goes on at another node of the mesh'() {
    await page.goto(`${url}/ACM/issues/ACM-1`)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    await page.locator('[data-line=live]').first().waitFor({ ...wait, state: 'attached' })
    process.kill(Number(pid), 'SIGKILL')
    const before = new URL(url).port
    await page.waitForURL((u) => u.port !== before && u.pathname === '/ACM/issues/ACM-1', { timeout: 120_000 })
    await page.getByText(/was lost\. n\d serves this page now\./).first().waitFor(wait)
    await page.getByRole('heading', { name: 'Survey comments' }).waitFor(wait)
    await page.getByLabel('Write a comment…').fill('We went on')
    await page.keyboard.press('Control+Enter')
    await page.getByRole('article').filter({ hasText: 'We went on' }).waitFor(wait)
    const at = new URL(page.url()).origin
    for (let i = 0; ; i++) {
      const comments = await ask(at, '/api/issues/ACM-1/comments').catch(() => [])
      if (comments.some((c) => c.body === 'We went on')) break
      must(i < 300, 'the comment never reached the other node')
      await page.waitForTimeout(200)
    }
  },
}

for (const [name, step] of Object.entries(steps)) {
  try {
    await step()
    console.log(`ok: ${name}`)
  } catch (error) {
    console.error(`failed: ${name}: ${error.message}\nat ${page.url()}\n${wrong.join('\n')}\n${(await page.locator('body').innerText().catch(() => '')).slice(0, 2000)}`)
    process.exit(1)
  }
}
await chrome.close()
