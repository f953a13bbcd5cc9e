package governance

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/ledger"
)

// A Rank is a place in an organization, as rules see it.
type Rank string

// The ranks. A person of the board is above every agent.
const (
	Worker  Rank = "worker"
	Manager Rank = "manager"
	Chief   Rank = "ceo"
	Board   Rank = "board"
	Nobody  Rank = "" // somebody whom this mesh does not know
)

// Kinds of data that an act touches.
const (
	PublicData   = "public"
	PersonalData = "personal"       // of a person who can be named
	SubjectData  = "human-subjects" // of people who are studied
	SecretData   = "secret"         // keys, passwords, what is sealed
)

// An Act is what the gate is asked about. What lowers a decision (rank, clearances, approvers, a record) has to come
// from a source that is believed; whoever makes the act from a request leaves out what an agent claims of itself.
type Act struct {
	Action  string           `cbor:"1,keyasint"`
	Agent   string           `cbor:"2,keyasint,omitempty"` // who does it
	Role    string           `cbor:"3,keyasint,omitempty"` // its role, such as "engineer"
	Rank    Rank             `cbor:"4,keyasint,omitempty"`
	Company ledger.CompanyID `cbor:"5,keyasint,omitempty"`
	Scope   Scope            `cbor:"6,keyasint"`
	Context Context          `cbor:"7,keyasint"`
	// Row is what the action is by itself where the table of actions does not say it: a
	// kind of command has its own. nil: the table says it.
	Row *Action `cbor:"8,keyasint,omitempty"`
	// Target is the path in the resource tree that the act is about; "": that of the company.
	Target string `cbor:"9,keyasint,omitempty"`
}

// row returns what the action is by itself, and whether anybody has said so.
func (a Act) row() (Action, bool) {
	if a.Row != nil {
		return *a.Row, true
	}
	return ActionOf(a.Action)
}

// Context is what is known of an act beside its action and who does it. The zero value knows nothing.
type Context struct {
	// levels that somebody has estimated: the effect is not below them
	Given        Effect   `cbor:"1,keyasint"`
	Command      string   `cbor:"2,keyasint,omitempty"`  // of a shell
	Path         string   `cbor:"3,keyasint,omitempty"`  // of a file
	Workspace    string   `cbor:"4,keyasint,omitempty"`  // folder that belongs to the agent
	Data         string   `cbor:"5,keyasint,omitempty"`  // kind of data that it touches, "" when none is named
	Reason       string   `cbor:"6,keyasint,omitempty"`  // why it is done
	Issue        string   `cbor:"7,keyasint,omitempty"`  // that it serves
	Revision     string   `cbor:"8,keyasint,omitempty"`  // of the code that it is about
	Amount       int64    `cbor:"9,keyasint,omitempty"`  // money that it commits, in cents
	Drift        Level    `cbor:"10,keyasint,omitempty"` // how far it is from what the agent did before
	Outside      bool     `cbor:"11,keyasint,omitempty"` // its target is outside the company
	First        bool     `cbor:"12,keyasint,omitempty"` // the agent does it for the first time
	Irreversible bool     `cbor:"13,keyasint,omitempty"` // it can not be undone
	Incident     bool     `cbor:"14,keyasint,omitempty"` // an incident is open
	Clearances   []string `cbor:"15,keyasint,omitempty"` // what was cleared for this act, such as "deploy"
	Approvers    []string `cbor:"16,keyasint,omitempty"` // managers or people who can approve it
	// Approved: a person of the board does the act, or has approved it. What would wait for a person is then
	// done with a warning.
	Approved bool `cbor:"17,keyasint,omitempty"`
	// Past is what was done before, where it was counted.
	Past *Past `cbor:"18,keyasint,omitempty"`
}

// inside reports whether the path lies in the agent's own folder. Steps upwards are resolved first.
func (c Context) inside() bool {
	if c.Workspace == "" || c.Path == "" {
		return false
	}
	home, file := path.Clean(c.Workspace), c.Path
	if !path.IsAbs(file) {
		file = home + "/" + file
	}
	file = path.Clean(file)
	return path.IsAbs(home) && home != "/" && (file == home || strings.HasPrefix(file, home+"/"))
}

// A Step is one raise of an effect: which dimension, from and to which level, and why.
type Step struct {
	Dimension Dimension
	From, To  Level
	Why       string
}

// Weigh returns the effect of an act and how it came to be: the base of its action, then each raise in a fixed order.
// Nothing in an act lowers an effect.
func Weigh(a Act) (Action, Effect, []Step) {
	action, known := a.row()
	w := weighing{}
	base := "base of " + string(action.Class) + " action " + action.Name
	if !known {
		base = "the action has no base of its own"
	}
	for d, l := range action.Base {
		w.atLeast(Dimension(d), l, base)
	}
	c := a.Context
	for d, l := range c.Given {
		w.atLeast(Dimension(d), l, given[d])
	}
	if c.Outside {
		w.raise(Security, 200, "the target is outside the company")
		w.raise(Privacy, 100, "the target is outside the company")
	}
	w.data(c.Data)
	if c.Amount > 0 {
		more, bound := amountRisk(c.Amount)
		w.raise(Risk, more, bound)
	}
	if c.First {
		w.raise(Novelty, 200, "the agent does it for the first time")
	}
	if c.Irreversible {
		w.raise(Risk, 200, "it can not be undone")
	}
	if a.Rank == Nobody {
		w.raise(Novelty, 100, "the mesh does not know who does it")
		w.raise(Security, 100, "the mesh does not know who does it")
	}
	return action, w.effect, w.steps
}

// given names the levels of a context, by dimension.
var given = [dimensions]string{"context.risk", "context.fairness", "context.privacy", "context.novelty",
	"context.security"}

type weighing struct {
	effect Effect
	steps  []Step
}

func (w *weighing) to(e Effect, d Dimension, why string) {
	if e[d] != w.effect[d] {
		w.steps = append(w.steps, Step{d, w.effect[d], e[d], why})
	}
	w.effect = e
}

func (w *weighing) raise(d Dimension, more Level, why string) { w.to(w.effect.raised(d, more), d, why) }

func (w *weighing) atLeast(d Dimension, level Level, why string) {
	w.to(w.effect.atLeast(d, level), d, why)
}

func (w *weighing) data(kind string) {
	switch kind {
	case PersonalData:
		w.raise(Privacy, 300, "it touches personal data")
	case SecretData:
		w.raise(Privacy, 200, "it touches secrets")
		w.raise(Security, 300, "it touches secrets")
	case SubjectData:
		w.raise(Privacy, 300, "it touches data of people who are studied")
		w.raise(Fairness, 300, "it touches data of people who are studied")
	}
}

// amountRisk is what money adds to the risk: more with each power of ten dollars.
func amountRisk(cents int64) (Level, string) {
	switch {
	case cents >= 1_000_000:
		return 500, "it commits $10,000 or more"
	case cents >= 100_000:
		return 300, "it commits $1,000 or more"
	case cents >= 10_000:
		return 200, "it commits $100 or more"
	case cents >= 1_000:
		return 100, "it commits $10 or more"
	}
	return 50, "it commits money"
}

// Check reports what of an act does not fit the bounds, so that no rule meets more than it was compiled for.
func (a Act) Check() error {
	c := a.Context
	for _, t := range []struct {
		name, text string
		most       int
	}{
		{"action", a.Action, MaxName}, {"agent", a.Agent, MaxName}, {"role", a.Role, MaxName},
		{"company", string(a.Company), MaxName},
		{"rank", string(a.Rank), MaxName}, {"environment", string(a.Scope.Class), MaxName}, {"context.data", c.Data, MaxName},
		{"context.issue", c.Issue, MaxName}, {"context.revision", c.Revision, MaxName},
		{"context.command", c.Command, MaxText}, {"context.path", c.Path, MaxText}, {"context.workspace", c.Workspace,
			MaxText}, {"context.reason", c.Reason, MaxText},
	} {
		if len(t.text) > t.most || !utf8.ValidString(t.text) {
			return fmt.Errorf("%s: must be UTF-8 of at most %d bytes, has %d", t.name, t.most, len(t.text))
		}
	}
	if a.Action == "" {
		return fmt.Errorf("action: required")
	}
	for _, l := range []struct {
		name string
		list []string
	}{{"context.clearances", c.Clearances}, {"context.approval_chain", c.Approvers}} {
		if len(l.list) > MaxNames {
			return fmt.Errorf("%s: at most %d names, has %d", l.name, MaxNames, len(l.list))
		}
		for _, name := range l.list {
			if len(name) > MaxName || !utf8.ValidString(name) {
				return fmt.Errorf("%s: each name must be UTF-8 of at most %d bytes", l.name, MaxName)
			}
		}
	}
	for d, l := range c.Given {
		if l < 0 || l > Most {
			return fmt.Errorf("context.%s: must be from 0 to 1", Dimensions[d])
		}
	}
	if c.Drift < 0 || c.Drift > Most {
		return fmt.Errorf("context.drift: must be from 0 to 1")
	}
	if c.Amount < 0 || c.Amount > MaxAmount {
		return fmt.Errorf("context.amount: must be from 0 to %d cents", int64(MaxAmount))
	}
	return a.Scope.Check()
}
