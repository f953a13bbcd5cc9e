package work

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// controlServices is the body of an action on a workspace's services and commands.
// Without a selection the action applies to all services.
type controlServices struct {
	_       struct{}        `additionalProperties:"false"`
	Command api.Opt[string] `json:"workspaceCommandId" minLength:"1" maxLength:"500"`
	Service api.Opt[string] `json:"runtimeServiceId" format:"uuid"`
	Index   api.Opt[int64]  `json:"serviceIndex" minimum:"0" maximum:"1000"`
}

// A controlled is the answer to an action on services.
type controlled[T any] struct {
	Workspace T                        `json:"workspace"`
	Operation place.WorkspaceOperation `json:"operation"`
}

// A serviceLogPage is a part of the log of a runtime service.
type serviceLogPage struct {
	Service string `json:"runtimeServiceId"`
	logPage
}

func RuntimeServiceRoutes() []api.Route {
	const one, of = "/api/execution-workspaces/{id}", "/api/projects/{id}/workspaces/{workspaceId}"
	var rows []api.Route
	for _, what := range []string{"services", "commands"} {
		rows = append(rows,
			api.Route{Method: "POST", Path: one + "/runtime-" + what + "/{action}", Tag: "execution-workspaces",
				In: controlServices{}, Out: controlled[executionWorkspaceRow]{},
				Summary: "Start, stop or restart the services that the board declared for an execution workspace, or run one of " +
					"its commands", Handle: controlExecutionWorkspace},
			api.Route{Method: "POST", Path: of + "/runtime-" + what + "/{action}", Tag: "projects", Query: api.ByName(),
				In: controlServices{}, Out: controlled[place.Workspace]{}, Who: api.Board,
				Summary: "Start, stop or restart the services of a project's workspace, or run one of its commands",
				Handle:  controlProjectWorkspace})
	}
	return append(rows, api.Route{Method: "GET", Path: "/api/runtime-services/{serviceId}/log",
		Tag: "execution-workspaces", Query: logQuery, Out: serviceLogPage{},
		Summary: "Read the log of a runtime service since it was last started, also while it grows", Handle: readServiceLog})
}

// control submits an action and returns the operation that records it.
func control(rc *api.Request, of ledger.CompanyID, workspace, node string) (o place.WorkspaceOperation,
	err error) {
	action := rc.Path("action")
	if !slices.Contains([]string{"start", "stop", "restart", "run"}, action) {
		return o, api.NotFound("Unknown action: " + api.Cut(action, 64))
	}
	in, err := api.Body[controlServices](rc)
	if err != nil {
		return o, err
	}
	p := place.ControlServices{Operation: uuid.Must(uuid.NewV7()).String(), Workspace: workspace, Action: action,
		Command: in.Command.Or(""),
		Service: strings.ToLower(in.Service.Or("")), Node: node}
	if in.Index.Pointer() != nil {
		p.Index = new(int(in.Index.Value))
	}
	kind := place.KindRuntimeServiceControl
	if action == "run" {
		kind = place.KindWorkspaceOpRequest
	}
	if _, err := rc.Submit(kind, of, p); err != nil {
		return o, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		o, _ = place.OperationByID(tx, p.Operation)
		return nil
	})
	return o, err
}

func controlExecutionWorkspace(rc *api.Request) (api.Response, error) {
	row, err := findWorkspace(rc)
	if err != nil {
		return api.Response{}, err
	}
	o, err := control(rc, row.Company, row.ID, "")
	if err != nil {
		return api.Response{}, err
	}
	row, err = findWorkspace(rc)
	return api.OK(controlled[executionWorkspaceRow]{row, o}), err
}

func controlProjectWorkspace(rc *api.Request) (api.Response, error) {
	find := func() (w place.Workspace, err error) {
		err = rc.View(func(tx *ledger.Tx) error {
			p, err := api.ProjectIn(tx, rc)
			if err != nil {
				return err
			}
			for _, of := range place.WorkspacesOf(tx, p.Company, p.ID) {
				if of.ID == strings.ToLower(rc.Path("workspaceId")) {
					of.Metadata, of.RuntimeConfig = api.ShowObject(of.Metadata), api.ShowObject(of.RuntimeConfig)
					w = of
					return nil
				}
			}
			return api.NotFound("Project workspace not found")
		})
		return w, err
	}
	w, err := find()
	if err != nil {
		return api.Response{}, err
	}
	node := ""
	if info, err := os.Stat(string(w.Cwd)); w.Cwd != "" && filepath.IsAbs(string(w.Cwd)) && err == nil && info.IsDir() {
		node = string(rc.Server.Cfg.NodeID) // used if no node has worked in it yet: its folder is on this node
	}
	o, err := control(rc, w.Company, w.ID, node)
	if err != nil {
		return api.Response{}, err
	}
	w, err = find()
	return api.OK(controlled[place.Workspace]{w, o}), err
}

func readServiceLog(rc *api.Request) (api.Response, error) {
	s := rc.Server
	var row place.RuntimeService
	err := rc.View(func(tx *ledger.Tx) error {
		var ok bool
		if row, ok = place.ServiceByID(tx, strings.ToLower(rc.Path("serviceId"))); !ok || !api.Seen(tx, rc, row.Company) {
			return api.NotFound("Runtime service not found")
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	page, err := readNodeLog(s, rc, "Runtime service log", row.Node, "local_file", row.LogRef, false)
	return api.OK(serviceLogPage{row.ID, page}), err
}
