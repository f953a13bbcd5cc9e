package company

import (
	"iter"

	"github.com/selvage-mesh/selvage/company/cause"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// Rules are what one room adds to the kernel: its kinds of commands, hooks for changes of
// the kernel's rows, and answers to the kernel's questions. The kernel names no room.
// company/rules lists them all; that order is part of what every replica must compute
// alike. Fields are nil where a room adds nothing.
type Rules struct {
	Kinds []Kind

	// Forget removes, for a table, references to one of its rows from outside its company
	// when the company is deleted.
	Forget map[string]func(tx *ledger.Tx, id string, row []byte)
	// Left yields the keys of the rows that a deleted issue, or another row with a thread,
	// leaves behind. The function removes what belongs to the key.
	Left func(tx *ledger.Tx, company ledger.CompanyID, owner string) iter.Seq2[[]byte, func(core.Time)]

	// Called when a row was stored. The zero was means a new company. IssueStored gets the
	// zero was for a new issue and the zero next for a deleted one; it returns next as it
	// will be stored.
	CompanyStored func(c *ledger.Context, was, row entity.Company, p entity.SaveCompany) error
	IssueStored   func(tx *ledger.Tx, was, next entity.Issue) entity.Issue
	CommentAdded  func(c *ledger.Context, i entity.Issue, cm entity.Comment, attachments []string) error

	// Called when a row is deleted or emptied. Gone is called for agents, projects, goals and
	// issues alike, with the ID that replaces it, "" for none.
	AgentEnds      func(c *ledger.Context, a entity.Agent) // while it still exists
	AgentEnded     func(c *ledger.Context, a entity.Agent)
	AgentDeleted   func(c *ledger.Context, a entity.Agent)
	ProjectDeleted func(c *ledger.Context, p entity.Project)
	IssueDeleted   func(c *ledger.Context, i entity.Issue)
	CommentEmptied func(tx *ledger.Tx, cm entity.Comment)
	CommentsGone   func(tx *ledger.Tx, i entity.Issue)
	Gone           func(c *ledger.Context, gone, instead string)

	// Checks; the first refusal counts. Held refuses work on an issue, Spent the start of a
	// run.
	CheckCompany func(tx *ledger.Tx, row entity.Company, p entity.SaveCompany) error
	CheckIssue   func(tx *ledger.Tx, was, next entity.Issue) error
	CheckWake    func(tx *ledger.Tx, company ledger.CompanyID, i entity.Issue, w entity.Wake) error
	Held         func(tx *ledger.Tx, i entity.Issue) error
	Spent        func(tx *ledger.Tx, r entity.Run) error
	// Awaits reports whether a decision about an issue is pending.
	Awaits func(tx *ledger.Tx, i entity.Issue) bool

	// Called when a run started or ended. Follow queues the run that comes next and returns
	// it; it is called before the agent is settled, RunEnded after. NodeLost ends whatever
	// else belonged to a lost node.
	RunStarted func(c *ledger.Context, r entity.Run) entity.Run
	Follow     func(c *ledger.Context, r entity.Run, o Outcome) *entity.Run
	RunEnded   func(c *ledger.Context, r entity.Run)
	NodeLost   func(c *ledger.Context, node string)

	// Ports: questions that one room answers.
	People    People
	Limits    Limits
	Places    Places
	Stages    Stages
	Secrets   Secrets
	Skills    Skills
	Watches   Watches
	Files     Files
	Papers    Papers
	Routines  Routines
	Approvals Approvals
	Topics    Topics
	Processes Processes
	Services  Services
	Tools     Tools

	// Reweigh is called before the board approves an act that waits, and Answered when it is approved, or
	// will not be. What Reweigh writes is kept when it refuses. A refusal of Answered refuses
	// the approval.
	Reweigh  func(c *ledger.Context, approval string) error
	Answered func(c *ledger.Context, approval string, approved bool) error

	// Sealed lists the rows of a company that hold sealed values, or of the mesh for "".
	// Reseal stores values that were sealed again, by the type of row.
	Sealed func(tx *ledger.Tx, company ledger.CompanyID) []conceal.SealedConfig
	Reseal map[string]func(c *ledger.Context, p conceal.Reseal) error
	// Envs lists the variables that may refer to secrets, and whose they are.
	Envs func(tx *ledger.Tx, company ledger.CompanyID) []EnvUse
	// DescriptionGone deletes the remarks on a description.
	DescriptionGone func(c *ledger.Context, d Description)

	// Causes says how the room's rows hang together with others: why they are there, and
	// what came of them.
	Causes cause.Part
}

// composed has the rules of all rooms, in the order of company/rules. Each port is in the
// variable of its name.
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
		Approvals
		Topics
		Processes
		Services
		Tools
	}
)

// Compose sets the rules of all rooms. company/rules calls it once, before any command is
// executed.
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
		provide(&Ask.Approvals, r.Approvals)
		provide(&Ask.Topics, r.Topics)
		provide(&Ask.Processes, r.Processes)
		provide(&Ask.Services, r.Services)
		provide(&Ask.Tools, r.Tools)
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

// firstRefusal asks the rooms in order and returns the first refusal.
func firstRefusal(ask func(r Rules) error) error {
	for _, r := range composed {
		if err := ask(r); err != nil {
			return err
		}
	}
	return nil
}

// Reweigh asks whether an act that waits may still be approved.
func Reweigh(c *ledger.Context, approval string) error {
	return firstRefusal(func(r Rules) error {
		if r.Reweigh == nil {
			return nil
		}
		return r.Reweigh(c, approval)
	})
}

// Answered tells what became of an act that waited.
func Answered(c *ledger.Context, approval string, approved bool) error {
	return firstRefusal(func(r Rules) error {
		if r.Answered == nil {
			return nil
		}
		return r.Answered(c, approval, approved)
	})
}

// Causes returns the causal graph of companies: the parts of all rooms.
func Causes() cause.Graph {
	g := make(cause.Graph, len(composed))
	for n, r := range composed {
		g[n] = r.Causes
	}
	return g
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

// leftBehind yields what a deleted issue leaves behind in all rooms.
func leftBehind(tx *ledger.Tx, company ledger.CompanyID, owner string) iter.Seq2[[]byte, func(core.Time)] {
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

// unplanned calls Gone of all rooms for an agent, project, goal or issue that is deleted,
// with its replacement.
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

func checkWake(tx *ledger.Tx, company ledger.CompanyID, i entity.Issue, w entity.Wake) error {
	return firstRefusal(func(r Rules) error {
		if r.CheckWake == nil {
			return nil
		}
		return r.CheckWake(tx, company, i, w)
	})
}

// notHeld refuses work on an issue that is on hold.
func notHeld(tx *ledger.Tx, i entity.Issue) error {
	return firstRefusal(func(r Rules) error {
		if r.Held == nil {
			return nil
		}
		return r.Held(tx, i)
	})
}

// OnHold reports whether an issue is on hold; false for "".
func OnHold(tx *ledger.Tx, company ledger.CompanyID, issue string) bool {
	if issue == "" {
		return false
	}
	i, ok := entity.IssueTable.Get(tx, company, issue)
	return ok && notHeld(tx, i) != nil
}

// spent returns why a run that is about to start has no money left, nil when it has.
func spent(tx *ledger.Tx, run entity.Run) error {
	return firstRefusal(func(r Rules) error {
		if r.Spent == nil {
			return nil
		}
		return r.Spent(tx, run)
	})
}

// AwaitsBoard reports whether a decision about an issue is pending, for which it may be
// blocked.
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

// DescriptionGone calls the hook of that name.
func DescriptionGone(c *ledger.Context, d Description) {
	for _, r := range composed {
		if r.DescriptionGone != nil {
			r.DescriptionGone(c, d)
		}
	}
}

// Envs lists all variables of a company that may refer to secrets.
func Envs(tx *ledger.Tx, company ledger.CompanyID) (out []EnvUse) {
	for _, r := range composed {
		if r.Envs != nil {
			out = append(out, r.Envs(tx, company)...)
		}
	}
	return out
}

// SealedConfigs returns the rows of a company that hold sealed values, apart from the
// versions of its secrets; for "" those of the mesh.
func SealedConfigs(tx *ledger.Tx, company ledger.CompanyID) (out []conceal.SealedConfig) {
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

// ResealRow stores values that were sealed again; ok is false when no room has such rows.
func ResealRow(c *ledger.Context, p conceal.Reseal) (ok bool, err error) {
	for _, r := range composed {
		if f := r.Reseal[p.Type]; f != nil {
			return true, f(c, p)
		}
	}
	return false, nil
}

// DocumentOfRoutine returns the document ID of a routine's description: for version 0 of
// the latest, otherwise of that version.
func DocumentOfRoutine(routine string, version uint64) string {
	return core.DerivedID("routine-description", routine, ledger.Order(version))
}
