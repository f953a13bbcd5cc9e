package sandbox

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxWarm bounds the instances of a module that are made ahead on demand.
	maxWarm = 64
	// maxSpare is how many instances of a module stay for the next calls by
	// themselves. One that waits has given back what it wrote to: some 300 KiB remain
	// of a program of Go.
	maxSpare = 2
)

// A birth is what an instance is when its program has begun and was asked
// nothing: after _initialize, or before _start. Others are made by copying it.
type birth struct {
	key     string // of the calls that it serves, see Call.key
	image   *image
	globals []uint64
	fuel    int64         // that the beginning took, which every call pays
	steady  time.Duration // what the steady clock showed
}

// key names what a program may read when it begins. Calls with directories or a
// fixed world have none: their instances are made for them alone.
func (c Call) key() (string, bool) {
	if len(c.Dirs) > 0 || c.Fixed != nil {
		return "", false
	}
	return strconv.Itoa(len(c.Args)) + "\x00" + strings.Join(c.Args, "\x00") + "\x00" + strings.Join(c.Env, "\x00"), true
}

// What calling a function of WASI, or of the host, means for an instance.
const (
	tracePlain = iota // the same for all instances of a birth, as far as anybody may expect
	traceCall         // not to be done for another; nothing of it stays
	traceStays        // may leave something behind beside the memory
)

// traces are of functions that leave nothing behind; all others may.
var traces = map[string]byte{
	"clock_time_get": tracePlain, "clock_res_get": tracePlain, "random_get": tracePlain, "sched_yield": tracePlain,
	"args_get": tracePlain, "args_sizes_get": tracePlain, "environ_get": tracePlain, "environ_sizes_get": tracePlain,
	"fd_prestat_get": tracePlain, "fd_prestat_dir_name": tracePlain, "fd_fdstat_get": tracePlain,
	"fd_fdstat_set_flags": tracePlain, // of the three streams, which have no such flags
	"fd_read":             traceCall, "fd_write": traceCall, "fd_filestat_get": traceCall, "poll_oneoff": traceCall,
	"proc_exit": traceCall,
	"call":      traceCall, "take": traceCall,
}

// tracesOf returns what a module's imports mean, by their number.
func tracesOf(imports []imported) []byte {
	out := make([]byte, len(imports))
	for n, i := range imports {
		kind, known := traces[i.name]
		if !known {
			kind = traceStays
		}
		out[n] = kind
	}
	return out
}

// A pool keeps instances that are ready for a call, so that it does not wait for
// a program's own beginning. An instance that was used is made again what it was
// at its birth, its memory by the system: nothing of a call is left for another.
type pool struct {
	mu     sync.Mutex // guards what follows
	birth  *birth
	last   string // key of the instance that was made last
	made   int    // instances, so far
	free   []*Instance
	want   int // that are to be ready
	limits Limits
	closed bool
	busy   bool // somebody is making instances
	making sync.WaitGroup
}

// Warm keeps up to n instances ready from now on, and makes the first at once.
// They serve calls with as much memory as limits have, and without arguments,
// environment, directories or fixed world. Programs that begin at _start do their
// own beginning in the call, so only reactors gain much.
func (m *Module) Warm(ctx context.Context, n int, limits Limits) error {
	limits, bad := limits.filled()
	if bad != nil {
		return bad
	}
	p := &m.one.pool
	p.mu.Lock()
	p.want, p.limits = min(n, maxWarm), limits
	p.mu.Unlock()
	return m.refill(ctx)
}

// refill makes what is missing, one after another.
func (m *Module) refill(ctx context.Context) error {
	p := &m.one.pool
	p.mu.Lock()
	if p.busy || p.closed {
		p.mu.Unlock()
		return nil
	}
	p.busy = true
	p.making.Add(1)
	p.mu.Unlock()
	defer p.making.Done()
	for {
		p.mu.Lock()
		if p.closed || len(p.free) >= p.want {
			p.busy = false
			p.mu.Unlock()
			return nil
		}
		limits := p.limits
		p.mu.Unlock()
		i, bad := m.instantiate(ctx, Call{}, limits, nil)
		p.mu.Lock()
		keep := bad == nil && !p.closed && limits == p.limits
		if keep {
			p.free = append(p.free, i)
		} else if bad != nil || p.closed {
			p.busy = false
		}
		p.mu.Unlock()
		if i != nil && !keep {
			i.Close()
		}
		if bad != nil {
			return bad
		}
	}
}

// refillSoon makes what is missing meanwhile; what can not be made ahead is made
// when it is needed.
func (m *Module) refillSoon() {
	p := &m.one.pool
	p.mu.Lock()
	idle := !p.busy && !p.closed && len(p.free) < p.want
	p.mu.Unlock()
	if idle {
		go func() { _ = m.refill(context.Background()) }()
	}
}

// take returns an instance for a call, or nil.
func (p *pool) take(key string, limits Limits) *Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.free) - 1; n >= 0; n-- {
		if i := p.free[n]; i.key == key && int64(i.mem.limit) == limits.Memory {
			p.free = append(p.free[:n], p.free[n+1:]...)
			return i
		}
	}
	return nil
}

// born returns what instances for a key are copied from, or nil.
func (p *pool) born(key string) *birth {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.birth != nil && p.birth.key == key {
		return p.birth
	}
	return nil
}

// bear makes an instance that has just begun the one that others are copied
// from, when there will be others: when one like it was made before, or is to be.
func (p *pool) bear(i *Instance, began bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.made > 0 && p.last == i.key || p.want > 0
	p.made, p.last = p.made+1, i.key
	if !again || p.closed || i.module.one.info.moving || i.trace != tracePlain || i.mem.refused {
		return
	}
	b := &birth{key: i.key, image: i.module.one.data, fuel: i.spent(), steady: time.Duration(i.nanotime())}
	if began {
		b.image = imageOf(i.mem.buf[:i.mem.size])
	}
	for _, g := range i.state {
		b.globals = append(b.globals, g.Get())
	}
	if p.birth != nil && p.birth.image != i.module.one.data {
		p.birth.image.close()
	}
	p.birth = b
}

// put keeps an instance that was made what it was at its birth, and tells whether
// it did.
func (p *pool) put(i *Instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.birth != i.birth {
		return false
	}
	if len(p.free) >= max(p.want, maxSpare) { // one of another birth makes room
		n := slices.IndexFunc(p.free, func(o *Instance) bool { return o.key != i.key })
		if n < 0 {
			return false
		}
		p.free[n].Close()
		p.free = slices.Delete(p.free, n, n+1)
	}
	p.free = append(p.free, i)
	return true
}

// rest takes away what nobody wants any more, when nobody has the module open.
func (p *pool) rest() {
	p.mu.Lock()
	p.want = 0
	var gone []*Instance
	if len(p.free) > maxSpare {
		gone, p.free = p.free[maxSpare:], p.free[:maxSpare:maxSpare]
	}
	p.mu.Unlock()
	for _, i := range gone {
		i.Close()
	}
}

func (p *pool) close(data *image) {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for _, i := range free {
		i.Close()
	}
	p.making.Wait()
	if p.birth != nil && p.birth.image != data {
		p.birth.image.close()
	}
	data.close()
}
