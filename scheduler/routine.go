package scheduler

import (
	"context"
	"fmt"
	"time"
	_ "time/tzdata" // time zones for machines that have no database

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// NextRun returns the next instant after the given one at which a cron expression
// fires in an IANA time zone. Zone rules differ between machines and versions, so the
// result travels in a command and is never computed while a command is applied. The
// error is a refusal.
func NextRun(cron, zone string, after time.Time) (core.Time, error) {
	c, err := core.ParseCron(cron)
	if err != nil {
		return 0, err
	}
	at, err := time.LoadLocation(zone)
	if err != nil || zone == "" || zone == "Local" {
		return 0, ledger.Refuse(ledger.Unprocessable, nil, "Invalid timezone: %s", zone)
	}
	next, ok := c.Next(after, at)
	if !ok {
		return 0, ledger.Refuse(ledger.Unprocessable, nil, "The schedule never fires")
	}
	return core.TimeOf(next), nil
}

// tickOf returns the command for a schedule that is due. By the routine's policy,
// missed times are skipped except the last, or each fires late with a command of its
// own, up to the cap.
func tickOf(tx *ledger.Tx, t routine.RoutineTrigger, now core.Time) routine.TickRoutine {
	p := routine.TickRoutine{Trigger: t.ID, Due: t.Due}
	r, ok := routine.RoutineByID(tx, t.Routine)
	if !ok {
		return p
	}
	if r.Gate != "always" {
		p.Quiet = quiet(tx, r)
	}
	most := 1
	if r.CatchUp == routine.CatchUpEnqueue {
		most = routine.MaxCatchUp
	}
	p.Next, _, p.Problem = afterDue(string(t.Cron), string(t.Zone), t.Due, now, most)
	return p
}

// afterDue returns the time that a schedule waits for once its time due has been fired, and
// how many of the times up to now are left out. At most most of them fire, the one at due
// among them: with 1 all that were missed fire once together. A problem says why there is no
// next time.
func afterDue(cron, zone string, due, now core.Time, most int) (next core.Time, left int64, problem string) {
	var missed []core.Time // its last element is the first time in the future
	for at := due; ; at = missed[len(missed)-1] {
		next, err := NextRun(cron, zone, at.Std())
		if err != nil {
			return 0, 0, fmt.Sprintf("The schedule was switched off: %v", err)
		}
		if len(missed) == maxLateTimes {
			// Too many missed times to count: continue from now.
			if next, err = NextRun(cron, zone, now.Std()); err != nil {
				return 0, maxLateTimes, ""
			}
			return next, maxLateTimes, ""
		}
		if missed = append(missed, next); next > now {
			break
		}
	}
	// This firing is one of them; of the rest, as many as the cap allows.
	first := max(0, len(missed)-most)
	return missed[first], int64(first), ""
}

// quiet reports whether nothing happened in the routine's company, or its project,
// since it last ran, apart from what the routine and its assignee did.
func quiet(tx *ledger.Tx, r routine.Routine) bool {
	if r.LastEnqueuedAt == 0 {
		return false
	}
	for _, a := range ledger.Activities(tx, r.Company, ledger.ActivityFilter{Limit: gateLooksBack}) {
		switch {
		case core.TimeOf(a.At) <= r.LastEnqueuedAt:
			return true
		case a.Actor.Type != "user" && a.Actor.Type != "agent" || a.Actor.ID == string(r.Assignee):
		case r.GateScope == "project" && !inProject(tx, r, a):
		default:
			return false
		}
	}
	return false // more activity than gateLooksBack
}

func inProject(tx *ledger.Tx, r routine.Routine, a ledger.Activity) bool {
	switch a.EntityType {
	case "project":
		return a.EntityID == string(r.Project)
	case "issue":
		i, ok := entity.IssueOf(tx, r.Company, a.EntityID)
		return ok && i.Project == string(r.Project)
	}
	return false
}

// fireRoutines fires the schedules that are due.
func (l *Leader) fireRoutines(ctx context.Context) error {
	type due struct {
		company ledger.CompanyID
		tick    routine.TickRoutine
	}
	var all []due
	err := view(ctx, l.cfg.Node, func(tx *ledger.Tx) error {
		now := core.TimeOf(l.cfg.Now())
		for _, t := range routine.DueTriggers(tx, now, ticksPerLook) {
			all = append(all, due{t.Company, tickOf(tx, t, now)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(all, func(d due) error {
		_, err := l.submit(ctx, routine.KindRoutineTick, d.company, d.tick)
		return err
	})
}
