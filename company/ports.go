package company

import (
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// People decides who belongs to a company.
type People interface {
	// Belongs reports whether a user may be asked about a company's work: an active member
	// or an administrator.
	Belongs(tx *ledger.Tx, company ledger.CompanyID, user string) bool
	// Permitted reports whether a user has a permission in a company.
	Permitted(tx *ledger.Tx, company ledger.CompanyID, user string, needs entity.Permission) bool
}

// Limits are the budgets of scopes.
type Limits interface {
	// Set sets the monthly limit of a scope.
	Set(c *ledger.Context, t entity.ScopeType, id string, limit core.Money) error
	// Limit returns the monthly limit of an agent, 0 for none, and Today what it spent today.
	Limit(tx *ledger.Tx, company ledger.CompanyID, agent string, now core.Time) core.Money
	Today(tx *ledger.Tx, company ledger.CompanyID, agent string, now core.Time) core.Money
	// Told returns what a run's context says about the agent's budget, as JSON.
	Told(tx *ledger.Tx, company ledger.CompanyID, agent string, now core.Time) any
	// MayResume refuses a scope that is over its limit. Renew checks all scopes of an agent's
	// work and resumes those whose window has passed.
	MayResume(c *ledger.Context, t entity.ScopeType, id string) error
	Renew(c *ledger.Context, agent, project string) error
	// Allow stores the allowance of a new issue. Book books the cost of a run.
	Allow(c *ledger.Context, i entity.Issue, limit *core.Money) (entity.Issue, error)
	Book(c *ledger.Context, r entity.Run, told *entity.RunCost) error
}

// Places are the workspaces and environments of work.
type Places interface {
	// Inherit returns i with the execution workspace of another issue, unless i names one.
	Inherit(tx *ledger.Tx, i entity.Issue, from string, named bool) (entity.Issue, error)
	// Fits refuses a workspace of another project than the issue's.
	Fits(tx *ledger.Tx, i entity.Issue) error
	// CheckProject refuses an invalid workspace policy. Equip creates the workspaces of a new
	// project and returns the ID of the first.
	CheckProject(c *ledger.Context, was, p entity.Project) error
	Equip(c *ledger.Context, p entity.Project, s entity.SaveProject) (string, error)
	// HasWorkspace and HasService report whether a company has an execution workspace, or
	// a service.
	HasWorkspace(tx *ledger.Tx, company ledger.CompanyID, id string) bool
	HasService(tx *ledger.Tx, company ledger.CompanyID, id string) bool
	// Remote reports whether an environment is not on the node itself.
	Remote(tx *ledger.Tx, company ledger.CompanyID, id string) bool
}

// Stages are the reviews of an issue.
type Stages interface {
	// Review applies the review policy of an issue to a hand-in or a decision.
	Review(c *ledger.Context, was, next entity.Issue, p UpdateIssue) (entity.Issue, UpdateIssue, error)
	// Request stores what the participant of a stage is asked to review.
	Request(c *ledger.Context, was, next entity.Issue, p UpdateIssue) (entity.Issue, error)
	// Wake wakes the participant who must decide.
	Wake(c *ledger.Context, was, next entity.Issue) error
}

// Secrets are the secrets that configurations refer to.
type Secrets interface {
	// BindEnv and BindConfig check and complete the references of variables, or of a
	// configuration. References that old already had are not checked again.
	BindEnv(tx *ledger.Tx, company ledger.CompanyID, env, old json.RawMessage) (json.RawMessage, error)
	BindConfig(tx *ledger.Tx, company ledger.CompanyID, config, old json.RawMessage) (json.RawMessage, error)
	// Known reports whether a company has a secret; shared is false for a user's own.
	Known(tx *ledger.Tx, company ledger.CompanyID, id string) (shared, ok bool)
}

// Skills are the skills of agents.
type Skills interface {
	// Equip stores the skills and instructions that come with a new agent and returns its
	// adapterConfig. Of lists the skills of an agent.
	Equip(c *ledger.Context, a entity.Agent, p entity.SaveAgent) (json.RawMessage, error)
	Of(tx *ledger.Tx, company ledger.CompanyID, agent string) []string
}

// Watches are scheduled checks of issues.
type Watches interface {
	// Plan applies what the execution policy of next says about a monitor.
	Plan(c *ledger.Context, was, next entity.Issue) (entity.Issue, error)
	// Stops reports whether running work on an issue must end, and not only wait.
	Stops(tx *ledger.Tx, i entity.Issue) bool
}

// Files stores bytes under a name.
type Files interface {
	// Add stores a file of a company at a place, and returns its ID.
	Add(c *ledger.Context, f NewFile, place string) (string, error)
}

// Papers are the texts of issues apart from comments.
type Papers interface {
	// Each calls found with the latest texts of a company, by issue and key, until found
	// returns false.
	Each(tx *ledger.Tx, company ledger.CompanyID, found func(issue, key, text string) bool)
	// Revision returns the text of one revision of an issue's document.
	Revision(tx *ledger.Tx, i entity.Issue, id string) (string, bool)
}

// Routines create issues.
type Routines interface {
	// Env returns the variables of the routine that created an issue.
	Env(tx *ledger.Tx, i entity.Issue) (EnvUse, bool)
	// Description returns the text of a routine by the ID of its revision, if it is still
	// kept, and the number of that revision.
	Description(tx *ledger.Tx, company ledger.CompanyID, id string) (Description, bool)
	DescriptionAt(tx *ledger.Tx, company ledger.CompanyID, id, revision string, number uint64) (version uint64,
		text string, ok bool)
}

// Approvals are what people are asked.
type Approvals interface {
	// Ask opens an approval. Lapse closes one that nobody has answered.
	Ask(c *ledger.Context, q Question) error
	Lapse(c *ledger.Context, approval, note string)
}

// Topics keep messages.
type Topics interface {
	// PublishTo publishes a message to a topic of the command's company, or of the mesh. After a refusal
	// nothing is written.
	PublishTo(c *ledger.Context, topic, text string, isJSON bool, from string) error
}

// Processes are those that the mesh keeps running.
type Processes interface {
	// CheckProcess refuses a process that can not be declared. StartProcess declares it, or starts all its
	// replicas anew; while one still runs, only if replace is set. EndProcess removes it, if it is there.
	CheckProcess(p NewProcess) error
	StartProcess(c *ledger.Context, p NewProcess, replace bool) error
	EndProcess(c *ledger.Context, name string)
	// ProcessOf returns how a process stands. ForgetProcess removes it with the company that it belongs to.
	ProcessOf(tx *ledger.Tx, name string) (ProcessState, bool)
	ForgetProcess(tx *ledger.Tx, name string)
}

// A ProcessState is how a declared process stands: its first replica, and whether all of them run.
type ProcessState struct {
	Node    string // that has it, or had it last; "": none has
	Running bool   // all replicas run
	Ended   bool   // it has done its work, and ended with Exit
	Failed  bool   // it is not started again
	Exit    int64
	Error   string
	Moved   int64 // how often it went to another node
}

// Services are the registry of services.
type Services interface {
	// OfferService registers a service of an app of the command's company, or gives it a new contract and provider.
	// WithdrawService removes it, and ForgetService does with its company.
	OfferService(c *ledger.Context, s NewService) error
	WithdrawService(c *ledger.Context, name string)
	ForgetService(tx *ledger.Tx, company ledger.CompanyID, name string)
}

// A NewService is a service that an app offers: what it is called, what it answers, and the process that provides it.
type NewService struct {
	Name     string      `cbor:"1,keyasint"` // APP/SERVICE
	Version  string      `cbor:"2,keyasint"`
	Provider string      `cbor:"3,keyasint"`
	Methods  []NewMethod `cbor:"4,keyasint"`
	Probe    string      `cbor:"5,keyasint,omitempty"`
}

// A NewMethod is a method of a service that an app offers.
type NewMethod struct {
	Name   string          `cbor:"1,keyasint"`
	Doc    string          `cbor:"2,keyasint,omitempty"`
	Params json.RawMessage `cbor:"3,keyasint,omitempty"`
	Result json.RawMessage `cbor:"4,keyasint,omitempty"`
}

// Tools are the tools of companies.
type Tools interface {
	// OfferTool gives the command's company a tool of an app, or another version of it. RestTool keeps it, and nobody
	// can execute it. WithdrawTool removes it.
	OfferTool(c *ledger.Context, t NewTool) error
	RestTool(c *ledger.Context, name string)
	WithdrawTool(c *ledger.Context, name string)
}

// A NewTool is a tool that an app offers: a module, or a method of one of its services.
type NewTool struct {
	Name       string          `cbor:"1,keyasint"` // APP/TOOL
	About      string          `cbor:"2,keyasint,omitempty"`
	Parameters json.RawMessage `cbor:"3,keyasint,omitempty"` // a JSON schema
	Effect     [5]int64        `cbor:"4,keyasint,omitempty"` // risk, security, privacy, novelty, fairness, in thousandths
	Version    uint32          `cbor:"5,keyasint"`
	Hash       string          `cbor:"6,keyasint"` // of the module, or of service and method
	Size       int64           `cbor:"7,keyasint,omitempty"`
	Asset      string          `cbor:"8,keyasint,omitempty"`  // that holds the module
	Signature  []byte          `cbor:"9,keyasint,omitempty"`  // of the node that planned the change, for a module
	Signer     string          `cbor:"10,keyasint,omitempty"` // that node
	Service    string          `cbor:"11,keyasint,omitempty"` // APP/SERVICE
	Method     string          `cbor:"12,keyasint,omitempty"`
}

// A NewProcess is a process that another room declares.
type NewProcess struct {
	Name     string          `cbor:"1,keyasint"`
	Spec     json.RawMessage `cbor:"2,keyasint"` // see kernel.Spec
	Replicas int64           `cbor:"3,keyasint"`
	Labels   []string        `cbor:"4,keyasint,omitempty"`
	Node     string          `cbor:"5,keyasint,omitempty"`
	Module   string          `cbor:"6,keyasint,omitempty"` // with Size and Nodes: where its module is stored
	Size     int64           `cbor:"7,keyasint,omitempty"`
	Nodes    []string        `cbor:"8,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with p.
func (p NewProcess) Clone() NewProcess {
	p.Spec, p.Labels, p.Nodes = slices.Clone(p.Spec), slices.Clone(p.Labels), slices.Clone(p.Nodes)
	return p
}

// Named returns p with a name.
func (p NewProcess) Named(name string) NewProcess {
	p.Name = name
	return p
}

// A Question is an act that waits for the board.
type Question struct {
	ID      string
	Agent   string          // who wants to do it
	Payload json.RawMessage // what it is, as people see it
	Issues  []string
}

// An EnvUse is a set of variables and its owner.
type EnvUse struct {
	Env json.RawMessage
	Of  conceal.SecretTarget
	At  core.Time // when it last changed
}

// A Description is the text of a routine, which people can annotate.
type Description struct {
	Company ledger.CompanyID
	Routine string
	Version uint64
	At      core.Time
}
