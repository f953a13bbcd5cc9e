package api

import (
	"testing"
	"time"
)

func TestAccountsAreSuspendedAndSignUpsClosed(t *testing.T) {
	h := people(t)
	ann := h.admin()
	bob, id := h.signUp("Bob")
	of := h.call("POST", "/api/companies", `{"name":"Acme"}`, ann, ownOrigin).want(t, 201, "").field(t, "id")
	key := "Authorization: Bearer " + h.call("POST", "/api/board-api-keys", `{"name":"k"}`, bob, ownOrigin).want(t, 201, "").field(t, "token")
	h.call("GET", "/api/cli-auth/me", "", key).want(t, 200, "Bob")
	h.call("POST", "/api/admin/users/"+id+"/suspend", `{}`, bob, ownOrigin).want(t, 403, "Instance admin required")
	if at := h.call("POST", "/api/admin/users/"+id+"/suspend", `{}`, ann, ownOrigin).want(t, 200, "").field(t, "suspendedAt"); at == "" {
		t.Error("since when?")
	}
	eventually(t, func() bool { return h.call("GET", "/api/cli-auth/me", "", key).status == 401 })
	eventually(t, func() bool { return h.call("GET", "/api/cli-auth/me", "", bob).status == 401 })
	const signIn = `{"email":"bob@example.com","password":"password of Bob"}`
	h.call("POST", "/api/auth/sign-in/email", signIn).want(t, 403, `"ACCOUNT_SUSPENDED"`)
	h.call("POST", "/api/auth/sign-in/email", `{"email":"bob@example.com","password":"another"}`).want(t, 401, "Invalid email or password")
	h.call("POST", "/api/admin/users/"+id+"/resume", `{}`, ann, ownOrigin).want(t, 200, `"suspendedAt":null`)
	bob, _, _ = h.call("POST", "/api/auth/sign-in/email", signIn).want(t, 200, "").cookieOf(t)
	eventually(t, func() bool { return h.call("GET", "/api/cli-auth/me", "", key).status == 200 })

	const cid = `{"name":"Cid","email":"cid@example.com","password":"password of Cid"`
	h.call("PATCH", "/api/instance/settings/general", `{"signUps":"closed"}`, bob, ownOrigin).want(t, 403, "Instance admin required")
	h.call("PATCH", "/api/instance/settings/general", `{"signUps":"some"}`, ann, ownOrigin).want(t, 400, "signUps")
	h.call("PATCH", "/api/instance/settings/general", `{"signUps":"closed"}`, ann, ownOrigin).want(t, 200, `"signUps":"closed"`)
	h.call("POST", "/api/auth/sign-up/email", cid+`}`).want(t, 403, `"SIGN_UP_CLOSED"`)
	h.call("PATCH", "/api/instance/settings/general", `{"signUps":"invited"}`, ann, ownOrigin).want(t, 200, "")
	h.call("POST", "/api/auth/sign-up/email", cid+`}`).want(t, 403, `"SIGN_UP_INVITE_REQUIRED"`)
	token := h.call("POST", "/api/companies/"+of+"/invites", `{"allowedJoinTypes":"human","humanRole":"viewer"}`, ann, ownOrigin).want(t, 201, "").field(t, "token")
	h.call("POST", "/api/auth/sign-up/email", cid+`,"inviteToken":"`+token+`"}`).want(t, 200, "Cid")
}

// eventually waits for what the feed brings about.
func eventually(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
	}
}
