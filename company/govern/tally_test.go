package govern_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/governance"
)

// One raise of a budget to $1,000 is put before a person. An agent that does it in ten raises of $100 meets the rule
// about the sum at the tenth, and one that makes many labels the rule about the rate; a day later the window is empty
// again.
func TestManySmallActsAreMetAsOne(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	bob := d.Hire(t, "Bob", ada)
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	budget := func(cents int64) money.SetBudget {
		return money.SetBudget{Type: "agent", Scope: bob, Amount: core.Cents(cents)}
	}
	const once = `context.amount >= 100000`
	enact(t, d, put(rule("T-1", governance.Blocking, once, "money")))
	if code, by := refusal(t, do(d, as, money.KindBudgetSet, budget(100_000)), "rule"); code != "approval_required" ||
		by != "T-1" {
		t.Fatalf("at once: %s by %s", code, by)
	}
	for n := range 12 { // the rule about one act does not see it
		if err := do(d, as, money.KindBudgetSet, budget(10_000+int64(n))); err != nil {
			t.Fatalf("raise %d: %v", n, err)
		}
	}
	enact(t, d, put(rule("T-2", governance.Critical, `day.amount >= 100000`, "money"), rule("T-3", governance.Critical,
		`hour.count > 20`, "label.create")))
	stopped := 0
	for n := range 12 {
		if err := do(d, as, money.KindBudgetSet, budget(10_000+int64(n))); err != nil {
			if _, by := refusal(t, err, "rule"); by != "T-2" {
				t.Fatalf("raise %d: by %s", n, by)
			}
			stopped = n + 1
			break
		}
	}
	if stopped != 10 {
		t.Errorf("stopped at raise %d of $100, want 10", stopped)
	}
	made := 0
	for n := range 30 {
		if do(d, as, "label.create", label(d, fmt.Sprint("l", n))) == nil {
			made++
		}
	}
	if made != 20 {
		t.Errorf("made %d labels, want 20", made)
	}
	for _, x := range decisions(d) { // what was counted is part of the act, so that it is decided again alike
		if !again(t, d, x).Equal(x.Said) {
			t.Errorf("decision %s differs", x.ID)
		}
	}
	d.Now = d.Now.Add(70 * time.Minute)
	if err := do(d, as, "label.create", label(d, "later")); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	if err := do(d, as, money.KindBudgetSet, budget(20_000)); err == nil {
		t.Error("the window of the sum is a day")
	}
	d.Now = d.Now.Add(26 * time.Hour)
	if err := do(d, as, money.KindBudgetSet, budget(20_000)); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

// A node counts what it weighs itself. Two agents are counted apart, and a company's rule sees both.
func TestLocalActsAreCounted(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	enact(t, d, put(rule("T-1", governance.Critical, `hour.count > 5`, "model.call"), rule("T-2", governance.Critical,
		`hour.company_count > 8`, "model.call")))
	var counter govern.Counter
	call := func(agent string) string {
		_, _, err := govern.WeighLocal(d.Tx, govern.Local{Action: "model.call", Agent: agent, Company: d.Company,
			Counter: &counter, At: d.Now})
		if err == nil {
			return ""
		}
		_, by := refusal(t, err, "rule")
		return by
	}
	said := []string{}
	for range 7 {
		said = append(said, call(ada))
	}
	for range 5 {
		said = append(said, call(bob))
	}
	if got, want := strings.Join(said, ","), ",,,,,T-1,T-1,,,,T-2,T-2"; got != want {
		t.Errorf("said %s, want %s", got, want)
	}
	d.Now = d.Now.Add(70 * time.Minute)
	if by := call(ada); by != "" {
		t.Errorf("an hour later: %s", by)
	}
}

// What is counted of an actor stays within its bound, whatever it does, and goes with the agent.
func TestTalliesAreBounded(t *testing.T) {
	t.Parallel()
	tally := govern.Tally{}
	at := core.Time(1_764_000_000_000)
	for n := range 5_000 {
		tally = tally.With(at+core.Time(n*60_000), govern.Span{Done: governance.Done{Count: 1}})
	}
	if len(tally.Hour) > 13 || len(tally.Day) > 25 {
		t.Errorf("%d and %d spans", len(tally.Hour), len(tally.Day))
	}
	var past govern.Tallies
	past.Own = tally
	if p := past.Past(at + 4_999*60_000); p.Hour.Count < 60 || p.Hour.Count > 65 || p.Day.Count < 1_440 ||
		p.Day.Count > 1_500 {
		t.Errorf("one act a minute: %d an hour, %d a day", p.Hour.Count, p.Day.Count)
	}
}
