// What the steps of testnet/board work a page with: its parts by name, and what a node has in the end.
export function hands({ page, url, ask, must }) {
  const company = async () => (await ask(url, '/api/companies')).find((c) => c.issuePrefix === 'ACM')
  const of = async () => `/api/companies/${(await company()).id}`
  const dialog = page.getByRole('dialog')
  const drawer = page.getByRole('complementary')
  const button = (name, options = {}) => page.getByRole('button', { name, exact: true, ...options })
  const menu = async (opener, item) => {
    await page.getByRole('button', { name: opener }).last().click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }
  /** until asks a node again until what it answers is as wanted. */
  const until = async (path, good, what) => {
    for (let i = 0; ; i++) {
      const answer = await ask(url, path)
      if (good(answer)) return answer
      must(i < 1_800, `${what}: the node has ${JSON.stringify(answer).slice(0, 500)}`)
      await page.waitForTimeout(100)
    }
  }
  return { company, of, dialog, drawer, button, menu, until }
}
