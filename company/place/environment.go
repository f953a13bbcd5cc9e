package place

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A NamedEnvironment is an environment that a company has described: for now, a machine that
// is reached over SSH. It is stored, checked and probed. Runs are executed by nodes only,
// so no agent can be assigned one.
type NamedEnvironment struct {
	ID          string           `cbor:"1,keyasint" json:"id"`
	Company     ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	Name        string           `cbor:"3,keyasint" json:"name"`
	Description core.NullText    `cbor:"4,keyasint,omitempty" json:"description"`
	Driver      string           `cbor:"5,keyasint" json:"driver"` // ssh
	Status      string           `cbor:"6,keyasint" json:"status"` // active or archived
	Config      json.RawMessage  `cbor:"7,keyasint" json:"config"` // an SSHConfig
	CreatedAt   core.Time        `cbor:"8,keyasint" json:"createdAt"`
	UpdatedAt   core.Time        `cbor:"9,keyasint" json:"updatedAt"`
}

// Clone returns a copy that shares no memory with e.
func (e NamedEnvironment) Clone() NamedEnvironment {
	e.Config = slices.Clone(e.Config)
	return e
}

// An SSHConfig says how to connect to a machine. The private key is a reference to a secret
// of the company, never the key itself.
type SSHConfig struct {
	Host       string        `json:"host"`
	Port       int           `json:"port"`
	User       string        `json:"username"`
	Path       string        `json:"remoteWorkspacePath"`
	PrivateKey *string       `json:"privateKey"` // always null
	Key        *SecretRef    `json:"privateKeySecretRef"`
	KnownHosts core.NullText `json:"knownHosts"`
	Strict     bool          `json:"strictHostKeyChecking"`
}

// A SecretRef names a version of a secret, as variables do.
type SecretRef struct {
	Type    string          `json:"type"` // secret_ref
	Secret  string          `json:"secretId"`
	Version json.RawMessage `json:"version"` // "latest" or a number
}

var NamedEnvironments = core.Owned(ledger.NewTable[string, NamedEnvironment]("environment"))

const (
	// MaxEnvironments bounds the environments of one company: lists return all of them.
	MaxEnvironments = 50
	// maxEnvironmentConfig bounds a configuration, in bytes.
	maxEnvironmentConfig = 32 << 10
)

// SaveEnvironment is the payload of environment.save. It creates an environment, or changes
// the one with this ID; then a nil field keeps the value.
type SaveEnvironment struct {
	ID          string          `cbor:"1,keyasint"`
	Name        *string         `cbor:"2,keyasint,omitempty"`
	Description *string         `cbor:"3,keyasint,omitempty"`
	Driver      string          `cbor:"4,keyasint,omitempty"`
	Status      *string         `cbor:"5,keyasint,omitempty"`
	Config      json.RawMessage `cbor:"6,keyasint,omitempty"`
	New         bool            `cbor:"7,keyasint,omitempty"`
}

// NameEnvironment is the payload of environment.delete and of environment.probe. The latter
// records that a node was asked to check whether a machine answers.
type NameEnvironment struct {
	ID     string `cbor:"1,keyasint,omitempty"` // empty for an environment that is not stored
	Driver string `cbor:"2,keyasint,omitempty"`
}

const (
	KindEnvironmentSave   = "environment.save"
	KindEnvironmentDelete = "environment.delete"
	KindEnvironmentProbe  = "environment.probe"
)

var environmentKinds = []company.Kind{
	{Name: KindEnvironmentSave, From: company.FromBoard, Needs: entity.ManageSpaces, Weight: company.Weights.SetUp,
		Do: ledger.Typed(saveEnvironment)},
	{Name: KindEnvironmentDelete, From: company.FromBoard, Needs: entity.ManageSpaces, Weight: company.Weights.Erase,
		Do: ledger.Typed(deleteEnvironment)},
	{Name: KindEnvironmentProbe, From: company.FromBoard, Needs: entity.ManageSpaces, Weight: company.Weights.Execute,
		Do: ledger.Typed(probeEnvironment)},
}

// EnvironmentsOf returns the environments of a company, oldest first.
func EnvironmentsOf(tx *ledger.Tx, company ledger.CompanyID) []NamedEnvironment {
	out := []NamedEnvironment{}
	for _, e := range NamedEnvironments.All(tx, company) {
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b NamedEnvironment) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return out
}

// EnvironmentByID finds an environment of any company.
func EnvironmentByID(tx *ledger.Tx, id string) (NamedEnvironment, bool) {
	if !core.IsID(id) {
		return NamedEnvironment{}, false
	}
	return NamedEnvironments.Get(tx, core.OwnerOf(tx, id), id)
}

// SSH decodes the configuration of e.
func (e NamedEnvironment) SSH() (s SSHConfig) {
	_ = json.Unmarshal(e.Config, &s) // checked when it was saved
	return s
}

var (
	hostText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.:_-]{0,252}$`)
	userText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._-]{0,63}$`)
)

// ReadSSHConfig checks an SSH configuration and returns it with defaults filled in.
func ReadSSHConfig(b json.RawMessage) (SSHConfig, error) {
	s := SSHConfig{Port: 22, Strict: true}
	if len(b) > maxEnvironmentConfig {
		return s, ledger.Refuse(ledger.TooLarge, nil, "config is longer than %d bytes", maxEnvironmentConfig)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, ledger.Refuse(ledger.Invalid, nil, "config does not describe how a machine is reached over ssh")
	}
	wrong := func(field, why string) error {
		return ledger.Refuse(ledger.Unprocessable, nil, "config.%s: %s", field, why)
	}
	switch {
	case s.PrivateKey != nil && *s.PrivateKey != "":
		return s, wrong("privateKey", "keys are no part of configurations; make a secret of it and name that in "+
			"privateKeySecretRef")
	case !hostText.MatchString(s.Host):
		return s, wrong("host", "a name or an address is needed")
	case s.Port < 1 || s.Port > 65535:
		return s, wrong("port", "expected 1 to 65535")
	case !userText.MatchString(s.User):
		return s, wrong("username", "the name of a user is needed")
	case !strings.HasPrefix(s.Path, "/") || len(s.Path) > 4096 || strings.ContainsAny(s.Path, "\x00\n"):
		return s, wrong("remoteWorkspacePath", "an absolute path is needed")
	case len(s.KnownHosts) > 16<<10:
		return s, wrong("knownHosts", "at most 16 KiB")
	case s.Key != nil && (s.Key.Type != "secret_ref" || !core.IsID(s.Key.Secret)):
		return s, wrong("privateKeySecretRef", "expected a secret_ref with the ID of a secret")
	}
	if s.Key != nil {
		if v := string(s.Key.Version); v == "" || v == "null" {
			s.Key.Version = json.RawMessage(`"latest"`)
		} else if n, err := json.Number(v).Int64(); v != `"latest"` && (err != nil || n < 1) {
			return s, wrong("privateKeySecretRef", "version: expected latest or a number")
		}
	}
	s.PrivateKey = nil
	return s, nil
}

func saveEnvironment(c *ledger.Context, p SaveEnvironment) (any, error) {
	of, now, action := c.Cmd.Company, core.TimeOf(c.Now), "environment.updated"
	e, ok := NamedEnvironments.Get(c.Tx, of, p.ID)
	switch {
	case !core.IsID(p.ID) || p.New && (ok || core.OwnerOf(c.Tx, p.ID) != ""):
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed ID of an environment")
	case !ok && !p.New:
		return nil, errNoEnvironment()
	case p.Driver != "" && p.Driver != "ssh" || ok && p.Driver != "" && p.Driver != e.Driver:
		return nil, ledger.Refuse(ledger.Unprocessable, nil, "driver: must be ssh, and can not change")
	}
	if p.New {
		if err := core.HasRoom(NamedEnvironments.All(c.Tx, of), MaxEnvironments, "environments"); err != nil {
			return nil, err
		}
		action = "environment.created"
		e = NamedEnvironment{ID: p.ID, Company: of, Driver: "ssh", Status: "active", CreatedAt: now}
	}
	core.Assign(&e.Name, p.Name)
	core.AssignText(&e.Description, p.Description)
	core.Assign(&e.Status, p.Status)
	if len(p.Config) > 0 || p.New {
		s, err := ReadSSHConfig(p.Config)
		if err != nil {
			return nil, err
		}
		if s.Key != nil {
			if _, ok := company.Ask.Known(c.Tx, of, s.Key.Secret); !ok {
				return nil, ledger.Refuse(ledger.NotFound, nil, "Secret not found")
			}
		}
		if e.Config, err = json.Marshal(s); err != nil {
			return nil, err
		}
	}
	if strings.TrimSpace(e.Name) == "" || len(e.Name) > entity.MaxName || len(e.Description) > entity.MaxText ||
		e.Status != "active" && e.Status != "archived" {
		return nil, ledger.Refuse(ledger.Invalid, nil,
			"An environment needs a name of at most %d bytes, and is active or archived", entity.MaxName)
	}
	for _, o := range NamedEnvironments.All(c.Tx, of) {
		if o.ID != e.ID && o.Name == e.Name {
			return nil, ledger.Refuse(ledger.Conflict, nil, "Environment already exists: %s", e.Name)
		}
	}
	e.UpdatedAt = now
	c.Record(e.change(action))
	return NamedEnvironments.Put(c.Tx, of, e.ID, e), nil
}

func errNoEnvironment() error { return ledger.Refuse(ledger.NotFound, nil, "Environment not found") }

func (e NamedEnvironment) change(action string) ledger.Change {
	return ledger.Change{Action: action, EntityType: "environment", EntityID: e.ID, Details: core.Object{}.Str("name",
		e.Name).Str("driver", e.Driver).Str("status", e.Status).Close()}
}

func deleteEnvironment(c *ledger.Context, p NameEnvironment) (any, error) {
	e, ok := NamedEnvironments.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoEnvironment()
	}
	NamedEnvironments.Delete(c.Tx, c.Cmd.Company, e.ID)
	c.Record(e.change("environment.deleted"))
	return e, nil
}

func probeEnvironment(c *ledger.Context, p NameEnvironment) (any, error) {
	if p.ID == "" {
		c.Record(ledger.Change{Action: "environment.probed_unsaved", EntityType: "company", EntityID: string(c.Cmd.Company),
			Details: core.Object{}.Str("driver", core.Snippet(p.Driver, 40)).Close()})
		return nil, nil
	}
	if p.ID == entity.LocalEnvironment.ID {
		c.Record(ledger.Change{Action: "environment.probed", EntityType: "environment", EntityID: p.ID,
			Details: core.Object{}.Str("driver", "local").Close()})
		return nil, nil
	}
	e, ok := NamedEnvironments.Get(c.Tx, c.Cmd.Company, p.ID)
	if !ok {
		return nil, errNoEnvironment()
	}
	c.Record(e.change("environment.probed"))
	return nil, nil
}
