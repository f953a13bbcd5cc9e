package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// What an issue's execution policy says, and how far its stages are. Who moves an
// issue from stage to stage stands elsewhere; the issue carries the state.

// An executionPolicy says who looks at the work on an issue before it is done,
// stage by stage. It is kept as it came in; the API has checked its form.
type ExecutionPolicy struct {
	CommentRequired *bool            `json:"commentRequired"` // true when absent
	Stages          []executionStage `json:"stages"`
	MaxRounds       int              `json:"maxReviewRounds"` // 0: no bound
	Monitor         *MonitorPolicy   `json:"monitor"`
}

type executionStage struct {
	ID           string                 `json:"id"`
	Type         string                 `json:"type"` // review or approval
	Participants []ExecutionParticipant `json:"participants"`
}

// An executionParticipant may decide a stage.
type ExecutionParticipant struct {
	Type  string `json:"type"` // agent or user
	Agent string `json:"agentId"`
	User  string `json:"userId"`
}

// MaxStages bounds the stages of an execution policy, and MaxParticipants those
// who may decide one.
const (
	MaxStages       = 20
	MaxParticipants = 20
)

// An ExecutionState is how far the stages of an issue's policy are.
type ExecutionState struct {
	Status      string   `cbor:"1,keyasint"` // pending, changes_requested or completed
	Stage       string   `cbor:"2,keyasint,omitempty"`
	Agent       string   `cbor:"3,keyasint,omitempty"` // who is to decide
	User        string   `cbor:"4,keyasint,omitempty"`
	ReturnAgent string   `cbor:"5,keyasint,omitempty"` // whose work it is
	ReturnUser  string   `cbor:"6,keyasint,omitempty"`
	Completed   []string `cbor:"7,keyasint,omitempty"` // stages that were approved
	Rounds      int      `cbor:"8,keyasint,omitempty"` // how often changes were asked for
	Decision    string   `cbor:"9,keyasint,omitempty"` // the last one
	Outcome     string   `cbor:"10,keyasint,omitempty"`
	Request     string   `cbor:"11,keyasint,omitempty"` // what who is to decide the pending stage is asked to look at
}

func (i Issue) Policy() (p ExecutionPolicy) {
	if len(i.ExecutionPolicy) > 0 {
		_ = json.Unmarshal(i.ExecutionPolicy, &p) // of another form: no stages
	}
	p.Stages = p.Stages[:min(len(p.Stages), MaxStages)]
	return p
}

func (p ExecutionPolicy) Stage(id string) (executionStage, bool) {
	n := slices.IndexFunc(p.Stages, func(s executionStage) bool { return s.ID == id })
	if n < 0 {
		return executionStage{}, false
	}
	return p.Stages[n], true
}

// ExecutionStateJSON is the state of the stages as clients see it, null when
// nothing was handed in yet.
func (i Issue) ExecutionStateJSON() json.RawMessage {
	s := i.Execution
	if s == nil {
		return json.RawMessage("null")
	}
	p := i.Policy()
	who := func(agent, user string) json.RawMessage {
		switch {
		case agent != "":
			return core.Object{}.Str("type", "agent").Str("agentId", agent).Null("userId", "").Close()
		case user != "":
			return core.Object{}.Str("type", "user").Null("agentId", "").Str("userId", user).Close()
		}
		return json.RawMessage("null")
	}
	stage, _ := p.Stage(s.Stage)
	o := core.Object{}.Str("status", s.Status).Null("currentStageId", s.Stage)
	if at := slices.IndexFunc(p.Stages, func(st executionStage) bool { return st.ID == s.Stage }); at >= 0 {
		o = o.Int("currentStageIndex", int64(at))
	} else {
		o = o.Null("currentStageIndex", "")
	}
	return o.Null("currentStageType", stage.Type).Raw("currentParticipant", who(s.Agent, s.User)).Raw("returnAssignee", who(s.ReturnAgent, s.ReturnUser)).
		List("completedStageIds", s.Completed).Int("changesRequestedCount", int64(s.Rounds)).Null("lastDecisionId", s.Decision).Null("lastDecisionOutcome", s.Outcome).
		Raw("reviewRequest", i.ReviewRequest()).Close()
}

// ReviewRequest is what the participant of the pending stage is asked, null for nothing.
func (i Issue) ReviewRequest() json.RawMessage {
	if i.Execution == nil || i.Execution.Request == "" {
		return json.RawMessage("null")
	}
	return core.Object{}.Str("instructions", i.Execution.Request).Close()
}

func (p ExecutionParticipant) Is(agent, user string) bool {
	return p.Type == "agent" && p.Agent != "" && p.Agent == agent || p.Type == "user" && p.User != "" && p.User == user
}

// Participant returns the first who may decide a stage: somebody who is there
// and did not do the work.
func (s executionStage) Participant(tx *ledger.Tx, company string, of ExecutionState) (ExecutionParticipant, bool) {
	for _, p := range s.Participants {
		if p.Is(of.ReturnAgent, of.ReturnUser) {
			continue
		}
		if p.Type == "agent" {
			if a, ok := AgentTable.Get(tx, company, p.Agent); !ok || a.Status == AgentTerminated || a.Status == AgentPendingApproval {
				continue
			}
		} else if !Ask.Belongs(tx, company, p.User) {
			continue
		}
		return p, true
	}
	return ExecutionParticipant{}, false
}

// A Monitor is how an issue's owner waits for something outside: the policy of
// the issue says when to look again, and its agent is woken then, once. As long
// as it waits the issue is not one that was left undecided.
type Monitor struct {
	NextAt   core.Time `cbor:"1,keyasint,omitempty"` // 0: nothing is scheduled
	LastAt   core.Time `cbor:"2,keyasint,omitempty"` // when it fired last
	Attempts int64     `cbor:"3,keyasint,omitempty"` // how often it fired
	Notes    string    `cbor:"4,keyasint,omitempty"`
	By       string    `cbor:"5,keyasint,omitempty"` // assignee or board
}

// A monitorPolicy is the member monitor of an execution policy.
type MonitorPolicy struct {
	NextAt      core.Time `json:"nextCheckAt"`
	Notes       string    `json:"notes"`
	By          string    `json:"scheduledBy"`
	TimeoutAt   core.Time `json:"timeoutAt"`
	MaxAttempts int64     `json:"maxAttempts"`
	Recovery    string    `json:"recoveryPolicy"` // what happens past the time-out or the attempts
}

// Monitors reports whether i waits for something outside: an agent has it, at
// work or in review, and will be woken.
func (i Issue) Monitors() bool {
	return i.Monitor != nil && i.Monitor.NextAt > 0 && i.Watchable()
}

func (i Issue) Watchable() bool {
	return i.Assignee != "" && i.AssigneeUser == "" && (i.Status == IssueInProgress || i.Status == IssueInReview)
}

// A Handoff says that a run of an issue ended well without a word on what
// becomes of the issue, and which run asks again.
type Handoff struct {
	Source     string    `cbor:"1,keyasint" json:"-"`
	Corrective string    `cbor:"2,keyasint" json:"-"`
	Assignee   string    `cbor:"3,keyasint" json:"-"`
	Summary    string    `cbor:"4,keyasint" json:"-"`
	At         core.Time `cbor:"5,keyasint" json:"-"`
}
