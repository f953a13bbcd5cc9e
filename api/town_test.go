package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/place"
	"github.com/selvage-mesh/selvage/ledger"
)

// A town is a company with a row of every noun that a route can name, all of
// them marked with a canary.
type town struct {
	h      *apitest.Harness
	of     string
	mark   string // in all that it holds, and in nothing of another town
	agent  string
	run    string
	token  string            // a key of the agent
	values map[string]string // by the path up to the value, from the last value on: "issues", "issues/comments"
}

// canaryTown marks what a town holds.
const canaryTown = "canary-of-the-town"

// newTown makes a company through the API, so that each row is as it comes.
func newTown(h *apitest.Harness, name string) *town {
	t := h.T
	t.Helper()
	canaryTown := canaryTown + "-" + strings.ToLower(name)
	w := &town{h: h, of: h.Company(name + " " + canaryTown), mark: canaryTown, values: map[string]string{}}
	in, mark := "/api/companies/"+w.of, fmt.Sprintf("%q", canaryTown)
	post := func(path, body string, status int) apitest.Answer {
		t.Helper()
		return h.Call("POST", path, body).Want(t, status, "")
	}
	keep := func(where string, a apitest.Answer) string {
		t.Helper()
		w.values[where] = a.Field(t, "id")
		return w.values[where]
	}
	w.values["companies"] = w.of
	h.Call("PATCH", in, `{"requireBoardApprovalForCeoStrategy":false}`).Want(t, 200, "")
	w.agent = keep("agents", post(in+"/agents",
		`{"name":`+mark+`,"adapterType":"process","adapterConfig":{"command":"/bin/true","env":{"TOKEN":"`+canaryTown+`"}}}`,
		201))
	h.Call("PATCH", "/api/agents/"+w.agent, `{"title":`+mark+`}`).Want(t, 200, "")
	w.values["a2a"] = w.agent
	w.values["agents/config-revisions"] = apitest.FirstOf(t, h.Call("GET", "/api/agents/"+w.agent+"/config-revisions", ""))
	key := post("/api/agents/"+w.agent+"/keys", `{"name":`+mark+`}`, 201)
	w.token = key.Field(t, "token")
	keep("agents/keys", key)
	h.Call("PUT", "/api/agents/"+w.agent+"/instructions-bundle/file", `{"path":"AGENTS.md","content":`+mark+`}`).
		Want(t, 200, "")
	keep("companies/model-providers",
		post(in+"/model-providers", `{"name":"`+canaryTown+`","kind":"anthropic","apiKey":"`+canaryTown+`"}`, 201))
	keep("goals", post(in+"/goals", `{"title":`+mark+`}`, 201))
	project := keep("projects", post(in+"/projects", `{"name":`+mark+`,"env":{"TOKEN":"`+canaryTown+`"}}`, 201))
	keep("projects/workspaces", post("/api/projects/"+project+"/workspaces",
		`{"name":`+mark+`,"cwd":"/srv/`+canaryTown+`"}`, 201))
	ran := post("/api/projects/"+project+"/workspaces",
		`{"name":`+mark+`,"cwd":"`+t.TempDir()+`","runtimeConfig":{"workspaceRuntime":{"services":[{"name":`+mark+
			`,"command":"true"}]}}}`, 201).Field(t, "id")
	w.values["workspace-operations"] = post("/api/projects/"+project+"/workspaces/"+ran+"/runtime-services/start", `{}`,
		200).Decode(t).(map[string]any)["operation"].(map[string]any)["id"].(string)
	w.values["projects/workspaces/runtime-services"], w.values["projects/workspaces/runtime-commands"] = "start", "start"
	if err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		w.values["runtime-services"] = place.ServicesOf(tx, ledger.CompanyID(w.of), ran)[0].ID
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	issue := keep("issues", post(in+"/issues",
		`{"title":`+mark+`,"status":"todo","assigneeAgentId":"`+w.agent+`","projectId":"`+project+`"}`, 201))
	w.values["companies/issues"], w.values["executions"] = issue, issue
	on := "/api/issues/" + issue
	comment := keep("issues/comments", post(on+"/comments", `{"body":`+mark+`}`, 201))
	h.Call("PATCH", in, `{"feedbackDataSharingEnabled":true,"feedbackDataSharingTermsVersion":"v1"}`).Want(t, 200, "")
	post(on+"/feedback-votes",
		`{"targetType":"issue_comment","targetId":"`+comment+`","vote":"down","reason":`+mark+`,"allowSharing":true}`, 201)
	w.values["feedback-traces"] = h.Call("GET", on+"/feedback-traces", "").Want(t, 200, "").
		Decode(t).([]any)[0].(map[string]any)["traceId"].(string)
	held := post(in+"/issues", `{"title":"Held"}`, 201).Field(t, "id")
	post("/api/issues/"+held+"/tree-holds", `{"mode":"pause"}`, 200)
	w.values["issues/tree-holds"] = apitest.FirstOf(t, h.Call("GET", "/api/issues/"+held+"/tree-holds", ""))
	keep("issues/interactions", post(on+"/interactions",
		`{"kind":"request_confirmation","payload":{"version":1,"prompt":`+mark+`}}`, 201))
	keep("work-products", post(on+"/work-products", `{"type":"commit","provider":"git","title":`+mark+`}`, 201))
	for _, text := range []string{"one", "two"} {
		body := `{"title":` + mark + `,"format":"markdown","body":"` + text + ` ` + canaryTown + `"`
		if text == "two" {
			body += `,"baseRevisionId":"` + w.values["issues/documents/revisions"] + `"`
		}
		w.values["issues/documents/revisions"] = h.Call("PUT", on+"/documents/plan", body+`}`).Field(t, "latestRevisionId")
	}
	w.values["issues/documents"] = "plan"
	form, contentType := apitest.FormOf(t, canaryTown+".txt", "text/plain", []byte(canaryTown))
	keep("attachments", h.Call("POST", in+"/issues/"+issue+"/attachments", form, contentType).Want(t, 201, ""))
	form, contentType = apitest.FormOf(t, canaryTown+".png", "image/png", apitest.Dot())
	w.values["assets"] = h.Call("POST", in+"/assets/images", form, contentType).Want(t, 201, "").Field(t, "assetId")
	w.values["decisions"] = w.decided()
	w.values["elevations"] = post("/api/v1/govern/elevations", `{"agentId":"`+w.agent+`","clearances":["deploy"]}`, 201).
		Field(t, "id")
	w.values["permits"] = post("/api/v1/govern/permits", `{"action":"fs.read_file","agent_id":"`+w.agent+`"}`, 201).
		Field(t, "id")
	keep("memory", post("/api/v1/memory", `{"companyId":"`+w.of+`","text":`+mark+`}`, 201))
	w.values["why"], w.values["effects"] = issue, issue
	keep("labels", post(in+"/labels", `{"name":`+mark+`,"color":"#ff0000"}`, 201))
	keep("secrets", post(in+"/secrets", `{"name":`+mark+`,"value":"`+canaryTown+`"}`, 201))
	keep("companies/user-secret-definitions", post(in+"/user-secret-definitions", `{"key":`+mark+`,"name":`+mark+`}`, 201))
	keep("companies/me/user-secrets",
		post(in+"/me/user-secrets", `{"definitionKey":`+mark+`,"value":"`+canaryTown+`"}`, 201))
	keep("approvals", post(in+"/approvals", `{"type":"request_board_approval","payload":{"title":`+mark+`}}`, 201))
	w.values["issues/approvals"] = w.values["approvals"]
	post(on+"/approvals", `{"approvalId":"`+w.values["approvals"]+`"}`, 201)
	routine := keep("routines", post(in+"/routines", `{"title":`+mark+`,"assigneeAgentId":"`+w.agent+`"}`, 201))
	h.Call("PATCH", "/api/routines/"+routine, `{"description":`+mark+`}`).Want(t, 200, "")
	w.values["routines/revisions"] = apitest.FirstOf(t, h.Call("GET", "/api/routines/"+routine+"/revisions", ""))
	trigger := post("/api/routines/"+routine+"/triggers", `{"kind":"webhook","signingMode":"bearer","label":`+mark+`}`,
		201).Decode(t).(map[string]any)["trigger"].(map[string]any)
	w.values["routine-triggers"], w.values["routine-triggers/public"] = trigger["id"].(string),
		trigger["publicId"].(string)
	keep("companies/folders", post(in+"/folders", `{"kind":"routine","name":`+mark+`}`, 201))
	keep("companies/skills", post(in+"/skills",
		`{"name":`+mark+`,"description":`+mark+`,"markdown":"---\nname: `+canaryTown+`\ndescription: `+canaryTown+
			`\n---\nSay hi.\n"}`, 201))
	post(in+"/inbox-dismissals", `{"itemKey":"approval:`+w.values["approvals"]+`"}`, 200)
	w.values["companies/inbox-dismissals"] = "approval:" + w.values["approvals"]
	invite := post(in+"/invites", `{"allowedJoinTypes":"both"}`, 201)
	w.values["invites/revoke"], w.values["invites"] = invite.Field(t, "id"), invite.Field(t, "token")
	join := h.Call("POST", "/api/invites/"+w.values["invites"]+"/accept",
		`{"requestType":"agent","agentName":`+mark+
			`,"adapterType":"http","agentDefaultsPayload":{"url":"http://127.0.0.1:9/`+canaryTown+`"}}`).Want(t, 202, "")
	w.values["companies/join-requests"], w.values["join-requests"] = join.Field(t, "id"), join.Field(t, "id")
	w.values["companies/members"] = h.Call("GET", in+"/members", "").Want(t, 200, "").
		Decode(t).(map[string]any)["members"].([]any)[0].(map[string]any)["id"].(string)
	w.values["admin/users"] = api.LocalBoard
	w.values["execution-workspaces/runtime-services"], w.values["execution-workspaces/runtime-commands"] = "start", "start"
	keep("environments", post(in+"/environments",
		`{"name":`+mark+`,"driver":"ssh","config":{"host":"`+canaryTown+`","username":"x","remoteWorkspacePath":"/x"}}`, 201))
	w.values["cli-auth/challenges"] = post("/api/cli-auth/challenges", `{"command":`+mark+`}`, 201).Field(t, "id")
	w.values["companies/import/transfers"] = post("/api/companies/import/transfers",
		`{"totalBytes":1,"zipSha256":"`+company.PartName([]byte("x"))+
			`","partSizeBytes":1,"parts":[{"index":0,"byteSize":1,"sha256":"`+company.PartName([]byte("x"))+`"}]}`, 200).
		Field(t, "transferId")
	w.values["companies/import/transfers/parts"] = "0"
	job := post("/api/companies/import?async=1",
		`{"source":{"type":"inline","files":{}},"target":{"mode":"new_company","newCompanyName":`+mark+`}}`, 202)
	h.JobEnd(t, job) // a second town's would be refused while it goes on
	w.values["companies/import/jobs"] = job.Field(t, "jobId")
	w.values["board-api-keys"] = post("/api/board-api-keys", `{"name":`+mark+`}`, 201).Field(t, "id")
	spender := post(in+"/agents", `{"name":"Spender","adapterType":"process"}`, 201).Field(t, "id")
	post(in+"/budgets/policies", `{"scopeType":"agent","scopeId":"`+spender+`","windowKind":"lifetime","amount":1}`, 200)
	post(in+"/cost-events",
		`{"agentId":"`+spender+`","provider":"p","model":"m","costCents":5,"occurredAt":"2026-11-20T12:00:00Z"}`, 201)
	w.values["companies/budget-incidents"] = apitest.FirstOf(t, h.Call("GET", in+"/budget-incidents", ""))
	w.run = h.Start(ledger.CompanyID(w.of),
		apitest.FirstOf(t, h.Call("GET", in+"/heartbeat-runs", ""))) // the assignment queued it
	w.values["heartbeat-runs"] = w.run
	if err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		r, _ := entity.RunByID(tx, w.run)
		l, _ := r.Lease()
		w.values["environment-leases"] = l.ID
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if list := h.Call("GET", in+"/execution-workspaces", "").Want(t, 200, "").Decode(t).([]any); len(list) > 0 {
		w.values["execution-workspaces"] = list[0].(map[string]any)["id"].(string)
	}
	return w
}

// samples are bodies whose rules no tag says, by method and pattern of the route.
func (w *town) samples() map[string]string {
	return map[string]string{
		"POST /api/companies/{companyId}/approvals":       `{"type":"request_board_approval","payload":{"title":"x"}}`,
		"POST /api/companies/{companyId}/issues":          `{"title":"x","allowDuplicate":true}`,
		"POST /api/issues/{id}/children":                  `{"title":"x","allowDuplicate":true}`,
		"POST /api/companies/{companyId}/routines":        `{"title":"x"}`,
		"POST /api/companies/{companyId}/me/user-secrets": `{"definitionKey":"` + w.mark + `","value":"x"}`,
		"POST /api/companies/{companyId}/environments": `{"name":"x","driver":"ssh","config":{"host":"h",` +
			`"username":"x","remoteWorkspacePath":"/x"}}`,
		"POST /api/companies/{companyId}/secrets": `{"name":"x","value":"x"}`,
		"POST /api/projects/{id}/workspaces":      `{"cwd":"/srv/x"}`,
		"POST /api/secrets/{id}/rotate":           `{"value":"x"}`,
		"POST /api/issues/{id}/interactions":      `{"kind":"request_confirmation","payload":{"version":1,"prompt":"x"}}`,
		"POST /api/routines/{id}/triggers":        `{"kind":"api"}`,
		"PUT /api/issues/{id}/documents/{key}": `{"title":"x","format":"markdown","body":"x","baseRevisionId":"` +
			w.values["issues/documents/revisions"] + `"}`,
		"POST /api/issues/{id}/approvals": `{"approvalId":"` + w.values["approvals"] + `"}`,
		"POST /api/companies/{companyId}/cost-events": `{"agentId":"` + w.agent +
			`","provider":"p","model":"m","costCents":5,"occurredAt":"2026-11-20T12:00:00Z"}`,
		"POST /api/companies/{companyId}/skills":      `{"name":"x","markdown":"---\nname: x\ndescription: x\n---\nx\n"}`,
		"POST /api/companies/{companyId}/agents":      `{"name":"x","adapterType":"process"}`,
		"POST /api/companies/{companyId}/agent-hires": `{"name":"x","adapterType":"process"}`,
		"POST /api/issues/{id}/feedback-votes": `{"targetType":"issue_comment","targetId":"` +
			w.values["issues/comments"] + `","vote":"up"}`,
		"POST /api/companies/{companyId}/inbox-dismissals": `{"itemKey":"approval:` + w.values["approvals"] + `"}`,
		"POST /api/invites/{token}/accept": `{"requestType":"agent","agentName":"x",` +
			`"adapterType":"http"}`,
		"PATCH /api/companies/{companyId}/skills/{skillId}/files": `{"path":"SKILL.md","content":"---\nname: ` +
			`x\ndescription: x\n---\nx\n"}`,
		"PUT /api/v1/services/{name}":                   `{"version":"1","provider":"sums","methods":[{"name":"add"}]}`,
		"PUT /api/v1/cron/{name}":                       `{"cron":"0 3 * * *","topic":"a"}`,
		"PUT /api/v1/declared-processes/{name}":         `{"command":["/bin/true"],"replicas":1}`,
		"PUT /api/agents/{id}/instructions-bundle/file": `{"path":"AGENTS.md","content":"x"}`,
	}
}

// body is one that a route takes, as far as the tags of its type say; "" for a
// route without one.
func (w *town) body(route api.Route) string {
	if s, ok := w.samples()[route.Method+" "+route.Path]; ok {
		return s
	}
	if route.In == nil {
		if route.Method == "GET" || route.Method == "DELETE" {
			return ""
		}
		return "{}"
	}
	v := w.sample(api.PlanOf(reflect.TypeOf(route.In)), api.Bounds{MinLength: -1}, "")
	b, err := json.Marshal(v)
	if err != nil {
		w.h.T.Fatal(err)
	}
	return string(b)
}

// sample is a value that a plan takes; optional members are left out.
func (w *town) sample(p *api.Plan, r api.Bounds, name string) any {
	switch {
	case p.Ptr, p.Opt:
		return w.sample(p.Elem, r, name)
	}
	switch p.Shape {
	case api.IsInt, api.IsUint, api.IsFloat:
		if r.Minimum != nil {
			return *r.Minimum
		}
		return 0
	case api.IsBool:
		return true
	case api.IsTime:
		return "2026-11-20T12:00:00Z"
	case api.IsList:
		if r.MinItems > 0 {
			return []any{w.sample(p.Elem, api.Bounds{Enum: r.Enum, Format: r.Format, MinLength: -1}, name)}
		}
		return []any{}
	case api.IsMap, api.IsRaw, api.IsAny:
		return map[string]any{}
	case api.IsStruct:
		o := map[string]any{}
		for _, f := range p.Fields {
			if f.Required {
				o[f.Name] = w.sample(f.Plan, f.Rules, f.Name)
			}
		}
		return o
	}
	switch {
	case len(r.Enum) > 0:
		return r.Enum[0]
	case r.Format == "uuid":
		return w.id(name)
	case r.Format == "date-time":
		return "2026-11-20T12:00:00Z"
	case r.Format == "uri":
		return "https://example.com/x"
	case strings.Contains(strings.ToLower(name), "color"):
		return "#ff0000"
	}
	return strings.Repeat("x", max(1, r.MinLength))
}

// id is the town's row that a field's name means, or one that is nowhere.
func (w *town) id(field string) string {
	noun := strings.TrimSuffix(strings.ToLower(field), "id")
	for where, v := range w.values {
		if strings.TrimSuffix(where, "s") == noun {
			return v
		}
	}
	if strings.Contains(noun, "agent") {
		return w.agent
	}
	return api.NewID()
}

// decided has the node record a decision of the gate about the town's agent, and returns its ID.
func (w *town) decided() string {
	of := ledger.CompanyID(w.of)
	d := govern.Decision{}
	err := w.h.Node.Ledger.View(func(tx *ledger.Tx) error {
		d, _, _ = govern.WeighLocal(tx, govern.Local{Action: "exec", Agent: w.agent, Company: of})
		return nil
	})
	if err != nil {
		w.h.T.Fatal(err)
	}
	node := string(w.h.Node.Keys.ID())
	r := w.h.SubmitAs(ledger.Actor{Type: "node", ID: node}, ledger.Credential{Kind: "node", ID: node}, govern.KindRecord,
		of, govern.Record{Decisions: []govern.Decision{d}})
	return strconv.FormatUint(r.Height, 10)
}

// path fills a route's pattern with the town's rows; whole is false when the
// town has no row for one of the values, which is then made up.
func (w *town) path(route api.Route) (path string, whole bool) {
	whole = true
	var out, names []string
	for part := range strings.SplitSeq(strings.TrimPrefix(route.Path, "/"), "/") {
		if !strings.HasPrefix(part, "{") {
			names, out = append(names, part), append(out, part)
			continue
		}
		value, ok := "", false
		for from := range names { // the longest ending that the town knows
			where := strings.TrimPrefix(strings.Join(names[from:], "/"), "api/")
			if strings.HasPrefix(where, "invites") && strings.HasSuffix(route.Path, "/revoke") {
				where += "/revoke"
			}
			if value, ok = w.values[where]; ok {
				break
			}
		}
		if !ok {
			whole, value = false, api.NewID()
		}
		out = append(out, value)
	}
	path = "/" + strings.Join(out, "/")
	if strings.HasSuffix(path, "/file") && route.In == nil || strings.HasSuffix(path, "/files") && route.In == nil {
		path += "?path=SKILL.md"
	}
	return path, whole
}
