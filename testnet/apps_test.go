package testnet

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/plugin"
)

// till is the service of the app: it notes where it starts, crashes while a file is there, and
// answers with its version and its node.
const till = `echo "till $V $SELVAGE_NODE" >> "$NOTES"
while :; do
  [ ! -e "$SICK" ] || exit 3
  m=$("$SELVAGE" ipc recv --limit 1 --wait-ms 500 -o json | tr -d ' \n')
  id=$(echo "$m" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  [ -z "$id" ] || "$SELVAGE" ipc reply "$id" --json "{\"result\":\"$V $SELVAGE_NODE\"}"
done`

// decides is the program of the hook that decides an upgrade: it waits for a file, and version 3.0.0 fails.
const decides = `echo "decides $SELVAGE_APP_VERSION $SELVAGE_NODE" >> "$NOTES"
while [ ! -e "$GO" ]; do sleep 0.1; done
[ "$SELVAGE_APP_VERSION" != 3.0.0 ]`

// installed is the program of the hook that comes after the installation: it notes when it runs.
const installed = `echo "$(date +%s%N) began" > "$NOTES.installed"`

// shop packs a version of the app.
func shop(t *testing.T, version string, env map[string]string) string {
	t.Helper()
	env["V"] = version
	manifest, err := json.Marshal(map[string]any{"name": "shop", "version": version, "description": "Sells",
		"capabilities": map[string]any{"shell": true}, "health": map[string]any{"within": "1s"},
		"services": []any{map[string]any{"name": "till", "script": "till.sh", "env": env,
			"methods": []any{map[string]any{"name": "where"}}}},
		"hooks": map[string]any{"health": map[string]any{"script": "decides.sh", "env": env, "time": "2m"},
			"on_install": map[string]any{"script": "installed.sh", "env": env}}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := plugin.Pack(plugin.Files{"selvage-app.json": manifest, "till.sh": []byte(till),
		"decides.sh": []byte(decides), "installed.sh": []byte(installed)},
		ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// shopRow is what the test reads of the app.
type shopRow struct {
	Version, State string
	Reason         *string
	Watched        *string `json:"upgradeWatchedUntil"`
	Hooks          []struct{ Event, Version, State, Node string }
}

// Nodes are killed in the middle of what happens to an app. The one that was asked for an upgrade: the
// upgrade is there whole. The one whose service is about to be started again after a crash: another one
// runs it. The one that executes the program which decides an upgrade: another one executes it again, and
// its failure takes the upgrade back. Nothing waits for ever.
func TestAppsOfAMesh(t *testing.T) {
	p := processes(t)
	dir := t.TempDir()
	notes, sick, ready := filepath.Join(dir, "notes"), filepath.Join(dir, "sick"), filepath.Join(dir, "go")
	env := map[string]string{"SELVAGE": selvage, "NOTES": notes, "SICK": sick, "GO": ready}
	company, _ := newIssue(t, p)
	at := "/api/companies/" + string(company)
	noted := func(what string) (nodes []string) {
		b, _ := os.ReadFile(notes)
		for line := range strings.Lines(string(b)) {
			if node, ok := strings.CutPrefix(strings.TrimSpace(line), what+" "); ok {
				nodes = append(nodes, node)
			}
		}
		return nodes
	}
	// now waits until the app stands as a test wants it, and its service answers.
	now := func(what, version string, as func(shopRow) bool) (answered string) {
		var a shopRow
		within(2*time.Minute).Until(t, what, func() bool {
			must(t, p, "GET", at+"/apps/shop", nil, &a)
			return as(a)
		})
		within(2*time.Minute).Until(t, what+", and its service answers", func() bool {
			var r struct{ Result string }
			for i := range p.Nodes {
				if n := &p.Nodes[i]; p.alive(n) {
					if _, err := n.Call(t.Context(), "POST", at+"/services/shop/till/call",
						map[string]any{"method": "where", "timeoutMs": 5000}, &r); err == nil {
						v, node, _ := strings.Cut(r.Result, " ")
						answered = node
						return v == version
					}
				}
			}
			return false
		})
		b, _ := json.Marshal(a)
		t.Logf("%s: %s", what, b)
		return answered
	}
	settled := func(version string) func(shopRow) bool {
		return func(a shopRow) bool { return a.Version == version && a.State == "running" && a.Watched == nil }
	}
	body := func(version string) map[string]any {
		return map[string]any{"archive": shop(t, version, env), "grant": []string{"shell"}}
	}
	first := body("1.0.0")
	asked := time.Now()
	must(t, p, "POST", at+"/apps", first, nil)
	within(2*time.Minute).Until(t, "the program of on_install has run", func() bool {
		var a shopRow
		must(t, p, "GET", at+"/apps/shop", nil, &a)
		return len(a.Hooks) > 0 && a.Hooks[0].State == "succeeded"
	})
	known := time.Now()
	if began := notesOf(t, notes+".installed"); len(began) == 1 {
		t.Logf("the program of on_install began %s after the installation was asked for, and its end was known %s later",
			time.Duration(began[0].at-asked.UnixNano()).Round(time.Millisecond),
			time.Duration(known.UnixNano()-began[0].at).Round(time.Millisecond))
	} else {
		t.Errorf("the program of on_install ran as %v", began)
	}
	now("version 1.0.0 is installed", "1.0.0", settled("1.0.0"))

	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	leads, err := p.Node(leaderOf(t, p))
	if err != nil {
		t.Fatal(err)
	}
	two := body("2.0.0")
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, _ = leads.Call(ctx, "POST", at+"/apps/shop/upgrade", two, nil, "Idempotency-Key", "two")
	}()
	time.Sleep(20 * time.Millisecond) // somewhere in the upgrade: whole or not at all is what has to hold
	if err := p.Kill(leads.Name); err != nil {
		t.Fatal(err)
	}
	within(2*time.Minute).Until(t, "the upgrade is asked for again", func() bool {
		var a shopRow
		must(t, p, "GET", at+"/apps/shop", nil, &a)
		if a.Version == "2.0.0" {
			return true
		}
		_, err := other(t, p, leads.Name).Call(t.Context(), "POST", at+"/apps/shop/upgrade", two, nil,
			"Idempotency-Key", "two")
		return err == nil
	})
	home := now("version 2.0.0 is kept", "2.0.0", settled("2.0.0"))
	if err := p.Start(t.Context(), leads.Name); err != nil {
		t.Fatal(err)
	}

	before := len(noted("till 2.0.0"))
	if err := os.WriteFile(sick, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within(time.Minute).Until(t, "the service crashes", func() bool { return len(noted("till 2.0.0")) > before })
	if err := p.Kill(home); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(sick); err != nil {
		t.Fatal(err)
	}
	if again := now("the service runs elsewhere", "2.0.0", settled("2.0.0")); again == home {
		t.Errorf("node %s answers, which was killed", again)
	}
	if err := p.Start(t.Context(), home); err != nil {
		t.Fatal(err)
	}

	if err := os.Remove(ready); err != nil {
		t.Fatal(err)
	}
	must(t, p, "POST", at+"/apps/shop/upgrade", body("3.0.0"), nil)
	within(2*time.Minute).
		Until(t, "the program that decides runs", func() bool { return len(noted("decides 3.0.0")) == 1 })
	decider := noted("decides 3.0.0")[0]
	if err := p.Kill(decider); err != nil {
		t.Fatal(err)
	}
	within(2*time.Minute).Until(t, "the program runs again", func() bool { return len(noted("decides 3.0.0")) > 1 })
	if all := noted("decides 3.0.0"); slices.Contains(all[1:], decider) {
		t.Errorf("the program ran on %v", all)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	now("version 3.0.0 is taken back", "2.0.0", func(a shopRow) bool {
		return settled("2.0.0")(a) && a.Reason != nil && strings.HasPrefix(*a.Reason, "went back from 3.0.0")
	})
}
