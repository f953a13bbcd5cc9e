package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/selvage-mesh/selvage/adapter/worktree"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// runFolder creates the workspace of a run on this node and records its location. A
// shared folder that is not on this node is not an error: the run works in its agent's
// own folder, and its log says so.
func (n *Node) runFolder(ctx context.Context, inv company.Invocation) (*entity.RunFolder, string, error) {
	run := inv.Run
	var w place.ExecutionWorkspace
	var of place.Workspace
	var l place.Lifecycle
	err := n.ledger.View(func(tx *ledger.Tx) error {
		var ok bool
		if w, ok = place.ExecutionWorkspaceByID(tx, run.ExecutionWorkspace); !ok {
			return fmt.Errorf("execution workspace %s is gone", run.ExecutionWorkspace)
		}
		if of, ok = place.RepositoryOf(tx, w); !ok {
			return fmt.Errorf("project workspace %s is gone", w.ProjectWorkspace)
		}
		l = place.LifecycleOf(tx, w)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	f := folderOf(w)
	if w.Mode != entity.IsolatedWorkspace {
		switch info, err := os.Stat(string(of.Cwd)); {
		case of.Cwd == "":
			return nil, "", nil
		case err != nil || !info.IsDir() || !filepath.IsAbs(string(of.Cwd)):
			return nil, fmt.Sprintf("the project's folder %s is not on this node; working in the agent's own", of.Cwd), nil
		}
		f.Dir = string(of.Cwd)
		return &f, "", n.prepare(ctx, inv, w, l, f)
	}
	f.Dir, err = n.work.trees.Make(ctx, worktree.Spec{ID: w.ID, Source: of.ID, Local: string(of.Cwd),
		URL:  string(of.RepoURL),
		Base: string(w.BaseRef), Branch: string(w.Branch), Parent: w.ParentDir})
	if err != nil {
		return nil, "", err
	}
	f.Worktree = f.Dir
	cmd := n.command(place.KindExecWorkspaceRealize, w.Company, place.RealizeWorkspace{ID: w.ID, Run: run.ID, Cwd: f.Dir})
	if err := n.carryOut(ctx, cmd); err != nil {
		return nil, "", fmt.Errorf("tell the mesh of the worktree: %w", err)
	}
	return &f, fmt.Sprintf("working on branch %s in %s", f.Branch, f.Dir), n.prepare(ctx, inv, w, l, f)
}

// folderOf returns the folder of an execution workspace as the mesh has it.
func folderOf(w place.ExecutionWorkspace) entity.RunFolder {
	f := entity.RunFolder{ID: w.ID, Mode: w.Mode, Strategy: w.Strategy, Source: w.Strategy, Project: w.Project,
		ProjectWorkspace: string(w.ProjectWorkspace),
		RepoURL:          string(w.RepoURL), BaseRef: string(w.BaseRef), Branch: string(w.Branch), Dir: string(w.Cwd)}
	if w.Mode == entity.IsolatedWorkspace {
		f.Worktree = f.Dir
	}
	return f
}

// cleanWorkspace executes the commands of a closed workspace, and removes its worktree.
func (n *Node) cleanWorkspace(ctx context.Context, w place.ExecutionWorkspace) error {
	dir := string(w.Cwd)
	if dir == "" { // it was deleted before its node recorded the location
		dir = n.work.trees.Path(worktree.Spec{ID: w.ID, Parent: w.ParentDir})
	}
	if _, err := os.Stat(dir); err == nil {
		if err := n.wind(ctx, w, dir); err != nil {
			return err
		}
	}
	if w.Mode != entity.IsolatedWorkspace {
		return nil
	}
	return n.work.trees.Remove(ctx, dir)
}

// cleanTrees removes the worktrees of closed workspaces, of workspaces that the mesh no
// longer has because their company was deleted, and of those that were closed after
// another node had taken over their issue.
func (n *Node) cleanTrees(ctx context.Context) {
	every(ctx, choreEvery, func() {
		ids, err := n.work.trees.Trees()
		if err != nil {
			n.log.Warn("worktrees: list", "error", err)
			return
		}
		var due []place.ExecutionWorkspace
		var lost []string
		err = n.ledger.View(func(tx *ledger.Tx) error {
			due = place.WorkspacesToClean(tx, string(n.ID()))
			due = slices.DeleteFunc(due, func(w place.ExecutionWorkspace) bool { _, busy := w.Busy(tx); return busy })
			for _, id := range ids {
				if w, ok := place.AnyExecutionWorkspace(tx, id); !ok || string(w.Node) != string(n.ID()) && w.Status.Over() {
					lost = append(lost, id)
				}
			}
			return nil
		})
		if err != nil {
			n.log.Warn("worktrees: read what is to be removed", "error", err)
			return
		}
		for _, w := range due {
			done := place.CleanWorkspace{ID: w.ID}
			if err := n.cleanWorkspace(ctx, w); err != nil {
				if ctx.Err() != nil || errors.Is(err, errNoAuthority) {
					return
				}
				done.Failed = err.Error()
			}
			if err := n.carryOut(ctx, n.command(place.KindExecWorkspaceCleaned, w.Company, done)); err != nil {
				n.log.Warn("worktrees: tell that one is removed", "workspace", w.ID, "error", err)
			}
		}
		if len(lost) == 0 || n.Ready(ctx) != nil {
			return // this node may not have applied their creation yet
		}
		for _, id := range lost {
			if err := n.work.trees.Remove(ctx, n.work.trees.Path(worktree.Spec{ID: filepath.Base(id)})); err != nil {
				n.log.Warn("worktrees: remove one that nobody knows", "workspace", id, "error", err)
			}
		}
	})
}
