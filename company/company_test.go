package company

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// found creates a company by command and sits down at it.
func (d *desk) found(t testing.TB, name string) Company {
	t.Helper()
	var row Company
	d.company = d.id()
	d.must(t, board, "company.create", SaveCompany{ID: d.company, Name: &name}, &row)
	return row
}

func TestIssuePrefixesAreThreeLettersAndAnAForEachThatWasThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct{ name, want string }{
		{"Clippers", "CLI"}, {"Clink", "CLIA"}, {"c-l-i", "CLIAA"}, {"7 B!", "B"}, {"Über Öl", "BER"}, {"42", "CMP"}, {"Clippy", "CLIAAA"},
	} {
		if row := d.found(t, c.name); row.IssuePrefix != c.want {
			t.Errorf("%q has prefix %s, want %s", c.name, row.IssuePrefix, c.want)
		}
		if row, ok := CompanyByPrefix(d.tx, strings.ToLower(c.want)); !ok || row.ID != d.company {
			t.Errorf("prefix %s leads to %v", c.want, row.ID)
		}
	}
}

func TestCompanyStatusFollowsTheTable(t *testing.T) {
	t.Parallel()
	at := Time(5)
	for _, c := range []struct {
		from           CompanyStatus
		pause, archive CompanyStatus // "" is refused
	}{{CompanyActive, CompanyPaused, CompanyArchived}, {CompanyPaused, CompanyPaused, CompanyArchived}, {CompanyArchived, "", CompanyArchived}} {
		row := Company{Status: c.from}
		if got, err := row.Pause("manual", at); err != nil && c.pause != "" || err == nil && got.Status != c.pause {
			t.Errorf("pausing a company that is %s: %s, %v, want %q", c.from, got.Status, err, c.pause)
		}
		if got := row.Archive(at).Status; got != c.archive {
			t.Errorf("archiving a company that is %s: %s", c.from, got)
		}
		if got := row.Resume(at); got.Status != CompanyActive || got.PauseReason != "" || got.PausedAt != 0 {
			t.Errorf("resuming a company that is %s: %+v", c.from, got)
		}
	}
}

func TestStoppingACompanyEndsItsRuns(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"company.pause", "company.archive"} {
		d := newDesk(t)
		d.found(t, "Acme")
		run := d.run(d.agent("Ada"))
		d.must(t, board, kind, ChangeCompany{}, nil)
		if r, _ := RunOf(d.tx, d.company, run); r.Status != RunCancelled {
			t.Errorf("after %s the run is %s", kind, r.Status)
		}
	}
}

func TestACompanyOverItsBudgetDoesNotResume(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	name, limit := "Acme", Cents(100)
	d.company = d.id()
	d.must(t, board, "company.create", SaveCompany{ID: d.company, Name: &name, Budget: &limit}, nil)
	if err := d.cost(board, d.agent("Ada"), 100); err != nil {
		t.Fatal(err)
	}
	if row, _ := CompanyOf(d.tx, d.company); row.Status != CompanyPaused || row.PauseReason != pausedForBudget {
		t.Fatalf("at its limit the company is %s for %q", row.Status, row.PauseReason)
	}
	wantRefusal(t, d.do(board, "company.resume", ChangeCompany{}, nil), ledger.Conflict, "Company is paused because its budget hard-stop was reached.")
	more := Cents(200)
	d.must(t, board, "company.update", SaveCompany{Budget: &more}, nil)
	if row, _ := CompanyOf(d.tx, d.company); row.Status != CompanyActive {
		t.Errorf("after raising the limit the company is %s", row.Status)
	}
}

// A person who pauses a company that its budget has paused already means it: neither a
// raise nor the next month lets it go on, only a person does.
func TestAPersonsPauseOfACompanyOutlastsItsBudget(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a raise", "a month"} {
		for _, byPerson := range []bool{false, true} {
			d := newDesk(t)
			name, limit, more := "Acme", Cents(100), Cents(200)
			d.company = d.id()
			d.must(t, board, "company.create", SaveCompany{ID: d.company, Name: &name, Budget: &limit}, nil)
			if err := d.cost(board, d.agent("Ada"), 100); err != nil {
				t.Fatal(err)
			}
			if byPerson {
				d.must(t, board, "company.pause", ChangeCompany{}, nil)
			}
			if next == "a month" {
				d.now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
				d.must(t, board, "budget.sweep", SweepBudgets{}, nil)
			} else {
				d.must(t, board, "company.update", SaveCompany{Budget: &more}, nil)
			}
			want := CompanyActive
			if byPerson {
				want = CompanyPaused
			}
			if row, _ := CompanyOf(d.tx, d.company); row.Status != want {
				t.Errorf("after %s, paused by a person %v: the company is %s for %q", next, byPerson, row.Status, row.PauseReason)
			}
			d.must(t, board, "company.resume", ChangeCompany{}, nil)
			if row, _ := CompanyOf(d.tx, d.company); row.Status != CompanyActive || row.PauseReason != "" {
				t.Errorf("resumed by a person, the company is %s for %q", row.Status, row.PauseReason)
			}
		}
	}
}

func TestDeletingACompanyGoesOnUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	other := d.company
	neighbour := d.issue(t, CreateIssue{Title: "stays"})
	d.found(t, "Beta")
	gone := d.company
	title, name := "Ship", "Rig"
	goal, project, ada := d.id(), d.id(), d.id()
	d.must(t, board, "goal.create", SaveGoal{ID: goal, Title: &title}, nil)
	d.must(t, board, "project.create", SaveProject{ID: project, Name: &name, Goals: &[]string{goal}, Workspace: &SaveWorkspace{ID: d.id(), Cwd: &title}}, nil)
	d.must(t, board, "agent.create", SaveAgent{ID: ada, Name: &name}, nil)
	d.must(t, board, "agent_key.create", CreateKey{ID: d.id(), Agent: ada, Name: "k", Hash: strings.Repeat("ab", 32)}, nil)
	d.must(t, board, "label.create", CreateLabel{ID: d.id(), Name: "bug", Color: "#ff0000"}, nil)
	run := d.run(ada)
	for range deleteChunk / 3 {
		d.issue(t, CreateIssue{Project: project})
	}
	d.tx.Set(ledger.Key("c", gone, "~act", "1"), []byte("history"))

	rounds := 0
	for done := false; !done; rounds++ {
		if rounds > 20 {
			t.Fatal("the deletion does not end")
		}
		var out Deletion
		d.company = gone
		d.must(t, board, "company.delete", ChangeCompany{}, &out)
		done = out.Done
		if _, ok := CompanyOf(d.tx, gone); ok || len(Companies(d.tx)) != 0 {
			t.Fatal("a company that is being deleted is still shown")
		}
		if !done && len(UnfinishedDeletions(d.tx)) != 1 {
			t.Fatal("nobody would go on with the deletion")
		}
	}
	if rounds < 3 {
		t.Errorf("deleted in %d commands, want several", rounds)
	}
	left := map[string]bool{}
	for k, v := range d.tx.Writes() {
		if v != nil && (strings.Contains(k, gone) || strings.Contains(string(v), gone)) {
			left[k] = true
		}
	}
	if len(left) != 1 || !left["c/"+gone+"/~act/1"] {
		t.Errorf("left behind: %v, want the ledger's own row only", left)
	}
	for _, id := range []string{goal, project, ada} {
		if OwnerOf(d.tx, id) != "" {
			t.Errorf("%s still leads to a company", id)
		}
	}
	if _, ok := RunByID(d.tx, run); ok {
		t.Error("a run of the company is still found")
	}
	if _, ok := KeyByHash(d.tx, strings.Repeat("ab", 32)); ok {
		t.Error("a key of the company still opens it")
	}
	if _, ok := IssueOf(d.tx, other, neighbour.ID); !ok {
		t.Error("an issue of another company is gone")
	}
	d.found(t, "Beta")
	if row, _ := CompanyOf(d.tx, d.company); row.IssuePrefix != "BET" {
		t.Errorf("the prefix is not free again: %s", row.IssuePrefix)
	}
}

// The same commands on two states write the same bytes.
func TestCompaniesReplayToTheSameBytes(t *testing.T) {
	t.Parallel()
	tell := func() map[string]string {
		d := newDesk(t)
		d.found(t, "Acme")
		cfg := []byte(`{"env":{"B":"2","A":"1"},"command":"x","nested":{"z":1.50,"a":[1,2]}}`)
		var team []string
		for n := range 6 {
			name, boss, id := fmt.Sprintf("Bot %d", n%2), "", d.id()
			if n > 0 {
				boss = team[(n-1)/2]
			}
			d.must(t, board, "agent.create", SaveAgent{ID: id, Name: &name, ReportsTo: &boss, AdapterConfig: cfg}, nil)
			team = append(team, id)
		}
		title := "T"
		for n := range 5 {
			goal := d.id()
			d.must(t, board, "goal.create", SaveGoal{ID: goal, Title: &title}, nil)
			d.must(t, board, "project.create", SaveProject{ID: d.id(), Name: &title, Goals: &[]string{goal}, Env: []byte(`{"B":"2","A":{"type":"plain","value":"1"}}`)}, nil)
			if n == 3 {
				d.must(t, board, "goal.delete", DeleteGoal{ID: goal}, nil)
			}
		}
		d.must(t, board, "agent.update", SaveAgent{ID: team[2], Title: &title, AdapterConfig: []byte(`{"x":{"b":1,"a":2}}`)}, nil)
		d.must(t, board, "agent.pause", ChangeAgent{Agent: team[1]}, nil)
		d.must(t, board, "agent.delete", ChangeAgent{Agent: team[0]}, nil)
		d.must(t, board, "agent.terminate", ChangeAgent{Agent: team[5]}, nil)
		out := map[string]string{}
		for k, v := range d.tx.Writes() {
			out[k] = string(v)
		}
		return out
	}
	first, second := tell(), tell()
	if len(first) != len(second) {
		t.Fatalf("%d keys, then %d", len(first), len(second))
	}
	for k, v := range first {
		if second[k] != v {
			t.Errorf("%s differs: %q, then %q", k, v, second[k])
		}
	}
}
