package companytest

import (
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

func (d *Desk) Workspace(project, cwd, repo string) string {
	id := d.ID()
	place.Workspaces.Put(d.Tx, d.Company, id, place.Workspace{ID: id, Company: d.Company, Project: project,
		Cwd: core.NullText(cwd), RepoURL: core.NullText(repo), Primary: true})
	return id
}

// ByNode carries out a command of a node, in its first session.
func (d *Desk) ByNode(node, kind string, payload any) error {
	c := d.Context(Board, kind, payload)
	c.Cmd.Actor, c.Cmd.Credential, c.Session = ledger.Actor{Type: "node", ID: node}, ledger.Credential{Kind: "node",
		ID: node}, 1
	c.Tx = d.Tx.Child()
	if _, err := d.Mux[kind](c); err != nil {
		return err
	}
	c.Tx.Merge()
	d.Last = c.Changes()
	return nil
}

// Start gives a run a node and an issue, and opens its workspace.
func (d *Desk) Start(run, node, issue string) entity.Run {
	r, _ := entity.RunTable.Get(d.Tx, d.Company, run)
	r.Node, r.Session, r.Context.IssueID = node, 1, issue
	r = place.OpenWorkspace(d.Context(As{}, "", nil), r)
	d.StoreRun(r)
	return r
}
