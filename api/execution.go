package api

import (
	"encoding/json"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/ledger"
)

// policyBody is what is looked at of an execution policy; its other members are
// kept as they are.
type policyBody struct {
	Mode            string       `json:"mode,omitempty" enum:"normal,auto"`
	CommentRequired *bool        `json:"commentRequired,omitempty" nullable:"false"`
	Stages          []stageBody  `json:"stages,omitempty" maxItems:"20"`
	MaxRounds       Opt[float64] `json:"maxReviewRounds" minimum:"1" maximum:"50"`
	Monitor         *monitorBody `json:"monitor,omitempty"`
}

// monitorBody says when an issue's agent looks again at something outside.
type monitorBody struct {
	NextCheckAt core.Time      `json:"nextCheckAt"`
	Notes       Opt[string]    `json:"notes" maxLength:"500"`
	By          string         `json:"scheduledBy,omitempty" enum:"assignee,board"`
	Kind        Opt[string]    `json:"kind" enum:"external_service"`
	Service     Opt[string]    `json:"serviceName" minLength:"1" maxLength:"120"`
	Ref         Opt[string]    `json:"externalRef" minLength:"1" maxLength:"500"`
	TimeoutAt   Opt[core.Time] `json:"timeoutAt"`
	MaxAttempts Opt[int]       `json:"maxAttempts" minimum:"1" maximum:"100"`
	Recovery    Opt[string]    `json:"recoveryPolicy" enum:"wake_owner,create_recovery_issue,escalate_to_board"`
}

type stageBody struct {
	ID           string            `json:"id,omitempty" format:"uuid"`
	Type         string            `json:"type" enum:"review,approval"`
	Needed       *float64          `json:"approvalsNeeded,omitempty" minimum:"1" maximum:"1" nullable:"false"`
	Participants []participantBody `json:"participants,omitempty" maxItems:"20"`
}

type participantBody struct {
	ID    string      `json:"id,omitempty" format:"uuid"`
	Type  string      `json:"type" enum:"agent,user"`
	Agent Opt[string] `json:"agentId" format:"uuid"`
	User  Opt[string] `json:"userId" minLength:"1" maxLength:"200"`
}

// Check asks each participant for the ID of its kind, and each stage for one who decides it.
func (p policyBody) Check() (out []Issue) {
	for n, s := range p.Stages {
		if len(s.Participants) == 0 {
			out = append(out, Issue{Code: "too_small", Path: []any{"stages", n, "participants"}, Message: "A stage needs a participant"})
		}
		for k, who := range s.Participants {
			if who.Type == "agent" && who.Agent.Or("") == "" || who.Type == "user" && who.User.Or("") == "" {
				out = append(out, Issue{Code: "custom", Path: []any{"stages", n, "participants", k}, Message: "A participant of type " + who.Type + " needs its ID"})
			}
		}
	}
	return out
}

// checkedPolicy checks an execution policy, and gives stages without an ID one.
func checkedPolicy(b json.RawMessage) (json.RawMessage, error) {
	if len(b) == 0 || string(b) == "null" {
		return b, nil
	}
	var p policyBody
	if err := decodeAt(b, &p, "executionPolicy"); err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	stages, _ := all["stages"].([]any)
	if len(stages) == 0 {
		return b, nil
	}
	for n := range stages {
		if s, ok := stages[n].(map[string]any); ok && p.Stages[n].ID == "" {
			s["id"] = NewID()
		}
	}
	return json.Marshal(all)
}

func executionRoutes() []Route {
	return []Route{{Method: "GET", Path: "/api/issues/{id}/execution-decisions", Tag: "issues", Summary: "List what was decided of an issue's work, stage by stage", Out: []paper.ExecutionDecision{},
		Handle: func(rc *Request) (Response, error) {
			return viewed(rc, func(tx *ledger.Tx) ([]paper.ExecutionDecision, error) {
				i, err := findIssue(tx, rc)
				if err != nil {
					return nil, err
				}
				return paper.ExecutionDecisionsOf(tx, i), nil
			})
		}}}
}
