package govern_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/replica"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The path of a host has its labels from the last to the first, so that a domain is above what is in it. What is no
// name of a host is the namespace itself: a denial there also stops it.
func TestHostsHavePaths(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"api.example.com": "/com/example/api", "API.Example.com.": "/com/example/api", "localhost": "/localhost",
		"10.0.0.1": "/10.0.0.1", "::1": "/::1", "::ffff:10.0.0.1": "/10.0.0.1", "fe80::1%eth0": "/fe80::1",
		"a..b": "", "": "", "a/../b": "/a%2F/%2E%2E%2Fb", strings.Repeat("x", 2000): "",
		"1.2.3.4.5.6.7.8.9.10.11.12": "/12/11/10/9/8/7/6/5/4/1.2.3",
	} {
		got := govern.HostPath("c", host)
		if host == "a/../b" { // never below another path
			if governance.CheckPath(got) != nil || !governance.Below(got, "/companies/c/hosts") {
				t.Errorf("%s: %s", host, got)
			}
			continue
		}
		if got != "/companies/c/hosts"+want {
			t.Errorf("%.40q: got %s, want %s", host, got, want)
		}
	}
	for _, name := range []string{".", "..", "...", "a/b", "../../x", ""} {
		p := govern.ModelPath("c", "up", name)
		if name != "" && (governance.CheckPath(p) != nil || strings.Count(p, "/") != 5) {
			t.Errorf("model %q: %s", name, p)
		}
	}
}

// Secrets, models, hosts and classes of environments are targets: a denial stops the act at the node, a grant by name
// permits it, and what was denied is decided the same again. What the mesh says of a host or model holds in every
// company.
func TestWhatAgentsReachHasAPolicy(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	at := "/companies/" + string(d.Company)
	for _, x := range []struct{ action, target, closed, open, mesh string }{
		{govern.ActSecret, govern.SecretPath(d.Company, "0193f2a1-0000-7000-8000-000000000001"), at + "/secrets",
			at + "/secrets", ""},
		{"model.call", govern.ModelPath(d.Company, "openai", "gpt-4o"), at + "/models/openai", at + "/models/openai/gpt-4o",
			"/network/models/openai"},
		{"network.egress", govern.HostPath(d.Company, "api.example.com"), at + "/hosts", at + "/hosts/com/example",
			"/network/hosts/com"},
	} {
		act := func(agent string) error {
			j := govern.Judge(d.Tx, govern.Local{
				Action:  x.action,
				Target:  x.target,
				Agent:   agent,
				Company: d.Company,
				At:      d.Now,
			})
			if j.Refusal == nil {
				return nil
			}
			j.Decision.Company = d.Company
			if err := d.ByNode("n1", govern.KindRecord, govern.Record{Decisions: []govern.Decision{j.Decision}}); err != nil {
				t.Fatalf("%s: the node records it: %v", x.action, err)
			}
			if !govern.DeniedByAccess(j.Refusal) || !strings.Contains(j.Refusal.Error(), "the agent may not use ") {
				t.Fatalf("%s: %v", x.action, j.Refusal)
			}
			return j.Refusal
		}
		if err := act(ada); err != nil {
			t.Fatalf("%s without a policy: %v", x.action, err)
		}
		permitTree(t, d, rules.SaveTreeGrant{Path: x.closed, Subject: "*", Deny: true})
		if act(ada) == nil || act(bob) == nil {
			t.Fatalf("%s: closed, and it happens", x.action)
		}
		permitTree(t, d, rules.SaveTreeGrant{Path: x.open, Subject: "agent:" + ada, Role: "operator"})
		if err := act(ada); err != nil || act(bob) == nil {
			t.Fatalf("%s: open for Ada alone: %v", x.action, err)
		}
		if x.mesh != "" {
			permitTree(t, d, rules.SaveTreeGrant{Path: x.mesh, Subject: "company:" + string(d.Company), Deny: true})
			if err := act(ada); err == nil || !strings.Contains(err.Error(), ": on "+x.mesh+" for company:") {
				t.Fatalf("%s: denied by the mesh: %v", x.action, err)
			}
		}
		replayed(t, d)
	}
	tree, err := rules.Tree(d.Tx)
	if err != nil || tree.At(at+"/hosts/com/example", 0) == nil || tree.At("/network/models/openai", 0) == nil {
		t.Errorf("what a grant names does not stand in the tree: %v", err)
	}
	for _, p := range []string{at + "/hosts/com", "/companies/none/hosts/com"} {
		err := d.Do(companytest.Board, "resource_tree.grant", rules.SaveTreeGrant{Path: p, Subject: "*", Deny: true}, nil)
		if there := !strings.Contains(p, "none"); (err == nil) != there {
			t.Errorf("grant on %s: %v", p, err)
		}
	}
}

// Who may not use the environment prod does nothing in a company that is in it, whatever else is granted.
func TestEnvironmentsHaveAPolicy(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	permitTree(t, d, rules.SaveTreeGrant{Path: "/environments/prod", Subject: "*", Deny: true})
	permitTree(t, d, rules.SaveTreeGrant{Path: "/environments/prod", Subject: "agent:" + ada, Role: "operator",
		Until: core.TimeOf(d.Now.Add(time.Hour))})
	act := func(agent, name string) error {
		return do(d, companytest.As{Agent: agent, Run: d.Run(agent)}, "label.create", label(d, name))
	}
	if err := act(bob, "a"); err != nil {
		t.Fatalf("not in prod: %v", err)
	}
	d.Must(t, companytest.Board, govern.KindPlace, govern.SetPlace{Class: new(governance.EnvironmentClass("prod"))}, nil)
	if err := act(bob, "b"); err == nil ||
		!strings.Contains(err.Error(), "may not use /environments/prod: on /environments/prod") {
		t.Errorf("Bob in prod: %v", err)
	}
	if err := act(ada, "c"); err != nil {
		t.Errorf("Ada in prod: %v", err)
	}
	replayed(t, d)
}

// The constitution knows which companies may have grants, so that the others do not look for any. When the last grant
// is gone, nobody does.
func TestWhereAPolicyIs(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	at := "/companies/" + string(d.Company)
	now := func() govern.Constitution {
		s, err := govern.InForce(d.Tx)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if now().Policies {
		t.Fatal("there is a policy already")
	}
	permitTree(t, d, rules.SaveTreeGrant{Path: at, Subject: "*", Role: "viewer"})
	one := now().PolicyOf
	if one == 0 || one&(one-1) != 0 {
		t.Errorf("one company: %b", one)
	}
	permitTree(t, d, rules.SaveTreeGrant{Path: "/kernel", Subject: "*", Role: "viewer"})
	if all := now().PolicyOf; all != 1<<64-1 {
		t.Errorf("the kernel's tools are every company's: %b", all)
	}
	d.Must(t, companytest.Board, "resource_tree.revoke", rules.DropTreeGrant{Path: "/kernel", Subject: "*"}, nil)
	if left := now().PolicyOf; left != one {
		t.Errorf("left: %b, want %b", left, one)
	}
	d.Must(t, companytest.Board, "resource_tree.revoke", rules.DropTreeGrant{Path: at, Subject: "*"}, nil)
	if s := now(); s.Policies || s.PolicyOf != 0 {
		t.Errorf("without any: %t %b", s.Policies, s.PolicyOf)
	}
}

// Acts about a node ask the path of the node: a denial there stops a person whom it names, and nobody else, from what
// sets the node up, from admitting nodes and from processes there; a nearer grant permits it. What is said of all, and
// what other paths say, is not about people. What was denied is decided the same again.
func TestNodesHaveAPolicy(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	kim, lee := "kim", "lee"
	one, two := core.NodePath("n1"), core.NodePath("n2")
	grant := func(p, subject string, role governance.TreeRole) {
		t.Helper()
		g := govern.TreeGrant{Path: p, Subject: subject, Role: string(role), Deny: role == ""}
		if err := govern.PutTreeGrant(d.Tx, g); err != nil {
			t.Fatal(err)
		}
	}
	weigh := func(who, kind string, payload any) error {
		c := d.Context(companytest.Board, kind, payload)
		c.Cmd.Actor, c.Cmd.Company = ledger.Actor{Type: "user", ID: who}, ""
		c.Tx = d.Tx.Child()
		err := govern.Weigh(c)
		c.Tx.Merge()
		return err
	}
	acts := func(node string) map[string]any {
		return map[string]any{company.KindNodeCordon: company.Cordon{Node: node, Drain: true},
			company.KindNodeUncordon: company.Uncordon{Node: node},
			ledger.KindNodeRevoke:    ledger.NodeRevoke{Node: identity.NodeID(node)},
			ledger.KindNodeUpdate:    ledger.NodeUpdate{Node: identity.NodeID(node), Labels: &[]string{"gpu"}},
			replica.KindSpawn:        replica.Order{Node: node}, replica.KindElevate: replica.Order{Node: node, PID: 3},
			replica.KindKill: replica.Order{Node: node, PID: 3}, replica.KindDeclare: replica.Declare{Node: node}}
	}
	want := func(when, who, node, said string) {
		t.Helper()
		for kind, payload := range acts(node) {
			err := weigh(who, kind, payload)
			if said == "" && err != nil || said != "" && (!govern.DeniedByAccess(err) || !strings.Contains(err.Error(), said)) {
				t.Fatalf("%s, %s of %s: %v, want %q", when, kind, node, err, said)
			}
		}
		// What nobody asks for again is asked without a command: the start of a declared process, and each restart.
		if why := govern.PersonAt(d.Tx, who, core.TimeOf(d.Now))(node); (why != "") != (said != "") {
			t.Fatalf("%s, a process of %s on %s: %q, want %q", when, who, node, why, said)
		}
	}
	want("without a policy", kim, "n1", "")
	grant("/network", "*", "")
	grant("/companies", "user:kim", "")
	want("closed to all agents", kim, "n1", "")
	grant(one, "user:kim", "")
	want("denied", kim, "n1", "user:kim may not ")
	want("denied", kim, "n1", one+": on "+one+" for user:kim it is denied")
	want("another node", kim, "n2", "")
	want("another person", lee, "n1", "")
	if err := weigh(kim, ledger.KindTokenCreate, ledger.TokenCreate{}); err != nil {
		t.Fatalf("admission: %v", err)
	}
	grant(core.PeersPath, "user:lee", "")
	want("denied above", lee, "n2", two+": on "+core.PeersPath+" for user:lee it is denied")
	for kind, payload := range map[string]any{ledger.KindTokenCreate: ledger.TokenCreate{},
		ledger.KindNodeAdmit: ledger.NodeAdmit{}} {
		if err := weigh(lee, kind, payload); !govern.DeniedByAccess(err) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	grant(two, "user:lee", governance.TreeAdmin)
	want("granted nearer", lee, "n2", "")
	drop := rules.DropTreeGrant{Path: core.PeersPath, Subject: "user:lee"}
	if err := weigh(lee, "resource_tree.revoke", drop); err != nil {
		t.Errorf("what is said of a node keeps nobody from changing it: %v", err)
	}
	if why := govern.PersonAt(d.Tx, "", core.TimeOf(d.Now))("n1"); why != "" {
		t.Errorf("a process that nobody asked for: %s", why)
	}
	denied := slices.DeleteFunc(slices.Collect(govern.Decisions(d.Tx, "", govern.Query{})),
		func(x govern.Decision) bool { return x.Said.Verdict != governance.Deny })
	if len(denied) == 0 {
		t.Fatal("no denial is kept")
	}
	for _, x := range denied {
		if x.Act.Target == "" || x.Beside == nil || x.Beside.Access == nil || !again(t, d, x).Equal(x.Said) {
			t.Errorf("kept as %+v", x)
		}
	}
}

// Runs of an agent are not placed on a node that the policy keeps from the agent, its company or all.
func TestRunsHaveAPolicyOfTheirNode(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	says := func(agent, node string) string {
		return govern.RunsAt(d.Tx, d.Company, agent, core.TimeOf(d.Now))(node)
	}
	if why := says(ada, "n1"); why != "" {
		t.Fatal(why)
	}
	for _, g := range []govern.TreeGrant{{Path: core.PeersPath, Subject: "*", Deny: true},
		{Path: core.NodePath("n2"), Subject: "company:" + string(d.Company), Role: "operator"},
		{Path: core.NodePath("n2"), Subject: "agent:" + bob, Deny: true}} {
		if err := govern.PutTreeGrant(d.Tx, g); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct{ agent, node, want string }{
		{ada, "n1", "the agent may not use /network/peers/n1: on /network/peers for * it is denied"},
		{ada, "n2", ""},
		{bob, "n2", "the agent may not use /network/peers/n2: on /network/peers/n2 for agent:" + bob + " it is denied"},
	} {
		if got := says(x.agent, x.node); got != x.want {
			t.Errorf("%s: %q, want %q", x.node, got, x.want)
		}
	}
}
