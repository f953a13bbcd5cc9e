package sandbox

import (
	"context"
	"sync"
)

// maxWarm bounds the instances of a module that are made ahead.
const maxWarm = 64

// A pool keeps instances that were made ahead, so that a call does not wait for
// a program's own beginning. Each is used once: nothing of a call is left for
// another.
type pool struct {
	mu     sync.Mutex // guards what follows
	free   []*Instance
	want   int
	limits Limits
	closed bool
	making sync.WaitGroup
	busy   bool // somebody is making instances
}

// Warm keeps up to n instances ready from now on, and makes the first at once.
// They serve calls with these limits that have no arguments, environment,
// directories or fixed world. Programs that begin at _start read those before
// anything else, so only reactors gain much.
func (m *Module) Warm(ctx context.Context, n int, limits Limits) error {
	limits, bad := limits.filled()
	if bad != nil {
		return bad
	}
	m.pool.mu.Lock()
	m.pool.want, m.pool.limits = min(n, maxWarm), limits
	m.pool.mu.Unlock()
	return m.refillPool(ctx)
}

// refillPool makes what is missing, one after another.
func (m *Module) refillPool(ctx context.Context) error {
	p := &m.pool
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
		i, bad := m.instantiate(ctx, Call{}, limits)
		p.mu.Lock()
		if bad != nil || p.closed || limits != p.limits {
			if bad != nil || p.closed {
				p.busy = false
			}
			p.mu.Unlock()
			if i != nil {
				i.Close()
			}
			if bad != nil {
				return bad
			}
			continue
		}
		p.free = append(p.free, i)
		p.mu.Unlock()
	}
}

// take returns an instance for a call, or nil; another is made meanwhile.
func (p *pool) take(c Call, limits Limits) *Instance {
	if len(c.Args) > 0 || len(c.Env) > 0 || len(c.Dirs) > 0 || c.Fixed != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.free) == 0 || p.limits.Memory != limits.Memory {
		return nil
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	if !p.busy {
		go func() { _ = i.module.refillPool(context.Background()) }() // what can not be made ahead is made when it is needed
	}
	return i
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for _, i := range free {
		i.Close()
	}
	p.making.Wait()
}
