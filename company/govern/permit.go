package govern

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Permit lets one agent do one act: this action with these arguments, until its end. It comes from a command, so
// every node knows it and counts its uses alike. Its ID is that of the approval, where a person has approved it.
type Permit struct {
	ID      string           `cbor:"1,keyasint"`
	Company ledger.CompanyID `cbor:"2,keyasint"`
	Act     governance.Act   `cbor:"3,keyasint"`
	// Arguments is the SHA-256 of the act's arguments, in hex, see [ArgumentsOf]. A command has its payload.
	Arguments string `cbor:"4,keyasint"`
	// Once: the act can not be undone, so the permit holds once.
	Once     bool     `cbor:"5,keyasint,omitempty"`
	Approved bool     `cbor:"6,keyasint,omitempty"` // by a person; else no rule was against it
	Rules    []string `cbor:"7,keyasint,omitempty"` // that a person has overruled
	Version  uint64   `cbor:"8,keyasint"`           // of the constitution that decided
	Decision string   `cbor:"9,keyasint,omitempty"` // that let the act wait
	// of the entry that granted it: a node that is behind does not know it
	Height uint64    `cbor:"10,keyasint"`
	At     core.Time `cbor:"11,keyasint"`
	Until  core.Time `cbor:"12,keyasint"`
	Uses   uint64    `cbor:"13,keyasint,omitempty"` // of a permit that holds once
	UsedAt core.Time `cbor:"14,keyasint,omitempty"`
	UsedBy string    `cbor:"15,keyasint,omitempty"` // node or person
	// EndedAt is when it was revoked, or the act was rejected. A rejection stands until Until: the board is not asked
	// again and again.
	EndedAt  core.Time `cbor:"16,keyasint,omitempty"`
	Rejected bool      `cbor:"17,keyasint,omitempty"`
}

// Clone returns a copy that shares no memory with p.
func (p Permit) Clone() Permit {
	p.Act, p.Rules = Decision{Act: p.Act}.Clone().Act, slices.Clone(p.Rules)
	return p
}

// Status says whether the permit holds at a time: granted, used, expired, revoked or rejected.
func (p Permit) Status(at core.Time) string {
	switch {
	case p.Rejected:
		return "rejected"
	case p.EndedAt > 0:
		return "revoked"
	case p.Once && p.Uses > 0:
		return "used"
	case at >= p.Until:
		return "expired"
	}
	return PermitGranted
}

// covers reports whether the permit holds for what a gate says now: no rule blocks the act that nobody was told of.
func (p Permit) covers(said governance.Decision, at core.Time) bool {
	if p.Status(at) != PermitGranted || said.Verdict == governance.Deny {
		return false
	}
	for _, o := range said.Opinions {
		for _, v := range o.Spoken {
			if v.Verdict == governance.Defer && !slices.Contains(p.Rules, v.Rule) {
				return false
			}
		}
	}
	return true
}

// Rows of a company:
//
//	governance-permit/<id>                      permits
//	governance-permit-for/<hash>                the newest permit of an agent, an action and its arguments
//	governance-permit-end/<ms>/<id>             when they end
//	decision-count/permits                      how many there are
var (
	permits    = ledger.NewTable[string, Permit]("governance-permit")
	permitsFor = ledger.NewTable[string, permitRef]("governance-permit-for")
	permitEnds = ledger.NewIndex[string, string]("governance-permit-end")
)

const permitCount = "permits"

type permitRef struct {
	ID string `cbor:"1,keyasint"`
}

// AskPermit is the payload of governance.permit, which asks the gate about an act that is no command. A node asks for
// an agent when a rule lets the act wait; agents and people ask for a permit that they show elsewhere.
type AskPermit struct {
	ID        string             `cbor:"1,keyasint"` // of the permit
	Agent     string             `cbor:"2,keyasint"`
	Action    string             `cbor:"3,keyasint"`
	Arguments string             `cbor:"4,keyasint"`
	Once      bool               `cbor:"5,keyasint,omitempty"`
	Seconds   uint64             `cbor:"6,keyasint,omitempty"` // how long it holds; 0: [PermitFor]
	Known     governance.Context `cbor:"7,keyasint"`
	Run       string             `cbor:"8,keyasint,omitempty"`
	Detail    string             `cbor:"9,keyasint,omitempty"`  // what people see of the arguments
	Target    string             `cbor:"10,keyasint,omitempty"` // path in the resource tree, "" for that of the company
}

// A PermitAnswer says what became of it: granted, waiting for a person, or denied.
type PermitAnswer struct {
	Status   string             `cbor:"1,keyasint"`
	Permit   string             `cbor:"2,keyasint,omitempty"`
	Approval string             `cbor:"3,keyasint,omitempty"`
	Verdict  governance.Verdict `cbor:"4,keyasint"`
	Voice    Voice              `cbor:"5,keyasint"`
	Reason   string             `cbor:"6,keyasint,omitempty"`
	Decision string             `cbor:"7,keyasint,omitempty"`
	Version  uint64             `cbor:"8,keyasint"`
}

// Values of Status.
const (
	PermitGranted = "granted"
	PermitWaits   = "waiting"
	PermitDenied  = "denied"
)

// UsePermit is the payload of governance.permit_use. One that holds once is used up by it, on all nodes.
type UsePermit struct {
	Permit    string `cbor:"1,keyasint"`
	Agent     string `cbor:"2,keyasint"`
	Action    string `cbor:"3,keyasint"`
	Arguments string `cbor:"4,keyasint"`
}

// EndPermit is the payload of governance.permit_revoke.
type EndPermit struct {
	Permit string `cbor:"1,keyasint"`
}

// Kinds of commands about permits.
const (
	KindPermit       = "governance.permit"
	KindPermitUse    = "governance.permit_use"
	KindPermitRevoke = "governance.permit_revoke"
)

var permitKinds = []company.Kind{
	{Name: KindPermit, From: company.FromBoard | company.FromAgent | company.FromNode, Traits: company.NoWork,
		Weight: company.Weights.Asking, Do: ledger.Typed(askPermit)},
	{Name: KindPermitUse, From: company.FromBoard | company.FromAgent | company.FromNode, Traits: company.NoWork,
		Weight: company.Weights.Asking, Do: ledger.Typed(usePermit)},
	{Name: KindPermitRevoke, From: company.FromBoard, Traits: company.NoWork, Weight: company.Weights.Halting,
		Do: ledger.Typed(revokePermit)},
}

// ArgumentsOf returns the name of arguments: the SHA-256, in hex, of a JSON value without white space and with the
// members of its objects in order, and of anything else as it is. The order and the spaces that a client writes do not
// matter; a number counts as it is written.
func ArgumentsOf(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err == nil && !d.More() {
		if plain, err := json.Marshal(v); err == nil {
			raw = plain
		}
	}
	return nameOf(raw)
}

func nameOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func permitKey(agent, action, arguments string) string {
	sum := sha256.Sum256([]byte(agent + "\x00" + action + "\x00" + arguments))
	return hex.EncodeToString(sum[:16])
}

// PermitOf returns a permit of a company.
func PermitOf(tx *ledger.Tx, of ledger.CompanyID, id string) (Permit, bool) {
	return permits.Get(tx, of, id)
}

// PermitFor returns the newest permit for an act.
func permitFor(tx *ledger.Tx, of ledger.CompanyID, agent, action, arguments string) (Permit, bool) {
	if of == "" || arguments == "" {
		return Permit{}, false
	}
	ref, ok := permitsFor.Get(tx, of, permitKey(agent, action, arguments))
	if !ok {
		return Permit{}, false
	}
	return permits.Get(tx, of, ref.ID)
}

// Permits yields the permits of a company, those that end last first.
func Permits(tx *ledger.Tx, of ledger.CompanyID) iter.Seq[Permit] {
	return func(yield func(Permit) bool) {
		prefix := ledger.Key("c", string(of), "governance-permit-end", "")
		for k := range tx.Scan(prefix, ledger.PrefixEnd(prefix), true) {
			if p, ok := permits.Get(tx, of, string(k[len(k)-36:])); ok && !yield(p) {
				return
			}
		}
	}
}

// grant stores a permit. Those that ended long ago go.
func grant(c *ledger.Context, p Permit) error {
	n, _ := counts.Get(c.Tx, p.Company, permitCount)
	before := p.At - core.Time(PermitKept.Milliseconds())
	prefix := ledger.Key("c", string(p.Company), "governance-permit-end", "")
	var old []Permit
	for k := range c.Scan(prefix, append(prefix[:len(prefix):len(prefix)], ledger.Order(uint64(max(before, 0)))...),
		false) {
		if gone, ok := permits.Get(c.Tx, p.Company, string(k[len(k)-36:])); ok {
			old = append(old, gone)
		}
		if len(old) == permitChunk {
			break
		}
	}
	for _, gone := range old {
		dropPermit(c.Tx, gone)
		n.Count--
	}
	if n.Count >= MaxPermits {
		return ledger.Refuse(ledger.TooMany, nil,
			"The company has %d permits; wait until some have ended, or grant them for a shorter time", n.Count)
	}
	n.Count++
	counts.Put(c.Tx, p.Company, permitCount, n)
	permits.Put(c.Tx, p.Company, p.ID, p)
	permitsFor.Put(c.Tx, p.Company, permitKey(p.Act.Agent, p.Act.Action, p.Arguments), permitRef{p.ID})
	permitEnds.Add(c.Tx, p.Company, ledger.Order(uint64(p.Until)), p.ID)
	return nil
}

func dropPermit(tx *ledger.Tx, p Permit) {
	permits.Delete(tx, p.Company, p.ID)
	permitEnds.Remove(tx, p.Company, ledger.Order(uint64(p.Until)), p.ID)
	key := permitKey(p.Act.Agent, p.Act.Action, p.Arguments)
	if ref, ok := permitsFor.Get(tx, p.Company, key); ok && ref.ID == p.ID {
		permitsFor.Delete(tx, p.Company, key)
	}
}

// check refuses an ask that does not fit.
func (p AskPermit) check(c *ledger.Context) error {
	switch {
	case !core.IsID(p.ID):
		return ledger.Refuse(ledger.Invalid, nil, "id: want a UUID")
	case !core.IsHash(p.Arguments):
		return ledger.Refuse(ledger.Invalid, nil, "arguments: want a SHA-256 in hex")
	case p.Seconds > uint64(MaxPermitFor/time.Second):
		return ledger.Refuse(ledger.Invalid, nil, "ttl_seconds: at most %d", uint64(MaxPermitFor/time.Second))
	case p.Target != "" && governance.CheckPath(p.Target) != nil:
		return ledger.Refuse(ledger.Invalid, nil, "target: %s", governance.CheckPath(p.Target))
	case len(p.Detail) > MaxDetail:
		return ledger.Refuse(ledger.Invalid, nil, "detail: at most %d bytes", MaxDetail)
	case core.IsAgent(c) && p.Agent != c.Cmd.Actor.ID:
		return ledger.Refuse(ledger.Forbidden, nil, "agent_id: an agent asks about its own acts")
	case entity.AgentTable.Look(c.Tx, c.Cmd.Company, p.Agent) == nil:
		return entity.ErrNoAgent()
	case p.Run != "" && entity.RunTable.Look(c.Tx, c.Cmd.Company, p.Run) == nil:
		return ledger.Refuse(ledger.NotFound, nil, "run not found")
	case c.Tx.Has(permits.Key(c.Cmd.Company, p.ID)):
		return ledger.Refuse(ledger.Conflict, nil, "id: there is a permit with it")
	}
	if k, ok := company.KindOf(p.Action); ok && k.Weight.Free == "" {
		return ledger.Refuse(ledger.Invalid, nil,
			"action: %s is a command, which the gate weighs when it is given; a permit is for other acts", p.Action)
	}
	return nil
}

// askPermit weighs an act that is no command, and grants a permit, puts the question to a person, or denies.
func askPermit(c *ledger.Context, p AskPermit) (any, error) {
	if err := p.check(c); err != nil {
		return nil, err
	}
	s, g, err := inForce(c.Tx)
	if err != nil {
		return nil, err
	}
	of, at := c.Cmd.Company, core.TimeOf(c.Now)
	if core.IsAgent(c) || core.IsBoard(c) {
		p.Known.Past = nil // only who carries acts out has counted them
	}
	if core.IsAgent(c) {
		p.Known.Workspace = "" // an agent does not say in its own favour which folder is its own
	}
	act := actOfLocal(c.Tx, s,
		Local{
			Action:  p.Action,
			Agent:   p.Agent,
			Company: of,
			Run:     p.Run,
			At:      c.Now,
			Height:  c.Height,
			Known:   p.Known,
			Target:  p.Target,
		})
	act.Context.Past = p.Known.Past
	if err := act.Check(); err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "%s", err)
	}
	said, beside := decideBeside(c.Tx, s, g.Gate, act, momentOf(c))
	d := decisionOf(c, act, said, s)
	d.Run, d.Actor, d.Kind, d.Beside = p.Run, "agent", "", beside
	if !core.IsAgent(c) && !core.IsBoard(c) {
		d.Node = c.Cmd.Actor.ID
	}
	out := PermitAnswer{Verdict: said.Verdict, Voice: d.strictest(), Reason: said.Reason, Version: s.Version}
	row := Permit{ID: p.ID, Company: of, Act: act, Arguments: p.Arguments, Once: p.Once || act.Context.Irreversible,
		Version: s.Version, Height: c.Height, At: at, Until: at + core.Time(p.lasts().Milliseconds())}
	was, found := permitFor(c.Tx, of, p.Agent, p.Action, p.Arguments)
	if said.Verdict != governance.Defer {
		beside.witness(c, of, said.Verdict)
	}
	switch {
	case said.Verdict == governance.Deny:
		return out.denied(c, d)
	case found && was.Rejected && at < was.Until:
		out.Reason = "A person has rejected it, which stands until " + was.Until.String()
		d.Said.Verdict, out.Verdict = governance.Deny, governance.Deny
		return out.denied(c, d)
	case found && was.Approved && was.covers(said, at):
		out.Status, out.Permit = PermitGranted, was.ID
		recordPermit(c, "governance.permit_asked", was)
		return out, nil
	case said.Verdict == governance.Defer:
		return out.waits(c, d, p, row)
	}
	if err := grant(c, row); err != nil {
		return nil, err
	}
	if said.Verdict != governance.Permit || said.Effect[governance.Risk] >= HighRisk {
		store(c.Tx, d)
		out.Decision = d.ID
	}
	out.Status, out.Permit = PermitGranted, row.ID
	recordPermit(c, "governance.permitted", row)
	return out, nil
}

func (p AskPermit) lasts() time.Duration {
	if p.Seconds == 0 {
		return PermitFor
	}
	return time.Duration(p.Seconds) * time.Second
}

// denied stores a denial and answers it. The command is carried out: it has asked.
func (out PermitAnswer) denied(c *ledger.Context, d Decision) (any, error) {
	out.Status = PermitDenied
	same, ok := sameDenial(c, d)
	if out.Decision = same.ID; !ok && d.Said.Equal(saidAgain(c.Tx, d)) {
		store(c.Tx, d)
	}
	c.Record(ledger.Change{Action: "governance.denied", EntityType: "decision", EntityID: out.Decision,
		Details: core.Object{}.Str("action", d.Act.Action).Null("rule", out.Voice.Rule).Uint("constitution", d.Version).
			Close()})
	return out, nil
}

// saidAgain decides again: what a person has rejected does not follow from the constitution, and is not stored as if.
func saidAgain(tx *ledger.Tx, d Decision) Said {
	s, err := VersionOf(tx, d.Version)
	if err != nil {
		return Said{}
	}
	g, err := GateOf(tx, s)
	if err != nil {
		return Said{}
	}
	return d.Again(g)
}

// waits puts an act before a person.
func (out PermitAnswer) waits(c *ledger.Context, d Decision, p AskPermit, row Permit) (any, error) {
	w := waiting{Decision: d.ID, Actor: ledger.Actor{Type: "agent", ID: p.Agent}, Run: p.Run, Rules: d.blocking(),
		Version: d.Version, Act: &d.Act, Arguments: p.Arguments, Once: row.Once, Lasts: uint64(p.lasts() / time.Second),
		Detail: p.Detail}
	approval, same, err := hold(c, d, w)
	if err != nil {
		return nil, err
	}
	out.Status, out.Approval, out.Decision = PermitWaits, approval, d.ID
	if !same {
		d.Beside.witness(c, d.Company, governance.Defer)
	} else {
		out.Decision = ""
		c.Record(ledger.Change{Action: "governance.permit_asked", EntityType: "approval", EntityID: approval,
			Details: core.Object{}.Str("action", p.Action).Close()})
	}
	return out, nil
}

// usePermit checks that a permit is for an act, and uses up one that holds once.
func usePermit(c *ledger.Context, u UsePermit) (any, error) {
	p, ok := permits.Get(c.Tx, c.Cmd.Company, u.Permit)
	switch at := core.TimeOf(c.Now); {
	case !ok || core.IsAgent(c) && p.Act.Agent != c.Cmd.Actor.ID:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Permit not found")
	case p.Act.Agent != u.Agent || p.Act.Action != u.Action || p.Arguments != u.Arguments:
		return nil, ledger.Refuse(ledger.Forbidden, nil,
			"The permit is for another act: agent, action and arguments have to be those that it was granted for")
	case p.Status(at) != PermitGranted:
		return nil, ledger.Refuse(ledger.Conflict, core.Object{}.Str("code", "permit_"+p.Status(at)).
			Str("status", p.Status(at)).Close(), "The permit is %s: ask for another one", p.Status(at))
	}
	if err := p.stillRight(c.Tx); err != nil {
		return nil, err
	}
	p = p.used(c)
	recordPermit(c, "governance.permit_used", p)
	return p, nil
}

// used returns the permit with one use more.
func (p Permit) used(c *ledger.Context) Permit {
	p.Uses, p.UsedAt, p.UsedBy = p.Uses+1, core.TimeOf(c.Now), c.Cmd.Actor.ID
	permits.Put(c.Tx, p.Company, p.ID, p)
	return p
}

// stillRight asks the constitution in force, where it is another one than the one that granted the permit.
func (p Permit) stillRight(tx *ledger.Tx) error {
	s, err := InForce(tx)
	if err != nil {
		return errUnreadable(err)
	}
	if s.Version == p.Version {
		return nil
	}
	g, err := GateOf(tx, s)
	if err != nil {
		return errUnreadable(err)
	}
	act := p.Act
	act.Scope, act.Context.Approved = ScopeOf(tx, s, p.Company, ""), false
	said := g.Decide(act)
	if said.Verdict == governance.Permit || said.Verdict == governance.Warn || p.covers(said, p.At) {
		return nil
	}
	v := Decision{Said: saidOf(said)}.strictest()
	return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied,
		core.Object{}.Str("code", company.GovernanceDenied).Null("rule", v.Rule).Uint("constitution", s.Version).Close(),
		"The constitution has changed from version %d to %d since the permit was granted. Rule %s: %s", p.Version, s.Version,
		v.Rule, said.Reason)
}

// revokePermit ends a permit at once.
func revokePermit(c *ledger.Context, e EndPermit) (any, error) {
	p, ok := permits.Get(c.Tx, c.Cmd.Company, e.Permit)
	at := core.TimeOf(c.Now)
	switch {
	case !ok:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Permit not found")
	case p.Status(at) != PermitGranted:
		return nil, ledger.Refuse(ledger.Conflict, nil, "The permit is %s already", p.Status(at))
	}
	p.EndedAt = at
	permits.Put(c.Tx, p.Company, p.ID, p)
	recordPermit(c, "governance.permit_revoked", p)
	return p, nil
}

func recordPermit(c *ledger.Context, action string, p Permit) {
	c.Record(ledger.Change{Action: action, EntityType: "governance_permit", EntityID: p.ID,
		Details: core.Object{}.Str("action", p.Act.Action).Str("agentId", p.Act.Agent).Str("arguments", p.Arguments).
			Bool("once", p.Once).Time("until", p.Until).Close()})
}

// permitted grants the permit of an act that a person has approved, or notes that the person has not.
func permitted(c *ledger.Context, approval string, w waiting, d Decision, approved bool) error {
	at := core.TimeOf(c.Now)
	p := Permit{ID: approval, Company: c.Cmd.Company, Act: d.Act, Arguments: w.Arguments, Once: w.Once, Approved: approved,
		Rules: w.Rules, Version: d.Version, Decision: w.Decision, Height: c.Height, At: at,
		Until: at + core.Time(w.Lasts*1000)}
	if !approved {
		p.Rejected, p.EndedAt, p.Rules, p.Act = true, at, nil, *w.Act
		p.Until = at + core.Time(PermitFor.Milliseconds())
	}
	return grant(c, p)
}

// useFor returns the permit of a command that a rule lets wait, and uses it up.
func useFor(c *ledger.Context, of ledger.CompanyID, said governance.Decision) (Permit, bool) {
	p, ok := permitFor(c.Tx, of, c.Cmd.Actor.ID, c.Cmd.Kind, nameOf(c.Cmd.Payload))
	if !ok || !p.covers(said, core.TimeOf(c.Now)) {
		return p, false
	}
	return p.used(c), true
}
