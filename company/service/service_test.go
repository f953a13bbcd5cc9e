package service_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/ledger"
)

func mail() service.Register {
	return service.Register{Name: "mail", Version: "1", Provider: "mailer", Probe: "ping",
		Methods: []service.Method{{Name: "send", Params: json.RawMessage(`{"type":"object"}`)}, {Name: "ping"}}}
}

// A version has one contract for ever; the provider of a service may change.
func TestAContractDoesNotChange(t *testing.T) {
	d := companytest.NewDesk(t)
	d.Company = ""
	var s service.Service
	d.Must(t, companytest.Board, service.KindRegister, mail(), &s)
	first := s.Hash
	other := mail()
	other.Provider = "postman"
	d.Must(t, companytest.Board, service.KindRegister, other, &s)
	if s.Hash != first || s.Provider != "postman" || s.Registered != 2 {
		t.Errorf("registered again it is %+v", s)
	}
	other.Methods = other.Methods[1:]
	companytest.WantRefusal(t, d.Do(companytest.Board, service.KindRegister, other, nil), ledger.Conflict,
		"service mail: version 1 has another contract; a changed contract needs a new version")
	other.Version = "2"
	d.Must(t, companytest.Board, service.KindRegister, other, &s)
	if s.Hash == first || len(s.Methods) != 1 {
		t.Errorf("version 2 is %+v", s)
	}
	d.Must(t, companytest.Board, service.KindRemove, service.Remove{Name: "mail"}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, service.KindRemove, service.Remove{Name: "mail"}, nil),
		ledger.NotFound, "Service not found")
}

func TestBadContractsAreRefused(t *testing.T) {
	d := companytest.NewDesk(t)
	d.Company = ""
	for want, change := range map[string]func(*service.Register){
		"name: ":        func(p *service.Register) { p.Name = "a/b" },
		"provider: ":    func(p *service.Register) { p.Provider = "" },
		"version: ":     func(p *service.Register) { p.Version = "" },
		"methods: 1 to": func(p *service.Register) { p.Methods = nil },
		"twice":         func(p *service.Register) { p.Methods[1].Name = "send" },
		"is not JSON":   func(p *service.Register) { p.Methods[0].Result = json.RawMessage(`{`) },
		"at most 16384": func(p *service.Register) {
			p.Methods[0].Params = json.RawMessage(`"` + strings.Repeat("x", service.MaxSchema) + `"`)
		},
		"probe: ": func(p *service.Register) { p.Probe = "health" },
	} {
		p := mail()
		change(&p)
		if err := d.Do(companytest.Board, service.KindRegister, p, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
