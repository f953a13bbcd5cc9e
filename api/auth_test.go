package api_test

import (
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
	"github.com/selvage-mesh/selvage/ledger"
)

// What is remembered of a key counts for a caller who brings a height only when
// it held there: as of the look-up, or as far as the feed was followed since.
func TestRememberedKeysAnswerForWhatTheyKnow(t *testing.T) {
	var c api.KeyCache
	now, hash := time.Now(), [32]byte{1}
	who := api.Holder{Actor: ledger.Actor{Type: "agent", ID: "a"}}
	c.Keep(hash, who, c.Generation(), 10, now)
	want := func(least uint64, ok bool) {
		t.Helper()
		if _, got := c.Find(hash, least, now); got != ok {
			t.Errorf("as of %d: found %v, want %v", least, got, ok)
		}
	}
	want(0, true)
	want(10, true)
	want(11, false)
	c.Follow(20, false) // an entry of batch 20, in which more may come
	want(19, true)
	want(20, false)
	c.Follow(21, false)
	want(20, true)
	old := c.Generation()
	c.Follow(21, true)
	want(0, false)
	c.Keep(hash, who, old, 21, now) // looked up before the feed told
	want(0, false)
	c.Keep(hash, who, c.Generation(), 21, now)
	want(21, true)
	if _, ok := c.Find(hash, 0, now.Add(api.KeyAge)); ok {
		t.Error("a key is believed for longer than its age")
	}
}

// Heights that nobody has seen keep nobody: few wait, briefly, and the rest is refused.
func TestHeightsThatAreMadeUp(t *testing.T) {
	h := apitest.NewHarness(t)
	h.Company("Acme")
	for range api.MaxBehind {
		h.Behind <- struct{}{}
	}
	a := h.Call("GET", "/api/companies", "", "X-Selvage-Height: 18446744073709551615").Want(t, 503, `"behind"`)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	h.Call("GET", "/api/companies", "", "X-Selvage-Height: 18446744073709551615", "X-Selvage-Read: stale").
		Want(t, 200, "Acme")
	h.Call("GET", "/api/companies", "", "X-Selvage-Height: 1").Want(t, 200, "Acme")
	for _, bad := range []string{"-1", "1e3", "x", "18446744073709551616"} {
		h.Call("GET", "/api/companies", "", "X-Selvage-Height: "+bad).Want(t, 400, "X-Selvage-Height")
	}
}
