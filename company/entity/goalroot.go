package entity

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// Every company has a root goal: of its goals of level company without a parent
// the oldest, and where it has none, one that is implied: it has the company's
// name, is in no list, and becomes a goal like others when it is changed or
// something is put below it. Every issue's chain ends in a root.

// The roles of goals in a chain.
const (
	Initiative = "initiative" // a root of the company's level
	Milestone  = "milestone"  // a goal of a team that a project works towards
)

// A ChainGoal is a goal of an issue's chain, and what it is there.
type ChainGoal struct {
	Goal
	Role core.NullText `json:"role"` // initiative, milestone or null
}

func ImpliedGoalID(company string) string { return core.DerivedID("root-goal", company) }

// impliedGoalOwner finds the company whose implied root has an ID.
func impliedGoalOwner(tx *ledger.Tx, id string) (company string, ok bool) {
	for of := range core.CompanyIDs(tx) {
		if ImpliedGoalID(of) == id {
			return of, true
		}
	}
	return "", false
}

// ImpliedGoal is the root of a company that has none of its own.
func ImpliedGoal(tx *ledger.Tx, company string) (Goal, bool) {
	row, ok := CompanyTable.Get(tx, company, company)
	if !ok {
		return Goal{}, false
	}
	return Goal{ID: ImpliedGoalID(company), Company: company, Title: row.Name, Description: core.NullText(row.Description), Level: "company", Status: "active",
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt}, true
}

func RootGoalKey(company string) []byte { return ledger.Key("c", company, "goal-root") }

// StoreGoal and DropGoal are the ways in which goals change. They keep the ID of
// the root under c/<company>/goal-root: every issue without a goal asks for it.
func StoreGoal(tx *ledger.Tx, g Goal) {
	Goals.Put(tx, g.Company, g.ID, g)
	settleRoot(tx, g.Company)
}

func DropGoal(tx *ledger.Tx, g Goal) {
	Goals.Delete(tx, g.Company, g.ID)
	settleRoot(tx, g.Company)
}

func settleRoot(tx *ledger.Tx, company string) {
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

// DefaultGoal returns the ID of the root among a company's goals, "" when it has none.
func DefaultGoal(tx *ledger.Tx, company string) string {
	id, _ := tx.Get(RootGoalKey(company))
	return string(id)
}

// RootGoal returns the goal that all work of a company serves in the end.
func RootGoal(tx *ledger.Tx, company string) (Goal, bool) {
	if g, ok := Goals.Get(tx, company, DefaultGoal(tx, company)); ok {
		return g, true
	}
	return ImpliedGoal(tx, company)
}

// GoalChain returns the goals that an issue serves, the nearest first and a root
// of the company last. What names no goal serves that of the issue above it,
// that of its project, or the company's.
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

// roleOf says what a goal is in the words of planners.
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
