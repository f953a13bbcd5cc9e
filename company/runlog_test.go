package company_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestLogsOfRunsAreKept(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	sum := func(c string) string { return strings.Repeat(c, 64) }
	over := func(c string, size int64) entity.Run {
		r, _ := entity.RunTable.Get(d.Tx, d.Company, d.Run(ada))
		r.Node, r.LogBytes, r.LogSHA256 = "n1", &size, core.NullText(sum(c))
		entity.RunTable.Put(d.Tx, d.Company, r.ID, r)
		company.DueLog(d.Context(companytest.Board, "", nil), r)
		return r
	}
	keep := func(node string, list ...entity.Run) {
		t.Helper()
		p := company.KeepLogs{}
		for _, r := range list {
			p.Logs = append(p.Logs, company.KeptLog{Run: r.ID, Nodes: []string{"n1", "n2"}})
		}
		if err := d.ByNode(node, "run_log.keep", p); err != nil {
			t.Fatal(err)
		}
	}
	one, two, empty := over("a", 100), over("b", 50), over("c", 0)
	if due := company.LogsDue(d.Tx, "n1", 10); len(due) != 2 {
		t.Fatalf("%d are due, want 2", len(due))
	}
	keep("n2", one)
	if _, ok := company.BlobOf(d.Tx, d.Company, sum("a")); ok {
		t.Error("another node's word was taken")
	}
	keep("n1", one, two, empty)
	keep("n1", one)
	if b, ok := company.BlobOf(d.Tx, d.Company, sum("a")); !ok || b.Refs != 1 || b.Size != 100 ||
		len(company.LogsDue(d.Tx, "n1", 10)) > 0 || company.KeptLogBytes(d.Tx) != 150 {
		t.Errorf("kept as %+v, %d bytes in all", b, company.KeptLogBytes(d.Tx))
	}
	now := core.TimeOf(d.Now)
	if company.LogsToSweep(d.Tx, now) {
		t.Error("something is too old or too much")
	}
	d.Must(t, companytest.Board, "instance.settings", company.PatchSettings{Section: "general",
		Values: json.RawMessage(`{"runLogRetention":{"days":30,"maxBytes":60}}`)}, nil)
	if !company.LogsToSweep(d.Tx, now) {
		t.Fatal("nothing is too much")
	}
	sweep := func() {
		t.Helper()
		if err := d.ByNode("n1", "run_log.sweep", company.SweepLogs{}); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	_, a := company.BlobOf(d.Tx, d.Company, sum("a"))
	_, b := company.BlobOf(d.Tx, d.Company, sum("b"))
	if a == b || company.KeptLogBytes(d.Tx) > 100 {
		t.Errorf("kept after the sweep: %v and %v, %d bytes", a, b, company.KeptLogBytes(d.Tx))
	}
	d.Now = d.Now.Add(40 * 24 * time.Hour)
	sweep()
	if company.KeptLogBytes(d.Tx) != 0 || company.LogsToSweep(d.Tx, core.TimeOf(d.Now)) {
		t.Errorf("after their time %d bytes are kept", company.KeptLogBytes(d.Tx))
	}
	three := over("d", 10)
	keep("n1", three)
	four := over("e", 10)
	for _, r := range []entity.Run{three, four} {
		r, _ = entity.RunTable.Get(d.Tx, d.Company, r.ID)
		company.ForgetLog(d.Tx, r)
	}
	for _, prefix := range []string{"run-log-due", "run-log-kept", "blob"} {
		for k := range d.Tx.Prefix(ledger.Key(prefix, "")) {
			t.Errorf("left of a deleted company: %s", k)
		}
	}
	if company.KeptLogBytes(d.Tx) != 0 {
		t.Errorf("%d bytes are left of a deleted company", company.KeptLogBytes(d.Tx))
	}
}

// The decision log of a run is kept beside the log of its output, or without one; both share one row of retention. One
// that only its node tells of, after the run was closed by others, is due from then on and marked as late.
func TestDecisionLogsOfRunsAreKept(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	sum := func(c string) string { return strings.Repeat(c, 64) }
	over := func(decided *entity.DecisionLog, size int64) string {
		r, _ := entity.RunTable.Get(d.Tx, d.Company, d.Run(ada))
		r.Node, r.LogBytes, r.LogSHA256, r.Decisions = "n1", &size, core.NullText(sum("a")), decided
		r.Status = entity.RunFailed
		entity.RunTable.Put(d.Tx, d.Company, r.ID, r)
		company.DueLog(d.Context(companytest.Board, "", nil), r)
		return r.ID
	}
	keep := func(node string, l company.KeptLog) {
		t.Helper()
		if err := d.ByNode(node, "run_log.keep", company.KeepLogs{Logs: []company.KeptLog{l}}); err != nil {
			t.Fatal(err)
		}
	}
	run := func(id string) entity.Run {
		r, _ := entity.RunTable.Get(d.Tx, d.Company, id)
		return r
	}
	both := []string{"n1", "n2"}
	one := over(&entity.DecisionLog{Permits: 2, Bytes: 30, SHA256: sum("b")}, 100)
	keep("n1", company.KeptLog{Run: one, Nodes: both, Decided: both})
	two := over(&entity.DecisionLog{Permits: 1, Bytes: 7, SHA256: sum("c")}, 0)
	keep("n1", company.KeptLog{Run: two, Decided: both})
	if r := run(one); r.LogKeptAt == 0 || r.Decisions.KeptAt == 0 || company.KeptLogBytes(d.Tx) != 137 {
		t.Errorf("kept %+v %+v, %d bytes in all", r.LogKeptAt, r.Decisions, company.KeptLogBytes(d.Tx))
	}
	late := over(nil, 0)
	tells := &entity.DecisionLog{Permits: 1, Bytes: 5, SHA256: sum("d"), Lost: 9}
	keep("n2", company.KeptLog{Run: late, Late: tells})
	if run(late).Decisions != nil {
		t.Error("another node's word was taken")
	}
	keep("n1", company.KeptLog{Run: late, Late: tells})
	keep("n1", company.KeptLog{Run: late, Late: &entity.DecisionLog{SHA256: sum("e")}})
	if x := run(late).Decisions; x == nil || !x.Late || x.Bytes != 5 || x.Lost != 0 || x.SHA256 != sum("d") {
		t.Fatalf("told late: %+v", x)
	}
	if due := company.LogsDue(d.Tx, "n1", 10); len(due) != 1 || due[0].ID != late {
		t.Fatalf("due: %v", due)
	}
	keep("n1", company.KeptLog{Run: late, Decided: both})
	if x := run(late).Decisions; x.KeptAt == 0 || company.KeptLogBytes(d.Tx) != 142 {
		t.Errorf("kept late: %+v, %d bytes", x, company.KeptLogBytes(d.Tx))
	}
	d.Now = d.Now.Add(40 * 24 * time.Hour)
	if err := d.ByNode("n1", "run_log.sweep", company.SweepLogs{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"a", "b", "c", "d"} {
		if b, ok := company.BlobOf(d.Tx, d.Company, sum(c)); ok && b.Refs > 0 {
			t.Errorf("%s is still kept: %+v", c, b)
		}
	}
	if r := run(one); r.LogKeptAt != 0 || r.Decisions.KeptAt != 0 || company.KeptLogBytes(d.Tx) != 0 {
		t.Errorf("after their time: %+v, %d bytes", r.Decisions, company.KeptLogBytes(d.Tx))
	}
}
