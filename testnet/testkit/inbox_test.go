package testkit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"github.com/selvage-mesh/selvage/kit"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// events reads n server-sent events of the inbox of a process, after a number or from now on.
func (b *Bed) events(on int, pid kernel.PID, after string, n int) (ids, texts []string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), settle)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", b.URL(on, fmt.Sprintf("/api/v1/ipc/inbox/events?process=%d", pid)),
		nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", after)
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for len(texts) < n && lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			ids = append(ids, value)
		case "data":
			var m struct {
				Payload struct{ Text string }
			}
			if err := json.Unmarshal([]byte(value), &m); err != nil {
				b.t.Error(err)
			}
			texts = append(texts, m.Payload.Text)
		}
	}
	if len(texts) < n {
		b.t.Fatalf("the stream ended after %v: %v", texts, lines.Err())
	}
	return ids, texts
}

// What is published on one node arrives in the inboxes of others that subscribed, from now on or from
// a height. A named subscription goes on, on another node, after what was acknowledged.
func TestInboxesSubscribeToTopics(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 3)
	subscribe := func(on int, pid kernel.PID, body map[string]any) {
		t.Helper()
		b.Must(on, "POST", fmt.Sprintf("/api/v1/ipc/subscriptions?process=%d", pid), body, nil)
	}
	publish := func(topic, text string) {
		t.Helper()
		b.Must(0, "POST", "/api/v1/topics/"+topic, map[string]any{"text": text}, nil)
	}
	receive := func(on int, pid kernel.PID, n int) (all []*post.Message) {
		t.Helper()
		for len(all) < n {
			got, err := b.Nodes[on].Post().Receive(t.Context(), pid, n-len(all), 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, got...)
		}
		return all
	}
	texts := func(all []*post.Message) (out []string) {
		for _, m := range all {
			out = append(out, m.Payload.Text)
		}
		return out
	}
	end := func(on int, pid kernel.PID) {
		t.Helper()
		if _, err := b.Nodes[on].Post().Table().Exit(pid, kernel.ExitOf(0, ""), kit.Now(t)); err != nil {
			t.Fatal(err)
		}
		b.Nodes[on].Post().Ended(pid)
	}
	const want = "[green late]"
	plain := resident(t, b.Nodes[1], "plain")
	subscribe(1, plain, map[string]any{"pattern": "build.*"})
	publish("build.done", "green")
	publish("other.done", "none")
	publish("build.late", "late")
	got := receive(1, plain, 2)
	if fmt.Sprint(texts(got)) != want || got[0].Height == 0 || got[1].Height <= got[0].Height ||
		got[0].To.String() != "topic:build.done" || got[0].Publisher == "" {
		t.Errorf("the subscriber got %v, %+v", texts(got), got[0])
	}
	early := resident(t, b.Nodes[0], "early")
	subscribe(0, early, map[string]any{"pattern": "build.**", "from": 1})
	if all := texts(receive(0, early, 2)); fmt.Sprint(all) != want {
		t.Errorf("from the first height on there are %v", all)
	}

	named := resident(t, b.Nodes[1], "named")
	subscribe(1, named, map[string]any{"pattern": "build.*", "name": "billing", "from": 1})
	all := receive(1, named, 2)
	if err := b.Nodes[1].Post().Ack(named, all[0].ID); err != nil || fmt.Sprint(texts(all)) != want {
		t.Errorf("the named one got %v, %v", texts(all), err)
	}
	b.Until("the mesh knows how far it was read", func() bool {
		var s struct {
			Subscriptions []struct {
				Subscription string
				Position     uint64
			}
		}
		b.Must(0, "GET", "/api/v1/subscriptions", nil, &s)
		return len(s.Subscriptions) == 1 && s.Subscriptions[0].Position == all[0].Height
	})
	end(1, named)
	next := resident(t, b.Nodes[0], "next")
	subscribe(0, next, map[string]any{"pattern": "build.*", "name": "billing"})
	if left := receive(0, next, 1); fmt.Sprint(texts(left)) != "[late]" {
		t.Errorf("the next one of the name got %v", texts(left))
	}

	// The stream of an inbox resumes after the last event that arrived.
	publish("build.done", "red")
	ids, said := b.events(1, plain, "0", 1)
	if again, same := b.events(1, plain, "0", 1); fmt.Sprint(said, same) != "[red] [red]" || again[0] != ids[0] {
		t.Errorf("streamed %v %v, and again %v %v", ids, said, again, same)
	}
	publish("build.done", "blue")
	if _, said = b.events(1, plain, ids[0], 1); fmt.Sprint(said) != "[blue]" {
		t.Errorf("after event %s there is %v", ids[0], said)
	}
	var list struct{ Subscriptions []struct{ ID string } }
	path := fmt.Sprintf("/api/v1/ipc/subscriptions?process=%d", plain)
	b.Must(1, "GET", path, nil, &list)
	if len(list.Subscriptions) != 1 {
		t.Fatalf("subscriptions %+v", list)
	}
	b.Must(1, "DELETE", strings.Replace(path, "?", "/"+list.Subscriptions[0].ID+"?", 1), nil, nil)
	publish("build.done", "grey")
	if left := texts(receive(0, early, 3)); fmt.Sprint(left) != "[red blue grey]" {
		t.Errorf("the other subscriber got %v", left)
	}
	if none, err := b.Nodes[1].Post().Receive(t.Context(), plain, 1, 0); err != nil || len(none) != 0 {
		t.Errorf("after its end a subscription brought %v, %v", texts(none), err)
	}
}

// A process learns of the end of others of its node: by a monitor of each end, by a link of a crash,
// which ends it too.
func TestProcessesWatchEachOther(t *testing.T) {
	t.Parallel()
	b := Mesh(t, 1)
	watcher, watched := resident(t, b.Nodes[0], "watcher"), resident(t, b.Nodes[0], "watched")
	as := fmt.Sprintf("?process=%d", watcher)
	var m struct{ Ref string }
	b.Must(0, "POST", "/api/v1/ipc/monitors"+as, map[string]any{"to": watched.String()}, &m)
	b.Must(0, "POST", "/api/v1/ipc/links"+as, map[string]any{"to": watched.String()}, nil)
	var w struct {
		Links    []uint64
		Monitors []struct{ Ref string }
	}
	b.Must(0, "GET", "/api/v1/ipc/links"+as, nil, &w)
	if len(w.Links) != 1 || w.Links[0] != uint64(watched) || len(w.Monitors) != 1 || w.Monitors[0].Ref != m.Ref {
		t.Errorf("it watches %+v", w)
	}
	table := b.Nodes[0].Post().Table()
	signals, err := table.Exit(watched, kernel.ExitOf(7, "boom"), kit.Now(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range signals {
		b.Nodes[0].Post().Watched(s)
	}
	var all []*post.Message
	for len(all) < 2 {
		got, err := b.Nodes[0].Post().Receive(t.Context(), watcher, 2, 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
	}
	for _, got := range all {
		s := got.Payload.Signal
		if s == nil || s.PID != watched || s.Reason != string(kernel.Crash) ||
			s.Kind != post.LinkExit && (s.Kind != post.MonitorDown || s.Ref != m.Ref) {
			t.Errorf("told %+v", s)
		}
	}
	for path, want := range map[string]int{"/api/v1/ipc/links": 404, "/api/v1/ipc/monitors": 404} {
		a, err := b.Ask(0, "POST", path+as, map[string]any{"to": watched.String()}, nil)
		if err != nil || a.Status != want {
			t.Errorf("%s to one that has ended: %d %v", path, a.Status, err)
		}
	}
	a, err := b.Ask(0, "POST", "/api/v1/ipc/links", map[string]any{"to": watcher.String()}, nil)
	if err != nil || a.Status != 400 {
		t.Errorf("the node itself was linked: %d %v %s", a.Status, err, a.Body)
	}
}
