package govern_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// Who approves a command that waits sees what it says, by the names of its members, and no secrets. What is stored has
// the hash alone, and once it was decided nothing more is shown.
func TestAWaitingCommandIsShown(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	enact(t, d, put(rule("T-1", governance.Blocking, `true`, "label.create")))
	_, approval := refusal(t, do(d, as, "label.create", label(d, "urgent")), "approvalId")
	a, _ := money.ApprovalByID(d.Tx, approval)
	if strings.Contains(string(a.Payload), "urgent") {
		t.Errorf("the approval that is stored has the command: %s", a.Payload)
	}
	var shown struct {
		Command struct {
			Kind    string         `json:"kind"`
			Payload map[string]any `json:"payload"`
		} `json:"command"`
		Rules []string `json:"rules"`
	}
	b := govern.ShownWaiting(d.Tx, d.Company, approval, a.Payload)
	if err := json.Unmarshal(b, &shown); err != nil || shown.Command.Kind != "label.create" ||
		shown.Command.Payload["name"] != "urgent" || len(shown.Rules) != 1 {
		t.Fatalf("shown: %s %v", b, err)
	}
	if v := d.Decide(t, "approve", approval); v.Refused != nil {
		t.Fatal(v.Refused)
	}
	if b := govern.ShownWaiting(d.Tx, d.Company, approval, a.Payload); string(b) != string(a.Payload) {
		t.Errorf("once it was decided: %s", b)
	}
}

func TestAShownPayloadHasNoSecrets(t *testing.T) {
	t.Parallel()
	type inner struct {
		ProjectID string
		Empty     string
	}
	b := govern.ShownPayload(struct {
		ID            string
		AdapterConfig json.RawMessage
		Env           map[string]string
		APIToken      string
		Text          *string
		Cleared       *string
		Bytes         []byte
		Many          []inner
		unseen        int
	}{"7", json.RawMessage(`{"command":"run","env":{"KEY":"hidden-1"}}`), map[string]string{"A": "hidden-2"}, "hidden-3",
		new("Authorization: Bearer hidden-4-hidden-4-hidden-4"), new(""), []byte("hidden-5"),
		append(make([]inner, 60), inner{ProjectID: "p"}), 1})
	var o map[string]any
	if err := json.Unmarshal(b, &o); err != nil || strings.Contains(string(b), "hidden-") || o["id"] != "7" ||
		o["bytes"] != "8 bytes" || o["cleared"] != "" || len(o["many"].([]any)) != 51 || o["unseen"] != nil {
		t.Errorf("shown: %s %v", b, err)
	}
	if b := govern.ShownPayload(struct{ Text string }{strings.Repeat("x", 1<<20)}); b != nil {
		t.Errorf("a payload of a mebibyte is shown: %d bytes", len(b))
	}
	if b := govern.ShownPayload(nil); b != nil {
		t.Errorf("nothing is shown as %s", b)
	}
}

// The payload of every kind that people or agents give can be shown: its handler reads it by its type.
func TestEveryPayloadCanBeShown(t *testing.T) {
	t.Parallel()
	shown := 0
	for _, k := range company.Kinds() {
		if k.Do == nil { // the ledger executes it
			continue
		}
		p := ledger.Payload(k.Do, &ledger.Command{Kind: k.Name, Payload: ledger.Marshal(struct{}{})})
		if b := govern.ShownPayload(p); p == nil || b == nil {
			t.Errorf("%s: %T is shown as %q", k.Name, p, b)
		}
		shown++
	}
	if shown < 100 {
		t.Errorf("only %d kinds", shown)
	}
}
