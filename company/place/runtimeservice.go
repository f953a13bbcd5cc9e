package place

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A ServiceStatus is the state of a runtime service. Persisted: do not rename.
type ServiceStatus string

// The statuses of runtime services.
const (
	ServiceStarting ServiceStatus = "starting" // also while it waits for a restart
	ServiceRunning  ServiceStatus = "running"
	ServiceStopped  ServiceStatus = "stopped"
	ServiceFailed   ServiceStatus = "failed" // no more retries; a start resets them
)

// A RuntimeService is a program that a node keeps running in the workspace of an issue or of
// a project.
type RuntimeService struct {
	ID               string           `cbor:"1,keyasint" json:"id"`
	Company          ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Project          core.NullText    `cbor:"3,keyasint,omitempty" json:"projectId"`
	ProjectWorkspace core.NullText    `cbor:"4,keyasint,omitempty" json:"projectWorkspaceId"`
	Workspace        core.NullText    `cbor:"5,keyasint,omitempty" json:"executionWorkspaceId"`
	Issue            core.NullText    `cbor:"6,keyasint,omitempty" json:"issueId"`
	ScopeType        string           `cbor:"7,keyasint" json:"scopeType"`
	ScopeID          core.NullText    `cbor:"8,keyasint,omitempty" json:"scopeId"`
	Name             string           `cbor:"9,keyasint" json:"serviceName"`
	Status           ServiceStatus    `cbor:"10,keyasint" json:"status"`
	Lifecycle        string           `cbor:"11,keyasint" json:"lifecycle"`
	ReuseKey         core.NullText    `cbor:"12,keyasint,omitempty" json:"reuseKey"`
	Command          core.NullText    `cbor:"13,keyasint,omitempty" json:"command"`
	Cwd              core.NullText    `cbor:"14,keyasint,omitempty" json:"cwd"`
	Port             *int64           `cbor:"15,keyasint,omitempty" json:"port"`
	URL              core.NullText    `cbor:"16,keyasint,omitempty" json:"url"`
	Provider         string           `cbor:"17,keyasint" json:"provider"`
	ProviderRef      core.NullText    `cbor:"18,keyasint,omitempty" json:"providerRef"` // its process
	OwnerAgent       core.NullText    `cbor:"19,keyasint,omitempty" json:"ownerAgentId"`
	StartedByRun     core.NullText    `cbor:"20,keyasint,omitempty" json:"startedByRunId"`
	LastUsedAt       core.Time        `cbor:"21,keyasint" json:"lastUsedAt"`
	StartedAt        core.Time        `cbor:"22,keyasint" json:"startedAt"`
	StoppedAt        core.Time        `cbor:"23,keyasint,omitempty" json:"stoppedAt"`
	StopPolicy       json.RawMessage  `cbor:"24,keyasint,omitempty" json:"stopPolicy"`
	Health           string           `cbor:"25,keyasint" json:"healthStatus"` // unknown, healthy or unhealthy
	Index            *int64           `cbor:"26,keyasint,omitempty" json:"configIndex"`
	CreatedAt        core.Time        `cbor:"27,keyasint" json:"createdAt"`
	UpdatedAt        core.Time        `cbor:"28,keyasint" json:"updatedAt"`
	Node             core.NullText    `cbor:"29,keyasint,omitempty" json:"nodeId"`
	Desired          string           `cbor:"30,keyasint" json:"desiredState"` // running or stopped
	Error            core.NullText    `cbor:"31,keyasint,omitempty" json:"error"`
	Restarts         int64            `cbor:"32,keyasint,omitempty" json:"restarts"`
	LogRef           core.NullText    `cbor:"33,keyasint,omitempty" json:"logRef"`
	// incremented when people want another state; a report names its generation
	Generation uint64          `cbor:"34,keyasint" json:"-"`
	Place      string          `cbor:"35,keyasint" json:"-"` // the workspace it belongs to
	Spec       json.RawMessage `cbor:"36,keyasint,omitempty" json:"-"`
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

// Keys of runtime services besides their rows:
//
//	runtime-service-of/<workspace>/<id>
//	runtime-service-company/<id>       its company; outside companies
//	runtime-service-node/<node>/<id>   its company: the node runs the service; outside companies
var (
	Services = ledger.NewTable[string, RuntimeService]("runtime-service").
			Beside(ledger.Indexed(servicesPlace, func(s *RuntimeService) string { return s.Place }))
	servicesPlace = ledger.NewIndex[string, string]("runtime-service-of")
)

func ServiceCompanyKey(id string) []byte    { return ledger.Key("runtime-service-company", id) }
func ServiceNodeKey(node, id string) []byte { return ledger.Key(serviceNodes, node, id) }

// serviceNodes is the index of the services on each node.
const serviceNodes = "runtime-service-node"

// ControlServices is the payload of runtime_service.control. Action is start, stop or
// restart; it is for the named services, or for all services of the workspace. Node is where
// a project's workspace is, if no run has worked there yet.
type ControlServices struct {
	Operation string `cbor:"1,keyasint"` // ID of the operation that records the request
	Workspace string `cbor:"2,keyasint"` // of an issue, or of a project
	Action    string `cbor:"3,keyasint"`
	Command   string `cbor:"4,keyasint,omitempty"` // ID of a declared command
	Service   string `cbor:"5,keyasint,omitempty"`
	Index     *int   `cbor:"6,keyasint,omitempty"`
	Node      string `cbor:"7,keyasint,omitempty"`
}

// RequestOperation is the payload of workspace_op.request, which has a node execute a
// declared job.
type RequestOperation = ControlServices

// ReportService is the payload of runtime_service.report, by which a node reports the state
// of one generation of a service.
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

const (
	KindRuntimeServiceControl = "runtime_service.control"
	KindRuntimeServiceReport  = "runtime_service.report"
	KindWorkspaceOpRequest    = "workspace_op.request"
)

var serviceKinds = []company.Kind{
	{Name: KindRuntimeServiceControl, From: company.FromBoard | company.FromAgent, Needs: entity.ManageSpaces,
		Weight: company.Weights.Execute, Do: ledger.Typed(controlServices)},
	{Name: KindRuntimeServiceReport, From: company.FromNode, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(reportService)},
	{Name: KindWorkspaceOpRequest, From: company.FromBoard | company.FromAgent, Needs: entity.ManageSpaces,
		Weight: company.Weights.Execute, Do: ledger.Typed(requestOperation)},
}

// ServicesOf returns the services of a workspace, in the order of their declaration.
func ServicesOf(tx *ledger.Tx, company ledger.CompanyID, workspace string) []RuntimeService {
	out := []RuntimeService{}
	for id := range servicesPlace.IDs(tx, company, workspace, false) {
		if s, ok := Services.Get(tx, company, id); ok {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b RuntimeService) int { return cmp.Compare(indexOf(a), indexOf(b)) })
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
	if !core.IsID(id) {
		return RuntimeService{}, false
	}
	of, ok := tx.Get(ServiceCompanyKey(id))
	if !ok {
		return RuntimeService{}, false
	}
	return Services.Get(tx, ledger.CompanyID(of), id)
}

// A WantedService is a service that a node has to run. While Denied is not "", governance
// forbids that it runs. It stays wanted, and the node starts it again when Denied is "".
type WantedService struct {
	RuntimeService
	Denied company.Denial
}

// ServicesOn returns the services that a node has to run. A service of a run that is over
// counts as not wanted.
func ServicesOn(tx *ledger.Tx, node string) (out []WantedService) {
	prefix := ServiceNodeKey(node, "")
	for k, of := range tx.Prefix(prefix) {
		s, ok := Services.Get(tx, ledger.CompanyID(of), string(k[len(prefix):]))
		if !ok {
			continue
		}
		if s.ScopeType == "run" || s.Lifecycle == "ephemeral" && s.StartedByRun != "" {
			if r, ok := entity.RunTable.Get(tx, s.Company, string(s.StartedByRun)); !ok || !r.Status.Live() {
				s.Desired = "stopped"
			}
		}
		if out = append(out, WantedService{s, s.Over(tx)}); len(out) == maxLost {
			break
		}
	}
	return out
}

// Over returns why a service may no longer run, or "".
func (s RuntimeService) Over(tx *ledger.Tx) company.Denial {
	return deniedService(tx, s.Company, string(s.Issue))
}

// deniedService returns why no service of a company, or of an issue if one is given, may run
// now, or "". The reasons are: the emergency stop; the company is paused, archived or being
// deleted; the issue's tree is paused. If a pause lets current runs finish, the services
// that they use run until then. A service belongs to its workspace, not to an agent, so
// pausing an agent ends no service.
func deniedService(tx *ledger.Tx, of ledger.CompanyID, issue string) company.Denial {
	if why := company.EndedFor(tx, of, ledger.Actor{}, "", false); why != "" {
		return why
	}
	if why := company.DeniedIn(tx, of); why != "" {
		return why
	}
	if i, ok := entity.IssueTable.Get(tx, of, issue); ok && issue != "" {
		if company.Ask.Stops(tx, i) {
			return company.DeniedTreeHold
		}
	}
	return ""
}

// ServiceDenial returns a sentence that says why a service does not run.
func ServiceDenial(why company.Denial) string {
	switch why {
	case company.DeniedMeshStopped:
		return "Everything was stopped; services that are wanted start again when the mesh is resumed (selvage resume)"
	case company.DeniedBudget:
		return "The company is paused because of its budget; services that are wanted start again when it is resumed"
	case company.DeniedTreeHold:
		return "The issue's tree is on hold; services that are wanted start again when it is released"
	}
	return "The company is paused or archived; services that are wanted start again when it is resumed"
}

func reportService(c *ledger.Context, p ReportService) (any, error) {
	s, ok := Services.Get(c.Tx, c.Cmd.Company, p.ID)
	switch {
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Runtime service not found")
	case c.Cmd.Actor.Type != "node" || string(s.Node) != c.Cmd.Actor.ID:
		return nil, ledger.Refuse(ledger.Forbidden, nil, "only its node reports on a service")
	case s.Generation != p.Generation:
		return nil, ledger.Refuse(ledger.Conflict, nil, "the service was started anew")
	case !slices.Contains([]ServiceStatus{ServiceStarting, ServiceRunning, ServiceStopped, ServiceFailed}, p.Status) ||
		!slices.Contains([]string{"unknown", "healthy", "unhealthy"}, p.Health) || max(len(p.URL), len(p.Cwd),
		len(p.LogRef)) > entity.MaxPlacePath:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed report of a service")
	}
	now := core.TimeOf(c.Now)
	s.Status, s.Health, s.URL, s.Error, s.Restarts, s.UpdatedAt = p.Status, p.Health, core.NullText(p.URL),
		core.NullText(core.Snippet(p.Error, maxCleanupReason)), p.Restarts, now
	s.Port, s.ProviderRef = nil, ""
	if p.Port > 0 {
		s.Port = new(p.Port)
	}
	if p.PID > 0 {
		s.ProviderRef = core.NullText(strconv.FormatInt(p.PID, 10))
	}
	if p.Cwd != "" {
		s.Cwd = core.NullText(p.Cwd)
	}
	if p.LogRef != "" {
		s.LogRef = core.NullText(p.LogRef)
	}
	if p.Status == ServiceStopped || p.Status == ServiceFailed {
		s.StoppedAt = now
		if s.Desired == "stopped" || p.Status == ServiceFailed || s.ScopeType == "run" || s.Lifecycle == "ephemeral" {
			s.Desired = "stopped"
			c.Delete(ServiceNodeKey(string(s.Node), s.ID))
		}
	}
	Services.Put(c.Tx, s.Company, s.ID, s)
	c.Record(ledger.Change{Action: "runtime_service." + string(p.Status), EntityType: "workspace_runtime_service",
		EntityID: s.ID,
		Details: core.Object{}.Str("serviceName", s.Name).Str("status", string(s.Status)).Str("healthStatus", s.Health).
			Null("executionWorkspaceId", string(s.Workspace)).
			Null("projectWorkspaceId", string(s.ProjectWorkspace)).Null("issueId", string(s.Issue)).
			Null("error", string(s.Error)).Str("nodeId", string(s.Node)).Close()})
	return nil, nil
}

// stopServices has the services of a workspace stopped for good.
func stopServices(tx *ledger.Tx, company ledger.CompanyID, workspace string, now core.Time) {
	for _, s := range ServicesOf(tx, company, workspace) {
		s.Desired, s.UpdatedAt = "stopped", now
		if s.Status == ServiceFailed {
			s.Status = ServiceStopped
		}
		Services.Put(tx, company, s.ID, s)
	}
}

// dropServices deletes the services of a workspace. A node stops every service for which
// there is no row.
func dropServices(tx *ledger.Tx, company ledger.CompanyID, workspace string) {
	for _, s := range ServicesOf(tx, company, workspace) {
		Services.Delete(tx, company, s.ID)
		tx.Delete(ServiceCompanyKey(s.ID))
		tx.Delete(ServiceNodeKey(string(s.Node), s.ID))
	}
}

// loseServices records that the services of a lost node have ended. The wanted ones are
// started again when the node returns.
func loseServices(c *ledger.Context, node string) {
	prefix := ServiceNodeKey(node, "")
	n := 0
	for k, of := range c.Prefix(prefix) {
		s, ok := Services.Get(c.Tx, ledger.CompanyID(of), string(k[len(prefix):]))
		if !ok || s.Status == ServiceStopped || s.Status == ServiceFailed {
			continue
		}
		s.Status, s.Health, s.Error, s.StoppedAt, s.UpdatedAt = ServiceStopped, "unknown",
			"The node of this service was lost", core.TimeOf(c.Now), core.TimeOf(c.Now)
		s.Port, s.URL, s.ProviderRef = nil, "", ""
		Services.Put(c.Tx, s.Company, s.ID, s)
		if n++; n == maxLost {
			break
		}
	}
}
