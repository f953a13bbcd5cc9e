package api_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A call is one line of testdata/calls.txt.
type clientCall struct {
	line         int
	section      string
	method, path string
	status       int
	body         string
}

func clientCalls(t *testing.T) (out []clientCall) {
	t.Helper()
	b, err := os.ReadFile("testdata/calls.txt")
	if err != nil {
		t.Fatal(err)
	}
	section := ""
	for n, text := range strings.Split(string(b), "\n") {
		if name, ok := strings.CutPrefix(text, "## "); ok {
			section = name
		}
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		c := clientCall{line: n + 1, section: section, status: 200}
		c.method, text, _ = strings.Cut(text, " ")
		c.path, text, _ = strings.Cut(text, " ")
		if status, rest, _ := strings.Cut(text, " "); status != "" {
			if c.status, err = strconv.Atoi(status); err != nil {
				t.Fatalf("line %d: %v", n+1, err)
			}
			c.body = rest
		}
		out = append(out, c)
	}
	return out
}

// Every call of the contract's MCP server, command line and pages is answered, as
// testdata/calls.txt says.
func TestEveryCallOfTheClientsAnswers(t *testing.T) {
	h := apitest.NewWorkingHarness(t)
	of := ledger.CompanyID(h.Company("Calls"))
	post := func(path, body string, status int) apitest.Answer {
		t.Helper()
		return h.Call("POST", path, body).Want(t, status, "")
	}
	in := "/api/companies/" + string(of)
	agent := h.NewAgent(of, "Ada", "echo hello")
	watcher := h.NewAgent(of, "Wendy", "echo hello")
	gone := h.NewAgent(of, "Gone", "echo hello")
	issue := h.Assign(of, agent, "A task")
	h.Rest()
	run := ""
	h.Until("a run", func(tx *ledger.Tx) bool {
		for r := range entity.RunsOfIssue(tx, of, issue) {
			run = r.ID
		}
		return run != ""
	})
	second := h.Company("Leaving")
	revision := h.Call("PUT", "/api/issues/"+issue+"/documents/plan", `{"format":"markdown","body":"# Plan"}`).
		Want(t, 201, "").Field(t, "latestRevisionId")
	h.Call("PUT", "/api/issues/"+issue+"/documents/plan",
		`{"format":"markdown","body":"# A better plan","baseRevisionId":"`+revision+`"}`).Want(t, 200, "")
	fill := strings.NewReplacer("{c}", in, "{c2}", "/api/companies/"+second, "{company}", string(of), "{a}",
		"/api/agents/"+agent, "{a2}", "/api/agents/"+gone, "{agent}", agent, "{watcher}", watcher,
		"{i}", "/api/issues/"+issue, "{n}", "/api/issues/"+h.Call("GET", "/api/issues/"+issue, "").Field(t, "identifier"),
		"{issue}", issue, "{run}", run, "{revision}", revision,
		"{spare}", "/api/issues/"+post(in+"/issues", `{"title":"Spare","status":"todo"}`, 201).Field(t, "id"),
		"{comment}", post("/api/issues/"+issue+"/comments", `{"body":"Look"}`, 201).Field(t, "id"),
		"{project}", post(in+"/projects", `{"name":"Board"}`, 201).Field(t, "id"), "{goal}",
		post(in+"/goals", `{"title":"Be seen"}`, 201).Field(t, "id"),
		"{approval}", post(in+"/approvals", `{"type":"request_board_approval","payload":{"title":"One"}}`, 201).
			Field(t, "id"),
		"{approval2}", post(in+"/approvals", `{"type":"request_board_approval","payload":{"title":"Two"}}`, 201).
			Field(t, "id"),
		"{invite}", post(in+"/invites", `{"allowedJoinTypes":"both"}`, 201).Field(t, "token"), "{nobody}", api.NewID())
	key := post("/api/agents/"+agent+"/keys", `{"name":"calls"}`, 201).Field(t, "token")
	challenge := post("/api/cli-auth/challenges", `{"command":"selvage"}`, 201)
	page := strings.TrimPrefix(challenge.Field(t, "approvalPath"), "/cli-auth/")
	h.Rest()
	for _, c := range clientCalls(t) {
		path, headers := strings.ReplaceAll(c.path, "{challenge}", page), []string(nil)
		if rest, ok := strings.CutPrefix(path, "{key}"); ok {
			path, headers = rest, []string{"Authorization: Bearer " + key}
		}
		a := h.Call(c.method, fill.Replace(path), fill.Replace(c.body), headers...)
		var said struct {
			Error string `json:"error"`
		}
		_ = json.Unmarshal(a.Body, &said) // the page and the texts are no JSON
		if a.Status != c.status || said.Error == "API route not found" {
			t.Errorf("calls.txt:%d (%s): %s %s answered %d, want %d: %s", c.line, c.section, c.method, c.path, a.Status,
				c.status, api.Cut(string(a.Body), 300))
		}
	}
}

// The list is the contract's: each of the 41 tools that clients know by name is
// one of its calls, but the one that makes any.
func TestTheListOfCallsHasAllTools(t *testing.T) {
	h := apitest.NewHarness(t)
	listed := map[string]bool{}
	fill := strings.NewReplacer("{key}", "", "{c}", "/api/companies/x", "{c2}", "/api/companies/x", "{i}", "/api/issues/x",
		"{n}", "/api/issues/x", "{spare}", "/api/issues/x",
		"{a}", "/api/agents/x", "{a2}", "/api/agents/x", "{", "", "}", "")
	for _, c := range clientCalls(t) {
		_, pattern := h.Server.Mux.Handler(httptest.NewRequest(c.method, fill.Replace(c.path), nil))
		if pattern == "/api/" || pattern == "/" {
			t.Errorf("calls.txt:%d: nothing answers %s %s", c.line, c.method, c.path)
		}
		listed[pattern] = true
	}
	tools, err := apitest.Tools()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if !strings.HasPrefix(tool.Name, "paperclip") || tool.Path == "" {
			continue
		}
		if _, pattern := h.Server.Mux.Handler(httptest.NewRequest(tool.Method, strings.NewReplacer("{action}", "approve", "{",
			"", "}", "").Replace(tool.Path), nil)); !listed[pattern] {
			t.Errorf("%s (%s %s) is not in calls.txt", tool.Name, tool.Method, tool.Path)
		}
	}
}
