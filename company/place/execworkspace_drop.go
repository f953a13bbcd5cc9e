package place

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// droppedWorkspaces bounds the execution workspaces that one command deletes with their
// issue or project. issue.sweep, given by a node, deletes the rest.
const droppedWorkspaces = 50

// dropWorkspacesOf deletes the execution workspaces of an issue or a project. If a node has
// the folder, or is making it, the row is hidden and kept until the node has removed the
// folder.
func dropWorkspacesOf(c *ledger.Context, of ledger.CompanyID, owner string) {
	n := 0
	for _, id := range firstIDs(execWorkspaceOf.IDs(c.Tx, of, owner, false), droppedWorkspaces) {
		if w, ok := ExecWorkspaces.Get(c.Tx, of, id); ok {
			dropExecutionWorkspace(c.Tx, w, core.TimeOf(c.Now))
			n++
		}
	}
	if n == droppedWorkspaces {
		c.Set(company.ThreadKey(of, owner), nil)
	}
}

// firstIDs collects at most n IDs of an index, so that the caller may change rows while it
// loops over them.
func firstIDs(ids func(func(string) bool), n int) (out []string) {
	for id := range ids {
		if len(out) == n {
			break
		}
		out = append(out, id)
	}
	return out
}

func dropExecutionWorkspace(tx *ledger.Tx, w ExecutionWorkspace, now core.Time) {
	_, busy := w.Busy(tx)
	l := LifecycleOf(tx, w)
	if w.Node == "" || w.Mode != entity.IsolatedWorkspace && (w.Prepared == "" || l.Cleanup == "") ||
		w.Cwd == "" && !busy {
		forgetWorkspace(tx, w)
		return
	}
	dropServices(tx, w.Company, w.ID)
	w.Frozen = &l
	w.Gone, w.Status, w.ClosedAt, w.UpdatedAt, w.CleanupEligibleAt, w.CleanupReason = true, WorkspaceArchived, now, now,
		now, "deleted"
	ExecWorkspaces.Put(tx, w.Company, w.ID, w)
	tx.Set(ExecCleanupKey(string(w.Node), w.ID), []byte(w.Company))
}

// listed returns value, or "" if the owner of the execution workspace is deleted.
func (w *ExecutionWorkspace) listed(value string) string {
	if w.Gone {
		return ""
	}
	return value
}

func forgetWorkspace(tx *ledger.Tx, w ExecutionWorkspace) {
	dropServices(tx, w.Company, w.ID)
	ExecWorkspaces.Delete(tx, w.Company, w.ID)
	tx.Delete(ExecCompanyKey(w.ID))
	tx.Delete(ExecCleanupKey(string(w.Node), w.ID))
	for range operationsPlace.IDs(tx, w.Company, w.ID, false) {
		tx.Set(company.ThreadKey(w.Company, w.ID), nil) // there may be more than one command may delete
		break
	}
}
