package testnet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A note is a line that a program of a test wrote: when, in nanoseconds, and what.
type note struct {
	at   int64
	what string
}

// notesOf reads what programs wrote into a file.
func notesOf(t *testing.T, file string) (all []note) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		at, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(at, 10, 64)
		all = append(all, note{n, what})
	}
	return all
}

// withWord returns the notes that have a word.
func withWord(all []note, word string) (out []note) {
	for _, n := range all {
		if strings.Contains(n.what, word) {
			out = append(out, n)
		}
	}
	return out
}

// listener is a program that notes each message that it gets, as it is.
const listener = `while :; do
  m=$("$SELVAGE" ipc recv --limit 1 --wait-ms 20000 -o json | tr -d ' \n')
  case $m in *'"id"'*) echo "$(date +%s%N) $m" >> "$NOTES" ;; esac
done`

// beats is a program that notes that it lives, ten times a second.
const beats = `while :; do echo "$(date +%s%N) alive" >> "$NOTES"; sleep 0.1; done`

// A process on one node monitors one on another, and a third is linked to it. The other node is cut off: its process,
// which nobody declared, ends with its lease, before the mesh tells of it. Then the node of a second pair is killed.
// Each end is told once, the links end what they hold, and nothing is told again when the nodes are back.
func TestWatchesOfAMesh(t *testing.T) {
	p := processes(t)
	dir := t.TempDir()
	leader := leaderOf(t, p)
	here, err := p.Node(leader)
	if err != nil {
		t.Fatal(err)
	}
	type process struct{ address, notes string }
	spawn := func(on, name, script string) (out process) {
		t.Helper()
		out.notes = filepath.Join(dir, name)
		var r struct{ Address string }
		must(t, p, "POST", "/api/v1/processes", map[string]any{"node": on, "name": name,
			"command": []string{"sh", "-c", script}, "env": map[string]string{"SELVAGE": selvage, "NOTES": out.notes}}, &r)
		out.address = r.Address
		return out
	}
	pid := func(of process) string { _, n, _ := strings.Cut(of.address, ":"); return n }
	watch := func(kind string, by, of process) {
		t.Helper()
		// A node that is back takes work before every other one has heard of it again.
		within(time.Minute).Until(t, "its node is known to be there", func() bool {
			_, err := here.Call(t.Context(), "POST", "/api/v1/ipc/"+kind+"?process="+pid(by),
				map[string]any{"to": of.address}, nil)
			if err != nil && !strings.Contains(err.Error(), "NODE_UNREACHABLE") {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	stateOf := func(of process) (state string) {
		for _, n := range p.Nodes {
			if !strings.HasPrefix(of.address, n.Name+":") {
				continue
			}
			var row struct{ State string }
			_, _ = n.Call(t.Context(), "GET", "/api/v1/processes/"+of.address, nil, &row)
			return row.State
		}
		return ""
	}
	var watchers []process
	for i, end := range []func(node string) (back func()){
		func(node string) func() { // cut off
			if err := p.Partition([][]string{{node}}); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := p.Heal(); err != nil {
					t.Fatal(err)
				}
			}
		},
		func(node string) func() { // killed
			if err := p.Kill(node); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := p.Start(t.Context(), node); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		there := other(t, p, leader).Name
		watched := spawn(there, fmt.Sprint("watched", i), beats)
		watcher := spawn(leader, fmt.Sprint("watcher", i), listener)
		linked := spawn(leader, fmt.Sprint("linked", i), beats)
		watch("monitors", watcher, watched)
		watch("links", linked, watched)
		within(time.Minute).Until(t, "all of them run", func() bool {
			return len(notesOf(t, watched.notes)) > 0 && len(notesOf(t, linked.notes)) > 0
		})
		began := time.Now()
		back := end(there)
		within(2*time.Minute).Until(t, "the end is told", func() bool {
			return len(withWord(notesOf(t, watcher.notes), "monitor_down")) > 0
		})
		told := withWord(notesOf(t, watcher.notes), "monitor_down")[0]
		if !strings.Contains(told.what, "node_lost") {
			t.Errorf("told %s", told.what)
		}
		all := notesOf(t, watched.notes)
		last := all[len(all)-1]
		t.Logf("told after %s, %s after its last sign of life", time.Since(began).Round(10*time.Millisecond),
			time.Duration(told.at-last.at).Round(10*time.Millisecond))
		if last.at > told.at {
			t.Errorf("it lived for %s after its end was told", time.Duration(last.at-told.at))
		}
		within(time.Minute).Until(t, "the linked one is ended", func() bool { return stateOf(linked) == "exited" })
		back()
		within(2*time.Minute).Until(t, "the node is back", func() bool {
			var row struct{ Address string }
			_, err := here.Call(t.Context(), "POST", "/api/v1/processes", map[string]any{"node": there, "name": "again",
				"command": []string{"sleep", "600"}}, &row)
			return err == nil
		})
		if now := notesOf(t, watched.notes); len(now) != len(all) {
			t.Errorf("it went on: %v", now[len(all):])
		}
		if state := stateOf(watched); state == "running" {
			t.Errorf("it is %s", state)
		}
		watchers = append(watchers, watcher)
	}
	for _, w := range watchers { // long after, and with both nodes back
		if told := withWord(notesOf(t, w.notes), "monitor_down"); len(told) != 1 {
			t.Errorf("the end was told %d times: %v", len(told), told)
		}
	}
}

// topicReader is a program that handles the messages of a subscription that lasts, one after the other. The one that
// says slow it does not handle on its first node.
const topicReader = `"$SELVAGE" ipc subscribe 'jobs.*' --name work || exit 1
while :; do
  m=$("$SELVAGE" ipc recv --limit 1 --wait-ms 20000 -o json | tr -d ' \n')
  id=$(echo "$m" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')
  height=$(echo "$m" | sed -n 's/.*"height":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  echo "$(date +%s%N) taken $height $SELVAGE_NODE" >> "$NOTES"
  case $m in *slow*) if [ ! -e "$SLOW" ]; then echo "$SELVAGE_NODE" > "$SLOW"; sleep 600; fi ;; esac
  "$SELVAGE" ipc ack "$id" && echo "$(date +%s%N) handled $height $SELVAGE_NODE" >> "$NOTES"
done`

// The node of a durable subscription's reader is killed in the middle of a message, while others are published. The
// declared process starts on another node and takes the subscription over: nothing is lost, and what the mesh knew to
// be handled is not handed out again.
func TestSubscriptionsOfAMesh(t *testing.T) {
	p := processes(t)
	dir := t.TempDir()
	notes, slow := filepath.Join(dir, "notes"), filepath.Join(dir, "slow")
	must(t, p, "PUT", "/api/v1/subscriptions/work", map[string]any{"pattern": "jobs.*", "from": 1}, nil)
	var heights []uint64
	publish := func(text string) {
		t.Helper()
		var m struct{ Height uint64 }
		must(t, p, "POST", "/api/v1/topics/jobs.a", map[string]any{"text": text}, &m)
		heights = append(heights, m.Height)
	}
	for i := range 5 {
		publish(fmt.Sprint("job", i))
	}
	publish("slow")
	must(t, p, "PUT", "/api/v1/declared-processes/reader", map[string]any{"command": []string{"sh", "-c", topicReader},
		"replicas": 1, "env": map[string]string{"SELVAGE": selvage, "NOTES": notes, "SLOW": slow}}, nil)
	position := func() uint64 {
		var s struct {
			Subscriptions []struct{ Position uint64 }
		}
		must(t, p, "GET", "/api/v1/subscriptions", nil, &s)
		if len(s.Subscriptions) != 1 {
			t.Fatalf("subscriptions %+v", s)
		}
		return s.Subscriptions[0].Position
	}
	within(2*time.Minute).Until(t, "all before the slow one are handled, and the mesh knows it", func() bool {
		b, _ := os.ReadFile(slow)
		return len(b) > 0 && position() == heights[4]
	})
	b, err := os.ReadFile(slow)
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(string(b))
	killed := time.Now()
	if err := p.Kill(first); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		publish(fmt.Sprint("later", i))
	}
	last := heights[len(heights)-1]
	within(3*time.Minute).Until(t, "everything is handled", func() bool {
		return position() == last && len(withWord(notesOf(t, notes), fmt.Sprintf("handled %d ", last))) > 0
	})
	t.Logf("everything was handled %s after the kill", time.Since(killed).Round(10*time.Millisecond))
	all := notesOf(t, notes)
	for i, h := range heights {
		if h == 0 {
			t.Fatalf("message %d has no height", i)
		}
		handled, taken := withWord(all, fmt.Sprintf("handled %d ", h)), withWord(all, fmt.Sprintf("taken %d ", h))
		want := 1
		if i == 5 {
			want = 2 // the first node died over it
		}
		if len(handled) != 1 || len(taken) != want {
			t.Errorf("message %d was taken %d times and handled %d times: %v", i, len(taken), len(handled), all)
		}
		if i >= 5 && len(handled) > 0 && strings.HasSuffix(handled[0].what, " "+first) {
			t.Errorf("message %d was handled by the node that was killed", i)
		}
	}
}
