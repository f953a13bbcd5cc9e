package secret_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestSecretsHaveNamesVersionsAndAnEnd(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	id := d.Secret(t, "OPENAI_KEY")
	companytest.WantRefusal(t, d.Do(companytest.Board, "secret.create", secret.SaveSecret{ID: d.ID(), Name: "OPENAI_KEY",
		Sealed: []byte("x")}, nil), ledger.Conflict, "Secret already exists: OPENAI_KEY")
	companytest.WantRefusal(t, d.Do(companytest.Board, "secret.create", secret.SaveSecret{ID: d.ID(), Name: "openai-key",
		Key: "OpenAI_Key", Sealed: []byte("x")}, nil), ledger.Conflict, "Secret key already exists: OpenAI_Key")
	companytest.WantRefusal(t, d.Do(companytest.Board, "secret.create", secret.SaveSecret{ID: d.ID(), Name: "N"}, nil),
		ledger.Invalid, "A secret needs a value")
	companytest.WantRefusal(t, d.Do(companytest.Board, "secret.rotate", secret.RotateSecret{ID: id, Version: 3,
		Sealed: []byte("x")}, nil), ledger.Conflict, "Secret was rotated by someone else")
	for v := 2; v <= secret.MaxSecretVersions+5; v++ {
		d.Must(t, companytest.Board, "secret.rotate", secret.RotateSecret{ID: id, Version: v,
			Sealed: fmt.Append(nil, v)}, nil)
	}
	s, _ := secret.SecretOf(d.Tx, d.Company, id)
	if v, ok := secret.SecretVersionOf(d.Tx, s, 0); !ok || string(v.Sealed) != "55" {
		t.Errorf("latest %+v", v)
	}
	if _, ok := secret.SecretVersionOf(d.Tx, s, 5); ok {
		t.Error("a version beyond the bound is kept")
	}
	if _, ok := secret.SecretVersionOf(d.Tx, s, 6); !ok || s.Oldest != 6 {
		t.Errorf("the oldest version is %d", s.Oldest)
	}
	name := "OTHER/name"
	d.Must(t, companytest.Board, "secret.update", secret.PatchSecret{ID: id, Name: &name}, nil)
	d.Secret(t, "OPENAI-KEY") // the name is free, but the key is derived from it and taken
	d.Must(t, companytest.Board, "secret.delete", secret.DropSecret{ID: id}, nil)
	if n := len(secret.SecretsOf(d.Tx, d.Company, "company", "")); n != 1 {
		t.Errorf("%d secrets are left", n)
	}
	for k := range d.Tx.Prefix(ledger.Key("c", string(d.Company), "")) {
		if strings.Contains(string(k), id) {
			t.Errorf("%q is left", k)
		}
	}
	d.Secret(t, name)
}

func TestUserSecretsAreTheirOwners(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	def, name, mine := d.ID(), "GitHub", d.ID()
	d.Must(t, companytest.Board, "user_secret.define", secret.SaveUserSecretDefinition{ID: def, Key: "github",
		Name: &name}, nil)
	d.Must(t, companytest.Board, "secret.create", secret.SaveSecret{ID: mine, Definition: def, Sealed: []byte("x")}, nil)
	companytest.WantRefusal(t, d.Do(companytest.Board, "secret.create", secret.SaveSecret{ID: d.ID(), Definition: def,
		Sealed: []byte("x")}, nil), ledger.Conflict, "Secret already exists: GitHub")
	companytest.WantRefusal(t, d.Do(companytest.Board, "user_secret.undefine", secret.DropSecret{ID: def}, nil),
		ledger.Conflict, "Users have values for github; archive it instead")
	c := d.Context(companytest.Board, "secret.rotate", secret.RotateSecret{})
	c.Cmd.Actor.ID = "somebody-else"
	_, err := secret.HandleRotateSecret(c, secret.RotateSecret{ID: mine, Version: 2, Sealed: []byte("y")})
	companytest.WantRefusal(t, err, ledger.NotFound, "Secret not found")
	d.Must(t, companytest.Board, "secret.delete", secret.DropSecret{ID: mine}, nil)
	d.Must(t, companytest.Board, "user_secret.undefine", secret.DropSecret{ID: def}, nil)
}

func TestBindingsAreChecked(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	id := d.Secret(t, "K")
	name := "Bob"
	for _, c := range []struct {
		env  string
		code ledger.Code
		text string
	}{
		{`{"A":5}`, ledger.Invalid, "env.A: a text, or a binding of type plain, secret_ref or user_secret_ref, is needed"},
		{`{"A":{"type":"plain"}}`, ledger.Invalid, "env.A: a plain binding needs a value, which is a text"},
		{`{"A":{"type":"secret_ref","secretId":"x"}}`, ledger.Invalid, "env.A: secretId is no UUID"},
		{`{"A":{"type":"secret_ref","secretId":"` + id + `","version":0}}`, ledger.Invalid,
			`env.A: version is "latest" or a number from 1`},
		{`{"A":{"type":"secret_ref","secretId":"` + id + `","version":2}}`, ledger.Unprocessable,
			"env.A: the secret has no version 2"},
		{`{"A":{"type":"secret_ref","secretId":"` + d.ID() + `"}}`, ledger.NotFound, "Secret not found"},
		{`{"A":{"type":"user_secret_ref","key":"none"}}`, ledger.NotFound, "User secret definition not found"},
		{`{"A":{"type":"other"}}`, ledger.Invalid,
			"env.A: a text, or a binding of type plain, secret_ref or user_secret_ref, is needed"},
		{`{"A=B":"x"}`, ledger.Invalid, "env.A=B: no name of a variable"},
		{`[]`, ledger.Invalid, "adapterConfig.env is not an object"},
	} {
		companytest.WantRefusal(t, d.Do(companytest.Board, "agent.create", entity.SaveAgent{ID: d.ID(), Name: &name,
			AdapterConfig: []byte(`{"env":` + c.env + `}`)}, nil), c.code, c.text)
	}
	agent := d.ID()
	d.Must(t, companytest.Board, "agent.create", entity.SaveAgent{ID: agent, Name: &name,
		AdapterConfig: []byte(`{"env":{"A":{"type":"secret_ref","secretId":"` + id + `","version":1}}}`)}, nil)
	if u := secret.SecretUsage(d.Tx, d.Company); len(u) != 1 || u[0].Secret != id || u[0].Path != "env.A" ||
		u[0].Version != 1 {
		t.Errorf("usage %+v", u)
	}
	// A reference to a deleted secret does not prevent other changes.
	d.Must(t, companytest.Board, "secret.delete", secret.DropSecret{ID: id}, nil)
	d.Must(t, companytest.Board, "agent.update",
		entity.SaveAgent{ID: agent, AdapterConfig: []byte(`{"env":{"A":{"type":"secret_ref","secretId":"` + id +
			`","version":1},"B":"x"}}`)}, nil)
}

func TestConfigurationsAreSealedAndOpened(t *testing.T) {
	t.Parallel()
	const in = `{"args":["-c","x"],"env":{"A":"canary","B":{"type":"plain","value":"canary"},` +
		`"C":{"secretId":"id","type":"secret_ref"},"D":{"value":"canary"},"E":"***REDACTED***"},` +
		`"headers":{"Authorization":"canary","X":"y"},"list":[{"apiKey":["canary",5]}],"maxTokens":5,"timeoutSec":1.50}`
	v, err := entity.SaveAgent{ID: "a", AdapterConfig: []byte(in),
		Metadata: []byte(`{"password":"canary"}`)}.Sealed(companytest.TestSeal)
	if err != nil {
		t.Fatal(err)
	}
	p := v.(entity.SaveAgent)
	if s := string(p.AdapterConfig) + string(p.Metadata); strings.Contains(s, "canary") || !strings.Contains(s,
		`"maxTokens":5`) {
		t.Errorf("sealed %s", s)
	}
	if got, want := string(conceal.RedactConfig(p.AdapterConfig)), string(conceal.RedactConfig([]byte(in))); got != want {
		t.Errorf("shown as %s, want %s", got, want)
	}
	got, err := conceal.OpenConfig(p.AdapterConfig, "adapterConfig", companytest.TestOpen(t, "a"))
	want := strings.NewReplacer(`{"type":"plain","value":"canary"}`, `"canary"`, `{"value":"canary"}`,
		`"canary"`).Replace(in)
	if err != nil || string(got) != want {
		t.Errorf("opened %s, %v; want %s", got, err, want)
	}
	for _, bad := range []string{`{"env":{"A":{"$sealed":"x"}}}`, `{"a":[{"$sealed":"x"}]}`, `{"token":{"$sealed":"x"}}`} {
		if _, err := (entity.SaveAgent{ID: "a", AdapterConfig: []byte(bad)}).Sealed(companytest.TestSeal); err == nil {
			t.Errorf("%s is taken as sealed", bad)
		}
	}
	// A redacted value that comes back keeps the stored one.
	if kept := conceal.KeepHidden(conceal.RedactConfig(p.AdapterConfig),
		p.AdapterConfig); string(core.FormatJSON(mustParse(t, kept))) != string(core.FormatJSON(mustParse(t,
		p.AdapterConfig))) {
		t.Errorf("kept %s, want %s", kept, p.AdapterConfig)
	}
}

func mustParse(t *testing.T, b json.RawMessage) any {
	t.Helper()
	v, ok := core.ParseJSON(b)
	if !ok {
		t.Fatalf("%s is no JSON", b)
	}
	return v
}

func TestRollbackBringsValuesAndReferencesBack(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	key, bob, name, title := d.Secret(t, "K"), d.ID(), "Bob", "Chief"
	save := func(p entity.SaveAgent) {
		t.Helper()
		v, err := p.Sealed(companytest.TestSeal)
		if err != nil {
			t.Fatal(err)
		}
		kind := "agent.update"
		if p.Name != nil {
			kind = "agent.create"
		}
		d.Must(t, companytest.Board, kind, v, nil)
	}
	save(entity.SaveAgent{ID: bob, Name: &name, AdapterConfig: []byte(`{"command":"/bin/true"}`)})
	save(entity.SaveAgent{ID: bob, Title: &title,
		AdapterConfig: []byte(`{"env":{"A":"canary","R":{"type":"secret_ref","secretId":"` + key + `"}}}`)})
	before, _ := entity.AgentOf(d.Tx, d.Company, bob)
	save(entity.SaveAgent{ID: bob, Title: new(""), Metadata: []byte(`{"a":1}`), ContextMode: new("fat"),
		AdapterConfig: []byte(`{"command":"x"}`), ReplaceAdapterConfig: true})
	d.Must(t, companytest.Board, "secret.delete", secret.DropSecret{ID: key}, nil)
	list := entity.RevisionsOf(d.Tx, d.Company, bob)
	if b, _ := json.Marshal(list); strings.Contains(string(b), conceal.SealedKey) || !strings.Contains(string(b),
		conceal.Redacted) {
		t.Errorf("revisions show %s", b)
	}
	d.Must(t, companytest.Board, "agent.rollback", company.RollbackAgent{Agent: bob, Revision: list[1].ID}, nil)
	after, _ := entity.AgentOf(d.Tx, d.Company, bob)
	if string(after.AdapterConfig) != string(before.AdapterConfig) || after.Title != before.Title ||
		len(after.Metadata) != 0 || after.Mode() != "thin" {
		t.Errorf("rolled back to %+v %s, want %s", after, after.AdapterConfig, before.AdapterConfig)
	}
	if r := entity.RevisionsOf(d.Tx, d.Company, bob)[0]; r.Source != "rollback" || string(r.RolledBack) != list[1].ID {
		t.Errorf("the rollback's revision is %+v", r)
	}
	companytest.WantRefusal(t, d.Do(companytest.Board, "agent.rollback", company.RollbackAgent{Agent: bob,
		Revision: d.ID()}, nil), ledger.NotFound, "Revision not found")
}
