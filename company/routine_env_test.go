package company

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// sealedSave is a payload as the API makes it.
func sealedSave(t testing.TB, s SaveRoutine) SaveRoutine {
	t.Helper()
	v, err := s.Sealed(testSeal)
	if err != nil {
		t.Fatal(err)
	}
	return v.(SaveRoutine)
}

func TestVariablesOfARoutineAreSealed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	stored := func(r Routine) Routine { r, _ = RoutineByID(d.tx, r.ID); return r }
	save := sealedSave(t, SaveRoutine{ID: d.id(), Title: new("T"), Assignee: &ada, Env: json.RawMessage(`{"A":"canary-1","B":{"type":"plain","value":"canary-2"}}`)})
	var r Routine
	d.must(t, board, "routine.create", save, &r)
	first := stored(r)
	if strings.Contains(string(ledger.Marshal(save))+string(first.Env), "canary") || strings.Count(string(first.Env), sealedKey) != 2 {
		t.Errorf("stored as %s", first.Env)
	}
	if got, err := OpenConfig(first.Env, "env", testOpen(t, r.ID)); err != nil || string(got) != `{"A":"canary-1","B":"canary-2"}` {
		t.Errorf("opened %s, %v", got, err)
	}
	// What is shown and comes back means what it was, and a revision brings back what it had.
	d.must(t, board, "routine.update", sealedSave(t, SaveRoutine{ID: r.ID, Env: json.RawMessage(`{"A":{"type":"plain","value":"` + Redacted + `"},"B":"canary-3"}`)}), nil)
	if got, err := OpenConfig(stored(r).Env, "env", testOpen(t, r.ID)); err != nil || string(got) != `{"A":"canary-1","B":"canary-3"}` {
		t.Errorf("after a change of one: %s, %v", got, err)
	}
	d.must(t, board, "routine.restore", RestoreRoutine{ID: r.ID, Revision: first.Revision}, nil)
	if got := stored(r).Env; string(got) != string(first.Env) {
		t.Errorf("restored %s", got)
	}
	// A new data key reaches the revisions too.
	list := SealedConfigs(d.tx, d.company)
	if len(list) != 1 || list[0].Type != "routine" || len(list[0].Values) != 3 {
		t.Fatalf("sealed values: %+v", list)
	}
	p := Reseal{Type: "routine", ID: r.ID}
	for _, v := range list[0].Values {
		p.Old, p.New = append(p.Old, v.Sealed), append(p.New, "again "+v.Sealed)
	}
	_, err := reseal(d.context(as{}, "secret.reseal", p), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range SealedConfigs(d.tx, d.company) {
		for _, v := range o.Values {
			if !strings.HasPrefix(v.Sealed, "again ") {
				t.Errorf("%s is sealed with the old key", v.Path)
			}
		}
	}
	if _, err := (SaveRoutine{ID: "r", Env: json.RawMessage(`{"A":{"$sealed":"x"}}`)}).Sealed(testSeal); err == nil {
		t.Error("a client seals")
	}
}

func TestReferencesOfARoutine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	secret, second := d.secret(t, "K"), d.secret(t, "L")
	ref := func(id string) json.RawMessage {
		return json.RawMessage(`{"K":{"type":"secret_ref","secretId":"` + id + `"}}`)
	}
	r := d.routine(t, ada, func(s *SaveRoutine) { s.Env = ref(secret) })
	if use := SecretUsage(d.tx, d.company); len(use) != 1 || use[0].TargetType != "routine" || use[0].TargetID != r.ID || use[0].Secret != secret {
		t.Errorf("usage %+v", use)
	}
	wantRefusal(t, d.do(board, "routine.update", SaveRoutine{ID: r.ID, Env: ref(uid(77))}, nil), ledger.NotFound, "Secret not found")
	wantRefusal(t, d.do(board, "routine.update", SaveRoutine{ID: r.ID, Env: json.RawMessage(`{"K":5}`)}, nil), ledger.Invalid,
		"env.K: a text, or a binding of type plain, secret_ref or user_secret_ref, is needed")
	self := as{ada, d.run(ada)}
	wantRefusal(t, d.do(self, "routine.update", SaveRoutine{ID: r.ID, Env: ref(second)}, nil), ledger.Forbidden, "env.K: only the board gives secrets to a routine")
	d.must(t, self, "routine.update", SaveRoutine{ID: r.ID, Env: ref(secret)}, nil)
}

func TestADraftingCEOHasNoRoutines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ceo := d.boss(t)
	wes := as{d.hire(t, "Wes", ceo.agent), ""}
	wes.run = d.run(wes.agent)
	save := func(assignee string) SaveRoutine {
		return SaveRoutine{ID: d.id(), Title: new("T"), Assignee: &assignee}
	}
	var r, his Routine
	d.must(t, board, "routine.create", save(ceo.agent), &r)
	d.must(t, wes, "routine.create", save(wes.agent), &his)
	all := func() map[string]error {
		return map[string]error{
			"create":          d.do(ceo, "routine.create", save(wes.agent), nil),
			"create a draft":  d.do(ceo, "routine.create", SaveRoutine{ID: d.id(), Title: new("T")}, nil),
			"update":          d.do(ceo, "routine.update", SaveRoutine{ID: r.ID, Title: new("U")}, nil),
			"run":             d.do(ceo, "routine.run", FireRoutine{Routine: r.ID, Run: d.id(), Source: "manual"}, nil),
			"run another's":   d.do(ceo, "routine.run", FireRoutine{Routine: his.ID, Run: d.id(), Source: "manual"}, nil),
			"add a trigger":   d.do(ceo, "routine_trigger.create", SaveTrigger{ID: d.id(), Routine: r.ID, Kind: TriggerAPI}, nil),
			"restore by name": d.do(ceo, "routine.restore", RestoreRoutine{ID: r.ID, Revision: r.Revision}, nil),
		}
	}
	for what, err := range all() {
		held(t, what, err)
	}
	d.must(t, wes, "routine.run", FireRoutine{Routine: his.ID, Run: d.id(), Source: "manual"}, nil)
	d.decide(t, "approve", d.ask(t, ceo, ApprovalStrategy, `{"plan":"conquer"}`).ID)
	for what, err := range all() {
		if err != nil && (what == "create" || what == "update" || what == "run" || what == "run another's" || what == "add a trigger") {
			t.Errorf("%s after an approved strategy: %v", what, err)
		}
	}
}

func TestDailyCapsOfAnAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	policy := func(p string) {
		a, _ := agents.Get(d.tx, d.company, ada)
		a.RuntimeConfig = json.RawMessage(`{"heartbeat":` + p + `}`)
		agents.Put(d.tx, d.company, ada, a)
	}
	wake := func(want WakeStatus, reason string) {
		t.Helper()
		i := d.issue(t, CreateIssue{Title: "T", Status: IssueBacklog, AllowDuplicate: true})
		d.must(t, board, "issue.update", UpdateIssue{Issue: i.ID, Assignee: &ada, Status: IssueTodo}, nil)
		if u := WakeupsOf(d.tx, d.company, ada)[0]; u.Status != want || string(u.Error) != reason {
			t.Errorf("a wake is %s %q, want %s %q", u.Status, u.Error, want, reason)
		}
	}
	policy(`{"maxDailyCostCents":50}`)
	if err := d.cost(board, ada, 49); err != nil {
		t.Fatal(err)
	}
	wake(WakeQueued, "")
	if err := d.cost(board, ada, 1); err != nil {
		t.Fatal(err)
	}
	wake(WakeSkipped, "heartbeat.maxDailyCostCents.reached")
	d.now = d.now.AddDate(0, 0, 1)
	wake(WakeQueued, "")
	policy(`{"maxDailyRuns":2}`)
	wake(WakeQueued, "")
	wake(WakeSkipped, "heartbeat.maxDailyRuns.reached")
	d.now = d.now.AddDate(0, 0, 1)
	wake(WakeQueued, "")
}
