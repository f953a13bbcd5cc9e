package company

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// A GoalLevel says whose goal it is. Persisted: do not rename.
type GoalLevel string

// A GoalStatus is how far a goal is. Persisted: do not rename.
type GoalStatus string

// GoalLevels and GoalStatuses are all there are, in the contract's order.
var (
	GoalLevels   = []GoalLevel{"company", "team", "agent", "task"}
	GoalStatuses = []GoalStatus{"planned", "active", "achieved", "cancelled"}
)

// A Goal is what work is for. Goals form a tree.
type Goal struct {
	ID          string        `cbor:"1,keyasint" json:"id"`
	Company     string        `cbor:"2,keyasint" json:"companyId"`
	Title       string        `cbor:"3,keyasint" json:"title"`
	Description core.NullText `cbor:"4,keyasint,omitempty" json:"description"`
	Level       GoalLevel     `cbor:"5,keyasint" json:"level"`
	Status      GoalStatus    `cbor:"6,keyasint" json:"status"`
	Parent      core.NullText `cbor:"7,keyasint,omitempty" json:"parentId"`
	Owner       core.NullText `cbor:"8,keyasint,omitempty" json:"ownerAgentId"`
	CreatedAt   core.Time     `cbor:"9,keyasint" json:"createdAt"`
	UpdatedAt   core.Time     `cbor:"10,keyasint" json:"updatedAt"`
}

var (
	Goals         = core.Owned(ledger.NewTable[Goal]("goal").Indexed(goalsByParent, func(g *Goal) string { return string(g.Parent) }))
	goalsByParent = ledger.NewIndex("goal-parent")
)

const (
	// MaxGoals bounds the goals of a company: lists show all of them.
	MaxGoals = 2_000
	// MaxGoalDepth bounds the chain of parents.
	MaxGoalDepth = 64
	// MaxGoalMoves bounds the issues that move when their goal is deleted, which
	// is one command.
	MaxGoalMoves = 1_000
)

// SaveGoal is the payload of goal.create, and of goal.update, where a nil field
// keeps what is there and an empty one clears it.
type SaveGoal struct {
	ID          string      `cbor:"1,keyasint"`
	Title       *string     `cbor:"2,keyasint,omitempty"`
	Description *string     `cbor:"3,keyasint,omitempty"`
	Level       *GoalLevel  `cbor:"4,keyasint,omitempty"`
	Status      *GoalStatus `cbor:"5,keyasint,omitempty"`
	Parent      *string     `cbor:"6,keyasint,omitempty"`
	Owner       *string     `cbor:"7,keyasint,omitempty"`
}

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
	{Name: KindGoalCreate, From: FromBoard | FromAgent, Traits: Importable, Do: ledger.Typed(createGoal)},
	{Name: KindGoalUpdate, From: FromBoard | FromAgent, Traits: Importable, Do: ledger.Typed(updateGoal)},
	{Name: KindGoalDelete, From: FromBoard, Do: ledger.Typed(deleteGoal)},
}

// GoalOf returns a goal of company; its implied root is one.
func GoalOf(tx *ledger.Tx, company, id string) (Goal, bool) {
	if g, ok := Goals.Get(tx, company, id); ok || id != ImpliedGoalID(company) {
		return g, ok
	}
	return impliedGoal(tx, company)
}

// GoalByID returns the goal with an ID, of whatever company.
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
func GoalsOf(tx *ledger.Tx, company string) []Goal {
	out := []Goal{}
	for _, g := range Goals.All(tx, company) {
		out = append(out, g)
	}
	slices.SortStableFunc(out, func(a, b Goal) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

func (g Goal) with(p SaveGoal) Goal {
	core.Assign(&g.Title, p.Title)
	core.AssignText(&g.Description, p.Description)
	core.Assign(&g.Level, p.Level)
	core.Assign(&g.Status, p.Status)
	core.AssignText(&g.Parent, p.Parent)
	core.AssignText(&g.Owner, p.Owner)
	return g
}

// check refuses a goal that is malformed by itself.
func (g Goal) check() error {
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

// checkLinks refuses a parent or owner that is not there or closes a circle.
func (g Goal) checkLinks(tx *ledger.Tx) error {
	if g.Owner != "" && !AgentExists(tx, g.Company, string(g.Owner)) {
		return ledger.Refuse(ledger.NotFound, nil, "Agent not found")
	}
	at, above := string(g.Parent), Goal{}
	for range MaxGoalDepth {
		if at == "" {
			if above.ID != "" && g.Level.rank() < above.Level.rank() {
				return errGoalLevels(g, above)
			}
			return nil
		}
		parent, ok := Goals.Get(tx, g.Company, at)
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
	return ledger.Refuse(ledger.Unprocessable, nil, "Goals nest at most %d deep", MaxGoalDepth)
}

func createGoal(c *ledger.Context, p SaveGoal) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	g := Goal{ID: p.ID, Company: company, Level: "task", Status: "planned", CreatedAt: now, UpdatedAt: now}.with(p)
	if err := g.check(); err != nil {
		return nil, err
	}
	ownRoot(c.Tx, company, string(g.Parent))
	if err := g.checkLinks(c.Tx); err != nil {
		return nil, err
	}
	if err := core.HasRoom(Goals.All(c.Tx, company), MaxGoals, "goals"); err != nil {
		return nil, err
	}
	StoreGoal(c.Tx, g)
	c.Record(ledger.Change{Action: "goal.created", EntityType: "goal", EntityID: g.ID, Details: core.Object{}.Str("title", g.Title).Close()})
	return g, nil
}

func updateGoal(c *ledger.Context, p SaveGoal) (any, error) {
	company := c.Cmd.Company
	ownRoot(c.Tx, company, p.ID)
	old, ok := Goals.Get(c.Tx, company, p.ID)
	if !ok {
		return nil, errNoGoal()
	}
	g := old.with(p)
	g.UpdatedAt = core.TimeOf(c.Now)
	if err := g.check(); err != nil {
		return nil, err
	}
	if g.Parent != old.Parent || g.Owner != old.Owner || g.Level != old.Level {
		ownRoot(c.Tx, company, string(g.Parent))
		if err := g.checkLinks(c.Tx); err != nil {
			return nil, err
		}
	}
	if g.Level != old.Level {
		if err := g.checkChildren(c.Tx); err != nil {
			return nil, err
		}
	}
	if old.Root() && !g.Root() {
		if err := old.checkLast(c.Tx); err != nil {
			return nil, err
		}
	}
	StoreGoal(c.Tx, g)
	c.Record(ledger.Change{Action: "goal.updated", EntityType: "goal", EntityID: g.ID, Details: p.details()})
	return g, nil
}

// details lists what p sets, for the activity log.
func (p SaveGoal) details() []byte {
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

// deleteGoal removes a goal. Its children move up to its parent, its issues to
// its parent or else to the company's root; projects drop it.
func deleteGoal(c *ledger.Context, p DeleteGoal) (any, error) {
	company, now := c.Cmd.Company, core.TimeOf(c.Now)
	g, ok := Goals.Get(c.Tx, company, p.ID)
	if !ok {
		if p.ID == ImpliedGoalID(company) {
			return nil, ledger.Refuse(ledger.Conflict, nil, "The last root goal can not be deleted; create another root goal first")
		}
		return nil, errNoGoal()
	}
	if g.Root() {
		if err := g.checkLast(c.Tx); err != nil {
			return nil, err
		}
	}
	var serving []string
	for id := range IssuesByGoal.IDs(c.Tx, company, g.ID, false) {
		if serving = append(serving, id); len(serving) > MaxGoalMoves {
			return nil, core.RefuseCode(ledger.Conflict, "goal_in_use", core.Object{}.Str("goalId", g.ID).Int("limit", MaxGoalMoves).Close(),
				"More than %d issues serve this goal; give them another first, or cancel the goal", MaxGoalMoves)
		}
	}
	for id := range goalsByParent.IDs(c.Tx, company, g.ID, false) {
		child, ok := Goals.Get(c.Tx, company, id)
		if !ok {
			continue
		}
		child.Parent, child.UpdatedAt = g.Parent, now
		StoreGoal(c.Tx, child)
	}
	for id, pr := range ProjectTable.All(c.Tx, company) {
		if !slices.Contains(pr.Goals, g.ID) {
			continue
		}
		pr.Goals = slices.DeleteFunc(slices.Clone(pr.Goals), func(goal string) bool { return goal == g.ID })
		pr.Goal = firstOf(pr.Goals)
		ProjectTable.Put(c.Tx, company, id, pr)
	}
	DropGoal(c.Tx, g)
	to := cmp.Or(string(g.Parent), DefaultGoal(c.Tx, company))
	unplanned(c, g.ID, to)
	for _, id := range serving {
		if i, ok := IssueTable.Get(c.Tx, company, id); ok {
			next := i
			next.Goal = to
			StoreIssue(c.Tx, i, next)
		}
	}
	c.Record(ledger.Change{Action: "goal.deleted", EntityType: "goal", EntityID: g.ID, Details: core.Object{}.Str("title", g.Title).Close()})
	return g, nil
}

func errNoGoal() error { return ledger.Refuse(ledger.NotFound, nil, "Goal not found") }

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
