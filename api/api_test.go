package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/live"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

func TestBindOnlyToLoopbackWithoutAuthentication(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:3100": true, "localhost:3100": true, "[::1]:0": true, "127.8.8.8:80": true, "[::ffff:127.0.0.1]:80": true,
		":3100": false, "0.0.0.0:3100": false, "192.168.1.7:3100": false, "[::]:3100": false, "example.org:80": false,
		"3100": false,
	} {
		if err := api.CheckBind(addr, people.LocalTrusted); (err == nil) != ok {
			t.Errorf("CheckBind(%q) = %v, want ok %t", addr, err, ok)
		}
	}
	if err := api.CheckBind("0.0.0.0:3100", people.Authenticated); err != nil {
		t.Error(err)
	}
	if api.CheckBind("127.0.0.1:1", "open") == nil || api.CheckBind("3100", people.Authenticated) == nil {
		t.Error("a mode or an address that is none may listen")
	}
}

func TestEveryRefusalHasAStatusAndFailuresSayNothing(t *testing.T) {
	for code, want := range map[ledger.Code]int{
		ledger.Invalid: 400, ledger.Unauthorized: 401, ledger.Forbidden: 403, ledger.NotFound: 404, ledger.Conflict: 409,
		ledger.TooLarge: 413, ledger.Unprocessable: 422, ledger.TooMany: 429, ledger.Unavailable: 503,
		ledger.Internal: 500, "new": 500,
	} {
		err := fmt.Errorf("checkout: %w", &ledger.Refusal{Code: code, Message: "no",
			Detail: []byte(`{"code":"held","by":"ada"}`)})
		status, body, failure := api.AnswerOf(err)
		if status != want || failure != (want == 500) {
			t.Errorf("%s: answered %d, failure %t, want %d", code, status, failure, want)
		}
		if want < 500 && (body.Error != "no" || body.Code != "held" || string(body.Details) != `{"code":"held","by":"ada"}`) {
			t.Errorf("%s: body %+v", code, body)
		}
	}
	for _, n := range api.NotNow {
		if status, body, _ := api.AnswerOf(fmt.Errorf("x: %w", n.Err)); status != 503 || body.Code != n.Code {
			t.Errorf("%v: answered %d %+v, want 503 %s", n.Err, status, body, n.Code)
		}
	}
	if status, body, failure := api.AnswerOf(errors.New("open /secret: denied")); status != 500 ||
		body.Error != api.InternalError || body.Details != nil || !failure {
		t.Errorf("failure answered %d %+v", status, body)
	}
}

func TestDoorsAndBounds(t *testing.T) {
	h := apitest.NewHarness(t)
	id := h.Company("Acme")
	labels := "/api/companies/" + id + "/labels"
	label := `{"name":"bug","color":"#ff0000"}`
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		text                     string
	}{
		{name: "unknown path", method: "GET", path: "/api/nope", status: 404, text: `{"error":"API route not found"}`},
		{name: "unknown method", method: "PUT", path: "/api/health", status: 404, text: `{"error":"API route not found"}`},
		{name: "unknown bearer", method: "GET", path: labels, headers: []string{"Authorization: Bearer pcp_bogus"},
			status: 401, text: `{"error":"Agent token did not verify; obtain fresh credentials and retry"}`},
		{name: "basic authentication", method: "GET", path: labels, headers: []string{"Authorization: Basic YTpi"},
			status: 401, text: "Agent token did not verify"},
		{name: "another site's name", method: "GET", path: "/api/health", headers: []string{"Host: evil.example"},
			status: 403, text: "Host header is not a name of this node"},
		{name: "another site's page", method: "POST", path: labels, body: label,
			headers: []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, status: 403,
			text: `{"error":"Board mutation requires trusted browser origin"}`},
		{name: "half a body", method: "POST", path: labels, body: `{"name": `, status: 400, text: `"error":"Malformed JSON"`},
		{name: "two of a key", method: "POST", path: labels, body: `{"name":"a","color":"#ff0000","name":"b"}`, status: 400,
			text: "duplicate key"},
		{name: "too large", method: "POST", path: labels, body: `{"name":"` + strings.Repeat("x", api.MaxBody) + `"}`,
			status: 413, text: `"error"`},
		{name: "too deep", method: "POST", path: labels, body: `{"name":` + strings.Repeat("[", 200) +
			strings.Repeat("]", 200) + `}`, status: 400, text: "nested"},
		{name: "no JSON", method: "POST", path: labels, body: "name=bug",
			headers: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 400,
			text: "Expected a JSON body with Content-Type: application/json"},
		{name: "unknown read mode", method: "GET", path: labels, headers: []string{"X-Selvage-Read: fresh"}, status: 400,
			text: "Unknown read mode: expected default, strong or stale"},
		{name: "bad height", method: "GET", path: labels, headers: []string{"X-Selvage-Height: -1"}, status: 400,
			text: "Invalid X-Selvage-Height"},
		{name: "key too long", method: "POST", path: labels, body: label,
			headers: []string{"Idempotency-Key: " + strings.Repeat("k", 300)}, status: 400,
			text: "Idempotency-Key is longer than 255 bytes"},
		{name: "unknown members are ignored", method: "POST", path: labels,
			body: `{"name":"bug","color":"#ff0000","shape":"round"}`, status: 201},
		{name: "agents only", method: "GET", path: "/api/v1/mesh", headers: []string{"Authorization: Bearer pcp_x"},
			status: 401, text: "Agent token did not verify"},
		{name: "entry that is not there", method: "GET", path: "/api/v1/mesh/ledger/entries/9999", status: 404,
			text: "Entry not found"},
		{name: "chain holds", method: "POST", path: "/api/v1/mesh/ledger/verify", status: 200, text: `"ok":true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := h.Call(c.method, c.path, c.body, c.headers...).Want(t, c.status, c.text)
			if a.Header.Get("X-Request-Id") == "" {
				t.Error("no X-Request-Id")
			}
		})
	}
	if a := h.Call("GET", "/api/health", "", "X-Request-Id: abc-1"); a.Header.Get("X-Request-Id") != "abc-1" {
		t.Errorf("request ID %q, want the caller's", a.Header.Get("X-Request-Id"))
	}
	if a := h.Call("GET", "/api/health", "", "X-Request-Id: a b\"c"); a.Header.Get("X-Request-Id") == "a b\"c" {
		t.Error("a request ID that could forge a log line was taken over")
	}
	if !strings.Contains(h.Log.String(), `"request":"abc-1"`) {
		t.Error("the request's ID is not in the log")
	}
}

// Where too few voters hear each other a write says whom the node hears, and whether
// it may have been carried out.
func TestALostQuorumIsToldWithWhoIsHeard(t *testing.T) {
	q := api.Quorum{Silent: []string{"n2", "n3"}, Leaderless: 12 * time.Second}
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.Name, c.Quorum = "n1", func() api.Quorum { return q }
		c.Standing = func() api.Standing { return api.Standing{Age: 12 * time.Second} }
	})
	labels := "/api/companies/" + h.Company("Acme") + "/labels"
	write := func(err error) apitest.Answer {
		h.Node.SetFail(fmt.Errorf("submit: %w", err))
		return h.Call("POST", labels, `{"name":"bug","color":"#ff0000"}`)
	}
	a := write(consensus.ErrNoQuorum).
		Want(t, 503, `"error":"No quorum: n1 hears 0 of 2 others (n2 and n3 are silent). Nothing was changed; `+
			`try again","code":"no_quorum"`)
	a.Want(t, 503, `"details":{"node":"n1","heard":[],"silent":["n2","n3"],"enough":false,"leaderlessSeconds":12,`+
		`"outcome":"none"}`)
	if a.Header.Get("Retry-After") == "" || a.Header.Get("X-Selvage-Node-Name") != "n1" {
		t.Errorf("headers %v", a.Header)
	}
	write(fmt.Errorf("%w: %w", consensus.ErrOutcomeUnknown, consensus.ErrNoQuorum)).
		Want(t, 503, `"code":"outcome_unknown"`).Want(t, 503, "No quorum: n1 hears 0 of 2").
		Want(t, 503, "It is not known whether this was done; repeat it with the same Idempotency-Key").
		Want(t, 503, `"outcome":"unknown"`)
	q = api.Quorum{Heard: []string{"n2"}, Silent: []string{"n3"}, Of: "voters", Enough: true, Leaderless: 7 * time.Second}
	write(consensus.ErrNoQuorum).Want(t, 503,
		"No leader for 7s: n1 hears 1 of 2 voters (n3 is silent). Nothing was changed").Want(t, 503, `"enough":true`)
}

func TestWithoutQuorumReadsGoOnAndWritesSayWhenToTryAgain(t *testing.T) {
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.Standing = func() api.Standing { return api.Standing{Quorum: false, Age: 3 * time.Second} }
		c.Ready = func(context.Context) error { return errors.New("no leader answers") }
	})
	id := h.Company("Acme")
	h.Node.SetFail(fmt.Errorf("submit: %w", consensus.ErrNoLeader))
	labels := "/api/companies/" + id + "/labels"
	a := h.Call("POST", labels, `{"name":"bug","color":"#ff0000"}`).Want(t, 503, `"code":"no_leader"`)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.Call("GET", labels, "", "X-Selvage-Read: strong").Want(t, 503, `"code":"no_leader"`)
	a = h.Call("GET", labels, "", "X-Selvage-Read: stale").Want(t, 200, "[]")
	if got := a.Header.Get("X-Selvage-Quorum") + " " + a.Header.Get("X-Selvage-Age"); got != "lost 3000" {
		t.Errorf("standing %q, want lost 3000", got)
	}
	h.Call("GET", "/readyz", "").Want(t, 503, "no leader answers")
	h.Call("GET", "/healthz", "").Want(t, 200, "ok")
}

// A page that rests asks nothing: its stream says when the node loses its majority, and when it
// hears one again.
func TestAStreamTellsOfALostMajority(t *testing.T) {
	var lost atomic.Bool
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.Standing = func() api.Standing { return api.Standing{Quorum: !lost.Load()} }
	})
	id, s := h.Company("Acme"), h.Serve()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/api/companies/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said []string
	for in := bufio.NewScanner(resp.Body); len(said) < 2 && in.Scan(); {
		switch comment, is := strings.CutPrefix(in.Text(), ": "); {
		case is && strings.HasPrefix(comment, "quorum"):
			said = append(said, comment)
			lost.Store(false)
		case is && strings.HasPrefix(comment, "after"): // the stream is open
			lost.Store(true)
		}
	}
	if !slices.Equal(said, []string{"quorum lost", "quorum"}) {
		t.Errorf("the stream said %q", said)
	}
}

func TestAReadAfterTheHeightOfAWriteSeesIt(t *testing.T) {
	h := apitest.NewHarness(t)
	id := h.Company("Acme")
	a := h.Call("POST", "/api/companies/"+id+"/labels", `{"name":"bug","color":"#ff0000"}`).Want(t, 201, "")
	height := a.Header.Get("X-Selvage-Height")
	if height == "" {
		t.Fatal("the answer to a write has no height")
	}
	h.Call("GET", "/api/companies/"+id+"/labels", "", "X-Selvage-Height: "+height).Want(t, 200, "bug")
}

// What one node has answered, a write on any other knows of: a refusal that rests
// on what this node has not heard of yet is looked at again.
func TestAWriteIsNotRefusedForWhatIsYetToArrive(t *testing.T) {
	h := apitest.NewHarness(t)
	of, goal := ledger.CompanyID(h.Company("Acme")), api.NewID()
	title, change := "Agree", `{"description":"changed"}`
	elsewhere := ledger.Command{Kind: "goal.create", Company: of, Actor: ledger.Actor{Type: "user", ID: api.LocalBoard},
		Credential: ledger.Credential{Kind: "local"},
		Payload:    ledger.Marshal(entity.SaveGoal{ID: goal, Title: &title})}
	h.Node.Late = func() {
		if r, err := h.Node.Submit(t.Context(), elsewhere); err != nil || r.Err() != nil {
			t.Error(err, r.Err())
		}
	}
	h.Call("GET", "/api/goals/"+goal, "").Want(t, 404, "Goal not found")
	h.Call("PATCH", "/api/goals/"+goal, change).Want(t, 200, "changed")
	h.Call("PATCH", "/api/goals/"+api.NewID(), change).Want(t, 404, "Goal not found")

	h.Node.SetFail(errors.New("no quorum"))
	h.Call("PATCH", "/api/goals/"+api.NewID(), change).Want(t, 404, "Goal not found")
}

func TestIdempotencyKeyGivesTheFirstOutcomeAgain(t *testing.T) {
	h := apitest.NewHarness(t)
	path := "/api/companies/" + h.Company("Acme") + "/labels"
	first := h.Call("POST", path, `{"name":"bug","color":"#ff0000"}`, "Idempotency-Key: k1").Want(t, 201, "")
	again := h.Call("POST", path, `{"name":"bug","color":"#ff0000"}`, "Idempotency-Key: k1").Want(t, 201, "")
	if string(first.Body) != string(again.Body) {
		t.Errorf("repeated: %s, first %s", again.Body, first.Body)
	}
	h.Call("POST", path, `{"name":"bog","color":"#ff0000"}`, "Idempotency-Key: k1").Want(t, 422, "idempotency_key_reused")
	refused := h.Call("POST", path, `{"name":"bug","color":"#00ff00"}`, "Idempotency-Key: k2")
	if refused.Status < 400 {
		t.Fatalf("a second label of the same name: %d %s", refused.Status, refused.Body)
	}
	id := first.Field(t, "id")
	h.Call("DELETE", "/api/labels/"+id, "").Want(t, 200, "")
	again = h.Call("POST", path, `{"name":"bug","color":"#00ff00"}`, "Idempotency-Key: k2")
	if again.Status != refused.Status || string(again.Body) != string(refused.Body) {
		t.Errorf("a refusal repeated: %d %s, first %d %s", again.Status, again.Body, refused.Status, refused.Body)
	}
}

func TestASecretShownOnceIsShownAgainToTheSameRequest(t *testing.T) {
	h := apitest.NewHarness(t)
	draw := func(key, body string) string {
		r := httptest.NewRequest("POST", "/x", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		rc := &api.Request{HTTP: r, Server: h.Server, Route: &api.Route{}, W: httptest.NewRecorder(),
			Actor: ledger.Actor{Type: "user", ID: api.LocalBoard}}
		return string(rc.Secret("agent key", 24))
	}
	first, again := draw("k", "a"), draw("k", "a")
	if first != again {
		t.Error("the repeated request shows another secret")
	}
	for name, other := range map[string]string{"another body": draw("k", "b"), "another key": draw("l", "a"),
		"no key": draw("", "a")} {
		if other == first {
			t.Errorf("%s shows the same secret", name)
		}
	}
	if one, two := draw("", "a"), draw("", "a"); one == two {
		t.Error("without a key two requests show the same secret")
	}
}

func TestRunTokenOfAnotherRunIsRefused(t *testing.T) {
	h := apitest.NewHarness(t)
	run := api.NewID()
	claims := identity.RunClaims{Agent: api.NewID(), Company: api.NewID(), Run: run}
	token, err := identity.MintRunToken(apitest.TestDataKey, h.Node.Mesh, claims, h.Node.Wall())
	if err != nil {
		t.Fatal(err)
	}
	h.Call("GET", "/api/adapters", "", "Authorization: Bearer "+token, "X-Paperclip-Run-Id: "+api.NewID()).
		Want(t, 422, `"code":"agent_jwt_run_id_mismatch"`)
	h.Call("GET", "/api/adapters", "", "Authorization: Bearer "+token).
		Want(t, 401, "did not verify") // there is no such run
	foreign, _ := identity.MintRunToken(identity.DataKey{9}, h.Node.Mesh, claims, h.Node.Wall())
	h.Call("GET", "/api/adapters", "", "Authorization: Bearer "+foreign).Want(t, 401, "did not verify")
}

func TestSecretsNeverReachLogsOrErrors(t *testing.T) {
	const canary = "canary-7f3a91"
	h := apitest.NewHarness(t)
	id := h.Company("Acme")
	token, err := identity.MintRunToken(apitest.TestDataKey, h.Node.Mesh, identity.RunClaims{Agent: canary, Company: id,
		Run: api.NewID()}, h.Node.Wall())
	if err != nil {
		t.Fatal(err)
	}
	answers := ""
	for _, a := range []apitest.Answer{
		h.Call("GET", "/api/companies/"+id+"/labels", "", "Authorization: Bearer "+canary),
		h.Call("GET", "/api/companies/"+id+"/labels", "", "Authorization: Bearer "+token),
		h.Call("GET", "/api/companies/"+id+"/events/ws?token="+canary, ""),
		h.Call("GET", "/api/companies/"+id+"/labels?token="+canary, ""),
		h.Call("POST", "/api/companies/"+id+"/labels", `{"name":["`+canary+`"],"color":5}`),
		h.Call("POST", "/api/companies/"+id+"/labels", `{"name":"`+canary),
		h.Call("POST", "/api/companies/"+id+"/labels", `{"name":"x"}`, "Idempotency-Key: "+canary),
	} {
		answers += string(a.Body)
	}
	h.Node.SetFail(errors.New("disk " + canary + " failed"))
	answers += string(h.Call("POST", "/api/companies/"+id+"/labels",
		`{"name":"ok","color":"#ff0000","token":"`+canary+`"}`).Want(t, 500, api.InternalError).Body)
	if strings.Contains(answers, canary) {
		t.Errorf("an answer shows the canary: %s", answers)
	}
	for line := range strings.Lines(h.Log.String()) {
		if strings.Contains(line, canary) && !strings.Contains(line, "disk "+canary) || strings.Contains(line, token) {
			t.Errorf("the log shows the canary: %s", line)
		}
	}
}

// follow opens an event stream and returns a function that reads the next event.
func follow(t *testing.T, url string, headers ...string) (next func() (id, kind, data string), stop func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream answered %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(resp.Body)
	return func() (id, kind, data string) {
			for lines.Scan() {
				name, value, _ := strings.Cut(lines.Text(), ": ")
				switch {
				case name == "id":
					id = value
				case name == "event":
					kind = value
				case name == "data":
					data = value
				case lines.Text() == "" && data != "":
					return id, kind, data
				}
			}
			t.Fatalf("the stream ended: %v", lines.Err())
			return
		}, func() {
			cancel()
			resp.Body.Close()
		}
}

func TestEventsResumeByHeightAndLeaveNothingOut(t *testing.T) {
	h := apitest.NewHarness(t)
	id, other := ledger.CompanyID(h.Company("Acme")), h.Company("Other")
	s := h.Serve()
	url := s.URL + "/api/companies/" + string(id) + "/events"
	next, stop := follow(t, url)
	for i := range 3 {
		h.Call("POST", "/api/companies/"+other+"/labels", fmt.Sprintf(`{"name":"x%d","color":"#ff0000"}`, i)).Want(t, 201, "")
		h.Call("POST", "/api/companies/"+string(id)+"/labels", fmt.Sprintf(`{"name":"l%d","color":"#ff0000"}`, i)).
			Want(t, 201, "")
	}
	var ids []string
	for range 3 {
		at, kind, data := next()
		var ev live.LiveEvent
		if err := json.Unmarshal([]byte(data), &ev); err != nil {
			t.Fatal(err)
		}
		if kind != "activity.logged" || ev.Company != id || fmt.Sprint(ev.ID) != at || !strings.Contains(string(ev.Payload),
			`"label.created"`) {
			t.Errorf("event %s %s %s", at, kind, data)
		}
		ids = append(ids, at)
	}
	stop()
	next, stop = follow(t, url, "Last-Event-ID: "+ids[0])
	for _, want := range ids[1:] {
		if at, _, _ := next(); at != want {
			t.Errorf("resumed at %s, want %s", at, want)
		}
	}
	stop()
	next, stop = follow(t, url+"?after=0")
	defer stop()
	if _, _, data := next(); !strings.Contains(data, "company.created") {
		t.Errorf("from the beginning: %s", data)
	}
	h.Call("GET", "/api/companies/"+api.NewID()+"/events", "").Want(t, 404, "Company not found")
	h.Call("GET", "/api/companies/"+string(id)+"/events?after=x", "").
		Want(t, 400, "Invalid event ID to resume after: expected a height")
}

// Who asks for it is told of denials, and an administrator of what changes at no company.
func TestEventsTellOfTheMeshOnDemand(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	ada := h.Call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","adapterType":"process"}`).Want(t, 201, "").
		Field(t, "id")
	asAda := "Authorization: Bearer " + h.Call("POST", "/api/agents/"+ada+"/keys", `{"name":"k"}`).Want(t, 201, "").
		Field(t, "token")
	url := h.Serve().URL + "/api/companies/" + of + "/events"
	plain, stop := follow(t, url)
	defer stop()
	whole, stop := follow(t, url+"?mesh=true")
	defer stop()
	agents, stop := follow(t, url+"?mesh=true", asAda)
	defer stop()
	const rules = "/api/v1/govern/amendments"
	h.Call("POST", rules,
		`{"rules":[{"id":"ACM-1","branch":"executive","severity":"critical","on":["goal.create"],"when":"rank == `+
			`\"worker\"","reason":"{act} is for managers"}]}`).
		Want(t, 201, "")
	h.Call("POST", rules+"/1/sign", `{}`).Want(t, 200, "")
	h.Call("POST", rules+"/1/enact", "").Want(t, 200, "")
	h.Call("POST", "/api/companies/"+of+"/goals", `{"title":"Grow"}`, asAda).Want(t, 403, "ACM-1")
	h.Call("POST", "/api/companies/"+h.Company("Other")+"/labels", `{"name":"theirs","color":"#ff0000"}`).Want(t, 201, "")
	h.Call("POST", "/api/companies/"+of+"/labels", `{"name":"last","color":"#ff0000"}`).Want(t, 201, "")
	told := func(next func() (string, string, string)) (actions []string) {
		for {
			_, _, data := next()
			var ev struct {
				Company string `json:"companyId"`
				Payload struct{ Action string }
			}
			if err := json.Unmarshal([]byte(data), &ev); err != nil {
				t.Fatal(err)
			}
			if ev.Payload.Action == "company.created" {
				if ev.Company == of {
					t.Errorf("a company that is another one has the ID %s", of)
				}
			} else if (ev.Company == "") != slices.Contains(
				[]string{"governance.proposed", "governance.signed", "governance.amended"},
				ev.Payload.Action) {
				t.Errorf("%s is of company %q", ev.Payload.Action, ev.Company)
			}
			if actions = append(actions, ev.Payload.Action); ev.Payload.Action == "label.created" {
				return actions
			}
		}
	}
	for _, c := range []struct {
		who  string
		next func() (string, string, string)
		want string
	}{
		{"who asks for nothing", plain, "label.created"},
		{"an agent", agents, "governance.denied label.created"},
		{"an administrator", whole,
			"governance.proposed governance.signed governance.amended governance.denied company.created label.created"},
	} {
		if got := strings.Join(told(c.next), " "); got != c.want {
			t.Errorf("%s is told of %s, want %s", c.who, got, c.want)
		}
	}
	h.Call("GET", "/api/companies/"+of+"/events?mesh=maybe", "").Want(t, 400, "Invalid mesh: expected true or false")
}

func TestSocketSendsTheFramesThatClientsKnow(t *testing.T) {
	h := apitest.NewHarness(t)
	id := ledger.CompanyID(h.Company("Acme"))
	s := h.Serve()
	ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, s.URL+"/api/companies/"+string(id)+"/events/ws?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	_, b, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var frame struct {
		ID              float64
		CompanyID       ledger.CompanyID
		Type, CreatedAt string
		Payload         map[string]any
	}
	if err := json.Unmarshal(b, &frame); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"actorType", "actorId", "action", "entityType", "entityId", "agentId", "runId",
		"responsibleUserId", "details"} {
		if _, ok := frame.Payload[key]; !ok {
			t.Errorf("frame %s has no payload.%s", b, key)
		}
	}
	if frame.ID == 0 || frame.CompanyID != id || frame.Type != "activity.logged" || frame.CreatedAt == "" {
		t.Errorf("frame %s", b)
	}
	if _, resp, err := websocket.Dial(ctx, s.URL+"/api/companies/"+string(id)+"/events/ws", &websocket.DialOptions{
		HTTPHeader: http.Header{"Origin": {"https://evil.example"}}}); err == nil || resp == nil || resp.StatusCode != 403 {
		t.Errorf("another site's page may listen: %v", err)
	}
}

func TestDescriptionNamesEveryRoute(t *testing.T) {
	h := apitest.NewHarness(t)
	var spec struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Summary     string
		}
	}
	if err := json.Unmarshal(h.Call("GET", "/openapi.json", "").Want(t, 200, "").Body, &spec); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, r := range h.Routes() {
		op, ok := spec.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok || op.Summary == "" {
			t.Errorf("%s %s is not described", r.Method, r.Path)
		}
		if other := names[op.OperationID]; other != "" {
			t.Errorf("%s %s and %s share the operation ID %s", r.Method, r.Path, other, op.OperationID)
		}
		names[op.OperationID] = r.Method + " " + r.Path
	}
}

func TestMetricsCountRequestsCommandsAndWhatTheNodeHandsIn(t *testing.T) {
	h := apitest.NewHarness(t, func(c *api.Config) {
		c.Stats = []func() []api.Stat{func() []api.Stat {
			return []api.Stat{{Name: "selvage_ledger_entries_total", Help: "Entries.", Value: 7, Counter: true}}
		}}
	})
	h.Call("POST", "/api/companies/"+h.Company("Acme")+"/labels", `{"name":"bug","color":"#ff0000"}`).Want(t, 201, "")
	a := h.Call("GET", "/metrics", "").Want(t, 200, "selvage_ledger_entries_total 7")
	a.Want(t, 200, `selvage_http_requests_total{method="POST",status="201"} 1`)
	a.Want(t, 200, `selvage_commands_total{kind="label.create",outcome="applied"} 1`)
}

func TestAnAgentSpeaksForItselfUntilItsKeyIsRevoked(t *testing.T) {
	h := apitest.NewHarness(t)
	id, other := h.Company("Acme"), h.Company("Other")
	agent := h.Call("POST", "/api/companies/"+id+"/agents",
		`{"name":"Ada","role":"engineer","adapterType":"process","adapterConfig":{"command":"/bin/true"}}`).Want(t, 201, "").
		Field(t, "id")
	made := h.Call("POST", "/api/agents/"+agent+"/keys", `{"name":"laptop"}`).Want(t, 201, `"token":"pcp_`)
	bearer := "Authorization: Bearer " + made.Field(t, "token")
	h.Call("GET", "/api/agents/me", "", bearer).Want(t, 200, agent)
	h.Call("GET", "/api/companies/"+other+"/issues", "", bearer).Want(t, 403, "Agent key cannot access another company")
	h.Call("POST", "/api/companies", `{"name":"nope"}`, bearer).Want(t, 403, "Board access required")
	h.Call("GET", "/api/v1/mesh", "", bearer).Want(t, 403, "Board access required")
	h.Call("GET", "/api/agents/me", "").Want(t, 401, "Agent authentication required")
	h.Call("GET", "/api/agents/me", "", bearer, "X-Paperclip-Run-Id: ../x").
		Want(t, 400, "Invalid X-Paperclip-Run-Id: expected a run's UUID")
	h.Call("DELETE", "/api/agents/"+agent+"/keys/"+made.Field(t, "id"), "").Want(t, 200, "")
	h.Call("GET", "/api/agents/me", "", bearer).Want(t, 401, "did not verify")
	if strings.Contains(h.Log.String(), made.Field(t, "token")) {
		t.Error("the log shows the token")
	}
}

func TestRememberedKeysEndWithTheFeedAndWithTime(t *testing.T) {
	var c api.KeyCache
	hash, now := [32]byte{1}, time.Unix(1000, 0)
	gen := c.Generation()
	key := api.Holder{Company: "k"}
	c.Keep(hash, key, gen, 0, now)
	if _, ok := c.Find(hash, 0, now.Add(api.KeyAge-1)); !ok {
		t.Error("a fresh key is not remembered")
	}
	if _, ok := c.Find(hash, 0, now.Add(api.KeyAge)); ok {
		t.Error("an old key is remembered")
	}
	c.Drop()
	if _, ok := c.Find(hash, 0, now); ok {
		t.Error("a dropped key is remembered")
	}
	if c.Keep(hash, key, gen, 0, now); len(c.Keys) != 0 {
		t.Error("a key that was read before the drop is remembered after it")
	}
	for i := range 2 * api.MaxKeys {
		c.Keep([32]byte{byte(i), byte(i >> 8), 2}, key, c.Generation(), 0, now)
	}
	if len(c.Keys) > api.MaxKeys {
		t.Errorf("%d keys are remembered, want at most %d", len(c.Keys), api.MaxKeys)
	}
}

func FuzzParseBearer(f *testing.F) {
	for _, s := range []string{"Bearer pcp_x", "bearer  a.b.c ", "Basic x", "", "Bearer", "Bearer \x00", "Bearer a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, given, err := api.ParseBearer([]string{s})
		if !given {
			t.Errorf("%q counts as no credential, and so as the board", s)
		}
		if err == nil && (token == "" || len(token) > api.MaxBearer || strings.ContainsAny(token, " \t\r\n\x00")) {
			t.Errorf("%q gives the token %q", s, token)
		}
	})
}
