package mesh

import (
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// stopAll is the body of the emergency stop.
type stopAll struct {
	Reason api.Opt[string] `json:"reason" maxLength:"1000"`
}

// A stopState says whether everything is stopped, and what is still running.
type stopState struct {
	Stopped bool         `json:"stopped"`
	Since   *entity.Halt `json:"since"`
	Running int          `json:"running"` // runs still in progress; counts at most 1,000
	Closing int          `json:"closing"` // cancelled runs whose children may still exist
}

// cordonNode is the body that cordons a node.
type cordonNode struct {
	Drain  bool            `json:"drain,omitempty"`
	Reason api.Opt[string] `json:"reason" maxLength:"1000"`
}

// maxCountedRuns bounds the runs that are counted.
const maxCountedRuns = 1_000

// A placement says why a run is on its node, with the nodes' names.
type placement struct {
	company.Placement
	Status     entity.RunStatus     `json:"status"`
	NodeName   core.NullText        `json:"nodeName"`
	Summary    string               `json:"summary"`
	Adapter    string               `json:"adapterType"`
	Wish       company.Wish         `json:"placement"` // the agent's current wish
	Candidates []placementCandidate `json:"candidates"`
}

type placementCandidate struct {
	company.Candidate
	Name core.NullText `json:"name"`
}

func SchedulingRoutes() []api.Route {
	return []api.Route{
		{Method: "GET", Path: "/api/v1/mesh/stop", Tag: "mesh", Summary: "Tell whether everything is stopped",
			Out: stopState{}, Who: api.Admin, Handle: readStop},
		{Method: "POST", Path: "/api/v1/mesh/stop", Tag: "mesh",
			Summary: "Stop everything: cancel all runs of all companies, start none, spend nothing", Who: api.Admin,
			In: stopAll{}, Out: stopState{}, Handle: stopEverything},
		{Method: "POST", Path: "/api/v1/mesh/resume", Tag: "mesh", Summary: "Let work begin again after a stop",
			Who: api.Admin, Out: stopState{}, Handle: resumeEverything},
		{Method: "POST", Path: "/api/v1/mesh/nodes/{id}/cordon", Tag: "mesh",
			Summary: "Keep a node from new runs; drain it to take it away", Who: api.Admin, In: cordonNode{}, Out: member{},
			Handle: cordonMember},
		{Method: "POST", Path: "/api/v1/mesh/nodes/{id}/uncordon", Tag: "mesh", Summary: "Let a node have new runs again",
			Who: api.Admin, Out: member{}, Handle: uncordonNode},
		api.Read(api.Route{Path: "/api/heartbeat-runs/{runId}/placement", Tag: "runs",
			Summary: "Tell why a run is where it is, or why it waits"}, readPlacement),
	}
}

func showStop(rc *api.Request) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (stopState, error) {
		out := stopState{Running: len(company.RunningRuns(tx, maxCountedRuns))}
		if h, ok := entity.Halted(tx); ok {
			out.Stopped, out.Since = true, &h
		}
		for _, s := range entity.SessionsWithRuns(tx) {
			for _, r := range entity.RunsOfSession(tx, s.Session) {
				if !r.Status.Live() {
					out.Closing++
				}
			}
		}
		return out, nil
	})
}

func readStop(rc *api.Request) (api.Response, error) { return showStop(rc) }

func stopEverything(rc *api.Request) (api.Response, error) {
	in, err := api.Body[stopAll](rc)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(company.KindMeshStop, "", company.StopAll{Reason: in.Reason.Or("")}); err != nil {
		return api.Response{}, err
	}
	return showStop(rc)
}

func resumeEverything(rc *api.Request) (api.Response, error) {
	if _, err := rc.Submit(company.KindMeshResume, "", company.ResumeAll{}); err != nil {
		return api.Response{}, err
	}
	return showStop(rc)
}

func cordonMember(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[cordonNode](rc)
	if err != nil {
		return api.Response{}, err
	}
	id, err := findNode(rc, rc.Path("id"))
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(company.KindNodeCordon, "", company.Cordon{Node: string(id), Drain: in.Drain,
		Reason: in.Reason.Or("")}); err != nil {
		return api.Response{}, err
	}
	return oneMember(s, rc, id)
}

func uncordonNode(rc *api.Request) (api.Response, error) {
	s := rc.Server
	id, err := findNode(rc, rc.Path("id"))
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(company.KindNodeUncordon, "", company.Uncordon{Node: string(id)}); err != nil {
		return api.Response{}, err
	}
	return oneMember(s, rc, id)
}

func oneMember(s *api.Server, rc *api.Request, id identity.NodeID) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (member, error) {
		n, ok := ledger.FindNode(tx, id)
		if !ok {
			return member{}, api.NotFound("Node not found")
		}
		return memberOf(s, n).onDuty(tx), nil
	})
}

func readPlacement(tx *ledger.Tx, rc *api.Request) (placement, error) {
	r, err := api.FindRun(tx, rc)
	if err != nil {
		return placement{}, err
	}
	name := func(id string) core.NullText {
		n, _ := ledger.FindNode(tx, identity.NodeID(id))
		return core.NullText(n.Name)
	}
	p, decided := company.PlacementOf(tx, r.Company, r.ID)
	out := placement{Placement: p, Status: r.Status, NodeName: name(string(p.Node)), Candidates: []placementCandidate{}}
	out.Run = r.ID
	out.Adapter, out.Wish = company.NeedsOf(tx, r)
	for _, c := range p.Candidates {
		out.Candidates = append(out.Candidates, placementCandidate{c, name(c.Node)})
	}
	waits := r.Session == 0 && (r.Status == entity.RunQueued || r.Status == entity.RunScheduledRetry)
	_, halted := entity.Halted(tx)
	switch {
	case waits && halted:
		out.Summary = "waits: everything is stopped"
	case waits && core.TimeOf(rc.Now()) < r.ScheduledRetryAt:
		out.Summary = "waits: it is to be tried again at " + r.ScheduledRetryAt.String()
	case waits && entity.RoomForRuns(tx, r.Company, r.Agent) <= 0:
		out.Summary = "waits: its agent has as many runs at work as it may have"
	case waits && decided && p.Node == "":
		out.Summary = "waits: no node can take it"
	case waits:
		out.Summary = "waits for a node"
	case p.Node != "":
		out.Summary = "went to " + string(out.NodeName) + ", which had the lowest score"
	case decided:
		out.Summary = "was never placed: no node could take it"
	default:
		out.Summary = "was never placed"
	}
	return out, nil
}
