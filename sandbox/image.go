package sandbox

import (
	"bytes"
	"slices"
	"sync"
)

// A segment is bytes that stand somewhere in a memory.
type segment struct {
	at uint64
	b  []byte
}

// An image is what the memory of an instance holds when it begins: the module's
// data, or what a program left there that has already begun. Memories share its
// pages until they write to them, where the system can do that.
type image struct {
	size  uint64 // bytes of the memory, at least
	parts []segment
	share sharing // of the parts, when they are large
	under *image  // what the parts lie on; nil: zeroes

	flatten sync.Once // fills in flat
	flat    []byte    // see base
}

// shareFrom is the size in bytes from which an image is shared: below, copying
// costs less than another mapping.
const shareFrom = 64 << 10

// newImage makes an image of parts, which must be within size.
func newImage(size uint64, parts []segment) *image {
	m := &image{size: size, parts: slices.Clone(parts)}
	var all, end uint64
	for _, p := range parts {
		all += uint64(len(p.b))
		end = max(end, p.at+uint64(len(p.b)))
	}
	if all >= shareFrom && m.share.make(end, parts) {
		m.parts = nil // they are in the file
	}
	for i := range m.parts {
		m.parts[i].b = bytes.Clone(m.parts[i].b) // the module, or the memory, is somebody else's
	}
	return m
}

// imageOf is an image of what a memory holds now.
func imageOf(buf []byte) *image {
	const page = 4096
	var zero [page]byte
	var parts []segment
	for at := 0; at < len(buf); at += page {
		b := buf[at:min(at+page, len(buf))]
		if bytes.Equal(b, zero[:len(b)]) {
			continue
		}
		if n := len(parts) - 1; n >= 0 && parts[n].at+uint64(len(parts[n].b)) == uint64(at) {
			parts[n].b = buf[parts[n].at : uint64(at)+uint64(len(b))]
			continue
		}
		parts = append(parts, segment{uint64(at), b})
	}
	return newImage(uint64(len(buf)), parts)
}

// put lays the image into a memory that is all zero, and tells whether it could.
func (m *image) put(buf []byte) bool {
	if !m.share.lay(buf) || m.under != nil && !m.under.put(buf) {
		return false
	}
	for _, p := range m.parts {
		copy(buf[p.at:], p.b)
	}
	return true
}

// again makes a memory what put made it, and tells whether it could. size is as
// much of it as was in use.
func (m *image) again(buf []byte, size uint64) bool {
	if !forget(buf[:size]) {
		return false
	}
	for _, p := range m.parts {
		copy(buf[p.at:], p.b)
	}
	return true
}

// close gives the image back; memories that were laid out keep what they have.
func (m *image) close() {
	if m != nil {
		m.share.close()
	}
}
