package rules_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// A player executes random commands of all nouns, as the board and as agents under runs, and
// checks after each that the rules hold.
type player struct {
	*companytest.Desk
	rng                                   *rand.Rand
	agents, goals, projects, issues, runs []string
	routines                              []string
	nouns
	bug           companytest.Bug
	done, refused map[string]int
	witness       func(kind string, value any, changes []ledger.Change, err error) // called for each command; may be nil
}

const (
	randomSeeds = 12
	randomSteps = 350
)

func newPlayer(seed uint64, planted companytest.Bug) *player {
	return &player{Desk: companytest.NewDesk(companytest.Nil2{}), rng: rand.New(rand.NewPCG(seed, 7)), bug: planted,
		done: map[string]int{}, refused: map[string]int{}}
}

// begin makes the initial rows, and returns what is wrong with them.
func (p *player) begin() string {
	_ = p.command(companytest.Board, "instance.auth", "",
		people.SetAuth{Mode: people.Authenticated}) // so that people sign in
	root := p.ID()
	p.goals = append(p.goals, root)
	return p.command(companytest.Board, "goal.create", root, entity.SaveGoal{ID: root, Title: new("Root"),
		Level: new(entity.GoalLevel("company"))})
}

// play returns the rule that was broken, and after which step.
func play(seed uint64, steps int, planted companytest.Bug) (broken string, p *player) {
	p = newPlayer(seed, planted)
	if err := p.begin(); err != "" {
		return err, p
	}
	for n := range steps {
		kind, bad := p.step()
		if bad == "" {
			if bad = p.check(); bad == "" {
				bad = p.checkMore()
			}
		}
		if bad != "" {
			return fmt.Sprintf("seed %d, step %d, %s: %s", seed, n, kind, bad), p
		}
	}
	return "", p
}

// command executes one command and returns what is wrong with its entries: an executed command
// has exactly one of its own about its target.
func (p *player) command(who companytest.As, kind, target string, payload any) string {
	return p.carry(p.Context(who, kind, payload), kind, target)
}

func (p *player) carry(c *ledger.Context, kind, target string) string {
	c.Tx = p.Tx.Child()
	value, err := p.bug.In(p.Mux[kind])(c)
	if p.witness != nil {
		p.witness(kind, value, c.Changes(), err)
	}
	if err != nil {
		if _, ok := err.(*ledger.Refusal); !ok {
			return fmt.Sprintf("failed: %v", err)
		}
		p.refused[kind]++
		for _, list := range []*[]string{&p.agents, &p.goals, &p.projects, &p.issues, &p.routines, &p.skills, &p.machines,
			&p.people} {
			if n := len(*list); n > 0 && (*list)[n-1] == target && strings.HasSuffix(kind, ".create") ||
				kind == "environment.save" && n > 0 && (*list)[n-1] == target {
				*list = (*list)[:n-1] // the row was not made
			}
		}
		return ""
	}
	p.done[kind]++
	before := p.rows(target)
	c.Tx.Merge()
	own := 0
	for _, ch := range c.Changes() {
		// The end of a run also has entries about its agent and its locks.
		// A hold that cancels issues also has an entry for each of them.
		if ch.EntityID == target && ch.Action != "issue.lock_released" && ch.Action != "agent.status" &&
			!(kind == "tree.hold" && ch.Action == "issue.updated") {
			own++
		}
	}
	if own != 1 && (own != 0 || p.rows(target) != before) { // a command without effect needs no entry
		actions := []string{}
		for _, ch := range c.Changes() {
			actions = append(actions, ch.Action+" "+ch.EntityID)
		}
		return fmt.Sprintf("%d entries about %s: %v", own, target, actions)
	}
	return ""
}

// rows returns the stored rows with an ID.
func (p *player) rows(id string) string {
	out := ""
	for _, key := range [][]byte{entity.AgentTable.Key(p.Company, id), entity.Goals.Key(p.Company, id),
		entity.ProjectTable.Key(p.Company, id), entity.IssueTable.Key(p.Company, id), routine.Routines.Key(p.Company, id)} {
		v, _ := p.Tx.Get(key)
		out += string(v) + "|"
	}
	return out
}

func pick(p *player, of []string) string {
	if len(of) == 0 || p.rng.IntN(12) == 0 {
		return companytest.UID(p.rng.IntN(9) + 1) // a row that does not exist
	}
	return of[p.rng.IntN(len(of))]
}

// maybe returns nil, a pick, or "".
func maybe(p *player, of []string) *string {
	switch p.rng.IntN(4) {
	case 0:
		return new("")
	case 1:
		return new(pick(p, of))
	}
	return nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// actor returns the board, or an agent with a live run.
func (p *player) actor() companytest.As {
	if p.rng.IntN(3) > 0 {
		for range 5 {
			id := pick(p, p.runs)
			if r, ok := entity.RunTable.Get(p.Tx, p.Company, id); ok && r.Status.Live() && entity.AgentExists(p.Tx,
				p.Company, r.Agent) {
				return companytest.As{Agent: r.Agent, Run: id}
			}
		}
	}
	return companytest.Board
}

func (p *player) step() (kind, broken string) {
	id, who := p.ID(), p.actor()
	p.Now = p.Now.Add(time.Duration(p.rng.IntN(3600)) * time.Second)
	status := slices.Concat(entity.IssueStatuses, []entity.IssueStatus{""})[p.rng.IntN(len(entity.IssueStatuses)+1)]
	some := func(of []string) (out []string) {
		for range p.rng.IntN(3) {
			out = append(out, pick(p, of))
		}
		return out
	}
	if p.rng.IntN(3) == 0 {
		return p.further()
	}
	switch n := p.rng.IntN(30); n {
	case 0, 1:
		p.agents = append(p.agents, id)
		role := "engineer"
		if p.rng.IntN(6) == 0 {
			role = "ceo"
		}
		return "agent.create", p.command(companytest.Board, "agent.create", id,
			entity.SaveAgent{ID: id, Name: new("Agent " + id), Role: &role, ReportsTo: maybe(p, p.agents),
				AdapterType: new("process")})
	case 2:
		id = pick(p, p.agents)
		return "agent.update", p.command(who, "agent.update", id,
			entity.SaveAgent{ID: id, ReportsTo: new(value(maybe(p, p.agents)))})
	case 3:
		id = pick(p, p.agents)
		kind = []string{"agent.pause", "agent.resume", "agent.resume", "agent.terminate", "agent.delete"}[p.rng.IntN(5)]
		return kind, p.command(companytest.Board, kind, id, company.ChangeAgent{Agent: id})
	case 4:
		p.goals = append(p.goals, id)
		return "goal.create", p.command(who, "goal.create", id, entity.SaveGoal{ID: id, Title: new("Goal"),
			Parent: maybe(p, p.goals)})
	case 5:
		id = pick(p, p.goals[1:]) // never the root
		return "goal.update", p.command(who, "goal.update", id,
			entity.SaveGoal{ID: id, Parent: new(value(maybe(p, p.goals)))})
	case 6:
		id = pick(p, p.goals[1:])
		return "goal.delete", p.command(companytest.Board, "goal.delete", id, company.DeleteGoal{ID: id})
	case 7:
		p.projects = append(p.projects, id)
		return "project.create", p.command(who, "project.create", id, entity.SaveProject{ID: id, Name: new("Project " + id),
			Goals: new(some(p.goals))})
	case 8, 9, 10, 11:
		p.issues = append(p.issues, id)
		return "issue.create", p.command(who, "issue.create", id, company.CreateIssue{ID: id, Title: "Issue " + id,
			Status: status, Assignee: value(maybe(p, p.agents)), Parent: value(maybe(p, p.issues)),
			Goal: value(maybe(p, p.goals)), Project: value(maybe(p, p.projects)), BlockedBy: some(p.issues)})
	case 12, 13, 14, 15:
		id = pick(p, p.issues)
		u := company.UpdateIssue{Issue: id, Status: status, Assignee: maybe(p, p.agents), Parent: maybe(p, p.issues),
			Goal: maybe(p, p.goals), Project: maybe(p, p.projects), Title: new("Title " + p.ID())}
		if p.rng.IntN(3) == 0 {
			u.BlockedBy = new(some(p.issues))
		}
		if p.rng.IntN(8) == 0 {
			u.AssigneeUser = new("local-board")
		}
		return "issue.update", p.command(who, "issue.update", id, u)
	case 16, 17, 18:
		id = pick(p, p.issues)
		agent := who.Agent
		if agent == "" {
			agent = pick(p, p.agents)
		}
		return "issue.checkout", p.command(who, "issue.checkout", id, company.CheckOutIssue{Issue: id, Agent: agent,
			Expected: entity.IssueStatuses})
	case 19:
		id = pick(p, p.issues)
		return "issue.release", p.command(who, "issue.release", id, company.ReleaseIssue{Issue: id})
	case 20:
		id = pick(p, p.issues)
		if p.rng.IntN(2) == 0 {
			return "issue.force_release", p.command(who, "issue.force_release", id, company.ForceReleaseIssue{Issue: id,
				ClearAssignee: p.rng.IntN(2) == 0})
		}
		return "issue.delete", p.command(companytest.Board, "issue.delete", id, company.DeleteIssue{Issue: id})
	case 21, 22: // a run starts
		if agent := pick(p, p.agents); entity.AgentExists(p.Tx, p.Company, agent) &&
			len(entity.LiveRunsOfAgent(p.Tx, p.Company, agent)) < 5 {
			p.runs = append(p.runs, p.Run(agent))
		}
		return "a run", ""
	case 23, 24: // a run ends
		if r, ok := entity.RunTable.Get(p.Tx, p.Company, pick(p, p.runs)); ok && r.Status.Live() {
			c := p.Context(companytest.As{}, "", nil)
			_, _ = p.bug.In(func(c *ledger.Context) ([]byte, error) {
				company.EndRun(c, r, company.Outcome{Status: entity.RunSucceeded})
				return nil, nil
			})(c)
		}
		return "the end of a run", ""
	case 25, 26:
		scope := money.SetBudget{Type: entity.ScopeCompany, Scope: string(p.Company),
			Window: money.WindowKinds[p.rng.IntN(len(money.WindowKinds))], Amount: core.Cents(p.rng.Int64N(2000))}
		if agent := pick(p, p.agents); p.rng.IntN(2) == 0 {
			scope.Type, scope.Scope = entity.ScopeAgent, agent
		} else if p.rng.IntN(2) == 0 {
			scope.Type, scope.Scope = entity.ScopeProject, pick(p, p.projects)
		}
		return "budget.set", p.command(companytest.Board, "budget.set", core.DerivedID("budget-policy", string(p.Company),
			string(scope.Type), scope.Scope, string(scope.Window)), scope)
	case 27:
		if open := money.OpenIncidents(p.Tx, p.Company, core.TimeOf(p.Now)); len(open) > 0 && p.rng.IntN(2) == 0 {
			in := open[p.rng.IntN(len(open))]
			return "budget.resolve", p.command(companytest.Board, "budget.resolve", in.ID, money.ResolveIncident{Incident: in.ID,
				Action: "raise_budget_and_resume", Amount: new(in.Observed.Plus(core.Cents(100)))})
		}
		agent := pick(p, p.agents)
		if who != companytest.Board {
			agent = who.Agent
		}
		return "cost.report", p.command(who, "cost.report", id, money.ReportCost{Event: money.CostEvent{ID: id, Agent: agent,
			Issue: core.NullText(value(maybe(p, p.issues))), Provider: "p", Model: "m", Cost: core.Cents(p.rng.Int64N(100)),
			OccurredAt: core.TimeOf(p.Now)}})
	case 28:
		p.routines = append(p.routines, id)
		return "routine.create", p.command(who, "routine.create", id, routine.SaveRoutine{ID: id, Title: new("Routine"),
			Assignee: maybe(p, p.agents), Goal: maybe(p, p.goals), Parent: maybe(p, p.issues),
			Concurrency: &routine.RoutineConcurrency[p.rng.IntN(3)]})
	default:
		return "routine.run", p.command(who, "routine.run", id, routine.FireRoutine{Routine: pick(p, p.routines), Run: id,
			Source: "manual"})
	}
}

// circle follows next from id and returns the ID at which it finds a cycle, or "".
func circle(id string, next func(string) []string) string {
	state := map[string]int{} // 1: on the current path, 2: done
	var walk func(string) string
	walk = func(at string) string {
		switch state[at] {
		case 1:
			return at
		case 2:
			return ""
		}
		state[at] = 1
		for _, n := range next(at) {
			if n != "" {
				if c := walk(n); c != "" {
					return c
				}
			}
		}
		state[at] = 2
		return ""
	}
	return walk(id)
}

// check returns the rule that does not hold, or "".
func (p *player) check() string {
	goal := func(id string) []string {
		g, _ := entity.Goals.Get(p.Tx, p.Company, id)
		return []string{string(g.Parent)}
	}
	for id, g := range entity.Goals.All(p.Tx, p.Company) {
		if c := circle(id, goal); c != "" {
			return "a circle of goals at " + c
		}
		if g.Parent != "" && !entity.GoalExists(p.Tx, p.Company, string(g.Parent)) {
			return "goal " + id + " is below one that is gone"
		}
	}
	for id, a := range entity.AgentTable.All(p.Tx, p.Company) {
		if c := circle(id, func(id string) []string {
			a, _ := entity.AgentTable.Get(p.Tx, p.Company, id)
			return []string{string(a.ReportsTo)}
		}); c != "" {
			return "a circle of managers at " + c
		}
		if a.ReportsTo != "" && !entity.AgentExists(p.Tx, p.Company, string(a.ReportsTo)) {
			return "agent " + id + " reports to one that is gone"
		}
	}
	owners := map[string]int{} // number of times an issue is in the index
	for a := range entity.AgentTable.All(p.Tx, p.Company) {
		for _, status := range entity.IssueStatuses {
			for i := range entity.IssuesByAssignee.IDs(p.Tx, p.Company, a+"."+string(status), false) {
				owners[i]++
			}
		}
	}
	for id, i := range entity.IssueTable.All(p.Tx, p.Company) {
		if bad := p.checkIssue(i, owners[id]); bad != "" {
			return i.Identifier + " (" + string(i.Status) + ") " + bad
		}
	}
	for _, b := range money.Budgets(p.Tx, p.Company, core.TimeOf(p.Now)) {
		if pol, over := b.Exceeded(); over && money.ScopeExists(p.Tx, p.Company, b.Type, b.ID) && !p.stopped(b) {
			return fmt.Sprintf("%s %s spent %d of %d in %s and goes on", b.Type, b.ID, b.Spent(pol.Window),
				pol.Amount, pol.Window)
		}
	}
	return ""
}

// stopped reports whether a scope is paused, for any reason.
func (p *player) stopped(b money.ScopeBudget) bool {
	switch b.Type {
	case entity.ScopeAgent:
		a, _ := entity.AgentTable.Get(p.Tx, p.Company, b.ID)
		return a.Status == entity.AgentPaused || a.Status == entity.AgentTerminated || a.Status == entity.AgentPendingApproval
	case entity.ScopeProject:
		row, _ := entity.ProjectTable.Get(p.Tx, p.Company, b.ID)
		return row.PauseReason != ""
	}
	row, _ := entity.CompanyTable.Get(p.Tx, p.Company, p.Company)
	return row.Status != entity.CompanyActive
}

func (p *player) checkIssue(i entity.Issue, owners int) string {
	parent := func(id string) []string {
		i, _ := entity.IssueTable.Get(p.Tx, p.Company, id)
		return []string{i.Parent}
	}
	blockers := func(id string) []string { i, _ := entity.IssueTable.Get(p.Tx, p.Company, id); return i.BlockedBy }
	if c := circle(i.ID, parent); c != "" {
		return "is in a circle of parents at " + c
	}
	if c := circle(i.ID, blockers); c != "" {
		return "is in a circle of blockers at " + c
	}
	for _, id := range append([]string{i.Parent}, i.BlockedBy...) {
		if id != "" && !p.Tx.Has(entity.IssueTable.Key(p.Company, id)) {
			return "names an issue that is gone: " + id
		}
	}
	if chain := entity.GoalChain(p.Tx, i); len(chain) == 0 || !chain[len(chain)-1].Root() {
		return "is of no goal, not even the root: " + i.Goal
	}
	if i.Goal != "" && !entity.GoalExists(p.Tx, p.Company, i.Goal) {
		return "is of no goal: " + i.Goal
	}
	if i.Assignee != "" && i.AssigneeUser != "" {
		return "has two owners"
	}
	if a, ok := entity.AgentTable.Get(p.Tx, p.Company, i.Assignee); i.Assignee != "" && !i.Status.Terminal() &&
		(!ok || a.Status == entity.AgentTerminated && i.Held()) {
		return "is of an agent that is gone: " + i.Assignee
	}
	if want := 0; i.Assignee != "" {
		if _, ok := entity.AgentTable.Get(p.Tx, p.Company, i.Assignee); ok {
			want = 1
		}
		if owners != want {
			return fmt.Sprintf("is %d times in the lists of agents", owners)
		}
	}
	if i.CheckoutRun != "" {
		r, ok := entity.RunTable.Get(p.Tx, p.Company, i.CheckoutRun)
		if !ok || !r.Status.Live() {
			return "is held by a run that is over"
		}
		if r.Agent != i.Assignee {
			return "is held by the run of another agent"
		}
	}
	return ""
}

// After any sequence of commands there is no orphaned work, no cycle, no second owner, no scope
// that continues beyond its limit, and one entry for each mutation.
func TestRulesHoldUnderRandomCommands(t *testing.T) {
	t.Parallel()
	done, refused := map[string]int{}, map[string]int{}
	for seed := range uint64(randomSeeds) {
		broken, p := play(seed, randomSteps, nil)
		if broken != "" {
			t.Fatal(broken)
		}
		for kind, n := range p.done {
			done[kind] += n
		}
		for kind, n := range p.refused {
			refused[kind] += n
		}
	}
	t.Logf("carried out %v, refused %v", done, refused)
	for _, kind := range []string{"agent.create", "agent.update", "agent.pause", "agent.resume", "agent.terminate",
		"agent.delete", "goal.create", "goal.update", "goal.delete", "project.create", "issue.create",
		"issue.update", "issue.checkout", "issue.release", "issue.force_release", "issue.delete", "budget.set", "cost.report",
		"routine.create", "routine.run",
		"document.save", "annotation.create", "annotation.comment", "annotation.update", "plan.decompose", "skill.create",
		"skill_comment.create", "skill_comment.update", "skill_test.input", "skill_test.start", "skill_test.forget",
		"skill.delete",
		"workspace.create", "workspace.delete", "project.delete", "environment.save", "environment.delete", "comment.create",
		"comment.delete", "watchdog.set", "watchdog.remove", "issue.monitor", "tree.hold", "tree.release",
		"routine_annotation.create", "user.create", "user.suspend"} {
		if done[kind] == 0 {
			t.Errorf("%s was never carried out", kind)
		}
	}
}

// Planted bugs are found: locks that are kept after their runs end, and rows that break a rule.
func TestRandomCommandsFindBugs(t *testing.T) {
	t.Parallel()
	found := ""
	for seed := uint64(0); seed < randomSeeds && !strings.Contains(found, "held by a run that is over"); seed++ {
		found, _ = play(seed, randomSteps, companytest.KeptLocks)
	}
	if !strings.Contains(found, "held by a run that is over") {
		t.Errorf("locks that outlive their runs: found %q", found)
	}
	_, whole := play(1, randomSteps, nil)
	for want, harm := range map[string]func(d *companytest.Desk, i entity.Issue){
		"a circle of goals": func(d *companytest.Desk, i entity.Issue) {
			g, _ := entity.Goals.Get(d.Tx, d.Company, entity.DefaultGoal(d.Tx, d.Company))
			g.Parent = core.NullText(g.ID)
			entity.StoreGoal(d.Tx, g)
		},
		"circle of parents": func(d *companytest.Desk, i entity.Issue) {
			i.Parent = i.ID
			entity.IssueTable.Put(d.Tx, d.Company, i.ID, i)
		},
		"circle of blockers": func(d *companytest.Desk, i entity.Issue) {
			i.BlockedBy = []string{i.ID}
			entity.IssueTable.Put(d.Tx, d.Company, i.ID, i)
		},
		"two owners": func(d *companytest.Desk, i entity.Issue) {
			i.Assignee, i.AssigneeUser = "a", "u"
			entity.IssueTable.Put(d.Tx, d.Company, i.ID, i)
		},
		"of no goal": func(d *companytest.Desk, i entity.Issue) {
			i.Goal = ""
			entity.IssueTable.Put(d.Tx, d.Company, i.ID, i)
			entity.DropGoal(d.Tx, entity.Goal{ID: entity.DefaultGoal(d.Tx, d.Company), Company: d.Company})
			for _, g := range entity.Goals.All(d.Tx, d.Company) {
				g.Parent = ""
				g.Level = "task"
				entity.StoreGoal(d.Tx, g)
			}
		},
		"an agent that is gone": func(d *companytest.Desk, i entity.Issue) {
			i.Assignee, i.AssigneeUser, i.Status = companytest.UID(3), "", entity.IssueTodo
			entity.IssueTable.Put(d.Tx, d.Company, i.ID, i)
		},
	} {
		p := *whole
		d := *whole.Desk
		d.Tx = whole.Tx.Child()
		p.Desk = &d
		for _, i := range entity.IssueTable.All(d.Tx, d.Company) {
			harm(&d, i)
			break
		}
		if bad := p.check(); !strings.Contains(bad, want) {
			t.Errorf("%s: found %q", want, bad)
		}
	}
}
