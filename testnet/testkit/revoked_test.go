package testkit

import (
	"testing"

	"github.com/selvage-mesh/selvage/node"
)

// A key that was revoked opens nothing on a node that has not heard of it, for
// whoever brings the height of the revocation: the node waits until it has got
// that far, also when it remembers the key, and says so when it takes too long.
func TestRevokedKeysOnANodeThatLags(t *testing.T) {
	t.Parallel()
	cuts := []*Cut{{}, {}, {}}
	b := Mesh(t, 3, func(i int, c *node.Config) { c.Conn = cuts[i] })
	lags := 2 // does not lead; the founder does, unless the machine stalled
	if b.Leader() == lags {
		lags = 1
	}
	cut := cuts[lags]
	of := b.Company("Acme")
	ada, err := b.Hire(0, of, "Ada", nil)
	if err != nil {
		t.Fatal(err)
	}
	var challenge struct{ ID, Token, BoardAPIToken string }
	b.Must(0, "POST", "/api/cli-auth/challenges", map[string]any{"command": "test"}, &challenge)
	b.Must(0, "POST", "/api/cli-auth/challenges/"+challenge.ID+"/approve", map[string]any{"token": challenge.Token}, nil)

	keys := map[string]struct{ bearer, read string }{
		"an agent's": {ada.Key, "/api/agents/me"},
		"a board's":  {challenge.BoardAPIToken, "/api/cli-auth/me"},
	}
	as := func(bearer string, more ...string) []string {
		return append([]string{"Authorization", "Bearer " + bearer}, more...)
	}
	for _, k := range keys { // the node knows and remembers them
		b.Must(lags, "GET", k.read, nil, nil, as(k.bearer, b.Seen()...)...)
	}
	cut.Off()
	b.Must(0, "DELETE", "/api/agents/"+ada.ID+"/keys/"+ada.KeyID, nil, nil)
	b.Must(0, "POST", "/api/cli-auth/revoke-current", map[string]any{}, nil, as(challenge.BoardAPIToken)...)
	type result struct {
		whose  string
		answer Answer
		err    error
	}
	waiting := make(chan result, len(keys))
	asOf := func() {
		for whose, k := range keys {
			go func() {
				a, err := b.Call(lags, "GET", k.read, nil, nil, as(k.bearer, b.Seen()...)...)
				waiting <- result{whose, a, err}
			}()
		}
	}
	for whose, k := range keys {
		if a := b.Must(lags, "GET", k.read, nil, nil, as(k.bearer)...); a.Status != 200 {
			t.Errorf("%s key on a node that lags: %d; the test shows nothing", whose, a.Status)
		}
	}
	asOf()
	for range keys {
		if r := <-waiting; r.err != nil || r.answer.Status != 503 {
			t.Errorf("%s key, as of its revocation: %v, %d %s, want 503", r.whose, r.err, r.answer.Status, r.answer.Body)
		}
	}
	asOf()
	cut.On()
	for range keys {
		// The node may take longer to find back than callers wait: then they are told so.
		if r := <-waiting; r.err != nil || r.answer.Status != 401 && r.answer.Status != 503 {
			t.Errorf("%s key, as of its revocation: %v, %d %s, want 401", r.whose, r.err, r.answer.Status, r.answer.Body)
		}
	}
	for whose, k := range keys {
		b.Until(whose+" key is refused", func() bool {
			a, err := b.Call(lags, "GET", k.read, nil, nil, as(k.bearer, b.Seen()...)...)
			if err == nil && a.Status == 200 {
				t.Fatalf("%s key opens as of its revocation", whose)
			}
			return err == nil && a.Status == 401
		})
		if a, err := b.Call(lags, "GET", k.read, nil, nil, as(k.bearer)...); err != nil || a.Status != 401 {
			t.Errorf("%s key afterwards: %v, %d, want 401", whose, err, a.Status)
		}
		if a, err := b.Ask(lags, "GET", k.read, nil, nil, as(k.bearer, Strong...)...); err != nil || a.Status != 401 {
			t.Errorf("%s key, strong read: %v, %d, want 401", whose, err, a.Status)
		}
	}
}
