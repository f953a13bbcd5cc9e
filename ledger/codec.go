package ledger

import (
	"encoding/binary"
	"errors"
)

// The codecs of batches, receipts, entries and snapshots are written by hand:
// they run for every command on every node, and their bytes are hashed.
//
// Common forms: integers of fixed size are big endian; "uvarint" is Go's
// unsigned varint in its shortest form; "bytes" are a uvarint length and that
// many bytes. A decoder refuses what its encoder does not write, so that one
// value has one encoding.

var (
	errMalformed = errors.New("malformed")
	// errNewer marks bytes that a newer version wrote.
	errNewer = errors.New("written by a newer version")
)

func appendBytes[T ~[]byte | ~string](b []byte, v T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// A parser reads the common forms. After the first mistake it is bad and
// returns zero values; the caller asks once at the end.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) take(n uint64) []byte {
	if n > uint64(len(p.b)) {
		p.bad, p.b = true, nil
		return nil
	}
	out := p.b[:n:n]
	p.b = p.b[n:]
	return out
}

func (p *parser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *parser) uint32() uint32 {
	if b := p.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (p *parser) uint64() uint64 {
	if b := p.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 || (n > 1 && p.b[n-1] == 0) { // the second: not the shortest form
		p.bad, p.b = true, nil
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) bytes() []byte    { return p.take(p.uvarint()) }
func (p *parser) string() string   { return string(p.bytes()) }
func (p *parser) hash() (h Hash)   { copy(h[:], p.take(32)); return h }
func (p *parser) done() bool       { return !p.bad && len(p.b) == 0 }
func (p *parser) id() (h [16]byte) { copy(h[:], p.take(16)); return h }

// Core deterministic CBOR, as far as command headers need it: unsigned
// integers, byte strings, text strings and map heads, always in the shortest form.

const (
	cborUint  = 0 << 5
	cborBytes = 2 << 5
	cborText  = 3 << 5
	cborMap   = 5 << 5
)

func appendCBORHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

func appendCBORText(b []byte, key byte, s string) []byte {
	b = append(b, cborUint|key)
	return append(appendCBORHead(b, cborText, uint64(len(s))), s...)
}

func appendCBORBytes(b []byte, key byte, v []byte) []byte {
	b = append(b, cborUint|key)
	return append(appendCBORHead(b, cborBytes, uint64(len(v))), v...)
}

// cborHead reads a head of the given major type.
func (p *parser) cborHead(major byte) uint64 {
	first := p.byte()
	if p.bad || first&0xe0 != major {
		p.bad, p.b = true, nil
		return 0
	}
	info := first & 0x1f
	if info < 24 {
		return uint64(info)
	}
	var n, least uint64
	switch info {
	case 24:
		n, least = uint64(p.byte()), 24
	case 25:
		if b := p.take(2); b != nil {
			n = uint64(binary.BigEndian.Uint16(b))
		}
		least = 1 << 8
	case 26:
		n, least = uint64(p.uint32()), 1<<16
	case 27:
		n, least = p.uint64(), 1<<32
	default:
		p.bad = true
	}
	if n < least {
		p.bad, p.b = true, nil
		return 0
	}
	return n
}
