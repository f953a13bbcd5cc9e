package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

// PackageCanary is a secret that must be in no package.
const PackageCanary = "packageCanary-7f3a9c51"

// Acme makes a company with something of everything that travels.
func (h *Harness) Acme(t *testing.T) (of ledger.CompanyID) {
	t.Helper()
	of = ledger.CompanyID(h.Call("POST", "/api/companies", `{"name":"Acme Robotics","description":"Builds: \"robots\""}`).
		Want(t, 201, "").Field(t, "id"))
	in := "/api/companies/" + string(of)
	picture := h.Dress(t, of)
	agent := func(body string) string { return h.Call("POST", in+"/agents", body).Want(t, 201, "").Field(t, "id") }
	ada := agent(`{"name":"Ada","role":"ceo","title":"Chief","capabilities":"leads","adapterType":"process",` +
		`"adapterConfig":{"command":"/usr/bin/true","cwd":"/home/ada",
		"env":{"OPENAI_API_KEY":"` + PackageCanary + `","REGION":"` + PackageCanary + `"},"apiToken":"` + PackageCanary +
		`","timeoutSec":20}}`)
	bob := agent(`{"name":"Bob","role":"engineer","reportsTo":"` + ada +
		`","adapterType":"process","adapterConfig":{"command":"true","args":["-c","x"]},
		"runtimeConfig":{"heartbeat":{"enabled":true,"intervalSec":300}},"budgetMonthlyCents":5000,"contextMode":"fat"}`)
	agent(`{"name":"Bea","role":"engineer","reportsTo":"` + ada +
		`","adapterType":"process"}`) // after Bob, whom she comes before by name
	for path, text := range map[string]string{"AGENTS.md": "Lead.\n\n---\nnot: front matter\n",
		"notes/HOW.md": "Slowly.\n"} {
		h.Call("PUT", "/api/agents/"+ada+"/instructions-bundle/file", fmt.Sprintf(`{"path":%q,"content":%q}`, path, text)).
			Want(t, 200, "")
	}
	goal := h.Call("POST", in+"/goals", `{"title":"Ship the arm","level":"company"}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", in+"/goals", `{"title":"First step","level":"team","parentId":"`+goal+`","ownerAgentId":"`+bob+`"}`).
		Want(t, 201, "")
	arm := h.Call("POST", in+"/projects",
		`{"name":"Robot Arm","description":"v1","goalIds":["`+goal+`"],"leadAgentId":"`+ada+
			`","color":"#ff8800","env":{"DB_PASSWORD":"`+PackageCanary+`"}}`).Want(t, 201, "").Field(t, "id")
	home := h.Call("POST", "/api/projects/"+arm+"/workspaces",
		`{"name":"second","repoUrl":"https://git.example.org/second.git"}`).Want(t, 201, "").Field(t, "id")
	h.Call("PATCH", "/api/projects/"+arm,
		`{"executionWorkspacePolicy":{"enabled":true,"defaultMode":"isolated_workspace","defaultProjectWorkspaceId":"`+home+
			`",
		"workspaceStrategy":{"type":"git_worktree","branchTemplate":"x/{{issue.identifier}}",`+
			`"worktreeParentDir":"/home/ada/trees"},
		"workspaceRuntime":{"services":[{"name":"web","command":"make serve","cwd":"web","env":{"TOKEN":"`+
			PackageCanary+`"}},{"name":"db","command":"db","cwd":"/home/ada/db"}]}}}`).Want(t, 200, "")
	h.Call("POST", "/api/projects/"+arm+"/workspaces",
		`{"name":"main","repoUrl":"https://bot:`+PackageCanary+
			`@git.example.org/arm.git","repoRef":"main","isPrimary":true}`).Want(t, 201, "")
	h.Call("POST", "/api/projects/"+arm+"/workspaces", `{"name":"desk","cwd":"/home/ada/arm"}`).Want(t, 201, "")
	bug := h.Call("POST", in+"/labels", `{"name":"bug","color":"#ff0000"}`).Want(t, 201, "").Field(t, "id")
	issue := func(body string) string { return h.Call("POST", in+"/issues", body).Want(t, 201, "").Field(t, "id") }
	first := issue(`{"title":"Design: gripper","description":"Make a gripper\n\n- strong\n\n![](` + picture +
		`)","status":"todo","priority":"high","projectId":"` + arm + `","labelIds":["` + bug + `"],"billingCode":"BC-1"}`)
	gone := issue(`{"title":"A mistake"}`)
	h.Call("DELETE", "/api/issues/"+gone, "").Want(t, 200, "")
	child := issue(`{"title":"Sub task","parentId":"` + first + `","assigneeAgentId":"` + bob + `"}`)
	issue(`{"title":"Later","status":"blocked","blockedByIssueIds":["` + child + `"]}`)
	h.Call("POST", in+"/skills",
		`{"name":"greeting","description":"How to greet","markdown":"---\nname: greeting\ndescription: How to `+
			`greet\n---\nSay hi.\n"}`).Want(t, 201, "")
	h.Call("PATCH", in+"/skills/greeting/files", `{"path":"references/more.md","content":"And bye.\n"}`).Want(t, 200, "")
	h.Call("POST", "/api/agents/"+bob+"/skills/sync",
		`{"desiredSkills":["company/`+string(of)+`/greeting","paperclipai/paperclip/paperclip"]}`).Want(t, 200, "")
	daily := h.Call("POST", in+"/routines",
		`{"title":"Daily report","description":"Write {{topic}}","priority":"low","assigneeAgentId":"`+ada+
			`","projectId":"`+arm+`",
		"concurrencyPolicy":"skip_if_active","activityGatePolicy":"require_external_activity",`+
			`"activityGateScope":"project","billingCode":"BC-2","labelIds":["`+bug+`"],
		"env":{"MAIL_TOKEN":"`+PackageCanary+`","WHERE":"`+PackageCanary+
			`"},"variables":[{"name":"topic","defaultValue":"sales"}]}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/routines/"+daily+"/triggers",
		`{"kind":"schedule","cronExpression":"0 9 * * *","timezone":"Europe/Berlin"}`).Want(t, 201, "")
	h.Call("POST", "/api/routines/"+daily+"/triggers", `{"kind":"webhook","signingMode":"hmac_sha256","enabled":false}`).
		Want(t, 201, "")
	h.Call("PUT", "/api/issues/"+first+"/documents/plan", `{"title":"Plan","format":"markdown","body":"# Plan\n2. more"}`).
		Want(t, 201, "")
	h.Call("PUT", "/api/issues/"+first+"/documents/long", `{"format":"markdown","body":"`+strings.Repeat("long ",
		90_000)+`"}`).Want(t, 201, "")
	h.Call("POST", "/api/issues/"+first+"/work-products",
		`{"type":"pull_request","provider":"github","title":"PR 1","status":"active",`+
			`"url":"https://github.com/acme/x/pull/1"}`).Want(t, 201, "")
	form, contentType := FormOf(t, "grip.txt", "text/plain", []byte("a drawing"))
	drawing := h.Call("POST", in+"/issues/"+first+"/attachments", form, contentType).Want(t, 201, "").
		Field(t, "contentPath")
	h.Call("POST", "/api/issues/"+first+"/comments", `{"body":"See [it](`+drawing+`), and ![that](`+picture+`)"}`).
		Want(t, 201, "")
	h.Call("POST", "/api/issues/"+first+"/comments", `{"body":"Looks good.\n---\nyes: no"}`).Want(t, 201, "")
	h.remarks(t, of, bob, daily, first)
	h.order(t, of, ada, bob, arm, daily, first)
	h.past(t, of, ada, first)
	old := h.Call("POST", in+"/projects", `{"name":"Old Arm"}`).Want(t, 201, "").Field(t, "id")
	issue(`{"title":"Long ago","projectId":"` + old + `"}`)
	h.Call("PATCH", "/api/projects/"+old, `{"archivedAt":"2026-11-01T00:00:00.000Z"}`).Want(t, 200, "")
	return of
}

// remarks leaves what people and agents say on texts and skills.
func (h *Harness) remarks(t *testing.T, of ledger.CompanyID, bob, daily, first string) {
	t.Helper()
	in := "/api/companies/" + string(of)
	plan := h.Call("GET", "/api/issues/"+first+"/documents/plan", "").Field(t, "latestRevisionId")
	remark := func(path, revision, words string, more ...string) {
		thread := h.Call("POST", path,
			`{"baseRevisionId":"`+revision+`","baseRevisionNumber":1,"body":"Why: `+words+
				`?\n- so","selector":{"quote":{"exact":"`+words+
				`","prefix":"","suffix":""},"position":{"normalizedStart":0,"normalizedEnd":4,"markdownStart":2,`+
				`"markdownEnd":6}}}`).Want(t, 201, "").Field(t, "id")
		for _, text := range more {
			h.Call("POST", path+"/"+thread+"/comments", `{"body":"`+text+`"}`).Want(t, 201, "")
		}
		if len(more) > 1 {
			h.Call("PATCH", path+"/"+thread, `{"status":"resolved"}`).Want(t, 200, "")
		}
	}
	remark("/api/issues/"+first+"/documents/plan/annotations", plan, "Plan", "Because", "I see")
	remark("/api/issues/"+first+"/documents/plan/annotations", plan, "more")
	View(t, h, func(tx *ledger.Tx) {
		r, _ := routine.RoutineByID(tx, daily)
		plan = paper.DescriptionOf(r.Described()).Latest
	})
	remark("/api/routines/"+daily+"/description/annotations", plan, "Write", "Daily")
	said := h.Call("POST", in+"/skills/greeting/comments", `{"body":"Say it louder"}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", in+"/skills/greeting/comments", `{"body":"No","parentCommentId":"`+said+`"}`).Want(t, 201, "")
	h.Call("POST", in+"/skills/greeting/test-inputs", `{"name":"Ann","content":"Greet Ann"}`).Want(t, 201, "")
	// An agent's word stays an agent's.
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+bob+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	run := "X-Paperclip-Run-Id: " + h.Running(of, bob)
	h.Call("POST", in+"/skills/greeting/comments", `{"body":"I like it"}`, key, run).Want(t, 201, "")
	thread := h.Call("GET", "/api/issues/"+first+"/documents/plan/annotations", "").Want(t, 200, "").
		Decode(t).([]any)[1].(map[string]any)["id"].(string)
	h.Call("POST", "/api/issues/"+first+"/documents/plan/annotations/"+thread+"/comments", `{"body":"Two more"}`, key,
		run).Want(t, 201, "")
}

// Dress gives a company a logo, a colour, its limits, and pictures; the path of one
// is returned.
func (h *Harness) Dress(t *testing.T, of ledger.CompanyID) string {
	t.Helper()
	in := "/api/companies/" + string(of)
	form, contentType := FormOf(t, "logo.png", "image/png", Pixel(t, 1))
	logo := h.Call("POST", in+"/logo", form, contentType).Want(t, 201, "").Field(t, "assetId")
	h.Call("PATCH", in+"/branding", `{"brandColor":"#12ab34","logoAssetId":"`+logo+`"}`).Want(t, 200, "")
	h.Call("PATCH", in, `{"requireBoardApprovalForCeoStrategy":false,"attachmentMaxBytes":123456}`).Want(t, 200, "")
	form, contentType = FormOf(t, "lonely.svg", "image/svg+xml", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`))
	h.Call("POST", in+"/assets/images", form, contentType).Want(t, 201, "")
	form, contentType = FormOf(t, "shop.png", "image/png", Pixel(t, 2))
	return h.Call("POST", in+"/assets/images", form, contentType).Want(t, 201, "").Field(t, "contentPath")
}

// Pixel is a small image.
func Pixel(t *testing.T, shade uint8) []byte {
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
func (h *Harness) order(t *testing.T, of ledger.CompanyID, ada, bob, arm, daily, first string) {
	t.Helper()
	in := "/api/companies/" + string(of)
	for _, body := range []string{
		`{"scopeType":"company","scopeId":"` + string(of) +
			`","amount":90000,"windowKind":"calendar_month_utc","warnPercent":70}`,
		`{"scopeType":"project","scopeId":"` + arm + `","amount":70000,"windowKind":"lifetime"}`,
		`{"scopeType":"agent","scopeId":"` + bob + `","amount":900,"windowKind":"rolling_24h","hardStopEnabled":false}`,
	} {
		h.Call("POST", in+"/budgets/policies", body).Want(t, 200, "")
	}
	reports := h.Call("POST", in+"/folders", `{"kind":"routine","name":"Reports","color":"#00ff00"}`).Want(t, 201, "").
		Field(t, "id")
	sales := h.Call("POST", in+"/folders", `{"kind":"routine","name":"Sales","parentId":"`+reports+`"}`).Want(t, 201, "").
		Field(t, "id")
	h.Call("PATCH", "/api/routines/"+daily, `{"folderId":"`+sales+`"}`).Want(t, 200, "")
	h.Call("POST", in+"/user-secret-definitions", `{"key":"GITHUB_TOKEN","name":"GitHub","usageGuidance":"For clones"}`).
		Want(t, 201, "")
	h.Call("PUT", "/api/agents/"+ada+"/memory/tone", `{"value":"be brief"}`).Want(t, 200, "")
	h.Call("PATCH", "/api/issues/"+first,
		`{"workMode":"planning","executionPolicy":{"mode":"normal","commentRequired":false,"maxReviewRounds":3,
		"stages":[{"type":"review","participants":[{"type":"agent","agentId":"`+bob+
			`"}]},{"type":"approval","participants":[{"type":"user","userId":"local-board"}]}],
		"monitor":{"nextCheckAt":"2030-01-02T03:04:05.000Z","notes":"wait for the shop","serviceName":"shop",`+
			`"maxAttempts":4,"recoveryPolicy":"create_recovery_issue"}}}`).Want(t, 200, "")
	h.Call("PUT", "/api/issues/"+first+"/watchdog", `{"agentId":"`+ada+`","instructions":"Ask Bob first"}`).
		Want(t, 200, "")
	input := h.Call("GET", in+"/skills/greeting/test-inputs", "").Want(t, 200, "").
		Decode(t).([]any)[0].(map[string]any)["id"].(string)
	h.Call("POST", in+"/skills/greeting/test-runs", `{"inputId":"`+input+`","agentId":"`+bob+`"}`).Want(t, 201, "")
}

// past gives a company somebody who has left and another who has the name now, a
// routine that is laid aside, and a course that the board has approved.
func (h *Harness) past(t *testing.T, of ledger.CompanyID, ada, first string) {
	t.Helper()
	in := "/api/companies/" + string(of)
	for range 2 {
		cy := h.Call("POST", in+"/agents", `{"name":"Cy","role":"engineer","reportsTo":"`+ada+`","adapterType":"process"}`).
			Want(t, 201, "").Field(t, "id")
		key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+cy+"/keys", `{"name":"k"}`).Want(t, 201, "").
			Field(t, "token")
		i := h.Call("POST", in+"/issues", `{"title":"What Cy did","status":"todo","assigneeAgentId":"`+cy+`"}`).
			Want(t, 201, "").Field(t, "id")
		h.Call("POST", "/api/issues/"+i+"/comments", `{"body":"Cy did it"}`, key, "X-Paperclip-Run-Id: "+h.Running(of, cy)).
			Want(t, 201, "")
		h.Call("PATCH", "/api/issues/"+i, `{"status":"done"}`).Want(t, 200, "")
		h.Call("POST", "/api/agents/"+cy+"/terminate", "").Want(t, 200, "terminated")
	}
	h.Call("POST", in+"/agents", `{"name":"Cy","role":"engineer","reportsTo":"`+ada+`","adapterType":"process"}`).
		Want(t, 201, "")
	old := h.Call("POST", in+"/routines", `{"title":"Weekly report","assigneeAgentId":"`+ada+`"}`).Want(t, 201, "").
		Field(t, "id")
	h.Call("PATCH", "/api/routines/"+old, `{"status":"archived"}`).Want(t, 200, "")
	plan := h.Call("POST", in+"/approvals",
		`{"type":"approve_ceo_strategy","requestedByAgentId":"`+ada+`","issueIds":["`+first+
			`"],"payload":{"plan":"Arms for all","apiToken":"`+PackageCanary+`"}}`).Want(t, 201, "").Field(t, "id")
	h.Call("POST", "/api/approvals/"+plan+"/approve", `{"decisionNote":"Go"}`).Want(t, 200, "approved")
}

func (h *Harness) Export(t *testing.T, of ledger.CompanyID, body string) transfer.Exported {
	t.Helper()
	var out transfer.Exported
	a := h.Call("POST", "/api/companies/"+string(of)+"/export", body).Want(t, 200, "")
	if strings.Contains(string(a.Body), PackageCanary) {
		t.Errorf("a secret is in the package: %s", a.Body[max(0, strings.Index(string(a.Body), PackageCanary)-200):])
	}
	if err := json.Unmarshal(a.Body, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func ImportOf(t *testing.T, e transfer.Exported, target, more string) string {
	t.Helper()
	files, err := json.Marshal(e.Files)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"source":{"type":"inline","rootPath":%q,"files":%s},"include":{"company":true,`+
		`"agents":true,"projects":true,"issues":true,"skills":true},"target":%s,"agents":"all"%s}`, e.RootPath,
		files, target, more)
}

// Shows finds the company of an import dressed as the one that was exported, and
// every file that its texts name.
func (h *Harness) Shows(t *testing.T, of ledger.CompanyID, e transfer.Exported) {
	t.Helper()
	row := h.Call("GET", "/api/companies/"+string(of), "").Want(t, 200, "")
	if row.Field(t, "brandColor") != "#12ab34" || !strings.Contains(string(row.Body),
		`"requireBoardApprovalForCeoStrategy":false`) || !strings.Contains(string(row.Body), `"attachmentMaxBytes":123456`) {
		t.Errorf("the company came back as %s", row.Body)
	}
	if got := h.Call("GET", row.Field(t, "logoUrl"), "").Want(t, 200, "").Body; !bytes.Equal(got, Pixel(t, 1)) ||
		!bytes.Equal(e.Files["images/company-logo.png"].Data, got) {
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
		for _, path := range regexp.MustCompile(`/api/(assets|attachments)/[0-9a-f-]{36}/content`).
			FindAllString(string(f.Data), -1) {
			h.Call("GET", path, "").Want(t, 200, "")
			found++
		}
	}
	for _, path := range regexp.MustCompile(`/api/(assets|attachments)/[0-9a-f-]{36}/content`).
		FindAllString(string(e.Files[".paperclip.yaml"].Data), -1) {
		h.Call("GET", path, "").Want(t, 200, "")
		found++
	}
	if found != 3 {
		t.Errorf("texts name %d files", found)
	}
}

func View(t *testing.T, h *Harness, f func(*ledger.Tx)) {
	t.Helper()
	if _, err := h.Node.View(t.Context(), ledger.Read{}, func(tx *ledger.Tx) error { f(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}
