package company

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company/entity"
)

// An Invocation is a run with what an adapter needs to carry it out. It lives on
// the executing node only and is never stored.
type Invocation struct {
	Run       entity.Run
	AgentName string
	// Config is the agent's adapterConfig, with its secrets in place.
	Config json.RawMessage
	// Secrets are values in Config that must not be seen in what the run writes.
	Secrets []string
	// Resume is where the last run on the same task left off; nil to start afresh.
	Resume *entity.TaskSession
	// Folder is where the run is to work; nil: its project has no workspace.
	Folder *entity.RunFolder
	// Instructions are files to write before the run starts; nil for none.
	Instructions *RunInstructions
	// Skills are texts that the agent is to have at hand.
	Skills []RunSkill
	// Wake is the context of the run as JSON, for the agent to read.
	Wake json.RawMessage

	// Log appends text to a stream of the run's log: "stdout", "stderr" or, for
	// what the node itself has to say, "system".
	Log func(stream, text string)
	// Report tells of progress. It does not wait and may drop what is too much.
	Report func(Report)
	// Authority returns the reading of the boot-time clock until which this node
	// may act for the run. It moves on while the lease is kept; whatever the
	// adapter started must be gone by then, also if nobody asks any more.
	Authority func() time.Duration
}

// A RunSkill is a skill as a run is given it: files by path, with SKILL.md among
// them, for a folder of that name.
type RunSkill struct {
	Name  string // lower case letters, digits and dashes
	Files map[string]string
}

// Fill replaces the places of a template: {{agent.id}}, {{agent.name}},
// {{company.id}}, {{run.id}}, {{run.source}}, {{context.taskId}} and
// {{context.wakeReason}}. Others stay.
func (inv Invocation) Fill() *strings.Replacer {
	r := inv.Run
	return strings.NewReplacer("{{agent.id}}", r.Agent, "{{agent.name}}", inv.AgentName, "{{company.id}}", r.Company,
		"{{run.id}}", r.ID, "{{run.source}}", string(r.Source),
		"{{context.taskId}}", cmp.Or(r.Context.TaskID, r.Context.IssueID), "{{context.wakeReason}}", r.Context.WakeReason)
}

// A LogDigest is what a run's log amounts to.
type LogDigest struct {
	Bytes  int64
	SHA256 string // hex, over the whole log; set when it is closed
	Seq    int64  // of the last line
	Stream string // of the last line
	At     time.Time
	Cut    bool // the run wrote more than was kept
}

// RunInstructions are the managed files of an agent with their texts, for the
// node that carries out a run.
type RunInstructions struct {
	Entry string
	Texts map[string]string // by path
}
