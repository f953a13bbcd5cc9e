package lan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of the guide work, one after the other, on two boxes.
func TestGuide(t *testing.T) {
	needsNetwork(t)
	b, err := os.ReadFile("../../docs/home-lan.md")
	if err != nil {
		t.Fatal(err)
	}
	net := newNetwork(t)
	boxes := map[string]*box{"one": net.box("one"), "two": net.box("two")}
	home := t.TempDir()
	lives, code := 0, ""
	for line := range strings.SplitSeq(string(b), "\n") {
		name, command, ok := strings.Cut(strings.TrimPrefix(line, "    "), "$ selvage ")
		box := boxes[name]
		if !ok || box == nil || !strings.HasPrefix(line, "    ") {
			continue
		}
		if rest, up := strings.CutPrefix(command, "up"); up {
			if box.cmd != nil { // another way in: a box like new
				box.must("leave")
				if !box.wait(patience) {
					t.Fatal("it does not leave")
				}
				if err := os.RemoveAll(box.dir); err != nil {
					t.Fatal(err)
				}
			}
			mark := box.mark()
			args := strings.Fields(rest)
			for i := range args { // both boxes share a folder, as if the file was copied
				if file, ok := strings.CutPrefix(args[i], "@"); ok {
					args[i] = "@" + filepath.Join(home, file)
				}
			}
			box.up(args...)
			if lives++; lives == 2 {
				code = box.code(mark, patience)
				continue
			}
			box.serves(mark, patience)
			continue
		}
		command = selvage + " " + strings.ReplaceAll(command, "CODE", code)
		cmd := box.in(t.Context(), "sh", "-c", command)
		cmd.Dir = home
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		switch {
		case strings.Contains(command, "pending") && !strings.Contains(string(out), code):
			t.Errorf("pending without %s:\n%s", code, out)
		case strings.Contains(command, "approve"):
			boxes["two"].serves(0, patience)
			patient.Until(t, "both are alive", func() bool { return box.members()["two"] == "alive" })
		case strings.Contains(command, "members") && !strings.Contains(string(out), "no failover until a third node"):
			t.Errorf("members:\n%s", out)
		}
	}
	if lives != 3 {
		t.Errorf("%d boxes were started, want 3", lives)
	}
	two := boxes["two"]
	if !two.wait(patience) {
		t.Error("the box that was thrown out goes on")
	}
	for _, name := range []string{"owner.key", "other.key", "token"} {
		if b, err := os.ReadFile(filepath.Join(home, name)); err != nil || !strings.HasPrefix(string(b), "selvage-") {
			t.Errorf("%s: %.14q, %v", name, b, err)
		}
	}
}
