package entity

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
)

// An executionPolicy says who looks at the work on an issue before it is done,
// stage by stage. It is kept as it came in; the API has checked its form.
type ExecutionPolicy struct {
	CommentRequired *bool            `json:"commentRequired"` // true when absent
	Stages          []ExecutionStage `json:"stages"`
	MaxRounds       int              `json:"maxReviewRounds"` // 0: no bound
	Monitor         *MonitorPolicy   `json:"monitor"`
}

type ExecutionStage struct {
	ID           string                 `json:"id"`
	Type         string                 `json:"type"` // review or approval
	Participants []ExecutionParticipant `json:"participants"`
}

// An ExecutionParticipant may decide a stage.
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

func (p ExecutionPolicy) Stage(id string) (ExecutionStage, bool) {
	n := slices.IndexFunc(p.Stages, func(s ExecutionStage) bool { return s.ID == id })
	if n < 0 {
		return ExecutionStage{}, false
	}
	return p.Stages[n], true
}

func (p ExecutionParticipant) Is(agent, user string) bool {
	return p.Type == "agent" && p.Agent != "" && p.Agent == agent || p.Type == "user" && p.User != "" && p.User == user
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

// A Handoff says that a run of an issue ended well without a word on what
// becomes of the issue, and which run asks again.
type Handoff struct {
	Source     string    `cbor:"1,keyasint" json:"-"`
	Corrective string    `cbor:"2,keyasint" json:"-"`
	Assignee   string    `cbor:"3,keyasint" json:"-"`
	Summary    string    `cbor:"4,keyasint" json:"-"`
	At         core.Time `cbor:"5,keyasint" json:"-"`
}
