package api_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// TestNobodyReachesIntoAnotherCompany goes through the whole table, with bodies
// that would do, as an agent of another company and as a person who is in none.
func TestNobodyReachesIntoAnotherCompany(t *testing.T) {
	h := apitest.NewHarness(t)
	theirs, ours := newTown(h, "Theirs"), ledger.CompanyID(h.Company("Ours"))
	mine := h.Call("POST", "/api/companies/"+string(ours)+"/agents", `{"name":"Mine","adapterType":"process"}`).
		Want(t, 201, "").Field(t, "id")
	key := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+mine+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	run := "X-Paperclip-Run-Id: " + h.Running(ours, mine)
	for _, got := range theirs.keepOut(map[string][]string{"an agent": {key}, "an agent in a run": {key, run},
		"a person": {h.PlantPerson("eve")}}) {
		t.Error(got)
	}
}

// TestMembersStayInTheirCompany goes through the whole table where everybody
// signs in, as members of another company, of each role, by session and by key.
func TestMembersStayInTheirCompany(t *testing.T) {
	h := apitest.Peopled(t)
	ann := h.Admin()
	h.As = []string{ann, apitest.OwnOrigin}
	theirs, ours := newTown(h, "Theirs"), ledger.CompanyID(h.Company("Ours"))
	everybody := map[string][]string{}
	for _, role := range []people.Role{people.RoleOwner, people.RoleAdmin, people.RoleOperator, people.RoleViewer} {
		cookie, _ := h.Join(ours, ann, "a-"+string(role), role)
		h.Call("GET", "/api/companies/"+string(ours), "", cookie).Want(t, 200, `"Ours"`)
		everybody["the "+string(role)+" of another company"] = []string{cookie, apitest.OwnOrigin}
		key := "Authorization: Bearer " + h.Call("POST", "/api/board-api-keys", `{"name":"k"}`, cookie, apitest.OwnOrigin).
			Want(t, 201, "").Field(t, "token")
		h.Call("GET", "/api/companies/"+string(ours), "", key).Want(t, 200, `"Ours"`)
		everybody["a key of the "+string(role)+" of another company"] = []string{key}
	}
	// Who left, and who was a member of this very company before.
	gone, left := h.Join(ledger.CompanyID(theirs.of), ann, "left", people.RoleOwner)
	for _, m := range h.Call("GET", "/api/companies/"+theirs.of+"/members", "").Want(t, 200, "").
		Decode(t).(map[string]any)["members"].([]any) {
		if m := m.(map[string]any); m["principalId"] == left {
			h.Call("POST", "/api/companies/"+theirs.of+"/members/"+m["id"].(string)+"/archive", `{}`).Want(t, 200, "")
		}
	}
	everybody["who was an owner before"] = []string{gone, apitest.OwnOrigin}
	for _, got := range theirs.keepOut(everybody) {
		t.Error(got)
	}
}

// Doors that are left open on purpose are found.
func TestOpenDoorsAreFound(t *testing.T) {
	h := apitest.Peopled(t)
	ann := h.Admin()
	h.As = []string{ann, apitest.OwnOrigin}
	theirs, ours := newTown(h, "Theirs"), ledger.CompanyID(h.Company("Ours"))
	owner, _ := h.Join(ours, ann, "olga", people.RoleOwner)
	issue := func(rc *api.Request) (i entity.Issue, err error) {
		err = rc.View(func(tx *ledger.Tx) error {
			i, _ = entity.FindIssue(tx, rc.Path("id"))
			return nil
		})
		return i, err
	}
	h.Plant(api.Route{Method: "GET", Path: "/api/issues/{id}/planted", Handle: func(rc *api.Request) (api.Response,
		error) { // whoever asks
		i, err := issue(rc)
		return api.OK(i), err
	}})
	h.Plant(api.Route{Method: "POST", Path: "/api/issues/{id}/planted", Handle: func(rc *api.Request) (api.Response,
		error) { // in the name of somebody who may
		i, err := issue(rc)
		if err != nil {
			return api.Response{}, err
		}
		rc.Actor, rc.Credential = ledger.Actor{Type: "node", ID: string(h.Node.Keys.ID())}, ledger.Credential{Kind: "node",
			ID: string(h.Node.Keys.ID())}
		_, err = rc.Submit("run.finish", i.Company, company.Finish{Run: theirs.run,
			Outcome: company.Outcome{Status: entity.RunFailed}})
		return api.OK(nil), errors.Join(err, api.Forbidden("no"))
	}})
	h.Plant(api.Route{Method: "GET", Path: "/api/planted", Handle: func(rc *api.Request) (api.Response,
		error) { // those of all
		var names []string
		err := rc.View(func(tx *ledger.Tx) error {
			for _, c := range entity.Companies(tx) {
				names = append(names, c.Name)
			}
			return nil
		})
		return api.OK(names), err
	}})
	got := theirs.keepOut(map[string][]string{"the owner of another company": {owner, apitest.OwnOrigin}})
	for _, want := range []string{"GET /api/issues/{id}/planted shows the owner of another company a row",
		"GET /api/planted shows the owner of another company 200", "run.finish came into their chain"} {
		if !slices.ContainsFunc(got, func(bad string) bool { return strings.HasPrefix(bad, want) }) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

// open reports whether a route is about nobody's company, or gives the same to
// everybody.
func open(r api.Route) bool {
	if r.Who == api.Public || !strings.Contains(r.Path, "{") {
		return true
	}
	for _, of := range []string{"skills", "llms", "adapters", "teams", "secret-provider-configs", "board-claim",
		"v1/govern/packs", "v1/govern/amendments", "v1/topics", "v1/subscriptions", "v1/ipc", "v1/cron", "v1/services"} {
		if strings.HasPrefix(r.Path, "/api/"+of+"/") {
			return true
		}
	}
	return false
}

// keepOut asks for all that the table has of a town, as some who have no business
// there: by what they show. It returns what they got.
func (w *town) keepOut(everybody map[string][]string) (got []string) {
	h, t := w.h, w.h.T
	t.Helper()
	fault := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	before, _ := h.Node.Ledger.Head()
	tried := 0
	for _, route := range h.Routes() {
		name := route.Method + " " + route.Path
		path, whole := w.path(route)
		if route.Who == api.Admin { // for who administers the instance, whatever it names
			for who, as := range everybody {
				if a := h.Call(route.Method, path, w.body(route), as...); a.Status != 401 && a.Status != 403 {
					fault("%s by %s answered %d %.200s", name, who, a.Status, a.Body)
				}
			}
			continue
		}
		if route.Who != api.Public && route.Method == "GET" && !strings.Contains(route.Path,
			"{") { // lists of what the caller may see
			for who, as := range everybody {
				for _, query := range []string{"", "?companyId=" + w.of} {
					if a := h.Call("GET", path+query, "", as...); strings.Contains(string(a.Body), canaryTown) || a.Status < 300 &&
						strings.Contains(string(a.Body), w.of) || a.Status >= 500 {
						fault("%s%s shows %s %d %.300s", name, query, who, a.Status, a.Body)
					}
				}
			}
		}
		if open(route) {
			continue
		}
		known := false // a row below one of theirs may be made up: what is above guards it
		for _, v := range w.values {
			known = known || strings.Contains(path+"/", "/"+v+"/")
		}
		if !whole && !known {
			t.Errorf("%s names a row of which the town has none: add one to newTown", name)
		}
		body, headers := w.body(route), []string(nil)
		if strings.HasSuffix(route.Path, "/attachments") || strings.HasSuffix(route.Path, "/images") ||
			strings.HasSuffix(route.Path, "/logo") {
			if route.Method == "POST" {
				form, contentType := apitest.FormOf(t, "x.png", "image/png", apitest.Dot())
				body, headers = form, []string{contentType}
			}
		}
		h.ForgetRates()
		for who, as := range everybody {
			tried++
			a := h.Call(route.Method, path, body, slices.Concat(as, headers)...)
			if strings.Contains(string(a.Body), canaryTown) {
				fault("%s shows %s a row: %.300s", name, who, a.Body)
			}
			if strings.HasPrefix(route.Path,
				"/api/environments/") { // that of all companies; what is on it is shown to its company
				if strings.Contains(string(a.Body), w.run) {
					fault("%s shows %s %s", name, who, a.Body)
				}
				continue
			}
			if a.Status != 401 && a.Status != 403 && a.Status != 404 {
				fault("%s by %s answered %d %.200s to %.200s", name, who, a.Status, a.Body, body)
			}
		}
	}
	if tried < 200*len(everybody) {
		t.Errorf("only %d requests were tried", tried)
	}
	for who, as := range everybody {
		for _, x := range []struct{ method, path, body string }{
			{"GET", "/api/v1/mesh", ""}, {"PATCH", "/api/instance/settings/general", `{}`},
			{"PATCH", "/api/instance/settings/experimental", `{}`},
			{"POST", "/api/v1/execute", `{"agent_id":"` + w.agent + `","task":"x"}`},
		} {
			if a := h.Call(x.method, x.path, x.body, as...); a.Status != 401 && a.Status != 403 && a.Status != 404 {
				fault("%s %s by %s answered %d %.200s", x.method, x.path, who, a.Status, a.Body)
			}
		}
	}
	return append(got, w.touched(before)...)
}

// touched tells what came into the town's chain after a height.
func (w *town) touched(after uint64) (got []string) {
	w.h.T.Helper()
	head, _ := w.h.Node.Ledger.Head()
	if head == after {
		return nil
	}
	for e, err := range w.h.Node.Ledger.Entries(w.h.T.Context(), after) {
		if err != nil {
			w.h.T.Fatal(err)
		}
		if e.Company == ledger.CompanyID(w.of) && e.Outcome == ledger.Applied {
			got = append(got, e.Kind+" came into their chain")
		}
		if e.Height == head {
			break
		}
	}
	return got
}

func TestTokensAreShownOnceAndKeptNowhere(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of
	var tokens []string
	keep := func(a apitest.Answer, fields ...string) apitest.Answer {
		for _, f := range fields {
			tokens = append(tokens, a.Field(t, f))
		}
		return a
	}
	invite := keep(h.Call("POST", in+"/invites", `{"allowedJoinTypes":"both"}`).Want(t, 201, ""), "token").
		Field(t, "token")
	h.Call("GET", "/api/invites/"+invite+"/onboarding.txt", "").Want(t, 200, "How to join Acme")
	const canary = "canary-of-an-agent"
	join := keep(h.Call("POST", "/api/invites/"+invite+"/accept",
		`{"requestType":"agent","agentName":"J","adapterType":"http",`+
			`"agentDefaultsPayload":{"url":"http://127.0.0.1:9/x","env":{"A":"`+canary+`"}}}`).Want(t, 202, ""), "claimSecret")
	tokens = append(tokens, canary)
	h.Call("GET", in+"/attention", "").Want(t, 200, `"join_request":1`)
	h.Call("GET", in+"/sidebar-badges", "").Want(t, 200, `"joinRequests":1`)
	h.Call("POST", in+"/join-requests/"+join.Field(t, "id")+"/approve", "{}").Want(t, 200, "approved")
	claim := `{"claimSecret":"` + join.Field(t, "claimSecret") + `"}`
	path := join.Field(t, "claimApiKeyPath")
	agent := keep(h.Call("POST", path, claim).Want(t, 201, ""), "token").Field(t, "token")
	h.Call("POST", path, claim).Want(t, 409, "already used")
	h.Call("GET", "/api/agents/me", "", "Authorization: Bearer "+agent).Want(t, 200, `"J"`)

	ch := keep(h.Call("POST", "/api/cli-auth/challenges", `{"command":"test"}`).Want(t, 201, ""), "token", "boardApiToken")
	poll, secret := "/api"+ch.Field(t, "pollPath")+"?token="+ch.Field(t, "token"), `{"token":"`+ch.Field(t, "token")+`"}`
	bearer := "Authorization: Bearer " + ch.Field(t, "boardApiToken")
	h.Call("GET", "/api/cli-auth/me", "", bearer).
		Want(t, 401, "Agent token did not verify; obtain fresh credentials and retry")
	h.Call("GET", poll, "").Want(t, 200, `"pending"`)
	h.Call("POST", "/api/cli-auth/challenges/"+ch.Field(t, "id")+"/approve", secret).Want(t, 200, `"approved":true`)
	h.Call("GET", poll, "").Want(t, 200, `"approved"`)
	h.Call("GET", "/api/cli-auth/me", "", bearer).Want(t, 200, `"source":"board_key"`)
	h.Call("POST", in+"/issues", `{"title":"by key"}`, bearer).Want(t, 201, "")
	h.Call("POST", "/api/cli-auth/revoke-current", "", bearer).Want(t, 200, `"revoked":true`)
	h.Call("GET", "/api/cli-auth/me", "", bearer).
		Want(t, 401, "Agent token did not verify; obtain fresh credentials and retry")

	log, rows := h.Log.String(), ""
	err := h.Node.Ledger.View(func(tx *ledger.Tx) error {
		var b strings.Builder
		for k, v := range tx.Prefix(nil) {
			b.Write(k)
			b.Write(v)
		}
		rows = b.String()
		return nil
	})
	if err != nil || len(rows) < 1000 {
		t.Fatalf("%d bytes of rows, %v", len(rows), err)
	}
	for e, err := range h.Node.Ledger.Entries(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows += string(ledger.Marshal(e))
		if head, _ := h.Node.Ledger.Head(); e.Height == head {
			break
		}
	}
	for i, token := range tokens {
		if strings.Contains(log, token) || strings.Contains(rows, token) {
			t.Errorf("token %d is in the log (%v) or in a row (%v)", i, strings.Contains(log, token),
				strings.Contains(rows, token))
		}
	}
}
