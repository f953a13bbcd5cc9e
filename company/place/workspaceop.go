package place

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// An OperationPhase is the purpose of an operation on a workspace. Persisted: do not rename.
type OperationPhase string

// The phases of operations.
const (
	OperationProvision OperationPhase = "workspace_provision" // setup, provision, and declared commands that somebody ran
	OperationTeardown  OperationPhase = "workspace_teardown"  // cleanup and teardown
)

// An OperationStatus is the state of an operation. Persisted: do not rename.
type OperationStatus string

// The statuses of operations.
const (
	OperationRunning   OperationStatus = "running"
	OperationSucceeded OperationStatus = "succeeded"
	OperationFailed    OperationStatus = "failed"
)

// A WorkspaceOperation is one command that a node executes or has executed in a workspace.
// Its output is a log on that node.
type WorkspaceOperation struct {
	ID         string           `cbor:"1,keyasint" json:"id"`
	Company    ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Workspace  core.NullText    `cbor:"3,keyasint,omitempty" json:"executionWorkspaceId"`
	Run        core.NullText    `cbor:"4,keyasint,omitempty" json:"heartbeatRunId"`
	Issue      core.NullText    `cbor:"5,keyasint,omitempty" json:"issueId"`
	Phase      OperationPhase   `cbor:"6,keyasint" json:"phase"`
	Command    core.NullText    `cbor:"7,keyasint,omitempty" json:"command"`
	Cwd        core.NullText    `cbor:"8,keyasint,omitempty" json:"cwd"`
	Status     OperationStatus  `cbor:"9,keyasint" json:"status"`
	ExitCode   *int64           `cbor:"10,keyasint,omitempty" json:"exitCode"`
	LogStore   core.NullText    `cbor:"11,keyasint,omitempty" json:"logStore"`
	LogRef     core.NullText    `cbor:"12,keyasint,omitempty" json:"logRef"`
	LogBytes   *int64           `cbor:"13,keyasint,omitempty" json:"logBytes"`
	LogSHA256  core.NullText    `cbor:"14,keyasint,omitempty" json:"logSha256"`
	Compressed bool             `cbor:"15,keyasint,omitempty" json:"logCompressed"`
	Stdout     core.NullText    `cbor:"16,keyasint,omitempty" json:"stdoutExcerpt"`
	Stderr     core.NullText    `cbor:"17,keyasint,omitempty" json:"stderrExcerpt"`
	Metadata   json.RawMessage  `cbor:"18,keyasint,omitempty" json:"metadata"`
	StartedAt  core.Time        `cbor:"19,keyasint" json:"startedAt"`
	FinishedAt core.Time        `cbor:"20,keyasint,omitempty" json:"finishedAt"`
	CreatedAt  core.Time        `cbor:"21,keyasint" json:"createdAt"`
	UpdatedAt  core.Time        `cbor:"22,keyasint" json:"updatedAt"`
	Node       core.NullText    `cbor:"23,keyasint,omitempty" json:"nodeId"`
	Error      core.NullText    `cbor:"24,keyasint,omitempty" json:"error"`
	// the workspace of an issue or a project under which it is listed
	Place string `cbor:"25,keyasint" json:"-"`
	Job   string `cbor:"26,keyasint,omitempty" json:"-"`
}

// Clone returns a copy that shares no memory with o.
func (o WorkspaceOperation) Clone() WorkspaceOperation {
	o.Metadata = slices.Clone(o.Metadata)
	if o.ExitCode != nil {
		o.ExitCode = new(*o.ExitCode)
	}
	if o.LogBytes != nil {
		o.LogBytes = new(*o.LogBytes)
	}
	return o
}

// Keys of operations besides their rows:
//
//	workspace-op-of/<workspace>/<id>
//	workspace-op-run/<run>/<id>
//	workspace-op-company/<id>       its company; outside companies
//	workspace-op-node/<node>/<id>   its company: it is in progress there; outside companies
var (
	Operations = ledger.NewTable[string, WorkspaceOperation]("workspace-op").
			Beside(ledger.Indexed(operationsPlace, func(o *WorkspaceOperation) string { return o.Place })).
			Beside(ledger.Indexed(operationsRun, func(o *WorkspaceOperation) string { return string(o.Run) }))
	operationsPlace = ledger.NewIndex[string, string]("workspace-op-of")
	operationsRun   = ledger.NewIndex[string, string]("workspace-op-run")
)

func OperationCompanyKey(id string) []byte    { return ledger.Key("workspace-op-company", id) }
func OperationNodeKey(node, id string) []byte { return ledger.Key(operationNodes, node, id) }

// operationNodes is the index of the operations in progress on each node.
const operationNodes = "workspace-op-node"

const (
	// MaxOperations bounds the operations that are kept of one workspace. At the bound, the
	// oldest is deleted.
	MaxOperations = 100
	// MaxUnderWay bounds the operations that are queued or running on one node.
	MaxUnderWay = 64
	// MaxCommandLine bounds a command of a workspace, in bytes.
	MaxCommandLine = 10_000
	// maxLost bounds the operations and services of a lost node that one command ends. The node
	// ends the rest when it returns.
	maxLost = 500
)

// StartOperation is the payload of workspace_op.start, by which the node of a workspace
// reports that it executes a command there. Run is "" outside runs.
type StartOperation struct {
	ID        string         `cbor:"1,keyasint"`
	Workspace string         `cbor:"2,keyasint"` // an execution workspace
	Run       string         `cbor:"3,keyasint,omitempty"`
	Phase     OperationPhase `cbor:"4,keyasint"`
	Name      string         `cbor:"5,keyasint"` // name of the command, such as setupCommand
	Command   string         `cbor:"6,keyasint"`
	Cwd       string         `cbor:"7,keyasint"`
	LogRef    string         `cbor:"8,keyasint"`
}

// FinishOperation is the payload of workspace_op.finish. Error is "" if the command succeeded.
type FinishOperation struct {
	ID        string `cbor:"1,keyasint"`
	Error     string `cbor:"2,keyasint,omitempty"`
	ExitCode  *int64 `cbor:"3,keyasint,omitempty"`
	Stdout    string `cbor:"4,keyasint,omitempty"`
	Stderr    string `cbor:"5,keyasint,omitempty"`
	LogBytes  int64  `cbor:"6,keyasint,omitempty"`
	LogSHA256 string `cbor:"7,keyasint,omitempty"`
}

const (
	KindWorkspaceOpStart  = "workspace_op.start"
	KindWorkspaceOpFinish = "workspace_op.finish"
)

var operationKinds = []company.Kind{
	{Name: KindWorkspaceOpStart, From: company.FromNode, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(startOperation)},
	{Name: KindWorkspaceOpFinish, From: company.FromNode, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(finishOperation)},
}

// OperationByID returns an operation on a workspace.
func OperationByID(tx *ledger.Tx, id string) (WorkspaceOperation, bool) {
	if !core.IsID(id) {
		return WorkspaceOperation{}, false
	}
	of, ok := tx.Get(OperationCompanyKey(id))
	if !ok {
		return WorkspaceOperation{}, false
	}
	return Operations.Get(tx, ledger.CompanyID(of), id)
}

// OperationsOf returns the operations on a workspace, the newest first.
func OperationsOf(tx *ledger.Tx, company ledger.CompanyID, workspace string) []WorkspaceOperation {
	return operationsIn(tx, company, operationsPlace.IDs(tx, company, workspace, true))
}

// OperationsOfRun returns the operations that a run needed, the newest first.
func OperationsOfRun(tx *ledger.Tx, company ledger.CompanyID, run string) []WorkspaceOperation {
	return operationsIn(tx, company, operationsRun.IDs(tx, company, run, true))
}

func operationsIn(tx *ledger.Tx, company ledger.CompanyID, ids func(func(string) bool)) []WorkspaceOperation {
	out := []WorkspaceOperation{}
	for id := range ids {
		if o, ok := Operations.Get(tx, company, id); ok {
			out = append(out, o)
		}
		if len(out) == MaxOperations {
			break
		}
	}
	return out
}

// OperationsOn returns the operations in progress on a node.
func OperationsOn(tx *ledger.Tx, node string) (out []WorkspaceOperation) {
	prefix := OperationNodeKey(node, "")
	for k, of := range tx.Prefix(prefix) {
		if o, ok := Operations.Get(tx, ledger.CompanyID(of), string(k[len(prefix):])); ok {
			out = append(out, o)
		}
		if len(out) == maxLost {
			break
		}
	}
	return out
}

func errNoOperation() error {
	return ledger.Refuse(ledger.NotFound, nil, "Workspace operation not found")
}

// openOperation stores a new operation and deletes old ones beyond the bound.
func openOperation(c *ledger.Context, o WorkspaceOperation) {
	ids := slices.Collect(operationsPlace.IDs(c.Tx, o.Company, o.Place, false))
	for _, id := range ids[:max(0, len(ids)+1-MaxOperations)] {
		dropOperation(c.Tx, o.Company, id)
	}
	Operations.Put(c.Tx, o.Company, o.ID, o)
	c.Set(OperationCompanyKey(o.ID), []byte(o.Company))
	c.Set(OperationNodeKey(string(o.Node), o.ID), []byte(o.Company))
}

func dropOperation(tx *ledger.Tx, company ledger.CompanyID, id string) {
	o, ok := Operations.Get(tx, company, id)
	if !ok {
		return
	}
	Operations.Delete(tx, company, id)
	tx.Delete(OperationCompanyKey(id))
	tx.Delete(OperationNodeKey(string(o.Node), id))
}

func startOperation(c *ledger.Context, p StartOperation) (any, error) {
	by := c.Cmd.Actor
	if by.Type != "node" {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "only its node reports on an operation")
	}
	if len(p.Command) > MaxCommandLine || max(len(p.Cwd), len(p.LogRef), len(p.Name)) > entity.MaxPlacePath {
		return nil, ledger.Refuse(ledger.TooLarge, nil, "the operation's texts are too long")
	}
	now := core.TimeOf(c.Now)
	if o, ok := Operations.Get(c.Tx, c.Cmd.Company, p.ID); ok { // one that was requested
		if string(o.Node) != by.ID || o.Status != OperationRunning || o.LogRef != "" {
			return nil, ledger.Refuse(ledger.Conflict, nil, "operation %s does not wait for this node", o.ID)
		}
		o.LogStore, o.LogRef, o.Cwd, o.StartedAt, o.UpdatedAt = "local_file", core.NullText(p.LogRef),
			core.NullText(p.Cwd), now, now
		Operations.Put(c.Tx, o.Company, o.ID, o)
		recordOperation(c, o, "workspace_operation.started")
		return nil, nil
	}
	w, ok := ExecWorkspaces.Get(c.Tx, c.Cmd.Company, p.Workspace)
	if !ok || string(w.Node) != by.ID {
		return nil, errNoExecutionWorkspace()
	}
	if !core.IsID(p.ID) || c.Has(OperationCompanyKey(p.ID)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "malformed ID of an operation, or one that is taken")
	}
	if p.Run != "" {
		if _, err := company.OfNode(c, p.Run); err != nil {
			return nil, err
		}
	}
	o := WorkspaceOperation{ID: p.ID, Company: w.Company, Workspace: core.NullText(w.ID), Run: core.NullText(p.Run),
		Issue: w.SourceIssue, Phase: p.Phase, Command: core.NullText(p.Command),
		Cwd: core.NullText(p.Cwd), Status: OperationRunning, LogStore: "local_file", LogRef: core.NullText(p.LogRef),
		Metadata:  core.Object{}.Str("command", p.Name).Close(),
		StartedAt: now, CreatedAt: now, UpdatedAt: now, Node: core.NullText(by.ID), Place: w.ID}
	openOperation(c, o)
	recordOperation(c, o, "workspace_operation.started")
	return nil, nil
}

func recordOperation(c *ledger.Context, o WorkspaceOperation, action string) {
	c.Record(ledger.Change{Action: action, EntityType: "workspace_operation", EntityID: o.ID,
		Details: core.Object{}.Str("phase", string(o.Phase)).Str("status", string(o.Status)).
			Null("executionWorkspaceId", string(o.Workspace)).Null("runId", string(o.Run)).Null("issueId", string(o.Issue)).
			Str("nodeId", string(o.Node)).Close()})
}

func finishOperation(c *ledger.Context, p FinishOperation) (any, error) {
	o, ok := Operations.Get(c.Tx, c.Cmd.Company, p.ID)
	switch {
	case !ok:
		return nil, errNoOperation()
	case c.Cmd.Actor.Type != "node" || string(o.Node) != c.Cmd.Actor.ID:
		return nil, ledger.Refuse(ledger.Forbidden, nil, "only its node reports on an operation")
	case o.Status != OperationRunning:
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("status", string(o.Status)).Close(),
			"the operation is over")
	case len(p.LogSHA256) != 0 && len(p.LogSHA256) != 2*sha256.Size:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed digest of a log")
	}
	o.Stdout, o.Stderr = core.NullText(core.Snippet(p.Stdout, entity.MaxExcerpt)),
		core.NullText(core.Snippet(p.Stderr, entity.MaxExcerpt))
	o.ExitCode, o.LogBytes, o.LogSHA256 = p.ExitCode, new(p.LogBytes), core.NullText(p.LogSHA256)
	endOperation(c, o, p.Error)
	recordOperation(c, o.ended(p.Error), "workspace_operation.finished")
	return nil, nil
}

func (o WorkspaceOperation) ended(failed string) WorkspaceOperation {
	o.Status = OperationSucceeded
	if failed != "" {
		o.Status, o.Error = OperationFailed, core.NullText(core.Snippet(failed, maxCleanupReason))
	}
	return o
}

func endOperation(c *ledger.Context, o WorkspaceOperation, failed string) {
	o = o.ended(failed)
	o.FinishedAt, o.UpdatedAt = core.TimeOf(c.Now), core.TimeOf(c.Now)
	Operations.Put(c.Tx, o.Company, o.ID, o)
	c.Delete(OperationNodeKey(string(o.Node), o.ID))
}

// loseOperations ends the operations that were in progress on a lost node.
func loseOperations(c *ledger.Context, node string) {
	for _, o := range OperationsOn(c.Tx, node) {
		endOperation(c, o, "The node that carried out this command was lost")
	}
}

// A Lifecycle is what a node executes for an execution workspace. The workspace's own
// settings override those of its project. Texts are shell commands, "" for none.
type Lifecycle struct {
	Setup            string // before the first run on a node
	Provision        string // after that, in a worktree
	RuntimeProvision string // before its services start
	Cleanup          string // when it is closed
	Teardown         string // after that, before a worktree is removed
	Runtime          json.RawMessage
	Desired          string
	States           json.RawMessage
}

// LifecycleOf returns what is executed for an execution workspace.
func LifecycleOf(tx *ledger.Tx, w ExecutionWorkspace) Lifecycle {
	if w.Frozen != nil {
		return *w.Frozen
	}
	var l Lifecycle
	if p, ok := entity.ProjectTable.Get(tx, w.Company, w.Project); ok {
		var policy workspacePolicy
		_ = json.Unmarshal(p.WorkspacePolicy, &policy)
		if policy.Enabled {
			l.Provision, l.RuntimeProvision, l.Teardown = policy.Strategy.Provision, policy.Strategy.RuntimeProvision,
				policy.Strategy.Teardown
			l.Runtime = policy.Runtime
		}
	}
	if of, ok := RepositoryOf(tx, w); ok {
		l.Setup, l.Cleanup = string(of.SetupCommand), string(of.CleanupCommand)
		if r := of.runtime(); len(l.Runtime) == 0 || string(l.Runtime) == "null" {
			l.Runtime, l.Desired, l.States = r.Services, r.Desired, r.States
		}
	}
	own := w.Config
	for _, f := range []struct {
		to   *string
		from *string
	}{{&l.Provision, own.Provision}, {&l.RuntimeProvision, own.RuntimeProvision}, {&l.Cleanup, own.Cleanup},
		{&l.Teardown, own.Teardown}, {&l.Desired, own.Desired}} {
		if f.from != nil {
			*f.to = *f.from
		}
	}
	if len(own.Runtime) > 0 {
		l.Runtime = own.Runtime
	}
	if len(own.States) > 0 {
		l.States = own.States
	}
	if w.Mode != entity.IsolatedWorkspace {
		l.Provision, l.Teardown = "", ""
	}
	return l
}

// Prepared identifies the commands that prepare a workspace on a node, so that they run once
// for each folder, and again after they change.
func (l Lifecycle) Prepared(node, cwd string) string {
	if l.Setup == "" && l.Provision == "" {
		return ""
	}
	h := sha256.New()
	for _, s := range []string{node, cwd, l.Setup, l.Provision} {
		h.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A runtimeConfig is the part of a project workspace's configuration that is about services.
type runtimeConfig struct {
	Services json.RawMessage `json:"workspaceRuntime"`
	Desired  string          `json:"desiredState"`
	States   json.RawMessage `json:"serviceStates"`
}

func (w Workspace) runtime() (r runtimeConfig) {
	_ = json.Unmarshal(w.RuntimeConfig, &r) // a configuration that does not decode counts as none
	return r
}

// A WorkspaceConfig is what was set by hand on an execution workspace. For a nil field the
// project's setting applies.
type WorkspaceConfig struct {
	Provision        *string         `cbor:"1,keyasint,omitempty"`
	RuntimeProvision *string         `cbor:"2,keyasint,omitempty"`
	Cleanup          *string         `cbor:"3,keyasint,omitempty"`
	Teardown         *string         `cbor:"4,keyasint,omitempty"`
	Runtime          json.RawMessage `cbor:"5,keyasint,omitempty"`
	Desired          *string         `cbor:"6,keyasint,omitempty"`
	States           json.RawMessage `cbor:"7,keyasint,omitempty"`
	Environment      *string         `cbor:"8,keyasint,omitempty"`
}

func (w WorkspaceConfig) clone() WorkspaceConfig {
	w.Runtime, w.States = slices.Clone(w.Runtime), slices.Clone(w.States)
	for _, p := range []**string{&w.Provision, &w.RuntimeProvision, &w.Cleanup, &w.Teardown, &w.Desired, &w.Environment} {
		if *p != nil {
			*p = new(**p)
		}
	}
	return w
}

// DesiredStates lists the desired states of services, in the contract's order.
var DesiredStates = []string{"running", "stopped", "manual"}

// with applies the fields that a request sets and keeps the others.
func (w WorkspaceConfig) with(s WorkspaceConfig) (WorkspaceConfig, error) {
	for _, f := range []struct {
		name     string
		to, from **string
	}{{"provisionCommand", &w.Provision, &s.Provision}, {"runtimeProvisionCommand", &w.RuntimeProvision,
		&s.RuntimeProvision},
		{"cleanupCommand", &w.Cleanup, &s.Cleanup}, {"teardownCommand", &w.Teardown, &s.Teardown},
		{"desiredState", &w.Desired, &s.Desired}} {
		if *f.from == nil {
			continue
		}
		if len(**f.from) > MaxCommandLine {
			return w, ledger.Refuse(ledger.TooLarge, nil, "config.%s is longer than %d bytes", f.name, MaxCommandLine)
		}
		*f.to = *f.from
	}
	if w.Desired != nil && *w.Desired != "" && !slices.Contains(DesiredStates, *w.Desired) {
		return w, ledger.Refuse(ledger.Invalid, nil, "config.desiredState is not one of running, stopped, manual")
	}
	for _, f := range []struct {
		name     string
		to, from *json.RawMessage
	}{{"config.workspaceRuntime", &w.Runtime, &s.Runtime}, {"config.serviceStates", &w.States, &s.States}} {
		v, err := core.CheckObject(f.name, *f.from, entity.MaxConfig)
		if err != nil {
			return w, err
		}
		if len(*f.from) > 0 {
			*f.to = v
		}
	}
	return w, nil
}

// Over returns why an operation may no longer continue, or "". An operation that an agent
// requested ends when the agent is denied all work, or when its run is cancelled; the normal
// end of the run does not end it. An operation that a person requested is ended only by the
// emergency stop.
func (o WorkspaceOperation) Over(tx *ledger.Tx) company.Denial {
	r, ok := entity.RunTable.Get(tx, o.Company, string(o.Run))
	if o.Run == "" || !ok {
		return company.EndedFor(tx, o.Company, ledger.Actor{}, "", false)
	}
	return company.EndedFor(tx, o.Company, ledger.Actor{Type: "agent", ID: r.Agent}, r.ID, true)
}
