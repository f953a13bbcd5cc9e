package sandbox

import (
	"sync"
	"sync/atomic"
)

// A Meter shows what a call has used while it executes, and suspends it. It is given in
// Call.Meter, for one call. The zero value is ready; a nil Meter shows nothing.
type Meter struct {
	fuel, memory atomic.Int64

	mu     sync.Mutex
	resume chan struct{} // closed to resume; nil: not suspended
}

// Fuel and Memory are the units and the bytes of linear memory, as of the last slice.
func (m *Meter) Fuel() int64   { return m.fuel.Load() }
func (m *Meter) Memory() int64 { return m.memory.Load() }

// Suspend stops the guest at the end of its slice. Its time limit goes on.
func (m *Meter) Suspend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resume == nil {
		m.resume = make(chan struct{})
	}
}

// Resume lets a suspended guest go on.
func (m *Meter) Resume() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resume != nil {
		close(m.resume)
		m.resume = nil
	}
}

func (m *Meter) suspended() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resume
}

// note stores what i has used, and waits while the call is suspended.
func (m *Meter) note(i *Instance) {
	if m == nil {
		return
	}
	m.fuel.Store(i.used)
	m.memory.Store(int64(i.mem.size))
	for wait := m.suspended(); wait != nil; wait = m.suspended() {
		i.leave()
		select {
		case <-wait:
		case <-i.ctx.Done():
			panic(i.over())
		}
		i.join()
	}
}
