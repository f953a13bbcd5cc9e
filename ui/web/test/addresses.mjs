// The addresses of all pages, read from the table of pages so that a new page is taken too, with what a company has for
// their parameters. Pages of which the company has nothing are left out.
import { readFileSync } from 'node:fs'
import { ask } from './browser.mjs'

export async function addressesOf(url, prefix) {
  const table = readFileSync(new URL('../src/pages/table.ts', import.meta.url), 'utf8')
  const paths = [...table.matchAll(/path: '([^']+)'/g)].map((m) => m[1])
  const named = { $amendment: (await ask(url, '/api/v1/govern/amendments'))[0]?.id }
  if (prefix !== '-') {
    const company = (await ask(url, '/api/companies')).find((c) => c.issuePrefix === prefix)
    if (!company) throw new Error(`no company has the prefix ${prefix}`)
    const first = async (what, key) => (await ask(url, `/api/companies/${company.id}/${what}`))?.[0]?.[key]
    Object.assign(named, {
      $company: prefix, $issue: await first('issues?sortField=updated&limit=1', 'identifier'), $agent: await first('agents', 'urlKey'), $routine: await first('routines', 'id'),
      $project: await first('projects', 'id'), $approval: await first('approvals', 'id'), $run: await first('heartbeat-runs', 'id'), $skill: await first('skills', 'id'),
    })
  }
  return {
    named,
    addresses: paths.flatMap((path) => {
      const address = path.replace(/\$\w+/g, (name) => named[name] ?? '$')
      const name = path.replace('/$company', '').replace(/\/\$\w+/g, '-one').replace(/^\//, '').replace(/\//g, '-') || 'home'
      return address.includes('$') ? [] : [{ name, address, path }]
    }),
  }
}
