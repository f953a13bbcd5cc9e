package company

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/entity"
)

// An Invocation is a run with what an adapter needs to execute it. It exists on the
// executing node only and is never stored.
type Invocation struct {
	Run       entity.Run
	AgentName string
	// Config is the agent's adapterConfig with its secrets filled in.
	Config json.RawMessage
	// Secrets are the values in Config that must not appear in what the run writes.
	Secrets []string
	// Resume is the session of the last run on the same task; nil to start afresh.
	Resume *entity.TaskSession
	// Folder is the workspace of the run; nil: its project has none.
	Folder *entity.RunFolder
	// Instructions are files to write before the run starts; nil for none.
	Instructions *RunInstructions
	// Skills are the skills of the agent.
	Skills []RunSkill
	// Wake is the context of the run, as JSON for the agent.
	Wake json.RawMessage
	// Memories are what the company remembers about the run's issue, as [Quote] made it.
	Memories string

	// Log appends text to a stream of the run's log: "stdout", "stderr", or "system" for the
	// node's own messages.
	Log func(stream, text string)
	// Report reports progress. It does not block and drops what exceeds its bound.
	Report func(Report)
	// Authority returns the reading of the boot-time clock until which this node may act for
	// the run. It advances with the lease. Whatever the adapter started must be gone by then,
	// even if nobody asks again.
	Authority func() time.Duration
}

// A RunSkill is a skill in the form that a run gets: files by path, with SKILL.md among
// them, for a folder with its name.
type RunSkill struct {
	Name  string // lower case letters, digits and dashes
	Files map[string]string
}

// Fill returns a replacer of the placeholders of a template: {{agent.id}}, {{agent.name}},
// {{company.id}}, {{run.id}}, {{run.source}}, {{context.taskId}} and
// {{context.wakeReason}}. Other text stays.
func (inv Invocation) Fill() *strings.Replacer {
	r := inv.Run
	return strings.NewReplacer("{{agent.id}}", r.Agent, "{{agent.name}}", inv.AgentName, "{{company.id}}",
		string(r.Company),
		"{{run.id}}", r.ID, "{{run.source}}", string(r.Source),
		"{{context.taskId}}", cmp.Or(r.Context.TaskID, r.Context.IssueID), "{{context.wakeReason}}", r.Context.WakeReason)
}

// A LogDigest describes a run's log.
type LogDigest struct {
	Bytes  int64
	SHA256 string // hex, of the whole log; set when the log is closed
	Seq    int64  // of the last line
	Stream string // of the last line
	At     time.Time
	Cut    bool // the run wrote more than is kept
}

// RunInstructions are an agent's instruction files with their texts, for the node that
// executes a run.
type RunInstructions struct {
	Entry string
	Texts map[string]string // by path
}
