package paper

import (
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An ExecutionDecision is a participant's decision in a stage.
type ExecutionDecision struct {
	ID        string           `cbor:"1,keyasint" json:"id"`
	Company   ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Issue     string           `cbor:"3,keyasint" json:"issueId"`
	Stage     string           `cbor:"4,keyasint" json:"stageId"`
	StageType string           `cbor:"5,keyasint" json:"stageType"`
	Agent     core.NullText    `cbor:"6,keyasint,omitempty" json:"actorAgentId"`
	User      core.NullText    `cbor:"7,keyasint,omitempty" json:"actorUserId"`
	Outcome   string           `cbor:"8,keyasint" json:"outcome"` // approved or changes_requested
	Body      string           `cbor:"9,keyasint,omitempty" json:"body"`
	Run       core.NullText    `cbor:"10,keyasint,omitempty" json:"createdByRunId"`
	CreatedAt core.Time        `cbor:"11,keyasint" json:"createdAt"`
}

// Decisions are keyed by "<issue>.<height>", oldest first.
var executionDecisions = ledger.NewTable[string, ExecutionDecision]("execution-decision")

// KeptDecisions bounds the decisions of one issue; the oldest are dropped.
const KeptDecisions = 200

// ExecutionDecisionsOf returns the decisions on an issue, oldest first.
func ExecutionDecisionsOf(tx *ledger.Tx, i entity.Issue) []ExecutionDecision {
	out := []ExecutionDecision{}
	for _, v := range tx.Prefix(executionDecisions.Key(i.Company, i.ID+".")) {
		out = append(out, core.DecodeRow[ExecutionDecision](v))
	}
	return out
}

// MaxReviewRequest bounds the request to a reviewer, in bytes.
const MaxReviewRequest = 20_000

// requested returns next with the request of an update to the participant of its pending
// stage. The request ends with the stage.
func requested(i, next entity.Issue, p company.UpdateIssue) (entity.Issue, error) {
	s := next.Execution
	pending := s != nil && s.Status == "pending" && next.Status == entity.IssueInReview
	was := i.Execution
	switch {
	case p.ReviewRequest != nil && *p.ReviewRequest != "" && !pending:
		return next, core.RefuseCode(ledger.Unprocessable, "no_stage_pending", core.StatusDetail("issueId", i.ID,
			next.Status),
			"Nobody is to review the issue now; give reviewRequest when it is handed in to a stage of its executionPolicy, "+
				"or leave it out")
	case p.ReviewRequest != nil && len(*p.ReviewRequest) > MaxReviewRequest:
		return next, ledger.Refuse(ledger.Invalid, nil, "reviewRequest has at most %d bytes", MaxReviewRequest)
	case s == nil:
		return next, nil
	}
	want := ""
	if pending && was != nil && was.Status == "pending" && was.Stage == s.Stage {
		want = was.Request
	}
	if p.ReviewRequest != nil {
		want = *p.ReviewRequest
	}
	if want != s.Request {
		state := *s
		state.Request = want
		next.Execution = &state
	}
	return next, nil
}

// checkParticipants refuses a policy with a participant that does not exist or was terminated.
// Participants that the policy had before are not checked again.
func checkParticipants(tx *ledger.Tx, old, next entity.Issue) error {
	if string(old.ExecutionPolicy) == string(next.ExecutionPolicy) {
		return nil
	}
	var before []entity.ExecutionParticipant
	for _, s := range old.Policy().Stages {
		before = append(before, s.Participants...)
	}
	for n, s := range next.Policy().Stages {
		for k, p := range s.Participants {
			if slices.ContainsFunc(before, func(o entity.ExecutionParticipant) bool { return o.Is(p.Agent, p.User) }) {
				continue
			}
			at := "executionPolicy.stages." + strconv.Itoa(n) + ".participants." + strconv.Itoa(k)
			switch a, ok := entity.AgentTable.Get(tx, next.Company, p.Agent); {
			case p.Type == "agent" && !ok:
				return ledger.Refuse(ledger.NotFound, nil, "%s.agentId: agent not found", at)
			case p.Type == "agent" && a.Status == entity.AgentTerminated:
				return ledger.Refuse(ledger.Unprocessable, a.Standing(), "%s.agentId: a terminated agent decides nothing", at)
			case p.Type == "user" && !company.Ask.Belongs(tx, next.Company, p.User):
				return ledger.Refuse(ledger.NotFound, nil, "%s.userId: user not found", at)
			}
		}
	}
	return nil
}

// reviewed applies the stages of an issue's policy to an update. A hand-in of the worker goes
// to the next stage's participant; the participant's answer approves the stage, or returns the
// work. The board may skip all stages. It returns the update as it will be executed.
func reviewed(c *ledger.Context, i, next entity.Issue, p company.UpdateIssue) (entity.Issue,
	company.UpdateIssue, error) {
	policy := next.Policy()
	if len(policy.Stages) == 0 || p.Status == "" || p.Status == i.Status {
		return next, p, nil
	}
	agent, user := core.ActedBy(c)
	s := i.Execution
	pending := s != nil && s.Status == "pending" && i.Status == entity.IssueInReview
	switch {
	case pending && (string(agent) != "" && string(agent) == s.Agent || string(user) != "" && string(user) == s.User):
		return decideStage(c, i, next, p, policy)
	case pending && core.IsAgent(c):
		return next, p, core.RefuseCode(ledger.Forbidden, "execution_stage_participant_required",
			core.Object{}.Str("issueId", i.ID).Str("stageId", s.Stage).Null("agentId", s.Agent).Null("userId", s.User).Close(),
			"Only the participant of the current stage can decide it")
	case pending || core.IsBoard(c) && string(user) != i.AssigneeUser:
		if s != nil && p.Status.Terminal() { // the board skips the stages
			state := *s
			state.Status, state.Stage, state.Agent, state.User = "completed", "", "", ""
			next.Execution = &state
		} else if pending {
			next.Execution = nil
		}
		return next, p, nil
	case p.Status == entity.IssueDone && (s == nil || s.Status != "completed"):
		state := entity.ExecutionState{}
		if s != nil {
			state = *s
		}
		state.ReturnAgent, state.ReturnUser = i.Assignee, i.AssigneeUser
		return toStage(c, next, p, policy, state)
	}
	return next, p, nil
}

// toStage hands the work to the first stage that is not approved; after the last stage it is
// done.
func toStage(c *ledger.Context, next entity.Issue, p company.UpdateIssue, policy entity.ExecutionPolicy,
	state entity.ExecutionState) (entity.Issue, company.UpdateIssue, error) {
	for _, stage := range policy.Stages {
		if slices.Contains(state.Completed, stage.ID) {
			continue
		}
		who, ok := company.ParticipantOf(c.Tx, stage, next.Company, state)
		if !ok {
			return next, p, core.RefuseCode(ledger.Unprocessable, "execution_stage_without_participant",
				core.Object{}.Str("issueId", next.ID).Str("stageId", stage.ID).Close(),
				"Nobody but who did the work can decide this stage; name another participant")
		}
		state.Status, state.Stage, state.Agent, state.User = "pending", stage.ID, "", ""
		if who.Type == "agent" {
			state.Agent = who.Agent
		} else {
			state.User = who.User
		}
		p.Status = entity.IssueInReview
		next = next.Unheld()
		next.Assignee, next.AssigneeUser, next.Execution = state.Agent, state.User, &state
		return next, p, nil
	}
	state.Status, state.Stage, state.Agent, state.User = "completed", "", "", ""
	p.Status = entity.IssueDone
	next.Assignee, next.AssigneeUser, next.Execution = state.ReturnAgent, state.ReturnUser, &state
	return next, p, nil
}

// decideStage stores the decision of the current stage's participant.
func decideStage(c *ledger.Context, i, next entity.Issue, p company.UpdateIssue,
	policy entity.ExecutionPolicy) (entity.Issue, company.UpdateIssue, error) {
	state := *i.Execution
	stage, ok := policy.Stage(state.Stage)
	if !ok { // the policy changed in between
		return toStage(c, next, p, policy, state)
	}
	body := ""
	if p.Comment != nil {
		body = p.Comment.Body
	}
	if p.Status == entity.IssueBlocked || p.Status == entity.IssueCancelled {
		return next, p, nil
	}
	if (policy.CommentRequired == nil || *policy.CommentRequired) && strings.TrimSpace(body) == "" {
		return next, p, ledger.Refuse(ledger.Unprocessable, nil, "A decision on a stage needs a comment that says why")
	}
	d := ExecutionDecision{ID: core.DerivedID("execution-decision", i.ID, ledger.Order(c.Height)), Company: i.Company,
		Issue: i.ID, Stage: stage.ID, StageType: stage.Type,
		Outcome: "approved", Body: core.Snippet(body, entity.MaxTitle), Run: core.NullText(c.Cmd.Run),
		CreatedAt: core.TimeOf(c.Now)}
	d.Agent, d.User = core.ActedBy(c)
	if p.Status != entity.IssueDone {
		d.Outcome = "changes_requested"
	}
	keepDecision(c, d)
	state.Decision, state.Outcome = d.ID, d.Outcome
	if d.Outcome == "approved" {
		state.Completed = append(slices.Clone(state.Completed), stage.ID)
		return toStage(c, next, p, policy, state)
	}
	state.Status, state.Agent, state.User = "changes_requested", "", ""
	state.Rounds++
	next.Assignee, next.AssigneeUser, next.Execution = state.ReturnAgent, state.ReturnUser, &state
	if policy.MaxRounds > 0 && state.Rounds >= policy.MaxRounds {
		p.Status = ""
		next = next.Enter(entity.IssueBlocked, core.TimeOf(c.Now))
		next.UnblockDescriptor = core.Object{}.Str("owner", "board").Str("action", "decide").
			Str("reason", "max_review_rounds").Close()
		return next, p, nil
	}
	// Back to todo, whatever was requested: its worker checks it out.
	p.Status = ""
	next = next.Enter(entity.IssueTodo, core.TimeOf(c.Now))
	return next, p, nil
}

func keepDecision(c *ledger.Context, d ExecutionDecision) {
	executionDecisions.Put(c.Tx, d.Company, d.Issue+"."+ledger.Order(c.Height), d)
	n := 0
	prefix := executionDecisions.Key(d.Company, d.Issue+".")
	for _, k := range decisionKeys(c.Tx, prefix) {
		if n++; n > KeptDecisions {
			c.Delete(k)
		}
	}
	company.RecordLive(c, ledger.Change{Action: "issue.execution_decision_recorded", EntityType: "issue",
		EntityID: d.Issue,
		Details: core.Object{}.Str("decisionId", d.ID).Str("stageId", d.Stage).Str("stageType", d.StageType).
			Str("outcome", d.Outcome).Close()})
}

// decisionKeys returns the keys of an issue's decisions, newest first.
func decisionKeys(tx *ledger.Tx, prefix []byte) (keys [][]byte) {
	for k := range tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
		keys = append(keys, slices.Clone(k))
	}
	return keys
}

// wakeForStage wakes the agent that must decide a stage now.
func wakeForStage(c *ledger.Context, before, i entity.Issue) error {
	s := i.Execution
	if s == nil || s.Status != "pending" || s.Agent == "" || before.Execution != nil &&
		before.Execution.Status == "pending" && before.Execution.Stage == s.Stage {
		return nil
	}
	return company.WakeForIssue(c, i, entity.WakeAutomation, "issue.update",
		"execution_"+stageWord(i, s.Stage)+"_requested", "")
}

func stageWord(i entity.Issue, stage string) string {
	if s, ok := i.Policy().Stage(stage); ok && s.Type == "approval" {
		return "approval"
	}
	return "review"
}

// LastDecision returns the ID of the last decision of a stage, or "".
func LastDecision(i entity.Issue) string {
	if i.Execution == nil {
		return ""
	}
	return i.Execution.Decision
}
