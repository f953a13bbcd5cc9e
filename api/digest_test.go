package api_test

import (
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestDigestsOfRequestsHaveAKey(t *testing.T) {
	t.Parallel()
	body := []byte(`{"value":"1234"}`)
	plain := api.RequestDigest(nil, "POST", "/x", body)
	one, two := api.RequestDigest(make([]byte, 32), "POST", "/x", body), api.RequestDigest([]byte(strings.Repeat("k", 32)),
		"POST", "/x", body)
	if one == plain || two == plain || one == two {
		t.Error("a digest can be made without its key")
	}
	if one == api.RequestDigest(make([]byte, 32), "POST", "/x", []byte(`{"value":"1235"}`)) {
		t.Error("two requests have one digest")
	}
}

func TestANodeWithoutTheKeyTakesNoIdempotencyKey(t *testing.T) {
	t.Parallel()
	has := true
	h := apitest.NewHarness(t, func(c *api.Config) { c.DigestKey = func() ([32]byte, bool) { return [32]byte{1}, has } })
	of := h.Call("POST", "/api/companies", `{"name":"Acme"}`).Want(t, 201, "").Field(t, "id")
	post := func(body string) apitest.Answer {
		return h.Call("POST", "/api/companies/"+of+"/goals", body, "Idempotency-Key: k1")
	}
	first := post(`{"title":"Acme"}`).Want(t, 201, "").Field(t, "id")
	if again := post(`{"title":"Acme"}`).Want(t, 201, "").Field(t, "id"); again != first {
		t.Errorf("a repetition made %s besides %s", again, first)
	}
	post(`{"title":"Other"}`).Want(t, 422, "different request")
	has = false
	post(`{"title":"Acme"}`).Want(t, 503, "data key")
	h.Call("POST", "/api/companies", `{"name":"Beta"}`).Want(t, 201, "")
}
