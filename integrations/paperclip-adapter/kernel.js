// A client of the kernel's API: POST /api/v1/govern, POST /api/v1/execute, GET /api/v1/executions/{id}, GET /api/v1/health.

const MAX_ANSWER = 4 << 20; // bytes of an answer
const RETRY_AFTER = [0, 500, 2000]; // ms before the first repetition and the next ones
const LOOK_EVERY = 500; // ms between two looks at an unfinished task

/** A refusal of the kernel. `passing` says whether the same request may do later. */
export class KernelError extends Error {
	constructor(status, code, message) {
		super(message);
		this.status = status;
		this.code = code;
		this.passing = status === 429 || status === 503;
	}
}

const sleep = (ms, signal) =>
	new Promise((resolve, reject) => {
		if (signal?.aborted) return reject(signal.reason);
		const stop = () => {
			clearTimeout(timer);
			reject(signal.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener("abort", stop);
			resolve();
		}, ms);
		signal?.addEventListener("abort", stop, { once: true });
	});

/** Reads an answer of bounded size; an answer that is no JSON is null. */
export async function readJSON(res) {
	const chunks = [];
	let size = 0;
	for await (const chunk of res.body ?? []) {
		size += chunk.length;
		if (size > MAX_ANSWER) throw new Error(`the answer is larger than ${MAX_ANSWER} bytes`);
		chunks.push(chunk);
	}
	try {
		return JSON.parse(Buffer.concat(chunks).toString("utf8"));
	} catch {
		return null;
	}
}

/** A kernel at an address. Requests are repeated after 429, 503 or no answer; a key makes a repetition the same request. */
export class Kernel {
	/**
	 * @param {{baseUrl: string, token: string, timeoutMs?: number, retries?: number}} options
	 * timeoutMs bounds one request (30000 unless given), retries is 0 to 5 (2 unless given).
	 */
	constructor({ baseUrl, token, timeoutMs = 30_000, retries = 2 }) {
		this.baseUrl = baseUrl.replace(/\/+$/, "");
		this.token = token;
		this.timeoutMs = Math.min(Math.max(timeoutMs, 1000), 600_000);
		this.retries = Math.min(Math.max(retries, 0), 5);
	}

	async #once(method, path, body, key, signal) {
		const limit = AbortSignal.timeout(this.timeoutMs);
		const headers = { accept: "application/json" };
		if (body !== undefined) headers["content-type"] = "application/json";
		if (key) headers["idempotency-key"] = key;
		if (this.token) headers.authorization = `${this.token.startsWith("cap1.") ? "WeftOS-Cap" : "Bearer"} ${this.token}`;
		let res;
		try {
			res = await fetch(this.baseUrl + path, {
				method,
				headers,
				body: body === undefined ? undefined : JSON.stringify(body),
				redirect: "manual",
				signal: signal ? AbortSignal.any([signal, limit]) : limit,
			});
		} catch (err) {
			if (signal?.aborted) throw signal.reason;
			// The cause names no header, and so no token.
			const why = limit.aborted ? `no answer within ${this.timeoutMs} ms` : (err.cause?.message ?? err.message);
			throw new KernelError(503, "UNREACHABLE", `the mesh can not be reached: ${why}`);
		}
		const answer = await readJSON(res);
		if (res.status >= 200 && res.status < 300 && answer) return answer;
		throw new KernelError(res.status, answer?.code ?? "", `${method} ${path} answered ${res.status}: ${answer?.message ?? answer?.error ?? res.statusText}`);
	}

	async #request(method, path, body, key, signal) {
		for (let n = 0; ; n++) {
			try {
				return await this.#once(method, path, body, key, signal);
			} catch (err) {
				if (!(err instanceof KernelError) || !err.passing || n >= this.retries) throw err;
				await sleep(RETRY_AFTER[Math.min(n, RETRY_AFTER.length - 1)], signal);
			}
		}
	}

	/** Tells that the kernel answers: {status, version, uptime_secs}. */
	ping(signal) {
		return this.#request("GET", "/api/v1/health", undefined, "", signal);
	}

	/** Asks whether an act should be done: {decision: "permit" | "deny" | "escalate", reason, evaluated_rules, …}. */
	govern(agentId, action, context, signal) {
		return this.#request("POST", "/api/v1/govern", { action, agent_id: agentId, context }, "", signal);
	}

	/** Has a task done and waits until it is: {result, score, tokens_used, execution_id, status, cost_usd, chain_hash, …}. */
	async execute(agentId, task, context, key, signal) {
		const body = { agent_id: agentId, task, context, timeout_ms: Math.floor(this.timeoutMs * 0.9) };
		let e = await this.#request("POST", "/api/v1/execute", body, key, signal);
		while (["queued", "running", "waiting"].includes(e.status)) {
			await sleep(LOOK_EVERY, signal);
			e = await this.#request("GET", `/api/v1/executions/${encodeURIComponent(e.execution_id)}`, undefined, "", signal);
		}
		return { ...e, status: e.status || "succeeded" }; // some kernels answer only when it is done
	}
}
