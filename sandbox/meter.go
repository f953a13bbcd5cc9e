package sandbox

import (
	"slices"
	"strconv"
)

// What metering adds to a module. Guests can not name these: imports of module
// meterModule are refused, and so are exports that begin with it.
const (
	meterModule  = "selvage:meter"
	meterEnter   = "enter"              // (why i32) → (); called when the fuel or the stack at hand is used up, and before the host
	meterFuel    = "selvage:meter.fuel" // exported mutable i64: what is left of the slice
	meterStack   = "selvage:meter.stack"
	meterGlobal  = "selvage:meter.global." // and a number: the mutable globals of the module, by which its state is read and set
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
	if n, ok := counted[w.m.imports[i].name]; ok && n < len(w.m.types[w.m.imports[i].typ].params) && w.m.types[w.m.imports[i].typ].params[n] == valI32 {
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

// A point is where fuel is charged.
type point struct {
	cost  int64
	ahead int64 // of cost, what may not be reached
	check bool
	begin bool // it is of a loop that the function begins with, and is charged once, with the function's
}

// An edit changes a function's code at a place: from the byte at, skip bytes are
// replaced.
type edit struct {
	at, skip int
	kind     byte
	val      uint32
}

const (
	editPoint  byte = iota // charge for point val
	editBranch             // br val
	editTurn               // charge for turn val
	editCall               // call of val, which is not tracked
	editDeep               // call of val, which is tracked
	editEnter              // set the stack's depth before an indirect call
	editRef                // ref.func val
	editRanged             // charge for the length on the stack
	editOpen               // region val begins
	editElse               // its other arm
	editClose              // its end
)

// begins tells whether an edit stands at the beginning of a run, before anything
// that belongs to it.
func (e edit) begins() bool { return e.kind == editPoint || e.kind == editElse || e.kind == editClose }

// A region is a block, a loop or an if. Where nobody is called, what is left of
// the fuel is in a local as well as in the global, and needs no loading.
type region struct{ loop, calls bool }

// A frame is a block, loop, if or function that is open.
type frame struct {
	op     byte
	region int
	cur    int         // the point that is charged when it is entered
	sure   bool        // what follows it is reached whenever cur is charged, unless something in it leaves past its end:
	out    int         // the outermost open frame that a branch in it leads to
	dead   bool        // it can not be reached
	point  int         // of a loop: that is charged with each turn
	backs  int         // branches that lead to it
	turns  *dispatcher // that the loop is
	block  *dispatcher // whose block it is
	turn0  int         // turns back that come before it
	run0   int         // merged runs that do
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

// plan walks a function's code and notes what to charge and to change where. It
// tells whether the function is short and calls nobody, so that whoever calls it
// may look at the fuel.
func (w *metering) plan(r *reader) (leaf bool) {
	w.points, w.edits, w.frames, w.regions, w.first = w.points[:0], w.edits[:0], w.frames[:0], w.regions[:0], 0
	w.turns, w.merged = w.turns[:0], w.merged[:0]
	var (
		seg     int64 // cost of the run that is being read
		segAt   = r.p // where it begins
		cur     int   // the point that was charged last on the way here
		sure    = true
		dead    bool
		targets int
		total   int64
		calls   bool
		looped  bool
		before  [2]int // where the two instructions before begin; 0: there is none
	)
	call := func() {
		calls = true
		w.regions[w.frames[len(w.frames)-1].region].calls = true
	}
	place := func(at int, check bool) {
		w.points = append(w.points, point{check: check})
		w.edits = append(w.edits, edit{at: at, kind: editPoint, val: uint32(len(w.points) - 1)})
		cur = len(w.points) - 1
	}
	// settle charges the run so far; the next begins here.
	settle := func() {
		total += seg
		most := int64(maxAhead)
		if cur == 0 || w.points[cur].begin {
			most = maxBegin
		}
		switch p := &w.points[cur]; {
		case seg == 0 || dead:
		case sure, seg <= mergeRun && p.ahead+seg <= most:
			p.cost += seg
			if !sure {
				p.ahead += seg
			}
			if p.begin {
				w.merged = append(w.merged, merged{cur, segAt, seg})
			}
		default:
			w.insertPoint(segAt, seg)
			cur, sure = len(w.points)-1, true
		}
		seg, segAt = 0, r.p
	}
	escape := func(depth uint32) {
		if int(depth) >= len(w.frames) {
			r.fail("branch to block %d of %d", depth, len(w.frames))
		}
		top := len(w.frames) - 1
		w.frames[top-int(depth)].backs++
		w.frames[top].out = min(w.frames[top].out, top-int(depth))
	}
	push := func(op byte, at int) {
		if len(w.frames) >= maxNesting {
			r.fail("blocks are nested deeper than the %d that are allowed", maxNesting)
		}
		w.regions = append(w.regions, region{loop: op == 0x03})
		w.frames = append(w.frames, frame{op: op, region: len(w.regions) - 1, cur: cur, sure: sure, dead: dead, out: len(w.frames), turn0: len(w.turns), run0: len(w.merged)})
		if n := len(w.frames) - 1; n > 0 {
			w.frames[n].block = w.frames[n-1].opens(n, len(w.regions)-1)
			w.edits = append(w.edits, edit{at: at, kind: editOpen, val: uint32(len(w.regions) - 1)})
		}
	}
	push(0x02, r.p)
	place(r.p, true)
	for at := 0; len(w.frames) > 0; before[0], before[1] = before[1], at {
		at = r.p
		op := r.u8()
		switch op {
		case 0x00, 0x0f: // unreachable, return
			settle()
			escape(uint32(len(w.frames) - 1))
			dead = true
		case 0x02: // block
			r.blockType(w.m)
			settle()
			push(op, at)
		case 0x03: // loop
			r.blockType(w.m)
			settle()
			push(op, at)
			first := cur == 0 && !calls && sure // what goes before leads here and nowhere else
			if !dead {
				place(r.p, true)
				sure = true
				if first {
					w.points[cur].begin, w.points[cur].ahead = true, w.points[0].ahead
				}
				f := &w.frames[len(w.frames)-1]
				f.point, f.turns = cur, w.dispatcher(*r, r.b[at+1])
			}
		case 0x04: // if
			r.blockType(w.m)
			seg++
			settle()
			push(op, at)
			sure = false
		case 0x05: // else
			settle()
			f := &w.frames[len(w.frames)-1]
			if f.op != 0x04 {
				r.fail("else without if")
			}
			f.op = 0x05
			w.edits = append(w.edits, edit{at: r.p, kind: editElse})
			cur, sure, dead = f.cur, false, f.dead
		case 0x0b: // end
			settle()
			f := w.frames[len(w.frames)-1]
			top := len(w.frames) - 1
			w.frames = w.frames[:top]
			if f.block != nil {
				f.block.ends[top-f.block.loop-1] = r.p
			}
			cur, sure, dead = f.cur, f.sure && f.out >= top, f.dead
			if f.op == 0x03 && !f.dead {
				p := &w.points[f.point]
				p.check = f.backs > 0
				looped = looped || p.check
				if p.begin && p.check && w.lead(f) {
					p.check = false
				} else if p.begin && p.check {
					p.begin, w.points[0].check, w.first = false, false, f.point
				}
			}
			if top > 0 {
				up := &w.frames[top-1]
				up.out = min(up.out, f.out)
				w.regions[up.region].calls = w.regions[up.region].calls || w.regions[f.region].calls
				w.edits = append(w.edits, edit{at: r.p, kind: editClose, val: uint32(f.region)})
			}
		case 0x0c, 0x0d: // br, br_if
			seg++
			depth := r.u32()
			if op == 0x0c && !dead {
				switch to, kind := w.turn(r.b, before, depth); kind {
				case forward:
					depth = to
					w.edits = append(w.edits, edit{at: at, skip: r.p - at, kind: editBranch, val: to})
				case back:
					w.turns = append(w.turns, turnBack{loop: w.frames[len(w.frames)-1-int(depth)].point, to: int(to)})
					w.edits = append(w.edits, edit{at: at, kind: editTurn, val: uint32(len(w.turns) - 1)})
				}
			}
			settle()
			escape(depth)
			if op == 0x0c {
				dead = true
			} else {
				sure = false
			}
		case 0x0e: // br_table
			n := r.count(maxTargets, "targets")
			if targets += n; targets > maxAllTarget {
				r.fail("a function has more than %d targets in tables", maxAllTarget)
			}
			seg++
			for range n + 1 {
				escape(r.u32())
			}
			settle()
			dead = true
		case 0x10: // call
			call()
			f := w.m.funcIndex(r.u32(), r)
			seg++
			kind := editCall
			if w.tracked[f] {
				kind = editDeep
			}
			w.edits = append(w.edits, edit{at: at, skip: r.p - at, kind: kind, val: f})
		case 0x11: // call_indirect
			call()
			seg++
			w.m.typeIndex(r)
			r.leb(5)
			w.edits = append(w.edits, edit{at: at, kind: editEnter})
		case 0xd2: // ref.func
			seg++
			f := w.m.funcIndex(r.u32(), r)
			w.edits = append(w.edits, edit{at: at, skip: r.p - at, kind: editRef, val: f})
		case 0x01, 0x1a: // nop, drop
		default:
			if op == 0x40 {
				seg += costGrow
			}
			if r.immediates(op) {
				seg += costRange
				call()
				if sub := r.b[at+1]; sub == 15 {
					seg += costGrow
				}
				w.edits = append(w.edits, edit{at: at, kind: editRanged})
			}
			seg++
		}
	}
	if r.more() {
		r.fail("code after the end of a function")
	}
	return !looped && !calls && total <= maxBegin
}

// insertPoint adds a point at a place that lies behind, before the edits of the
// run that begins there.
func (w *metering) insertPoint(at int, cost int64) {
	w.points = append(w.points, point{cost: cost})
	i := len(w.edits)
	for i > 0 && (w.edits[i-1].at > at || w.edits[i-1].at == at && !w.edits[i-1].begins()) {
		i--
	}
	w.edits = slices.Insert(w.edits, i, edit{at: at, kind: editPoint, val: uint32(len(w.points) - 1)})
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
