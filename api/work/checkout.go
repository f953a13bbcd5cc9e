package work

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// checkoutIssue is the body of a checkout.
type checkoutIssue struct {
	AgentID          string   `json:"agentId" format:"uuid"`
	ExpectedStatuses []string `json:"expectedStatuses" maxItems:"20"`
}

// forceReleaseIssue is the body of a forced release; it may be absent.
type forceReleaseIssue struct {
	ClearAssignee bool `json:"clearAssignee,omitempty" doc:"the agent loses the issue, too"`
}

func CheckoutRoutes() []api.Route {
	return []api.Route{{
		Method: "POST", Path: "/api/issues/{id}/checkout", Tag: "issues",
		Summary: "Check an issue out for an agent; one caller wins",
		In:      checkoutIssue{}, Out: plainIssue{}, Handle: checkOut,
	}, {
		Method: "POST", Path: "/api/issues/{id}/release", Tag: "issues", Summary: "Give an issue back", Out: plainIssue{},
		Handle: releaseIssue,
	}, {
		Method: "POST", Path: "/api/issues/{id}/admin/force-release", Tag: "issues", Summary: "Take a lock away",
		Who: api.Board, Out: forcedRelease{}, Handle: forceRelease,
		In: forceReleaseIssue{}, Query: []api.Param{{Name: "clearAssignee", Type: "boolean", Doc: "the same as in the body"}},
	}}
}

func checkOut(rc *api.Request) (api.Response, error) {
	in, err := api.Body[checkoutIssue](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := company.CheckOutIssue{Agent: api.BodyIDs([]string{in.AgentID})[0]}
	for n, s := range in.ExpectedStatuses {
		status := entity.IssueStatus(s)
		if !status.Valid() {
			return api.Response{}, api.ValidationError(notOneOf(entity.IssueStatuses, "expectedStatuses", n))
		}
		if !slices.Contains(p.Expected, status) {
			p.Expected = append(p.Expected, status)
		}
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	p.Issue = issue
	i, err := api.Do[entity.Issue](rc, company.KindIssueCheckout, of, p)
	if err != nil {
		return api.Response{}, err
	}
	return bareIssue(rc, i)
}

// notOneOf returns the issue of a value at path that is not in values.
func notOneOf[T ~string](values []T, path ...any) api.Issue {
	issue := api.Issue{Code: "invalid_value", Path: path, Message: "Invalid option: expected one of "}
	for n, v := range values {
		if n > 0 {
			issue.Message += "|"
		}
		issue.Message += `"` + string(v) + `"`
		issue.Values = append(issue.Values, string(v))
	}
	return issue
}

// bareIssue answers the row that a command returned, with its labels. It reads the state
// only when the issue has labels.
func bareIssue(rc *api.Request, i entity.Issue) (api.Response, error) {
	labels, err := labelsOf(rc, i)
	return readyJSON(issueBare(i, labels)), err
}

func labelsOf(rc *api.Request, i entity.Issue) (labels []entity.Label, err error) {
	if len(i.Labels) == 0 {
		return nil, nil
	}
	err = rc.View(func(tx *ledger.Tx) error {
		labels = entity.LabelRows(tx, i)
		return nil
	})
	return labels, err
}

func releaseIssue(rc *api.Request) (api.Response, error) {
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	i, err := api.Do[entity.Issue](rc, company.KindIssueRelease, of, company.ReleaseIssue{Issue: issue})
	if err != nil {
		return api.Response{}, err
	}
	return bareIssue(rc, i)
}

func forceRelease(rc *api.Request) (api.Response, error) {
	clearAssignee, err := rc.QueryBool("clearAssignee")
	if err != nil {
		return api.Response{}, err
	}
	in, err := api.Body[forceReleaseIssue](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, issue, err := api.LocateIssue(rc)
	if err != nil {
		return api.Response{}, err
	}
	r, err := api.Do[company.ForceReleased](rc, company.KindIssueForceRelease, of, company.ForceReleaseIssue{Issue: issue,
		ClearAssignee: clearAssignee || in.ClearAssignee})
	if err != nil {
		return api.Response{}, err
	}
	labels, err := labelsOf(rc, r.Issue)
	if err != nil {
		return api.Response{}, err
	}
	previous := core.Object{}.Null("checkoutRunId", r.PreviousRun).Null("executionRunId", r.PreviousRun).Close()
	var row json.RawMessage = issueBare(r.Issue, labels)
	return readyJSON(core.Object{}.Raw("issue", row).Raw("previous", previous).Close()), nil
}
