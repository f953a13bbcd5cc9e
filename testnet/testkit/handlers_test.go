package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/spawn/spawntest"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/node"
)

// storedModule stores a module on the mesh.
func storedModule(b *Bed, module []byte) (sum string, size int64) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "module.wasm")
	if err := os.WriteFile(file, module, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return uploaded(b, file)
}

// askName asks a process by its name, through a node, and returns what it says and who said it.
func askName(b *Bed, on int, name string) (said, by string, err error) {
	var reply struct {
		From    string
		Payload struct{ Text string }
	}
	_, err = b.Do(on, "POST", "/api/v1/ipc/request", map[string]any{
		"to":      "name:" + name,
		"text":    "hello",
		"wait_ms": 20_000,
	}, &reply)
	return reply.Payload.Text, reply.From, err
}

// A module that is called for each message answers from another node, and keeps what it knows; what a
// program of Go knows survives its rest. A trap starts it again by its supervisor, a signal suspends
// and ends it, and a declared one runs elsewhere after its node was killed.
func TestHandlersOfAMesh(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a guest")
	}
	b := Mesh(t, 3, working(t.TempDir()))
	counts, size := storedModule(b, spawntest.Counts())
	spawn := func(name string, more map[string]any) (address string) {
		body := map[string]any{"name": name, "node": b.Nodes[1].Name(), "module": counts, "module_bytes": size}
		for k, v := range more {
			body[k] = v
		}
		var p struct{ Address, State string }
		b.Must(0, "POST", "/api/v1/processes", body, &p)
		if p.State != "running" {
			t.Fatalf("%s is %s", name, p.State)
		}
		return p.Address
	}
	at := spawn("counter", nil)
	for n := range 3 {
		said, by, err := askName(b, n, "counter")
		if want := fmt.Sprint(n + 1); err != nil || said != want || by != at {
			t.Fatalf("asked by node %d it says %q, %v, as %s; want %s as %s", n, said, err, by, want, at)
		}
	}
	var sent struct{ State string }
	b.Must(2, "POST", "/api/v1/ipc/send", map[string]any{
		"to":       "name:counter",
		"text":     "job",
		"reliable": true,
		"await":    true,
	}, &sent)
	if sent.State != "acknowledged" {
		t.Errorf("a reliable message is %s when the handler has returned", sent.State)
	}
	if said, _, err := askName(b, 0, "counter"); said != "5" {
		t.Errorf("after it, the handler says %q, %v", said, err)
	}
	b.Must(0, "POST", "/api/v1/processes/"+at+"/kill", map[string]any{"signal": "STOP"}, nil)
	b.Must(0, "POST", "/api/v1/ipc/send", map[string]any{"to": at, "text": "meanwhile"}, nil)
	b.Must(0, "POST", "/api/v1/processes/"+at+"/kill", map[string]any{"signal": "CONT"}, nil)
	if said, _, err := askName(b, 0, "counter"); said != "7" {
		t.Errorf("resumed, the handler says %q, %v", said, err)
	}
	b.Must(0, "POST", "/api/v1/processes/"+at+"/kill", map[string]any{"signal": "TERM"}, nil)
	b.Until("its end", func() bool {
		var p struct {
			State  string
			Reason string `json:"exit_reason"`
		}
		b.Must(0, "GET", "/api/v1/processes/"+at, nil, &p)
		return p.State == "exited" && p.Reason == "killed"
	})

	traps, trapSize := storedModule(b, spawntest.Traps())
	spawn("trap", map[string]any{"module": traps, "module_bytes": trapSize, "restart": "always"})
	if _, _, err := askName(b, 0, "trap"); err == nil || !strings.Contains(err.Error(), "AGENT_EXITED") {
		t.Errorf("a request to a handler that traps: %v", err)
	}
	b.Until("the supervisor to start it again", func() bool {
		var all []struct {
			Name, State string
			Restarts    int
		}
		b.Must(0, "GET", "/api/v1/processes", nil, &all)
		for _, p := range all {
			if p.Name == "trap" && p.State == "running" && p.Restarts == 1 {
				return true
			}
		}
		return false
	})

	file := filepath.Join(t.TempDir(), "talk.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file,
		"github.com/selvage-mesh/selvage/examples/talk")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=wasip1", "GOARCH=wasm")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, said)
	}
	talks, talkSize := uploaded(b, file)
	greeter := spawn("greeter", map[string]any{"module": talks, "module_bytes": talkSize})
	if said, _, err := askName(b, 0, "greeter"); said != "HELLO by "+greeter {
		t.Errorf("the example says %q, %v", said, err)
	}
	b.Until("its output", func() bool { return strings.Contains(saidBy(b, greeter), "said hello") })

	b.Must(0, "PUT", "/api/v1/declared-processes/keeper",
		map[string]any{"module": counts, "module_bytes": size, "replicas": 1, "restart": "always"}, nil)
	first := ""
	b.Until("the declared one to answer", func() bool {
		_, by, err := askName(b, 0, "keeper")
		first = by
		return err == nil
	})
	home, _, _ := strings.Cut(first, ":")
	for n := range b.Nodes {
		if b.Nodes[n].Name() != home {
			continue
		}
		b.Kill(n)
		asks := (n + 1) % 3
		b.Until("it to answer elsewhere", func() bool {
			_, by, err := askName(b, asks, "keeper")
			return err == nil && !strings.HasPrefix(by, home+":")
		})
	}
}

// BenchmarkAtRest measures what 10,000 modules that are called for each message take of the memory of a
// node and, within ten seconds, of a processor, with their logs and inboxes: each has handled one
// (handler), or none has had one (fresh). What the node took before it had any is told apart. Those
// that wait in a call are measured in adapter/spawn.
func BenchmarkAtRest(b *testing.B) {
	const many = 10_000
	for _, kind := range []string{"handler", "fresh"} {
		b.Run(kind, func(b *testing.B) {
			b.StopTimer()
			work := working(b.TempDir())
			bed := Mesh(b, 1, func(i int, c *node.Config) {
				work(i, c)
				c.MaxProcesses = many + 1
			})
			sum, size := storedModule(bed, spawntest.Counts())
			n := bed.Nodes[0]
			from := resident(b, n, "from")
			before := settledMemory()
			const span = 10 * time.Second
			used := func() float64 { // of a core, in percent
				was := processorTime(b)
				time.Sleep(span)
				return 100 * float64(processorTime(b)-was) / float64(span)
			}
			own := used()
			var pids []kernel.PID
			for range many {
				e, err := n.Host().Spawn(b.Context(), kernel.Spec{Name: "rests", Module: sum, ModuleBytes: size})
				if err != nil {
					b.Fatal(err)
				}
				pids = append(pids, e.PID)
			}
			if kind == "handler" {
				for _, pid := range pids {
					to := post.Process(kernel.Address{Node: string(n.ID()), PID: pid})
					if _, err := n.Post().
						Request(b.Context(), from, &post.Message{To: to, Payload: post.TextOf("hello")}); err != nil {
						b.Fatal(err)
					}
				}
			}
			after := settledMemory()
			var whole float64
			b.StartTimer()
			for b.Loop() {
				whole = used()
			}
			b.ReportMetric(float64(after-before)/1e6, "MB")
			b.ReportMetric(own, "%own")
			b.ReportMetric(whole-own, "%core")
			live := 0
			for _, e := range n.Post().Table().List(false) {
				if e.State == kernel.Running && e.Kind == kernel.KindWasm {
					live++
				}
			}
			if live != many {
				b.Errorf("%d of %d rest", live, many)
			}
		})
	}
}

// settledMemory returns the bytes of this process in memory, once what has just begun has come to rest
// and the collector has run by itself or was called.
func settledMemory() int64 {
	time.Sleep(3 * time.Second)
	runtime.GC()
	return shim.OwnUse().Memory
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
