package process

import (
	"encoding/json"
	"sync"
	"time"

	calls "github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/ledger"
)

// ServiceRoutes are those of the registry of services.
func ServiceRoutes() []api.Route {
	const tag, at = "kernel", "/api/v1/services"
	return []api.Route{
		api.Read(api.Route{Path: at, Tag: tag,
			Summary: "List the services of the mesh, with how their providers stand as far as this node knows",
			Who:     api.Admin}, listServices),
		{Method: "PUT", Path: at + "/{name}", Tag: tag,
			Summary: "Register a service: its contract, and the declared process that provides it", Who: api.Admin,
			In: serviceBody{}, Out: serviceRow{}, Handle: registerService},
		{Method: "GET", Path: at + "/{name}", Tag: tag, Summary: "Read a service with its contract and its providers",
			Who: api.Admin, Out: serviceRow{}, Handle: readService},
		{Method: "DELETE", Path: at + "/{name}", Tag: tag, Summary: "Remove a service; its providers run on", Who: api.Admin,
			Status: 204, Handle: removeService},
		{Method: "POST", Path: at + "/{name}/call", Once: true, Tag: tag,
			Summary: "Call a method of a service at a provider that lives, wherever it runs", Who: api.Admin,
			In: callBody{}, Out: callAnswer{}, Timeout: calls.MaxTimeout + 5*time.Second, Handle: callService},
		{Method: "GET", Path: at + "/{name}/health", Tag: tag,
			Summary: "Probe the providers of a service now, and say how they are", Who: api.Admin, Out: healthAnswer{},
			Handle: probeService},
	}
}

type (
	serviceBody struct {
		Version  string       `json:"version" minLength:"1" maxLength:"64" maxBytes:"64" doc:"a changed contract needs a new one"`
		Provider string       `json:"provider" minLength:"1" maxLength:"64" doc:"name of a declared process"`
		Methods  []methodBody `json:"methods" minItems:"1" maxItems:"32"`
		Probe    string       `json:"probe,omitempty" maxLength:"64" doc:"method that says whether a provider works; unless given, that it runs is enough"`
	}
	methodBody struct {
		Name   string          `json:"name" minLength:"1" maxLength:"64"`
		Doc    string          `json:"description,omitempty" maxLength:"500" maxBytes:"500"`
		Params json.RawMessage `json:"params,omitempty" types:"object,boolean,null" maxBytes:"16384" doc:"JSON schema of the parameters; anything unless given"`
		Result json.RawMessage `json:"result,omitempty" types:"object,boolean,null" maxBytes:"16384" doc:"JSON schema of the result; anything unless given"`
	}
	serviceRow struct {
		service.Service
		Health    calls.Health      `json:"health" enum:"healthy,degraded,unhealthy,unknown"`
		Providers []api.ProviderRow `json:"providers"`
	}
	serviceRows struct {
		Services []serviceRow `json:"services"`
	}
	callBody struct {
		Method  string          `json:"method" minLength:"1" maxLength:"64"`
		Params  json.RawMessage `json:"params,omitempty" types:"any" maxBytes:"1048576"`
		Timeout int64           `json:"timeout_ms,omitempty" minimum:"1" maximum:"300000" doc:"10000 unless given"`
	}
	callAnswer struct {
		Service  string          `json:"service"`
		Method   string          `json:"method"`
		Result   json.RawMessage `json:"result"`
		By       string          `json:"by"` // address of the provider
		Attempts int             `json:"attempts"`
		Took     int64           `json:"took_ms"`
	}
	healthAnswer struct {
		Service   string            `json:"service"`
		Health    calls.Health      `json:"health" enum:"healthy,degraded,unhealthy,unknown"`
		Providers []api.ProviderRow `json:"providers"`
	}
)

func serviceRowOf(rc *api.Request, tx *ledger.Tx, s service.Service) serviceRow {
	providers, nodes := api.ProvidersOf(tx, s)
	s.Methods = api.MethodsOf(s)
	row := serviceRow{Service: s}
	row.Providers, row.Health = api.Standings(rc, providers, nodes)
	return row
}

func listServices(tx *ledger.Tx, rc *api.Request) (serviceRows, error) {
	out := serviceRows{Services: []serviceRow{}}
	for _, s := range service.All(tx) {
		out.Services = append(out.Services, serviceRowOf(rc, tx, s))
	}
	return out, nil
}

func findService(tx *ledger.Tx, rc *api.Request) (service.Service, error) {
	s, ok := service.Named(tx, rc.Path("name"))
	if !ok {
		return s, api.NotFound("Service not found")
	}
	return s, nil
}

func readService(rc *api.Request) (api.Response, error) {
	return api.Viewed(rc, func(tx *ledger.Tx) (serviceRow, error) {
		s, err := findService(tx, rc)
		return serviceRowOf(rc, tx, s), err
	})
}

func registerService(rc *api.Request) (api.Response, error) {
	in, err := api.Body[serviceBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	p := service.Register{Name: rc.Path("name"), Version: in.Version, Provider: in.Provider, Probe: in.Probe}
	for _, m := range in.Methods {
		for what, schema := range map[string]json.RawMessage{"params": m.Params, "result": m.Result} {
			if err := calls.CheckSchema(schema); err != nil {
				return api.Response{}, api.Invalid("methods: %s of %s is no JSON schema: %.300s", what, m.Name, err.Error())
			}
		}
		p.Methods = append(p.Methods, service.Method{Name: m.Name, Doc: m.Doc, Params: m.Params, Result: m.Result})
	}
	if _, err := rc.Submit(service.KindRegister, "", p); err != nil {
		return api.Response{}, err
	}
	return readService(rc)
}

func removeService(rc *api.Request) (api.Response, error) {
	_, err := rc.Submit(service.KindRemove, "", service.Remove{Name: rc.Path("name")})
	return api.Response{}, err
}

// theService returns the service that the path names, with its providers.
func theService(rc *api.Request) (s service.Service, all []calls.Provider, nodes map[string]string, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		if s, err = findService(tx, rc); err == nil {
			all, nodes = api.ProvidersOf(tx, s)
		}
		return err
	})
	if err == nil && rc.Server.Cfg.Services == nil {
		err = api.Unavailable("This node calls no services")
	}
	return s, all, nodes, err
}

func callService(rc *api.Request) (api.Response, error) {
	in, err := api.Body[callBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	s, all, nodes, err := theService(rc)
	if err != nil {
		return api.Response{}, err
	}
	a, by, err := api.CallService(rc, s, all, nodes, in.Method, in.Params, time.Duration(in.Timeout)*time.Millisecond)
	if err != nil {
		return api.Response{}, err
	}
	return api.OK(callAnswer{Service: s.Name, Method: in.Method, Result: a.Result, Attempts: a.Attempts,
		Took: a.Took.Milliseconds(), By: by}), nil
}

// probeService probes all providers at once.
func probeService(rc *api.Request) (api.Response, error) {
	s, all, nodes, err := theService(rc)
	if err != nil {
		return api.Response{}, err
	}
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() { rc.Server.Cfg.Services.Probe(rc.Context(), s, p) })
	}
	wg.Wait()
	out := healthAnswer{Service: s.Name}
	out.Providers, out.Health = api.Standings(rc, all, nodes)
	return api.OK(out), nil
}
