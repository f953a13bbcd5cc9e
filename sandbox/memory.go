package sandbox

import (
	"github.com/tetratelabs/wazero/experimental"
)

// A memory is the linear memory of one instance, up to a limit of its own. It is
// used by the goroutine of the instance alone.
//
// Its whole limit is reserved at once where the system can reserve without
// using, so growing moves nothing and only pages that were touched count.
type memory struct {
	limit   uint64
	image   *image // what it holds at the beginning; nil: zeroes
	buf     []byte
	size    uint64
	refused bool // somebody asked for more than the limit
}

// Allocate is called once, when the instance is made. The caller saw to it that
// the module's minimum is within the limit.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate grows the memory, or returns nil, which the guest sees as -1.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if m.buf == nil {
		if m.buf = reserve(m.limit); m.buf == nil || m.image != nil && !m.image.put(m.buf) {
			m.refused = true
			return nil
		}
		if m.image != nil {
			size = max(size, m.image.size)
		}
	}
	m.size = max(m.size, size)
	return m.buf[:size:len(m.buf)]
}

// Free gives the memory back to the system.
func (m *memory) Free() {
	if m.buf != nil {
		giveBack(m.buf)
		m.buf = nil
	}
}
