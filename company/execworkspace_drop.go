package company

import "github.com/selvage-mesh/selvage/ledger"

// droppedWorkspaces bounds the execution workspaces that go with their issue or
// project in one command; a node removes the rest with issue.sweep.
const droppedWorkspaces = 50

// dropWorkspacesOf deletes the execution workspaces of an issue or a project. One
// whose folder is on a node, or is being made there, is hidden until the node
// has removed the folder.
func dropWorkspacesOf(c *ledger.Context, company, owner string) {
	n := 0
	for _, id := range firstIDs(execWorkspaceOf.IDs(c.Tx, company, owner, false), droppedWorkspaces) {
		if w, ok := execWorkspaces.Get(c.Tx, company, id); ok {
			dropExecutionWorkspace(c.Tx, w, TimeOf(c.Now))
			n++
		}
	}
	if n == droppedWorkspaces {
		c.Set(threadKey(company, owner), nil)
	}
}

// firstIDs collects at most n of what an index yields, so that rows may be
// changed while they are gone through.
func firstIDs(ids func(func(string) bool), n int) (out []string) {
	for id := range ids {
		if len(out) == n {
			break
		}
		out = append(out, id)
	}
	return out
}

func dropExecutionWorkspace(tx *ledger.Tx, w ExecutionWorkspace, now Time) {
	_, busy := w.Busy(tx)
	l := LifecycleOf(tx, w)
	if w.Node == "" || w.Mode != IsolatedWorkspace && (w.Prepared == "" || l.Cleanup == "") || w.Cwd == "" && !busy {
		forgetWorkspace(tx, w)
		return
	}
	dropServices(tx, w.Company, w.ID)
	w.Frozen = &l
	w.Gone, w.Status, w.ClosedAt, w.UpdatedAt, w.CleanupEligibleAt, w.CleanupReason = true, WorkspaceArchived, now, now, now, "deleted"
	execWorkspaces.Put(tx, w.Company, w.ID, w)
	tx.Set(execCleanupKey(string(w.Node), w.ID), []byte(w.Company))
}

// listed returns value, "" for an execution workspace whose owner is gone.
func (w *ExecutionWorkspace) listed(value string) string {
	if w.Gone {
		return ""
	}
	return value
}

func forgetWorkspace(tx *ledger.Tx, w ExecutionWorkspace) {
	dropServices(tx, w.Company, w.ID)
	execWorkspaces.Delete(tx, w.Company, w.ID)
	tx.Delete(execCompanyKey(w.ID))
	tx.Delete(execCleanupKey(string(w.Node), w.ID))
	for range operationsPlace.IDs(tx, w.Company, w.ID, false) {
		tx.Set(threadKey(w.Company, w.ID), nil) // they can be more than one command may remove
		break
	}
}
