package filters

import (
	"slices"

	"github.com/selvage-mesh/selvage/governance"
)

const (
	// Window is how many of the last acts are compared with those before them. Of fewer, chance alone makes a large shift.
	Window = 32
	// MinPast is how many acts the past needs before a shift is measured: four windows.
	MinPast = 4 * Window
	// maxPast is where all counters of the past are halved, so that what was done long ago fades.
	maxPast = 4_096
	// bands are the parts in which the magnitude of an effect is sorted.
	bands = 3
	// Bins is the number of kinds of behaviour: a class of actions, and how much harm they can do.
	Bins = 64

	// Scale is what a logarithm of 1, a factor of two, is.
	Scale = 1_024
	// An act that was carried out counts 678/1024 of a factor of two in favour of the agent, about 1.58; one that was
	// refused counts 1/8. These are the ratios of two assumptions about an agent: one act in 20 is refused, or two in
	// five. By [Good] and [Bad] together the evidence is a supermartingale under both (TestEvidenceIsAnEValue): where
	// at most 4.9 % of acts are refused, it falls from its start below 1:2^n with a probability of at most 1:2^n,
	// however long it goes on.
	Good, Bad = 678, -3 * Scale
	// maxEvidence bounds what an agent can put aside: ten refusals in a row use up no more than thirty factors of two, and
	// good conduct of years does not cover more than three of them. minEvidence bounds the way back.
	maxEvidence, minEvidence = 10 * Scale, -32 * Scale

	done = 0x80 // of a byte of Recent: the act was carried out
)

const _ = uint(Bins - (20*bands + bands)) // the classes of the table fit

// A Profile is what is kept of an agent.
type Profile struct {
	Recent   []byte `cbor:"1,keyasint,omitempty"` // the last acts, oldest first: bin, and done
	Past     []Past `cbor:"2,keyasint,omitempty"` // those before them that were carried out, by bin
	Evidence int64  `cbor:"3,keyasint,omitempty"` // logarithm of the e-value, see Scale
	Acts     uint64 `cbor:"4,keyasint,omitempty"` // that were seen
}

// A Past counts the acts of one bin.
type Past struct {
	Bin   uint8  `cbor:"1,keyasint"`
	Count uint32 `cbor:"2,keyasint"`
}

// Clone returns a copy that shares no memory with p.
func (p Profile) Clone() Profile {
	p.Recent, p.Past = slices.Clone(p.Recent), slices.Clone(p.Past)
	return p
}

// BinOf returns the bin of an act: its class, and whether its magnitude is below 0.2, below 0.5, or more. A class that
// is not in the list shares the bins of the last one.
func BinOf(class governance.Class, magnitude governance.Level) uint8 {
	i := slices.Index(governance.Classes, class)
	if i < 0 {
		i = len(governance.Classes) - 1
	}
	band := 0
	switch {
	case magnitude >= 500:
		band = 2
	case magnitude >= 200:
		band = 1
	}
	return uint8(min(i*bands+band, Bins-1))
}

// An Outcome is what came of an act.
type Outcome uint8

// Outcomes. An act that waits has none yet; see [Profile.Answered].
const (
	Waits Outcome = iota
	Done
	Warned // carried out, with a warning: no evidence for either side
	Refused
)

// With returns the profile with an act more.
func (p Profile) With(bin uint8, o Outcome) Profile {
	p = p.Clone()
	act := bin & (Bins - 1)
	if o == Done || o == Warned {
		act |= done
	}
	p.Recent = append(p.Recent, act)
	p.Acts++
	if len(p.Recent) > Window {
		p.remember(p.Recent[0])
		p.Recent = p.Recent[1:]
	}
	switch o {
	case Done:
		p.learn(Good)
	case Refused:
		p.learn(Bad)
	}
	return p
}

// Answered returns the profile after a person has answered about an act that waited. What was approved becomes the
// agent's way.
func (p Profile) Answered(bin uint8, approved bool) Profile {
	p = p.Clone()
	if !approved {
		p.learn(Bad)
		return p
	}
	p.learn(Good)
	for i, act := range slices.Backward(p.Recent) {
		if act == bin&(Bins-1) {
			p.Recent[i] |= done
			break
		}
	}
	return p
}

func (p *Profile) learn(factor int64) {
	p.Evidence = min(max(p.Evidence+factor, minEvidence), maxEvidence)
}

// remember counts an act that leaves the window. What was not carried out does not become the agent's way.
func (p *Profile) remember(act byte) {
	if act&done == 0 {
		return
	}
	bin := act &^ done
	i, ok := slices.BinarySearchFunc(p.Past, bin, func(q Past, bin uint8) int { return int(q.Bin) - int(bin) })
	if !ok {
		p.Past = slices.Insert(p.Past, i, Past{Bin: bin})
	}
	p.Past[i].Count++
	if p.past() < maxPast {
		return
	}
	for i := range p.Past {
		p.Past[i].Count /= 2
	}
	p.Past = slices.DeleteFunc(p.Past, func(q Past) bool { return q.Count == 0 })
}

func (p Profile) past() (n int64) {
	for _, q := range p.Past {
		n += int64(q.Count)
	}
	return n
}

// Shift returns how far the last acts, with the one that is asked about, are from the past: their total variation, from
// 0, the same, to 1, nothing in common. Known is false while there is too little past. Part says that the act is of a
// kind that is done more often than before: the others lead back.
func (p Profile) Shift(bin uint8) (shift governance.Level, known, part bool) {
	past := p.past()
	if past < MinPast || len(p.Recent) < Window {
		return 0, false, false
	}
	var now, before [Bins]int64
	for _, act := range append(slices.Clip(p.Recent[1:]), bin) {
		now[act&(Bins-1)&^done]++
	}
	for _, q := range p.Past {
		before[q.Bin&(Bins-1)] += int64(q.Count)
	}
	apart := int64(0)
	for i := range Bins {
		apart += max(now[i]*past-before[i]*Window, before[i]*Window-now[i]*past)
	}
	i := bin & (Bins - 1)
	return governance.Level(apart * 500 / (past * Window)), true, now[i]*past > before[i]*Window
}
