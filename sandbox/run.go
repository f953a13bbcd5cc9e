package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"
)

// Limits of one call. Zero means the default.
type Limits struct {
	Fuel      int64         // units; see the package
	Memory    int64         // bytes of linear memory, rounded down to pages of 64 KiB
	Time      time.Duration // from the first instruction to the last
	HostCalls int           // calls of functions in Host
	Output    int           // bytes that are kept of standard output, and as many of standard error
}

func (l Limits) filled() (Limits, *Error) {
	l.Fuel, l.Memory, l.Time = cmp.Or(l.Fuel, DefaultFuel), cmp.Or(l.Memory, DefaultMemory), cmp.Or(l.Time, DefaultTime)
	l.HostCalls, l.Output = cmp.Or(l.HostCalls, DefaultHostCalls), cmp.Or(l.Output, DefaultOutput)
	if l.Fuel < 0 || l.Memory < 0 || l.Time < 0 || l.HostCalls < 0 || l.Output < 0 {
		return l, refuse(RuntimeUnavailable, "limits must not be negative")
	}
	l.Fuel, l.Memory, l.Time, l.Output = min(l.Fuel, MaxFuel), min(l.Memory, MaxMemory), min(l.Time, MaxTime),
		min(l.Output, MaxOutput)
	l.Memory &^= 1<<16 - 1
	return l, nil
}

// A Call is what an instance is given: its arguments, its files, its limits and
// what it may ask of its host.
type Call struct {
	Args []string // the first is the program's name
	Env  []string // "K=V"
	// Stdin is read from the instance's goroutine, or from another when the call
	// ends while Stdin blocks. Default: nothing to read.
	Stdin io.Reader
	// Stdout and Stderr get what is written, as far as Limits.Output goes, or all of it with
	// Follow, beside what the result keeps. They must not block.
	Stdout, Stderr io.Writer
	Follow         bool
	Dirs           []Dir
	Host           Host
	Limits         Limits
	Meter          *Meter // shows what the call uses meanwhile; nil: nobody looks
	// Fixed gives clocks that only advance when they are read and random numbers
	// from a seed, so that two calls do the same.
	Fixed *Fixed
}

// Fixed is a world without chance.
type Fixed struct {
	Start time.Time // what the clock shows first; it advances 1 ms with every look
	Seed  uint64
}

// A Result says how a call ended.
type Result struct {
	// ExitCode is the program's own; null when it did not come to its end.
	ExitCode   *int   `json:"exitCode"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	FuelUsed   int64  `json:"fuelUsed"`
	MemoryPeak int64  `json:"memoryPeak"` // bytes of linear memory
	DurationMs int64  `json:"durationMs"`
	Error      *Error `json:"error"`
}

// Run instantiates the module, runs it to its end and takes the instance away.
// A program begins at _start; a reactor at _initialize and then at run or
// execute. All that goes wrong is in the result.
func (m *Module) Run(ctx context.Context, c Call) Result {
	began := time.Now()
	i, err := m.start(ctx, c)
	if err != nil {
		return Result{Error: err, DurationMs: time.Since(began).Milliseconds()}
	}
	r, clean := i.run(ctx, began)
	if !clean || !i.renew() || !m.one.pool.put(i) {
		i.Close()
		m.refillSoon()
	}
	return r
}

// run calls the program; clean says that it returned.
func (i *Instance) run(ctx context.Context, began time.Time) (r Result, clean bool) {
	entry, ok := i.module.entry()
	if !ok {
		return Result{Error: refuse(InvalidModule, "the module exports neither _start, run nor execute"),
			DurationMs: time.Since(began).Milliseconds()}, false
	}
	_, err := i.call(ctx, entry)
	r = i.result(err)
	r.DurationMs = time.Since(began).Milliseconds()
	return r, err == nil
}

// renew makes an instance whose call has returned what it was at its birth, and
// tells whether it could.
func (i *Instance) renew() bool {
	b := i.birth
	if b == nil || i.trace > traceCall || i.mem.refused || i.mem.size != b.image.size || !b.image.again(i.mem.buf,
		i.mem.size) {
		return false
	}
	i.in.close()
	i.conf, i.answer, i.calls, i.ctx = Call{}, nil, 0, nil
	i.out, i.err = stream{}, stream{}
	i.relive(b)
	return true
}

// relive sets all of an instance but its memory to what it was at its birth.
func (i *Instance) relive(b *birth) {
	for n, v := range b.globals {
		i.state[n].Set(v)
	}
	i.fuel.Set(0)
	i.stack.Set(0)
	i.used, i.granted, i.trace, i.birth = b.fuel, 0, tracePlain, b
	i.fixed.zero = time.Now().Add(-b.steady)
}

func (m *Module) entry() (string, bool) {
	for _, name := range []string{"_start", "run", "execute"} {
		if m.one.info.export(name, kindFunc) {
			return name, true
		}
	}
	return "", false
}

// An Instance is a module with a memory of its own. It executes one call at a
// time; only Close may be called beside it.
type Instance struct {
	module *Module
	mod    api.Module
	fuel   api.MutableGlobal
	stack  api.MutableGlobal
	state  []api.MutableGlobal // the module's own
	mem    memory
	key    string // see Call.key; "" for an instance that serves its call alone
	birth  *birth // that it is a copy of, or nil
	trace  byte   // the most that it did since
	limits Limits
	conf   Call
	fixed  *world

	out, err stream
	in       *input

	// Of the call that is going on; used by the instance's goroutine.
	ctx      context.Context
	deadline time.Time
	granted  int64 // of fuel, by the last refill
	used     int64 // before it
	calls    int
	answer   []byte // of the last host call, as far as it was not taken
	turn     bool   // this goroutine has one of the engine's turns

	closing sync.Once
	busy    sync.Mutex
}

// Start makes an instance that stays: its functions can be called again and
// again, and its memory is kept in between. _initialize has run.
func (m *Module) Start(ctx context.Context, c Call) (*Instance, error) {
	i, err := m.start(ctx, c)
	if err != nil {
		return nil, err
	}
	m.refillSoon()
	return i, nil
}

func (m *Module) start(ctx context.Context, c Call) (*Instance, *Error) {
	limits, bad := c.Limits.filled()
	if bad != nil {
		return nil, bad
	}
	key, common := c.key()
	if common {
		if i := m.one.pool.take(key, limits); i != nil {
			i.module = m
			i.adopt(c, limits)
			return i.paid()
		}
	}
	i, bad := m.instantiate(ctx, c, limits, nil)
	if bad != nil {
		return nil, bad
	}
	return i.paid()
}

// paid refuses an instance whose beginning took more fuel than there is: that
// counts, whether it was now or before.
func (i *Instance) paid() (*Instance, *Error) {
	if i.spent() > i.limits.Fuel {
		bad := i.exhausted()
		i.Close()
		return nil, bad
	}
	return i, nil
}

// adopt gives an instance that was made ahead its call.
func (i *Instance) adopt(c Call, limits Limits) {
	i.conf, i.limits = c, limits
	i.out = stream{max: limits.Output, also: c.Stdout, all: c.Follow}
	i.err = stream{max: limits.Output, also: c.Stderr, all: c.Follow}
	*i.in = input{i: i, r: c.Stdin}
}

// instantiate makes an instance. It is a copy of b where one is given, and of the pool's birth where
// that fits.
func (m *Module) instantiate(ctx context.Context, c Call, limits Limits, b *birth) (*Instance, *Error) {
	info := m.one.info
	if need := int64(info.minPages) << 16; need > limits.Memory {
		return nil, refuse(MemoryLimitExceeded, "the module needs %d bytes of memory from the start, %d are allowed", need,
			limits.Memory)
	}
	i := &Instance{module: m, fixed: newWorld(c.Fixed)}
	i.in = &input{i: i}
	i.mem.limit, i.mem.image = uint64(limits.Memory), m.one.data
	i.adopt(c, limits)
	key, common := "", false
	if b == nil {
		if key, common = c.key(); common {
			i.key, b = key, m.one.pool.born(key)
		}
	}
	if b != nil && b.image.size > i.mem.limit {
		b = nil
	}
	if b != nil {
		i.mem.image = b.image
	}
	conf, bad := i.config(c)
	if bad != nil {
		return nil, bad
	}
	began := false
	_, err := i.guarded(ctx, b == nil, func(ctx context.Context) ([]uint64, error) {
		var err error
		i.mod, err = m.engine.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, &i.mem), m.one.compiled, conf)
		if err != nil {
			return nil, err
		}
		i.globals(i.mod)
		if b != nil {
			i.relive(b)
			return nil, nil
		}
		if f := i.mod.ExportedFunction("_initialize"); f != nil && !info.export("_start", kindFunc) {
			began = true
			return f.Call(ctx)
		}
		return nil, nil
	})
	if err == nil && b == nil && common {
		m.one.pool.bear(i, began)
	}
	if err != nil {
		bad := i.result(err).Error
		i.Close()
		if bad == nil { // it left by proc_exit before it could be called
			bad = refuse(WasmTrap, "the module ended while it was instantiated")
		}
		return nil, bad
	}
	return i, nil
}

func (i *Instance) globals(mod api.Module) {
	if i.fuel == nil {
		i.fuel, _ = mod.ExportedGlobal(meterFuel).(api.MutableGlobal)
		i.stack, _ = mod.ExportedGlobal(meterStack).(api.MutableGlobal)
		if info := i.module.one.info; !info.moving {
			for n := range info.mutable {
				g, _ := mod.ExportedGlobal(meterGlobal + strconv.Itoa(n)).(api.MutableGlobal)
				i.state = append(i.state, g)
			}
		}
	}
}

// config is what the runtime is told of the instance.
func (i *Instance) config(c Call) (wazero.ModuleConfig, *Error) {
	size := 0
	for _, s := range append(append([]string(nil), c.Args...), c.Env...) {
		if strings.Contains(s, "\x00") {
			return nil, refuse(RuntimeUnavailable, "an argument or a variable holds a zero byte")
		}
		size += len(s) + 1
	}
	if size > maxStart {
		return nil, refuse(RuntimeUnavailable, "arguments and environment of %d bytes are more than the %d that are allowed",
			size, maxStart)
	}
	conf := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithArgs(c.Args...).
		WithStdin(i.in).WithStdout(&out{i, &i.out}).WithStderr(&out{i, &i.err})
	for _, kv := range c.Env {
		k, v, _ := strings.Cut(kv, "=")
		if k == "" {
			return nil, refuse(RuntimeUnavailable, "a variable has no name")
		}
		conf = conf.WithEnv(k, v)
	}
	conf = conf.WithRandSource(random{i}).WithWalltime(i.walltime, 1).WithNanotime(i.nanotime, 1).WithNanosleep(i.sleep).
		WithOsyield(i.pause)
	files, bad := i.files(c.Dirs)
	if bad != nil {
		return nil, bad
	}
	if files != nil {
		conf = conf.WithFSConfig(files)
	}
	return conf, nil
}

// Call calls an exported function. Arguments and results are as WebAssembly has
// them, 64 bits each. Its error is an *Error, or a *sys.ExitError of the program
// itself; after either the instance is only good to be closed. Fuel and time are
// counted from the start of each call.
func (i *Instance) Call(ctx context.Context, name string, args ...uint64) ([]uint64, error) {
	i.refuel()
	res, err := i.call(ctx, name, args...)
	if err != nil {
		if r := i.result(err); r.Error != nil {
			return nil, r.Error
		}
		return nil, err
	}
	return res, nil
}

// refuel begins to count anew.
func (i *Instance) refuel() {
	i.used, i.granted, i.calls = 0, 0, 0
	i.fuel.Set(0)
}

func (i *Instance) call(ctx context.Context, name string, args ...uint64) ([]uint64, error) {
	f := i.mod.ExportedFunction(name)
	if f == nil {
		return nil, refuse(InvalidModule, "the module exports no function %q", name)
	}
	if n := len(f.Definition().ParamTypes()); n != len(args) {
		return nil, refuse(InvalidModule, "function %q takes %d arguments", name, n)
	}
	i.stack.Set(0)
	return i.guarded(ctx, true, func(ctx context.Context) ([]uint64, error) { return f.Call(ctx, args...) })
}

type instanceKey struct{}

// guarded executes f as the instance: with its deadline, and on a turn where the
// guest has one.
func (i *Instance) guarded(ctx context.Context, guest bool, f func(context.Context) ([]uint64, error)) (res []uint64,
	err error) {
	if !i.busy.TryLock() {
		return nil, refuse(RuntimeUnavailable, "the instance is busy")
	}
	defer i.busy.Unlock()
	i.deadline = time.Now().Add(i.limits.Time)
	ctx, cancel := context.WithDeadline(ctx, i.deadline)
	defer cancel()
	i.ctx = context.WithValue(ctx, instanceKey{}, i)
	defer func() {
		i.leave()
		if x := recover(); x != nil { // of ours, where the runtime was not between
			e, ok := x.(error)
			if !ok {
				panic(x)
			}
			res, err = nil, e
		}
	}()
	if guest {
		i.join()
	}
	return f(i.ctx)
}

// join waits for a turn to execute; leave gives it back.
func (i *Instance) join() {
	select {
	case i.module.engine.turns <- struct{}{}:
		i.turn = true
		return
	default:
	}
	waiting := &i.module.engine.waiting
	waiting.Add(1)
	defer waiting.Add(-1)
	select {
	case i.module.engine.turns <- struct{}{}:
		i.turn = true
	case <-i.ctx.Done():
		panic(i.over())
	}
}

func (i *Instance) leave() {
	if i.turn {
		i.turn = false
		<-i.module.engine.turns
	}
}

// yield lets others execute, when there are any that wait.
func (i *Instance) yield() {
	if i.turn && i.module.engine.waiting.Load() == 0 {
		return
	}
	i.leave()
	runtime.Gosched()
	i.join()
}

// over is why a call must not go on, or nil.
func (i *Instance) over() error {
	switch err := i.ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(i.deadline): // ours; the caller's came earlier
		return refuse(ExecutionTimeout, "the call took longer than %v", i.limits.Time)
	default:
		if why, ok := errors.AsType[*Error](context.Cause(i.ctx)); ok {
			return why
		}
		return refuse(Cancelled, "the call was cancelled")
	}
}

// look ends the call when it must not go on.
func (i *Instance) look() {
	if err := i.over(); err != nil {
		panic(err)
	}
}

// spend charges the call for work that the host does for it.
func (i *Instance) spend(n int64) {
	i.used += n
	if i.used > i.limits.Fuel {
		panic(i.exhausted())
	}
}

func (i *Instance) exhausted() *Error {
	return refuse(FuelExhausted, "the call used up its %d units of fuel", i.limits.Fuel)
}

// enter is what metered code calls when its slice or its stack is used up, and
// before it calls any other function of the host.
func enter(ctx context.Context, mod api.Module, args []uint64) {
	i, ok := ctx.Value(instanceKey{}).(*Instance)
	if !ok {
		panic(refuse(RuntimeUnavailable, "called from outside"))
	}
	i.globals(mod)
	i.look()
	if int32(uint32(args[0])) == whyUsedUp && i.stack.Get() > maxStack {
		panic(refuse(WasmTrap, "call stack exhausted"))
	}
	if why := int32(uint32(args[0])); why >= 0 {
		i.trace = max(i.trace, i.module.one.traces[why])
	}
	left := int64(i.fuel.Get())
	if left >= 0 {
		return
	}
	i.used += i.granted - left
	i.granted = 0
	i.conf.Meter.note(i)
	rest := i.limits.Fuel - i.used
	if rest < 0 {
		panic(i.exhausted())
	}
	i.yield()
	i.granted = min(slice, rest)
	i.fuel.Set(uint64(i.granted))
}

// spent is the fuel that was used so far.
func (i *Instance) spent() int64 {
	if i.fuel == nil {
		return i.used
	}
	return i.used + i.granted - int64(i.fuel.Get())
}

// result tells how the call ended that returned err.
func (i *Instance) result(err error) Result {
	r := Result{Stdout: i.out.text(), Stderr: i.err.text(), MemoryPeak: int64(i.mem.size)}
	r.FuelUsed = min(i.spent(), i.limits.Fuel)
	var own *Error
	var exit *sys.ExitError
	switch {
	case err == nil:
		r.ExitCode = new(0)
	case errors.As(err, &own):
		r.Error = own
	case errors.As(err, &exit):
		r.ExitCode = new(int(exit.ExitCode()))
	default:
		r.Error = refuse(WasmTrap, "%s", strings.TrimPrefix(firstLine(err.Error()), "wasm error: "))
	}
	ended := r.Error == nil && *r.ExitCode == 0
	if i.mem.refused && !ended && (r.Error == nil || r.Error.Code == WasmTrap) {
		r.Error = refuse(MemoryLimitExceeded, "the program asked for more than its %d bytes of memory and ended",
			i.limits.Memory)
	}
	return r
}

// Close takes the instance away. It must not be executing.
func (i *Instance) Close() error {
	i.closing.Do(func() {
		i.in.close()
		if i.mod != nil {
			_ = i.mod.Close(context.Background())
		}
		i.mem.Free()
	})
	return nil
}

// String of an instance names its module, for messages.
func (i *Instance) String() string { return fmt.Sprintf("instance of %.12s", i.module.Hash()) }
