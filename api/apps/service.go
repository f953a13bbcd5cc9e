package apps

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	calls "github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/ledger"
)

// serviceRoutes are those of the services of a company's apps.
func serviceRoutes() []api.Route {
	const tag, at = "apps", "/api/companies/{companyId}/services"
	return []api.Route{
		{Method: "GET", Path: at, Tag: tag,
			Summary: "List the services that the apps of a company offer, with their contracts",
			Out:     []appServiceRow{}, Handle: listServices},
		{Method: "POST", Path: at + "/{app}/{service}/call", Tag: tag, Once: true,
			Summary: "Call a method of a service of an app, wherever it runs", In: appCallBody{}, Out: appCallAnswer{},
			Timeout: calls.MaxTimeout + 5*time.Second, Handle: callService},
	}
}

type (
	appServiceRow struct {
		Name      string            `json:"name" doc:"APP/SERVICE"`
		Version   string            `json:"version" doc:"of the contract"`
		Contract  string            `json:"contract" doc:"SHA-256 of name, version and methods"`
		Methods   []appMethodRow    `json:"methods"`
		Probe     string            `json:"probe"`
		Health    calls.Health      `json:"health" enum:"healthy,degraded,unhealthy,unknown" doc:"as far as this node knows"`
		Providers []api.ProviderRow `json:"providers"`
	}
	appMethodRow struct {
		Name   string          `json:"name"`
		Doc    string          `json:"description"`
		Params json.RawMessage `json:"params" types:"object,boolean,null"`
		Result json.RawMessage `json:"result" types:"object,boolean,null"`
	}
	appCallBody struct {
		Method  string          `json:"method" minLength:"1" maxLength:"64"`
		Params  json.RawMessage `json:"params,omitempty" types:"any" maxBytes:"1048576"`
		Timeout int64           `json:"timeoutMs,omitempty" minimum:"1" maximum:"300000" doc:"10000 unless given"`
	}
	appCallAnswer struct {
		Service  string          `json:"service"`
		Method   string          `json:"method"`
		Result   json.RawMessage `json:"result" types:"any"`
		By       string          `json:"by" doc:"address of the process that answered"`
		Attempts int             `json:"attempts"`
		Took     int64           `json:"tookMs"`
	}
)

func listServices(rc *api.Request) (api.Response, error) {
	rows := []appServiceRow{}
	err := api.InCompany(rc, func(tx *ledger.Tx, of entity.Company) error {
		for _, s := range service.All(tx) {
			if s.Company != of.ID {
				continue
			}
			row := appServiceRow{Name: s.Name, Version: s.Version, Contract: s.Hash, Probe: s.Probe, Methods: []appMethodRow{}}
			for _, m := range api.MethodsOf(s) {
				row.Methods = append(row.Methods, appMethodRow{m.Name, m.Doc, slices.Clone(m.Params), slices.Clone(m.Result)})
			}
			providers, nodes := api.ProvidersOf(tx, s)
			row.Providers, row.Health = api.Standings(rc, providers, nodes)
			rows = append(rows, row)
		}
		return nil
	})
	return api.OK(rows), err
}

// callService submits the decision to the rules, and calls.
func callService(rc *api.Request) (api.Response, error) {
	in, err := api.Body[appCallBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	if err := rc.ChargeTool(true); err != nil {
		return api.Response{}, err
	}
	sum := sha256.Sum256(in.Params)
	if _, err := rc.Submit(app.KindCall, api.CompanyID(rc), app.Call{App: rc.Path("app"), Service: rc.Path("service"),
		Method: in.Method, Input: hex.EncodeToString(sum[:])}); err != nil {
		return api.Response{}, err
	}
	name := rc.Path("app") + "/" + rc.Path("service")
	a, by, err := api.CallOffered(rc, name, in.Method, in.Params, time.Duration(in.Timeout)*time.Millisecond)
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(appCallAnswer{Service: name, Method: in.Method, Result: a.Result, By: by, Attempts: a.Attempts,
		Took: a.Took.Milliseconds()}), nil
}
