package people_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

var hiddenWord = regexp.MustCompile(`name="word" value="([0-9a-f]+)"`)

// A person signs in and approves on plain forms. Only a form of the same page and
// session is accepted.
func TestTheApprovalPage(t *testing.T) {
	h := apitest.Peopled(t)
	cookie := h.Admin()
	ask := func() (path, token, key string) {
		a := h.Call("POST", "/api/cli-auth/challenges", `{"command":"selvage <b>login</b>","clientName":"me & mine"}`).
			Want(t, 201, "")
		path, query, _ := strings.Cut(a.Field(t, "approvalPath"), "?")
		return path, strings.TrimPrefix(query, "token="), a.Field(t, "boardApiToken")
	}
	path, token, key := ask()
	page := h.Call("GET", path+"?token="+token, "").Want(t, 200, `name="password"`)
	for _, bad := range []string{"<b>login", "<script", "Let it in"} {
		if strings.Contains(string(page.Body), bad) {
			t.Errorf("the page for nobody has %q", bad)
		}
	}
	if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
		!strings.Contains(csp, "frame-ancestors 'none'") || page.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", page.Header)
	}
	h.Call("GET", path+"?token=pcp_cli_auth_wrong", "").Want(t, 404, "not found")
	h.Call("GET", path, "").Want(t, 404, "CLI auth challenge not found")
	h.Call("PUT", path, "{}", apitest.OwnOrigin).Want(t, 405, "This page takes no such request.")

	// Sign in on the page.
	wrong := url.Values{"do": {"sign-in"}, "token": {token}, "email": {"ann@example.com"}, "password": {"not this one"}}
	h.Form(path, wrong, apitest.OwnOrigin).Want(t, 401, "Invalid email or password")
	wrong.Set("password", "password of Ann")
	h.Form(path, wrong, "Origin: https://evil.example").Want(t, 403, "Board mutation requires trusted browser origin")
	h.Form(path, wrong).Want(t, 403, "The form did not come from this page.")
	in := h.Form(path, wrong, apitest.OwnOrigin).Want(t, 303, "")
	mine, _, _ := in.CookieOf(t)
	if to := in.Header.Get("Location"); to != path+"?token="+token {
		t.Errorf("it leads to %q", to)
	}
	page = h.Call("GET", path+"?token="+token, "", mine).Want(t, 200, "Let it in")
	word := hiddenWord.FindStringSubmatch(string(page.Body))[1]
	approve := url.Values{"do": {"approve"}, "token": {token}, "word": {word}}

	// Refused: another user's cookie, another page's token, no token, another origin, no
	// session.
	bob, _ := h.SignUp("Bob")
	h.Form(path, approve, apitest.OwnOrigin, bob).Want(t, 403, "another sign-in")
	h.Form(path, approve, apitest.OwnOrigin, cookie).Want(t, 403, "another sign-in")
	h.Form(path, url.Values{"do": {"approve"}, "token": {token}}, apitest.OwnOrigin, mine).Want(t, 403, "another sign-in")
	h.Form(path, approve, "Origin: https://evil.example", mine).
		Want(t, 403, "Board mutation requires trusted browser origin")
	h.Form(path, approve, apitest.OwnOrigin).Want(t, 401, "Sign in first")
	h.Form(path, url.Values{"do": {"dance"}, "token": {token}}, apitest.OwnOrigin, mine).
		Want(t, 400, "The form asks for nothing that this page does.")
	h.Call("GET", "/api/cli-auth/me", "", "Authorization: Bearer "+key).
		Want(t, 401, "Agent token did not verify; obtain fresh credentials and retry")

	h.Form(path, approve, apitest.OwnOrigin, mine).Want(t, 303, "")
	h.Call("GET", path+"?token="+token, "", mine).Want(t, 200, "was let in")
	h.Call("GET", "/api/cli-auth/me", "", "Authorization: Bearer "+key).Want(t, 200, `"source":"board_key"`)

	// A challenge can be rejected as well.
	path, token, key = ask()
	word = hiddenWord.FindStringSubmatch(string(h.Call("GET", path+"?token="+token, "", mine).Body))[1]
	h.Form(path, url.Values{"do": {"cancel"}, "token": {token}, "word": {word}}, apitest.OwnOrigin, mine).Want(t, 303, "")
	h.Call("GET", path+"?token="+token, "", mine).Want(t, 200, "cancelled")
	h.Call("GET", "/api/cli-auth/me", "", "Authorization: Bearer "+key).
		Want(t, 401, "Agent token did not verify; obtain fresh credentials and retry")
	if strings.Contains(h.Log.String(), token) || strings.Contains(h.Log.String(), "password of Ann") {
		t.Error("the log has a token or a password")
	}
}
