package courier

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/kit"
)

// ended collects which processes a node was told to end.
type ended struct {
	mu  sync.Mutex
	all []kernel.PID
}

func (e *ended) has(pid kernel.PID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.all, pid)
}

// watch notes what a node is told to end.
func (w *town) watch(node string) *ended {
	e := &ended{}
	w.courier(node).signal = func(pid kernel.PID, _ string) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all = append(e.all, pid)
		return nil
	}
	return e
}

// crash ends a process of a node as a crash does.
func (w *town) crash(t *testing.T, node string, pid kernel.PID, code int) {
	t.Helper()
	if _, err := w.table[node].Exit(pid, kernel.ExitOf(code, ""), time.Now()); err != nil {
		t.Fatal(err)
	}
	w.courier(node).Ended(pid)
}

// signalOf waits for a signal in an inbox.
func signalOf(t *testing.T, c *Courier, pid kernel.PID) post.Signal {
	t.Helper()
	var s *post.Signal
	kit.Wait{Most: time.Minute, Every: 10 * time.Millisecond}.Until(t, "a signal arrives", func() bool {
		all, err := c.Receive(t.Context(), pid, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			s = m.Payload.Signal
		}
		return s != nil
	})
	return *s
}

// none fails if a process has a message.
func none(t *testing.T, c *Courier, pid kernel.PID) {
	t.Helper()
	if all, err := c.Receive(t.Context(), pid, 1, 0); err != nil || len(all) > 0 {
		t.Errorf("process %s has %d messages, %v", pid, len(all), err)
	}
}

// A process learns of the end of one on another node, by a monitor of every end, by a link of a failure, and
// a link ends it too, from either side. What was unlinked is not told.
func TestLinksAndMonitorsBetweenNodes(t *testing.T) {
	t.Parallel()
	w := newTown(t, "n1", "n2")
	c, there := w.courier("n1"), w.courier("n2")
	here, far := w.watch("n1"), w.watch("n2")
	grouped := func(e *kernel.Entry) { e.Group = "app" }
	at := func(pid kernel.PID, node string) post.Target {
		return post.Process(kernel.Address{Node: node, PID: pid})
	}

	watcher, watched := w.process(t, "n1", "watcher"), w.process(t, "n2", "watched")
	ref, err := c.Monitor(watcher, at(watched, "n2"))
	if err != nil || ref == "" {
		t.Fatal(ref, err)
	}
	w.crash(t, "n2", watched, 0)
	if s := signalOf(t, c, watcher); s.Kind != post.MonitorDown || s.Ref != ref || s.Node != "n2" || s.PID != watched {
		t.Errorf("told %+v", s)
	}
	if f := c.Far(watcher); len(f) > 0 || here.has(watcher) {
		t.Errorf("after the end it watches %+v", f)
	}

	type pair struct{ a, b kernel.PID }
	link := func() (p pair) {
		p = pair{w.process(t, "n1", "a", grouped), w.process(t, "n2", "b", grouped)}
		if err := c.Link(p.a, at(p.b, "n2"), p.a); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := link()
	w.crash(t, "n2", p.b, 1)
	if s := signalOf(t, c, p.a); s.Kind != post.LinkExit || s.PID != p.b {
		t.Errorf("told %+v", s)
	}
	kit.Wait{Most: time.Minute, Every: 10 * time.Millisecond}.Until(t, "a is ended", func() bool { return here.has(p.a) })
	p = link() // and the other way
	w.crash(t, "n1", p.a, 1)
	if s := signalOf(t, there, p.b); s.Kind != post.LinkExit || s.PID != p.a || s.Node != "n1" {
		t.Errorf("told %+v", s)
	}
	kit.Wait{Most: time.Minute, Every: 10 * time.Millisecond}.Until(t, "b is ended", func() bool { return far.has(p.b) })

	loose, well, last := link(), link(), link()
	if err := c.Unlink(loose.a, at(loose.b, "n2")); err != nil {
		t.Fatal(err)
	}
	if f := there.Far(loose.b); len(f) > 0 {
		t.Errorf("the other side is still linked: %+v", f)
	}
	w.crash(t, "n2", loose.b, 1)
	w.crash(t, "n2", well.b, 0) // a link carries failures alone
	w.crash(t, "n2", last.b, 1)
	signalOf(t, c, last.a)
	none(t, c, loose.a)
	none(t, c, well.a)

	stranger := w.process(t, "n2", "stranger", func(e *kernel.Entry) { e.Company = "evil" })
	mine := w.process(t, "n1", "mine", func(e *kernel.Entry) { e.Company = "acme" })
	if _, err := c.Monitor(mine, at(stranger, "n2")); reasonOf(err) != post.NotAllowed {
		t.Errorf("a process of another company is monitored: %v", err)
	}
	if err := c.Link(mine, at(w.process(t, "n2", "any"), "n2"), mine); reasonOf(err) != post.NotAllowed {
		t.Errorf("a process of no common group is linked: %v", err)
	}
	if err := c.Link(mine, at(w.process(t, "n2", "any"), "n2"), kernel.KernelPID); err != nil {
		t.Errorf("an administrator links: %v", err)
	}
	if _, err := c.Monitor(mine, at(1<<40, "n2")); reasonOf(err) != post.TargetNotFound {
		t.Errorf("a process that is not there is monitored: %v", err)
	}
}

// A node that does not answer is not taken for lost until the mesh has ended its session; one that was started
// again has lost its processes.
func TestALostNodeIsToldToWhoWatchesItsProcesses(t *testing.T) {
	t.Parallel()
	w := newTown(t, "n1", "n2")
	c := w.courier("n1")
	ends := w.watch("n1")
	var gone atomic.Bool
	c.cfg.Gone = func(string) bool { return gone.Load() }
	watcher, other := w.process(t, "n1", "watcher"), w.process(t, "n1", "other")
	watched := w.process(t, "n2", "watched")
	at := post.Process(kernel.Address{Node: "n2", PID: watched})
	ref, err := c.Monitor(watcher, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Link(other, at, kernel.KernelPID); err != nil {
		t.Fatal(err)
	}
	w.kill("n2")
	time.Sleep(2 * lookEvery) // looks that find nobody
	none(t, c, watcher)
	gone.Store(true)
	if s := signalOf(t, c, watcher); s.Kind != post.MonitorDown || s.Ref != ref || s.Reason != reasonNodeLost {
		t.Errorf("told %+v", s)
	}
	if s := signalOf(t, c, other); s.Kind != post.LinkExit || s.Node != "n2" {
		t.Errorf("told %+v", s)
	}
	kit.Wait{Most: time.Minute, Every: 10 * time.Millisecond}.Until(t, "the linked one is ended",
		func() bool { return ends.has(other) })
	if n := len(c.Office().DeadLetters(0, 10)); n > 0 {
		t.Errorf("looking left %d dead letters", n)
	}

	gone.Store(false)
	w.start(t, "n2")
	again := w.process(t, "n2", "again")
	if _, err := c.Monitor(watcher, post.Process(kernel.Address{Node: "n2", PID: again})); err != nil {
		t.Fatal(err)
	}
	w.kill("n2")
	w.start(t, "n2")
	if s := signalOf(t, c, watcher); s.Reason != reasonNodeLost || s.PID != again {
		t.Errorf("told %+v", s)
	}
}
