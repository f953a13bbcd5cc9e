package api

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

// plantPerson makes the server remember a board key of a user.
func (h *harness) plantPerson(user string) (bearer string) {
	token := boardTokenPrefix + user
	h.keys.keep(sha256.Sum256([]byte(token)), holder{actor: ledger.Actor{Type: "user", ID: user}, cred: ledger.Credential{Kind: "board_key", ID: NewID()}},
		h.keys.generation(), 0, time.Now())
	return "Authorization: Bearer " + token
}

// TestNobodyReachesIntoAnotherCompany goes through the whole table, with bodies
// that would do, as an agent of another company and as a person who is in none.
func TestNobodyReachesIntoAnotherCompany(t *testing.T) {
	h := newHarness(t)
	theirs, ours := newTown(h, "Theirs"), h.company("Ours")
	mine := h.call("POST", "/api/companies/"+ours+"/agents", `{"name":"Mine","adapterType":"process"}`).want(t, 201, "").field(t, "id")
	key := "Authorization: Bearer " + h.call("POST", "/api/agents/"+mine+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	run := "X-Paperclip-Run-Id: " + h.running(ours, mine)
	for _, got := range theirs.keepOut(map[string][]string{"an agent": {key}, "an agent in a run": {key, run}, "a person": {h.plantPerson("eve")}}) {
		t.Error(got)
	}
}

// TestMembersStayInTheirCompany goes through the whole table where everybody
// signs in, as members of another company, of each role, by session and by key.
func TestMembersStayInTheirCompany(t *testing.T) {
	h := peopled(t)
	ann := h.admin()
	h.as = []string{ann, ownOrigin}
	theirs, ours := newTown(h, "Theirs"), h.company("Ours")
	everybody := map[string][]string{}
	for _, role := range []people.Role{people.RoleOwner, people.RoleAdmin, people.RoleOperator, people.RoleViewer} {
		cookie, _ := h.join(ours, ann, "a-"+string(role), role)
		h.call("GET", "/api/companies/"+ours, "", cookie).want(t, 200, `"Ours"`)
		everybody["the "+string(role)+" of another company"] = []string{cookie, ownOrigin}
		key := "Authorization: Bearer " + h.call("POST", "/api/board-api-keys", `{"name":"k"}`, cookie, ownOrigin).want(t, 201, "").field(t, "token")
		h.call("GET", "/api/companies/"+ours, "", key).want(t, 200, `"Ours"`)
		everybody["a key of the "+string(role)+" of another company"] = []string{key}
	}
	// Who left, and who was a member of this very company before.
	gone, left := h.join(theirs.of, ann, "left", people.RoleOwner)
	for _, m := range h.call("GET", "/api/companies/"+theirs.of+"/members", "").want(t, 200, "").decode(t).(map[string]any)["members"].([]any) {
		if m := m.(map[string]any); m["principalId"] == left {
			h.call("POST", "/api/companies/"+theirs.of+"/members/"+m["id"].(string)+"/archive", `{}`).want(t, 200, "")
		}
	}
	everybody["who was an owner before"] = []string{gone, ownOrigin}
	for _, got := range theirs.keepOut(everybody) {
		t.Error(got)
	}
}

// plant adds a route to the table of a harness.
func (h *harness) plant(route Route) {
	h.routes = append(h.routes, route)
	h.mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) { h.Server.serve(&route, w, r) })
}

// Doors that are left open on purpose are found.
func TestOpenDoorsAreFound(t *testing.T) {
	h := peopled(t)
	ann := h.admin()
	h.as = []string{ann, ownOrigin}
	theirs, ours := newTown(h, "Theirs"), h.company("Ours")
	owner, _ := h.join(ours, ann, "olga", people.RoleOwner)
	issue := func(rc *Request) (i company.Issue, err error) {
		err = rc.View(func(tx *ledger.Tx) error {
			i, _ = company.FindIssue(tx, rc.Path("id"))
			return nil
		})
		return i, err
	}
	h.plant(Route{Method: "GET", Path: "/api/issues/{id}/planted", Handle: func(rc *Request) (Response, error) { // whoever asks
		i, err := issue(rc)
		return OK(i), err
	}})
	h.plant(Route{Method: "POST", Path: "/api/issues/{id}/planted", Handle: func(rc *Request) (Response, error) { // in the name of somebody who may
		i, err := issue(rc)
		if err != nil {
			return Response{}, err
		}
		rc.Actor, rc.Credential = ledger.Actor{Type: "node", ID: string(h.node.keys.ID())}, ledger.Credential{Kind: "node", ID: string(h.node.keys.ID())}
		_, err = rc.Submit("run.finish", i.Company, company.Finish{Run: theirs.run, Outcome: company.Outcome{Status: company.RunFailed}})
		return OK(nil), errors.Join(err, Forbidden("no"))
	}})
	h.plant(Route{Method: "GET", Path: "/api/planted", Handle: func(rc *Request) (Response, error) { // those of all
		var names []string
		err := rc.View(func(tx *ledger.Tx) error {
			for _, c := range company.Companies(tx) {
				names = append(names, c.Name)
			}
			return nil
		})
		return OK(names), err
	}})
	got := theirs.keepOut(map[string][]string{"the owner of another company": {owner, ownOrigin}})
	for _, want := range []string{"GET /api/issues/{id}/planted shows the owner of another company a row", "GET /api/planted shows the owner of another company 200", "run.finish came into their chain"} {
		if !slices.ContainsFunc(got, func(bad string) bool { return strings.HasPrefix(bad, want) }) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
}

// open reports whether a route is about nobody's company, or gives the same to
// everybody.
func open(r Route) bool {
	if r.Who == Public || !strings.Contains(r.Path, "{") {
		return true
	}
	for _, of := range []string{"skills", "llms", "adapters", "teams", "secret-provider-configs", "board-claim"} {
		if strings.HasPrefix(r.Path, "/api/"+of+"/") {
			return true
		}
	}
	return false
}

// keepOut asks for all that the table has of a town, as some who have no business
// there: by what they show. It returns what they got.
func (w *town) keepOut(everybody map[string][]string) (got []string) {
	h, t := w.h, w.h.t
	t.Helper()
	fault := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	before, _ := h.node.ledger.Head()
	tried := 0
	for _, route := range h.Routes() {
		name := route.Method + " " + route.Path
		path, whole := w.path(route)
		if route.Who == Admin { // for who administers the instance, whatever it names
			for who, as := range everybody {
				if a := h.call(route.Method, path, w.body(route), as...); a.status != 401 && a.status != 403 {
					fault("%s by %s answered %d %.200s", name, who, a.status, a.body)
				}
			}
			continue
		}
		if route.Who != Public && route.Method == "GET" && !strings.Contains(route.Path, "{") { // lists of what the caller may see
			for who, as := range everybody {
				for _, query := range []string{"", "?companyId=" + w.of} {
					if a := h.call("GET", path+query, "", as...); strings.Contains(string(a.body), canaryTown) || a.status < 300 && strings.Contains(string(a.body), w.of) || a.status >= 500 {
						fault("%s%s shows %s %d %.300s", name, query, who, a.status, a.body)
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
		if strings.HasSuffix(route.Path, "/attachments") || strings.HasSuffix(route.Path, "/images") || strings.HasSuffix(route.Path, "/logo") {
			if route.Method == "POST" {
				form, contentType := formOf(t, "x.png", "image/png", dot())
				body, headers = form, []string{contentType}
			}
		}
		h.forgetRates()
		for who, as := range everybody {
			tried++
			a := h.call(route.Method, path, body, slices.Concat(as, headers)...)
			if strings.Contains(string(a.body), canaryTown) {
				fault("%s shows %s a row: %.300s", name, who, a.body)
			}
			if strings.HasPrefix(route.Path, "/api/environments/") { // that of all companies; what is on it is shown to its company
				if strings.Contains(string(a.body), w.run) {
					fault("%s shows %s %s", name, who, a.body)
				}
				continue
			}
			if a.status != 401 && a.status != 403 && a.status != 404 {
				fault("%s by %s answered %d %.200s to %.200s", name, who, a.status, a.body, body)
			}
		}
	}
	if tried < 200*len(everybody) {
		t.Errorf("only %d requests were tried", tried)
	}
	for who, as := range everybody {
		for _, x := range []struct{ method, path, body string }{
			{"GET", "/api/v1/mesh", ""}, {"PATCH", "/api/instance/settings/general", `{}`}, {"PATCH", "/api/instance/settings/experimental", `{}`},
			{"POST", "/api/v1/execute", `{"agent_id":"` + w.agent + `","task":"x"}`},
		} {
			if a := h.call(x.method, x.path, x.body, as...); a.status != 401 && a.status != 403 && a.status != 404 {
				fault("%s %s by %s answered %d %.200s", x.method, x.path, who, a.status, a.body)
			}
		}
	}
	return append(got, w.touched(before)...)
}

// forgetRates lets everybody ask as if for the first time.
func (h *harness) forgetRates() {
	h.limits.mu.Lock()
	defer h.limits.mu.Unlock()
	h.limits.buckets = nil
}

// touched tells what came into the town's chain after a height.
func (w *town) touched(after uint64) (got []string) {
	w.h.t.Helper()
	head, _ := w.h.node.ledger.Head()
	if head == after {
		return nil
	}
	for e, err := range w.h.node.ledger.Entries(w.h.t.Context(), after) {
		if err != nil {
			w.h.t.Fatal(err)
		}
		if e.Company == w.of && e.Outcome == ledger.Applied {
			got = append(got, e.Kind+" came into their chain")
		}
		if e.Height == head {
			break
		}
	}
	return got
}

func TestTokensAreShownOnceAndKeptNowhere(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
	in := "/api/companies/" + of
	var tokens []string
	keep := func(a answer, fields ...string) answer {
		for _, f := range fields {
			tokens = append(tokens, a.field(t, f))
		}
		return a
	}
	invite := keep(h.call("POST", in+"/invites", `{"allowedJoinTypes":"both"}`).want(t, 201, ""), "token").field(t, "token")
	h.call("GET", "/api/invites/"+invite+"/onboarding.txt", "").want(t, 200, "How to join Acme")
	const canary = "canary-of-an-agent"
	join := keep(h.call("POST", "/api/invites/"+invite+"/accept", `{"requestType":"agent","agentName":"J","adapterType":"http","agentDefaultsPayload":{"url":"http://127.0.0.1:9/x","env":{"A":"`+canary+`"}}}`).want(t, 202, ""), "claimSecret")
	tokens = append(tokens, canary)
	h.call("GET", in+"/attention", "").want(t, 200, `"join_request":1`)
	h.call("GET", in+"/sidebar-badges", "").want(t, 200, `"joinRequests":1`)
	h.call("POST", in+"/join-requests/"+join.field(t, "id")+"/approve", "{}").want(t, 200, "approved")
	claim := `{"claimSecret":"` + join.field(t, "claimSecret") + `"}`
	path := join.field(t, "claimApiKeyPath")
	agent := keep(h.call("POST", path, claim).want(t, 201, ""), "token").field(t, "token")
	h.call("POST", path, claim).want(t, 409, "already used")
	h.call("GET", "/api/agents/me", "", "Authorization: Bearer "+agent).want(t, 200, `"J"`)

	ch := keep(h.call("POST", "/api/cli-auth/challenges", `{"command":"test"}`).want(t, 201, ""), "token", "boardApiToken")
	poll, secret := "/api"+ch.field(t, "pollPath")+"?token="+ch.field(t, "token"), `{"token":"`+ch.field(t, "token")+`"}`
	bearer := "Authorization: Bearer " + ch.field(t, "boardApiToken")
	h.call("GET", "/api/cli-auth/me", "", bearer).want(t, 401, "")
	h.call("GET", poll, "").want(t, 200, `"pending"`)
	h.call("POST", "/api/cli-auth/challenges/"+ch.field(t, "id")+"/approve", secret).want(t, 200, `"approved":true`)
	h.call("GET", poll, "").want(t, 200, `"approved"`)
	h.call("GET", "/api/cli-auth/me", "", bearer).want(t, 200, `"source":"board_key"`)
	h.call("POST", in+"/issues", `{"title":"by key"}`, bearer).want(t, 201, "")
	h.call("POST", "/api/cli-auth/revoke-current", "", bearer).want(t, 200, `"revoked":true`)
	h.call("GET", "/api/cli-auth/me", "", bearer).want(t, 401, "")

	log, rows := h.log.String(), ""
	err := h.node.ledger.View(func(tx *ledger.Tx) error {
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
	for e, err := range h.node.ledger.Entries(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows += string(ledger.Marshal(e))
		if head, _ := h.node.ledger.Head(); e.Height == head {
			break
		}
	}
	for i, token := range tokens {
		if strings.Contains(log, token) || strings.Contains(rows, token) {
			t.Errorf("token %d is in the log (%v) or in a row (%v)", i, strings.Contains(log, token), strings.Contains(rows, token))
		}
	}
}
