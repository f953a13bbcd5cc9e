package scheduler

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

// Of two nodes the first has nothing to do and would get every run, but for the one
// thing of each case; whoever asks why is told just that.
func TestEachCriterionDecides(t *testing.T) {
	// label says a node's labels, as an operator does while it works.
	label := func(node int, labels ...string) func(*mesh) {
		return func(m *mesh) {
			m.must(board("node.update", "", ledger.NodeUpdate{Node: m.nodes[node].id(), Labels: &labels}))
		}
	}
	fact := func(node int, change func(*Facts)) func(*mesh) {
		return func(m *mesh) {
			p := m.nodes[node]
			p.mu.Lock()
			change(&p.facts)
			p.mu.Unlock()
		}
	}
	// busy keeps slots of the first node taken.
	busy := func(m *mesh, n int) {
		bob := m.agent(acme, "bob", "sleep 10m", `{"placement":{"labels":["node=0"]}}`)
		for range n {
			m.untilStatus(m.invoke(acme, bob).ID, 5*time.Second, entity.RunRunning)
		}
	}
	again := func(node int, change func(p *peer)) func(*mesh) {
		return func(m *mesh) {
			p := m.nodes[node]
			p.halt()
			change(p)
			p.open()
			p.start()
			if node == 0 {
				m.elect(0)
			}
		}
	}
	for name, c := range map[string]struct {
		wish    string // placement of the agent
		adapter string // default: process
		config  string // default: a command of the test's adapter
		before  func(m *mesh)
		why     string // of the first node; "" when its score was worse
	}{
		"adapter": {adapter: "wasm", before: again(1, func(p *peer) { p.kinds = []string{"wasm"} }),
			why: "has no adapter wasm"},
		"access policy": {before: func(m *mesh) {
			m.must(board("resource_tree.grant", "", rules.SaveTreeGrant{Path: core.NodePath(string(m.nodes[0].id())),
				Subject: "company:" + string(acme), Deny: true}))
		}, why: "the agent may not use /network/peers/%0: on /network/peers/%0 for company:" + string(acme) +
			" it is denied"},
		"label": {wish: `{"labels":["ssd"]}`, before: label(1, "ssd"), why: "lacks label ssd"},
		"another label": {wish: `{"labels":["ssd","eu"]}`, before: func(m *mesh) {
			label(0, "ssd")(m)
			label(1, "ssd", "eu")(m)
		}, why: "lacks label eu"},
		"node": {wish: `{"node":"%1"}`, why: "the agent wants another node"},
		"system": {wish: `{"os":"linux"}`, before: fact(0, func(f *Facts) { f.OS = "darwin" }),
			why: "runs darwin, not linux"},
		"architecture": {wish: `{"arch":"amd64"}`, before: fact(0, func(f *Facts) { f.Arch = "arm64" }),
			why: "is arm64, not amd64"},
		"GPU":          {wish: `{"gpu":true}`, before: fact(1, func(f *Facts) { f.GPUs = 1 }), why: "has no GPU"},
		"GPU by label": {wish: `{"gpu":true}`, before: label(1, "gpu"), why: "has no GPU"},
		"memory": {wish: `{"memoryMb":2000}`, before: fact(0, func(f *Facts) { f.FreeMB = 1999 }),
			why: "needs 2000 MB of free memory"},
		"program": {wish: `{"programs":["psql"]}`,
			before: fact(1, func(f *Facts) { f.Programs = []string{"git", "psql"} }), why: "has no program psql"},
		"command line": {adapter: "claude_local", config: `{"model":"m"}`, before: func(m *mesh) {
			for i := range 2 {
				again(i, func(p *peer) { p.kinds = []string{"claude_local"} })(m)
			}
			fact(1, func(f *Facts) { f.Programs = []string{"claude"} })(m)
		}, why: "has no program claude"},
		"trust": {config: `{"command":"sleep 1m","env":{"KEY":{"type":"secret_ref","secretId":"` + uuid("e", 1) + `"}}}`,
			before: func(m *mesh) {
				m.must(board("secret.create", acme, secret.SaveSecret{ID: uuid("e", 1), Name: "KEY", Sealed: []byte("sealed")}))
				label(0, ledger.LabelUntrusted)(m)
			}, why: "is untrusted, and the run has secrets"},
		"cordon": {before: func(m *mesh) { m.must(board("node.cordon", "", company.Cordon{Node: string(m.nodes[0].id())})) },
			why: "is cordoned"},
		"drain": {before: func(m *mesh) {
			m.must(board("node.cordon", "", company.Cordon{Node: string(m.nodes[0].id()), Drain: true}))
		}, why: "is being drained"},
		"lease": {before: func(m *mesh) { m.elect(1); m.nodes[0].setCut(true); time.Sleep(2 * testLease) },
			why: "is not heard"},
		"all slots": {before: func(m *mesh) { busy(m, 4) }, why: "all slots are taken"},
		"slots":     {before: func(m *mesh) { busy(m, 2) }},
		"load":      {before: fact(0, func(f *Facts) { f.Load = 1700 })},
		"session": {config: `{"command":"sleep 1s, session"}`,
			before: func(m *mesh) { fact(0, func(f *Facts) { f.Load = 2000 })(m) }},
		"workspace": {before: func(m *mesh) { fact(0, func(f *Facts) { f.Load = 2000 })(m) }},
		"closing down": {before: func(m *mesh) {
			m.elect(1)
			p := m.nodes[0]
			p.worker.mu.Lock()
			p.worker.draining = true
			p.worker.mu.Unlock()
		}, why: "takes no runs now"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 2, func(t *testing.T, m *mesh) {
				for i, p := range m.nodes {
					p.mu.Lock()
					p.facts = Facts{OS: "linux", Arch: "amd64", CPUs: 2, Load: int64(i) * 800, FreeMB: 8000}
					p.mu.Unlock()
				}
				time.Sleep(testLease)
				if r := m.invoke(acme, m.agent(acme, "first", "sleep 1s", "")); m.on(m.untilStatus(r.ID, 5*time.Second,
					entity.RunRunning)) != 0 {
					t.Fatal("a run goes to the second node for no reason; the test shows nothing")
				}
				if c.before != nil {
					c.before(m)
				}
				time.Sleep(testLease)
				ada := m.agent(acme, "ada", "sleep 1m", "")
				save := entity.SaveAgent{ID: ada}
				if c.adapter != "" {
					save.AdapterType = &c.adapter
				}
				if c.config != "" {
					save.AdapterConfig = json.RawMessage(c.config)
				}
				if c.wish != "" {
					wish := c.wish
					if name == "node" {
						wish = `{"node":"` + string(m.nodes[1].id()) + `"}`
					}
					save.RuntimeConfig = json.RawMessage(`{"placement":` + wish + `}`)
				}
				m.must(board("agent.update", acme, save))
				id := ""
				switch name {
				case "session", "workspace":
					id = m.returning(ada, name)
				default:
					id = m.invoke(acme, ada).ID
				}
				time.Sleep(3 * time.Second)
				if on := m.on(m.run(id)); on != 1 {
					t.Errorf("it went to node %d: %+v", on, m.placement(id))
				}
				why := strings.ReplaceAll(c.why, "%0", string(m.nodes[0].id()))
				if got := m.refusal(id, 0); got != why {
					t.Errorf("of the first node is said %q, want %q", got, why)
				}
				if p := m.placement(id); len(p.Candidates) != 2 || p.Node != core.NullText(m.nodes[1].id()) ||
					p.Candidates[0].Node != string(p.Node) || p.Candidates[0].Refusal != "" {
					t.Errorf("the reason is %+v", p)
				} else if better, worse := p.Candidates[0], p.Candidates[1]; c.why == "" && (better.Score >= worse.Score ||
					(name == "session" || name == "workspace") != (string(better.Affinity) == name)) {
					t.Errorf("the scores are %+v and %+v", better, worse)
				}
			})
		})
	}
}

// returning has the second node work for ada on an issue when it has least to do,
// makes the first the better again, and returns the next run on that issue.
func (m *mesh) returning(ada, what string) string {
	m.t.Helper()
	create := company.CreateIssue{ID: uuid("i", 9), Title: "work", Status: entity.IssueTodo, Assignee: ada}
	if what == "workspace" {
		policy, name, cwd := json.RawMessage(`{"enabled":true,"defaultMode":"isolated_workspace",`+
			`"workspaceStrategy":{"type":"git_worktree"}}`), "Site", "/srv/site"
		create.Project = uuid("p", 1)
		m.must(board("project.create", acme, entity.SaveProject{ID: create.Project, Name: &name, WorkspacePolicy: policy,
			Workspace: &entity.SaveWorkspace{ID: uuid("f", 1), Cwd: &cwd}}))
	}
	m.must(board("issue.create", acme, create))
	time.Sleep(5 * time.Minute) // its runs are over
	for i, p := range m.nodes {
		p.mu.Lock()
		p.facts.Load = int64(i) * 800
		p.mu.Unlock()
	}
	time.Sleep(testLease)
	before := len(m.runs(acme))
	m.must(board("comment.create", acme, entity.CreateComment{ID: uuid("c", 1), Issue: create.ID, Body: "go on"}))
	m.until(5*time.Second, "the comment's run works", func() bool {
		all := m.runs(acme)
		return len(all) > before && all[before].StartedAt != 0
	})
	return m.runs(acme)[before].ID
}

// A run that wants a node of which nobody knows ends when no other may come, and a
// node that was revoked is waited for by none.
func TestARunWaitsForMembersOnly(t *testing.T) {
	run(t, 2, func(t *testing.T, m *mesh) {
		gone := string(m.nodes[1].id())
		m.nodes[1].setCut(true)
		m.must(board(ledger.KindNodeRevoke, "", ledger.NodeRevoke{Node: m.nodes[1].id()}))
		ids := []string{}
		for name, wish := range map[string]string{"ada": `{"node":"` + gone + `"}`, "bob": `{"gpu":true}`} {
			ids = append(ids, m.invoke(acme, m.agent(acme, name, "sleep 1s", `{"placement":`+wish+`}`)).ID)
		}
		time.Sleep(giveUpAfter + time.Minute)
		for _, id := range ids {
			if r := m.run(id); r.Status != entity.RunFailed || r.ErrorCode != "no_node" {
				t.Errorf("a run that no member can take is %s, %s: %+v", r.Status, r.ErrorCode, m.placement(id))
			}
		}
	})
}
