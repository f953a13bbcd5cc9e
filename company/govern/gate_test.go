package govern_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// do gives a command as the ledger does: the gate first, what it writes is kept.
func do(d *companytest.Desk, who companytest.As, kind string, payload any) error {
	c := d.Context(who, kind, payload)
	c.Tx = d.Tx.Child()
	if err := govern.Weigh(c); err != nil {
		c.Tx.Merge()
		d.Last = c.Changes()
		return err
	}
	_, err := d.Mux[kind](c)
	if err == nil {
		c.Tx.Merge()
		d.Last = c.Changes()
	}
	return err
}

// enact brings an amendment into force that the board signs without keys.
func enact(t *testing.T, d *companytest.Desk, draft govern.Draft) govern.Amendment {
	t.Helper()
	var a govern.Amendment
	d.Must(t, companytest.Board, govern.KindPropose, draft, &a)
	d.Must(t, companytest.Board, govern.KindSign, govern.Sign{Amendment: a.ID}, nil)
	d.Must(t, companytest.Board, govern.KindEnact, govern.NameAmendment{Amendment: a.ID}, &a)
	return a
}

func rule(id string, severity governance.Severity, when string, on ...string) governance.Rule {
	return governance.Rule{ID: id, Branch: governance.Executive, Severity: severity, On: on, When: when,
		Reason: "{act} is against " + id}
}

func put(rules ...governance.Rule) govern.Draft {
	return govern.Draft{Change: governance.Change{Put: rules}}
}

func decisions(d *companytest.Desk) []govern.Decision {
	return slices.Collect(govern.Decisions(d.Tx, d.Company, govern.Query{}))
}

// refusal returns the refusal's code, and what its details say of a member.
func refusal(t *testing.T, err error, member string) (code, value string) {
	t.Helper()
	r, ok := errors.AsType[*ledger.Refusal](err)
	if !ok {
		t.Fatalf("want a refusal, got %v", err)
	}
	details := map[string]any{}
	if err := json.Unmarshal(r.Detail, &details); err != nil {
		t.Fatal(err)
	}
	value, _ = details[member].(string)
	return r.ErrCode, value
}

func label(d *companytest.Desk, name string) company.CreateLabel {
	return company.CreateLabel{ID: d.ID(), Name: name, Color: "#ff0000"}
}

// A rule denies, and says which it is. Identical denials of a minute are one decision, which counts them.
func TestARuleDenies(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	if err := do(d, as, "label.create", label(d, "one")); err != nil {
		t.Fatalf("with the genesis rules: %v", err)
	}
	enact(t, d, put(rule("T-1", governance.Critical, `rank == "worker"`, "label.create")))
	for range 3 {
		err := do(d, as, "label.create", label(d, "two"))
		if code, by := refusal(t, err, "rule"); code != company.GovernanceDenied || by != "T-1" ||
			!strings.Contains(err.Error(), "Denied by rule T-1 of the constitution: Label create is against T-1") {
			t.Fatalf("refused with %s by %q: %v", code, by, err)
		}
	}
	list := decisions(d)
	if len(list) != 1 || list[0].Count != 3 || list[0].Said.Verdict != governance.Deny || list[0].Version != 2 ||
		list[0].Run != as.Run {
		t.Fatalf("decisions: %+v", list)
	}
	d.Now = d.Now.Add(govern.SameWithin)
	_ = do(d, as, "label.create", label(d, "three"))
	if list := decisions(d); len(list) != 2 || list[0].Count != 1 {
		t.Fatalf("a minute later: %+v", list)
	}
	if err := do(d, companytest.Board, "label.create", label(d, "four")); err != nil {
		t.Errorf("the rule is about workers: %v", err)
	}
}

// What a rule blocks waits for a person. Approving carries it out, by the agent that gave it; rejecting and silence do
// not.
func TestWhatIsBlockedWaits(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	enact(t, d, put(rule("T-1", governance.Blocking, `rank != "board"`, "label.create")))
	ask := func(name string) string {
		t.Helper()
		code, approval := refusal(t, do(d, as, "label.create", label(d, name)), "approvalId")
		a, ok := money.ApprovalByID(d.Tx, approval)
		if code != "approval_required" || !ok || a.Type != money.ApprovalAct || a.Status != money.ApprovalPending ||
			string(a.RequestedByAgent) != ada || !strings.Contains(string(a.Payload), `"kind":"label.create"`) {
			t.Fatalf("%s, approval %+v", code, a)
		}
		return approval
	}
	labels := func() (names []string) {
		for _, l := range entity.LabelsOf(d.Tx, d.Company) {
			names = append(names, l.Name)
		}
		return names
	}
	first, second, third := ask("one"), ask("two"), ask("three")
	if n := labels(); len(n) != 0 {
		t.Fatalf("carried out before: %v", n)
	}
	if v := d.Decide(t, "approve", first); v.Refused != nil || !slices.Equal(labels(), []string{"one"}) {
		t.Fatalf("approved: %+v, labels %v", v.Refused, labels())
	}
	d.Decide(t, "reject", second)
	if len(govern.Lapsing(d.Tx, d.Company, 1<<50, 10)) != 1 {
		t.Error("the third alone waits")
	}
	d.Now = d.Now.Add(govern.WaitFor)
	var v money.Decision
	d.Must(t, companytest.Board, "approval.approve", money.DecideApproval{Approval: third}, &v)
	if v.Refused == nil {
		t.Error("approved after the time")
	}
	if err := d.ByLeader(govern.KindLapse, govern.Lapse{}); err != nil {
		t.Fatal(err)
	}
	if a, _ := money.ApprovalByID(d.Tx, third); a.Status != money.ApprovalRejected || !slices.Equal(labels(),
		[]string{"one"}) {
		t.Errorf("after its time: %+v, labels %v", a, labels())
	}
	answers := map[string]int{}
	for _, d := range decisions(d) {
		answers[d.Answer]++
	}
	if answers["approved"] != 2 || answers["rejected"] != 1 || answers["lapsed"] != 1 {
		t.Errorf("answers: %v", answers)
	}
}

// The constitution that is in force when a person approves decides, and says that it is another one.
func TestTheNewerConstitutionDecides(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	enact(t, d, put(rule("T-1", governance.Blocking, `true`, "label.create")))
	_, approval := refusal(t, do(d, as, "label.create", label(d, "one")), "approvalId")
	enact(t, d, put(rule("T-2", governance.Blocking, `true`, "label.create")))
	v := d.Decide(t, "approve", approval)
	if v.Refused == nil || !strings.Contains(v.Refused.Message, "changed from version 2 to 3") ||
		!strings.Contains(v.Refused.Message, "Rule T-2 blocks it as well") {
		t.Fatalf("a new rule: %+v", v)
	}
	enact(t, d, put(rule("T-2", governance.Critical, `true`, "label.create")))
	v = d.Decide(t, "approve", approval)
	if v.Refused == nil || !strings.Contains(v.Refused.Message, "changed from version 3 to 4") ||
		!strings.Contains(v.Refused.Message, "Rule T-2 denies it") {
		t.Fatalf("a critical one: %+v", v)
	}
	enact(t, d, govern.Draft{Change: governance.Change{Drop: []string{"T-2"}}})
	if v = d.Decide(t, "approve", approval); v.Refused != nil {
		t.Fatalf("without it: %+v", v.Refused)
	}
}

// Each decision, decided again under its version, is the same bit for bit, and under another version it may differ.
func TestDecisionsAreReplayed(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	enact(t, d, put(rule("T-1", governance.Critical, `rank == "worker"`, "label.create")))
	_ = do(d, as, "label.create", label(d, "one"))
	enact(t, d, put(rule("T-1", governance.Warning, `rank == "worker"`, "label.create")))
	if err := do(d, as, "label.create", label(d, "one")); err != nil {
		t.Fatal(err)
	}
	verdicts := []governance.Verdict{}
	for _, x := range decisions(d) {
		verdicts = append(verdicts, x.Said.Verdict)
		for version := uint64(1); version <= 3; version++ {
			s, err := govern.VersionOf(d.Tx, version)
			if err != nil {
				t.Fatal(err)
			}
			g, err := govern.GateOf(d.Tx, s)
			if err != nil {
				t.Fatal(err)
			}
			if same := x.Again(g).Equal(x.Said); same != (version == x.Version) {
				t.Errorf("decision %s of version %d under version %d: same %v", x.ID, x.Version, version, same)
			}
		}
	}
	if !slices.Equal(verdicts, []governance.Verdict{governance.Warn, governance.Deny}) {
		t.Errorf("decided %v", verdicts)
	}
}

// With keys, k of them have to sign, each with its private key; without, an administrator does.
func TestKeysSignAmendments(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	private := map[string]ed25519.PrivateKey{}
	var keys []govern.SigningKey
	for n := range 3 {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = byte(n + 1)
		k := ed25519.NewKeyFromSeed(seed)
		public := k.Public().(ed25519.PublicKey)
		keys = append(keys, govern.SigningKey{ID: govern.KeyID(public), Name: "key", Public: public})
		private[govern.KeyID(public)] = k
	}
	enact(t, d, govern.Draft{AddKeys: keys})
	var a govern.Amendment
	d.Must(t, companytest.Board, govern.KindPropose, put(rule("T-1", governance.Warning, "true")), &a)
	companytest.WantRefusal(t, d.Do(companytest.Board, govern.KindSign, govern.Sign{Amendment: a.ID}, nil),
		ledger.Forbidden, "key: the board has 3 signing keys: sign with one of them")
	by := func(k govern.SigningKey) govern.Sign {
		return govern.Sign{Amendment: a.ID, Key: k.ID, Signature: ed25519.Sign(private[k.ID], govern.Message(a))}
	}
	d.Must(t, companytest.Board, govern.KindSign, by(keys[0]), nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, govern.KindSign, by(keys[0]), nil), ledger.Conflict,
		"The amendment has this signature already")
	wrong := by(keys[1])
	wrong.Signature[0] ^= 1
	if err := d.Do(companytest.Board, govern.KindSign, wrong, nil); err == nil {
		t.Error("took a wrong signature")
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, govern.KindEnact, govern.NameAmendment{Amendment: a.ID}, nil),
		ledger.Forbidden, "The amendment has 1 of the 2 signatures that it needs: sign it first")
	d.Must(t, companytest.Board, govern.KindSign, by(keys[1]), nil)
	d.Must(t, companytest.Board, govern.KindEnact, govern.NameAmendment{Amendment: a.ID}, nil)
	one := 1
	if err := d.Do(companytest.Board, govern.KindPropose, govern.Draft{Threshold: &one}, nil); err == nil ||
		!strings.Contains(err.Error(), "more than half") {
		t.Errorf("one of three: %v", err)
	}
}

// A proposal that can not come into force is refused, with the reason.
func TestBadProposalsAreRefused(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	genesis := governance.Genesis()
	loose := genesis[0]
	loose.Severity = governance.Advisory
	other := genesis[0]
	other.When = "false"
	for want, draft := range map[string]govern.Draft{
		"Nothing to amend":     {},
		"undeclared reference": put(rule("T-1", governance.Warning, "nonsense.here")),
		"does not compile":     put(rule("T-1", governance.Warning, "1 +")),
		"the limit is 1000000": put(rule("T-1", governance.Warning,
			`clearances.all(a, clearances.all(b, approvers.all(c, clearances.all(d, a + b + c + d != ""))))`)),
		"a genesis rule stays":    {Change: governance.Change{Drop: []string{"GOV-001"}}},
		"there is no such rule":   {Change: governance.Change{Drop: []string{"T-9"}}},
		"is not loosened":         put(loose),
		"of a core rule does not": put(other),
		"capital letters":         put(rule("t 1", governance.Warning, "true")),
		"is there twice": put(rule("T-1", governance.Warning, "true"),
			rule("T-1", governance.Warning, "true")),
		"want dev, staging or prod":     {Environment: new(governance.EnvironmentClass("moon"))},
		"version 7 of the constitution": {Base: 7, Change: governance.Change{Drop: []string{"T-9"}}},
	} {
		if err := d.Do(companytest.Board, govern.KindPropose, draft, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// An environment holds in the nearest place that has one.
func TestPlaces(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	project := d.Project("Site")
	class := func(project string) governance.EnvironmentClass {
		s, err := govern.InForce(d.Tx)
		if err != nil {
			t.Fatal(err)
		}
		return govern.ScopeOf(d.Tx, s, d.Company, project).Class
	}
	set := func(p govern.SetPlace) { d.Must(t, companytest.Board, govern.KindPlace, p, nil) }
	enact(t, d, govern.Draft{Environment: new(governance.Production)})
	if class("") != governance.Production {
		t.Error("the mesh has no environment")
	}
	set(govern.SetPlace{Class: new(governance.Staging)})
	set(govern.SetPlace{Project: project, Class: new(governance.Development)})
	if class("") != governance.Staging || class(project) != governance.Development {
		t.Errorf("company %s, project %s", class(""), class(project))
	}
	set(govern.SetPlace{Class: new(governance.Unnamed)})
	if class("") != governance.Production {
		t.Error("what is taken away holds")
	}
	if s, _ := govern.InForce(d.Tx); govern.ScopeOf(d.Tx, s, d.Company, "").Threshold() != 300 {
		t.Error("the threshold of prod is 0.3")
	}
}

// The node weighs tools, models and egress with the same rules, and what it records has to follow from them.
func TestLocalActs(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	if _, worthy, err := govern.WeighLocal(d.Tx, govern.Local{Action: "model.call", Agent: ada,
		Company: d.Company}); err != nil || worthy {
		t.Errorf("a call of a model: %v, worthy %v", err, worthy)
	}
	x, worthy, err := govern.WeighLocal(d.Tx, govern.Local{Action: "exec", Agent: ada, Company: d.Company,
		Known: governance.Context{Approved: true, Clearances: []string{"risk-review", "security-review"}}})
	if !worthy || err == nil || x.Said.Verdict != governance.Defer {
		t.Fatalf("a shell command: %v, %s", err, x.Said.Verdict)
	}
	if err := d.ByLeader(govern.KindRecord, govern.Record{Decisions: []govern.Decision{x, x}}); err != nil {
		t.Fatal(err)
	}
	if list := decisions(d); len(list) != 1 || list[0].Count != 2 || list[0].Node != "n" {
		t.Errorf("recorded %+v", list)
	}
	x.Said.Verdict = governance.Permit
	if err := d.ByLeader(govern.KindRecord, govern.Record{Decisions: []govern.Decision{x}}); err == nil ||
		!strings.Contains(err.Error(), "does not follow") {
		t.Errorf("a forged decision: %v", err)
	}
}

// What a person has a node do about processes is weighed as a command; a declared process is weighed by its node
// before it starts. A critical rule denies both. What would wait for a person is a warning to one, and a denial where
// there is nobody to ask.
func TestTheGateAtSpawn(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	of := d.Company
	ledger.NewMeshTable[string, ledger.Node]("node").Put(d.Tx, "n", ledger.Node{ID: "n"})
	spawn := func() error {
		d.Company = ""
		defer func() { d.Company = of }()
		return do(d, companytest.Board, replica.KindSpawn, replica.Order{Node: "n", Name: "web"})
	}
	local := func(of ledger.CompanyID) (govern.Decision, bool, error) {
		return govern.WeighLocal(d.Tx, govern.Local{Action: replica.KindSpawn, Company: of, Board: true})
	}
	// The rules that every mesh begins with let the board spawn.
	if err := spawn(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := local(""); err != nil {
		t.Fatal(err)
	}
	enact(t, d, put(rule("T-1", governance.Blocking, `effect.security >= 300`, replica.KindSpawn)))
	if err := spawn(); err != nil {
		t.Errorf("a person who spawns has approved it: %v", err)
	}
	x, worthy, err := local(of)
	if err == nil || !worthy || x.Said.Verdict != governance.Defer || !strings.Contains(err.Error(),
		"nobody can be asked here, so it is denied") {
		t.Errorf("a process of a company: %v, %s", err, x.Said.Verdict)
	}
	x, worthy, err = local("")
	if err == nil || !worthy || x.Said.Verdict != governance.Deny {
		t.Errorf("a declared process of the mesh, which nobody is asked about: %v, %s", err, x.Said.Verdict)
	}
	d.Company = ""
	if err := d.ByLeader(govern.KindRecord, govern.Record{Decisions: []govern.Decision{x}}); err != nil {
		t.Errorf("record the denial: %v", err)
	}
	d.Company = of
	enact(t, d, put(rule("T-2", governance.Critical, `true`, "spawn")))
	if err := spawn(); err == nil || !strings.Contains(err.Error(), "T-2") {
		t.Errorf("a person: %v", err)
	}
	if x, _, err := local(""); err == nil || x.Said.Verdict != governance.Deny {
		t.Errorf("a node: %v, %s", err, x.Said.Verdict)
	}
}

// A flood of denials stays within its bound.
func TestAFloodOfDenialsIsBounded(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	enact(t, d, put(rule("T-1", governance.Critical, `true`, "label.create")))
	for range 500 {
		_ = do(d, as, "label.create", label(d, "x"))
	}
	if n := len(decisions(d)); n > 10 {
		t.Errorf("%d decisions in %s", n, 500*time.Second)
	}
}

// Equal compares without encoding, and comes to what the bytes say: for each member that can differ.
func TestEqualAnswersAreTheSameBytes(t *testing.T) {
	t.Parallel()
	of := func() govern.Said {
		return govern.Said{Verdict: governance.Deny, Reason: "no", Effect: governance.Effect{1, 2, 3, 4, 5}, Threshold: 700,
			Asked:    []string{"A", "B"},
			Opinions: []govern.Opinion{{Branch: governance.Judicial, Verdict: governance.Deny, Rules: 2}},
			Voices:   []govern.Voice{{Rule: "A", Reason: "no"}}}
	}
	empty := func(s *govern.Said) { s.Asked, s.Opinions, s.Voices = []string{}, []govern.Opinion{}, []govern.Voice{} }
	none := func(s *govern.Said) { s.Asked, s.Opinions, s.Voices = nil, nil, nil }
	changes := []func(*govern.Said){
		func(*govern.Said) {}, empty, none, func(s *govern.Said) { s.Verdict = governance.Permit },
		func(s *govern.Said) { s.Reason = "" }, func(s *govern.Said) { s.Effect[4] = 6 },
		func(s *govern.Said) { s.Threshold = 1 }, func(s *govern.Said) { s.Asked[1] = "C" },
		func(s *govern.Said) { s.Asked = s.Asked[:1] }, func(s *govern.Said) { s.Opinions[0].Rules = 3 },
		func(s *govern.Said) { s.Opinions[0].Branch = governance.Executive },
		func(s *govern.Said) { s.Voices[0].Failed = true }, func(s *govern.Said) { s.Voices[0].Title = "a" },
		func(s *govern.Said) { s.Voices[0].Severity = governance.Critical },
	}
	for i, one := range changes {
		for j, two := range changes {
			a, b := of(), of()
			one(&a)
			two(&b)
			if got, want := a.Equal(b), bytes.Equal(ledger.Marshal(a), ledger.Marshal(b)); got != want {
				t.Errorf("changes %d and %d: equal %v, the bytes %v", i, j, got, want)
			}
		}
	}
}
