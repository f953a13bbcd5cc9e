package api_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// whole are the queries with which a route answers anything to choose from, by pattern.
var whole = map[string]string{
	"/api/companies/{companyId}/issues/count":           "attention=blocked",
	"/api/companies/{companyId}/search":                 "q=" + canaryTown,
	"/api/companies/{companyId}/search/extract":         "contains=" + canaryTown,
	"/api/companies/{companyId}/folders":                "kind=routine",
	"/api/issues/{id}/runner-goal":                      "agentId=",
	"/api/companies/{companyId}/skills/{skillId}/files": "path=SKILL.md",
}

// unseen are the parameters whose effect a town does not show, each with the reason.
var unseen = map[string]string{
	"/api/v1/topics?pattern":                                        "the company has no topic",
	"/api/v1/processes?app":                                         "no node answers, and such a one is always shown",
	"*?companyId":                                                   "the company of a name; the path has an ID",
	"/api/environments/{id}/leases?status":                          "the environment has none",
	"/api/issues/{id}/heartbeat-context?wakeCommentId":              "it adds a comment and leaves out none",
	"/api/companies/{companyId}/skills/{skillId}/test-runs?inputId": "the skill was not tried",
	"/api/companies/{companyId}/issues/count?inboxArchivedByUserId": "nobody put an issue away",
	"/api/admin/users?query":                                        "nobody has signed up",
}

// A parameter that a route declares chooses: with a value that fits nothing the answer
// is another one, or a 4xx that says what fits. Of numbers and flags it is looked at that
// what is none is refused.
func TestEveryQueryParameterHasAnEffect(t *testing.T) {
	h := apitest.NewHarness(t)
	w := newTown(h, "Query")
	in := "/api/companies/" + w.of
	today := h.Node.Wall().UTC().Format(time.RFC3339) // what is asked for without a range is of late
	h.Call("POST", in+"/issues",
		`{"title":"Stuck","status":"blocked","unblockDescriptor":{"owner":"board","action":"look"}}`).Want(t, 201, "")
	h.Call("POST", in+"/cost-events",
		`{"agentId":"`+w.agent+`","projectId":"`+w.values["projects"]+
			`","billingCode":"b","provider":"p","model":"m","costCents":5,"occurredAt":"`+today+`"}`).Want(t, 201, "")
	h.Call("POST", in+"/finance-events",
		`{"eventKind":"platform_fee","biller":"b","amountCents":1,"occurredAt":"`+today+`"}`).Want(t, 201, "")
	h.Call("PUT", "/api/agents/"+w.agent+"/memory/lunch", `{"value":"At noon."}`).Want(t, 200, "")
	checked := 0
	for _, route := range h.Table {
		stream := streams(route)
		if route.Method != "GET" || route.Who == api.Agent || stream {
			continue
		}
		for _, p := range route.Query {
			path, _ := w.path(route)
			path, _, _ = strings.Cut(path, "?")
			plain := h.Call("GET", path+"?"+whole[route.Path], "")
			q, err := url.ParseQuery(whole[route.Path])
			if err != nil {
				t.Fatal(err)
			}
			q.Set(p.Name, unfit(p))
			got := h.Call("GET", path+"?"+q.Encode(), "")
			_, known := unseen[route.Path+"?"+p.Name]
			if known = known || unseen["*?"+p.Name] != ""; known {
				continue
			}
			checked++
			if got.Status < 400 && got.Status == plain.Status && bytes.Equal(got.Body, plain.Body) {
				t.Errorf("GET %s answers the same with %s=%s: %s", route.Path, p.Name, unfit(p), api.Cut(string(got.Body), 200))
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d parameters were looked at", checked)
	}
}

// unfit is a value of a parameter that fits nothing.
func unfit(p api.Param) string {
	name := strings.ToLower(p.Name)
	switch {
	case p.Type == "integer":
		return "x"
	case p.Type == "boolean":
		return "maybe"
	case strings.HasSuffix(p.Name, "Id"):
		return api.NewID()
	case strings.Contains(name, "since"), strings.Contains(name, "from"), strings.Contains(name, "after"):
		return "2999-01-01"
	case strings.Contains(name, "until"), name == "to":
		return "2000-01-01"
	}
	return "no-such-thing"
}

// The runs of a company are narrowed by agent, issue and status.
func TestRunsAreNarrowed(t *testing.T) {
	h := apitest.NewHarness(t)
	w := newTown(h, "Runs")
	other := h.NewAgent(ledger.CompanyID(w.of), "Other", "true")
	waits := h.Assign(ledger.CompanyID(w.of), other, "Wait")
	list := "/api/companies/" + w.of + "/heartbeat-runs"
	count := func(query string) int { return len(h.Call("GET", list+query, "").Want(t, 200, "").Decode(t).([]any)) }
	all := count("")
	for query, want := range map[string]int{
		"?issueId=" + waits: 1, "?issueId=" + strings.ToUpper(waits): 1, "?status=running": 1, "?status=queued&agentId=" +
			other: 1, "?status=queued,running": all,
		"?status=failed": 0, "?issueId=" + api.NewID(): 0, "?agentId=" + other + "&issueId=" + w.values["issues"]: 0,
		"?status=running&issueId=" + waits:                                           0,
		"?agentId=" + w.agent + "&issueId=" + w.values["issues"] + "&status=running": 1, "?status=queued,running&limit=1": 1,
	} {
		if got := count(query); got != want {
			t.Errorf("%s: %d runs, want %d", query, got, want)
		}
	}
	h.Call("GET", list+"?status=asleep", "").Want(t, 400, "asleep is none of")
	h.Call("GET", list+"?issueId=ACM-1", "").Want(t, 400, "Invalid issueId")
}
