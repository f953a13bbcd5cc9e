// Package adapter is the catalogue of adapters: which kinds there are and what each needs. It
// checks whether a node has that. The folders below execute runs.
package adapter

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/adapter/a2a"
	"github.com/selvage-mesh/selvage/adapter/acp"
	"github.com/selvage-mesh/selvage/adapter/claude"
	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/codex"
	"github.com/selvage-mesh/selvage/adapter/container"
	"github.com/selvage-mesh/selvage/adapter/cursor"
	"github.com/selvage-mesh/selvage/adapter/gemini"
	"github.com/selvage-mesh/selvage/adapter/hermes"
	"github.com/selvage-mesh/selvage/adapter/openclaw"
	"github.com/selvage-mesh/selvage/adapter/opencode"
	"github.com/selvage-mesh/selvage/adapter/pi"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/wasm"
	"github.com/selvage-mesh/selvage/adapter/webcall"
	"github.com/selvage-mesh/selvage/adapter/weftos"
)

// A Level is how much an adapter reports about a run.
type Level string

const (
	Minimum Level = "minimum" // start and end
	Status  Level = "status"  // success, failure and progress; usage as reported by the agent
	Full    Level = "full"    // calls are paid in advance; the agent can change issues and comments
)

// A Kind is one adapter.
type Kind struct {
	Type    string
	Name    string // display name
	Program string // program to start if no command is configured; "" for none
	Level   Level
	// Gateway says that model calls of the agent go through its node without configuration.
	Gateway bool
	// Keys are environment variables of which the agent needs one, if the gateway does not
	// support its vendor.
	Keys []string
	// Tool says that it is a command line that accepts instructions and skills.
	Tool   bool
	ACP    bool // it speaks the Agent Client Protocol
	Models []OfferedModel
	Fields []ConfigField
	Note   string // one paragraph for whoever configures it
	// takes are zero values of the structs into which a run decodes adapterConfig.
	takes []any
}

// An OfferedModel is a model that the board's form offers; others can be configured.
type OfferedModel struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// A ConfigField is a member of adapterConfig as a form shows it.
type ConfigField struct {
	Key      string        `json:"key"`
	Label    string        `json:"label"`
	Type     string        `json:"type"` // text, textarea, number, toggle, select or list
	Hint     string        `json:"hint,omitempty"`
	Default  any           `json:"default,omitempty"`
	Required bool          `json:"required,omitempty"`
	Options  []FieldOption `json:"options,omitempty"`
}

// A FieldOption is a value of a field of type select.
type FieldOption struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Fields that several kinds have.
var (
	cwd = ConfigField{Key: "cwd", Label: "Working directory", Type: "text",
		Hint: "an absolute folder on the node; the agent's own unless given"}
	env = ConfigField{Key: "env", Label: "Variables", Type: "list",
		Hint: "values, or references to secrets; those of a project go before them, PAPERCLIP_* before both"}
	timeout = ConfigField{Key: "timeoutSec", Label: "Time limit", Type: "number", Default: 900,
		Hint: "seconds; 0 for a day"}
	grace = ConfigField{Key: "graceSec", Label: "Grace", Type: "number", Default: 15,
		Hint: "seconds between TERM and KILL"}
	turns = ConfigField{Key: "maxTurnsPerRun", Label: "Turns", Type: "number", Hint: "the most that one run may take"}
)

func choice(key, label, hint string, values ...string) ConfigField {
	f := ConfigField{Key: key, Label: label, Type: "select", Hint: hint}
	for _, v := range values {
		f.Options = append(f.Options, FieldOption{v, v})
	}
	return f
}

// tool returns the fields of a command line, and those that only this one has.
func tool(program string, gateway bool, more ...ConfigField) []ConfigField {
	out := []ConfigField{
		{Key: "model", Label: "Model", Type: "text", Hint: "as the model gateway, or the program, knows it"},
		{Key: "promptTemplate", Label: "Prompt", Type: "textarea",
			Hint: "what the agent is told; {{agent.id}}, {{agent.name}}, {{run.id}}, {{context.taskId}} and others are " +
				"filled in"},
		{Key: "instructionsFilePath", Label: "Instructions", Type: "text",
			Hint: "an absolute path on the node, for agents without instructions in the mesh"},
		{Key: "dangerouslySkipPermissions", Label: "Ask nobody", Type: "toggle", Default: true,
			Hint: "without it the program asks before it acts, and nobody answers"},
		{Key: "command", Label: "Program", Type: "text", Default: program},
		{Key: "extraArgs", Label: "More arguments", Type: "list"},
	}
	if gateway {
		out = append(out, ConfigField{Key: "gateway", Label: "Through the gateway", Type: "toggle", Default: true,
			Hint: "model calls go through the node, paid in advance and without keys; off: the program uses what it is " +
				"signed in with"})
	}
	return append(append(out, more...), cwd, env, timeout, grace)
}

// command returns what a command line decodes its configuration into, including more.
func command(more any) []any { return []any{process.Settings(), cli.Options{}, more} }

// kinds is all adapters by type.
var kinds = slices.SortedFunc(slices.Values(slices.Concat(tools, programs, remotes)),
	func(a, b Kind) int { return cmp.Compare(a.Type, b.Type) })

// tools are command lines that agents work with, each a program on the node.
var tools = []Kind{
	{Type: "acp", takes: command(acp.Options{}), Name: "Agent Client Protocol", Level: Status, Tool: true, ACP: true,
		Fields: []ConfigField{
			{Key: "command", Label: "Program", Type: "text", Required: true,
				Hint: "an agent that speaks the Agent Client Protocol on its standard input and output"},
			{Key: "args", Label: "Arguments", Type: "list"},
			choice("permissions", "Permissions", "what is answered when the agent asks", "allow", "edits", "deny"),
			{Key: "model", Label: "Model", Type: "text", Hint: "where the agent lets it be chosen"},
			{Key: "promptTemplate", Label: "Prompt", Type: "textarea"},
			{Key: "gateway", Label: "Through the gateway", Type: "toggle", Default: true,
				Hint: "the addresses and the key of the model gateway are in the variables that most agents read"},
			cwd, env, timeout, grace},
		Note: "Any agent that speaks the Agent Client Protocol; gemini --acp, opencode acp, claude-agent-acp and " +
			"codex-acp are led to the gateway and keep no key."},
	{Type: "claude_local", takes: command(claude.Options{}), Name: "Claude Code", Program: "claude", Level: Full,
		Gateway: true, Tool: true,
		Models: models("claude-opus-4-8", "claude-opus-4-6", "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-haiku-4-5"),
		Fields: tool("claude", true, choice("effort", "Effort", "", "low", "medium", "high", "xhigh", "max"), turns,
			ConfigField{Key: "allowedTools", Label: "Tools", Type: "text",
				Hint: "those that it may use without a question, comma separated; in place of all"},
			ConfigField{Key: "chrome", Label: "Chrome", Type: "toggle"}),
		Note: "npm install -g @anthropic-ai/claude-code"},
	{Type: "codex_local", takes: command(codex.Options{}), Name: "Codex", Program: "codex", Level: Full,
		Gateway: true, Tool: true,
		Models: models("gpt-5.5", "gpt-5", "gpt-5-mini", "gpt-5-codex"),
		Fields: tool("codex", true, choice("modelReasoningEffort", "Effort", "", "minimal", "low", "medium", "high", "xhigh"),
			ConfigField{Key: "search", Label: "Web search", Type: "toggle", Hint: "not through the gateway"}),
		Note: "npm install -g @openai/codex"},
	{Type: "cursor", takes: command(cursor.Options{}), Name: "Cursor", Program: "cursor-agent", Level: Status,
		Keys: []string{"CURSOR_API_KEY"}, Tool: true,
		Models: models("auto"), Fields: tool("cursor-agent", false, choice("mode", "Mode", "plan and ask change nothing",
			"plan", "ask")),
		Note: "Cursor's own installer; its models are reached through its vendor alone."},
	{Type: "gemini_local", takes: command(gemini.Options{}), Name: "Gemini CLI", Program: "gemini", Level: Full,
		Gateway: true, Tool: true, ACP: true,
		Models: models("auto", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"),
		Fields: tool("gemini", true, ConfigField{Key: "sandbox", Label: "Its own sandbox", Type: "toggle"}),
		Note: "npm install -g @google/gemini-cli; what it does beside its work is for small models of its vendor, which " +
			"the gateway has to know."},
	{Type: "hermes_local", takes: command(hermes.Options{}), Name: "Hermes Agent", Program: "hermes", Level: Full,
		Gateway: true, Tool: true,
		Fields: tool("hermes", true, turns, ConfigField{Key: "toolsets", Label: "Toolsets", Type: "text",
			Hint: "such as terminal,file,web"},
			ConfigField{Key: "provider", Label: "Provider", Type: "text", Hint: "without the gateway"}),
		Note: "pip install hermes-agent; needs a model to be named."},
	{Type: "opencode_local", takes: command(opencode.Options{}), Name: "OpenCode", Program: "opencode", Level: Full,
		Gateway: true, Tool: true,
		Fields: tool("opencode", true, ConfigField{Key: "variant", Label: "Variant", Type: "text",
			Hint: "of the model, such as high"}),
		Note: "npm install -g opencode-ai; needs a model to be named."},
	{Type: "pi_local", takes: command(pi.Options{}), Name: "pi", Program: "pi", Level: Full, Gateway: true, Tool: true,
		Fields: tool("pi", true, choice("thinking", "Thinking", "", "off", "minimal", "low", "medium", "high", "xhigh"),
			ConfigField{Key: "provider", Label: "Provider", Type: "text", Hint: "without the gateway"}),
		Note: "npm install -g @mariozechner/pi-coding-agent; needs a model to be named."},
}

// programs are other programs, which the node runs.
var programs = []Kind{
	{Type: "container", takes: []any{container.Settings()}, Name: "Container", Level: Status,
		Note:   "An image run by podman or docker.",
		Fields: []ConfigField{{Key: "image", Label: "Image", Type: "text", Required: true}, env, timeout, grace}},
	{Type: "process", takes: []any{process.Settings()}, Name: "Command", Level: Status,
		Fields: []ConfigField{{Key: "command", Label: "Program", Type: "text", Required: true},
			{Key: "args", Label: "Arguments", Type: "list"}, cwd, env, timeout, grace},
		Note: "Any program that talks to the API by itself; it may use the model gateway, and tells its other costs itself."},
	{Type: "wasm", takes: []any{wasm.Settings()}, Name: "WebAssembly", Level: Full,
		Fields: []ConfigField{{Key: "module", Label: "Module", Type: "text",
			Hint: "an absolute path on the node, attachment:ID or asset:ID; the default agent unless given"},
			{Key: "args", Label: "Arguments", Type: "list"}, {Key: "grants", Label: "Grants", Type: "list"},
			{Key: "memoryMb", Label: "Memory", Type: "number", Default: 16},
			{Key: "fuel", Label: "Fuel", Type: "number"}, env, timeout},
		Note: "A program in the sandbox of one node. Without a module it is the default agent that comes with Selvage: it " +
			"works on issues with a model of the gateway (env.AGENT_MODEL), and with env.AGENT_DEMO=1 it needs no model. See " +
			"docs/adapters.md."},
}

// remotes are agents elsewhere, which the node asks.
var remotes = []Kind{
	{Type: "a2a", takes: []any{a2a.Settings()}, Name: "A2A agent", Level: Status,
		Fields: []ConfigField{{Key: "url", Label: "URL", Type: "text", Required: true, Hint: "of the agent, or of its card"},
			{Key: "token", Label: "Token", Type: "text", Hint: "best as a reference to a secret"},
			{Key: "tenant", Label: "Tenant", Type: "text", Hint: "where the agent's server wants one"},
			{Key: "headers", Label: "Headers", Type: "list"}, {Key: "message", Label: "Message", Type: "textarea",
				Hint: "{{issue.title}}, {{issue.description}} and others are filled in; both unless given"}, timeout},
		Note: "An agent outside that speaks the Agent2Agent protocol 1.0: the issue is a task there, and its result comes " +
			"back as a comment and attachments; addresses that are not public are refused unless the operator lists them."},
	{Type: "http", takes: []any{webcall.Settings()}, Name: "Webhook", Level: Status,
		Fields: []ConfigField{{Key: "url", Label: "URL", Type: "text", Required: true}, {Key: "method", Label: "Method",
			Type: "text", Default: "POST"},
			{Key: "headers", Label: "Headers", Type: "list"}, {Key: "timeoutMs", Label: "Time limit", Type: "number",
				Default: 15000, Hint: "milliseconds"},
			{Key: "payloadTemplate", Label: "Body", Type: "textarea", Hint: "JSON; {{agent.id}} and others are filled in"},
			{Key: "callback", Label: "It calls back", Type: "toggle", Default: false,
				Hint: "the answer is only a beginning; the end is posted to callback.url of the body"},
			{Key: "callbackTimeoutSec", Label: "Wait for the callback", Type: "number", Default: 900, Hint: "seconds"},
			{Key: "callbackUrl", Label: "Where it reaches the API", Type: "text",
				Hint: "of any node, where this one's own address will not do"}},
		Note: "One request invokes the agent; addresses that are not public are refused unless the operator lists them."},
	{Type: "openclaw_gateway", takes: []any{openclaw.Settings()}, Name: "OpenClaw gateway", Level: Status,
		Fields: []ConfigField{{Key: "url", Label: "URL", Type: "text", Required: true, Hint: "ws:// or wss://"},
			{Key: "authToken", Label: "Token", Type: "text", Hint: "best as a reference to a secret"},
			{Key: "password", Label: "Password", Type: "text"},
			{Key: "agentId", Label: "Agent there", Type: "text"}, choice("sessionKeyStrategy", "Session", "", "issue",
				"fixed", "run"),
			{Key: "sessionKey", Label: "Session key", Type: "text", Hint: "with fixed"},
			{Key: "payloadTemplate", Label: "Request", Type: "textarea"}, timeout},
		Note: "An agent of an OpenClaw gateway, over its WebSocket."},
	{Type: "weftos", takes: []any{weftos.Settings()}, Name: "WeftOS kernel", Level: Status,
		Fields: []ConfigField{{Key: "baseUrl", Label: "Mesh", Type: "text",
			Hint: "http:// or https://, the address of a node; also base_url; this mesh unless given"},
			{Key: "token", Label: "Token", Type: "text",
				Hint: "a key, or a capability token of that mesh; best as a reference to a secret"},
			{Key: "agentId", Label: "Agent there", Type: "text", Hint: "ID or name; the agent's own name unless given"},
			{Key: "companyId", Label: "Company there", Type: "text", Hint: "where agentId is a name"},
			{Key: "model", Label: "Model", Type: "text", Hint: "told to the agent there"},
			{Key: "governanceEnabled", Label: "Ask the gate", Type: "toggle", Default: true,
				Hint: "POST /api/v1/govern before each task"},
			{Key: "retries", Label: "Repetitions", Type: "number", Default: 2, Hint: "after 429, 503 or no answer"},
			{Key: "timeoutMs", Label: "Time limit of a request", Type: "number", Default: 30000, Hint: "milliseconds"}, timeout},
		Note: "Hands each task to an agent of another mesh, or of this one: POST /api/v1/govern, then POST " +
			"/api/v1/execute. Addresses that are not public are refused unless the operator lists them."},
}

func models(ids ...string) (out []OfferedModel) {
	for _, id := range ids {
		out = append(out, OfferedModel{id, strings.ReplaceAll(id, "-", " ")})
	}
	return out
}

// Kinds returns all adapters by type.
func Kinds() []Kind { return slices.Clone(kinds) }

// Find returns the adapter of a type.
func Find(kind string) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Type == kind })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}
