package routine_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/api/routine"
	"github.com/selvage-mesh/selvage/ledger"
)

func signed(secret string, parts ...string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(strings.Join(parts, ".")))
	return hex.EncodeToString(m.Sum(nil))
}

// Webhooks of a paused or archived company create no work, as its schedules do not. A
// refused delivery may be sent again.
func TestAWebhookOfACompanyAtRestDoesNotFire(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	path, _, secret := h.Hook(t, "github_hmac")
	var list []struct{ ID string }
	if err := json.Unmarshal(h.Call("GET", "/api/companies", "").Body, &list); err != nil || len(list) != 1 {
		t.Fatal(err, list)
	}
	of := "/api/companies/" + list[0].ID
	const body = `{"what":"bugs"}`
	good := "X-Hub-Signature-256: sha256=" + signed(secret, body)
	h.Call("PATCH", of, `{"status":"paused"}`).Want(t, 200, `"status":"paused"`)
	h.Call("POST", path, body, "X-Hub-Signature-256: sha256=00").Want(t, 401, "Webhook signature did not verify")
	h.Call("POST", path, body, good).Want(t, 409, "The company is not active").Want(t, 409, `"status":"paused"`)
	h.Call("GET", of+"/issues", "").Want(t, 200, "[]")
	h.Call("PATCH", of, `{"status":"active"}`).Want(t, 200, `"status":"active"`)
	h.Call("POST", path, body, good).Want(t, 202, `"status":"issue_created"`)
	h.Call("POST", of+"/archive", "").Want(t, 200, "")
	h.Call("POST", path, body+" ", "X-Hub-Signature-256: sha256="+signed(secret, body+" ")).
		Want(t, 409, `"status":"archived"`)
}

func TestWebhooksAreVerified(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	const body = `{"what":"bugs"}`
	want := func(a apitest.Answer, status int, what string) {
		t.Helper()
		if a.Status != status {
			t.Errorf("%s: %d %s, want %d", what, a.Status, a.Body, status)
		}
	}
	path, trigger, secret := h.Hook(t, "bearer")
	want(h.Call("POST", path, body), 401, "bearer: without one")
	want(h.Call("POST", path, body, "Authorization: Bearer wrong"), 401, "bearer: a wrong one")
	want(h.Call("POST", path, body, "Authorization: Bearer "+secret), 202, "bearer")
	want(h.Call("POST", path, body, "Authorization: Bearer "+secret), 202, "bearer: again")
	want(h.Call("POST", path, `{"what":`, "Authorization: Bearer "+secret), 400, "bearer: not JSON")
	want(h.Call("POST", path, `{"what":"`+strings.Repeat("x", 70_000)+`"}`, "Authorization: Bearer "+secret), 413,
		"bearer: too long")
	rotated := h.Call("POST", "/api/routine-triggers/"+trigger+"/rotate-secret", "")
	want(rotated, 200, "rotate")
	want(h.Call("POST", path, body, "Authorization: Bearer "+secret), 401, "bearer: the one before")
	var made routine.TriggerAnswer
	if err := json.Unmarshal(rotated.Body, &made); err != nil {
		t.Fatal(err)
	}
	want(h.Call("POST", path, body, "Authorization: Bearer "+made.Secret.Secret), 202, "bearer: the new one")
	want(h.Call("PATCH", "/api/routine-triggers/"+trigger, `{"enabled":false}`), 200, "switch off")
	want(h.Call("POST", path, body, "Authorization: Bearer "+made.Secret.Secret), 409, "bearer: switched off")
	want(h.Call("DELETE", "/api/routine-triggers/"+trigger, ""), 200, "delete")
	want(h.Call("POST", path, body, "Authorization: Bearer "+made.Secret.Secret), 404, "bearer: gone")

	path, _, secret = h.Hook(t, "hmac_sha256")
	now := strconv.FormatInt(h.Node.Wall().Unix(), 10)
	old := strconv.FormatInt(h.Node.Wall().Add(-6*time.Minute).Unix(), 10)
	want(h.Call("POST", path, body), 401, "hmac: without a signature")
	want(h.Call("POST", path, body, "X-Paperclip-Timestamp: "+now, "X-Paperclip-Signature: "+signed(secret, now,
		body+" ")), 401, "hmac: of another body")
	want(h.Call("POST", path, body, "X-Paperclip-Timestamp: "+old, "X-Paperclip-Signature: "+signed(secret, old, body)),
		401, "hmac: too old")
	want(h.Call("POST", path, body, "X-Paperclip-Timestamp: "+now, "X-Paperclip-Signature: "+signed(secret, now, body)),
		202, "hmac")
	want(h.Call("POST", path, body, "X-Paperclip-Timestamp: "+now, "X-Paperclip-Signature: sha256="+signed(secret, now,
		body)), 409, "hmac: replayed")

	path, _, secret = h.Hook(t, "github_hmac")
	want(h.Call("POST", path, body, "X-Hub-Signature-256: sha256="+signed("other", body)), 401,
		"github: by another secret")
	want(h.Call("POST", path, body, "X-Hub-Signature-256: sha256="+signed(secret, body)), 202, "github")
	want(h.Call("POST", path, body, "X-Hub-Signature-256: sha256="+signed(secret, body)), 409, "github: replayed")

	path, _, _ = h.Hook(t, "none")
	want(h.Call("POST", path, `[1]`), 202, "none")
	want(h.Call("POST", "/api/routine-triggers/public/0123/fire", body), 404, "no such webhook")

	// No secret is in the state in plain text.
	_ = h.Node.Ledger.View(func(tx *ledger.Tx) error {
		for k, v := range tx.Scan([]byte{0}, []byte{0xff}, false) {
			if strings.Contains(string(v), secret) {
				t.Errorf("the secret lies under %q", k)
			}
		}
		return nil
	})
}

func TestRoutinesOverHTTP(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	of := ledger.CompanyID(h.Company("Acme"))
	other := h.Company("Other")
	agent := h.NewAgent(of, "Ada", "true")
	r := h.Call("POST", "/api/companies/"+string(of)+"/routines", `{"title":"T","assigneeAgentId":"`+agent+`"}`)
	id := r.Field(t, "id")
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/api/companies/" + string(of) + "/routines", `{}`, 400},
		{"POST", "/api/companies/" + string(of) + "/routines", `{"title":"T","status":"active"}`, 422},
		{"POST", "/api/companies/" + string(of) + "/routines", `{"title":"T","variables":[{"name":"9"}]}`, 422},
		{"POST", "/api/companies/" + string(of) + "/routines", `{"title":"T","concurrencyPolicy":"never"}`, 400},
		{"POST", "/api/companies/" + other + "/routines", `{"title":"T","assigneeAgentId":"` + agent + `"}`, 404},
		{"GET", "/api/routines/" + other, "", 404},
		{"POST", "/api/routines/" + id + "/triggers",
			`{"kind":"schedule","cronExpression":"0 9 * * *","timezone":"Mars/Olympus"}`, 422},
		{"POST", "/api/routines/" + id + "/triggers", `{"kind":"schedule","cronExpression":"0 0 31 2 *"}`, 422},
		{"POST", "/api/routines/" + id + "/triggers", `{"kind":"schedule"}`, 422},
		{"POST", "/api/routines/" + id + "/triggers",
			`{"kind":"schedule","cronExpression":"30 2 * * *","timezone":"Europe/Berlin"}`, 201},
		{"POST", "/api/routines/" + id + "/triggers", `{"kind":"api"}`, 201},
		{"POST", "/api/routines/" + id + "/run", `{"variables":5}`, 400},
		{"POST", "/api/routines/" + id + "/run", `{"idempotencyKey":"k"}`, 202},
		{"POST", "/api/routines/" + id + "/run", `{"idempotencyKey":"k"}`, 202},
		{"GET", "/api/routines/" + id + "/revisions", "", 200},
		{"POST", "/api/routines/" + id + "/revisions/" + id + "/restore", "", 404},
		{"PATCH", "/api/routines/" + id, `{"status":"archived"}`, 200},
		{"POST", "/api/routines/" + id + "/run", `{}`, 409},
		{"DELETE", "/api/routines/" + id, "", 200},
		{"GET", "/api/routines/" + id, "", 404},
		{"GET", "/api/companies/" + string(of) + "/folders?kind=routine", "", 200},
		{"GET", "/api/companies/" + string(of) + "/folders?kind=shoes", "", 400},
		{"POST", "/api/companies/" + string(of) + "/folders", `{"kind":"routine","name":"Daily"}`, 201},
		{"POST", "/api/companies/" + string(of) + "/folders", `{"kind":"routine","name":"Daily"}`, 409},
		{"POST", "/api/companies/" + string(of) + "/folders/ensure-my", `{}`, 200},
		{"POST", "/api/companies/" + string(of) + "/folders/ensure-my", `{}`, 200},
	} {
		if a := h.Call(c.method, c.path, c.body); a.Status != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, a.Status, a.Body, c.status)
		}
	}
}

// A schedule's times can be previewed before it is saved, also across a change of the
// clocks.
func TestAScheduleIsPreviewed(t *testing.T) {
	t.Parallel()
	h := apitest.NewHarness(t)
	next := func(query string) apitest.Answer { return h.Call("GET", "/api/v1/schedules/next?"+query, "") }
	var rows []struct {
		At    time.Time `json:"at"`
		Local string    `json:"local"`
	}
	if err := json.Unmarshal(next("cronExpression=30+9+*+*+1-5&timezone=Europe/Berlin").Want(t, 200, "").Body,
		&rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 10 {
		t.Fatalf("%d times, want 10: %v", len(rows), rows)
	}
	for i, row := range rows {
		if local, err := time.Parse(time.RFC3339, row.Local); err != nil || !local.Equal(row.At) || local.Hour() != 9 ||
			local.Minute() != 30 || local.Weekday() == time.Saturday || local.Weekday() == time.Sunday {
			t.Errorf("time %d is %v, %s", i, row.At, row.Local)
		}
		if i > 0 && !row.At.After(rows[i-1].At) {
			t.Errorf("time %d, %v, is not after %v", i, row.At, rows[i-1].At)
		}
	}
	next("cronExpression=0+0+31+2+*").Want(t, 422, "never fires")
	next("cronExpression=every+day").Want(t, 422, "exactly 5 fields")
	next("cronExpression=0+9+*+*+*&timezone=Mars/Olympus").Want(t, 422, "Invalid timezone")
	next("cronExpression=0+9+*+*+*&count=soon").Want(t, 400, "Invalid count")
	if many := next("cronExpression=0+9+*+*+*&count=1000").Want(t, 200, "").Decode(t).([]any); len(many) != 100 {
		t.Errorf("%d times, want the most there are, 100", len(many))
	}
	next("").Want(t, 422, "exactly 5 fields")
}
