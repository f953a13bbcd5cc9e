package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// A spot is a place in a body where an ID goes: the members on the way to it, "[]"
// for an item of a list and "{}" for a member of a record. inside is JSON with ID
// where the ID goes, for members that no tag describes.
type spot struct {
	at     []string
	inside string
}

func (s spot) String() string { return strings.TrimSpace(strings.Join(s.at, ".") + " " + s.inside) }

// namesRow reports whether a string of a body or a query is meant to be an ID.
func namesRow(name, format string) bool {
	return format == "uuid" || strings.HasSuffix(name, "Id") || strings.HasSuffix(name, "Ids") || strings.HasSuffix(name,
		"_id") || name == "id" || name == "ids"
}

// namesCompany tells whether a route is told its company apart from its path: the board
// itself may name any.
func namesCompany(r api.Route) bool {
	return !strings.Contains(r.Path, "{") || strings.HasPrefix(r.Path, "/api/v1/topics/") || strings.HasPrefix(r.Path,
		"/api/v1/cron/") || strings.HasPrefix(r.Path, "/api/v1/services/") || strings.HasPrefix(r.Path,
		"/api/v1/subscriptions/")
}

// spotsOf returns the spots of a body. raw is told of each member that is JSON of
// any kind, and gives what goes there.
func spotsOf(t reflect.Type, raw func(at []string) []string) (all []spot) {
	var walk func(p *api.Plan, r api.Bounds, name string, at []string)
	walk = func(p *api.Plan, r api.Bounds, name string, at []string) {
		for p.Ptr || p.Opt {
			p = p.Elem
		}
		if len(at) > 12 {
			return // a type that holds itself
		}
		switch p.Shape {
		case api.IsList:
			walk(p.Elem, r, name, append(slices.Clone(at), "[]"))
		case api.IsMap:
			walk(p.Elem, r, name, append(slices.Clone(at), "{}"))
		case api.IsStruct:
			for _, f := range p.Fields {
				walk(f.Plan, f.Rules, f.Name, append(slices.Clone(at), f.Name))
			}
		case api.IsRaw, api.IsAny:
			for _, inside := range raw(at) {
				all = append(all, spot{at, inside})
			}
		case api.IsString:
			if namesRow(name, r.Format) {
				all = append(all, spot{at, ""})
			}
		}
	}
	walk(api.PlanOf(t), api.Bounds{}, "", nil)
	return all
}

// put returns what is there, or a sample of it, with an ID at a place in it.
func (w *town) put(p *api.Plan, r api.Bounds, name string, there any, at []string, value any) any {
	for p.Ptr || p.Opt {
		p = p.Elem
	}
	if len(at) == 0 {
		return value
	}
	switch p.Shape {
	case api.IsList:
		return []any{w.put(p.Elem, r, name, nil, at[1:], value)}
	case api.IsMap:
		return map[string]any{"x": w.put(p.Elem, r, name, nil, at[1:], value)}
	}
	o, ok := there.(map[string]any)
	if !ok {
		o, _ = w.sample(p, r, name).(map[string]any)
	}
	o = maps.Clone(o)
	f := p.Fields[p.ByName[at[0]]]
	o[f.Name] = w.put(f.Plan, f.Rules, f.Name, o[f.Name], at[1:], value)
	return o
}

// with is a body that a route takes, with an ID at a spot.
func (w *town) with(route api.Route, s spot, id string) string {
	w.h.T.Helper()
	var value any = id
	if s.inside != "" {
		if err := json.Unmarshal([]byte(strings.ReplaceAll(s.inside, "ID", id)), &value); err != nil {
			w.h.T.Fatalf("%s: %v", s.inside, err)
		}
	}
	var body any
	if err := json.Unmarshal([]byte(w.body(route)), &body); err != nil {
		w.h.T.Fatal(err)
	}
	b, err := json.Marshal(w.put(api.PlanOf(reflect.TypeOf(route.In)), api.Bounds{}, "", body, s.at, value))
	if err != nil {
		w.h.T.Fatal(err)
	}
	return string(b)
}

// sshKey is the configuration of an environment with the key that opens it.
const sshKey = `{"host":"h","username":"x","remoteWorkspacePath":"/x","privateKeySecretRef":{"type":"secret_ref",` +
	`"secretId":"ID"}}`

// insides are what goes into members that are JSON of any kind, by the member's
// name: with ID where the ID of a row goes. none are those that hold no ID of a
// row, or whose IDs nothing comes of, with the reason.
var (
	insides = map[string][]string{
		"adapterConfig":            {`{"env":{"X":{"type":"secret_ref","secretId":"ID"}}}`},
		"config":                   {sshKey},
		"env":                      {`{"X":{"type":"secret_ref","secretId":"ID"}}`},
		"envVars":                  {`{"X":{"type":"secret_ref","secretId":"ID"}}`},
		"executionWorkspacePolicy": {`{"enabled":true,"defaultProjectWorkspaceId":"ID"}`},
		"executionPolicy": {`{"stages":[{"type":"review","participants":[{"type":"agent","agentId":"ID"}]}]}`,
			`{"stages":[{"type":"review","participants":[{"type":"user","userId":"ID"}]}]}`},
	}
	none = map[string]string{
		"assigneeAdapterOverrides":   "only few texts of it are read, and variables are not among them",
		"executionWorkspaceSettings": "only its mode is read", "desiredSkills": "keys, looked for among the company's own",
		"files": "texts", "agents": "slugs in the package", "instructionsBundle": "texts",
		"labels": "of a node, for placement", "metadata": "the client's own", "metadataJson": "the client's own",
		"details":      "what the note says",
		"presentation": "how a comment looks", "providerMetadata": "the client's own", "result": "what the program said",
		"runtimeConfig": "times and counts", "permissions": "flags", "scope": "what a grant is for, as whoever gave it says",
		"serviceStates": "by the name of a service", "workspaceRuntime": "commands",
		"unblockDescriptor": "who is waited for, in words", "variables": "texts for a prompt",
		"defaultValue": "a text for a prompt", "input": "of a tool, which may do what its owner granted it",
		"defaultsPayload": "what joiners are made with", "payload": "see wholes", "context": "for a prompt",
		"vector": "numbers", "arguments": "of an act: only their hash is kept", "json": "what one process says to another",
		"agency": "roles and counts", "params": "of a method of a service, or their schema",
		"capabilities": "flags and counts", "settings": "of an app, texts for its own manifest", "risk": "a number",
		"minCut": "a number", "maxShift": "a number", "floor": "a number",
		"fairness": "a number", "privacy": "a number", "novelty": "a number", "security": "a number", "drift": "a number",
	}
	// texts are strings that look like IDs and are none of rows of a company, by the
	// member's name or by route and name. ignored say again what the path says, or ask
	// for what is there among the company's own.
	texts = map[string]string{
		"commentClientRequestId": "the client's own", "clientRequestId": "the client's own", "requestId": "the client's own",
		"orderedIds": "what is gone stays in a person's order", "correlationId": "the sender's own",
		"originRunId": "told by who made it, like originId", "originId": "told by who made it",
		"externalId": "of another system", "externalInvoiceId": "of another system",
		"selectedOptionIds": "options of the interaction", "optionIds": "options of the interaction",
		"entityId": "what a note is about, in words", "onBehalfOfUserId": "users are of the mesh",
		"addresseeUserId": "users are of the mesh; who may not enter can not answer",
	}
	ignored = map[string]string{
		"POST /api/companies/{companyId}/routines baseRevisionId": "a new routine has no " +
			"revision before it",
		"POST /api/issues/{id}/children parentId":                                    "the path says it",
		"POST /api/companies/{companyId}/environments/probe-config config " + sshKey: "nobody signs in",
		"POST /api/companies/{companyId}/activity agentId":                           "the credential says it",
		"POST /api/companies/{companyId}/activity actorId":                           "the credential says it",
		"POST /api/companies/{companyId}/agent-hires sourceIssueId": "linked to the " +
			"approval, where one is needed",
		"POST /api/companies/{companyId}/agent-hires sourceIssueIds.[]":                 "likewise",
		"POST /api/companies/{companyId}/skills/scan-projects projectIds.[]":            "chooses among what is there",
		"POST /api/companies/{companyId}/skills/scan-projects workspaceIds.[]":          "likewise",
		"POST /api/companies/{companyId}/skills/scan-projects selection.[].workspaceId": "likewise",
		"POST /api/agents/{id}/messages/take ids.[]":                                    "chooses among what is there",
	}
)

// wholes are bodies of routes with ID where the ID of a row goes, for what depends
// on other members.
func (w *town) wholes() map[string][]string {
	issue, revision := w.values["issues"], w.values["issues/documents/revisions"]
	task := func(more string) string {
		return `{"kind":"suggest_tasks","payload":{"version":1,"tasks":[{"clientKey":"a","title":"x",` + more + `}]}}`
	}
	hire := func(more string) string {
		return `{"type":"hire_agent","payload":{"name":"x","role":"general","adapterType":"process",` + more + `}}`
	}
	return map[string][]string{
		"POST /api/issues/{id}/interactions": {
			task(`"parentId":"ID"`), task(`"assigneeAgentId":"ID"`), task(`"assigneeUserId":"ID"`), task(`"projectId":"ID"`),
			task(`"goalId":"ID"`),
			`{"kind":"suggest_tasks","payload":{"version":1,"defaultParentId":"ID","tasks":[{"clientKey":"a","title":"x"}]}}`,
			`{"kind":"request_confirmation","payload":{"version":1,"prompt":"x",` +
				`"target":{"type":"issue_document","issueId":"ID","key":"plan","revisionId":"` + revision + `"}}}`,
			`{"kind":"request_confirmation","payload":{"version":1,"prompt":"x","target":{"type":"issue_document","issueId":"` +
				issue + `","key":"plan","revisionId":"ID"}}}`,
		},
		"POST /api/companies/{companyId}/approvals": {hire(`"reportsTo":"ID"`),
			hire(`"adapterConfig":{"env":{"X":{"type":"secret_ref","secretId":"ID"}}}`),
			`{"type":"budget_override_required","payload":{"scopeType":"agent","scopeId":"ID",` +
				`"windowKind":"lifetime","amount":5}}`},
		"POST /api/agents/{id}/wakeup": {`{"payload":{"issueId":"ID"}}`, `{"payload":{"taskId":"ID"}}`,
			`{"payload":{"commentId":"ID"}}`, `{"payload":{"approvalId":"ID"}}`},
	}
}

// named counts in which rows of the town an ID stands, besides the log.
func (w *town) named(id string) map[string]int {
	w.h.T.Helper()
	out, of := map[string]int{}, []byte(id)
	if err := w.h.Node.Ledger.View(func(tx *ledger.Tx) error {
		for k, v := range tx.Prefix(ledger.Key("c", w.of)) {
			if n := bytes.Count(k, of) + bytes.Count(v, of); n > 0 && !strings.Contains(string(k), "/~") {
				out[string(k)] = n
			}
		}
		return nil
	}); err != nil {
		w.h.T.Fatal(err)
	}
	return out
}

// spots are the spots of a route's body where an ID of a row goes.
func (w *town) spots(route api.Route) []spot {
	w.h.T.Helper()
	if route.In == nil || route.Who == api.Public {
		return nil
	}
	name := route.Method + " " + route.Path
	all := spotsOf(reflect.TypeOf(route.In), func(at []string) []string {
		last := at[len(at)-1]
		if last == "[]" || last == "{}" {
			last = at[len(at)-2]
		}
		if insides[last] == nil && none[last] == "" {
			w.h.T.Errorf("%s has %s, which is JSON of any kind: say in insides where IDs of rows go in it, or in "+
				"none that it has none", name, strings.Join(at, "."))
		}
		return insides[last]
	})
	for _, inside := range w.wholes()[name] {
		all = append(all, spot{nil, inside})
	}
	return slices.DeleteFunc(all, func(s spot) bool {
		names := slices.DeleteFunc(slices.Clone(s.at), func(part string) bool { return part == "[]" || part == "{}" })
		return len(names) > 0 && texts[names[len(names)-1]] != ""
	})
}

// A refusal tells something only where a row of one's own is answered otherwise.
func TestBodiesTakeOwnRows(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	w := newTown(h, "Ours")
	looked, blind := 0, []string{}
	for _, route := range h.Routes() {
		path, _ := w.path(route)
		for _, s := range w.spots(route) {
			answers := func(id string) string {
				a := h.Call(route.Method, path, w.with(route, s, id))
				return fmt.Sprint(a.Status, strings.ReplaceAll(string(a.Body), id, "ID"))
			}
			nowhere := answers(api.NewID())
			if slices.ContainsFunc(slices.Collect(maps.Values(w.values)), func(id string) bool {
				return api.IsUUID(id) &&
					answers(id) != nowhere
			}) {
				looked++
			} else {
				blind = append(blind, route.Method+" "+route.Path+" "+s.String()+": "+nowhere)
			}
		}
	}
	t.Logf("%d places look at what they are given", looked)
	if looked < leastLooked {
		t.Errorf("only %d places look at what they are given; these answer the same to everything:\n%.20000s", looked,
			strings.Join(blind, "\n"))
	}
}

// leastLooked bounds the places from below. Those that answer the same to everything
// need more than a town has, such as an accepted plan or a package.
const leastLooked = 140

// lure gives the rows of another town, as whoever shows the headers, in every place
// of every body of the table that takes an ID. It returns in how many places, and what was taken.
func (w *town) lure(theirs *town, as ...string) (n int, got []string) {
	h, t := w.h, w.h.T
	t.Helper()
	before, _ := h.Node.Ledger.Head()
	fault := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	// Only a call that is taken changes rows, and where one is taken that is not ignored, it is a fault:
	// an ID stands where it stood when it was looked for last.
	was := map[string]map[string]int{}
	for _, route := range h.Routes() {
		if namesCompany(route) && len(as) == 0 {
			continue
		}
		name := route.Method + " " + route.Path
		path, _ := w.path(route)
		for _, s := range w.spots(route) {
			n++
			quiet := ignored[name+" "+s.String()] != ""
			for where, id := range theirs.values {
				if !api.IsUUID(id) || where == "environments" || where == "companies/import/jobs" ||
					where == "companies/import/transfers" { // of all companies, and of who imports
					continue
				}
				found := len(got)
				if quiet && was[id] == nil {
					was[id] = w.named(id)
				}
				h.ForgetRates()
				a := h.Call(route.Method, path, w.with(route, s, id), as...)
				switch {
				case strings.Contains(string(a.Body), theirs.mark):
					fault("%s with %s of another company for %s shows it: %.300s", name, where, s, a.Body)
				case quiet && a.Status < 300 && maps.Equal(was[id], w.named(id)):
				case a.Status < 400 || a.Status >= 500:
					fault("%s took %s of another company for %s: %d %.300s", name, where, s, a.Status, a.Body)
				}
				if len(got) > found {
					break // one says it
				}
			}
		}
	}
	return n, append(got, theirs.touched(before)...)
}

// TestBodiesNameNoRowsOfOthers gives the rows of one company, in every place of a
// body that takes an ID, to another: as the board of both, as an owner of the other
// alone, and as its agent in a run.
func TestBodiesNameNoRowsOfOthers(t *testing.T) {
	t.Parallel()
	enough := func(t *testing.T, n int) {
		if n < 150 {
			t.Errorf("only %d places of bodies take an ID", n)
		}
	}
	t.Run("the board of both", func(t *testing.T) {
		t.Parallel()
		h := apitest.NewHarness(t)
		theirs, ours := newTown(h, "Theirs"), newTown(h, "Ours")
		n, got := ours.lure(theirs)
		enough(t, n)
		for _, bad := range got {
			t.Error(bad)
		}
		// An issue that a hire comes from is linked to its approval.
		h.Call("PATCH", "/api/companies/"+ours.of, `{"requireBoardApprovalForNewAgents":true}`).Want(t, 200, "")
		for _, body := range []string{`"sourceIssueId":"ID"`, `"sourceIssueIds":["ID"]`} {
			hire := func(w *town) apitest.Answer {
				return h.Call("POST", "/api/companies/"+ours.of+"/agent-hires", `{"name":"New",`+strings.ReplaceAll(body, "ID",
					w.values["issues"])+`}`)
			}
			hire(theirs).Want(t, 404, "Issue not found")
			hire(ours).Want(t, 201, "")
		}
	})
	t.Run("an owner", func(t *testing.T) {
		t.Parallel()
		h := apitest.Peopled(t)
		ann := h.Admin()
		h.As = []string{ann, apitest.OwnOrigin}
		theirs, ours := newTown(h, "Theirs"), newTown(h, "Ours")
		olga, _ := h.Join(ledger.CompanyID(ours.of), ann, "olga", people.RoleOwner)
		n, got := ours.lure(theirs, olga, apitest.OwnOrigin)
		enough(t, n)
		for _, bad := range got {
			t.Error(bad)
		}
	})
	t.Run("an agent", func(t *testing.T) {
		t.Parallel()
		h := apitest.NewHarness(t)
		theirs, ours := newTown(h, "Theirs"), newTown(h, "Ours")
		n, got := ours.lure(theirs, "Authorization: Bearer "+ours.token, "X-Paperclip-Run-Id: "+ours.run)
		enough(t, n)
		for _, bad := range got {
			t.Error(bad)
		}
	})
}

// Bodies that take what they should not are found.
func TestOpenBodiesAreFound(t *testing.T) {
	t.Parallel()
	type deep struct {
		Rows []struct {
			ByName map[string]struct {
				AgentIDs []string `json:"agentIds"`
			} `json:"byName"`
		} `json:"rows,omitempty"`
		Label string `json:"labelId,omitempty" format:"uuid"`
	}
	h := apitest.NewHarness(t)
	theirs, ours := newTown(h, "Theirs"), newTown(h, "Ours")
	h.Plant(api.Route{Method: "POST", Path: "/api/companies/{companyId}/planted", In: deep{},
		Handle: func(rc *api.Request) (api.Response, error) {
			in, err := api.Body[deep](rc)
			if err != nil {
				return api.Response{}, err
			}
			if in.Label == theirs.values["labels"] { // shows whose it is
				return api.Response{}, api.Conflict("The label is "+theirs.mark, nil)
			}
			if in.Label != "" {
				return api.Response{}, api.NotFound("Label not found")
			}
			return api.OK(in), nil
		}})
	h.Table = h.Table[len(h.Table)-1:]
	_, got := ours.lure(theirs)
	if !slices.ContainsFunc(got, func(bad string) bool {
		return strings.Contains(bad,
			" for rows.[].byName.{}.agentIds.[]: 200")
	}) {
		t.Errorf("the deep list is not found: %.500q", got)
	}
	for _, want := range []string{"POST /api/companies/{companyId}/planted took ",
		"POST /api/companies/{companyId}/planted with labels of another company for labelId shows it"} {
		if !slices.ContainsFunc(got, func(bad string) bool { return strings.HasPrefix(bad, want) }) {
			t.Errorf("found %.500q, want %q", got, want)
		}
	}
}

var instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// ask gives the rows of another town, as whoever shows the headers, in every
// parameter of the table that takes an ID. It returns what was shown of them, and
// what was answered otherwise than to an ID of no row.
func (w *town) ask(theirs *town, as ...string) (got []string) {
	h, t := w.h, w.h.T
	t.Helper()
	fault := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	before, _ := h.Node.Ledger.Head()
	params := 0
	for _, route := range h.Routes() {
		if route.Who == api.Public || route.Who == api.Admin || namesCompany(route) && len(as) == 0 ||
			strings.HasSuffix(route.Path, "/events") || strings.HasSuffix(route.Path, "/events/ws") ||
			strings.HasSuffix(route.Path, "/export") {
			continue
		}
		path, _ := w.path(route)
		body := ""
		if route.Method != "GET" && route.Method != "DELETE" {
			body = w.body(route)
		}
		for _, p := range route.Query {
			if !namesRow(p.Name, "") {
				continue
			}
			params++
			answers := func(id string) (apitest.Answer, string) {
				sep := "?"
				if strings.Contains(path, "?") {
					sep = "&"
				}
				h.ForgetRates()
				a := h.Call(route.Method, path+sep+p.Name+"="+id, body, as...)
				return a, fmt.Sprint(a.Status, instants.ReplaceAllString(strings.ReplaceAll(string(a.Body), id, "ID"), "T"))
			}
			_, nowhere := answers(api.NewID())
			for where, id := range theirs.values {
				if !api.IsUUID(id) || where == "environments" {
					continue
				}
				a, text := answers(id)
				switch {
				case strings.Contains(string(a.Body), theirs.mark):
					fault("%s %s?%s= shows %s of another company: %.300s", route.Method, route.Path, p.Name, where, a.Body)
				case a.Status >= 500 || route.Method == "GET" && text != nowhere:
					fault("%s %s?%s= answers %.300s to %s of another company, and %.300s to what is nowhere", route.Method, route.Path,
						p.Name, text, where, nowhere)
				}
			}
		}
	}
	if params < 25 {
		t.Errorf("only %d parameters take an ID", params)
	}
	return append(got, theirs.touched(before)...)
}

// A filter by a row of another company finds what a filter by no row does.
func TestFiltersByRowsOfOthers(t *testing.T) {
	t.Parallel()
	h := apitest.Peopled(t)
	ann := h.Admin()
	h.As = []string{ann, apitest.OwnOrigin}
	theirs, ours := newTown(h, "Theirs"), newTown(h, "Ours")
	olga, _ := h.Join(ledger.CompanyID(ours.of), ann, "olga", people.RoleOwner)
	for who, as := range map[string][]string{"the board of both": nil, "an owner": {olga, apitest.OwnOrigin},
		"an agent": {"Authorization: Bearer " + ours.token, "X-Paperclip-Run-Id: " + ours.run}} {
		for _, bad := range ours.ask(theirs, as...) {
			t.Error(who, bad)
		}
	}
	h.Plant(api.Route{Method: "GET", Path: "/api/companies/{companyId}/planted", Query: []api.Param{{Name: "issueId"}},
		Handle: func(rc *api.Request) (api.Response, error) {
			var i entity.Issue
			err := rc.View(func(tx *ledger.Tx) error { i, _ = entity.FindIssue(tx, rc.Query("issueId")); return nil })
			return api.OK(i.Title), err
		}})
	if got := ours.ask(theirs, olga, apitest.OwnOrigin); len(got) == 0 || !strings.HasPrefix(got[0],
		"GET /api/companies/{companyId}/planted?issueId= shows ") {
		t.Errorf("the open filter is not found: %q", got)
	}
}
