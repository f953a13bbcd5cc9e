package api

import (
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// form sends a form as a browser does.
func (h *harness) form(path string, fields url.Values, headers ...string) answer {
	h.t.Helper()
	req := httptest.NewRequest("POST", path, strings.NewReader(fields.Encode()))
	req.Host = "127.0.0.1:3100"
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	h.Server.ServeHTTP(w, req)
	return answer{status: w.Code, body: w.Body.Bytes(), header: w.Header()}
}

var hiddenWord = regexp.MustCompile(`name="word" value="([0-9a-f]+)"`)

// A person lets a program in on a page of plain forms: signs in, approves, and
// only the form of that very page and sign-in counts.
func TestTheApprovalPage(t *testing.T) {
	h := peopled(t)
	cookie := h.admin()
	ask := func() (path, token, key string) {
		a := h.call("POST", "/api/cli-auth/challenges", `{"command":"selvage <b>login</b>","clientName":"me & mine"}`).want(t, 201, "")
		path, query, _ := strings.Cut(a.field(t, "approvalPath"), "?")
		return path, strings.TrimPrefix(query, "token="), a.field(t, "boardApiToken")
	}
	path, token, key := ask()
	page := h.call("GET", path+"?token="+token, "").want(t, 200, `name="password"`)
	for _, bad := range []string{"<b>login", "<script", "Let it in"} {
		if strings.Contains(string(page.body), bad) {
			t.Errorf("the page for nobody has %q", bad)
		}
	}
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || page.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", page.header)
	}
	h.call("GET", path+"?token=pcp_cli_auth_wrong", "").want(t, 404, "not found")
	h.call("GET", path, "").want(t, 404, "")
	h.call("PUT", path, "{}", ownOrigin).want(t, 405, "")

	// Sign in on the page.
	wrong := url.Values{"do": {"sign-in"}, "token": {token}, "email": {"ann@example.com"}, "password": {"not this one"}}
	h.form(path, wrong, ownOrigin).want(t, 401, "Invalid email or password")
	wrong.Set("password", "password of Ann")
	h.form(path, wrong, "Origin: https://evil.example").want(t, 403, "")
	h.form(path, wrong).want(t, 403, "")
	in := h.form(path, wrong, ownOrigin).want(t, 303, "")
	mine, _, _ := in.cookieOf(t)
	if to := in.header.Get("Location"); to != path+"?token="+token {
		t.Errorf("it leads to %q", to)
	}
	page = h.call("GET", path+"?token="+token, "", mine).want(t, 200, "Let it in")
	word := hiddenWord.FindStringSubmatch(string(page.body))[1]
	approve := url.Values{"do": {"approve"}, "token": {token}, "word": {word}}

	// Another's cookie, another page's word, no word, another origin, nobody.
	bob, _ := h.signUp("Bob")
	h.form(path, approve, ownOrigin, bob).want(t, 403, "another sign-in")
	h.form(path, approve, ownOrigin, cookie).want(t, 403, "another sign-in")
	h.form(path, url.Values{"do": {"approve"}, "token": {token}}, ownOrigin, mine).want(t, 403, "another sign-in")
	h.form(path, approve, "Origin: https://evil.example", mine).want(t, 403, "")
	h.form(path, approve, ownOrigin).want(t, 401, "Sign in first")
	h.form(path, url.Values{"do": {"dance"}, "token": {token}}, ownOrigin, mine).want(t, 400, "")
	h.call("GET", "/api/cli-auth/me", "", "Authorization: Bearer "+key).want(t, 401, "")

	h.form(path, approve, ownOrigin, mine).want(t, 303, "")
	h.call("GET", path+"?token="+token, "", mine).want(t, 200, "was let in")
	h.call("GET", "/api/cli-auth/me", "", "Authorization: Bearer "+key).want(t, 200, `"source":"board_key"`)

	// And turning one away.
	path, token, key = ask()
	word = hiddenWord.FindStringSubmatch(string(h.call("GET", path+"?token="+token, "", mine).body))[1]
	h.form(path, url.Values{"do": {"cancel"}, "token": {token}, "word": {word}}, ownOrigin, mine).want(t, 303, "")
	h.call("GET", path+"?token="+token, "", mine).want(t, 200, "cancelled")
	h.call("GET", "/api/cli-auth/me", "", "Authorization: Bearer "+key).want(t, 401, "")
	if strings.Contains(h.log.String(), token) || strings.Contains(h.log.String(), "password of Ann") {
		t.Error("the log has a token or a password")
	}
}
