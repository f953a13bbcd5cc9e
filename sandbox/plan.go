package sandbox

import "slices"

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

// A planner walks a function's code and notes what to charge and to change where.
type planner struct {
	*metering
	r *reader

	seg     int64  // cost of the run that is being read
	segAt   int    // where it begins
	cur     int    // the point that was charged last on the way here
	sure    bool   // what is read is reached whenever cur is charged
	dead    bool   // what is read can not be reached
	targets int    // of all tables
	total   int64  // cost of all runs
	calls   bool   // the function calls somebody
	looped  bool   // it has a loop that turns
	before  [2]int // where the two instructions before begin; 0: there is none
}

// plan walks a function's code. It tells whether the function is short and calls
// nobody, so that whoever calls it may look at the fuel.
func (w *metering) plan(r *reader) (leaf bool) {
	w.points, w.edits, w.frames, w.regions, w.first = w.points[:0], w.edits[:0], w.frames[:0], w.regions[:0], 0
	w.turns, w.merged = w.turns[:0], w.merged[:0]
	p := planner{metering: w, r: r, segAt: r.p, sure: true}
	p.open(opBlock, r.p)
	p.place(r.p, true)
	for len(w.frames) > 0 {
		at := r.p
		p.instruction(r.u8(), at)
		p.before[0], p.before[1] = p.before[1], at
	}
	if r.more() {
		r.fail("code after the end of a function")
	}
	return !p.looped && !p.calls && p.total <= maxBegin
}

// The instructions of control, as WebAssembly numbers them.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opMemoryGrow   = 0x40
	opRefFunc      = 0xd2
)

// instruction reads one, whose first byte stood at a place.
func (p *planner) instruction(op byte, at int) {
	switch op {
	case opUnreachable, opReturn:
		p.settle()
		p.escape(uint32(len(p.frames) - 1))
		p.dead = true
	case opBlock:
		p.r.blockType(p.m)
		p.settle()
		p.open(op, at)
	case opLoop:
		p.r.blockType(p.m)
		p.settle()
		p.loop(at)
	case opIf:
		p.r.blockType(p.m)
		p.seg++
		p.settle()
		p.open(op, at)
		p.sure = false
	case opElse:
		p.settle()
		f := &p.frames[len(p.frames)-1]
		if f.op != opIf {
			p.r.fail("else without if")
		}
		f.op = opElse
		p.edits = append(p.edits, edit{at: p.r.p, kind: editElse})
		p.cur, p.sure, p.dead = f.cur, false, f.dead
	case opEnd:
		p.settle()
		p.close()
	case opBr, opBrIf:
		p.branch(op, at)
	case opBrTable:
		n := p.r.count(maxTargets, "targets")
		if p.targets += n; p.targets > maxAllTarget {
			p.r.fail("a function has more than %d targets in tables", maxAllTarget)
		}
		p.seg++
		for range n + 1 {
			p.escape(p.r.u32())
		}
		p.settle()
		p.dead = true
	case opCall:
		p.called()
		f := p.m.funcIndex(p.r.u32(), p.r)
		p.seg++
		kind := editCall
		if p.tracked[f] {
			kind = editDeep
		}
		p.edits = append(p.edits, edit{at: at, skip: p.r.p - at, kind: kind, val: f})
	case opCallIndirect:
		p.called()
		p.seg++
		p.m.typeIndex(p.r)
		p.r.leb(5)
		p.edits = append(p.edits, edit{at: at, kind: editEnter})
	case opRefFunc:
		p.seg++
		f := p.m.funcIndex(p.r.u32(), p.r)
		p.edits = append(p.edits, edit{at: at, skip: p.r.p - at, kind: editRef, val: f})
	case opNop, opDrop:
	default:
		if op == opMemoryGrow {
			p.seg += costGrow
		}
		if p.r.immediates(op) {
			p.seg += costRange
			p.called()
			if sub := p.r.b[at+1]; sub == 15 { // table.grow
				p.seg += costGrow
			}
			p.edits = append(p.edits, edit{at: at, kind: editRanged})
		}
		p.seg++
	}
}

// called notes that somebody is called in the region that is open.
func (p *planner) called() {
	p.calls = true
	p.regions[p.frames[len(p.frames)-1].region].calls = true
}

// place puts a point at a place.
func (p *planner) place(at int, check bool) {
	p.points = append(p.points, point{check: check})
	p.edits = append(p.edits, edit{at: at, kind: editPoint, val: uint32(len(p.points) - 1)})
	p.cur = len(p.points) - 1
}

// settle charges the run so far; the next begins here.
func (p *planner) settle() {
	p.total += p.seg
	most := int64(maxAhead)
	if p.cur == 0 || p.points[p.cur].begin {
		most = maxBegin
	}
	switch at := &p.points[p.cur]; {
	case p.seg == 0 || p.dead:
	case p.sure, p.seg <= mergeRun && at.ahead+p.seg <= most:
		at.cost += p.seg
		if !p.sure {
			at.ahead += p.seg
		}
		if at.begin {
			p.merged = append(p.merged, merged{p.cur, p.segAt, p.seg})
		}
	default:
		p.insertPoint(p.segAt, p.seg)
		p.cur, p.sure = len(p.points)-1, true
	}
	p.seg, p.segAt = 0, p.r.p
}

// escape notes a branch out of so many blocks.
func (p *planner) escape(depth uint32) {
	if int(depth) >= len(p.frames) {
		p.r.fail("branch to block %d of %d", depth, len(p.frames))
	}
	top := len(p.frames) - 1
	p.frames[top-int(depth)].backs++
	p.frames[top].out = min(p.frames[top].out, top-int(depth))
}

// open begins a block, a loop or an if.
func (p *planner) open(op byte, at int) {
	if len(p.frames) >= maxNesting {
		p.r.fail("blocks are nested deeper than the %d that are allowed", maxNesting)
	}
	p.regions = append(p.regions, region{loop: op == opLoop})
	p.frames = append(p.frames, frame{op: op, region: len(p.regions) - 1, cur: p.cur, sure: p.sure, dead: p.dead,
		out: len(p.frames), turn0: len(p.turns), run0: len(p.merged)})
	if n := len(p.frames) - 1; n > 0 {
		p.frames[n].block = p.frames[n-1].opens(n, len(p.regions)-1)
		p.edits = append(p.edits, edit{at: at, kind: editOpen, val: uint32(len(p.regions) - 1)})
	}
}

// loop begins a loop, each turn of which is charged at its head.
func (p *planner) loop(at int) {
	p.open(opLoop, at)
	first := p.cur == 0 && !p.calls && p.sure // what goes before leads here and nowhere else
	if p.dead {
		return
	}
	p.place(p.r.p, true)
	p.sure = true
	if first {
		p.points[p.cur].begin, p.points[p.cur].ahead = true, p.points[0].ahead
	}
	f := &p.frames[len(p.frames)-1]
	f.point, f.turns = p.cur, p.dispatcher(*p.r, p.r.b[at+1])
}

// close ends what was opened last.
func (p *planner) close() {
	top := len(p.frames) - 1
	f := p.frames[top]
	p.frames = p.frames[:top]
	if f.block != nil {
		f.block.ends[top-f.block.loop-1] = p.r.p
	}
	p.cur, p.sure, p.dead = f.cur, f.sure && f.out >= top, f.dead
	if f.op == opLoop && !f.dead {
		at := &p.points[f.point]
		at.check = f.backs > 0
		p.looped = p.looped || at.check
		if at.begin && at.check && p.lead(f) {
			at.check = false
		} else if at.begin && at.check {
			at.begin, p.points[0].check, p.first = false, false, f.point
		}
	}
	if top > 0 {
		up := &p.frames[top-1]
		up.out = min(up.out, f.out)
		p.regions[up.region].calls = p.regions[up.region].calls || p.regions[f.region].calls
		p.edits = append(p.edits, edit{at: p.r.p, kind: editClose, val: uint32(f.region)})
	}
}

// branch reads a jump, with or without a condition.
func (p *planner) branch(op byte, at int) {
	p.seg++
	depth := p.r.u32()
	if op == opBr && !p.dead {
		switch to, kind := p.turn(p.r.b, p.before, depth); kind {
		case forward:
			depth = to
			p.edits = append(p.edits, edit{at: at, skip: p.r.p - at, kind: editBranch, val: to})
		case back:
			p.turns = append(p.turns, turnBack{loop: p.frames[len(p.frames)-1-int(depth)].point, to: int(to)})
			p.edits = append(p.edits, edit{at: at, kind: editTurn, val: uint32(len(p.turns) - 1)})
		}
	}
	p.settle()
	p.escape(depth)
	if op == opBr {
		p.dead = true
	} else {
		p.sure = false
	}
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
