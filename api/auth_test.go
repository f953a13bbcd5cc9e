package api

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// What is remembered of a key counts for a caller who brings a height only when
// it held there: as of the look-up, or as far as the feed was followed since.
func TestRememberedKeysAnswerForWhatTheyKnow(t *testing.T) {
	var c keyCache
	now, hash := time.Now(), [32]byte{1}
	who := holder{actor: ledger.Actor{Type: "agent", ID: "a"}}
	c.keep(hash, who, c.generation(), 10, now)
	want := func(least uint64, ok bool) {
		t.Helper()
		if _, got := c.find(hash, least, now); got != ok {
			t.Errorf("as of %d: found %v, want %v", least, got, ok)
		}
	}
	want(0, true)
	want(10, true)
	want(11, false)
	c.follow(20, false) // an entry of batch 20, in which more may come
	want(19, true)
	want(20, false)
	c.follow(21, false)
	want(20, true)
	old := c.generation()
	c.follow(21, true)
	want(0, false)
	c.keep(hash, who, old, 21, now) // looked up before the feed told
	want(0, false)
	c.keep(hash, who, c.generation(), 21, now)
	want(21, true)
	if _, ok := c.find(hash, 0, now.Add(keyAge)); ok {
		t.Error("a key is believed for longer than its age")
	}
}

// Heights that nobody has seen keep nobody: few wait, briefly, and the rest is refused.
func TestHeightsThatAreMadeUp(t *testing.T) {
	h := newHarness(t)
	h.company("Acme")
	for range maxBehind {
		h.behind <- struct{}{}
	}
	a := h.call("GET", "/api/companies", "", "X-Selvage-Height: 18446744073709551615").want(t, 503, `"behind"`)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.call("GET", "/api/companies", "", "X-Selvage-Height: 18446744073709551615", "X-Selvage-Read: stale").want(t, 200, "Acme")
	h.call("GET", "/api/companies", "", "X-Selvage-Height: 1").want(t, 200, "Acme")
	for _, bad := range []string{"-1", "1e3", "x", "18446744073709551616"} {
		h.call("GET", "/api/companies", "", "X-Selvage-Height: "+bad).want(t, 400, "X-Selvage-Height")
	}
}
