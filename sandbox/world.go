package sandbox

import (
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero/sys"
)

// A world is the clocks and the chance of one instance.
type world struct {
	now  time.Time // of a fixed world
	seed *mathrand.ChaCha8
	zero time.Time // where the steady clock begins
}

func newWorld(f *Fixed) *world {
	if f == nil {
		return &world{zero: time.Now()}
	}
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], f.Seed)
	return &world{now: f.Start, seed: mathrand.NewChaCha8(seed), zero: f.Start}
}

func (w *world) fixed() bool { return w.seed != nil }

// clock is what the time is; a fixed clock advances with every look.
func (w *world) clock() time.Time {
	if !w.fixed() {
		return time.Now()
	}
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

func (i *Instance) walltime() (sec int64, nsec int32) {
	t := i.fixed.clock()
	return t.Unix(), int32(t.Nanosecond())
}

// nanotime begins near zero: how long the node is up is nobody's business.
func (i *Instance) nanotime() int64 { return int64(i.fixed.clock().Sub(i.fixed.zero)) + 1 }

var _ sys.Nanosleep = (*Instance)(nil).sleep

// sleep waits without a turn; in a fixed world it moves the clock.
func (i *Instance) sleep(ns int64) {
	i.look()
	if i.fixed.fixed() {
		i.fixed.now = i.fixed.now.Add(time.Duration(ns))
		return
	}
	if ns <= 0 {
		i.yield()
		return
	}
	i.leave()
	t := time.NewTimer(time.Duration(ns))
	defer t.Stop()
	select {
	case <-t.C:
	case <-i.ctx.Done():
		panic(i.over())
	}
	i.join()
}

// pause is sched_yield.
func (i *Instance) pause() {
	i.look()
	i.yield()
}

// random reads random bytes for an instance, which pays for them.
type random struct{ i *Instance }

func (r random) Read(p []byte) (int, error) {
	r.i.spend(int64(len(p)) >> perRange)
	if r.i.fixed.fixed() {
		return r.i.fixed.seed.Read(p)
	}
	return rand.Read(p)
}
