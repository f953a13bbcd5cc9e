package rules_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/ledgertest"
)

// BenchmarkGateInApply measures what the gate costs the apply of one node: rounds of checkouts and of cost events
// without a gate and with the pack standard, batch by batch in turns, so that other load on the machine meets both. A
// round is 8160 commands of each in batches of 48; -benchtime 5x gives five rounds. The metrics are medians of the
// batches' CPU times of all threads: a flush, a compaction or a collection of garbage falls on few of them. loss-% is
// the loss of rate between the medians, mean-loss-% that of the rounds' sums, in the median of the rounds.
func BenchmarkGateInApply(b *testing.B) {
	const batches = 170
	for _, what := range []string{"checkout", "cost"} {
		b.Run(what, func(b *testing.B) {
			ledger.CheckHot = false
			defer func() { ledger.CheckHot = true }()
			off, on := gated(b, nil), gated(b, govern.Weigh)
			var times [2][]float64 // of batches, without and with the gate
			var losses []float64
			round := func() (loss float64) {
				make := (*benched).costs
				if what == "checkout" {
					make = (*benched).checkouts
				}
				nodes, logs := []*benched{off, on}, [][]ledger.LogEntry{make(off, batches), make(on, batches)}
				used := [2]int64{}
				runtime.GC()
				for i := range batches {
					for turn := range nodes {
						which := (turn + i) % 2 // both are first as often
						at := cpuNanos()
						result := nodes[which].l.ApplyBatch(logs[which][i : i+1])[0]
						took := cpuNanos() - at
						used[which] += took
						times[which] = append(times[which], float64(took)/benchBatch)
						if rs, err := ledger.DecodeReceipts(result); err != nil || rs[0].Refusal != nil {
							b.Fatal(err, rs[0].Refusal)
						}
					}
				}
				return 100 * (1 - float64(used[0])/float64(used[1]))
			}
			round()
			times = [2][]float64{}
			for b.Loop() {
				losses = append(losses, round())
			}
			without, with := median(times[0]), median(times[1])
			b.ReportMetric(without, "off-cpu-ns/command")
			b.ReportMetric(with, "on-cpu-ns/command")
			b.ReportMetric(100*(1-without/with), "loss-%")
			b.ReportMetric(median(losses), "mean-loss-%")
		})
	}
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// gated opens a node with a gate, brings the pack standard into force and makes issues to check out.
func gated(b *testing.B, gate func(*ledger.Context) error) *benched {
	all, more := rules.Handlers(), ledger.Mux{}
	for _, kind := range []string{govern.KindPropose, govern.KindSign, govern.KindEnact} {
		more["bench."+kind] = all[kind]
	}
	more["bench.issue"] = func(c *ledger.Context) ([]byte, error) {
		var first int
		if err := ledger.Unmarshal(c.Cmd.Payload, &first); err != nil {
			return nil, err
		}
		for n := first; n < first+benchBatch; n++ {
			entity.IssueTable.Put(c.Tx, benchCompany, benchID(5, n), entity.Issue{ID: benchID(5, n), Company: benchCompany,
				Number: uint64(n), Identifier: fmt.Sprint("ACM-", n),
				Status: entity.IssueTodo, Priority: entity.PriorityMedium, Title: "Find out what the gripper can hold"})
		}
		return nil, nil
	}
	m := newBenched(b, gate, more)
	pack, _ := governance.PackOf("standard")
	m.apply(ledgertest.By(m.world.Keys, "bench."+govern.KindPropose,
		govern.Draft{Change: pack.ChangeTo(governance.Genesis()), Pack: pack.Name}))
	m.apply(ledgertest.By(m.world.Keys, "bench."+govern.KindSign, govern.Sign{Amendment: "1"}))
	m.apply(ledgertest.By(m.world.Keys, "bench."+govern.KindEnact, govern.NameAmendment{Amendment: "1"}))
	return m
}

// checkouts makes issues and batches of commands that check them out.
func (m *benched) checkouts(batches int) (log []ledger.LogEntry) {
	first := m.n
	for n := range batches {
		m.apply(ledgertest.By(m.world.Keys, "bench.issue", first+1+n*benchBatch))
	}
	for range batches {
		cmds := make([]ledger.Command, benchBatch)
		for i := range cmds {
			m.n++
			who := m.n % benchAgents
			cmds[i] = m.byAgent(who, company.KindIssueCheckout, company.CheckOutIssue{Issue: benchID(5, m.n),
				Agent: benchID(2, who), Expected: []entity.IssueStatus{entity.IssueTodo}})
		}
		log = append(log, m.entry(cmds...))
	}
	return log
}
