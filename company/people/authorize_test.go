package people_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// The matrix of the specification (§9.3), with its rules for keys and the mesh: b is the
// board, a an agent of the company, n a node.
const matrix = `
company.create b        company.update b         company.archive b       company.delete bn
agent.create b          agent.pause b            agent.resume b          agent.terminate b
agent.delete b          agent.permissions b      agent_key.create b      agent_key.revoke b
agent.update ba         goal.create ba           project.create ba       goal.delete b
issue.create ba         issue.update ba          issue.checkout ba       issue.release ba
issue.force_release b   comment.create ba        cost.report ban         budget.set ba
budget.resolve b        agent.wake ban           run.cancel ban          run.start n
run.finish n            timer.tick n             node.lost n             activity.note bn
`

func TestPermissionMatrix(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hire(t, "Ada", "")
	key := d.ID()
	d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: key, Agent: ada, Name: "k",
		Hash: strings.Repeat("0a", 32)}, nil)
	actors := map[string]struct {
		actor ledger.Actor
		cred  ledger.Credential
	}{
		"b": {ledger.Actor{Type: "user", ID: "local-board"}, ledger.Credential{Kind: "local"}},
		"a": {ledger.Actor{Type: "agent", ID: ada}, ledger.Credential{Kind: "agent_key", ID: key}},
		"n": {ledger.Actor{Type: "node", ID: "n1"}, ledger.Credential{Kind: "node", ID: "n1"}},
	}
	fields := strings.Fields(matrix)
	for i := 0; i < len(fields); i += 2 {
		kind, who := fields[i], fields[i+1]
		for name, a := range actors {
			c := d.Context(companytest.Board, kind, nil)
			c.Cmd.Actor, c.Cmd.Credential, c.Mesh, c.Origin = a.actor, a.cred, "m", "n1"
			err := people.Authorize(c)
			if strings.Contains(who, name) {
				if err != nil {
					t.Errorf("%s by %s: %v", kind, name, err)
				}
				continue
			}
			text := "The actor may not do this"
			if name == "a" {
				text = "Board access required"
			}
			companytest.WantRefusal(t, err, ledger.Forbidden, text)
		}
	}
}

func TestEveryKindHasARowAndSomebodyWhoCarriesItOut(t *testing.T) {
	t.Parallel()
	ofLedger := []string{ledger.KindGenesis, ledger.KindNodeAdmit, ledger.KindNodeUpdate, ledger.KindNodeRevoke,
		ledger.KindTokenCreate, ledger.KindTokenRevoke, ledger.KindOwnerAdd,
		ledger.KindSessionOpen, ledger.KindSessionEnd, ledger.KindSessionLease, ledger.KindTimeStep, ledger.KindFeatureRaise,
		ledger.KindKeysRotate, ledger.KindEpoch}
	for _, k := range ofLedger {
		if row, ok := company.KindOf(k); !ok || row.Do != nil {
			t.Errorf("%s has no row, or a handler beside the ledger's", k)
		}
	}
	handlers := rules.Handlers()
	for _, k := range company.Kinds() {
		if handlers[k.Name] == nil && !slices.Contains(ofLedger, k.Name) {
			t.Errorf("nobody carries %s out", k.Name)
		}
		if k.Has(company.SeldomWork | company.NoWork) {
			t.Errorf("%s gives work seldom, and never", k.Name)
		}
	}
	if _, ok := company.KindOf("nobody.knows"); ok {
		t.Error("a kind that nobody knows has a row")
	}
}

func TestCredentialsAreCheckedWhenTheCommandIsApplied(t *testing.T) {
	t.Parallel()
	const bad = "Agent token did not verify; obtain fresh credentials and retry"
	d := companytest.NewDesk(t)
	ada, bob := d.Hire(t, "Ada", ""), d.Hire(t, "Bob", "")
	key, other := d.ID(), d.ID()
	d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: key, Agent: ada, Name: "k",
		Hash: strings.Repeat("01", 32)}, nil)
	d.Must(t, companytest.Board, "agent_key.create", people.CreateKey{ID: other, Agent: bob, Name: "k",
		Hash: strings.Repeat("02", 32)}, nil)
	run, bobs := d.Run(ada), d.Run(bob)
	ask := func(change func(c *ledger.Context)) error {
		c := d.Context(companytest.As{Agent: ada}, "issue.create", nil)
		c.Cmd.Credential, c.Mesh, c.Origin = ledger.Credential{Kind: "agent_key", ID: key}, "m", "n1"
		change(c)
		return people.Authorize(c)
	}
	byRun := func(c *ledger.Context) { c.Cmd.Credential = ledger.Credential{Kind: "run", ID: run} }
	for name, f := range map[string]func(c *ledger.Context){
		"its key":         func(*ledger.Context) {},
		"its run":         byRun,
		"its run, twice":  func(c *ledger.Context) { byRun(c); c.Cmd.Run = run },
		"its key and run": func(c *ledger.Context) { c.Cmd.Run = run },
		"the local board": func(c *ledger.Context) {
			c.Cmd.Actor, c.Cmd.Credential = ledger.Actor{Type: "user", ID: "local-board"}, ledger.Credential{Kind: "local"}
		},
		"a node for itself": func(c *ledger.Context) {
			c.Cmd.Kind = "run.start"
			c.Cmd.Actor, c.Cmd.Credential = ledger.Actor{Type: "node", ID: "n1"}, ledger.Credential{Kind: "node", ID: "n1"}
		},
	} {
		if err := ask(f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	unauthorized := map[string]func(c *ledger.Context){
		"another's key":        func(c *ledger.Context) { c.Cmd.Credential.ID = other },
		"an unknown key":       func(c *ledger.Context) { c.Cmd.Credential.ID = d.ID() },
		"another's run":        func(c *ledger.Context) { c.Cmd.Credential = ledger.Credential{Kind: "run", ID: bobs} },
		"no credential":        func(c *ledger.Context) { c.Cmd.Credential = ledger.Credential{} },
		"a board's credential": func(c *ledger.Context) { c.Cmd.Credential = ledger.Credential{Kind: "local"} },
		"an agent that is not": func(c *ledger.Context) { c.Cmd.Actor.ID = d.ID() },
		"a malformed agent":    func(c *ledger.Context) { c.Cmd.Actor.ID = "../" + ada },
		"a board with a key":   func(c *ledger.Context) { c.Cmd.Actor = ledger.Actor{Type: "user", ID: "local-board"} },
		"an unknown actor":     func(c *ledger.Context) { c.Cmd.Actor.Type = "robot" },
		"a node for another one": func(c *ledger.Context) {
			c.Cmd.Actor, c.Cmd.Credential = ledger.Actor{Type: "node", ID: "n2"}, ledger.Credential{Kind: "node", ID: "n2"}
		},
	}
	for name, f := range unauthorized {
		if r := companytest.Refused(t, ask(f)); r.Code != ledger.Unauthorized {
			t.Errorf("%s: %s %q", name, r.Code, r.Message)
		}
	}
	mismatch := companytest.Refused(t, ask(func(c *ledger.Context) { byRun(c); c.Cmd.Run = bobs }))
	if mismatch.Code != ledger.Unprocessable || mismatch.ErrCode != "agent_jwt_run_id_mismatch" {
		t.Errorf("another run than the token's: %+v", mismatch)
	}
	companytest.WantRefusal(t, ask(func(c *ledger.Context) { c.Cmd.Run = bobs }), ledger.Forbidden,
		"The run is not one of this agent")

	home := d.Company
	d.Found(t, "Beta")
	beta := d.Company
	d.Company = home
	companytest.WantRefusal(t, ask(func(c *ledger.Context) { c.Cmd.Company = beta }), ledger.Forbidden,
		"Agent key cannot access another company")
	companytest.WantRefusal(t, ask(func(c *ledger.Context) {
		c.Cmd.Actor, c.Cmd.Credential, c.Cmd.Company = ledger.Actor{Type: "user", ID: "local-board"},
			ledger.Credential{Kind: "local"}, ledger.CompanyID(d.ID())
	}), ledger.NotFound, "Company not found")

	d.Must(t, companytest.Board, "agent_key.revoke", people.RevokeKey{ID: key, Agent: ada}, nil)
	companytest.WantRefusal(t, ask(func(*ledger.Context) {}), ledger.Unauthorized, bad)
	if err := ask(byRun); err != nil {
		t.Errorf("a revoked key ends the run's credential, too: %v", err)
	}
	d.EndRun(run)
	companytest.WantRefusal(t, ask(byRun), ledger.Unauthorized, bad)
	d.Must(t, companytest.Board, "agent.terminate", company.ChangeAgent{Agent: bob}, nil)
	companytest.WantRefusal(t, ask(func(c *ledger.Context) { c.Cmd.Actor.ID, c.Cmd.Credential.ID = bob, other }),
		ledger.Unauthorized, bad)
}

// Genesis is authorised before there is a mesh or a node.
func TestGenesisIsAuthorised(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	c := d.Context(companytest.Board, ledger.KindGenesis, nil)
	c.Cmd.Company, c.Cmd.Actor, c.Cmd.Credential = "", ledger.Actor{Type: "node", ID: "n1"},
		ledger.Credential{Kind: "node", ID: "n1"}
	c.Origin = identity.NodeID("n1")
	if err := people.Authorize(c); err != nil {
		t.Error(err)
	}
}

func TestPrefetchNamesTheRowsThatAreRead(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Hire(t, "Ada", "")
	run := d.Run(ada)
	i := d.Issue(t, company.CreateIssue{Status: entity.IssueTodo})
	cmd := d.Context(companytest.As{Agent: ada, Run: run}, "issue.checkout", company.CheckOutIssue{Issue: i.ID,
		Agent: ada}).Cmd
	cmd.Credential = ledger.Credential{Kind: "run", ID: run}
	got := map[string]bool{}
	people.Prefetch(cmd, func(k []byte) { got[string(k)] = true })
	for _, k := range [][]byte{entity.CompanyTable.Key(d.Company, d.Company), entity.AgentTable.Key(d.Company, ada),
		entity.RunTable.Key(d.Company, run), entity.IssueTable.Key(d.Company, i.ID), core.OwnerKey(ada)} {
		if !got[string(k)] || !d.Tx.Has(k) {
			t.Errorf("%s is named %t, and there %t", k, got[string(k)], d.Tx.Has(k))
		}
	}
	cmd.Company = "a/b"
	people.Prefetch(cmd, func(k []byte) { t.Errorf("%s is named for a malformed company", k) })
}
