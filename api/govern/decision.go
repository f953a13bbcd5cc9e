package govern

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// decisionRoutes show what the gate has decided.
func decisionRoutes() []api.Route {
	const tag, at = "governance", "/api/v1/govern"
	return []api.Route{
		{Method: "GET", Path: at + "/decisions", Kernel: true, Tag: tag,
			Summary: "List decisions of the gate, newest first: denials, deferrals, warnings and permits of high risk",
			Query:   decisionQuery, Out: []made{}, Handle: listDecisions},
		api.Read(api.Route{Path: at + "/decisions/{id}", Kernel: true, Tag: tag,
			Summary: "Show a decision of the gate, with everything that led to it"}, readDecision),
		{Method: "POST", Path: at + "/replay", Kernel: true, Tag: tag,
			Summary: "Decide again what was decided, and compare bit for bit", In: replayBody{}, Out: replayed{},
			Handle: replay},
	}
}

var decisionQuery = []api.Param{{Name: "companyId", Doc: "all that the caller sees unless given"},
	{Name: "decision", Doc: "permit, warn, escalate or deny; several with commas"},
	{Name: "agentId", Doc: "who acts"}, {Name: "action", Doc: "such as issue.delete"},
	{Name: "rule", Doc: "ID of a rule that spoke"}, {Name: "runId"},
	{Name: "version", Doc: "of the constitution", Type: "integer"}, {Name: "since", Doc: "a time"},
	{Name: "limit", Doc: "100 unless given, at most 1000", Type: "integer"}}

type (
	// made is a decision that was made, with what it was made of.
	made struct {
		ID          string    `json:"id"`
		Company     *string   `json:"companyId"`
		Height      uint64    `json:"height"` // of its entry
		At          core.Time `json:"at"`
		Decision    string    `json:"decision"` // permit, warn, escalate or deny
		Reason      string    `json:"reason"`
		Action      string    `json:"action"`
		Class       string    `json:"class"`
		ActorType   string    `json:"actorType"`
		Actor       string    `json:"actorId"`
		Role        *string   `json:"role"`
		Rank        string    `json:"rank"`
		Run         *string   `json:"runId"`
		Node        *string   `json:"nodeId"` // that weighed an act of its own; null: weighed as a command
		Version     uint64    `json:"constitution"`
		Vector      []float64 `json:"effect_vector"`
		Effect      effect    `json:"effect"`
		Magnitude   float64   `json:"effect_magnitude"`
		Threshold   float64   `json:"threshold"`
		Environment *string   `json:"environment"`
		Amount      int64     `json:"amount_cents"`
		Issue       *string   `json:"issueId"`
		Clearances  []string  `json:"clearances"`
		Evaluated   []string  `json:"evaluated_rules"`
		Spoken      []string  `json:"spoken_rules"`
		Opinions    []opinion `json:"opinions"`
		Rules       []voice   `json:"rules"`
		Count       uint64    `json:"count"` // identical denials that it stands for
		LastAt      core.Time `json:"lastAt"`
		Approval    *string   `json:"approvalId"`
		Answer      *string   `json:"answer"` // of a person: approved, rejected or lapsed
	}
	replayBody struct {
		ID      string `json:"id,omitempty" maxLength:"40" doc:"of a decision; all that the caller sees unless given"`
		Version uint64 `json:"version,omitempty" maximum:"9007199254740991" doc:"of the constitution; the one that decided unless given"`
		Limit   int    `json:"limit,omitempty" minimum:"1" maximum:"20000"`
		From    uint64 `json:"sequence,omitempty" maximum:"9007199254740991" doc:"receipts from this one on; the oldest that is kept unless given"`
	}
	replayed struct {
		Replayed  int     `json:"replayed"`
		Same      int     `json:"same"`
		Different []other `json:"different"` // the first 100
		Differ    int     `json:"differ"`
		Receipts  int     `json:"receipts"` // of filters, that were decided again and checked to be one chain
		Faults    []fault `json:"faults"`   // what is wrong with receipts, the first 100
	}
	fault struct {
		Company  string `json:"companyId"`
		Sequence uint64 `json:"sequence"`
		Wrong    string `json:"wrong"`
	}
	other struct {
		ID      string `json:"id"`
		Action  string `json:"action"`
		Version uint64 `json:"constitution"`
		Was     string `json:"was"`
		Is      string `json:"is"`
		Reason  string `json:"reason"`
	}
)

const maxDifferent = 100

// seen lists the companies whose decisions a caller sees.
func seen(tx *ledger.Tx, rc *api.Request, only string) (out []ledger.CompanyID) {
	for _, c := range entity.Companies(tx) {
		if (only == "" || string(c.ID) == only) && api.Seen(tx, rc, c.ID) {
			out = append(out, c.ID)
		}
	}
	if only == "" && rc.IsBoard() && people.IsAdmin(tx, rc.Actor.ID) {
		out = append(out, "")
	}
	return out
}

func madeOf(d govern.Decision) made {
	action := governance.Action{}
	if d.Act.Row != nil {
		action = *d.Act.Row
	} else {
		action, _ = governance.ActionOf(d.Act.Action)
	}
	s := d.Said
	out := made{ID: d.ID, Company: orNull(d.Company), Height: d.Height, At: d.At, Decision: s.Verdict.String(),
		Reason: s.Reason, Action: d.Act.Action, Class: string(action.Class),
		ActorType: d.Actor, Actor: d.Act.Agent, Role: orNull(d.Act.Role), Rank: string(d.Act.Rank), Run: orNull(d.Run),
		Node: orNull(d.Node), Version: d.Version,
		Vector: vectorOf(s.Effect), Effect: effectOf(s.Effect), Magnitude: part(s.Effect.Magnitude()),
		Threshold: part(s.Threshold), Environment: orNull(d.Act.Scope.Class),
		Amount: d.Act.Context.Amount, Issue: orNull(d.Act.Context.Issue), Clearances: append([]string{},
			d.Act.Context.Clearances...), Evaluated: append([]string{}, s.Asked...),
		Spoken: []string{}, Opinions: []opinion{}, Rules: []voice{}, Count: d.Count, LastAt: d.LastAt,
		Approval: orNull(d.Approval), Answer: orNull(d.Answer)}
	for _, o := range s.Opinions {
		out.Opinions = append(out.Opinions, opinion{string(o.Branch), o.Verdict.String(), o.Rules})
	}
	for _, v := range s.Voices {
		out.Spoken = append(out.Spoken, v.Rule)
		out.Rules = append(out.Rules, voice{v.Rule, v.Title, string(v.Branch), string(v.Severity), v.Verdict.String(),
			v.Reason, v.Failed})
	}
	return out
}

// verdicts are the words for them; a deferral has two.
var verdicts = map[string]governance.Verdict{"permit": governance.Permit, "warn": governance.Warn,
	"escalate": governance.Defer, "defer": governance.Defer, "deny": governance.Deny}

func queryOf(rc *api.Request) (q govern.Query, company string, err error) {
	if company, err = rc.QueryUUID("companyId"); err != nil {
		return q, company, err
	}
	q = govern.Query{Agent: strings.TrimSpace(rc.Query("agentId")), Action: rc.Query("action"), Rule: rc.Query("rule"),
		Run: rc.Query("runId")}
	for _, word := range rc.QueryList("decision") {
		v, ok := verdicts[word]
		if !ok {
			return q, company, api.Invalid("Invalid decision: want permit, warn, escalate or deny, got %.40q", word)
		}
		q.Verdicts = append(q.Verdicts, v)
	}
	version, err := rc.QueryInt64("version", 0, 0, 1<<53)
	if err != nil {
		return q, company, err
	}
	since, err := rc.QueryTime("since")
	if err != nil {
		return q, company, err
	}
	if q.Version = uint64(version); !since.IsZero() {
		q.Since = core.TimeOf(since)
	}
	q.Limit, err = rc.QueryInt("limit", 100, 1, govern.MaxListed)
	return q, company, err
}

func listDecisions(rc *api.Request) (api.Response, error) {
	q, company, err := queryOf(rc)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) ([]made, error) {
		list := seen(tx, rc, company)
		if company != "" && len(list) == 0 {
			return nil, api.NotFound("Company not found")
		}
		out := []made{}
		for _, of := range list {
			for d := range govern.Decisions(tx, of, q) {
				out = append(out, madeOf(d))
			}
		}
		slices.SortStableFunc(out, func(a, b made) int { return cmp.Compare(b.Height, a.Height) })
		return out[:min(len(out), q.Limit)], nil
	})
}

// find returns a decision that the caller sees.
func find(tx *ledger.Tx, rc *api.Request, id string) (govern.Decision, error) {
	for _, of := range seen(tx, rc, "") {
		if d, ok := govern.DecisionOf(tx, of, id); ok {
			return d, nil
		}
	}
	return govern.Decision{}, api.NotFound("Decision not found")
}

func readDecision(tx *ledger.Tx, rc *api.Request) (made, error) {
	d, err := find(tx, rc, rc.Path("id"))
	if err != nil {
		return made{}, err
	}
	return madeOf(d), nil
}

func replay(rc *api.Request) (api.Response, error) {
	in, err := api.Body[replayBody](rc)
	if err != nil {
		return badBody(err)
	}
	if in.Limit == 0 {
		in.Limit = govern.MaxReviewed
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (replayed, error) {
		out := replayed{Different: []other{}, Faults: []fault{}}
		if in.ID != "" {
			d, err := find(tx, rc, in.ID)
			if err != nil {
				return out, err
			}
			return out, out.again(tx, d, in.Version)
		}
		for _, of := range seen(tx, rc, "") {
			for d := range govern.Decisions(tx, of, govern.Query{Limit: in.Limit}) {
				if err := out.again(tx, d, in.Version); err != nil {
					return out, err
				}
			}
			out.receipts(tx, of, in.From)
		}
		return out, nil
	})
}

// again decides what a decision was about and compares.
func (r *replayed) again(tx *ledger.Tx, d govern.Decision, version uint64) error {
	if version == 0 {
		version = d.Version
	}
	s, err := govern.VersionOf(tx, version)
	if err != nil {
		return err
	}
	g, err := govern.GateOf(tx, s)
	if err != nil {
		return err
	}
	is := d.Again(g)
	r.Replayed++
	if is.Equal(d.Said) {
		r.Same++
		return nil
	}
	if r.Differ++; len(r.Different) < maxDifferent {
		r.Different = append(r.Different, other{d.ID, d.Act.Action, version, d.Said.Verdict.String(),
			is.Verdict.String(), is.Reason})
	}
	return nil
}

// receipts decides a company's receipts again.
func (r *replayed) receipts(tx *ledger.Tx, of ledger.CompanyID, from uint64) {
	if of == "" {
		return
	}
	n, wrong := govern.ReplayReceipts(tx, of, from, govern.MaxReceipts)
	r.Receipts += n
	for _, f := range wrong[:min(len(wrong), maxDifferent-len(r.Faults))] {
		r.Faults = append(r.Faults, fault{string(f.Company), f.Sequence, f.Wrong})
	}
}
