package run

import (
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// runnerGoal describes a goal that an agent's session manages itself. No adapter of this
// version has such sessions, so there never is one: an agent works towards its issue and
// the goals above it.
type runnerGoal struct {
	Issue      string         `json:"issueId"`
	Agent      core.NullText  `json:"agentId"`
	Adapter    core.NullText  `json:"adapterType"`
	Session    *string        `json:"sessionId"`
	Capability goalCapability `json:"capability"`
	Goal       *struct{}      `json:"goal"`
	Working    bool           `json:"workingNow"`
	Run        core.NullText  `json:"activeRunId"`
	Pending    *string        `json:"pendingAction"`
	Revision   int            `json:"revision"`
	ObservedAt *string        `json:"observedAt"`
}

type goalCapability struct {
	Availability string   `json:"availability"`
	Verified     bool     `json:"verified"`
	Actions      []string `json:"actions"`
	Autonomous   bool     `json:"autonomousUpdates"`
	Persistent   bool     `json:"persistentAcrossResume"`
	MaxObjective int      `json:"maxObjectiveChars"`
	TokenBudget  bool     `json:"tokenBudgetControl"`
	Usage        bool     `json:"usageReporting"`
	Code         string   `json:"reasonCode"`
	Reason       string   `json:"reason"`
}

const maxObjective = 4_000

type goalAction struct {
	Request        string         `json:"requestId" minLength:"1" maxLength:"160"`
	Agent          string         `json:"agentId" format:"uuid"`
	Revision       int64          `json:"expectedRevision" minimum:"0"`
	Action         string         `json:"action" enum:"create,edit,replace,pause,resume,clear"`
	Objective      string         `json:"objective,omitempty" minLength:"1" maxLength:"4000"`
	TokenBudget    api.Opt[int64] `json:"tokenBudget" minimum:"1"`
	ConfirmReplace bool           `json:"confirmReplace,omitempty"`
}

func RunnerGoalRoutes() []api.Route {
	const tag, path = "issues", "/api/issues/{id}/runner-goal"
	return []api.Route{
		api.Read(api.Route{Path: path, Tag: tag, Summary: "Read the goal that an agent's session keeps",
			Query: []api.Param{{Name: "agentId", Doc: "the assignee unless given"}}},
			func(tx *ledger.Tx, rc *api.Request) (runnerGoal, error) {
				return runnerGoalOf(tx, rc, strings.ToLower(rc.Query("agentId")))
			}),
		{Method: "POST", Path: path + "/actions", Tag: tag,
			Summary: "Control the goal of an agent's session, where it keeps one", In: goalAction{}, Out: runnerGoal{},
			Status: 202, Handle: actOnRunnerGoal},
	}
}

// runnerGoalOf answers for an agent on the issue of the path; "" means its assignee.
func runnerGoalOf(tx *ledger.Tx, rc *api.Request, agent string) (runnerGoal, error) {
	i, err := api.FindIssue(tx, rc)
	if err != nil {
		return runnerGoal{}, err
	}
	g := runnerGoal{Issue: i.ID, Capability: goalCapability{Availability: "unsupported", Verified: true,
		Actions: []string{}, MaxObjective: maxObjective,
		Code: "no_agent_selected", Reason: "Nobody has the issue whose session could keep a goal."}}
	a, ok := entity.AgentOf(tx, i.Company, api.OrElse(agent, i.Assignee))
	if !ok {
		return g, nil
	}
	g.Agent, g.Adapter, g.Run = core.NullText(a.ID), core.NullText(a.AdapterType), core.NullText(i.CheckoutRun)
	g.Capability.Code, g.Capability.Reason = "persistent_session_goal_extension_required",
		"The sessions of this adapter keep no goal of their own."
	return g, nil
}

func actOnRunnerGoal(rc *api.Request) (r api.Response, err error) {
	in, err := api.Body[goalAction](rc)
	if err != nil {
		return r, err
	}
	agent := strings.ToLower(in.Agent)
	return r, rc.View(func(tx *ledger.Tx) error {
		g, err := runnerGoalOf(tx, rc, agent)
		if err != nil {
			return err
		}
		i, err := api.FindIssue(tx, rc)
		switch {
		case err != nil:
			return err
		case rc.IsAgent() && rc.Actor.ID != agent:
			return api.Forbidden("Agent can only control its own assigned session goal")
		case g.Agent == "":
			return api.NotFound("Agent not found.")
		case i.Assignee != agent:
			return coded("agent_not_assigned", "The selected agent is not assigned to this issue.")
		}
		return coded(g.Capability.Code, g.Capability.Reason)
	})
}

// coded is a 422 with a code that clients branch on.
func coded(code, text string) error {
	err := ledger.Refuse(ledger.Unprocessable, nil, "%s", text)
	err.(*ledger.Refusal).ErrCode = code
	return err
}
