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
