package money

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
)

// testTimeout bounds the test of an upstream; the gateway gives up sooner.
const testTimeout = 20 * time.Second

// A modelRoute is a name that an upstream answers to.
type modelRoute struct {
	Name string `json:"name" minLength:"1" maxLength:"200"`
	As   string `json:"as,omitempty" maxLength:"200"`
}

// newModelProvider is the body that adds an upstream of the model gateway.
type newModelProvider struct {
	Name     string          `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-z0-9._-]+$"`
	Kind     string          `json:"kind" enum:"openai,anthropic,openrouter,gemini,ollama,vllm,llamacpp,openai_compatible"`
	BaseURL  string          `json:"baseUrl,omitempty" maxLength:"500"`
	APIKey   api.Opt[string] `json:"apiKey" minLength:"1" maxLength:"4096" maxBytes:"4096"`
	SecretID api.Opt[string] `json:"secretId" format:"uuid"`
	Models   *[]modelRoute   `json:"models,omitempty" maxItems:"64" nullable:"false"`
	Labels   *[]string       `json:"labels,omitempty" maxItems:"16" nullable:"false"`
	Priority *int            `json:"priority,omitempty" minimum:"-1000" maximum:"1000" nullable:"false"`
	Free     *bool           `json:"free,omitempty" nullable:"false"`
}

// patchModelProvider is the body that changes an upstream.
type patchModelProvider struct {
	Name     *string         `json:"name,omitempty" minLength:"1" maxLength:"64" pattern:"^[a-z0-9._-]+$" nullable:"false"`
	Kind     *string         `json:"kind,omitempty" enum:"openai,anthropic,openrouter,gemini,ollama,vllm,llamacpp,openai_compatible" nullable:"false"`
	BaseURL  *string         `json:"baseUrl,omitempty" minLength:"1" maxLength:"500" nullable:"false"`
	APIKey   api.Opt[string] `json:"apiKey" minLength:"1" maxLength:"4096" maxBytes:"4096"`
	SecretID api.Opt[string] `json:"secretId" format:"uuid"`
	Models   *[]modelRoute   `json:"models,omitempty" maxItems:"64" nullable:"false"`
	Labels   *[]string       `json:"labels,omitempty" maxItems:"16" nullable:"false"`
	Priority *int            `json:"priority,omitempty" minimum:"-1000" maximum:"1000" nullable:"false"`
	Free     *bool           `json:"free,omitempty" nullable:"false"`
	Disabled *bool           `json:"disabled,omitempty" nullable:"false"`
}

// setModelPrice is the body that sets a price, in micro-cents for a million tokens.
type setModelPrice struct {
	Model      string `json:"model" minLength:"1" maxLength:"200"`
	Input      int64  `json:"input" minimum:"0" maximum:"1000000000000"`
	Output     int64  `json:"output,omitempty" minimum:"0" maximum:"1000000000000"`
	CacheRead  *int64 `json:"cacheRead,omitempty" minimum:"0" maximum:"1000000000000"`
	CacheWrite *int64 `json:"cacheWrite,omitempty" minimum:"0" maximum:"1000000000000"`
}

// A modelProviderRow is an upstream as it is shown: never with its key.
type modelProviderRow struct {
	money.ModelProvider
	HasKey bool `json:"hasKey"`
}

func showModelProvider(p money.ModelProvider) modelProviderRow {
	if p.Models == nil {
		p.Models = []money.ModelRoute{}
	}
	if p.Labels == nil {
		p.Labels = []string{}
	}
	return modelProviderRow{p, p.HasKey()}
}

func ModelRoutes() (out []api.Route) {
	const tag = "models"
	for _, of := range []struct {
		root, whose string
		who         api.Who
	}{{"/api/companies/{companyId}", "of a company", api.Board}, {"/api/instance", "of the mesh", api.Admin}} {
		all, prices := of.root+"/model-providers", of.root+"/model-prices"
		one := all + "/{id}"
		out = append(out,
			api.Route{Method: "GET", Path: all, Tag: tag, Summary: "List the upstreams " + of.whose + ", without keys",
				Who: of.who, Out: []modelProviderRow{}, Handle: listModelProviders},
			api.Route{Method: "POST", Path: all, Tag: tag, Summary: "Add an upstream " + of.whose, Who: of.who,
				In: newModelProvider{}, Out: modelProviderRow{}, Status: 201, Handle: createModelProvider},
			api.Route{Method: "PATCH", Path: one, Tag: tag, Summary: "Change an upstream " + of.whose, Who: of.who,
				In: patchModelProvider{}, Out: modelProviderRow{}, Handle: updateModelProvider},
			api.Tell(api.Route{Path: one, Tag: tag, Summary: "Remove an upstream " + of.whose, Who: of.who},
				money.KindModelProviderRemove, api.InPath("id"), func(_ *api.Request, id string) money.DropModelProvider {
					return money.DropModelProvider{ID: id}
				}),
			api.Route{Method: "POST", Path: one + "/test", Once: true, Tag: tag, Summary: "Ask an upstream " + of.whose +
				" whether it answers this node and takes its key", Who: of.who, Out: llm.Check{}, Timeout: testTimeout,
				Handle: testModelProvider},
			api.Route{Method: "GET", Path: prices, Tag: tag, Summary: "List the prices of models that hold " + of.whose,
				Who: of.who, Out: []modelPriceRow{}, Handle: listModelPrices},
			api.Route{Method: "PUT", Path: prices, Tag: tag, Summary: "Set the price of a model " + of.whose, Who: of.who,
				In: setModelPrice{}, Out: money.ModelPrice{}, Handle: putModelPrice},
			api.Tell(api.Route{Path: prices, Tag: tag, Summary: "Take back a price " + of.whose + " that was set",
				Who: of.who, Query: []api.Param{{Name: "model", Doc: "the price's model, as it was set"}}},
				money.KindModelPriceRemove, api.InPath("model"), func(rc *api.Request, _ string) money.DropModelPrice {
					return money.DropModelPrice{Model: rc.Query("model")}
				}),
		)
	}
	return append(out, api.Route{Method: "POST", Path: "/api/instance/model-providers/from-environment",
		Once: true, Tag: tag,
		Summary: "Add an upstream of the mesh whose key is in the environment of this node", Who: api.Admin, In: adoptKey{},
		Out: modelProviderRow{}, Status: 201, Handle: adoptModelKey})
}

// adoptKey is the body that adds an upstream with a key of this node's environment.
type adoptKey struct {
	Variable string `json:"variable" enum:"ANTHROPIC_API_KEY,OPENAI_API_KEY,GEMINI_API_KEY,GOOGLE_API_KEY,OPENROUTER_API_KEY"`
	Name     string `json:"name,omitempty" maxLength:"64"`
}

// adoptModelKey keeps a key that is in the environment of this node: sealed, for the
// vendor whose variable it is, at that vendor's own address, or at the one that the same
// environment names for it (OPENAI_BASE_URL), and nowhere else. No node tells another the
// values of its environment.
func adoptModelKey(rc *api.Request) (api.Response, error) {
	in, err := api.Body[adoptKey](rc)
	if err != nil {
		return api.Response{}, err
	}
	known := adapter.KeyVariables()
	n := slices.IndexFunc(known, func(k adapter.KeyVariable) bool { return k.Name == in.Variable })
	if n < 0 {
		return api.Response{}, api.Invalid("variable: unknown")
	}
	key, base := "", ""
	if rc.Server.Cfg.Variable != nil {
		key = rc.Server.Cfg.Variable(in.Variable)
		if known[n].Base != "" {
			base = rc.Server.Cfg.Variable(known[n].Base)
		}
	}
	if key == "" {
		return api.Response{}, api.NotFound("This node has no variable " + in.Variable + ": ask the node that has it")
	}
	kind := known[n].Provider
	name := cmp.Or(in.Name, kind)
	return saveModelProvider(rc, money.SaveModelProvider{ID: api.NewID(), Create: true, Name: &name,
		Kind: new(money.ModelKind(kind)), BaseURL: &base, Key: &key})
}

// viewOf runs f for the company of the path, which must be there, or with "" for
// the mesh.
func viewOf(rc *api.Request, f func(tx *ledger.Tx, of ledger.CompanyID) error) error {
	return rc.View(func(tx *ledger.Tx) error {
		of := api.CompanyID(rc)
		if _, ok := entity.CompanyOf(tx, of); of != "" && !ok {
			return api.NotFound("Company not found")
		}
		return f(tx, of)
	})
}

func listModelProviders(rc *api.Request) (api.Response, error) {
	out := []modelProviderRow{}
	err := viewOf(rc, func(tx *ledger.Tx, of ledger.CompanyID) error {
		for _, p := range money.ModelProvidersOf(tx, of) {
			out = append(out, showModelProvider(p))
		}
		return nil
	})
	return api.OK(out), err
}

func modelRoutesOf(in *[]modelRoute) *[]money.ModelRoute {
	if in == nil {
		return nil
	}
	out := []money.ModelRoute{}
	for _, m := range *in {
		out = append(out, money.ModelRoute{Name: m.Name, As: m.As})
	}
	return &out
}

func saveModelProvider(rc *api.Request, p money.SaveModelProvider) (api.Response, error) {
	if p.Key != nil && *p.Key != "" && p.Secret != nil && *p.Secret != "" {
		return api.Response{}, api.Invalid("apiKey and secretId exclude each other")
	}
	row, err := api.Do[money.ModelProvider](rc, money.KindModelProviderSave, api.CompanyID(rc), p)
	return api.OK(showModelProvider(row)), err
}

func createModelProvider(rc *api.Request) (api.Response, error) {
	in, err := api.Body[newModelProvider](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := viewOf(rc, func(*ledger.Tx, ledger.CompanyID) error { return nil }); err != nil {
		return api.Response{}, err
	}
	return saveModelProvider(rc, money.SaveModelProvider{ID: api.NewID(), Create: true, Name: &in.Name,
		Kind: new(money.ModelKind(in.Kind)), BaseURL: &in.BaseURL,
		Key: api.TextOf(in.APIKey), Secret: api.TextOf(in.SecretID), Models: modelRoutesOf(in.Models), Labels: in.Labels,
		Priority: in.Priority, Free: in.Free})
}

func updateModelProvider(rc *api.Request) (api.Response, error) {
	in, err := api.Body[patchModelProvider](rc)
	if err != nil {
		return api.Response{}, err
	}
	return saveModelProvider(rc, money.SaveModelProvider{ID: strings.ToLower(rc.Path("id")), Name: in.Name,
		Kind: (*money.ModelKind)(in.Kind), BaseURL: in.BaseURL,
		Key: api.TextOf(in.APIKey), Secret: api.TextOf(in.SecretID), Models: modelRoutesOf(in.Models), Labels: in.Labels,
		Priority: in.Priority, Free: in.Free, Disabled: in.Disabled})
}

func testModelProvider(rc *api.Request) (api.Response, error) {
	if rc.Server.Cfg.Models == nil {
		return api.Response{}, api.Unavailable("This node has no model gateway; ask another one")
	}
	if err := viewOf(rc, func(*ledger.Tx, ledger.CompanyID) error { return nil }); err != nil {
		return api.Response{}, err
	}
	check, err := rc.Server.Cfg.Models.Test(rc.Context(), api.CompanyID(rc), strings.ToLower(rc.Path("id")))
	return api.OK(check), err
}

// A modelPriceRow is a price and where it comes from: the company, the mesh, or
// the program ("default").
type modelPriceRow struct {
	money.ModelPrice
	Source string `json:"source"`
}

// listModelPrices answers what was set, and what holds where nothing was.
func listModelPrices(rc *api.Request) (api.Response, error) {
	out := []modelPriceRow{}
	err := viewOf(rc, func(tx *ledger.Tx, of ledger.CompanyID) error {
		seen := map[string]bool{}
		add := func(source string, rows []money.ModelPrice) {
			for _, p := range rows {
				if !seen[p.Model] {
					seen[p.Model] = true
					out = append(out, modelPriceRow{p, source})
				}
			}
		}
		if of != "" {
			add("company", money.ModelPricesOf(tx, of))
		}
		add("mesh", money.ModelPricesOf(tx, ""))
		add("default", llm.Defaults())
		return nil
	})
	return api.OK(out), err
}

// putModelPrice sets a price. Cached input costs as much as other input where
// nothing is said of it.
func putModelPrice(rc *api.Request) (api.Response, error) {
	in, err := api.Body[setModelPrice](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := money.ModelPrice{Model: in.Model, Input: in.Input, Output: in.Output, CacheRead: in.Input, CacheWrite: in.Input}
	if in.CacheRead != nil {
		p.CacheRead = *in.CacheRead
	}
	if in.CacheWrite != nil {
		p.CacheWrite = *in.CacheWrite
	}
	row, err := api.Do[money.ModelPrice](rc, money.KindModelPriceSet, api.CompanyID(rc), money.SetModelPrice{Price: p})
	return api.OK(row), err
}

// ServeModelCall answers below /llm: the calls of runs, which show their token as
// a bearer or, as clients of Anthropic and Google do, in x-api-key, x-goog-api-key or
// the query. Nobody else has a budget
// that a call could be paid from.
func ServeModelCall(s *api.Server, w http.ResponseWriter, r *http.Request) {
	if s.Cfg.Models == nil {
		llm.Refuse(w, r, http.StatusServiceUnavailable, "no_gateway", "This node has no model gateway; ask another one")
		return
	}
	key := cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"))
	if key == "" && strings.HasPrefix(r.URL.Path, "/llm/gemini") {
		key = r.URL.Query().Get("key")
	}
	if key != "" && len(r.Header["Authorization"]) == 0 {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+key)
	}
	rc := &api.Request{HTTP: r, ID: api.IdOf(r), Server: s, Route: &api.Route{Who: api.Agent}, W: w}
	err := rc.Authenticate()
	if refused, ok := errors.AsType[*ledger.Refusal](err); ok && refused.Code != ledger.Unauthorized {
		llm.Refuse(w, r, api.StatusOf[refused.Code], "invalid_request", refused.Message)
		return
	} else if err != nil && !ok {
		llm.Refuse(w, r, http.StatusServiceUnavailable, "unavailable", "The token can not be checked now; try again")
		return
	}
	if err != nil || rc.Credential.Kind != "run" {
		llm.Refuse(w, r, http.StatusUnauthorized, "run_token_needed",
			"The token of a running run is needed (PAPERCLIP_API_KEY), as a bearer or in x-api-key")
		return
	}
	s.Cfg.Models.Serve(w, r, llm.Caller{Company: rc.Company, Agent: rc.Actor.ID, Run: rc.Run})
}
