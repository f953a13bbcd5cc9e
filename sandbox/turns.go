package sandbox

// A dispatcher is a loop that begins with blocks and, inside them, a jump by a
// local:
//
//	loop  block block … block  local.get pc  br_table …  end … end … end … end
//
// Compilers write one where they have only labels to jump to, as Go's does for
// nearly every function: code that sets pc to a number and branches to the loop
// goes on behind the end of one of the blocks. While it stands inside that block,
// this jump leads forward, and is the same as a branch out of the block.
type dispatcher struct {
	loop    int // frame, and its region
	region  int
	pc      uint32
	targets []int // frames, by the value of pc; 0: none of the blocks. The last is for all other values
}

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
	return d
}

// forward tells whether a branch of a depth is a jump of a dispatcher to where a
// block that is open ends, and how deep that block is. before is where the two
// instructions before the branch begin: they must set pc to a number.
func (w *metering) forward(b []byte, before [2]int, depth uint32) (to uint32, ok bool) {
	top := len(w.frames) - 1
	if before[0] == 0 || int(depth) >= len(w.frames) || b[before[0]] != 0x41 || b[before[1]] != 0x21 {
		return 0, false
	}
	d := w.frames[top-int(depth)].turns
	set := &reader{b: b, p: before[1] + 1}
	if d == nil || set.u32() != d.pc {
		return 0, false
	}
	k, end := signed(b, before[0]+1)
	if end != before[1] || k < 0 || k >= int64(len(d.targets)) {
		return 0, false
	}
	f := d.targets[k]
	// Frames are numbered by how deep they are, regions by where they begin.
	if f == 0 || f > top || w.frames[f].region != d.region+f-d.loop {
		return 0, false
	}
	return uint32(top - f), true
}
