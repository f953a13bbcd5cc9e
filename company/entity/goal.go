package entity

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A GoalLevel is the level of the organisation that has the goal. Persisted: do not rename.
type GoalLevel string

// A GoalStatus is the progress of a goal. Persisted: do not rename.
type GoalStatus string

// GoalLevels and GoalStatuses list all values, in the contract's order.
var (
	GoalLevels   = []GoalLevel{"company", "team", "agent", "task"}
	GoalStatuses = []GoalStatus{"planned", "active", "achieved", "cancelled"}
)

// A Goal is a purpose of work. Goals form a tree.
type Goal struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Title       string           `cbor:"3,keyasint" json:"title"`
	Description core.NullText    `cbor:"4,keyasint,omitempty" json:"description"`
	Level       GoalLevel        `cbor:"5,keyasint" json:"level"`
	Status      GoalStatus       `cbor:"6,keyasint" json:"status"`
	Parent      core.NullText    `cbor:"7,keyasint,omitempty" json:"parentId"`
	Owner       core.NullText    `cbor:"8,keyasint,omitempty" json:"ownerAgentId"`
	CreatedAt   core.Time        `cbor:"9,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"10,keyasint" json:"updatedAt"`
}

var (
	Goals = core.Owned(ledger.NewTable[string, Goal]("goal").
		Beside(ledger.Indexed(GoalsByParent, func(g *Goal) string { return string(g.Parent) })))
	GoalsByParent = ledger.NewIndex[string, string]("goal-parent")
)

const (
	// MaxGoalDepth bounds the chain of parents.
	MaxGoalDepth = 64
)

// SaveGoal is the payload of goal.create and goal.update. In an update nil keeps a field and
// an empty value clears it.
type SaveGoal struct {
	ID          string      `cbor:"1,keyasint"`
	Title       *string     `cbor:"2,keyasint,omitempty"`
	Description *string     `cbor:"3,keyasint,omitempty"`
	Level       *GoalLevel  `cbor:"4,keyasint,omitempty"`
	Status      *GoalStatus `cbor:"5,keyasint,omitempty"`
	Parent      *string     `cbor:"6,keyasint,omitempty"`
	Owner       *string     `cbor:"7,keyasint,omitempty"`
}

// GoalOf returns a goal of company, also its implied root.
func GoalOf(tx *ledger.Tx, company ledger.CompanyID, id string) (Goal, bool) {
	if g, ok := Goals.Get(tx, company, id); ok || id != ImpliedGoalID(company) {
		return g, ok
	}
	return ImpliedGoal(tx, company)
}

// GoalByID returns the goal with an ID, in any company.
func GoalByID(tx *ledger.Tx, id string) (Goal, bool) {
	if company := core.OwnerOf(tx, id); company != "" {
		return Goals.Get(tx, company, id)
	}
	if company, ok := impliedGoalOwner(tx, id); ok {
		return GoalOf(tx, company, id)
	}
	return Goal{}, false
}

// GoalsOf returns the goals of company, oldest first.
func GoalsOf(tx *ledger.Tx, company ledger.CompanyID) []Goal {
	out := []Goal{}
	for _, g := range Goals.All(tx, company) {
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b Goal) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

func (g Goal) With(p SaveGoal) Goal {
	core.Assign(&g.Title, p.Title)
	core.AssignText(&g.Description, p.Description)
	core.Assign(&g.Level, p.Level)
	core.Assign(&g.Status, p.Status)
	core.AssignText(&g.Parent, p.Parent)
	core.AssignText(&g.Owner, p.Owner)
	return g
}

// Check refuses an invalid goal, without looking at other rows.
func (g Goal) Check() error {
	switch {
	case g.Title == "":
		return ledger.Refuse(ledger.Invalid, nil, "A goal needs a title")
	case len(g.Title) > MaxTitle || len(g.Description) > MaxText:
		return ledger.Refuse(ledger.TooLarge, nil, "The goal is too long")
	case !slices.Contains(GoalLevels, g.Level):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown goal level: %s", g.Level)
	case !slices.Contains(GoalStatuses, g.Status):
		return ledger.Refuse(ledger.Invalid, nil, "Unknown goal status: %s", g.Status)
	}
	return nil
}

// Details lists the fields of p for the activity log.
func (p SaveGoal) Details() []byte {
	o := core.Object{}
	if p.Title != nil {
		o = o.Str("title", *p.Title)
	}
	if p.Level != nil {
		o = o.Str("level", string(*p.Level))
	}
	if p.Status != nil {
		o = o.Str("status", string(*p.Status))
	}
	if p.Parent != nil {
		o = o.Null("parentId", *p.Parent)
	}
	if p.Owner != nil {
		o = o.Null("ownerAgentId", *p.Owner)
	}
	return o.Close()
}

func FirstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// Rank orders the levels: company before team before agent and task.
func (l GoalLevel) Rank() int { return slices.Index(GoalLevels, l) }

// Root reports whether g is a root of the company's level.
func (g Goal) Root() bool { return g.Level == "company" && g.Parent == "" }
