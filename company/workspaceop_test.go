package company

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// space is an isolated workspace on node n1 whose project has commands.
func (d *desk) space(t testing.TB, title string) (Issue, Run, ExecutionWorkspace) {
	t.Helper()
	project := d.project("Site")
	of := d.workspace(project, "/srv/site", "")
	w, _ := workspaces.Get(d.tx, d.company, of)
	w.SetupCommand, w.CleanupCommand = "make", "make clean"
	workspaces.Put(d.tx, d.company, of, w)
	p, _ := projects.Get(d.tx, d.company, project)
	p.WorkspacePolicy = json.RawMessage(`{"enabled":true,"defaultMode":"isolated_workspace","workspaceStrategy":{"provisionCommand":"npm ci","teardownCommand":"rm x"}}`)
	projects.Put(d.tx, d.company, project, p)
	i := d.issue(t, CreateIssue{Project: project, Title: title})
	r := d.start(d.run(d.agent("Ada")), "n1", i.ID)
	ew, _ := ExecutionWorkspaceByID(d.tx, r.ExecutionWorkspace)
	ew.Cwd = "/n1/tree"
	execWorkspaces.Put(d.tx, d.company, ew.ID, ew)
	return i, r, ew
}

func TestOperationsOnWorkspaces(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, r, w := d.space(t, "One")
	begin := func(id string) StartOperation {
		return StartOperation{ID: id, Workspace: w.ID, Run: r.ID, Phase: OperationProvision, Name: "setupCommand", Command: "make", Cwd: "/n1/tree", LogRef: "x"}
	}
	one := d.id()
	wantRefusal(t, d.byNode("n2", "workspace_op.start", begin(one)), ledger.NotFound, "")
	if err := d.byNode("n1", "workspace_op.start", begin(one)); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, d.byNode("n1", "workspace_op.start", begin(one)), ledger.Conflict, "")
	wantRefusal(t, d.byNode("n2", "workspace_op.finish", FinishOperation{ID: one}), ledger.Forbidden, "")
	if err := d.byNode("n1", "workspace_op.finish", FinishOperation{ID: one, Error: "it exited with code 3", ExitCode: new(int64(3)), LogBytes: 10}); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, d.byNode("n1", "workspace_op.finish", FinishOperation{ID: one}), ledger.Conflict, "")
	o, ok := OperationByID(d.tx, one)
	if !ok || o.Status != OperationFailed || *o.ExitCode != 3 || o.FinishedAt == 0 || string(o.Run) != r.ID {
		t.Errorf("the operation is %+v", o)
	}

	// What is under way on a lost node has failed, and only that.
	two := d.id()
	if err := d.byNode("n1", "workspace_op.start", begin(two)); err != nil {
		t.Fatal(err)
	}
	loseOperations(d.context(board, "", nil), "n2")
	if o, _ := OperationByID(d.tx, two); o.Status != OperationRunning {
		t.Errorf("another node's loss made it %s", o.Status)
	}
	loseOperations(d.context(board, "", nil), "n1")
	if o, _ := OperationByID(d.tx, two); o.Status != OperationFailed || o.Error == "" || len(OperationsOn(d.tx, "n1")) > 0 {
		t.Errorf("after the loss of its node it is %+v", o)
	}
	for k := range MaxOperations + 5 {
		if err := d.byNode("n1", "workspace_op.start", begin(uid(100_000+k))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(OperationsOf(d.tx, d.company, w.ID)); n != MaxOperations {
		t.Errorf("%d operations are kept, want %d", n, MaxOperations)
	}
	if _, ok := OperationByID(d.tx, one); ok {
		t.Error("the oldest stayed")
	}
}

func TestWhatIsExecutedForAWorkspace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i, _, w := d.space(t, "One")
	l := LifecycleOf(d.tx, w)
	if l.Setup != "make" || l.Provision != "npm ci" || l.Cleanup != "make clean" || l.Teardown != "rm x" {
		t.Errorf("by the project: %+v", l)
	}
	if a, b := l.Prepared("n1", "/x"), l.Prepared("n2", "/x"); a == b || a == "" || (Lifecycle{Cleanup: "x"}).Prepared("n1", "/x") != "" {
		t.Error("what prepares a workspace is not told apart")
	}
	ada := d.agent("Bea")
	own := UpdateExecutionWorkspace{ID: w.ID, Config: &WorkspaceConfig{Provision: new("true"), Teardown: new("")}}
	wantRefusal(t, d.do(as{ada, d.run(ada)}, "exec_workspace.update", own, nil), ledger.Forbidden, "")
	d.must(t, board, "exec_workspace.update", own, nil)
	w, _ = ExecutionWorkspaceByID(d.tx, w.ID)
	if l := LifecycleOf(d.tx, w); l.Provision != "true" || l.Teardown != "" || l.Setup != "make" {
		t.Errorf("with its own settings: %+v", l)
	}
	wantRefusal(t, d.do(board, "exec_workspace.update", UpdateExecutionWorkspace{ID: w.ID, Config: &WorkspaceConfig{Desired: new("maybe")}}, nil), ledger.Invalid, "")

	// Only the board says what is executed; agents may change all else.
	who := as{ada, d.run(ada)}
	name, setup := "X", "id"
	policy := json.RawMessage(`{"enabled":true,"workspaceStrategy":{"provisionCommand":"npm ci","teardownCommand":"rm x"},"defaultMode":"shared_workspace"}`)
	d.must(t, who, "project.update", SaveProject{ID: string(i.Project), WorkspacePolicy: policy}, nil)
	for _, p := range []string{`{"workspaceStrategy":{"provisionCommand":"id"}}`, `{"workspaceRuntime":{"services":[]}}`, `{}`} {
		wantRefusal(t, d.do(who, "project.update", SaveProject{ID: string(i.Project), WorkspacePolicy: json.RawMessage(p)}, nil), ledger.Forbidden, "")
	}
	wantRefusal(t, d.do(who, "project.create", SaveProject{ID: d.id(), Name: &name, WorkspacePolicy: policy}, nil), ledger.Forbidden, "")
	d.must(t, who, "workspace.create", SaveWorkspace{ID: d.id(), Project: string(i.Project), Cwd: &name}, nil)
	wantRefusal(t, d.do(who, "workspace.create", SaveWorkspace{ID: d.id(), Project: string(i.Project), Cwd: &name, SetupCommand: &setup}, nil), ledger.Forbidden, "")
	wantRefusal(t, d.do(who, "workspace.update", SaveWorkspace{ID: string(w.ProjectWorkspace), Project: string(i.Project), CleanupCommand: &setup}, nil), ledger.Forbidden, "")

	// One that is deleted keeps what its node still has to do.
	d.must(t, board, "issue.delete", DeleteIssue{Issue: i.ID}, nil)
	d.must(t, board, "project.delete", DeleteProject{ID: string(i.Project)}, nil)
	due := WorkspacesToClean(d.tx, "n1")
	if len(due) != 1 || LifecycleOf(d.tx, due[0]).Cleanup != "make clean" {
		t.Errorf("left to do: %s", fmt.Sprint(due))
	}
}
