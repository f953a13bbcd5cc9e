package run_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/run"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// wantRecorded compares an answer with the keys and types of the contract's
// recordings in testdata/run_keys.json. A value may be null on either side.
func wantRecorded(t *testing.T, name string, answer any) {
	t.Helper()
	var recorded map[string]map[string]string
	b, err := os.ReadFile("testdata/run_keys.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &recorded); err != nil {
		t.Fatal(err)
	}
	if b, err = json.Marshal(answer); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatalf("%s: %v in %s", name, err, b)
	}
	if len(recorded[name]) == 0 {
		t.Fatalf("nothing is recorded as %s", name)
	}
	for key, want := range recorded[name] {
		v, ok := got[key]
		if have := apitest.JsonType(v); !ok || have != want && have != "null" && want != "null" {
			t.Errorf("%s: %s is a %s (there: %v), recorded as %s", name, key, have, ok, want)
		}
	}
}

func sampleRun(status entity.RunStatus) entity.Run {
	return entity.Run{ID: "r", Company: "c", Agent: "a", Source: entity.WakeAssignment, TriggerDetail: "system",
		Status:    status,
		StartedAt: 1000, FinishedAt: 2000, IdentityContext: "i", StatusDelivery: "d", WakeupRequest: "w", ExitCode: new(0),
		RuntimeMode:  "legacy",
		NextEventSeq: 4, LogStore: "local_file", LogRef: "c/a/r.ndjson", LogBytes: new(int64(9)), LogSHA256: "x",
		StdoutExcerpt: new("out"),
		ProcessPID:    new(int64(7)), ProcessGroup: new(int64(7)), ProcessStartedAt: 1000, LastOutputAt: 1500,
		LastOutputSeq:     2,
		LastOutputStream:  "stdout",
		LastOutputBytes:   new(int64(9)),
		ResultJSON:        json.RawMessage(`{"stdout":"secret output","stopReason":"completed","timeoutFired":false}`),
		RunnerProfileJSON: json.RawMessage(`{}`), Context: entity.RunContext{IssueID: "issue", WakeSource: "assignment"},
		CreatedAt: 900, UpdatedAt: 2000}
}

func TestRunAnswersHaveTheRecordedKeys(t *testing.T) {
	t.Parallel()
	tx := ledger.NewTx(apitest.NoState{})
	wantRecorded(t, "queued", entity.Run{})
	wantRecorded(t, "cancelled", sampleRun(entity.RunCancelled))
	for name, status := range map[string]entity.RunStatus{"finished": entity.RunSucceeded, "failed": entity.RunFailed,
		"timedOut": entity.RunTimedOut} {
		v := run.ViewRun(tx, sampleRun(status), 5000)
		wantRecorded(t, name, v)
		wantRecorded(t, "execution", v.Execution)
		wantRecorded(t, "identity", v.Identities[0])
	}
	wantRecorded(t, "listed", run.ListItem(sampleRun(entity.RunSucceeded)))
	live := run.LiveView(tx, sampleRun(entity.RunRunning), 5000)
	wantRecorded(t, "live", live)
	wantRecorded(t, "silence", live.Silence)
	wantRecorded(t, "ofIssue", run.IssueRunView(tx, sampleRun(entity.RunSucceeded), 5000))
	wantRecorded(t, "event", entity.RunEvent{})
	wantRecorded(t, "log", run.RunLogPage{})
	wantRecorded(t, "runtimeState", entity.RuntimeStateOf(tx, "c", "a"))
}

func TestListsOfRunsLeaveTheirOutputOut(t *testing.T) {
	t.Parallel()
	tx := ledger.NewTx(apitest.NoState{})
	for _, v := range []any{run.ListItem(sampleRun(entity.RunSucceeded)),
		run.IssueRunView(tx, sampleRun(entity.RunSucceeded), 5000)} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if r := string(got["resultJson"]); r != "null" && r != `{"stopReason":"completed","timeoutFired":false}` {
			t.Errorf("resultJson is %s", r)
		}
	}
}

func TestAWordForEveryStateOfARun(t *testing.T) {
	t.Parallel()
	tx := ledger.NewTx(apitest.NoState{})
	for status, want := range map[entity.RunStatus][2]string{
		entity.RunQueued: {"queued", "Queued"}, entity.RunScheduledRetry: {"retrying", "Waiting to retry"},
		entity.RunRunning:   {"working", "Working"},
		entity.RunSucceeded: {"completed", "Completed"}, entity.RunFailed: {"failed", "Failed"},
		entity.RunTimedOut:  {"failed", "Failed"},
		entity.RunCancelled: {"failed", "Cancelled"}, entity.RunInterrupted: {"failed", "Interrupted"},
	} {
		if e := run.ExecutionOf(tx, entity.Run{Status: status}); e.Phase != want[0] || e.Label != want[1] {
			t.Errorf("%s is %s, %q, want %v", status, e.Phase, e.Label, want)
		}
	}
}

func TestSilenceIsMeasuredWhileARunWorks(t *testing.T) {
	t.Parallel()
	r := sampleRun(entity.RunRunning)
	for after, want := range map[time.Duration]string{time.Minute: "ok", 2 * time.Hour: "suspicious",
		5 * time.Hour: "critical"} {
		if s := run.SilenceOf(r, r.LastOutputAt+core.Time(after.Milliseconds())); s.Level != want ||
			*s.SilenceAgeMs != after.Milliseconds() {
			t.Errorf("after %v: %s", after, s.Level)
		}
	}
	if s := run.SilenceOf(sampleRun(entity.RunSucceeded), 1<<40); s.Level != "not_applicable" || s.SilenceAgeMs != nil {
		t.Errorf("an ended run is %s", s.Level)
	}
}

// The log of a started run is empty until its node opens it. An ended run without a log
// is not found.
func TestALogThatIsYetToBeOpenedIsEmpty(t *testing.T) {
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.RunLog = func(context.Context, entity.Run, int64, int64) (runlog.Chunk, error) {
			return runlog.Chunk{}, runlog.ErrNoLog
		}
	})
	of := ledger.CompanyID(h.Company("Acme"))
	agent := h.Call("POST", "/api/companies/"+string(of)+"/agents",
		`{"name":"Ada","adapterType":"process","adapterConfig":{"command":"/bin/true"}}`).Want(t, 201, "").Field(t, "id")
	run := h.Running(of, agent)
	h.Call("GET", "/api/heartbeat-runs/"+run+"/log", "").Want(t, 200, `"content":""`)
	h.Call("POST", "/api/heartbeat-runs/"+run+"/cancel", `{}`).Want(t, 200, "")
	h.Call("GET", "/api/heartbeat-runs/"+run+"/log", "").Want(t, 404, "Run log not found")
}

// The log of a command in a workspace is empty too, until the node that may start it
// opens it.
func TestALogOfACommandThatIsYetToBeOpenedIsEmpty(t *testing.T) {
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.NodeLog = func(context.Context, identity.NodeID, string, int64, int64) (runlog.Chunk, error) {
			return runlog.Chunk{}, runlog.ErrNoLog
		}
	})
	of := ledger.CompanyID(h.Company("Acme"))
	project := h.Call("POST", "/api/companies/"+string(of)+"/projects", `{"name":"Boat"}`).Want(t, 201, "").Field(t, "id")
	in := "/api/projects/" + project + "/workspaces"
	space := h.Call("POST", in,
		`{"name":"Hull","cwd":"`+t.TempDir()+
			`","runtimeConfig":{"workspaceRuntime":{"jobs":[{"id":"weld","name":"Weld","command":"true"}]}}}`).
		Want(t, 201, "").Field(t, "id")
	op := h.Call("POST", in+"/"+space+"/runtime-commands/run", `{"workspaceCommandId":"weld"}`).Want(t, 200, "").
		Decode(t).(map[string]any)["operation"].(map[string]any)["id"].(string)
	at := "/api/workspace-operations/" + op + "/log"
	h.Call("GET", at, "").Want(t, 404, "not found") // no node has started it
	self := string(h.Node.Keys.ID())
	node, own := ledger.Actor{Type: "node", ID: self}, ledger.Credential{Kind: "node", ID: self}
	h.SubmitAs(node, own, "workspace_op.start", of, place.StartOperation{ID: op, Workspace: space,
		Phase: place.OperationProvision, LogRef: runlog.Ref(of, "ops", op)})
	h.Call("GET", at, "").Want(t, 200, `"content":""`)
	h.SubmitAs(node, own, "workspace_op.finish", of, place.FinishOperation{ID: op})
	h.Call("GET", at, "").Want(t, 404, "Workspace operation log not found")
}
