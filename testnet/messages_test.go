package testnet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// worker is a program that reads its messages with the command line: it answers requests, hangs
// over those that say slow, and over a job until it is handed out again.
const worker = `while :; do
  "$SELVAGE" ipc recv --limit 1 --wait-ms 20000 | tail -n +2 | while read -r id from kind text reply reliable ` +
	`attempt; do
    case "$text" in
    slow) echo slow >> "$NOTES"; sleep 600 ;;
    job) echo "taken $attempt" >> "$NOTES"; if [ "$attempt" = 1 ]; then sleep 600; fi; echo "handled $id" >> ` +
	`"$NOTES"; "$SELVAGE" ipc ack "$id" ;;
    *) "$SELVAGE" ipc reply "$id" "re-$text" ;;
    esac
  done
done`

// Two programs on different nodes talk by name. The receiver's node is killed in the middle of a
// request: the caller is told before its deadline. It is killed in the middle of a reliable send:
// whoever takes the name over on another node handles the message, once.
func TestMessagesOfAMesh(t *testing.T) {
	p := processes(t)
	notes := filepath.Join(t.TempDir(), "notes")
	must(t, p, "PUT", "/api/v1/declared-processes/worker", map[string]any{"command": []string{"sh", "-c", worker},
		"replicas": 1,
		"env":      map[string]string{"SELVAGE": selvage, "NOTES": notes}}, nil)
	home := func() (node string) {
		within(2*time.Minute).Until(t, "the worker runs", func() bool {
			for _, r := range live(t, p) {
				if r.Name == "worker" && r.State == "running" {
					node = r.Node
					return true
				}
			}
			return false
		})
		return node
	}
	at := home()
	from := other(t, p, at)
	reply := filepath.Join(t.TempDir(), "reply")
	if _, err := from.Call(t.Context(), "POST", "/api/v1/processes", map[string]any{"node": from.Name, "name": "asker",
		"command": []string{"sh", "-c",
			`"$SELVAGE" ipc request name:worker hello --wait-ms 30000 > "$REPLY.new" && mv "$REPLY.new" "$REPLY"`},
		"env": map[string]string{"SELVAGE": selvage, "REPLY": reply}}, nil); err != nil {
		t.Fatal(err)
	}
	within(time.Minute).Until(t, "the asker has its reply", func() bool {
		b, _ := os.ReadFile(reply)
		return strings.Contains(string(b), "re-hello")
	})

	noted := func(what string) int {
		b, _ := os.ReadFile(notes)
		return strings.Count(string(b), what)
	}
	const patience = 40 * time.Second
	type outcome struct {
		status int
		err    error
		took   time.Duration
	}
	asked := make(chan outcome, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		began := time.Now()
		status, err := from.Call(ctx, "POST", "/api/v1/ipc/request", map[string]any{"to": "name:worker", "text": "slow",
			"wait_ms": patience.Milliseconds()}, nil)
		asked <- outcome{status, err, time.Since(began)}
	}()
	within(time.Minute).Until(t, "the worker has the request", func() bool { return noted("slow") > 0 })
	if err := p.Kill(at); err != nil {
		t.Fatal(err)
	}
	o := <-asked
	if o.status != 409 || o.err == nil || o.took > patience+5*time.Second || !strings.Contains(o.err.Error(),
		"not known whether") {
		t.Errorf("the caller got %d %v after %s", o.status, o.err, o.took)
	}
	t.Logf("the caller was told after %s: %v", o.took.Round(10*time.Millisecond), o.err)
	if err := p.Start(t.Context(), at); err != nil {
		t.Fatal(err)
	}

	at = home()
	from = other(t, p, at)
	if _, err := from.Call(t.Context(), "POST", "/api/v1/ipc/send", map[string]any{"to": "name:worker", "text": "job",
		"durable": true}, nil); err != nil {
		t.Fatal(err)
	}
	within(time.Minute).Until(t, "the worker has the job", func() bool { return noted("taken 1") > 0 })
	killed := time.Now()
	if err := p.Kill(at); err != nil {
		t.Fatal(err)
	}
	var outbox struct{ Messages []struct{ Attempts int } }
	within(2*time.Minute).Until(t, "the job is acknowledged", func() bool {
		_, err := from.Call(t.Context(), "GET", "/api/v1/ipc/outbox", nil, &outbox)
		return err == nil && len(outbox.Messages) == 0
	})
	t.Logf("handled %s after the kill", time.Since(killed).Round(10*time.Millisecond))
	if n := noted("handled"); n != 1 {
		b, _ := os.ReadFile(notes)
		t.Errorf("the job was handled %d times: %s", n, b)
	}
}
