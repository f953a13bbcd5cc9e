package govern_test

import (
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/govern"
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
