package agents

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/money"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// maxProbed bounds the nodes that one test probes, all at once.
const maxProbed = 64

// probeTimeout bounds a test, which may start a program on each node.
const probeTimeout = 40 * time.Second

type adapterInfo struct {
	Type           string              `json:"type"`
	Label          string              `json:"label"`
	Source         string              `json:"source"`
	Models         int                 `json:"modelsCount"`
	Loaded         bool                `json:"loaded"`
	Disabled       bool                `json:"disabled"`
	Capabilities   adapterCapabilities `json:"capabilities"`
	OverridePaused bool                `json:"overridePaused"`

	// Members that the contract does not have.
	Name    string        `json:"displayName"`
	Program string        `json:"program,omitempty"`
	Level   adapter.Level `json:"integration"`
	Gateway bool          `json:"modelGateway"`
}

type adapterCapabilities struct {
	Instructions bool `json:"supportsInstructionsBundle"`
	Skills       bool `json:"supportsSkills"`
	RunToken     bool `json:"supportsLocalAgentJwt"`
	Materialized bool `json:"requiresMaterializedRuntimeSkills"`
	ACP          bool `json:"supportsAcp"`
}

// adapters are the adapters of this version.
var adapters = listedAdapters()

func listedAdapters() (out []adapterInfo) {
	for _, k := range adapter.Kinds() {
		token := k.Tool || k.Type == "process" || k.Type == "wasm" || k.Type == "container"
		out = append(out, adapterInfo{Type: k.Type, Label: k.Type, Source: "builtin", Models: len(k.Models), Loaded: true,
			Capabilities: adapterCapabilities{Instructions: k.Tool, Skills: k.Tool, RunToken: token, ACP: k.ACP},
			Name:         k.Name, Program: k.Program, Level: k.Level, Gateway: k.Gateway})
	}
	return out
}

type adapterSchema struct {
	Type   string                `json:"adapterType"`
	Fields []adapter.ConfigField `json:"fields"`
}

type adapterDetail struct {
	adapterInfo
	Note   string                 `json:"note"`
	Keys   []string               `json:"keys"`
	Models []adapter.OfferedModel `json:"models"`
	Fields []adapter.ConfigField  `json:"fields"`
}

type modelProfileRow struct {
	Key    string          `json:"key"`
	Label  string          `json:"label"`
	Source string          `json:"source"`
	Config json.RawMessage `json:"adapterConfig"`
}

type testAdapterBody struct {
	Config      api.Opt[json.RawMessage] `json:"adapterConfig"`
	Environment api.Opt[string]          `json:"environmentId" maxLength:"100"`
	Node        string                   `json:"nodeId,omitempty" maxLength:"100"`
}

// adapterReport is the result of a test: the best of all nodes, and each node's.
type adapterReport struct {
	Type     string            `json:"adapterType"`
	Status   string            `json:"status"` // pass, warn or fail
	Checks   []adapter.Finding `json:"checks"`
	TestedAt core.Time         `json:"testedAt"`
	Nodes    []nodeReport      `json:"nodes"`
}

type nodeReport struct {
	Node   string            `json:"nodeId"`
	Name   string            `json:"name"`
	Status string            `json:"status"`
	Checks []adapter.Finding `json:"checks"`
}

func AdapterRoutes() []api.Route {
	const tag, one = "adapters", "/api/companies/{companyId}/adapters/{type}"
	schema := func(rc *api.Request) (api.Response, error) {
		k, err := adapterFor(rc)
		return api.OK(adapterSchema{k.Type, k.Fields}), err
	}
	return []api.Route{
		{Method: "GET", Path: "/api/adapters", Tag: tag, Summary: "List the adapters that run agents", Who: api.Any,
			Out:    []adapterInfo{},
			Handle: func(*api.Request) (api.Response, error) { return api.OK(adapters), nil }},
		{Method: "GET", Path: "/api/adapters/{type}", Tag: tag, Summary: "Read what an adapter is and how it is configured",
			Who: api.Any, Out: adapterDetail{}, Handle: readAdapter},
		{Method: "GET", Path: "/api/adapters/{type}/config-schema", Tag: tag,
			Summary: "Read which fields an adapter's configuration has", Who: api.Any, Out: adapterSchema{}, Handle: schema},
		{Method: "GET", Path: one + "/models", Tag: tag, Summary: "List models that agents of an adapter may be given",
			Out: []adapter.OfferedModel{}, Handle: listAdapterModels},
		{Method: "GET", Path: one + "/model-profiles", Tag: tag,
			Summary: "List the model profiles that an adapter brings along: none", Out: []modelProfileRow{},
			Handle: func(rc *api.Request) (api.Response, error) {
				_, err := adapterFor(rc)
				return api.OK([]modelProfileRow{}), err
			}},
		{Method: "GET", Path: one + "/detect-model", Tag: tag,
			Summary: "Guess which model a program is set to: none is guessed", Out: api.Null{},
			Handle: func(rc *api.Request) (api.Response, error) {
				_, err := adapterFor(rc)
				return api.OK(api.Null{}), err
			}},
		{Method: "POST", Path: one + "/test-environment", Once: true, Tag: tag,
			Summary: "Look what is missing for an adapter, on which node", Who: api.Board, In: testAdapterBody{},
			Out: adapterReport{}, Timeout: probeTimeout,
			Handle: testAdapter},
	}
}

func adapterFor(rc *api.Request) (adapter.Kind, error) {
	k, ok := adapter.Find(rc.Path("type"))
	if !ok {
		return k, api.NotFound("Unknown adapter type: " + api.Cut(rc.Path("type"), 100))
	}
	if rc.Path("companyId") == "" {
		return k, nil
	}
	return k, api.InCompany(rc, func(*ledger.Tx, entity.Company) error { return nil })
}

func readAdapter(rc *api.Request) (api.Response, error) {
	k, err := adapterFor(rc)
	if err != nil {
		return api.Response{}, err
	}
	i := slices.IndexFunc(adapters, func(a adapterInfo) bool { return a.Type == k.Type })
	return api.OK(adapterDetail{adapterInfo: adapters[i], Note: k.Note, Keys: full(k.Keys), Models: full(k.Models),
		Fields: full(k.Fields)}), nil
}

func full[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// listAdapterModels lists the known models of an adapter and, where its calls go through
// the gateway, the model names of the upstreams that the company reaches.
func listAdapterModels(rc *api.Request) (api.Response, error) {
	k, err := adapterFor(rc)
	if err != nil {
		return api.Response{}, err
	}
	out := full(slices.Clone(k.Models))
	if !k.Gateway {
		return api.OK(out), nil
	}
	err = rc.View(func(tx *ledger.Tx) error {
		for _, p := range money.UpstreamsOf(tx, api.CompanyID(rc)) {
			for _, m := range p.Models {
				known := slices.ContainsFunc(out, func(o adapter.OfferedModel) bool { return o.ID == m.Name })
				if !p.Disabled && !known && !strings.HasSuffix(m.Name, "*") {
					out = append(out, adapter.OfferedModel{ID: m.Name, Label: m.Name + " (" + p.Name + ")"})
				}
			}
		}
		return nil
	})
	return api.OK(out), err
}

func testAdapter(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[testAdapterBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	k, err := adapterFor(rc)
	if err != nil {
		return api.Response{}, err
	}
	if s.Cfg.ProbeAdapter == nil {
		return api.Response{}, api.Unavailable("This node can not look for adapters")
	}
	report := adapterReport{Type: k.Type, TestedAt: core.TimeOf(rc.Now()), Nodes: []nodeReport{}}
	var shared []adapter.Finding
	err = rc.View(func(tx *ledger.Tx) error {
		for _, n := range ledger.Roster(tx) {
			here := n.ID == s.Cfg.NodeID
			if !n.Member() || in.Node != "" && in.Node != string(n.ID) && in.Node != n.Name || len(report.Nodes) == maxProbed {
				continue
			}
			if in.Node == "" && !here && s.Cfg.Alive != nil && !s.Cfg.Alive(n.ID) {
				continue
			}
			report.Nodes = append(report.Nodes, nodeReport{Node: string(n.ID), Name: n.Name})
		}
		if k.Gateway && len(money.UpstreamsOf(tx, api.CompanyID(rc))) == 0 {
			shared = append(shared, adapter.Finding{Code: "no_upstream", Level: "warn",
				Message: "The model gateway has no upstream for this company",
				Hint:    "selvage model provider add"})
		}
		return nil
	})
	if err != nil {
		return api.Response{}, err
	}
	if len(report.Nodes) == 0 {
		return api.Response{}, api.NotFound("Node not found")
	}
	var wg sync.WaitGroup
	for i := range report.Nodes {
		wg.Go(func() {
			n := &report.Nodes[i]
			checks, err := s.Cfg.ProbeAdapter(rc.HTTP.Context(), identity.NodeID(n.Node), k.Type, in.Config.Or(nil))
			if err != nil {
				checks = []adapter.Finding{{Code: "node_unreachable", Level: "error", Message: "The node does not answer"}}
			}
			n.Checks = append(full(checks), shared...)
			n.Status = adapter.Verdict(n.Checks)
		})
	}
	wg.Wait()
	for _, want := range []string{"fail", "warn", "pass"} { // the best status comes last
		if i := slices.IndexFunc(report.Nodes, func(n nodeReport) bool { return n.Status == want }); i >= 0 {
			report.Status, report.Checks = want, report.Nodes[i].Checks
		}
	}
	return api.OK(report), nil
}
