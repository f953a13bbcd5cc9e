package govern

import (
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// HighRisk is the risk from which also permits are stored.
const HighRisk governance.Level = 500

// Weigh is the gate of commands. The ledger calls it for every command, between Authorize and the handler, on every
// node. It refuses what a rule denies, and what now waits for a person; where the constitution can not be read, it
// refuses everything that it weighs.
func Weigh(c *ledger.Context) error {
	kind, ok := company.KindOf(c.Cmd.Kind)
	if !ok || kind.Weight.Free != "" || !core.IsAgent(c) && !core.IsBoard(c) {
		return nil
	}
	s, g, err := inForce(c.Tx)
	if err != nil {
		return err
	}
	of := g.of(kind)
	s.Policies = s.Policies && policed(c.Tx, s, ofActor(c.Tx, c.Cmd))
	if of.gate.Len() == 0 && !of.high && !s.beside() && !s.Policies {
		return nil
	}
	when := momentOf(c)
	when.person = core.IsBoard(c)
	act := actOf(c.Tx, c.Cmd, kind, s, of.rank, when)
	if of.past {
		act.Context.Past = counted(c.Tx, act.Company, c.Cmd.Actor, act.Action).Past(core.TimeOf(c.Now))
	}
	said, beside := decideBeside(c.Tx, s, of.gate, act, when)
	by := ""
	if said.Verdict == governance.Defer && kind.Has(company.ByGiver) {
		if p, ok := useFor(c, act.Company, said); ok {
			act.Context.Approved, by = true, p.ID
			said, beside = decideBeside(c.Tx, s, of.gate, act, when)
		}
	}
	if of.past {
		count(c, c.Cmd.Actor, act, said.Verdict, said.Effect)
	}
	kept := func() { beside.witness(c, act.Company, said.Verdict) }
	if said.Verdict != governance.Defer {
		kept()
	}
	if said.Verdict == governance.Permit && said.Effect[governance.Risk] < HighRisk {
		return nil
	}
	act.Rank = rankOf(c.Tx, c.Cmd, true)
	d := decisionOf(c, act, said, s)
	d.Kind, d.Approval, d.Beside = kind.Name, by, beside
	switch said.Verdict {
	case governance.Deny:
		return deny(c, d)
	case governance.Defer:
		return wait(c, d, kept)
	}
	store(c.Tx, d)
	return nil
}

// inForce returns the constitution in force with its gate, or the refusal of what can not be weighed.
func inForce(tx *ledger.Tx) (Constitution, *Gate, error) {
	s, err := InForce(tx)
	if err != nil {
		return s, nil, errUnreadable(err)
	}
	g, err := GateOf(tx, s)
	if err != nil {
		return s, nil, errUnreadable(err)
	}
	return s, g, nil
}

func errUnreadable(err error) error {
	return ledger.Refuse(ledger.Unavailable, nil, "The constitution can not be read, so nothing is permitted: %s",
		core.Snippet(err.Error(), 300))
}

// actOfKind is what is the same in all commands of a kind.
func actOfKind(k company.Kind) governance.Act {
	row := k.Action()
	return governance.Act{Action: k.Name, Row: &row, Rank: governance.Worker,
		Context: governance.Context{Outside: k.Weight.Outside, Irreversible: k.Weight.Irreversible}}
}

// actOf makes the act of a command from the state. Nothing in it is what the actor says in its own favour.
func actOf(tx *ledger.Tx, cmd *ledger.Command, k company.Kind, s Constitution, rank bool, at moment) governance.Act {
	act := actOfKind(k)
	act.Agent, act.Company, act.Rank = cmd.Actor.ID, cmd.Company, rankOf(tx, cmd, rank)
	act.Context.Clearances = []string{"record"} // each command is an entry
	if k.Weight.Facts != nil {
		k.Weight.Facts(cmd, &act.Context)
	}
	project := ""
	if cmd.Actor.Type == "agent" {
		act.Company = ofActor(tx, cmd)
		if a := entity.AgentTable.Look(tx, act.Company, cmd.Actor.ID); a != nil {
			act.Role = a.Role
			act.Context.Clearances = append(act.Context.Clearances, clearancesOf(*a)...)
			if k.Name != KindElevate { // an elevation does not help to get another one
				act.Context.Clearances = append(act.Context.Clearances, clearedFor(tx, s, act.Company, a.ID, at)...)
			}
		}
		if r := entity.RunTable.Look(tx, act.Company, cmd.Run); cmd.Run != "" && r != nil {
			act.Context.Issue, project = r.Context.IssueID, r.Context.ProjectID
		}
	} else {
		act.Context.Approved = true // a person decides it
	}
	if s.Policies {
		act.Target = targetOf(k, cmd, act.Company)
	}
	act.Scope = ScopeOf(tx, s, act.Company, project)
	return act
}

// A moment is when an act is weighed, by the mesh's time and the chain. The zero moment is after the end of everything.
type moment struct {
	at     core.Time
	height uint64
	adrift bool // at a node without a lease
	person bool // a person acts, not an agent
}

func momentOf(c *ledger.Context) moment { return moment{at: core.TimeOf(c.Now), height: c.Height} }

// clearancesOf lists what an agent's permissions clear.
func clearancesOf(a entity.Agent) (out []string) {
	if a.Role == "ceo" || a.Permissions.CreateAgents {
		out = append(out, "spawn")
	}
	return out
}

// rankOf returns the rank of an actor. An agent with reports is a manager, which is looked up only where it matters.
func rankOf(tx *ledger.Tx, cmd *ledger.Command, look bool) governance.Rank {
	if cmd.Actor.Type != "agent" {
		return governance.Board
	}
	return RankOf(tx, ofActor(tx, cmd), cmd.Actor.ID, look)
}

// ofActor returns the company of a command, or of the agent that gives it.
func ofActor(tx *ledger.Tx, cmd *ledger.Command) ledger.CompanyID {
	if cmd.Company != "" {
		return cmd.Company
	}
	return core.OwnerOf(tx, cmd.Actor.ID)
}

// RankOf returns the rank of an agent.
func RankOf(tx *ledger.Tx, of ledger.CompanyID, agent string, look bool) governance.Rank {
	a := entity.AgentTable.Look(tx, of, agent)
	if a == nil {
		return governance.Nobody
	}
	if a.Role == "ceo" {
		return governance.Chief
	}
	if look {
		for range entity.AgentsByManager.IDs(tx, of, agent, false) {
			return governance.Manager
		}
	}
	return governance.Worker
}

// deny stores a denial and refuses the command. An identical one within a minute is only counted.
func deny(c *ledger.Context, d Decision) error {
	v := d.strictest()
	if same, ok := sameDenial(c, d); ok {
		c.Unenter()
		return refuseDenied(same, v)
	}
	store(c.Tx, d)
	c.Record(ledger.Change{Action: "governance.denied", EntityType: "decision", EntityID: d.ID,
		Details: core.Object{}.Str("action", d.Act.Action).Null("rule", v.Rule).Uint("constitution", d.Version).Close()})
	return refuseDenied(d, v)
}

// refuseDenied is the 403 of a denial, with the rule and its reason.
func refuseDenied(d Decision, v Voice) error {
	details := core.Object{}.Str("code", company.GovernanceDenied).Str("reason", string(company.DeniedRule)).
		Null("rule", v.Rule).Null("branch", string(v.Branch)).
		Null("severity", string(v.Severity)).Str("decisionId", d.ID).Uint("constitution", d.Version).Close()
	if v.Rule == "" {
		return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied, details, "Denied: %s", d.Said.Reason)
	}
	return core.RefuseCode(ledger.Forbidden, company.GovernanceDenied, details, "Denied by %s: %s", v.speaker(),
		d.Said.Reason)
}

// speaker says who spoke: a rule, or something beside the rules.
func (v Voice) speaker() string {
	switch v.Branch {
	case governance.Accessing:
		return "the access policy of the resource tree"
	case governance.Filtering:
		return "the filter " + v.Rule + " of the company"
	}
	return "rule " + v.Rule + " of the constitution"
}
