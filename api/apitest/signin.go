package apitest

import (
	"net/http"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/ledger"
)

const OwnOrigin = "Origin: http://127.0.0.1:3100"

// people are a harness where everybody signs in.
func Peopled(t testing.TB, change ...func(*api.Config)) *Harness {
	t.Helper()
	return NewHarnessOn(t, NewSoloOf(t, people.Authenticated), change...)
}

// CookieOf returns the session that an answer sets, as a header and bare.
func (a Answer) CookieOf(t testing.TB) (header, token string, c *http.Cookie) {
	t.Helper()
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.Name == api.SessionCookie {
			return "Cookie: " + api.SessionCookie + "=" + c.Value, c.Value, c
		}
	}
	t.Fatalf("no session in %v", a.Header)
	return "", "", nil
}

// SignUp makes a user and returns the session's header and the user's ID.
func (h *Harness) SignUp(name string) (cookie, id string) {
	h.T.Helper()
	a := h.Call("POST", "/api/auth/sign-up/email",
		`{"name":"`+name+`","email":"`+name+`@example.com","password":"password of `+name+`"}`).Want(h.T, 200, "")
	cookie, _, _ = a.CookieOf(h.T)
	return cookie, a.Decode(h.T).(map[string]any)["user"].(map[string]any)["id"].(string)
}

// Admin signs up Ann, who claims the instance.
func (h *Harness) Admin() (cookie string) {
	h.T.Helper()
	cookie, _ = h.SignUp("Ann")
	h.Call("POST", "/api/bootstrap/claim", `{}`, cookie, OwnOrigin).Want(h.T, 200, `"claimed":true`)
	return cookie
}

// Join makes a user a member of a company.
func (h *Harness) Join(of ledger.CompanyID, admin, name string, r people.Role) (cookie, id string) {
	h.T.Helper()
	cookie, id = h.SignUp(name)
	invite := h.Call("POST", "/api/companies/"+string(of)+"/invites",
		`{"allowedJoinTypes":"human","humanRole":"`+string(r)+`"}`, admin, OwnOrigin).Want(h.T, 201, "").Field(h.T, "token")
	h.Call("POST", "/api/invites/"+invite+"/accept", `{"requestType":"human"}`, cookie, OwnOrigin).
		Want(h.T, 202, "approved")
	return cookie, id
}
