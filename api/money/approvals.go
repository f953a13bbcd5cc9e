package money

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// newApproval is the body that asks the board for something.
type newApproval struct {
	Type     string          `json:"type" enum:"hire_agent,approve_ceo_strategy,budget_override_required,request_board_approval"`
	Agent    api.Opt[string] `json:"requestedByAgentId" format:"uuid"`
	Payload  json.RawMessage `json:"payload" maxBytes:"65536"`
	IssueIDs []string        `json:"issueIds,omitempty" format:"uuid" maxItems:"100"`
}

// decideApproval is the body of a decision. Amount is ours: the new limit, in
// cents, when the decision is about a budget.
type decideApproval struct {
	DecisionNote api.Opt[string] `json:"decisionNote" maxLength:"10000" maxBytes:"10000"`
	Amount       *int64          `json:"amount,omitempty" minimum:"0" maximum:"1000000000000"`
}

// resubmitApproval is the body that puts a revised approval before the board again.
type resubmitApproval struct {
	Payload api.Opt[json.RawMessage] `json:"payload" maxBytes:"65536"`
}

// commentApproval is the body of a comment on an approval.
type commentApproval struct {
	Body string `json:"body" minLength:"1" maxLength:"200000" maxBytes:"200000"`
}

// linkApproval is the body that ties an approval to an issue.
type linkApproval struct {
	ApprovalID string `json:"approvalId" format:"uuid"`
}

// An approvalIssue is an issue as an approval shows it.
type approvalIssue struct {
	ID              string           `json:"id"`
	Company         ledger.CompanyID `json:"companyId"`
	Project         core.NullText    `json:"projectId"`
	Goal            core.NullText    `json:"goalId"`
	Parent          core.NullText    `json:"parentId"`
	Title           string           `json:"title"`
	Description     core.NullText    `json:"description"`
	Status          string           `json:"status"`
	Priority        string           `json:"priority"`
	AssigneeAgentID core.NullText    `json:"assigneeAgentId"`
	CreatedByAgent  core.NullText    `json:"createdByAgentId"`
	CreatedByUser   core.NullText    `json:"createdByUserId"`
	Number          uint64           `json:"issueNumber"`
	Identifier      string           `json:"identifier"`
	RequestDepth    uint64           `json:"requestDepth"`
	BillingCode     core.NullText    `json:"billingCode"`
	StartedAt       core.Time        `json:"startedAt"`
	CompletedAt     core.Time        `json:"completedAt"`
	CancelledAt     core.Time        `json:"cancelledAt"`
	CreatedAt       core.Time        `json:"createdAt"`
	UpdatedAt       core.Time        `json:"updatedAt"`
}

func showApprovalIssue(i entity.Issue) approvalIssue {
	return approvalIssue{ID: i.ID, Company: i.Company, Project: core.NullText(i.Project), Goal: core.NullText(i.Goal),
		Parent: core.NullText(i.Parent), Title: i.Title,
		Description: core.NullText(i.Description), Status: string(i.Status), Priority: string(i.Priority),
		AssigneeAgentID: core.NullText(i.Assignee),
		CreatedByAgent:  core.NullText(i.CreatedAgent), CreatedByUser: core.NullText(i.CreatedUser), Number: i.Number,
		Identifier: i.Identifier, RequestDepth: i.Depth,
		BillingCode: core.NullText(i.BillingCode), StartedAt: i.StartedAt, CompletedAt: i.CompletedAt,
		CancelledAt: i.CancelledAt, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt}
}

func ApprovalRoutes() []api.Route {
	const tag, one = "approvals", "/api/approvals/{id}"
	decide := func(verb, kind, summary string) api.Route {
		return api.Route{Method: "POST", Path: one + "/" + verb, Tag: tag, Summary: summary, Who: api.Board,
			In: decideApproval{}, Out: money.Approval{},
			Handle: func(rc *api.Request) (api.Response, error) { return decideOn(rc, kind) }}
	}
	return []api.Route{
		{Method: "GET", Path: "/api/companies/{companyId}/approvals", Tag: tag, Summary: "List approvals, newest first",
			Out: []money.Approval{}, Handle: listApprovals,
			Query: []api.Param{{Name: "status", Doc: "statuses, separated by commas"},
				{Name: "type", Doc: "types, separated by commas"}, {Name: "limit", Type: "integer",
					Doc: "at most 1000, 500 unless given"}, {Name: "offset", Type: "integer"}}},
		{Method: "POST", Path: "/api/companies/{companyId}/approvals", Tag: tag, Summary: "Ask the board for something",
			In: newApproval{}, Out: money.Approval{}, Status: 201, Handle: createApproval},
		api.Read(api.Route{Path: one, Tag: tag, Summary: "Read an approval"}, readApproval),
		decide("approve", money.KindApprovalApprove, "Approve, and carry out what waits"),
		decide("reject", money.KindApprovalReject, "Reject"),
		decide("request-revision", money.KindApprovalRevise, "Send back to whoever asked"),
		decide("cancel", money.KindApprovalCancel, "Cancel"),
		{Method: "POST", Path: one + "/resubmit", Tag: tag, Summary: "Put a revised approval before the board again",
			In: resubmitApproval{}, Out: money.Approval{}, Handle: resubmit},
		api.Show(api.Route{Path: one + "/comments", Tag: tag, Summary: "List the comments on an approval"}, approvalIn,
			func(tx *ledger.Tx, a money.Approval) []money.ApprovalComment {
				return money.CommentsOfApproval(tx, a.Company, a.ID)
			}),
		api.Change[money.ApprovalComment](api.Route{Method: "POST", Path: one + "/comments", Tag: tag, Status: 201,
			Summary: "Comment on an approval"}, money.KindApprovalComment, approvalAt,
			func(_ *api.Request, id string, in commentApproval) (money.CommentApproval, error) {
				return money.CommentApproval{ID: api.NewID(), Approval: id, Body: in.Body}, nil
			}),
		api.Show(api.Route{Path: one + "/issues", Tag: tag, Summary: "List the issues of an approval"}, approvalIn,
			issuesOfApproval),
		api.Show(api.Route{Path: "/api/issues/{id}/approvals", Tag: tag, Summary: "List the approvals of an issue"},
			api.FindIssue, approvalsOfIssue),
		{Method: "POST", Path: "/api/issues/{id}/approvals", Tag: tag, Summary: "Tie an approval to an issue",
			In: linkApproval{}, Out: []money.Approval{}, Status: 201, Handle: tieApproval},
		api.Tell(api.Route{Path: "/api/issues/{id}/approvals/{approvalId}", Tag: tag,
			Summary: "Untie an approval from an issue"}, money.KindApprovalUnlink, api.LocateIssue,
			func(rc *api.Request, issue string) money.LinkApproval {
				return money.LinkApproval{Approval: api.PathID(rc, "approvalId"), Issue: issue}
			}),
	}
}

// approvalIn returns the approval that the path names. An agent sees its own
// company only.
func approvalIn(tx *ledger.Tx, rc *api.Request) (money.Approval, error) {
	a, ok := money.ApprovalByID(tx, strings.ToLower(rc.Path("id")))
	if !ok || !api.Seen(tx, rc, a.Company) {
		return a, api.NotFound("Approval not found")
	}
	return a, nil
}

func readApproval(tx *ledger.Tx, rc *api.Request) (money.Approval, error) {
	a, err := approvalIn(tx, rc)
	return said(tx, rc, a), err
}

// said returns an approval as it is shown: to the board with what the command that waits says.
func said(tx *ledger.Tx, rc *api.Request, a money.Approval) money.Approval {
	if a.Type == money.ApprovalAct && a.Status.Open() && (rc.IsBoard() || rc.Trusted()) {
		a.Payload = govern.ShownWaiting(tx, a.Company, a.ID, a.Payload)
	}
	return a
}

// locateApproval returns the approval that a command is about, as this node
// has it, or as the leader has what was made on another node just now.
func locateApproval(rc *api.Request) (a money.Approval, err error) {
	look := func(tx *ledger.Tx) (err error) { a, err = approvalIn(tx, rc); return err }
	if err = rc.View(look); err == nil || rc.Read.Mode == ledger.ReadStrong {
		return a, err
	}
	rc.Read.Mode = ledger.ReadStrong
	return a, rc.View(look)
}

func approvalAt(rc *api.Request) (of ledger.CompanyID, id string, err error) {
	a, err := locateApproval(rc)
	return a.Company, a.ID, err
}

func listApprovals(rc *api.Request) (r api.Response, err error) {
	var q money.ApprovalQuery
	if q.Statuses, err = words(rc, "status", money.ApprovalStatuses); err != nil {
		return r, err
	}
	if q.Types, err = words(rc, "type", money.ApprovalTypes); err != nil {
		return r, err
	}
	if q.Limit, err = rc.QueryInt("limit", money.DefaultApprovalLimit, 1, money.MaxApprovalLimit); err != nil {
		return r, err
	}
	if q.Offset, err = rc.QueryInt("offset", 0, 0, money.MaxApprovalOffset); err != nil {
		return r, err
	}
	err = api.InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		all := money.ApprovalsOf(tx, row.ID, q)
		for i, a := range all {
			all[i] = said(tx, rc, a)
		}
		r = api.OK(all)
		return nil
	})
	return r, err
}

// words returns the values of a query parameter, each one of known.
func words[T ~string](rc *api.Request, name string, known []T) (out []T, err error) {
	for _, v := range rc.QueryList(name) {
		if !slices.Contains(known, T(v)) {
			return nil, api.Invalid("Invalid %s: %s", name, v)
		}
		if !slices.Contains(out, T(v)) {
			out = append(out, T(v))
		}
	}
	return out, nil
}

func createApproval(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newApproval](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := payloadOf(money.ApprovalType(in.Type), in.Payload); err != nil {
		return api.Response{}, err
	}
	if !api.IsUUID(api.CompanyID(rc)) {
		return api.Response{}, api.NotFound("Company not found")
	}
	p := money.CreateApproval{ID: api.NewID(), Type: money.ApprovalType(in.Type), Agent: strings.ToLower(in.Agent.Or("")),
		Payload: in.Payload}
	for _, id := range in.IssueIDs {
		p.Issues = append(p.Issues, strings.ToLower(id))
	}
	a, err := api.Do[money.Approval](rc, money.KindApprovalCreate, api.CompanyID(rc), p)
	return api.OK(a), err
}

// payloadObject refuses a payload that is not a JSON object, in the contract's words.
func payloadObject(b json.RawMessage) error {
	if trimmed := strings.TrimSpace(string(b)); strings.HasPrefix(trimmed, "{") {
		return nil
	}
	return api.ValidationError(api.Issue{Expected: "record", Code: "invalid_type", Path: []any{"payload"},
		Message: "Invalid input: expected record"})
}

// payloadOf refuses a payload that an approval of its type can not carry out as
// it says.
func payloadOf(t money.ApprovalType, b json.RawMessage) error {
	if err := payloadObject(b); err != nil || t != money.ApprovalHire {
		return err
	}
	p, err := money.HireOf(b)
	if err != nil {
		return err
	}
	kind := ""
	if p.AdapterType != nil {
		kind = *p.AdapterType
	}
	return api.CheckConfigs(kind, p.AdapterConfig, p.RuntimeConfig, "payload")
}

func decideOn(rc *api.Request, kind string) (api.Response, error) {
	in, err := api.Body[decideApproval](rc)
	if err != nil {
		return api.Response{}, err
	}
	a, err := locateApproval(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Decided(rc, kind, a, money.DecideApproval{Approval: a.ID, Note: in.DecisionNote.Or(""),
		Amount: api.CentsOf(in.Amount)})
}

func resubmit(rc *api.Request) (api.Response, error) {
	in, err := api.Body[resubmitApproval](rc)
	if err != nil {
		return api.Response{}, err
	}
	payload := in.Payload.Or(nil)
	if len(payload) > 0 {
		if err := payloadObject(payload); err != nil {
			return api.Response{}, err
		}
	}
	a, err := locateApproval(rc)
	if err == nil && len(payload) > 0 {
		err = payloadOf(a.Type, payload)
	}
	if err != nil {
		return api.Response{}, err
	}
	return api.Decided(rc, money.KindApprovalResubmit, a, money.ResubmitApproval{Approval: a.ID, Payload: payload,
		Agent: string(a.Agent)})
}

func issuesOfApproval(tx *ledger.Tx, a money.Approval) []approvalIssue {
	out := []approvalIssue{}
	for i := range money.IssuesOfApproval(tx, a.Company, a.ID) {
		out = append(out, showApprovalIssue(i))
	}
	return out
}

func approvalsOfIssue(tx *ledger.Tx, i entity.Issue) []money.Approval {
	return money.ApprovalsOfIssue(tx, i.Company, i.ID)
}

func tieApproval(rc *api.Request) (api.Response, error) {
	in, err := api.Body[linkApproval](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(money.KindApprovalLink, of, money.LinkApproval{Approval: strings.ToLower(in.ApprovalID),
		Issue: issue}); err != nil {
		return api.Response{}, err
	}
	return api.Showing(rc, api.FindIssue, approvalsOfIssue)
}
