package place_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestBranchNames(t *testing.T) {
	t.Parallel()
	p, i := entity.Project{Name: "Ünder World"}, entity.Issue{ID: companytest.UID(7), Identifier: "ACM-7",
		Title: "Fix: the ~flaky~ test!"}
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
		strings.Repeat("x", 300):        strings.Repeat("x", place.MaxBranch),
		"feature.lock":                  "feature",
	} {
		if got := place.BranchName(template, p, i); got != want {
			t.Errorf("%q becomes %q, want %q", template, got, want)
		}
	}
}

// For any template and title, the branch name is one that Git accepts and does not parse as
// an option.
func FuzzBranchName(f *testing.F) {
	f.Add("{{issue.identifier}}-{{slug}}", "Fix it")
	f.Add("-a/../b.lock/{{issue.title}}", "~^: \x00")
	f.Fuzz(func(t *testing.T, template, title string) {
		b := place.BranchName(template, entity.Project{Name: title}, entity.Issue{ID: companytest.UID(7), Identifier: "ACM-7",
			Title: title})
		bad := b == "" || len(b) > place.MaxBranch || strings.HasPrefix(b, "-") || strings.Contains(b, "..") ||
			strings.Contains(b, "//") ||
			strings.HasSuffix(b, "/") || strings.HasSuffix(b, ".") || strings.Contains(b, "/.") || strings.HasPrefix(b, ".") ||
			strings.HasPrefix(b, "/")
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

func TestWorkspacesOfRuns(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	project := d.Project("Site")
	of := d.Workspace(project, "/srv/site", "https://bob:CANARY@example.org/site.git")
	i, other := d.Issue(t, company.CreateIssue{Project: project, Title: "One"}),
		d.Issue(t, company.CreateIssue{Project: project, Title: "Two"})
	loose := d.Issue(t, company.CreateIssue{Title: "Three"})
	if r := d.Start(d.Run(ada), "n1", loose.ID); r.ExecutionWorkspace != "" {
		t.Error("a run of no project has a workspace")
	}
	shared := d.Start(d.Run(ada), "n1", i.ID)
	again := d.Start(d.Run(ada), "n2", i.ID)
	w, ok := place.ExecutionWorkspaceByID(d.Tx, shared.ExecutionWorkspace)
	if !ok || again.ExecutionWorkspace != w.ID || w.Mode != entity.SharedWorkspace || w.Strategy != "project_primary" ||
		w.Cwd != "/srv/site" ||
		w.ProjectWorkspace != core.NullText(of) || w.Node != "n2" || w.Name != i.Identifier {
		t.Errorf("the shared one is %+v", w)
	}
	if strings.Contains(string(w.RepoURL), "CANARY") || w.RepoURL != "https://example.org/site.git" {
		t.Errorf("its repository is shown as %s", w.RepoURL)
	}
	p, _ := entity.ProjectTable.Get(d.Tx, d.Company, project)
	p.WorkspacePolicy = json.RawMessage(`{"enabled":true,"defaultMode":"isolated_workspace",` +
		`"workspaceStrategy":{"type":"git_worktree","baseRef":"main"}}`)
	entity.ProjectTable.Put(d.Tx, d.Company, project, p)
	one, two := d.Start(d.Run(ada), "n1", i.ID), d.Start(d.Run(ada), "n1", other.ID)
	a, _ := place.ExecutionWorkspaceByID(d.Tx, one.ExecutionWorkspace)
	b, _ := place.ExecutionWorkspaceByID(d.Tx, two.ExecutionWorkspace)
	if a.ID == b.ID || a.ID == w.ID || a.Mode != entity.IsolatedWorkspace || a.Branch == b.Branch || a.Branch == "" ||
		a.Cwd != "" || a.BaseRef != "main" {
		t.Errorf("isolated ones are %+v and %+v", a, b)
	}
	if l, ok := one.Lease(); !ok || string(l.ExecutionWorkspace) != a.ID {
		t.Errorf("the run's lease is %+v", l)
	}
	if got := place.ExecutionWorkspacesOf(d.Tx, d.Company, place.WorkspaceQuery{Issue: i.ID, Limit: 10}); len(got) != 2 {
		t.Errorf("the issue has %d workspaces, want 2", len(got))
	}

	// A workspace in which a run works stays open. After it is closed, its node removes the
	// worktree, and the next run opens a new workspace.
	a.Cwd = "/n1/tree"
	place.ExecWorkspaces.Put(d.Tx, d.Company, a.ID, a)
	archived := place.WorkspaceArchived
	companytest.WantRefusal(t, d.Do(companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: a.ID,
		Status: &archived}, nil), ledger.Conflict, "A run works in the execution workspace")
	d.EndRun(one.ID)
	r, _ := entity.RunTable.Get(d.Tx, d.Company, one.ID)
	r.Owed = false
	entity.RunTable.Put(d.Tx, d.Company, r.ID, r)
	d.Must(t, companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: a.ID, Status: &archived}, nil)
	due := place.WorkspacesToClean(d.Tx, "n1")
	if len(due) != 1 || due[0].ID != a.ID || due[0].ClosedAt == 0 || due[0].CleanupEligibleAt == 0 {
		t.Errorf("to clean: %+v", due)
	}
	if len(place.WorkspacesToClean(d.Tx, "n2")) > 0 {
		t.Error("another node would clean it too")
	}
	active := place.WorkspaceActive
	companytest.WantRefusal(t, d.Do(companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: a.ID,
		Status: &active}, nil), ledger.Conflict, "The execution workspace is closed; the next run of its issue opens another")
	if next := d.Start(d.Run(ada), "n1", i.ID); next.ExecutionWorkspace == a.ID {
		t.Error("a run works in a closed workspace")
	}
}

func TestWorkspacesGoWithTheirIssueAndProject(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada := d.Agent("Ada")
	project := d.Project("Site")
	d.Workspace(project, "/srv/site", "")
	left := func(id string) (row, tree bool) {
		_, row = place.ExecutionWorkspaceByID(d.Tx, id)
		for _, w := range place.WorkspacesToClean(d.Tx, "n1") {
			tree = tree || w.ID == id
		}
		return row, tree
	}
	issue := func(title string, isolated bool) (entity.Issue, entity.Run) {
		p, _ := entity.ProjectTable.Get(d.Tx, d.Company, project)
		p.WorkspacePolicy = json.RawMessage(`{"enabled":false}`)
		if isolated {
			p.WorkspacePolicy = json.RawMessage(`{"enabled":true,"defaultMode":"isolated_workspace"}`)
		}
		entity.ProjectTable.Put(d.Tx, d.Company, project, p)
		i := d.Issue(t, company.CreateIssue{Project: project, Title: title})
		r := d.Start(d.Run(ada), "n1", i.ID)
		w, _ := place.ExecutionWorkspaceByID(d.Tx, r.ExecutionWorkspace)
		if isolated {
			w.Cwd = "/n1/tree"
			place.ExecWorkspaces.Put(d.Tx, d.Company, w.ID, w)
		}
		return i, r
	}
	shared, one := issue("One", false)
	alone, two := issue("Two", true)
	_, three := issue("Three", false)
	_, four := issue("Four", true)
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: shared.ID}, nil)
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: alone.ID}, nil)
	if row, tree := left(one.ExecutionWorkspace); row || tree {
		t.Errorf("of a shared one is left: row %v, tree %v", row, tree)
	}
	if row, tree := left(two.ExecutionWorkspace); row || !tree {
		t.Errorf("of one with a tree is left: row %v, tree %v", row, tree)
	}
	if n := len(place.ExecutionWorkspacesOf(d.Tx, d.Company, place.WorkspaceQuery{Limit: 10})); n != 2 {
		t.Errorf("%d are listed, want 2", n)
	}
	d.Must(t, companytest.Board, "project.delete", company.DeleteProject{ID: project}, nil)
	if row, _ := left(three.ExecutionWorkspace); row {
		t.Error("the project's is left")
	}
	for _, r := range []entity.Run{two, four} {
		if _, tree := left(r.ExecutionWorkspace); !tree {
			t.Error("the tree of a deleted project stays")
		}
		if err := d.ByNode("n1", "exec_workspace.cleaned", place.CleanWorkspace{ID: r.ExecutionWorkspace,
			Failed: "it is in use"}); err != nil {
			t.Error(err)
		}
	}
	prefix := ledger.Key("c", string(d.Company), "exec-workspace")
	for k := range d.Tx.Scan(prefix, ledger.PrefixEnd(prefix), false) {
		t.Errorf("left: %s", k)
	}
	for _, prefix := range []string{"exec-workspace-company", "exec-cleanup"} {
		for k := range d.Tx.Prefix(ledger.Key(prefix, "")) {
			t.Errorf("left: %s", k)
		}
	}
}
