package place

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A servicePlace is a workspace whose services a command controls.
type servicePlace struct {
	exec      *ExecutionWorkspace
	of        Workspace
	node      string
	lifecycle Lifecycle
}

func placeOf(c *ledger.Context, p ControlServices) (s servicePlace, err error) {
	if w, ok := ExecWorkspaces.Get(c.Tx, c.Cmd.Company, p.Workspace); ok && !w.Gone {
		switch {
		case core.IsAgent(c) && (c.Cmd.Run == "" || !entity.RunAlive(c.Tx, w.Company, c.Cmd.Run, c.Cmd.Actor.ID)):
			return s, entity.RefuseRunContext()
		case w.Status.Over():
			return s, ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", string(w.Status)).Close(),
				"The execution workspace is closed")
		case w.Node == "" || w.Cwd == "":
			return s, ledger.Refuse(ledger.Unprocessable, nil,
				"No node holds the execution workspace yet; the first run of its issue makes it")
		}
		return servicePlace{&w, Workspace{}, string(w.Node), LifecycleOf(c.Tx, w)}, nil
	}
	w, ok := Workspaces.Get(c.Tx, c.Cmd.Company, p.Workspace)
	switch {
	case !ok:
		return s, errNoWorkspace()
	case core.IsAgent(c):
		return s, core.ErrBoardOnly()
	case w.Cwd == "":
		return s, ledger.Refuse(ledger.Unprocessable, nil,
			"The project's workspace has no folder (cwd) on a node; start services in the execution workspaces of its issues")
	}
	node := p.Node
	var at core.Time
	for id := range execWorkspaceOf.IDs(c.Tx, w.Company, w.Project, false) {
		if e, ok := ExecWorkspaces.Get(c.Tx, w.Company, id); ok && e.Mode == entity.SharedWorkspace &&
			string(e.ProjectWorkspace) == w.ID && e.Node != "" && e.LastUsedAt > at {
			node, at = string(e.Node), e.LastUsedAt
		}
	}
	if node == "" {
		return s, ledger.Refuse(ledger.Unprocessable, nil,
			"The folder %s is not on the node that was asked; ask the one that has it", w.Cwd)
	}
	return servicePlace{nil, w, node, w.Services()}, nil
}

// choose returns the declared commands of a kind that a request names.
func (s servicePlace) choose(tx *ledger.Tx, p ControlServices, kind string) ([]DeclaredCommand, error) {
	all, err := DeclaredCommands(s.lifecycle.Runtime)
	if err != nil {
		return nil, err
	}
	of := slices.DeleteFunc(all, func(d DeclaredCommand) bool { return d.Kind != kind })
	if len(of) == 0 {
		if kind == "service" {
			return nil, ledger.Refuse(ledger.Unprocessable, core.Object{}.List("runtimeServices", nil).Close(),
				"The workspace has no runtime services")
		}
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "The workspace declares no commands to run")
	}
	named := p.Command
	if p.Service != "" {
		row, ok := Services.Get(tx, s.company(), p.Service)
		if !ok || row.Place != s.id() {
			return nil, ledger.Refuse(ledger.NotFound, nil, "Runtime service not found")
		}
		var d DeclaredCommand
		if json.Unmarshal(row.Spec, &d) == nil {
			named = d.ID
		}
	}
	if named == "" && p.Index == nil {
		if kind == "job" && len(of) > 1 {
			return nil, ledger.Refuse(ledger.Invalid, nil, "workspaceCommandId says which command is to run")
		}
		return of, nil
	}
	for _, d := range of {
		if named != "" && d.ID == named || named == "" && p.Index != nil && d.Index == *p.Index {
			return []DeclaredCommand{d}, nil
		}
	}
	return nil, ledger.Refuse(ledger.Unprocessable, nil, "The workspace declares no such command")
}

func (s servicePlace) id() string {
	if s.exec != nil {
		return s.exec.ID
	}
	return s.of.ID
}

// issue is the issue that the workspace belongs to, or "" for a project's workspace.
func (s servicePlace) issue() string {
	if s.exec != nil {
		return string(s.exec.SourceIssue)
	}
	return ""
}

func (s servicePlace) company() ledger.CompanyID {
	if s.exec != nil {
		return s.exec.Company
	}
	return s.of.Company
}

// operation returns the operation that records the request.
func (s servicePlace) operation(c *ledger.Context, p ControlServices, phase OperationPhase,
	command string) WorkspaceOperation {
	now := core.TimeOf(c.Now)
	o := WorkspaceOperation{ID: p.Operation, Company: s.company(), Phase: phase,
		Command: core.NullText(core.Snippet(command, MaxCommandLine)), Run: core.NullText(c.Cmd.Run),
		Status:    OperationRunning,
		StartedAt: now, CreatedAt: now, UpdatedAt: now, Node: core.NullText(s.node), Place: s.id(), Job: p.Command}
	details := core.Object{}.Str("action", p.Action).Null("workspaceCommandId", p.Command)
	if s.exec != nil {
		o.Workspace, o.Issue, o.Cwd = core.NullText(s.exec.ID), s.exec.SourceIssue, s.exec.Cwd
	} else {
		o.Cwd, details = s.of.Cwd, details.Str("projectWorkspaceId", s.of.ID)
	}
	o.Metadata = details.Close()
	return o
}

// asked returns the workspace of a request, and the declared commands of a kind that the
// request names.
func asked(c *ledger.Context, p ControlServices, kind string) (s servicePlace, chosen []DeclaredCommand, err error) {
	if !core.IsID(p.Operation) || c.Has(OperationCompanyKey(p.Operation)) {
		return s, nil, ledger.Refuse(ledger.Conflict, nil, "malformed ID of an operation, or one that is taken")
	}
	if s, err = placeOf(c, p); err != nil {
		return s, nil, err
	}
	chosen, err = s.choose(c.Tx, p, kind)
	return s, chosen, err
}

func controlServices(c *ledger.Context, p ControlServices) (any, error) {
	if !slices.Contains([]string{"start", "stop", "restart"}, p.Action) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown action: %s", core.Snippet(p.Action, 64))
	}
	s, chosen, err := asked(c, p, "service")
	if err != nil {
		return nil, err
	}
	if why := deniedService(c.Tx, s.company(), s.issue()); why != "" && p.Action != "stop" {
		return nil, company.RefuseDenied(why, "%s", ServiceDenial(why))
	}
	names := make([]string, len(chosen))
	for i, d := range chosen {
		s.want(c, d, p.Action)
		names[i] = d.Name
	}
	phase, desired := OperationProvision, "running"
	if p.Action == "stop" {
		phase, desired = OperationTeardown, "stopped"
	}
	s.note(c, chosen, p.Command == "" && p.Service == "" && p.Index == nil, desired)
	o := s.operation(c, p, phase, p.Action+" "+strings.Join(names, ", "))
	openOperation(c, o)
	endOperation(c, o, "")
	recordOperation(c, o.ended(""), "workspace_operation.finished")
	return nil, nil
}

// note stores the requested state as the desired state of the workspace.
func (s servicePlace) note(c *ledger.Context, chosen []DeclaredCommand, all bool, desired string) {
	states := core.Object{}
	for _, d := range chosen {
		states = states.Str(d.ID, desired)
	}
	if s.exec != nil {
		w := *s.exec
		if all {
			w.Config.Desired, w.Config.States = &desired, nil
		} else {
			w.Config.States = core.MergeObjects(cmpRaw(s.lifecycle.States, "{}"), states.Close())
		}
		w.UpdatedAt = core.TimeOf(c.Now)
		ExecWorkspaces.Put(c.Tx, w.Company, w.ID, w)
		return
	}
	w := s.of
	patch := core.Object{}.Str("desiredState", desired)
	if !all {
		patch = core.Object{}.Raw("serviceStates", core.MergeObjects(cmpRaw(s.lifecycle.States, "{}"), states.Close()))
	}
	w.RuntimeConfig, w.UpdatedAt = core.MergeObjects(cmpRaw(w.RuntimeConfig, "{}"), patch.Close()), core.TimeOf(c.Now)
	Workspaces.Put(c.Tx, w.Company, w.ID, w)
}

func cmpRaw(b json.RawMessage, other string) json.RawMessage {
	if len(b) == 0 || string(b) == "null" {
		return json.RawMessage(other)
	}
	return b
}

// want stores the desired state of a service. Starting a service that runs changes nothing.
func (s servicePlace) want(c *ledger.Context, d DeclaredCommand, action string) {
	now := core.TimeOf(c.Now)
	id := core.DerivedID("runtime-service", s.id(), d.ID)
	row, ok := Services.Get(c.Tx, s.company(), id)
	if !ok {
		if action == "stop" {
			return
		}
		row = RuntimeService{ID: id, Company: s.company(), Provider: "local_process", Health: "unknown", CreatedAt: now,
			Place: s.id(), Status: ServiceStopped, Desired: "stopped"}
		c.Set(ServiceCompanyKey(id), []byte(row.Company))
	}
	row.LastUsedAt, row.UpdatedAt = now, now
	switch {
	case action == "stop":
		row.Desired = "stopped"
		if row.Node == "" || row.Status == ServiceStopped || row.Status == ServiceFailed {
			row.Status, row.StoppedAt = ServiceStopped, now
			c.Delete(ServiceNodeKey(string(row.Node), id))
		}
	case action == "start" && row.Desired == "running" && row.Status != ServiceFailed && row.Status != ServiceStopped &&
		string(row.Node) == s.node:
	default:
		if string(row.Node) != s.node {
			c.Delete(ServiceNodeKey(string(row.Node), id))
		}
		row.Project, row.ProjectWorkspace = core.NullText(s.of.Project), core.NullText(s.of.ID)
		row.ScopeType, row.ScopeID = "project_workspace", core.NullText(s.of.ID)
		if s.exec != nil {
			row.Project, row.ProjectWorkspace, row.Workspace, row.Issue = core.NullText(s.exec.Project), s.exec.ProjectWorkspace,
				core.NullText(s.exec.ID), s.exec.SourceIssue
			row.ScopeType, row.ScopeID = "execution_workspace", core.NullText(s.exec.ID)
		}
		row.StartedByRun, row.OwnerAgent = core.NullText(c.Cmd.Run), ""
		if core.IsAgent(c) {
			row.OwnerAgent = core.NullText(c.Cmd.Actor.ID)
		}
		if d.ReuseScope == "run" && c.Cmd.Run != "" {
			row.ScopeType, row.ScopeID = "run", core.NullText(c.Cmd.Run)
		}
		row.Lifecycle = "shared"
		if d.Lifecycle == "ephemeral" {
			row.Lifecycle = "ephemeral"
		}
		row.Name, row.Command, row.Index, row.StopPolicy = d.Name, core.NullText(d.Command), new(int64(d.Index)), d.StopPolicy
		row.ReuseKey = core.NullText(row.ScopeType + ":" + string(row.ScopeID) + ":" + d.ID)
		row.Spec = d.Spec()
		row.Node, row.Desired, row.Status, row.Health, row.Error = core.NullText(s.node), "running", ServiceStarting,
			"unknown", ""
		row.Generation, row.StartedAt, row.StoppedAt, row.Restarts, row.Port, row.URL, row.ProviderRef = row.Generation+1,
			now, 0, 0, nil, "", ""
		c.Set(ServiceNodeKey(s.node, id), []byte(row.Company))
	}
	Services.Put(c.Tx, row.Company, id, row)
}

func requestOperation(c *ledger.Context, p RequestOperation) (any, error) {
	s, chosen, err := asked(c, p, "job")
	if err != nil {
		return nil, err
	}
	if len(OperationsOn(c.Tx, s.node)) >= MaxUnderWay {
		return nil, ledger.Refuse(ledger.Conflict, nil,
			"%d operations are under way on the workspace's node; try again later", MaxUnderWay)
	}
	p.Command = chosen[0].ID
	o := s.operation(c, p, OperationProvision, chosen[0].Command)
	openOperation(c, o)
	recordOperation(c, o, "workspace_operation.requested")
	return nil, nil
}

// startDesired starts the wanted services of a workspace when a run starts to work there.
func startDesired(c *ledger.Context, w ExecutionWorkspace) {
	if w.Cwd == "" {
		return
	}
	s := servicePlace{&w, Workspace{}, string(w.Node), LifecycleOf(c.Tx, w)}
	declared, err := DeclaredCommands(s.lifecycle.Runtime)
	if err != nil {
		return
	}
	var states map[string]string
	_ = json.Unmarshal(s.lifecycle.States, &states)
	for _, d := range declared {
		if d.Kind == "service" && cmpOr(states[d.ID], cmpOr(states[strconv.Itoa(d.Index)],
			s.lifecycle.Desired)) == "running" {
			s.want(c, d, "start")
		}
	}
}
