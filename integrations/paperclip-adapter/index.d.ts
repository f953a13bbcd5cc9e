/** What Paperclip calls when it loads the package; the shape is ServerAdapterModule of @paperclipai/adapter-utils. */
export function createServerAdapter(): {
	type: "weftos";
	execute(ctx: unknown): Promise<unknown>;
	testEnvironment(ctx: unknown): Promise<unknown>;
	supportsLocalAgentJwt: true;
	models: [];
	getConfigSchema(): { fields: unknown[] };
	agentConfigurationDoc: string;
};

export interface Decision {
	decision: "permit" | "deny" | "escalate";
	reason?: string;
	evaluated_rules?: string[];
	effect_magnitude?: number;
}

export interface Execution {
	execution_id: string;
	status: string;
	result?: string | null;
	score?: number;
	tokens_used?: number;
	cost_usd?: number | null;
	chain_hash?: string | null;
	error?: string;
}

export class KernelError extends Error {
	status: number;
	code: string;
	/** Whether the same request may do later. */
	passing: boolean;
}

/** A client of the kernel's API. Requests are repeated after 429, 503 or no answer. */
export class Kernel {
	constructor(options: { baseUrl: string; token: string; timeoutMs?: number; retries?: number });
	ping(signal?: AbortSignal): Promise<{ status: string; version: string; uptime_secs: number }>;
	govern(agentId: string, action: string, context: Record<string, unknown>, signal?: AbortSignal): Promise<Decision>;
	execute(agentId: string, task: string, context: Record<string, unknown>, key?: string, signal?: AbortSignal): Promise<Execution>;
}
