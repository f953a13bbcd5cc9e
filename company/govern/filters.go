package govern

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/governance/filters"
	"github.com/selvage-mesh/selvage/ledger"
)

// Filters is what a company has chosen of the second backend.
type Filters struct {
	On     bool           `cbor:"1,keyasint"`
	Limits filters.Limits `cbor:"2,keyasint"`
	At     core.Time      `cbor:"3,keyasint"`
}

// SetFilters is the payload of governance.filters. What is nil stays as it is.
type SetFilters struct {
	On       *bool             `cbor:"1,keyasint,omitempty"`
	MinCut   *governance.Level `cbor:"2,keyasint,omitempty"`
	MaxShift *governance.Level `cbor:"3,keyasint,omitempty"`
	Permit   *int64            `cbor:"4,keyasint,omitempty"`
	Deny     *int64            `cbor:"5,keyasint,omitempty"`
	Floor    *governance.Level `cbor:"6,keyasint,omitempty"`
}

// ForgetPast is the payload of governance.forget_past: the filters begin anew with an agent.
type ForgetPast struct {
	Agent string `cbor:"1,keyasint"`
}

// The kinds of the second backend.
const (
	KindFilters    = "governance.filters"
	KindForgetPast = "governance.forget_past"
)

// Rows of a company:
//
//	governance-filters/company       what it has chosen
//	governance-profile/<agent>       what is kept of an agent
//	governance-receipt/<sequence>    the last MaxReceipts receipts
//	governance-receipts/company      the end of the chain of receipts
var (
	filterRows  = ledger.NewTable[string, Filters]("governance-filters")
	profiles    = ledger.NewTable[string, filters.Profile]("governance-profile")
	receipts    = ledger.NewTable[string, filters.Receipt]("governance-receipt")
	receiptEnds = ledger.NewTable[string, receiptEnd]("governance-receipts")
)

type receiptEnd struct {
	Sequence uint64 `cbor:"1,keyasint"`
	Hash     []byte `cbor:"2,keyasint"`
}

// Clone returns a copy that shares no memory with e.
func (e receiptEnd) Clone() receiptEnd {
	e.Hash = slices.Clone(e.Hash)
	return e
}

// FiltersOf returns what a company has chosen; what it has not chosen is off, with the default limits.
func FiltersOf(tx *ledger.Tx, of ledger.CompanyID) Filters {
	if f, ok := filterRows.Get(tx, of, ofCompany); ok {
		return f
	}
	return Filters{Limits: filters.Default()}
}

// ProfileOf returns what the filters keep of an agent.
func ProfileOf(tx *ledger.Tx, of ledger.CompanyID, agent string) filters.Profile {
	p, _ := profiles.Get(tx, of, agent)
	return p
}

// A Beside is what was asked about an act beside the rules, with everything that was read.
type Beside struct {
	Filters *filters.Question `cbor:"1,keyasint,omitempty"`
	Access  *Access           `cbor:"2,keyasint,omitempty"`

	rules    governance.Verdict // what the rules say
	findings []filters.Finding  // of Filters, nil where it was read from a store
}

// clone returns a copy that shares no memory with b.
func (b *Beside) clone() *Beside {
	if b == nil {
		return nil
	}
	out := *b
	if out.Filters != nil {
		out.Filters, out.findings = new(out.Filters.Clone()), slices.Clone(b.findings)
	}
	if out.Access != nil {
		q := *out.Access
		q.Subjects, q.Grants, q.Also = slices.Clone(q.Subjects), slices.Clone(q.Grants), slices.Clone(q.Also)
		out.Access = &q
	}
	return &out
}

// Hear returns what a gate decides with what is said beside it.
func (b *Beside) Hear(d governance.Decision) governance.Decision {
	if b == nil {
		return d
	}
	if b.Filters != nil {
		d = b.Filters.Hear(d, b.Findings())
	}
	if b.Access != nil {
		d = b.Access.hear(d)
	}
	return d
}

// Findings returns what the filters measure, nil where they are not asked.
func (b *Beside) Findings() []filters.Finding {
	switch {
	case b == nil || b.Filters == nil:
		return nil
	case b.findings != nil:
		return b.findings
	}
	return filters.Decide(*b.Filters)
}

// BesideOf returns what is asked about an act at a time beside the rules, nil for nothing. The agent "user:ID" is a
// person.
func BesideOf(tx *ledger.Tx, s Constitution, act governance.Act, said governance.Decision, at core.Time) *Beside {
	when := moment{at: at}
	if act.Agent, when.person = strings.CutPrefix(act.Agent, aPerson); when.person {
		act.Company = ""
	}
	return besideOf(tx, s, act, said, when)
}

func besideOf(tx *ledger.Tx, s Constitution, act governance.Act, said governance.Decision, when moment) *Beside {
	q, access := questionOf(tx, s, act, said), accessOf(tx, s, act, said.Action.Class, when)
	if q == nil && access == nil {
		return nil
	}
	b := &Beside{Filters: q, Access: access, rules: said.Verdict}
	if q != nil {
		b.findings = filters.Decide(*q)
	}
	return b
}

// decideBeside decides an act by a gate, and by what is asked beside it.
func decideBeside(tx *ledger.Tx, s Constitution, g *governance.Gate, act governance.Act,
	when moment) (governance.Decision,
	*Beside) {
	said := g.Decide(act)
	b := besideOf(tx, s, act, said, when)
	return b.Hear(said), b
}

// judged returns b with what the rules say.
func (b *Beside) judged(said governance.Decision) *Beside {
	if b != nil {
		b.rules = said.Verdict
	}
	return b
}

// questionOf returns what the filters are asked about an act, nil where they are not chosen.
func questionOf(tx *ledger.Tx, s Constitution, act governance.Act, said governance.Decision) *filters.Question {
	if !s.Filters || act.Company == "" || act.Agent == "" {
		return nil
	}
	f := filterRows.Look(tx, act.Company, ofCompany)
	if f == nil || !f.On || entity.AgentTable.Look(tx, act.Company, act.Agent) == nil {
		return nil
	}
	q := &filters.Question{Agent: act.Agent, Action: act.Action, Class: said.Action.Class,
		Magnitude: said.Effect.Magnitude(), Profile: ProfileOf(tx, act.Company, act.Agent), Limits: f.Limits,
		Asks: governance.Lifted(act)}
	if q.Asked() {
		q.Edges = authority(tx, act.Company, act.Agent, act.Context.Issue)
	}
	return q
}

const (
	// working, halted and given are how much authority a line carries: from a manager who works, from one who is paused
	// or in error, and by an issue that somebody has given.
	working, halted, given = 1_000, 400, 500
	// maxAbove bounds the agents of one graph: the longest chain of managers, and who gave the issue with its own chain.
	maxAbove = filters.MaxEdges / 2
)

// carries is the share of authority that an agent hands on.
func carries(a entity.Agent) governance.Level {
	switch a.Status {
	case entity.AgentPendingApproval, entity.AgentTerminated:
		return 0
	case entity.AgentPaused, entity.AgentError:
		return halted
	}
	return working
}

// authority returns the graph by which authority comes from the board to an agent: its managers, who gave the issue
// that it works on, and their managers. An agent without a manager is led by the board.
func authority(tx *ledger.Tx, of ledger.CompanyID, agent, issue string) (edges []filters.Edge) {
	above := []string{agent}
	leads := func(from, to, why string, most governance.Level) {
		share := governance.Level(working)
		if from != filters.Board {
			a := entity.AgentTable.Look(tx, of, from)
			if a == nil {
				return
			}
			if share = carries(*a); !slices.Contains(above, from) {
				above = append(above, from)
			}
		}
		edges = append(edges, filters.Edge{From: from, To: to, Capacity: most * share / working, Why: why})
	}
	if i := entity.IssueTable.Look(tx, of, issue); issue != "" && i != nil {
		switch {
		case i.CreatedAgent != "" && i.CreatedAgent != agent:
			leads(i.CreatedAgent, agent, "gave the issue", given)
		case i.CreatedAgent == "" && i.CreatedUser != "":
			leads(filters.Board, agent, "gave the issue", given)
		}
	}
	for n := 0; n < len(above) && n < maxAbove; n++ {
		a := entity.AgentTable.Look(tx, of, above[n])
		if a == nil {
			continue
		}
		leads(cmp.Or(string(a.ReportsTo), filters.Board), a.ID, "manages", working)
	}
	return edges
}

// outcomeOf returns what a decision says about who acts. What only the filters refuse is no evidence against it.
func outcomeOf(rules, decided governance.Verdict) filters.Outcome {
	switch {
	case rules == governance.Deny:
		return filters.Refused
	case decided == governance.Permit:
		return filters.Done
	case decided == governance.Warn:
		return filters.Warned
	}
	return filters.Waits
}

// witness keeps that an act was decided: in the profile of who acts, and as a receipt where the filters were asked.
func (b *Beside) witness(c *ledger.Context, of ledger.CompanyID, decided governance.Verdict) {
	if b == nil || b.Filters == nil {
		return
	}
	q := b.Filters
	profiles.Put(c.Tx, of, q.Agent, ProfileOf(c.Tx, of, q.Agent).With(q.Bin(), outcomeOf(b.rules, decided)))
	b.receipt(c, of, decided)
}

// receipt adds a receipt to the company's chain; the oldest goes when there are too many.
func (b *Beside) receipt(c *ledger.Context, of ledger.CompanyID, decided governance.Verdict) {
	if b == nil || b.Filters == nil || !b.Filters.Asked() {
		return
	}
	end, _ := receiptEnds.Get(c.Tx, of, ofCompany)
	end.Sequence++
	r := filters.Seal(filters.Witness{Sequence: end.Sequence, Before: end.Hash, Company: of, Height: c.Height,
		At: int64(core.TimeOf(c.Now)), Question: *b.Filters, Findings: b.Findings(), Rules: b.rules, Decided: decided})
	receipts.Put(c.Tx, of, ledger.Order(end.Sequence), r)
	if end.Sequence > MaxReceipts {
		receipts.Delete(c.Tx, of, ledger.Order(end.Sequence-MaxReceipts))
	}
	end.Hash = r.Hash
	receiptEnds.Put(c.Tx, of, ofCompany, end)
}

// answeredOf keeps a person's answer about an act that waited.
func answeredOf(tx *ledger.Tx, of ledger.CompanyID, decision string, approved bool) {
	d, ok := DecisionOf(tx, of, decision)
	if !ok || d.Beside == nil || d.Beside.Filters == nil {
		return
	}
	if q := d.Beside.Filters; tx.Has(profiles.Key(of, q.Agent)) {
		profiles.Put(tx, of, q.Agent, ProfileOf(tx, of, q.Agent).Answered(q.Bin(), approved))
	}
}

// Receipts returns receipts of a company from a sequence on, or from the oldest that is kept, at most limit. First is
// the sequence of the first one, newest that of the newest.
func Receipts(tx *ledger.Tx, of ledger.CompanyID, from uint64,
	limit int) (first uint64, out []filters.Receipt, newest uint64) {
	end, _ := receiptEnds.Get(tx, of, ofCompany)
	first = max(from, 1)
	if end.Sequence > MaxReceipts {
		first = max(first, end.Sequence-MaxReceipts+1)
	}
	for n := first; n <= end.Sequence && len(out) < limit; n++ {
		r, _ := receipts.Get(tx, of, ledger.Order(n)) // a missing one does not open
		out = append(out, r)
	}
	return first, out, end.Sequence
}

// A Fault is a receipt that is not right.
type Fault struct {
	Company  ledger.CompanyID
	Sequence uint64
	Wrong    string
}

// ReplayReceipts opens receipts of a company from a sequence on, at most limit, decides each again, and checks that
// they are one chain. It returns how many there are, and what is wrong.
func ReplayReceipts(tx *ledger.Tx, of ledger.CompanyID, from uint64, limit int) (n int, wrong []Fault) {
	first, list, newest := Receipts(tx, of, from, limit)
	for i, r := range list {
		fault := Fault{Company: of, Sequence: first + uint64(i)}
		w, err := r.Open()
		switch {
		case err != nil:
			fault.Wrong = err.Error()
		case w.Sequence != fault.Sequence || w.Company != of:
			fault.Wrong = "it belongs elsewhere"
		case i > 0 && !slices.Equal(w.Before, list[i-1].Hash):
			fault.Wrong = "it does not follow the receipt before it"
		default:
			fault.Wrong = w.Again()
		}
		if fault.Wrong != "" {
			wrong = append(wrong, fault)
		}
	}
	end, _ := receiptEnds.Get(tx, of, ofCompany)
	if n = len(list); n > 0 && first+uint64(n) == newest+1 && !slices.Equal(list[n-1].Hash, end.Hash) {
		wrong = append(wrong, Fault{of, newest, "the chain ends with another receipt"})
	}
	return n, wrong
}

func setFilters(c *ledger.Context, p SetFilters) (any, error) {
	of := c.Cmd.Company
	s, err := InForce(c.Tx)
	if err != nil {
		return nil, errUnreadable(err)
	}
	f := FiltersOf(c.Tx, of)
	core.Assign(&f.On, p.On)
	core.Assign(&f.Limits.MinCut, p.MinCut)
	core.Assign(&f.Limits.MaxShift, p.MaxShift)
	core.Assign(&f.Limits.Permit, p.Permit)
	core.Assign(&f.Limits.Deny, p.Deny)
	core.Assign(&f.Limits.Floor, p.Floor)
	if err := f.Limits.Check(); err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "%s", err)
	}
	f.At = core.TimeOf(c.Now)
	filterRows.Put(c.Tx, of, ofCompany, f)
	if f.On && !s.Filters {
		s.Filters = true
		constitutions.Put(c.Tx, now, s)
	}
	c.Record(ledger.Change{Action: "governance.filters_set", EntityType: "company", EntityID: string(of),
		Details: core.Object{}.Bool("on", f.On).Close()})
	return f, nil
}

func forgetPast(c *ledger.Context, p ForgetPast) (any, error) {
	of := c.Cmd.Company
	if entity.AgentTable.Look(c.Tx, of, p.Agent) == nil {
		return nil, entity.ErrNoAgent()
	}
	if !c.Tx.Has(profiles.Key(of, p.Agent)) {
		return nil, ledger.Refuse(ledger.Conflict, nil, "agentId: the filters keep nothing of the agent")
	}
	profiles.Delete(c.Tx, of, p.Agent)
	c.Record(ledger.Change{Action: "governance.past_forgotten", EntityType: "agent", EntityID: p.Agent})
	return nil, nil
}

var filterKinds = []company.Kind{
	{Name: KindFilters, From: company.FromBoard, Traits: company.LeadersOnly | company.NoWork,
		Weight: company.Weights.SetUp, Do: ledger.Typed(setFilters)},
	{Name: KindForgetPast, From: company.FromBoard, Traits: company.LeadersOnly | company.NoWork,
		Weight: company.Weights.SetUp, Do: ledger.Typed(forgetPast)},
}
