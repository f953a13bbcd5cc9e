package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// answering starts a server that answers each METHOD and path with a body. A body with
// an error is a refusal with the status before it, as in 404 {"error": …}. asked is the
// last request that is not a GET, with its body.
func answering(t *testing.T, answers map[string]string) (asked *string) {
	t.Helper()
	asked = new("")
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" {
			var body any
			_ = json.NewDecoder(r.Body).Decode(&body)
			b, _ := json.Marshal(body)
			*asked = r.Method + " " + r.URL.Path + " " + string(b)
		}
		text, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			text = `404 {"error": "API route not found"}`
		}
		if strings.HasPrefix(text, "4") {
			w.WriteHeader(map[string]int{"400": 400, "401": 401, "404": 404, "409": 409}[text[:3]])
			text = text[4:]
		}
		w.Write([]byte(text))
	}))
	t.Cleanup(node.Close)
	t.Setenv("SELVAGE_API_URL", node.URL)
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	return asked
}

const oneCompany = `[{"id": "c", "name": "Acme", "issuePrefix": "ACM"}]`

// A refusal says what is wrong and what to do next. With -o json it is one object on
// standard error, with the API's details.
func TestRefusalsSayWhatIsNext(t *testing.T) {
	for _, c := range []struct{ body, says, details string }{
		{`404 {"error": "Issue not found"}`, "Issue not found (HTTP 404): see selvage issue list", ""},
		{`404 {"error": "Moon not found"}`, "Moon not found (HTTP 404)", ""},
		{`401 {"error": "Unauthorized"}`,
			"Unauthorized (HTTP 401): sign in with selvage auth login, or set SELVAGE_API_KEY", ""},
		{`409 {"error": "Issue cannot move from done to in_review", "details": {"issueId": "7", ` +
			`"allowedStatuses": ["todo", "backlog"], "held": false, "owner": null, "tries": 2}}`,
			"Issue cannot move from done to in_review (HTTP 409): allowed statuses todo, backlog; issue 7; tries 2",
			`{"issueId":"7","allowedStatuses":["todo","backlog"],"held":false,"owner":null,"tries":2}`},
		{`409 {"error": "Document is locked", "details": {}}`,
			"Document is locked (HTTP 409); selvage issue unlock ISSUE DOCUMENT opens it", `{}`},
		{`400 {"error": "Validation error", "details": [{"path": ["status"], "message": "Required"}]}`,
			"Validation error (HTTP 400): status: Required", `[{"path":["status"],"message":"Required"}]`},
		{`400 nonsense`, "400 Bad Request: nonsense (HTTP 400)", ""},
	} {
		answering(t, map[string]string{"PATCH /api/issues/ACM-1": c.body})
		status, out, talk := told(t, "issue", "move", "ACM-1", "in_review")
		if status != cli.ExitFailed || out != "" || talk != "selvage: "+c.says+"\n" {
			t.Errorf("%s ended with %d: %s%s, want 1 and %q", c.body, status, out, talk, c.says)
		}
		status, out, talk = told(t, "issue", "move", "ACM-1", "in_review", "-o", "json")
		var got struct {
			Error   string
			Status  int
			Details json.RawMessage
		}
		if err := json.Unmarshal([]byte(talk), &got); err != nil || status != cli.ExitFailed || out != "" {
			t.Fatalf("%s as JSON ended with %d: %s%s: %v", c.body, status, out, talk, err)
		}
		details, _ := json.Marshal(got.Details)
		if len(got.Details) == 0 {
			details = nil
		}
		if got.Error != c.says || got.Status == 0 || string(details) != c.details {
			t.Errorf("%s as JSON is %s, want %q and %s", c.body, talk, c.says, c.details)
		}
	}
}

// Misuse is reported as JSON too, wherever -o json is on the command line.
func TestMisuseIsJSON(t *testing.T) {
	answering(t, nil)
	for _, args := range [][]string{
		{"-o", "json", "issue", "show"}, {"issue", "show", "--output=json"}, {"issue", "show", "-ojson"},
		{"issue", "show", "ACM-1", "--spare", "-o", "json"},
		{"issue", "list", "--limit", "x", "-o", "json"}, {"isue", "-o", "json"},
	} {
		status, out, talk := told(t, args...)
		var got struct{ Error, Usage string }
		if err := json.Unmarshal([]byte(talk), &got); err != nil || status != cli.ExitMisused || out != "" ||
			got.Error == "" || got.Usage == "" {
			t.Errorf("selvage %q ended with %d: %s%s", args, status, out, talk)
		}
	}
	if _, _, talk := told(t, "issue", "show", "--", "-o", "json"); json.Valid([]byte(talk)) {
		t.Errorf("an argument is taken for a flag: %s", talk)
	}
	if _, _, talk := told(t, "issue", "list", "--limit", "x"); !strings.Contains(talk,
		`--limit is "x": want a whole number`) {
		t.Errorf("--limit x says %s", talk)
	}
}

// The commands that refusals recommend exist.
func TestNextStepsAreCommands(t *testing.T) {
	t.Parallel()
	for what, line := range cli.ShownBy {
		if commandOf(strings.Fields(line)) == "" {
			t.Errorf("what shows %s is no command: %s", what, line)
		}
	}
	for what, text := range cli.NextSteps {
		for line := range strings.SplitSeq(text, "selvage ") {
			if line != "" && commandOf(strings.Fields(line)) == "" {
				t.Errorf("what follows %s is no command: %s", what, line)
			}
		}
	}
}

// Rows below another row can be named by name, ID, or prefix of an ID, as everywhere. A
// name that no list has is sent to the API.
func TestListedAreNamed(t *testing.T) {
	asked := answering(t, map[string]string{
		"GET /api/companies":          oneCompany,
		"GET /api/companies/c/agents": `[{"id": "b", "name": "Bob"}]`,
		"GET /api/agents/b/keys": `[{"id": "0199-a", "name": "laptop"}, {"id": "0199-b", ` +
			`"name": "desk"}, {"id": "0200-c", "name": "desk"}]`,
		"GET /api/issues/ACM-1/interactions":        `[{"id": "0199-a"}, {"id": "0199-b"}]`,
		"GET /api/companies/c/approvals":            `[{"id": "0199-a"}]`,
		"GET /api/companies/c/join-requests":        `[{"id": "0199-a"}]`,
		"GET /api/agents/b/config-revisions":        `[{"id": "0199-a"}]`,
		"GET /api/companies/c/budget-incidents":     `[{"id": "0199-a"}]`,
		"GET /api/board-api-keys":                   `[{"id": "0199-a", "name": "lap"}]`,
		"GET /api/issues/ACM-1/comments":            `404 {"error": "Issue not found"}`,
		"GET /api/companies/c/budgets/reservations": `[{"id": "0199-a"}]`,
	})
	for _, c := range []struct{ line, asked, says string }{
		{"agent revoke-key Bob laptop", "DELETE /api/agents/b/keys/0199-a {}", ""},
		{"agent revoke-key Bob 0200", "DELETE /api/agents/b/keys/0200-c {}", ""},
		{"agent revoke-key Bob desk", "",
			"more than one key matches \"desk\": give more of the ID, which is one of 0199-b, 0200-c"},
		{"agent revoke-key Bob 07", "DELETE /api/agents/b/keys/07 {}", ""},
		{"issue accept ACM-1 0199-b", "POST /api/issues/ACM-1/interactions/0199-b/accept {}", ""},
		{"issue accept ACM-1 0199", "", "more than one interaction matches \"0199\""},
		{"issue answer ACM-1 0199-a which=a,b:or",
			`POST /api/issues/ACM-1/interactions/0199-a/respond {"answers":[{"optionIds":["a","b"],` +
				`"otherText":"or","questionId":"which"}]}`, ""},
		{"issue answer ACM-1 0199-a which", "", "selvage issue asked ACM-1 0199-a shows both"},
		{"issue link ACM-1 01", `POST /api/issues/ACM-1/approvals {"approvalId":"0199-a"}`, ""},
		{"member approve 01", "POST /api/companies/c/join-requests/0199-a/approve {}", ""},
		{"agent rollback Bob 01", "POST /api/agents/b/config-revisions/0199-a/rollback {}", ""},
		{"budget resolve 01", `POST /api/companies/c/budget-incidents/0199-a/resolve {"action":"keep_paused"}`, ""},
		{"budget held writeoff 01", "POST /api/companies/c/budgets/reservations/0199-a/write-off {}", ""},
		{"key board revoke lap", "DELETE /api/board-api-keys/0199-a {}", ""},
		{"issue unsay ACM-1 01", "DELETE /api/issues/ACM-1/comments/01 {}", ""},
		{"issue detach 01", "", "\"01\" is no whole ID: name the issue that it belongs to before it"},
		{"issue detach 0199c0de-0000-7000-8000-000000000000",
			"DELETE /api/attachments/0199c0de-0000-7000-8000-000000000000 {}", ""},
		{"company delete 01 --yes", "", "no company \"01\": see selvage company list"},
		{"company delete acm --yes", "DELETE /api/companies/c {}", ""},
		{"company delete Acme --yes", "DELETE /api/companies/c {}", ""},
		{"company delete Acme", "", "Delete a company and everything in it: ACM Acme? Nobody can be asked"},
	} {
		*asked = ""
		if _, _, talk := told(t, strings.Fields(c.line)...); *asked != c.asked || !strings.Contains(talk, c.says) {
			t.Errorf("selvage %s asked %q and said %s, want %q and %q", c.line, *asked, talk, c.asked, c.says)
		}
	}
}

// Permissions that are not given stay unchanged.
func TestMayKeepsTheRest(t *testing.T) {
	bob := `{"id": "b", "name": "Bob", "permissions": {"canCreateAgents": true, "canCreateSkills": false}, ` +
		`"access": {"canAssignTasks": true, "taskAssignSource": "explicit_grant"}}`
	asked := answering(t, map[string]string{
		"GET /api/companies": oneCompany, "GET /api/companies/c/agents": `[{"id": "b", "name": "Bob"}]`,
		"GET /api/agents/b": bob, "PATCH /api/agents/b/permissions": bob,
	})
	for _, c := range []struct{ line, asked string }{
		{"agent may Bob", ""},
		{"agent may Bob --assign=false", `PATCH /api/agents/b/permissions {"canAssignTasks":false,"canCreateAgents":true}`},
		{"agent may Bob --create-skills",
			`PATCH /api/agents/b/permissions {"canAssignTasks":true,"canCreateAgents":true,"canCreateSkills":true}`},
	} {
		*asked = ""
		status, out, talk := told(t, strings.Fields(c.line)...)
		want := "create-agents  true   hire others\nassign         true   give work to others\ncreate-skills  " +
			"false  add and change skills\n"
		if status != 0 || *asked != c.asked || out != want {
			t.Errorf("selvage %s ended with %d, asked %q and said %s%s, want %q and %q", c.line, status, *asked, out, talk,
				c.asked, want)
		}
	}
}

// Members are shown in two columns, with agents' names.
func TestMembersStandInColumns(t *testing.T) {
	answering(t, map[string]string{
		"GET /api/companies":          oneCompany,
		"GET /api/companies/c/agents": `[{"id": "0199c0de-5f02-79a6-92bc-807bd79fee94", "name": "Bob"}]`,
		"GET /api/companies/c/goals":  `[{"id": "g", "title": "Arms"}]`,
		"GET /api/goals/g": `{"companyId": "c", "ownerAgentId": ` +
			`"0199c0de-5f02-79a6-92bc-807bd79fee94", "aNameThatIsLongerThanOthers": true, "nothing": null, "in": {"it": 1}}`,
	})
	want := "aNameThatIsLongerThanOthers  true\ncompanyId                    c\nin.it                        1\n" +
		"ownerAgentId                 Bob 0199c0de-5f02-79a6-92bc-807bd79fee94\n"
	if status, out, talk := told(t, "goal", "show", "Arms", "-o", "wide"); status != 0 || out != want {
		t.Errorf("goal show -o wide ended with %d: %s%s, want %s", status, out, talk, want)
	}
	if status, out, talk := told(t, "goal", "show", "Arms"); status != 0 || out != "owner  Bob\n" {
		t.Errorf("goal show ended with %d: %s%s, want what people read", status, out, talk)
	}
}

// Texts of others can not control the terminal that shows them, and do not break the
// columns of tables.
func TestWhatOthersWroteIsOnlyShown(t *testing.T) {
	answering(t, map[string]string{
		"GET /api/companies":          oneCompany,
		"GET /api/companies/c/agents": `[{"id": "b", "name": "B\u001b[2Job\n2", "role": "qa", "status": "idle"}]`,
		"GET /api/issues/ACM-1": `{"identifier": "ACM-1", "companyId": "c", "title": "\u001b]0;x\u0007", ` +
			`"description": "two\nlines\u009b"}`, "GET /api/issues/ACM-1/comments": `[{"body": "a\u001bc"}]`,
		"GET /api/issues/ACM-1/live-runs": `[{"agentId": "b", "waiting": {"text": "no\u001b[2J node", "do": "\u0007"}}]`,
		"GET /api/companies/c/goals":      `[{"id": "g", "title": "\u001b[31mred"}]`,
	})
	for _, line := range []string{"agent list", "issue show ACM-1", "goal list"} {
		status, out, talk := told(t, strings.Fields(line)...)
		if status != 0 || strings.ContainsAny(out, "\x1b\a\u009b") || !strings.Contains(out, "�") {
			t.Errorf("selvage %s ended with %d: %q %s", line, status, out, talk)
		}
		if line == "agent list" && strings.Count(out, "\n") != 2 {
			t.Errorf("a name breaks the table: %q", out)
		}
	}
}
