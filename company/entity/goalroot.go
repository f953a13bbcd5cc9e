package entity

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Every company has a root goal: the oldest of its goals with level company and no parent.
// A company without one has an implied root with the company's name. The implied root is
// in no list. It becomes a stored goal when it is changed or a goal is put below it. The
// chain of every issue ends in a root.

// The roles of goals in a chain.
const (
	Initiative = "initiative" // a root of the company's level
	Milestone  = "milestone"  // a goal of a team that a project works towards
)

// A ChainGoal is a goal in an issue's chain, with its role there.
type ChainGoal struct {
	Goal
	Role core.NullText `json:"role"` // initiative, milestone or null
}

func ImpliedGoalID(company ledger.CompanyID) string {
	return core.DerivedID("root-goal", string(company))
}

// impliedGoalOwner returns the company whose implied root has the ID.
func impliedGoalOwner(tx *ledger.Tx, id string) (company ledger.CompanyID, ok bool) {
	for of := range core.CompanyIDs(tx) {
		if ImpliedGoalID(of) == id {
			return of, true
		}
	}
	return "", false
}

// ImpliedGoal returns the implied root of a company without a stored one.
func ImpliedGoal(tx *ledger.Tx, company ledger.CompanyID) (Goal, bool) {
	row, ok := CompanyTable.Get(tx, company, company)
	if !ok {
		return Goal{}, false
	}
	return Goal{ID: ImpliedGoalID(company), Company: company, Title: row.Name, Description: row.Description,
		Level: "company", Status: "active",
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}, true
}

func RootGoalKey(company ledger.CompanyID) []byte {
	return ledger.Key("c", string(company), "goal-root")
}

// StoreGoal and DropGoal are the only writers of goals. They keep the ID of the root under
// c/<company>/goal-root, because every issue without a goal reads it.
func StoreGoal(tx *ledger.Tx, g Goal) {
	Goals.Put(tx, g.Company, g.ID, g)
	settleRoot(tx, g.Company)
}

func DropGoal(tx *ledger.Tx, g Goal) {
	Goals.Delete(tx, g.Company, g.ID)
	settleRoot(tx, g.Company)
}

func settleRoot(tx *ledger.Tx, company ledger.CompanyID) {
	var oldest Goal
	for _, g := range Goals.All(tx, company) {
		if g.Root() && (oldest.ID == "" || g.CreatedAt < oldest.CreatedAt) {
			oldest = g
		}
	}
	switch now := DefaultGoal(tx, company); {
	case now == oldest.ID:
	case oldest.ID == "":
		tx.Delete(RootGoalKey(company))
	default:
		tx.Set(RootGoalKey(company), []byte(oldest.ID))
	}
}

// DefaultGoal returns the ID of a company's stored root goal, "" when it has none.
func DefaultGoal(tx *ledger.Tx, company ledger.CompanyID) string {
	id, _ := tx.Get(RootGoalKey(company))
	return string(id)
}

// RootGoal returns the root goal of a company, stored or implied.
func RootGoal(tx *ledger.Tx, company ledger.CompanyID) (Goal, bool) {
	if g, ok := Goals.Get(tx, company, DefaultGoal(tx, company)); ok {
		return g, true
	}
	return ImpliedGoal(tx, company)
}

// GoalChain returns the goals that an issue serves, the nearest first and a root last. An
// issue without a goal serves that of its parent, of its project, or of the company.
func GoalChain(tx *ledger.Tx, i Issue) []ChainGoal {
	out := []ChainGoal{}
	g, ok := servedGoal(tx, i)
	for ok && len(out) < MaxGoalDepth {
		out = append(out, ChainGoal{g, roleOf(tx, g)})
		if g.Parent == "" {
			break
		}
		g, ok = Goals.Get(tx, i.Company, string(g.Parent))
	}
	if len(out) == 0 || !out[len(out)-1].Root() {
		if root, ok := RootGoal(tx, i.Company); ok {
			out = append(out, ChainGoal{root, Initiative})
		}
	}
	return out
}

func servedGoal(tx *ledger.Tx, i Issue) (Goal, bool) {
	for at, ok, n := i, true, 0; ok && n <= MaxIssueDepth; n++ {
		if g, ok := Goals.Get(tx, i.Company, at.Goal); ok {
			return g, true
		}
		if p, ok := ProjectTable.Get(tx, i.Company, at.Project); ok && at.Project != "" {
			if g, ok := Goals.Get(tx, i.Company, p.Goal); ok {
				return g, true
			}
		}
		at, ok = IssueTable.Get(tx, i.Company, at.Parent)
	}
	return Goal{}, false
}

// roleOf returns the role of a goal in a chain.
func roleOf(tx *ledger.Tx, g Goal) core.NullText {
	switch {
	case g.Root():
		return Initiative
	case g.Level == "team":
		for _, p := range ProjectTable.All(tx, g.Company) {
			if slices.Contains(p.Goals, g.ID) {
				return Milestone
			}
		}
	}
	return ""
}
