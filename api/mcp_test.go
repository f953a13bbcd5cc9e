package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/mcp"
	"github.com/selvage-mesh/selvage/api/routes"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// Protocol versions of the clients that there are.
var protocols = []string{"2025-11-25", "2026-07-28"}

// tool calls a tool and returns its text.
func tool(t testing.TB, s *sdk.ClientSession, name, args string) (text string, isError bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s answered %d pieces", name, len(res.Content))
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

func wantTool(t testing.TB, s *sdk.ClientSession, name, args, want string) string {
	t.Helper()
	text, isError := tool(t, s, name, args)
	if isError || !strings.Contains(text, want) {
		t.Errorf("%s(%s) = %s, want %s", name, args, text, want)
	}
	return text
}

// contractTools returns those of tools that are in the contract.
func contractTools(tools []*mcp.Tool) []*mcp.Tool {
	return slices.DeleteFunc(slices.Clone(tools),
		func(t *mcp.Tool) bool { return !strings.HasPrefix(t.Name, "paperclip") })
}

func TestToolsHaveTheNamesAndArgumentsThatClientsKnow(t *testing.T) {
	b, err := os.ReadFile("mcp/testdata/contract-tools.txt")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := routes.Tools("test")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*mcp.Tool{}
	for _, tl := range tools {
		byName[tl.Name] = tl
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if few := contractTools(tools); len(few) != len(lines) || len(lines) != 41 {
		t.Errorf("%d tools of the contract, recorded are %d", len(few), len(lines))
	}
	for _, line := range lines {
		words := strings.Fields(line)
		tl := byName[words[0]]
		if tl == nil {
			t.Errorf("no tool %s", words[0])
			continue
		}
		var schema struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		if err := json.Unmarshal(tl.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		var required []string
		for _, word := range words[1:] {
			name, must := strings.CutSuffix(word, "!")
			if _, ok := schema.Properties[name]; !ok {
				t.Errorf("%s has no argument %s", tl.Name, name)
			}
			if must {
				required = append(required, name)
			}
		}
		slices.Sort(required)
		slices.Sort(schema.Required)
		if !slices.Equal(required, schema.Required) {
			t.Errorf("%s requires %v, recorded are %v", tl.Name, schema.Required, required)
		}
	}
}

// The description, the table and the tools are made of one table; this holds
// them together where hands wrote something beside it.
func TestRoutesDescriptionAndToolsAgree(t *testing.T) {
	h := apitest.NewHarness(t)
	d, err := mcp.Describe(documentOf(t, h.Server))
	if err != nil {
		t.Fatal(err)
	}
	described, ids := map[string]mcp.Operation{}, map[string]string{}
	for _, o := range d.Operations {
		described[o.Method+" "+o.Path] = o
		if other, ok := ids[o.ID]; ok || o.ID == "" {
			t.Errorf("operation %s %s has the ID %q, as %s", o.Method, o.Path, o.ID, other)
		}
		ids[o.ID] = o.Method + " " + o.Path
		for i, p := range o.Params {
			if slices.ContainsFunc(o.Params[:i], func(other mcp.Param) bool { return other.Name == p.Name }) {
				t.Errorf("%s %s has %s twice", o.Method, o.Path, p.Name)
			}
			if p.Doc == "" || p.Kind.Type == "" {
				t.Errorf("%s %s does not describe %s", o.Method, o.Path, p.Name)
			}
		}
	}
	for _, r := range h.Routes() {
		o, ok := described[r.Method+" "+r.Path]
		if !ok {
			t.Errorf("%s %s is not described", r.Method, r.Path)
			continue
		}
		if o.Summary == "" && !o.NoTool {
			t.Errorf("%s %s has no summary", r.Method, r.Path)
		}
		for part := range strings.SplitSeq(r.Path, "/") {
			if name, ok := strings.CutPrefix(part, "{"); ok {
				name = strings.TrimSuffix(strings.TrimSuffix(name, "}"), "...")
				if !slices.ContainsFunc(o.Params, func(p mcp.Param) bool { return p.In == "path" && p.Name == name }) {
					t.Errorf("%s %s does not list {%s}", r.Method, r.Path, name)
				}
			}
		}
	}
	if len(described) != len(h.Routes()) {
		t.Errorf("%d operations, %d routes", len(described), len(h.Routes()))
	}
	tools, err := mcp.Tools(d)
	if err != nil {
		t.Fatal(err)
	}
	reached := map[string]bool{}
	for _, tl := range tools {
		if tl.Description == "" || len(tl.Description) > 1000 {
			t.Errorf("tool %s has a description of %d bytes", tl.Name, len(tl.Description))
		}
		if tl.Path == "" || strings.Contains(tl.Path, "{action}") && tl.Name == "paperclipApprovalDecision" {
			continue // its arguments say which route
		}
		o, ok := d.Find(tl.Method, tl.Path)
		if !ok {
			t.Errorf("tool %s calls %s %s, which is no route", tl.Name, tl.Method, tl.Path)
			continue
		}
		reached[o.ID] = true
	}
	for _, o := range d.Operations {
		if strings.HasPrefix(o.Path, "/api/") && !o.NoTool && !reached[o.ID] {
			t.Errorf("no tool reaches %s %s", o.Method, o.Path)
		}
	}
	var doc map[string]any
	if err := json.Unmarshal(documentOf(t, h.Server), &doc); err != nil || doc["openapi"] != "3.1.0" {
		t.Errorf("the document is OpenAPI %v (%v)", doc["openapi"], err)
	}
	checkReferences(t, doc, doc)
}

// checkReferences fails for a reference within the document that leads nowhere.
func checkReferences(t *testing.T, doc, v any) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			at := doc
			for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[name]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, e := range v {
			checkReferences(t, doc, e)
		}
	case []any:
		for _, e := range v {
			checkReferences(t, doc, e)
		}
	}
}

func TestToolSchemasHoldTheirOwnReferences(t *testing.T) {
	tools, err := apitest.Tools()
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range tools {
		var schema map[string]any
		if err := json.Unmarshal(tl.Schema, &schema); err != nil {
			t.Fatal(err)
		}
		checkReferences(t, schema, schema)
		if strings.Contains(string(tl.Schema), "components/schemas") {
			t.Errorf("%s refers to what its client does not have", tl.Name)
		}
	}
}

// Every tool of the contract is called through a client of each protocol, over
// both transports, as an agent in a run would.
func TestEachToolOfTheContractIsCalled(t *testing.T) {
	for _, protocol := range protocols {
		for _, way := range []string{"http", "stdio"} {
			t.Run(protocol+" over "+way, func(t *testing.T) {
				h := apitest.NewTeam(t)
				run := h.Running(h.Company, h.Worker)
				var s *sdk.ClientSession
				listed := 0
				if way == "http" {
					s = h.OverHTTP(t, protocol, "all", apitest.WithHeaders{"Authorization": "Bearer " + h.Token, api.HeaderRun: run})
				} else {
					s = h.OverStdio(t, protocol, "", mcp.Caller{Key: h.Token, Company: string(h.Company), Agent: h.Worker, Run: run})
				}
				if callThemAll(t, h, s); way == "stdio" {
					listed = 41 + 3
				}
				wantListed(t, s, listed)
			})
		}
	}
}

func callThemAll(t *testing.T, h *apitest.Team, s *sdk.ClientSession) {
	t.Helper()
	called := map[string]bool{}
	do := func(name, args, want string) string {
		t.Helper()
		called["paperclip"+name] = true
		text, isError := tool(t, s, "paperclip"+name, args)
		if isError || !strings.Contains(text, want) {
			t.Errorf("paperclip%s(%s) = %s, want %s", name, args, text, want)
		}
		return text
	}
	id := func(text string) string {
		var row struct {
			ID       string `json:"id"`
			Revision string `json:"latestRevisionId"`
		}
		json.Unmarshal([]byte(text), &row)
		return row.ID
	}
	const nobody = "00000000-0000-4000-8000-000000000000"
	do("Me", `{}`, h.Worker)
	do("InboxLite", `{}`, `[`)
	do("ListAgents", `{}`, h.Boss)
	do("GetAgent", `{"agentId":"bob-builder"}`, h.Worker)
	do("ListProjects", `{}`, h.Project)
	do("GetProject", `{"projectId":"`+h.Project+`"}`, "Rig")
	do("ListGoals", `{"companyId":"`+string(h.Company)+`"}`, h.Goal)
	do("GetGoal", `{"goalId":"`+h.Goal+`"}`, "Ship")
	issue := id(do("CreateIssue",
		`{"title":"Weld","status":"todo","priority":"high","assigneeAgentId":"`+h.Worker+`","goalId":"`+h.Goal+`"}`,
		`"identifier": "ACM`))
	at := `"issueId":"` + issue + `"`
	do("ListIssues", `{"status":"todo,backlog","q":"Weld"}`, issue)
	do("GetIssue", `{`+at+`}`, "Weld")
	do("GetHeartbeatContext", `{`+at+`}`, issue)
	comment := id(do("AddComment", `{`+at+`,"body":"on it"}`, "on it"))
	do("ListComments", `{`+at+`,"order":"asc","limit":5}`, comment)
	do("GetComment", `{`+at+`,"commentId":"`+comment+`"}`, "on it")
	do("UpdateIssue", `{`+at+`,"priority":"low"}`, `"priority": "low"`)
	do("CheckoutIssue", `{`+at+`}`, `"status": "in_progress"`)
	do("ReleaseIssue", `{`+at+`}`, issue)
	do("GetIssueWorkspaceRuntime", `{`+at+`}`, `"runtimeServices": []`)
	for _, name := range []string{"ControlIssueWorkspaceServices", "WaitForIssueWorkspaceService"} {
		called["paperclip"+name] = true
		if text, _ := tool(t, s, "paperclip"+name, `{`+at+`,"action":"start"}`); !strings.Contains(text,
			"no execution workspace") {
			t.Errorf("%s = %s", name, text)
		}
	}
	do("ListDocuments", `{`+at+`}`, `[`)
	var doc struct {
		Revision string `json:"latestRevisionId"`
	}
	json.Unmarshal([]byte(do("UpsertIssueDocument", `{`+at+`,"key":"plan","title":"Plan","body":"# Plan"}`, "Plan")), &doc)
	do("GetDocument", `{`+at+`,"key":"plan"}`, "# Plan")
	do("ListDocumentRevisions", `{`+at+`,"key":"plan"}`, `[`)
	do("RestoreIssueDocumentRevision", `{`+at+`,"key":"plan","revisionId":"`+orNobody(doc.Revision)+`"}`, ``)
	do("SuggestTasks", `{`+at+`,"payload":{"version":1,"tasks":[{"clientKey":"a","title":"Grind"}]}}`, "suggest_tasks")
	do("AskUserQuestions",
		`{`+at+`,"payload":{"version":1,"questions":[{"id":"q","prompt":"Which?","selectionMode":"single",`+
			`"options":[{"id":"x","label":"X"}]}]}}`, "ask_user_questions")
	do("RequestConfirmation", `{`+at+`,"payload":{"version":1,"prompt":"Sure?"}}`, "request_confirmation")
	do("RequestCheckboxConfirmation",
		`{`+at+`,"payload":{"version":1,"prompt":"Which?","options":[{"id":"x","label":"X"}]}}`,
		"request_checkbox_confirmation")
	approval := id(do("CreateApproval",
		`{"type":"request_board_approval","payload":{"title":"Buy a torch","summary":"We need one",`+
			`"recommendedAction":"approve"}}`, "request_board_approval"))
	approval = orNobody(approval)
	one := `"approvalId":"` + approval + `"`
	do("ListApprovals", `{"status":"pending"}`, `[`)
	do("GetApproval", `{`+one+`}`, approval)
	do("LinkIssueApproval", `{`+at+`,`+one+`}`, ``)
	do("ListIssueApprovals", `{`+at+`}`, ``)
	do("GetApprovalIssues", `{`+one+`}`, ``)
	do("AddApprovalComment", `{`+one+`,"body":"please"}`, ``)
	do("ListApprovalComments", `{`+one+`}`, ``)
	do("UnlinkIssueApproval", `{`+at+`,`+one+`}`, ``)
	do("ApprovalDecision", `{`+one+`,"action":"approve","decisionNote":"no"}`, `"status": 403`)
	do("ApiRequest", `{"method":"GET","path":"/companies/`+string(h.Company)+`/org"}`, "Ada")
	do("ApiRequest",
		`{"method":"POST","path":"/api/companies/`+string(h.Company)+
			`/labels","jsonBody":"{\"name\":\"bug\",\"color\":\"#ff0000\"}"}`, "bug")
	do("GetGoal", `{"goalId":"`+nobody+`"}`, `"status": 404`)
	wantTool(t, s, "selvageGetCompaniesLabels", `{"companyId":"`+string(h.Company)+`"}`, "bug")
	tools, err := apitest.Tools()
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range contractTools(tools) {
		if !called[tl.Name] {
			t.Errorf("%s was not called", tl.Name)
		}
	}
}

// listed are the tools that a client is told of, by name, and how many bytes it reads.
func listed(t testing.TB, s *sdk.ClientSession) (names map[string]bool, size int) {
	t.Helper()
	names = map[string]bool{}
	for tl, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if tl.Description == "" {
			t.Errorf("%s has no description", tl.Name)
		}
		b, err := json.Marshal(tl)
		if err != nil {
			t.Fatal(err)
		}
		names[tl.Name], size = true, size+len(b)
	}
	return names, size
}

// wantListed wants a client to be told of n tools, of all that there are for 0.
func wantListed(t testing.TB, s *sdk.ClientSession, n int) {
	t.Helper()
	tools, err := apitest.Tools()
	if err != nil {
		t.Fatal(err)
	}
	if names, _ := listed(t, s); len(names) != cmp.Or(n, len(tools)) {
		t.Errorf("%d tools are listed, want %d of %d", len(names), cmp.Or(n, len(tools)), len(tools))
	}
}

func orNobody(id string) string {
	if id == "" {
		return "00000000-0000-4000-8000-000000000000"
	}
	return id
}

func TestToolsRefuseAsTheAPIDoes(t *testing.T) {
	h := apitest.NewTeam(t)
	s := h.OverHTTP(t, protocols[1], "", apitest.WithHeaders{"Authorization": "Bearer " + h.Token})
	var no struct {
		Error, Method, Path string
		Status              int
		Body                map[string]any
	}
	text := wantTool(t, s, "paperclipGetIssue", `{"issueId":"ACM-99"}`, "404")
	if err := json.Unmarshal([]byte(text), &no); err != nil || no.Method != "GET" || no.Path != "/issues/ACM-99" ||
		no.Status != 404 ||
		no.Error != "GET /issues/ACM-99 failed with 404: Issue not found" || no.Body["error"] != "Issue not found" {
		t.Errorf("refused with %s", text)
	}
	wantTool(t, s, "paperclipApiRequest", `{"method":"POST","path":"/companies","jsonBody":"{\"name\":\"Mine\"}"}`,
		"Board access required")
	for _, args := range []string{
		`{"method":"GET","path":"http://evil.example/"}`, `{"method":"GET","path":"//evil.example/"}`,
		`{"method":"GET","path":"/../metrics"}`, `{"method":"GET","path":"/%2e%2e/metrics"}`,
		`{"method":"GET","path":"/api/../metrics"}`, `{"method":"GET","path":"metrics"}`, `{"method":"GET","path":"/a\\b"}`,
		`{"method":"TRACE","path":"/health"}`,
		`{"method":"POST","path":"/companies","jsonBody":"name=x"}`, `{"path":"/health"}`, `[]`,
		`{"method":"GET","path":"/issues/.."}`, `{"method":"GET","path":"/issues/%2e"}`,
	} {
		if text, isError := tool(t, s, "paperclipApiRequest", args); !isError {
			t.Errorf("paperclipApiRequest(%s) = %s, want an error", args, text)
		}
	}
	for name, args := range map[string]string{"paperclipGetIssue": `{"issueId":".."}`, "paperclipGetAgent": `{}`,
		"paperclipWaitForIssueWorkspaceService": `{"issueId":"ACM-1","timeoutSeconds":301}`} {
		if text, isError := tool(t, s, name, args); !isError {
			t.Errorf("%s(%s) = %s, want an error", name, args, text)
		}
	}
	wantTool(t, s, "paperclipApiRequest", `{"method":"GET","path":"/metrics"}`, "API route not found")
	wantTool(t, s, "paperclipGetIssue", `{"issueId":"../companies"}`, `"status": 404`)
	if strings.Contains(h.Log.String(), h.Token) {
		t.Error("the log shows the bearer")
	}
	bad := h.OverHTTP(t, protocols[0], "", apitest.WithHeaders{"Authorization": "Bearer pcp_nobody"})
	wantTool(t, bad, "paperclipMe", `{}`, `"status": 401`)
}

func TestMCPDoorIsClosedToOtherSites(t *testing.T) {
	h := apitest.NewHarness(t)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	accept := "Accept: application/json, text/event-stream"
	for name, c := range map[string]struct {
		headers []string
		body    string
		status  int
	}{
		"another name":     {[]string{accept, "Host: evil.example"}, hello, 403},
		"another site":     {[]string{accept, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}, hello, 403},
		"an older browser": {[]string{accept, "Origin: https://evil.example"}, hello, 403},
		"too large": {[]string{accept}, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"` +
			strings.Repeat("x", mcp.MaxMessage) + `"}}`, 413},
		"no JSON": {[]string{accept}, `{`, 400},
	} {
		if a := h.Call("POST", "/mcp", c.body, c.headers...); a.Status != c.status {
			t.Errorf("%s: %d %s, want %d", name, a.Status, api.Cut(string(a.Body), 200), c.status)
		}
	}
	if a := h.Call("GET", "/mcp", "", accept); a.Status != 405 {
		t.Errorf("GET answered %d, want 405: there are no sessions", a.Status)
	}
}

// A model reads what is listed before it begins, so little is, and how much is said here.
func TestClientsPickTheToolsThatTheyAreToldOf(t *testing.T) {
	h := apitest.NewHarness(t)
	contract := []string{"paperclipMe", "paperclipUpdateIssue", "paperclipApiRequest"}
	finders := []string{"selvageFindTools", "selvageCallTool"}
	most := map[string]int{"": 30 << 10, "contract": 26 << 10, "issues,runs": 100 << 10, "all": 320 << 10}
	for pick, c := range map[string]struct{ has, lacks []string }{
		"": {slices.Concat(contract, finders, []string{"selvageGetCompanies"}),
			[]string{"selvageGetCompaniesLabels"}},
		"contract": {contract, slices.Concat(finders, []string{"selvageGetCompanies"})},
		"issues,runs": {slices.Concat(finders, []string{"paperclipGetIssue", "selvagePostHeartbeatRunsCancel"}),
			[]string{"paperclipMe", "selvageGetCompanies"}},
		" contract , secrets": {slices.Concat(contract, finders, []string{"selvagePostSecretsRotate"}),
			[]string{"selvageGetCompanies"}},
		"all": {slices.Concat(contract, finders, []string{"selvageGetCompanies",
			"selvageGetCompaniesLabels"}), nil},
	} {
		s := h.OverHTTP(t, protocols[1], pick, nil)
		names, size := listed(t, s)
		for _, name := range c.has {
			if !names[name] {
				t.Errorf("%q: %s is not listed", pick, name)
			}
		}
		for _, name := range c.lacks {
			if names[name] {
				t.Errorf("%q: %s is listed", pick, name)
			}
		}
		said := s.InitializeResult().Instructions
		if strings.Contains(said, "selvageFindTools") != names["selvageFindTools"] || strings.Contains(said,
			"paperclipInboxLite") != names["paperclipInboxLite"] {
			t.Errorf("%q: it is told %q", pick, said)
		}
		if size > most[pick] && most[pick] > 0 {
			t.Errorf("%q: a model reads %d bytes, want at most %d", pick, size, most[pick])
		}
		t.Logf("%q: %d tools, %d bytes", pick, len(names), size)
	}
	a := h.Call("POST", "/mcp?tools=issue", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`,
		"Accept: application/json, text/event-stream")
	if a.Status != 400 || !strings.Contains(string(a.Body),
		`there is no group \"issue\"; give all, contract, or some of activity,`) {
		t.Errorf("an unknown group: %d %s", a.Status, a.Body)
	}
}

// What is not listed is found by words, and called.
func TestToolsThatAreNotListedAreFoundAndCalled(t *testing.T) {
	h := apitest.NewTeam(t)
	s := h.OverHTTP(t, protocols[1], "", apitest.WithHeaders{"Authorization": "Bearer " + h.Token})
	for query, want := range map[string]string{
		"pause an agent": "selvagePostAgentsPause", "read the log of a run": "selvageGetHeartbeatRunsLog",
		"rotate secrets": "selvagePostSecretsRotate",
		"cancel run":     "selvagePostHeartbeatRunsCancel", "searching issues": "selvageGetCompaniesSearch",
		"make a routine":   "selvagePostCompaniesRoutines",
		"delete a company": "selvageDeleteCompaniesByCompanyId", "add a label": "selvagePostCompaniesLabels",
		"hire":                 "selvagePostCompaniesAgentHires",
		"approve join request": "selvagePostV1MeshRequestsApprove", "budget of an agent": "selvagePatchAgentsBudgets",
	} {
		text := wantTool(t, s, "selvageFindTools", `{"query":"`+query+`","limit":2}`, `"name": "`+want+`"`)
		if len(text) > 8<<10 {
			t.Errorf("%q: the answer has %d bytes", query, len(text))
		}
	}
	wantTool(t, s, "selvageFindTools", `{"group":"secrets","limit":20}`, "selvagePostSecretsRotate")
	wantTool(t, s, "selvageFindTools", `{"query":"xyzzy"}`, "Try others, or a group: activity")
	wantTool(t, s, "selvageCallTool",
		`{"name":"selvageGetCompaniesLabels","arguments":{"companyId":"`+string(h.Company)+`"}}`, "[]")
	wantTool(t, s, "selvageCallTool", `{"name":"selvageGetCompaniesLabels"}`, "[]") // of the agent's own company
	wantTool(t, s, "selvageCallTool", `{"name":"paperclipGetIssue","arguments":{"issueId":"ACM-99"}}`, `"status": 404`)
	for name, args := range map[string][]string{
		"selvageFindTools": {`{}`, `{"group":"secret"}`, `{"query":"run","limit":21}`, `{"query":"run","limit":0}`,
			`{"query":"` + strings.Repeat("x", 501) + `"}`},
		"selvageCallTool": {`{}`, `{"name":"selvageNothing"}`, `{"name":"selvageGetCompaniesLabels","arguments":"x"}`,
			`{"name":"selvageCallTool","arguments":{"name":"selvageCallTool"}}`},
	} {
		for _, args := range args {
			if text, isError := tool(t, s, name, args); !isError {
				t.Errorf("%s(%s) = %s, want an error", name, args, text)
			}
		}
	}
}

// The contract's server tells a refusal as a plain answer; other tools say that it is an
// error, also when they are called through the one that calls others.
func TestRefusalsAreErrorsExceptOfTheContractsTools(t *testing.T) {
	h := apitest.NewTeam(t)
	s := h.OverHTTP(t, protocols[1], "", apitest.WithHeaders{"Authorization": "Bearer " + h.Token})
	const nobody = "00000000-0000-4000-8000-000000000000"
	for _, c := range []struct {
		name, args string
		isError    bool
	}{
		{"paperclipGetGoal", `{"goalId":"` + nobody + `"}`, false},
		{"selvageGetRoutinesById", `{"id":"` + nobody + `"}`, true},
		{"selvageCallTool", `{"name":"paperclipGetGoal","arguments":{"goalId":"` + nobody + `"}}`, false},
		{"selvageCallTool", `{"name":"selvageGetRoutinesById","arguments":{"id":"` + nobody + `"}}`, true},
	} {
		text, isError := tool(t, s, c.name, c.args)
		var no struct{ Status int }
		if err := json.Unmarshal([]byte(text), &no); err != nil || no.Status != 404 || isError != c.isError {
			t.Errorf("%s(%s) = %s, isError %v", c.name, c.args, text, isError)
		}
	}
}

func BenchmarkTool(b *testing.B) {
	h := apitest.NewHarness(b)
	id := h.Company("Acme")
	b.Run("http", func(b *testing.B) {
		for b.Loop() {
			h.Call("GET", "/api/companies/"+id+"/goals", "").Want(b, 200, "")
		}
	})
	s := h.OverHTTP(b, protocols[1], "", nil)
	args := fmt.Sprintf(`{"companyId":%q}`, id)
	b.Run("tool", func(b *testing.B) {
		for b.Loop() {
			wantTool(b, s, "paperclipListGoals", args, "")
		}
	})
}

// What did the agent do at 3:14? One query tells, what it only read too, and
// after its run has ended.
func TestToolCallsLeaveATrace(t *testing.T) {
	h := apitest.NewTeam(t)
	run := h.Running(h.Company, h.Worker)
	s := h.OverHTTP(t, protocols[1], "", apitest.WithHeaders{"Authorization": "Bearer " + h.Token, api.HeaderRun: run})
	from := h.Node.Wall().UTC()
	wantTool(t, s, "paperclipListGoals", `{}`, h.Goal)
	wantTool(t, s, "paperclipGetIssue", `{"issueId":"ACM-77"}`, "404")
	wantTool(t, s, "paperclipCreateIssue", `{"title":"Weld"}`, "ACM")
	spoof := h.OverHTTP(t, protocols[1], "", apitest.WithHeaders{"Authorization": "Bearer " + h.Token,
		api.HeaderRun: api.NewID()})
	wantTool(t, spoof, "paperclipListAgents", `{}`, h.Boss)
	h.Call("GET", "/api/companies/"+string(h.Company)+"/goals", "", h.As()).Want(t, 200, "") // not through a tool
	query := fmt.Sprintf("/api/companies/%s/activity?agentId=%s&from=%s", h.Company, h.Worker,
		from.Format(time.RFC3339Nano))
	var made, tools []string
	for end := time.Now().Add(apitest.Patience); len(tools) < 4 && time.Now().Before(end); h.FlushTraces() {
		made, tools = h.Traced(t, query, run)
	}
	slices.Sort(made)
	slices.Sort(tools)
	if want := []string{"issue.created of the run", "mcp.tool_called of no run",
		"mcp.tool_called of the run"}; !slices.Equal(slices.Compact(made), want) {
		t.Errorf("the record says %q, want %q", made, want)
	}
	if want := []string{"paperclipCreateIssue 201", "paperclipGetIssue 404", "paperclipListAgents 200",
		"paperclipListGoals 200"}; !slices.Equal(tools, want) {
		t.Errorf("traced are %q, want %q", tools, want)
	}
	if a := h.Call("GET", query+"&to="+from.Format(time.RFC3339Nano), ""); string(a.Body) != "[]" {
		t.Errorf("before it began: %s", a.Body)
	}
	if !strings.Contains(h.Log.String(), `"tool":"paperclipListGoals"`) {
		t.Error("the log has no line of the call")
	}
}

func TestTracesAreBounded(t *testing.T) {
	var all api.Traces
	by := api.Tracer{Actor: ledger.Actor{Type: "agent", ID: "a"}, Company: "c", Run: "r"}
	for range api.TraceQueue + 7 {
		all.Add(api.Traced{By: by, Call: skill.ToolCall{Tool: "x", Method: "GET", Path: "/"}})
	}
	n, omitted := 0, int64(0)
	for _, cmd := range all.Take() {
		var p skill.TraceTools
		if err := ledger.Unmarshal(cmd.Payload, &p); err != nil {
			t.Fatal(err)
		}
		n += len(p.Calls)
		omitted += p.Omitted
	}
	if n != api.TraceQueue || omitted != 7 || len(all.Take()) != 0 {
		t.Errorf("%d noted, %d omitted", n, omitted)
	}
}
