package routine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// sealedSave returns the payload as the API sends it, sealed.
func sealedSave(t testing.TB, s routine.SaveRoutine) routine.SaveRoutine {
	t.Helper()
	v, err := s.Sealed(companytest.TestSeal)
	if err != nil {
		t.Fatal(err)
	}
	return v.(routine.SaveRoutine)
}

func TestVariablesOfARoutineAreSealed(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	stored := func(r routine.Routine) routine.Routine { r, _ = routine.RoutineByID(d.Tx, r.ID); return r }
	save := sealedSave(t, routine.SaveRoutine{ID: d.ID(), Title: new("T"), Assignee: &ada,
		Env: json.RawMessage(`{"A":"canary-1","B":{"type":"plain","value":"canary-2"}}`)})
	var r routine.Routine
	d.Must(t, companytest.Board, "routine.create", save, &r)
	first := stored(r)
	if strings.Contains(string(ledger.Marshal(save))+string(first.Env), "canary") || strings.Count(string(first.Env),
		conceal.SealedKey) != 2 {
		t.Errorf("stored as %s", first.Env)
	}
	if got, err := conceal.OpenConfig(first.Env, "env", companytest.TestOpen(t, r.ID)); err != nil ||
		string(got) != `{"A":"canary-1","B":"canary-2"}` {
		t.Errorf("opened %s, %v", got, err)
	}
	// A redacted value that comes back keeps the stored one, and a restore brings back the value
	// of the revision.
	d.Must(t, companytest.Board, "routine.update",
		sealedSave(t, routine.SaveRoutine{ID: r.ID, Env: json.RawMessage(`{"A":{"type":"plain","value":"` + conceal.Redacted +
			`"},"B":"canary-3"}`)}), nil)
	if got, err := conceal.OpenConfig(stored(r).Env, "env", companytest.TestOpen(t, r.ID)); err != nil ||
		string(got) != `{"A":"canary-1","B":"canary-3"}` {
		t.Errorf("after a change of one: %s, %v", got, err)
	}
	d.Must(t, companytest.Board, "routine.restore", routine.RestoreRoutine{ID: r.ID, Revision: first.Revision}, nil)
	if got := stored(r).Env; string(got) != string(first.Env) {
		t.Errorf("restored %s", got)
	}
	// Revisions too are sealed with a new data key.
	list := company.SealedConfigs(d.Tx, d.Company)
	if len(list) != 1 || list[0].Type != "routine" || len(list[0].Values) != 3 {
		t.Fatalf("sealed values: %+v", list)
	}
	p := conceal.Reseal{Type: "routine", ID: r.ID}
	for _, v := range list[0].Values {
		p.Old, p.New = append(p.Old, v.Sealed), append(p.New, "again "+v.Sealed)
	}
	_, err := secret.Reseal(d.Context(companytest.As{}, "secret.reseal", p), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range company.SealedConfigs(d.Tx, d.Company) {
		for _, v := range o.Values {
			if !strings.HasPrefix(v.Sealed, "again ") {
				t.Errorf("%s is sealed with the old key", v.Path)
			}
		}
	}
	if _, err := (routine.SaveRoutine{ID: "r", Env: json.RawMessage(`{"A":{"$sealed":"x"}}`)}).
		Sealed(companytest.TestSeal); err == nil {
		t.Error("a client seals")
	}
}

func TestReferencesOfARoutine(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	theSecret, second := d.Secret(t, "K"), d.Secret(t, "L")
	ref := func(id string) json.RawMessage {
		return json.RawMessage(`{"K":{"type":"secret_ref","secretId":"` + id + `"}}`)
	}
	r := d.Routine(t, ada, func(s *routine.SaveRoutine) { s.Env = ref(theSecret) })
	if use := secret.SecretUsage(d.Tx, d.Company); len(use) != 1 || use[0].TargetType != "routine" ||
		use[0].TargetID != r.ID || use[0].Secret != theSecret {
		t.Errorf("usage %+v", use)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "routine.update",
		routine.SaveRoutine{ID: r.ID, Env: ref(companytest.UID(77))}, nil), ledger.NotFound, "Secret not found")
	companytest.WantRefusal(t, d.Do(companytest.Board, "routine.update",
		routine.SaveRoutine{ID: r.ID, Env: json.RawMessage(`{"K":5}`)}, nil), ledger.Invalid,
		"env.K: a text, or a binding of type plain, secret_ref or user_secret_ref, is needed")
	self := companytest.As{Agent: ada, Run: d.Run(ada)}
	companytest.WantRefusal(t, d.Do(self, "routine.update", routine.SaveRoutine{ID: r.ID, Env: ref(second)}, nil),
		ledger.Forbidden, "env.K: only the board gives secrets to a routine")
	d.Must(t, self, "routine.update", routine.SaveRoutine{ID: r.ID, Env: ref(theSecret)}, nil)
}

func TestADraftingCEOHasNoRoutines(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ceo := d.Boss(t)
	wes := companytest.As{Agent: d.Hire(t, "Wes", ceo.Agent), Run: ""}
	wes.Run = d.Run(wes.Agent)
	save := func(assignee string) routine.SaveRoutine {
		return routine.SaveRoutine{ID: d.ID(), Title: new("T"), Assignee: &assignee}
	}
	var r, his routine.Routine
	d.Must(t, companytest.Board, "routine.create", save(ceo.Agent), &r)
	d.Must(t, wes, "routine.create", save(wes.Agent), &his)
	all := func() map[string]error {
		return map[string]error{
			"create":         d.Do(ceo, "routine.create", save(wes.Agent), nil),
			"create a draft": d.Do(ceo, "routine.create", routine.SaveRoutine{ID: d.ID(), Title: new("T")}, nil),
			"update":         d.Do(ceo, "routine.update", routine.SaveRoutine{ID: r.ID, Title: new("U")}, nil),
			"run":            d.Do(ceo, "routine.run", routine.FireRoutine{Routine: r.ID, Run: d.ID(), Source: "manual"}, nil),
			"run another's": d.Do(ceo, "routine.run", routine.FireRoutine{Routine: his.ID, Run: d.ID(),
				Source: "manual"}, nil),
			"add a trigger": d.Do(ceo, "routine_trigger.create", routine.SaveTrigger{ID: d.ID(), Routine: r.ID,
				Kind: routine.TriggerAPI}, nil),
			"restore by name": d.Do(ceo, "routine.restore", routine.RestoreRoutine{ID: r.ID, Revision: r.Revision}, nil),
		}
	}
	for what, err := range all() {
		companytest.Held(t, what, err)
	}
	d.Must(t, wes, "routine.run", routine.FireRoutine{Routine: his.ID, Run: d.ID(), Source: "manual"}, nil)
	d.Decide(t, "approve", d.Ask(t, ceo, money.ApprovalStrategy, `{"plan":"conquer"}`).ID)
	for what, err := range all() {
		if err != nil && (what == "create" || what == "update" || what == "run" || what == "run another's" ||
			what == "add a trigger") {
			t.Errorf("%s after an approved strategy: %v", what, err)
		}
	}
}

func TestDailyCapsOfAnAgent(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	policy := func(p string) {
		a, _ := entity.AgentTable.Get(d.Tx, d.Company, ada)
		a.RuntimeConfig = json.RawMessage(`{"heartbeat":` + p + `}`)
		entity.AgentTable.Put(d.Tx, d.Company, ada, a)
	}
	wake := func(want entity.WakeStatus, reason string) {
		t.Helper()
		i := d.Issue(t, company.CreateIssue{Title: "T", Status: entity.IssueBacklog, AllowDuplicate: true})
		d.Must(t, companytest.Board, "issue.update", company.UpdateIssue{Issue: i.ID, Assignee: &ada,
			Status: entity.IssueTodo}, nil)
		if u := entity.WakeupsOf(d.Tx, d.Company, ada)[0]; u.Status != want || string(u.Error) != reason {
			t.Errorf("a wake is %s %q, want %s %q", u.Status, u.Error, want, reason)
		}
	}
	policy(`{"maxDailyCostCents":50}`)
	if err := d.Cost(companytest.Board, ada, 49); err != nil {
		t.Fatal(err)
	}
	wake(entity.WakeQueued, "")
	if err := d.Cost(companytest.Board, ada, 1); err != nil {
		t.Fatal(err)
	}
	wake(entity.WakeSkipped, "heartbeat.maxDailyCostCents.reached")
	d.Now = d.Now.AddDate(0, 0, 1)
	wake(entity.WakeQueued, "")
	policy(`{"maxDailyRuns":2}`)
	wake(entity.WakeQueued, "")
	wake(entity.WakeSkipped, "heartbeat.maxDailyRuns.reached")
	d.Now = d.Now.AddDate(0, 0, 1)
	wake(entity.WakeQueued, "")
}
