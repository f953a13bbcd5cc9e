package companytest

import (
	"encoding/json"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
)

// Space is an isolated workspace on node n1 whose project has commands.
func (d *Desk) Space(t testing.TB, title string) (entity.Issue, entity.Run, place.ExecutionWorkspace) {
	t.Helper()
	project := d.Project("Site")
	of := d.Workspace(project, "/srv/site", "")
	w, _ := place.Workspaces.Get(d.Tx, d.Company, of)
	w.SetupCommand, w.CleanupCommand = "make", "make clean"
	place.Workspaces.Put(d.Tx, d.Company, of, w)
	p, _ := entity.ProjectTable.Get(d.Tx, d.Company, project)
	p.WorkspacePolicy = json.RawMessage(`{"enabled":true,"defaultMode":"isolated_workspace",` +
		`"workspaceStrategy":{"provisionCommand":"npm ci","teardownCommand":"rm x"}}`)
	entity.ProjectTable.Put(d.Tx, d.Company, project, p)
	i := d.Issue(t, company.CreateIssue{Project: project, Title: title})
	r := d.Start(d.Run(d.Agent("Ada")), "n1", i.ID)
	ew, _ := place.ExecutionWorkspaceByID(d.Tx, r.ExecutionWorkspace)
	ew.Cwd = "/n1/tree"
	place.ExecWorkspaces.Put(d.Tx, d.Company, ew.ID, ew)
	return i, r, ew
}
