package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAccountsAreSuspendedAndSignUpsClosed(t *testing.T) {
	h := peopled(t)
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

// Who was taken out of a company reads nothing of what happens in it afterwards, on a
// stream that was open before neither.
func TestAStreamTellsNothingToWhoWasTakenOut(t *testing.T) {
	t.Parallel()
	h := peopled(t)
	ann := h.admin()
	bob, id := h.signUp("Bob")
	of := h.call("POST", "/api/companies", `{"name":"Acme"}`, ann, ownOrigin).want(t, 201, "").field(t, "id")
	access := "/api/admin/users/" + id + "/company-access"
	h.call("PUT", access, `{"companyIds":["`+of+`"]}`, ann, ownOrigin).want(t, 200, "")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", h.serve().URL+"/api/companies/"+of+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", strings.TrimPrefix(bob, "Cookie: "))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatalf("the stream answered %d", resp.StatusCode)
	}
	h.call("PUT", access, `{"companyIds":[]}`, ann, ownOrigin).want(t, 200, "")
	h.call("POST", "/api/companies/"+of+"/labels", `{"name":"hushed","color":"#ff0000"}`, ann, ownOrigin).want(t, 201, "")
	told, err := io.ReadAll(resp.Body)
	if err != nil || strings.Contains(string(told), "label.created") {
		t.Errorf("told of what came later: %s %v", told, err)
	}
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
