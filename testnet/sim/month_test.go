package sim

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// A stopped is a scope that ran into its limits in January.
type stopped struct {
	what    string
	company ledger.CompanyID
	kind    entity.ScopeType
	id      string
	agent   string // whose work it stops
	issue   string // that the agent was given when the scope was stopped
	goesOn  bool   // when the month ends
}

// What a month's hard stop has stopped goes on when the month ends, UTC, though
// nobody asks a mesh at rest for anything: agents, projects and companies, on every
// node. Their sums begin anew, what the board was asked is withdrawn, and the work
// that came meanwhile begins. What a lifetime's limit or a person has stopped stays so.
func TestAMonthsHardStopEndsWithTheMonth(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	if *verbose {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	dir, turn := t.TempDir(), time.Date(2000, 2, 1, 0, 0, 0, 0, time.UTC)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(turn.Add(-10 * time.Minute)))
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		b := &books{t: t, ctx: ctx, runs: map[string]int{}}
		m, err := New(ctx, 1, 3, dir, log, func(c *node.Config) { c.Adapters = map[string]scheduler.Adapter{"process": b} })
		defer func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(stragglers)
		}()
		if err != nil {
			t.Fatal(err)
		}
		b.m = m
		all := b.exhaust()
		time.Sleep(time.Until(turn.Add(-time.Second)))
		asked := map[ledger.CompanyID][]money.BudgetIncident{} // by company
		for _, s := range all {
			asked[s.company] = b.wantStopped(s)
		}
		time.Sleep(time.Until(turn.Add(5 * time.Minute)))
		for _, s := range all {
			if s.goesOn {
				b.wantGoesOn(s)
			} else {
				b.wantStopped(s)
			}
		}
		b.wantAnswered(asked)
	})
}

// A books is companies with limits, and the adapter of their agents, whose runs are
// over at once.
type books struct {
	t   *testing.T
	ctx context.Context
	m   *Mesh

	mu   sync.Mutex     // guards what follows
	runs map[string]int // of an issue
}

func (b *books) Status(string) entity.Phase { return entity.PhaseExecute }

func (b *books) Cancel(string, string) {}

func (b *books) Invoke(_ context.Context, inv company.Invocation) company.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs[inv.Run.Context.IssueID]++
	return company.Outcome{Status: entity.RunSucceeded}
}

func (b *books) begun(issue string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs[issue]
}

// ask carries out a command of the board's.
func (b *books) ask(of ledger.CompanyID, kind string, payload any) error {
	b.t.Helper()
	w := world{company: of}
	r, err := b.m.Peers[0].Up().Submit(b.ctx, w.command(kind, payload))
	if err != nil {
		b.t.Fatalf("%s: %v", kind, err)
	}
	return r.Err()
}

func (b *books) must(of ledger.CompanyID, kind string, payload any) {
	b.t.Helper()
	if err := b.ask(of, kind, payload); err != nil {
		b.t.Fatalf("%s: %v", kind, err)
	}
}

// exhaust makes scopes, spends their limits, and then gives their agents work.
func (b *books) exhaust() (all []stopped) {
	for _, c := range []struct {
		what    string
		kind    entity.ScopeType
		windows []money.WindowKind
		paused  bool // by a person, afterwards
		goesOn  bool
	}{
		{"an agent", entity.ScopeAgent, []money.WindowKind{money.WindowMonth}, false, true},
		{"an agent with a lifetime", entity.ScopeAgent, []money.WindowKind{money.WindowLifetime}, false, false},
		{"an agent with both", entity.ScopeAgent, []money.WindowKind{money.WindowMonth, money.WindowLifetime}, false, false},
		{"an agent that a person paused", entity.ScopeAgent, []money.WindowKind{money.WindowMonth}, true, false},
		{"a project", entity.ScopeProject, []money.WindowKind{money.WindowMonth}, false, true},
		{"a project with a lifetime", entity.ScopeProject, []money.WindowKind{money.WindowLifetime}, false, false},
		{"a company", entity.ScopeCompany, []money.WindowKind{money.WindowMonth}, false, true},
		{"a company with a lifetime", entity.ScopeCompany, []money.WindowKind{money.WindowLifetime}, false, false},
	} {
		s := stopped{what: c.what, company: ledger.CompanyID(uuid.NewString()), kind: c.kind, agent: uuid.NewString(),
			issue: uuid.NewString(), goesOn: c.goesOn}
		project := uuid.NewString()
		s.id = map[entity.ScopeType]string{entity.ScopeAgent: s.agent, entity.ScopeProject: project,
			entity.ScopeCompany: string(s.company)}[c.kind]
		b.must(s.company, "company.create", entity.SaveCompany{ID: s.company, Name: new(c.what)})
		b.must(s.company, "project.create", entity.SaveProject{ID: project, Name: new("Rig")})
		b.must(s.company, "agent.create", entity.SaveAgent{ID: s.agent, Name: new("Ada"), AdapterType: new("process"),
			AdapterConfig: json.RawMessage(`{"command":"work"}`)})
		for _, w := range c.windows {
			b.must(s.company, "budget.set", money.SetBudget{Type: s.kind, Scope: s.id, Window: w, Amount: core.Cents(100)})
		}
		b.must(s.company, "cost.report", money.ReportCost{Event: money.CostEvent{ID: uuid.NewString(), Agent: s.agent,
			Project:  core.NullText(project),
			Provider: "p", Model: "m", Cost: core.Cents(130)}})
		if c.paused {
			b.must(s.company, "agent.pause", company.ChangeAgent{Agent: s.agent})
		}
		b.must(s.company, "issue.create", company.CreateIssue{ID: s.issue, Title: "Work", Status: entity.IssueTodo,
			Project: project, Assignee: s.agent})
		err := b.ask(s.company, "issue.checkout", company.CheckOutIssue{Issue: s.issue, Agent: s.agent})
		if r, ok := errors.AsType[*ledger.Refusal](err); !ok || r.Code != ledger.Conflict {
			b.t.Errorf("%s: checked out with %v", s.what, err)
		}
		all = append(all, s)
	}
	return all
}

// A state is what a node knows of a scope now.
type state struct {
	budget money.ScopeBudget
	paused string // why, "" when it is not
	open   []money.BudgetIncident
}

func (b *books) state(l *Life, s stopped) (out state) {
	b.t.Helper()
	if _, err := l.View(b.ctx, ledger.Read{}, func(tx *ledger.Tx) error {
		now := core.TimeOf(time.Now())
		out.budget, out.open = money.BudgetOf(tx, s.company, s.kind, s.id, now), money.OpenIncidents(tx, s.company, now)
		switch s.kind {
		case entity.ScopeAgent:
			a, _ := entity.AgentByID(tx, s.id)
			out.paused = string(a.PauseReason)
		case entity.ScopeProject:
			p, _ := entity.ProjectOf(tx, s.company, s.id)
			out.paused = string(p.PauseReason)
		case entity.ScopeCompany:
			row, _ := entity.CompanyOf(tx, s.company)
			out.paused = string(row.PauseReason)
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// wantStopped fails when a scope is at work on any node, and returns its incidents.
func (b *books) wantStopped(s stopped) (open []money.BudgetIncident) {
	b.t.Helper()
	for _, p := range b.m.Peers {
		if got := b.state(p.Up(), s); got.paused == "" {
			b.t.Errorf("%s: %s says that it goes on", s.what, p.Name)
		} else {
			open = got.open
		}
	}
	if n := b.begun(s.issue); n > 0 {
		b.t.Errorf("%s: %d runs began", s.what, n)
	}
	return open
}

func (b *books) wantGoesOn(s stopped) {
	b.t.Helper()
	for _, p := range b.m.Peers {
		got := b.state(p.Up(), s)
		if got.paused != "" || len(got.open) > 0 || got.budget.Month != 0 || got.budget.Lifetime != core.Cents(130) {
			b.t.Errorf("%s: %s says %+v", s.what, p.Name, got)
		}
	}
	if n := b.begun(s.issue); n == 0 {
		b.t.Errorf("%s: the work that waits is not begun", s.what)
	}
}

// wantAnswered fails when a question of January is open, or one of a lifetime is not.
func (b *books) wantAnswered(asked map[ledger.CompanyID][]money.BudgetIncident) {
	b.t.Helper()
	for _, p := range b.m.Peers {
		if _, err := p.Up().View(b.ctx, ledger.Read{}, func(tx *ledger.Tx) error {
			for of, all := range asked {
				for _, in := range all {
					now, _ := money.Incident(tx, of, in.ID)
					a, _ := money.ApprovalByID(tx, in.Approval)
					status, approval := "resolved", money.ApprovalCancelled
					if in.Window == money.WindowLifetime {
						status, approval = "open", money.ApprovalPending
					}
					if now.Status != status || a.Status != approval {
						b.t.Errorf("%s: the incident of a %s (%s) is %s, its approval %s", p.Name, in.Type, in.Window,
							now.Status, a.Status)
					}
				}
			}
			return nil
		}); err != nil {
			b.t.Fatal(err)
		}
	}
}
