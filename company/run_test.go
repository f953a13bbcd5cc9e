package company_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
)

// keysOf returns the keys of a JSON object in their order.
func keysOf(t *testing.T, v any) []string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	var keys []string
	depth := 0
	key := false
	for {
		tok, err := d.Token()
		if err != nil {
			return keys
		}
		switch tok := tok.(type) {
		case json.Delim:
			if tok == '{' || tok == '[' {
				depth++
			} else {
				depth--
			}
			key = depth == 1
		case string:
			if depth == 1 && key {
				keys = append(keys, tok)
				key = false
				continue
			}
			key = depth == 1
		default:
			key = depth == 1
		}
	}
}

// recordedRunKeys are those of a run in the recorded contract. Their order says nothing
// to a reader of JSON.
const recordedRunKeys = `id companyId agentId invocationSource triggerDetail status responsibleUserId ` +
	`activeIdentityContextId
startedAt finishedAt executionControlDeadlineAt executionStatusDeliveryId error wakeupRequestId exitCode signal ` +
	`usageJson resultJson
runtimeMode runtimeModeResolverVersion runtimeModeReason runtimeModeResolvedAt runnerProfileJson ` +
	`runnerInstanceId nativeSessionId
nativeIssueId driverKind driverVersion completionContractId completionContractSha256 nextEventSeq nativePhase ` +
	`nativePhaseUpdatedAt
sessionIdBefore sessionIdAfter logStore logRef logBytes logSha256 logCompressed stdoutExcerpt stderrExcerpt ` +
	`errorCode externalRunId
controllerBootId controllerLeaseExpiresAt executionStage processPid processGroupId processStartedAt lastOutputAt ` +
	`lastOutputSeq
lastOutputStream lastOutputBytes retryOfRunId processLossRetryCount scheduledRetryAt scheduledRetryAttempt ` +
	`scheduledRetryReason
issueCommentStatus issueCommentSatisfiedByCommentId issueCommentRetryQueuedAt livenessState livenessReason ` +
	`continuationAttempt
lastUsefulActionAt nextAction contextSnapshot createdAt updatedAt`

func TestARunHasTheRecordedKeys(t *testing.T) {
	t.Parallel()
	got, want := slices.Sorted(slices.Values(keysOf(t, entity.Run{}))),
		slices.Sorted(slices.Values(strings.Fields(recordedRunKeys)))
	if !slices.Equal(got, want) {
		t.Errorf("keys\n%v, want\n%v", got, want)
	}
	b, _ := json.Marshal(entity.Run{})
	for _, null := range []string{`"startedAt":null`, `"exitCode":null`, `"resultJson":null`, `"logBytes":null`,
		`"error":null`, `"processPid":null`} {
		if !bytes.Contains(b, []byte(null)) {
			t.Errorf("a run that has not started lacks %s", null)
		}
	}
	event := strings.Fields("id companyId runId agentId seq eventType stream level color message payload " +
		"sourceInstanceId sourceEventId sourceSeq sourcePayloadSha256 protocolSchemaVersion createdAt")
	if got := keysOf(t, entity.RunEvent{}); !slices.Equal(got, event) {
		t.Errorf("keys of an event\n%v, want\n%v", got, event)
	}
}

func TestScopeIsTheTask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ctx  entity.RunContext
		want string
	}{{entity.RunContext{}, ""}, {entity.RunContext{IssueID: "i"}, "i"}, {entity.RunContext{IssueID: "i", TaskID: "t"},
		"t"}, {entity.RunContext{IssueID: "i", TaskID: "t", TaskKey: "k"}, "k"}} {
		if got := c.ctx.Scope(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.ctx, got, c.want)
		}
	}
}

func TestAWakeMergesIntoTheBestRunOfItsScope(t *testing.T) {
	t.Parallel()
	on := func(id, scope string, s entity.RunStatus) entity.Run {
		return entity.Run{ID: id, Status: s, Context: entity.RunContext{TaskKey: scope}}
	}
	live := []entity.Run{on("running", "a", entity.RunRunning), on("retry", "a", entity.RunScheduledRetry),
		on("queued", "a", entity.RunQueued), on("idle", "", entity.RunRunning)}
	for _, c := range []struct {
		name   string
		live   []entity.Run
		ctx    entity.RunContext
		manual bool
		want   string
	}{
		{"queued first", live, entity.RunContext{TaskKey: "a"}, false, "queued"},
		{"then a retry", live[:2], entity.RunContext{TaskKey: "a"}, false, "retry"},
		{"then a running one", live[:1], entity.RunContext{TaskKey: "a"}, false, "running"},
		{"no task", live, entity.RunContext{}, false, "idle"},
		{"another task", live, entity.RunContext{TaskKey: "b"}, false, ""},
		{"manual never", live, entity.RunContext{TaskKey: "a"}, true, ""},
		{"a comment joins what waits", live, entity.RunContext{TaskKey: "a", CommentID: "c"}, false, "queued"},
		{"a comment does not join what runs", live[:1], entity.RunContext{TaskKey: "a", CommentID: "c"}, false, ""},
		{"nothing there", nil, entity.RunContext{TaskKey: "a"}, false, ""},
	} {
		got := ""
		if r := company.CoalesceTarget(c.live, c.ctx, c.manual); r != nil {
			got = r.ID
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAbsorbingIsBoundedAndKeepsTheRun(t *testing.T) {
	t.Parallel()
	r := entity.Run{ID: "r", Status: entity.RunQueued, Context: entity.RunContext{WakeReason: "first"}}
	for range 2 * entity.MaxWakeComments {
		r = r.Absorb(entity.RunContext{CommentID: core.DerivedID("c", r.ID, string(rune(r.Context.MergedWakes))),
			WakeReason: "later"}, 5)
	}
	if n := len(r.Context.CommentIDs); n != entity.MaxWakeComments {
		t.Errorf("%d comments kept, want %d", n, entity.MaxWakeComments)
	}
	if r.ID != "r" || r.Context.WakeReason != "later" || r.UpdatedAt != 5 {
		t.Errorf("run became %+v", r)
	}
}

func TestThePolicyReadsBothPlacesAndClamps(t *testing.T) {
	t.Parallel()
	plain := entity.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 20}
	for _, c := range []struct {
		runtime, adapter string
		want             entity.HeartbeatPolicy
	}{
		{"", "", plain},
		{`{}`, `"a string"`, plain},
		{`{"heartbeat":{"maxConcurrentRuns":0}}`, "", entity.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 1}},
		{`{"heartbeat":{"maxConcurrentRuns":999}}`, "", entity.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 50}},
		{`{"heartbeat":{"maxConcurrentRuns":"many","wakeOnDemand":false}}`, "",
			entity.HeartbeatPolicy{MaxConcurrentRuns: 20}},
		{"", `{"enabled":true,"intervalSec":60}`, entity.HeartbeatPolicy{Enabled: true, IntervalSec: 60, WakeOnDemand: true,
			MaxConcurrentRuns: 20}},
		{`{"heartbeat":{"enabled":false,"intervalSec":30}}`, `{"enabled":true,"intervalSec":60}`,
			entity.HeartbeatPolicy{IntervalSec: 30, WakeOnDemand: true, MaxConcurrentRuns: 20}},
		{`{"heartbeat":{"maxDailyRuns":4,"skipTimerWhenNoActionableWork":true}}`, "",
			entity.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 20, MaxDailyRuns: 4,
				SkipTimerWhenNoActionableWork: true}},
	} {
		c.want.MaxFruitlessRuns = entity.DefaultFruitlessRuns
		if got := entity.ParsePolicy([]byte(c.runtime), []byte(c.adapter)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, want %+v", c.runtime, c.adapter, got, c.want)
		}
	}
}

func TestDerivedIDsAreUUIDsAndDiffer(t *testing.T) {
	t.Parallel()
	a, b := core.DerivedID("x", "yz"), core.DerivedID("xy", "z")
	if a == b || len(a) != 36 || a[14] != '8' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("%s %s", a, b)
	}
	if a != core.DerivedID("x", "yz") {
		t.Error("the same parts gave another ID")
	}
}

// An issue counts once for each above it, whoever of its assignee's runs is live; what
// waits to be tried again, is hidden, or is of somebody else does not.
func TestLiveIssuesBelow(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Hired("Ada"), d.Hired("Bob")
	top := d.Issue(t, company.CreateIssue{})
	mid := d.Issue(t, company.CreateIssue{Parent: top.ID, Assignee: ada, Status: entity.IssueBacklog})
	leaf := d.Issue(t, company.CreateIssue{Parent: mid.ID, Assignee: ada, Status: entity.IssueBacklog})
	held := d.Issue(t, company.CreateIssue{Parent: mid.ID, Assignee: bob, Status: entity.IssueBacklog})
	other := d.Issue(t, company.CreateIssue{Parent: mid.ID, Assignee: bob, Status: entity.IssueBacklog})
	d.OnIssue(t, ada, leaf)
	d.Working(t, ada, leaf)
	d.Must(t, companytest.As{Agent: bob, Run: d.Run(bob)}, "issue.checkout", company.CheckOutIssue{Issue: held.ID,
		Agent: bob, Expected: entity.IssueStatuses}, nil)
	d.Working(t, ada, other) // about what is another's
	want := map[string]int{top.ID: 2, mid.ID: 2}
	if got := entity.LiveBelow(d.Tx, d.Company); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: held.ID, HiddenAt: new(core.Time(1))}, nil)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: leaf.ID,
		Comment: &entity.CreateComment{ID: d.ID(), Issue: leaf.ID, Body: "Stop", Interrupt: true}}, nil)
	for _, r := range entity.LiveRunsOnIssue(d.Tx, d.Load(leaf.ID)) {
		r.Status, r.ScheduledRetryAt = entity.RunScheduledRetry, core.TimeOf(d.Now)+1
		d.StoreRun(r)
	}
	if got := entity.LiveBelow(d.Tx, d.Company); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}
