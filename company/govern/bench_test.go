package govern_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/governance"
)

// BenchmarkWeigh measures what the gate adds to a checkout and to a budget, with each pack.
func BenchmarkWeigh(b *testing.B) {
	for _, p := range governance.Packs() {
		d := companytest.NewDesk(b)
		var a govern.Amendment
		d.Must(b, companytest.Board, govern.KindPropose, govern.Draft{Change: p.ChangeTo(governance.Genesis()),
			Environment: &p.Environment, Pack: p.Name}, &a)
		d.Must(b, companytest.Board, govern.KindSign, govern.Sign{Amendment: a.ID}, nil)
		d.Must(b, companytest.Board, govern.KindEnact, govern.NameAmendment{Amendment: a.ID}, nil)
		ada := d.Agent("Ada")
		as := companytest.As{Agent: ada, Run: d.Run(ada)}
		for _, kind := range []string{company.KindIssueCheckout, company.KindAgentUpdate} {
			like := *d.Context(as, kind, nil)
			b.Run(p.Name+"/"+kind, func(b *testing.B) {
				for b.Loop() {
					c := like // without the lines that the last one recorded
					c.Tx = d.Tx.Child()
					_ = govern.Weigh(&c)
				}
			})
		}
	}
}

// BenchmarkPolicy measures what the access policy of the resource tree adds to a command of an agent that no rule is
// about: in a mesh without grants, in a company without any while others have some, and where grants are for the agent.
func BenchmarkPolicy(b *testing.B) {
	for _, name := range []string{"none", "elsewhere", "granted"} {
		d := companytest.NewDesk(b)
		d.Found(b, "Acme")
		of := d.Company
		if name == "elsewhere" {
			d.Found(b, "Other")
		}
		at := "/companies/" + string(d.Company)
		if name != "none" {
			d.Must(b, companytest.Board, "resource_tree.grant", rules.SaveTreeGrant{Path: at, Subject: "*", Deny: true}, nil)
			d.Must(b, companytest.Board, "resource_tree.grant", rules.SaveTreeGrant{Path: at,
				Subject: "company:" + string(d.Company), Role: "operator"}, nil)
		}
		d.Company = of
		ada := d.Agent("Ada")
		like := *d.Context(companytest.As{Agent: ada, Run: d.Run(ada)}, company.KindIssueCheckout, nil)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c := like
				c.Tx = d.Tx.Child()
				if err := govern.Weigh(&c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReplay measures how fast decisions are decided again.
func BenchmarkReplay(b *testing.B) {
	d := companytest.NewDesk(b)
	ada := d.Agent("Ada")
	x, _, _ := govern.WeighLocal(d.Tx, govern.Local{Action: "exec", Agent: ada, Company: d.Company})
	s, err := govern.InForce(d.Tx)
	if err != nil {
		b.Fatal(err)
	}
	g, err := govern.GateOf(d.Tx, s)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if !x.Again(g).Equal(x.Said) {
			b.Fatal("differs")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
