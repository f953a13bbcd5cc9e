package work_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
	apimoney "github.com/selvage-mesh/selvage/api/money"
	"github.com/selvage-mesh/selvage/api/work"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

func recordedKeys(t *testing.T) map[string]map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/issue_keys.json")
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]map[string]string
	if err := json.Unmarshal(b, &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// wantKeys compares an answer with the keys and types of the contract's recordings. A
// value may be null on either side, and the answer may have further keys.
func wantKeys(t *testing.T, name string, answer any) {
	t.Helper()
	b, err := json.Marshal(answer)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%s: %v in %s", name, err, b)
	}
	for key, want := range recordedKeys(t)[name] {
		v, ok := got[key]
		if !ok {
			t.Errorf("%s: no key %s", name, key)
			continue
		}
		if have := apitest.JsonType(v); have != want && have != "null" && want != "null" {
			t.Errorf("%s: %s is a %s, recorded as %s", name, key, have, want)
		}
	}
}

func sampleIssue() entity.Issue {
	return entity.Issue{ID: "i", Company: "c", Number: 1, Identifier: "ACM-1", Title: `Design "gripper" <v2>`,
		Description: "Make\na gripper – soon", Status: entity.IssueInProgress,
		Priority: entity.PriorityHigh, Assignee: "a", CheckoutRun: "r", Fence: 7, StatusVersion: 1, StartedAt: 5,
		CreatedAt: 1, UpdatedAt: 2,
		Labels: []string{"l"}, UnblockDescriptor: json.RawMessage(`{"owner":"board"}`)}
}

func TestIssueAnswersHaveTheRecordedKeys(t *testing.T) {
	t.Parallel()
	tx := ledger.NewTx(apitest.NoState{})
	i := sampleIssue()
	labels := []entity.Label{{ID: "l", Company: "c", Name: "bug", Color: "#ff0000", CreatedAt: 1, UpdatedAt: 1}}
	r := entity.IssueResult{Issue: i, Labels: labels, BlockedBy: []entity.IssueRef{i.Ref()},
		Changes: json.RawMessage(`{}`), Comment: &entity.Comment{ID: "m"}}
	dup := r
	dup.Duplicate = "recent_open_title"
	wantKeys(t, "created", work.IssueCreated(r, false))
	wantKeys(t, "deduplicated", work.IssueCreated(dup, false))
	wantKeys(t, "child", work.IssueCreated(r, true))
	wantKeys(t, "updated", work.IssueUpdated(r, false))
	wantKeys(t, "retitled", work.IssueUpdated(r, true))
	wantKeys(t, "checkedOut", work.IssueBare(i, labels))
	wantKeys(t, "listed", work.IssueListed(tx, i, ""))
	wantKeys(t, "shown", work.IssueShown(tx, i, json.RawMessage(`{}`), nil))
	context, err := work.HeartbeatContext(tx, i, "", nil, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, "heartbeatContext", context)
	wantKeys(t, "search", work.SearchAnswer(tx, "c", "ACM", "gripper", 0, 0, 0))
	wantKeys(t, "comment", entity.Comment{})
	wantKeys(t, "label", labels[0])
	wantKeys(t, "read", inbox.ReadState{})
	wantKeys(t, "archived", inbox.InboxArchive{})

	var got map[string]any
	if err := json.Unmarshal(work.IssueBare(i, nil), &got); err != nil {
		t.Fatal(err)
	}
	if got["title"] != i.Title || got["description"] != i.Description || got["fencingToken"] != 7.0 ||
		got["executionRunId"] != "r" || got["startedAt"] != "1970-01-01T00:00:00.005Z" {
		t.Errorf("got %v", got)
	}
}

func TestCostAnswersHaveTheRecordedKeys(t *testing.T) {
	t.Parallel()
	tx := ledger.NewTx(apitest.NoState{})
	for name, answer := range map[string]any{
		"cost": money.CostEvent{}, "costSummary": apimoney.CostSummary{}, "byAgent": apimoney.CostByAgent{},
		"byAgentModel": apimoney.CostByAgentModel{}, "byProvider": apimoney.CostByProvider{},
		"byBiller": apimoney.CostByBiller{}, "byProject": apimoney.CostByProject{}, "windowSpend": apimoney.WindowSpend{},
		"financeSummary": apimoney.FinanceSummary{}, "issueCosts": apimoney.IssueCosts{},
		"overview": apimoney.BudgetOverview{Policies: []apimoney.BudgetPolicy{},
			ActiveIncidents: []apimoney.BudgetIncident{}},
		"incident": apimoney.IncidentShown(tx, "c", money.BudgetIncident{Type: entity.ScopeAgent}),
		"policy": apimoney.PolicyShown(tx, "c", money.ScopeBudget{Type: entity.ScopeProject},
			money.BudgetPolicy{Window: money.WindowLifetime}, 1),
	} {
		wantKeys(t, name, answer)
	}
}

func TestLongDescriptionsAreCutInLists(t *testing.T) {
	t.Parallel()
	i := sampleIssue()
	i.Description = strings.Repeat("é", work.ListedDescription)
	var row struct {
		Description string `json:"description"`
		Truncated   bool   `json:"descriptionTruncated"`
	}
	if err := json.Unmarshal(work.IssueListed(ledger.NewTx(apitest.NoState{}), i, ""), &row); err != nil {
		t.Fatal(err)
	}
	if !row.Truncated || len(row.Description) > work.ListedDescription || strings.Trim(row.Description, "é") != "" {
		t.Errorf("got %d bytes, truncated %v", len(row.Description), row.Truncated)
	}
}

func BenchmarkIssueListed(b *testing.B) {
	tx, i := ledger.NewTx(apitest.NoState{}), sampleIssue()
	i.CheckoutRun, i.Labels = "", nil
	b.ReportAllocs()
	for b.Loop() {
		if len(work.IssueListed(tx, i, "")) < 100 {
			b.Fatal("too short")
		}
	}
}

// A list counts the active issues below each issue when the query asks for it.
func TestAListCountsWhatIsWorkedOnBelow(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	in := "/api/companies/" + h.Company("Acme")
	ada := h.Call("POST", in+"/agents", `{"name":"Ada","adapterConfig":{"command":"true"}}`).Want(t, 201, "").
		Field(t, "id")
	top := h.Call("POST", in+"/issues", `{"title":"Top"}`).Want(t, 201, "").Field(t, "id")
	mid := h.Call("POST", "/api/issues/"+top+"/children", `{"title":"Mid"}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/issues/"+mid+"/children", `{"title":"Leaf","status":"todo","assigneeAgentId":"`+ada+`"}`).
		Want(t, 201, "")
	for _, title := range []string{"Top", "Mid"} {
		h.Call("GET", in+"/issues?q="+title+"&includeLiveDescendantSummary=true", "").Want(t, 200, `"liveDescendantCount":1`)
	}
	h.Call("GET", in+"/issues?q=Leaf&includeLiveDescendantSummary=1", "").Want(t, 200, `"liveDescendantCount":0`)
	if a := h.Call("GET", in+"/issues", ""); strings.Contains(string(a.Body), "liveDescendantCount") {
		t.Errorf("nobody asked for it: %s", a.Body)
	}
}
