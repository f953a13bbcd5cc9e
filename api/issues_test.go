package api

import (
	"encoding/json"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/inbox"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
)

// noState is the state below a fresh Tx: nothing.
type noState struct{}

func (noState) Get([]byte) ([]byte, bool) { return nil, false }
func (noState) Scan([]byte, []byte, bool) iter.Seq2[[]byte, []byte] {
	return func(func([]byte, []byte) bool) {}
}

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

// wantKeys compares an answer with the keys and types that the contract's
// recordings have. A value may be null on either side, and keys of ours may be
// there besides.
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
		if have := jsonType(v); have != want && have != "null" && want != "null" {
			t.Errorf("%s: %s is a %s, recorded as %s", name, key, have, want)
		}
	}
}

func sampleIssue() company.Issue {
	return company.Issue{ID: "i", Company: "c", Number: 1, Identifier: "ACM-1", Title: `Design "gripper" <v2>`, Description: "Make\na gripper – soon", Status: company.IssueInProgress,
		Priority: company.PriorityHigh, Assignee: "a", CheckoutRun: "r", Fence: 7, StatusVersion: 1, StartedAt: 5, CreatedAt: 1, UpdatedAt: 2,
		Labels: []string{"l"}, UnblockDescriptor: json.RawMessage(`{"owner":"board"}`)}
}

func TestIssueAnswersHaveTheRecordedKeys(t *testing.T) {
	t.Parallel()
	tx := ledger.NewTx(noState{})
	i := sampleIssue()
	labels := []company.Label{{ID: "l", Company: "c", Name: "bug", Color: "#ff0000", CreatedAt: 1, UpdatedAt: 1}}
	r := company.IssueResult{Issue: i, Labels: labels, BlockedBy: []company.IssueRef{i.Ref()}, Changes: json.RawMessage(`{}`), Comment: &company.Comment{ID: "m"}}
	dup := r
	dup.Duplicate = "recent_open_title"
	wantKeys(t, "created", issueCreated(r, false))
	wantKeys(t, "deduplicated", issueCreated(dup, false))
	wantKeys(t, "child", issueCreated(r, true))
	wantKeys(t, "updated", issueUpdated(r, false))
	wantKeys(t, "retitled", issueUpdated(r, true))
	wantKeys(t, "checkedOut", issueBare(i, labels))
	wantKeys(t, "listed", issueListed(tx, i, ""))
	wantKeys(t, "shown", issueShown(tx, i, json.RawMessage(`{}`), nil))
	context, err := heartbeatContext(tx, i, "", nil, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, "heartbeatContext", context)
	wantKeys(t, "search", searchAnswer(tx, "c", "ACM", "gripper", 0, 0, 0))
	wantKeys(t, "comment", company.Comment{})
	wantKeys(t, "label", labels[0])
	wantKeys(t, "read", inbox.ReadState{})
	wantKeys(t, "archived", inbox.InboxArchive{})

	var got map[string]any
	if err := json.Unmarshal(issueBare(i, nil), &got); err != nil {
		t.Fatal(err)
	}
	if got["title"] != i.Title || got["description"] != i.Description || got["fencingToken"] != 7.0 || got["executionRunId"] != "r" || got["startedAt"] != "1970-01-01T00:00:00.005Z" {
		t.Errorf("got %v", got)
	}
}

func TestCostAnswersHaveTheRecordedKeys(t *testing.T) {
	t.Parallel()
	tx := ledger.NewTx(noState{})
	for name, answer := range map[string]any{
		"cost": money.CostEvent{}, "costSummary": costSummary{}, "byAgent": costByAgent{}, "byAgentModel": costByAgentModel{}, "byProvider": costByProvider{},
		"byBiller": costByBiller{}, "byProject": costByProject{}, "windowSpend": windowSpend{}, "financeSummary": financeSummary{}, "issueCosts": issueCosts{},
		"overview": budgetOverview{Policies: []budgetPolicy{}, ActiveIncidents: []budgetIncident{}},
		"incident": incidentShown(tx, "c", money.BudgetIncident{Type: company.ScopeAgent}),
		"policy":   policyShown(tx, "c", money.ScopeBudget{Type: company.ScopeProject}, money.BudgetPolicy{Window: money.WindowLifetime}, 1),
	} {
		wantKeys(t, name, answer)
	}
}

func TestLongDescriptionsAreCutInLists(t *testing.T) {
	t.Parallel()
	i := sampleIssue()
	i.Description = strings.Repeat("é", listedDescription)
	var row struct {
		Description string `json:"description"`
		Truncated   bool   `json:"descriptionTruncated"`
	}
	if err := json.Unmarshal(issueListed(ledger.NewTx(noState{}), i, ""), &row); err != nil {
		t.Fatal(err)
	}
	if !row.Truncated || len(row.Description) > listedDescription || strings.Trim(row.Description, "é") != "" {
		t.Errorf("got %d bytes, truncated %v", len(row.Description), row.Truncated)
	}
}

func BenchmarkIssueListed(b *testing.B) {
	tx, i := ledger.NewTx(noState{}), sampleIssue()
	i.CheckoutRun, i.Labels = "", nil
	b.ReportAllocs()
	for b.Loop() {
		if len(issueListed(tx, i, "")) < 100 {
			b.Fatal("too short")
		}
	}
}

// A list says of each issue how many below it are worked on when that is asked for.
func TestAListCountsWhatIsWorkedOnBelow(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	in := "/api/companies/" + h.company("Acme")
	ada := h.call("POST", in+"/agents", `{"name":"Ada","adapterConfig":{"command":"true"}}`).want(t, 201, "").field(t, "id")
	top := h.call("POST", in+"/issues", `{"title":"Top"}`).want(t, 201, "").field(t, "id")
	mid := h.call("POST", "/api/issues/"+top+"/children", `{"title":"Mid"}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/issues/"+mid+"/children", `{"title":"Leaf","status":"todo","assigneeAgentId":"`+ada+`"}`).want(t, 201, "")
	for _, title := range []string{"Top", "Mid"} {
		h.call("GET", in+"/issues?q="+title+"&includeLiveDescendantSummary=true", "").want(t, 200, `"liveDescendantCount":1`)
	}
	h.call("GET", in+"/issues?q=Leaf&includeLiveDescendantSummary=1", "").want(t, 200, `"liveDescendantCount":0`)
	if a := h.call("GET", in+"/issues", ""); strings.Contains(string(a.body), "liveDescendantCount") {
		t.Errorf("nobody asked for it: %s", a.body)
	}
}
