package node

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
)

// The segment of a log that is kept as a blob is deleted soon, but only if this node has
// the blob.
func TestSegmentsOfKeptLogsAreDropped(t *testing.T) {
	dir := t.TempDir()
	logs, err := runlog.Open(filepath.Join(dir, "logs"), runlog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	blobs, err := blob.Open(filepath.Join(dir, "blobs"), blob.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	n := &Node{blobs: blobs, log: slog.New(slog.DiscardHandler)}
	n.work.logs = logs
	told := time.Now()
	segment := func(run, text string, keep bool) keptSegment {
		ref := runlog.Ref("acme", "writer", run)
		w, err := logs.Create(ref)
		if err != nil {
			t.Fatal(err)
		}
		w.Write("stdout", text)
		sum, err := w.Close()
		if err != nil {
			t.Fatal(err)
		}
		d, err := blob.ParseDigest(sum.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := logs.Read(ref, 0, 0); err != nil {
			t.Fatal(err)
		} else if keep {
			b, err := blobs.Create(sum.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Abort()
			if _, err := b.Write(c.Content); err != nil {
				t.Fatal(err)
			}
			if err := b.CommitAs(d); err != nil {
				t.Fatal(err)
			}
		}
		return keptSegment{run, ref, d, told}
	}
	here := func(s keptSegment) bool {
		_, err := logs.Read(s.ref, 0, 0)
		if err != nil && !errors.Is(err, runlog.ErrNoLog) {
			t.Fatal(err)
		}
		return err == nil
	}
	a, b := segment("a", "kept", true), segment("b", "not here", false)
	later := n.dropSegments([]keptSegment{a, b}, told.Add(segmentGrace-time.Second))
	if len(later) != 2 || !here(a) || !here(b) {
		t.Fatalf("before the grace is over %d segments are waited for, those here: %v %v", len(later), here(a), here(b))
	}
	if later = n.dropSegments(later, told.Add(segmentGrace)); len(later) != 0 {
		t.Errorf("%d segments are still waited for", len(later))
	}
	if here(a) {
		t.Error("the segment of a log that is kept here as a blob is still there")
	}
	if !here(b) {
		t.Error("a segment was removed although its blob is not here")
	}
}

// A decision log of an earlier life is told once its run is over, and told again, at growing intervals, until the mesh
// knows or the tries are used up. A log that the mesh refuses does not keep the others back.
func TestLateDecisionLogsAreToldUntilTheMeshKnows(t *testing.T) {
	t.Parallel()
	runs := map[string]entity.Run{"a": {ID: "a", Status: entity.RunInterrupted}, "b": {ID: "b", Status: entity.RunRunning},
		"c": {ID: "c", Status: entity.RunInterrupted}}
	var said []string
	fail := map[string]error{}
	l := &lateLogs{left: maxLateTries, log: slog.New(slog.DiscardHandler),
		run:  func(d runlog.Decided) entity.Run { return runs[d.Run] },
		seal: func(ref string) (entity.DecisionLog, error) { return entity.DecisionLog{Permits: 1, SHA256: ref}, nil },
		told: func(_ context.Context, _ ledger.CompanyID, k company.KeptLog) error {
			said = append(said, k.Run)
			if err := fail[k.Run]; err != nil {
				return err
			}
			r := runs[k.Run]
			r.Decisions = k.Late
			runs[k.Run] = r
			return nil
		}}
	for _, id := range []string{"a", "b", "c", "gone"} {
		l.open = append(l.open, runlog.Decided{Company: "acme", Agent: "ada", Run: id})
	}
	now := time.Now()
	want := func(what string, open int, told ...string) {
		t.Helper()
		said = nil
		if l.tell(t.Context(), now); !slices.Equal(said, told) || len(l.open) != open {
			t.Fatalf("%s: told %q, %d are open; want %q and %d", what, said, len(l.open), told, open)
		}
	}
	// Without a leader the first failure ends the round: each call would wait for its timeout.
	fail["a"] = errors.New("no leader")
	want("no leader", 4, "a")
	for _, after := range []time.Duration{keepLogsEvery, 2 * keepLogsEvery, 4 * keepLogsEvery} {
		now = now.Add(after - time.Millisecond)
		want("too early", len(l.open))
		now = now.Add(time.Millisecond)
		want("still no leader", len(l.open), "a")
	}
	fail["a"] = nil
	fail["c"] = ledger.Refuse(ledger.Conflict, nil, "the session is over")
	now = now.Add(maxLateWait)
	want("a leader, which refuses one", 2, "a", "c")
	if d := runs["a"].Decisions; d == nil || d.SHA256 != "acme/ada/a.gate.ndjson" {
		t.Errorf("told %+v", d)
	}
	runs["b"] = entity.Run{ID: "b", Status: entity.RunInterrupted}
	now = now.Add(maxLateWait)
	want("another run is over", 1, "b", "c")
	rounds := 0
	for ; len(l.open) > 0 && rounds <= maxLateTries; rounds++ {
		now = now.Add(maxLateWait)
		l.tell(t.Context(), now)
	}
	if rounds >= maxLateTries || rounds < maxLateTries-10 {
		t.Errorf("given up after %d more rounds", rounds)
	}
}

// A log that was closed, and that nobody told of before the process ended, is among those that are looked for.
func TestClosedDecisionLogsAreLookedFor(t *testing.T) {
	t.Parallel()
	logs, err := runlog.Open(t.TempDir(), runlog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	for _, run := range []string{"closed", "growing", "told"} {
		if err := logs.Decided(runlog.DecisionsRef("acme", "ada", run), []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if run != "growing" {
			if _, err := logs.SealDecisions(runlog.DecisionsRef("acme", "ada", run)); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := logs.Decisions(10, func(d runlog.Decided) bool { return d.Run != "told" })
	want := []runlog.Decided{{Company: "acme", Agent: "ada", Run: "closed"},
		{Company: "acme", Agent: "ada", Run: "growing"}}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %+v, %v", found, err)
	}
	if found, _ := logs.Decisions(1, func(runlog.Decided) bool { return true }); len(found) != 1 {
		t.Errorf("found %d, want one at most", len(found))
	}
}
