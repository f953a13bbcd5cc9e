package testnet

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// provider is a program that provides the service of the test with the command line. Method late
// answers when a file is there, die ends the program, hang never answers, and sick breaks the
// contract while a file is there.
const provider = `reply() { "$SELVAGE" ipc reply "$id" --json "$1"; }
while :; do
  m=$("$SELVAGE" ipc recv --limit 1 --wait-ms 20000 -o json | tr -d ' \n')
  id=$(echo "$m" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  [ -n "$id" ] || continue
  case $(echo "$m" | sed -n 's/.*"method":"\([^"]*\)".*/\1/p') in
  where) reply "{\"result\":\"$SELVAGE_NODE\"}" ;;
  late) echo late-taken >> "$NOTES"; while [ ! -e "$GO" ]; do sleep 0.1; done
    if reply '{"result":"late"}'; then echo answered >> "$NOTES"; else echo refused >> "$NOTES"; fi ;;
  die) echo died >> "$NOTES"; exit 3 ;;
  hang) echo hangs >> "$NOTES"; sleep 600 ;;
  sick) if [ -e "$SICK" ]; then reply '{"result":1}'; else reply '{"result":"well"}'; fi ;;
  *) echo job >> "$NOTES"; "$SELVAGE" ipc ack "$id" ;;
  esac
done`

// A service whose provider runs on one node is called through another: by HTTP, by the command
// line, and by a process with a message. What a provider does badly reaches the caller, in time.
func TestServicesOfAMesh(t *testing.T) {
	p := processes(t)
	dir := t.TempDir()
	notes, sick, ready := filepath.Join(dir, "notes"), filepath.Join(dir, "sick"), filepath.Join(dir, "go")
	must(t, p, "PUT", "/api/v1/declared-processes/answerer", map[string]any{"command": []string{"sh", "-c", provider},
		"replicas": 1, "env": map[string]string{"SELVAGE": selvage, "NOTES": notes, "SICK": sick, "GO": ready}}, nil)
	type method struct {
		Name   string         `json:"name"`
		Result map[string]any `json:"result"`
	}
	var methods []method
	for _, name := range []string{"where", "late", "die", "hang", "sick"} {
		methods = append(methods, method{name, map[string]any{"type": "string"}})
	}
	must(t, p, "PUT", "/api/v1/services/answers", map[string]any{"version": "1", "provider": "answerer",
		"methods": methods}, nil)
	home := func() string {
		var s struct {
			Providers []struct{ Node string }
		}
		within(2*time.Minute).Until(t, "the provider runs", func() bool {
			must(t, p, "GET", "/api/v1/services/answers", nil, &s)
			return len(s.Providers) == 1
		})
		return s.Providers[0].Node
	}
	at := home()
	from := *other(t, p, at)
	noted := func(what string) bool {
		b, _ := os.ReadFile(notes)
		return strings.Contains(string(b), what)
	}
	type result struct {
		Result, By string
		Attempts   int
	}
	// call waits long for an answer where no time-out is what is tested.
	call := func(method string, timeout time.Duration) (r result, status int, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		status, err = from.Call(ctx, "POST", "/api/v1/services/answers/call", map[string]any{"method": method,
			"timeout_ms": timeout.Milliseconds()}, &r)
		return r, status, err
	}
	const long = 2 * time.Minute
	if r, _, err := call("where", long); err != nil || r.Result != at || !strings.HasPrefix(r.By, at+":") {
		t.Errorf("by HTTP at %s: %+v, %v", from.Name, r, err)
	}
	command := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), selvage, args...)
		cmd.Env = append(os.Environ(), "SELVAGE_API_URL="+from.HTTP)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		return said.String(), err
	}
	if said, err := command("service", "call", "answers", "where", "--timeout", "120000"); err != nil ||
		!strings.Contains(said, at) {
		t.Errorf("by the command line: %v %s", err, said)
	}
	asked := filepath.Join(dir, "asked")
	if _, err := from.Call(t.Context(), "POST", "/api/v1/processes", map[string]any{"node": from.Name, "name": "asker",
		"command": []string{"sh", "-c",
			`"$SELVAGE" ipc request service:answers/where null --wait-ms 60000 -o json > "$ASKED.new"
"$SELVAGE" ipc send service:answers job --reliable --await --wait-ms 60000 >> "$ASKED.new" 2>&1
"$SELVAGE" ipc request service:answers/none x --wait-ms 60000 >> "$ASKED.new" 2>&1
mv "$ASKED.new" "$ASKED"`},
		"env": map[string]string{"SELVAGE": selvage, "ASKED": asked}}, nil); err != nil {
		t.Fatal(err)
	}
	within(2*time.Minute).
		Until(t, "the asker has its answers", func() bool { _, err := os.Stat(asked); return err == nil })
	if b, _ := os.ReadFile(asked); !strings.Contains(string(b), `"`+at+`"`) ||
		!strings.Contains(string(b), "acknowledged") || !strings.Contains(string(b), "no such method") {
		t.Errorf("by message: %s", b)
	}

	began := time.Now()
	if _, status, err := call("die", long); status != http.StatusUnprocessableEntity || time.Since(began) > long ||
		!strings.Contains(err.Error(), "lost") {
		t.Errorf("a provider that dies in the middle: %d %v after %s", status, err, time.Since(began))
	}
	within(2*time.Minute).Until(t, "the provider was started again", func() bool {
		r, _, err := call("where", 10*time.Second)
		return err == nil && r.Result == at
	})

	within(2*time.Minute).Until(t, "a call ends while the provider works on it", func() bool {
		if _, status, err := call("late", 10*time.Second); status != http.StatusUnprocessableEntity ||
			!strings.Contains(err.Error(), "in time") {
			t.Fatalf("a provider that is late: %d %v", status, err)
		}
		return noted("late-taken")
	})
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	within(time.Minute).Until(t, "the late answer is refused", func() bool { return noted("refused") })
	if noted("answered") {
		t.Error("an answer was taken for which nobody waits")
	}
	// Calls that fail open the breaker of this node. When it lets one pass that is answered well, it closes.
	if err := os.WriteFile(sick, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	breaker := func() string {
		var s struct {
			Providers []struct{ Breaker string }
		}
		if _, err := from.Call(t.Context(), "GET", "/api/v1/services/answers", nil, &s); err != nil || len(s.Providers) != 1 {
			return ""
		}
		return s.Providers[0].Breaker
	}
	within(time.Minute).Until(t, "the breaker opens", func() bool {
		_, _, err := call("sick", long)
		return err != nil && breaker() == "open"
	})
	_, status, err := call("where", long)
	sent, ipc := from.Call(t.Context(), "POST", "/api/v1/ipc/request", map[string]any{"to": "service:answers/where",
		"text": "x"}, nil)
	if breaker() == "open" && (status != http.StatusServiceUnavailable || sent != http.StatusTooManyRequests) {
		t.Errorf("while the breaker is open: %d %v; by message %d %v", status, err, sent, ipc)
	}
	if err := os.Remove(sick); err != nil {
		t.Fatal(err)
	}
	within(2*time.Minute).Until(t, "the breaker closes", func() bool {
		_, _, err := call("sick", long)
		return err == nil && breaker() == "closed"
	})

	lost := make(chan int, 1)
	go func() {
		_, status, _ := call("hang", long)
		lost <- status
	}()
	within(time.Minute).Until(t, "the provider hangs", func() bool { return noted("hangs") })
	if err := p.Kill(at); err != nil {
		t.Fatal(err)
	}
	if status := <-lost; status != http.StatusUnprocessableEntity {
		t.Errorf("the provider's node was killed in the middle: %d", status)
	}
	within(2*time.Minute).Until(t, "another node provides the service", func() bool {
		r, _, err := call("where", 10*time.Second)
		return err == nil && r.Result != at
	})
}

// other returns a node that is up, and not the one of a name.
func other(t *testing.T, p *Processes, than string) *Node {
	t.Helper()
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Name != than && p.alive(n) {
			return n
		}
	}
	t.Fatal("no other node is up")
	return nil
}
