package secret

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Resolution is a run's configuration with its secrets in plain text. It exists only on
// the executing node.
type Resolution struct {
	Config json.RawMessage
	Values []string    // to redact in the run's output
	Uses   []SecretUse // to record, also when something is missing
}

// Resolve returns an agent's configuration with all sealed values and references to secrets
// replaced by plain text. Variables of the run's project override the agent's, and those of
// its routine override both. open decrypts sealed bytes. The error names the variables
// without a value and why, but no value; Uses are set even then.
func Resolve(tx *ledger.Tx, mesh string, run entity.Run, config json.RawMessage, open func(aad, sealed []byte) ([]byte,
	error)) (Resolution, error) {
	r := resolver{tx: tx, mesh: mesh, run: run, open: open, vars: map[string]string{}, values: map[string]bool{}}
	err := r.all(config)
	if err != nil {
		return Resolution{Uses: r.uses}, err
	}
	return Resolution{r.config, slices.Sorted(maps.Keys(r.values)), r.uses}, nil
}

// A resolver resolves the references of a run's configuration.
type resolver struct {
	tx     *ledger.Tx
	mesh   string
	run    entity.Run
	open   func(aad, sealed []byte) ([]byte, error)
	vars   map[string]string
	values map[string]bool
	uses   []SecretUse
	config json.RawMessage
	held   []error // what is missing
}

func (r *resolver) all(config json.RawMessage) error {
	env := conceal.EnvOf(config)
	own, err := conceal.Bindings(env)
	if err != nil {
		return err
	}
	for _, b := range own {
		r.bind(r.run.Agent, "adapterConfig.env.", b)
	}
	shared := 0
	over := func(kind, name, id string, env json.RawMessage) error {
		list, err := conceal.Bindings(env)
		if err != nil {
			return fmt.Errorf("%s %q: %w", kind, name, err)
		}
		for _, b := range list {
			r.bind(id, "env.", b)
		}
		shared += len(list)
		return nil
	}
	if p, ok := ProjectOfRun(r.tx, r.run); ok {
		if err := over("project", p.Name, p.ID, p.Env); err != nil {
			return err
		}
	}
	if ro, ok := routineOfRun(r.tx, r.run); ok {
		if err := over("routine", ro.Of.Label, ro.Of.ID, ro.Env); err != nil {
			return err
		}
	}
	if r.config = config; len(own)+shared > 0 {
		r.config = conceal.WithEnv(config, r.vars)
	}
	// Sealed values outside env, such as in headers.
	r.config, err = conceal.OpenConfig(r.config, "adapterConfig", func(path, sealed string) (string, error) {
		plain, err := r.openText(r.run.Agent, path, sealed)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		r.values[plain] = true
		return plain, nil
	})
	return errors.Join(append(r.held, err)...)
}

// bind sets one variable. It collects errors, which are returned together at the end.
func (r *resolver) bind(owner, path string, b conceal.Binding) {
	var value string
	var err error
	switch {
	case b.Sealed:
		value, err = r.openText(owner, path+b.Name, b.Plain)
	case b.Hidden:
		err = errors.New("its value was never given")
	case b.Secret != "":
		s, ok := SecretOf(r.tx, r.run.Company, b.Secret)
		value, err = r.secret(s, ok && s.Scope == "company", b)
	case b.User != "":
		d, ok := UserSecretDefinitionByKey(r.tx, r.run.Company, b.User)
		var s Secret
		if ok = ok && d.Status == "active"; ok {
			s, ok = UserSecret(r.tx, r.run.Company, d.ID, string(r.run.ResponsibleUser))
		}
		value, err = r.secret(s, ok, b)
	default:
		value = b.Plain
	}
	if err != nil {
		r.held = append(r.held, fmt.Errorf("env.%s: %w", b.Name, err))
		return
	}
	if b.Secret != "" || b.User != "" || b.Sealed && conceal.SecretName(b.Name) {
		r.values[value] = true
	}
	r.vars[b.Name] = value
}

// secret decrypts a version of a secret and records the use.
func (r *resolver) secret(s Secret, found bool, b conceal.Binding) (string, error) {
	use := SecretUse{Secret: s.ID, Version: b.Version, Path: "env." + b.Name}
	if !found {
		what := "the secret is not there"
		if b.User != "" {
			what = "the user has no value for " + b.User
		}
		return "", errors.New(what) // no row in which to record the use
	}
	if use.Version == 0 {
		use.Version = s.Latest
	}
	value, err := "", error(nil)
	v, ok := SecretVersionOf(r.tx, s, use.Version)
	switch {
	case s.Status != "active":
		use.Error, err = "secret_"+s.Status, fmt.Errorf("the secret %q is %s", s.Name, s.Status)
	case !ok:
		use.Error, err = "version_missing", fmt.Errorf("the secret %q has no version %d", s.Name, use.Version)
	default:
		var plain []byte
		plain, err = r.open(conceal.SecretAAD(r.mesh, s.Company, s.ID, v.Version), v.Sealed)
		value = string(plain)
		if err != nil {
			use.Error, err = "not_opened", fmt.Errorf("the secret %q does not open here: %w", s.Name, err)
		}
	}
	if len(r.uses) < conceal.MaxRunSecrets {
		r.uses = append(r.uses, use)
	}
	return value, err
}

func (r *resolver) openText(owner, path, sealed string) (string, error) {
	b, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return "", errors.New("it is damaged")
	}
	plain, err := r.open(conceal.ValueAAD(r.mesh, r.run.Company, owner, path), b)
	return string(plain), err
}
