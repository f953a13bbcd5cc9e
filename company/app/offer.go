package app

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxServices bounds the services of an app, MaxTools its tools.
	MaxServices = 8
	MaxTools    = 32
)

// A Service is a service of an app: its contract, and the process that provides it. Names are those of the manifest.
type Service struct {
	Name     string             `cbor:"1,keyasint"`
	Process  company.NewProcess `cbor:"2,keyasint"` // without a name
	Contract company.NewService `cbor:"3,keyasint"` // without name and provider
}

// process returns the process of a service, named for the app of a company.
func (s Service) process(a App) company.NewProcess {
	return s.Process.Named(serviceProcess + core.DerivedID("app-service", string(a.Company)+"/"+a.Name+"/"+s.Name))
}

// ServiceProcess returns the name of the process that provides a service.
func (a App) ServiceProcess(s Service) string { return s.process(a).Name }

// offer returns the contract as the registry takes it.
func (s Service) offer(a App) company.NewService {
	o := s.Contract
	o.Name, o.Provider = a.Name+"/"+s.Name, s.process(a).Name
	return o
}

// checkOffers refuses services, tools and programs that the rooms would, or that are too many.
func (r Release) checkOffers() error {
	if len(r.Services) > MaxServices || len(r.Tools) > MaxTools || len(r.Programs) > len(Events) {
		return ledger.Refuse(ledger.TooLarge, nil, "an app has at most %d services, %d tools and a program for each hook",
			MaxServices, MaxTools)
	}
	seen := map[string]bool{}
	for _, s := range r.Services {
		if !IsName(s.Name) || seen[s.Name] {
			return ledger.Refuse(ledger.Invalid, nil, "services: %q is no name, or is there twice", core.Snippet(s.Name, 80))
		}
		seen[s.Name] = true
		if err := company.Ask.Processes.CheckProcess(s.Process.Named("app." + s.Name[:1])); err != nil {
			return err
		}
	}
	seen = map[string]bool{}
	for _, t := range r.Tools {
		if seen[t.Name] {
			return ledger.Refuse(ledger.Invalid, nil, "tools: %s is there twice", core.Snippet(t.Name, 80))
		}
		seen[t.Name] = true
	}
	for _, p := range r.Programs {
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

// provide brings the services and tools of an app to what a says, from what was says; a nil one is no app. A service
// whose process is the same runs on.
func provide(c *ledger.Context, was, a *App) error {
	c = c.Within(c.Cmd) // the change of the app is its one line
	if was != nil {
		for _, s := range was.Now.Services {
			if a == nil || a.service(s.Name) == nil {
				company.Ask.Processes.EndProcess(c, s.process(*was).Name)
				company.Ask.Services.WithdrawService(c, was.Name+"/"+s.Name)
			}
		}
		for _, t := range was.Now.Tools {
			if a == nil || !a.hasTool(t.Name) {
				company.Ask.Tools.WithdrawTool(c, t.Name)
			}
		}
	}
	if a == nil {
		return nil
	}
	runs := a.State == Running
	for _, s := range a.Now.Services {
		if err := company.Ask.Services.OfferService(c, s.offer(*a)); err != nil {
			return err
		}
		if !runs {
			company.Ask.Processes.EndProcess(c, s.process(*a).Name)
			continue
		}
		if was != nil && was.State == Running && s.same(was.service(s.Name)) {
			continue
		}
		if err := company.Ask.Processes.StartProcess(c, s.process(*a), true); err != nil {
			return err
		}
	}
	for _, t := range a.Now.Tools {
		if name, _, _ := strings.Cut(t.Name, "/"); name != a.Name {
			return ledger.Refuse(ledger.Invalid, nil, "tools: %s is not of the app %s", core.Snippet(t.Name, 80), a.Name)
		}
		if err := company.Ask.Tools.OfferTool(c, t); err != nil {
			return err
		}
		if !runs {
			company.Ask.Tools.RestTool(c, t.Name)
		}
	}
	return nil
}

func (a App) service(name string) *Service {
	at := slices.IndexFunc(a.Now.Services, func(s Service) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &a.Now.Services[at]
}

func (a App) hasTool(name string) bool {
	return slices.ContainsFunc(a.Now.Tools, func(t company.NewTool) bool { return t.Name == name })
}

// same reports whether a service has the process that another one has.
func (s Service) same(was *Service) bool {
	return was != nil && bytes.Equal(ledger.Marshal(s.Process), ledger.Marshal(was.Process))
}

// Call is the payload of app.call, which decides whether a method of an app's service may be called now.
type Call struct {
	App     string `cbor:"1,keyasint"`
	Service string `cbor:"2,keyasint"`
	Method  string `cbor:"3,keyasint"`
	Input   string `cbor:"4,keyasint"` // SHA-256 of the parameters, hex
}

// call allows or refuses a call of a service.
func call(c *ledger.Context, p Call) (any, error) {
	if !core.IsHash(p.Input) || len(p.Method) > maxText {
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed call of a service")
	}
	switch why := company.DeniedTo(c.Tx, c.Cmd.Company, c.Cmd.Actor); why {
	case "":
	case company.DeniedMeshStopped:
		return nil, company.RefuseDenied(why, "Everything is stopped")
	default:
		return nil, company.RefuseDenied(why, "The agent may call no services now: %s", why)
	}
	a, ok := Named(c.Tx, c.Cmd.Company, p.App)
	switch {
	case !ok || a.service(p.Service) == nil:
		return nil, ledger.Refuse(ledger.NotFound, nil, "Service not found")
	case a.State != Running:
		return nil, ledger.Refuse(ledger.Conflict, json.RawMessage(`{"code":"app_stopped"}`),
			"The app %s does not run; start it first", a.Name)
	}
	c.Record(ledger.Change{Action: "app.service_called", EntityType: "app", EntityID: a.ID,
		Details: core.Object{}.Str("service", a.Name+"/"+p.Service).Str("method", core.Snippet(p.Method, 80)).
			Str("inputSha256", p.Input).Close()})
	return nil, nil
}
