package api

type adapterInfo struct {
	Type           string              `json:"type"`
	Label          string              `json:"label"`
	Source         string              `json:"source"`
	Models         int                 `json:"modelsCount"`
	Loaded         bool                `json:"loaded"`
	Disabled       bool                `json:"disabled"`
	Capabilities   adapterCapabilities `json:"capabilities"`
	OverridePaused bool                `json:"overridePaused"`
}

type adapterCapabilities struct {
	Instructions bool `json:"supportsInstructionsBundle"`
	Skills       bool `json:"supportsSkills"`
	RunToken     bool `json:"supportsLocalAgentJwt"`
	Materialized bool `json:"requiresMaterializedRuntimeSkills"`
	ACP          bool `json:"supportsAcp"`
}

// adapters are those that this version runs.
var adapters = []adapterInfo{
	{Type: "claude_local", Label: "claude_local", Source: "builtin", Loaded: true, Capabilities: localTool},
	{Type: "codex_local", Label: "codex_local", Source: "builtin", Loaded: true, Capabilities: localTool},
	{Type: "container", Label: "container", Source: "builtin", Loaded: true, Capabilities: adapterCapabilities{RunToken: true}},
	{Type: "http", Label: "http", Source: "builtin", Loaded: true},
	{Type: "process", Label: "process", Source: "builtin", Loaded: true, Capabilities: adapterCapabilities{RunToken: true}},
	{Type: "wasm", Label: "wasm", Source: "builtin", Loaded: true, Capabilities: adapterCapabilities{RunToken: true}},
}

// localTool is what the command lines that work as agents can be given.
var localTool = adapterCapabilities{Instructions: true, Skills: true, RunToken: true, Materialized: true}
