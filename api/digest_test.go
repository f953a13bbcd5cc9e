package api

import (
	"strings"
	"testing"
)

func TestDigestsOfRequestsHaveAKey(t *testing.T) {
	t.Parallel()
	body := []byte(`{"value":"1234"}`)
	plain := requestDigest(nil, "POST", "/x", body)
	one, two := requestDigest(make([]byte, 32), "POST", "/x", body), requestDigest([]byte(strings.Repeat("k", 32)), "POST", "/x", body)
	if one == plain || two == plain || one == two {
		t.Error("a digest can be made without its key")
	}
	if one == requestDigest(make([]byte, 32), "POST", "/x", []byte(`{"value":"1235"}`)) {
		t.Error("two requests have one digest")
	}
}

func TestANodeWithoutTheKeyTakesNoIdempotencyKey(t *testing.T) {
	t.Parallel()
	has := true
	h := newHarness(t, func(c *Config) { c.DigestKey = func() ([32]byte, bool) { return [32]byte{1}, has } })
	of := h.call("POST", "/api/companies", `{"name":"Acme"}`).want(t, 201, "").field(t, "id")
	post := func(body string) answer {
		return h.call("POST", "/api/companies/"+of+"/goals", body, "Idempotency-Key: k1")
	}
	first := post(`{"title":"Acme"}`).want(t, 201, "").field(t, "id")
	if again := post(`{"title":"Acme"}`).want(t, 201, "").field(t, "id"); again != first {
		t.Errorf("a repetition made %s besides %s", again, first)
	}
	post(`{"title":"Other"}`).want(t, 422, "different request")
	has = false
	post(`{"title":"Acme"}`).want(t, 503, "data key")
	h.call("POST", "/api/companies", `{"name":"Beta"}`).want(t, 201, "")
}
