package govern

import (
	"slices"
	"strconv"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Local is an act at a node: the use of a tool, a call of a model, a request to the network, a message. It is no
// command, so the node weighs it.
type Local struct {
	Counter *Counter           // of the node, for rules about rates and sums; nil: the act is the first
	At      time.Time          // when it is, for the counter
	Action  string             // a row of governance.Actions, such as network.egress
	Target  string             // path in the resource tree, "" for that of the company
	Agent   string             // ID
	Company ledger.CompanyID   // of the agent
	Run     string             // under which it acts, "" for none
	Known   governance.Context // what is known of the act; clearances and approval come from the state
	// Board: the mesh does what the board has set up, such as the start of a declared process. It has the board's
	// rank, and nobody has approved this very act.
	Board bool
	// Arguments is the SHA-256 of the act's arguments, in hex: a person who is asked permits the act with these, and no
	// other. Without one nobody can be asked. Detail is what the person sees of them: at most [MaxDetail] bytes, no
	// secrets.
	Arguments, Detail string
	// Once: the act changes something outside the mesh, so that a permit for it holds once.
	Once bool
	// Adrift: the node has lost its lease. It may not know what was revoked, so no permit and no elevation helps it.
	Adrift bool
	// Height is that of the newest entry that is weighed with; a node leaves it to [Judge].
	Height uint64
}

// A Judgement is what a node knows of an act after it has weighed it.
type Judgement struct {
	Decision Decision
	Worthy   bool    // the decision is to be recorded, by a [Record] command of the node
	Refusal  error   // nil: the act may happen, with the permit if there is one
	Permit   *Permit // that lets the act happen which a rule would let wait
	Ask      bool    // a person can be asked, by a [KindPermit] command of the node
}

// WeighLocal weighs an act at a node with the constitution that the node has. The act may happen when the error is nil;
// otherwise it is the refusal, with the rule and its reason. Worthy reports that the decision is to be recorded, by a
// [Record] command of the node.
func WeighLocal(tx *ledger.Tx, l Local) (d Decision, worthy bool, refusal error) {
	j := Judge(tx, l)
	return j.Decision, j.Worthy, j.Refusal
}

// Judge weighs an act at a node with the constitution and the permits that the node has.
func Judge(tx *ledger.Tx, l Local) (j Judgement) {
	s, g, err := inForce(tx)
	if err != nil {
		return Judgement{Refusal: err}
	}
	s.Policies = policed(tx, s, l.Company)
	var beside *Beside
	if s.Elevations && l.Height == 0 {
		l.Height = tx.Position().Height
	}
	when := l.moment()
	decide := func(act governance.Act) (said governance.Decision) {
		said, beside = decideBeside(tx, s, g.Gate, act, when)
		if said.Verdict != governance.Defer || l.Adrift {
			return said
		}
		p, ok := permitFor(tx, l.Company, l.Agent, l.Action, l.Arguments)
		if !ok || !p.covers(said, core.TimeOf(l.At)) {
			return said
		}
		act.Context.Approved = true
		j.Permit = &p
		said, beside = decideBeside(tx, s, g.Gate, act, when)
		return said
	}
	act := actOfLocal(tx, s, l)
	var said governance.Decision
	if act.Context.Past = nil; l.Counter != nil && g.past {
		act, said = l.Counter.weigh(act, core.TimeOf(l.At), decide)
	} else {
		said = decide(act)
	}
	j.Decision = Decision{Company: l.Company, Version: s.Version, Said: saidOf(said), Run: l.Run, Count: 1, Actor: "agent",
		Beside: beside}
	if j.Permit != nil {
		act.Context.Approved, j.Decision.Approval = true, j.Permit.ID
	}
	j.Decision.Act = act
	j.Worthy = said.Verdict != governance.Permit || said.Effect[governance.Risk] >= HighRisk
	if said.Verdict == governance.Permit || said.Verdict == governance.Warn {
		return j
	}
	v := j.Decision.strictest()
	j.Ask = said.Verdict == governance.Defer && l.Company != "" && l.Agent != "" && l.Arguments != "" && !l.Adrift
	j.Refusal = refuseLocal(v, said.Verdict, s.Version, said.Reason, "")
	return j
}

// refuseLocal is the 403 of an act at a node. One that waits as an approval says so.
func refuseLocal(v Voice, verdict governance.Verdict, version uint64, reason, approval string) error {
	details := core.Object{}.Str("code", company.GovernanceDenied).Str("reason", string(company.DeniedRule)).
		Null("rule", v.Rule).Null("branch", string(v.Branch)).Null("severity", string(v.Severity)).
		Str("decision", verdict.String()).Null("approvalId", approval).Uint("constitution", version).Close()
	switch {
	case approval != "":
		return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied, details,
			"By %s: %s. It waits for the board as approval %s; do it again, with the same arguments, "+
				"once that is approved", v.speaker(), reason, approval)
	case verdict == governance.Defer:
		return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied, details,
			"By %s: %s. A person would have to approve it, and nobody can be asked here, so it is denied",
			v.speaker(), reason)
	case v.Rule == "":
		return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied, details, "Denied: %s", reason)
	}
	return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied, details,
		"Denied by %s: %s. %s", v.speaker(), reason, v.next())
}

// next says what an agent can do whose act is denied.
func (v Voice) next() string {
	if v.Branch == governance.Accessing {
		return "A person who may change this path can grant it: selvage tree grant"
	}
	return "Do something else, or ask a person: selvage govern decisions shows them why"
}

// Refusal is what a node tells an agent whose act was put before a person, or was denied after all; nil: it is granted.
func (a PermitAnswer) Refusal() error {
	if a.Status == PermitGranted {
		return nil
	}
	return refuseLocal(a.Voice, a.Verdict, a.Version, a.Reason, a.Approval)
}

// actOfLocal takes from the state who acts and where.
func actOfLocal(tx *ledger.Tx, s Constitution, l Local) governance.Act {
	act := governance.Act{Action: l.Action, Agent: l.Agent, Company: l.Company, Rank: governance.Worker, Context: l.Known}
	act.Context.Approved, act.Context.Clearances, act.Context.Approvers = false, []string{"record"}, nil
	if k, ok := company.KindOf(l.Action); ok { // what commands do too has one weight
		row := k.Action()
		act.Row = &row
	}
	if l.Board {
		act.Rank = governance.Board
	}
	project := ""
	if a := entity.AgentTable.Look(tx, l.Company, l.Agent); l.Company != "" && a != nil {
		act.Role, act.Rank = a.Role, RankOf(tx, l.Company, l.Agent, true)
		act.Context.Clearances = append(act.Context.Clearances, clearancesOf(*a)...)
		if !l.Adrift && !l.At.IsZero() { // in force until revoked: a node without a lease may not know of that
			act.Context.Clearances = append(act.Context.Clearances,
				clearedFor(tx, s, l.Company, l.Agent, l.moment())...)
		}
	} else if l.Company != "" && l.Agent != "" { // somebody whom the company does not have
		act.Rank = governance.Nobody
	}
	if r := entity.RunTable.Look(tx, l.Company, l.Run); l.Run != "" && r != nil {
		act.Context.Issue, project = r.Context.IssueID, r.Context.ProjectID
	}
	if s.Policies {
		act.Target = l.Target
	}
	act.Scope = ScopeOf(tx, s, l.Company, project)
	return act
}

func (l Local) moment() moment {
	when := moment{height: l.Height, adrift: l.Adrift}
	if !l.At.IsZero() {
		when.at = core.TimeOf(l.At)
	}
	return when
}

// Record is the payload of governance.record: decisions of one company that a node has made.
type Record struct {
	Decisions []Decision `cbor:"1,keyasint"`
}

// KindRecord stores decisions about acts at a node.
const KindRecord = "governance.record"

var localKinds = []company.Kind{
	{Name: KindRecord, From: company.FromNode, Traits: company.NoWork, Weight: company.Weights.ByNodes,
		Do: ledger.Typed(recordLocal)},
}

// ofCompany refuses a decision that names rows of another company.
func (d Decision) ofCompany(tx *ledger.Tx) error {
	issue := d.Act.Context.Issue
	switch {
	case d.Act.Agent == "" && d.Run == "" && issue == "": // the board's own act
	case d.Beside != nil && d.Beside.Filters != nil && d.Beside.Filters.Agent != d.Act.Agent:
		return ledger.Refuse(ledger.Unprocessable, nil, "decisions: the filters were asked about another agent")
	case d.Beside != nil && d.Beside.Access != nil && !slices.Contains(d.Beside.Access.Subjects, "agent:"+d.Act.Agent):
		return ledger.Refuse(ledger.Unprocessable, nil, "decisions: the access policy was asked about another agent")
	case entity.AgentTable.Look(tx, d.Company, d.Act.Agent) == nil:
		return entity.ErrNoAgent()
	case d.Run != "" && entity.RunTable.Look(tx, d.Company, d.Run) == nil:
		return ledger.Refuse(ledger.NotFound, nil, "decisions: run not found")
	case issue != "" && !tx.Has(entity.IssueTable.Key(d.Company, issue)):
		return company.ErrNoIssue()
	}
	return nil
}

// recordLocal stores what a node has decided, if the version that it names says the same.
func recordLocal(c *ledger.Context, p Record) (any, error) {
	if len(p.Decisions) == 0 || len(p.Decisions) > MaxRecorded {
		return nil, ledger.Refuse(ledger.Invalid, nil, "decisions: 1 to %d are recorded at once", MaxRecorded)
	}
	fresh, first := int64(0), ""
	for n, d := range p.Decisions {
		s, err := VersionOf(c.Tx, d.Version)
		if err != nil {
			return nil, err
		}
		g, err := GateOf(c.Tx, s)
		if err != nil {
			return nil, errUnreadable(err)
		}
		d.Kind, d.Company, d.Act.Company = "", c.Cmd.Company, c.Cmd.Company
		if err := d.ofCompany(c.Tx); err != nil {
			return nil, err
		}
		if d.Act.Context.Approved {
			p, ok := permits.Get(c.Tx, c.Cmd.Company, d.Approval)
			if !ok || !p.Approved || p.Act.Agent != d.Act.Agent || p.Act.Action != d.Act.Action {
				return nil, ledger.Refuse(ledger.Unprocessable, nil, "decisions: number %d has no permit that approves it", n)
			}
		} else {
			d.Approval = ""
		}
		if !d.Again(g).Equal(d.Said) {
			return nil, ledger.Refuse(ledger.Unprocessable, nil,
				"decisions: number %d does not follow from version %d of the constitution", n, d.Version)
		}
		d.ID, d.Height, d.At, d.Node = strconv.FormatUint(c.Height, 10), c.Height, core.TimeOf(c.Now), c.Cmd.Actor.ID
		d.Count = min(max(d.Count, 1), maxCount)
		if n > 0 {
			d.ID += "-" + strconv.Itoa(n)
		}
		d.LastAt, d.Answer = d.At, ""
		d.Beside.judged(g.Decide(d.Act)).witness(c, d.Company, d.Said.Verdict)
		if _, ok := sameDenial(c, d); ok {
			continue
		}
		store(c.Tx, d)
		if fresh++; first == "" {
			first = d.ID
		}
	}
	c.Record(ledger.Change{Action: "governance.recorded", EntityType: "decision", EntityID: first,
		Details: core.Object{}.Int("decisions", int64(len(p.Decisions))).Int("new", fresh).Close()})
	return nil, nil
}
