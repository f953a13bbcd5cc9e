package testkit

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Where nobody signs in, a run is not taken for the board when it leaves its token
// out: by no node of the machine, from whatever process of its tree, and also when
// it does not wait for the answer. With its token it speaks as its agent, and a
// person as the board meanwhile.
func TestARunWithoutItsTokenIsNotTheBoard(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	b := Mesh(t, 3, working(t.TempDir()))
	other := Mesh(t, 1) // a mesh that the run is not of
	of, out := b.Company("Acme"), t.TempDir()
	// Each line of the result is what was asked and how it was answered.
	const script = `
ask() { name=$1; shift; printf '%s ' "$name" >> $OUT/part; curl -s -o $OUT/body -w '%{http_code}' "$@" >> ` +
		`$OUT/part; printf ' %s\n' "$(head -c 300 $OUT/body)" >> $OUT/part; }
token() { ask "$1" -X POST -H 'Content-Type: application/json' -d '{}' "$2/api/v1/mesh/tokens"; }
token own $N1; token second $N2; token stranger $N3
ask list $N1/api/companies
ask mcp -X POST -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d ` +
		`'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"paperclipApiRequest",` +
		`"arguments":{"method":"POST","path":"/v1/mesh/tokens","jsonBody":"{}"}}}' $N1/mcp
ask agent -H "Authorization: Bearer $PAPERCLIP_API_KEY" $N1/api/agents/me
(setsid sh -c 'curl -s -o $OUT/orphan-body -w "orphan %{http_code}\n" -X POST -H "Content-Type: ` +
		`application/json" -d "{}" $N1/api/v1/mesh/tokens > $OUT/orphan.part; mv $OUT/orphan.part $OUT/orphan' &)
while [ ! -e $OUT/orphan ]; do sleep 0.05; done
cat $OUT/orphan >> $OUT/part
mv $OUT/part $OUT/done
exec sleep 1000`
	env := map[string]any{"OUT": out, "N1": b.URL(0, ""), "N2": b.URL(1, ""), "N3": other.URL(0, "")}
	a, err := b.Hire(0, of, "Curious", map[string]any{"command": "/bin/sh", "args": []string{"-c", script}, "graceSec": 1,
		"env": env, "writable": []string{out}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Invoke(0, &a); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(readFile(b, filepath.Join(out, "done"))), "\n")
	for i, want := range []string{"own 401 ", "second 401 ", "stranger 401 ", "list 401 ", "mcp 200 ", "agent 200 ",
		"orphan 401"} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Errorf("answers %q, want %q as number %d", lines, want, i+1)
			continue
		}
		if !strings.HasPrefix(want, "agent") && !strings.HasPrefix(want, "orphan") && !strings.Contains(lines[i],
			"PAPERCLIP_API_KEY") {
			t.Errorf("the refusal does not say what to do: %s", lines[i])
		}
	}
	for name, bed := range map[string]*Bed{"own": b, "stranger": other} {
		var tokens []struct{ ID string }
		if bed.Must(0, "GET", "/api/v1/mesh/tokens", nil,
			&tokens); len(tokens) != map[string]int{"own": 1}[name] { // the one that the others joined by
			t.Errorf("%d tokens on the mesh %s", len(tokens), name)
		}
	}
	curl := exec.Command("curl", "-s", "-o", os.DevNull, "-w", "%{http_code}", b.URL(0, "/api/companies"))
	if code, err := curl.Output(); err != nil || string(code) != "200" {
		t.Errorf("a person's program was answered %s, %v", code, err)
	}
	if ans := b.Must(1, "GET", "/api/companies", nil, nil); ans.Status != http.StatusOK {
		t.Errorf("a person was answered %d", ans.Status)
	}
}
