package rules_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/ledgertest"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// A benched node is the apply of one node with a company of 64 agents that have runs, without a mesh around it.
type benched struct {
	b            *testing.B
	world        *ledgertest.World
	l            *ledger.Ledger
	session, seq uint64
	now          time.Time
	n            int // commands made so far
}

const (
	benchAgents = 64
	benchBatch  = 48 // commands in a batch, as on a busy mesh
)

var benchCompany = ledger.CompanyID(companytest.UID(1))

func benchID(kind, n int) string { return companytest.UID(kind*100_000 + n) }

// newBenched opens the state and seeds it. The kinds of more are carried out without asking who may.
func newBenched(b *testing.B, gate func(*ledger.Context) error, more ledger.Mux) *benched {
	db, err := store.Open(b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	mux := rules.Handlers()
	maps.Copy(mux, more)
	mux["bench.seed"] = func(c *ledger.Context) ([]byte, error) {
		entity.CompanyTable.Put(c.Tx, benchCompany, benchCompany, entity.Company{ID: benchCompany, Name: "Acme",
			Status: "active", IssuePrefix: "ACM"})
		for n := range benchAgents {
			a := entity.Agent{ID: benchID(2, n), Company: benchCompany, Name: fmt.Sprint("Agent ", n), Status: entity.AgentIdle}
			entity.AgentTable.Put(c.Tx, benchCompany, a.ID, a)
			entity.RunTable.Put(c.Tx, benchCompany, benchID(3, n), entity.Run{ID: benchID(3, n), Company: benchCompany,
				Agent: a.ID, Status: entity.RunRunning, Source: entity.WakeOnDemand, StartedAt: 1})
			people.AgentKeys.Put(c.Tx, benchCompany, benchID(4, n), people.AgentKey{ID: benchID(4, n), Agent: a.ID,
				Name: "bench"})
		}
		return nil, nil
	}
	b.Cleanup(func() { db.Close() })
	keys := identity.Derive(sha256.Sum256([]byte("bench")))
	m := &benched{b: b, now: time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)}
	m.world = ledgertest.Found(b, ledger.Config{Span: db.Span('s'), Mux: mux, Prefetch: people.Prefetch, Gate: gate,
		Authorize: func(c *ledger.Context) error {
			if strings.HasPrefix(c.Cmd.Kind, "bench.") {
				return nil
			}
			return people.Authorize(c)
		}}, keys, ledgertest.Genesis(keys, "bench", m.now), func() time.Time {
		m.now = m.now.Add(10 * time.Millisecond)
		return m.now
	})
	m.l, m.session, m.seq = m.world.Ledger, m.world.OpenSession(), 1
	m.apply(ledgertest.By(keys, "bench.seed", nil))
	return m
}

// entry makes the next entry of the log.
func (m *benched) entry(cmds ...ledger.Command) ledger.LogEntry {
	first := m.seq
	m.seq += uint64(len(cmds))
	return m.world.Entry(m.world.Keys, m.session, first, cmds...)
}

// apply applies commands, none of which may be refused.
func (m *benched) apply(cmds ...ledger.Command) []ledger.Receipt {
	m.b.Helper()
	first := m.seq
	m.seq += uint64(len(cmds))
	return m.world.Must(m.session, first, cmds...)
}

// byAgent is a command of one of the agents, under its run.
func (m *benched) byAgent(who int, kind string, p any) ledger.Command {
	return ledger.Command{Kind: kind, Company: benchCompany, Actor: ledger.Actor{Type: "agent", ID: benchID(2, who)},
		Run:        benchID(3, who),
		Credential: ledger.Credential{Kind: "agent_key", ID: benchID(4, who)}, Payload: ledger.Marshal(p)}
}

// costs makes batches of cost events.
func (m *benched) costs(batches int) (log []ledger.LogEntry) {
	for range batches {
		cmds := make([]ledger.Command, benchBatch)
		for i := range cmds {
			m.n++
			who := m.n % benchAgents
			cmds[i] = m.byAgent(who, "cost.report", money.ReportCost{Event: money.CostEvent{
				ID: uuid.Must(uuid.NewV7()).String(), Agent: benchID(2, who), Provider: "openai", Model: "gpt-5", InputTokens: 1200,
				OutputTokens: 340,
				Cost:         core.Cents(1), OccurredAt: core.TimeOf(m.now)}})
		}
		log = append(log, m.entry(cmds...))
	}
	return log
}

// BenchmarkApplyCosts measures what a cost event costs one node's apply, in batches of 48
// events of as many agents, as on a busy mesh. cpu-ns/op is the CPU time of all threads,
// which other load on the machine disturbs less than the elapsed time.
func BenchmarkApplyCosts(b *testing.B) {
	ledger.CheckHot = false
	defer func() { ledger.CheckHot = true }()
	m := newBenched(b, govern.Weigh, nil)
	log, left := m.costs(8192/benchBatch), 0 // outside the measured time
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
			log = m.costs(8192 / benchBatch)
			at = cpuNanos()
			b.StartTimer()
		}
		m.l.ApplyBatch(log[:1])
		log, left = log[1:], benchBatch-1
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
