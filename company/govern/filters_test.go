package govern_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/governance/filters"
	"github.com/selvage-mesh/selvage/ledger"
)

// choose switches the filters of the company on.
func choose(t *testing.T, d *companytest.Desk) {
	t.Helper()
	d.Must(t, companytest.Board, govern.KindFilters,
		govern.SetFilters{On: new(true), MinCut: new(governance.Level(500))}, nil)
}

// set changes a row of an agent directly.
func set(d *companytest.Desk, agent string, change func(a *entity.Agent)) {
	a, _ := entity.AgentTable.Get(d.Tx, d.Company, agent)
	change(&a)
	entity.AgentTable.Put(d.Tx, d.Company, agent, a)
}

// again is what is decided of an act that was decided, under the version that decided it.
func again(t *testing.T, d *companytest.Desk, x govern.Decision) govern.Said {
	t.Helper()
	s, err := govern.VersionOf(d.Tx, x.Version)
	if err != nil {
		t.Fatal(err)
	}
	g, err := govern.GateOf(d.Tx, s)
	if err != nil {
		t.Fatal(err)
	}
	return x.Again(g)
}

// replayed decides all receipts again, and all decisions, and wants no difference.
func replayed(t *testing.T, d *companytest.Desk) (receipts int) {
	t.Helper()
	n, wrong := govern.ReplayReceipts(d.Tx, d.Company, 1, govern.MaxReceipts)
	if len(wrong) > 0 {
		t.Fatalf("receipts: %+v", wrong)
	}
	for _, x := range decisions(d) {
		if is := again(t, d, x); !is.Equal(x.Said) {
			t.Fatalf("decision %s was %+v, is %+v", x.ID, x.Said, is)
		}
	}
	return n
}

// An agent to whom no authority comes is denied, by the filter of structure alone, once its company has chosen the
// filters.
func TestStructureDenies(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	cleo, ada := d.Agent("Cleo"), d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	set(d, ada, func(a *entity.Agent) { a.ReportsTo = core.NullText(cleo) })
	set(d, cleo, func(a *entity.Agent) { a.Status = entity.AgentPaused })
	if err := do(d, as, "label.create", label(d, "before")); err != nil {
		t.Fatalf("off by default: %v", err)
	}
	choose(t, d)
	err := do(d, as, "label.create", label(d, "one"))
	if code, by := refusal(t, err, "rule"); code != company.GovernanceDenied || by != filters.Structure ||
		!strings.Contains(err.Error(),
			"Denied by the filter FILTER-STRUCTURE of the company: The authority that reaches the agent from the "+
				"board is 0.4, wanted 0.5") {
		t.Fatalf("under a paused manager: %s by %s: %v", code, by, err)
	}
	x := decisions(d)[0]
	if v := x.Said.Voices; len(v) != 1 || v[0].Branch != governance.Filtering ||
		!slices.Contains(x.Said.Asked, filters.Evidence) {
		t.Errorf("the decision says %+v", x.Said)
	}
	if err := do(d, companytest.Board, "label.create", label(d, "two")); err != nil {
		t.Errorf("the board: %v", err)
	}
	if err := do(d, as, company.KindCommentCreate, nil); err == nil || strings.Contains(err.Error(), "FILTER") {
		t.Errorf("below the floor: %v", err)
	}
	set(d, cleo, func(a *entity.Agent) { a.Status = entity.AgentIdle })
	if err := do(d, as, "label.create", label(d, "three")); err != nil {
		t.Errorf("the manager works: %v", err)
	}
	set(d, cleo, func(a *entity.Agent) { a.ReportsTo = core.NullText(ada) })
	if err := do(d, as, "label.create", label(d, "four")); err == nil {
		t.Error("two that lead each other may act")
	}
	if n := replayed(t, d); n != 3 {
		t.Errorf("%d receipts, want those of one, three and four", n)
	}
	d.Must(t, companytest.Board, govern.KindFilters, govern.SetFilters{On: new(false)}, nil)
	if err := do(d, as, "label.create", label(d, "five")); err != nil {
		t.Errorf("off again: %v", err)
	}
}

// An issue that the board has given carries authority under a paused manager; one that the agent has given itself does
// not.
func TestAnIssueCarriesAuthority(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	cleo, ada := d.Agent("Cleo"), d.Agent("Ada")
	set(d, ada, func(a *entity.Agent) { a.ReportsTo = core.NullText(cleo) })
	set(d, cleo, func(a *entity.Agent) { a.Status = entity.AgentPaused })
	choose(t, d)
	for _, x := range []struct {
		name string
		make func(*entity.Issue)
		want bool
	}{
		{"given by the board", func(i *entity.Issue) { i.CreatedAgent, i.CreatedUser = "", "local-board" }, true},
		{"given by the paused manager", func(i *entity.Issue) { i.CreatedAgent, i.CreatedUser = cleo, "" }, true},
		{"made by itself", func(i *entity.Issue) { i.CreatedAgent, i.CreatedUser = ada, "" }, false},
	} {
		i := d.Issue(t, company.CreateIssue{Title: x.name})
		x.make(&i)
		entity.IssueTable.Put(d.Tx, d.Company, i.ID, i)
		run := d.Run(ada)
		r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
		r.Context.IssueID = i.ID
		entity.RunTable.Put(d.Tx, d.Company, run, r)
		if err := do(d, companytest.As{Agent: ada, Run: run}, "label.create", label(d, x.name)); (err == nil) != x.want {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// An agent that does what it has never done waits for a person; approving carries it out, and what was approved becomes
// its way.
func TestShiftWaits(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	choose(t, d)
	d.Must(t, companytest.Board, govern.KindFilters, govern.SetFilters{MaxShift: new(governance.Level(300))}, nil)
	for n := range filters.MinPast + filters.Window {
		if err := do(d, as, "label.create", label(d, "n"+d.ID())); err != nil {
			t.Fatalf("act %d as always: %v", n, err)
		}
	}
	waits, approval := 0, ""
	i := d.Issue(t, company.CreateIssue{Title: "x", Assignee: ada})
	for n := range filters.Window {
		said := d.ID()
		d.Must(t, as, company.KindCommentCreate, entity.CreateComment{ID: said, Issue: i.ID, Body: "said " + said}, nil)
		err := do(d, as, company.KindCommentDelete, company.DeleteComment{ID: said, Issue: i.ID})
		if err == nil {
			if waits > 0 {
				t.Fatalf("number %d after one that waits", n)
			}
			continue
		}
		code, id := refusal(t, err, "approvalId")
		if code != "approval_required" || !strings.Contains(err.Error(), "FILTER-SHIFT") {
			t.Fatalf("number %d: %s: %v", n, code, err)
		}
		waits, approval = waits+1, id
	}
	if waits < filters.Window/2 || waits == filters.Window {
		t.Fatalf("%d of %d odd acts wait", waits, filters.Window)
	}
	was := govern.ProfileOf(d.Tx, d.Company, ada).Evidence
	if v := d.Decide(t, "approve", approval); v.Refused != nil {
		t.Fatalf("approved: %+v", v.Refused)
	}
	if is := govern.ProfileOf(d.Tx, d.Company, ada).Evidence; is < was {
		t.Errorf("evidence %d after an approval, %d before", is, was)
	}
	if err := do(d, as, "label.create", label(d, "back")); err != nil {
		t.Errorf("an act as always, in between: %v", err)
	}
	if n := replayed(t, d); n != filters.MinPast+2*filters.Window+2 {
		t.Errorf("%d receipts", n)
	}
}

// Who is refused by rules again and again is asked about and then denied also where no rule speaks, until the board
// lets the filters begin anew.
func TestEvidenceRunsOut(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	choose(t, d)
	enact(t, d, put(rule("T-1", governance.Critical, `rank == "worker"`, "goal.create")))
	rejected := func() {
		t.Helper()
		if err := do(d, as, "goal.create", nil); err == nil || !strings.Contains(err.Error(), "T-1") {
			t.Fatalf("the rule: %v", err)
		}
	}
	for range 3 {
		rejected()
	}
	if code, _ := refusal(t, do(d, as, "label.create", label(d, "one")), "rule"); code != "approval_required" {
		t.Fatalf("after three refusals: %s", code)
	}
	rejected()
	rejected()
	if code, by := refusal(t, do(d, as, "label.create", label(d, "two")), "rule"); code != company.GovernanceDenied ||
		by != filters.Evidence {
		t.Fatalf("after five refusals: %s by %s", code, by)
	}
	replayed(t, d)
	d.Must(t, companytest.Board, govern.KindForgetPast, govern.ForgetPast{Agent: ada}, nil)
	if err := do(d, as, "label.create", label(d, "three")); err != nil {
		t.Errorf("begun anew: %v", err)
	}
}

// A receipt that is changed, moved, taken out or put in place of another is found.
func TestReceiptsAreAChain(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	choose(t, d)
	for range 6 {
		if err := do(d, as, "label.create", label(d, "n"+d.ID())); err != nil {
			t.Fatal(err)
		}
	}
	if n := replayed(t, d); n != 6 {
		t.Fatalf("%d receipts", n)
	}
	rows := ledger.NewTable[string, filters.Receipt]("governance-receipt")
	at := func(tx *ledger.Tx, n uint64) filters.Receipt {
		r, _ := rows.Get(tx, d.Company, ledger.Order(n))
		return r
	}
	reseal := func(tx *ledger.Tx, n uint64, change func(*filters.Witness)) {
		w, err := at(tx, n).Open()
		if err != nil {
			t.Fatal(err)
		}
		change(&w)
		rows.Put(tx, d.Company, ledger.Order(n), filters.Seal(w))
	}
	for what, harm := range map[string]func(tx *ledger.Tx){
		"a byte": func(tx *ledger.Tx) {
			r := at(tx, 3).Clone()
			r.Body[len(r.Body)/2] ^= 1
			rows.Put(tx, d.Company, ledger.Order(3), r)
		},
		"taken out":      func(tx *ledger.Tx) { rows.Delete(tx, d.Company, ledger.Order(3)) },
		"moved":          func(tx *ledger.Tx) { rows.Put(tx, d.Company, ledger.Order(3), at(tx, 4)) },
		"another act":    func(tx *ledger.Tx) { reseal(tx, 3, func(w *filters.Witness) { w.Question.Action = "x" }) },
		"the newest":     func(tx *ledger.Tx) { reseal(tx, 6, func(w *filters.Witness) { w.Question.Action = "x" }) },
		"another answer": func(tx *ledger.Tx) { reseal(tx, 6, func(w *filters.Witness) { w.Decided = governance.Deny }) },
	} {
		tx := d.Tx.Child()
		harm(tx)
		if _, wrong := govern.ReplayReceipts(tx, d.Company, 1, 100); len(wrong) == 0 {
			t.Errorf("%s is not noticed", what)
		}
	}
	if first, list, newest := govern.Receipts(d.Tx, d.Company, 4, 2); first != 4 || len(list) != 2 || newest != 6 {
		t.Errorf("from 4, 2: %d, %d, %d", first, len(list), newest)
	}
}

// What a handler refuses leaves nothing, and what leaves an agent's company leaves no profile.
func TestOnlyWhatHappenedIsKept(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	choose(t, d)
	l := label(d, "one")
	if err := do(d, as, "label.create", l); err != nil {
		t.Fatal(err)
	}
	if err := do(d, as, "label.create", label(d, "one")); err == nil {
		t.Fatal("a second label of the name is taken")
	}
	if p := govern.ProfileOf(d.Tx, d.Company, ada); p.Acts != 1 || replayed(t, d) != 1 {
		t.Errorf("%d acts are kept", p.Acts)
	}
	for _, p := range []govern.SetFilters{{MinCut: new(governance.Level(1001))}, {Permit: new(int64(3))},
		{Deny: new(int64(-1))}} {
		if err := d.Do(companytest.Board, govern.KindFilters, p, nil); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
