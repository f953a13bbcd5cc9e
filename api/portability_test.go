package api_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/transfer"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/care"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/routine"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

const everything = `{"include":{"company":true,"agents":true,"projects":true,"issues":true,"skills":true}}`

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
			t.Errorf("%s came back as\n…%s\nit was\n…%s", name, api.Cut(b[max(0, at-200):], 600),
				api.Cut(a[max(0, at-200):], 600))
		}
	}
	for name := range second {
		if _, ok := first[name]; !ok {
			t.Errorf("%s was not there before", name)
		}
	}
}

// emptyTables returns the travelling tables in which a company has no row.
func emptyTables(tx *ledger.Tx, of ledger.CompanyID) (out []string) {
	for _, table := range company.Travelling {
		rows := 0
		for range tx.Prefix(ledger.Key("c", string(of), table, "")) {
			rows++
		}
		if rows == 0 {
			out = append(out, table)
		}
	}
	return out
}

func TestAPackageSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	from, to := apitest.NewHarness(t), apitest.NewHarness(t)
	first := from.Export(t, from.Acme(t), everything)
	var done transfer.Imported
	if err := json.Unmarshal(to.Call("POST", "/api/companies/import", apitest.ImportOf(t, first, `{"mode":"new_company"}`,
		"")).Want(t, 200, "").Body, &done); err != nil {
		t.Fatal(err)
	}
	if done.Company.Action != "created" || len(done.Agents) != 6 || len(done.Projects) != 2 || len(done.EnvInputs) != 5 {
		t.Errorf("%+v", done)
	}
	second := to.Export(t, done.Company.ID, everything)
	// No table of what travels is empty, there or here.
	apitest.View(t, from, func(tx *ledger.Tx) {
		for _, table := range emptyTables(tx, first.Manifest.Source.CompanyID) {
			t.Errorf("nothing of table %s was exported: acme has no such row", table)
		}
	})
	apitest.View(t, to, func(tx *ledger.Tx) {
		for _, table := range emptyTables(tx, done.Company.ID) {
			t.Errorf("nothing of table %s arrived", table)
		}
	})
	if text := string(first.Files["agents/ada/AGENTS.md"].Data); !strings.Contains(text,
		"\nLead.\n\n---\nnot: front matter\n") || string(first.Files["agents/ada/notes/HOW.md"].Data) != "Slowly.\n" {
		t.Errorf("instructions did not travel: %q", text)
	}
	for _, want := range []string{`body: "Because"`, `status: "resolved"`, `body: "Two more"`, `body: "I like it"`,
		`body: "Daily"`, `content: "Greet Ann"`, `authorAgentSlug: "bob"`, "answersIndex: 0",
		`instructions: "Ask Bob first"`, `recoveryPolicy: "create_recovery_issue"`, `windowKind: "rolling_24h"`,
		`folder: "reports/sales"`, `value: "be brief"`, `plan: "Arms for all"`, `terminated: true`,
		`defaultProjectWorkspaceKey: "second"`, `branchTemplate: "x/{{issue.identifier}}"`, `cwd: "web"`,
		`authorAgentSlug: "cy-2"`, `status: "archived"`, `key: "GITHUB_TOKEN"`, `content: "Greet Ann"`} {
		if text := string(first.Files[".paperclip.yaml"].Data); !strings.Contains(text, want) {
			t.Errorf("the sidecar has no %s", want)
		}
	}
	sameFiles(t, first.Files, second.Files)
	to.Shows(t, done.Company.ID, second)
	for name, f := range first.Files {
		if strings.Contains(string(f.Data), "/home/ada") && !f.Binary {
			t.Errorf("%s names a folder of one machine", name)
		}
	}
	apitest.View(t, to, func(tx *ledger.Tx) { // the key of a workspace is an ID again, of one that is there
		for _, p := range entity.ProjectsOf(tx, done.Company.ID) {
			if p.Name != "Robot Arm" {
				continue
			}
			spaces := place.WorkspacesOf(tx, done.Company.ID, p.ID)
			if n := slices.IndexFunc(spaces, func(w place.Workspace) bool { return w.Name == "second" }); n < 0 ||
				!strings.Contains(string(p.WorkspacePolicy), spaces[n].ID) {
				t.Errorf("the policy came in as %s", p.WorkspacePolicy)
			}
		}
	})
	if text := string(second.Files["tasks/acm-8/TASK.md"].Data); !strings.Contains(text, `project: "old-arm"`) ||
		!strings.Contains(string(second.Files[".paperclip.yaml"].Data), "archived: true") {
		t.Errorf("what lies in an archived project came back as %s", text)
	}
	// Nothing runs, and nothing is woken.
	apitest.View(t, to, func(tx *ledger.Tx) {
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
		} else if string(r[0].BillingCode) != "BC-2" || r[0].Gate != "require_external_activity" ||
			r[0].GateScope != "project" || len(r[0].Labels) != 1 ||
			!strings.Contains(string(conceal.RedactEnv(r[0].Env)), "MAIL_TOKEN") {
			t.Errorf("the routine came back as %+v", r[0])
		}
		if s := skill.SkillsOf(tx, done.Company.ID); len(s) != 1 || len(s[0].Files) != 2 {
			t.Errorf("skills came back as %+v", s)
		}
		if n := len(entity.AgentsOf(tx, done.Company.ID, true)); n != 6 {
			t.Errorf("%d agents came in", n)
		}
		if row, _ := entity.CompanyOf(tx, done.Company.ID); row.Strategy == "" {
			t.Error("the approved strategy did not come in: a CEO may only draft")
		}
		for _, a := range entity.AgentsOf(tx, done.Company.ID, false) {
			if a.Status != entity.AgentIdle || strings.Contains(string(a.RuntimeConfig), `"enabled":true`) {
				t.Errorf("%s is %s with %s", a.Name, a.Status, a.RuntimeConfig)
			}
		}
	})
	if runs := to.Call("GET", "/api/companies/"+string(done.Company.ID)+"/heartbeat-runs", "").
		Want(t, 200, ""); string(bytes.TrimSpace(runs.Body)) != "[]" {
		t.Errorf("the import started %s", runs.Body)
	}
	// One entry says that it happened.
	acts := to.Call("GET", "/api/companies/"+string(done.Company.ID)+"/activity", "").Want(t, 200, "company.imported")
	if n := strings.Count(string(acts.Body), `"action"`); n != 1 {
		t.Errorf("%d activities of one import", n)
	}
}

func TestATemplateHoldsWhoAndNotWhat(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := h.Acme(t)
	form, contentType := apitest.FormOf(t, "desk.png", "image/png", apitest.Pixel(t, 3))
	desk := h.Call("POST", "/api/companies/"+string(of)+"/assets/images", form, contentType).Want(t, 201, "").
		Field(t, "contentPath")
	ada := h.Export(t, of, `{}`).Manifest.Agents[0].Slug
	h.Call("PUT", "/api/agents/"+h.Call("GET", "/api/agents/"+ada+"?companyId="+string(of), "").Want(t, 200, "").
		Field(t, "id")+"/instructions-bundle/file", `{"path":"desk.md","content":"![](`+desk+`)"}`).Want(t, 200, "")
	e := h.Export(t, of, `{}`)
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
	for strategy, want := range map[string][2]string{"rename": {"created", "Ada 2"}, "skip": {"skipped", "Ada"},
		"replace": {"updated", "Ada"}} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			h := apitest.NewHarness(t)
			of := h.Acme(t)
			e := h.Export(t, of, everything)
			greet := e.Files["skills/greeting/SKILL.md"]
			greet.Data = bytes.ReplaceAll(greet.Data, []byte("Say hi"), []byte("Say hello"))
			e.Files["skills/greeting/SKILL.md"] = greet
			goals := 0
			apitest.View(t, h, func(tx *ledger.Tx) { goals = len(entity.GoalsOf(tx, of)) })
			body := apitest.ImportOf(t, e, `{"mode":"existing_company","companyId":"`+string(of)+`"}`,
				`,"collisionStrategy":"`+strategy+`"`)
			var p transfer.ImportPreview
			before := h.Node.Ledger.Applied()
			if err := json.Unmarshal(h.Call("POST", "/api/companies/import/preview", body).Want(t, 200, "").Body,
				&p); err != nil {
				t.Fatal(err)
			}
			if now := h.Node.Ledger.Applied(); now != before {
				t.Errorf("a preview wrote: %d, then %d", before, now)
			}
			var done transfer.Imported
			if err := json.Unmarshal(h.Call("POST", "/api/companies/import", body).Want(t, 200, "").Body, &done); err != nil {
				t.Fatal(err)
			}
			if a := done.Agents[0]; a.Action != want[0] || a.Name != want[1] {
				t.Errorf("%+v", a)
			}
			for n, row := range done.Agents { // what a preview shows is what is done
				if p := p.Plan.Agents[n]; p.Name != row.Name || done2plan[row.Action] != p.Action || p.Existing != nil &&
					*p.Existing != *row.ID {
					t.Errorf("agent %+v was planned as %+v", row, p)
				}
			}
			for n, row := range done.Projects {
				if p := p.Plan.Projects[n]; row.Action != want[0] || p.Name != row.Name || done2plan[row.Action] != p.Action ||
					p.Existing != nil && *p.Existing != *row.ID {
					t.Errorf("project %+v was planned as %+v", row, p)
				}
			}
			if s := done.Skills[0]; s.Action != want[0] || (s.Name == "greeting-2") != (strategy == "rename") {
				t.Errorf("%+v", s)
			}
			text := string(h.Call("GET", "/api/companies/"+string(of)+"/skills/greeting/files?path=SKILL.md", "").
				Want(t, 200, "").Body)
			if strings.Contains(text, "Say hello") != (strategy == "replace") {
				t.Errorf("the skill is %s", text)
			}
			apitest.View(t, h, func(tx *ledger.Tx) { // nothing is there twice that is one thing
				if g := entity.GoalsOf(tx, of); len(g) != goals {
					t.Errorf("%d goals, there were %d", len(g), goals)
				}
				if l := entity.LabelsOf(tx, of); len(l) != 1 {
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
	from := apitest.NewHarness(t)
	of := ledger.CompanyID(from.Company("Завод"))
	put := func(path, name, more string) string {
		return from.Call("POST", "/api/companies/"+string(of)+"/"+path, fmt.Sprintf(`{"name":%q%s}`, name, more)).
			Want(t, 201, "").Decode(t).(map[string]any)["id"].(string)
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
	issue := from.Call("POST", "/api/companies/"+string(of)+"/issues", `{"title":"Ends","description":"\r\none\r\ntwo"}`).
		Want(t, 201, "").Decode(t).(map[string]any)["id"].(string)
	from.Call("PUT", "/api/issues/"+issue+"/documents/plan",
		`{"title":"Plan","format":"markdown","body":"one\r\ntwo\r\n"}`).Want(t, 201, "")

	first := from.Export(t, of, everything)
	for n := range 3 { // by chance IDs might be in any order
		to := apitest.NewHarness(t)
		var done transfer.Imported
		a := to.Call("POST", "/api/companies/import", apitest.ImportOf(t, first, `{"mode":"new_company"}`, ""),
			"Idempotency-Key: import "+fmt.Sprint(n))
		if err := json.Unmarshal(a.Want(t, 200, "").Body, &done); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, first.Files, to.Export(t, done.Company.ID, everything).Files)
	}
	var seen transfer.ImportPreview
	a := from.Call("POST", "/api/companies/import/preview",
		apitest.ImportOf(t, first, `{"mode":"existing_company","companyId":"`+string(of)+`"}`, `,"collisionStrategy":"skip"`))
	if err := json.Unmarshal(a.Want(t, 200, "").Body, &seen); err != nil {
		t.Fatal(err)
	}
	apitest.View(t, from, func(tx *ledger.Tx) {
		for _, p := range seen.Plan.Agents {
			if b, _ := entity.AgentByID(tx, transfer.Deref(p.Existing)); p.Action != "skip" || b.Name != p.Name {
				t.Errorf("agent %s: %s, taken for %s", p.Name, p.Action, b.Name)
			}
		}
		for _, p := range seen.Plan.Projects {
			if b, _ := entity.ProjectOf(tx, of, transfer.Deref(p.Existing)); p.Action != "skip" || b.Name != p.Name {
				t.Errorf("project %s: %s, taken for %s", p.Name, p.Action, b.Name)
			}
		}
	})
}

// Folders and skills whose names have no letter or digit for a slug get one of their
// own each.
func TestNamesWithoutASlugAreNotOneName(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := "/api/companies/" + h.Company("Завод")
	for _, name := range []string{"Ключи", "株式会社"} {
		h.Call("POST", of+"/folders", `{"name":"`+name+`","kind":"routine"}`).Want(t, 201, `"slug":"folder-`)
		h.Call("POST", of+"/skills", `{"name":"`+name+`"}`).Want(t, 201, `"slug":"skill-`)
	}
}

// A budget that nobody could set is left out of an import, and what JSON has no word
// for is refused by name.
func TestAnImportTakesOnlyWhatCouldBeSet(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	send := func(side string) apitest.Answer {
		files, err := json.Marshal(map[string]string{"COMPANY.md": "---\nname: Acme\n---\n",
			"agents/ada/AGENTS.md": "---\nname: Ada\n---\n", ".paperclip.yaml": "agents:\n  ada:\n    " + side + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		return h.Call("POST", "/api/companies/import",
			`{"source":{"type":"inline","files":`+string(files)+`},"target":{"mode":"new_company"}}`)
	}
	for cents, want := range map[string]float64{"9223372036854775807": 0, "922337203685478": 0, "-5": 0, "700": 700} {
		var done transfer.Imported
		if err := json.Unmarshal(send("budgetMonthlyCents: "+cents).Want(t, 200, "").Body, &done); err != nil {
			t.Fatal(err)
		}
		row := h.Call("GET", "/api/agents/"+transfer.Deref(done.Agents[0].ID), "").Want(t, 200, "").Decode(t).(map[string]any)
		if row["budgetMonthlyCents"] != want || (len(done.Warnings) == 0) != (want > 0) {
			t.Errorf("%s cents: the budget is %v, warnings %q", cents, row["budgetMonthlyCents"], done.Warnings)
		}
	}
	for _, side := range []string{"metadata: {a: .nan}", "adapter: {config: {a: {1: x}}}"} {
		send(side).Want(t, 422, "a number is none (.nan, .inf), or a key within an object is no text")
	}
}

func TestAnImportIsAllOrNothing(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	e := h.Export(t, h.Acme(t), everything)
	side := e.Files[".paperclip.yaml"]
	side.Data = []byte(strings.Replace(string(side.Data), `type: "process"`, `type: "no_such_adapter"`, 1))
	e.Files[".paperclip.yaml"] = side
	before := h.Call("GET", "/api/companies", "").Body
	h.Call("POST", "/api/companies/import", apitest.ImportOf(t, e, `{"mode":"new_company","newCompanyName":"Half"}`, "")).
		Want(t, 422, "no_such_adapter")
	if after := h.Call("GET", "/api/companies", "").Body; string(after) != string(before) {
		t.Errorf("left behind: %s", after)
	}
}

func TestAPackageFromGitHubIsRead(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"acme-abc/README.md": "x",
		"acme-abc/companies/acme/COMPANY.md":           "---\nname: Acme\n---\n",
		"acme-abc/companies/acme/agents/ada/AGENTS.md": "Lead."} {
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
	h := apitest.NewHarness(t, func(c *api.Config) { c.GitHubArchives = srv.URL })
	ask := func(url string) apitest.Answer {
		return h.Call("POST", "/api/companies/import/preview",
			`{"source":{"type":"github","url":"`+url+`"},"target":{"mode":"new_company"}}`)
	}
	a := ask("https://github.com/acme/companies/tree/main/companies/acme").Want(t, 200, "name a commit to pin it")
	if !strings.Contains(string(a.Body), `"slug":"ada"`) {
		t.Errorf("%s", a.Body)
	}
	ask("https://github.com/acme/gone").Want(t, 422, "no such repository")
	const form, none = "source.url must be https://github.com/OWNER/REPO",
		"source.url names no repository, or no ref after /tree"
	for bad, says := range map[string]string{
		"http://github.com/a/b": form, "https://evil.example/a/b": form, "https://u:p@github.com/a/b": form,
		"https://github.com/a": none, "https://github.com/a/b/blob/x": none,
		"https://github.com/a/b/tree/..": "GitHub has no such repository or ref",
	} {
		ask(bad).Want(t, 422, says)
	}
}

// A timer of a package stays off wherever the package has it, also once the other
// place says nothing of it.
func TestAnImportedTimerStaysOff(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	body, err := json.Marshal(map[string]any{"target": map[string]any{"mode": "new_company", "newCompanyName": "Acme"},
		"include": map[string]any{"company": true, "agents": true},
		"source": map[string]any{"type": "inline", "rootPath": "acme",
			"files": map[string]any{"COMPANY.md": "---\nname: Acme\n---\n", "agents/ada/AGENTS.md": "---\nname: Ada\n---\n",
				".paperclip.yaml": "schema: paperclip/v1\nagents:\n  ada:\n    adapter:\n      type: process\n" +
					"      config:\n        command: \"true\"\n        enabled: true\n        intervalSec: 30\n" +
					"    runtime:\n      heartbeat:\n        enabled: true\n"}}})
	if err != nil {
		t.Fatal(err)
	}
	h.Call("POST", "/api/companies/import", string(body)).Want(t, 200, `"action":"created"`)
	apitest.View(t, h, func(tx *ledger.Tx) {
		for _, row := range entity.Companies(tx) {
			for _, a := range entity.AgentsOf(tx, row.ID, false) {
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
	h := apitest.NewHarness(t)
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{}`: {400, "source"},
		`{"source":{"type":"inline","files":{}},` +
			`"target":{"mode":"new_company"}}`: {422, "missing COMPANY.md"},
		`{"source":{"type":"inline","files":{"COMPANY.md":1}},` +
			`"target":{"mode":"new_company"}}`: {400, "files"},
		`{"source":{"type":"inline","files":{"COMPANY.md":{"encoding":"hex","data":""}}},` +
			`"target":{"mode":"new_company"}}`: {400, "base64"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: [\n---\n"}},` +
			`"target":{"mode":"new_company"}}`: {422, "COMPANY.md"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n","../x":"y"}},` +
			`"target":{"mode":"new_company"}}`: {422, "leaves the package"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n"}},` +
			`"target":{"mode":"existing_company","companyId":"` + api.NewID() + `"}}`: {404, "Company not found"},
		`{"source":{"type":"inline","expectedFileCount":2,"files":{"COMPANY.md":"---\nname: A\n---\n"}},` +
			`"target":{"mode":"new_company"}}`: {422, "were announced"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n","tasks/x/TASK.md":"---\nname: ` +
			strings.Repeat("long ", 500) + `\n---\n"}},"target":{"mode":"new_company"}}`: {422, "Task x"},
		`{"source":{"type":"inline","files":{"COMPANY.md":"---\nname: A\n---\n"}},` +
			`"target":{"mode":"new_company"},"agents":7}`: {400, "agents"},
	} {
		h.Call("POST", "/api/companies/import/preview", body).Want(t, want.status, want.text)
	}
}

// Whoever imports says what runs an agent here, and fills in what the package
// declares: values are sealed, and shown by no answer and no line of the log.
func TestAnImportFillsInWhatThePackageDeclares(t *testing.T) {
	t.Parallel()
	from, to := apitest.NewHarness(t), apitest.NewHarness(t)
	e := from.Export(t, from.Acme(t), everything)
	const general, own = "importCanary-general-41d7", "importCanary-own-93ab"
	body := apitest.ImportOf(t, e, `{"mode":"new_company"}`,
		`,"pauseAutomations":true,"adapterOverrides":{"bob":{"adapterType":"http",`+
			`"adapterConfig":{"url":"https://example.org/hook"}}},
		"secretValues":{"OPENAI_API_KEY":"`+general+`","agent:ada:REGION":"`+own+`","REGION":"`+general+`"}`)
	if a := to.Call("POST", "/api/companies/import/preview", body).
		Want(t, 200, `"adapterType":"http"`); strings.Contains(string(a.Body), "importCanary") {
		t.Error("a preview shows a value")
	}
	var done transfer.Imported
	if err := json.Unmarshal(to.Call("POST", "/api/companies/import", body).Want(t, 200, "").Body, &done); err != nil {
		t.Fatal(err)
	}
	for _, b := range to.Node.Batches() {
		if bytes.Contains(b, []byte("importCanary")) {
			t.Fatal("a value is in a command")
		}
	}
	if strings.Contains(to.Log.String(), "importCanary") {
		t.Error("a value is in the log")
	}
	for _, row := range done.Agents {
		a := to.Call("GET", "/api/agents/"+*row.ID, "").Want(t, 200, "")
		if strings.Contains(string(a.Body), "importCanary") {
			t.Errorf("%s shows a value", row.Slug)
		}
		if row.Slug == "bob" && (a.Field(t, "adapterType") != "http" || !strings.Contains(string(a.Body),
			"example.org/hook")) {
			t.Errorf("bob is %s", a.Body)
		}
		if row.Slug == "ada" {
			apitest.View(t, to, func(tx *ledger.Tx) {
				agent, _ := entity.AgentOf(tx, done.Company.ID, *row.ID)
				if !strings.Contains(string(agent.AdapterConfig), "$sealed") {
					t.Errorf("no value was sealed: %s", agent.AdapterConfig)
				}
			})
		}
	}
	for bad, path := range map[string]string{
		`,"adapterOverrides":{"bob":{"adapterConfig":{}}}`: `"path":["adapterOverrides",` +
			`"bob","adapterType"]`,
		`,"adapterOverrides":{"bob":{"adapterType":"http","adapterConfig":[1]}}`: `"path":["adapterOverrides",` +
			`"bob","adapterConfig"]`,
		`,"secretValues":{"A":1}`: `"path":["secretValues","A"]`,
	} {
		to.Call("POST", "/api/companies/import/preview", apitest.ImportOf(t, e, `{"mode":"new_company"}`, bad)).
			Want(t, 400, path)
	}
}

// A request that makes a company is carried out once, however often it comes.
func TestACompanyIsMadeOncePerIdempotencyKey(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	first := h.Call("POST", "/api/companies", `{"name":"Once"}`, "Idempotency-Key: one").Want(t, 201, "").Field(t, "id")
	if again := h.Call("POST", "/api/companies", `{"name":"Once"}`, "Idempotency-Key: one").Want(t, 201, "").
		Field(t, "id"); again != first {
		t.Errorf("made %s, then %s", first, again)
	}
	h.Call("POST", "/api/companies", `{"name":"Other"}`, "Idempotency-Key: one").Want(t, 422, "already used")
	if other := h.Call("POST", "/api/companies", `{"name":"Once"}`, "Idempotency-Key: two").Want(t, 201, "").
		Field(t, "id"); other == first {
		t.Error("another key gives the same company")
	}
	files, _ := portable.Starter("software-studio")
	body := apitest.ImportOf(t, transfer.Exported{Files: files}, `{"mode":"new_company","newCompanyName":"Studio"}`, "")
	made := h.Call("POST", "/api/companies/import", body, "Idempotency-Key: three").Want(t, 200, "").Body
	if again := h.Call("POST", "/api/companies/import", body, "Idempotency-Key: three").Want(t, 200, "").
		Body; string(again) != string(made) {
		t.Errorf("imported\n%s\nthen\n%s", made, again)
	}
	if n := strings.Count(string(h.Call("GET", "/api/companies", "").Body), `"issuePrefix"`); n != 3 {
		t.Errorf("%d companies, want 3", n)
	}
}

// A failingReader is a node of whose reads one fails: the one that comes when left is 1.
type failingReader struct {
	api.Node
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
	h := apitest.NewHarness(t, func(c *api.Config) {
		n = &failingReader{Node: c.Node}
		c.Node = n
	})
	of := ledger.CompanyID(h.Company("Acme"))
	h.Call("POST", "/api/companies/"+string(of)+"/skills",
		`{"name":"greeting","description":"How to greet","markdown":"---\nname: greeting\ndescription: How to `+
			`greet\n---\nSay hi.\n"}`).Want(t, 201, "")
	e := h.Export(t, of, everything)
	body := apitest.ImportOf(t, e, `{"mode":"existing_company","companyId":"`+string(of)+`"}`,
		`,"collisionStrategy":"skip"`)
	for k := int64(1); ; k++ {
		n.left.Store(k)
		a := h.Call("POST", "/api/companies/import", body)
		if n.left.Swap(0) > 0 { // it had no such read
			a.Want(t, 200, "the company's skill is the same")
			if k < 3 {
				t.Fatalf("an import reads %d times; the test shows nothing", k-1)
			}
			return
		}
		if a.Status < 500 {
			t.Errorf("its read %d failed: %d %s", k, a.Status, a.Body)
		}
	}
}
