package company

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestLogsOfRunsAreKept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	sum := func(c string) string { return strings.Repeat(c, 64) }
	over := func(c string, size int64) Run {
		r, _ := runs.Get(d.tx, d.company, d.run(ada))
		r.Node, r.LogBytes, r.LogSHA256 = "n1", &size, NullText(sum(c))
		runs.Put(d.tx, d.company, r.ID, r)
		dueLog(d.context(board, "", nil), r)
		return r
	}
	keep := func(node string, list ...Run) {
		t.Helper()
		p := KeepLogs{}
		for _, r := range list {
			p.Logs = append(p.Logs, KeptLog{Run: r.ID, Nodes: []string{"n1", "n2"}})
		}
		if err := d.byNode(node, "run_log.keep", p); err != nil {
			t.Fatal(err)
		}
	}
	one, two, empty := over("a", 100), over("b", 50), over("c", 0)
	if due := LogsDue(d.tx, "n1", 10); len(due) != 2 {
		t.Fatalf("%d are due, want 2", len(due))
	}
	keep("n2", one)
	if _, ok := BlobOf(d.tx, d.company, sum("a")); ok {
		t.Error("another node's word was taken")
	}
	keep("n1", one, two, empty)
	keep("n1", one)
	if b, ok := BlobOf(d.tx, d.company, sum("a")); !ok || b.Refs != 1 || b.Size != 100 || len(LogsDue(d.tx, "n1", 10)) > 0 || keptLogBytes(d.tx) != 150 {
		t.Errorf("kept as %+v, %d bytes in all", b, keptLogBytes(d.tx))
	}
	now := TimeOf(d.now)
	if LogsToSweep(d.tx, now) {
		t.Error("something is too old or too much")
	}
	d.must(t, board, "instance.settings", PatchSettings{Section: "general", Values: json.RawMessage(`{"runLogRetention":{"days":30,"maxBytes":60}}`)}, nil)
	if !LogsToSweep(d.tx, now) {
		t.Fatal("nothing is too much")
	}
	sweep := func() {
		t.Helper()
		if err := d.byNode("n1", "run_log.sweep", SweepLogs{}); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	_, a := BlobOf(d.tx, d.company, sum("a"))
	_, b := BlobOf(d.tx, d.company, sum("b"))
	if a == b || keptLogBytes(d.tx) > 100 {
		t.Errorf("kept after the sweep: %v and %v, %d bytes", a, b, keptLogBytes(d.tx))
	}
	d.now = d.now.Add(40 * 24 * time.Hour)
	sweep()
	if keptLogBytes(d.tx) != 0 || LogsToSweep(d.tx, TimeOf(d.now)) {
		t.Errorf("after their time %d bytes are kept", keptLogBytes(d.tx))
	}
	three := over("d", 10)
	keep("n1", three)
	four := over("e", 10)
	for _, r := range []Run{three, four} {
		r, _ = runs.Get(d.tx, d.company, r.ID)
		forgetLog(d.tx, r)
	}
	for _, prefix := range []string{"run-log-due", "run-log-kept", "blob"} {
		for k := range d.tx.Prefix(ledger.Key(prefix, "")) {
			t.Errorf("left of a deleted company: %s", k)
		}
	}
	if keptLogBytes(d.tx) != 0 {
		t.Errorf("%d bytes are left of a deleted company", keptLogBytes(d.tx))
	}
}
