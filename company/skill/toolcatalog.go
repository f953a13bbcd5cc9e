package skill

import "strings"

// A CatalogueTool is a tool of the kernel's catalogue: its name, the effect by which its
// calls are judged, and the part of this program that does the same.
type CatalogueTool struct {
	Name        string     `json:"name"`
	Category    string     `json:"category"` // Filesystem, Agent, System, Ecc or User
	Description string     `json:"description"`
	GateAction  string     `json:"gateAction"`
	Effect      ToolEffect `json:"effect"`
	// Native is the route or other part of this program that does the same; nil if none does.
	Native *string `json:"native"`
}

// Namespace returns the vertex of the resource tree below which the tool stands.
func (t CatalogueTool) Namespace() string { return "/kernel/tools/" + strings.ToLower(t.Category) }

// Catalogue returns the tools of the kernel, sorted by category and name. Effects are in
// thousandths.
func Catalogue() []CatalogueTool {
	risk := func(n int64) ToolEffect { return ToolEffect{Risk: n} }
	in := func(s string) *string { return &s }
	var (
		files   = in("the agent's own tools in its working directory, within the limits of its adapter")
		nothing *string
	)
	t := func(name, category, about string, effect ToolEffect, native *string) CatalogueTool {
		return CatalogueTool{name, category, about, "tool." + name, effect, native}
	}
	return []CatalogueTool{
		t("fs.read_file", "Filesystem", "Read a file, up to 8 MiB", risk(100), files),
		t("fs.write_file", "Filesystem", "Write a file", risk(400), files),
		t("fs.read_dir", "Filesystem", "List a folder", risk(100), files),
		t("fs.create_dir", "Filesystem", "Make a folder", risk(300), files),
		t("fs.remove", "Filesystem", "Remove a file or folder", ToolEffect{Risk: 700, Security: 300}, files),
		t("fs.copy", "Filesystem", "Copy a file", risk(300), files),
		t("fs.move", "Filesystem", "Move a file", risk(500), files),
		t("fs.stat", "Filesystem", "Tell what a file is", risk(50), files),
		t("fs.exists", "Filesystem", "Tell whether a file is there", risk(50), files),
		t("fs.glob", "Filesystem", "Find files by a pattern", risk(100), files),
		t("agent.spawn", "Agent", "Hire an agent", risk(500), in("POST /api/companies/{companyId}/agent-hires")),
		t("agent.stop", "Agent", "Terminate an agent", risk(400), in("POST /api/agents/{id}/terminate")),
		t("agent.list", "Agent", "List agents", risk(50), in("GET /api/companies/{companyId}/agents")),
		t("agent.inspect", "Agent", "Read an agent", risk(100), in("GET /api/agents/{id}")),
		t("agent.send", "Agent", "Give an agent something to do", risk(200), in("POST /api/agents/{id}/wakeup")),
		t("agent.suspend", "Agent", "Pause an agent", risk(300), in("POST /api/agents/{id}/pause")),
		t("agent.resume", "Agent", "Let an agent go on", risk(200), in("POST /api/agents/{id}/resume")),
		t("ipc.send", "Agent", "Say something to an agent", risk(200), in("POST /api/issues/{id}/comments")),
		t("ipc.subscribe", "Agent", "Hear what happens", risk(100), in("GET /api/companies/{companyId}/events/ws")),
		t("sys.service.list", "System", "List services", risk(50), in("GET /api/v1/mesh")),
		t("sys.service.health", "System", "Tell how a service does", risk(50), in("GET /api/health")),
		t("sys.chain.status", "System", "Tell where the chain stands", risk(50), in("GET /api/v1/mesh/ledger/entries")),
		t("sys.chain.query", "System", "Read entries of the chain", risk(100), in("GET /api/v1/mesh/ledger/entries")),
		t("sys.tree.read", "System", "Read the tree of resources", risk(50), nothing),
		t("sys.tree.inspect", "System", "Read a resource", risk(50), nothing),
		t("sys.env.get", "System", "Read a variable", ToolEffect{Risk: 200, Privacy: 300}, in("the environment of the run")),
		t("sys.cron.add", "System", "Make a routine", risk(400), in("POST /api/companies/{companyId}/routines")),
		t("sys.cron.list", "System", "List routines", risk(50), in("GET /api/companies/{companyId}/routines")),
		t("sys.cron.remove", "System", "Archive a routine", risk(300), in("PATCH /api/routines/{id}")),
		t("ecc.embed", "Ecc", "Turn text into a vector", risk(100), in("POST /llm/v1/embeddings")),
		t("ecc.search", "Ecc", "Find what is near in meaning", risk(50), nothing),
		t("ecc.causal.link", "Ecc", "Note a cause", risk(300), nothing),
		t("ecc.causal.query", "Ecc", "Ask for causes", risk(50), nothing),
		t("ecc.crossref.create", "Ecc", "Link two things", risk(200), nothing),
		t("ecc.tick.status", "Ecc", "Tell how the tick does", risk(50), nothing),
		t("ecc.calibration.run", "Ecc", "Measure the tick", risk(100), nothing),
		t("shell.exec", "System", "Run a shell command", ToolEffect{Risk: 700, Security: 400}, in("the process adapter")),
	}
}
