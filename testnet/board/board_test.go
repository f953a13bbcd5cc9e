package board

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/testnet"
)

const web = "../../ui/web"

// needed skips where the pages' packages or a browser are not installed; both are where
// make ui and make system ran.
func needed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes are left out of -short")
	}
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); err != nil {
		t.Skip("the pages' packages are not installed; make ui does it (needs npm and a registry)")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if _, err := exec.LookPath(name); err == nil {
			return
		}
	}
	if os.Getenv("SELVAGE_CHROMIUM") == "" {
		t.Skip("there is no Chromium; make system installs it")
	}
}

// mesh starts three nodes as processes; from free on are two ports for a fourth.
func mesh(t *testing.T) (dir string, free int) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "selvage")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../../cmd/node").
		CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	port, err := testnet.FreePorts(8)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	p, err := testnet.Up(t.Context(), testnet.Options{Dir: dir, Bin: bin, N: 3, HTTPPort: port, MeshPort: port + 3,
		Log: io.Discard})
	t.Cleanup(func() { p.End(t) })
	if err != nil {
		t.Fatal(err)
	}
	return dir, port + 6
}

// The pages in a browser: first use, the work of an everyday, what is refused, what breaks,
// and two people of different rights. ui/web/test/board.mjs has the steps.
func TestTheBoardInABrowser(t *testing.T) {
	needed(t)
	dir, free := mesh(t)
	cmd := exec.CommandContext(t.Context(), "node", "test/board.mjs", dir, strconv.Itoa(free))
	cmd.Dir = web
	cmd.WaitDelay = 10 * time.Second // for nodes that it leaves behind
	out, err := cmd.CombinedOutput()
	done, why, _ := strings.Cut(string(out), "failed: ")
	t.Log(done)
	if err != nil {
		t.Fatalf("%v: %s", err, cmp.Or(why, done))
	}
	if steps := strings.Count(string(out), "ok: "); steps < 25 {
		t.Errorf("only %d steps ran:\n%s", steps, out)
	}
}

// What is committed is what the sources give: types of the API, tests of the logic, the build.
func TestTheBuildIsAsCommitted(t *testing.T) {
	needed(t)
	out, err := exec.CommandContext(t.Context(), "../../scripts/ui", "check").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "board: built as committed") {
		t.Fatalf("%v\n%s", err, out)
	}
}
