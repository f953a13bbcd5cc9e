package govern

import (
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/governance/filters"
	"github.com/selvage-mesh/selvage/ledger"
)

// filterRoutes choose the second backend for a company, and show its receipts.
func filterRoutes() []api.Route {
	const tag, at = "governance", "/api/v1/govern"
	of := api.Param{Name: "companyId", Doc: "required"}
	return []api.Route{
		{Method: "GET", Path: at + "/filters", Kernel: true, Tag: tag, Who: api.Board,
			Summary: "Show whether a company has chosen the filters, their limits, and what they keep of its agents",
			Query:   []api.Param{of}, Out: filterShape{}, Handle: readFilters},
		{Method: "PUT", Path: at + "/filters", Kernel: true, Tag: tag, Who: api.Board,
			Summary: "Choose the filters for a company: they speak beside the rules about who acts", In: filterBody{},
			Query: []api.Param{of}, Out: filterShape{}, Handle: setFilters},
		{Method: "POST", Path: at + "/filters/forget", Kernel: true, Tag: tag, Who: api.Board,
			Summary: "Let the filters begin anew with an agent", In: forgetBody{}, Query: []api.Param{of},
			Out: filterShape{}, Handle: forgetPast},
		{Method: "GET", Path: at + "/receipts", Kernel: true, Tag: tag, Who: api.Board,
			Summary: "List receipts of the filters of a company, the oldest first",
			Query: []api.Param{of,
				{Name: "from", Doc: "sequence of the first; the oldest that is kept unless given", Type: "integer"},
				{Name: "limit", Doc: "100 unless given, at most 1000", Type: "integer"}},
			Out: receiptList{}, Handle: listReceipts},
	}
}

// maxProfiles bounds the agents of one answer: those of a company.
const maxProfiles = entity.MaxAgents

type (
	filterShape struct {
		Company  string    `json:"companyId"`
		On       bool      `json:"on"`
		MinCut   float64   `json:"minCut"`         // authority that has to reach an agent
		MaxShift float64   `json:"maxShift"`       // of behaviour, before a person is asked
		Permit   int64     `json:"permitEvidence"` // power of two below which a person is asked
		Deny     int64     `json:"denyEvidence"`   // power of two below which an act is denied
		Floor    float64   `json:"floor"`          // magnitude below which an act passes
		Receipts uint64    `json:"receipts"`       // sequence of the newest
		Agents   []profile `json:"agents"`         // that have acted
	}
	// A profile is what the filters keep of an agent.
	profile struct {
		Agent    string  `json:"agentId"`
		Name     string  `json:"name"`
		Acts     uint64  `json:"acts"`
		Evidence float64 `json:"evidence"` // a power of two
	}
	filterBody struct {
		On       *bool           `json:"on,omitempty" nullable:"false"`
		MinCut   json.RawMessage `json:"minCut,omitempty" types:"number,string" maxBytes:"42" doc:"0 to 1; a manager who works gives 1, one who is paused 0.4, an issue 0.5"`
		MaxShift json.RawMessage `json:"maxShift,omitempty" types:"number,string" maxBytes:"42" doc:"0 to 1"`
		Permit   *int64          `json:"permitEvidence,omitempty" nullable:"false" minimum:"-32" maximum:"0" doc:"a power of two: -6 stands for 1:64"`
		Deny     *int64          `json:"denyEvidence,omitempty" nullable:"false" minimum:"-32" maximum:"0" doc:"a power of two, not above permitEvidence"`
		Floor    json.RawMessage `json:"floor,omitempty" types:"number,string" maxBytes:"42" doc:"0 to 1"`
	}
	forgetBody struct {
		Agent string `json:"agentId" format:"uuid"`
	}
	receiptList struct {
		Newest   uint64    `json:"newest"` // sequence
		Receipts []receipt `json:"receipts"`
	}
	receipt struct {
		Sequence uint64    `json:"sequence"`
		Hash     string    `json:"hash"`
		Before   string    `json:"before"` // hash of the receipt before it
		Height   uint64    `json:"height"`
		At       core.Time `json:"at"`
		Agent    string    `json:"agentId"`
		Action   string    `json:"action"`
		Rules    string    `json:"rules"`    // what the rules said
		Decision string    `json:"decision"` // what was decided
		Spoken   []string  `json:"spoken_filters"`
		Findings []finding `json:"findings"`
		Wrong    *string   `json:"wrong"` // what is wrong with it; null: nothing
	}
	// A finding is what one filter measured.
	finding struct {
		Filter   string  `json:"filter"`
		Decision string  `json:"decision"`
		Value    float64 `json:"value"`
		Limit    float64 `json:"limit"`
		Reason   string  `json:"reason"`
	}
)

// measured returns a value of a filter as a number: a level, or a power of two.
func measured(filter string, value int64) float64 {
	if filter == filters.Evidence {
		return float64(value) / filters.Scale
	}
	return part(governance.Level(value))
}

func findingsOf(list []filters.Finding) (out []finding, spoken []string) {
	out, spoken = []finding{}, []string{}
	for _, f := range list {
		out = append(out,
			finding{f.Filter, f.Verdict.String(), measured(f.Filter, f.Value), measured(f.Filter, f.Limit), f.Reason})
		if f.Verdict != governance.Permit {
			spoken = append(spoken, f.Filter)
		}
	}
	return out, spoken
}

// companyOf returns the company that a request names, if the caller sees it.
func companyOf(tx *ledger.Tx, rc *api.Request, id string) (ledger.CompanyID, error) {
	if id == "" {
		return "", api.Invalid("companyId: required")
	}
	of := ledger.CompanyID(id)
	if !api.Seen(tx, rc, of) {
		return "", api.NotFound("Company not found")
	}
	return of, nil
}

func filtersOf(tx *ledger.Tx, rc *api.Request, id string) (filterShape, error) {
	of, err := companyOf(tx, rc, id)
	if err != nil {
		return filterShape{}, err
	}
	f := govern.FiltersOf(tx, of)
	_, _, newest := govern.Receipts(tx, of, 1, 0)
	out := filterShape{Company: id, On: f.On, MinCut: part(f.Limits.MinCut), MaxShift: part(f.Limits.MaxShift),
		Permit: f.Limits.Permit, Deny: f.Limits.Deny, Floor: part(f.Limits.Floor), Receipts: newest, Agents: []profile{}}
	for _, a := range entity.AgentsOf(tx, of, false) {
		if p := govern.ProfileOf(tx, of, a.ID); p.Acts > 0 && len(out.Agents) < maxProfiles {
			out.Agents = append(out.Agents, profile{a.ID, a.Name, p.Acts, measured(filters.Evidence, p.Evidence)})
		}
	}
	return out, nil
}

func readFilters(rc *api.Request) (api.Response, error) {
	company, err := rc.QueryUUID("companyId")
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (filterShape, error) { return filtersOf(tx, rc, company) })
}

// submitFilters gives a command about a company's filters and shows them.
func submitFilters(rc *api.Request, kind string, payload any) (api.Response, error) {
	company, err := rc.QueryUUID("companyId")
	if err != nil {
		return api.Response{}, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		_, err := companyOf(tx, rc, company)
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	if _, err := rc.Submit(kind, ledger.CompanyID(company), payload); err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (filterShape, error) { return filtersOf(tx, rc, company) })
}

func setFilters(rc *api.Request) (api.Response, error) {
	in, err := api.Body[filterBody](rc)
	if err != nil {
		return badBody(err)
	}
	p := govern.SetFilters{On: in.On, Permit: in.Permit, Deny: in.Deny}
	for _, l := range []struct {
		name string
		raw  json.RawMessage
		into **governance.Level
	}{{"minCut", in.MinCut, &p.MinCut}, {"maxShift", in.MaxShift, &p.MaxShift}, {"floor", in.Floor, &p.Floor}} {
		level, err := levelOf(l.raw)
		if err != nil {
			return api.Response{}, api.Invalid("%s: %s", l.name, err)
		}
		if len(l.raw) > 0 {
			*l.into = &level
		}
	}
	return submitFilters(rc, govern.KindFilters, p)
}

func forgetPast(rc *api.Request) (api.Response, error) {
	in, err := api.Body[forgetBody](rc)
	if err != nil {
		return badBody(err)
	}
	return submitFilters(rc, govern.KindForgetPast, govern.ForgetPast{Agent: in.Agent})
}

func listReceipts(rc *api.Request) (api.Response, error) {
	company, err := rc.QueryUUID("companyId")
	if err != nil {
		return api.Response{}, err
	}
	from, err := rc.QueryInt64("from", 1, 1, 1<<53)
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", 100, 1, govern.MaxListed)
	if err != nil {
		return api.Response{}, err
	}
	return api.Viewed(rc, func(tx *ledger.Tx) (receiptList, error) {
		out := receiptList{Receipts: []receipt{}}
		of, err := companyOf(tx, rc, company)
		if err != nil {
			return out, err
		}
		first, list, newest := govern.Receipts(tx, of, uint64(from), limit)
		_, wrong := govern.ReplayReceipts(tx, of, uint64(from), limit)
		out.Newest = newest
		for i, r := range list {
			out.Receipts = append(out.Receipts, receiptOf(first+uint64(i), r, wrong))
		}
		return out, nil
	})
}

func receiptOf(sequence uint64, r filters.Receipt, wrong []govern.Fault) receipt {
	w, _ := r.Open() // what does not open is in wrong
	out := receipt{Sequence: sequence, Hash: hex.EncodeToString(r.Hash), Before: hex.EncodeToString(w.Before),
		Height: w.Height, At: core.Time(w.At), Agent: w.Question.Agent, Action: w.Question.Action,
		Rules: w.Rules.String(), Decision: w.Decided.String()}
	out.Findings, out.Spoken = findingsOf(w.Findings)
	if i := slices.IndexFunc(wrong, func(f govern.Fault) bool { return f.Sequence == sequence }); i >= 0 {
		out.Wrong = &wrong[i].Wrong
	}
	return out
}
