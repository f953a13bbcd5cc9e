package company

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxGoals bounds the goals of a company: lists show all of them.
	MaxGoals = 2_000
	// MaxGoalMoves bounds the issues that one command moves when their goal is deleted.
	MaxGoalMoves = 1_000
)

// DeleteGoal is the payload of goal.delete.
type DeleteGoal struct {
	ID string `cbor:"1,keyasint"`
}

const (
	KindGoalCreate = "goal.create"
	KindGoalUpdate = "goal.update"
	KindGoalDelete = "goal.delete"
)

var goalKinds = []Kind{
	{Name: KindGoalCreate, From: FromBoard | FromAgent, Traits: Importable, Weight: Weights.Task,
		Do: ledger.Typed(createGoal)},
	{Name: KindGoalUpdate, From: FromBoard | FromAgent, Traits: Importable, Weight: Weights.Task,
		Do: ledger.Typed(updateGoal)},
	{Name: KindGoalDelete, From: FromBoard, Weight: Weights.Erase, Do: ledger.Typed(deleteGoal)},
}

// checkGoalLinks refuses a parent or owner that does not exist, and a cycle of parents.
func checkGoalLinks(tx *ledger.Tx, g entity.Goal) error {
	if g.Owner != "" && !entity.AgentExists(tx, g.Company, string(g.Owner)) {
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	at, above := string(g.Parent), entity.Goal{}
	for range entity.MaxGoalDepth {
		if at == "" {
			if above.ID != "" && g.Level.Rank() < above.Level.Rank() {
				return errGoalLevels(g, above)
			}
			return nil
		}
		parent, ok := entity.Goals.Get(tx, g.Company, at)
		switch {
		case !ok:
			return ledger.Refuse(ledger.NotFound, nil, "Parent goal not found")
		case parent.ID == g.ID:
			return ledger.Refuse(ledger.Unprocessable, nil, "Parent relationship would create cycle")
		}
		if at == string(g.Parent) {
			above = parent
		}
		at = string(parent.Parent)
	}
	return ledger.Refuse(ledger.Unprocessable, nil, "Goals nest at most %d deep", entity.MaxGoalDepth)
}

func createGoal(c *ledger.Context, p entity.SaveGoal) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	g := entity.Goal{ID: p.ID, Company: company, Level: "task", Status: "planned", CreatedAt: now, UpdatedAt: now}.With(p)
	if err := g.Check(); err != nil {
		return nil, err
	}
	ownRoot(c.Tx, company, string(g.Parent))
	if err := checkGoalLinks(c.Tx, g); err != nil {
		return nil, err
	}
	if err := core.HasRoom(entity.Goals.All(c.Tx, company), MaxGoals, "goals"); err != nil {
		return nil, err
	}
	entity.StoreGoal(c.Tx, g)
	c.Record(ledger.Change{Action: "goal.created", EntityType: "goal", EntityID: g.ID, Details: core.Object{}.Str("title",
		g.Title).Close()})
	return g, nil
}

func updateGoal(c *ledger.Context, p entity.SaveGoal) (any, error) {
	company := c.Cmd.Company
	ownRoot(c.Tx, company, p.ID)
	old, ok := entity.Goals.Get(c.Tx, company, p.ID)
	if !ok {
		return nil, errNoGoal()
	}
	g := old.With(p)
	g.UpdatedAt = core.TimeOf(c.Now)
	if err := g.Check(); err != nil {
		return nil, err
	}
	if g.Parent != old.Parent || g.Owner != old.Owner || g.Level != old.Level {
		ownRoot(c.Tx, company, string(g.Parent))
		if err := checkGoalLinks(c.Tx, g); err != nil {
			return nil, err
		}
	}
	if g.Level != old.Level {
		if err := checkGoalChildren(c.Tx, g); err != nil {
			return nil, err
		}
	}
	if old.Root() && !g.Root() {
		if err := checkLastGoal(c.Tx, old); err != nil {
			return nil, err
		}
	}
	entity.StoreGoal(c.Tx, g)
	c.Record(ledger.Change{Action: "goal.updated", EntityType: "goal", EntityID: g.ID, Details: p.Details()})
	return g, nil
}

// deleteGoal deletes a goal. Its children move to its parent, its issues to its parent
// or else to the company's root goal, and projects drop it.
func deleteGoal(c *ledger.Context, p DeleteGoal) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	g, ok := entity.Goals.Get(c.Tx, company, p.ID)
	if !ok {
		if p.ID == entity.ImpliedGoalID(company) {
			return nil, ledger.Refuse(ledger.Conflict, nil,
				"The last root goal can not be deleted; create another root goal first")
		}
		return nil, errNoGoal()
	}
	if g.Root() {
		if err := checkLastGoal(c.Tx, g); err != nil {
			return nil, err
		}
	}
	var serving []string
	for id := range entity.IssuesByGoal.IDs(c.Tx, company, g.ID, false) {
		if serving = append(serving, id); len(serving) > MaxGoalMoves {
			return nil, core.RefuseCode(ledger.Conflict, "goal_in_use", core.Object{}.Str("goalId", g.ID).
				Int("limit", MaxGoalMoves).Close(),
				"More than %d issues serve this goal; give them another first, or cancel the goal", MaxGoalMoves)
		}
	}
	for id := range entity.GoalsByParent.IDs(c.Tx, company, g.ID, false) {
		child, ok := entity.Goals.Get(c.Tx, company, id)
		if !ok {
			continue
		}
		child.Parent, child.UpdatedAt = g.Parent, now
		entity.StoreGoal(c.Tx, child)
	}
	for id, pr := range entity.ProjectTable.All(c.Tx, company) {
		if !slices.Contains(pr.Goals, g.ID) {
			continue
		}
		pr.Goals = slices.DeleteFunc(slices.Clone(pr.Goals), func(goal string) bool { return goal == g.ID })
		pr.Goal = entity.FirstOf(pr.Goals)
		entity.ProjectTable.Put(c.Tx, company, id, pr)
	}
	entity.DropGoal(c.Tx, g)
	to := cmp.Or(string(g.Parent), entity.DefaultGoal(c.Tx, company))
	unplanned(c, g.ID, to)
	for _, id := range serving {
		if i, ok := entity.IssueTable.Get(c.Tx, company, id); ok {
			next := i
			next.Goal = to
			StoreIssue(c.Tx, i, next)
		}
	}
	c.Record(ledger.Change{Action: "goal.deleted", EntityType: "goal", EntityID: g.ID, Details: core.Object{}.Str("title",
		g.Title).Close()})
	return g, nil
}

func errNoGoal() error { return ledger.Refuse(ledger.NotFound, nil, "Goal not found") }

// ownRoot stores the implied root goal as a goal of the company, if id names it.
func ownRoot(tx *ledger.Tx, company ledger.CompanyID, id string) {
	if id != entity.ImpliedGoalID(company) || tx.Has(entity.Goals.Key(company, id)) {
		return
	}
	if g, ok := entity.ImpliedGoal(tx, company); ok {
		entity.StoreGoal(tx, g)
	}
}

func errGoalLevels(below, above entity.Goal) error {
	return core.RefuseCode(ledger.Unprocessable, "goal_level", core.Object{}.Str("goalId", below.ID).
		Str("level", string(below.Level)).Str("parentId", above.ID).Str("parentLevel", string(above.Level)).Close(),
		"A goal of level %s cannot stand below one of level %s", below.Level, above.Level)
}

// checkGoalChildren refuses a level that is below that of a child.
func checkGoalChildren(tx *ledger.Tx, g entity.Goal) error {
	for id := range entity.GoalsByParent.IDs(tx, g.Company, g.ID, false) {
		if child, ok := entity.Goals.Get(tx, g.Company, id); ok && child.Level.Rank() < g.Level.Rank() {
			return errGoalLevels(child, g)
		}
	}
	return nil
}

// checkLastGoal refuses to remove the only root of a company that has other goals.
func checkLastGoal(tx *ledger.Tx, g entity.Goal) error {
	others := false
	for id, o := range entity.Goals.All(tx, g.Company) {
		switch {
		case id == g.ID:
		case o.Root():
			return nil
		default:
			others = true
		}
	}
	if !others {
		return nil // the implied root replaces it
	}
	return core.RefuseCode(ledger.Conflict, "last_root_goal", core.Object{}.Str("goalId", g.ID).Close(),
		"A company with goals keeps at least one root goal of level company")
}
