package company

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/ledger"
)

// A ServiceStatus is what became of a runtime service. Persisted: do not rename.
type ServiceStatus string

// The statuses of runtime services.
const (
	ServiceStarting ServiceStatus = "starting" // also while it waits to be started again
	ServiceRunning  ServiceStatus = "running"
	ServiceStopped  ServiceStatus = "stopped"
	ServiceFailed   ServiceStatus = "failed" // given up; starting it again begins anew
)

// A RuntimeService is a program that a node keeps at work in a workspace: of an
// issue, or of a project.
type RuntimeService struct {
	ID               string          `cbor:"1,keyasint" json:"id"`
	Company          string          `cbor:"2,keyasint" json:"companyId"`
	Project          NullText        `cbor:"3,keyasint,omitempty" json:"projectId"`
	ProjectWorkspace NullText        `cbor:"4,keyasint,omitempty" json:"projectWorkspaceId"`
	Workspace        NullText        `cbor:"5,keyasint,omitempty" json:"executionWorkspaceId"`
	Issue            NullText        `cbor:"6,keyasint,omitempty" json:"issueId"`
	ScopeType        string          `cbor:"7,keyasint" json:"scopeType"`
	ScopeID          NullText        `cbor:"8,keyasint,omitempty" json:"scopeId"`
	Name             string          `cbor:"9,keyasint" json:"serviceName"`
	Status           ServiceStatus   `cbor:"10,keyasint" json:"status"`
	Lifecycle        string          `cbor:"11,keyasint" json:"lifecycle"`
	ReuseKey         NullText        `cbor:"12,keyasint,omitempty" json:"reuseKey"`
	Command          NullText        `cbor:"13,keyasint,omitempty" json:"command"`
	Cwd              NullText        `cbor:"14,keyasint,omitempty" json:"cwd"`
	Port             *int64          `cbor:"15,keyasint,omitempty" json:"port"`
	URL              NullText        `cbor:"16,keyasint,omitempty" json:"url"`
	Provider         string          `cbor:"17,keyasint" json:"provider"`
	ProviderRef      NullText        `cbor:"18,keyasint,omitempty" json:"providerRef"` // its process
	OwnerAgent       NullText        `cbor:"19,keyasint,omitempty" json:"ownerAgentId"`
	StartedByRun     NullText        `cbor:"20,keyasint,omitempty" json:"startedByRunId"`
	LastUsedAt       Time            `cbor:"21,keyasint" json:"lastUsedAt"`
	StartedAt        Time            `cbor:"22,keyasint" json:"startedAt"`
	StoppedAt        Time            `cbor:"23,keyasint,omitempty" json:"stoppedAt"`
	StopPolicy       json.RawMessage `cbor:"24,keyasint,omitempty" json:"stopPolicy"`
	Health           string          `cbor:"25,keyasint" json:"healthStatus"` // unknown, healthy or unhealthy
	Index            *int64          `cbor:"26,keyasint,omitempty" json:"configIndex"`
	CreatedAt        Time            `cbor:"27,keyasint" json:"createdAt"`
	UpdatedAt        Time            `cbor:"28,keyasint" json:"updatedAt"`
	Node             NullText        `cbor:"29,keyasint,omitempty" json:"nodeId"`
	Desired          string          `cbor:"30,keyasint" json:"desiredState"` // running or stopped
	Error            NullText        `cbor:"31,keyasint,omitempty" json:"error"`
	Restarts         int64           `cbor:"32,keyasint,omitempty" json:"restarts"`
	LogRef           NullText        `cbor:"33,keyasint,omitempty" json:"logRef"`
	Generation       uint64          `cbor:"34,keyasint" json:"-"` // counts what people wanted; reports are about one
	Place            string          `cbor:"35,keyasint" json:"-"` // the workspace it belongs to
	Spec             json.RawMessage `cbor:"36,keyasint,omitempty" json:"-"`
}

// Clone returns a copy that shares no memory with s.
func (s RuntimeService) Clone() RuntimeService {
	s.StopPolicy, s.Spec = slices.Clone(s.StopPolicy), slices.Clone(s.Spec)
	if s.Port != nil {
		s.Port = new(*s.Port)
	}
	if s.Index != nil {
		s.Index = new(*s.Index)
	}
	return s
}

// Keys of runtime services beside their rows:
//
//	runtime-service-of/<workspace>/<id>
//	runtime-service-company/<id>       its company; spans companies
//	runtime-service-node/<node>/<id>   its company: the node is to look after it; spans companies
var (
	services      = ledger.NewTable[RuntimeService]("runtime-service")
	servicesPlace = ledger.NewIndex("runtime-service-of")
)

func serviceCompanyKey(id string) []byte    { return ledger.Key("runtime-service-company", id) }
func serviceNodeKey(node, id string) []byte { return ledger.Key(serviceNodes, node, id) }

// serviceNodes is the index of the services on each node.
const serviceNodes = "runtime-service-node"

const (
	// MaxServices bounds the services and commands that a workspace declares.
	MaxServices = 20
	// MaxServiceReadiness bounds the wait for a service to be ready, in seconds.
	MaxServiceReadiness = 600
)

// A DeclaredCommand is a service, or a command that ends by itself, that the
// board has declared for a workspace.
type DeclaredCommand struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Kind      string            `json:"kind"` // service or job
	Command   string            `json:"command"`
	Cwd       string            `json:"cwd"` // below the workspace's folder
	Env       map[string]string `json:"env"`
	Port      DeclaredPort      `json:"port"`
	Readiness struct {
		Type     string `json:"type"` // http, tcp or none
		URL      string `json:"urlTemplate"`
		Timeout  int64  `json:"timeoutSec"`
		Interval int64  `json:"intervalMs"`
	} `json:"readiness"`
	Expose struct {
		URL string `json:"urlTemplate"`
	} `json:"expose"`
	Lifecycle  string          `json:"lifecycle"`
	ReuseScope string          `json:"reuseScope"`
	StopPolicy json.RawMessage `json:"stopPolicy"`
	Index      int             `json:"-"` // among the services
}

// A DeclaredPort is the port of a service: a number, or one that the node finds.
type DeclaredPort struct {
	Auto   bool
	Number int64
	EnvKey string // the variable that tells the service, PORT by default
}

// UnmarshalJSON takes a number, or an object with type, port or value, and envKey.
func (p *DeclaredPort) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, &p.Number); err == nil {
		return nil
	}
	var o struct {
		Type   string `json:"type"`
		Port   int64  `json:"port"`
		Value  int64  `json:"value"`
		EnvKey string `json:"envKey"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("port is a number or an object: %w", err)
	}
	p.EnvKey, p.Number = o.EnvKey, max(o.Port, o.Value)
	p.Auto = o.Type == "auto" || p.Number == 0
	return nil
}

// DeclaredCommands reads a workspaceRuntime. The error names what is wrong in it.
func DeclaredCommands(runtime json.RawMessage) (out []DeclaredCommand, err error) {
	if len(runtime) == 0 || string(runtime) == "null" {
		return nil, nil
	}
	var r struct {
		Commands []DeclaredCommand `json:"commands"`
		Services []DeclaredCommand `json:"services"`
		Jobs     []DeclaredCommand `json:"jobs"`
	}
	if err := json.Unmarshal(runtime, &r); err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "workspaceRuntime is malformed: %s", cutRunes(err.Error(), 200))
	}
	for i := range r.Services {
		r.Services[i].Kind = "service"
	}
	for i := range r.Jobs {
		r.Jobs[i].Kind = "job"
	}
	out = slices.Concat(r.Commands, r.Services, r.Jobs)
	if len(out) > MaxServices {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "A workspace declares at most %d services and commands", MaxServices)
	}
	bad := func(i int, why string) ([]DeclaredCommand, error) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "workspaceRuntime: command %d %s", i, why)
	}
	index := 0
	seen := map[string]bool{}
	for i := range out {
		d := &out[i]
		d.Kind = cmpOr(d.Kind, "service")
		d.Name = cmpOr(d.Name, d.Kind+"-"+strconv.Itoa(i+1))
		d.ID = cmpOr(d.ID, cmpOr(URLKey(d.Name), d.Kind+"-"+strconv.Itoa(i+1)))
		if seen[d.ID] {
			d.ID += "-" + strconv.Itoa(i+1)
		}
		seen[d.ID] = true
		if d.Kind == "service" {
			d.Index = index
			index++
		}
		switch {
		case d.Kind != "service" && d.Kind != "job":
			return bad(i, "is of a kind that is neither service nor job")
		case strings.TrimSpace(d.Command) == "" || len(d.Command) > MaxCommandLine:
			return bad(i, "has no command, or one that is too long")
		case len(d.Name) > MaxName || len(d.ID) > MaxName || len(d.Cwd) > maxPlacePath || len(d.Env) > MaxRunSecrets:
			return bad(i, "has texts that are too long, or too many variables")
		case strings.HasPrefix(d.Cwd, "/") || d.Cwd == ".." || strings.HasPrefix(d.Cwd, "../") || strings.Contains(d.Cwd, "/../") || strings.HasSuffix(d.Cwd, "/.."):
			return bad(i, "has a cwd that is not below its workspace")
		case d.Port.Number < 0 || d.Port.Number > 65535:
			return bad(i, "has a port that is none")
		case d.Readiness.Timeout < 0 || d.Readiness.Timeout > MaxServiceReadiness || d.Readiness.Interval < 0:
			return bad(i, "waits too long for its readiness")
		case !slices.Contains([]string{"", "http", "tcp", "none"}, d.Readiness.Type):
			return bad(i, "has a readiness check that is not one of http, tcp, none")
		case !slices.Contains([]string{"", "project_workspace", "execution_workspace", "run", "agent"}, d.ReuseScope):
			return bad(i, "has a reuseScope that is not one of project_workspace, execution_workspace, run, agent")
		}
	}
	return out, nil
}

// ControlServices is the payload of runtime_service.control: Action is start,
// stop or restart, of all services of a workspace or of those that are named.
// Node is where a project's workspace is, when no run has worked there yet.
type ControlServices struct {
	Operation string `cbor:"1,keyasint"` // ID for the operation that notes it
	Workspace string `cbor:"2,keyasint"` // of an issue, or of a project
	Action    string `cbor:"3,keyasint"`
	Command   string `cbor:"4,keyasint,omitempty"` // ID of a declared command
	Service   string `cbor:"5,keyasint,omitempty"`
	Index     *int   `cbor:"6,keyasint,omitempty"`
	Node      string `cbor:"7,keyasint,omitempty"`
}

// RequestOperation is the payload of workspace_op.request, which has a declared
// command that ends by itself carried out.
type RequestOperation = ControlServices

// ReportService is the payload of runtime_service.report, by which a node tells
// of a service. It is about one generation of it.
type ReportService struct {
	ID         string        `cbor:"1,keyasint"`
	Generation uint64        `cbor:"2,keyasint"`
	Status     ServiceStatus `cbor:"3,keyasint"`
	Health     string        `cbor:"4,keyasint"`
	Port       int64         `cbor:"5,keyasint,omitempty"`
	URL        string        `cbor:"6,keyasint,omitempty"`
	PID        int64         `cbor:"7,keyasint,omitempty"`
	Error      string        `cbor:"8,keyasint,omitempty"`
	Restarts   int64         `cbor:"9,keyasint,omitempty"`
	Cwd        string        `cbor:"10,keyasint,omitempty"`
	LogRef     string        `cbor:"11,keyasint,omitempty"`
}

func registerServices(m ledger.Mux) {
	ledger.Handle(m, "runtime_service.control", controlServices)
	ledger.Handle(m, "runtime_service.report", reportService)
	ledger.Handle(m, "workspace_op.request", requestOperation)
}

// ServicesOf returns the services of a workspace, as they were declared.
func ServicesOf(tx *ledger.Tx, company, workspace string) []RuntimeService {
	out := []RuntimeService{}
	for id := range servicesPlace.IDs(tx, company, workspace, false) {
		if s, ok := services.Get(tx, company, id); ok {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b RuntimeService) int { return int(indexOf(a) - indexOf(b)) })
	return out
}

func indexOf(s RuntimeService) int64 {
	if s.Index == nil {
		return MaxServices
	}
	return *s.Index
}

// ServiceByID returns a runtime service.
func ServiceByID(tx *ledger.Tx, id string) (RuntimeService, bool) {
	if !isID(id) {
		return RuntimeService{}, false
	}
	of, ok := tx.Get(serviceCompanyKey(id))
	if !ok {
		return RuntimeService{}, false
	}
	return services.Get(tx, string(of), id)
}

// A WantedService is a service that a node is to look after. While Denied is not
// "", governance says no to its being at work; it stays wanted, and is started
// again when that ends.
type WantedService struct {
	RuntimeService
	Denied Denial
}

// ServicesOn returns the services that a node is to look after. One of a run
// that is over counts as not wanted.
func ServicesOn(tx *ledger.Tx, node string) (out []WantedService) {
	prefix := serviceNodeKey(node, "")
	for k, of := range tx.Prefix(prefix) {
		s, ok := services.Get(tx, string(of), string(k[len(prefix):]))
		if !ok {
			continue
		}
		if s.ScopeType == "run" || s.Lifecycle == "ephemeral" && s.StartedByRun != "" {
			if r, ok := runs.Get(tx, s.Company, string(s.StartedByRun)); !ok || !r.Status.Live() {
				s.Desired = "stopped"
			}
		}
		if out = append(out, WantedService{s, s.Over(tx)}); len(out) == maxLost {
			break
		}
	}
	return out
}

// Over returns why a service may be at work no longer, or "".
func (s RuntimeService) Over(tx *ledger.Tx) Denial {
	return deniedService(tx, s.Company, string(s.Issue))
}

// deniedService returns why no service of a company, and of an issue if it is one's,
// may be at work now, or "": everything is stopped, the company is paused, archived or
// being deleted, or the issue's tree is paused. A pause that lets runs finish lets
// the services that they use finish with them. A service is nobody's but its
// workspace's, so an agent that is paused ends none.
func deniedService(tx *ledger.Tx, of, issue string) Denial {
	if why := endedFor(tx, of, ledger.Actor{}, "", false); why != "" {
		return why
	}
	if why := deniedIn(tx, of); why != "" {
		return why
	}
	if i, ok := issues.Get(tx, of, issue); ok && issue != "" {
		if h, held := HeldBy(tx, i); held && h.Release.Strategy != "after_active_runs_finish" {
			return DeniedTreeHold
		}
	}
	return ""
}

// ServiceDenial says in a sentence why a service is not at work.
func ServiceDenial(why Denial) string {
	switch why {
	case DeniedMeshStopped:
		return "Everything was stopped; services that are wanted start again when the mesh is resumed (selvage resume)"
	case DeniedBudget:
		return "The company is paused because of its budget; services that are wanted start again when it is resumed"
	case DeniedTreeHold:
		return "The issue's tree is on hold; services that are wanted start again when it is released"
	}
	return "The company is paused or archived; services that are wanted start again when it is resumed"
}

// A servicePlace is a workspace whose services are controlled.
type servicePlace struct {
	exec      *ExecutionWorkspace
	of        Workspace
	node      string
	lifecycle Lifecycle
}

func placeOf(c *ledger.Context, p ControlServices) (s servicePlace, err error) {
	if w, ok := execWorkspaces.Get(c.Tx, c.Cmd.Company, p.Workspace); ok && !w.Gone {
		switch {
		case isAgent(c) && (c.Cmd.Run == "" || !runAlive(c.Tx, w.Company, c.Cmd.Run, c.Cmd.Actor.ID)):
			return s, refuseRunContext()
		case w.Status.Over():
			return s, ledger.Refuse(ledger.Conflict, jsonObject{}.str("status", string(w.Status)).close(), "The execution workspace is closed")
		case w.Node == "" || w.Cwd == "":
			return s, ledger.Refuse(ledger.Unprocessable, nil, "No node holds the execution workspace yet; the first run of its issue makes it")
		}
		return servicePlace{&w, Workspace{}, string(w.Node), LifecycleOf(c.Tx, w)}, nil
	}
	w, ok := workspaces.Get(c.Tx, c.Cmd.Company, p.Workspace)
	switch {
	case !ok:
		return s, errNoWorkspace()
	case isAgent(c):
		return s, errBoardOnly()
	case w.Cwd == "":
		return s, ledger.Refuse(ledger.Unprocessable, nil, "The project's workspace has no folder (cwd) on a node; start services in the execution workspaces of its issues")
	}
	node := p.Node
	var at Time
	for id := range execWorkspaceOf.IDs(c.Tx, w.Company, w.Project, false) {
		if e, ok := execWorkspaces.Get(c.Tx, w.Company, id); ok && e.Mode == SharedWorkspace && string(e.ProjectWorkspace) == w.ID && e.Node != "" && e.LastUsedAt > at {
			node, at = string(e.Node), e.LastUsedAt
		}
	}
	if node == "" {
		return s, ledger.Refuse(ledger.Unprocessable, nil, "The folder %s is not on the node that was asked; ask the one that has it", w.Cwd)
	}
	return servicePlace{nil, w, node, w.Services()}, nil
}

// choose returns the declared commands of a kind that a request is about.
func (s servicePlace) choose(tx *ledger.Tx, p ControlServices, kind string) ([]DeclaredCommand, error) {
	all, err := DeclaredCommands(s.lifecycle.Runtime)
	if err != nil {
		return nil, err
	}
	of := slices.DeleteFunc(all, func(d DeclaredCommand) bool { return d.Kind != kind })
	if len(of) == 0 {
		if kind == "service" {
			return nil, ledger.Refuse(ledger.Unprocessable, jsonObject{}.list("runtimeServices", nil).close(), "The workspace has no runtime services")
		}
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "The workspace declares no commands to run")
	}
	named := p.Command
	if p.Service != "" {
		row, ok := services.Get(tx, s.company(), p.Service)
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

// issue is the one whose workspace it is, "" for a project's.
func (s servicePlace) issue() string {
	if s.exec != nil {
		return string(s.exec.SourceIssue)
	}
	return ""
}

func (s servicePlace) company() string {
	if s.exec != nil {
		return s.exec.Company
	}
	return s.of.Company
}

// operation is the one that notes what was asked for.
func (s servicePlace) operation(c *ledger.Context, p ControlServices, phase OperationPhase, command string) WorkspaceOperation {
	now := TimeOf(c.Now)
	o := WorkspaceOperation{ID: p.Operation, Company: s.company(), Phase: phase, Command: NullText(cutRunes(command, MaxCommandLine)), Run: NullText(c.Cmd.Run), Status: OperationRunning,
		StartedAt: now, CreatedAt: now, UpdatedAt: now, Node: NullText(s.node), Place: s.id(), Job: p.Command}
	details := jsonObject{}.str("action", p.Action).null("workspaceCommandId", p.Command)
	if s.exec != nil {
		o.Workspace, o.Issue, o.Cwd = NullText(s.exec.ID), s.exec.SourceIssue, s.exec.Cwd
	} else {
		o.Cwd, details = s.of.Cwd, details.str("projectWorkspaceId", s.of.ID)
	}
	o.Metadata = details.close()
	return o
}

func controlServices(c *ledger.Context, p ControlServices) (any, error) {
	if !slices.Contains([]string{"start", "stop", "restart"}, p.Action) {
		return nil, ledger.Refuse(ledger.Invalid, nil, "Unknown action: %s", cutRunes(p.Action, 64))
	}
	if !isID(p.Operation) || c.Has(operationCompanyKey(p.Operation)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "malformed ID of an operation, or one that is taken")
	}
	s, err := placeOf(c, p)
	if err != nil {
		return nil, err
	}
	chosen, err := s.choose(c.Tx, p, "service")
	if err != nil {
		return nil, err
	}
	if why := deniedService(c.Tx, s.company(), s.issue()); why != "" && p.Action != "stop" {
		return nil, refuseDenied(why, "%s", ServiceDenial(why))
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

// note keeps what was asked for as the desired state of the workspace.
func (s servicePlace) note(c *ledger.Context, chosen []DeclaredCommand, all bool, desired string) {
	states := jsonObject{}
	for _, d := range chosen {
		states = states.str(d.ID, desired)
	}
	if s.exec != nil {
		w := *s.exec
		if all {
			w.Config.Desired, w.Config.States = &desired, nil
		} else {
			w.Config.States = mergeObjects(cmpRaw(s.lifecycle.States, "{}"), states.close())
		}
		w.UpdatedAt = TimeOf(c.Now)
		execWorkspaces.Put(c.Tx, w.Company, w.ID, w)
		return
	}
	w := s.of
	patch := jsonObject{}.str("desiredState", desired)
	if !all {
		patch = jsonObject{}.raw("serviceStates", mergeObjects(cmpRaw(s.lifecycle.States, "{}"), states.close()))
	}
	w.RuntimeConfig, w.UpdatedAt = mergeObjects(cmpRaw(w.RuntimeConfig, "{}"), patch.close()), TimeOf(c.Now)
	workspaces.Put(c.Tx, w.Company, w.ID, w)
}

func cmpRaw(b json.RawMessage, other string) json.RawMessage {
	if len(b) == 0 || string(b) == "null" {
		return json.RawMessage(other)
	}
	return b
}

// want stores what a service is to be. Starting one that runs changes nothing.
func (s servicePlace) want(c *ledger.Context, d DeclaredCommand, action string) {
	now := TimeOf(c.Now)
	id := derivedID("runtime-service", s.id(), d.ID)
	row, ok := services.Get(c.Tx, s.company(), id)
	if !ok {
		if action == "stop" {
			return
		}
		row = RuntimeService{ID: id, Company: s.company(), Provider: "local_process", Health: "unknown", CreatedAt: now, Place: s.id(), Status: ServiceStopped, Desired: "stopped"}
		servicesPlace.Add(c.Tx, row.Company, row.Place, id)
		c.Set(serviceCompanyKey(id), []byte(row.Company))
	}
	row.LastUsedAt, row.UpdatedAt = now, now
	switch {
	case action == "stop":
		row.Desired = "stopped"
		if row.Node == "" || row.Status == ServiceStopped || row.Status == ServiceFailed {
			row.Status, row.StoppedAt = ServiceStopped, now
			c.Delete(serviceNodeKey(string(row.Node), id))
		}
	case action == "start" && row.Desired == "running" && row.Status != ServiceFailed && row.Status != ServiceStopped && string(row.Node) == s.node:
	default:
		if string(row.Node) != s.node {
			c.Delete(serviceNodeKey(string(row.Node), id))
		}
		row.Project, row.ProjectWorkspace = NullText(s.of.Project), NullText(s.of.ID)
		row.ScopeType, row.ScopeID = "project_workspace", NullText(s.of.ID)
		if s.exec != nil {
			row.Project, row.ProjectWorkspace, row.Workspace, row.Issue = NullText(s.exec.Project), s.exec.ProjectWorkspace, NullText(s.exec.ID), s.exec.SourceIssue
			row.ScopeType, row.ScopeID = "execution_workspace", NullText(s.exec.ID)
		}
		row.StartedByRun, row.OwnerAgent = NullText(c.Cmd.Run), ""
		if isAgent(c) {
			row.OwnerAgent = NullText(c.Cmd.Actor.ID)
		}
		if d.ReuseScope == "run" && c.Cmd.Run != "" {
			row.ScopeType, row.ScopeID = "run", NullText(c.Cmd.Run)
		}
		row.Lifecycle = "shared"
		if d.Lifecycle == "ephemeral" {
			row.Lifecycle = "ephemeral"
		}
		row.Name, row.Command, row.Index, row.StopPolicy = d.Name, NullText(d.Command), new(int64(d.Index)), d.StopPolicy
		row.ReuseKey = NullText(row.ScopeType + ":" + string(row.ScopeID) + ":" + d.ID)
		row.Spec = d.spec()
		row.Node, row.Desired, row.Status, row.Health, row.Error = NullText(s.node), "running", ServiceStarting, "unknown", ""
		row.Generation, row.StartedAt, row.StoppedAt, row.Restarts, row.Port, row.URL, row.ProviderRef = row.Generation+1, now, 0, 0, nil, "", ""
		c.Set(serviceNodeKey(s.node, id), []byte(row.Company))
	}
	services.Put(c.Tx, row.Company, id, row)
}

// spec is the declaration as a node reads it back with [RuntimeService.Declared].
func (d DeclaredCommand) spec() json.RawMessage {
	env := jsonObject{}
	for _, k := range slices.Sorted(maps.Keys(d.Env)) {
		env = env.str(k, d.Env[k])
	}
	port := jsonObject{}.str("type", "fixed").int("port", d.Port.Number).str("envKey", d.Port.EnvKey)
	if d.Port.Auto {
		port = jsonObject{}.str("type", "auto").str("envKey", d.Port.EnvKey)
	}
	o := jsonObject{}.str("id", d.ID).str("name", d.Name).str("kind", d.Kind).str("command", d.Command).str("cwd", d.Cwd).raw("env", env.close()).
		raw("readiness", jsonObject{}.str("type", d.Readiness.Type).str("urlTemplate", d.Readiness.URL).int("timeoutSec", d.Readiness.Timeout).int("intervalMs", d.Readiness.Interval).close()).
		raw("expose", jsonObject{}.str("urlTemplate", d.Expose.URL).close())
	if d.Port.Auto || d.Port.Number > 0 {
		o = o.raw("port", port.close())
	}
	return o.close()
}

// Declared is what a service's row says is to be executed.
func (s RuntimeService) Declared() (d DeclaredCommand) {
	_ = json.Unmarshal(s.Spec, &d) // spec made it
	return d
}

func reportService(c *ledger.Context, p ReportService) (any, error) {
	s, ok := services.Get(c.Tx, c.Cmd.Company, p.ID)
	switch {
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Runtime service not found")
	case c.Cmd.Actor.Type != "node" || string(s.Node) != c.Cmd.Actor.ID:
		return nil, ledger.Refuse(ledger.Forbidden, nil, "services are told of by their node")
	case s.Generation != p.Generation:
		return nil, ledger.Refuse(ledger.Conflict, nil, "the service was started anew")
	case !slices.Contains([]ServiceStatus{ServiceStarting, ServiceRunning, ServiceStopped, ServiceFailed}, p.Status) ||
		!slices.Contains([]string{"unknown", "healthy", "unhealthy"}, p.Health) || max(len(p.URL), len(p.Cwd), len(p.LogRef)) > maxPlacePath:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed report of a service")
	}
	now := TimeOf(c.Now)
	s.Status, s.Health, s.URL, s.Error, s.Restarts, s.UpdatedAt = p.Status, p.Health, NullText(p.URL), NullText(cutRunes(p.Error, maxCleanupReason)), p.Restarts, now
	s.Port, s.ProviderRef = nil, ""
	if p.Port > 0 {
		s.Port = new(p.Port)
	}
	if p.PID > 0 {
		s.ProviderRef = NullText(strconv.FormatInt(p.PID, 10))
	}
	if p.Cwd != "" {
		s.Cwd = NullText(p.Cwd)
	}
	if p.LogRef != "" {
		s.LogRef = NullText(p.LogRef)
	}
	if p.Status == ServiceStopped || p.Status == ServiceFailed {
		s.StoppedAt = now
		if s.Desired == "stopped" || p.Status == ServiceFailed || s.ScopeType == "run" || s.Lifecycle == "ephemeral" {
			s.Desired = "stopped"
			c.Delete(serviceNodeKey(string(s.Node), s.ID))
		}
	}
	services.Put(c.Tx, s.Company, s.ID, s)
	c.Record(ledger.Change{Action: "runtime_service." + string(p.Status), EntityType: "workspace_runtime_service", EntityID: s.ID,
		Details: jsonObject{}.str("serviceName", s.Name).str("status", string(s.Status)).str("healthStatus", s.Health).null("executionWorkspaceId", string(s.Workspace)).
			null("projectWorkspaceId", string(s.ProjectWorkspace)).null("issueId", string(s.Issue)).null("error", string(s.Error)).str("nodeId", string(s.Node)).close()})
	return nil, nil
}

func requestOperation(c *ledger.Context, p RequestOperation) (any, error) {
	if !isID(p.Operation) || c.Has(operationCompanyKey(p.Operation)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "malformed ID of an operation, or one that is taken")
	}
	s, err := placeOf(c, p)
	if err != nil {
		return nil, err
	}
	chosen, err := s.choose(c.Tx, p, "job")
	if err != nil {
		return nil, err
	}
	if len(OperationsOn(c.Tx, s.node)) >= MaxUnderWay {
		return nil, ledger.Refuse(ledger.Conflict, nil, "%d operations are under way on the workspace's node; try again later", MaxUnderWay)
	}
	p.Command = chosen[0].ID
	o := s.operation(c, p, OperationProvision, chosen[0].Command)
	openOperation(c, o)
	recordOperation(c, o, "workspace_operation.requested")
	return nil, nil
}

// startDesired starts the services of a workspace that are wanted, when a run
// begins to work there.
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
		if d.Kind == "service" && cmpOr(states[d.ID], cmpOr(states[strconv.Itoa(d.Index)], s.lifecycle.Desired)) == "running" {
			s.want(c, d, "start")
		}
	}
}

// stopServices has the services of a workspace stopped for good.
func stopServices(tx *ledger.Tx, company, workspace string, now Time) {
	for _, s := range ServicesOf(tx, company, workspace) {
		s.Desired, s.UpdatedAt = "stopped", now
		if s.Status == ServiceFailed {
			s.Status = ServiceStopped
		}
		services.Put(tx, company, s.ID, s)
	}
}

// dropServices removes the services of a workspace; their node ends what it
// finds no row for.
func dropServices(tx *ledger.Tx, company, workspace string) {
	for _, s := range ServicesOf(tx, company, workspace) {
		services.Delete(tx, company, s.ID)
		servicesPlace.Remove(tx, company, workspace, s.ID)
		tx.Delete(serviceCompanyKey(s.ID))
		tx.Delete(serviceNodeKey(string(s.Node), s.ID))
	}
}

// loseServices notes that a lost node's services are gone. Those that are wanted
// begin again when it comes back.
func loseServices(c *ledger.Context, node string) {
	prefix := serviceNodeKey(node, "")
	n := 0
	for k, of := range c.Prefix(prefix) {
		s, ok := services.Get(c.Tx, string(of), string(k[len(prefix):]))
		if !ok || s.Status == ServiceStopped || s.Status == ServiceFailed {
			continue
		}
		s.Status, s.Health, s.Error, s.StoppedAt, s.UpdatedAt = ServiceStopped, "unknown", "The node of this service was lost", TimeOf(c.Now), TimeOf(c.Now)
		s.Port, s.URL, s.ProviderRef = nil, "", ""
		services.Put(c.Tx, s.Company, s.ID, s)
		if n++; n == maxLost {
			break
		}
	}
}
