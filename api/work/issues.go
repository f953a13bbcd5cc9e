// Package work is the routes about what is to be done: companies, issues and what is
// written on them, goals, projects, their workspaces, labels, and what waits for
// attention.
package work

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/ledger"
)

// createIssue is the body of a new issue.
type createIssue struct {
	Title              string                   `json:"title" minLength:"1" maxLength:"2000"`
	Description        api.Opt[string]          `json:"description" maxLength:"200000" maxBytes:"200000"`
	AcceptanceCriteria []string                 `json:"acceptanceCriteria,omitempty" maxItems:"50"`
	Status             string                   `json:"status,omitempty" enum:"backlog,todo,in_progress,in_review,done,blocked,cancelled"`
	Priority           string                   `json:"priority,omitempty" enum:"critical,high,medium,low"`
	AssigneeAgentID    api.Opt[string]          `json:"assigneeAgentId" format:"uuid"`
	AssigneeUserID     api.Opt[string]          `json:"assigneeUserId" maxLength:"200"`
	ProjectID          api.Opt[string]          `json:"projectId" format:"uuid"`
	ProjectWorkspaceID api.Opt[string]          `json:"projectWorkspaceId" format:"uuid"`
	GoalID             api.Opt[string]          `json:"goalId" format:"uuid"`
	ParentID           api.Opt[string]          `json:"parentId" format:"uuid"`
	BlockedBy          []string                 `json:"blockedByIssueIds,omitempty" format:"uuid" maxItems:"50"`
	LabelIDs           []string                 `json:"labelIds,omitempty" format:"uuid" maxItems:"50"`
	BillingCode        api.Opt[string]          `json:"billingCode" maxLength:"200"`
	WorkMode           string                   `json:"workMode,omitempty" enum:"standard,ask,planning,skill_test"`
	HarnessKind        api.Opt[string]          `json:"harnessKind" enum:"skill_test"`
	ReviewPolicy       api.Opt[string]          `json:"reviewPolicy" enum:"anyone,not_creator,human_only"`
	RequestDepth       int64                    `json:"requestDepth,omitempty" minimum:"0" maximum:"64"`
	WorkspaceID        api.Opt[string]          `json:"executionWorkspaceId" format:"uuid"`
	WorkspacePref      api.Opt[string]          `json:"executionWorkspacePreference" maxLength:"40"`
	WorkspaceSettings  api.Opt[json.RawMessage] `json:"executionWorkspaceSettings" maxBytes:"16000"`
	AdapterOverrides   api.Opt[json.RawMessage] `json:"assigneeAdapterOverrides" maxBytes:"16000"`
	ExecutionPolicy    api.Opt[json.RawMessage] `json:"executionPolicy" maxBytes:"16000"`
	UnblockDescriptor  api.Opt[json.RawMessage] `json:"unblockDescriptor" maxBytes:"16000"`
	InheritFrom        api.Opt[string]          `json:"inheritExecutionWorkspaceFromIssueId" format:"uuid" doc:"another issue of the project, whose execution workspace the runs of this one use too"`
	OriginKind         api.Opt[string]          `json:"originKind" maxLength:"100"`
	OriginID           api.Opt[string]          `json:"originId" maxLength:"200"`
	OriginRunID        api.Opt[string]          `json:"originRunId" format:"uuid"`
	OriginFingerprint  api.Opt[string]          `json:"originFingerprint" maxLength:"200"`
	IdempotencyKey     api.Opt[string]          `json:"idempotencyKey" maxLength:"500"`
	AllowDuplicate     bool                     `json:"allowDuplicate,omitempty"`
	Allowance          api.Opt[float64]         `json:"allowanceUsd" minimum:"0.00000001" maximum:"10000000" doc:"what the work on it, and on what is made below it, may cost in all, in USD"`
	// of a sub-issue: its parent waits for it
	BlockParent bool `json:"blockParentUntilDone,omitempty"`
}

// reviewRequest is the body of a request to a reviewer.
type reviewRequest struct {
	Instructions string `json:"instructions" minLength:"1" maxLength:"20000" maxBytes:"20000"`
}

// updateIssue is the body that changes an issue.
type updateIssue struct {
	Title              api.Opt[string]          `json:"title" minLength:"1" maxLength:"2000" nullable:"false"`
	Description        api.Opt[string]          `json:"description" maxLength:"200000" maxBytes:"200000"`
	Status             string                   `json:"status,omitempty" enum:"backlog,todo,in_progress,in_review,done,blocked,cancelled"`
	Priority           string                   `json:"priority,omitempty" enum:"critical,high,medium,low"`
	AssigneeAgentID    api.Opt[string]          `json:"assigneeAgentId" format:"uuid"`
	AssigneeUserID     api.Opt[string]          `json:"assigneeUserId" maxLength:"200"`
	ProjectID          api.Opt[string]          `json:"projectId" format:"uuid"`
	ProjectWorkspaceID api.Opt[string]          `json:"projectWorkspaceId" format:"uuid"`
	GoalID             api.Opt[string]          `json:"goalId" format:"uuid"`
	ParentID           api.Opt[string]          `json:"parentId" format:"uuid"`
	BlockedBy          *[]string                `json:"blockedByIssueIds,omitempty" format:"uuid" maxItems:"50" nullable:"false"`
	LabelIDs           *[]string                `json:"labelIds,omitempty" format:"uuid" maxItems:"50" nullable:"false"`
	BillingCode        api.Opt[string]          `json:"billingCode" maxLength:"200"`
	WorkMode           string                   `json:"workMode,omitempty" enum:"standard,ask,planning,skill_test"`
	HarnessKind        api.Opt[string]          `json:"harnessKind" enum:"skill_test"`
	ReviewPolicy       api.Opt[string]          `json:"reviewPolicy" enum:"anyone,not_creator,human_only"`
	RequestDepth       *int64                   `json:"requestDepth,omitempty" minimum:"0" maximum:"64" nullable:"false"`
	WorkspaceID        api.Opt[string]          `json:"executionWorkspaceId" format:"uuid"`
	WorkspacePref      api.Opt[string]          `json:"executionWorkspacePreference" maxLength:"40"`
	WorkspaceSettings  api.Opt[json.RawMessage] `json:"executionWorkspaceSettings" maxBytes:"16000"`
	AdapterOverrides   api.Opt[json.RawMessage] `json:"assigneeAdapterOverrides" maxBytes:"16000"`
	ExecutionPolicy    api.Opt[json.RawMessage] `json:"executionPolicy" maxBytes:"16000"`
	UnblockDescriptor  api.Opt[json.RawMessage] `json:"unblockDescriptor" maxBytes:"16000"`
	InheritFrom        api.Opt[string]          `json:"inheritExecutionWorkspaceFromIssueId" format:"uuid" doc:"another issue of the project, whose execution workspace the runs of this one use too"`
	ReviewRequest      api.Opt[reviewRequest]   `json:"reviewRequest" doc:"what who decides the pending stage of the executionPolicy is asked to look at; null takes it back"`
	ReviewInteraction  string                   `json:"reviewInteractionId,omitempty" format:"uuid" doc:"with the status in_review: the pending confirmation, made by who changes the issue, by which the review is asked for; reviewPolicy says who decides it"`
	HiddenAt           api.Opt[core.Time]       `json:"hiddenAt" format:"date-time"`
	Reopen             bool                     `json:"reopen,omitempty" doc:"a done or cancelled issue is to do again; the board only"`
	Comment            string                   `json:"comment,omitempty" minLength:"1" maxLength:"200000" maxBytes:"200000"`
	Resume             bool                     `json:"resume,omitempty" doc:"with a comment: the work goes on; a done, cancelled or blocked issue is to do again unless status says otherwise, and its assignee is woken; an agent may for what is blocked"`
	Interrupt          bool                     `json:"interrupt,omitempty" doc:"with a comment: the run at work on the issue ends and its assignee is woken with the comment; the board only"`
	CommentRequestID   string                   `json:"commentClientRequestId,omitempty" format:"uuid"`
	Attachments        []string                 `json:"attachmentIds,omitempty" format:"uuid" maxItems:"50" doc:"of the issue's attachments, those that belong to the comment"`
	OnBehalfOf         api.Opt[string]          `json:"onBehalfOfUserId" maxLength:"200"`
}

func IssueRoutes() []api.Route {
	return []api.Route{{
		Method: "GET", Path: "/api/issues", Tag: "issues", Summary: "Say where issues are listed",
		Never: http.StatusBadRequest,
		Handle: func(*api.Request) (api.Response, error) {
			return api.Response{}, api.Invalid("Missing companyId in path. Use /api/companies/{companyId}/issues.")
		},
	}, {
		Method: "GET", Path: "/api/companies/{companyId}/issues", Tag: "issues", Summary: "List issues", Out: []listedIssue{},
		Handle: listIssues,
		Query: append(issueChoices(), api.Param{Name: "sortField", Doc: "updatedAt, createdAt, priority, title or status"},
			api.Param{Name: "sort", Doc: "the same as sortField"},
			api.Param{Name: "sortDir", Doc: "asc or desc"}, api.Param{Name: "order", Doc: "the same as sortDir"},
			api.Param{Name: "limit", Type: "integer", Doc: "at most 1000, 500 unless given"},
			api.Param{Name: "offset", Type: "integer", Doc: "without the first so many"},
			api.Param{Name: "includeLiveDescendantSummary", Type: "boolean",
				Doc: "each with liveDescendantCount: how many issues below it have a run at work or waiting"}),
	}, {
		Method: "GET", Path: "/api/companies/{companyId}/issues/count", Tag: "issues",
		Summary: "Count issues that need attention", Out: issueCount{}, Handle: countIssues,
		Query: issueChoices(),
	}, {
		Method: "POST", Path: "/api/companies/{companyId}/issues", Tag: "issues", Summary: "Create an issue", In: createTop{},
		Out: createdIssue{}, Status: 201, Also: []int{200},
		Handle: func(rc *api.Request) (api.Response, error) {
			return newIssue(rc, api.CompanyID(rc), "")
		},
	}, {
		Method: "POST", Path: "/api/issues/{id}/children", Tag: "issues", Summary: "Create a sub-issue", In: createIssue{},
		Out: createdIssue{}, Status: 201, Also: []int{200},
		Handle: func(rc *api.Request) (api.Response, error) {
			of, parent, err := api.LocateIssue(rc)
			if err != nil {
				return api.Response{}, err
			}
			return newIssue(rc, of, parent)
		},
	}, {
		Method: "GET", Path: "/api/issues/{id}", Tag: "issues", Summary: "Read an issue by ID or identifier",
		Out: shownIssue{}, Handle: readIssue,
	}, {
		Method: "PATCH", Path: "/api/issues/{id}", Tag: "issues", Summary: "Change an issue", In: updateIssue{},
		Out: updatedIssue{}, Handle: patchIssue,
	}, {
		Method: "DELETE", Path: "/api/issues/{id}", Tag: "issues", Summary: "Delete an issue", Out: plainIssue{},
		Handle: removeIssue,
	}, {
		Method: "GET", Path: "/api/issues/{id}/heartbeat-context", Tag: "issues",
		Summary: "Read what an agent needs to begin", Out: beginning{}, Handle: readHeartbeatContext,
		Query: []api.Param{{Name: "wakeCommentId"}},
	}, {
		Method: "GET", Path: "/api/agents/me/inbox-lite", Tag: "agents",
		Summary: "List the open issues of the agent that asks", Who: api.Agent, Out: []briefIssue{},
		Handle: func(rc *api.Request) (r api.Response, err error) {
			err = rc.View(func(tx *ledger.Tx) error {
				r = readyJSON(inboxLite(tx, rc.Company, rc.Actor.ID))
				return nil
			})
			return r, err
		},
	}, {
		Method: "GET", Path: "/api/agents/me/inbox/mine", Tag: "agents", Summary: "List what is in a person's inbox",
		Who: api.Agent, Out: []listedIssue{}, Handle: inboxMine,
		Query: []api.Param{{Name: "userId", Doc: "whose inbox"},
			{Name: "status", Doc: "statuses, separated by commas; all but cancelled without"}},
	}, {
		Method: "GET", Path: "/api/companies/{companyId}/search", Tag: "search", Summary: "Search issues", Out: searchPage{},
		Handle: searchIssues,
		Query:  []api.Param{{Name: "q"}, {Name: "limit", Type: "integer"}, {Name: "offset", Type: "integer"}},
	}}
}

// readyJSON answers JSON that is already encoded.
func readyJSON(b json.RawMessage) api.Response { return api.Raw("application/json; charset=utf-8", b) }

func listIssues(rc *api.Request) (r api.Response, err error) {
	q, err := issueQuery(rc)
	if err != nil {
		return r, err
	}
	live, err := rc.QueryBool("includeLiveDescendantSummary")
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		of := api.CompanyID(rc)
		if !entity.CompanyExists(tx, of) {
			return api.NotFound("Company not found")
		}
		r = readyJSON(listedIssues(tx, of, q, live))
		return nil
	})
	return r, err
}

func countIssues(rc *api.Request) (r api.Response, err error) {
	if rc.Query("attention") != "blocked" {
		return r, api.Invalid("issues/count currently requires attention=blocked")
	}
	q, err := issueChoice(rc)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		of := api.CompanyID(rc)
		if !entity.CompanyExists(tx, of) {
			return api.NotFound("Company not found")
		}
		r = readyJSON(core.Object{}.Int("count", int64(inbox.CountMatching(tx, of, q))).Close())
		return nil
	})
	return r, err
}

// newIssue creates an issue, as a sub-issue of parent unless that is "".
func newIssue(rc *api.Request, of ledger.CompanyID, parent string) (api.Response, error) {
	in, err := api.Body[createTop](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := in.command(parent != "")
	if parent != "" {
		p.Parent = parent
	}
	if d := in.Discovery.Pointer(); d != nil {
		if p, err = d.apply(rc, of, p, parent != ""); err != nil {
			return api.Response{}, err
		}
	}
	if err := api.RawBounds(p.WorkspaceSettings, p.AdapterOverrides, p.ExecutionPolicy, p.UnblockDescriptor); err != nil {
		return api.Response{}, err
	}
	if p.ExecutionPolicy, err = api.CheckedPolicy(p.ExecutionPolicy); err != nil {
		return api.Response{}, err
	}
	if err := api.CheckWorkspaceSettings(p.WorkspaceSettings); err != nil {
		return api.Response{}, err
	}
	if err := checkOverrides(rc, of, p.Assignee, p.AdapterOverrides); err != nil {
		return api.Response{}, err
	}
	r, err := api.Do[entity.IssueResult](rc, company.KindIssueCreate, of, p)
	if err != nil {
		return api.Response{}, err
	}
	answer := readyJSON(issueCreated(r, parent != ""))
	if r.Duplicate != "" {
		answer.Status = 200
	}
	return answer, nil
}

func (in createIssue) command(child bool) company.CreateIssue {
	p := company.CreateIssue{ID: api.NewID(), Title: in.Title, Description: in.Description.Or(""),
		Status:   entity.IssueStatus(in.Status),
		Priority: entity.Priority(in.Priority), Assignee: api.BodyID(in.AssigneeAgentID),
		AssigneeUser: in.AssigneeUserID.Or(""), Project: api.BodyID(in.ProjectID),
		Workspace: api.BodyID(in.ProjectWorkspaceID), Goal: api.BodyID(in.GoalID), Parent: api.BodyID(in.ParentID),
		BlockedBy: api.BodyIDs(in.BlockedBy), Labels: api.BodyIDs(in.LabelIDs),
		BillingCode: in.BillingCode.Or(""), WorkMode: in.WorkMode, HarnessKind: in.HarnessKind.Or(""),
		ReviewPolicy: in.ReviewPolicy.Or(""),
		Depth:        uint64(max(in.RequestDepth, 0)), ExecutionWorkspace: api.BodyID(in.WorkspaceID),
		WorkspacePref:     in.WorkspacePref.Or(""),
		WorkspaceSettings: in.WorkspaceSettings.Or(nil), AdapterOverrides: in.AdapterOverrides.Or(nil),
		ExecutionPolicy:   in.ExecutionPolicy.Or(nil),
		UnblockDescriptor: in.UnblockDescriptor.Or(nil), OriginKind: in.OriginKind.Or(""), OriginID: in.OriginID.Or(""),
		OriginRun:         api.BodyID(in.OriginRunID),
		OriginFingerprint: in.OriginFingerprint.Or(""), RequestKey: in.IdempotencyKey.Or(""),
		AllowDuplicate: in.AllowDuplicate, BlockParent: child && in.BlockParent, Child: child,
		InheritFrom: api.BodyID(in.InheritFrom)}
	if usd := in.Allowance.Or(0); usd > 0 {
		p.Allowance = new(api.MoneyOf(usd))
	}
	if child && len(in.AcceptanceCriteria) > 0 {
		text := "## Acceptance Criteria\n\n- " + strings.Join(in.AcceptanceCriteria, "\n- ")
		if p.Description != "" {
			text = p.Description + "\n\n" + text
		}
		p.Description = text
	}
	return p
}

func readIssue(rc *api.Request) (r api.Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := api.FindIssue(tx, rc)
		if err != nil {
			return err
		}
		project, goal, err := around(tx, i)
		if err == nil {
			r = readyJSON(issueShown(tx, i, project, goal))
		}
		return err
	})
	return r, err
}

func patchIssue(rc *api.Request) (api.Response, error) {
	in, err := api.Body[updateIssue](rc)
	if err != nil {
		return api.Response{}, err
	}
	if len(in.Attachments) > 0 && in.Comment == "" {
		return api.Response{}, api.Invalid("attachmentIds belong to a comment; give one")
	}
	if (in.Resume || in.Interrupt) && in.Comment == "" {
		return api.Response{}, api.Invalid("resume and interrupt belong to a comment; give one")
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	p := in.command(issue)
	if err := api.RawBounds(p.WorkspaceSettings, p.AdapterOverrides, p.ExecutionPolicy, p.UnblockDescriptor); err != nil {
		return api.Response{}, err
	}
	if p.ExecutionPolicy, err = api.CheckedPolicy(p.ExecutionPolicy); err != nil {
		return api.Response{}, err
	}
	if err := in.check(rc, of, issue); err != nil {
		return api.Response{}, err
	}
	r, err := api.Do[entity.IssueResult](rc, company.KindIssueUpdate, of, p)
	if err != nil {
		return api.Response{}, err
	}
	return readyJSON(issueUpdated(r, in.Title.Set || in.Description.Set)), nil
}

func (in updateIssue) command(issue string) company.UpdateIssue {
	p := company.UpdateIssue{Issue: issue, Title: api.TextOf(in.Title), Description: api.TextOf(in.Description),
		Status:   entity.IssueStatus(in.Status),
		Priority: entity.Priority(in.Priority), Assignee: api.IdPointer(in.AssigneeAgentID),
		AssigneeUser: api.TextOf(in.AssigneeUserID), Project: api.IdPointer(in.ProjectID),
		Workspace: api.IdPointer(in.ProjectWorkspaceID), Goal: api.IdPointer(in.GoalID), Parent: api.IdPointer(in.ParentID),
		BillingCode: api.TextOf(in.BillingCode),
		HarnessKind: api.TextOf(in.HarnessKind), ReviewPolicy: api.TextOf(in.ReviewPolicy),
		ExecutionWorkspace: api.IdPointer(in.WorkspaceID), WorkspacePref: api.TextOf(in.WorkspacePref),
		WorkspaceSettings: api.RawOf(in.WorkspaceSettings), AdapterOverrides: api.RawOf(in.AdapterOverrides),
		ExecutionPolicy:   api.RawOf(in.ExecutionPolicy),
		UnblockDescriptor: api.RawOf(in.UnblockDescriptor), Reopen: in.Reopen, InheritFrom: api.BodyID(in.InheritFrom),
		Review: strings.ToLower(in.ReviewInteraction)}
	if in.ReviewRequest.Set {
		p.ReviewRequest = new(in.ReviewRequest.Or(reviewRequest{}).Instructions)
	}
	if in.WorkMode != "" {
		p.WorkMode = &in.WorkMode
	}
	if in.RequestDepth != nil {
		p.Depth = new(uint64(*in.RequestDepth))
	}
	if in.BlockedBy != nil {
		p.BlockedBy = new(api.BodyIDs(*in.BlockedBy))
	}
	if in.LabelIDs != nil {
		p.Labels = new(api.BodyIDs(*in.LabelIDs))
	}
	if in.HiddenAt.Set {
		p.HiddenAt = new(in.HiddenAt.Or(0))
	}
	if in.Comment != "" {
		p.Comment = &entity.CreateComment{ID: api.NewID(), Issue: issue, Body: in.Comment, OnBehalfOf: in.OnBehalfOf.Or(""),
			ClientRequest: strings.ToLower(in.CommentRequestID),
			Attachments:   api.BodyIDs(in.Attachments), Resume: in.Resume, Interrupt: in.Interrupt}
	}
	return p
}

func removeIssue(rc *api.Request) (api.Response, error) {
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	r, err := api.Do[entity.IssueResult](rc, company.KindIssueDelete, of, company.DeleteIssue{Issue: issue})
	if err != nil {
		return api.Response{}, err
	}
	return readyJSON(issueBare(r.Issue, r.Labels)), nil
}

func readHeartbeatContext(rc *api.Request) (r api.Response, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		i, err := api.FindIssue(tx, rc)
		if err != nil {
			return err
		}
		project, goal, err := around(tx, i)
		if err != nil {
			return err
		}
		project, goal = pick(project, "id", "name", "status", "targetDate"), pick(goal, "id", "title", "status",
			"level", "parentId")
		body, err := heartbeatContext(tx, i, rc.Query("wakeCommentId"), project, goal)
		r = readyJSON(body)
		return err
	})
	return r, err
}

func searchIssues(rc *api.Request) (r api.Response, err error) {
	query := rc.Query("q")
	if len(query) > inbox.MaxQuery {
		return r, api.Invalid("Invalid q: at most %d bytes", inbox.MaxQuery)
	}
	limit, err := rc.QueryInt("limit", inbox.DefaultSearchLimit, 1, inbox.MaxSearchLimit)
	if err != nil {
		return r, err
	}
	offset, err := rc.QueryInt("offset", 0, 0, 1<<31-1)
	if err != nil {
		return r, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		of := api.CompanyID(rc)
		prefix, ok := entity.IssuePrefixOf(tx, of)
		if !ok {
			return api.NotFound("Company not found")
		}
		r = readyJSON(searchAnswer(tx, of, prefix, query, limit, offset, core.TimeOf(rc.Now())))
		return nil
	})
	return r, err
}

// around returns the project and the goal of an issue as their own routes show them; nil
// when the issue has none or the row is deleted.
func around(tx *ledger.Tx, i entity.Issue) (project, goal json.RawMessage, err error) {
	if i.Project != "" {
		p, err := entity.ProjectByRef(tx, i.Company, i.Project)
		if refusal, ok := errors.AsType[*ledger.Refusal](err); err != nil && (!ok || refusal.Code != ledger.NotFound) {
			return nil, nil, err
		}
		if err == nil {
			if project, err = json.Marshal(showProject(tx, p)); err != nil {
				return nil, nil, err
			}
		}
	}
	if i.Goal != "" {
		if g, ok := entity.GoalByID(tx, i.Goal); ok && g.Company == i.Company {
			if goal, err = json.Marshal(g); err != nil {
				return nil, nil, err
			}
		}
	}
	return project, goal, nil
}

// pick returns the object with only the given members of row, or nil.
func pick(row json.RawMessage, members ...string) json.RawMessage {
	var all map[string]json.RawMessage
	if len(row) == 0 || json.Unmarshal(row, &all) != nil {
		return nil
	}
	b := core.Object{}
	for _, m := range members {
		b = b.Raw(m, all[m])
	}
	return b.Close()
}
