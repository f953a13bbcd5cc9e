// An external adapter of Paperclip: its agents' issues are done by agents of a Selvage mesh. For each issue the mesh's gate
// is asked whether it should be done; the mesh's budget and chain hold for the work, and what it used is reported back.

import { Kernel, KernelError, readJSON } from "./kernel.js";

export { Kernel, KernelError };

const MAX_TASK = 100_000; // characters; the kernel takes no more
const MAX_RESULT = 48 << 10; // characters of a result that become a comment
const MAX_TASKS = 10; // issues of one run
const DEFAULT_URL = "http://127.0.0.1:9820";

const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const text = (v) => (typeof v === "string" ? v.trim() : "");
const number = (v, otherwise) => (Number.isFinite(Number(v)) && v !== null && v !== "" ? Number(v) : otherwise);

/** Reads adapterConfig; what it lacks comes from WEFTOS_BASE_URL, WEFTOS_API_KEY and WEFTOS_GOVERNANCE of the agent or the server. */
export function settings(config = {}, agentName = "") {
	const env = { ...process.env };
	for (const [name, value] of Object.entries(config.env ?? {})) if (typeof value === "string") env[name] = value;
	const governed = config.governanceEnabled ?? env.WEFTOS_GOVERNANCE ?? true;
	return {
		baseUrl: text(config.baseUrl) || text(config.base_url) || text(env.WEFTOS_BASE_URL) || DEFAULT_URL,
		token: text(config.token) || text(config.apiKey) || text(env.WEFTOS_API_KEY),
		agentId: text(config.agentId) || agentName,
		companyId: text(config.companyId),
		model: text(config.model),
		governed: ![false, "false", "0"].includes(governed),
		retries: number(config.retries, 2),
		timeoutMs: number(config.timeoutMs, 30_000),
		timeoutSec: number(config.timeoutSec, 900),
	};
}

/** The Paperclip server that calls, as the run. */
class Paperclip {
	constructor(ctx) {
		this.base = text(process.env.PAPERCLIP_API_URL) || text(process.env.PAPERCLIP_RUNTIME_API_URL) || "http://127.0.0.1:3100";
		this.headers = { "content-type": "application/json", "x-paperclip-run-id": ctx.runId };
		if (ctx.authToken) this.headers.authorization = `Bearer ${ctx.authToken}`;
	}

	async call(method, path, body, signal) {
		const limit = AbortSignal.timeout(30_000);
		const res = await fetch(this.base + path, {
			method,
			headers: this.headers,
			body: body && JSON.stringify(body),
			signal: signal ? AbortSignal.any([signal, limit]) : limit,
		});
		const answer = await readJSON(res);
		if (!res.ok) {
			const err = new Error(`${method} ${path} answered ${res.status}: ${answer?.error ?? res.statusText}`);
			err.status = res.status;
			throw err;
		}
		return answer;
	}
}

/** The issues of a run: the one that it was started for, or the agent's open ones. */
async function issuesOf(ctx, paperclip, signal) {
	const one = text(ctx.context.issueId) || text(ctx.context.taskId);
	if (one) return [await paperclip.call("GET", `/api/issues/${one}`, undefined, signal)];
	const inbox = await paperclip.call("GET", "/api/agents/me/inbox-lite", undefined, signal);
	const open = inbox.filter((i) => i.status === "todo" || i.status === "in_progress").slice(0, MAX_TASKS);
	return Promise.all(open.map((i) => paperclip.call("GET", `/api/issues/${i.id}`, undefined, signal)));
}

/** One run of an agent. */
class Job {
	constructor(ctx, signal) {
		this.ctx = ctx;
		this.signal = signal;
		this.set = settings(ctx.config, ctx.agent.name);
		this.kernel = new Kernel(this.set);
		this.paperclip = new Paperclip(ctx);
		this.used = { tokens: 0, usd: 0, priced: false, model: "" };
		this.tasks = [];
		this.said = [];
	}

	async tell(line) {
		this.said.push(line);
		await this.ctx.onLog("stdout", `${line}\n`);
	}

	about() {
		const about = { source: "paperclip", paperclip_company: this.ctx.agent.companyId, paperclip_heartbeat_seq: this.ctx.runId };
		if (this.set.companyId) about.company_id = this.set.companyId;
		if (this.set.model) about.model = this.set.model;
		return about;
	}

	async run() {
		const issues = await issuesOf(this.ctx, this.paperclip, this.signal);
		if (issues.length === 0) await this.tell("no issue waits");
		for (const issue of issues) await this.work(issue);
	}

	/** Checks an issue out; false when somebody else has it. */
	async take(issue) {
		try {
			const body = { agentId: this.ctx.agent.id, expectedStatuses: ["todo", "backlog", "in_progress"] };
			await this.paperclip.call("POST", `/api/issues/${issue.id}/checkout`, body, this.signal);
			return true;
		} catch (err) {
			if (err.status !== 409) throw err;
			await this.tell(`${issue.identifier}: somebody else has it`);
			return false;
		}
	}

	/** Has one issue done. Only what stops the whole run is thrown. */
	async work(issue) {
		if (!(await this.take(issue))) return;
		const done = { issueId: issue.id, status: "refused" };
		this.tasks.push(done);
		if (this.set.governed) {
			const about = { ...this.about(), issue: issue.identifier, reason: cut(issue.title, 4096) };
			const d = await this.kernel.govern(this.set.agentId, "execute_task", about, this.signal);
			done.decision = d.decision;
			if (d.decision === "escalate") return this.block(issue, `The gate of the mesh asks a person to approve this task: ${text(d.reason)}`);
			if (d.decision !== "permit") return this.block(issue, `The gate of the mesh denies this task: ${text(d.reason)}`);
		}
		const task = cut(issue.description ? `${issue.title}\n\n${issue.description}` : issue.title, MAX_TASK);
		const e = await this.kernel.execute(this.set.agentId, task, this.about(), `${this.ctx.runId}-${issue.id}`, this.signal);
		Object.assign(done, { status: e.status, executionId: e.execution_id, score: e.score, chainHash: e.chain_hash ?? null });
		this.used.tokens += Math.max(0, number(e.tokens_used, 0));
		this.used.model = text(e.model) || this.used.model;
		if (number(e.cost_usd, -1) >= 0) {
			this.used.usd += Number(e.cost_usd);
			this.used.priced = true;
		}
		const result = cut(text(e.result), MAX_RESULT);
		if (e.status !== "succeeded") return this.block(issue, cut(text(e.error), 2000) || result || `the mesh answered that the task ${e.status}`);
		await this.tell(`${issue.identifier}: done, score ${e.score}, ${e.tokens_used} tokens`);
		await this.paperclip.call("PATCH", `/api/issues/${issue.id}`, { status: "done", comment: result || "Done." }, this.signal);
	}

	/** Hands an issue back to a person. */
	async block(issue, why) {
		await this.tell(`${issue.identifier}: blocked: ${why}`);
		await this.paperclip.call("PATCH", `/api/issues/${issue.id}`, { status: "blocked", comment: why }, this.signal);
	}

	/** The result of the run. */
	result(more) {
		const { tokens, usd, priced, model } = this.used;
		return {
			exitCode: null,
			signal: null,
			timedOut: false,
			provider: "weftos",
			biller: "weftos",
			billingType: "metered_api",
			model: model || this.set.model || null,
			// The kernel does not say of which kind the tokens are.
			usage: { inputTokens: tokens, outputTokens: 0 },
			usageBasis: "per_run",
			costUsd: priced ? usd : null,
			summary: cut(this.said.join("\n"), 2000),
			resultJson: { tasks: this.tasks },
			...more,
		};
	}
}

async function execute(ctx) {
	const stop = new AbortController();
	const { timeoutSec } = settings(ctx.config);
	const late = new Error(`Timed out after ${timeoutSec}s`);
	const timer = timeoutSec > 0 ? setTimeout(() => stop.abort(late), timeoutSec * 1000) : undefined;
	const job = new Job(ctx, ctx.signal ? AbortSignal.any([ctx.signal, stop.signal]) : stop.signal);
	try {
		await ctx.onMeta?.({ adapterType: "weftos", command: `POST ${job.set.baseUrl}/api/v1/execute` });
		ctx.onDispatch?.();
		await job.run();
		return job.result({ exitCode: 0 });
	} catch (err) {
		if (err === late) return job.result({ timedOut: true, errorCode: "timeout", errorMessage: late.message });
		const auth = err instanceof KernelError && (err.status === 401 || err.status === 403);
		return job.result({ exitCode: 1, errorCode: auth ? "auth_required" : "adapter_failed", errorMessage: cut(err.message, 2000) });
	} finally {
		clearTimeout(timer);
	}
}

async function testEnvironment(ctx) {
	const set = settings(ctx.config);
	const checks = [];
	const check = (level, code, message, hint) => checks.push({ level, code, message, hint });
	try {
		const health = await new Kernel({ ...set, retries: 0 }).ping();
		check("info", "weftos_reachable", `The mesh answers at ${set.baseUrl}, version ${health.version}.`);
	} catch (err) {
		check("error", "weftos_unreachable", cut(err.message, 500), "Set baseUrl to the address of a node, such as http://127.0.0.1:3100.");
	}
	if (!set.token) check("warn", "weftos_no_token", "There is no token.", "Make one with `selvage key capability --can execute --can govern`, and set it as the variable WEFTOS_API_KEY.");
	if (!set.agentId) check("info", "weftos_same_name", "The agent of the mesh with this agent's own name does the work.", "Set agentId to choose another.");
	const level = (l) => checks.some((c) => c.level === l);
	return { adapterType: ctx.adapterType, status: level("error") ? "fail" : level("warn") ? "warn" : "pass", checks, testedAt: new Date().toISOString() };
}

const fields = [
	{ key: "baseUrl", label: "Address of the mesh", type: "text", default: DEFAULT_URL, required: true, hint: "of any node" },
	{ key: "agentId", label: "Agent of the mesh", type: "text", hint: "ID, or name with companyId; this agent's own name unless given" },
	{ key: "companyId", label: "Company of the mesh", type: "text" },
	{ key: "model", label: "Model", type: "text", hint: "is handed on" },
	{ key: "governanceEnabled", label: "Ask the gate before each task", type: "toggle", default: true },
	{ key: "retries", label: "Repetitions", type: "number", default: 2 },
	{ key: "timeoutMs", label: "Limit of one request, ms", type: "number", default: 30_000 },
	{ key: "timeoutSec", label: "Limit of a run, seconds", type: "number", default: 900 },
];

/** What Paperclip calls when it loads the package. */
export function createServerAdapter() {
	return {
		type: "weftos",
		execute,
		testEnvironment,
		supportsLocalAgentJwt: true, // the run's own token comments and closes issues
		models: [],
		getConfigSchema: () => ({ fields }),
		agentConfigurationDoc: `# weftos: agents of a Selvage mesh

Each issue of the agent becomes a task of an agent of the mesh. Before, the mesh's gate is asked; what it denies, or
hands to a person, makes the issue blocked with the reason. The answer becomes a comment, and the issue is done.

${fields.map((f) => `- ${f.key}: ${f.label}${f.hint ? ` (${f.hint})` : ""}`).join("\n")}
- env.WEFTOS_API_KEY: a capability token (cap1.…) or an API key of the mesh; keep it as a secret`,
	};
}
