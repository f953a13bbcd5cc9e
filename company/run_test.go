package company

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
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
const recordedRunKeys = `id companyId agentId invocationSource triggerDetail status responsibleUserId activeIdentityContextId
startedAt finishedAt executionControlDeadlineAt executionStatusDeliveryId error wakeupRequestId exitCode signal usageJson resultJson
runtimeMode runtimeModeResolverVersion runtimeModeReason runtimeModeResolvedAt runnerProfileJson runnerInstanceId nativeSessionId
nativeIssueId driverKind driverVersion completionContractId completionContractSha256 nextEventSeq nativePhase nativePhaseUpdatedAt
sessionIdBefore sessionIdAfter logStore logRef logBytes logSha256 logCompressed stdoutExcerpt stderrExcerpt errorCode externalRunId
controllerBootId controllerLeaseExpiresAt executionStage processPid processGroupId processStartedAt lastOutputAt lastOutputSeq
lastOutputStream lastOutputBytes retryOfRunId processLossRetryCount scheduledRetryAt scheduledRetryAttempt scheduledRetryReason
issueCommentStatus issueCommentSatisfiedByCommentId issueCommentRetryQueuedAt livenessState livenessReason continuationAttempt
lastUsefulActionAt nextAction contextSnapshot createdAt updatedAt`

func TestARunHasTheRecordedKeys(t *testing.T) {
	t.Parallel()
	got, want := slices.Sorted(slices.Values(keysOf(t, Run{}))), slices.Sorted(slices.Values(strings.Fields(recordedRunKeys)))
	if !slices.Equal(got, want) {
		t.Errorf("keys\n%v, want\n%v", got, want)
	}
	b, _ := json.Marshal(Run{})
	for _, null := range []string{`"startedAt":null`, `"exitCode":null`, `"resultJson":null`, `"logBytes":null`, `"error":null`, `"processPid":null`} {
		if !bytes.Contains(b, []byte(null)) {
			t.Errorf("a run that has not started lacks %s", null)
		}
	}
	event := strings.Fields("id companyId runId agentId seq eventType stream level color message payload sourceInstanceId sourceEventId sourceSeq sourcePayloadSha256 protocolSchemaVersion createdAt")
	if got := keysOf(t, RunEvent{}); !slices.Equal(got, event) {
		t.Errorf("keys of an event\n%v, want\n%v", got, event)
	}
}

func TestScopeIsTheTask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ctx  RunContext
		want string
	}{{RunContext{}, ""}, {RunContext{IssueID: "i"}, "i"}, {RunContext{IssueID: "i", TaskID: "t"}, "t"}, {RunContext{IssueID: "i", TaskID: "t", TaskKey: "k"}, "k"}} {
		if got := c.ctx.Scope(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.ctx, got, c.want)
		}
	}
}

func TestAWakeMergesIntoTheBestRunOfItsScope(t *testing.T) {
	t.Parallel()
	on := func(id, scope string, s RunStatus) Run {
		return Run{ID: id, Status: s, Context: RunContext{TaskKey: scope}}
	}
	live := []Run{on("running", "a", RunRunning), on("retry", "a", RunScheduledRetry), on("queued", "a", RunQueued), on("idle", "", RunRunning)}
	for _, c := range []struct {
		name   string
		live   []Run
		ctx    RunContext
		manual bool
		want   string
	}{
		{"queued first", live, RunContext{TaskKey: "a"}, false, "queued"},
		{"then a retry", live[:2], RunContext{TaskKey: "a"}, false, "retry"},
		{"then a running one", live[:1], RunContext{TaskKey: "a"}, false, "running"},
		{"no task", live, RunContext{}, false, "idle"},
		{"another task", live, RunContext{TaskKey: "b"}, false, ""},
		{"manual never", live, RunContext{TaskKey: "a"}, true, ""},
		{"a comment joins what waits", live, RunContext{TaskKey: "a", CommentID: "c"}, false, "queued"},
		{"a comment does not join what runs", live[:1], RunContext{TaskKey: "a", CommentID: "c"}, false, ""},
		{"nothing there", nil, RunContext{TaskKey: "a"}, false, ""},
	} {
		got := ""
		if r := coalesceTarget(c.live, c.ctx, c.manual); r != nil {
			got = r.ID
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAbsorbingIsBoundedAndKeepsTheRun(t *testing.T) {
	t.Parallel()
	r := Run{ID: "r", Status: RunQueued, Context: RunContext{WakeReason: "first"}}
	for range 2 * maxWakeComments {
		r = r.absorb(RunContext{CommentID: derivedID("c", r.ID, string(rune(r.Context.MergedWakes))), WakeReason: "later"}, 5)
	}
	if n := len(r.Context.CommentIDs); n != maxWakeComments {
		t.Errorf("%d comments kept, want %d", n, maxWakeComments)
	}
	if r.ID != "r" || r.Context.WakeReason != "later" || r.UpdatedAt != 5 {
		t.Errorf("run became %+v", r)
	}
}

func TestThePolicyReadsBothPlacesAndClamps(t *testing.T) {
	t.Parallel()
	plain := heartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 20}
	for _, c := range []struct {
		runtime, adapter string
		want             heartbeatPolicy
	}{
		{"", "", plain},
		{`{}`, `"a string"`, plain},
		{`{"heartbeat":{"maxConcurrentRuns":0}}`, "", heartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 1}},
		{`{"heartbeat":{"maxConcurrentRuns":999}}`, "", heartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 50}},
		{`{"heartbeat":{"maxConcurrentRuns":"many","wakeOnDemand":false}}`, "", heartbeatPolicy{MaxConcurrentRuns: 20}},
		{"", `{"enabled":true,"intervalSec":60}`, heartbeatPolicy{Enabled: true, IntervalSec: 60, WakeOnDemand: true, MaxConcurrentRuns: 20}},
		{`{"heartbeat":{"enabled":false,"intervalSec":30}}`, `{"enabled":true,"intervalSec":60}`, heartbeatPolicy{IntervalSec: 30, WakeOnDemand: true, MaxConcurrentRuns: 20}},
		{`{"heartbeat":{"maxDailyRuns":4,"skipTimerWhenNoActionableWork":true}}`, "", heartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 20, MaxDailyRuns: 4, SkipTimerWhenNoActionableWork: true}},
	} {
		c.want.MaxFruitlessRuns = DefaultFruitlessRuns
		if got := parsePolicy([]byte(c.runtime), []byte(c.adapter)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, want %+v", c.runtime, c.adapter, got, c.want)
		}
	}
}

func TestDerivedIDsAreUUIDsAndDiffer(t *testing.T) {
	t.Parallel()
	a, b := derivedID("x", "yz"), derivedID("xy", "z")
	if a == b || len(a) != 36 || a[14] != '8' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("%s %s", a, b)
	}
	if a != derivedID("x", "yz") {
		t.Error("the same parts gave another ID")
	}
}

// An issue counts once for each above it, whoever of its assignee's runs is live; what
// waits to be tried again, is hidden, or is of somebody else does not.
func TestLiveIssuesBelow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.hired("Ada"), d.hired("Bob")
	top := d.issue(t, CreateIssue{})
	mid := d.issue(t, CreateIssue{Parent: top.ID, Assignee: ada, Status: IssueBacklog})
	leaf := d.issue(t, CreateIssue{Parent: mid.ID, Assignee: ada, Status: IssueBacklog})
	held := d.issue(t, CreateIssue{Parent: mid.ID, Assignee: bob, Status: IssueBacklog})
	other := d.issue(t, CreateIssue{Parent: mid.ID, Assignee: bob, Status: IssueBacklog})
	d.onIssue(t, ada, leaf)
	d.working(t, ada, leaf)
	d.must(t, as{bob, d.run(bob)}, "issue.checkout", CheckOutIssue{Issue: held.ID, Agent: bob, Expected: IssueStatuses}, nil)
	d.working(t, ada, other) // about what is another's
	want := map[string]int{top.ID: 2, mid.ID: 2}
	if got := LiveBelow(d.tx, d.company); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d.must(t, board, "issue.update", UpdateIssue{Issue: held.ID, HiddenAt: new(Time(1))}, nil)
	d.must(t, board, "issue.update", UpdateIssue{Issue: leaf.ID, Comment: &CreateComment{ID: d.id(), Issue: leaf.ID, Body: "Stop", Interrupt: true}}, nil)
	for _, r := range LiveRunsOnIssue(d.tx, d.load(leaf.ID)) {
		r.Status, r.ScheduledRetryAt = RunScheduledRetry, TimeOf(d.now)+1
		d.storeRun(r)
	}
	if got := LiveBelow(d.tx, d.company); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}
