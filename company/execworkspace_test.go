package company

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

func TestBranchNames(t *testing.T) {
	t.Parallel()
	p, i := Project{Name: "Ünder World"}, Issue{ID: uid(7), Identifier: "ACM-7", Title: "Fix: the ~flaky~ test!"}
	for template, want := range map[string]string{
		"{{issue.identifier}}-{{slug}}": "ACM-7-fix-the-flaky-test",
		"agents/{{issue.identifier}}":   "agents/ACM-7",
		"x/{{issue.title}}":             "x/Fix-the-flaky-test",
		"../../{{issue.identifier}}":    "ACM-7",
		"--exec={{slug}}":               "exec-fix-the-flaky-test",
		"a..b//c/.lock":                 "a.-b/c/lock",
		"@{-1}":                         "1",
		"~^:?*[\\":                      "ACM-7",
		"{{project.name}}":              "nder-World",
		strings.Repeat("x", 300):        strings.Repeat("x", MaxBranch),
		"feature.lock":                  "feature",
	} {
		if got := branchName(template, p, i); got != want {
			t.Errorf("%q becomes %q, want %q", template, got, want)
		}
	}
}

// Whatever the template and the title, a branch is what Git takes for one and
// for no option.
func FuzzBranchName(f *testing.F) {
	f.Add("{{issue.identifier}}-{{slug}}", "Fix it")
	f.Add("-a/../b.lock/{{issue.title}}", "~^: \x00")
	f.Fuzz(func(t *testing.T, template, title string) {
		b := branchName(template, Project{Name: title}, Issue{ID: uid(7), Identifier: "ACM-7", Title: title})
		bad := b == "" || len(b) > MaxBranch || strings.HasPrefix(b, "-") || strings.Contains(b, "..") || strings.Contains(b, "//") ||
			strings.HasSuffix(b, "/") || strings.HasSuffix(b, ".") || strings.Contains(b, "/.") || strings.HasPrefix(b, ".") || strings.HasPrefix(b, "/")
		for part := range strings.SplitSeq(b, "/") {
			bad = bad || strings.HasSuffix(part, ".lock") || strings.HasPrefix(part, "-")
		}
		for k := range len(b) {
			bad = bad || b[k] <= ' ' || b[k] >= 0x7f || strings.IndexByte("~^:?*[\\@{", b[k]) >= 0
		}
		if bad {
			t.Fatalf("%q with title %q becomes %q", template, title, b)
		}
	})
}

func (d *desk) workspace(project, cwd, repo string) string {
	id := d.id()
	workspaces.Put(d.tx, d.company, id, Workspace{ID: id, Company: d.company, Project: project, Cwd: NullText(cwd), RepoURL: NullText(repo), Primary: true})
	return id
}

// byNode carries out a command of a node, in its first session.
func (d *desk) byNode(node, kind string, payload any) error {
	c := d.context(board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential, c.Session = ledger.Actor{Type: "node", ID: node}, ledger.Credential{Kind: "node", ID: node}, 1
	c.Tx = d.tx.Child()
	if _, err := d.mux[kind](c); err != nil {
		return err
	}
	c.Tx.Merge()
	d.last = c.Changes()
	return nil
}

// start gives a run a node and an issue, and opens its workspace.
func (d *desk) start(run, node, issue string) Run {
	r, _ := runs.Get(d.tx, d.company, run)
	r.Node, r.Session, r.Context.IssueID = node, 1, issue
	r = openWorkspace(d.context(as{}, "", nil), r)
	d.storeRun(r)
	return r
}

func TestWorkspacesOfRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	project := d.project("Site")
	of := d.workspace(project, "/srv/site", "https://bob:CANARY@example.org/site.git")
	i, other := d.issue(t, CreateIssue{Project: project, Title: "One"}), d.issue(t, CreateIssue{Project: project, Title: "Two"})
	loose := d.issue(t, CreateIssue{Title: "Three"})
	if r := d.start(d.run(ada), "n1", loose.ID); r.ExecutionWorkspace != "" {
		t.Error("a run of no project has a workspace")
	}
	shared := d.start(d.run(ada), "n1", i.ID)
	again := d.start(d.run(ada), "n2", i.ID)
	w, ok := ExecutionWorkspaceByID(d.tx, shared.ExecutionWorkspace)
	if !ok || again.ExecutionWorkspace != w.ID || w.Mode != SharedWorkspace || w.Strategy != "project_primary" || w.Cwd != "/srv/site" ||
		w.ProjectWorkspace != NullText(of) || w.Node != "n2" || w.Name != i.Identifier {
		t.Errorf("the shared one is %+v", w)
	}
	if strings.Contains(string(w.RepoURL), "CANARY") || w.RepoURL != "https://example.org/site.git" {
		t.Errorf("its repository is shown as %s", w.RepoURL)
	}
	p, _ := projects.Get(d.tx, d.company, project)
	p.WorkspacePolicy = json.RawMessage(`{"enabled":true,"defaultMode":"isolated_workspace","workspaceStrategy":{"type":"git_worktree","baseRef":"main"}}`)
	projects.Put(d.tx, d.company, project, p)
	one, two := d.start(d.run(ada), "n1", i.ID), d.start(d.run(ada), "n1", other.ID)
	a, _ := ExecutionWorkspaceByID(d.tx, one.ExecutionWorkspace)
	b, _ := ExecutionWorkspaceByID(d.tx, two.ExecutionWorkspace)
	if a.ID == b.ID || a.ID == w.ID || a.Mode != IsolatedWorkspace || a.Branch == b.Branch || a.Branch == "" || a.Cwd != "" || a.BaseRef != "main" {
		t.Errorf("isolated ones are %+v and %+v", a, b)
	}
	if l, ok := one.Lease(); !ok || string(l.ExecutionWorkspace) != a.ID {
		t.Errorf("the run's lease is %+v", l)
	}
	if got := ExecutionWorkspacesOf(d.tx, d.company, WorkspaceQuery{Issue: i.ID, Limit: 10}); len(got) != 2 {
		t.Errorf("the issue has %d workspaces, want 2", len(got))
	}

	// One that a run works in stays open; closed, its node removes the tree and the
	// next run opens another.
	a.Cwd = "/n1/tree"
	execWorkspaces.Put(d.tx, d.company, a.ID, a)
	archived := WorkspaceArchived
	wantRefusal(t, d.do(board, "exec_workspace.update", UpdateExecutionWorkspace{ID: a.ID, Status: &archived}, nil), ledger.Conflict, "")
	d.endRun(one.ID)
	r, _ := runs.Get(d.tx, d.company, one.ID)
	r.Owed = false
	runs.Put(d.tx, d.company, r.ID, r)
	d.must(t, board, "exec_workspace.update", UpdateExecutionWorkspace{ID: a.ID, Status: &archived}, nil)
	due := WorkspacesToClean(d.tx, "n1")
	if len(due) != 1 || due[0].ID != a.ID || due[0].ClosedAt == 0 || due[0].CleanupEligibleAt == 0 {
		t.Errorf("to clean: %+v", due)
	}
	if len(WorkspacesToClean(d.tx, "n2")) > 0 {
		t.Error("another node would clean it too")
	}
	active := WorkspaceActive
	wantRefusal(t, d.do(board, "exec_workspace.update", UpdateExecutionWorkspace{ID: a.ID, Status: &active}, nil), ledger.Conflict, "")
	if next := d.start(d.run(ada), "n1", i.ID); next.ExecutionWorkspace == a.ID {
		t.Error("a run works in a closed workspace")
	}
}

func TestWorkspacesGoWithTheirIssueAndProject(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada := d.agent("Ada")
	project := d.project("Site")
	d.workspace(project, "/srv/site", "")
	left := func(id string) (row, tree bool) {
		_, row = ExecutionWorkspaceByID(d.tx, id)
		for _, w := range WorkspacesToClean(d.tx, "n1") {
			tree = tree || w.ID == id
		}
		return row, tree
	}
	issue := func(title string, isolated bool) (Issue, Run) {
		p, _ := projects.Get(d.tx, d.company, project)
		p.WorkspacePolicy = json.RawMessage(`{"enabled":false}`)
		if isolated {
			p.WorkspacePolicy = json.RawMessage(`{"enabled":true,"defaultMode":"isolated_workspace"}`)
		}
		projects.Put(d.tx, d.company, project, p)
		i := d.issue(t, CreateIssue{Project: project, Title: title})
		r := d.start(d.run(ada), "n1", i.ID)
		w, _ := ExecutionWorkspaceByID(d.tx, r.ExecutionWorkspace)
		if isolated {
			w.Cwd = "/n1/tree"
			execWorkspaces.Put(d.tx, d.company, w.ID, w)
		}
		return i, r
	}
	shared, one := issue("One", false)
	alone, two := issue("Two", true)
	_, three := issue("Three", false)
	_, four := issue("Four", true)
	d.must(t, board, "issue.delete", DeleteIssue{Issue: shared.ID}, nil)
	d.must(t, board, "issue.delete", DeleteIssue{Issue: alone.ID}, nil)
	if row, tree := left(one.ExecutionWorkspace); row || tree {
		t.Errorf("of a shared one is left: row %v, tree %v", row, tree)
	}
	if row, tree := left(two.ExecutionWorkspace); row || !tree {
		t.Errorf("of one with a tree is left: row %v, tree %v", row, tree)
	}
	if n := len(ExecutionWorkspacesOf(d.tx, d.company, WorkspaceQuery{Limit: 10})); n != 2 {
		t.Errorf("%d are listed, want 2", n)
	}
	d.must(t, board, "project.delete", DeleteProject{ID: project}, nil)
	if row, _ := left(three.ExecutionWorkspace); row {
		t.Error("the project's is left")
	}
	for _, r := range []Run{two, four} {
		if _, tree := left(r.ExecutionWorkspace); !tree {
			t.Error("the tree of a deleted project stays")
		}
		if err := d.byNode("n1", "exec_workspace.cleaned", CleanWorkspace{ID: r.ExecutionWorkspace, Failed: "it is in use"}); err != nil {
			t.Error(err)
		}
	}
	prefix := ledger.Key("c", d.company, "exec-workspace")
	for k := range d.tx.Scan(prefix, ledger.PrefixEnd(prefix), false) {
		t.Errorf("left: %s", k)
	}
	for _, prefix := range []string{"exec-workspace-company", "exec-cleanup"} {
		for k := range d.tx.Prefix(ledger.Key(prefix, "")) {
			t.Errorf("left: %s", k)
		}
	}
}
