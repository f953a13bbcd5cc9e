package plugin

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/app"
	"github.com/selvage-mesh/selvage/company/core"
)

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

const small = `name = "watch"
version = "1.2.0"
description = "Watches"
[capabilities]
shell = true
network = ["example.com"]
[[settings]]
name = "url"
about = "what to watch"
[[settings]]
name = "token"
secret = true
[[agents]]
id = "ada"
role = "engineer"
adapter = "process"
script = "run.sh"
skills = ["looking"]
[agents.config.env]
URL = "${url}"
TOKEN = "${token}"
[[skills]]
id = "looking"
file = "looking.md"
[[routines]]
id = "look"
title = "Look at ${url}"
agent = "ada"
cron = "*/5 * * * *"
`

func smallApp() Files {
	return Files{"selvage-app.toml": []byte(small), "run.sh": []byte("exit 0\n"), "looking.md": []byte("# Looking\n")}
}

// The same files are the same archive; whatever byte of it is changed, it is refused.
func TestEveryChangedByteOfAnArchiveIsRefused(t *testing.T) {
	b, err := Pack(smallApp(), key(1))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Pack(smallApp(), key(1)); err != nil || !bytes.Equal(b, again) {
		t.Errorf("packed twice, the archives differ: %v", err)
	}
	a, err := Open(b)
	if err != nil || len(a.Files) != 3 || !bytes.Equal(a.Files["run.sh"], []byte("exit 0\n")) {
		t.Fatalf("%v: %v", a.Files, err)
	}
	for i := range b {
		bad := slices.Clone(b)
		bad[i] ^= 1 << (i % 8)
		if _, err := Open(bad); !errors.Is(err, ErrArchive) {
			t.Fatalf("with byte %d changed: %v", i, err)
		}
	}
	for n := range len(b) {
		if _, err := Open(b[:n]); err == nil {
			t.Fatalf("cut to %d bytes it is taken", n)
		}
	}
	if _, err := Open(append(slices.Clone(b), 0)); err == nil {
		t.Error("with a byte more it is taken")
	}
	content, err := Content(b)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Sign(content, key(2))
	if err != nil {
		t.Fatal(err)
	}
	if o, err := Open(other); err != nil || o.Signer == a.Signer || o.Digest == a.Digest {
		t.Errorf("signed again: %+v %v", o.Signer, err)
	}
}

func TestPathsStayWithinTheApp(t *testing.T) {
	for _, name := range []string{"../x", "/x", "a/../../x", "", "a\\b", "./x", strings.Repeat("x", 200)} {
		if _, err := Pack(Files{name: nil}, key(1)); err == nil {
			t.Errorf("%q is packed", name)
		}
	}
}

// All that is wrong with a manifest is told at once.
func TestAllProblemsAreToldAtOnce(t *testing.T) {
	files := Files{"selvage-app.toml": []byte(`name = "Watch It"
version = "1.2"
colour = "red"
[capabilities]
filesystem = ["home"]
[[settings]]
name = "key"
secret = true
default = "x"
[[agents]]
id = "ada"
role = "boss"
adapter = "process"
script = "../run.sh"
instructions = "none.md"
[agents.config]
args = ["${key}", "${nothing}"]
[[agents]]
id = "ada"
role = "qa"
adapter = "http"
skills = ["flying"]
[[routines]]
id = "look"
agent = "bob"
cron = "often"
zone = "Mars/Base"
[[services]]
name = "db"
[hooks.on_start]
agent = "eve"
[dependencies]
other = "new"
[health]
within = "soon"
`)}
	_, err := Read(files)
	problems, ok := errors.AsType[Problems](err)
	if !ok {
		t.Fatal(err)
	}
	for _, want := range []string{"colour: unknown member", "name: required", "version: required", "description: required",
		"capabilities.filesystem[0]", "settings[0].default", "agents[0].role",
		"agents[0].script", "agents[0].instructions: the app has no file", "agents[0].adapter: process runs a program",
		"the secret setting key", "${nothing} is not a setting", "agents[1].id: ada is there twice",
		"agents[1].adapter: http calls addresses", "agents[1].skills: flying", "routines[0].title: required",
		`routines[0].agent: "bob"`, "routines[0].cron", `routines[0].zone: "Mars/Base"`, "services[0]: a script",
		"services[0].methods",
		"hooks.on_start.title: required", `hooks.on_start.agent: "eve"`, "dependencies.other", "health.within"} {
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%q is not among the problems:\n%s", want, err)
		}
	}
	if _, err := Read(Files{"selvage-app.json": []byte(`{"name":"a","versoin":"1"}`)}); err == nil ||
		!strings.Contains(err.Error(), "versoin") {
		t.Errorf("a typing error in JSON: %v", err)
	}
	if _, err := Read(Files{}); err == nil || !strings.Contains(err.Error(), "no manifest") {
		t.Errorf("no manifest: %v", err)
	}
}

func TestJSONIsAsGoodAsTOML(t *testing.T) {
	m, err := Read(smallApp())
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	files := smallApp()
	delete(files, "selvage-app.toml")
	files["selvage-app.json"] = b
	n, err := Read(files)
	if c, _ := json.Marshal(n); err != nil || !bytes.Equal(b, c) {
		t.Errorf("%v: %s, want %s", err, c, b)
	}
}

func planner() *Planner {
	n := 0
	yes := func(string) bool { return true }
	return &Planner{Company: "c", App: "watch",
		NewID: func() string { n++; return core.DerivedID("plan", string(rune('a'+n))) },
		Next:  func(string, string) (core.Time, error) { return 1, nil }, Seal: func(p any) (any, error) { return p, nil },
		MayPause: yes, MayResume: yes}
}

func kindsOf(steps []app.Step) (out string) {
	for _, s := range steps {
		out += s.Kind + " "
	}
	return out
}

// What an upgrade adds it makes, what it leaves out rests, and the way back undoes both.
func TestAnUpgradeAndItsWayBack(t *testing.T) {
	m, err := Read(smallApp())
	if err != nil {
		t.Fatal(err)
	}
	old := Source{Archive: Archive{Files: smallApp()}, Manifest: m,
		Settings: map[string]string{"url": "https://example.com", "token": "secret-canary"}}
	if p := old.Check(); len(p) != 0 {
		t.Fatal(p)
	}
	p := planner()
	steps, parts, err := p.Change(nil, old, true)
	if got := kindsOf(steps); err != nil || got != "skill.create agent.create routine.create routine_trigger.create " {
		t.Fatalf("%v: install is %s", err, got)
	}
	if !bytes.Contains(steps[1].Payload, []byte("secret-canary")) || !bytes.Contains(steps[2].Payload,
		[]byte("Look at https://example.com")) {
		t.Error("the settings are not filled in")
	}
	next := old
	next.Manifest.Version, next.Settings, next.Kept = "2.0.0", map[string]string{"url": "https://example.org"},
		map[string]bool{"token": true}
	next.Manifest.Agents = []Agent{{ID: "bob", Role: "qa", Adapter: "process", Script: "run.sh",
		Config: m.Agents[0].Config}}
	next.Manifest.Routines = nil
	up, after, err := p.Change(parts, next, true)
	if got := kindsOf(up); err != nil || got != "skill.update agent.create routine.delete agent.pause " {
		t.Fatalf("%v: the upgrade is %s", err, got)
	}
	back, before, err := p.Change(after, old, true)
	if got := kindsOf(back); err != nil ||
		got != "skill.update agent.update agent.skills agent.resume routine.create routine_trigger.create agent.pause " {
		t.Fatalf("%v: the way back is %s", err, got)
	}
	if i, ok := find(before, "agent", "ada"); !ok || before[i].Gone {
		t.Errorf("after the way back there are %+v", before)
	}
	r, err := next.Release(after)
	if err != nil || strings.Contains(string(r.Settings), "canary") || len(r.Capabilities) != 2 {
		t.Errorf("%v: %+v", err, r)
	}
}

func TestExamplesAreApps(t *testing.T) {
	dirs, err := filepath.Glob("../examples/apps/*")
	if err != nil || len(dirs) != 3 {
		t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		files := Files{}
		all, _ := filepath.Glob(dir + "/*")
		for _, f := range all {
			if files[filepath.Base(f)], err = os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
		m, err := Read(files)
		if err != nil || m.Name != filepath.Base(dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
