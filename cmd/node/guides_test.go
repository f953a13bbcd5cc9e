package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/testnet"
)

// guidePrelude is what a guide's commands need: free addresses, and functions for what
// happens between them. A comment in the text, <!-- test: … -->, is a line of shell that
// is run at its place.
const guidePrelude = `
set -eu
export SELVAGE_HTTP=127.0.0.1:$PORT0 SELVAGE_MESH=127.0.0.1:$PORT4 SELVAGE_MDNS=off
trap 'code=$?; [ $code = 0 ] || tail -n 15 *.log net/*.log >&2 || true; kill $(jobs -p) 2>/dev/null || true; ` +
	`wait || true; exit $code' EXIT
eventually() { for i in $(seq 1500); do if sh -c "$1" >/dev/null 2>&1; then return; fi; sleep 0.2; done; echo ` +
	`"never: $1" >&2; exit 1; }
one() { selvage up --dir net/n1 --name n1 2>n1.log & eventually 'selvage members'; }
three() { selvage testnet up -n 3 --dir net --http-port $PORT0 --mesh-port $PORT4 >/dev/null 2>&1; eventually ` +
	`'selvage autopilot state | grep "failure tolerance 1"'; }
rust() { test -d "$(rustc --print target-libdir --target wasm32-wasip1 2>/dev/null)" && cargo --version >/dev/null; }
old() { if selvage up --dir net/$1 --name $1 --http 127.0.0.1:$PORT1 --mesh 127.0.0.1:$PORT5 2>old.log; then ` +
	`echo "$1 goes on" >&2; exit 1; fi; grep -q 'another epoch' old.log; }
`

// places replaces the addresses and directories of the guides by those of the test.
var places = strings.NewReplacer(
	"127.0.0.2:9470", "127.0.0.1:$PORT5", "127.0.0.1:9470", "127.0.0.1:$PORT4",
	"127.0.0.1:3102", "127.0.0.1:$PORT1", "127.0.0.1:3103", "127.0.0.1:$PORT2",
	"~/selvage/", "$SOURCES/",
	"/var/lib/selvage2", "net/n2", "/var/lib/selvage3", "net/n3", "/var/lib/restored", "restored",
	"/var/lib/selvage", "net/n1",
)

// guideScript makes a script from a guide. It runs blocks marked "sh";
// TestServiceUnderSystemd runs those marked "sh other: deploy/edge …".
func guideScript(t *testing.T, name, text string) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(guidePrelude)
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if hidden, ok := strings.CutPrefix(line, "<!-- test: "); ok {
			fmt.Fprintf(&out, "%s\n", strings.TrimSuffix(hidden, " -->"))
		}
		fence, ok := strings.CutPrefix(line, "```")
		if !ok {
			continue
		}
		begin := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		block := lines[begin:min(i, len(lines))]
		switch reason, other := strings.CutPrefix(fence, "sh other: "); {
		case fence == "sh":
			for _, l := range block {
				fmt.Fprintf(&out, "echo %q\n%s\n", "+ "+strings.ReplaceAll(l, "$", "_"), places.Replace(l))
			}
		case other && name == "install-pi" && strings.HasPrefix(reason, "deploy/edge runs it"):
		case strings.HasPrefix(fence, "sh"):
			t.Errorf("%s: a block of commands is not run: %q", name, fence)
		}
	}
	return out.String()
}

// named matches a command in a sentence, flagged a flag of selvage up.
var (
	named   = regexp.MustCompile("`selvage ([^`]+)`")
	flagged = regexp.MustCompile("`(--[a-z-]+)(?:[ =][^`]*)?`")
)

// The commands, their flags and the flags of selvage up that the sentences of the guides
// name exist.
func TestGuidesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	guides, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	root, found := newRoot(), 0
	up, _, err := root.Find([]string{"up"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(guides, "../../README.md") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		for _, m := range named.FindAllStringSubmatch(string(b), -1) {
			found++
			words := strings.Fields(m[1])
			cmd, _, err := root.Find(spelledOut(root, words))
			if err != nil || cmd == root {
				t.Errorf("%s: there is no selvage %s", name, m[1])
				continue
			}
			for _, w := range words {
				flag, _, _ := strings.Cut(strings.Trim(w, "[]"), "=")
				if long, ok := strings.CutPrefix(flag, "--"); ok && cmd.Flags().Lookup(long) == nil && cmd.InheritedFlags().
					Lookup(long) == nil {
					t.Errorf("%s: selvage %s has no %s", name, cmd.Name(), flag)
				}
			}
		}
		if !strings.Contains(string(b), "<!-- test: ") && name != "home-lan.md" {
			continue
		}
		for _, m := range flagged.FindAllStringSubmatch(string(b), -1) {
			found++
			known := false
			for _, cmd := range append([]*cobra.Command{up}, root.Commands()...) {
				known = known || cmd.Flags().Lookup(m[1][2:]) != nil
				for _, sub := range cmd.Commands() {
					known = known || sub.Flags().Lookup(m[1][2:]) != nil
				}
			}
			if !known {
				t.Errorf("%s: nothing has %s", name, m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("%d commands and flags were found", found)
	}
}

// Every command in the guides is run, in order, each guide on its own mesh.
func TestGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("the guides take a minute")
	}
	dir := t.TempDir()
	guides, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range guides {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, name := string(b), strings.TrimSuffix(filepath.Base(path), ".md")
		if !strings.Contains(text, "<!-- test: ") {
			continue
		}
		found++
		script := "exec bash guide.sh\n-- guide.sh --\n" + guideScript(t, name, text)
		if err := os.WriteFile(filepath.Join(dir, name+".txtar"), []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found < 5 {
		t.Errorf("%d guides have tests", found)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(e *testscript.Env) error {
			if err := givePorts(e); err != nil {
				return err
			}
			// For guides that build guests.
			sources, err := filepath.Abs("../..")
			if err != nil {
				return err
			}
			e.Setenv("SOURCES", sources)
			if home, err := os.UserHomeDir(); err == nil {
				e.Setenv("RUSTUP_HOME", cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(home, ".rustup")))
				e.Setenv("CARGO_HOME", cmp.Or(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")))
			}
			if cache, err := os.UserCacheDir(); err == nil {
				e.Setenv("GOCACHE", cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")))
			}
			e.Defer(func() {
				if p, err := testnet.Load(filepath.Join(e.WorkDir, "net")); err == nil {
					p.Down()
				}
			})
			return nil
		},
	})
}
