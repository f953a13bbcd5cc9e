package company

import (
	"encoding/json"
	"iter"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Rules are what one room adds to the kernel: its kinds of commands, what it does when
// rows of the kernel change, and answers to what the kernel asks. The kernel knows no
// room by name; company/rules lists them all, and that order is part of what every
// replica computes alike. Fields are nil where a room has nothing to add.
type Rules struct {
	Kinds []Kind

	// Forget removes, for a table, what names one of its rows from outside its company,
	// when the company is deleted.
	Forget map[string]func(tx *ledger.Tx, id string, row []byte)
	// Left yields the keys of the rows that a deleted issue, or what else has a thread,
	// leaves behind, each with what goes besides it.
	Left func(tx *ledger.Tx, company, owner string) iter.Seq2[[]byte, func(core.Time)]

	// A row was stored. CompanyStored has the zero was for a new company; IssueStored
	// for a new issue, and the zero next for one that goes. It returns next as it is to
	// be stored.
	CompanyStored func(c *ledger.Context, was, row entity.Company, p entity.SaveCompany) error
	IssueStored   func(tx *ledger.Tx, was, next entity.Issue) entity.Issue
	CommentAdded  func(c *ledger.Context, i entity.Issue, cm entity.Comment, attachments []string) error

	// A row goes, or was emptied. Gone tells of agents, projects, goals and issues alike,
	// and what takes their place, "" for nothing.
	AgentEnds      func(c *ledger.Context, a entity.Agent) // while it is still there
	AgentEnded     func(c *ledger.Context, a entity.Agent)
	AgentDeleted   func(c *ledger.Context, a entity.Agent)
	ProjectDeleted func(c *ledger.Context, p entity.Project)
	IssueDeleted   func(c *ledger.Context, i entity.Issue)
	CommentEmptied func(tx *ledger.Tx, cm entity.Comment)
	CommentsGone   func(tx *ledger.Tx, i entity.Issue)
	Gone           func(c *ledger.Context, gone, instead string)

	// May this be: the first refusal counts. Held refuses work on an issue, Spent the
	// start of a run.
	CheckCompany func(tx *ledger.Tx, row entity.Company, p entity.SaveCompany) error
	CheckIssue   func(tx *ledger.Tx, was, next entity.Issue) error
	CheckWake    func(tx *ledger.Tx, company string, i entity.Issue, w entity.Wake) error
	Held         func(tx *ledger.Tx, i entity.Issue) error
	Spent        func(tx *ledger.Tx, r entity.Run) error
	// Awaits reports whether something about an issue is not decided yet.
	Awaits func(tx *ledger.Tx, i entity.Issue) bool

	// A run started, or ended: Follow queues what comes after it, and returns that; it is
	// called before the agent is settled, RunEnded after. NodeLost ends what else a node
	// was at.
	RunStarted func(c *ledger.Context, r entity.Run) entity.Run
	Follow     func(c *ledger.Context, r entity.Run, o Outcome) *entity.Run
	RunEnded   func(c *ledger.Context, r entity.Run)
	NodeLost   func(c *ledger.Context, node string)

	// What one room alone answers.
	People   People
	Limits   Limits
	Places   Places
	Stages   Stages
	Secrets  Secrets
	Skills   Skills
	Watches  Watches
	Files    Files
	Papers   Papers
	Routines Routines

	// Sealed lists what holds sealed values in a company, "" for what is the mesh's.
	// Reseal puts values that were sealed anew in place, by the type of what holds them.
	Sealed func(tx *ledger.Tx, company string) []conceal.SealedConfig
	Reseal map[string]func(c *ledger.Context, p conceal.Reseal) error
	// Envs lists whose variables may refer to secrets.
	Envs func(tx *ledger.Tx, company string) []EnvUse
	// DescriptionGone removes what was remarked on a description.
	DescriptionGone func(c *ledger.Context, d Description)
}

// People says who belongs to a company.
type People interface {
	// Belongs reports whether a user may be asked about a company's work: an active
	// member, or an administrator.
	Belongs(tx *ledger.Tx, company, user string) bool
	// Permitted reports whether a user may do in a company what needs a permission.
	Permitted(tx *ledger.Tx, company, user string, needs entity.Permission) bool
}

// Limits are what scopes may spend: their budgets. They say what scopes may spend.
type Limits interface {
	// Set sets the monthly limit of a scope.
	Set(c *ledger.Context, t entity.ScopeType, id string, limit core.Money) error
	// Limit is the monthly limit of an agent, 0 for none; Today what it spent today.
	Limit(tx *ledger.Tx, company, agent string, now core.Time) core.Money
	Today(tx *ledger.Tx, company, agent string, now core.Time) core.Money
	// Told is what an agent is told of its budget, to be shown as JSON.
	Told(tx *ledger.Tx, company, agent string, now core.Time) any
	// MayResume refuses a scope that is over its limit. Renew does so for all scopes of
	// an agent's work, and lets those go on whose window has passed.
	MayResume(c *ledger.Context, t entity.ScopeType, id string) error
	Renew(c *ledger.Context, agent, project string) error
	// Allow gives a new issue its allowance. Book books what a run cost.
	Allow(c *ledger.Context, i entity.Issue, limit *core.Money) (entity.Issue, error)
	Book(c *ledger.Context, r entity.Run, told *entity.RunCost) error
}

// Places say where work lies.
type Places interface {
	// Inherit returns i with the execution workspace of another issue, unless i names one
	// itself.
	Inherit(tx *ledger.Tx, i entity.Issue, from string, named bool) (entity.Issue, error)
	// Fits refuses a workspace that is not of the issue's project.
	Fits(tx *ledger.Tx, i entity.Issue) error
	// CheckProject refuses a policy about workspaces, Equip makes the workspaces that
	// come with a new project and returns the ID of the first.
	CheckProject(c *ledger.Context, was, p entity.Project) error
	Equip(c *ledger.Context, p entity.Project, s entity.SaveProject) (string, error)
	// HasWorkspace and HasService report whether a company has an execution workspace, or
	// a service.
	HasWorkspace(tx *ledger.Tx, company, id string) bool
	HasService(tx *ledger.Tx, company, id string) bool
	// Remote reports whether an ID is of an environment that is not the node itself.
	Remote(tx *ledger.Tx, company, id string) bool
}

// Stages are the reviews of an issue.
type Stages interface {
	// Review turns a hand-in, or a decision, into what the issue's policy makes of it.
	Review(c *ledger.Context, was, next entity.Issue, p UpdateIssue) (entity.Issue, UpdateIssue, error)
	// Request notes what who decides is asked to look at.
	Request(c *ledger.Context, was, next entity.Issue, p UpdateIssue) (entity.Issue, error)
	// Wake wakes who is to decide.
	Wake(c *ledger.Context, was, next entity.Issue) error
}

// Secrets are what configurations refer to.
type Secrets interface {
	// BindEnv and BindConfig check the references of variables, or of a configuration,
	// and complete them; what old had is not looked up again.
	BindEnv(tx *ledger.Tx, company string, env, old json.RawMessage) (json.RawMessage, error)
	BindConfig(tx *ledger.Tx, company string, config, old json.RawMessage) (json.RawMessage, error)
	// Known reports whether a company has a secret; shared, that it is no user's own.
	Known(tx *ledger.Tx, company, id string) (shared, ok bool)
}

// Skills are what agents have at hand.
type Skills interface {
	// Equip gives a new agent the skills and instructions that come with it, and returns
	// its adapterConfig. Of lists the skills of an agent.
	Equip(c *ledger.Context, a entity.Agent, p entity.SaveAgent) (json.RawMessage, error)
	Of(tx *ledger.Tx, company, agent string) []string
}

// Watches look at issues again later.
type Watches interface {
	// Plan takes over what the execution policy of next says about a monitor.
	Plan(c *ledger.Context, was, next entity.Issue) (entity.Issue, error)
	// Stops reports whether what goes on for an issue has to end, too, and not only to
	// wait.
	Stops(tx *ledger.Tx, i entity.Issue) bool
}

// Files keeps bytes under a name.
type Files interface {
	// Add stores a file of a company at a place, and returns its ID.
	Add(c *ledger.Context, f NewFile, place string) (string, error)
}

// Papers have texts of issues besides comments.
type Papers interface {
	// Each hands out the latest texts of a company by issue and key, until found says no.
	Each(tx *ledger.Tx, company string, found func(issue, key, text string) bool)
	// Revision is the text of one revision of a document of an issue.
	Revision(tx *ledger.Tx, i entity.Issue, id string) (string, bool)
}

// Routines make issues.
type Routines interface {
	// Env returns the variables of the routine that made an issue.
	Env(tx *ledger.Tx, i entity.Issue) (EnvUse, bool)
	// Description is the text of a routine, as far as it is kept: by the ID of the
	// revision and its number.
	Description(tx *ledger.Tx, company, id string) (Description, bool)
	DescriptionAt(tx *ledger.Tx, company, id, revision string, number uint64) (version uint64, text string, ok bool)
}

// An EnvUse is an env and whose it is.
type EnvUse struct {
	Env json.RawMessage
	Of  conceal.SecretTarget
	At  core.Time // when it was changed last
}

// A Description is the text of a routine as something to remark on.
type Description struct {
	Company, Routine string
	Version          uint64
	At               core.Time
}

// composed are the rules of all rooms, in the order of company/rules; what one room
// alone answers stands in the port of its name.
var (
	composed []Rules
	kinds    map[string]Kind
	Ask      struct {
		People
		Limits
		Places
		Stages
		Secrets
		Skills
		Watches
		Files
		Papers
		Routines
	}
)

// Compose sets the rules of all rooms. It is called once, by company/rules, before any
// command is carried out.
func Compose(rooms ...Rules) {
	if composed != nil {
		panic("company: the rules are composed already")
	}
	composed = append([]Rules{kernel}, rooms...)
	lists := [][]Kind{meshKinds}
	for _, r := range composed {
		lists = append(lists, r.Kinds)
		provide(&Ask.People, r.People)
		provide(&Ask.Limits, r.Limits)
		provide(&Ask.Places, r.Places)
		provide(&Ask.Stages, r.Stages)
		provide(&Ask.Secrets, r.Secrets)
		provide(&Ask.Skills, r.Skills)
		provide(&Ask.Watches, r.Watches)
		provide(&Ask.Files, r.Files)
		provide(&Ask.Papers, r.Papers)
		provide(&Ask.Routines, r.Routines)
	}
	kinds = index(lists...)
}

func provide[T comparable](port *T, by T) {
	var none T
	if by == none {
		return
	}
	if *port != none {
		panic("company: two rooms answer the same questions")
	}
	*port = by
}

// firstRefusal asks room after room.
func firstRefusal(ask func(r Rules) error) error {
	for _, r := range composed {
		if err := ask(r); err != nil {
			return err
		}
	}
	return nil
}

func forget(tx *ledger.Tx, table, id string, row []byte) {
	if core.OwnedTables[table] {
		core.Disown(tx, id)
	}
	for _, r := range composed {
		if f := r.Forget[table]; f != nil {
			f(tx, id, row)
		}
	}
}

// leftBehind yields what a deleted issue left in all rooms.
func leftBehind(tx *ledger.Tx, company, owner string) iter.Seq2[[]byte, func(core.Time)] {
	return func(yield func([]byte, func(core.Time)) bool) {
		for _, r := range composed {
			if r.Left == nil {
				continue
			}
			for key, drop := range r.Left(tx, company, owner) {
				if !yield(key, drop) {
					return
				}
			}
		}
	}
}

func companyStored(c *ledger.Context, was, row entity.Company, p entity.SaveCompany) error {
	return firstRefusal(func(r Rules) error {
		if r.CompanyStored == nil {
			return nil
		}
		return r.CompanyStored(c, was, row, p)
	})
}

func issueStored(tx *ledger.Tx, was, next entity.Issue) entity.Issue {
	for _, r := range composed {
		if r.IssueStored != nil {
			next = r.IssueStored(tx, was, next)
		}
	}
	return next
}

func commentAdded(c *ledger.Context, i entity.Issue, cm entity.Comment, attachments []string) error {
	return firstRefusal(func(r Rules) error {
		if r.CommentAdded == nil {
			return nil
		}
		return r.CommentAdded(c, i, cm, attachments)
	})
}

func agentEnds(c *ledger.Context, a entity.Agent) {
	for _, r := range composed {
		if r.AgentEnds != nil {
			r.AgentEnds(c, a)
		}
	}
}

func agentEnded(c *ledger.Context, a entity.Agent) {
	for _, r := range composed {
		if r.AgentEnded != nil {
			r.AgentEnded(c, a)
		}
	}
}

func agentDeleted(c *ledger.Context, a entity.Agent) {
	for _, r := range composed {
		if r.AgentDeleted != nil {
			r.AgentDeleted(c, a)
		}
	}
}

func projectDeleted(c *ledger.Context, p entity.Project) {
	for _, r := range composed {
		if r.ProjectDeleted != nil {
			r.ProjectDeleted(c, p)
		}
	}
}

func issueDeleted(c *ledger.Context, i entity.Issue) {
	for _, r := range composed {
		if r.IssueDeleted != nil {
			r.IssueDeleted(c, i)
		}
	}
}

func commentEmptied(tx *ledger.Tx, cm entity.Comment) {
	for _, r := range composed {
		if r.CommentEmptied != nil {
			r.CommentEmptied(tx, cm)
		}
	}
}

func commentsGone(tx *ledger.Tx, i entity.Issue) {
	for _, r := range composed {
		if r.CommentsGone != nil {
			r.CommentsGone(tx, i)
		}
	}
}

// unplanned tells that an agent, a project, a goal or an issue goes, and what takes its
// place.
func unplanned(c *ledger.Context, gone, instead string) {
	for _, r := range composed {
		if r.Gone != nil {
			r.Gone(c, gone, instead)
		}
	}
}

func checkCompany(tx *ledger.Tx, row entity.Company, p entity.SaveCompany) error {
	return firstRefusal(func(r Rules) error {
		if r.CheckCompany == nil {
			return nil
		}
		return r.CheckCompany(tx, row, p)
	})
}

func checkIssue(tx *ledger.Tx, was, next entity.Issue) error {
	return firstRefusal(func(r Rules) error {
		if r.CheckIssue == nil {
			return nil
		}
		return r.CheckIssue(tx, was, next)
	})
}

func checkWake(tx *ledger.Tx, company string, i entity.Issue, w entity.Wake) error {
	return firstRefusal(func(r Rules) error {
		if r.CheckWake == nil {
			return nil
		}
		return r.CheckWake(tx, company, i, w)
	})
}

// notHeld refuses work on an issue that a room holds.
func notHeld(tx *ledger.Tx, i entity.Issue) error {
	return firstRefusal(func(r Rules) error {
		if r.Held == nil {
			return nil
		}
		return r.Held(tx, i)
	})
}

// OnHold reports whether an issue, "" for none, is held.
func OnHold(tx *ledger.Tx, company, issue string) bool {
	if issue == "" {
		return false
	}
	i, ok := entity.IssueTable.Get(tx, company, issue)
	return ok && notHeld(tx, i) != nil
}

// spent says why no money is left for a run that is about to start, nil when there is.
func spent(tx *ledger.Tx, run entity.Run) error {
	return firstRefusal(func(r Rules) error {
		if r.Spent == nil {
			return nil
		}
		return r.Spent(tx, run)
	})
}

// AwaitsBoard reports whether something about an issue is not decided: then it may be
// blocked for it.
func AwaitsBoard(tx *ledger.Tx, i entity.Issue) bool {
	for _, r := range composed {
		if r.Awaits != nil && r.Awaits(tx, i) {
			return true
		}
	}
	return false
}

func runStarted(c *ledger.Context, run entity.Run) entity.Run {
	for _, r := range composed {
		if r.RunStarted != nil {
			run = r.RunStarted(c, run)
		}
	}
	return run
}

func followUp(c *ledger.Context, run entity.Run, o Outcome) (next *entity.Run) {
	for _, r := range composed {
		if r.Follow != nil && next == nil {
			next = r.Follow(c, run, o)
		}
	}
	return next
}

func runEnded(c *ledger.Context, run entity.Run) {
	for _, r := range composed {
		if r.RunEnded != nil {
			r.RunEnded(c, run)
		}
	}
}

func nodeLost(c *ledger.Context, node string) {
	for _, r := range composed {
		if r.NodeLost != nil {
			r.NodeLost(c, node)
		}
	}
}

// DescriptionGone tells that a description goes.
func DescriptionGone(c *ledger.Context, d Description) {
	for _, r := range composed {
		if r.DescriptionGone != nil {
			r.DescriptionGone(c, d)
		}
	}
}

// Envs lists whose variables may refer to secrets.
func Envs(tx *ledger.Tx, company string) (out []EnvUse) {
	for _, r := range composed {
		if r.Envs != nil {
			out = append(out, r.Envs(tx, company)...)
		}
	}
	return out
}

// SealedConfigs returns all in a company that holds sealed values, beside the
// versions of its secrets; with "" what is the mesh's.
func SealedConfigs(tx *ledger.Tx, company string) (out []conceal.SealedConfig) {
	for _, r := range composed {
		if r.Sealed == nil {
			continue
		}
		for _, o := range r.Sealed(tx, company) {
			if len(o.Values) > 0 {
				out = append(out, o)
			}
		}
	}
	return out
}

// ResealRow puts new sealed values in place; ok is false where no room has such rows.
func ResealRow(c *ledger.Context, p conceal.Reseal) (ok bool, err error) {
	for _, r := range composed {
		if f := r.Reseal[p.Type]; f != nil {
			return true, f(c, p)
		}
	}
	return false, nil
}

// DocumentOfRoutine returns the ID of a routine's description as a document,
// for version 0, and of that version of it otherwise.
func DocumentOfRoutine(routine string, version uint64) string {
	return core.DerivedID("routine-description", routine, ledger.Order(version))
}
