package sandbox

import (
	"bytes"
	"context"
	"time"
)

const (
	// MaxHandled bounds what a handler is given: as much as an answer of the host.
	MaxHandled = maxAnswer
	// maxRest is the memory up to which an instance is taken to rest: looking through a larger one
	// would take long.
	maxRest = 64 << 20
	// chunk is how fine a memory is compared with its image, in bytes.
	chunk = 64
)

// Handles reports whether a module is of the kind that is called for each message: it exports a
// function of this name, and no _start. The error says that the function has another type than
// (i32) → ().
func (m *Module) Handles(name string) (bool, error) {
	info := m.one.info
	if info.export("_start", kindFunc) || !info.export(name, kindFunc) {
		return false, nil
	}
	for _, e := range info.exports {
		if e.name == name && e.kind == kindFunc {
			t := info.types[info.typeOf(e.index)]
			if !bytes.Equal(t.params, []byte{valI32}) || len(t.results) > 0 {
				return false, refuse(InvalidModule, "function %q must take one i32, the length of the message, and return nothing",
					name)
			}
		}
	}
	return true, nil
}

// Used is the fuel that was used since the beginning, or since the last call began.
func (i *Instance) Used() int64 { return i.spent() }

// Size is the linear memory of the instance in bytes.
func (i *Instance) Size() int64 { return int64(i.mem.size) }

// Handle calls an exported function with the length of data, which waits for the program to take it
// as an answer of the host does. Fuel and time are of this call. ended: the program has ended, in it
// or by its limits, as the result says; the instance is only good to be closed.
func (i *Instance) Handle(ctx context.Context, name string, data []byte, fuel int64, most time.Duration) (r Result,
	ended bool) {
	began := time.Now()
	i.limits.Fuel, i.limits.Time = min(max(fuel, 1), MaxFuel), min(most, MaxTime)
	i.refuel()
	i.used = int64(len(data)) >> perRange
	i.answer = data
	_, err := i.call(ctx, name, uint64(len(data)))
	i.answer = nil
	r = i.result(err)
	if i.conf.Meter != nil {
		i.conf.Meter.fuel.Store(0) // the result has it
	}
	r.DurationMs = time.Since(began).Milliseconds()
	return r, err != nil
}

// A Rested is an instance of which only that is kept in which it differs from a new one: what it
// wrote to its memory, its globals and its clock.
type Rested struct {
	birth birth
	zero  time.Time
	trace byte
}

// Bytes is what is kept of the memory.
func (s *Rested) Bytes() (n int) {
	for _, p := range s.birth.image.parts {
		n += len(p.b)
	}
	return n
}

// Rest takes an instance away that is in no call, and returns what is kept of it. Of a program that
// has opened files, or changed tables, that is not enough: ok is false, and it stays.
func (i *Instance) Rest() (s *Rested, ok bool) {
	one := i.module.one
	if one.info.moving || one.data == nil || i.trace > traceCall || i.mem.refused || i.mem.size > maxRest ||
		!i.busy.TryLock() {
		return nil, false
	}
	defer i.busy.Unlock()
	parts, ok := one.data.differs(i.mem.buf[:i.mem.size])
	if !ok {
		return nil, false
	}
	s = &Rested{birth: birth{image: &image{size: i.mem.size, parts: parts, under: one.data}}, zero: i.fixed.zero,
		trace: i.trace}
	for _, g := range i.state {
		s.birth.globals = append(s.birth.globals, g.Get())
	}
	i.Close()
	return s, true
}

// Wake makes an instance that goes on where one was taken to rest. The module must be the same, and
// the call as it was.
func (m *Module) Wake(ctx context.Context, c Call, s *Rested) (*Instance, error) {
	limits, bad := c.Limits.filled()
	if bad != nil {
		return nil, bad
	}
	if s.birth.image.size > uint64(limits.Memory) {
		return nil, refuse(MemoryLimitExceeded, "its memory has %d bytes, %d are allowed", s.birth.image.size, limits.Memory)
	}
	i, bad := m.instantiate(ctx, c, limits, &s.birth)
	if bad != nil {
		return nil, bad
	}
	i.birth, i.trace, i.fixed.zero = nil, s.trace, s.zero
	return i, nil
}

// differs returns in what a memory differs from the image; ok is false where that is not to be had.
func (m *image) differs(buf []byte) (parts []segment, ok bool) {
	base, done, ok := m.base()
	if !ok {
		return nil, false
	}
	defer done()
	const page = 4096
	var zero [page]byte
	under := func(at, n int) []byte { // of the image, as long as it lies within it or beside it
		if at+n <= len(base) {
			return base[at : at+n]
		}
		if at >= len(base) {
			return zero[:n]
		}
		b := make([]byte, n)
		copy(b, base[at:])
		return b
	}
	total := 0
	for at := 0; at < len(buf); at += page {
		own, was := buf[at:at+page], under(at, page)
		if bytes.Equal(own, was) {
			continue
		}
		for n := 0; n < page; n += chunk {
			if bytes.Equal(own[n:n+chunk], was[n:n+chunk]) {
				continue
			}
			total += chunk
			if last := len(parts) - 1; last >= 0 && parts[last].at+uint64(len(parts[last].b)) == uint64(at+n) {
				parts[last].b = buf[parts[last].at : at+n+chunk]
				continue
			}
			parts = append(parts, segment{uint64(at + n), own[n : n+chunk]})
		}
	}
	all := make([]byte, 0, total) // the memory goes away
	out := make([]segment, len(parts))
	for n, p := range parts {
		from := len(all)
		all = append(all, p.b...)
		out[n] = segment{p.at, all[from:len(all):len(all)]}
	}
	return out, true
}

// maxBase bounds what of an image that is not shared is laid out to be compared with.
const maxBase = 16 << 20

// base returns the image as bytes from 0 on, until done; beyond them it is zero.
func (m *image) base() (b []byte, done func(), ok bool) {
	if m.share.shares() {
		return m.share.look()
	}
	var end uint64
	for _, p := range m.parts {
		end = max(end, p.at+uint64(len(p.b)))
	}
	if end > maxBase {
		return nil, nil, false
	}
	m.flatten.Do(func() {
		m.flat = make([]byte, end)
		for _, p := range m.parts {
			copy(m.flat[p.at:], p.b)
		}
	})
	return m.flat, func() {}, true
}
