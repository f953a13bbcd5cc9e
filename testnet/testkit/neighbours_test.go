package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/node"
)

// A run reads no file of any node of its machine: of its own, of one whose data lies
// beside, and of one of another mesh that told where it is.
func TestARunReadsNoNodesFiles(t *testing.T) {
	t.Parallel()
	nodes, dir, far := t.TempDir(), t.TempDir(), t.TempDir()
	telling := func(_ int, c *node.Config) { c.Nodes = nodes }
	b := Mesh(t, 3, working(dir), telling)
	Mesh(t, 1, working(far), telling)
	of, out := b.Company("Acme"), t.TempDir()
	const script = `for d in $DATA/* $FAR/*; do [ -d $d ] || continue; cat $d/identity.key > /dev/null && echo ` +
		`READ $d; ls $d/store > /dev/null; done > $OUT/part 2> $OUT/errors
echo done >> $OUT/part; mv $OUT/part $OUT/done; exec sleep 1000`
	a, err := b.Hire(0, of, "Curious", map[string]any{"command": "/bin/sh", "args": []string{"-c", script}, "graceSec": 1,
		"writable": []string{out},
		"env":      map[string]any{"OUT": out, "DATA": dir, "FAR": far}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Invoke(0, &a); err != nil {
		t.Fatal(err)
	}
	got := readFile(b, filepath.Join(out, "done"))
	if strings.Contains(got, "READ") {
		t.Errorf("it read %s", got)
	}
	for _, at := range []string{filepath.Join(dir, "n2"), filepath.Join(far, "n1")} {
		if _, err := os.Stat(filepath.Join(at, "identity.key")); err != nil {
			t.Errorf("there was nothing to read: %v", err)
		}
	}
}
