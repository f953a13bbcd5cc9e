package company

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// secret creates a secret whose value is not looked at.
func (d *desk) secret(t testing.TB, name string) string {
	t.Helper()
	id := d.id()
	d.must(t, board, "secret.create", SaveSecret{ID: id, Name: name, Sealed: []byte("sealed")}, nil)
	return id
}

func TestSecretsHaveNamesVersionsAndAnEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.secret(t, "OPENAI_KEY")
	wantRefusal(t, d.do(board, "secret.create", SaveSecret{ID: d.id(), Name: "OPENAI_KEY", Sealed: []byte("x")}, nil), ledger.Conflict, "Secret already exists: OPENAI_KEY")
	wantRefusal(t, d.do(board, "secret.create", SaveSecret{ID: d.id(), Name: "openai-key", Key: "OpenAI_Key", Sealed: []byte("x")}, nil), ledger.Conflict, "Secret key already exists: OpenAI_Key")
	wantRefusal(t, d.do(board, "secret.create", SaveSecret{ID: d.id(), Name: "N"}, nil), ledger.Invalid, "A secret needs a value")
	wantRefusal(t, d.do(board, "secret.rotate", RotateSecret{ID: id, Version: 3, Sealed: []byte("x")}, nil), ledger.Conflict, "Secret was rotated by someone else")
	for v := 2; v <= MaxSecretVersions+5; v++ {
		d.must(t, board, "secret.rotate", RotateSecret{ID: id, Version: v, Sealed: fmt.Append(nil, v)}, nil)
	}
	s, _ := SecretOf(d.tx, d.company, id)
	if v, ok := SecretVersionOf(d.tx, s, 0); !ok || string(v.Sealed) != "55" {
		t.Errorf("latest %+v", v)
	}
	if _, ok := SecretVersionOf(d.tx, s, 5); ok {
		t.Error("a version beyond the bound is kept")
	}
	if _, ok := SecretVersionOf(d.tx, s, 6); !ok || s.Oldest != 6 {
		t.Errorf("the oldest version is %d", s.Oldest)
	}
	name := "OTHER/name"
	d.must(t, board, "secret.update", PatchSecret{ID: id, Name: &name}, nil)
	d.secret(t, "OPENAI-KEY") // the name is free, the key is another
	d.must(t, board, "secret.delete", DropSecret{ID: id}, nil)
	if n := len(SecretsOf(d.tx, d.company, "company", "")); n != 1 {
		t.Errorf("%d secrets are left", n)
	}
	for k := range d.tx.Prefix(ledger.Key("c", d.company, "")) {
		if strings.Contains(string(k), id) {
			t.Errorf("%q is left", k)
		}
	}
	d.secret(t, name)
}

func TestUserSecretsAreTheirOwners(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	def, name, mine := d.id(), "GitHub", d.id()
	d.must(t, board, "user_secret.define", SaveUserSecretDefinition{ID: def, Key: "github", Name: &name}, nil)
	d.must(t, board, "secret.create", SaveSecret{ID: mine, Definition: def, Sealed: []byte("x")}, nil)
	wantRefusal(t, d.do(board, "secret.create", SaveSecret{ID: d.id(), Definition: def, Sealed: []byte("x")}, nil), ledger.Conflict, "Secret already exists: GitHub")
	wantRefusal(t, d.do(board, "user_secret.undefine", DropSecret{ID: def}, nil), ledger.Conflict, "Users have values for github; archive it instead")
	c := d.context(board, "secret.rotate", RotateSecret{})
	c.Cmd.Actor.ID = "somebody-else"
	_, err := rotateSecret(c, RotateSecret{ID: mine, Version: 2, Sealed: []byte("y")})
	wantRefusal(t, err, ledger.NotFound, "Secret not found")
	d.must(t, board, "secret.delete", DropSecret{ID: mine}, nil)
	d.must(t, board, "user_secret.undefine", DropSecret{ID: def}, nil)
}

func TestBindingsAreChecked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.secret(t, "K")
	name := "Bob"
	for _, c := range []struct {
		env  string
		code ledger.Code
		text string
	}{
		{`{"A":5}`, ledger.Invalid, "env.A: a text, or a binding of type plain, secret_ref or user_secret_ref, is needed"},
		{`{"A":{"type":"plain"}}`, ledger.Invalid, "env.A: a plain binding needs a value, which is a text"},
		{`{"A":{"type":"secret_ref","secretId":"x"}}`, ledger.Invalid, "env.A: secretId is no UUID"},
		{`{"A":{"type":"secret_ref","secretId":"` + id + `","version":0}}`, ledger.Invalid, `env.A: version is "latest" or a number from 1`},
		{`{"A":{"type":"secret_ref","secretId":"` + id + `","version":2}}`, ledger.Unprocessable, "env.A: the secret has no version 2"},
		{`{"A":{"type":"secret_ref","secretId":"` + d.id() + `"}}`, ledger.NotFound, "Secret not found"},
		{`{"A":{"type":"user_secret_ref","key":"none"}}`, ledger.NotFound, "User secret definition not found"},
		{`{"A":{"type":"other"}}`, ledger.Invalid, "env.A: a text, or a binding of type plain, secret_ref or user_secret_ref, is needed"},
		{`{"A=B":"x"}`, ledger.Invalid, "env.A=B: no name of a variable"},
		{`[]`, ledger.Invalid, "adapterConfig.env is not an object"},
	} {
		wantRefusal(t, d.do(board, "agent.create", SaveAgent{ID: d.id(), Name: &name, AdapterConfig: []byte(`{"env":` + c.env + `}`)}, nil), c.code, c.text)
	}
	agent := d.id()
	d.must(t, board, "agent.create", SaveAgent{ID: agent, Name: &name, AdapterConfig: []byte(`{"env":{"A":{"type":"secret_ref","secretId":"` + id + `","version":1}}}`)}, nil)
	if u := SecretUsage(d.tx, d.company); len(u) != 1 || u[0].Secret != id || u[0].Path != "env.A" || u[0].Version != 1 {
		t.Errorf("usage %+v", u)
	}
	// A secret that is gone does not hinder other changes.
	d.must(t, board, "secret.delete", DropSecret{ID: id}, nil)
	d.must(t, board, "agent.update", SaveAgent{ID: agent, AdapterConfig: []byte(`{"env":{"A":{"type":"secret_ref","secretId":"` + id + `","version":1},"B":"x"}}`)}, nil)
}

func testSeal(owner, path, plain string) (string, error) {
	return base64.StdEncoding.EncodeToString([]byte(owner + "|" + path + "|" + plain)), nil
}

func testOpen(t *testing.T, owner string) func(path, sealed string) (string, error) {
	return func(path, sealed string) (string, error) {
		b, err := base64.StdEncoding.DecodeString(sealed)
		plain, ok := strings.CutPrefix(string(b), owner+"|"+path+"|")
		if err != nil || !ok {
			t.Errorf("%q was not sealed for %s at %s", b, owner, path)
		}
		return plain, nil
	}
}

func TestConfigurationsAreSealedAndOpened(t *testing.T) {
	t.Parallel()
	const in = `{"args":["-c","x"],"env":{"A":"canary","B":{"type":"plain","value":"canary"},"C":{"secretId":"id","type":"secret_ref"},"D":{"value":"canary"},"E":"***REDACTED***"},"headers":{"Authorization":"canary","X":"y"},"list":[{"apiKey":["canary",5]}],"maxTokens":5,"timeoutSec":1.50}`
	v, err := SaveAgent{ID: "a", AdapterConfig: []byte(in), Metadata: []byte(`{"password":"canary"}`)}.Sealed(testSeal)
	if err != nil {
		t.Fatal(err)
	}
	p := v.(SaveAgent)
	if s := string(p.AdapterConfig) + string(p.Metadata); strings.Contains(s, "canary") || !strings.Contains(s, `"maxTokens":5`) {
		t.Errorf("sealed %s", s)
	}
	if got, want := string(RedactConfig(p.AdapterConfig)), string(RedactConfig([]byte(in))); got != want {
		t.Errorf("shown as %s, want %s", got, want)
	}
	got, err := OpenConfig(p.AdapterConfig, "adapterConfig", testOpen(t, "a"))
	want := strings.NewReplacer(`{"type":"plain","value":"canary"}`, `"canary"`, `{"value":"canary"}`, `"canary"`).Replace(in)
	if err != nil || string(got) != want {
		t.Errorf("opened %s, %v; want %s", got, err, want)
	}
	for _, bad := range []string{`{"env":{"A":{"$sealed":"x"}}}`, `{"a":[{"$sealed":"x"}]}`, `{"token":{"$sealed":"x"}}`} {
		if _, err := (SaveAgent{ID: "a", AdapterConfig: []byte(bad)}).Sealed(testSeal); err == nil {
			t.Errorf("%s is taken as sealed", bad)
		}
	}
	// What was shown comes back as it is stored.
	if kept := keepHidden(RedactConfig(p.AdapterConfig), p.AdapterConfig); string(formatJSON(mustParse(t, kept))) != string(formatJSON(mustParse(t, p.AdapterConfig))) {
		t.Errorf("kept %s, want %s", kept, p.AdapterConfig)
	}
}

func mustParse(t *testing.T, b json.RawMessage) any {
	t.Helper()
	v, ok := parseJSON(b)
	if !ok {
		t.Fatalf("%s is no JSON", b)
	}
	return v
}

func TestRollbackBringsValuesAndReferencesBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	key, bob, name, title := d.secret(t, "K"), d.id(), "Bob", "Chief"
	save := func(p SaveAgent) {
		t.Helper()
		v, err := p.Sealed(testSeal)
		if err != nil {
			t.Fatal(err)
		}
		kind := "agent.update"
		if p.Name != nil {
			kind = "agent.create"
		}
		d.must(t, board, kind, v, nil)
	}
	save(SaveAgent{ID: bob, Name: &name, AdapterConfig: []byte(`{"command":"/bin/true"}`)})
	save(SaveAgent{ID: bob, Title: &title, AdapterConfig: []byte(`{"env":{"A":"canary","R":{"type":"secret_ref","secretId":"` + key + `"}}}`)})
	before, _ := AgentOf(d.tx, d.company, bob)
	save(SaveAgent{ID: bob, Title: new(""), Metadata: []byte(`{"a":1}`), ContextMode: new("fat"), AdapterConfig: []byte(`{"command":"x"}`), ReplaceAdapterConfig: true})
	d.must(t, board, "secret.delete", DropSecret{ID: key}, nil)
	list := RevisionsOf(d.tx, d.company, bob)
	if b, _ := json.Marshal(list); strings.Contains(string(b), sealedKey) || !strings.Contains(string(b), Redacted) {
		t.Errorf("revisions show %s", b)
	}
	d.must(t, board, "agent.rollback", RollbackAgent{Agent: bob, Revision: list[1].ID}, nil)
	after, _ := AgentOf(d.tx, d.company, bob)
	if string(after.AdapterConfig) != string(before.AdapterConfig) || after.Title != before.Title || len(after.Metadata) != 0 || after.Mode() != "thin" {
		t.Errorf("rolled back to %+v %s, want %s", after, after.AdapterConfig, before.AdapterConfig)
	}
	if r := RevisionsOf(d.tx, d.company, bob)[0]; r.Source != "rollback" || string(r.RolledBack) != list[1].ID {
		t.Errorf("the rollback's revision is %+v", r)
	}
	wantRefusal(t, d.do(board, "agent.rollback", RollbackAgent{Agent: bob, Revision: d.id()}, nil), ledger.NotFound, "Revision not found")
}
