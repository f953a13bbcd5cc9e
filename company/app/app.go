// Package app has the apps of a company: what is installed, in which version, signed by whom, and which agents, skills
// and routines belong to it. Each change of an app is one command that does all of its steps or none.
package app

import (
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A State is what an app does now. Persisted: do not rename.
type State string

const (
	Installed State = "installed" // never started
	Running   State = "running"
	Stopped   State = "stopped"
	Failed    State = "failed" // an upgrade failed and could not be taken back
)

const (
	// MaxApps bounds the apps of a company, MaxSteps the steps of one change, maxParts what belongs to an app.
	MaxApps  = 100
	MaxSteps = 400
	maxParts = 200
	// MaxManifest bounds a manifest, as JSON, and maxText the short texts of a row.
	MaxManifest = 64 << 10
	maxText     = 2000
	// MaxWithin bounds how long an upgrade is watched.
	MaxWithin = 24 * 60 * 60 * 1000
)

// A Step is one command of a change: its kind, and its payload in CBOR.
type Step struct {
	Kind    string `cbor:"1,keyasint"`
	Payload []byte `cbor:"2,keyasint"`
}

// steps are the kinds that a change may contain: what an app brings, and nothing else.
var steps = []string{
	"agent.create", "agent.update", "agent.pause", "agent.resume", "agent.terminate", "agent.skills", "instructions.file",
	"asset.create",
	"skill.create", "skill.update", "skill.delete", "skill.file", "routine.create", "routine.update", "routine.delete",
	"routine_trigger.create", "issue.create",
}

// A Part is a row that belongs to an app.
type Part struct {
	Kind string `cbor:"1,keyasint" json:"kind"` // agent, skill or routine
	Name string `cbor:"2,keyasint" json:"name"` // in the manifest
	ID   string `cbor:"3,keyasint" json:"id"`
	Gone bool   `cbor:"4,keyasint,omitempty" json:"gone,omitempty"` // the version in use does not have it; it rests
}

// A Release is a version of an app as it was installed.
type Release struct {
	Version      string          `cbor:"1,keyasint" json:"version"`
	Digest       string          `cbor:"2,keyasint" json:"digest"` // SHA-256 of the archive
	Signer       string          `cbor:"3,keyasint" json:"signer"` // Ed25519 key, hex
	Manifest     json.RawMessage `cbor:"4,keyasint" json:"manifest"`
	Capabilities []string        `cbor:"5,keyasint,omitempty" json:"capabilities"` // granted
	Settings     json.RawMessage `cbor:"6,keyasint,omitempty" json:"settings"`     // without secrets
	Needs        []Need          `cbor:"7,keyasint,omitempty" json:"dependencies"`
	Parts        []Part          `cbor:"8,keyasint,omitempty" json:"parts"`
	Within       core.Time       `cbor:"9,keyasint,omitempty" json:"-"` // ms that an upgrade to it is watched
	Archive      string          `cbor:"10,keyasint,omitempty" json:"archiveAssetId"`
	Modules      []Module        `cbor:"11,keyasint,omitempty" json:"-"`
	// Services run and Tools can be executed while the app runs; Programs are those of its hooks.
	Services []Service         `cbor:"12,keyasint,omitempty" json:"-"`
	Tools    []company.NewTool `cbor:"13,keyasint,omitempty" json:"-"`
	Programs []Program         `cbor:"14,keyasint,omitempty" json:"-"`
}

// A Module is a module of an app, stored as an asset.
type Module struct {
	Path  string `cbor:"1,keyasint"`
	Asset string `cbor:"2,keyasint"`
}

// A Need is another app that an app needs.
type Need struct {
	App   string `cbor:"1,keyasint" json:"app"`
	Range string `cbor:"2,keyasint" json:"version"`
}

// An App is an installed app.
type App struct {
	ID        string           `cbor:"1,keyasint"`
	Company   ledger.CompanyID `cbor:"2,keyasint"`
	Name      string           `cbor:"3,keyasint"`
	State     State            `cbor:"4,keyasint"`
	Reason    string           `cbor:"5,keyasint,omitempty"`
	Now       Release          `cbor:"6,keyasint"`
	Back      *Back            `cbor:"7,keyasint,omitempty"`
	CreatedAt core.Time        `cbor:"8,keyasint"`
	UpdatedAt core.Time        `cbor:"9,keyasint"`
	Ran       []Ran            `cbor:"10,keyasint,omitempty"` // the last programs of its hooks, oldest first
}

// A Back is the way back to the version before.
type Back struct {
	Release Release   `cbor:"1,keyasint"`
	Steps   []Step    `cbor:"2,keyasint"`
	By      string    `cbor:"3,keyasint"`           // who upgraded; the way back is taken for this person
	Since   core.Time `cbor:"4,keyasint"`           // when it was upgraded
	Until   core.Time `cbor:"5,keyasint,omitempty"` // until when its health decides; 0: it is decided
}

// Clone returns a copy that shares no memory with a.
func (a App) Clone() App {
	a.Now, a.Ran = a.Now.clone(), slices.Clone(a.Ran)
	if a.Back = core.CloneOf(a.Back); a.Back != nil {
		a.Back.Release, a.Back.Steps = a.Back.Release.clone(), slices.Clone(a.Back.Steps)
	}
	return a
}

func (r Release) clone() Release {
	r.Manifest, r.Settings = slices.Clone(r.Manifest), slices.Clone(r.Settings)
	r.Capabilities, r.Needs, r.Parts = slices.Clone(r.Capabilities), slices.Clone(r.Needs), slices.Clone(r.Parts)
	r.Modules, r.Services, r.Tools = slices.Clone(r.Modules), slices.Clone(r.Services), slices.Clone(r.Tools)
	r.Programs = slices.Clone(r.Programs)
	return r
}

// Rows are the apps of companies.
var Rows = ledger.NewTable[string, App]("app")

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// IsName reports whether s can be the name of an app, or of a part of one.
func IsName(s string) bool { return nameForm.MatchString(s) }

// All yields the apps of a company by ID.
func All(tx *ledger.Tx, of ledger.CompanyID) iter.Seq[App] {
	return func(yield func(App) bool) {
		for _, a := range Rows.All(tx, of) {
			if !yield(a) {
				return
			}
		}
	}
}

// Named returns the app of a company with a name, or an ID.
func Named(tx *ledger.Tx, of ledger.CompanyID, name string) (App, bool) {
	for a := range All(tx, of) {
		if a.Name == name || a.ID == name {
			return a, true
		}
	}
	return App{}, false
}

// OfAgent returns the name of the app that an agent is part of, "" for none.
func OfAgent(tx *ledger.Tx, of ledger.CompanyID, agent string) string {
	for a := range All(tx, of) {
		if slices.ContainsFunc(a.Now.Parts, func(p Part) bool { return p.Kind == "agent" && p.ID == agent }) {
			return a.Name
		}
	}
	return ""
}

// OfProcess returns the name of the app that a declared process of a company is part of, "" for none. The process of an
// app that an older version installed does not say so itself.
func OfProcess(tx *ledger.Tx, of ledger.CompanyID, process string) string {
	if of == "" {
		return ""
	}
	if id, ok := strings.CutPrefix(process, hookProcess); ok {
		h, _ := hooks.Get(tx, of, id)
		return h.Name
	}
	if !strings.HasPrefix(process, serviceProcess) {
		return ""
	}
	for a := range All(tx, of) {
		if slices.ContainsFunc(a.Now.Services, func(s Service) bool { return s.process(a).Name == process }) {
			return a.Name
		}
	}
	return ""
}

// The names of processes of apps begin so.
const (
	hookProcess    = "app.hook."
	serviceProcess = "app.service."
)

// Needing returns the name of an app that needs another one, "" for none.
func Needing(tx *ledger.Tx, of ledger.CompanyID, name string) string {
	for a := range All(tx, of) {
		for _, n := range a.Now.Needs {
			if n.App == name {
				return a.Name
			}
		}
	}
	return ""
}

func (r Release) check() error {
	_, ok := ParseVersion(r.Version)
	switch {
	case !ok:
		return ledger.Refuse(ledger.Invalid, nil, "version: not MAJOR.MINOR.PATCH")
	case !core.IsHash(r.Digest) || !core.IsHash(r.Signer):
		return ledger.Refuse(ledger.Invalid, nil, "digest and signer: 64 hex digits")
	case len(r.Manifest) > MaxManifest || len(r.Settings) > MaxManifest || !json.Valid(r.Manifest) ||
		len(r.Settings) > 0 && !json.Valid(r.Settings):
		return ledger.Refuse(ledger.TooLarge, nil, "manifest and settings: JSON of at most %d bytes", MaxManifest)
	case len(r.Parts) > maxParts || len(r.Modules) > maxParts || len(r.Capabilities) > maxParts || len(r.Needs) > MaxApps:
		return ledger.Refuse(ledger.TooLarge, nil, "an app has at most %d parts and capabilities", maxParts)
	case r.Within < 0 || r.Within > MaxWithin:
		return ledger.Refuse(ledger.Invalid, nil, "health.within: at most a day")
	}
	for _, p := range r.Parts {
		if !core.IsID(p.ID) || !IsName(p.Name) || p.Kind != "agent" && p.Kind != "skill" && p.Kind != "routine" {
			return ledger.Refuse(ledger.Invalid, nil, "parts: %q is not a part of an app", p.Name)
		}
	}
	return r.checkOffers()
}

// checkNeeds refuses a release whose dependencies are not there.
func (r Release) checkNeeds(tx *ledger.Tx, of ledger.CompanyID) error {
	for _, n := range r.Needs {
		a, ok := Named(tx, of, n.App)
		if !ok {
			return ledger.Refuse(ledger.Unprocessable, nil, "dependencies: needs the app %s %s; install it first",
				n.App, n.Range)
		}
		fits, err := Satisfies(a.Now.Version, n.Range)
		if err != nil {
			return err
		}
		if !fits {
			return ledger.Refuse(ledger.Unprocessable, nil, "dependencies: needs %s %s, has %s", n.App, n.Range, a.Now.Version)
		}
	}
	return nil
}

// carryOut executes steps for a person.
func carryOut(c *ledger.Context, list []Step, by string) error {
	if len(list) > MaxSteps {
		return ledger.Refuse(ledger.TooLarge, nil, "an app has at most %d steps, this one has %d", MaxSteps, len(list))
	}
	for _, s := range list {
		kind, ok := company.KindOf(s.Kind)
		if !ok || kind.Do == nil || !slices.Contains(steps, s.Kind) {
			return ledger.Refuse(ledger.Invalid, nil, "An app can not hold %s", s.Kind)
		}
		cmd := *c.Cmd
		cmd.Kind, cmd.Payload, cmd.Actor = s.Kind, s.Payload, ledger.Actor{Type: "user", ID: by}
		part := c.Within(&cmd)
		part.Quiet = s.Kind != company.KindIssueCreate // the issue of a hook wakes its agent
		if _, err := kind.Do(part); err != nil {
			return err
		}
	}
	return nil
}

// record leaves the line of a change of an app.
func (a App) record(c *ledger.Context, action string) {
	c.Record(ledger.Change{Action: action, EntityType: "app", EntityID: a.ID,
		Details: core.Object{}.Str("name", a.Name).Str("version", a.Now.Version).Str("state", string(a.State)).
			Null("reason", a.Reason).Close()})
}

func errNone() error { return ledger.Refuse(ledger.NotFound, nil, "App not found") }

// present returns the app of a command.
func present(c *ledger.Context, id string) (App, error) {
	a, ok := Rows.Get(c.Tx, c.Cmd.Company, id)
	if !ok {
		return a, errNone()
	}
	return a, nil
}

// store writes an app that was changed.
func (a App) store(c *ledger.Context, action string) (any, error) {
	a.UpdatedAt = core.TimeOf(c.Now)
	Rows.Put(c.Tx, a.Company, a.ID, a)
	a.record(c, action)
	return nil, nil
}

// Health says what the runs of an app's agents since its upgrade mean for it.
type Health int

const (
	Unknown Health = iota // nothing decides yet
	Good                  // it stays
	Bad                   // it goes back
)

// HealthOf decides an upgrade. A run of one of its agents that failed since, a service that is not started again, or a
// program of a hook that failed takes it back. A run of each agent that succeeded keeps it, if it has no services; else
// the end of the time does. why names what failed.
func HealthOf(tx *ledger.Tx, a App, now core.Time) (h Health, why string) {
	if a.Back == nil || a.Back.Until == 0 {
		return Unknown, ""
	}
	for _, r := range a.Ran {
		if r.Since == a.Back.Since && r.Bad() && (r.Event == OnUpgrade || r.Event == OnHealth) {
			return Bad, r.String()
		}
	}
	waits := len(a.Now.Services) > 0 && a.State == Running
	for _, s := range a.Now.Services {
		if p, ok := company.Ask.Processes.ProcessOf(tx, s.process(a).Name); ok && (p.Failed || p.Ended) {
			return Bad, "service " + a.Name + "/" + s.Name + " does not run: " + p.Error
		}
	}
	for _, p := range a.Now.Parts {
		if p.Kind != "agent" || p.Gone {
			continue
		}
		good := false
		for r := range entity.RunsOfAgent(tx, a.Company, p.ID) {
			if r.CreatedAt < a.Back.Since {
				break // the newest first
			}
			switch r.Status {
			case entity.RunSucceeded:
				good = true
			case entity.RunFailed, entity.RunTimedOut:
				return Bad, "run " + r.ID + " of " + a.Name + "/" + p.Name + " " + string(r.Status)
			}
		}
		waits = waits || !good
	}
	if len(pending(tx, a.Company, a.ID)) > 0 {
		return Unknown, "" // each has an end of its own
	}
	if !waits || now >= a.Back.Until {
		return Good, ""
	}
	return Unknown, ""
}
