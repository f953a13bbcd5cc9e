package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A client starts `selvage mcp` as a child process; a test server in place of a node
// records the requests.
func TestMCPOverStdio(t *testing.T) {
	var seen []string
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/companies" {
			w.Write([]byte(`[{"id": "c-1", "name": "Acme", "issuePrefix": "ACM"}]`))
			return
		}
		seen = append(seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Paperclip-Run-Id"))
		w.Write([]byte(`{"ok":true}`))
	}))
	defer node.Close()
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		for _, args := range [][]string{{"mcp"}, {"mcp", "--contract"}, {"mcp", "--all"}, {"mcp", "--tools", "issues,runs",
			"--tools=contract", "--company", "acm"}} {
			cmd := exec.CommandContext(t.Context(), "selvage", args...)
			company := "c-1"
			if slices.Contains(args, "--company") { // takes precedence over the variable, and may be a name
				company = "c-2"
			}
			cmd.Env = append(cmd.Environ(), "SELVAGE_API_URL=", "PAPERCLIP_API_URL="+node.URL+"/api",
				"PAPERCLIP_API_KEY=pcp_abc", "PAPERCLIP_COMPANY_ID="+company, "PAPERCLIP_RUN_ID=r-1")
			s, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(),
				&sdk.CommandTransport{Command: cmd},
				&sdk.ClientSessionOptions{ProtocolVersion: protocol})
			if err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			for tool, err := range s.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				names[tool.Name] = true
			}
			few, all := slices.Contains(args, "--contract"), slices.Contains(args, "--all")
			if !names["paperclipCheckoutIssue"] || names["selvageGetCompaniesDashboard"] != all ||
				names["selvageFindTools"] == few ||
				names["selvagePostHeartbeatRunsCancel"] != (all || slices.Contains(args, "--tools")) {
				t.Errorf("%v lists %d tools", args, len(names))
			}
			seen = nil
			res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "paperclipListAgents", Arguments: map[string]any{}})
			if err != nil || res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, `"ok": true`) {
				t.Errorf("%v, %v", res, err)
			}
			if len(seen) != 1 || seen[0] != "GET /api/companies/c-1/agents Bearer pcp_abc r-1" {
				t.Errorf("the node saw %q", seen)
			}
			if err := s.Close(); err != nil {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
}

func TestMCPNamesTheGroupsThatThereAre(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "selvage", "mcp", "--tools", "issue").CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 2 || !strings.Contains(string(out),
		`there is no group "issue"; give all, contract, or some of`) {
		t.Errorf("%v: %s", err, out)
	}
}
