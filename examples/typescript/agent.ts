// An agent in thirty lines: it counts the words of its issue, says so, and closes it.
// Node 22 or newer runs it as it is: node agent.ts
const env = (name: string): string => process.env["PAPERCLIP_" + name] ?? fail(`PAPERCLIP_${name} is not set`);

function fail(why: string): never {
  console.error(why);
  process.exit(1);
}

interface Issue { id: string; identifier: string; title: string; description: string | null }

// Asks the node's API with the token of this run.
async function call<T>(method: string, path: string, body?: object): Promise<T> {
  const answer = await fetch(env("API_URL") + path, { method, body: body && JSON.stringify(body), signal: AbortSignal.timeout(30_000),
    headers: { Authorization: "Bearer " + env("API_KEY"), "X-Paperclip-Run-Id": env("RUN_ID"), "Content-Type": "application/json" } });
  if (!answer.ok) fail(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

async function work(issue: Issue): Promise<void> {
  await call("POST", `/api/issues/${issue.id}/checkout`, { agentId: env("AGENT_ID"), expectedStatuses: ["todo", "in_progress"] });
  const words = `${issue.title} ${issue.description ?? ""}`.trim().split(/\s+/).length;
  await call("POST", `/api/issues/${issue.id}/comments`, { body: `This issue has ${words} words.` });
  await call("PATCH", `/api/issues/${issue.id}`, { status: "done" });
  console.log(issue.identifier, "is done"); // standard output is the run's log
}

const mine = `/api/companies/${env("COMPANY_ID")}/issues?assigneeAgentId=${env("AGENT_ID")}&status=todo,in_progress`;
for (const issue of await call<Issue[]>("GET", mine)) await work(issue);
