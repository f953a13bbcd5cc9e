package govern_test

import (
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/governance"
)

func permitTree(t *testing.T, d *companytest.Desk, g rules.SaveTreeGrant) {
	t.Helper()
	d.Must(t, companytest.Board, "resource_tree.grant", g, nil)
}

// The policy of the tree alone denies an act, and a grant permits it: for who is named, on the path and below it, until
// the grant ends. What was denied is decided the same again. People, and agents of another company, do not notice it.
func TestTheTreeDeniesAndGrants(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	as, other := companytest.As{Agent: ada, Run: d.Run(ada)}, companytest.As{Agent: bob, Run: d.Run(bob)}
	at, n := "/companies/"+string(d.Company), 0
	act := func(who companytest.As) error {
		n++
		return do(d, who, "label.create", label(d, "l"+strings.Repeat("x", n)))
	}
	want := func(when string, who companytest.As, said string) {
		t.Helper()
		err := act(who)
		if said == "" && err == nil {
			return
		}
		if err == nil || said == "" {
			t.Fatalf("%s: %v, want %q", when, err, said)
		}
		if code, by := refusal(t, err, "branch"); code != company.GovernanceDenied || by != "access" ||
			!strings.Contains(err.Error(),
				"Denied by the access policy of the resource tree: the agent may not use "+at+": "+said) {
			t.Fatalf("%s: %s by %s: %v", when, code, by, err)
		}
	}
	want("without a policy", as, "")
	permitTree(t, d, rules.SaveTreeGrant{Path: at, Subject: "*", Deny: true})
	want("closed", as, "on "+at+" for * it is denied")
	want("a person", companytest.Board, "")
	permitTree(t, d, rules.SaveTreeGrant{Path: at, Subject: "agent:" + ada, Role: "viewer"})
	want("to look", as, "on "+at+" agent:"+ada+" is viewer")
	permitTree(t, d, rules.SaveTreeGrant{Path: at, Subject: "agent:" + ada, Role: "operator", Delegate: true,
		Until: core.TimeOf(d.Now.Add(time.Hour))})
	want("to use", as, "")
	want("another agent", other, "on "+at+" for * it is denied")
	if err := d.Do(as, "resource_tree.grant", rules.SaveTreeGrant{Path: at, Subject: "agent:" + bob, Role: "operator",
		Until: core.TimeOf(d.Now.Add(2 * time.Hour))}, nil); err == nil {
		t.Error("delegated for longer than it was given")
	}
	d.Must(t, as, "resource_tree.grant", rules.SaveTreeGrant{Path: at, Subject: "agent:" + bob, Role: "operator",
		Until: core.TimeOf(d.Now.Add(time.Minute))}, nil)
	want("delegated", other, "")
	d.Now = d.Now.Add(time.Minute)
	want("delegated until then", other, "on "+at+" for * it is denied")
	d.Now = d.Now.Add(time.Hour)
	want("granted until then", as, "on "+at+" for * it is denied")
	if n := replayed(t, d); n != 0 {
		t.Errorf("%d receipts of filters", n)
	}
	denied := 0
	for _, x := range decisions(d) {
		if x.Beside == nil || x.Beside.Access == nil {
			t.Errorf("decision %s does not say what the policy was asked: %+v", x.ID, x)
			continue
		}
		x = x.Clone()
		for i := range x.Beside.Access.Grants {
			x.Beside.Access.Grants[i].Deny = false
			x.Beside.Access.Grants[i].Role = governance.TreeOwner
		}
		if again(t, d, x).Verdict == governance.Permit {
			denied++
		}
	}
	if denied == 0 {
		t.Error("no decision is due to the policy alone")
	}
	d.Must(t, companytest.Board, "resource_tree.revoke", rules.DropTreeGrant{Path: at, Subject: "*"}, nil)
	want("open again", other, "")
}

// The nearest vertex decides: a tool, an agent. A grant above does not help below a denial.
func TestTheTreeDecidesByTarget(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	as := companytest.As{Agent: ada, Run: d.Run(ada)}
	at := "/companies/" + string(d.Company)
	permitTree(t, d, rules.SaveTreeGrant{Path: at, Subject: "agent:" + ada, Role: "admin"})
	permitTree(t, d, rules.SaveTreeGrant{Path: at + "/agents/" + bob, Subject: "*", Deny: true})
	permitTree(t, d, rules.SaveTreeGrant{Path: at + "/tools", Subject: "*", Deny: true})
	for target, try := range map[string]func() error{
		at + "/agents/" + bob: func() error {
			return do(d, as, company.KindAgentResetSession, company.ResetSession{Agent: bob})
		},
		at + "/tools/grep": func() error {
			return do(d, as, skill.KindToolExecute, skill.ExecuteTool{Name: "grep", Input: strings.Repeat("0", 64)})
		},
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), " "+target+": on ") {
			t.Errorf("%s: %v", target, err)
		}
	}
	permitTree(t, d, rules.SaveTreeGrant{Path: at + "/tools", Subject: "agent:" + ada, Role: "operator"})
	if err := do(d, as, skill.KindToolExecute,
		skill.ExecuteTool{Name: "grep", Input: strings.Repeat("0", 64)}); err == nil ||
		strings.Contains(err.Error(), "access policy") {
		t.Errorf("granted, so that the handler looks for the tool: %v", err)
	}
	if err := do(d, as, "label.create", label(d, "one")); err != nil {
		t.Errorf("elsewhere: %v", err)
	}
}

// Acts at nodes meet the policy as commands do. At a node without a lease no grant helps.
func TestTheTreeDeniesAtNodes(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	tool := skill.TreePath(d.Company, "fs.stat")
	if tool != "/kernel/tools/filesystem/fs.stat" {
		t.Fatal(tool)
	}
	local := func(at time.Time, adrift bool) (govern.Decision, error) {
		j := govern.Judge(d.Tx, govern.Local{Action: "fs.stat", Target: tool, Agent: ada, Company: d.Company, At: at,
			Adrift: adrift})
		return j.Decision, j.Refusal
	}
	if x, err := local(d.Now, false); err != nil || x.Beside != nil || x.Act.Target != "" {
		t.Fatalf("without a policy: %v %+v", err, x)
	}
	permitTree(t, d, rules.SaveTreeGrant{Path: "/kernel/tools", Subject: "*", Deny: true})
	x, err := local(d.Now, false)
	if err == nil || !strings.Contains(err.Error(), "may not read "+tool+": on /kernel/tools for * it is denied") {
		t.Fatalf("closed: %v", err)
	}
	x.Company = d.Company
	if err := d.ByNode("n1", govern.KindRecord, govern.Record{Decisions: []govern.Decision{x}}); err != nil {
		t.Fatalf("the node records it: %v", err)
	}
	replayed(t, d)
	permitTree(t, d, rules.SaveTreeGrant{Path: "/kernel/tools/filesystem", Subject: "company:" + string(d.Company),
		Role: "viewer", Until: core.TimeOf(d.Now.Add(time.Hour))})
	if _, err := local(d.Now, false); err != nil {
		t.Errorf("granted: %v", err)
	}
	for when, err := range map[string]error{"without a lease": second(local(d.Now, true)),
		"at no time": second(local(time.Time{}, false)), "later": second(local(d.Now.Add(time.Hour), false))} {
		if err == nil {
			t.Errorf("%s it holds", when)
		}
	}
}

func second(_ govern.Decision, err error) error { return err }
