// Package govern serves the gate: its decisions, how an effect came to be, and its rules.
package govern

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// Routes are the rows of the gate, of its decisions and of the constitution.
func Routes() []api.Route {
	return slices.Concat(askRoutes(), constitutionRoutes(), decisionRoutes(), amendmentRoutes(), permitRoutes(),
		elevationRoutes(), filterRoutes())
}

// askRoutes ask the gate. Nothing that they answer is recorded, and asking changes nothing.
func askRoutes() []api.Route {
	const tag, at = "governance", "/api/v1/govern"
	return []api.Route{
		{Method: "POST", Path: at, Kernel: true, Capability: "govern", Tag: tag,
			Summary: "Ask the gate whether an act should happen", In: askBody{}, Out: decision{}, Handle: decide},
		{Method: "POST", Path: at + "/explain", Kernel: true, Capability: "govern", Tag: tag,
			Summary: "Tell how the effect of an act comes to be, step by step", In: askBody{}, Out: explanation{},
			Handle: explain},
	}
}

type (
	askBody struct {
		Action  string      `json:"action" trim:"true" minLength:"1" maxLength:"256" maxBytes:"256" doc:"such as execute_shell_command; one that no table names counts as unknown"`
		Agent   string      `json:"agent_id" trim:"true" minLength:"1" maxLength:"256" maxBytes:"256" doc:"who acts: an agent of this mesh by ID, or by name within context.company_id, or the name of somebody else"`
		Context contextBody `json:"context,omitempty"`
	}
	// A contextBody has the members of the context that the gate knows; others are ignored. Levels are decimal fractions
	// and are read without floating point.
	contextBody struct {
		Risk     json.RawMessage `json:"risk,omitempty" types:"number,string" maxBytes:"42" doc:"0 to 1: the effect is at least that"`
		Fairness json.RawMessage `json:"fairness,omitempty" types:"number,string" maxBytes:"42"`
		Privacy  json.RawMessage `json:"privacy,omitempty" types:"number,string" maxBytes:"42"`
		Novelty  json.RawMessage `json:"novelty,omitempty" types:"number,string" maxBytes:"42"`
		Security json.RawMessage `json:"security,omitempty" types:"number,string" maxBytes:"42"`
		Drift    json.RawMessage `json:"drift,omitempty" types:"number,string" maxBytes:"42" doc:"0 to 1: how far the act is from what the agent did before"`

		Company     string `json:"company_id,omitempty" maxLength:"256" maxBytes:"256"`
		Paperclip   string `json:"paperclip_company,omitempty" maxLength:"256" maxBytes:"256" doc:"company of another system that asks: agent_id is an agent of this mesh only if it is the ID of one; not believed from an agent"`
		Environment string `json:"environment,omitempty" enum:"dev,staging,prod" doc:"that of the company unless given; the threshold is 0.9, 0.6 and 0.3, without one 0.7; an agent can not say dev"`
		Command     string `json:"command,omitempty" maxLength:"4096" maxBytes:"4096"`
		Path        string `json:"path,omitempty" maxLength:"4096" maxBytes:"4096"`
		Target      string `json:"target,omitempty" maxLength:"1024" maxBytes:"1024" doc:"path in the resource tree that the act is about, for its access policy; that of the company unless given"`
		Workspace   string `json:"workspace,omitempty" maxLength:"4096" maxBytes:"4096" doc:"folder of the agent; not believed from an agent"`
		Data        string `json:"data,omitempty" enum:"public,personal,human-subjects,secret" doc:"kind of data that is touched"`
		Reason      string `json:"reason,omitempty" maxLength:"4096" maxBytes:"4096"`
		Issue       string `json:"issue,omitempty" maxLength:"256" maxBytes:"256" doc:"that the act serves"`
		Revision    string `json:"revision,omitempty" maxLength:"256" maxBytes:"256" doc:"of the code that it is about"`
		Amount      int64  `json:"amount_cents,omitempty" minimum:"0" maximum:"1000000000000"`

		Outside      bool `json:"outside,omitempty" doc:"the target is outside the company"`
		First        bool `json:"first_time,omitempty"`
		Irreversible bool `json:"irreversible,omitempty"`
		Incident     bool `json:"incident,omitempty" doc:"an incident is open"`

		Human      bool     `json:"human_approval,omitempty" doc:"what a rule blocks is escalated and not denied; not believed from an agent"`
		Clearances []string `json:"clearances,omitempty" maxItems:"64" maxLength:"256" doc:"such as deploy or risk-review; not believed from an agent"`
		Approvers  []string `json:"approval_chain,omitempty" maxItems:"64" maxLength:"256" doc:"who can approve; of an agent's, only those whom it reports to count"`
		Rank       string   `json:"rank,omitempty" enum:"worker,manager,ceo" doc:"of somebody who is no agent of this mesh; worker unless given"`
	}

	effect struct {
		Risk     float64 `json:"risk"`
		Fairness float64 `json:"fairness"`
		Privacy  float64 `json:"privacy"`
		Novelty  float64 `json:"novelty"`
		Security float64 `json:"security"`
	}
	// A decision has the members of both published forms of the answer.
	decision struct {
		Decision    string    `json:"decision"` // permit, deny or escalate
		Reason      string    `json:"reason"`   // of the strictest rule that spoke; empty: none did
		Vector      []float64 `json:"effect_vector"`
		Effect      effect    `json:"effect"`
		Magnitude   float64   `json:"effect_magnitude"`
		Threshold   float64   `json:"threshold"`
		Evaluated   []string  `json:"evaluated_rules"` // IDs
		Spoken      []string  `json:"spoken_rules"`    // IDs of those whose predicate was true
		Warnings    []string  `json:"warnings"`        // of an act that is permitted all the same
		Opinions    []opinion `json:"opinions"`        // of the branches that have a rule for the action
		Rules       []voice   `json:"rules"`           // that spoke, and what they said
		Ignored     []string  `json:"ignored"`         // members of the context that the caller is not believed
		Rank        string    `json:"rank"`            // that the agent was judged with
		Version     string    `json:"constitution"`
		Attestation *string   `json:"attestation"` // the answer as this node has signed it; null: the node does not sign
		ChainHash   *string   `json:"chain_hash"`  // of the newest entry that the answer knows; null: the chain is empty
		Height      uint64    `json:"height"`      // of that entry
	}
	opinion struct {
		Branch   string `json:"branch"`
		Decision string `json:"decision"` // permit, warn, escalate or deny
		Rules    int    `json:"rules"`    // that were asked
	}
	voice struct {
		ID       string `json:"id"`
		Title    string `json:"title"`
		Branch   string `json:"branch"`
		Severity string `json:"severity"`
		Decision string `json:"decision"` // permit, warn, escalate or deny
		Reason   string `json:"reason"`
		Failed   bool   `json:"failed"` // it could not be decided, and so denies
	}

	explanation struct {
		Action    string    `json:"action"`
		Class     string    `json:"class"`
		Title     string    `json:"title"`
		Known     bool      `json:"known"` // the table of actions names it
		Base      effect    `json:"base"`
		Steps     []step    `json:"steps"`
		Vector    []float64 `json:"effect_vector"`
		Effect    effect    `json:"effect"`
		Magnitude float64   `json:"effect_magnitude"`
		Threshold float64   `json:"threshold"`
		Rank      string    `json:"rank"`
		Ignored   []string  `json:"ignored"`
		// what the company's filters measure; empty: it has not chosen them, or they are not asked
		Filters []finding `json:"filters"`
	}
	step struct {
		// Dimension is one of the effect; or structure, shift or evidence: what a filter measured, from its limit; or
		// access: to 0 where the access policy denies the act.
		Dimension string  `json:"dimension"`
		From      float64 `json:"from"`
		To        float64 `json:"to"`
		Why       string  `json:"why"`
	}

	variable struct {
		Name     string   `json:"name"`
		Type     string   `json:"type"`
		Branches []string `json:"branches"`
		About    string   `json:"about"`
	}
)

// badBody says what of a body does not fit, with the code of the member that clients of the kernel know.
func badBody(err error) (api.Response, error) {
	status, body, failure := api.AnswerOf(err)
	if failure {
		return api.Response{}, err
	}
	switch details := string(body.Details); {
	case strings.Contains(details, `"action"`):
		body.Code = "INVALID_ACTION"
	case strings.Contains(details, `"agent_id"`):
		body.Code = "INVALID_AGENT_ID"
	}
	return api.Reply(status, api.KernelBodyOf(status, body)), nil
}

// refusal is how the kernel's API refuses, with the code that its clients know.
func refusal(code, message string) api.Response {
	return api.Reply(http.StatusBadRequest, map[string]string{"code": code, "message": message, "error": message})
}

// asked reads a request and makes the act that it is about, and says which of its claims count for nothing. The answer
// is empty unless the request does not fit.
func asked(rc *api.Request) (governance.Act, []string, api.Response, error) {
	in, err := api.Body[askBody](rc)
	if err != nil {
		no, err := badBody(err)
		return governance.Act{}, nil, no, err
	}
	return actOf(rc, in)
}

// actOf makes the act of a question.
func actOf(rc *api.Request, in askBody) (governance.Act, []string, api.Response, error) {
	fail := func(r api.Response, err error) (governance.Act, []string, api.Response, error) {
		return governance.Act{}, nil, r, err
	}
	c := in.Context
	act := governance.Act{Action: in.Action, Agent: in.Agent, Company: ledger.CompanyID(strings.ToLower(c.Company)),
		Rank:  governance.Worker,
		Scope: governance.Scope{Class: governance.EnvironmentClass(c.Environment), HumanApproval: c.Human}, Target: c.Target,
		Context: governance.Context{Command: c.Command, Path: c.Path, Workspace: c.Workspace, Data: c.Data, Reason: c.Reason,
			Issue: c.Issue, Revision: c.Revision,
			Amount: c.Amount, Outside: c.Outside, First: c.First, Irreversible: c.Irreversible, Incident: c.Incident,
			Clearances: c.Clearances, Approvers: c.Approvers}}
	if k, ok := company.KindOf(in.Action); ok && k.Weight.Free == "" {
		row := k.Action()
		act.Row = &row
		act.Context.Irreversible = act.Context.Irreversible || k.Weight.Irreversible
	}
	levels := []json.RawMessage{c.Risk, c.Fairness, c.Privacy, c.Novelty, c.Security, c.Drift}
	for i, raw := range levels {
		l, err := levelOf(raw)
		name := "drift"
		if i < len(act.Context.Given) {
			name, act.Context.Given[i] = governance.Dimensions[i], l
		} else {
			act.Context.Drift = l
		}
		if err != nil {
			return fail(refusal("PARSE_ERROR", "context."+name+": "+err.Error()), nil)
		}
	}
	var ignored []string
	err := rc.View(func(tx *ledger.Tx) (err error) {
		ignored, err = place(tx, rc, &act, c)
		if err == nil {
			err = rc.Granted(act.Company, act.Agent, in.Agent)
		}
		return err
	})
	if err == nil {
		err = act.Check()
		if err != nil {
			return fail(refusal("PARSE_ERROR", err.Error()), nil)
		}
	}
	return act, ignored, api.Response{}, err
}

// levelOf reads a number, or a text with one; absent is 0.
func levelOf(raw json.RawMessage) (governance.Level, error) {
	if len(raw) == 0 {
		return 0, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return 0, err
		}
	}
	return governance.ParseLevel(text)
}

// place finds the agent in the state, which alone says what role and rank it has, and takes out of the act what the
// caller is not believed. It returns the names of what it took.
func place(tx *ledger.Tx, rc *api.Request, act *governance.Act, c contextBody) (ignored []string, err error) {
	rank, foreign := c.Rank, c.Paperclip != "" && !rc.IsAgent()
	if rc.IsAgent() {
		if act.Company != "" && act.Company != rc.Company {
			return nil, api.NotFound("Company not found")
		}
		act.Company = rc.Company
	}
	if act.Company != "" && !api.Seen(tx, rc, act.Company) {
		return nil, api.NotFound("Company not found")
	}
	a := entity.Agent{}
	if !foreign || api.IsUUID(act.Agent) {
		a, err = agentOf(tx, rc, act)
	}
	if no, ok := errors.AsType[*ledger.Refusal](err); ok && foreign && no.Code == ledger.NotFound {
		err = nil // an agent of the other system
	}
	switch {
	case err != nil:
		return nil, err
	case rc.IsAgent() && a.ID != "" && a.ID != rc.Actor.ID && !slices.ContainsFunc(superiors(tx, a),
		func(s entity.Agent) bool { return s.ID == rc.Actor.ID }):
		return nil, api.Forbidden("agent_id: an agent asks about itself and those that report to it")
	case a.ID != "":
		act.Agent, act.Company, act.Role, act.Rank = a.ID, a.Company, a.Role, govern.RankOf(tx, a.Company, a.ID, true)
	case act.Company != "":
		act.Rank = governance.Nobody // the company does not have it
	case rank != "":
		act.Rank = governance.Rank(rank)
	}
	if rank != "" && string(act.Rank) != rank {
		ignored = append(ignored, "context.rank")
	}
	if rc.IsAgent() {
		if c.Paperclip != "" {
			ignored = append(ignored, "context.paperclip_company")
		}
		ignored = append(ignored, disbelieve(tx, act, a)...)
	}
	if act.Scope.Class == governance.Unnamed {
		s, err := govern.InForce(tx)
		if err != nil {
			return nil, err
		}
		act.Scope.Class = govern.ScopeOf(tx, s, act.Company, "").Class
	}
	return ignored, nil
}

// agentOf returns the agent of an act, an empty one when nobody of this mesh has the name. An ID has to be that of an
// agent that the caller may see.
func agentOf(tx *ledger.Tx, rc *api.Request, act *governance.Act) (entity.Agent, error) {
	if act.Company == "" && !api.IsUUID(act.Agent) {
		return entity.Agent{}, nil
	}
	a, err := entity.AgentByRef(tx, act.Company, act.Agent)
	if no, ok := errors.AsType[*ledger.Refusal](err); ok && no.Code == ledger.NotFound && !api.IsUUID(act.Agent) {
		return entity.Agent{}, nil
	}
	if err == nil && (!api.Seen(tx, rc, a.Company) || act.Company != "" && a.Company != act.Company) {
		err = entity.ErrNoAgent()
	}
	return a, err
}

// disbelieve takes out of an act what an agent says in its own favour: that it was cleared, that people approve, where
// its folder is, that the place is harmless. Of its approvers stay those whom it reports to.
func disbelieve(tx *ledger.Tx, act *governance.Act, a entity.Agent) (ignored []string) {
	c := &act.Context
	if act.Scope.Class == governance.Development {
		act.Scope.Class = governance.Unnamed
		ignored = append(ignored, "context.environment")
	}
	if act.Scope.HumanApproval {
		act.Scope.HumanApproval = false
		ignored = append(ignored, "context.human_approval")
	}
	if len(c.Clearances) > 0 {
		c.Clearances = nil
		ignored = append(ignored, "context.clearances")
	}
	if c.Workspace != "" {
		c.Workspace = ""
		ignored = append(ignored, "context.workspace")
	}
	above := superiors(tx, a)
	known := func(name string) bool {
		return slices.ContainsFunc(above, func(s entity.Agent) bool {
			return strings.EqualFold(name, s.ID) || name == s.Name || core.URLKey(name) == s.URLKey()
		})
	}
	kept := slices.DeleteFunc(slices.Clone(c.Approvers), func(name string) bool { return !known(name) })
	if len(kept) < len(c.Approvers) {
		ignored = append(ignored, "context.approval_chain")
	}
	c.Approvers = kept
	return ignored
}

// superiors are the agents that an agent reports to, from the nearest.
func superiors(tx *ledger.Tx, a entity.Agent) (above []entity.Agent) {
	for range entity.MaxOrgDepth {
		next, ok := entity.AgentOf(tx, a.Company, string(a.ReportsTo))
		if a.ReportsTo == "" || !ok {
			return above
		}
		above, a = append(above, next), next
	}
	return above
}

func decide(rc *api.Request) (api.Response, error) {
	act, ignored, no, err := asked(rc)
	if err != nil || no.Body != nil {
		return no, err
	}
	var g *govern.Gate
	var at ledger.Position
	var d governance.Decision
	err = rc.View(func(tx *ledger.Tx) error {
		at = tx.Position()
		s, err := govern.InForce(tx)
		if err != nil {
			return err
		}
		if g, err = govern.GateOf(tx, s); err == nil {
			d = g.Decide(act)
			d = govern.BesideOf(tx, s, act, d, core.TimeOf(rc.Now())).Hear(d)
		}
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	out := decision{Decision: word(d.Verdict), Reason: d.Reason, Vector: vectorOf(d.Effect), Effect: effectOf(d.Effect),
		Magnitude: part(d.Effect.Magnitude()),
		Threshold: part(d.Threshold), Evaluated: d.Evaluated(), Spoken: []string{}, Warnings: []string{},
		Opinions: []opinion{}, Rules: []voice{},
		Ignored: append([]string{}, ignored...), Rank: string(act.Rank), Version: g.Version(), Height: at.Height}
	for _, o := range d.Opinions {
		out.Opinions = append(out.Opinions, opinion{string(o.Branch), o.Verdict.String(), len(o.Evaluated)})
		for _, v := range o.Spoken {
			out.Rules = append(out.Rules, voice{v.Rule, v.Title, string(o.Branch), string(v.Severity), v.Verdict.String(),
				v.Reason, v.Failed})
			out.Spoken = append(out.Spoken, v.Rule)
			if v.Verdict == governance.Warn {
				out.Warnings = append(out.Warnings, v.Reason)
			}
		}
	}
	if at.Height > 0 {
		out.ChainHash = new(hex.EncodeToString(at.Head[:]))
	}
	if err := attest(rc, &out, act, d.Effect); err != nil {
		return api.Response{}, err
	}
	return api.OK(out), nil
}

// attest signs what the gate said: the question by its hash, the answer, the rules and the chain that it knows.
func attest(rc *api.Request, out *decision, act governance.Act, e governance.Effect) error {
	question, err := rc.RawBody()
	if err != nil || rc.Server.Cfg.Sign == nil {
		return err
	}
	s := govern.Statement{Mesh: string(rc.Server.Cfg.Mesh), Company: act.Company, Agent: act.Agent, Action: act.Action,
		Arguments: govern.ArgumentsOf(question), Decision: out.Decision, Rules: out.Spoken, Rank: out.Rank,
		Laws: out.Version, Height: out.Height, At: rc.Now().UnixMilli()}
	if out.ChainHash != nil {
		s.Chain = *out.ChainHash
	}
	for _, l := range e {
		s.Effect = append(s.Effect, int32(l))
	}
	out.Attestation = new(s.Signed(string(rc.Server.Cfg.NodeID), rc.Server.Cfg.Sign))
	return nil
}

// word is the kernel's word for a verdict: an act with a warning is permitted.
func word(v governance.Verdict) string {
	if v == governance.Warn {
		v = governance.Permit
	}
	return v.String()
}

func explain(rc *api.Request) (api.Response, error) {
	act, ignored, no, err := asked(rc)
	if err != nil || no.Body != nil {
		return no, err
	}
	action, e, steps := governance.Weigh(act)
	_, known := governance.ActionOf(act.Action)
	known = known || act.Row != nil
	out := explanation{Action: action.Name, Class: string(action.Class), Title: action.Title, Known: known,
		Base: effectOf(action.Base), Steps: []step{},
		Vector: vectorOf(e), Effect: effectOf(e), Magnitude: part(e.Magnitude()), Threshold: part(act.Scope.Threshold()),
		Rank:    string(act.Rank),
		Ignored: append([]string{}, ignored...)}
	for _, s := range steps {
		out.Steps = append(out.Steps, step{s.Dimension.String(), part(s.From), part(s.To), s.Why})
	}
	access, why := false, ""
	err = rc.View(func(tx *ledger.Tx) error {
		s, err := govern.InForce(tx)
		if err == nil {
			beside := govern.BesideOf(tx, s, act, governance.Decision{Action: action, Effect: e}, core.TimeOf(rc.Now()))
			out.Filters, _ = findingsOf(beside.Findings())
			access, why = beside.Says()
		}
		return err
	})
	for _, f := range out.Filters { // the limit, and what was measured
		out.Steps = append(out.Steps,
			step{strings.ToLower(strings.TrimPrefix(f.Filter, "FILTER-")), f.Limit, f.Value, f.Reason})
	}
	switch {
	case access && why != "":
		out.Steps = append(out.Steps, step{"access", 1, 0, "the access policy of the resource tree denies it: " + why})
	case access:
		out.Steps = append(out.Steps, step{"access", 1, 1, "the access policy of the resource tree does not deny it"})
	}
	return api.OK(out), err
}

// part shows a level as a fraction: JSON has no other numbers.
func part(l governance.Level) float64 { return float64(l) / float64(governance.Most) }

func vectorOf(e governance.Effect) []float64 {
	out := make([]float64, len(e))
	for i, l := range e {
		out[i] = part(l)
	}
	return out
}

func effectOf(e governance.Effect) effect {
	return effect{part(e[governance.Risk]), part(e[governance.Fairness]), part(e[governance.Privacy]),
		part(e[governance.Novelty]), part(e[governance.Security])}
}
