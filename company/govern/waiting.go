package govern

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A waiting row is a command, or an act at a node, that waits for a person. Its key is the ID of the approval.
type waiting struct {
	Decision   string            `cbor:"1,keyasint"`
	Kind       string            `cbor:"2,keyasint"`
	Actor      ledger.Actor      `cbor:"3,keyasint"`
	Credential ledger.Credential `cbor:"4,keyasint"`
	Run        string            `cbor:"5,keyasint,omitempty"`
	Payload    []byte            `cbor:"6,keyasint"`
	Rules      []string          `cbor:"7,keyasint"` // that block it, as people were told
	Version    uint64            `cbor:"8,keyasint"` // of the constitution then
	Due        core.Time         `cbor:"9,keyasint"`
	Same       [32]byte          `cbor:"10,keyasint"` // hash of actor, kind and payload, or of agent, action and arguments
	// Of an act that is no command: a person who approves it grants a permit.
	Act       *governance.Act `cbor:"11,keyasint,omitempty"`
	Arguments string          `cbor:"12,keyasint,omitempty"` // their SHA-256
	Once      bool            `cbor:"13,keyasint,omitempty"`
	Lasts     uint64          `cbor:"14,keyasint,omitempty"` // of the permit, in seconds
	Detail    string          `cbor:"15,keyasint,omitempty"` // what people see of the arguments
}

// Clone returns a copy that shares no memory with w.
func (w waiting) Clone() waiting {
	w.Payload, w.Rules = slices.Clone(w.Payload), slices.Clone(w.Rules)
	if w.Act != nil {
		w.Act = new(Decision{Act: *w.Act}.Clone().Act)
	}
	return w
}

// Rows of a company:
//
//	governance-waiting/<approval>         commands that wait
//	governance-due/<ms>/<approval>        when they are denied
var (
	waitings = ledger.NewTable[string, waiting]("governance-waiting")
	dues     = ledger.NewIndex[string, string]("governance-due")
)

// Lapse is the payload of governance.lapse: commands that waited too long are denied.
type Lapse struct{}

// KindLapse denies the commands that nobody has approved in time.
const KindLapse = "governance.lapse"

var waitingKinds = []company.Kind{
	{Name: KindLapse, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(lapse)},
}

// wait stores a command for a person to approve, and refuses it for now. It calls kept for one that does not wait
// already.
func wait(c *ledger.Context, d Decision, kept func()) error {
	v := d.strictest()
	w := waiting{Decision: d.ID, Kind: c.Cmd.Kind, Actor: c.Cmd.Actor, Credential: c.Cmd.Credential, Run: c.Cmd.Run,
		Payload: c.Cmd.Payload, Rules: d.blocking(), Version: d.Version}
	approval, same, err := hold(c, d, w)
	if no, ok := errors.AsType[*ledger.Refusal](err); ok && no.Code == ledger.TooMany {
		d.Said.Verdict, d.Said.Reason = governance.Deny, no.Message
		return deny(c, d)
	}
	if err != nil {
		return err
	}
	if !same {
		kept()
	} else {
		c.Unenter()
		w, _ = waitings.Get(c.Tx, d.Company, approval)
		return refuseWaiting(w.Decision, approval, v, w.Version, d.Said.Reason)
	}
	c.Defer()
	return refuseWaiting(d.ID, approval, v, d.Version, d.Said.Reason)
}

// hold stores what waits and asks the board about it. Same: it waits already, as that approval.
func hold(c *ledger.Context, d Decision, w waiting) (approval string, same bool, err error) {
	w.Same = w.hash()
	n, acts := 0, 0
	for id, other := range waitings.All(c.Tx, d.Company) {
		if other.Same == w.Same {
			return id, true, nil
		}
		if n++; other.Act != nil && other.Actor == w.Actor {
			acts++
		}
	}
	switch {
	case n >= MaxWaiting:
		return "", false, ledger.Refuse(ledger.TooMany, nil,
			"Too many commands of the company wait for a person already")
	case w.Act != nil && acts >= MaxWaitingActs:
		return "", false, ledger.Refuse(ledger.TooMany, nil, "%d acts of the agent wait for a person already", acts)
	}
	s, err := InForce(c.Tx)
	if err != nil {
		return "", false, errUnreadable(err)
	}
	approval = core.DerivedID("governance-approval", string(d.Company), ledger.Order(c.Height))
	w.Due = d.At + core.Time(placeFor(c.Tx, s, d.Company, "").wait().Milliseconds())
	var issues []string
	if d.Act.Context.Issue != "" && c.Has(entity.IssueTable.Key(d.Company, d.Act.Context.Issue)) {
		issues = []string{d.Act.Context.Issue}
	}
	if err := company.Ask.Ask(c, company.Question{ID: approval, Agent: w.Actor.ID, Payload: w.shown(d),
		Issues: issues}); err != nil {
		return "", false, err
	}
	putWaiting(c.Tx, d.Company, approval, w)
	d.Approval = approval
	store(c.Tx, d)
	c.Record(ledger.Change{Action: "governance.deferred", EntityType: "decision", EntityID: d.ID,
		Details: core.Object{}.Str("action", d.Act.Action).Null("rule", d.strictest().Rule).Str("approvalId", approval).
			Uint("constitution", d.Version).Close()})
	return approval, false, nil
}

// hash is the same for what is asked twice.
func (w waiting) hash() [32]byte {
	if w.Act != nil {
		return sha256.Sum256([]byte("act\x00" + permitKey(w.Actor.ID, w.Act.Action, w.Arguments)))
	}
	return sha256.Sum256(ledger.Marshal(struct {
		Actor   ledger.Actor `cbor:"1,keyasint"`
		Kind    string       `cbor:"2,keyasint"`
		Payload []byte       `cbor:"3,keyasint"`
	}{w.Actor, w.Kind, w.Payload}))
}

// refuseWaiting is the 409 of a command that waits. It says where.
func refuseWaiting(decision, approval string, v Voice, version uint64, reason string) error {
	const code = "approval_required"
	details := core.Object{}.Str("code", code).Str("approvalId", approval).Str("decisionId", decision).
		Null("rule", v.Rule).Null("branch", string(v.Branch)).
		Null("severity", string(v.Severity)).Uint("constitution", version).Close()
	return core.RefuseCode(ledger.Conflict, code, details,
		"By %s: %s. The command waits for the board as approval %s; do not send it again", v.speaker(), reason, approval)
}

// blocking lists the rules that make an act wait.
func (d Decision) blocking() (out []string) {
	for _, v := range d.Said.Voices {
		if v.Verdict == governance.Defer {
			out = append(out, v.Rule)
		}
	}
	return out
}

// shown is what the board sees: who wants to do what, and the rules that block it. A command, and the arguments of an
// act, can have secrets, so their hash stands for them.
func (w waiting) shown(d Decision) []byte {
	action, _ := governance.ActionOf(d.Act.Action)
	if d.Act.Row != nil {
		action = *d.Act.Row
	}
	o := core.Object{}.Str("title", "Approve: "+action.Title).Str("summary", d.Said.Reason).
		Str("action", d.Act.Action).Str("agentId", w.Actor.ID).
		List("rules", w.Rules).Str("reason", d.Said.Reason).Str("decisionId", d.ID).Uint("constitution", d.Version).
		Time("expiresAt", w.Due)
	if w.Act != nil {
		return o.Raw("act", core.Object{}.Str("action", w.Act.Action).Null("detail", w.Detail).Null("runId", w.Run).
			Str("argumentsSha256", w.Arguments).Bool("once", w.Once).Int("permitSeconds", int64(w.Lasts)).Close()).Close()
	}
	return o.Raw("command", core.Object{}.Str("kind", w.Kind).Str("actorType", w.Actor.Type).Str("actorId", w.Actor.ID).
		Null("runId", w.Run).Str("payloadSha256", nameOf(w.Payload)).Int("payloadBytes", int64(len(w.Payload))).Close()).
		Close()
}

func putWaiting(tx *ledger.Tx, of ledger.CompanyID, approval string, w waiting) {
	waitings.Put(tx, of, approval, w)
	dues.Add(tx, of, ledger.Order(uint64(w.Due)), approval)
}

func dropWaiting(tx *ledger.Tx, of ledger.CompanyID, approval string, w waiting) {
	waitings.Delete(tx, of, approval)
	dues.Remove(tx, of, ledger.Order(uint64(w.Due)), approval)
}

// command returns the command as it was given. Once its run is over it has none.
func (w waiting) command(tx *ledger.Tx, of ledger.CompanyID) (cmd ledger.Command, live bool) {
	cmd = ledger.Command{Kind: w.Kind, Company: of, Actor: w.Actor, Credential: w.Credential, Run: w.Run,
		Payload: w.Payload}
	return cmd, w.Run == "" || entity.RunAlive(tx, of, w.Run, w.Actor.ID)
}

// decideAgain weighs what waits under the constitution in force.
func decideAgain(c *ledger.Context, w waiting, approved bool) (Decision, error) {
	kind, ok := company.KindOf(w.Kind)
	s, g, err := inForce(c.Tx)
	if err != nil {
		return Decision{}, err
	}
	if !ok && w.Act == nil {
		return Decision{}, errUnreadable(fmt.Errorf("there is no command %s", w.Kind))
	}
	when := momentOf(c)
	when.person = w.Actor.Type == "user"
	if w.Act != nil {
		known := w.Act.Context
		act := actOfLocal(c.Tx, s, Local{Action: w.Act.Action, Agent: w.Actor.ID, Company: c.Cmd.Company, Run: w.Run,
			At: c.Now, Height: c.Height, Known: known, Target: w.Act.Target})
		act.Context.Approved, act.Context.Past = approved, known.Past
		said, beside := decideBeside(c.Tx, s, g.Gate, act, when)
		d := decisionOf(c, act, said, s)
		d.Run, d.Actor, d.Beside = w.Run, w.Actor.Type, beside
		return d, nil
	}
	cmd, _ := w.command(c.Tx, c.Cmd.Company)
	act := actOf(c.Tx, &cmd, kind, s, true, when)
	act.Context.Approved = approved
	if g.of(kind).past {
		act.Context.Past = counted(c.Tx, act.Company, w.Actor, act.Action).Past(core.TimeOf(c.Now))
	}
	said, beside := decideBeside(c.Tx, s, g.of(kind).gate, act, when)
	d := decisionOf(c, act, said, s)
	d.Kind, d.Run, d.Actor, d.Beside = kind.Name, w.Run, w.Actor.Type, beside
	return d, nil
}

// reweigh asks the constitution in force about a command before a person approves it. A rule that people were not told
// of blocks it again, and then they know.
func reweigh(c *ledger.Context, approval string) error {
	w, ok := waitings.Get(c.Tx, c.Cmd.Company, approval)
	if !ok || core.TimeOf(c.Now) >= w.Due {
		return ledger.Refuse(ledger.Conflict, nil, "The command does not wait any more: nobody has approved it in time")
	}
	d, err := decideAgain(c, w, false)
	if err != nil {
		return err
	}
	since := ""
	if d.Version != w.Version {
		since = "The constitution has changed from version " + strconv.FormatUint(w.Version, 10) + " to " +
			strconv.FormatUint(d.Version, 10) + " since the command was given. "
	}
	v := d.strictest()
	if d.Said.Verdict == governance.Deny {
		return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied,
			core.Object{}.Str("code", company.GovernanceDenied).Str("reason", string(company.DeniedRule)).
				Null("rule", v.Rule).Uint("constitution", d.Version).Close(), "%sRule %s denies it: %s", since, v.Rule,
			d.Said.Reason)
	}
	var fresh []string
	for _, rule := range d.blocking() {
		if !slices.Contains(w.Rules, rule) {
			fresh = append(fresh, rule)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	w.Rules, w.Version = d.blocking(), d.Version
	waitings.Put(c.Tx, c.Cmd.Company, approval, w)
	return ledger.Refuse(ledger.Conflict, core.Object{}.List("rules", fresh).Uint("constitution", d.Version).Close(),
		"%sRule %s blocks it as well: %s. Approve again if it should happen all the same", since, fresh[0], d.Said.Reason)
}

// answered carries out a command that was approved, or forgets it.
func answered(c *ledger.Context, approval string, approved bool) error {
	of := c.Cmd.Company
	w, ok := waitings.Get(c.Tx, of, approval)
	if !ok {
		if !approved {
			return nil
		}
		return ledger.Refuse(ledger.Conflict, nil, "The command does not wait any more")
	}
	dropWaiting(c.Tx, of, approval, w)
	if !approved {
		answer(c.Tx, of, w.Decision, "rejected")
		answeredOf(c.Tx, of, w.Decision, false)
		if w.Act != nil {
			return permitted(c, approval, w, Decision{Version: w.Version}, false)
		}
		return nil
	}
	a := entity.AgentTable.Look(c.Tx, of, w.Actor.ID)
	if a == nil || a.Status == entity.AgentTerminated {
		return ledger.Refuse(ledger.Conflict, nil, "The agent that gave the command is not there any more")
	}
	d, err := decideAgain(c, w, true)
	if err != nil {
		return err
	}
	d.Approval, d.Answer = approval, "approved"
	store(c.Tx, d)
	answer(c.Tx, of, w.Decision, "approved")
	answeredOf(c.Tx, of, w.Decision, true)
	d.Beside.receipt(c, of, d.Said.Verdict)
	if w.Act != nil {
		return permitted(c, approval, w, d, true)
	}
	kind, _ := company.KindOf(w.Kind)
	if kind.Has(company.ByGiver) { // carrying it out here would do nothing: it is given again, with the permit
		w.Arguments, w.Once, w.Lasts = nameOf(w.Payload), true, uint64(PermitFor.Seconds())
		return permitted(c, approval, w, d, true)
	}
	if d.Act.Context.Past != nil {
		count(c, w.Actor, d.Act, d.Said.Verdict, d.Said.Effect)
	}
	cmd, live := w.command(c.Tx, of)
	if !live {
		cmd.Run = ""
	}
	quiet := c.Quiet
	c.Quiet = quiet || !live // what asks for a living run was checked when the command was given
	_, err = ledger.Mux{w.Kind: kind.Do}.Do(c, &cmd)
	c.Quiet = quiet
	return err
}

func answer(tx *ledger.Tx, of ledger.CompanyID, id, said string) {
	if d, ok := DecisionOf(tx, of, id); ok {
		d.Answer = said
		update(tx, d)
	}
}

// Lapsing returns the approvals of commands that waited too long, at most limit.
func Lapsing(tx *ledger.Tx, of ledger.CompanyID, at core.Time, limit int) (out []string) {
	prefix := ledger.Key("c", string(of), "governance-due", "")
	for k := range tx.Scan(prefix, append(prefix[:len(prefix):len(prefix)], ledger.Order(uint64(at)+1)...), false) {
		if len(out) == limit {
			break
		}
		out = append(out, string(k[len(k)-36:]))
	}
	return out
}

func lapse(c *ledger.Context, _ Lapse) (any, error) {
	of, n, first := c.Cmd.Company, int64(0), ""
	for _, id := range Lapsing(c.Tx, of, core.TimeOf(c.Now), lapseChunk) {
		w, ok := waitings.Get(c.Tx, of, id)
		if !ok {
			continue
		}
		dropWaiting(c.Tx, of, id, w)
		company.Ask.Lapse(c, id, "Nobody has approved it in time, so it is denied")
		answer(c.Tx, of, w.Decision, "lapsed")
		answeredOf(c.Tx, of, w.Decision, false)
		if n++; first == "" {
			first = w.Decision
		}
	}
	if n == 0 {
		return nil, ledger.Refuse(ledger.Conflict, nil, "no command has waited too long")
	}
	c.Record(ledger.Change{Action: "governance.lapsed", EntityType: "decision", EntityID: first,
		Details: core.Object{}.Int("count", n).Close()})
	return nil, nil
}
