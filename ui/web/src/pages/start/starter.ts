// The companies that come with the program: each is a package, read file by file and imported as any other.
import { get, post, type Schemas } from '../../http'

export type Team = Schemas['ApiCatalogTeam']

/** filesOf reads the files of a starter's package. */
export async function filesOf(team: Team): Promise<Record<string, string>> {
  const files = await Promise.all(team.files.map((f) => get('/api/teams/catalog/{catalogId}/files', { path: { catalogId: team.id }, query: { path: f.path } })))
  return Object.fromEntries(files.map((f) => [f.path, f.content]))
}

/** begin makes a company of a starter, under a name of its own where one is given. */
export async function begin(team: Team, name: string): Promise<{ id: string; name: string }> {
  const source = { type: 'inline', rootPath: team.slug, files: await filesOf(team) }
  const target = { mode: 'new_company', ...(name === '' ? {} : { newCompanyName: name }) }
  const done = (await post('/api/companies/import', {}, { source, target, agents: 'all', collisionStrategy: 'rename' })) as unknown as Schemas['ApiImported']
  return done.company
}
