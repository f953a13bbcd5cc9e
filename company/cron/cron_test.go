package cron_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/cron"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

// mesh executes commands of the mesh itself.
func mesh(d *companytest.Desk) *companytest.Desk { d.Company = ""; return d }

func job(t *testing.T, d *companytest.Desk, name string) cron.Job {
	t.Helper()
	j, ok := cron.Of(d.Tx, d.Company, name)
	if !ok {
		t.Fatalf("there is no job %s", name)
	}
	return j
}

func hourly(d *companytest.Desk) cron.Save {
	return cron.Save{Name: "report", Cron: "0 * * * *", Zone: "UTC", Topic: "reports.due", Next: core.TimeOf(d.Now)}
}

// A time fires once: the same tick, a tick for another time and one before its time are
// refused, and a firing publishes in the same command.
func TestATimeFiresOnce(t *testing.T) {
	d := companytest.NewDesk(t)
	save := hourly(d)
	due := save.Next
	d.Must(t, companytest.Board, cron.KindSave, save, nil)
	if all := cron.Due(d.Tx, due, 10); len(all) != 1 || all[0].Name != "report" {
		t.Fatalf("due are %+v", all)
	}
	if all := cron.Due(d.Tx, due-1, 10); len(all) != 0 {
		t.Fatalf("due before the time are %+v", all)
	}
	tick := cron.Tick{Name: "report", Due: due, Next: due + 3_600_000, Left: 2}
	if err := d.ByLeader(cron.KindTick, tick); err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]cron.Tick{"the same tick": tick, "one before its time": {Name: "report",
		Due: tick.Next, Next: tick.Next + 1},
		"one that goes back": {Name: "report", Due: tick.Next, Next: due}} {
		if err := d.ByLeader(cron.KindTick, p); err == nil || !strings.Contains(err.Error(), "is not due") {
			t.Errorf("%s: %v", what, err)
		}
	}
	m := topic.Read(d.Tx, d.Company, "reports.due", 0, 10, due)
	if len(m) != 1 || !m[0].JSON || m[0].From != "cron:report" || !strings.Contains(m[0].Text,
		`"job":"report","number":1`) || !strings.Contains(m[0].Text, `"missed":2`) {
		t.Errorf("published is %+v", m)
	}
	if j := job(t, d, "report"); j.Fired != 1 || j.Next != tick.Next || j.Firings[0].Due != due ||
		j.Firings[0].Height != m[0].Height || !j.Firings[0].OK {
		t.Errorf("the job is %+v", j)
	}
	// What it can not do does not keep it from its next time.
	save.Next, save.Topic, save.Text = tick.Next, "other", strings.Repeat("x", cron.MaxText)
	d.Must(t, companytest.Board, cron.KindSave, save, nil)
	if j := job(t, d, "report"); j.Fired != 1 {
		t.Error("a changed job forgot what it fired")
	}
}

// A paused job does not fire; one without a next time pauses and says why.
func TestAJobPauses(t *testing.T) {
	d := companytest.NewDesk(t)
	save := hourly(d)
	d.Must(t, companytest.Board, cron.KindSave, save, nil)
	d.Must(t, companytest.Board, cron.KindPause, cron.Change{Name: "report"}, nil)
	if len(cron.Due(d.Tx, save.Next, 10)) != 0 || d.ByLeader(cron.KindTick, cron.Tick{Name: "report", Due: save.Next,
		Next: save.Next + 1}) == nil {
		t.Error("a paused job is due")
	}
	d.Must(t, companytest.Board, cron.KindRun, cron.Change{Name: "report"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, cron.KindResume, cron.Change{Name: "report"}, nil),
		ledger.Unprocessable, "The schedule never fires")
	d.Must(t, companytest.Board, cron.KindResume, cron.Change{Name: "report", Next: save.Next}, nil)
	if err := d.ByLeader(cron.KindTick, cron.Tick{Name: "report", Due: save.Next,
		Problem: "the zone is gone"}); err != nil {
		t.Fatal(err)
	}
	if j := job(t, d, "report"); !j.Paused || j.Problem != "the zone is gone" || j.Fired != 2 ||
		len(cron.Due(d.Tx, save.Next, 10)) != 0 {
		t.Errorf("the job is %+v", j)
	}
	d.Must(t, companytest.Board, cron.KindRemove, cron.Change{Name: "report"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, cron.KindRemove, cron.Change{Name: "report"}, nil), ledger.NotFound,
		"Cron job not found")
}

// A job of the mesh starts its process anew at each time. While it still runs a time is left
// out, or the process is replaced, as the job says.
func TestAJobStartsItsProcess(t *testing.T) {
	d := mesh(companytest.NewDesk(t))
	save := hourly(d)
	save.Topic, save.Process = "", &company.NewProcess{Spec: json.RawMessage(`{"command":["/bin/true"]}`), Replicas: 1}
	d.Must(t, companytest.Board, cron.KindSave, save, nil)
	due := save.Next
	fire := func() {
		t.Helper()
		if err := d.ByLeader(cron.KindTick, cron.Tick{Name: "report", Due: due, Next: due + 1}); err != nil {
			t.Fatal(err)
		}
		due++
	}
	declared := func() replica.Declared {
		t.Helper()
		p, ok := replica.Named(d.Tx, "cron.report")
		if !ok {
			t.Fatal("the process is not declared")
		}
		return p
	}
	fire()
	if p := declared(); p.Generation != 1 || p.Replicas[0].State != replica.Waiting {
		t.Errorf("declared is %+v", p)
	}
	fire()
	if j := job(t, d, "report"); declared().Generation != 1 || j.Firings[0].OK ||
		j.Firings[0].Said != "process cron.report still runs" {
		t.Errorf("a busy process was started again: %+v", j.Firings)
	}
	session := d.Open("n")
	if err := d.ByLeader(replica.KindPlace, replica.Place{ID: declared().ID, Node: "n", Session: session}); err != nil {
		t.Fatal(err)
	}
	if err := d.ByLeader(replica.KindReport, replica.Report{ID: declared().ID, Generation: 1, Session: session,
		State: replica.Ended}); err != nil {
		t.Fatal(err)
	}
	fire()
	if p := declared(); p.Generation != 2 || p.Replicas[0].Over() {
		t.Errorf("what had ended was not started again: %+v", p)
	}
	save.Busy, save.Next = cron.BusyReplace, due
	d.Must(t, companytest.Board, cron.KindSave, save, nil)
	fire()
	if p := declared(); p.Generation != 3 {
		t.Errorf("a busy process was not replaced: %+v", p)
	}
	d.Must(t, companytest.Board, cron.KindRemove, cron.Change{Name: "report"}, nil)
	if _, ok := replica.Named(d.Tx, "cron.report"); ok {
		t.Error("a removed job left its process")
	}
}

func TestBadJobsAreRefused(t *testing.T) {
	d := companytest.NewDesk(t)
	for want, change := range map[string]func(*cron.Save){
		"name":                  func(s *cron.Save) { s.Name = "a/b" },
		"5 fields":              func(s *cron.Save) { s.Cron = "* * *" },
		"timezone":              func(s *cron.Save) { s.Zone = "" },
		"never fires":           func(s *cron.Save) { s.Next = 0 },
		"missed":                func(s *cron.Save) { s.Missed = "some" },
		"busy":                  func(s *cron.Save) { s.Busy = "wait" },
		"topic or process":      func(s *cron.Save) { s.Topic = "" },
		"topic: ":               func(s *cron.Save) { s.Topic = "a.*" },
		"text: UTF-8":           func(s *cron.Save) { s.Text = strings.Repeat("x", cron.MaxText+1) },
		"is not JSON":           func(s *cron.Save) { s.Text, s.JSON = "{", true },
		"only jobs of the mesh": func(s *cron.Save) { s.Topic, s.Process = "", &company.NewProcess{} },
	} {
		s := hourly(d)
		change(&s)
		if err := d.Do(companytest.Board, cron.KindSave, s, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	mesh(d)
	s := hourly(d)
	s.Topic, s.Process = "", &company.NewProcess{Spec: json.RawMessage(`{}`)}
	if err := d.Do(companytest.Board, cron.KindSave, s, nil); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("a process without replicas: %v", err)
	}
}
