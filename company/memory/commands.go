package memory

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

// Save is the payload of memory.add and memory.update: what is nil is left as it is. The
// ID of a new record is the caller's. Agent, Issue and Comment are said once.
type Save struct {
	ID         string       `cbor:"1,keyasint"`
	Text       *string      `cbor:"2,keyasint,omitempty"`
	Kind       *string      `cbor:"3,keyasint,omitempty"`
	Tags       *[]string    `cbor:"4,keyasint,omitempty"`
	Agent      string       `cbor:"5,keyasint,omitempty"`
	Private    *bool        `cbor:"6,keyasint,omitempty"`
	Project    *string      `cbor:"7,keyasint,omitempty"`
	Issue      string       `cbor:"8,keyasint,omitempty"`
	Comment    string       `cbor:"9,keyasint,omitempty"`
	Importance *int64       `cbor:"10,keyasint,omitempty"`
	ExpiresAt  *core.Time   `cbor:"11,keyasint,omitempty"` // 0: never
	Links      *[]string    `cbor:"12,keyasint,omitempty"`
	Model      string       `cbor:"13,keyasint,omitempty"` // of Vector
	Vector     index.Vector `cbor:"14,keyasint,omitempty"`
	Replaces   []string     `cbor:"15,keyasint,omitempty"` // of memory.add: whose place the new record takes
}

// Forget is the payload of memory.forget.
type Forget struct {
	IDs []string `cbor:"1,keyasint"`
}

// Expire is the payload of memory.expire, which removes records whose time is over, at
// most [MaxExpired].
type Expire struct{}

// A Saved is what memory.add and memory.update answer. It has no text: answers are kept.
type Saved struct {
	ID string `cbor:"1,keyasint"`
}

const (
	KindAdd    = "memory.add"
	KindUpdate = "memory.update"
	KindForget = "memory.forget"
	KindExpire = "memory.expire"
)

var kinds = []company.Kind{
	{Name: KindAdd, From: company.FromBoard | company.FromAgent, Traits: company.NoWork, Weight: company.Weights.Text,
		Do: ledger.Typed(add)},
	{Name: KindUpdate, From: company.FromBoard | company.FromAgent, Traits: company.NoWork, Weight: company.Weights.Text,
		Do: ledger.Typed(update)},
	{Name: KindForget, From: company.FromBoard | company.FromAgent, Traits: company.NoWork, Weight: company.Weights.Erase,
		Do: ledger.Typed(forget)},
	{Name: KindLink, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(link)},
	{Name: KindExpire, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(expire)},
}

// Rules are the rules of this room.
var Rules = company.Rules{
	Kinds:       slices.Concat(kinds, embeddingKinds),
	Causes:      causes,
	IssueStored: leaveOutcome,
	IssueDeleted: func(c *ledger.Context, i entity.Issue) {
		if r, ok := records.Get(c.Tx, i.Company, OutcomeOf(i.ID)); ok {
			store(c.Tx, r, Record{})
		}
	},
	CommentEmptied: outcomeWithout,
}

var words = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

func errNone() error { return ledger.Refuse(ledger.NotFound, nil, "Memory record not found") }

// mayChange finds a record that the actor may change: the board each, an agent what it
// wrote and what is its own. One that an agent may not read is not there for it.
func mayChange(c *ledger.Context, id string) (Record, error) {
	r, ok := Of(c.Tx, c.Cmd.Company, id)
	if !ok || core.IsAgent(c) && !r.ReadableBy(c.Cmd.Actor.ID) {
		return r, errNone()
	}
	if core.IsAgent(c) && string(r.Agent) != c.Cmd.Actor.ID && r.Author != c.Cmd.Actor.ID {
		return r, ledger.Refuse(ledger.Forbidden, nil,
			"Only the board, its author and the agent whose it is can change a memory")
	}
	return r, nil
}

func add(c *ledger.Context, p Save) (any, error) {
	if err := core.CheckNewID(c.Tx, p.ID); err != nil {
		return nil, err
	}
	if p.Text == nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "text: required")
	}
	if core.IsAgent(c) {
		if p.Agent != "" && p.Agent != c.Cmd.Actor.ID {
			return nil, ledger.Refuse(ledger.Forbidden, nil, "agentId: an agent adds memories of its own, or of the company")
		}
		if p.Private != nil && *p.Private {
			p.Agent = c.Cmd.Actor.ID
		}
	}
	now := core.TimeOf(c.Now)
	r := Record{ID: p.ID, Company: c.Cmd.Company, Kind: "note", Agent: core.NullText(p.Agent),
		Issue: core.NullText(p.Issue), Comment: core.NullText(p.Comment),
		Run: core.NullText(c.Cmd.Run), AuthorType: c.Cmd.Actor.Type, Author: c.Cmd.Actor.ID, Height: c.Height, CreatedAt: now,
		UpdatedAt: now}
	if err := r.checkOrigin(c.Tx); err != nil {
		return nil, err
	}
	r, err := r.with(c, p)
	if err != nil {
		return nil, err
	}
	if err := CountOf(c.Tx, r.Company).fits(Record{}, r); err != nil {
		return nil, err
	}
	if r.Replaces, err = replace(c, r, p.Replaces); err != nil {
		return nil, err
	}
	store(c.Tx, Record{}, r)
	c.Record(ledger.Change{Action: "memory.added", EntityType: "memory", EntityID: r.ID, Details: r.details()})
	return Saved{r.ID}, nil
}

func update(c *ledger.Context, p Save) (any, error) {
	was, err := mayChange(c, p.ID)
	if err != nil {
		return nil, err
	}
	if p.Agent != "" || p.Issue != "" || p.Comment != "" || len(p.Replaces) > 0 {
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"agentId, issueId, commentId and replaces: are said when a memory is added, and do not change; add another one")
	}
	r, err := was.with(c, p)
	if err != nil {
		return nil, err
	}
	r.UpdatedAt = core.TimeOf(c.Now)
	if err := CountOf(c.Tx, r.Company).fits(was, r); err != nil {
		return nil, err
	}
	store(c.Tx, was, r)
	c.Record(ledger.Change{Action: "memory.updated", EntityType: "memory", EntityID: r.ID, Details: r.details()})
	return Saved{r.ID}, nil
}

func forget(c *ledger.Context, p Forget) (any, error) {
	if len(p.IDs) == 0 || len(p.IDs) > MaxForgotten {
		return nil, ledger.Refuse(ledger.Invalid, nil, "ids: 1 to %d memories are forgotten at once", MaxForgotten)
	}
	for _, id := range core.SortedSet(p.IDs) {
		r, err := mayChange(c, id)
		if err != nil {
			return nil, err
		}
		drop(c, r)
	}
	c.Record(ledger.Change{Action: "memory.forgotten", EntityType: "memory", EntityID: p.IDs[0],
		Details: core.Object{}.Int("count", int64(len(p.IDs))).Close()})
	return nil, nil
}

func expire(c *ledger.Context, _ Expire) (any, error) {
	now, n, first := core.TimeOf(c.Now), int64(0), ""
	for _, id := range Expiring(c.Tx, c.Cmd.Company, now, MaxExpired) {
		if r, ok := Of(c.Tx, c.Cmd.Company, id); ok {
			drop(c, r)
			if n++; first == "" {
				first = id
			}
		}
	}
	if n == 0 {
		return nil, ledger.Refuse(ledger.Conflict, nil, "no memory has expired")
	}
	c.Record(ledger.Change{Action: "memory.expired", EntityType: "memory", EntityID: first,
		Details: core.Object{}.Int("count", n).Close()})
	return nil, nil
}

// Expiring returns the records whose time is over, at most limit.
func Expiring(tx *ledger.Tx, company ledger.CompanyID, now core.Time, limit int) (out []string) {
	prefix := ledger.Key("c", string(company), "memory-expiry", "")
	for k := range tx.Scan(prefix, append(prefix[:len(prefix):len(prefix)], ledger.Order(uint64(now)+1)...), false) {
		if len(out) == limit {
			break
		}
		out = append(out, string(k[len(k)-36:]))
	}
	return out
}

// drop removes a record, and the payloads that have its texts.
func drop(c *ledger.Context, r Record) {
	for _, b := range slices.Concat(r.Bodies, r.Brought) {
		ledger.EraseBody(c.Tx, r.Company, b.Index, b.Salt)
	}
	giveBack(c, r)
	store(c.Tx, r, Record{})
}

func (r Record) details() json.RawMessage {
	return core.Object{}.Int("bytes", int64(len(r.Text))).Bool("private", r.Private).Close()
}

// checkOrigin refuses what a record can not come from.
func (r Record) checkOrigin(tx *ledger.Tx) error {
	if r.Agent != "" {
		if _, ok := entity.AgentTable.Get(tx, r.Company, string(r.Agent)); !ok {
			return ledger.Refuse(ledger.NotFound, nil, "agentId: agent not found")
		}
	}
	if r.Issue != "" {
		if _, ok := entity.IssueTable.Get(tx, r.Company, string(r.Issue)); !ok {
			return ledger.Refuse(ledger.NotFound, nil, "issueId: issue not found")
		}
	}
	if r.Comment != "" {
		if _, ok := entity.CommentOf(tx, r.Company, string(r.Issue), string(r.Comment)); !ok {
			return ledger.Refuse(ledger.NotFound, nil, "commentId: the issue has no such comment")
		}
	}
	return nil
}

// with returns r as p says, or refuses.
func (r Record) with(c *ledger.Context, p Save) (Record, error) {
	if p.Text != nil {
		if *p.Text != r.Text {
			r = r.withoutVector(c.Tx) // it is of another text
		}
		r.Text = *p.Text
		if len(r.Bodies) >= maxBodies {
			return r, ledger.Refuse(ledger.Unprocessable, nil,
				"text: was changed %d times; forget this memory and add another one", maxBodies)
		}
		r.Bodies = append(slices.Clone(r.Bodies), body{c.Index, c.Salt})
	}
	core.Assign(&r.Kind, p.Kind)
	core.Assign(&r.Private, p.Private)
	core.Assign(&r.Importance, p.Importance)
	core.Assign(&r.ExpiresAt, p.ExpiresAt)
	if p.Tags != nil {
		r.Tags = core.SortedSet(*p.Tags)
	}
	if p.Model != "" || p.Vector != nil {
		r = r.withoutVector(c.Tx)
		r.Model, r.Vector = core.NullText(p.Model), p.Vector
	}
	if err := r.check(); err != nil {
		return r, err
	}
	if p.ExpiresAt != nil && r.Expired(core.TimeOf(c.Now)) {
		return r, ledger.Refuse(ledger.Invalid, nil, "expiresAt: is over already")
	}
	if p.Project != nil {
		if r.Project = core.NullText(*p.Project); r.Project != "" && !entity.ProjectExists(c.Tx, r.Company, *p.Project) {
			return r, ledger.Refuse(ledger.NotFound, nil, "projectId: project not found")
		}
	}
	if p.Links != nil {
		r.Links = core.SortedSet(*p.Links)
		return r, r.checkLinks(c)
	}
	return r, nil
}

func (r Record) checkLinks(c *ledger.Context) error {
	if len(r.Links) > MaxLinks {
		return ledger.Refuse(ledger.Invalid, nil, "links: at most %d", MaxLinks)
	}
	for _, id := range r.Links {
		to, ok := Of(c.Tx, r.Company, id)
		if !ok || id == r.ID || core.IsAgent(c) && !to.ReadableBy(c.Cmd.Actor.ID) {
			return ledger.Refuse(ledger.NotFound, nil, "links: memory %.36q not found", id)
		}
	}
	return nil
}

// check refuses by name what a record can not have.
func (r Record) check() error {
	if err := CheckText("text", r.Text); err != nil {
		return err
	}
	switch {
	case !words.MatchString(r.Kind):
		return ledger.Refuse(ledger.Invalid, nil,
			"kind: a word of at most 32 letters, digits, dashes and underscores in lower case")
	case len(r.Tags) > MaxTags:
		return ledger.Refuse(ledger.Invalid, nil, "tags: at most %d", MaxTags)
	case r.Importance < 0 || r.Importance > MaxImportance:
		return ledger.Refuse(ledger.Invalid, nil, "importance: 0 to %d", MaxImportance)
	case r.ExpiresAt < 0:
		return ledger.Refuse(ledger.Invalid, nil, "expiresAt: is before 1970")
	case r.Private && r.Agent == "":
		return ledger.Refuse(ledger.Invalid, nil, "private: needs agentId, the agent that reads it")
	case (r.Model == "") != (r.Vector == nil):
		return ledger.Refuse(ledger.Invalid, nil, "model and vector: one needs the other")
	case len(r.Model) > MaxModel || r.Model == index.Lexical:
		return ledger.Refuse(ledger.Invalid, nil, "model: at most %d bytes, and not %s, which nodes compute themselves",
			MaxModel, index.Lexical)
	}
	for _, tag := range r.Tags {
		if len(tag) > MaxTag || strings.TrimSpace(tag) != tag || !utf8.ValidString(tag) || strings.ContainsFunc(tag,
			unicode.IsControl) {
			return ledger.Refuse(ledger.Invalid, nil,
				"tags: a tag has at most %d bytes, no control characters, and no spaces around it", MaxTag)
		}
	}
	if r.Vector != nil {
		if err := r.Vector.Check(); err != nil {
			return ledger.Refuse(ledger.Invalid, nil, "%s", err.Error())
		}
	}
	return plain("model", string(r.Model))
}

// CheckText refuses a text that can not be remembered: field is what it is called.
func CheckText(field, text string) error {
	if len(text) > MaxText {
		return ledger.Refuse(ledger.TooLarge, nil, "%s: %d bytes, at most %d; keep longer texts as documents", field,
			len(text), MaxText)
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return ledger.Refuse(ledger.Invalid, nil, "%s: needs at least one letter or digit", field)
	}
	return plain(field, text)
}

// plain refuses bytes that are no text, and control characters besides line ends and tabs.
func plain(field, text string) error {
	if !utf8.ValidString(text) {
		return ledger.Refuse(ledger.Invalid, nil, "%s: is not UTF-8", field)
	}
	if strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' &&
			r != '\t'
	}) {
		return ledger.Refuse(ledger.Invalid, nil, "%s: has a control character", field)
	}
	return nil
}
