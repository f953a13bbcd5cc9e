package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Config is what an engine needs; its zero value will do for tests.
type Config struct {
	// Dir holds what was compiled, for the next start; it is created. Whoever can
	// write there can run code as the node. Default: nothing is kept.
	Dir string
	// Compiler is the command that compiles a large module in a process of its own,
	// as Compile does: {"/proc/self/exe", "sandbox", "compile"}. It needs Dir.
	// Default: compiled in this process, where a compilation can be stopped only
	// between two functions.
	Compiler []string
	// MaxModule is the size of a module in bytes; default DefaultModule.
	MaxModule int64
	// CompileTime bounds the processor's time for one compilation, to whole seconds;
	// default DefaultCompileTime. In this process, or where a process of its own can not
	// be held to that (not Linux), only the ten times as long that either may last holds.
	CompileTime time.Duration
	// Turns is how many guests execute at once; others wait for their turn, which
	// changes with every slice of fuel. Default: one processor less than there are,
	// at least one, so that the node keeps one for itself.
	Turns  int
	Logger *slog.Logger // default: discard
}

// An Engine compiles and runs modules. It is safe for concurrent use.
type Engine struct {
	cfg     Config
	runtime wazero.Runtime
	cache   wazero.CompilationCache
	turns   chan struct{}
	waiting atomic.Int32 // guests that wait for a turn
	compile chan struct{}
	offers  map[string]bool // what modules may import, as "module.name"

	mu      sync.Mutex // guards what follows
	modules map[[32]byte]*loaded
	closed  bool
}

// A loaded module is compiled once and shared: closing one of two compilations
// of the same bytes would break the other.
type loaded struct {
	ready    chan struct{} // closed when compiled or err is set
	compiled wazero.CompiledModule
	err      *Error
	info     *parsed
	data     *image // of the memory at the beginning; nil: the runtime lays it out
	traces   []byte // by import
	pool     pool
	users    int       // guarded by Engine.mu, as is idle
	idle     time.Time // since when nobody uses it
}

// Open makes an engine.
func Open(cfg Config) (*Engine, error) {
	cfg.MaxModule = cmp.Or(cfg.MaxModule, DefaultModule)
	cfg.CompileTime = cmp.Or(cfg.CompileTime, DefaultCompileTime)
	cfg.Turns = cmp.Or(cfg.Turns, max(1, runtime.GOMAXPROCS(0)-1))
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Compiler) > 0 && cfg.Dir == "" {
		return nil, errors.New("sandbox: a compiler needs a directory to compile into")
	}
	ctx := context.Background()
	e := &Engine{cfg: cfg, modules: map[[32]byte]*loaded{}, offers: map[string]bool{hostModule + ".call": true,
		hostModule + ".take": true}, turns: make(chan struct{}, cfg.Turns), compile: make(chan struct{}, compilesAtOnce)}
	if dropped, err := dropDamaged(cfg.Dir, true); err != nil {
		return nil, fmt.Errorf("sandbox: throw away damaged code: %w", err)
	} else if dropped > 0 {
		cfg.Logger.Warn("compiled modules without their sum are thrown away, and compiled anew when they are needed",
			"files", dropped)
	}
	var err error
	if e.runtime, e.cache, err = newRuntime(ctx, cfg.Dir); err != nil {
		return nil, err
	}
	if err := e.bind(ctx); err != nil {
		return nil, errors.Join(err, e.runtime.Close(ctx))
	}
	return e, nil
}

// newRuntime is the runtime both of an engine and of its compiler: what one
// stores the other must find.
func newRuntime(ctx context.Context, dir string) (wazero.Runtime, wazero.CompilationCache, error) {
	conf := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(MaxMemory >> 16).
		WithDebugInfoEnabled(false)
	var cache wazero.CompilationCache
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, fmt.Errorf("sandbox: %w", err)
		}
		var err error
		if cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, nil, fmt.Errorf("sandbox: %w", err)
		}
		conf = conf.WithCompilationCache(cache)
	}
	return wazero.NewRuntimeWithConfig(ctx, conf), cache, nil
}

// Close ends the engine. Instances must be closed before.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	for _, one := range e.modules {
		if one.compiled != nil {
			one.pool.close(one.data)
		}
	}
	e.mu.Unlock()
	err := e.runtime.Close(context.Background())
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(context.Background()))
	}
	return err
}

// bind makes the modules that guests import from.
func (e *Engine) bind(ctx context.Context) error {
	wasi := e.runtime.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	known, err := wasi.Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	for name := range known.ExportedFunctionDefinitions() {
		e.offers[wasi_snapshot_preview1.ModuleName+"."+name] = true
	}
	meter := e.runtime.NewHostModuleBuilder(meterModule)
	meter.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(enter), []api.ValueType{api.ValueTypeI32}, nil).
		Export(meterEnter)
	if _, err := meter.Instantiate(ctx); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	i32 := api.ValueTypeI32
	host := e.runtime.NewHostModuleBuilder(hostModule)
	host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostCall), []api.ValueType{i32, i32, i32, i32},
		[]api.ValueType{i32}).Export("call")
	host.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(hostTake), []api.ValueType{i32, i32},
		[]api.ValueType{i32}).Export("take")
	if _, err := host.Instantiate(ctx); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}

// A Module is a program that is ready to be instantiated. It must be closed.
type Module struct {
	engine *Engine
	hash   [32]byte
	one    *loaded
	once   sync.Once
}

// Hash is the SHA-256 of the module as it was loaded.
func (m *Module) Hash() string { return hex.EncodeToString(m.hash[:]) }

// Load checks and compiles a module, unless it was loaded before. Its error is an
// *Error or the context's.
func (e *Engine) Load(ctx context.Context, wasm []byte) (*Module, error) {
	if int64(len(wasm)) > e.cfg.MaxModule {
		return nil, refuse(ModuleTooLarge, "a module of %d bytes is larger than the %d that are allowed", len(wasm),
			e.cfg.MaxModule)
	}
	hash := sha256.Sum256(wasm)
	for {
		one, mine, err := e.claim(hash)
		if err != nil {
			return nil, err
		}
		if mine {
			e.build(ctx, one, wasm)
		}
		select {
		case <-one.ready:
		case <-ctx.Done():
			e.release(hash, one)
			return nil, ctx.Err()
		}
		if one.err == nil {
			return &Module{engine: e, hash: hash, one: one}, nil
		}
		e.release(hash, one)
		if one.err.Code == Cancelled && ctx.Err() == nil {
			continue // somebody else's patience ended, not ours
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, one.err
	}
}

// claim returns the module of a hash, and whether the caller is to build it.
func (e *Engine) claim(hash [32]byte) (one *loaded, mine bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, refuse(RuntimeUnavailable, "the sandbox is closed")
	}
	if one = e.modules[hash]; one == nil {
		one, mine = &loaded{ready: make(chan struct{})}, true
		e.modules[hash] = one
	}
	one.users++
	return one, mine, nil
}

// release gives a module back. Of those that nobody uses the most recent stay.
func (e *Engine) release(hash [32]byte, one *loaded) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if one.users--; one.users > 0 || e.closed {
		return
	}
	if one.err != nil {
		if e.modules[hash] == one {
			delete(e.modules, hash)
		}
		return
	}
	one.idle = time.Now()
	one.pool.rest()
	var unused [][32]byte
	for h, l := range e.modules {
		if l.users == 0 {
			unused = append(unused, h)
		}
	}
	if len(unused) <= maxLoaded {
		return
	}
	oldest := slices.MinFunc(unused, func(a, b [32]byte) int { return e.modules[a].idle.Compare(e.modules[b].idle) })
	e.modules[oldest].pool.close(e.modules[oldest].data)
	_ = e.modules[oldest].compiled.Close(context.Background()) // frees memory; there is nothing to do about a failure
	delete(e.modules, oldest)
}

// build fills in what claim made.
func (e *Engine) build(ctx context.Context, one *loaded, wasm []byte) {
	defer close(one.ready)
	info, metered, err := prepare(wasm, e.offers)
	if err != nil {
		one.err = err
		return
	}
	one.info, one.traces = info, tracesOf(info.imports)
	if !info.moving || info.imaged {
		one.data = newImage(uint64(info.minPages)<<16, info.data)
	}
	info.data = nil
	one.compiled, one.err = e.compiled(ctx, metered)
	if one.err != nil {
		one.data.close()
		e.mu.Lock()
		for h, l := range e.modules { // the next to ask tries again
			if l == one {
				delete(e.modules, h)
			}
		}
		e.mu.Unlock()
	}
}

// prepare checks a module, whose imports must be among those that are offered,
// and makes it metered.
func prepare(wasm []byte, offers map[string]bool) (*parsed, []byte, *Error) {
	info, err := parse(wasm)
	if err != nil {
		return nil, nil, refuse(InvalidModule, "%v", err)
	}
	for _, i := range info.imports {
		if !offers[i.module+"."+i.name] {
			return nil, nil, refuse(HostCallDenied, "the module imports %s.%s, which is not offered", i.module, i.name)
		}
	}
	for _, x := range info.exports {
		if strings.HasPrefix(x.name, meterModule) {
			return nil, nil, refuse(InvalidModule, "the module exports %q, a name that is taken", x.name)
		}
	}
	metered, err := info.meter()
	if err != nil {
		return nil, nil, refuse(InvalidModule, "%v", err)
	}
	info.sections, info.bodies, info.bodyAt, info.taken = nil, nil, nil, nil // they hold on to the bytes
	return info, metered, nil
}

// compiled compiles a metered module: small ones here, others in a process that
// can be killed, unless they were compiled before.
func (e *Engine) compiled(ctx context.Context, metered []byte) (wazero.CompiledModule, *Error) {
	ctx, cancel := context.WithTimeout(ctx, compileBusy*e.cfg.CompileTime)
	defer cancel()
	select {
	case e.compile <- struct{}{}:
		defer func() { <-e.compile }()
	case <-ctx.Done():
		return nil, compileFailure(ctx, ctx.Err())
	}
	if dropped, err := dropDamaged(e.cfg.Dir, false); err != nil || dropped > 0 {
		e.cfg.Logger.Warn("compiled modules are damaged on the disk, and compiled anew", "files", dropped, "error", err)
	}
	if len(metered) > inProcess && len(e.cfg.Compiler) > 0 {
		mark := filepath.Join(e.cfg.Dir, "compiled-"+hex.EncodeToString(hashOf(metered)))
		if _, err := os.Stat(mark); err != nil {
			if err := e.child(ctx, metered); err != nil {
				return nil, compileFailure(ctx, err)
			}
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				e.cfg.Logger.Warn("note a compiled module", "error", err)
			}
		}
	}
	c, err := e.runtime.CompileModule(ctx, metered)
	if err != nil {
		return nil, compileFailure(ctx, err)
	}
	if err := sumKept(e.cfg.Dir); err != nil {
		e.cfg.Logger.Warn("note the sum of a compiled module", "error", err)
	}
	return c, nil
}

func hashOf(b []byte) []byte {
	h := sha256.Sum256(b)
	return h[:]
}

var errCompileTime = refuse(CompilationFailed, "compilation took longer than it may")

func compileFailure(ctx context.Context, err error) *Error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return errCompileTime
	case ctx.Err() != nil:
		return refuse(Cancelled, "compilation was broken off")
	}
	var bad *Error
	if errors.As(err, &bad) {
		return bad
	}
	return refuse(InvalidModule, "%s", firstLine(err.Error()))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s[:min(len(s), 512)]
}

// child compiles in a process of its own.
func (e *Engine) child(ctx context.Context, metered []byte) error {
	cmd := exec.CommandContext(ctx, e.cfg.Compiler[0], append(slices.Clone(e.cfg.Compiler[1:]), e.cfg.Dir)...)
	cmd.Stdin = bytes.NewReader(metered)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &limitedWriter{w: &said, left: 4 << 10}
	seconds := max(1, int(e.cfg.CompileTime/time.Second))
	cmd.Env = []string{"GOMAXPROCS=1", fmt.Sprint("GOMEMLIMIT=", compileMemory/2), "HOME=/nonexistent",
		fmt.Sprint(compileSeconds, "=", seconds)}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == exitInvalid:
		return refuse(InvalidModule, "%s", firstLine(said.String()))
	case exit != nil && (exit.ExitCode() == exitTooLong ||
		exit.UserTime()+exit.SystemTime() >= time.Duration(seconds)*time.Second):
		return errCompileTime
	}
	return refuse(CompilationFailed, "the compiler ended with %v", err)
}

// exitInvalid is how a compiler ends for which a module is not valid, exitTooLong how
// one does that has used up its time. compileSeconds is the variable that tells it how
// long it may work.
const (
	exitInvalid    = 3
	exitTooLong    = 4
	compileSeconds = "SELVAGE_COMPILE_SECONDS"
)

// Compile is what the compiler's process does: it reads a metered module from r,
// compiles it into dir and returns the status to exit with.
func Compile(dir string, r io.Reader, complain io.Writer) int {
	seconds, err := strconv.ParseUint(os.Getenv(compileSeconds), 10, 32)
	if err != nil {
		seconds = uint64(DefaultCompileTime / time.Second) // by hand
	}
	limitProcess(seconds)
	metered, err := io.ReadAll(io.LimitReader(r, 8*DefaultModule))
	if err != nil {
		fmt.Fprintln(complain, err)
		return 1
	}
	ctx := context.Background()
	rt, _, err := newRuntime(ctx, dir)
	if err != nil {
		fmt.Fprintln(complain, err)
		return 1
	}
	if _, err := rt.CompileModule(ctx, metered); err != nil {
		fmt.Fprintln(complain, firstLine(err.Error()))
		return exitInvalid
	}
	return 0
}

// A limitedWriter takes as much as it may and drops the rest.
type limitedWriter struct {
	w    io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close gives the module back to its engine.
func (m *Module) Close() error {
	m.once.Do(func() {
		m.engine.release(m.hash, m.one)
	})
	return nil
}
