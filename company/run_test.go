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
	got, want := slices.Sorted(slices.Values(keysOf(t, company.Run{}))), slices.Sorted(slices.Values(strings.Fields(recordedRunKeys)))
	if !slices.Equal(got, want) {
		t.Errorf("keys\n%v, want\n%v", got, want)
	}
	b, _ := json.Marshal(company.Run{})
	for _, null := range []string{`"startedAt":null`, `"exitCode":null`, `"resultJson":null`, `"logBytes":null`, `"error":null`, `"processPid":null`} {
		if !bytes.Contains(b, []byte(null)) {
			t.Errorf("a run that has not started lacks %s", null)
		}
	}
	event := strings.Fields("id companyId runId agentId seq eventType stream level color message payload sourceInstanceId sourceEventId sourceSeq sourcePayloadSha256 protocolSchemaVersion createdAt")
	if got := keysOf(t, company.RunEvent{}); !slices.Equal(got, event) {
		t.Errorf("keys of an event\n%v, want\n%v", got, event)
	}
}

func TestScopeIsTheTask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ctx  company.RunContext
		want string
	}{{company.RunContext{}, ""}, {company.RunContext{IssueID: "i"}, "i"}, {company.RunContext{IssueID: "i", TaskID: "t"}, "t"}, {company.RunContext{IssueID: "i", TaskID: "t", TaskKey: "k"}, "k"}} {
		if got := c.ctx.Scope(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.ctx, got, c.want)
		}
	}
}

func TestAWakeMergesIntoTheBestRunOfItsScope(t *testing.T) {
	t.Parallel()
	on := func(id, scope string, s company.RunStatus) company.Run {
		return company.Run{ID: id, Status: s, Context: company.RunContext{TaskKey: scope}}
	}
	live := []company.Run{on("running", "a", company.RunRunning), on("retry", "a", company.RunScheduledRetry), on("queued", "a", company.RunQueued), on("idle", "", company.RunRunning)}
	for _, c := range []struct {
		name   string
		live   []company.Run
		ctx    company.RunContext
		manual bool
		want   string
	}{
		{"queued first", live, company.RunContext{TaskKey: "a"}, false, "queued"},
		{"then a retry", live[:2], company.RunContext{TaskKey: "a"}, false, "retry"},
		{"then a running one", live[:1], company.RunContext{TaskKey: "a"}, false, "running"},
		{"no task", live, company.RunContext{}, false, "idle"},
		{"another task", live, company.RunContext{TaskKey: "b"}, false, ""},
		{"manual never", live, company.RunContext{TaskKey: "a"}, true, ""},
		{"a comment joins what waits", live, company.RunContext{TaskKey: "a", CommentID: "c"}, false, "queued"},
		{"a comment does not join what runs", live[:1], company.RunContext{TaskKey: "a", CommentID: "c"}, false, ""},
		{"nothing there", nil, company.RunContext{TaskKey: "a"}, false, ""},
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
	r := company.Run{ID: "r", Status: company.RunQueued, Context: company.RunContext{WakeReason: "first"}}
	for range 2 * company.MaxWakeComments {
		r = r.Absorb(company.RunContext{CommentID: core.DerivedID("c", r.ID, string(rune(r.Context.MergedWakes))), WakeReason: "later"}, 5)
	}
	if n := len(r.Context.CommentIDs); n != company.MaxWakeComments {
		t.Errorf("%d comments kept, want %d", n, company.MaxWakeComments)
	}
	if r.ID != "r" || r.Context.WakeReason != "later" || r.UpdatedAt != 5 {
		t.Errorf("run became %+v", r)
	}
}

func TestThePolicyReadsBothPlacesAndClamps(t *testing.T) {
	t.Parallel()
	plain := company.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 20}
	for _, c := range []struct {
		runtime, adapter string
		want             company.HeartbeatPolicy
	}{
		{"", "", plain},
		{`{}`, `"a string"`, plain},
		{`{"heartbeat":{"maxConcurrentRuns":0}}`, "", company.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 1}},
		{`{"heartbeat":{"maxConcurrentRuns":999}}`, "", company.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 50}},
		{`{"heartbeat":{"maxConcurrentRuns":"many","wakeOnDemand":false}}`, "", company.HeartbeatPolicy{MaxConcurrentRuns: 20}},
		{"", `{"enabled":true,"intervalSec":60}`, company.HeartbeatPolicy{Enabled: true, IntervalSec: 60, WakeOnDemand: true, MaxConcurrentRuns: 20}},
		{`{"heartbeat":{"enabled":false,"intervalSec":30}}`, `{"enabled":true,"intervalSec":60}`, company.HeartbeatPolicy{IntervalSec: 30, WakeOnDemand: true, MaxConcurrentRuns: 20}},
		{`{"heartbeat":{"maxDailyRuns":4,"skipTimerWhenNoActionableWork":true}}`, "", company.HeartbeatPolicy{WakeOnDemand: true, MaxConcurrentRuns: 20, MaxDailyRuns: 4, SkipTimerWhenNoActionableWork: true}},
	} {
		c.want.MaxFruitlessRuns = company.DefaultFruitlessRuns
		if got := company.ParsePolicy([]byte(c.runtime), []byte(c.adapter)); !reflect.DeepEqual(got, c.want) {
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
	mid := d.Issue(t, company.CreateIssue{Parent: top.ID, Assignee: ada, Status: company.IssueBacklog})
	leaf := d.Issue(t, company.CreateIssue{Parent: mid.ID, Assignee: ada, Status: company.IssueBacklog})
	held := d.Issue(t, company.CreateIssue{Parent: mid.ID, Assignee: bob, Status: company.IssueBacklog})
	other := d.Issue(t, company.CreateIssue{Parent: mid.ID, Assignee: bob, Status: company.IssueBacklog})
	d.OnIssue(t, ada, leaf)
	d.Working(t, ada, leaf)
	d.Must(t, companytest.As{Agent: bob, Run: d.Run(bob)}, "issue.checkout", company.CheckOutIssue{Issue: held.ID, Agent: bob, Expected: company.IssueStatuses}, nil)
	d.Working(t, ada, other) // about what is another's
	want := map[string]int{top.ID: 2, mid.ID: 2}
	if got := company.LiveBelow(d.Tx, d.Company); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: held.ID, HiddenAt: new(core.Time(1))}, nil)
	d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: leaf.ID, Comment: &company.CreateComment{ID: d.ID(), Issue: leaf.ID, Body: "Stop", Interrupt: true}}, nil)
	for _, r := range company.LiveRunsOnIssue(d.Tx, d.Load(leaf.ID)) {
		r.Status, r.ScheduledRetryAt = company.RunScheduledRetry, core.TimeOf(d.Now)+1
		d.StoreRun(r)
	}
	if got := company.LiveBelow(d.Tx, d.Company); len(got) != 0 {
		t.Errorf("got %v, want none", got)
	}
}
