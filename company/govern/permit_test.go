package govern_test

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// egress is a request of an agent to the network, as its node weighs it.
func egress(d *companytest.Desk, agent, arguments string) govern.Local {
	return govern.Local{Action: "network.egress", Agent: agent, Company: d.Company, At: d.Now, Once: true,
		Arguments: govern.ArgumentsOf([]byte(arguments)), Known: governance.Context{Outside: true},
		Detail: "POST https://x/y"}
}

// ask does what the node of an agent does when a rule lets an act wait.
func ask(t *testing.T, d *companytest.Desk, l govern.Local) (out govern.PermitAnswer) {
	t.Helper()
	c := d.Context(companytest.Board, govern.KindPermit, govern.AskPermit{ID: d.ID(), Agent: l.Agent, Action: l.Action,
		Arguments: l.Arguments, Once: l.Once, Known: l.Known, Run: l.Run, Detail: l.Detail})
	c.Cmd.Actor = ledger.Actor{Type: "node", ID: "n"}
	c.Tx = d.Tx.Child()
	b, err := d.Mux[govern.KindPermit](c)
	if err != nil {
		t.Fatal(err)
	}
	c.Tx.Merge()
	if err := ledger.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func use(d *companytest.Desk, id string, l govern.Local) error {
	return d.ByLeader(govern.KindPermitUse, govern.UsePermit{Permit: id, Agent: l.Agent, Action: l.Action,
		Arguments: l.Arguments})
}

// What a rule lets wait is put before a person. Their approval lets this act happen, with these arguments, once, and no
// other. Two nodes can not both use it.
func TestAPermitIsForOneAct(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	enact(t, d, put(rule("T-1", governance.Blocking, `true`, "network.egress")))
	l := egress(d, ada, `{"url":"https://x/y","method":"POST","body":"1"}`)
	j := govern.Judge(d.Tx, l)
	if j.Refusal == nil || !j.Ask || j.Permit != nil {
		t.Fatalf("before: %+v", j)
	}
	out := ask(t, d, l)
	if out.Status != govern.PermitWaits || out.Refusal() == nil ||
		!strings.Contains(out.Refusal().Error(), "waits for the board as approval "+out.Approval) {
		t.Fatalf("asked: %+v", out)
	}
	a, _ := money.ApprovalByID(d.Tx, out.Approval)
	if !strings.Contains(string(a.Payload), "POST https://x/y") || !strings.Contains(string(a.Payload), l.Arguments) {
		t.Errorf("the board sees %s", a.Payload)
	}
	if again := ask(t, d, l); again.Approval != out.Approval {
		t.Errorf("asked twice: %+v", again)
	}
	if v := d.Decide(t, "approve", out.Approval); v.Refused != nil {
		t.Fatal(v.Refused)
	}
	// The order of members and the spaces are no other arguments.
	same := egress(d, ada, ` {"body":"1", "method":"POST","url":"https://x/y"} `)
	if j = govern.Judge(d.Tx, same); j.Refusal != nil || j.Permit == nil || !j.Permit.Once ||
		j.Decision.Said.Verdict != governance.Warn {
		t.Fatalf("approved: %+v", j)
	}
	for name, l := range map[string]govern.Local{
		"other arguments": egress(d, ada, `{"url":"https://x/y","method":"POST","body":"2"}`),
		"another agent":   egress(d, bob, `{"url":"https://x/y","method":"POST","body":"1"}`),
	} {
		if j := govern.Judge(d.Tx, l); j.Refusal == nil {
			t.Errorf("%s: permitted", name)
		}
		if err := use(d, out.Approval, l); err == nil || !strings.Contains(err.Error(), "for another act") {
			t.Errorf("%s: used: %v", name, err)
		}
	}
	adrift := same
	adrift.Adrift = true
	if j := govern.Judge(d.Tx, adrift); j.Refusal == nil || j.Ask {
		t.Error("a node without a lease may not know what was revoked")
	}
	if err := use(d, out.Approval, same); err != nil {
		t.Fatal(err)
	}
	if err := use(d, out.Approval, same); err == nil || !strings.Contains(err.Error(), "The permit is used") {
		t.Errorf("a second node uses it: %v", err)
	}
	if j := govern.Judge(d.Tx, same); j.Refusal == nil {
		t.Error("used up, and permitted")
	}
	// The node records the decision; one that claims an approval which nobody gave is refused.
	if err := d.ByLeader(govern.KindRecord, govern.Record{Decisions: []govern.Decision{j.Decision}}); err != nil {
		t.Error(err)
	}
	forged := j.Decision
	forged.Approval = d.ID()
	if err := d.ByLeader(govern.KindRecord, govern.Record{Decisions: []govern.Decision{forged}}); err == nil ||
		!strings.Contains(err.Error(), "no permit that approves it") {
		t.Errorf("forged: %v", err)
	}
}

// A permit ends at its time, when it is revoked, and when a rule comes into force that nobody was told of.
func TestPermitsEnd(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	enact(t, d, put(rule("T-1", governance.Blocking, `true`, "network.egress")))
	granted := func(body string) (govern.Local, string) {
		t.Helper()
		l := egress(d, ada, body)
		out := ask(t, d, l)
		if v := d.Decide(t, "approve", out.Approval); v.Refused != nil || govern.Judge(d.Tx, l).Refusal != nil {
			t.Fatal(v.Refused)
		}
		return l, out.Approval
	}
	l, id := granted("one")
	l.At = d.Now.Add(govern.PermitFor + time.Minute)
	if j := govern.Judge(d.Tx, l); j.Refusal == nil {
		t.Error("permitted after its end")
	}
	d.Now = d.Now.Add(govern.PermitFor + time.Minute)
	if err := use(d, id, l); err == nil || !strings.Contains(err.Error(), "The permit is expired") {
		t.Errorf("used after its end: %v", err)
	}
	l, id = granted("two")
	d.Must(t, companytest.Board, govern.KindPermitRevoke, govern.EndPermit{Permit: id}, nil)
	if err := use(d, id, l); govern.Judge(d.Tx, l).Refusal == nil || err == nil ||
		!strings.Contains(err.Error(), "revoked") {
		t.Errorf("revoked: %v", err)
	}
	l, id = granted("three")
	enact(t, d, put(rule("T-2", governance.Blocking, `true`, "network.egress")))
	if err := use(d, id, l); govern.Judge(d.Tx, l).Refusal == nil || err == nil ||
		!strings.Contains(err.Error(), "The constitution has changed") {
		t.Errorf("another rule blocks it: %v", err)
	}
	l = egress(d, ada, "four")
	d.Decide(t, "reject", ask(t, d, l).Approval)
	if out := ask(t, d, l); out.Status != govern.PermitDenied ||
		!strings.Contains(out.Reason, "A person has rejected it") {
		t.Errorf("asked again at once: %+v", out)
	}
	d.Now = d.Now.Add(govern.PermitFor + time.Minute)
	if out := ask(t, d, l); out.Status != govern.PermitWaits {
		t.Errorf("asked an hour later: %+v", out)
	}
	n := 0
	for ; n < 2*govern.MaxWaitingActs; n++ {
		c := d.Context(companytest.As{Agent: ada, Run: d.Run(ada)}, govern.KindPermit,
			govern.AskPermit{ID: d.ID(), Agent: ada, Action: "network.egress", Arguments: govern.ArgumentsOf([]byte{byte(n)})})
		c.Tx = d.Tx.Child()
		if _, err := d.Mux[govern.KindPermit](c); err != nil {
			break
		}
		c.Tx.Merge()
	}
	if n != govern.MaxWaitingActs-1 {
		t.Errorf("%d acts of one agent wait, want %d", n+1, govern.MaxWaitingActs)
	}
}

// An agent asks about itself, and no rule against it means a permit at once; a critical rule denies, and that is kept.
func TestAgentsAskForPermits(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	hash := govern.ArgumentsOf([]byte(`{}`))
	p := govern.AskPermit{ID: d.ID(), Agent: ada, Action: "fs.read_file", Arguments: hash, Seconds: 60,
		Known: governance.Context{Approved: true, Workspace: "/w", Clearances: []string{"risk-review"}}}
	var out govern.PermitAnswer
	d.Must(t, as, govern.KindPermit, p, &out)
	row, ok := govern.PermitOf(d.Tx, d.Company, out.Permit)
	if out.Status != govern.PermitGranted || !ok || row.Approved || row.Act.Context.Approved ||
		row.Act.Context.Workspace != "" ||
		len(row.Act.Context.Clearances) != 1 || time.Duration(row.Until-row.At)*time.Millisecond != time.Minute {
		t.Fatalf("%+v: %+v", out, row)
	}
	p.ID, p.Agent = d.ID(), bob
	companytest.WantRefusal(t, d.Do(as, govern.KindPermit, p, nil), ledger.Forbidden,
		"agent_id: an agent asks about its own acts")
	p.ID, p.Agent, p.Action = d.ID(), ada, "issue.delete"
	if err := d.Do(as, govern.KindPermit, p, nil); err == nil || !strings.Contains(err.Error(), "is a command") {
		t.Errorf("a command: %v", err)
	}
	enact(t, d, put(rule("T-1", governance.Critical, `true`, "fs.read_file")))
	p.ID, p.Action = d.ID(), "fs.read_file"
	d.Must(t, as, govern.KindPermit, p, &out)
	if list := decisions(d); out.Status != govern.PermitDenied || len(list) != 1 ||
		list[0].Said.Verdict != governance.Deny {
		t.Errorf("%+v, kept %+v", out, list)
	}
	// What was granted before does not hold against the rule.
	err := d.Do(as, govern.KindPermitUse, govern.UsePermit{Permit: row.ID, Agent: ada, Action: "fs.read_file",
		Arguments: hash}, nil)
	if err == nil || !strings.Contains(err.Error(), "Rule T-1") {
		t.Errorf("used all the same: %v", err)
	}
}
