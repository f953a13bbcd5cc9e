// node test/seed.mjs URL [AGENTS ISSUES]: founds a company with agents, projects, goals, routines, labels and issues in
// all states, and an empty one beside it; prints the prefixes of both.
import { ask } from './browser.mjs'

const [url, agentCount = '40', issueCount = '600'] = process.argv.slice(2)
const firsts = ['Ada', 'Bo', 'Cleo', 'Dov', 'Ema', 'Finn', 'Gil', 'Hana', 'Ivo', 'June', 'Kai', 'Lena', 'Milo', 'Nora', 'Otis', 'Pia', 'Quin', 'Rosa', 'Sven', 'Tess']
const roles = ['engineer', 'designer', 'qa', 'researcher', 'devops', 'pm']
const verbs = ['Survey', 'Measure', 'Write down', 'Test', 'Translate', 'Compare', 'Mend', 'Review', 'Plan', 'Draw']
const things = ['open markers in the north', 'comments of the last release', 'the import of old tables', 'how long a build takes', 'the guide for new people', 'the limits of uploads', 'names that nobody reads', 'the map of the harbour', 'prices of the three vendors', 'tests that fail now and then']
const states = ['backlog', 'todo', 'done', 'todo', 'in_progress', 'done', 'in_review', 'done', 'blocked', 'done', 'cancelled']
// An assignment wakes nobody: the company is a picture of itself, and its runs are the four below.
const asleep = { heartbeat: { enabled: false, wakeOnDemand: false } }

/** inParallel does f for each of n numbers, so many at once. */
async function inParallel(n, atOnce, f) {
  const out = Array(n)
  let next = 0
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < n) {
      const i = next++
      out[i] = await f(i)
    }
  }))
  return out
}

const post = (path, body) => ask(url, path, 'POST', body)
const company = await post('/api/companies', { name: 'Harbour Survey', description: 'Keep every chart of the harbour right.', budgetMonthlyCents: 50000 })
const of = `/api/companies/${company.id}`
const empty = await post('/api/companies', { name: 'Quiet Office' })

const lead = await post(`${of}/agents`, { name: 'Mara', role: 'ceo', title: 'Leads the survey', adapterType: 'process', adapterConfig: { command: 'sleep', args: ['600'] }, runtimeConfig: asleep })
const heads = await inParallel(4, 4, (i) => post(`${of}/agents`, { name: `${firsts[i]} Head`, role: roles[i], reportsTo: lead.id, adapterType: 'process', adapterConfig: { command: 'sh', args: ['-c', 'for i in $(seq 1 900); do echo "sounding $i: $((i % 17)) m"; sleep 1; done'] } }))
const rest = await inParallel(Math.max(0, Number(agentCount) - 5), 8, (i) => post(`${of}/agents`, { name: `${firsts[i % 20]} ${String.fromCharCode(65 + (i % 26))}.`, role: roles[i % 6], reportsTo: heads[i % 4].id, adapterType: 'process', adapterConfig: { command: 'true' }, runtimeConfig: asleep, budgetMonthlyCents: i % 12 === 4 ? 2000 : 0 }))
const agents = [lead, ...heads, ...rest]
const workers = [lead, ...rest]
const goal = await post(`${of}/goals`, { title: 'All charts of the harbour are right', level: 'company', status: 'active' })
for (const [i, title] of ['Every basin is sounded this year', 'Old notes are checked', 'New people find their way'].entries()) {
  const part = await post(`${of}/goals`, { title, level: 'team', status: i === 2 ? 'planned' : 'active', parentId: goal.id, ownerAgentId: heads[i].id })
  await inParallel(2, 2, (j) => post(`${of}/goals`, { title: [['North basin', 'South basin'], ['Notes before 2000', 'Notes since 2000'], ['A guide', 'A glossary']][i][j], level: 'task', status: j === 0 ? 'achieved' : 'active', parentId: part.id }))
}
const projects = await inParallel(3, 3, (i) => post(`${of}/projects`, { name: ['North basin', 'Old archive', 'Guide'][i], description: ['Soundings and charts of the north basin.', 'What the notes of forty years still say.', 'What new people read first.'][i], goalIds: [goal.id], leadAgentId: heads[i].id, status: 'in_progress', targetDate: ['2027-03-31', '2027-06-30', '2027-01-31'][i] }))
let first // an issue that others wait for
const labels = await inParallel(4, 4, (i) => post(`${of}/labels`, { name: ['chart', 'safety', 'paper work', 'field trip'][i], color: ['#0f766e', '#b91c1c', '#6b7280', '#2563eb'][i] }))
const makeIssue = async (i) => {
  const status = i > 100 && states[i % states.length] === 'blocked' ? 'in_progress' : states[i % states.length]
  const agent = workers[(i * 7) % workers.length]
  const issue = await post(`${of}/issues`, { title: `${verbs[i % 10]} ${things[(i * 3 + Math.floor(i / 10)) % 10]}`, description: i % 4 === 0 ? undefined : `What is there now, **what is wrong**, and a proposal.\n\n- read the notes of \`2024\`\n- ask the harbour master\n- write a table`,
    priority: ['low', 'medium', 'medium', 'high', 'low', 'medium', 'critical'][i % 7], status: 'backlog', projectId: projects[i % 3].id, goalId: goal.id, labelIds: i % 3 === 0 ? [labels[i % 4].id] : [], allowDuplicate: true })
  if (status === 'blocked') await ask(url, `/api/issues/${issue.id}`, 'PATCH', { status, assigneeAgentId: agent.id, blockedByIssueIds: first ? [first] : [] })
  else if (status !== 'backlog') await ask(url, `/api/issues/${issue.id}`, 'PATCH', { status, ...(i % 6 === 5 && status === 'todo' ? {} : { assigneeAgentId: agent.id }) })
  first ??= issue.id
  return issue
}
const issues = [await makeIssue(0), ...await inParallel(Number(issueCount) - 1, 16, (i) => makeIssue(i + 1))]
await inParallel(12, 6, (i) => post(`/api/issues/${issues[i * 3].id}/comments`, { body: `I looked at the notes. The depth at buoy ${i + 1} is **${3 + i} m**, not ${4 + i} m.\n\n| buoy | chart | found |\n|---|---|---|\n| ${i + 1} | ${4 + i} | ${3 + i} |` }))
await inParallel(5, 5, (i) => post(`${of}/approvals`, { type: 'request_board_approval', requestedByAgentId: agents[i].id, payload: { ...[{ title: 'Buy soundings of basin 3', summary: 'The old ones are from 1998. They cost US$240.' }, { title: 'Publish the map of the harbour', summary: 'All three basins are checked.' }, { title: 'Close the old archive', summary: 'Nobody has read it since spring; a copy stays.' }, { title: 'Ask the pilots about buoy 7', summary: 'Two notes say different depths.' }, { title: 'Use the larger model for reviews', summary: 'It finds twice as many mistakes, at four times the price.' }][i], recommendedAction: 'Approve' } }))
await inParallel(4, 4, (i) => ask(url, `/api/issues/${issues[i * 11 + 3].id}`, 'PATCH', { assigneeAgentId: heads[i].id })) // which wakes them
await ask(url, `/api/agents/${rest[3].id}/pause`, 'POST', {})

// An agent that writes as command-line agents do, money of two weeks, a limit that stops, and what waits on an issue.
const said = [
  { type: 'system', subtype: 'init', model: 'survey-1', session_id: 's1' },
  { type: 'assistant', message: { id: 'm1', content: [{ type: 'thinking', thinking: 'The chart says 4 m. I look at the soundings first.' }, { type: 'text', text: 'I read the soundings of **basin 3** first.' }], usage: { input_tokens: 1200, output_tokens: 64 } } },
  { type: 'assistant', message: { id: 'm2', content: [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'head -20 soundings/basin3.csv' } }], usage: { input_tokens: 1400, output_tokens: 40 } } },
  { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't1', content: 'buoy,depth\n1,3.1\n2,3.4\n3,2.9\n' }] } },
  { type: 'assistant', message: { id: 'm3', content: [{ type: 'tool_use', id: 't2', name: 'Edit', input: { file_path: 'charts/basin3.md', old_string: '# Basin 3\n\ndepth: 4 m\n', new_string: '# Basin 3\n\ndepth: 2.9 m\nsounded: 2026\n' } }] } },
  { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't2', content: 'The file was changed.' }] } },
  { type: 'result', is_error: false, result: 'Basin 3 is right now.', total_cost_usd: 0.0231, usage: { input_tokens: 4100, cache_read_input_tokens: 800, output_tokens: 260 } },
]
const writer = await post(`${of}/agents`, { name: 'Wes', role: 'engineer', title: 'Draws the charts', reportsTo: lead.id, budgetMonthlyCents: 2000, adapterType: 'process', adapterConfig: { cwd: '/var/tmp', command: 'sh', args: ['-c', said.map((l) => `printf '%s\\n' '${JSON.stringify(l)}'`).join('; ')] } })
await inParallel(14, 7, (i) => post(`${of}/cost-events`, { agentId: agents[i % 6].id, provider: ['local', 'harbour', 'tide'][i % 3], model: ['survey-1', 'chart-2', 'deep-3'][i % 3], inputTokens: 12000 + i * 900, outputTokens: 800 + i * 31, costCents: 120 + i * 37, occurredAt: new Date(Date.now() - i * 86_400_000).toISOString(), projectId: projects[i % 3].id }))
await post(`${of}/budgets/policies`, { scopeType: 'agent', scopeId: rest[0].id, amount: 300, warnPercent: 80 })
for (const [i, title] of ['Sound the north basin', 'Read the notes of the week', 'Report to the harbour master'].entries()) {
  const routine = await post(`${of}/routines`, { title, assigneeAgentId: rest[i].id, projectId: projects[i].id, priority: 'medium' })
  await post(`/api/routines/${routine.id}/triggers`, { kind: 'schedule', cronExpression: ['30 6 * * 1-5', '0 17 * * 5', '0 9 1 * *'][i], timezone: 'Europe/Berlin' })
}
for (const [i, text] of ['Depths are given at **lowest tide**, as in the old charts.', 'The harbour master answers on Tuesdays and Thursdays.', 'Notes before 1987 count in feet.', 'Buoy 7 was moved twelve metres to the west in May.', 'The pilots want the map on paper, too.', 'Ask before a chart is deleted: the archive has no copy of those from 1998.'].entries()) {
  await post('/api/v1/memory', { companyId: company.id, text, kind: ['fact', 'note', 'lesson'][i % 3], tags: [['depth', 'chart'], ['people'], ['archive']][i % 3], importance: i === 0 ? 800 : 300 })
}
await post(`${of}/secrets`, { name: 'Key of the tide service', value: 'not a real key' })
await post(`${of}/skills`, { name: 'read-soundings', markdown: '---\nname: read-soundings\ndescription: How to read soundings\n---\n\n# Soundings\n\n1. Open the table of the basin.\n2. Look at the datum: it is lowest tide.\n3. Compare with the chart, and write down what differs by more than 0.3 m.\n' })
const asked = issues[1]
const ask2 = (body) => post(`/api/issues/${asked.id}/interactions`, body)
await ask2({ kind: 'ask_user_questions', title: 'Which datum?', payload: { version: 1, questions: [{ id: 'q1', prompt: 'Which datum shall the depths have?', selectionMode: 'single', required: true, options: [{ id: 'a', label: 'Lowest tide', description: 'as the old charts' }, { id: 'b', label: 'Mean sea level' }] }] } })
await ask2({ kind: 'request_confirmation', title: 'Delete the old chart?', payload: { version: 1, prompt: 'Delete `charts/1998.md`?', acceptLabel: 'Delete it', rejectLabel: 'Keep it' } })
await ask(url, `/api/issues/${asked.id}/documents/plan`, 'PUT', { format: 'markdown', title: 'Plan', body: '# Plan\n\n1. read\n2. measure\n3. write' })
const run = await post(`/api/agents/${writer.id}/wakeup`, {})
for (let i = 0; run?.id && i < 300; i++) {
  const { status } = await ask(url, `/api/heartbeat-runs/${run.id}`)
  if (!['queued', 'running'].includes(status)) break
  await new Promise((done) => setTimeout(done, 200))
}
// Rules with what they decided, a proposal that waits, messages of topics, and processes.
const amend = (body) => post('/api/v1/govern/amendments', body)
const mine = (id, severity, on, when, reason) => ({ id, title: reason.replace('{act} ', ''), branch: 'executive', severity, on, when, reason, reference: 'Harbour rules' })
const leads = await amend({ title: 'Goals and labels are for those who lead', rules: [mine('HAR-001', 'critical', ['goal.create'], 'rank == "worker"', '{act} is for those who lead'), mine('HAR-002', 'blocking', ['label.create'], 'rank == "worker"', '{act} waits for a person')] })
await post(`/api/v1/govern/amendments/${leads.id}/sign`, {})
await post(`/api/v1/govern/amendments/${leads.id}/enact`, {})
const acts = [['goals', { title: 'Map the old harbour' }], ['labels', { name: 'urgent', color: '#b91c1c' }], ['goals', { title: 'Sound the river' }]]
for (const [i, [what, body]] of acts.entries()) {
  const { token } = await post(`/api/agents/${rest[i].id}/keys`, { name: 'rules' })
  await fetch(url + `${of}/${what}`, { method: 'POST', headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body: JSON.stringify(body) }) // which the gate refuses
}
await amend({ title: 'Charts are published by two', rules: [mine('HAR-003', 'warning', ['skill.create', 'routine.create'], 'effect.risk >= 200 && !("two-people" in clearances)', '{act} wants a second person')] })
for (const [topic, message] of [['charts.north', { text: 'Basin 3 is sounded. The chart is next.' }], ['charts.north', { payload: { basin: 3, depth: 2.9, datum: 'lowest tide' } }], ['harbour.master', { text: 'Ferry 2 is late by ten minutes.' }]]) await post(`/api/v1/topics/${topic}`, { companyId: company.id, ...message })
for (const [name, cron, topic] of [['tides', '0 3 * * *', 'tides.due'], ['weekly-report', '30 8 * * 1', 'reports.due']]) {
  await ask(url, `/api/v1/cron/${name}`, 'PUT', { companyId: company.id, cron, timezone: 'Europe/Berlin', topic })
  await post(`/api/v1/cron/${name}/run?companyId=${company.id}`, {})
}
await post('/api/v1/govern/elevations', { agentId: rest[1].id, clearances: ['deploy', 'scan'], seconds: 7200, reason: 'release of the north basin' })
await post('/api/v1/govern/permits', { action: 'deploy', agent_id: rest[2].id, arguments: { service: 'charts' }, once: true, ttl_seconds: 7200, context: { company_id: company.id } })
await post('/api/v1/processes', { name: 'tide-gauge', command: ['sh', '-c', 'i=0; while :; do i=$((i+1)); echo "tide $i: $((i * 7 % 31)) dm"; sleep 2; done'] })
await ask(url, '/api/v1/declared-processes/chart-server', 'PUT', { command: ['sleep', '86400'], replicas: 2 })
const asked3 = { type: 'object', required: ['basin'], properties: { basin: { type: 'integer', title: 'Basin', minimum: 1 }, year: { type: 'integer', title: 'Year' } } }
await ask(url, '/api/v1/services/charts', 'PUT', { version: '2', provider: 'chart-server', methods: [{ name: 'find', description: 'Finds the chart of a basin', params: asked3 }, { name: 'publish', description: 'Puts a chart on the board of the harbour', params: asked3 }] })
console.log(`${company.issuePrefix} ${empty.issuePrefix}`)
