package company

import "github.com/selvage-mesh/selvage/ledger"

// What goes is not named any more by what stays: a row that did would refuse
// every later change of its own, since what it names is not there.

// leaderless takes an agent that goes from the projects that it leads and the
// goals that it owns.
func leaderless(c *ledger.Context, agent string) {
	company, now := c.Cmd.Company, TimeOf(c.Now)
	for id, p := range projects.All(c.Tx, company) {
		if string(p.Lead) == agent {
			p.Lead, p.UpdatedAt = "", now
			projects.Put(c.Tx, company, id, p)
		}
	}
	for id, g := range goals.All(c.Tx, company) {
		if string(g.Owner) == agent { // whose root it is does not change, see storeGoal
			g.Owner, g.UpdatedAt = "", now
			goals.Put(c.Tx, company, id, g)
		}
	}
}

// unplanned takes an agent, a project, a goal or an issue that goes from the
// routines that make their issues for it; instead is what takes its place, "" for
// nothing. A routine that has no agent any more rests.
func unplanned(c *ledger.Context, gone, instead string) {
	for _, old := range routines.All(c.Tx, c.Cmd.Company) {
		r, changed := old, false
		for _, field := range []*NullText{&r.Assignee, &r.Project, &r.Goal, &r.Parent} {
			if string(*field) == gone {
				*field, changed = NullText(instead), true
			}
		}
		if !changed {
			continue
		}
		if r.Assignee == "" && r.Status == RoutineActive {
			r.Status = RoutinePaused
		}
		r, _ = storeRoutine(c, old, r, "What it named was deleted", "")
		reschedule(c, r, nil)
	}
}
