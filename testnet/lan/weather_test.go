package lan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// owned gives boxes an owner key that none of them has seen before.
func owned(t *testing.T, bs ...*box) {
	t.Helper()
	key := bs[0].must("owner-key", "new")
	for _, b := range bs {
		if err := os.MkdirAll(b.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.dir, "owner.key"), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Boxes of one owner that are switched on at the same moment make one mesh by
// themselves, which outlives that all of them change their addresses.
func TestOneOwner(t *testing.T) {
	needsNetwork(t)
	net := newNetwork(t)
	bs := []*box{net.box("x"), net.box("y")}
	owned(t, bs...)
	at := time.Now()
	for _, b := range bs {
		b.up()
	}
	for _, b := range bs {
		b.serves(0, patience)
	}
	t.Logf("two boxes with one owner key, switched on at once, serve as one mesh: %v", time.Since(at).
		Round(10*time.Millisecond))
	if founded := strings.Count(bs[0].said()+bs[1].said(), "founded the mesh"); founded != 1 {
		t.Fatalf("%d meshes were founded", founded)
	}
	both := func(from *box) bool {
		m := from.members()
		return m["x"] == "alive" && m["y"] == "alive" && len(m) == 2
	}
	patient.Until(t, "they see each other", func() bool { return both(bs[0]) && both(bs[1]) })

	late := net.box("late")
	sh(t, "mkdir", "-p", late.dir)
	sh(t, "cp", filepath.Join(bs[0].dir, "owner.key"), late.dir)
	sh(t, "ip", "netns", "exec", late.ns, "nft",
		"add table inet rain; add chain inet rain in { type filter hook input priority 0; }; add rule inet rain "+
			"in iifname eth0 numgen random mod 100 < 30 drop")
	at = time.Now()
	late.up()
	late.serves(0, patience)
	t.Logf("serving by the owner key with 30 %% loss, from its start: %v", time.Since(at).Round(10*time.Millisecond))
	late.alive()
	late.stop()
	bs[0].must("node", "revoke", "late")

	for i, b := range bs { // the router was replaced
		sh(t, "ip", "-n", b.ns, "addr", "flush", "dev", "eth0", "scope", "global")
		sh(t, "ip", "-n", b.ns, "addr", "add", fmt.Sprintf("10.99.%d.%d/24", net.no, i+1), "dev", "eth0")
	}
	took := patient.Until(t, "they find each other at their new addresses", func() bool {
		for _, b := range bs {
			out, err := b.try("members", "-o", "json")
			var rows []struct {
				Name, Status string
				Addresses    []string
			}
			if err != nil || json.Unmarshal([]byte(out), &rows) != nil {
				return false
			}
			for _, r := range rows {
				if r.Status == "revoked" {
					continue
				}
				if r.Status != "alive" || !strings.HasPrefix(fmt.Sprint(r.Addresses), "[10.99.") {
					return false
				}
			}
		}
		return true
	})
	t.Logf("all have new addresses and see each other: %v", took.Round(10*time.Millisecond))
	for i, b := range bs {
		patient.Until(t, "a company is made", func() bool {
			_, err := b.try("company", "create",
				fmt.Sprintf("Acme %d", i))
			return err == nil
		})
		b.alive()
	}
}

// Where multicast does not pass, a box founds its own mesh and says so, and tokens
// work as ever.
func TestMulticastIsFiltered(t *testing.T) {
	needsNetwork(t)
	net := newNetwork(t)
	a, b, c := net.box("a"), net.box("b"), net.box("c")
	for _, x := range []*box{a, b, c} {
		sh(t, "ip", "netns", "exec", x.ns, "nft",
			"add table inet wall; add chain inet wall in { type filter hook input priority 0; }; add rule inet "+
				"wall in udp dport 5353 drop")
	}
	a.up()
	b.up()
	a.serves(0, patience)
	b.serves(0, patience)
	name := `founded the mesh (\S+) \(`
	if x, y := a.says(0, name, patience), b.says(0, name, patience); x == y {
		t.Errorf("two meshes are called %s", x)
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(a.must("token", "create")), 0o600); err != nil {
		t.Fatal(err)
	}
	c.up("--join", "@"+token)
	c.serves(0, patience)
	b.stop()
	a.alive()

	// It is not there at all: no interface can multicast.
	d := net.box("d")
	sh(t, "ip", "-n", d.ns, "link", "set", "eth0", "multicast", "off")
	d.up()
	d.serves(0, patience)
	if n := strings.Count(d.said(), "mDNS does not work here"); n != 1 {
		t.Errorf("%d lines about mDNS", n)
	}
	d.alive()
}

// A box on two networks serves both, and looks where it is told to.
func TestTwoInterfaces(t *testing.T) {
	needsNetwork(t)
	one, two := newNetwork(t), newNetwork(t)
	a := one.box("a")
	a.plug(two)
	b := two.box("b")
	c := one.box("c")
	c.plug(two)
	owned(t, a, b, c)
	a.up()
	a.serves(0, patience)
	b.up()
	b.serves(0, patience)
	patient.Until(t, "both are alive", func() bool { return a.members()["b"] == "alive" && b.members()["a"] == "alive" })

	other := one.box("other")
	other.up("--found", "--mesh-name", "other")
	other.serves(0, patience)
	os.Remove(filepath.Join(c.dir, "owner.key"))
	c.up("--mdns", "eth1") // there is one mesh only
	code := c.code(0, patience)
	if _, err := other.try("approve", code); err == nil {
		t.Error("a mesh of the other network was asked")
	}
	a.must("approve", code)
	c.serves(0, patience)
	if failed := strings.Count(a.said()+b.said(), `"member failed"`); failed > 0 {
		t.Errorf("nodes of different networks took each other for dead %d times", failed)
	}
}

// Two boxes without anything, switched on at once, are never half of each other.
func TestTwoFounders(t *testing.T) {
	needsNetwork(t)
	net := newNetwork(t)
	bs := []*box{net.box("x"), net.box("y")}
	for _, b := range bs { // without IPv4
		sh(t, "ip", "-n", b.ns, "addr", "flush", "dev", "eth0", "scope", "global")
		sh(t, "ip", "-n", b.ns, "addr", "add", fmt.Sprintf("fd77::%d/64", 1+b.mark()+len(b.ip)+int(boxes.Add(1))), "dev",
			"eth0", "nodad")
		b.up()
	}
	patient.Until(t, "one founds, the other asks", func() bool {
		return strings.Contains(bs[0].said(), "serves on") && strings.Contains(bs[1].said(), "its code is") ||
			strings.Contains(bs[1].said(), "serves on") && strings.Contains(bs[0].said(), "its code is")
	})
	first, second := bs[0], bs[1]
	if strings.Contains(second.said(), "serves on") {
		first, second = second, first
	}
	first.must("approve", second.code(0, patience))
	at := now()
	second.serves(0, patience)
	at.within(t, "serving after it was approved, by IPv6", at.passed(), servesWithin)
	patient.Until(t, "both are alive", func() bool {
		return first.members()[second.name] == "alive" && second.members()[first.name] == "alive"
	})
}

// An announcement that somebody wrote down and says again, when who made it is
// gone, leads nobody anywhere.
func TestReplayedAnnouncement(t *testing.T) {
	needsNetwork(t)
	net := newNetwork(t)
	a := net.box("a")
	a.up("--found", "--mesh-name", "home")
	a.serves(0, patience)
	mesh := a.says(0, `of mesh ([0-9a-f]{32}) serves`, patience)
	cmd := net.box("evil").hostile(t, "replay")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var recorded, replayed int
	if n, err := fmt.Fscanln(out, new(string), &recorded); n != 2 || recorded == 0 {
		t.Fatalf("%d announcements were recorded, %v", recorded, err)
	}
	a.stop()
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	f := net.box("f")
	f.up("--mesh-id", mesh)
	time.Sleep(5 * time.Second)
	f.alive()
	if s := f.said(); strings.Contains(s, "its code is") || strings.Contains(s, "found a mesh") ||
		strings.Contains(s, "founded") {
		t.Error("an announcement that was replayed is believed")
	}
	if lines := strings.Count(f.said(), "\n"); lines > 20 {
		t.Errorf("%d lines in the log", lines)
	}
	a.up() // and now it is true
	f.code(0, patience)
	in.Close()
	if n, err := fmt.Fscanln(out, new(string), &replayed); n != 2 || replayed < 20 {
		t.Errorf("%d announcements were replayed, %v", replayed, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	f.alive()
}
