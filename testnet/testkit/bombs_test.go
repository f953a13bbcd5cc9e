package testkit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// moduleOf puts a module together: _start is code, with a table, a memory of so
// many pages at most, and the host's call as function 0 where asks is set.
func moduleOf(asks bool, code ...byte) []byte {
	section := func(id byte, body ...byte) []byte {
		n := len(body)
		length := []byte{byte(n&0x7f | 0x80), byte(n >> 7 & 0x7f)}
		if n >= 1<<14 {
			length = []byte{byte(n&0x7f | 0x80), byte(n>>7&0x7f | 0x80), byte(n >> 14)}
		}
		return append(append([]byte{id}, length...), body...)
	}
	name := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	self := byte(0)
	out := append([]byte("\x00asm\x01\x00\x00\x00"), section(1, 2, 0x60, 0, 0, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f,
		1, 0x7f)...)
	if asks {
		self = 1
		out = append(out, section(2, append(append(append([]byte{1}, name("selvage")...), name("call")...), 0, 1)...)...)
	}
	out = append(out, section(3, 1, 0)...)
	out = append(out, section(4, 1, 0x70, 0, 1)...)
	out = append(out, section(5, 1, 0, 1)...)
	out = append(out, section(7, append(append([]byte{2}, name("_start")...),
		append([]byte{0, self}, append(name("memory"), 2, 0)...)...)...)...)
	out = append(out, section(9, 1, 0, 0x41, 0, 0x0b, 1, self)...)
	body := append(append([]byte{0}, code...), 0x0b)
	n := len(body)
	out = append(out, section(10, append([]byte{1, byte(n&0x7f | 0x80), byte(n>>7&0x7f | 0x80), byte(n >> 14)},
		body...)...)...)
	return append(out, section(11, 1, 0, 0x41, 0, 0x0b, 3, 'l', 'o', 'g')...)
}

// Every bomb of the sandbox goes off in an agent of a node, all at once: each ends
// its own run with the reason, while other runs of the node go on, its API answers,
// and its memory stays what it was.
func TestBombsDisturbNobody(t *testing.T) {
	dir := t.TempDir()
	b := Mesh(t, 1, working(t.TempDir()))
	of := b.Company("Acme")
	type bombing struct {
		name, status, code string
		config             map[string]any
		wasm               []byte
		run                string
	}
	loop := func(code ...byte) []byte { return append(append([]byte{0x03, 0x40}, code...), 0x0c, 0, 0x0b) }
	bombs := []*bombing{
		{name: "endless loop, out of fuel", status: "failed", code: "FuelExhausted",
			config: map[string]any{"fuel": 50_000_000}, wasm: moduleOf(false, loop()...)},
		{name: "endless loop, out of time", status: "timed_out", code: "ExecutionTimeout",
			config: map[string]any{"fuel": 1 << 50, "timeoutSec": 1}, wasm: moduleOf(false, loop()...)},
		{name: "memory grows", status: "failed", code: "FuelExhausted", config: map[string]any{"fuel": 20_000_000,
			"memoryMb": 64}, wasm: moduleOf(false, loop(0x41, 0xff, 0, 0x40, 0, 0x1a)...)},
		{name: "memory is filled", status: "timed_out", code: "ExecutionTimeout", config: map[string]any{"fuel": 1 << 50,
			"memoryMb": 32, "timeoutSec": 1},
			wasm: moduleOf(false, append([]byte{0x41, 0xff, 1, 0x40, 0, 0x1a}, loop(0x41, 0, 0x41, 7, 0x41, 0x80, 0x80, 0x80, 8,
				0xfc, 11, 0)...)...)},
		{name: "a table grows", status: "failed", code: "FuelExhausted", config: map[string]any{"fuel": 50_000_000},
			wasm: moduleOf(false, loop(0xd0, 0x70, 0x41, 0xff, 0, 0xfc, 15, 0, 0x1a)...)},
		{name: "deep recursion", status: "failed", code: "WasmTrap", config: map[string]any{"fuel": 1 << 50},
			wasm: moduleOf(false, 0x10, 0)},
		{name: "the host is flooded", status: "failed", code: "HostCallDenied", config: map[string]any{"fuel": 1 << 50,
			"hostCalls": 2000, "grants": []string{"none"}},
			wasm: moduleOf(true, loop(0x41, 0, 0x41, 3, 0x41, 0, 0x41, 0, 0x10, 0, 0x1a)...)},
		{name: "blocks 20,000 deep for the compiler", status: "failed", code: "InvalidModule",
			wasm: moduleOf(false, append(bytes.Repeat([]byte{0x02, 0x40}, 20_000), bytes.Repeat([]byte{0x0b}, 20_000)...)...)},
		{name: "a module that is too large", status: "failed", code: "ModuleTooLarge",
			wasm: append(moduleOf(false), make([]byte, 11<<20)...)},
	}
	quiet, err := b.Hire(0, of, "Quiet", map[string]any{"command": "/bin/sh",
		"args": []string{"-c", "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i; sleep 0.05; done"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Invoke(0, &quiet); err != nil {
		t.Fatal(err)
	}
	b.Until("the quiet run works", func() bool {
		var log struct{ Content string }
		b.Must(0, "GET", "/api/heartbeat-runs/"+quiet.Run+"/log?limitBytes=65536", nil, &log)
		return strings.Contains(log.Content, "line 1")
	})
	before := residentMiB(t)
	var peak atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // looks on
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				peak.Store(max(peak.Load(), residentMiB(t)))
			}
		}
	}()
	for n, x := range bombs {
		at := filepath.Join(dir, fmt.Sprint(n, ".wasm"))
		if err := os.WriteFile(at, x.wasm, 0o600); err != nil {
			t.Fatal(err)
		}
		config := map[string]any{"module": at}
		for k, v := range x.config {
			config[k] = v
		}
		var agent struct{ ID string }
		b.Must(0, "POST", "/api/companies/"+string(of)+"/agents", map[string]any{"name": fmt.Sprint("Bomb ", n),
			"adapterType": "wasm", "adapterConfig": config}, &agent)
		var run struct{ ID string }
		b.Must(0, "POST", "/api/agents/"+agent.ID+"/wakeup", map[string]any{"source": "on_demand"}, &run)
		x.run = run.ID
	}
	slowest := time.Duration(0)
	for _, x := range bombs {
		var run struct {
			Status     string
			Error      string
			ResultJSON struct{ SandboxError string }
		}
		b.Until(x.name+": its run ends", func() bool {
			began := time.Now()
			b.Must(0, "GET", "/api/heartbeat-runs/"+x.run, nil, &run)
			slowest = max(slowest, time.Since(began))
			return run.Status != "running" && run.Status != "queued"
		})
		if run.Status != x.status || run.ResultJSON.SandboxError != x.code {
			t.Errorf("%s: it ended with %s, %s: %s; want %s, %s", x.name, run.Status, run.ResultJSON.SandboxError, run.Error,
				x.status, x.code)
		}
	}
	var run struct{ Status string }
	b.Until("the quiet run ends", func() bool {
		b.Must(0, "GET", "/api/heartbeat-runs/"+quiet.Run, nil, &run)
		return run.Status != "running"
	})
	close(stop)
	<-stopped
	var log struct{ Content string }
	b.Must(0, "GET", "/api/heartbeat-runs/"+quiet.Run+"/log?limitBytes=65536", nil, &log)
	if run.Status != "succeeded" || !strings.Contains(log.Content, "line 60") {
		t.Errorf("the quiet run is %s", run.Status)
	}
	// Limits of memory add up to 240 MiB here, with stacks that grow and are let go.
	if grown := peak.Load() - before; grown > 512 {
		t.Errorf("the process grew by %d MiB", grown)
	}
	t.Logf("resident %d MiB before, %d MiB at most; the slowest answer took %s", before, peak.Load(), slowest)
}

// residentMiB is the memory of this process.
func residentMiB(t *testing.T) int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc")
	}
	var size, rss int64
	fmt.Sscan(string(b), &size, &rss)
	return rss * int64(os.Getpagesize()) >> 20
}
