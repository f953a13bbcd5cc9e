package sandbox

import (
	"bytes"
	"slices"
)

// Sections by number, and kinds of what is imported and exported.
const (
	secCustom, secType, secImport, secFunction, secTable, secMemory, secGlobal      = 0, 1, 2, 3, 4, 5, 6
	secExport, secStart, secElement, secCode, secData, secDataCount            byte = 7, 8, 9, 10, 11, 12

	kindFunc, kindTable, kindMemory, kindGlobal byte = 0, 1, 2, 3

	valI32, valI64, valF32, valF64, valV128, valFunc, valExtern byte = 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f
)

// order is the order in which sections come.
var order = []byte{secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secStart, secElement,
	secDataCount, secCode, secData}

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func appendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte {
	return append(appendU32(b, uint32(len(s))), s...)
}

func appendSection(b []byte, id byte, body []byte) []byte {
	return append(appendU32(append(b, id), uint32(len(body))), body...)
}

// A section of a module; body stands at byte base of it.
type section struct {
	id   byte
	base int
	body []byte
}

type funcType struct{ params, results []byte }

type imported struct {
	module, name string
	typ          uint32
}

// An export of a module; index counts functions, tables, memories or globals.
type export struct {
	name  string
	kind  byte
	index uint32
}

type table struct {
	ref      byte
	min, max uint32
}

// A parsed module: what the checks and the metering need to know of it.
type parsed struct {
	sections []section
	types    []funcType
	imports  []imported // functions; nothing else may be imported
	funcs    []uint32   // types of the module's own functions
	tables   []table
	memory   bool
	minPages uint32
	globals  int
	mutable  []uint32 // globals that are numbers and change
	// something changes that a snapshot does not have: other globals, tables, segments, or there is a start function
	moving   bool
	data     []segment // where active data stands in the memory
	segments bool      // code names data segments
	imaged   bool      // data is all of it, and the metered module has none
	exports  []export
	bodies   [][]byte // of own functions, with their locals
	bodyAt   []int
	taken    map[uint32]bool // functions whose address is taken outside of code
}

func (m *parsed) section(id byte) *section {
	for i := range m.sections {
		if m.sections[i].id == id {
			return &m.sections[i]
		}
	}
	return nil
}

// typeOf returns the type of a function, imported or own.
func (m *parsed) typeOf(f uint32) uint32 {
	if int(f) < len(m.imports) {
		return m.imports[f].typ
	}
	return m.funcs[int(f)-len(m.imports)]
}

func (m *parsed) functions() int { return len(m.imports) + len(m.funcs) }

func (m *parsed) export(name string, kind byte) bool {
	return slices.ContainsFunc(m.exports, func(e export) bool { return e.name == name && e.kind == kind })
}

var header = []byte("\x00asm\x01\x00\x00\x00")

// parse reads a module, all but the code of its functions, and holds it against
// the limits. What it accepts may still be invalid, which the compiler finds.
func parse(wasm []byte) (m *parsed, err error) {
	defer func() {
		if x := recover(); x != nil {
			bad, ok := x.(malformed)
			if !ok {
				panic(x)
			}
			m, err = nil, bad
		}
	}()
	m = &parsed{taken: map[uint32]bool{}}
	if !bytes.HasPrefix(wasm, header) {
		return nil, malformed{0, "not a WebAssembly module of version 1"}
	}
	rank := -1
	for r := (&reader{b: wasm, p: len(header)}); r.more(); {
		id := r.u8()
		n := r.u32()
		base := r.p
		body := r.bytes(int(n))
		if id == secCustom {
			(&reader{b: body, base: base}).name()
			continue // names and debug information would be wrong after metering
		}
		at := slices.Index(order, id)
		switch {
		case at < 0:
			r.fail("section %d is not supported", id)
		case at <= rank:
			r.fail("section %d is out of order", id)
		}
		rank = at
		m.sections = append(m.sections, section{id, base, body})
	}
	for _, s := range m.sections {
		r := &reader{b: s.body, base: s.base}
		m.read(s.id, r)
		if r.more() {
			r.fail("section %d has bytes left over", s.id)
		}
	}
	if len(m.bodies) != len(m.funcs) {
		return nil, malformed{len(wasm), "functions and their code do not match"}
	}
	return m, nil
}

func (m *parsed) read(id byte, r *reader) {
	switch id {
	case secType:
		for range r.count(maxTypes, "types") {
			if r.u8() != 0x60 {
				r.fail("not the type of a function")
			}
			var t funcType
			for range r.count(maxParams, "parameters") {
				t.params = append(t.params, r.valType())
			}
			for range r.count(maxParams, "results") {
				t.results = append(t.results, r.valType())
			}
			m.types = append(m.types, t)
		}
	case secImport:
		for range r.count(maxImports, "imports") {
			i := imported{module: r.name(), name: r.name()}
			if kind := r.u8(); kind != kindFunc {
				r.fail("import %s.%s is not a function", i.module, i.name)
			}
			i.typ = m.typeIndex(r)
			m.imports = append(m.imports, i)
		}
	case secFunction:
		for range r.count(maxFunctions, "functions") {
			m.funcs = append(m.funcs, m.typeIndex(r))
		}
	case secTable:
		m.readTables(r)
	case secMemory:
		for range r.count(1, "memories") {
			lo, hi, bounded := r.limits()
			if lo > MaxMemory>>16 || bounded && hi > 1<<16 {
				r.fail("a memory of %d pages is larger than is allowed", max(lo, hi))
			}
			m.memory, m.minPages = true, lo
		}
	case secGlobal:
		m.globals = r.count(maxGlobals, "globals")
		for g := range m.globals {
			typ, changes := r.valType(), r.u8()
			switch {
			case changes > 1:
				r.fail("malformed global")
			case changes == 1 && typ >= valF64: // the four kinds of numbers
				m.mutable = append(m.mutable, uint32(g))
			case changes == 1:
				m.moving = true
			}
			m.constant(r)
		}
	case secExport:
		for range r.count(maxExports, "exports") {
			e := export{name: r.name(), kind: r.u8(), index: r.u32()}
			if e.kind > kindGlobal {
				r.fail("export %q is not supported", e.name)
			}
			if e.kind == kindFunc {
				m.funcIndex(e.index, r)
			}
			m.exports = append(m.exports, e)
		}
	case secStart:
		m.funcIndex(r.u32(), r)
	case secElement:
		m.elements(r, unmoved)
	case secDataCount:
		if r.u32() > maxSegments {
			r.fail("too many data segments")
		}
	case secData:
		m.readData(r)
	case secCode:
		for range r.count(maxFunctions, "function bodies") {
			n := r.u32()
			if n > maxBody {
				r.fail("a function of %d bytes is larger than the %d that are allowed", n, maxBody)
			}
			m.bodyAt = append(m.bodyAt, r.base+r.p)
			m.bodies = append(m.bodies, r.bytes(int(n)))
		}
	}
}

func (m *parsed) readTables(r *reader) {
	var all uint64
	for range r.count(maxTables, "tables") {
		t := table{ref: r.refType(), max: maxElements}
		lo, hi, bounded := r.limits()
		t.min = lo
		if bounded {
			t.max = min(hi, maxElements)
		}
		if all += uint64(lo); all > maxElements {
			r.fail("tables of %d elements are larger than the %d that are allowed", all, maxElements)
		}
		m.tables = append(m.tables, t)
	}
}

func (m *parsed) readData(r *reader) {
	m.imaged = m.memory
	for range r.count(maxSegments, "data segments") {
		active, at, known := true, uint32(0), false
		switch flag := r.u32(); flag {
		case 0:
			at, known = m.offset(r)
		case 1:
			active = false
		case 2:
			if r.u32() != 0 {
				r.fail("more than one memory is not supported")
			}
			at, known = m.offset(r)
		default:
			r.fail("malformed data segment")
		}
		b := r.bytes(int(r.u32()))
		switch {
		case !active:
		case !known || uint64(at)+uint64(len(b)) > uint64(m.minPages)<<16:
			m.imaged = false
		case len(b) > 0:
			m.data = append(m.data, segment{uint64(at), b})
		}
	}
}

// offset passes over where a segment stands, and returns it when it is a number.
func (m *parsed) offset(r *reader) (at uint32, known bool) {
	from := r.p
	m.constant(r)
	c := r.b[from:r.p]
	if c[0] != 0x41 {
		return 0, false
	}
	v, end := signed(c, 1)
	return uint32(v), end == len(c)-1
}

// signed returns the signed LEB128 of at most five bytes that stands in b at a
// place, and where it ends. leb has passed over it.
func signed(b []byte, at int) (v int64, end int) {
	for shift := 0; ; shift += 7 {
		c := b[at]
		at++
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v, at
		}
	}
}

func (m *parsed) typeIndex(r *reader) uint32 {
	t := r.u32()
	if int(t) >= len(m.types) {
		r.fail("no type %d", t)
	}
	return t
}

func (m *parsed) funcIndex(f uint32, r *reader) uint32 {
	if int(f) >= m.functions() {
		r.fail("no function %d", f)
	}
	return f
}

// constant passes over a constant expression and notes the functions in it.
func (m *parsed) constant(r *reader) { m.copyConstant(r, nil, unmoved) }

func unmoved(f uint32) uint32 { return f }

// copyConstant appends a constant expression to o, with functions numbered anew.
func (m *parsed) copyConstant(r *reader, o []byte, moved func(uint32) uint32) []byte {
	for {
		from := r.p
		switch op := r.u8(); op {
		case 0x0b:
			return append(o, op)
		case 0x23, 0x41: // global.get, i32.const
			r.leb(5)
		case 0x42:
			r.leb(10)
		case 0x43:
			r.bytes(4)
		case 0x44:
			r.bytes(8)
		case 0xd0:
			r.refType()
		case 0xd2:
			f := m.funcIndex(r.u32(), r)
			m.taken[f] = true
			o = appendU32(append(o, op), moved(f))
			continue
		case 0xfd:
			if r.u32() != 12 {
				r.fail("not a constant expression")
			}
			r.bytes(16)
		default:
			r.p = from
			r.fail("instruction %#x is not allowed in a constant expression", op)
		}
		o = append(o, r.b[from:r.p]...)
	}
}

// elements copies the element section with functions numbered anew, and notes
// them.
func (m *parsed) elements(r *reader, moved func(uint32) uint32) (o []byte) {
	n := r.count(maxSegments, "element segments")
	o = appendU32(o, uint32(n))
	all := 0
	for range n {
		flag := r.u32()
		if flag > 7 {
			r.fail("malformed element segment")
		}
		o = appendU32(o, flag)
		if flag&1 == 0 {
			if flag&2 != 0 {
				o = appendU32(o, r.u32())
			}
			o = m.copyConstant(r, o, moved)
		}
		if flag&3 != 0 {
			if flag&4 != 0 {
				o = append(o, r.refType())
			} else if kind := r.u8(); kind != 0 {
				r.fail("malformed element segment")
			} else {
				o = append(o, kind)
			}
		}
		c := r.count(maxElements, "elements")
		if all += c; all > maxElements {
			r.fail("%d elements are more than the %d that are allowed", all, maxElements)
		}
		o = appendU32(o, uint32(c))
		for range c {
			if flag&4 != 0 {
				o = m.copyConstant(r, o, moved)
				continue
			}
			f := m.funcIndex(r.u32(), r)
			m.taken[f] = true
			o = appendU32(o, moved(f))
		}
	}
	return o
}
