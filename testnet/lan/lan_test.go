package lan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The times that are promised, on a machine that has time: a box finds its mesh, serves
// after it was let in, and is out after it was thrown out.
const (
	foundWithin  = 5 * time.Second
	servesWithin = 5 * time.Second
	outWithin    = 5 * time.Second
	patience     = 2 * time.Minute // for all to come about, on a slow and busy machine
)

// A home: a mesh, and boxes that come and go.
func TestHome(t *testing.T) {
	needsNetwork(t)
	net := newNetwork(t)
	a := net.box("a")
	began := time.Now()
	a.up("--mesh-name", "home")
	a.serves(0, patience)
	t.Logf("a box that finds nothing founds its mesh: %v", time.Since(began).Round(10*time.Millisecond))
	if !strings.Contains(a.said(), "founded the mesh home (") {
		t.Errorf("it did not say that it founded a mesh")
	}
	mesh := a.says(0, `of mesh ([0-9a-f]{32}) serves`, patience)

	b := net.box("b")
	t.Run("code", func(t *testing.T) {
		at := now()
		b.up()
		code := b.code(0, patience)
		at.within(t, "found by a fresh box, from its start", elapsed(t, b, `found a mesh`), foundWithin)
		if _, in := a.members()["b"]; in {
			t.Error("it is a member before somebody approved it")
		}
		if out := a.must("pending"); !strings.Contains(out, code) || !strings.Contains(out, " b ") || !strings.Contains(out,
			b.ip) && !strings.Contains(out, " fe80:") { // by whichever answered first
			t.Errorf("pending: %s; the box shows %s", out, code)
		}
		wrong := "000-000"
		if code == wrong {
			wrong = "111-111"
		}
		if _, err := a.try("approve", wrong); err == nil {
			t.Error("a code that nobody shows was approved")
		}
		a.must("approve", code)
		at = now()
		b.serves(0, patience)
		at.within(t, "serving after it was approved", at.passed(), servesWithin)
		patient.Until(t, "both are members", func() bool {
			return b.members()["a"] == "alive" &&
				a.members()["b"] == "alive"
		})
		if out := b.must("pending"); strings.Contains(out, code) { // asked at the other member
			t.Errorf("it still waits: %s", out)
		}
	})
	if t.Failed() {
		return
	}

	t.Run("rejected", func(t *testing.T) {
		c := net.box("c")
		c.up()
		code := c.code(0, patience)
		// On another member than the one that was asked, perhaps.
		b.must("reject", strings.ToLower(strings.ReplaceAll(code, "-", "")))
		if !c.wait(patience) || !strings.Contains(c.said(), "it was refused there") {
			t.Error("a box that was refused goes on")
		}
		if _, in := a.members()["c"]; in {
			t.Error("a box that was refused is a member")
		}
	})

	c := net.box("c2")
	t.Run("token", func(t *testing.T) {
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte(a.must("token", "create", "--uses", "1", "--ttl", "10m")), 0o600); err != nil {
			t.Fatal(err)
		}
		at := now()
		c.up("--join", "@"+token)
		c.serves(0, patience)
		at.within(t, "serving by a token, from its start", at.passed(), servesWithin)
		c.stop()
	})

	mark, asks := 0, time.Now()
	t.Run("revoked", func(t *testing.T) {
		epoch := a.must("keyring", "status")
		mark = b.mark()
		at := now()
		a.must("node", "revoke", "b")
		patient.Until(t, "the keys are new", func() bool { return a.must("keyring", "status") != epoch })
		at.within(t, "the mesh's keys are new after a node was revoked", at.passed(), outWithin)
		b.says(mark, "no longer a member", patience)
		at.within(t, "the revoked node knows it and has stopped", at.passed(), outWithin)
		b.wait(patience)
		mark = b.mark()
		b.up()
		if !b.wait(patience) || !strings.Contains(b.said()[mark:], "no longer a member") {
			t.Error("a revoked node starts again")
		}
		// With its state gone but its key kept it asks in vain.
		mark = b.mark()
		for _, f := range []string{"membership", "store", "peers"} {
			if err := os.RemoveAll(filepath.Join(b.dir, f)); err != nil {
				t.Fatal(err)
			}
		}
		b.up("--mesh-id", mesh)
		asks = time.Now()
	})

	t.Run("cloned disk", func(t *testing.T) { // of the box that came by a token
		clone := net.box("clone")
		sh(t, "cp", "-a", c.dir, clone.dir)
		clone.up()
		if !clone.wait(patience) || !strings.Contains(clone.said(), "belongs to another machine") {
			t.Error("a cloned data directory is used on another machine")
		}
		if m := a.members(); m["clone"] != "" {
			t.Errorf("members: %v", m)
		}
	})

	time.Sleep(time.Until(asks.Add(3500 * time.Millisecond)))
	if s := b.said()[mark:]; strings.Contains(s, "its code is") || strings.Contains(a.must("pending"), " b ") {
		t.Error("a revoked node's request is taken")
	}
	b.stop()
	a.alive()
}

// Boxes that want something else, or mean harm, beside a mesh.
func TestStrangers(t *testing.T) {
	needsNetwork(t)
	net := newNetwork(t)
	a := net.box("a")
	a.up("--found", "--mesh-name", "home")
	a.serves(0, patience)
	mesh := a.says(0, `of mesh ([0-9a-f]{32}) serves`, patience)

	d := net.box("d") // it wants a mesh that is not here
	d.up("--mesh-id", strings.Repeat("0", 31)+"1")

	t.Run("two meshes", func(t *testing.T) {
		g, h := net.box("g"), net.box("h")
		g.up("--found", "--mesh-name", "cabin")
		g.serves(0, patience)
		mark := 0
		for range 3 { // on a busy machine it may not hear of both while it looks, and asks one
			mark = h.mark()
			h.up()
			patient.Until(t, "it has decided", func() bool {
				return !h.running() || strings.Contains(h.said()[mark:],
					"its code is")
			})
			if !h.running() {
				break
			}
			h.stop()
		}
		if s := h.said()[mark:]; !strings.Contains(s, "more than one mesh") || !strings.Contains(s, "home (") ||
			!strings.Contains(s, "cabin (") {
			t.Error("a box that sees two meshes does not say so")
		}
		mark = h.mark()
		h.up("--mesh-name", "cabin")
		code := h.code(mark, patience)
		if out := a.must("pending"); strings.Contains(out, code) {
			t.Error("the other mesh was asked")
		}
		if _, err := a.try("approve", code); err == nil {
			t.Error("the other mesh approved it")
		}
		g.must("approve", code)
		h.serves(mark, patience)
		if here, there := a.members(), g.members(); here["g"] != "" || here["h"] != "" || there["a"] != "" ||
			there["h"] != "alive" {
			t.Errorf("members: %v and %v", here, there)
		}
		g.stop()
		h.stop()
	})

	t.Run("hostile", func(t *testing.T) {
		evil := net.box("evil")
		node := a.says(0, `node a \(([0-9a-f]{8})\)`, patience)
		cmd := evil.hostile(t, "mesh="+mesh+",node="+fullID(t, a, node))
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		before, at := a.sent(), time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		f := net.box("f")
		f.up()
		code := f.code(0, patience)
		t.Logf("a box finds its mesh among lies: %v", elapsed(t, f, `found a mesh`).Round(10*time.Millisecond))
		if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "done") {
			t.Fatalf("the hostile box: %v %s", err, said.String())
		}
		rate := float64(a.sent()-before) / time.Since(at).Seconds()
		t.Logf("a node sends %.0f packets a second meanwhile", rate)
		if rate > 2500 { // it is asked a hundred times as much
			t.Errorf("a node sends %.0f packets a second because somebody asks for them", rate)
		}
		a.alive()
		f.alive()
		if strings.Contains(f.said(), "\x1b") || strings.Contains(a.said(), "\x1b") {
			t.Error("control characters of strangers reach the terminal")
		}
		if lines := strings.Count(a.said(), "\n"); lines > 400 {
			t.Errorf("%d lines in the log", lines)
		}
		if m := a.members(); m["f"] != "" || m["evil"] != "" {
			t.Errorf("members that nobody approved: %v", m)
		}
		a.must("approve", code)
		f.serves(0, patience)
		f.stop()
		a.must("node", "revoke", "f")
	})

	t.Run("wrong mesh", func(t *testing.T) { // it has looked all the time
		d.alive()
		if s := d.said(); strings.Contains(s, "its code is") || strings.Contains(s, "founded") ||
			strings.Contains(a.must("pending"), " d ") {
			t.Error("a box that wants another mesh asks this one, or founds one")
		}
		d.stop()
	})
	a.alive()
}

// elapsed is the time that a line of the log names as "after".
func elapsed(t *testing.T, b *box, line string) time.Duration {
	t.Helper()
	d := b.says(0, `"`+line+`".*"after":(\d+)`, patience)
	n, err := time.ParseDuration(d + "ns")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// fullID is the ID that begins so, of a member.
func fullID(t *testing.T, b *box, short string) string {
	t.Helper()
	for line := range strings.SplitSeq(b.must("members", "-o", "json"), "\"") {
		if strings.HasPrefix(line, short) && len(line) == 32 {
			return line
		}
	}
	t.Fatalf("no member %s", short)
	return ""
}
