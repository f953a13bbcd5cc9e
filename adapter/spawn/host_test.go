package spawn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/sandbox"
)

// The test binary also plays the shim, as the program does.
func TestMain(m *testing.M) {
	shimtest.MaybeShim()
	if len(os.Args) > 2 && os.Args[1] == "greedy" {
		greedy(os.Args[2])
	}
	os.Exit(m.Run())
}

// spins is a module that never returns.
var spins = []byte("\x00asm\x01\x00\x00\x00" + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" +
	"\x07\x0a\x01\x06_start\x00\x00" + "\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b")

// A bed is a host, and what its processes wrote.
type bed struct {
	*Host
	t      testing.TB
	dir    string
	events *kernel.EventLog
	lease  atomic.Int64 // boot-clock time at which authority ends

	mu  sync.Mutex
	log map[kernel.PID]string
}

type memoryLog struct {
	b   *bed
	pid kernel.PID
}

func (l memoryLog) Write(stream, text string) {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	l.b.log[l.pid] += stream + ":" + text
}
func (memoryLog) End() {}

func newBed(t testing.TB, dir string, change func(*Config)) *bed {
	t.Helper()
	b := &bed{t: t, dir: dir, events: kernel.NewEventLog(time.Now), log: map[kernel.PID]string{}}
	b.lease.Store(int64(shim.BootTime() + time.Hour))
	engine, err := sandbox.Open(sandbox.Config{Dir: filepath.Join(t.TempDir(), "sandbox")})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Node: "n1", Dir: dir, Shim: shimtest.Command, Environ: []string{"PATH=" + os.Getenv("PATH"),
		"AWS_SECRET=do-not-pass-on"}, Sandbox: engine, Events: b.events,
		Authority: func() time.Duration { return time.Duration(b.lease.Load()) }, Clock: shim.BootTime,
		Module:  func(context.Context, string, int64) ([]byte, error) { return spins, nil },
		OpenLog: func(pid kernel.PID) (Log, error) { return memoryLog{b, pid}, nil }}
	if change != nil {
		change(&c)
	}
	if b.Host, err = Open(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.Host.Close(), engine.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bed) spawn(s kernel.Spec) kernel.PID {
	b.t.Helper()
	e, err := b.Spawn(b.t.Context(), s)
	if err != nil {
		b.t.Fatal(err)
	}
	return e.PID
}

// until waits until a condition holds; a busy machine may take long.
func (b *bed) until(what string, is func() bool) {
	b.t.Helper()
	kit.Wait{Most: time.Minute, Every: 20 * time.Millisecond}.Until(b.t, what, is)
}

// ends waits for the end of a process.
func (b *bed) ends(pid kernel.PID) kernel.Exit {
	b.t.Helper()
	b.until("process "+pid.String()+" to end", func() bool {
		e, _ := b.Table().
			Find(pid)
		return e.State == kernel.Exited
	})
	e, _ := b.Table().Find(pid)
	return *e.Exit
}

// A command that may not use the network reaches the API of its node, and no other port; one that may reaches all.
func TestTheNetworkOfCommands(t *testing.T) {
	listen := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().String()
	}
	api, other := listen(), listen()
	b := newBed(t, t.TempDir(), func(c *Config) { c.APIURL = "http://" + api })
	// Not this program: under the race detector it has no room in the memory of a process.
	const dial = `for at; do (exec 3<>"/dev/tcp/${at/://}") 2>/dev/null && echo "$at true;" || echo "$at false;"; done`
	said := func(may bool) (out string) {
		can := kernel.DefaultCapabilities()
		can.CanNetwork = may
		pid := b.spawn(kernel.Spec{
			Name:         "dial",
			Command:      []string{"bash", "-c", dial, "dial", api, other},
			Capabilities: &can,
		})
		b.ends(pid)
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.log[pid]
	}
	if out := said(true); !strings.Contains(out, api+" true;") || !strings.Contains(out, other+" true;") {
		t.Errorf("it may use the network: %s", out)
	}
	out := said(false)
	reaches := strings.Contains(out, shim.NoNetHold) // an older kernel: the log says that nothing is held
	if !strings.Contains(out, api+" true;") || !strings.Contains(out, fmt.Sprint(other, " ", reaches, ";")) {
		t.Errorf("it may not use the network: %s", out)
	}
}

func sh(line string) []string { return []string{"sh", "-c", line} }

func caps(change func(*kernel.Limits)) *kernel.Capabilities {
	c := kernel.DefaultCapabilities()
	change(&c.Limits)
	return &c
}

// A command runs with the node's base variables and its own, is suspended, resumed and ended,
// and its folder is gone afterwards.
// A damaged file of process IDs is found, and IDs go on above all that were given.
func TestDamagedProcessIDsGoOnAbove(t *testing.T) {
	for name, damaged := range map[string]string{"empty": "", "cut": "10", "a changed digit": "1924 " +
		string(formatPIDs(1024)[5:]), "zeros": "\x00\x00\x00"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		b := newBed(t, dir, func(c *Config) { c.Dir = dir })
		if got, least := int64(b.reserved), time.Now().Add(-time.Hour).Unix(); got < least {
			t.Errorf("%s: IDs go on at %d, want at least %d", name, got, least)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, pidFile), formatPIDs(1024), 0o600); err != nil {
		t.Fatal(err)
	}
	if b := newBed(t, dir, func(c *Config) { c.Dir = dir }); b.reserved != 1024 {
		t.Errorf("IDs go on at %d, want 1024", b.reserved)
	}
}

func TestACommandIsAProcess(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	pid := b.spawn(kernel.Spec{Command: sh(`echo "$SELVAGE_PID $AWS_SECRET $WORD"; touch here; sleep 600`),
		Env: map[string]string{"WORD": "hello"}})
	b.until("its output", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return strings.Contains(b.log[pid],
			"n1:1  hello\n")
	})
	b.until("its folder", func() bool { _, err := os.Stat(filepath.Join(b.dir, pid.String(), "here")); return err == nil })
	b.until("its use", func() bool {
		all := b.List(false)
		return len(all) == 2 && all[1].State == kernel.Running && all[1].Machine > 0 && all[1].Use.MemoryBytes > 0
	})
	for _, step := range []struct {
		signal string
		want   kernel.State
	}{{"STOP", kernel.Suspended}, {"CONT", kernel.Running}, {"SIGHUP", kernel.Exited}} {
		if err := b.Signal(pid, step.signal); err != nil {
			t.Fatal(err)
		}
		b.until(string(step.want), func() bool { e, _ := b.Table().Find(pid); return e.State == step.want })
	}
	if x := b.ends(pid); x.Code != 128+1 || x.Reason != kernel.Crash {
		t.Errorf("after SIGHUP it ended as %+v", x)
	}
	if _, err := os.Stat(filepath.Join(b.dir, pid.String())); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
	other := b.spawn(kernel.Spec{Command: sh("sleep 600")})
	if err := b.Signal(other, ""); err != nil {
		t.Fatal(err)
	}
	if x := b.ends(other); x.Code != kernel.ExitForced || x.Reason != kernel.Killed {
		t.Errorf("after TERM it ended as %+v", x)
	}
	for want, err := range map[kernel.ErrorKind]error{
		kernel.InvalidStateTransition: b.Signal(other, "TERM"), kernel.ProcessNotFound: b.Signal(99, "TERM"),
		kernel.BadRequest: b.Signal(other, "WHAT"), kernel.CapabilityDenied: b.Signal(0, "KILL"),
	} {
		if kernel.KindOf(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	_, err := b.Spawn(t.Context(), kernel.Spec{Command: []string{"no-such-program"}})
	if kernel.KindOf(err) != kernel.SpawnFailed {
		t.Errorf("an unknown program: %v", err)
	}
	_, err = b.Spawn(t.Context(), kernel.Spec{Image: "busybox"})
	if kernel.KindOf(err) != kernel.BackendNotAvailable {
		t.Errorf("a container without an engine: %v", err)
	}
}

// An elevation with an end gives back what the process had, also to the process that replaced it.
func TestAnElevationEnds(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	spec := kernel.Spec{Name: "rises", Command: sh("trap 'exit 3' USR1; while :; do sleep 0.05; done"),
		Restart: kernel.OneForOne, Capabilities: caps(func(l *kernel.Limits) { l.Messages = 7 })}
	pid := b.spawn(spec)
	messages := func(pid kernel.PID) int64 { e, _ := b.Table().Find(pid); return e.Capabilities.Limits.Messages }
	more := func(n int64) kernel.Capabilities { return *caps(func(l *kernel.Limits) { l.Messages = n }) }
	for n, lasting := range []time.Duration{time.Hour, 2 * time.Hour} { // the second takes the place of the first
		if e, err := b.Elevate(pid, more(int64(100+n)), lasting); err != nil ||
			e.Capabilities.Limits.Messages != int64(100+n) {
			t.Fatalf("elevated: %+v, %v", e.Capabilities, err)
		}
	}
	if err := b.Signal(pid, "USR1"); err != nil {
		t.Fatal(err)
	}
	var again kernel.PID
	b.until("it was started again", func() bool {
		for _, e := range b.Table().
			Select(func(e *kernel.Entry) bool { return e.Name == "rises" && e.State == kernel.Running }) {
			again = e.PID
		}
		return again > pid
	})
	if got := messages(again); got != 101 {
		t.Errorf("the process that replaced it may send %d messages, want 101", got)
	}
	if _, err := b.Elevate(again, more(102), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	b.until("the elevation has ended", func() bool { return messages(again) == 7 })
	b.until("the end is told", func() bool {
		return slices.ContainsFunc(b.events.Tail(0, kernel.LevelWarn), func(e kernel.Event) bool {
			return strings.Contains(fmt.Sprint(e), "capability.revoked")
		})
	})
	if _, err := b.Elevate(again, more(1), MostElevated+1); kernel.KindOf(err) != kernel.BadRequest {
		t.Errorf("for more than a day: %v", err)
	}
}

// What ignores its limits is ended: a command by the system and by the host, a module by the
// sandbox. With suspend it is stopped and can be elevated.
func TestLimitsBite(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	memory := b.spawn(
		kernel.Spec{Command: sh("x=0123456789; while :; do x=$x$x; done"),
			Capabilities: caps(func(l *kernel.Limits) { l.MemoryBytes = 16 << 20 })})
	spin := b.spawn(
		kernel.Spec{Command: sh("while :; do :; done"), Capabilities: caps(func(l *kernel.Limits) { l.CPUTimeMs = 300 })})
	files := b.spawn(
		kernel.Spec{Command: sh("i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero > f$i; i=$((i+1)); done; sleep 600"),
			Capabilities: caps(func(l *kernel.Limits) { l.DiskBytes = 1 << 20 })})
	sum := sha256.Sum256(spins)
	module := kernel.Spec{
		Name:         "spins",
		Module:       hex.EncodeToString(sum[:]),
		ModuleBytes:  int64(len(spins)),
		Capabilities: caps(func(l *kernel.Limits) { l.CPUTimeMs = 100 }),
	}
	wasm := b.spawn(module)
	stopped := b.spawn(kernel.Spec{
		Command:      sh("while :; do :; done"),
		OnLimit:      kernel.SuspendOnLimit,
		Capabilities: caps(func(l *kernel.Limits) { l.CPUTimeMs = 300 }),
	})
	if x := b.ends(memory); !x.Failed() {
		t.Errorf("memory: %+v", x)
	}
	for name, pid := range map[string]kernel.PID{"cpu_time": spin, "disk": files} {
		if x := b.ends(pid); x.Code != kernel.ExitForced || !strings.Contains(x.Message, "limit") {
			t.Errorf("%s: %+v", name, x)
		}
	}
	if x := b.ends(wasm); x.Code != kernel.ExitForced || x.Reason != kernel.Timeout || !strings.Contains(x.Message,
		"cpu_time") {
		t.Errorf("module: %+v", x)
	}
	b.until("it is suspended", func() bool { e, _ := b.Table().Find(stopped); return e.State == kernel.Suspended })
	if err := b.Signal(stopped, "CONT"); kernel.KindOf(err) != kernel.ResourceLimitExceeded {
		t.Errorf("resumed at its limit: %v", err)
	}
	if _, err := b.Elevate(stopped, kernel.DefaultCapabilities(), 0); err != nil {
		t.Fatal(err)
	}
	if err := b.Signal(stopped, "CONT"); err != nil {
		t.Errorf("elevated: %v", err)
	}
	if warned := b.events.Tail(0, kernel.LevelError); len(warned) < 2 {
		t.Errorf("the log says %+v", warned)
	}
	bad := module
	bad.Module = strings.Repeat("00", 32)
	if _, err := b.Spawn(t.Context(), bad); kernel.KindOf(err) != kernel.SpawnFailed {
		t.Errorf("a module of another hash: %v", err)
	}
	// A module is suspended and killed too.
	module.Capabilities = nil
	slow := b.spawn(module)
	for _, signal := range []string{"STOP", "CONT", "STOP", "KILL"} {
		if err := b.Signal(slow, signal); err != nil {
			t.Fatal(err)
		}
	}
	if x := b.ends(slow); x.Reason != kernel.Killed {
		t.Errorf("killed module: %+v", x)
	}
}

// A crash loop ends when the budget is spent, with an event, and is not started again.
func TestACrashLoopEnds(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), func(c *Config) { c.Budget.Restarts = 2 })
	b.spawn(kernel.Spec{Name: "crash", Command: sh("exit 3"), Restart: kernel.OneForOne})
	over := func() bool {
		return slices.ContainsFunc(b.events.Tail(0, kernel.LevelError),
			func(e kernel.Event) bool { return e.Kind == "process.gave_up" })
	}
	b.until("it is given up", over)
	all := slices.DeleteFunc(b.List(true), func(e kernel.Entry) bool { return e.Name != "crash" })
	if len(all) != 3 || all[2].Restarts != 2 || all[2].Exit.Code != 3 {
		t.Errorf("it had the lives %+v, want 3", all)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.Host.slots); n != 0 {
		t.Errorf("%d slots are left", n)
	}
}

// When one of a group with one_for_all crashes, all of it is started again.
func TestAGroupIsStartedAgainTogether(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	flag := filepath.Join(t.TempDir(), "crash")
	steady := kernel.Spec{Name: "steady", Group: "g", Restart: kernel.OneForAll, Command: sh("sleep 600")}
	first := b.spawn(steady)
	b.spawn(kernel.Spec{Name: "shaky", Group: "g", Restart: kernel.OneForAll,
		Command: sh("while [ ! -e " + flag + " ]; do sleep 0.05; done; rm " + flag + "; exit 1")})
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.until("both again", func() bool {
		live := slices.DeleteFunc(b.Table().List(false), func(e kernel.Entry) bool {
			return e.Restarts != 1 ||
				e.State != kernel.Running
		})
		return len(live) == 2
	})
	if x := b.ends(first); x.Message != "its supervisor stopped it" {
		t.Errorf("the steady one ended as %+v", x)
	}
}

// What a part of an app spawns is part of it, and so is what replaces it once its parent has ended. A name
// that no app can have is refused.
func TestAnAppHasWhatItsPartsSpawn(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	part := b.spawn(kernel.Spec{Command: sh("sleep 600"), App: "shop"})
	child := b.spawn(kernel.Spec{Name: "child", Command: sh("sleep 600"), Parent: part, Restart: kernel.OneForOne})
	other := b.spawn(kernel.Spec{Command: sh("sleep 600")})
	apps := func() (out []string) {
		for _, e := range b.List(false) {
			out = append(out, e.App)
		}
		return out
	}
	if got := apps(); !slices.Equal(got, []string{"", "shop", "shop", ""}) {
		t.Fatalf("the node, a part, its child and another are of the apps %q", got)
	}
	for _, pid := range []kernel.PID{part, child} {
		if err := b.Signal(pid, "KILL"); err != nil {
			t.Fatal(err)
		}
		b.ends(pid)
	}
	b.until("the child runs again", func() bool {
		all := b.List(false)
		last := all[len(all)-1]
		return last.PID > other && last.Name == "child" && last.App == "shop"
	})
	if _, err := b.Spawn(t.Context(), kernel.Spec{Command: sh("exit 0"), App: "no app"}); err == nil {
		t.Error(`an app of the name "no app" was taken`)
	}
}

// Declared replicas are what the state says: started, replaced when the declaration changes,
// ended when they are not wanted, and when the lease ends.
func TestReplicasFollowTheirDeclaration(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	want := []Wanted{{ID: "d", Replica: 0, Generation: 1, Spec: kernel.Spec{Command: sh("sleep 600"),
		Restart: kernel.OneForOne}},
		{ID: "d", Replica: 1, Generation: 1, Spec: kernel.Spec{Command: sh("exit 0"), Restart: kernel.Transient}},
		{ID: "d", Replica: 2, Generation: 1, Spec: kernel.Spec{Command: []string{"no-such-program"},
			Restart: kernel.OneForOne}}}
	states := func() (out []string) {
		for _, f := range b.Fates() {
			out = append(out, f.State)
		}
		return out
	}
	b.Ensure(want)
	b.until("they stand", func() bool { return slices.Equal(states(), []string{Running, Ended, Failed}) })
	b.Ensure(want)
	was := b.Fates()[0].PID
	next := slices.Clone(want[:1])
	next[0].Generation = 2
	b.until("it is replaced", func() bool {
		b.Ensure(next)
		f := b.Fates()
		return len(f) == 1 && f[0].State == Running && f[0].PID > was && f[0].Generation == 2
	})
	b.ends(was)
	now := b.Fates()[0].PID
	b.lease.Store(0)
	if x := b.ends(now); !x.Failed() {
		t.Errorf("without a lease it ended as %+v", x)
	}
	b.Ensure(next)
	if f := b.Fates(); len(f) != 0 {
		t.Errorf("without a lease there are %+v", f)
	}
	b.lease.Store(int64(shim.BootTime() + time.Hour))
	b.Ensure(next)
	b.until("it runs again", func() bool { return slices.Equal(states(), []string{Running}) })
	b.Ensure(nil)
	b.until("it is gone", func() bool { return len(b.Table().List(false)) == 1 })
}

// What was spawned and not declared ends with the lease of its node, once: a command, a module, and one that waits
// to be started again. Without a lease the node starts nothing.
func TestWhatWasSpawnedEndsWithTheLease(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	sum := sha256.Sum256(spins)
	command := b.spawn(kernel.Spec{Command: sh("sleep 600"), Restart: kernel.OneForOne})
	module := b.spawn(kernel.Spec{Name: "spins", Module: hex.EncodeToString(sum[:]), ModuleBytes: int64(len(spins)),
		Restart: kernel.OneForOne})
	b.lease.Store(0)
	for what, pid := range map[string]kernel.PID{"command": command, "module": module} {
		if x := b.ends(pid); !x.Failed() || x.Reason != kernel.Killed || !strings.Contains(x.Message, "lease") &&
			!strings.Contains(x.Message, "could not answer for it") {
			t.Errorf("%s without a lease: %+v", what, x)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Spawn(short, kernel.Spec{Command: sh("sleep 600")}); err == nil ||
		!strings.Contains(err.Error(), "no lease") {
		t.Errorf("a start without a lease: %v", err)
	}
	b.until("nothing waits to be started again", func() bool {
		b.Host.mu.Lock()
		defer b.Host.mu.Unlock()
		return len(b.slots) == 0
	})
	b.lease.Store(int64(shim.BootTime() + time.Hour))
	last := b.spawn(kernel.Spec{Command: []string{"true"}})
	b.ends(last)
	if all := b.Table().List(true); len(all) != 4 { // with the node itself
		t.Errorf("there were %d processes: %+v", len(all), all)
	}
}

// What ends when it is asked to is not waited for longer than that, suspended or not: the grace is for what does not.
func TestCloseAsksBeforeItKills(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	runs := b.spawn(kernel.Spec{Command: sh("sleep 600")})
	stopped := b.spawn(kernel.Spec{Command: sh("sleep 600")})
	if err := b.Signal(stopped, "STOP"); err != nil {
		t.Fatal(err)
	}
	if err := b.Host.Close(); err != nil {
		t.Fatal(err)
	}
	for what, pid := range map[string]kernel.PID{"running": runs, "suspended": stopped} {
		e, _ := b.Table().Find(pid)
		if e.State != kernel.Exited || e.Exit == nil || e.Exit.Message != "the node stops" {
			t.Errorf("%s: %+v", what, e)
		}
	}
	if err := b.Host.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

// A program that gets no more memory rarely says so. Its end names the limit.
func TestTheEndNamesTheLimitOfMemory(t *testing.T) {
	t.Parallel()
	for signal, want := range map[string]string{
		"SIGSEGV": "ended by SIGSEGV, as programs are that get no more memory: its limit is 32 MiB",
		"SIGHUP":  "ended by SIGHUP",
	} {
		e := process.Ending{Exit: shim.Exit{Code: -1, Signal: signal}}
		if x := exitOf(e, shim.Limits{MemoryMB: 32}); x.Message != want || x.Reason != kernel.Crash || x.Code <= 128 {
			t.Errorf("%s: %+v", signal, x)
		}
		if x := exitOf(e, shim.Limits{}); x.Message != "ended by "+signal {
			t.Errorf("%s without a limit: %+v", signal, x)
		}
	}
}

// The gate is asked before each start that nobody has just asked for. What it denies is not
// tried again, and says why.
func TestTheGateIsAskedBeforeAStart(t *testing.T) {
	t.Parallel()
	asked, deny, unknown := atomic.Int64{}, atomic.Bool{}, atomic.Int64{}
	b := newBed(t, t.TempDir(), func(c *Config) {
		c.Weigh = func(e kernel.Entry) error {
			asked.Add(1)
			if e.By != "kim" {
				unknown.Add(1)
			}
			if deny.Load() {
				return errors.New("denied by rule T-1")
			}
			return nil
		}
	})
	if _, err := b.Spawn(t.Context(), kernel.Spec{Command: []string{"/bin/true"}}); err != nil || asked.Load() != 0 {
		t.Errorf("what a person asks for was weighed a second time: %v", err)
	}
	deny.Store(true)
	b.Ensure([]Wanted{{ID: "d", Generation: 1, Spec: kernel.Spec{Command: []string{"/bin/sleep", "60"},
		By: "kim", Restart: kernel.OneForOne}}})
	b.until("it is denied", func() bool { f := b.Fates(); return len(f) == 1 && f[0].State == Failed })
	if f := b.Fates()[0]; f.Error != "denied by rule T-1" || f.Restarts != 0 || asked.Load() != 1 {
		t.Errorf("asked %d times, it stands as %+v", asked.Load(), f)
	}
	deny.Store(false)
	again := []Wanted{{ID: "d", Generation: 2, Spec: kernel.Spec{Command: []string{"/bin/false"},
		By: "kim", Restart: kernel.OneForOne}}}
	b.until("it crashes, is started again, and weighed each time", func() bool {
		b.Ensure(again)
		return asked.Load() >= 3
	})
	b.Ensure(nil)
	if n := unknown.Load(); n != 0 {
		t.Errorf("%d of %d starts did not say whose process it is", n, asked.Load())
	}
}

// What a run costs and the tools that it calls count on its process: at 80 % there is a warning,
// and at 100 % it is ended by its own rules.
func TestARunIsCharged(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	ended := make(chan string, 2)
	a := b.Adopt(kernel.Entry{Kind: kernel.KindRun, Run: "r",
		Capabilities: kernel.Capabilities{Limits: kernel.Limits{ToolCalls: 5, CostCents: 10}}},
		func(why string) { ended <- why })
	for range 5 {
		if err := b.ChargeRun("r", kernel.ToolCalls, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.ChargeRun("r", kernel.ToolCalls, 1); err == nil {
		t.Error("a sixth call of a tool is not refused")
	}
	if why := <-ended; !strings.Contains(why, "tool_calls: used 5 of 5") {
		t.Errorf("ended because %s", why)
	}
	use := func() kernel.Use { e, _ := b.Table().Find(a.PID()); return e.Use }
	for range 3 { // 2.7 cents in three parts: two are full
		b.Spent("r", 900_000)
	}
	if use().CostCents != 2 {
		t.Errorf("2.7 cents count as %d", use().CostCents)
	}
	b.Spent("r", 8_000_000)
	if why := <-ended; use().CostCents != 10 || !strings.Contains(why, "money: used 10 of 10") && !strings.Contains(why,
		"tool_calls") {
		t.Errorf("at %d cents ended because %s", use().CostCents, why)
	}
	warned := 0
	for _, e := range b.events.Tail(100, kernel.LevelWarn) {
		if e.Kind == "process.limit" && strings.Contains(e.Message, "80 %") {
			warned++
		}
	}
	if warned == 0 {
		t.Error("nothing was said at 80 %")
	}
	a.Ended(kernel.ExitOf(0, ""))
	if err := b.ChargeRun("r", kernel.ToolCalls, 1); err != nil {
		t.Errorf("a run that is over: %v", err)
	}
	b.Spent("r", 1)
}

// What is declared is to run on: it has no total of processor time unless it says so.
func TestDeclaredProcessesHaveNoTotalOfProcessorTime(t *testing.T) {
	t.Parallel()
	b := newBed(t, t.TempDir(), nil)
	short := kernel.DefaultCapabilities()
	short.Limits.CPUTimeMs = 7000
	b.Ensure([]Wanted{{ID: "on", Spec: kernel.Spec{Command: []string{"/bin/sleep", "60"}}},
		{ID: "short", Spec: kernel.Spec{Command: []string{"/bin/sleep", "60"}, Capabilities: &short}}})
	b.until("both run", func() bool {
		f := b.Fates()
		return len(f) == 2 && f[0].State == Running && f[1].State == Running
	})
	for i, want := range []int64{0, 7000} {
		e, _ := b.Table().Find(b.Fates()[i].PID)
		if l := e.Capabilities.Limits; l.CPUTimeMs != want || l.MemoryBytes != 256<<20 {
			t.Errorf("%s has limits %+v", b.Fates()[i].ID, l)
		}
	}
	b.Ensure(nil)
}

// A PID is never given twice, also after the node was started again.
func TestPIDsAreNewAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBed(t, dir, nil)
	a := b.Adopt(kernel.Entry{Kind: kernel.KindRun, Run: "r"}, func(string) {})
	first := a.PID()
	a.Ended(kernel.ExitOf(0, ""))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := newBed(t, dir, nil).Adopt(kernel.Entry{Kind: kernel.KindRun}, func(string) {})
	if again.PID() <= first {
		t.Errorf("PID %s was given after %s", again.PID(), first)
	}
	again.Ended(kernel.ExitOf(0, ""))
	var none *Adopted
	none.Machine(1)
	none.Ended(kernel.ExitOf(0, ""))
}
