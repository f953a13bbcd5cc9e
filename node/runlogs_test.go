package node

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/runlog"
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
