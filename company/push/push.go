// Package push has the addresses that are told how a task goes: the webhooks of clients of the A2A protocol.
package push

import (
	"encoding/json"
	"iter"
	"net/url"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxPerIssue bounds the webhooks of one issue: each is called at every change.
	MaxPerIssue = 8
	// MaxPerCompany bounds those of a company: the leader looks through them when something changed.
	MaxPerCompany = 1000
	maxURL        = 2000
	maxName       = 200
	maxAuth       = 8 << 10
)

// A Hook is a webhook that is told of the changes of one issue. Auth is a JSON object with the members token and
// credentials, both sealed for the hook.
type Hook struct {
	ID        string           `cbor:"1,keyasint"`
	Company   ledger.CompanyID `cbor:"2,keyasint"`
	Issue     string           `cbor:"3,keyasint"`
	Name      string           `cbor:"4,keyasint"` // by which its client knows it; unique for the issue
	URL       string           `cbor:"5,keyasint"`
	Scheme    string           `cbor:"6,keyasint,omitempty"` // of the Authorization header
	Auth      json.RawMessage  `cbor:"7,keyasint,omitempty"`
	Told      string           `cbor:"8,keyasint,omitempty"` // digest of the state that it was told last
	Failed    uint64           `cbor:"9,keyasint,omitempty"` // states that it could not be told
	CreatedAt core.Time        `cbor:"10,keyasint"`
	UpdatedAt core.Time        `cbor:"11,keyasint"`
}

// Clone returns a copy that shares nothing with h.
func (h Hook) Clone() Hook {
	h.Auth = append(json.RawMessage(nil), h.Auth...)
	return h
}

// Set is the payload of push.set. It makes a hook, or replaces the one of the same name.
type Set struct {
	ID     string          `cbor:"1,keyasint"` // for a new one
	Issue  string          `cbor:"2,keyasint"`
	Name   string          `cbor:"3,keyasint,omitempty"` // default: its ID
	URL    string          `cbor:"4,keyasint"`
	Scheme string          `cbor:"5,keyasint,omitempty"`
	Auth   json.RawMessage `cbor:"6,keyasint,omitempty"`
}

// AuthPath is the path under which the members of Auth are sealed.
const AuthPath = "auth"

// Sealed seals the token and the credentials.
func (p Set) Sealed(seal conceal.SealFunc) (any, error) {
	var err error
	p.Auth, err = conceal.SealConfig(p.Auth, AuthPath, func(path, plain string) (string,
		error) {
		return seal(p.ID, path, plain)
	})
	return p, err
}

// Delete is the payload of push.delete.
type Delete struct {
	ID string `cbor:"1,keyasint"`
}

// Tell is the payload of push.told: a node has told the hook a state, or has given up.
type Tell struct {
	ID     string `cbor:"1,keyasint"`
	Digest string `cbor:"2,keyasint"`
	Failed bool   `cbor:"3,keyasint,omitempty"`
	Last   bool   `cbor:"4,keyasint,omitempty"` // nothing follows: the hook is deleted
}

const (
	KindSet    = "push.set"
	KindDelete = "push.delete"
	KindTold   = "push.told"
)

// hooks are the rows by ID, hooksOfIssue their index.
var (
	hooks = ledger.NewTable[string, Hook]("push-hook").
		Beside(ledger.Indexed(hooksOfIssue, func(h *Hook) string { return h.Issue }))
	hooksOfIssue = ledger.NewIndex[string, string]("push-issue")
)

// Rules are the rules of this room.
var Rules = company.Rules{
	Kinds: []company.Kind{
		{Name: KindSet, From: company.FromBoard | company.FromAgent, Traits: company.NoWork, Weight: company.Weights.SetUp,
			Do: ledger.Typed(set)},
		{Name: KindDelete, From: company.FromBoard | company.FromAgent, Traits: company.NoWork, Weight: company.Weights.SetUp,
			Do: ledger.Typed(remove)},
		{Name: KindTold, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
			Do: ledger.Typed(told)},
	},
	IssueDeleted: func(c *ledger.Context, i entity.Issue) {
		for _, h := range OfIssue(c.Tx, i) {
			drop(c.Tx, h)
		}
	},
	Sealed: func(tx *ledger.Tx, of ledger.CompanyID) (out []conceal.SealedConfig) {
		if of == "" {
			return nil
		}
		for h := range All(tx, of) {
			o := conceal.SealedConfig{Type: "push_hook", ID: h.ID, Owner: h.ID}
			o.Collect(AuthPath, h.Auth)
			out = append(out, o)
		}
		return out
	},
	Reseal: map[string]func(c *ledger.Context, p conceal.Reseal) error{"push_hook": func(c *ledger.Context,
		p conceal.Reseal) error {
		h, ok := hooks.Get(c.Tx, c.Cmd.Company, p.ID)
		if !ok {
			return errNone()
		}
		h.Auth = p.Config(h.Auth)
		hooks.Put(c.Tx, h.Company, h.ID, h)
		return nil
	}},
}

func errNone() error {
	return ledger.Refuse(ledger.NotFound, nil, "Push notification config not found")
}

// drop deletes a row and what finds it.
func drop(tx *ledger.Tx, h Hook) {
	hooks.Delete(tx, h.Company, h.ID)
}

// All yields the hooks of a company by ID.
func All(tx *ledger.Tx, of ledger.CompanyID) iter.Seq[Hook] {
	return func(yield func(Hook) bool) {
		for _, h := range hooks.All(tx, of) {
			if !yield(h) {
				return
			}
		}
	}
}

// OfIssue returns the hooks of an issue by ID, at most [MaxPerIssue].
func OfIssue(tx *ledger.Tx, i entity.Issue) (out []Hook) {
	for id := range hooksOfIssue.IDs(tx, i.Company, i.ID, false) {
		if h, ok := hooks.Get(tx, i.Company, id); ok {
			out = append(out, h)
		}
	}
	return out
}

// Named returns the hook of an issue with a name.
func Named(tx *ledger.Tx, i entity.Issue, name string) (Hook, bool) {
	for _, h := range OfIssue(tx, i) {
		if h.Name == name || h.ID == name {
			return h, true
		}
	}
	return Hook{}, false
}

// check refuses a webhook that can not be called.
func (p Set) check() error {
	to, err := url.Parse(p.URL)
	switch {
	case err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "":
		return ledger.Refuse(ledger.Invalid, nil, "url: an http or https address is required")
	case to.User != nil:
		return ledger.Refuse(ledger.Invalid, nil, "url: has a user or password; put it into authentication")
	case len(p.URL) > maxURL || len(p.Name) > maxName || len(p.Scheme) > maxName || len(p.Auth) > maxAuth:
		return ledger.Refuse(ledger.TooLarge, nil, "url, id or authentication of the push notification config: too long")
	}
	return nil
}

func set(c *ledger.Context, p Set) (any, error) {
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	i, ok := entity.IssueOf(c.Tx, of, p.Issue)
	if !ok {
		return nil, company.ErrNoIssue()
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	auth, err := core.CheckObject("authentication", p.Auth, maxAuth)
	if err != nil {
		return nil, err
	}
	was, replaces := Hook{}, false
	if p.Name != "" {
		was, replaces = Named(c.Tx, i, p.Name)
	}
	if _, taken := hooks.Get(c.Tx, of, p.ID); taken || !core.IsID(p.ID) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "ID %q is in use, or not a UUID", p.ID)
	}
	switch {
	case replaces: // what is sealed is sealed for the new ID
		drop(c.Tx, was)
	case len(OfIssue(c.Tx, i)) >= MaxPerIssue:
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"The task has %d push notification configs, the most there may be; delete one", MaxPerIssue)
	}
	if err := core.HasRoom(hooks.All(c.Tx, of), MaxPerCompany, "push notification configs"); err != nil {
		return nil, err
	}
	h := Hook{ID: p.ID, Company: of, Issue: i.ID, Name: p.Name, URL: p.URL, Scheme: p.Scheme, Auth: auth, CreatedAt: now,
		UpdatedAt: now}
	if h.Name == "" {
		h.Name = h.ID
	}
	hooks.Put(c.Tx, of, h.ID, h)
	c.Record(ledger.Change{Action: "issue.push_set", EntityType: "issue", EntityID: i.ID,
		Details: core.Object{}.Str("identifier", i.Identifier).Str("hook", h.Name).Close()})
	return h.ID, nil
}

func remove(c *ledger.Context, p Delete) (any, error) {
	h, ok := hooks.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNone()
	}
	drop(c.Tx, h)
	c.Record(ledger.Change{Action: "issue.push_removed", EntityType: "issue", EntityID: h.Issue,
		Details: core.Object{}.Str("hook", h.Name).Close()})
	return nil, nil
}

func told(c *ledger.Context, p Tell) (any, error) {
	h, ok := hooks.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNone()
	}
	action := "issue.push_told"
	h.Told, h.UpdatedAt = p.Digest, core.TimeOf(c.Now)
	if p.Failed {
		action = "issue.push_failed"
		h.Failed++
	}
	if p.Last {
		drop(c.Tx, h)
	} else {
		hooks.Put(c.Tx, h.Company, h.ID, h)
	}
	c.Record(ledger.Change{Action: action, EntityType: "issue", EntityID: h.Issue, Details: core.Object{}.Str("hook",
		h.Name).Close()})
	return nil, nil
}
