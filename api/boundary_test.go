package api

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

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

	// Routes about nobody's company, and such as give the same to everybody.
	open := func(r Route) bool {
		return r.Who == Public || !strings.Contains(r.Path, "{") || strings.HasPrefix(r.Path, "/api/skills/") || strings.HasPrefix(r.Path, "/api/llms/") || strings.HasPrefix(r.Path, "/api/adapters/") ||
			strings.HasPrefix(r.Path, "/api/teams/") || strings.HasPrefix(r.Path, "/api/secret-provider-configs/") || strings.HasPrefix(r.Path, "/api/board-claim/")
	}
	everybody := map[string][]string{"an agent": {key}, "an agent in a run": {key, run}, "a person": {h.plantPerson("eve")}}
	before, _ := h.node.ledger.Head()
	tried := 0
	for _, route := range h.Routes() {
		name := route.Method + " " + route.Path
		path, whole := theirs.path(route)
		if route.Who == Admin { // for who administers the instance, whatever it names
			for who, as := range everybody {
				if a := h.call(route.Method, path, theirs.body(route), as...); a.status != 401 && a.status != 403 {
					t.Errorf("%s by %s answered %d %.200s", name, who, a.status, a.body)
				}
			}
			continue
		}
		if route.Who != Public && route.Method == "GET" && !strings.Contains(route.Path, "{") { // lists of what the caller may see
			for who, as := range everybody {
				if a := h.call("GET", path, "", as...); strings.Contains(string(a.body), canaryTown) || strings.Contains(string(a.body), theirs.of) || a.status >= 500 {
					t.Errorf("%s shows %s %d %.300s", name, who, a.status, a.body)
				}
			}
		}
		if open(route) {
			continue
		}
		known := false // a row below one of theirs may be made up: what is above guards it
		for _, v := range theirs.values {
			known = known || strings.Contains(path+"/", "/"+v+"/")
		}
		if !whole && !known {
			t.Errorf("%s names a row of which the town has none: add one to newTown", name)
		}
		body, headers := theirs.body(route), []string(nil)
		if strings.HasSuffix(route.Path, "/attachments") || strings.HasSuffix(route.Path, "/images") || strings.HasSuffix(route.Path, "/logo") {
			if route.Method == "POST" {
				form, contentType := formOf(t, "x.png", "image/png", dot())
				body, headers = form, []string{contentType}
			}
		}
		if strings.HasPrefix(route.Path, "/api/environments/") { // that of all companies; what is on it is shown to its company
			for _, as := range []string{key, h.plantPerson("eve")} {
				if a := h.call(route.Method, path, body, as); strings.Contains(string(a.body), theirs.run) || strings.Contains(string(a.body), canaryTown) {
					t.Errorf("%s shows %s", name, a.body)
				}
			}
			continue
		}
		for who, as := range everybody {
			tried++
			a := h.call(route.Method, path, body, append(as, headers...)...)
			if a.status != 401 && a.status != 403 && a.status != 404 {
				t.Errorf("%s by %s answered %d %.200s to %.200s", name, who, a.status, a.body, body)
			}
			if strings.Contains(string(a.body), canaryTown) {
				t.Errorf("%s shows %s a row: %.300s", name, who, a.body)
			}
		}
	}
	if tried < 600 {
		t.Errorf("only %d requests were tried", tried)
	}
	h.call("GET", "/api/v1/mesh", "", h.plantPerson("eve")).want(t, 403, "Instance admin required")
	for _, path := range []string{"/api/instance/settings/general", "/api/instance/settings/experimental", "/api/v1/execute"} {
		for who, as := range everybody {
			method, body := "PATCH", `{}`
			if strings.HasSuffix(path, "execute") {
				method, body = "POST", `{"agent_id":"`+theirs.agent+`","task":"x"}`
			}
			if a := h.call(method, path, body, as...); a.status != 401 && a.status != 403 && a.status != 404 {
				t.Errorf("%s by %s answered %d %.200s", path, who, a.status, a.body)
			}
		}
	}
	if after, _ := h.node.ledger.Head(); after != before {
		for e, err := range h.node.ledger.Entries(t.Context(), before) {
			if err != nil || e.Height >= after {
				break
			}
			if e.Company == theirs.of && e.Outcome == ledger.Applied {
				t.Errorf("%s came into their chain", e.Kind)
			}
		}
	}
}

// TestBodiesOfOthersRowsNameNothing gives an agent of one company, in its own
// company, the rows of another in every field that takes an ID.
func TestBodiesNameNoRowsOfOthers(t *testing.T) {
	h := newHarness(t)
	theirs, ours := newTown(h, "Theirs"), newTown(h, "Ours")
	free := map[string]string{ // IDs that are no rows
		"commentClientRequestId": "the client's own", "clientRequestId": "the client's own", "orderedIds": "what is gone stays in a person's order",
		"originRunId": "told by who made it, like originId", "runtimeServiceId": "of services that the mesh does not know",
	}
	before, _ := h.node.ledger.Head()
	tried := 0
	for _, route := range h.Routes() {
		if route.In == nil || route.Who == Public || !strings.Contains(route.Path, "{") {
			continue
		}
		path, _ := ours.path(route)
		for _, f := range planOf(reflect.TypeOf(route.In)).fields {
			inner := f.plan
			list := false
			for inner.elem != nil {
				list = list || inner.shape == isList && !inner.ptr && !inner.opt
				inner = inner.elem
			}
			if f.rules.format != "uuid" || inner.shape != isString || free[f.name] != "" {
				continue
			}
			for where, id := range theirs.values {
				if !IsUUID(id) || where == "environments" {
					continue
				}
				var body map[string]any
				if err := json.Unmarshal([]byte(ours.body(route)), &body); err != nil {
					t.Fatal(err)
				}
				if body[f.name] = id; list {
					body[f.name] = []string{id}
				}
				tried++
				b, _ := json.Marshal(body)
				a := h.call(route.Method, path, string(b))
				if a.status >= 500 || strings.Contains(string(a.body), id) && a.status < 300 {
					t.Errorf("%s %s took %s of another company for %s: %d %.300s", route.Method, route.Path, where, f.name, a.status, a.body)
					break
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d requests were tried", tried)
	}
	for field, where := range map[string]string{"issueId": "issues", "taskId": "issues", "commentId": "issues/comments", "approvalId": "approvals"} { // in what no plan describes
		h.call("POST", "/api/agents/"+ours.agent+"/wakeup", `{"payload":{"`+field+`":"`+theirs.values[where]+`"}}`).want(t, 404, "not found")
	}
	after, _ := h.node.ledger.Head()
	for e, err := range h.node.ledger.Entries(t.Context(), before) {
		if err != nil || e.Height >= after {
			break
		}
		if e.Company == theirs.of && e.Outcome == ledger.Applied {
			t.Errorf("%s came into their chain", e.Kind)
		}
	}
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
