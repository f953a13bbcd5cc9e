package work

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The bodies about holds of issue trees.
type (
	holdBody struct {
		_        struct{}         `additionalProperties:"false"`
		Mode     string           `json:"mode" enum:"pause,resume,cancel,restore"`
		Reason   api.Opt[string]  `json:"reason" minLength:"1" maxLength:"1000"`
		Release  *releasePolicy   `json:"releasePolicy,omitempty"`
		Metadata *json.RawMessage `json:"metadata,omitempty" maxBytes:"16384"`
	}
	previewBody struct {
		_       struct{}       `additionalProperties:"false"`
		Mode    string         `json:"mode" enum:"pause,resume,cancel,restore"`
		Release *releasePolicy `json:"releasePolicy,omitempty"`
	}
	releaseBody struct {
		_        struct{}         `additionalProperties:"false"`
		Reason   api.Opt[string]  `json:"reason" minLength:"1" maxLength:"1000"`
		Release  *releasePolicy   `json:"releasePolicy,omitempty"`
		Metadata *json.RawMessage `json:"metadata,omitempty"`
	}
	releasePolicy struct {
		_        struct{}        `additionalProperties:"false"`
		Strategy string          `json:"strategy,omitempty" enum:"manual,after_active_runs_finish"`
		Note     api.Opt[string] `json:"note" minLength:"1" maxLength:"500"`
	}
)

// maxPreviewed bounds the issues and runs that a preview lists; its totals count all.
const maxPreviewed = 500

// A treePreview says what a hold would change, or has changed.
type treePreview struct {
	Company   ledger.CompanyID `json:"companyId"`
	Root      string           `json:"rootIssueId"`
	Mode      string           `json:"mode"`
	Release   care.HoldRelease `json:"releasePolicy"`
	Totals    treeTotals       `json:"totals"`
	ByStatus  map[string]int   `json:"countsByStatus"`
	Issues    []treeIssue      `json:"issues"`
	Skipped   []treeIssue      `json:"skippedIssues"`
	Runs      []treeRun        `json:"activeRuns"`
	Agents    []treeAgent      `json:"affectedAgents"`
	Warnings  []treeWarning    `json:"warnings"`
	Truncated bool             `json:"truncated"`
}

type treeTotals struct {
	Issues   int `json:"totalIssues"`
	Affected int `json:"affectedIssues"`
	Skipped  int `json:"skippedIssues"`
	Active   int `json:"activeRuns"`
	Queued   int `json:"queuedRuns"`
	Agents   int `json:"affectedAgents"`
}

type treeIssue struct {
	ID         string             `json:"id"`
	Identifier string             `json:"identifier"`
	Title      string             `json:"title"`
	Status     entity.IssueStatus `json:"status"`
	To         core.NullText      `json:"nextStatus"`
	Parent     core.NullText      `json:"parentId"`
	Depth      int                `json:"depth"`
	Agent      core.NullText      `json:"assigneeAgentId"`
	User       core.NullText      `json:"assigneeUserId"`
	Skipped    bool               `json:"skipped"`
	SkipReason core.NullText      `json:"skipReason"`
}

type treeRun struct {
	ID        string           `json:"id"`
	Issue     string           `json:"issueId"`
	Agent     string           `json:"agentId"`
	Status    entity.RunStatus `json:"status"`
	StartedAt core.Time        `json:"startedAt"`
	CreatedAt core.Time        `json:"createdAt"`
}

type treeAgent struct {
	ID     string `json:"agentId"`
	Issues int    `json:"issueCount"`
	Active int    `json:"activeRunCount"`
}

type treeWarning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type heldTree struct {
	Hold    care.TreeHold `json:"hold"`
	Preview treePreview   `json:"preview"`
}

type treeState struct {
	Active *api.PauseHold `json:"activePauseHold"`
}

func TreeHoldRoutes() []api.Route {
	const tag, issue = "issues", "/api/issues/{id}"
	return []api.Route{
		api.Show(api.Route{Path: issue + "/tree-control/state", Tag: tag, Summary: "Tell whether an issue's tree is held"},
			api.FindIssue, treeStateOf),
		{Method: "POST", Path: issue + "/tree-control/preview", Tag: tag,
			Summary: "Tell what a hold on an issue's tree would do", In: previewBody{}, Out: treePreview{}, Handle: previewHold},
		api.Show(api.Route{Path: issue + "/tree-holds", Tag: tag, Summary: "List the holds on an issue's tree, newest first"},
			api.FindIssue, holdsOf),
		{Method: "POST", Path: issue + "/tree-holds", Tag: tag,
			Summary: "Pause, resume, cancel or restore an issue and all below it", Who: api.Board, In: holdBody{},
			Out: heldTree{}, Handle: holdTree},
		api.Read(api.Route{Path: issue + "/tree-holds/{holdId}", Tag: tag, Summary: "Read a hold on an issue's tree"},
			readHold),
		{Method: "POST", Path: issue + "/tree-holds/{holdId}/release", Tag: tag, Summary: "Release a hold on an issue's tree",
			Who: api.Board, In: releaseBody{}, Out: care.TreeHold{}, Handle: releaseHold},
	}
}

func (p *releasePolicy) policy() care.HoldRelease {
	out := care.HoldRelease{Strategy: "manual"}
	if p != nil {
		out.Note = core.NullText(p.Note.Or(""))
		if p.Strategy != "" {
			out.Strategy = p.Strategy
		}
	}
	return out
}

// givenObject returns a member that must be an object, nil when it is absent.
func givenObject(name string, b *json.RawMessage) (json.RawMessage, error) {
	if b == nil || string(*b) == "null" {
		return nil, nil
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(*b, &o) != nil {
		return nil, api.ValidationError(api.Issue{Code: "invalid_type", Expected: "object", Path: []any{name},
			Message: "Invalid input: expected object"})
	}
	return *b, nil
}

func previewOf(p care.TreePlan, root entity.Issue, mode string, release care.HoldRelease) treePreview {
	out := treePreview{Company: root.Company, Root: root.ID, Mode: mode, Release: release, ByStatus: map[string]int{},
		Issues: []treeIssue{}, Skipped: []treeIssue{},
		Runs: []treeRun{}, Agents: []treeAgent{}, Warnings: []treeWarning{}, Truncated: p.Cut}
	agents := map[string]*treeAgent{}
	of := func(id string) *treeAgent {
		if agents[id] == nil {
			agents[id] = &treeAgent{ID: id}
		}
		return agents[id]
	}
	for _, row := range p.Issues {
		i := row.Issue
		t := treeIssue{i.ID, i.Identifier, i.Title, i.Status, core.NullText(row.To), core.NullText(i.Parent), row.Depth,
			core.NullText(i.Assignee),
			core.NullText(i.AssigneeUser), row.Why != "", core.NullText(row.Why)}
		out.Totals.Issues++
		out.ByStatus[string(i.Status)]++
		if t.Skipped {
			out.Totals.Skipped++
			out.Skipped = append(out.Skipped, t)
			continue
		}
		out.Totals.Affected++
		out.Issues = append(out.Issues, t)
		if i.Assignee != "" {
			of(i.Assignee).Issues++
		}
	}
	for _, r := range p.Runs {
		out.Runs = append(out.Runs, treeRun{r.ID, r.Context.IssueID, r.Agent, r.Status, r.StartedAt, r.CreatedAt})
		if r.Status == entity.RunRunning {
			out.Totals.Active++
		} else {
			out.Totals.Queued++
		}
		of(r.Agent).Active++
	}
	for _, a := range agents {
		out.Agents = append(out.Agents, *a)
	}
	slices.SortFunc(out.Agents, func(a, b treeAgent) int { return strings.Compare(a.ID, b.ID) })
	out.Totals.Agents = len(out.Agents)
	if out.Totals.Affected == 0 {
		out.Warnings = append(out.Warnings, treeWarning{"no_affected_issues", "No issue of this tree would change."})
	}
	if out.Totals.Active > 0 && (mode == "pause" || mode == "cancel") && release.Strategy == "manual" {
		out.Warnings = append(out.Warnings, treeWarning{"active_runs_present",
			"Runs that are at work in this tree would be cancelled."})
	}
	if p.Members > care.MaxTreeMoves {
		out.Warnings = append(out.Warnings, treeWarning{"too_many_issues",
			"More issues would move than one hold can; hold the parts of this tree."})
	}
	out.Truncated = out.Truncated || len(out.Issues) > maxPreviewed || len(out.Skipped) > maxPreviewed ||
		len(out.Runs) > maxPreviewed
	out.Issues, out.Skipped, out.Runs = out.Issues[:min(len(out.Issues), maxPreviewed)],
		out.Skipped[:min(len(out.Skipped), maxPreviewed)], out.Runs[:min(len(out.Runs), maxPreviewed)]
	return out
}

func treeStateOf(tx *ledger.Tx, i entity.Issue) treeState {
	h, ok := care.HeldBy(tx, i)
	if !ok {
		return treeState{}
	}
	return treeState{&api.PauseHold{Hold: h.ID, Root: h.Root, Issue: i.ID, IsRoot: h.Root == i.ID, Mode: h.Mode,
		Reason: h.Reason, Release: h.Release, Since: h.CreatedAt}}
}

func previewHold(rc *api.Request) (api.Response, error) {
	in, err := api.Body[previewBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Showing(rc, api.FindIssue, func(tx *ledger.Tx, i entity.Issue) treePreview {
		return previewOf(care.PlanTree(tx, i, in.Mode), i, in.Mode, in.Release.policy())
	})
}

func shownHold(h care.TreeHold) care.TreeHold {
	if h.Metadata == nil {
		h.Metadata = json.RawMessage("null")
	}
	if h.ReleaseMeta == nil {
		h.ReleaseMeta = json.RawMessage("null")
	}
	if h.Members == nil {
		h.Members = []care.HoldMember{}
	}
	return h
}

func holdsOf(tx *ledger.Tx, i entity.Issue) []care.TreeHold {
	out := care.TreeHoldsOf(tx, i)
	for n := range out {
		out[n] = shownHold(out[n])
	}
	return out
}

func readHold(tx *ledger.Tx, rc *api.Request) (h care.TreeHold, err error) {
	i, err := api.FindIssue(tx, rc)
	if err != nil {
		return h, err
	}
	for _, h := range care.TreeHoldsOf(tx, i) {
		if h.ID == api.PathID(rc, "holdId") {
			return shownHold(h), nil
		}
	}
	return h, api.NotFound("Issue tree hold not found")
}

func holdTree(rc *api.Request) (api.Response, error) {
	in, err := api.Body[holdBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	metadata, err := givenObject("metadata", in.Metadata)
	if err != nil {
		return api.Response{}, err
	}
	var out heldTree
	var root entity.Issue
	release := in.Release.policy()
	err = rc.View(func(tx *ledger.Tx) (err error) {
		if root, err = api.FindIssue(tx, rc); err == nil {
			out.Preview = previewOf(care.PlanTree(tx, root, in.Mode), root, in.Mode, release)
		}
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	h, err := api.Do[care.TreeHold](rc, care.KindTreeHold, root.Company, care.HoldTree{ID: api.NewID(), Issue: root.ID,
		Mode: in.Mode, Reason: in.Reason.Or(""),
		Strategy: release.Strategy, Note: string(release.Note), Metadata: metadata})
	out.Hold = shownHold(h)
	return api.OK(out), err
}

func releaseHold(rc *api.Request) (api.Response, error) {
	in, err := api.Body[releaseBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	metadata, err := givenObject("metadata", in.Metadata)
	if err != nil {
		return api.Response{}, err
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	h, err := api.Do[care.TreeHold](rc, care.KindTreeRelease, of, care.ReleaseTree{Issue: issue,
		Hold: strings.ToLower(rc.Path("holdId")), Reason: in.Reason.Or(""), Metadata: metadata})
	return api.OK(shownHold(h)), err
}
