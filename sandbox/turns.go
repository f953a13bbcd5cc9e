package sandbox

import "slices"

// A dispatcher is a loop that begins with blocks and, inside them, a jump by a
// local:
//
//	loop  block block … block  local.get pc  br_table …  end … end … end … end
//
// Compilers write one where they have only labels to jump to, as Go's does for
// nearly every function: code that sets pc to a number and branches to the loop
// goes on behind the end of one of the blocks. While it stands inside that block,
// this jump leads forward, and is the same as a branch out of the block. Otherwise
// it leads back, and what stands before that end is not done again.
type dispatcher struct {
	loop    int // frame, and its region
	region  int
	pc      uint32
	targets []int // frames, by the value of pc; 0: none of the blocks. The last is for all other values
	ends    []int // of the blocks, from the outside: where their ends are; 0: they are open
}

// A turnBack leads back, to where a block of a dispatcher ended.
type turnBack struct {
	loop  int // point of the dispatcher
	to    int
	point point // it is charged for
}

// A merged run is charged with the point of a loop that a function begins with.
type merged struct {
	point, at int
	cost      int64
}

// opens returns the dispatcher whose block the frame n is, which is opened in f.
func (f *frame) opens(n, region int) *dispatcher {
	d := f.turns
	if d == nil {
		d = f.block
	}
	if d == nil || region != d.region+n-d.loop || n-d.loop > len(d.ends) {
		return nil
	}
	return d
}

// lead charges the turns of a loop, that a function begins with and whose frame is
// closed, for what they lead back to, when that is known of all branches to it:
// what is charged with the loop's point, which is then charged once, and stands
// behind. It tells whether it did.
func (w *metering) lead(f frame) bool {
	var back []*turnBack
	for n := f.turn0; n < len(w.turns); n++ {
		if w.turns[n].loop == f.point {
			back = append(back, &w.turns[n])
		}
	}
	if len(back) < f.backs {
		return false
	}
	var runs []merged
	for _, r := range w.merged[f.run0:] {
		if r.point == f.point {
			runs = append(runs, r)
		}
	}
	for n := len(runs) - 2; n >= 0; n-- {
		runs[n].cost += runs[n+1].cost
	}
	for _, t := range back {
		t.point = point{cost: costTurn, check: true}
		if n, _ := slices.BinarySearchFunc(runs, t.to, func(r merged, at int) int { return r.at - at }); n < len(runs) {
			t.point.cost += runs[n].cost
		}
	}
	return true
}

// costTurn is of the two instructions by which a dispatcher jumps.
const costTurn = 2

// dispatcher recognises one: r stands behind the beginning of a loop of a type,
// which is the frame opened last. It returns nil for other loops.
func (w *metering) dispatcher(r reader, typ byte) *dispatcher {
	if typ != 0x40 { // others may take values from where they are branched to
		return nil
	}
	d := &dispatcher{loop: len(w.frames) - 1, region: len(w.regions) - 1}
	inner := d.loop
	for r.p+1 < len(r.b) && r.b[r.p] == 0x02 && r.b[r.p+1] == 0x40 {
		r.p += 2
		inner++
	}
	if inner == d.loop || r.u8() != 0x20 {
		return nil
	}
	d.pc = r.u32()
	if r.u8() != 0x0e {
		return nil
	}
	for range r.count(maxTargets, "targets") + 1 {
		f := inner - int(r.u32())
		if f <= d.loop {
			f = 0
		}
		d.targets = append(d.targets, f)
	}
	d.ends = make([]int, inner-d.loop)
	return d
}

// What a branch is to a dispatcher.
const (
	unknown = iota
	forward // to where a block ends that is open
	back    // to where one ended
)

// turn tells what a branch of a depth is, and how deep the block is that it leads
// out of, or where it leads back to. before is where the two instructions before
// the branch begin: they must set pc to a number.
func (w *metering) turn(b []byte, before [2]int, depth uint32) (to uint32, kind int) {
	top := len(w.frames) - 1
	if before[0] == 0 || int(depth) > top || b[before[0]] != 0x41 || b[before[1]] != 0x21 {
		return 0, unknown
	}
	d := w.frames[top-int(depth)].turns
	set := &reader{b: b, p: before[1] + 1}
	if d == nil || set.u32() != d.pc {
		return 0, unknown
	}
	k, end := signed(b, before[0]+1)
	if end != before[1] || k < 0 || k >= int64(len(d.targets)) || d.targets[k] == 0 {
		return 0, unknown
	}
	f := d.targets[k]
	if ended := d.ends[f-d.loop-1]; ended > 0 {
		return uint32(ended), back
	}
	return uint32(top - f), forward
}
