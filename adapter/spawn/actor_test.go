package spawn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/spawn/spawntest"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/sandbox"
)

// letters are messages of processes, without a mesh.
type letters struct {
	mu      sync.Mutex
	wakes   map[kernel.PID]func()
	queues  map[kernel.PID][]string
	replies map[string]string
	handled map[string]int
}

func newLetters() *letters {
	return &letters{wakes: map[kernel.PID]func(){}, queues: map[kernel.PID][]string{}, replies: map[string]string{},
		handled: map[string]int{}}
}

func (l *letters) send(pid kernel.PID, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues[pid] = append(l.queues[pid], id)
	if wake := l.wakes[pid]; wake != nil {
		wake() // as an office does, locked
	}
}

func (l *letters) reply(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replies[id]
}

func (l *letters) done(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.handled[id]
}

func (l *letters) Attend(pid kernel.PID, wake func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakes[pid] = wake
	if len(l.queues[pid]) > 0 {
		wake()
	}
	return nil
}

func (l *letters) Next(pid kernel.PID) ([]byte, func() error, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[pid]
	if len(q) == 0 {
		return nil, nil, false
	}
	l.queues[pid] = q[1:]
	return fmt.Appendf(nil, `{"id":%q,"payload":{"text":"hello"}}`, q[0]), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.handled[q[0]]++
		return nil
	}, true
}

func (l *letters) Calls(kernel.PID) sandbox.Host {
	return sandbox.Host{"ipc.reply": func(_ context.Context, request json.RawMessage) (any, error) {
		var r struct{ ID, Text string }
		if err := json.Unmarshal(request, &r); err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.replies[r.ID] = r.Text
		return nil, nil
	}}
}

func (l *letters) Ended(pid kernel.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.wakes, pid)
	delete(l.queues, pid)
}

func (*letters) Token(kernel.PID) string           { return "token" }
func (*letters) Watched(kernel.Signal)             {}
func (*letters) Warned(kernel.PID, kernel.Finding) {}

// actorBed is a host whose modules are the given ones.
func actorBed(t testing.TB, modules ...[]byte) (*bed, *letters, []kernel.Spec) {
	all := newLetters()
	var specs []kernel.Spec
	byHash := map[string][]byte{}
	for _, m := range modules {
		sum := sha256.Sum256(m)
		hash := hex.EncodeToString(sum[:])
		byHash[hash] = m
		specs = append(specs, kernel.Spec{Name: "handler", Module: hash, ModuleBytes: int64(len(m))})
	}
	b := newBed(t, t.TempDir(), func(c *Config) {
		c.Max = kernel.MostProcesses
		c.Messages = all
		c.Module = func(_ context.Context, hash string, _ int64) ([]byte, error) { return byHash[hash], nil }
	})
	return b, all, specs
}

func (b *bed) actor(pid kernel.PID) *actor {
	b.Host.mu.Lock()
	defer b.Host.mu.Unlock()
	return b.living[pid].control.(*actor)
}

// One that is called for each message answers, keeps what it knows over its rest, and needs no
// goroutine in between. It has no instance before its first message.
func TestHandlersRestBetweenMessages(t *testing.T) {
	b, all, specs := actorBed(t, spawntest.Counts())
	var pids []kernel.PID
	before := runtime.NumGoroutine()
	for range mostWarm * 2 {
		pids = append(pids, b.spawn(specs[0]))
	}
	for _, pid := range pids {
		if e, _ := b.Table().Find(pid); e.State != kernel.Running || b.actor(pid).instance != nil {
			t.Fatalf("process %s is %s, or has an instance without a message", pid, e.State)
		}
	}
	for round := 1; round <= 3; round++ {
		for _, pid := range pids {
			all.send(pid, fmt.Sprintf("m-%s-%d", pid, round))
		}
		for _, pid := range pids {
			id := fmt.Sprintf("m-%s-%d", pid, round)
			b.until(id, func() bool { return all.done(id) == 1 })
			if got, want := all.reply(id), fmt.Sprint(round); got != want {
				t.Fatalf("process %s has had %s messages, want %s", pid, got, want)
			}
		}
	}
	b.until("the callers to end", func() bool { return runtime.NumGoroutine() <= before+2 })
	b.callers.Wait()
	rested := 0
	for _, pid := range pids {
		if a := b.actor(pid); a.instance == nil && a.rested != nil {
			rested++
			if n := a.rested.Bytes(); n > 1024 {
				t.Errorf("%d bytes are kept of a memory of which some 100 were written", n)
			}
		}
	}
	if rested < mostWarm {
		t.Errorf("%d of %d rest, want those above %d", rested, len(pids), mostWarm)
	}
	if u, _ := b.actor(pids[0]).use(); u.MemoryBytes != 64<<10 {
		t.Errorf("it uses %d bytes of memory", u.MemoryBytes)
	}
}

// How handlers end: by a trap, by themselves, by their limit, killed in a call and killed at rest.
// What has a strategy is started again, and handles what comes then.
func TestHandlersEnd(t *testing.T) {
	b, all, specs := actorBed(t, spawntest.Traps(), spawntest.Exits(), spawntest.Spins(), spawntest.Counts(),
		spawntest.Wrong(), spawntest.Naps(900))
	for n, want := range []kernel.Exit{{Code: kernel.ExitPanic, Reason: kernel.Crash}, {Code: 3, Reason: kernel.Crash},
		{Code: kernel.ExitForced, Reason: kernel.Timeout}} {
		s := specs[n]
		if n == 2 {
			caps := kernel.DefaultCapabilities()
			caps.Limits.CPUTimeMs = 50
			s.Capabilities = &caps
		}
		pid := b.spawn(s)
		all.send(pid, "end")
		if x := b.ends(pid); x.Code != want.Code || x.Reason != want.Reason {
			t.Errorf("it ended with %+v, want %+v", x, want)
		}
	}
	if all.done("end") != 0 {
		t.Error("a message is handled by a call that failed")
	}

	rests, spins := b.spawn(specs[3]), b.spawn(specs[2])
	all.send(rests, "first")
	b.until("the first message", func() bool { return all.done("first") == 1 })
	all.send(spins, "spin")
	b.until("it to spin", func() bool { e, _ := b.Find(spins); return e.Use.CPUTimeMs > 0 })
	for _, pid := range []kernel.PID{rests, spins} {
		if err := b.Signal(pid, "TERM"); err != nil {
			t.Fatal(err)
		}
		if x := b.ends(pid); x.Reason != kernel.Killed || x.Message != "it was sent TERM" {
			t.Errorf("it ended with %+v", x)
		}
	}

	again := specs[0]
	again.Restart = kernel.OneForOne
	crashed := b.spawn(again)
	all.send(crashed, "crash")
	b.ends(crashed)
	var next kernel.PID
	b.until("its successor", func() bool {
		i := slices.IndexFunc(b.Table().List(false), func(e kernel.Entry) bool {
			return e.Restarts == 1 && e.State == kernel.Running
		})
		if i >= 0 {
			next = b.Table().List(false)[i].PID
		}
		return i >= 0
	})
	all.send(next, "crash again")
	b.ends(next)

	if _, err := b.Spawn(t.Context(), specs[4]); err == nil || !strings.Contains(err.Error(), "on_message") {
		t.Errorf("a handler of another type: %v", err)
	}
}

// A suspended one is not called; what came meanwhile is handled when it is resumed.
func TestSuspendedHandlersAreNotCalled(t *testing.T) {
	b, all, specs := actorBed(t, spawntest.Counts())
	pid := b.spawn(specs[0])
	if err := b.Signal(pid, "STOP"); err != nil {
		t.Fatal(err)
	}
	all.send(pid, "one")
	all.send(pid, "two")
	b.callers.Wait()
	if all.done("one") != 0 {
		t.Error("a suspended handler was called")
	}
	if err := b.Signal(pid, "CONT"); err != nil {
		t.Fatal(err)
	}
	b.until("both", func() bool { return all.done("two") == 1 && all.reply("two") == "2" })
}

// Messages that come all at once, from many, are handled one at a time and each once.
func TestCallsOfOneDoNotOverlap(t *testing.T) {
	b, all, specs := actorBed(t, spawntest.Naps(1))
	const many, each = 40, 25
	var pids []kernel.PID
	for range many {
		pids = append(pids, b.spawn(specs[0]))
	}
	var senders sync.WaitGroup
	for n := range each {
		senders.Go(func() {
			for _, pid := range pids {
				all.send(pid, fmt.Sprintf("%s-%d", pid, n))
			}
		})
	}
	senders.Wait()
	for _, pid := range pids {
		for n := range each {
			id := fmt.Sprintf("%s-%d", pid, n)
			b.until(id, func() bool {
				e, _ := b.Table().Find(pid)
				if e.State != kernel.Running {
					t.Fatalf("process %s has ended: %+v", pid, e.Exit)
				}
				return all.done(id) == 1
			})
		}
	}
	b.callers.Wait()
	for _, pid := range pids {
		if e, _ := b.Table().Find(pid); e.State != kernel.Running { // it traps when calls overlap
			t.Fatalf("process %s has ended: %+v", pid, e.Exit)
		}
	}
}
