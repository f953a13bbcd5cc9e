package courier

import "sync"

// A Bell tells all who wait that there is news. The zero value is ready.
type Bell struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

// Next returns a channel that is closed at the next ring.
func (b *Bell) Next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Ring wakes who waits.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
