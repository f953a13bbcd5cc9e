package api

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// TestNobodyReachesIntoAnotherCompany goes through the whole table with an
// agent of another company, and with a person who is in none.
func TestNobodyReachesIntoAnotherCompany(t *testing.T) {
	h := newHarness(t)
	const canary = "canary-row"
	ours, theirs := h.company("Ours"), h.company("Theirs "+canary)
	agent := func(of, name string) string {
		return h.call("POST", "/api/companies/"+of+"/agents", `{"name":"`+name+`","adapterType":"process"}`).want(t, 201, "").field(t, "id")
	}
	mine, other := agent(ours, "Mine"), agent(theirs, canary)
	key := "Authorization: Bearer " + h.call("POST", "/api/agents/"+mine+"/keys", `{"name":"k"}`).want(t, 201, "").field(t, "token")
	in := "/api/companies/" + theirs
	id := func(a answer) string { return a.want(t, 201, "").field(t, "id") }
	goal := id(h.call("POST", in+"/goals", `{"title":"`+canary+`"}`))
	project := id(h.call("POST", in+"/projects", `{"name":"`+canary+`"}`))
	issue := id(h.call("POST", in+"/issues", `{"title":"`+canary+`"}`))
	label := id(h.call("POST", in+"/labels", `{"name":"`+canary+`","color":"#ff0000"}`))
	secret := id(h.call("POST", in+"/secrets", `{"name":"`+canary+`","value":"hidden"}`))
	invite := id(h.call("POST", in+"/invites", `{}`))
	approval := id(h.call("POST", in+"/approvals", `{"type":"request_board_approval","payload":{"title":"`+canary+`"}}`))
	run := h.call("POST", "/api/agents/"+other+"/heartbeat/invoke", `{}`).want(t, 202, "").field(t, "id")

	// Which row of theirs a path value means, by what stands before it.
	rows := map[string]string{"companies": theirs, "agents": other, "goals": goal, "projects": project, "issues": issue, "labels": label, "secrets": secret,
		"approvals": approval, "heartbeat-runs": run, "invites": invite}
	const outsider = "pcp_board_outsider"
	plant := func() { // a key of a person who is in no company
		hash := sha256.Sum256([]byte(outsider))
		h.keys.keep(hash, holder{actor: ledger.Actor{Type: "user", ID: "eve"}, cred: ledger.Credential{Kind: "board_key", ID: NewID()}}, h.keys.generation(), 0, time.Now())
	}
	before, _ := h.node.ledger.Head()
	tried := 0
	for _, route := range h.Routes() {
		if route.Who == Public || !strings.Contains(route.Path, "{") {
			continue
		}
		parts, theirsIs := strings.Split(route.Path, "/"), false
		for i, p := range parts {
			if !strings.HasPrefix(p, "{") {
				continue
			}
			if row, ok := rows[parts[i-1]]; ok {
				parts[i], theirsIs = row, true
			} else {
				parts[i] = NewID()
			}
		}
		if !theirsIs {
			continue
		}
		path, body := strings.Join(parts, "/"), ""
		if route.Method != "GET" && route.Method != "DELETE" {
			body = `{}`
		}
		plant()
		for who, bearer := range map[string]string{"an agent": key, "a person": "Authorization: Bearer " + outsider} {
			tried++
			a := h.call(route.Method, path, body, bearer)
			if a.status != 401 && a.status != 403 && a.status != 404 && a.status != 400 && a.status != 422 {
				t.Errorf("%s %s by %s answered %d %.200s", route.Method, route.Path, who, a.status, a.body)
			}
			if strings.Contains(string(a.body), canary) {
				t.Errorf("%s %s shows %s a row: %.300s", route.Method, route.Path, who, a.body)
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d requests were tried", tried)
	}
	plant()
	for _, path := range []string{"/api/companies", "/api/companies/stats"} {
		for _, bearer := range []string{key, "Authorization: Bearer " + outsider} {
			if a := h.call("GET", path, "", bearer); strings.Contains(string(a.body), canary) || strings.Contains(string(a.body), theirs) {
				t.Errorf("%s shows %s", path, a.body)
			}
		}
	}
	h.call("GET", "/api/v1/mesh", "", "Authorization: Bearer "+outsider).want(t, 403, "Instance admin required")
	if after, _ := h.node.ledger.Head(); after != before {
		for e, err := range h.node.ledger.Entries(t.Context(), before) {
			if err != nil || e.Height >= after {
				break
			}
			if e.Company == theirs {
				t.Errorf("%s came into their chain", e.Kind)
			}
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
