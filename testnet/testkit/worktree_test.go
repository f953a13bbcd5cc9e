package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Two issues of a project whose policy isolates them are worked on at the same
// time, each in a worktree and on a branch of its own; closing one removes its
// tree and leaves its branch. What cannot be made fails the run, and says why.
func TestIssuesHaveWorktrees(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	repo := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"},
			args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "first")

	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	policy := map[string]any{"enabled": true, "defaultMode": "isolated_workspace",
		"workspaceStrategy": map[string]any{"type": "git_worktree"}}
	project := func(name, cwd string) string {
		var p struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(of)+"/projects",
			map[string]any{"name": name, "executionWorkspacePolicy": policy,
				"workspace": map[string]any{"name": "main", "cwd": cwd, "isPrimary": true}}, &p)
		return p.ID
	}
	site, nowhere := project("Site", repo), project("Nowhere", filepath.Join(repo, "none"))
	const script = `echo "$PWD|$PAPERCLIP_WORKSPACE_CWD|$PAPERCLIP_WORKSPACE_BRANCH|` +
		`$PAPERCLIP_WORKSPACE_WORKTREE_PATH|$PAPERCLIP_WORKSPACE_STRATEGY" > new; ` +
		`git symbolic-ref --short HEAD >> new; mv new told`
	a, err := b.Hire(0, of, "Writer", map[string]any{"command": "/bin/sh", "args": []string{"-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	type workspace struct {
		ID, Mode, Status, StrategyType, Cwd, BranchName, SourceIssueID string
	}
	assign := func(project, title string) (id string) {
		var row struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(of)+"/issues", map[string]any{"title": title, "status": "todo",
			"projectId": project, "assigneeAgentId": a.ID}, &row)
		return row.ID
	}
	type run struct{ RunID, Status, Error, ErrorCode string }
	ended := func(issue string) (last run) {
		b.Until("the run of the issue ended", func() bool {
			var runs []run
			b.Must(0, "GET", "/api/issues/"+issue+"/runs", nil, &runs)
			if len(runs) == 0 || runs[len(runs)-1].Status == "running" || runs[len(runs)-1].Status == "queued" {
				return false
			}
			b.Must(0, "GET", "/api/heartbeat-runs/"+runs[len(runs)-1].RunID, nil, &last)
			return true
		})
		return last
	}
	one, two := assign(site, "Fix the door"), assign(site, "Paint the wall")
	var trees []workspace
	for _, issue := range []string{one, two} {
		if r := ended(issue); r.Status != "succeeded" {
			t.Fatalf("the run is %+v", r)
		}
		var list []workspace
		b.Must(0, "GET", "/api/companies/"+string(of)+"/execution-workspaces?issueId="+issue, nil, &list)
		if len(list) != 1 || list[0].Mode != "isolated_workspace" || list[0].StrategyType != "git_worktree" ||
			list[0].Cwd == "" {
			t.Fatalf("the issue has %+v", list)
		}
		w := list[0]
		told := readFile(b, filepath.Join(w.Cwd, "told"))
		if want := strings.Join([]string{w.Cwd, w.Cwd, w.BranchName, w.Cwd, "git_worktree"}, "|") + "\n" +
			w.BranchName; told != want {
			t.Errorf("the run told %q, want %q", told, want)
		}
		trees = append(trees, w)
	}
	if trees[0].Cwd == trees[1].Cwd || trees[0].BranchName != "ACM-1-fix-the-door" ||
		trees[1].BranchName != "ACM-2-paint-the-wall" {
		t.Errorf("worktrees are %+v", trees)
	}
	b.Idle()
	path := "/api/execution-workspaces/" + trees[0].ID
	b.Until("the workspace can be closed", func() bool {
		var ready struct{ State string }
		b.Must(0, "GET", path+"/close-readiness", nil, &ready)
		return ready.State == "ready"
	})
	b.Must(0, "PATCH", path, map[string]any{"status": "archived"}, nil)
	b.Until("the worktree is removed", func() bool {
		_, err := os.Stat(trees[0].Cwd)
		var w workspace
		b.Must(0, "GET", path, nil, &w)
		return os.IsNotExist(err) && w.Cwd == "" && w.Status == "archived"
	})
	if branches := git("branch", "--list", "--format=%(refname:short)"); !strings.Contains(branches, trees[0].BranchName) {
		t.Errorf("the branch went with its tree: %s", branches)
	}
	if _, err := os.Stat(trees[1].Cwd); err != nil {
		t.Errorf("another issue's worktree: %v", err)
	}
	for at, want := range map[string]int{path: 409, "/api/execution-workspaces/" + trees[1].ID: 422} {
		if got, err := b.Ask(0, "POST", at+"/runtime-services/start", map[string]any{}, nil); err != nil ||
			got.Status != want {
			t.Errorf("services of a workspace without any, or of a closed one: %d, want %d, %v", got.Status, want, err)
		}
	}
	lost := assign(nowhere, "Do it nowhere")
	if r := ended(lost); r.Status != "failed" || r.ErrorCode != "workspace_failed" || !strings.Contains(r.Error,
		"is not on this node") {
		t.Errorf("the run without a repository is %+v", r)
	}
}
