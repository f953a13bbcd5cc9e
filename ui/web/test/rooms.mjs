// Steps of testnet/board for the pages of governance and of the kernel. They run in the company ACM, which has the agent
// Wes of the adapter process; each says what it saw.
export function roomSteps({ page, url, ask, must, wait }) {
  const company = async () => (await ask(url, '/api/companies')).find((c) => c.issuePrefix === 'ACM')
  const dialog = page.getByRole('dialog')
  const drawer = page.getByRole('complementary')
  const button = (name) => page.getByRole('button', { name, exact: true })

  return {
    async 'a rule is tried on the last acts, proposed, signed and brought into force'() {
      await page.goto(`${url}/mesh/constitution`)
      await page.getByRole('row', { name: /GOV-001 judicial blocking/ }).waitFor(wait)
      await button('New rule').click()
      await page.getByLabel('ID').fill('ACM-1')
      await page.getByLabel('Branch').selectOption('executive')
      await page.getByLabel('Severity').selectOption('critical')
      await page.getByLabel('Predicate').fill('rank == ')
      await page.getByLabel('Asked about').fill('goal.create')
      await page.getByLabel('Reason').fill('{act} is for managers')
      await button('Try it').click()
      await page.getByRole('alert').getByText('ACM-1').first().waitFor(wait)
      await page.getByLabel('Predicate').fill('rank == "board"')
      await button('Try it').click()
      await page.locator('[data-review]').getByText(/^It would have denied [1-9]\d* of \d+/).waitFor(wait)
      await page.getByLabel('Predicate').fill('rank != "board"')
      await button('Propose').click()
      await page.waitForURL(/\/mesh\/amendments\/1$/, wait)
      await page.locator('[data-change="ACM-1"]').getByText('rank != "board"').waitFor(wait)
      await page.locator('[data-review]').getByText(/^It would have denied \d+ of \d+/).waitFor(wait)
      await button('Sign as administrator').click()
      await button('Bring into force').click()
      await dialog.getByRole('button', { name: 'Bring into force' }).click()
      await page.getByText('in force', { exact: true }).waitFor(wait)
      const now = await ask(url, '/api/v1/govern/rules')
      must(now.version === 2 && now.rules.some((r) => r.id === 'ACM-1'), `version ${now.version} is in force`)
    },
    async 'a denial is seen with its effect and the rule that spoke, and is decided again'() {
      const { id } = await company()
      const wes = (await ask(url, `/api/companies/${id}/agents`)).find((a) => a.name === 'Wes')
      const { token } = await ask(url, `/api/agents/${wes.id}/keys`, 'POST', { name: 'rules' })
      const refused = await fetch(`${url}/api/companies/${id}/goals`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: '{"title":"Grow"}' })
      must(refused.status === 403, `the act was answered with ${refused.status}`)
      await page.goto(`${url}/mesh/decisions`)
      await page.getByRole('row', { name: /deny goal\.create Wes Effect: risk 0\.\d/ }).click()
      await drawer.getByRole('link', { name: 'ACM-1' }).waitFor(wait)
      await drawer.getByText('Goal create is for managers').first().waitFor(wait)
      await drawer.getByRole('button', { name: 'Decide again' }).click()
      await page.getByText('Decided again: bit for bit the same').waitFor(wait)
    },
    async 'the resource tree is opened to a company, and says who may do what there'() {
      await page.goto(`${url}/mesh/tree`)
      await page.getByRole('treeitem', { name: /^companies/ }).press('ArrowRight')
      await page.getByRole('treeitem', { name: /^Acme Survey/ }).click()
      await page.waitForURL(/path=%2Fcompanies%2F/, wait)
      await page.getByRole('textbox', { name: 'Who' }).fill('user:nobody')
      await button('Ask').click()
      await page.getByText('user:nobody may not read').waitFor(wait)
      await button('New grant').click()
      await dialog.getByLabel('Who *').fill('user:nobody')
      await dialog.getByLabel('Role *').selectOption('viewer')
      await dialog.getByRole('button', { name: 'Create' }).click()
      await page.getByRole('list', { name: 'Grants' }).getByText('user:nobody').waitFor(wait)
      await button('Ask').click()
      await page.getByText('user:nobody may read').waitFor(wait)
      await button('Take back').click()
      await page.getByText('No grant here or below').waitFor(wait)
    },
  }
}
