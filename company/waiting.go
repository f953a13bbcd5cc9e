package company

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Wait is the reason why a queued run does not start.
type Wait struct {
	Reason string `json:"reason"` // such as no_node, for programs
	Text   string `json:"text"`   // such as "no node has program claude"
	// Lasting reports that the reason stays until somebody does what Do says.
	Lasting bool          `json:"lasting"`
	Do      core.NullText `json:"do"`
	Since   core.Time     `json:"since"`
}

// WaitOf returns why a run waits at now; ok is false for a run that has started or ended.
func WaitOf(tx *ledger.Tx, r entity.Run, now core.Time) (w Wait, ok bool) {
	if r.Status != entity.RunQueued && r.Status != entity.RunScheduledRetry {
		return w, false
	}
	w = Wait{Reason: "node", Text: "it waits for a node", Since: max(r.CreatedAt, r.ScheduledRetryAt)}
	reason, stop := StoppedBy(tx, r.Company, r.Agent, r.Context.IssueID)
	switch {
	case r.Session != 0:
		w.Reason, w.Text = "starting", "its node is about to start it"
	case stop != "":
		w.Reason, w.Text = reason, stop
	case r.ScheduledRetryAt > now:
		w.Reason, w.Text, w.Since = "retry_later", "it is tried again at "+r.ScheduledRetryAt.String(), r.CreatedAt
	case entity.RoomForRuns(tx, r.Company, r.Agent) <= 0:
		w.Reason, w.Text = "concurrency_limit", "its agent has as many runs at work as it may have (maxConcurrentRuns)"
	case r.Deferred(tx):
		w.Reason, w.Text = "run_at_work", "another run of its agent is at work on the same issue"
	case r.HeldUp(tx):
		w.Reason, w.Text = "run_ending",
			"the run before it still holds the issue: it is over, but its node has not said yet that its processes are gone"
	default:
		if p, told := PlacementOf(tx, r.Company, r.ID); told && p.Node == "" && len(p.Candidates) > 0 {
			p.explain(tx, r, &w)
		}
	}
	return w, true
}

// StoppedBy returns, as a code and in words, why no run of an agent about an issue can
// start now. Both are empty when it can. issue is "" for a run about none.
func StoppedBy(tx *ledger.Tx, company ledger.CompanyID, agent, issue string) (reason, text string) {
	if h, halted := entity.Halted(tx); halted {
		if text = "everything is stopped (selvage resume lets it go on)"; h.Reason != "" {
			text = "everything is stopped: " + h.Reason + " (selvage resume lets it go on)"
		}
		return string(DeniedMeshStopped), text
	}
	row, _ := entity.CompanyTable.Get(tx, company, company)
	a, _ := entity.AgentTable.Get(tx, company, agent)
	p, _ := entity.ProjectTable.Get(tx, company, entity.ProjectOfIssue(tx, company, issue))
	switch {
	case row.Status == entity.CompanyArchived:
		return string(DeniedCompany), "the company is archived"
	case row.Status == entity.CompanyPaused && row.PauseReason == entity.PausedForBudget:
		return string(DeniedBudget), "paused by its budget, that of company " + row.Name
	case row.Status == entity.CompanyPaused:
		return string(DeniedCompany), "the company is paused (selvage company resume)"
	case a.Status == entity.AgentPaused && a.PauseReason == entity.PausedForBudget:
		return string(DeniedBudget), "paused by its budget, that of agent " + a.Name
	case a.Status == entity.AgentPaused && a.PauseReason == entity.PausedForNoProgress:
		return string(DeniedNoProgress), "agent " + a.Name + " is paused: its runs came to nothing"
	case a.Status == entity.AgentPaused:
		return string(DeniedAgent), "agent " + a.Name + " is paused (selvage agent resume)"
	case a.Status == entity.AgentPendingApproval:
		return string(DeniedAgent), "agent " + a.Name + " is not approved yet"
	case issue != "" && p.PauseReason == entity.PausedForBudget:
		return string(DeniedBudget), "paused by its budget, that of project " + p.Name
	}
	return "", ""
}

// passing are the beginnings of refusals that pass when other work ends.
var passing = []string{"all slots are taken", "takes no runs now", "has not "}

// maxToldNodes bounds the nodes that a text lists.
const maxToldNodes = 4

// explain fills in why no node takes r.
func (p Placement) explain(tx *ledger.Tx, r entity.Run, w *Wait) {
	var each []string
	same, lasting := true, true
	for n, c := range p.Candidates {
		why := string(c.Refusal)
		if why == "" {
			return // the decision is older than the change
		}
		for _, begins := range passing {
			if strings.HasPrefix(why, begins) {
				lasting = false
			}
		}
		same = same && c.Refusal == p.Candidates[0].Refusal
		if n < maxToldNodes {
			node, _ := ledger.FindNode(tx, identity.NodeID(c.Node))
			each = append(each, node.Name+" "+why)
		}
	}
	first := string(p.Candidates[0].Refusal)
	what, lacks := strings.CutPrefix(first, "has no ")
	switch {
	case same && lacks:
		w.Text = "no node has " + strings.Replace(what, "GPU", "a GPU", 1)
	case same:
		w.Text = "of every node: " + first
	default:
		if w.Text = strings.Join(each, "; "); len(p.Candidates)+p.Omitted > maxToldNodes {
			w.Text += "; and others"
		}
	}
	w.Reason, w.Lasting = "no_node", lasting
	if !lasting {
		w.Reason = "no_slot"
		return
	}
	a, _ := entity.AgentTable.Get(tx, r.Company, r.Agent)
	w.Do = core.NullText(remedy(w.Text, a.Name))
}

// remedy returns what to do when nodes refuse the runs of an agent.
func remedy(why, agent string) string {
	name := `"` + agent + `"`
	_, program, lacks := strings.Cut(why, " program ")
	program, _, _ = strings.Cut(program, ";")
	switch {
	case lacks:
		return "install " + program + " on a node, or change the adapter: selvage agent update " + name +
			" --adapter TYPE --config JSON"
	case strings.Contains(why, " adapter "):
		return "change the adapter: selvage agent update " + name + " --adapter TYPE --config JSON"
	case strings.Contains(why, "is cordoned"), strings.Contains(why, "is being drained"):
		return "let a node take runs again: selvage node uncordon NODE"
	case strings.Contains(why, "is not heard"):
		return "bring the node back; if it is gone for good: selvage node remove NODE"
	}
	return "bring a node that fits, or change runtimeConfig.placement: selvage agent update " + name + " --runtime JSON"
}

// sayWhatIsMissing comments on the issue of a run for which no node has the program
// or the adapter: what is missing and what to do. It is said once for an issue, when
// the run begins to wait, as nobody reads the run's own page before they miss it.
func sayWhatIsMissing(c *ledger.Context, r entity.Run) {
	w, waits := WaitOf(c.Tx, r, core.TimeOf(c.Now))
	if !waits || !w.Lasting || !strings.HasPrefix(w.Text, "no node has program ") && !strings.HasPrefix(w.Text,
		"no node has adapter ") {
		return
	}
	i, ok := entity.IssueTable.Get(c.Tx, r.Company, r.Context.IssueID)
	if !ok || i.Status.Terminal() {
		return
	}
	body := "The run of this issue can not begin: " + w.Text + ". To go on: " + string(w.Do) +
		". Without that the run is given up and the issue is blocked."
	// The command is a node's, so the comment is the system's. It is refused where it was made before.
	next, _, err := AddComment(c, i, entity.CreateComment{ID: core.DerivedID("what-is-missing", i.ID, w.Text), Issue: i.ID,
		Body: body})
	if err == nil {
		StoreIssue(c.Tx, i, next)
	}
}

// LongWaits returns up to n runs of a company: of each agent the run that has waited
// longest, at least bound, for a reason that does not pass by itself.
func LongWaits(tx *ledger.Tx, company ledger.CompanyID, now, bound core.Time, n int) (out []entity.Run, why []Wait) {
	seen := map[string]bool{}
	for _, r := range entity.LiveRunsOf(tx, company) {
		if len(out) == n {
			break
		}
		if w, ok := WaitOf(tx, r, now); ok && w.Lasting && now-w.Since >= bound && !seen[r.Agent] {
			seen[r.Agent] = true
			out, why = append(out, r), append(why, w)
		}
	}
	return out, why
}
