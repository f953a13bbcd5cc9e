package rules_test

import (
	"crypto/sha256"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// BenchmarkApplyCosts measures what a cost event costs one node's apply, in batches of 48
// events of as many agents, as on a busy mesh. cpu-ns/op is the CPU time of all threads,
// which other load on the machine disturbs less than the elapsed time.
func BenchmarkApplyCosts(b *testing.B) {
	const agentsOf, batch = 64, 48
	ledger.CheckHot = false
	defer func() { ledger.CheckHot = true }()
	db, err := store.Open(b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	mux, of := rules.Handlers(), ledger.CompanyID(companytest.UID(1))
	id := func(kind, n int) string { return companytest.UID(kind*1000 + n) }
	mux["bench.seed"] = func(c *ledger.Context) ([]byte, error) {
		entity.CompanyTable.Put(c.Tx, of, of, entity.Company{ID: of, Name: "Acme", Status: "active", IssuePrefix: "ACM"})
		for n := range agentsOf {
			a := entity.Agent{ID: id(2, n), Company: of, Name: fmt.Sprint("Agent ", n), Status: entity.AgentIdle}
			entity.AgentTable.Put(c.Tx, of, a.ID, a)
			entity.RunTable.Put(c.Tx, of, id(3, n), entity.Run{ID: id(3, n), Company: of, Agent: a.ID, Status: entity.RunRunning, Source: entity.WakeOnDemand, StartedAt: 1})
			people.AgentKeys.Put(c.Tx, of, id(4, n), people.AgentKey{ID: id(4, n), Agent: a.ID, Name: "bench"})
		}
		return nil, nil
	}
	l, err := ledger.Open(ledger.Config{Span: db.Span('s'), Mux: mux, Prefetch: people.Prefetch, Authorize: func(c *ledger.Context) error {
		if c.Cmd.Kind == "bench.seed" {
			return nil
		}
		return people.Authorize(c)
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	keys := identity.Derive(sha256.Sum256([]byte("bench")))
	g := ledger.Genesis{Name: "bench", CreatedAt: 1, Founder: ledger.NewNode{Key: keys.Public(), SealCert: keys.Certificate(identity.ForSeal).Encode(), Name: "bench"},
		Wrapped: ledger.NodeKeys{Node: keys.ID(), Epoch: 1, Data: []byte("data"), Gossip: []byte("gossip")}}
	mesh, node := identity.MeshIDOf(ledger.Marshal(g)), string(keys.ID())
	var index, session uint64
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	entry := func(first uint64, cmds ...ledger.Command) ledger.LogEntry {
		data := ledger.EncodeBatch(mesh, keys.ID(), session, first, first, cmds, keys.Sign)
		now = now.Add(10 * time.Millisecond)
		ledger.StampBatch(data, now)
		index++
		return ledger.LogEntry{Index: index, Term: 1, Data: data}
	}
	apply := func(e ledger.LogEntry) {
		rs, err := ledger.DecodeReceipts(l.ApplyBatch([]ledger.LogEntry{e})[0])
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rs {
			if r.Refusal != nil {
				b.Fatal(r.Refusal)
			}
		}
		if session == 0 {
			session = rs[0].Height
		}
	}
	self := func(kind string, p any) ledger.Command {
		return ledger.Command{Kind: kind, Actor: ledger.Actor{Type: "node", ID: node}, Credential: ledger.Credential{Kind: "node", ID: node}, Payload: ledger.Marshal(p)}
	}
	apply(entry(0, self(ledger.KindGenesis, g)))
	session = 0
	apply(entry(0, self(ledger.KindSessionOpen, ledger.SessionOpen{Incarnation: "1", Nonce: "1"})))
	apply(entry(1, self("bench.seed", nil)))
	n, seq := 0, uint64(2)
	write := func() []ledger.LogEntry { // outside the measured time
		var log []ledger.LogEntry
		for range 8192 / batch {
			cmds := make([]ledger.Command, batch)
			for i := range cmds {
				n++
				who := n % agentsOf
				cmds[i] = ledger.Command{Kind: "cost.report", Company: of, Actor: ledger.Actor{Type: "agent", ID: id(2, who)}, Run: id(3, who),
					Credential: ledger.Credential{Kind: "agent_key", ID: id(4, who)}, Payload: ledger.Marshal(money.ReportCost{Event: money.CostEvent{
						ID: uuid.Must(uuid.NewV7()).String(), Agent: id(2, who), Provider: "openai", Model: "gpt-5", InputTokens: 1200, OutputTokens: 340,
						Cost: core.Cents(1), OccurredAt: core.TimeOf(now)}})}
			}
			log = append(log, entry(seq, cmds...))
			seq += batch
		}
		return log
	}
	log, left := write(), 0
	var used int64
	at := cpuNanos()
	b.ReportAllocs()
	for b.Loop() {
		if left > 0 {
			left--
			continue
		}
		if len(log) == 0 {
			b.StopTimer()
			used += cpuNanos() - at
			log = write()
			at = cpuNanos()
			b.StartTimer()
		}
		l.ApplyBatch(log[:1])
		log, left = log[1:], batch-1
	}
	b.ReportMetric(float64(used+cpuNanos()-at)/float64(b.N), "cpu-ns/op")
}

// cpuNanos returns the CPU time that the process has used.
func cpuNanos() int64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return r.Utime.Nano() + r.Stime.Nano()
}
