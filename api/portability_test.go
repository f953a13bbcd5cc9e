package api

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// packageCanary is a secret that must be in no package.
const packageCanary = "packageCanary-7f3a9c51"

// acme makes a company with something of everything that travels.
func (h *harness) acme(t *testing.T) (of string) {
	t.Helper()
	of = h.call("POST", "/api/companies", `{"name":"Acme Robotics","description":"Builds: \"robots\""}`).want(t, 201, "").field(t, "id")
	in := "/api/companies/" + of
	picture := h.dress(t, of)
	agent := func(body string) string { return h.call("POST", in+"/agents", body).want(t, 201, "").field(t, "id") }
	ada := agent(`{"name":"Ada","role":"ceo","title":"Chief","capabilities":"leads","adapterType":"process","adapterConfig":{"command":"/usr/bin/true","cwd":"/home/ada",
		"env":{"OPENAI_API_KEY":"` + packageCanary + `","REGION":"` + packageCanary + `"},"apiToken":"` + packageCanary + `","timeoutSec":20}}`)
	bob := agent(`{"name":"Bob","role":"engineer","reportsTo":"` + ada + `","adapterType":"process","adapterConfig":{"command":"true","args":["-c","x"]},
		"runtimeConfig":{"heartbeat":{"enabled":true,"intervalSec":300}},"budgetMonthlyCents":5000,"contextMode":"fat"}`)
	agent(`{"name":"Bea","role":"engineer","reportsTo":"` + ada + `","adapterType":"process"}`) // after Bob, whom she comes before by name
	for path, text := range map[string]string{"AGENTS.md": "Lead.\n\n---\nnot: front matter\n", "notes/HOW.md": "Slowly.\n"} {
		h.call("PUT", "/api/agents/"+ada+"/instructions-bundle/file", fmt.Sprintf(`{"path":%q,"content":%q}`, path, text)).want(t, 200, "")
	}
	goal := h.call("POST", in+"/goals", `{"title":"Ship the arm","level":"company"}`).want(t, 201, "").field(t, "id")
	h.call("POST", in+"/goals", `{"title":"First step","level":"team","parentId":"`+goal+`","ownerAgentId":"`+bob+`"}`).want(t, 201, "")
	arm := h.call("POST", in+"/projects", `{"name":"Robot Arm","description":"v1","goalIds":["`+goal+`"],"leadAgentId":"`+ada+`","color":"#ff8800","env":{"DB_PASSWORD":"`+packageCanary+`"}}`).want(t, 201, "").field(t, "id")
	home := h.call("POST", "/api/projects/"+arm+"/workspaces", `{"name":"second","repoUrl":"https://git.example.org/second.git"}`).want(t, 201, "").field(t, "id")
	h.call("PATCH", "/api/projects/"+arm, `{"executionWorkspacePolicy":{"enabled":true,"defaultMode":"isolated_workspace","defaultProjectWorkspaceId":"`+home+`",
		"workspaceStrategy":{"type":"git_worktree","branchTemplate":"x/{{issue.identifier}}","worktreeParentDir":"/home/ada/trees"},
		"workspaceRuntime":{"services":[{"name":"web","command":"make serve","cwd":"web","env":{"TOKEN":"`+packageCanary+`"}},{"name":"db","command":"db","cwd":"/home/ada/db"}]}}}`).want(t, 200, "")
	h.call("POST", "/api/projects/"+arm+"/workspaces", `{"name":"main","repoUrl":"https://bot:`+packageCanary+`@git.example.org/arm.git","repoRef":"main","isPrimary":true}`).want(t, 201, "")
	h.call("POST", "/api/projects/"+arm+"/workspaces", `{"name":"desk","cwd":"/home/ada/arm"}`).want(t, 201, "")
	bug := h.call("POST", in+"/labels", `{"name":"bug","color":"#ff0000"}`).want(t, 201, "").field(t, "id")
	issue := func(body string) string { return h.call("POST", in+"/issues", body).want(t, 201, "").field(t, "id") }
	first := issue(`{"title":"Design: gripper","description":"Make a gripper\n\n- strong\n\n![](` + picture + `)","status":"todo","priority":"high","projectId":"` + arm + `","labelIds":["` + bug + `"],"billingCode":"BC-1"}`)
	gone := issue(`{"title":"A mistake"}`)
	h.call("DELETE", "/api/issues/"+gone, "").want(t, 200, "")
	child := issue(`{"title":"Sub task","parentId":"` + first + `","assigneeAgentId":"` + bob + `"}`)
	issue(`{"title":"Later","status":"blocked","blockedByIssueIds":["` + child + `"]}`)
	h.call("POST", in+"/skills", `{"name":"greeting","description":"How to greet","markdown":"---\nname: greeting\ndescription: How to greet\n---\nSay hi.\n"}`).want(t, 201, "")
	h.call("PATCH", in+"/skills/greeting/files", `{"path":"references/more.md","content":"And bye.\n"}`).want(t, 200, "")
	h.call("POST", "/api/agents/"+bob+"/skills/sync", `{"desiredSkills":["company/`+of+`/greeting","paperclipai/paperclip/paperclip"]}`).want(t, 200, "")
	daily := h.call("POST", in+"/routines", `{"title":"Daily report","description":"Write {{topic}}","priority":"low","assigneeAgentId":"`+ada+`","projectId":"`+arm+`",
		"concurrencyPolicy":"skip_if_active","activityGatePolicy":"require_external_activity","activityGateScope":"project","billingCode":"BC-2","labelIds":["`+bug+`"],
		"env":{"MAIL_TOKEN":"`+packageCanary+`","WHERE":"`+packageCanary+`"},"variables":[{"name":"topic","defaultValue":"sales"}]}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/routines/"+daily+"/triggers", `{"kind":"schedule","cronExpression":"0 9 * * *","timezone":"Europe/Berlin"}`).want(t, 201, "")
	h.call("POST", "/api/routines/"+daily+"/triggers", `{"kind":"webhook","signingMode":"hmac_sha256","enabled":false}`).want(t, 201, "")
	h.call("PUT", "/api/issues/"+first+"/documents/plan", `{"title":"Plan","format":"markdown","body":"# Plan\n2. more"}`).want(t, 201, "")
	h.call("PUT", "/api/issues/"+first+"/documents/long", `{"format":"markdown","body":"`+strings.Repeat("long ", 90_000)+`"}`).want(t, 201, "")
	h.call("POST", "/api/issues/"+first+"/work-products", `{"type":"pull_request","provider":"github","title":"PR 1","status":"active","url":"https://github.com/acme/x/pull/1"}`).want(t, 201, "")
	form, contentType := formOf(t, "grip.txt", "text/plain", []byte("a drawing"))
	drawing := h.call("POST", in+"/issues/"+first+"/attachments", form, contentType).want(t, 201, "").field(t, "contentPath")
	h.call("POST", "/api/issues/"+first+"/comments", `{"body":"See [it](`+drawing+`), and ![that](`+picture+`)"}`).want(t, 201, "")
	h.call("POST", "/api/issues/"+first+"/comments", `{"body":"Looks good.\n---\nyes: no"}`).want(t, 201, "")
	// What people and agents left on texts and skills.
	plan := h.call("GET", "/api/issues/"+first+"/documents/plan", "").field(t, "latestRevisionId")
	remark := func(path, revision, words string, more ...string) {
		thread := h.call("POST", path, `{"baseRevisionId":"`+revision+`","baseRevisionNumber":1,"body":"Why: `+words+`?\n- so","selector":{"quote":{"exact":"`+words+`","prefix":"","suffix":""},"position":{"normalizedStart":0,"normalizedEnd":4,"markdownStart":2,"markdownEnd":6}}}`).want(t, 201, "").field(t, "id")
		for _, text := range more {
			h.call("POST", path+"/"+thread+"/comments", `{"body":"`+text+`"}`).want(t, 201, "")
		}
		if len(more) > 1 {
			h.call("PATCH", path+"/"+thread, `{"status":"resolved"}`).want(t, 200, "")
		}
	}
	remark("/api/issues/"+first+"/documents/plan/annotations", plan, "Plan", "Because", "I see")
	remark("/api/issues/"+first+"/documents/plan/annotations", plan, "more")
	view(t, h, func(tx *ledger.Tx) {
		r, _ := routine.RoutineByID(tx, daily)
		plan = paper.DescriptionOf(r.Described()).Latest
	})
	remark("/api/routines/"+daily+"/description/annotations", plan, "Write", "Daily")
	said := h.call("POST", in+"/skills/greeting/comments", `{"body":"Say it louder"}`).want(t, 201, "").field(t, "id")
	h.call("POST", in+"/skills/greeting/comments", `{"body":"No","parentCommentId":"`+said+`"}`).want(t, 201, "")
	h.call("POST", in+"/skills/greeting/test-inputs", `{"name":"Ann","content":"Greet Ann"}`).want(t, 201, "")
	// An agent's word stays an agent's.
	key := "Authorization: Bearer " + h.call("POST", "/api/agents/"+bob+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	run := "X-Paperclip-Run-Id: " + h.running(of, bob)
	h.call("POST", in+"/skills/greeting/comments", `{"body":"I like it"}`, key, run).want(t, 201, "")
	thread := h.call("GET", "/api/issues/"+first+"/documents/plan/annotations", "").want(t, 200, "").decode(t).([]any)[1].(map[string]any)["id"].(string)
	h.call("POST", "/api/issues/"+first+"/documents/plan/annotations/"+thread+"/comments", `{"body":"Two more"}`, key, run).want(t, 201, "")
	h.order(t, of, ada, bob, arm, daily, first)
	h.past(t, of, ada, first)
	old := h.call("POST", in+"/projects", `{"name":"Old Arm"}`).want(t, 201, "").field(t, "id")
	issue(`{"title":"Long ago","projectId":"` + old + `"}`)
	h.call("PATCH", "/api/projects/"+old, `{"archivedAt":"2026-11-01T00:00:00.000Z"}`).want(t, 200, "")
	return of
}

// dress gives a company a logo, a colour, its limits, and pictures; the path of one
// is returned.
func (h *harness) dress(t *testing.T, of string) string {
	t.Helper()
	in := "/api/companies/" + of
	form, contentType := formOf(t, "logo.png", "image/png", pixel(t, 1))
	logo := h.call("POST", in+"/logo", form, contentType).want(t, 201, "").field(t, "assetId")
	h.call("PATCH", in+"/branding", `{"brandColor":"#12ab34","logoAssetId":"`+logo+`"}`).want(t, 200, "")
	h.call("PATCH", in, `{"requireBoardApprovalForCeoStrategy":false,"attachmentMaxBytes":123456}`).want(t, 200, "")
	form, contentType = formOf(t, "lonely.svg", "image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
	h.call("POST", in+"/assets/images", form, contentType).want(t, 201, "")
	form, contentType = formOf(t, "shop.png", "image/png", pixel(t, 2))
	return h.call("POST", in+"/assets/images", form, contentType).want(t, 201, "").field(t, "contentPath")
}

// pixel is a small image.
func pixel(t *testing.T, shade uint8) []byte {
	t.Helper()
	var b bytes.Buffer
	m := image.NewGray(image.Rect(0, 0, 1, 1))
	m.Pix[0] = shade
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// order puts a company in order: limits, folders, who reviews, watches and looks
// again, what agents remember and what came of trying a skill.
func (h *harness) order(t *testing.T, of, ada, bob, arm, daily, first string) {
	t.Helper()
	in := "/api/companies/" + of
	for _, body := range []string{
		`{"scopeType":"company","scopeId":"` + of + `","amount":90000,"windowKind":"calendar_month_utc","warnPercent":70}`,
		`{"scopeType":"project","scopeId":"` + arm + `","amount":70000,"windowKind":"lifetime"}`,
		`{"scopeType":"agent","scopeId":"` + bob + `","amount":900,"windowKind":"rolling_24h","hardStopEnabled":false}`,
	} {
		h.call("POST", in+"/budgets/policies", body).want(t, 200, "")
	}
	reports := h.call("POST", in+"/folders", `{"kind":"routine","name":"Reports","color":"#00ff00"}`).want(t, 201, "").field(t, "id")
	sales := h.call("POST", in+"/folders", `{"kind":"routine","name":"Sales","parentId":"`+reports+`"}`).want(t, 201, "").field(t, "id")
	h.call("PATCH", "/api/routines/"+daily, `{"folderId":"`+sales+`"}`).want(t, 200, "")
	h.call("POST", in+"/user-secret-definitions", `{"key":"GITHUB_TOKEN","name":"GitHub","usageGuidance":"For clones"}`).want(t, 201, "")
	h.call("PUT", "/api/agents/"+ada+"/memory/tone", `{"value":"be brief"}`).want(t, 200, "")
	h.call("PATCH", "/api/issues/"+first, `{"workMode":"planning","executionPolicy":{"mode":"normal","commentRequired":false,"maxReviewRounds":3,
		"stages":[{"type":"review","participants":[{"type":"agent","agentId":"`+bob+`"}]},{"type":"approval","participants":[{"type":"user","userId":"local-board"}]}],
		"monitor":{"nextCheckAt":"2030-01-02T03:04:05.000Z","notes":"wait for the shop","serviceName":"shop","maxAttempts":4,"recoveryPolicy":"create_recovery_issue"}}}`).want(t, 200, "")
	h.call("PUT", "/api/issues/"+first+"/watchdog", `{"agentId":"`+ada+`","instructions":"Ask Bob first"}`).want(t, 200, "")
	input := h.call("GET", in+"/skills/greeting/test-inputs", "").want(t, 200, "").decode(t).([]any)[0].(map[string]any)["id"].(string)
	h.call("POST", in+"/skills/greeting/test-runs", `{"inputId":"`+input+`","agentId":"`+bob+`"}`).want(t, 201, "")
}

// past gives a company somebody who has left and another who has the name now, a
// routine that is laid aside, and a course that the board has approved.
func (h *harness) past(t *testing.T, of, ada, first string) {
	t.Helper()
	in := "/api/companies/" + of
	for range 2 {
		cy := h.call("POST", in+"/agents", `{"name":"Cy","role":"engineer","reportsTo":"`+ada+`","adapterType":"process"}`).want(t, 201, "").field(t, "id")
		key := "Authorization: Bearer " + h.call("POST", "/api/agents/"+cy+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
		i := h.call("POST", in+"/issues", `{"title":"What Cy did","status":"todo","assigneeAgentId":"`+cy+`"}`).want(t, 201, "").field(t, "id")
		h.call("POST", "/api/issues/"+i+"/comments", `{"body":"Cy did it"}`, key, "X-Paperclip-Run-Id: "+h.running(of, cy)).want(t, 201, "")
		h.call("PATCH", "/api/issues/"+i, `{"status":"done"}`).want(t, 200, "")
		h.call("POST", "/api/agents/"+cy+"/terminate", "").want(t, 200, "terminated")
	}
	h.call("POST", in+"/agents", `{"name":"Cy","role":"engineer","reportsTo":"`+ada+`","adapterType":"process"}`).want(t, 201, "")
	old := h.call("POST", in+"/routines", `{"title":"Weekly report","assigneeAgentId":"`+ada+`"}`).want(t, 201, "").field(t, "id")
	h.call("PATCH", "/api/routines/"+old, `{"status":"archived"}`).want(t, 200, "")
	plan := h.call("POST", in+"/approvals", `{"type":"approve_ceo_strategy","requestedByAgentId":"`+ada+`","issueIds":["`+first+`"],"payload":{"plan":"Arms for all","apiToken":"`+packageCanary+`"}}`).want(t, 201, "").field(t, "id")
	h.call("POST", "/api/approvals/"+plan+"/approve", `{"decisionNote":"Go"}`).want(t, 200, "approved")
}

func (h *harness) export(t *testing.T, of, body string) exported {
	t.Helper()
	var out exported
	a := h.call("POST", "/api/companies/"+of+"/export", body).want(t, 200, "")
	if strings.Contains(string(a.body), packageCanary) {
		t.Errorf("a secret is in the package: %s", a.body[max(0, strings.Index(string(a.body), packageCanary)-200):])
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const everything = `{"include":{"company":true,"agents":true,"projects":true,"issues":true,"skills":true}}`

func importOf(t *testing.T, e exported, target, more string) string {
	t.Helper()
	files, err := json.Marshal(e.Files)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"source":{"type":"inline","rootPath":%q,"files":%s},"include":{"company":true,"agents":true,"projects":true,"issues":true,"skills":true},"target":%s,"agents":"all"%s}`, e.RootPath, files, target, more)
}

// varying are the lines of a sidecar that an import does not keep.
var varying = regexp.MustCompile(`(?m)^ *(createdAt|updatedAt|startedAt|completedAt|cancelledAt|status): .*\n|` +
	`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// sameFiles finds two packages the same but for IDs, times and states.
func sameFiles(t *testing.T, first, second portable.Files) {
	t.Helper()
	for name, f := range first {
		a, b := varying.ReplaceAllString(string(f.Data), ""), varying.ReplaceAllString(string(second[name].Data), "")
		if a != b {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			t.Errorf("%s came back as\n…%s\nit was\n…%s", name, cut(b[max(0, at-200):], 600), cut(a[max(0, at-200):], 600))
		}
	}
	for name := range second {
		if _, ok := first[name]; !ok {
			t.Errorf("%s was not there before", name)
		}
	}
}

func TestAPackageSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	from, to := newHarness(t), newHarness(t)
	first := from.export(t, from.acme(t), everything)
	var done imported
	if err := json.Unmarshal(to.call("POST", "/api/companies/import", importOf(t, first, `{"mode":"new_company"}`, "")).want(t, 200, "").body, &done); err != nil {
		t.Fatal(err)
	}
	if done.Company.Action != "created" || len(done.Agents) != 6 || len(done.Projects) != 2 || len(done.EnvInputs) != 5 {
		t.Errorf("%+v", done)
	}
	second := to.export(t, done.Company.ID, everything)
	// No table of what travels is empty, there or here.
	view(t, from, func(tx *ledger.Tx) {
		for table, n := range company.TravellingRows(tx, first.Manifest.Source.CompanyID, 1000) {
			if n == 0 {
				t.Errorf("nothing of table %s was exported: acme has no such row", table)
			}
		}
	})
	view(t, to, func(tx *ledger.Tx) {
		for table, n := range company.TravellingRows(tx, done.Company.ID, 1000) {
			if n == 0 {
				t.Errorf("nothing of table %s arrived", table)
			}
		}
	})
	if text := string(first.Files["agents/ada/AGENTS.md"].Data); !strings.Contains(text, "\nLead.\n\n---\nnot: front matter\n") || string(first.Files["agents/ada/notes/HOW.md"].Data) != "Slowly.\n" {
		t.Errorf("instructions did not travel: %q", text)
	}
	for _, want := range []string{`body: "Because"`, `status: "resolved"`, `body: "Two more"`, `body: "I like it"`, `body: "Daily"`, `content: "Greet Ann"`, `authorAgentSlug: "bob"`, "answersIndex: 0",
		`instructions: "Ask Bob first"`, `recoveryPolicy: "create_recovery_issue"`, `windowKind: "rolling_24h"`, `folder: "reports/sales"`, `value: "be brief"`, `plan: "Arms for all"`, `terminated: true`, `defaultProjectWorkspaceKey: "second"`, `branchTemplate: "x/{{issue.identifier}}"`, `cwd: "web"`, `authorAgentSlug: "cy-2"`, `status: "archived"`, `key: "GITHUB_TOKEN"`, `content: "Greet Ann"`} {
		if text := string(first.Files[".paperclip.yaml"].Data); !strings.Contains(text, want) {
			t.Errorf("the sidecar has no %s", want)
		}
	}
	sameFiles(t, first.Files, second.Files)
	to.shows(t, done.Company.ID, second)
	for name, f := range first.Files {
		if strings.Contains(string(f.Data), "/home/ada") && !f.Binary {
			t.Errorf("%s names a folder of one machine", name)
		}
	}
	view(t, to, func(tx *ledger.Tx) { // the key of a workspace is an ID again, of one that is there
		for _, p := range company.ProjectsOf(tx, done.Company.ID) {
			if p.Name != "Robot Arm" {
				continue
			}
			spaces := place.WorkspacesOf(tx, done.Company.ID, p.ID)
			if n := slices.IndexFunc(spaces, func(w place.Workspace) bool { return w.Name == "second" }); n < 0 || !strings.Contains(string(p.WorkspacePolicy), spaces[n].ID) {
				t.Errorf("the policy came in as %s", p.WorkspacePolicy)
			}
		}
	})
	if text := string(second.Files["tasks/acm-8/TASK.md"].Data); !strings.Contains(text, `project: "old-arm"`) || !strings.Contains(string(second.Files[".paperclip.yaml"].Data), "archived: true") {
		t.Errorf("what lies in an archived project came back as %s", text)
	}
	// Nothing runs, and nothing is woken.
	view(t, to, func(tx *ledger.Tx) {
		if due := care.DueMonitors(tx, 1<<50, 10); len(due) > 0 {
			t.Errorf("monitors of an import would fire: %+v", due)
		}
		r := routine.RoutinesOf(tx, done.Company.ID)
		if n := slices.IndexFunc(r, func(r routine.Routine) bool { return r.Status == routine.RoutineArchived }); n < 0 {
			t.Error("no routine came in laid aside")
		} else {
			r = slices.Delete(r, n, n+1)
		}
		if len(r) != 1 || r[0].Status != routine.RoutinePaused || len(routine.TriggersOf(tx, r[0])) != 2 {
			t.Errorf("routines came back as %+v", r)
		} else if string(r[0].BillingCode) != "BC-2" || r[0].Gate != "require_external_activity" || r[0].GateScope != "project" || len(r[0].Labels) != 1 ||
			!strings.Contains(string(conceal.RedactEnv(r[0].Env)), "MAIL_TOKEN") {
			t.Errorf("the routine came back as %+v", r[0])
		}
		if s := skill.SkillsOf(tx, done.Company.ID); len(s) != 1 || len(s[0].Files) != 2 {
			t.Errorf("skills came back as %+v", s)
		}
		if n := len(company.AgentsOf(tx, done.Company.ID, true)); n != 6 {
			t.Errorf("%d agents came in", n)
		}
		if row, _ := company.CompanyOf(tx, done.Company.ID); row.Strategy == "" {
			t.Error("the approved strategy did not come in: a CEO may only draft")
		}
		for _, a := range company.AgentsOf(tx, done.Company.ID, false) {
			if a.Status != company.AgentIdle || strings.Contains(string(a.RuntimeConfig), `"enabled":true`) {
				t.Errorf("%s is %s with %s", a.Name, a.Status, a.RuntimeConfig)
			}
		}
	})
	if runs := to.call("GET", "/api/companies/"+done.Company.ID+"/heartbeat-runs", "").want(t, 200, ""); string(bytes.TrimSpace(runs.body)) != "[]" {
		t.Errorf("the import started %s", runs.body)
	}
	// One entry says that it happened.
	acts := to.call("GET", "/api/companies/"+done.Company.ID+"/activity", "").want(t, 200, "company.imported")
	if n := strings.Count(string(acts.body), `"action"`); n != 1 {
		t.Errorf("%d activities of one import", n)
	}
}

// shows finds the company of an import dressed as the one that was exported, and
// every file that its texts name.
func (h *harness) shows(t *testing.T, of string, e exported) {
	t.Helper()
	row := h.call("GET", "/api/companies/"+of, "").want(t, 200, "")
	if row.field(t, "brandColor") != "#12ab34" || !strings.Contains(string(row.body), `"requireBoardApprovalForCeoStrategy":false`) || !strings.Contains(string(row.body), `"attachmentMaxBytes":123456`) {
		t.Errorf("the company came back as %s", row.body)
	}
	if got := h.call("GET", row.field(t, "logoUrl"), "").want(t, 200, "").body; !bytes.Equal(got, pixel(t, 1)) || !bytes.Equal(e.Files["images/company-logo.png"].Data, got) {
		t.Errorf("another logo: %x", got)
	}
	if n := len(e.Manifest.EmbeddedAssets); n != 2 {
		t.Errorf("%d assets beside the logo", n)
	}
	found := 0
	for name, f := range e.Files {
		if f.Binary || name == ".paperclip.yaml" {
			continue
		}
		for _, path := range regexp.MustCompile(`/api/(assets|attachments)/[0-9a-f-]{36}/content`).FindAllString(string(f.Data), -1) {
			h.call("GET", path, "").want(t, 200, "")
			found++
		}
	}
	for _, path := range regexp.MustCompile(`/api/(assets|attachments)/[0-9a-f-]{36}/content`).FindAllString(string(e.Files[".paperclip.yaml"].Data), -1) {
		h.call("GET", path, "").want(t, 200, "")
		found++
	}
	if found != 3 {
		t.Errorf("texts name %d files", found)
	}
}

func view(t *testing.T, h *harness, f func(*ledger.Tx)) {
	t.Helper()
	if _, err := h.node.View(t.Context(), ledger.Read{}, func(tx *ledger.Tx) error { f(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestATemplateHoldsWhoAndNotWhat(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := h.acme(t)
	form, contentType := formOf(t, "desk.png", "image/png", pixel(t, 3))
	desk := h.call("POST", "/api/companies/"+of+"/assets/images", form, contentType).want(t, 201, "").field(t, "contentPath")
	ada := h.export(t, of, `{}`).Manifest.Agents[0].Slug
	h.call("PUT", "/api/agents/"+h.call("GET", "/api/agents/"+ada+"?companyId="+of, "").want(t, 200, "").field(t, "id")+"/instructions-bundle/file", `{"path":"desk.md","content":"![](`+desk+`)"}`).want(t, 200, "")
	e := h.export(t, of, `{}`)
	for _, name := range e.Files.Paths() {
		if k := portable.KindOf(name); k == "issue" || k == "project" {
			t.Errorf("a template holds %s", name)
		}
	}
	if e.Manifest.Agents[0].Memories != nil || e.Manifest.UserSecrets != nil {
		t.Error("a template holds what an agent keeps")
	}
	if e.Manifest.Company.LogoPath == nil || len(e.Manifest.EmbeddedAssets) != 1 {
		t.Errorf("a template shows what its agents are told of, and no more: %+v", e.Manifest.EmbeddedAssets)
	}
	if len(e.Manifest.Agents) != 4 || len(e.Manifest.Issues) != 0 || e.Manifest.Includes.Projects {
		t.Errorf("%+v", e.Manifest.Includes)
	}
	if !strings.Contains(strings.Join(e.Warnings, "\n"), "command /usr/bin/true was omitted") {
		t.Errorf("warnings %q", e.Warnings)
	}
}

// done2plan says how a preview calls what an import tells as done.
var done2plan = map[string]string{"created": "create", "updated": "update", "skipped": "skip"}

func TestCollisionsFollowTheStrategy(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string][2]string{"rename": {"created", "Ada 2"}, "skip": {"skipped", "Ada"}, "replace": {"updated", "Ada"}} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			of := h.acme(t)
			e := h.export(t, of, everything)
			greet := e.Files["skills/greeting/SKILL.md"]
			greet.Data = bytes.ReplaceAll(greet.Data, []byte("Say hi"), []byte("Say hello"))
			e.Files["skills/greeting/SKILL.md"] = greet
			goals := 0
			view(t, h, func(tx *ledger.Tx) { goals = len(company.GoalsOf(tx, of)) })
			body := importOf(t, e, `{"mode":"existing_company","companyId":"`+of+`"}`, `,"collisionStrategy":"`+strategy+`"`)
			var p importPreview
			before := h.node.ledger.Applied()
			if err := json.Unmarshal(h.call("POST", "/api/companies/import/preview", body).want(t, 200, "").body, &p); err != nil {
				t.Fatal(err)
			}
			if now := h.node.ledger.Applied(); now != before {
				t.Errorf("a preview wrote: %d, then %d", before, now)
			}
			var done imported
			if err := json.Unmarshal(h.call("POST", "/api/companies/import", body).want(t, 200, "").body, &done); err != nil {
				t.Fatal(err)
			}
			if a := done.Agents[0]; a.Action != want[0] || a.Name != want[1] {
				t.Errorf("%+v", a)
			}
			for n, row := range done.Agents { // what a preview shows is what is done
				if p := p.Plan.Agents[n]; p.Name != row.Name || done2plan[row.Action] != p.Action || p.Existing != nil && *p.Existing != *row.ID {
					t.Errorf("agent %+v was planned as %+v", row, p)
				}
			}
			for n, row := range done.Projects {
				if p := p.Plan.Projects[n]; row.Action != want[0] || p.Name != row.Name || done2plan[row.Action] != p.Action || p.Existing != nil && *p.Existing != *row.ID {
					t.Errorf("project %+v was planned as %+v", row, p)
				}
			}
			if s := done.Skills[0]; s.Action != want[0] || (s.Name == "greeting-2") != (strategy == "rename") {
				t.Errorf("%+v", s)
			}
			text := string(h.call("GET", "/api/companies/"+of+"/skills/greeting/files?path=SKILL.md", "").want(t, 200, "").body)
			if strings.Contains(text, "Say hello") != (strategy == "replace") {
				t.Errorf("the skill is %s", text)
			}
			view(t, h, func(tx *ledger.Tx) { // nothing is there twice that is one thing
				if g := company.GoalsOf(tx, of); len(g) != goals {
					t.Errorf("%d goals, there were %d", len(g), goals)
				}
				if l := company.LabelsOf(tx, of); len(l) != 1 {
					t.Errorf("%d labels", len(l))
				}
				if f := routine.FoldersOf(tx, of, ""); len(f) != 2 {
					t.Errorf("%d folders", len(f))
				}
				if d := secret.UserSecretDefinitionsOf(tx, of); len(d) != 1 {
					t.Errorf("%d definitions of secrets", len(d))
				}
			})
			if p.Plan.Agents[0].Name != want[1] || (p.Plan.Agents[0].Existing == nil) != (strategy == "rename") {
				t.Errorf("planned %+v", p.Plan.Agents[0])
			}
		})
	}
}

// An import that can not be carried out to its end leaves nothing behind.
// Names that have no letter or digit for an address, and such as are the same there,
// stay what they are: in a new company, whatever IDs it gives, and in one that has
// them already. Texts keep the ends of their lines.
func TestNamesOfAnyScriptSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	from := newHarness(t)
	of := from.company("Завод")
	put := func(path, name, more string) string {
		return from.call("POST", "/api/companies/"+of+"/"+path, fmt.Sprintf(`{"name":%q%s}`, name, more)).want(t, 201, "").decode(t).(map[string]any)["id"].(string)
	}
	lead := ""
	for _, name := range []string{"Ада", "Боб", "株式会社", "Agent", "Zoë", "🚀"} {
		more := `,"adapterType":"process","adapterConfig":{"command":"true"}`
		if lead != "" {
			more += `,"reportsTo":"` + lead + `"`
		}
		lead = put("agents", name, more)
	}
	projects := []string{"P", "p-2", "p", "Рука", "Нога", "Project", "Глаз"}
	for n := range 8 {
		projects = append(projects, strings.Repeat("!", n)+"arm")
	}
	for _, name := range projects {
		put("projects", name, fmt.Sprintf(`,"description":"About %s"`, name))
	}
	issue := from.call("POST", "/api/companies/"+of+"/issues", `{"title":"Ends","description":"\r\none\r\ntwo"}`).want(t, 201, "").decode(t).(map[string]any)["id"].(string)
	from.call("PUT", "/api/issues/"+issue+"/documents/plan", `{"title":"Plan","format":"markdown","body":"one\r\ntwo\r\n"}`).want(t, 201, "")

	first := from.export(t, of, everything)
	for n := range 3 { // by chance IDs might be in any order
		to := newHarness(t)
		var done imported
		a := to.call("POST", "/api/companies/import", importOf(t, first, `{"mode":"new_company"}`, ""), "Idempotency-Key: import "+fmt.Sprint(n))
		if err := json.Unmarshal(a.want(t, 200, "").body, &done); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, first.Files, to.export(t, done.Company.ID, everything).Files)
	}
	var seen importPreview
	a := from.call("POST", "/api/companies/import/preview", importOf(t, first, `{"mode":"existing_company","companyId":"`+of+`"}`, `,"collisionStrategy":"skip"`))
	if err := json.Unmarshal(a.want(t, 200, "").body, &seen); err != nil {
		t.Fatal(err)
	}
	view(t, from, func(tx *ledger.Tx) {
		for _, p := range seen.Plan.Agents {
			if b, _ := company.AgentByID(tx, deref(p.Existing)); p.Action != "skip" || b.Name != p.Name {
				t.Errorf("agent %s: %s, taken for %s", p.Name, p.Action, b.Name)
			}
		}
		for _, p := range seen.Plan.Projects {
			if b, _ := company.ProjectOf(tx, of, deref(p.Existing)); p.Action != "skip" || b.Name != p.Name {
				t.Errorf("project %s: %s, taken for %s", p.Name, p.Action, b.Name)
			}
		}
	})
}

// Folders and skills whose names have no letter or digit for a slug get one of their
// own each.
func TestNamesWithoutASlugAreNotOneName(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	of := "/api/companies/" + h.company("Завод")
	for _, name := range []string{"Ключи", "株式会社"} {
		h.call("POST", of+"/folders", `{"name":"`+name+`","kind":"routine"}`).want(t, 201, `"slug":"folder-`)
		h.call("POST", of+"/skills", `{"name":"`+name+`"}`).want(t, 201, `"slug":"skill-`)
	}
}

// A budget that nobody could set is left out of an import, and what JSON has no word
// for is refused by name.
func TestAnImportTakesOnlyWhatCouldBeSet(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	send := func(side string) answer {
		files, err := json.Marshal(map[string]string{"COMPANY.md": "---\nname: Acme\n---\n", "agents/ada/AGENTS.md": "---\nname: Ada\n---\n", ".paperclip.yaml": "agents:\n  ada:\n    " + side + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		return h.call("POST", "/api/companies/import", `{"source":{"type":"inline","files":`+string(files)+`},"target":{"mode":"new_company"}}`)
	}
	for cents, want := range map[string]float64{"9223372036854775807": 0, "922337203685478": 0, "-5": 0, "700": 700} {
		var done imported
		if err := json.Unmarshal(send("budgetMonthlyCents: "+cents).want(t, 200, "").body, &done); err != nil {
			t.Fatal(err)
		}
		row := h.call("GET", "/api/agents/"+deref(done.Agents[0].ID), "").want(t, 200, "").decode(t).(map[string]any)
		if row["budgetMonthlyCents"] != want || (len(done.Warnings) == 0) != (want > 0) {
			t.Errorf("%s cents: the budget is %v, warnings %q", cents, row["budgetMonthlyCents"], done.Warnings)
		}
	}
	for _, side := range []string{"metadata: {a: .nan}", "adapter: {config: {a: {1: x}}}"} {
		send(side).want(t, 422, "a number is none (.nan, .inf), or a key within an object is no text")
	}
}

func TestAnImportIsAllOrNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	e := h.export(t, h.acme(t), everything)
	side := e.Files[".paperclip.yaml"]
	side.Data = []byte(strings.Replace(string(side.Data), `type: "process"`, `type: "no_such_adapter"`, 1))
	e.Files[".paperclip.yaml"] = side
	before := h.call("GET", "/api/companies", "").body
	h.call("POST", "/api/companies/import", importOf(t, e, `{"mode":"new_company","newCompanyName":"Half"}`, "")).want(t, 422, "no_such_adapter")
	if after := h.call("GET", "/api/companies", "").body; string(after) != string(before) {
		t.Errorf("left behind: %s", after)
	}
}

func TestAPackageFromGitHubIsRead(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"acme-abc/README.md": "x", "acme-abc/companies/acme/COMPANY.md": "---\nname: Acme\n---\n", "acme-abc/companies/acme/agents/ada/AGENTS.md": "Lead."} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, text)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/acme/companies/tar.gz/main" {
			http.NotFound(w, r)
			return
		}
		w.Write(archive.Bytes())
	}))
	defer srv.Close()
	h := newHarness(t, func(c *Config) { c.GitHubArchives = srv.URL })
	ask := func(url string) answer {
		return h.call("POST", "/api/companies/import/preview", `{"source":{"type":"github","url":"`+url+`"},"target":{"mode":"new_company"}}`)
	}
	a := ask("https://github.com/acme/companies/tree/main/companies/acme").want(t, 200, "name a commit to pin it")
	if !strings.Contains(string(a.body), `"slug":"ada"`) {
		t.Errorf("%s", a.body)
	}
	ask("https://github.com/acme/gone").want(t, 422, "no such repository")
	for _, bad := range []string{"http://github.com/a/b", "https://evil.example/a/b", "https://github.com/a", "https://github.com/a/b/blob/x", "https://github.com/a/b/tree/..", "https://u:p@github.com/a/b"} {
		ask(bad).want(t, 422, "")
	}
}

// A timer of a package stays off wherever the package has it, also once the other
// place says nothing of it.
func TestAnImportedTimerStaysOff(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	body, err := json.Marshal(map[string]any{"target": map[string]any{"mode": "new_company", "newCompanyName": "Acme"}, "include": map[string]any{"company": true, "agents": true},
		"source": map[string]any{"type": "inline", "rootPath": "acme", "files": map[string]any{"COMPANY.md": "---\nname: Acme\n---\n", "agents/ada/AGENTS.md": "---\nname: Ada\n---\n",
			".paperclip.yaml": "schema: paperclip/v1\nagents:\n  ada:\n    adapter:\n      type: process\n      config:\n        command: \"true\"\n        enabled: true\n        intervalSec: 30\n" +
				"    runtime:\n      heartbeat:\n        enabled: true\n"}}})
	if err != nil {
		t.Fatal(err)
	}
	h.call("POST", "/api/companies/import", string(body)).want(t, 200, `"action":"created"`)
	view(t, h, func(tx *ledger.Tx) {
		for _, row := range company.Companies(tx) {
			for _, a := range company.AgentsOf(tx, row.ID, false) {
				if on, _ := a.Timer(); on {
					t.Errorf("the timer of %s is on", a.Name)
				}
				a.RuntimeConfig = json.RawMessage(`{}`)
				if on, every := a.Timer(); on || every != 30 {
					t.Errorf("without its runtimeConfig the timer of %s is %v, every %d s", a.Name, on, every)
				}
			}
		}
	})
}

func TestBadImportsAreRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{}`: {400, "source"},
		`{"source":{"type":"inline","files":{}},"target":{"mode":"new_company"}}`:                                                                                                              {422, "missing COMPANY.md"},
		`{"source":{"type":"inline","files":{"COMPANY.md":1}},"target":{"mode":"new_company"}}`:                                                                                                {400, "files"},
		`{"source":{"type":"inline","files":{"COMPANY.md":{"encoding":"hex","data":""}}},"target":{"mode":"new_company"}}`:                                                                     {400, "base64"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: [\n---\n"}},"target":{"mode":"new_company"}}`:                                                                            {422, "COMPANY.md"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n","../x":"y"}},"target":{"mode":"new_company"}}`:                                                                 {422, "leaves the package"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n"}},"target":{"mode":"existing_company","companyId":"` + NewID() + `"}}`:                                         {404, "Company not found"},
		`{"source":{"type":"inline","expectedFileCount":2,"files":{"COMPANY.md":"---\nname: A\n---\n"}},"target":{"mode":"new_company"}}`:                                                      {422, "were announced"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n","tasks/x/TASK.md":"---\nname: ` + strings.Repeat("long ", 500) + `\n---\n"}},"target":{"mode":"new_company"}}`: {422, "Task x"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n"}},"target":{"mode":"new_company"},"agents":7}`:                                                                 {400, "agents"},
	} {
		h.call("POST", "/api/companies/import/preview", body).want(t, want.status, want.text)
	}
}

// Whoever imports says what runs an agent here, and fills in what the package
// declares: values are sealed, and shown by no answer and no line of the log.
func TestAnImportFillsInWhatThePackageDeclares(t *testing.T) {
	t.Parallel()
	from, to := newHarness(t), newHarness(t)
	e := from.export(t, from.acme(t), everything)
	const general, own = "importCanary-general-41d7", "importCanary-own-93ab"
	body := importOf(t, e, `{"mode":"new_company"}`, `,"pauseAutomations":true,"adapterOverrides":{"bob":{"adapterType":"http","adapterConfig":{"url":"https://example.org/hook"}}},
		"secretValues":{"OPENAI_API_KEY":"`+general+`","agent:ada:REGION":"`+own+`","REGION":"`+general+`"}`)
	if a := to.call("POST", "/api/companies/import/preview", body).want(t, 200, `"adapterType":"http"`); strings.Contains(string(a.body), "importCanary") {
		t.Error("a preview shows a value")
	}
	var done imported
	if err := json.Unmarshal(to.call("POST", "/api/companies/import", body).want(t, 200, "").body, &done); err != nil {
		t.Fatal(err)
	}
	for _, b := range to.node.batches() {
		if bytes.Contains(b, []byte("importCanary")) {
			t.Fatal("a value is in a command")
		}
	}
	if strings.Contains(to.log.String(), "importCanary") {
		t.Error("a value is in the log")
	}
	for _, row := range done.Agents {
		a := to.call("GET", "/api/agents/"+*row.ID, "").want(t, 200, "")
		if strings.Contains(string(a.body), "importCanary") {
			t.Errorf("%s shows a value", row.Slug)
		}
		if row.Slug == "bob" && (a.field(t, "adapterType") != "http" || !strings.Contains(string(a.body), "example.org/hook")) {
			t.Errorf("bob is %s", a.body)
		}
		if row.Slug == "ada" {
			view(t, to, func(tx *ledger.Tx) {
				agent, _ := company.AgentOf(tx, done.Company.ID, *row.ID)
				if !strings.Contains(string(agent.AdapterConfig), "$sealed") {
					t.Errorf("no value was sealed: %s", agent.AdapterConfig)
				}
			})
		}
	}
	for _, bad := range []string{`,"adapterOverrides":{"bob":{"adapterConfig":{}}}`, `,"secretValues":{"A":1}`, `,"adapterOverrides":{"bob":{"adapterType":"http","adapterConfig":[1]}}`} {
		to.call("POST", "/api/companies/import/preview", importOf(t, e, `{"mode":"new_company"}`, bad)).want(t, 400, "")
	}
}

// A request that makes a company is carried out once, however often it comes.
func TestACompanyIsMadeOncePerIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.call("POST", "/api/companies", `{"name":"Once"}`, "Idempotency-Key: one").want(t, 201, "").field(t, "id")
	if again := h.call("POST", "/api/companies", `{"name":"Once"}`, "Idempotency-Key: one").want(t, 201, "").field(t, "id"); again != first {
		t.Errorf("made %s, then %s", first, again)
	}
	h.call("POST", "/api/companies", `{"name":"Other"}`, "Idempotency-Key: one").want(t, 422, "already used")
	if other := h.call("POST", "/api/companies", `{"name":"Once"}`, "Idempotency-Key: two").want(t, 201, "").field(t, "id"); other == first {
		t.Error("another key gives the same company")
	}
	files, _ := portable.Starter("software-studio")
	body := importOf(t, exported{Files: files}, `{"mode":"new_company","newCompanyName":"Studio"}`, "")
	made := h.call("POST", "/api/companies/import", body, "Idempotency-Key: three").want(t, 200, "").body
	if again := h.call("POST", "/api/companies/import", body, "Idempotency-Key: three").want(t, 200, "").body; string(again) != string(made) {
		t.Errorf("imported\n%s\nthen\n%s", made, again)
	}
	if n := strings.Count(string(h.call("GET", "/api/companies", "").body), `"issuePrefix"`); n != 3 {
		t.Errorf("%d companies, want 3", n)
	}
}

// A failingReader is a node of whose reads one fails: the one that comes when left is 1.
type failingReader struct {
	Node
	left atomic.Int64
}

func (n *failingReader) View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (uint64, error) {
	if n.left.Add(-1) == 0 {
		return 0, errors.New("the disk does not read")
	}
	return n.Node.View(ctx, at, f)
}

// An import that can not read what the company has does not plan as if it had nothing,
// whichever read it is.
func TestAnImportThatCanNotReadIsRefused(t *testing.T) {
	t.Parallel()
	var n *failingReader
	h := newHarness(t, func(c *Config) {
		n = &failingReader{Node: c.Node}
		c.Node = n
	})
	of := h.company("Acme")
	h.call("POST", "/api/companies/"+of+"/skills", `{"name":"greeting","description":"How to greet","markdown":"---\nname: greeting\ndescription: How to greet\n---\nSay hi.\n"}`).want(t, 201, "")
	e := h.export(t, of, everything)
	body := importOf(t, e, `{"mode":"existing_company","companyId":"`+of+`"}`, `,"collisionStrategy":"skip"`)
	for k := int64(1); ; k++ {
		n.left.Store(k)
		a := h.call("POST", "/api/companies/import", body)
		if n.left.Swap(0) > 0 { // it had no such read
			a.want(t, 200, "the company's skill is the same")
			if k < 3 {
				t.Fatalf("an import reads %d times; the test shows nothing", k-1)
			}
			return
		}
		if a.status < 500 {
			t.Errorf("its read %d failed: %d %s", k, a.status, a.body)
		}
	}
}
