package upkeep

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/testnet"
)

const (
	// patience bounds each wait; generous, because the machine may be small and busy.
	patience = 3 * time.Minute
	// pause is between two looks, and between two writes.
	pause = 100 * time.Millisecond
)

// build links the program under a version; with a level, as one that knows another
// feature level than this tree.
func build(t *testing.T, version, level string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "selvage")
	flags := "-s -w -X main.version=" + version
	if level != "" {
		flags += " -X main.level=" + level
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", path, "../../cmd/node").
		CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out after %s waiting until %s", patience, what)
		}
	}
}

// A rolling is a mesh that is upgraded.
type rolling struct {
	*testnet.Processes
	t        *testing.T
	dir      string
	old, new string
}

// run calls the command line of a build against a node.
func (r *rolling) run(program, node string, args ...string) (string, error) {
	for _, n := range r.Nodes {
		if n.Name == node {
			args = append([]string{"--api", n.HTTP}, args...)
		}
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	return string(out), err
}

// must is run for what has to succeed.
func (r *rolling) must(program, node string, args ...string) string {
	r.t.Helper()
	out, err := r.run(program, node, args...)
	if err != nil {
		r.t.Fatalf("selvage %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// replace has a node run another program, as docs/upgrade.md says: drained through
// another node, stopped, started, given work again, and waited for.
func (r *rolling) replace(node, by, other string) {
	r.t.Helper()
	r.must(r.old, other, "drain", node, "--reason", "upgrade")
	if err := r.Stop(node); err != nil {
		r.t.Fatal(err)
	}
	r.Bin = by
	if err := r.Start(r.t.Context(), node); err != nil {
		r.t.Fatal(err)
	}
	r.must(r.old, other, "undrain", node)
	until(r.t, "any one node may die", func() bool {
		out, err := r.run(r.old, other, "autopilot", "state")
		return err == nil && strings.Contains(out, "failure tolerance 1")
	})
}

// said returns what a node has logged from a place on.
func (r *rolling) said(node string, from int) string {
	b, err := os.ReadFile(filepath.Join(r.dir, node+".log"))
	if err != nil || len(b) < from {
		return ""
	}
	return string(b[from:])
}

// level returns the mesh's feature level as a node has it.
func (r *rolling) level(n testnet.Node) string {
	res, err := http.Get(n.HTTP + "/metrics")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	_, rest, _ := strings.Cut(string(b), "\nselvage_feature_level ")
	v, _, _ := strings.Cut(rest, "\n")
	return v
}

// Three nodes are upgraded one after the other while issues are written all the time. A
// node that was upgraded goes back as long as the others were not. When all are new, the
// mesh's feature level rises, and from then on the old program stops and says why.
// Nothing that was acknowledged is lost.
func TestRollingUpgrade(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes are left out of -short")
	}
	r := &rolling{t: t, dir: t.TempDir(), old: build(t, "v1.0.0", ""), new: build(t, "v1.1.0", "2")}
	port, err := testnet.FreePorts(6)
	if err != nil {
		t.Fatal(err)
	}
	r.Processes, err = testnet.Up(t.Context(), testnet.Options{Dir: r.dir, Bin: r.old, N: 3, HTTPPort: port,
		MeshPort: port + 3, Args: []string{"--log-level=warn"}, Log: io.Discard})
	t.Cleanup(func() { r.End(t) })
	if err != nil {
		t.Fatal(err)
	}
	r.must(r.old, "n1", "company", "create", "Acme")
	stop := r.write()

	r.replace("n1", r.new, "n2")
	r.replace("n2", r.new, "n3")
	if out, _ := r.run(r.old, "n3", "doctor"); !strings.Contains(out, "the nodes run different versions") {
		t.Errorf("doctor says nothing of the versions:\n%s", out)
	}
	r.replace("n1", r.old, "n3") // back: the mesh's level is the old one still
	if got := r.level(r.Nodes[2]); got != "1" {
		t.Errorf("feature level is %s while a node is old, want 1", got)
	}
	r.replace("n1", r.new, "n3")
	r.replace("n3", r.new, "n1")
	until(t, "the feature level rises", func() bool { return r.level(r.Nodes[0]) == "2" && r.level(r.Nodes[2]) == "2" })

	r.refused("n3")
	if err := r.Start(t.Context(), "n3"); err != nil {
		t.Fatal(err)
	}
	written := stop()
	if len(written) < 20 {
		t.Errorf("%d issues were written in all that time", len(written))
	}
	r.whole(written)
}

// refused starts a node with the old program on data of the raised level: it says why
// it stops, serves no writes, and keeps its data. It is stopped again.
func (r *rolling) refused(node string) {
	t := r.t
	if err := r.Stop(node); err != nil {
		t.Fatal(err)
	}
	from := len(r.said(node, 0))
	r.Bin = r.old
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx, node) }()
	want := "the mesh uses something this version does not know: upgrade this node: feature level 2, this node has 1"
	until(t, "the old program says that it is to be upgraded",
		func() bool { return strings.Contains(r.said(node, from), want) })
	stop()
	if err := <-ended; err == nil {
		t.Error("the old program is ready in a mesh of the new level")
	}
	_ = r.Stop(node) // it may have ended by itself
	r.Bin = r.new
}

// write creates issues through all nodes in turn until stop, which returns the
// identifiers of those that were acknowledged. What is not acknowledged is sent again,
// through the next node, under the same key.
func (r *rolling) write() (stop func() []string) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var companies []struct{ ID string }
	if _, err := r.Nodes[0].Call(ctx, "GET", "/api/companies", nil, &companies); err != nil || len(companies) != 1 {
		r.t.Fatal(err, companies)
	}
	nodes := []testnet.Node{r.Nodes[0], r.Nodes[1], r.Nodes[2]}
	var done sync.WaitGroup
	var written []string
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			for try := i; ctx.Err() == nil; try++ {
				var row struct{ Identifier string }
				one, end := context.WithTimeout(ctx, 10*time.Second)
				_, err := nodes[try%3].Call(one, "POST", "/api/companies/"+companies[0].ID+"/issues",
					map[string]any{"title": fmt.Sprint("Issue ", i)}, &row, "Idempotency-Key", fmt.Sprint("issue-", i))
				end()
				if err == nil {
					written = append(written, row.Identifier)
					break
				}
				time.Sleep(pause)
			}
			time.Sleep(pause)
		}
	})
	return func() []string { cancel(); done.Wait(); return written }
}

// whole checks that every node has all that was written, under one chain that verifies.
func (r *rolling) whole(written []string) {
	for _, n := range r.Nodes {
		for _, id := range written {
			if _, err := n.Call(r.t.Context(), "GET", "/api/issues/"+id, nil, nil); err != nil {
				r.t.Errorf("%s of %s: %v", id, n.Name, err)
			}
		}
		r.must(r.new, n.Name, "ledger", "verify")
	}
	seen := map[string]bool{}
	for _, id := range written {
		if seen[id] {
			r.t.Errorf("%s was acknowledged twice", id)
		}
		seen[id] = true
	}
	r.t.Logf("%d issues were written during the upgrade", len(written))
}
