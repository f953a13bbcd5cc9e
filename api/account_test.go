package api_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestAccountsAreSuspendedAndSignUpsClosed(t *testing.T) {
	h := apitest.Peopled(t)
	ann := h.Admin()
	bob, id := h.SignUp("Bob")
	of := h.Call("POST", "/api/companies", `{"name":"Acme"}`, ann, apitest.OwnOrigin).Want(t, 201, "").Field(t, "id")
	key := "Authorization: Bearer " + h.Call("POST", "/api/board-api-keys", `{"name":"k"}`, bob, apitest.OwnOrigin).
		Want(t, 201, "").Field(t, "token")
	h.Call("GET", "/api/cli-auth/me", "", key).Want(t, 200, "Bob")
	h.Call("POST", "/api/admin/users/"+id+"/suspend", `{}`, bob, apitest.OwnOrigin).Want(t, 403, "Instance admin required")
	if at := h.Call("POST", "/api/admin/users/"+id+"/suspend", `{}`, ann, apitest.OwnOrigin).Want(t, 200, "").
		Field(t, "suspendedAt"); at == "" {
		t.Error("since when?")
	}
	apitest.Patient.Until(t, "the key of key answers 401", func() bool {
		return h.Call("GET", "/api/cli-auth/me", "", key).
			Status == 401
	})
	apitest.Patient.Until(t, "the key of bob answers 401", func() bool {
		return h.Call("GET", "/api/cli-auth/me", "", bob).
			Status == 401
	})
	const signIn = `{"email":"bob@example.com","password":"password of Bob"}`
	h.Call("POST", "/api/auth/sign-in/email", signIn).Want(t, 403, `"ACCOUNT_SUSPENDED"`)
	h.Call("POST", "/api/auth/sign-in/email", `{"email":"bob@example.com","password":"another"}`).
		Want(t, 401, "Invalid email or password")
	h.Call("POST", "/api/admin/users/"+id+"/resume", `{}`, ann, apitest.OwnOrigin).Want(t, 200, `"suspendedAt":null`)
	bob, _, _ = h.Call("POST", "/api/auth/sign-in/email", signIn).Want(t, 200, "").CookieOf(t)
	apitest.Patient.Until(t, "the key of key answers 200", func() bool {
		return h.Call("GET", "/api/cli-auth/me", "", key).
			Status == 200
	})

	const cid = `{"name":"Cid","email":"cid@example.com","password":"password of Cid"`
	h.Call("PATCH", "/api/instance/settings/general", `{"signUps":"closed"}`, bob, apitest.OwnOrigin).
		Want(t, 403, "Instance admin required")
	h.Call("PATCH", "/api/instance/settings/general", `{"signUps":"some"}`, ann, apitest.OwnOrigin).Want(t, 400, "signUps")
	h.Call("PATCH", "/api/instance/settings/general", `{"signUps":"closed"}`, ann, apitest.OwnOrigin).
		Want(t, 200, `"signUps":"closed"`)
	h.Call("POST", "/api/auth/sign-up/email", cid+`}`).Want(t, 403, `"SIGN_UP_CLOSED"`)
	h.Call("PATCH", "/api/instance/settings/general", `{"signUps":"invited"}`, ann, apitest.OwnOrigin).Want(t, 200, "")
	h.Call("POST", "/api/auth/sign-up/email", cid+`}`).Want(t, 403, `"SIGN_UP_INVITE_REQUIRED"`)
	token := h.Call("POST", "/api/companies/"+of+"/invites", `{"allowedJoinTypes":"human","humanRole":"viewer"}`, ann,
		apitest.OwnOrigin).Want(t, 201, "").Field(t, "token")
	h.Call("POST", "/api/auth/sign-up/email", cid+`,"inviteToken":"`+token+`"}`).Want(t, 200, "Cid")
}

// Who was taken out of a company reads nothing of what happens in it afterwards, on a
// stream that was open before neither.
func TestAStreamTellsNothingToWhoWasTakenOut(t *testing.T) {
	t.Parallel()
	h := apitest.Peopled(t)
	ann := h.Admin()
	bob, id := h.SignUp("Bob")
	of := h.Call("POST", "/api/companies", `{"name":"Acme"}`, ann, apitest.OwnOrigin).Want(t, 201, "").Field(t, "id")
	access := "/api/admin/users/" + id + "/company-access"
	h.Call("PUT", access, `{"companyIds":["`+of+`"]}`, ann, apitest.OwnOrigin).Want(t, 200, "")
	ctx, cancel := context.WithTimeout(t.Context(), apitest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", h.Serve().URL+"/api/companies/"+of+"/events", nil)
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
	h.Call("PUT", access, `{"companyIds":[]}`, ann, apitest.OwnOrigin).Want(t, 200, "")
	h.Call("POST", "/api/companies/"+of+"/labels", `{"name":"hushed","color":"#ff0000"}`, ann, apitest.OwnOrigin).
		Want(t, 201, "")
	told, err := io.ReadAll(resp.Body)
	if err != nil || strings.Contains(string(told), "label.created") {
		t.Errorf("told of what came later: %s %v", told, err)
	}
}
