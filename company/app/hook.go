package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

// An Event is when a hook has its turn. Persisted: do not rename.
type Event string

// The events. OnHealth comes after an upgrade: its program decides whether the upgrade stays.
const (
	OnInstall Event = "on_install"
	OnStart   Event = "on_start"
	OnStop    Event = "on_stop"
	OnUpgrade Event = "on_upgrade"
	OnRemove  Event = "on_remove"
	OnHealth  Event = "health"
)

// Events are all of them.
var Events = []Event{OnInstall, OnStart, OnStop, OnUpgrade, OnRemove, OnHealth}

const (
	// MaxHookTime bounds the time of a program in ms, DefaultHookTime is the time of one that names none.
	MaxHookTime     = 10 * 60 * 1000
	DefaultHookTime = 60 * 1000
	// placeTime is how much longer the mesh waits for a program: it is placed, and placed again when its node is lost.
	placeTime = 2 * 60 * 1000
	// maxPending bounds the programs of an app that wait, keptRan those whose end is remembered.
	maxPending = 24
	keptRan    = 12
	maxWhy     = 500
)

// A Program is what the hook of an event runs.
type Program struct {
	Event   Event              `cbor:"1,keyasint"`
	Process company.NewProcess `cbor:"2,keyasint"` // without a name
	Time    core.Time          `cbor:"3,keyasint"` // ms that it may take
}

func (p Program) check() error {
	if !slices.Contains(Events, p.Event) || p.Time < 1 || p.Time > MaxHookTime || p.Process.Replicas != 1 {
		return ledger.Refuse(ledger.Invalid, nil, "hooks.%s: a program runs once, and for at most %d s",
			core.Snippet(string(p.Event), 40), MaxHookTime/1000)
	}
	return company.Ask.Processes.CheckProcess(p.Process.Named("app.hook"))
}

// A Hook is a program that runs, or waits for the one before it. It is a row of its own, so that the program of
// on_remove outlives its app. The command that asked for it is at Height; the program is started at least once for it.
type Hook struct {
	ID      string             `cbor:"1,keyasint"`
	Company ledger.CompanyID   `cbor:"2,keyasint"`
	App     string             `cbor:"3,keyasint"` // ID
	Name    string             `cbor:"4,keyasint"` // of the app
	Event   Event              `cbor:"5,keyasint"`
	Version string             `cbor:"6,keyasint"`
	Height  uint64             `cbor:"7,keyasint"`
	Order   int                `cbor:"8,keyasint"` // among those of the command
	Process company.NewProcess `cbor:"9,keyasint"`
	Time    core.Time          `cbor:"10,keyasint"`
	Since   core.Time          `cbor:"11,keyasint"`           // of the command
	Until   core.Time          `cbor:"12,keyasint,omitempty"` // it is given up then; 0: it waits
}

// Clone returns a copy that shares no memory with h.
func (h Hook) Clone() Hook {
	h.Process = h.Process.Clone()
	return h
}

// process returns the name of the process of a hook.
func (h Hook) process() string { return hookProcess + h.ID }

var hooks = ledger.NewTable[string, Hook]("app_hook")

// Hooks returns the programs of an app that run or wait, in their order.
func Hooks(tx *ledger.Tx, of ledger.CompanyID, app string) []Hook { return pending(tx, of, app) }

// pending returns the programs that run or wait, in their order. "" is every app of the company.
func pending(tx *ledger.Tx, of ledger.CompanyID, app string) (out []Hook) {
	for _, h := range hooks.All(tx, of) {
		if app == "" || h.App == app {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.App, b.App), cmp.Compare(a.Height, b.Height), cmp.Compare(a.Order, b.Order))
	})
	return out
}

// A Ran is how the program of a hook ended.
type Ran struct {
	ID      string    `cbor:"1,keyasint" json:"id"`
	Event   Event     `cbor:"2,keyasint" json:"event"`
	Version string    `cbor:"3,keyasint" json:"version"`
	Height  uint64    `cbor:"4,keyasint" json:"height"` // of the command that asked for it
	State   string    `cbor:"5,keyasint" json:"state"`  // waiting, running, succeeded, failed or timed_out
	Node    string    `cbor:"6,keyasint,omitempty" json:"nodeId"`
	Exit    int64     `cbor:"7,keyasint,omitempty" json:"exitCode"`
	Error   string    `cbor:"8,keyasint,omitempty" json:"error"`
	Moved   int64     `cbor:"9,keyasint,omitempty" json:"failovers"`
	Since   core.Time `cbor:"10,keyasint" json:"since"`
	At      core.Time `cbor:"11,keyasint,omitempty" json:"endedAt"`
}

// Bad reports whether the program failed.
func (r Ran) Bad() bool { return r.State == HookFailed || r.State == HookTimedOut }

func (r Ran) String() string {
	if !r.Bad() {
		return fmt.Sprintf("the program of hook %s %s", r.Event, r.State)
	}
	return fmt.Sprintf("the program of hook %s %s: %s", r.Event, strings.ReplaceAll(r.State, "_", " "), r.Error)
}

// The states of a program. Persisted: do not rename.
const (
	HookWaiting   = "waiting"
	HookRunning   = "running"
	HookSucceeded = "succeeded"
	HookFailed    = "failed"
	HookTimedOut  = "timed_out"
)

// Shown returns how a program stands that has not ended.
func (h Hook) Shown(tx *ledger.Tx) Ran {
	r := Ran{ID: h.ID, Event: h.Event, Version: h.Version, Height: h.Height, State: HookWaiting, Since: h.Since}
	if h.Until != 0 {
		p, _ := company.Ask.Processes.ProcessOf(tx, h.process())
		r.State, r.Node, r.Moved = HookRunning, p.Node, p.Moved
	}
	return r
}

// Over returns how the program of a hook ended; false: it has not.
func (h Hook) Over(tx *ledger.Tx, now core.Time) (Ran, bool) {
	if h.Until == 0 {
		return Ran{}, false
	}
	r := h.Shown(tx)
	r.At = now
	p, there := company.Ask.Processes.ProcessOf(tx, h.process())
	switch {
	case !there:
		r.State, r.Error = HookFailed, "its process was removed"
	case p.Ended && p.Exit == 0:
		r.State = HookSucceeded
	case p.Ended || p.Failed:
		r.State, r.Exit, r.Error = HookFailed, p.Exit, core.Snippet(p.Error, maxWhy)
		if r.Error == "" {
			r.Error = fmt.Sprintf("exit code %d", p.Exit)
		}
	case now >= h.Until:
		r.State, r.Error = HookTimedOut, fmt.Sprintf("no end after %d s; last seen on node %q", (now-h.Since)/1000, p.Node)
	default:
		return Ran{}, false
	}
	return r, true
}

// ask asks for the programs of events of a release. They run one after the other, and after those of earlier commands.
func ask(c *ledger.Context, a App, of Release, events ...Event) error {
	n := len(pending(c.Tx, a.Company, a.ID))
	for i, e := range events {
		at := slices.IndexFunc(of.Programs, func(p Program) bool { return p.Event == e })
		if at < 0 {
			continue
		}
		if n++; n > maxPending {
			return ledger.Refuse(ledger.Conflict, nil, "%d programs of hooks of the app %s wait; try again when some have ended",
				n-1, a.Name)
		}
		p := of.Programs[at]
		h := Hook{ID: core.DerivedID("app-hook", fmt.Sprintf("%s/%s/%d/%d", a.Company, a.ID, c.Height, i)),
			Company: a.Company, App: a.ID, Name: a.Name, Event: e, Version: of.Version, Height: c.Height, Order: i,
			Process: p.Process, Time: p.Time, Since: core.TimeOf(c.Now)}
		hooks.Put(c.Tx, a.Company, h.ID, h)
	}
	return next(c, a.Company, a.ID)
}

// next starts the program whose turn it is.
func next(c *ledger.Context, of ledger.CompanyID, app string) error {
	all := pending(c.Tx, of, app)
	if len(all) == 0 || all[0].Until != 0 {
		return nil
	}
	h := all[0].Clone()
	h.Until = core.TimeOf(c.Now) + h.Time + placeTime
	hooks.Put(c.Tx, of, h.ID, h)
	return company.Ask.Processes.StartProcess(c.Within(c.Cmd), h.Process.Named(h.process()), true)
}

// hookOver notes how a program ended, and starts the next one. It reports false if none ended.
func hookOver(c *ledger.Context, of ledger.CompanyID, app string) bool {
	all := pending(c.Tx, of, app)
	if len(all) == 0 {
		return false
	}
	h := all[0]
	r, over := h.Over(c.Tx, core.TimeOf(c.Now))
	if !over {
		return false
	}
	drop(c, h)
	ran := []Ran{r}
	for {
		err := c.Try(func(c *ledger.Context) error { return next(c, of, app) })
		if err == nil {
			break
		}
		h := pending(c.Tx, of, app)[0] // the mesh has no room for its process
		drop(c, h)
		no := h.Shown(c.Tx)
		no.State, no.Error, no.At = HookFailed, core.Snippet("it could not be started: "+err.Error(), maxWhy),
			core.TimeOf(c.Now)
		ran = append(ran, no)
	}
	if a, ok := Rows.Get(c.Tx, of, app); ok {
		a = a.Clone()
		for _, r := range ran {
			a.Ran = append(a.Ran[max(0, len(a.Ran)-keptRan+1):], r)
			if r.Bad() && (a.Back == nil || a.Back.Until == 0 || a.Back.Since != r.Since) { // else it decides the upgrade
				a.Reason = core.Snippet(r.String(), maxText)
			}
		}
		a.UpdatedAt = core.TimeOf(c.Now)
		Rows.Put(c.Tx, of, app, a)
	}
	c.Record(ledger.Change{Action: "app.hook_" + r.State, EntityType: "app", EntityID: app,
		Details: core.Object{}.Str("name", h.Name).Str("version", h.Version).Str("event", string(h.Event)).
			Uint("askedAtHeight", h.Height).Null("nodeId", r.Node).Int("exitCode", r.Exit).Null("error", r.Error).Close()})
	return true
}

// drop ends a program, if it runs, and forgets that it was asked for.
func drop(c *ledger.Context, h Hook) {
	hooks.Delete(c.Tx, h.Company, h.ID)
	if h.Until != 0 {
		company.Ask.Processes.EndProcess(c.Within(c.Cmd), h.process())
	}
}

// cancel drops the programs of an app that have not ended, of some events or of all.
func cancel(c *ledger.Context, a App, events ...Event) {
	for _, h := range pending(c.Tx, a.Company, a.ID) {
		if len(events) == 0 || slices.Contains(events, h.Event) {
			drop(c, h)
		}
	}
}

// Due returns the IDs of the apps of a company, or that were, for which app.settle has something to do.
func Due(tx *ledger.Tx, of ledger.CompanyID, now core.Time) (out []string) {
	for _, h := range pending(tx, of, "") {
		if len(out) > 0 && out[len(out)-1] == h.App {
			continue
		}
		if _, over := h.Over(tx, now); over {
			out = append(out, h.App)
		}
	}
	for a := range All(tx, of) {
		if h, _ := HealthOf(tx, a, now); h != Unknown && !slices.Contains(out, a.ID) {
			out = append(out, a.ID)
		}
	}
	return out
}
