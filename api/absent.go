package api

import (
	"net/http"
	"os"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// Routes of the contract for features that this system has elsewhere or not at all. Lists
// are empty, single rows are not found, and creating one is refused with what to do instead.

// A fidelity counts what an export of a company leaves out.
type fidelity struct {
	Company   ledger.CompanyID `json:"companyId"`
	Complete  bool             `json:"complete"`
	Omissions []omission       `json:"omissions"`
}

type omission struct {
	Kind   string `json:"kind"`
	Count  int    `json:"count"`
	Reason string `json:"reason"`
}

func AbsentRoutes() []Route {
	const of, config = "/api/companies/{companyId}", "/api/secret-provider-configs/{id}"
	const only = "Secrets are kept by the mesh itself; it reads from no other keeper"
	refuse := func(method, path, tag, summary, why string) Route {
		return Route{Method: method, Path: path, Tag: tag, Summary: summary, Who: Board,
			Never: http.StatusUnprocessableEntity, NoTool: true, Handle: func(rc *Request) (Response, error) {
				if err := rc.ofNoCompany(); err != nil {
					return Response{}, err
				}
				return Response{}, Unprocessable(why, nil)
			}}
	}
	missing := func(method, path, tag, summary, what string) Route {
		return Route{Method: method, Path: path, Tag: tag, Summary: summary, Who: Board, Never: http.StatusNotFound,
			NoTool: true,
			Handle: func(*Request) (Response, error) { return Response{}, NotFound(what) }}
	}
	none := func(path, summary string) Route {
		return Route{Method: "GET", Path: of + path, Tag: "agents", Summary: summary, Who: Board, Out: []struct{}{},
			NoTool: true, Handle: OfCompany([]struct{}{})}
	}
	const noConfig = "Secret provider config not found"
	return []Route{
		refuse("POST", of+"/secret-provider-configs", "secrets", "Add another keeper of secrets; there can be none", only),
		refuse("POST", of+"/secret-provider-configs/discovery/preview", "secrets",
			"Look for secrets at another keeper; there is none", only),
		refuse("POST", of+"/secrets/remote-import/preview", "secrets",
			"Show what would be taken over from another keeper; there is none", only),
		refuse("POST", of+"/secrets/remote-import", "secrets", "Take secrets over from another keeper; there is none", only),
		missing("GET", config, "secrets", "Read the settings of another keeper of secrets; there are none", noConfig),
		missing("PATCH", config, "secrets", "Change the settings of another keeper of secrets; there are none", noConfig),
		missing("DELETE", config, "secrets", "Remove another keeper of secrets; there is none", noConfig),
		missing("POST", config+"/default", "secrets", "Prefer another keeper of secrets; there is none", noConfig),
		missing("POST", config+"/health", "secrets",
			"Look whether another keeper of secrets answers; there is none", noConfig),
		none("/managed-agent-profiles", "List the profiles of agents that a vendor runs; there are none"),
		none("/remote-agent-profiles", "List the profiles of agents that a vendor's service runs; there are none"),
		refuse("POST", of+"/managed-agent-profiles", "agents",
			"Add the profile of an agent that a vendor runs; nodes run agents here",
			"Agents run on the nodes of the mesh; an agent with the adapter http or openclaw_gateway is run by somebody else"),
		refuse("POST", of+"/remote-agent-profiles", "agents",
			"Add the profile of an agent that a vendor's service runs; nodes run agents here",
			"Agents run on the nodes of the mesh; an agent with the adapter http or openclaw_gateway is run by somebody else"),
		{Method: "POST", Path: "/api/plugins/install", Tag: "plugins", Summary: "Install a plugin; there are none yet",
			Who: Admin, In: installPlugin{}, Never: http.StatusUnprocessableEntity, NoTool: true, Handle: noPlugin},
		{Method: "POST", Path: "/api/instance/database-backups", Tag: "mesh",
			Summary: "Back the instance up on its own disk; backups leave the mesh, see POST /api/v1/mesh/snapshot", Who: Admin,
			Never: http.StatusConflict, NoTool: true, Handle: noBackupHere},
		{Method: "GET", Path: of + "/export/fidelity", Tag: "portability",
			Summary: "Tell what an export of a company does not hold", Who: Board, Out: fidelity{}, Handle: readFidelity},
	}
}

// ofNoCompany refuses a path whose company does not exist.
func (rc *Request) ofNoCompany() error {
	if rc.Path("companyId") == "" {
		return nil
	}
	return InCompany(rc, func(*ledger.Tx, entity.Company) error { return nil })
}

// installPlugin names the plugin to install.
type installPlugin struct {
	Package string      `json:"packageName" minLength:"1" maxLength:"4096"`
	Version Opt[string] `json:"version" maxLength:"200"`
	Local   bool        `json:"isLocalPath,omitempty"`
}

// noPlugin refuses to install a plugin. It names what is wrong with the folder, if that is
// known.
func noPlugin(rc *Request) (Response, error) {
	in, err := Body[installPlugin](rc)
	if err != nil {
		return Response{}, err
	}
	if in.Local {
		if _, err := os.Stat(in.Package); err != nil {
			return Response{}, Invalid("Invalid localPath: path does not exist: %s", in.Package)
		}
	}
	return Response{}, Unprocessable("This mesh runs no plugins; what runs in its sandbox are tools, see POST "+
		"/api/companies/{companyId}/tools", nil)
}

// noBackupHere refuses: every node has all of the state, and a backup is sealed for a
// recipient, whom the body of this route does not name.
func noBackupHere(*Request) (Response, error) {
	return Response{}, Conflict("There is no database to back up on this node's disk: take a sealed backup with "+
		"`selvage snapshot save`, or POST /api/v1/mesh/snapshot",
		map[string]string{"method": "POST", "path": "/api/v1/mesh/snapshot"})
}

func readFidelity(rc *Request) (Response, error) {
	out := fidelity{Company: CompanyID(rc), Complete: true, Omissions: []omission{}}
	err := InCompany(rc, func(tx *ledger.Tx, row entity.Company) error {
		leave := func(kind string, count int, reason string) {
			if count > 0 {
				out.Omissions = append(out.Omissions, omission{kind, count, reason})
				out.Complete = false
			}
		}
		for _, left := range company.LeftBehindOf(tx, row.ID, maxCounted) {
			leave(left.Kind, left.Count, left.Reason)
		}
		hires, projects, routines := 0, 0, 0
		for _, a := range entity.AgentsOf(tx, row.ID, true) {
			if a.Status == entity.AgentPendingApproval {
				hires++
			}
		}
		for _, p := range entity.ProjectsOf(tx, row.ID) {
			if p.ArchivedAt != 0 {
				projects++
			}
		}
		for _, r := range routine.RoutinesOf(tx, row.ID) {
			if r.Status == routine.RoutineArchived {
				routines++
			}
		}
		leave("pending_agents", hires, "Who waits for approval is hired where that was asked.")
		leave("archived_projects", projects, "What was put away stays where it is.")
		leave("archived_routines", routines, "What was put away stays where it is.")
		return nil
	})
	return OK(out), err
}

// maxCounted bounds the rows that are counted of one kind; more count as that many.
const maxCounted = 1000

// SlugOf returns a user's name in paths: the part of their address before the @.
func SlugOf(p people.Person) string {
	name, _, _ := strings.Cut(p.Email, "@")
	return core.URLKey(name)
}
