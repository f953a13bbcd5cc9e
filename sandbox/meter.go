package sandbox

import "strconv"

// What metering adds to a module. Guests can not name these: imports of module
// meterModule are refused, and so are exports that begin with it.
const (
	meterModule = "selvage:meter"
	// (why i32) → (); called when the fuel or the stack at hand is used up, and before the host
	meterEnter = "enter"
	meterFuel  = "selvage:meter.fuel" // exported mutable i64: what is left of the slice
	meterStack = "selvage:meter.stack"
	// and a number: the mutable globals of the module, by which its state is read and set
	meterGlobal  = "selvage:meter.global."
	extraImports = 1

	// whyUsedUp is why the host is called when fuel or stack is used up; other
	// values are the number of the import that is called next.
	whyUsedUp = -1
)

// meter rewrites a module that parse accepted so that it counts its fuel and its
// stack. Custom sections are left out.
//
// It adds one import at the end of the imports (so the module's own functions
// move up by one), at the end a function that charges for ranges and one for every
// import, which tells the host before it calls it, then two globals and two
// exports, and it bounds every table. Whatever named an import names the function
// before it afterwards.
func (m *parsed) meter() (out []byte, err error) {
	defer func() {
		if x := recover(); x != nil {
			bad, ok := x.(malformed)
			if !ok {
				panic(x)
			}
			out, err = nil, bad
		}
	}()
	w := &metering{
		m:       m,
		fuel:    uint32(m.globals),
		stack:   uint32(m.globals) + 1,
		enterAt: uint32(len(m.imports)),
		ranged:  uint32(m.functions()) + extraImports,
	}
	w.tracked = m.callers()
	if len(m.mutable) > maxShown || m.section(secStart) != nil || m.section(secData) != nil && !m.imaged {
		m.moving = true
	}
	size := len(header)
	for _, s := range m.sections {
		size += len(s.body) + 8
	}
	out = append(make([]byte, 0, size+size/3), header...)
	for _, id := range order {
		if body := w.section(id); body != nil {
			out = appendSection(out, id, body)
		}
	}
	return out, nil
}

// A metering is one module being rewritten.
type metering struct {
	m               *parsed
	fuel, stack     uint32 // globals
	enterAt, ranged uint32 // functions, as they are numbered afterwards
	tracked         []bool // by function as numbered before: its stack is counted

	points  []point
	first   int // the point of a loop that a function begins with, 0 if it does not
	edits   []edit
	frames  []frame
	regions []region
	turns   []turnBack
	merged  []merged // in the order of the code
	known   []bool   // while code is written: whether the local held the fuel where each open region began
}

func (w *metering) reader(id byte) *reader {
	if s := w.m.section(id); s != nil {
		return &reader{b: s.body, base: s.base}
	}
	return nil
}

// extended is a section of counted things with more of them at its end.
func (w *metering) extended(id byte, n uint32, more []byte) []byte {
	r := w.reader(id)
	if r == nil {
		return append(appendU32(nil, n), more...)
	}
	had := r.u32()
	return append(append(appendU32(nil, had+n), r.b[r.p:]...), more...)
}

func (w *metering) section(id byte) []byte {
	types := uint32(len(w.m.types))
	switch id {
	case secType:
		return w.extended(id, 2, []byte{0x60, 1, valI32, 0, 0x60, 1, valI32, 1, valI32})
	case secImport:
		more := appendName(appendName(nil, meterModule), meterEnter)
		return w.extended(id, 1, appendU32(append(more, kindFunc), types))
	case secFunction:
		more := appendU32(nil, types+1)
		for _, i := range w.m.imports {
			more = appendU32(more, i.typ)
		}
		return w.extended(id, uint32(1+len(w.m.imports)), more)
	case secTable:
		return w.tables()
	case secGlobal:
		return w.globals()
	case secExport:
		return w.exports()
	case secStart:
		if r := w.reader(id); r != nil {
			return appendU32(nil, w.moved(r.u32()))
		}
	case secElement:
		if r := w.reader(id); r != nil {
			return w.m.elements(r, w.moved)
		}
	case secCode:
		return w.code()
	case secData:
		if r := w.reader(id); r != nil && !w.dataless() {
			return w.data(r)
		}
	case secDataCount:
		if s := w.m.section(id); s != nil && !w.dataless() {
			return s.body
		}
	default:
		if s := w.m.section(id); s != nil {
			return s.body
		}
	}
	return nil
}

// dataless tells whether the metered module needs no data at all.
func (w *metering) dataless() bool { return w.m.imaged && !w.m.segments }

// data is the data section. Where an image has it, active segments are empty; they
// stay because they are numbered.
func (w *metering) data(r *reader) []byte {
	if !w.m.imaged {
		return r.b
	}
	n := r.u32()
	o := appendU32(nil, n)
	for range n {
		flag := r.u32()
		if flag == 1 {
			b := r.bytes(int(r.u32()))
			o = append(appendU32(append(o, 1), uint32(len(b))), b...)
			continue
		}
		if flag == 2 {
			r.u32()
		}
		w.m.constant(r)
		r.bytes(int(r.u32()))
		o = append(o, 0, 0x41, 0, 0x0b, 0)
	}
	return o
}

// moved is a function's number afterwards.
func (w *metering) moved(f uint32) uint32 {
	if int(f) < len(w.m.imports) {
		return w.ranged + 1 + f
	}
	return f + extraImports
}

func (w *metering) tables() []byte {
	if w.m.section(secTable) == nil {
		return nil
	}
	o := appendU32(nil, uint32(len(w.m.tables)))
	for _, t := range w.m.tables {
		o = appendU32(appendU32(append(o, t.ref, 1), t.min), t.max)
	}
	return o
}

func (w *metering) globals() []byte {
	o := appendU32(nil, uint32(w.m.globals)+2)
	if r := w.reader(secGlobal); r != nil {
		r.u32()
		for range w.m.globals {
			o = append(o, r.u8(), r.u8())
			o = w.m.copyConstant(r, o, w.moved)
		}
	}
	o = append(o, valI64, 1, 0x42, 0, 0x0b)
	return append(o, valI32, 1, 0x41, 0, 0x0b)
}

func (w *metering) exports() []byte {
	shown := w.m.mutable
	if w.m.moving {
		shown = nil
	}
	o := appendU32(nil, uint32(len(w.m.exports)+2+len(shown)))
	add := func(name string, kind byte, index uint32) { o = appendU32(append(appendName(o, name), kind), index) }
	for _, e := range w.m.exports {
		if e.kind == kindFunc {
			e.index = w.moved(e.index)
		}
		add(e.name, e.kind, e.index)
	}
	add(meterFuel, kindGlobal, w.fuel)
	add(meterStack, kindGlobal, w.stack)
	for n, g := range shown {
		add(meterGlobal+strconv.Itoa(n), kindGlobal, g)
	}
	return o
}

func (w *metering) code() []byte {
	size := 0
	for _, b := range w.m.bodies {
		size += len(b)
	}
	o := appendU32(make([]byte, 0, size+size/3), uint32(len(w.m.bodies)+1+len(w.m.imports)))
	var body []byte
	for i := range w.m.bodies {
		body = w.function(i, body[:0])
		o = append(appendU32(o, uint32(len(body))), body...)
	}
	body = w.rangeCharge(body[:0])
	o = append(appendU32(o, uint32(len(body))), body...)
	for i := range w.m.imports {
		body = w.door(uint32(i), body[:0])
		o = append(appendU32(o, uint32(len(body))), body...)
	}
	return o
}

// counted are the functions of WASI that work through a list, and which of their
// parameters is its length.
var counted = map[string]int{"poll_oneoff": 2, "fd_read": 2, "fd_write": 2, "fd_pread": 2, "fd_pwrite": 2}

// door is the function through which import i is called.
func (w *metering) door(i uint32, o []byte) []byte {
	o = append(o, 0)
	o = appendU32(append(o, 0x23), w.fuel)
	o = appendS64(append(o, 0x42), costHost)
	o = appendU32(append(o, 0x7d, 0x24), w.fuel) // i64.sub; global.set
	if n, ok := counted[w.m.imports[i].name]; ok && n < len(w.m.types[w.m.imports[i].typ].params) &&
		w.m.types[w.m.imports[i].typ].params[n] == valI32 {
		o = appendU32(append(o, 0x23), w.fuel)
		o = append(o, 0x20, byte(n), 0xad, 0x42, costEach, 0x7e) // local.get; i64.extend_i32_u; i64.const; i64.mul
		o = appendU32(append(o, 0x7d, 0x24), w.fuel)
	}
	o = w.callEnter(o, int64(i))
	for p := range w.m.types[w.m.imports[i].typ].params {
		o = appendU32(append(o, 0x20), uint32(p))
	}
	return append(appendU32(append(o, 0x10), i), 0x0b)
}

func (w *metering) callEnter(o []byte, why int64) []byte {
	return appendU32(append(appendS64(append(o, 0x41), why), 0x10), w.enterAt)
}

// rangeCharge is the function that instructions on ranges pass their length
// through: fuel -= length >> perRange.
func (w *metering) rangeCharge(o []byte) []byte {
	o = append(o, 0) // no locals
	o = appendU32(append(o, 0x23), w.fuel)
	o = append(o, 0x20, 0, 0xad, 0x42, perRange, 0x88) // local.get 0; i64.extend_i32_u; i64.const; i64.shr_u
	o = appendU32(append(o, 0x7d, 0x24), w.fuel)       // i64.sub; global.set
	o = appendU32(append(o, 0x23), w.fuel)
	o = append(o, 0x42, 0, 0x53, 0x04, 0x40) // i64.const 0; i64.lt_s; if
	o = w.callEnter(o, whyUsedUp)
	return append(o, 0x0b, 0x20, 0, 0x0b) // end; local.get 0; end
}

// function appends the metered body of the module's own function i.
func (w *metering) function(i int, o []byte) []byte {
	m := w.m
	self := uint32(len(m.imports) + i)
	r := &reader{b: m.bodies[i], base: m.bodyAt[i]}
	params := len(m.types[m.funcs[i]].params)
	declared, locals := r.localTypes(params)
	tracked := w.tracked[self]
	leaf := w.plan(r)
	if leaf {
		w.points[0].check = false
	}

	// The locals that are added come after all others.
	t, d := uint32(locals), uint32(locals)+1
	groups := uint32(1)
	if tracked {
		groups = 2
	}
	head := &reader{b: r.b}
	n := head.u32()
	o = appendU32(o, n+groups)
	o = append(o, r.b[head.p:declared]...)
	o = append(o, 1, valI64)
	if tracked {
		o = append(o, 1, valI32)
		o = appendU32(append(o, 0x23), w.stack)
		o = appendS64(append(o, 0x41), int64(frameBytes+8*locals))
		o = appendU32(append(o, 0x6a, 0x21), d)
		w.points[0].cost += 1 + int64(frameBytes+8*locals)>>perStack
	}
	for n := range w.points {
		if p := &w.points[n]; p.begin {
			w.points[0].cost += p.cost
			p.cost = 0
		}
	}
	if begin, turn := &w.points[0], &w.points[w.first]; w.first > 0 && begin.cost <= turn.cost>>perTurn {
		turn.cost, begin.cost = turn.cost+begin.cost, 0
	}
	from, known := declared, false
	w.known = w.known[:0]
	for _, e := range w.edits {
		o = append(o, r.b[from:e.at]...)
		from = e.at + e.skip
		switch e.kind {
		case editPoint:
			o, known = w.charge(o, w.points[e.val], t, known)
		case editTurn:
			o, known = w.charge(o, w.turns[e.val].point, t, known)
		case editOpen:
			w.known = append(w.known, known)
			switch reg := w.regions[e.val]; {
			case reg.loop && reg.calls:
				known = false
			case reg.loop && !known:
				o = w.load(o, t)
				known = true
			}
		case editElse:
			known = w.known[len(w.known)-1]
		case editClose:
			top := len(w.known) - 1
			reg := w.regions[e.val]
			known = !reg.calls && (reg.loop || w.known[top])
			w.known = w.known[:top]
		case editEnter:
			if tracked {
				o = w.enter(o, d)
			}
			known = false
		case editDeep:
			if tracked {
				o = w.enter(o, d)
			}
			o = appendU32(append(o, 0x10), w.moved(e.val))
			known = false
		case editCall:
			o = appendU32(append(o, 0x10), w.moved(e.val))
			known = false
		case editBranch:
			o = appendU32(append(o, 0x0c), e.val)
		case editRef:
			o = appendU32(append(o, 0xd2), w.moved(e.val))
		case editRanged:
			o = appendU32(append(o, 0x10), w.ranged)
			known = false
		}
	}
	return append(o, r.b[from:]...)
}

// enter tells whoever is called how deep the caller stands.
func (w *metering) enter(o []byte, d uint32) []byte {
	o = appendU32(append(o, 0x20), d)
	return appendU32(append(o, 0x24), w.stack)
}

// load puts what is left of the fuel into local t.
func (w *metering) load(o []byte, t uint32) []byte {
	o = appendU32(append(o, 0x23), w.fuel)
	return appendU32(append(o, 0x21), t)
}

// charge subtracts a point's cost. known says whether local t holds the fuel; it
// does afterwards.
func (w *metering) charge(o []byte, p point, t uint32, known bool) ([]byte, bool) {
	if p.cost == 0 && !p.check {
		return o, known
	}
	if known {
		o = appendU32(append(o, 0x20), t) // local.get
	} else {
		o = appendU32(append(o, 0x23), w.fuel) // global.get
	}
	o = appendS64(append(o, 0x42), max(p.cost, 1)) // i64.const
	o = append(o, 0x7d)                            // i64.sub
	o = appendU32(append(o, 0x22), t)              // local.tee
	o = appendU32(append(o, 0x24), w.fuel)         // global.set
	if !p.check {
		return o, true
	}
	// The call stands in the other arm: where arms join, the compiler goes on from the
	// registers as the first one leaves them, and this one leaves them all in use.
	o = appendU32(append(o, 0x20), t)                               // local.get
	o = append(o, 0x42, 0, 0x59, 0x04, 0x40, 0x05)                  // i64.const 0; i64.ge_s; if; else
	return append(w.load(w.callEnter(o, whyUsedUp), t), 0x0b), true // end
}

// localTypes passes over a function's declared locals and returns where its code
// begins and how many locals it has with its parameters.
func (r *reader) localTypes(params int) (at, locals int) {
	locals = params
	for range r.count(maxLocals, "groups of locals") {
		n := int(r.u32())
		if locals += n; locals > maxLocals {
			r.fail("%d locals are more than the %d that are allowed", locals, maxLocals)
		}
		r.valType()
	}
	return r.p, locals
}
