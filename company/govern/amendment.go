package govern

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A SigningKey is a key of somebody of the board: with it they sign amendments. Whoever has the private key keeps it.
type SigningKey struct {
	ID     string `cbor:"1,keyasint"` // of the public key, see [KeyID]
	Name   string `cbor:"2,keyasint"`
	Public []byte `cbor:"3,keyasint"` // Ed25519
}

// KeyID names a public key: the first 16 hexadecimal digits of its SHA-256.
func KeyID(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// Draft is what an amendment does. It is what people sign.
type Draft struct {
	Title       string                       `cbor:"1,keyasint"`
	Change      governance.Change            `cbor:"2,keyasint"`
	AddKeys     []SigningKey                 `cbor:"3,keyasint,omitempty"`
	DropKeys    []string                     `cbor:"4,keyasint,omitempty"` // IDs
	Threshold   *int                         `cbor:"5,keyasint,omitempty"` // keys that have to sign; 0: more than half
	Environment *governance.EnvironmentClass `cbor:"6,keyasint,omitempty"` // of the mesh
	Pack        string                       `cbor:"7,keyasint,omitempty"`
	Base        uint64                       `cbor:"8,keyasint"` // the version that it changes
}

// A Status says how far an amendment is. Persisted: do not rename.
type Status string

// Statuses of amendments.
const (
	Proposed  Status = "proposed"
	InEffect  Status = "in_force"
	Withdrawn Status = "withdrawn"
)

// An Amendment is a proposal to change the constitution, and what became of it.
type Amendment struct {
	ID         string      `cbor:"1,keyasint"` // 1, 2, …
	Draft      Draft       `cbor:"2,keyasint"`
	Digest     string      `cbor:"3,keyasint"` // SHA-256 of mesh, ID and draft, hex
	By         string      `cbor:"4,keyasint"` // user
	At         core.Time   `cbor:"5,keyasint"`
	Status     Status      `cbor:"6,keyasint"`
	Signatures []Signature `cbor:"7,keyasint,omitempty"`
	Version    uint64      `cbor:"8,keyasint,omitempty"` // that it made
	Height     uint64      `cbor:"9,keyasint,omitempty"` // from which it is in force
	EndedAt    core.Time   `cbor:"10,keyasint,omitempty"`
	Hash       string      `cbor:"11,keyasint"` // of the rules that it leads to
	Mesh       string      `cbor:"12,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with a.
func (a Amendment) Clone() Amendment {
	return core.DecodeRow[Amendment](ledger.Marshal(a))
}

// A Signature is that of a key, or the word of an administrator as long as the board has no keys.
type Signature struct {
	Key   string    `cbor:"1,keyasint,omitempty"`
	By    string    `cbor:"2,keyasint"` // user who sent it
	Bytes []byte    `cbor:"3,keyasint,omitempty"`
	At    core.Time `cbor:"4,keyasint"`
}

// amendments are kept by the order of their number.
var amendments = ledger.NewMeshTable[string, Amendment]("amendment")

// Sign is the payload of amendment.sign. Without a key it is the word of the administrator who gives the command.
type Sign struct {
	Amendment string `cbor:"1,keyasint"`
	Key       string `cbor:"2,keyasint,omitempty"`
	Signature []byte `cbor:"3,keyasint,omitempty"`
}

// NameAmendment is the payload of amendment.enact and amendment.withdraw.
type NameAmendment struct {
	Amendment string `cbor:"1,keyasint"`
}

// Kinds of commands about amendments.
const (
	KindPropose  = "amendment.propose"
	KindSign     = "amendment.sign"
	KindEnact    = "amendment.enact"
	KindWithdraw = "amendment.withdraw"
)

var amendmentKinds = []company.Kind{
	{Name: KindPropose, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
		Weight: company.Weights.Amending, Do: ledger.Typed(propose)},
	{Name: KindSign, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
		Weight: company.Weights.Amending, Do: ledger.Typed(sign)},
	{Name: KindEnact, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
		Weight: company.Weights.Amending, Do: ledger.Typed(amend)},
	{Name: KindWithdraw, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
		Weight: company.Weights.Amending, Do: ledger.Typed(withdraw)},
}

// AmendmentOf returns an amendment.
func AmendmentOf(tx *ledger.Tx, id string) (Amendment, bool) {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return Amendment{}, false
	}
	return amendments.Get(tx, ledger.Order(n))
}

// Amendments yields all amendments, newest first.
func Amendments(tx *ledger.Tx) iter.Seq[Amendment] {
	prefix := amendments.Key("")
	return func(yield func(Amendment) bool) {
		for _, row := range tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
			if !yield(core.DecodeRow[Amendment](row)) {
				return
			}
		}
	}
}

// Message is what a key signs for an amendment.
func Message(a Amendment) []byte {
	return []byte("selvage amendment v1\n" + a.Mesh + "\n" + a.ID + "\n" + a.Digest + "\n")
}

func digestOf(mesh identity.MeshID, id string, d Draft) string {
	sum := sha256.Sum256(ledger.Marshal(struct {
		Mesh  string `cbor:"1,keyasint"`
		ID    string `cbor:"2,keyasint"`
		Draft Draft  `cbor:"3,keyasint"`
	}{string(mesh), id, d}))
	return hex.EncodeToString(sum[:])
}

// Required returns how many signatures an amendment needs.
func (s Constitution) Required() int {
	if len(s.Keys) == 0 {
		return 1
	}
	return max(s.Threshold, len(s.Keys)/2+1)
}

// Signed counts the signatures of an amendment that count under s.
func (s Constitution) Signed(a Amendment) (n int) {
	for _, sig := range a.Signatures {
		if len(s.Keys) == 0 && sig.Key == "" || slices.ContainsFunc(s.Keys,
			func(k SigningKey) bool { return k.ID == sig.Key }) {
			n++
		}
	}
	return n
}

// Leads returns the gate of the rules that a draft leads to, or refuses the draft.
func (d Draft) Leads(tx *ledger.Tx, s Constitution) (*Gate, error) {
	after, err := governance.Amend(RulesOf(tx, s.Version), d.Change)
	if err != nil {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "%s", core.Snippet(err.Error(), 2_000))
	}
	g, err := gates.Compile(after)
	if err != nil {
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "%s", core.Snippet(err.Error(), 2_000))
	}
	return NewGate(g), nil
}

// check refuses a draft by what is wrong with it.
func (d Draft) check(tx *ledger.Tx, s Constitution) (*Gate, error) {
	switch {
	case len(d.Title) > MaxTitle || !utf8.ValidString(d.Title):
		return nil, ledger.Refuse(ledger.Invalid, nil, "title: UTF-8 of at most %d bytes", MaxTitle)
	case d.Change.Empty() && len(d.AddKeys)+len(d.DropKeys) == 0 && d.Threshold == nil && d.Environment == nil &&
		d.Pack == "":
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"Nothing to amend: give rules, dropRules, keys, threshold or environment")
	case len(d.Change.Put)+len(d.Change.Drop) > MaxChanged:
		return nil, ledger.Refuse(ledger.Invalid, nil, "rules: one amendment changes at most %d, this one %d", MaxChanged,
			len(d.Change.Put)+len(d.Change.Drop))
	}
	if d.Environment != nil {
		if err := (governance.Scope{Class: *d.Environment}).Check(); err != nil {
			return nil, ledger.Refuse(ledger.Invalid, nil, "environment: want dev, staging or prod, got %.40q",
				string(*d.Environment))
		}
	}
	if _, err := d.keys(s); err != nil {
		return nil, err
	}
	return d.Leads(tx, s)
}

// keys returns s with the keys that a draft leads to.
func (d Draft) keys(s Constitution) (Constitution, error) {
	s = s.Clone()
	for _, id := range d.DropKeys {
		i := slices.IndexFunc(s.Keys, func(k SigningKey) bool { return k.ID == id })
		if i < 0 {
			return s, ledger.Refuse(ledger.Invalid, nil, "dropKeys: there is no signing key %.40q", id)
		}
		s.Keys = slices.Delete(s.Keys, i, i+1)
	}
	for _, k := range d.AddKeys {
		switch {
		case len(k.Public) != ed25519.PublicKeySize || k.ID != KeyID(k.Public):
			return s, ledger.Refuse(ledger.Invalid, nil, "keys: publicKey: want a public Ed25519 key in base64")
		case k.Name == "" || len(k.Name) > maxKeyName || !utf8.ValidString(k.Name):
			return s, ledger.Refuse(ledger.Invalid, nil, "keys: name: required, at most %d bytes", maxKeyName)
		case slices.ContainsFunc(s.Keys, func(o SigningKey) bool { return o.ID == k.ID }):
			return s, ledger.Refuse(ledger.Conflict, nil, "keys: the board has the key %s already", k.ID)
		}
		s.Keys = append(s.Keys, k)
	}
	core.Assign(&s.Threshold, d.Threshold)
	switch n := len(s.Keys); {
	case n > MaxKeys:
		return s, ledger.Refuse(ledger.Invalid, nil, "keys: the board has at most %d signing keys", MaxKeys)
	case n == 0 && len(d.DropKeys) > 0:
		return s, ledger.Refuse(ledger.Unprocessable, nil, "dropKeys: one signing key has to stay")
	case s.Threshold < 0 || s.Threshold > n:
		return s, ledger.Refuse(ledger.Invalid, nil, "threshold: want 0 to %d, the number of keys", n)
	case s.Threshold != 0 && s.Threshold < n/2+1:
		return s, ledger.Refuse(ledger.Unprocessable, nil,
			"threshold: more than half of the %d keys have to sign, so at least %d", n, n/2+1)
	}
	return s, nil
}

// Propose is the payload of amendment.propose.
type Propose = Draft

func propose(c *ledger.Context, d Propose) (any, error) {
	s, err := InForce(c.Tx)
	if err != nil {
		return nil, errUnreadable(err)
	}
	if d.Base == 0 {
		d.Base = s.Version
	}
	if d.Base != s.Version {
		return nil, errStale(d.Base, s.Version)
	}
	g, err := d.check(c.Tx, s)
	if err != nil {
		return nil, err
	}
	last, open := uint64(0), 0
	for a := range Amendments(c.Tx) {
		if n, _ := strconv.ParseUint(a.ID, 10, 64); last == 0 {
			last = n
		}
		if a.Status == Proposed && a.Draft.Base == s.Version {
			open++
		}
	}
	if open >= MaxOpen {
		return nil, ledger.Refuse(ledger.Conflict, nil, "%d amendments wait for signatures already; withdraw one", open)
	}
	id := strconv.FormatUint(last+1, 10)
	a := Amendment{ID: id, Draft: d, Digest: digestOf(c.Mesh, id, d), By: c.Cmd.Actor.ID, At: core.TimeOf(c.Now),
		Status: Proposed, Hash: g.Version(), Mesh: string(c.Mesh)}
	amendments.Put(c.Tx, ledger.Order(last+1), a)
	record(c, "governance.proposed", a, core.Object{}.Int("rules", int64(len(d.Change.Put))).
		Int("dropped", int64(len(d.Change.Drop))))
	return a, nil
}

func errStale(base, version uint64) error {
	return ledger.Refuse(ledger.Conflict, nil,
		"The amendment is to version %d of the constitution, and version %d is in force: propose it again", base, version)
}

func record(c *ledger.Context, action string, a Amendment, details core.Object) {
	c.Record(ledger.Change{Action: action, EntityType: "amendment", EntityID: a.ID, Details: details.Str("digest",
		a.Digest).Close()})
}

// pending finds an amendment that can still be signed or come into force.
func pending(c *ledger.Context, id string) (Amendment, Constitution, error) {
	s, err := InForce(c.Tx)
	if err != nil {
		return Amendment{}, s, errUnreadable(err)
	}
	a, ok := AmendmentOf(c.Tx, id)
	switch {
	case !ok:
		return a, s, ledger.Refuse(ledger.NotFound, nil, "Amendment not found")
	case a.Status != Proposed:
		return a, s, ledger.Refuse(ledger.Conflict, nil, "The amendment is %s already",
			map[Status]string{InEffect: "in force", Withdrawn: "withdrawn"}[a.Status])
	case a.Draft.Base != s.Version:
		return a, s, errStale(a.Draft.Base, s.Version)
	}
	return a, s, nil
}

func put(tx *ledger.Tx, a Amendment) {
	n, _ := strconv.ParseUint(a.ID, 10, 64)
	amendments.Put(tx, ledger.Order(n), a)
}

func sign(c *ledger.Context, p Sign) (any, error) {
	a, s, err := pending(c, p.Amendment)
	if err != nil {
		return nil, err
	}
	if p.Key == "" && len(s.Keys) > 0 {
		return nil, ledger.Refuse(ledger.Forbidden, nil, "key: the board has %d signing keys: sign with one of them",
			len(s.Keys))
	}
	if p.Key != "" {
		i := slices.IndexFunc(s.Keys, func(k SigningKey) bool { return k.ID == p.Key })
		if i < 0 {
			return nil, ledger.Refuse(ledger.Forbidden, nil, "key: %.40q is no signing key of the board", p.Key)
		}
		if !ed25519.Verify(s.Keys[i].Public, Message(a), p.Signature) {
			return nil, ledger.Refuse(ledger.Forbidden, nil, "signature: is not one of key %s for this amendment", p.Key)
		}
	}
	same := func(sig Signature) bool { return sig.Key == p.Key && (p.Key != "" || sig.By == c.Cmd.Actor.ID) }
	if slices.ContainsFunc(a.Signatures, same) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "The amendment has this signature already")
	}
	a.Signatures = append(a.Signatures, Signature{Key: p.Key, By: c.Cmd.Actor.ID, Bytes: p.Signature,
		At: core.TimeOf(c.Now)})
	put(c.Tx, a)
	record(c, "governance.signed", a, core.Object{}.Null("key", p.Key).Int("signatures", int64(s.Signed(a))).
		Int("required", int64(s.Required())))
	return a, nil
}

// amend brings an amendment into force that enough have signed: from the entry of this command on.
func amend(c *ledger.Context, p NameAmendment) (any, error) {
	a, s, err := pending(c, p.Amendment)
	if err != nil {
		return nil, err
	}
	if n, want := s.Signed(a), s.Required(); n < want {
		return nil, ledger.Refuse(ledger.Forbidden, core.Object{}.Int("signatures", int64(n)).
			Int("required", int64(want)).Close(),
			"The amendment has %d of the %d signatures that it needs: sign it first", n, want)
	}
	g, err := a.Draft.check(c.Tx, s)
	if err != nil {
		return nil, err
	}
	next, err := a.Draft.keys(s)
	if err != nil {
		return nil, err
	}
	next.Version, next.Hash, next.Height, next.At, next.Amendment = s.Version+1, g.Version(), c.Height,
		core.TimeOf(c.Now), a.ID
	core.Assign(&next.Mesh.Class, a.Draft.Environment)
	if a.Draft.Pack != "" {
		next.Pack = a.Draft.Pack
	}
	putRules(c.Tx, a.Draft.Change, next.Version)
	constitutions.Put(c.Tx, now, next)
	constitutions.Put(c.Tx, ledger.Order(next.Version), next)
	a.Status, a.Version, a.Height, a.EndedAt = InEffect, next.Version, c.Height, next.At
	put(c.Tx, a)
	record(c, "governance.amended", a, core.Object{}.Uint("version", next.Version).Str("hash", next.Hash))
	return a, nil
}

// putRules stores the added rules of a version.
func putRules(tx *ledger.Tx, ch governance.Change, version uint64) {
	gone := map[string]bool{}
	for _, id := range ch.Drop {
		gone[id] = true
	}
	for _, r := range ch.Put {
		gone[r.ID] = true
	}
	ended := map[string]ruleRow{}
	for key, r := range rules.All(tx) {
		if r.Until == 0 && gone[r.Rule.ID] {
			ended[key] = r
		}
	}
	for key, r := range ended { // each row by itself: their order does not matter
		r.Until = version
		rules.Put(tx, key, r)
	}
	for _, r := range ch.Put {
		rules.Put(tx, ledger.Order(version)+"."+r.ID, ruleRow{Rule: r, From: version})
	}
}

func withdraw(c *ledger.Context, p NameAmendment) (any, error) {
	a, ok := AmendmentOf(c.Tx, p.Amendment)
	switch {
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Amendment not found")
	case a.Status != Proposed:
		return nil, ledger.Refuse(ledger.Conflict, nil, "The amendment is not open any more: it is %s", a.Status)
	}
	a.Status, a.EndedAt = Withdrawn, core.TimeOf(c.Now)
	put(c.Tx, a)
	record(c, "governance.withdrawn", a, core.Object{})
	return a, nil
}

// Rules are the rules of this room.
var Rules = company.Rules{
	Kinds: slices.Concat(placeKinds, waitingKinds, amendmentKinds, localKinds, permitKinds, filterKinds,
		elevationKinds),
	ProjectDeleted: projectDeleted,
	AgentDeleted:   func(c *ledger.Context, a entity.Agent) { agentDeleted(c, a); elevationsGone(c, a) },
	Reweigh:        reweigh,
	Answered:       answered,
}
