package sandbox

import (
	"fmt"
	"unicode/utf8"
)

// A malformed error says where bytes are not what they should be.
type malformed struct {
	at   int
	what string
}

func (m malformed) Error() string { return fmt.Sprintf("at byte %d: %s", m.at, m.what) }

// A reader reads bytes of a module; what is wrong panics with malformed, which
// parse and meter turn into an error. base is where b stands in the module.
type reader struct {
	b       []byte
	p, base int
}

func (r *reader) fail(format string, args ...any) {
	panic(malformed{r.base + r.p, fmt.Sprintf(format, args...)})
}

func (r *reader) more() bool { return r.p < len(r.b) }

func (r *reader) u8() byte {
	if r.p >= len(r.b) {
		r.fail("unexpected end")
	}
	c := r.b[r.p]
	r.p++
	return c
}

// u32 reads an unsigned LEB128 of at most five bytes.
func (r *reader) u32() uint32 {
	var v uint32
	for s := 0; ; s += 7 {
		c := r.u8()
		if s == 28 && c > 0x0f {
			r.fail("number is too large")
		}
		v |= uint32(c&0x7f) << s
		if c < 0x80 {
			return v
		}
	}
}

// count reads a number of things of at least one byte each, of which there may
// be limit.
func (r *reader) count(limit int, what string) int {
	n := int(r.u32())
	if n > limit {
		r.fail("%d %s are more than the %d that are allowed", n, what, limit)
	}
	if n > len(r.b)-r.p {
		r.fail("%d %s do not fit what is left", n, what)
	}
	return n
}

// leb passes over a LEB128 of at most max bytes.
func (r *reader) leb(max int) {
	for range max {
		if r.u8() < 0x80 {
			return
		}
	}
	r.fail("number is too long")
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.b)-r.p {
		r.fail("unexpected end")
	}
	x := r.b[r.p : r.p+n : r.p+n]
	r.p += n
	return x
}

func (r *reader) name() string {
	n := r.u32()
	if n > maxName {
		r.fail("name of %d bytes", n)
	}
	b := r.bytes(int(n))
	if !utf8.Valid(b) {
		r.fail("name is not UTF-8")
	}
	return string(b)
}

func (r *reader) valType() byte {
	switch t := r.u8(); t {
	case valI32, valI64, valF32, valF64, valV128, valFunc, valExtern:
		return t
	default:
		r.p--
		r.fail("type %#x is not supported", t)
		return 0
	}
}

func (r *reader) refType() byte {
	t := r.u8()
	if t != valFunc && t != valExtern {
		r.fail("%#x is not a type of references", t)
	}
	return t
}

// limits reads {flag, min, max}.
func (r *reader) limits() (lo, hi uint32, bounded bool) {
	flag := r.u8()
	if flag > 1 {
		r.fail("shared and 64-bit memories are not supported")
	}
	lo = r.u32()
	if flag == 1 {
		if hi = r.u32(); hi < lo {
			r.fail("maximum is below the minimum")
		}
	}
	return lo, hi, flag == 1
}

func (r *reader) blockType(m *parsed) {
	switch c := r.u8(); c {
	case 0x40, valI32, valI64, valF32, valF64, valV128, valFunc, valExtern:
	default:
		r.p--
		if t := r.u32(); int(t) >= len(m.types) { // an s33; a type's number is positive
			r.fail("no type %d", t)
		}
	}
}

// immediates passes over what follows an instruction that is none of control,
// and tells whether it works on a range.
func (r *reader) immediates(op byte) (ranged bool) {
	switch {
	case op == 0x1b, op >= 0x45 && op <= 0xc4, op == 0xd1:
	case op == 0x1c:
		if r.u32() != 1 {
			r.fail("select of more than one value")
		}
		r.valType()
	case op >= 0x20 && op <= 0x26, op == 0x41:
		r.leb(5)
	case op == 0x3f, op == 0x40:
		if r.u8() != 0 {
			r.fail("more than one memory is not supported")
		}
	case op >= 0x28 && op <= 0x3e:
		r.memArg()
	case op == 0x42:
		r.leb(10)
	case op == 0x43:
		r.bytes(4)
	case op == 0x44:
		r.bytes(8)
	case op == 0xd0:
		r.refType()
	case op == 0xfc:
		return r.prefixed()
	case op == 0xfd:
		r.vector()
	default:
		r.p--
		r.fail("instruction %#x is not supported", op)
	}
	return false
}

func (r *reader) memArg() {
	if r.u32() > 4 {
		r.fail("malformed alignment")
	}
	r.u32()
}

// short reads the number of an instruction behind a prefix, which is one byte in
// what compilers write when it is below 128.
func (r *reader) short() uint32 {
	at := r.p
	n := r.u32()
	if n < 0x80 && r.p != at+1 {
		r.fail("instruction is not written the short way")
	}
	return n
}

func (r *reader) prefixed() (ranged bool) {
	switch sub := r.short(); sub {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating truncation
	case 8, 10, 12, 14: // memory.init, memory.copy, table.init, table.copy
		r.leb(5)
		r.leb(5)
		return true
	case 9, 13, 16: // data.drop, elem.drop, table.size
		r.leb(5)
	case 11, 15, 17: // memory.fill, table.grow, table.fill
		r.leb(5)
		return true
	default:
		r.fail("instruction 0xfc %d is not supported", sub)
	}
	return false
}

func (r *reader) vector() {
	switch sub := r.short(); {
	case sub <= 11, sub == 92, sub == 93:
		r.memArg()
	case sub == 12, sub == 13:
		r.bytes(16)
	case sub >= 21 && sub <= 34:
		r.u8()
	case sub >= 84 && sub <= 91:
		r.memArg()
		r.u8()
	case sub > 255:
		r.fail("instruction 0xfd %d is not supported", sub)
	}
}
