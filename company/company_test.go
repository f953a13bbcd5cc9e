package company_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestIssuePrefixesAreThreeLettersAndAnAForEachThatWasThere(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	for _, c := range []struct{ name, want string }{
		{"Clippers", "CLI"}, {"Clink", "CLIA"}, {"c-l-i", "CLIAA"}, {"7 B!", "B"}, {"Über Öl", "BER"}, {"42", "CMP"},
		{"Clippy", "CLIAAA"},
	} {
		if row := d.Found(t, c.name); row.IssuePrefix != c.want {
			t.Errorf("%q has prefix %s, want %s", c.name, row.IssuePrefix, c.want)
		}
		if id, ok := d.Tx.Get(core.PrefixKey(c.want)); !ok || ledger.CompanyID(id) != d.Company {
			t.Errorf("prefix %s leads to %q", c.want, id)
		}
	}
}

func TestCompanyStatusFollowsTheTable(t *testing.T) {
	t.Parallel()
	at := core.Time(5)
	for _, c := range []struct {
		from           entity.CompanyStatus
		pause, archive entity.CompanyStatus // "" is refused
	}{{entity.CompanyActive, entity.CompanyPaused, entity.CompanyArchived}, {entity.CompanyPaused, entity.CompanyPaused,
		entity.CompanyArchived}, {entity.CompanyArchived, "", entity.CompanyArchived}} {
		row := entity.Company{Status: c.from}
		if got, err := row.Pause("manual", at); err != nil && c.pause != "" || err == nil && got.Status != c.pause {
			t.Errorf("pausing a company that is %s: %s, %v, want %q", c.from, got.Status, err, c.pause)
		}
		if got := row.Archive(at).Status; got != c.archive {
			t.Errorf("archiving a company that is %s: %s", c.from, got)
		}
		if got := row.Resume(at); got.Status != entity.CompanyActive || got.PauseReason != "" || got.PausedAt != 0 {
			t.Errorf("resuming a company that is %s: %+v", c.from, got)
		}
	}
}

func TestStoppingACompanyEndsItsRuns(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"company.pause", "company.archive"} {
		d := companytest.NewDesk(t)
		d.Found(t, "Acme")
		run := d.Run(d.Agent("Ada"))
		d.Must(t, companytest.Board, kind, company.ChangeCompany{}, nil)
		if r, _ := entity.RunOf(d.Tx, d.Company, run); r.Status != entity.RunCancelled {
			t.Errorf("after %s the run is %s", kind, r.Status)
		}
	}
}

func TestACompanyOverItsBudgetDoesNotResume(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	name, limit := "Acme", core.Cents(100)
	d.Company = ledger.CompanyID(d.ID())
	d.Must(t, companytest.Board, "company.create", entity.SaveCompany{ID: d.Company, Name: &name, Budget: &limit}, nil)
	if err := d.Cost(companytest.Board, d.Agent("Ada"), 100); err != nil {
		t.Fatal(err)
	}
	if row, _ := entity.CompanyOf(d.Tx, d.Company); row.Status != entity.CompanyPaused ||
		row.PauseReason != entity.PausedForBudget {
		t.Fatalf("at its limit the company is %s for %q", row.Status, row.PauseReason)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "company.resume", company.ChangeCompany{}, nil), ledger.Conflict,
		"Company is paused because its budget hard-stop was reached.")
	more := core.Cents(200)
	d.Must(t, companytest.Board, "company.update", entity.SaveCompany{Budget: &more}, nil)
	if row, _ := entity.CompanyOf(d.Tx, d.Company); row.Status != entity.CompanyActive {
		t.Errorf("after raising the limit the company is %s", row.Status)
	}
}

// A person who pauses a company that its budget has paused already means it: neither a
// raise nor the next month lets it go on, only a person does.
func TestAPersonsPauseOfACompanyOutlastsItsBudget(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a raise", "a month"} {
		for _, byPerson := range []bool{false, true} {
			d := companytest.NewDesk(t)
			name, limit, more := "Acme", core.Cents(100), core.Cents(200)
			d.Company = ledger.CompanyID(d.ID())
			d.Must(t, companytest.Board, "company.create", entity.SaveCompany{ID: d.Company, Name: &name, Budget: &limit}, nil)
			if err := d.Cost(companytest.Board, d.Agent("Ada"), 100); err != nil {
				t.Fatal(err)
			}
			if byPerson {
				d.Must(t, companytest.Board, "company.pause", company.ChangeCompany{}, nil)
			}
			if next == "a month" {
				d.Now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
				d.Must(t, companytest.Board, "budget.sweep", money.SweepBudgets{}, nil)
			} else {
				d.Must(t, companytest.Board, "company.update", entity.SaveCompany{Budget: &more}, nil)
			}
			want := entity.CompanyActive
			if byPerson {
				want = entity.CompanyPaused
			}
			if row, _ := entity.CompanyOf(d.Tx, d.Company); row.Status != want {
				t.Errorf("after %s, paused by a person %v: the company is %s for %q", next, byPerson, row.Status, row.PauseReason)
			}
			d.Must(t, companytest.Board, "company.resume", company.ChangeCompany{}, nil)
			if row, _ := entity.CompanyOf(d.Tx, d.Company); row.Status != entity.CompanyActive || row.PauseReason != "" {
				t.Errorf("resumed by a person, the company is %s for %q", row.Status, row.PauseReason)
			}
		}
	}
}

func TestDeletingACompanyGoesOnUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	other := d.Company
	neighbour := d.Issue(t, company.CreateIssue{Title: "stays"})
	d.Found(t, "Beta")
	gone := d.Company
	title, name := "Ship", "Rig"
	goal, project, ada := d.ID(), d.ID(), d.ID()
	d.Must(t, companytest.Board, "goal.create", entity.SaveGoal{ID: goal, Title: &title}, nil)
	d.Must(t, companytest.Board, "project.create", entity.SaveProject{ID: project, Name: &name, Goals: &[]string{goal},
		Workspace: &entity.SaveWorkspace{ID: d.ID(), Cwd: &title}}, nil)
	d.Must(t, companytest.Board, "agent.create", entity.SaveAgent{ID: ada, Name: &name}, nil)
	d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: d.ID(), Agent: ada, Name: "k",
		Hash: strings.Repeat("ab", 32)}, nil)
	d.Must(t, companytest.Board, "label.create", company.CreateLabel{ID: d.ID(), Name: "bug", Color: "#ff0000"}, nil)
	run := d.Run(ada)
	for range company.DeleteChunk / 3 {
		d.Issue(t, company.CreateIssue{Project: project})
	}
	d.Tx.Set(ledger.Key("c", string(gone), "~act", "1"), []byte("history"))

	rounds := 0
	for done := false; !done; rounds++ {
		if rounds > 20 {
			t.Fatal("the deletion does not end")
		}
		var out company.Deletion
		d.Company = gone
		d.Must(t, companytest.Board, "company.delete", company.ChangeCompany{}, &out)
		done = out.Done
		if _, ok := entity.CompanyOf(d.Tx, gone); ok || len(entity.Companies(d.Tx)) != 0 {
			t.Fatal("a company that is being deleted is still shown")
		}
		if !done && len(entity.UnfinishedDeletions(d.Tx)) != 1 {
			t.Fatal("nobody would go on with the deletion")
		}
	}
	if rounds < 3 {
		t.Errorf("deleted in %d commands, want several", rounds)
	}
	left := map[string]bool{}
	for k, v := range d.Tx.Writes() {
		if v != nil && (strings.Contains(k, string(gone)) || strings.Contains(string(v), string(gone))) {
			left[k] = true
		}
	}
	if len(left) != 1 || !left["c/"+string(gone)+"/~act/1"] {
		t.Errorf("left behind: %v, want the ledger's own row only", left)
	}
	for _, id := range []string{goal, project, ada} {
		if core.OwnerOf(d.Tx, id) != "" {
			t.Errorf("%s still leads to a company", id)
		}
	}
	if _, ok := entity.RunByID(d.Tx, run); ok {
		t.Error("a run of the company is still found")
	}
	if _, ok := people.KeyByHash(d.Tx, strings.Repeat("ab", 32)); ok {
		t.Error("a key of the company still opens it")
	}
	if _, ok := entity.IssueOf(d.Tx, other, neighbour.ID); !ok {
		t.Error("an issue of another company is gone")
	}
	d.Found(t, "Beta")
	if row, _ := entity.CompanyOf(d.Tx, d.Company); row.IssuePrefix != "BET" {
		t.Errorf("the prefix is not free again: %s", row.IssuePrefix)
	}
}

// The same commands on two states write the same bytes.
func TestCompaniesReplayToTheSameBytes(t *testing.T) {
	t.Parallel()
	tell := func() map[string]string {
		d := companytest.NewDesk(t)
		d.Found(t, "Acme")
		cfg := []byte(`{"env":{"B":"2","A":"1"},"command":"x","nested":{"z":1.50,"a":[1,2]}}`)
		var team []string
		for n := range 6 {
			name, boss, id := fmt.Sprintf("Bot %d", n%2), "", d.ID()
			if n > 0 {
				boss = team[(n-1)/2]
			}
			d.Must(t, companytest.Board, "agent.create", entity.SaveAgent{ID: id, Name: &name, ReportsTo: &boss,
				AdapterConfig: cfg}, nil)
			team = append(team, id)
		}
		title := "T"
		for n := range 5 {
			goal := d.ID()
			d.Must(t, companytest.Board, "goal.create", entity.SaveGoal{ID: goal, Title: &title}, nil)
			d.Must(t, companytest.Board, "project.create", entity.SaveProject{ID: d.ID(), Name: &title, Goals: &[]string{goal},
				Env: []byte(`{"B":"2","A":{"type":"plain","value":"1"}}`)}, nil)
			if n == 3 {
				d.Must(t, companytest.Board, "goal.delete", company.DeleteGoal{ID: goal}, nil)
			}
		}
		d.Must(t, companytest.Board, "agent.update", entity.SaveAgent{ID: team[2], Title: &title,
			AdapterConfig: []byte(`{"x":{"b":1,"a":2}}`)}, nil)
		d.Must(t, companytest.Board, "agent.pause", company.ChangeAgent{Agent: team[1]}, nil)
		d.Must(t, companytest.Board, "agent.delete", company.ChangeAgent{Agent: team[0]}, nil)
		d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: team[5]}, nil)
		out := map[string]string{}
		for k, v := range d.Tx.Writes() {
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
