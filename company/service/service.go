// Package service is the registry of services: what each is called, what its methods take and
// answer, and which declared process provides it. It is state of the mesh; calls and probes
// are made by nodes.
package service

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxServices bounds the services of a mesh, MaxMethods the methods of each, and MaxSchema
	// one schema in bytes; MaxContract bounds all schemas of a service together: they are one
	// row, which each call reads.
	MaxServices = 256
	MaxMethods  = 32
	MaxSchema   = 16 << 10
	MaxContract = 128 << 10
	maxDoc      = 500
	maxVersion  = 64
)

// A Service is a contract and who fulfils it.
type Service struct {
	Name     string   `cbor:"1,keyasint" json:"name"`
	Version  string   `cbor:"2,keyasint" json:"version"`
	Provider string   `cbor:"3,keyasint" json:"provider"` // name of a declared process
	Methods  []Method `cbor:"4,keyasint" json:"methods"`
	// method that says whether a provider works; "": that it runs is enough
	Probe      string    `cbor:"5,keyasint,omitempty" json:"probe"`
	Hash       string    `cbor:"6,keyasint" json:"contract"`   // SHA-256 of name, version and methods
	Registered uint64    `cbor:"7,keyasint" json:"registered"` // how often it was
	By         string    `cbor:"8,keyasint" json:"registeredBy"`
	CreatedAt  core.Time `cbor:"9,keyasint" json:"createdAt"`
	UpdatedAt  core.Time `cbor:"10,keyasint" json:"updatedAt"`
	// Company has the service: an app of it does, and Name is APP/SERVICE. "": it is one of the mesh.
	Company ledger.CompanyID `cbor:"11,keyasint,omitempty" json:"companyId"`
}

// key returns the key of the row.
func (s Service) key() string {
	if s.Company == "" {
		return s.Name
	}
	return string(s.Company) + "/" + s.Name
}

// A Method is what a service can be asked. An absent schema takes anything.
type Method struct {
	Name   string          `cbor:"1,keyasint" json:"name"`
	Doc    string          `cbor:"2,keyasint,omitempty" json:"description"`
	Params json.RawMessage `cbor:"3,keyasint,omitempty" json:"params"`
	Result json.RawMessage `cbor:"4,keyasint,omitempty" json:"result"`
}

// Clone returns a copy that shares no memory with s.
func (s Service) Clone() Service {
	s.Methods = slices.Clone(s.Methods)
	for i, m := range s.Methods {
		s.Methods[i].Params, s.Methods[i].Result = slices.Clone(m.Params), slices.Clone(m.Result)
	}
	return s
}

// Method returns a method by name.
func (s Service) Method(name string) (Method, bool) {
	i := slices.IndexFunc(s.Methods, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return Method{}, false
	}
	return s.Methods[i], true
}

var services = ledger.NewMeshTable[string, Service]("service")

// Of returns a service of an app of a company, by its name APP/SERVICE.
func Of(tx *ledger.Tx, of ledger.CompanyID, name string) (Service, bool) {
	if of == "" || !appSyntax.MatchString(name) {
		return Service{}, false
	}
	return services.Get(tx, string(of)+"/"+name)
}

// Named returns a service of the mesh.
func Named(tx *ledger.Tx, name string) (Service, bool) {
	if !nameSyntax.MatchString(name) {
		return Service{}, false
	}
	return services.Get(tx, name)
}

// All returns the services of the mesh and of all companies, by name.
func All(tx *ledger.Tx) []Service {
	out := []Service{}
	for _, s := range services.All(tx) {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Service) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Company, b.Company))
	})
	return out
}

// Register is the payload of service.register. A service of the same name gets the new
// contract and provider.
type Register struct {
	Name     string   `cbor:"1,keyasint"`
	Version  string   `cbor:"2,keyasint"`
	Provider string   `cbor:"3,keyasint"`
	Methods  []Method `cbor:"4,keyasint"`
	Probe    string   `cbor:"5,keyasint,omitempty"`

	company ledger.CompanyID // of an app's service; not a part of the payload
}

// Remove is the payload of service.remove.
type Remove struct {
	Name string `cbor:"1,keyasint"`
}

// The kinds of commands.
const (
	KindRegister = "service.register"
	KindRemove   = "service.remove"
)

// Rules are those of this room.
var Rules = company.Rules{Kinds: []company.Kind{
	{Name: KindRegister, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
		Weight: company.Weights.MeshSettings, Do: ledger.Typed(register)},
	{Name: KindRemove, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
		Weight: company.Weights.MeshSettings, Do: ledger.Typed(remove)},
}, Services: registry{}}

var (
	nameSyntax = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	appSyntax  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}/[a-z0-9][a-z0-9_-]{0,63}$`)
)

func (p Register) check() error {
	bad := func(format string, args ...any) error { return ledger.Refuse(ledger.Invalid, nil, format, args...) }
	const shape = "1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit"
	name := nameSyntax
	if p.company != "" {
		name = appSyntax
	}
	switch {
	case !name.MatchString(p.Name):
		return bad("name: %s", shape)
	case !nameSyntax.MatchString(p.Provider):
		return bad("provider: the name of a declared process, %s", shape)
	case p.Version == "" || len(p.Version) > maxVersion:
		return bad("version: required, at most %d bytes", maxVersion)
	case len(p.Methods) == 0 || len(p.Methods) > MaxMethods:
		return bad("methods: 1 to %d, not %d", MaxMethods, len(p.Methods))
	}
	seen, total := map[string]bool{}, 0
	for _, m := range p.Methods {
		total += len(m.Params) + len(m.Result)
		switch {
		case !nameSyntax.MatchString(m.Name):
			return bad("methods: name %q: %s", core.Snippet(m.Name, 80), shape)
		case seen[m.Name]:
			return bad("methods: %s is there twice", m.Name)
		case len(m.Doc) > maxDoc:
			return bad("methods: the description of %s has at most %d bytes", m.Name, maxDoc)
		case len(m.Params) > MaxSchema || len(m.Result) > MaxSchema:
			return bad("methods: a schema of %s has at most %d bytes", m.Name, MaxSchema)
		case len(m.Params) > 0 && !json.Valid(m.Params) || len(m.Result) > 0 && !json.Valid(m.Result):
			return bad("methods: a schema of %s is not JSON", m.Name)
		}
		seen[m.Name] = true
	}
	switch {
	case total > MaxContract:
		return bad("methods: the schemas have %d bytes together, at most %d", total, MaxContract)
	case p.Probe != "" && !seen[p.Probe]:
		return bad("probe: %q is none of the methods", core.Snippet(p.Probe, 80))
	}
	return nil
}

func register(c *ledger.Context, p Register) (any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	s, known := services.Get(c.Tx, Service{Name: p.Name, Company: p.company}.key())
	if !known {
		if len(All(c.Tx)) >= MaxServices {
			return nil, ledger.Refuse(ledger.Conflict, nil, "the mesh has %d services, as many as it may have: remove one",
				MaxServices)
		}
		s = Service{Name: p.Name, Company: p.company, CreatedAt: now}
	}
	sum := sha256.Sum256(ledger.Marshal(Register{Name: p.Name, Version: p.Version, Methods: p.Methods}))
	hash := hex.EncodeToString(sum[:])
	if known && s.Version == p.Version && s.Hash != hash {
		return nil, ledger.Refuse(ledger.Conflict, nil,
			"service %s: version %s has another contract; a changed contract needs a new version", p.Name, p.Version)
	}
	s.Version, s.Provider, s.Methods, s.Probe, s.Hash, s.UpdatedAt, s.By = p.Version, p.Provider, p.Methods, p.Probe, hash,
		now, c.Cmd.Actor.ID
	s.Registered++
	services.Put(c.Tx, s.key(), s)
	c.Record(ledger.Change{Action: "service.registered", EntityType: "service", EntityID: s.Name,
		Details: core.Object{}.Str("version", s.Version).Str("provider", s.Provider).Str("contract", s.Hash).
			Int("methods", int64(len(s.Methods))).Close()})
	return s, nil
}

func remove(c *ledger.Context, p Remove) (any, error) {
	s, ok := Named(c.Tx, p.Name)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "Service not found")
	}
	services.Delete(c.Tx, s.Name)
	c.Record(ledger.Change{Action: "service.removed", EntityType: "service", EntityID: s.Name,
		Details: core.Object{}.Str("version", s.Version).Close()})
	return nil, nil
}

// A registry takes the services of apps.
type registry struct{}

// OfferService registers a service of an app.
func (registry) OfferService(c *ledger.Context, s company.NewService) error {
	p := Register{Name: s.Name, Version: s.Version, Provider: s.Provider, Probe: s.Probe, company: c.Cmd.Company}
	for _, m := range s.Methods {
		p.Methods = append(p.Methods, Method(m))
	}
	_, err := register(c, p)
	return err
}

// WithdrawService removes a service of an app, if it is there.
func (r registry) WithdrawService(c *ledger.Context, name string) {
	r.ForgetService(c.Tx, c.Cmd.Company, name)
}

// ForgetService removes a service of an app, if it is there.
func (registry) ForgetService(tx *ledger.Tx, of ledger.CompanyID, name string) {
	if s, ok := Of(tx, of, name); ok {
		services.Delete(tx, s.key())
	}
}
