package place

import (
	"cmp"
	"iter"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Rules are the commands and hooks that this package adds to the kernel.
var Rules = company.Rules{
	Kinds: slices.Concat(workspaceKinds, executionWorkspaceKinds, operationKinds, serviceKinds, environmentKinds),
	Forget: map[string]func(tx *ledger.Tx, id string, row []byte){
		"exec-workspace": func(tx *ledger.Tx, id string, row []byte) {
			tx.Delete(ExecCompanyKey(id))
			tx.Delete(ExecCleanupKey(string(core.DecodeRow[ExecutionWorkspace](row).Node), id))
		},
		"runtime-service": func(tx *ledger.Tx, id string, row []byte) {
			tx.Delete(ServiceCompanyKey(id))
			tx.Delete(ServiceNodeKey(string(core.DecodeRow[RuntimeService](row).Node), id))
		},
		"workspace-op": func(tx *ledger.Tx, id string, row []byte) {
			tx.Delete(OperationCompanyKey(id))
			tx.Delete(OperationNodeKey(string(core.DecodeRow[WorkspaceOperation](row).Node), id))
		},
	},
	Left: func(tx *ledger.Tx, company ledger.CompanyID, owner string) iter.Seq2[[]byte, func(core.Time)] {
		return func(yield func([]byte, func(core.Time)) bool) {
			for id := range operationsPlace.IDs(tx, company, owner, false) {
				if !yield(Operations.Key(company, id), func(core.Time) { dropOperation(tx, company, id) }) {
					return
				}
			}
			for id := range execWorkspaceOf.IDs(tx, company, owner, false) {
				w, _ := ExecWorkspaces.Get(tx, company, id)
				// The index key is deleted whatever happens to the row.
				if !yield(ledger.Key("c", string(company), "exec-workspace-of", owner, id),
					func(now core.Time) { dropExecutionWorkspace(tx, w, now) }) {
					return
				}
			}
		}
	},
	ProjectDeleted: func(c *ledger.Context, p entity.Project) {
		dropWorkspacesOf(c, p.Company, p.ID)
		for _, w := range WorkspacesOf(c.Tx, p.Company, p.ID) {
			dropWorkspace(c.Tx, w)
		}
	},
	IssueDeleted: func(c *ledger.Context, i entity.Issue) { dropWorkspacesOf(c, i.Company, i.ID) },
	CheckIssue: func(tx *ledger.Tx, was, next entity.Issue) error {
		if next.Workspace != "" && next.Workspace != was.Workspace {
			if !workspaceExists(tx, next.Company, next.Workspace) {
				return errNoWorkspace()
			}
			if err := checkPlace(next, tx); err != nil {
				return err
			}
		}
		if next.ExecutionWorkspace != "" && next.ExecutionWorkspace != was.ExecutionWorkspace && !execWorkspaceExists(tx,
			next.Company, next.ExecutionWorkspace) {
			return errNoExecutionWorkspace()
		}
		return nil
	},
	RunStarted: OpenWorkspace,
	NodeLost: func(c *ledger.Context, node string) {
		loseOperations(c, node)
		loseServices(c, node)
	},
	Places: locations{},
}

// locations implements the hook by which the kernel asks about places.
type locations struct{}

func (locations) Inherit(tx *ledger.Tx, i entity.Issue, from string, named bool) (entity.Issue, error) {
	return inheritWorkspace(tx, i, from, named)
}

func (locations) Fits(tx *ledger.Tx, i entity.Issue) error { return checkPlace(i, tx) }

func (locations) CheckProject(c *ledger.Context, was, p entity.Project) error {
	if policyCommands(p.WorkspacePolicy) != policyCommands(was.WorkspacePolicy) {
		if err := mayDefineCommands(c); err != nil {
			return err
		}
	}
	return checkPolicy(p, c.Tx, was)
}

func (locations) Equip(c *ledger.Context, p entity.Project, s entity.SaveProject) (first string, err error) {
	all := s.More
	if s.Workspace != nil {
		all = append([]entity.SaveWorkspace{*s.Workspace}, all...)
	}
	for _, one := range all {
		one.Project = p.ID
		w, err := addWorkspace(c, one)
		if err != nil {
			return "", err
		}
		first = cmp.Or(first, w.ID)
	}
	return first, nil
}

func (locations) Remote(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	_, ok := NamedEnvironments.Get(tx, company, id)
	return ok
}

func (locations) HasWorkspace(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	return execWorkspaceExists(tx, company, id)
}

func (locations) HasService(tx *ledger.Tx, company ledger.CompanyID, id string) bool {
	return tx.Has(Services.Key(company, id))
}
