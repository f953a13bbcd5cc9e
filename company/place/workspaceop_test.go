package place_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestOperationsOnWorkspaces(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	_, r, w := d.Space(t, "One")
	begin := func(id string) place.StartOperation {
		return place.StartOperation{ID: id, Workspace: w.ID, Run: r.ID, Phase: place.OperationProvision, Name: "setupCommand",
			Command: "make", Cwd: "/n1/tree", LogRef: "x"}
	}
	one := d.ID()
	companytest.WantRefusal(t, d.ByNode("n2", "workspace_op.start", begin(one)), ledger.NotFound,
		"Execution workspace not found")
	if err := d.ByNode("n1", "workspace_op.start", begin(one)); err != nil {
		t.Fatal(err)
	}
	companytest.WantRefusal(t, d.ByNode("n1", "workspace_op.start", begin(one)), ledger.Conflict,
		"operation 00000000-0000-4000-8000-0000000003ee does not wait for this node")
	companytest.WantRefusal(t, d.ByNode("n2", "workspace_op.finish", place.FinishOperation{ID: one}), ledger.Forbidden,
		"only its node reports on an operation")
	if err := d.ByNode("n1", "workspace_op.finish", place.FinishOperation{ID: one, Error: "it exited with code 3",
		ExitCode: new(int64(3)), LogBytes: 10}); err != nil {
		t.Fatal(err)
	}
	companytest.WantRefusal(t, d.ByNode("n1", "workspace_op.finish", place.FinishOperation{ID: one}), ledger.Conflict,
		"the operation is over")
	o, ok := place.OperationByID(d.Tx, one)
	if !ok || o.Status != place.OperationFailed || *o.ExitCode != 3 || o.FinishedAt == 0 || string(o.Run) != r.ID {
		t.Errorf("the operation is %+v", o)
	}

	// What was in progress on a lost node has failed, and nothing else has.
	two := d.ID()
	if err := d.ByNode("n1", "workspace_op.start", begin(two)); err != nil {
		t.Fatal(err)
	}
	place.LoseOperations(d.Context(companytest.Board, "", nil), "n2")
	if o, _ := place.OperationByID(d.Tx, two); o.Status != place.OperationRunning {
		t.Errorf("another node's loss made it %s", o.Status)
	}
	place.LoseOperations(d.Context(companytest.Board, "", nil), "n1")
	if o, _ := place.OperationByID(d.Tx, two); o.Status != place.OperationFailed || o.Error == "" ||
		len(place.OperationsOn(d.Tx, "n1")) > 0 {
		t.Errorf("after the loss of its node it is %+v", o)
	}
	for k := range place.MaxOperations + 5 {
		if err := d.ByNode("n1", "workspace_op.start", begin(companytest.UID(100_000+k))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(place.OperationsOf(d.Tx, d.Company, w.ID)); n != place.MaxOperations {
		t.Errorf("%d operations are kept, want %d", n, place.MaxOperations)
	}
	if _, ok := place.OperationByID(d.Tx, one); ok {
		t.Error("the oldest stayed")
	}
}

func TestWhatIsExecutedForAWorkspace(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	i, _, w := d.Space(t, "One")
	l := place.LifecycleOf(d.Tx, w)
	if l.Setup != "make" || l.Provision != "npm ci" || l.Cleanup != "make clean" || l.Teardown != "rm x" {
		t.Errorf("by the project: %+v", l)
	}
	if a, b := l.Prepared("n1", "/x"), l.Prepared("n2", "/x"); a == b || a == "" || (place.Lifecycle{Cleanup: "x"}).
		Prepared("n1", "/x") != "" {
		t.Error("what prepares a workspace is not told apart")
	}
	ada := d.Agent("Bea")
	own := place.UpdateExecutionWorkspace{ID: w.ID, Config: &place.WorkspaceConfig{Provision: new("true"),
		Teardown: new("")}}
	companytest.WantRefusal(t, d.Do(companytest.As{Agent: ada, Run: d.Run(ada)}, "exec_workspace.update", own, nil),
		ledger.Forbidden, "Agents may not define what a node executes; ask the board")
	d.Must(t, companytest.Board, "exec_workspace.update", own, nil)
	w, _ = place.ExecutionWorkspaceByID(d.Tx, w.ID)
	if l := place.LifecycleOf(d.Tx, w); l.Provision != "true" || l.Teardown != "" || l.Setup != "make" {
		t.Errorf("with its own settings: %+v", l)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "exec_workspace.update", place.UpdateExecutionWorkspace{ID: w.ID,
		Config: &place.WorkspaceConfig{Desired: new("maybe")}}, nil), ledger.Invalid,
		"config.desiredState is not one of running, stopped, manual")

	// Only the board decides what is executed; agents may change everything else.
	who := companytest.As{Agent: ada, Run: d.Run(ada)}
	name, setup := "X", "id"
	policy := json.RawMessage(`{"enabled":true,"workspaceStrategy":{"provisionCommand":"npm ci",` +
		`"teardownCommand":"rm x"},"defaultMode":"shared_workspace"}`)
	d.Must(t, who, "project.update", entity.SaveProject{ID: i.Project, WorkspacePolicy: policy}, nil)
	for _, p := range []string{`{"workspaceStrategy":{"provisionCommand":"id"}}`,
		`{"workspaceRuntime":{"services":[]}}`, `{}`} {
		companytest.WantRefusal(t, d.Do(who, "project.update", entity.SaveProject{ID: i.Project,
			WorkspacePolicy: json.RawMessage(p)}, nil), ledger.Forbidden,
			"Agents may not define what a node executes; ask the board")
	}
	companytest.WantRefusal(t, d.Do(who, "project.create", entity.SaveProject{ID: d.ID(), Name: &name,
		WorkspacePolicy: policy}, nil), ledger.Forbidden, "Agents may not define what a node executes; ask the board")
	d.Must(t, who, "workspace.create", entity.SaveWorkspace{ID: d.ID(), Project: i.Project, Cwd: &name}, nil)
	companytest.WantRefusal(t, d.Do(who, "workspace.create", entity.SaveWorkspace{ID: d.ID(), Project: i.Project,
		Cwd: &name, SetupCommand: &setup}, nil), ledger.Forbidden,
		"Agents may not define what a node executes; ask the board")
	companytest.WantRefusal(t, d.Do(who, "workspace.update", entity.SaveWorkspace{ID: string(w.ProjectWorkspace),
		Project: i.Project, CleanupCommand: &setup}, nil), ledger.Forbidden,
		"Agents may not define what a node executes; ask the board")

	// A deleted workspace keeps the commands that its node still has to execute.
	d.Must(t, companytest.Board, "issue.delete", company.DeleteIssue{Issue: i.ID}, nil)
	d.Must(t, companytest.Board, "project.delete", company.DeleteProject{ID: i.Project}, nil)
	due := place.WorkspacesToClean(d.Tx, "n1")
	if len(due) != 1 || place.LifecycleOf(d.Tx, due[0]).Cleanup != "make clean" {
		t.Errorf("left to do: %s", fmt.Sprint(due))
	}
}
