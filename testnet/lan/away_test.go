package lan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A box that was away while everybody whom it knew was replaced finds its mesh by
// mDNS; TestAwayWhileAllWereReplaced of testnet/testkit does the same by a seed.
func TestAwayWhileAllWereReplaced(t *testing.T) {
	needsNetwork(t)
	net := newNetwork(t)
	old, away := net.box("old"), net.box("away")
	old.up("--found", "--mesh-name", "home")
	old.serves(0, patience)
	join := func(b, by *box) {
		t.Helper()
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte(by.must("token", "create")), 0o600); err != nil {
			t.Fatal(err)
		}
		b.up("--join", "@"+token)
		b.serves(0, patience)
	}
	join(away, old)
	away.stop()
	new1, new2 := net.box("new1"), net.box("new2")
	join(new1, old)
	join(new2, new1) // which vouches for it, and the old one for that
	patient.Until(t, "the new ones vote", func() bool {
		out, err := new2.try("autopilot", "state")
		return err == nil && strings.Contains(out, "failure tolerance 1")
	})
	old.must("leave")
	if !old.wait(patience) {
		t.Fatal("the old box does not leave")
	}
	patient.Until(t, "the new ones go on", func() bool {
		_, err := new2.try("company", "create",
			"Acme")
		return err == nil
	})
	mark, at := away.mark(), time.Now()
	away.up()
	away.serves(mark, patience)
	patient.Until(t, "it has what it missed", func() bool {
		out, err := away.try("company", "list")
		m := away.members()
		return err == nil && strings.Contains(out, "Acme") && m["new1"] == "alive" && m["new2"] == "alive" &&
			m["old"] == "revoked"
	})
	t.Logf("a box that knew nobody any more is back after %v", time.Since(at).Round(10*time.Millisecond))
}
