package spawn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/sandbox"
)

// fuelPerMs converts processor time into fuel: compiled code executes about this many
// instructions in a millisecond.
const fuelPerMs = 1_000_000

// module is a WebAssembly module that executes.
type module struct {
	meter  sandbox.Meter
	cancel context.CancelFunc
	ended  chan kernel.Exit
}

func (h *Host) startWasm(ctx context.Context, l *living, spec kernel.Spec, e kernel.Entry, log Log) (control, error) {
	if h.cfg.Sandbox == nil {
		return nil, kernel.Errorf(kernel.BackendNotAvailable, "wasm: this node has no sandbox")
	}
	b, err := h.cfg.Module(ctx, spec.Module, spec.ModuleBytes)
	if err != nil {
		return nil, kernel.Errorf(kernel.SpawnFailed, "module %.12s could not be read: %v", spec.Module, err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != spec.Module {
		return nil, kernel.Errorf(kernel.SpawnFailed, "module %.12s: its bytes have another hash", spec.Module)
	}
	m, err := h.cfg.Sandbox.Load(ctx, b)
	if err != nil {
		return nil, kernel.Errorf(kernel.SpawnFailed, "module %.12s can not be executed: %v", spec.Module, err)
	}
	handles, err := m.Handles(handler)
	if err != nil {
		_ = m.Close()
		return nil, kernel.Errorf(kernel.SpawnFailed, "module %.12s can not be executed: %v", spec.Module, err)
	}
	if handles {
		a := &actor{h: h, l: l, spec: spec, module: m, log: log}
		a.turn.Of = a
		restLog(log)
		return a, nil
	}
	call := h.callOf(spec, e, log)
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &module{cancel: cancel, ended: make(chan kernel.Exit, 1)}
	call.Meter = &p.meter
	go func() {
		defer cancel()
		r := m.Run(run, call)
		_ = m.Close()
		if r.Error != nil {
			log.Write("system", "[selvage] "+r.Error.Error()+"\n")
		}
		log.End()
		p.ended <- wasmExit(r)
	}()
	return p, nil
}

// callOf is what a module is given: arguments, variables, limits, and what it may ask for.
func (h *Host) callOf(spec kernel.Spec, e kernel.Entry, log Log) sandbox.Call {
	limits := e.Capabilities.Limits
	call := sandbox.Call{Args: append([]string{spec.Name}, spec.Command...),
		Env:    process.List(h.environ(spec, e, map[string]string{})),
		Stdout: stream{log, "stdout"}, Stderr: stream{log, "stderr"}, Follow: true,
		Limits: sandbox.Limits{Fuel: sandbox.MaxFuel, Memory: min(limits.MemoryBytes, sandbox.MaxMemory),
			Time: sandbox.MaxTime, HostCalls: 1 << 30, Output: 1}}
	if h.cfg.Messages != nil {
		call.Host = h.cfg.Messages.Calls(e.PID)
	}
	if limits.MemoryBytes == 0 {
		call.Limits.Memory = sandbox.MaxMemory
	}
	if limits.CPUTimeMs > 0 {
		call.Limits.Fuel = min(limits.CPUTimeMs, sandbox.MaxFuel/fuelPerMs) * fuelPerMs
	}
	return call
}

// wasmExit says how a module ended.
func wasmExit(r sandbox.Result) kernel.Exit {
	if r.Error == nil {
		return kernel.ExitOf(*r.ExitCode, "")
	}
	switch r.Error.Code {
	case sandbox.Cancelled:
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed, Message: "it was killed"}
	case sandbox.FuelExhausted, sandbox.ExecutionTimeout:
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Timeout, Message: "it passed its limit: cpu_time: " +
			r.Error.Error()}
	case sandbox.MemoryLimitExceeded:
		return kernel.Exit{Code: kernel.ExitForced, Reason: kernel.Killed, Message: "it passed its limit: memory: " +
			r.Error.Error()}
	}
	return kernel.Exit{Code: kernel.ExitPanic, Reason: kernel.Crash, Message: r.Error.Error()}
}

func (m *module) wait() kernel.Exit       { return <-m.ended }
func (m *module) terminate(time.Duration) { m.cancel() } // a module has no signals
func (m *module) kill()                   { m.cancel() }
func (m *module) renew(time.Duration)     {} // see holdToLease
func (m *module) machine() int            { return 0 }

func (m *module) signal(name string) error {
	switch name {
	case "SIGSTOP":
		m.meter.Suspend()
	case "SIGCONT":
		m.meter.Resume()
	default:
		return kernel.Errorf(kernel.BadRequest, "a module takes TERM, KILL, STOP and CONT, not %s", name)
	}
	return nil
}

func (m *module) use() (kernel.Use, bool) {
	return kernel.Use{MemoryBytes: m.meter.Memory(), CPUTimeMs: m.meter.Fuel() / fuelPerMs}, true
}

// A stream writes into a log.
type stream struct {
	log  Log
	name string
}

func (s stream) Write(p []byte) (int, error) {
	s.log.Write(s.name, string(p))
	return len(p), nil
}
