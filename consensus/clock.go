package consensus

import (
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// A clock gives batches their time, as [ledger.NextStamp] has it: the wall
// clock of the leader, but never back, and neither much further than the time that
// has passed since the newest stamp by the monotonic clock nor much less far. Every node follows
// the mesh's time as it applies, so that a new leader knows how much has passed.
type clock struct {
	mesh func() time.Time // the time of the newest applied batch
	wall func() time.Time

	mu   sync.Mutex // guards what follows
	last time.Time  // the newest stamp that was seen applied or made
	at   time.Time  // when that was
}

// observe notes the time of what was just applied.
func (k *clock) observe() {
	t, now := k.mesh(), time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.note(t, now)
}

func (k *clock) note(t, now time.Time) {
	if k.at.IsZero() || t.After(k.last) {
		k.last, k.at = t, now
	}
}

// stamp writes the time into a batch.
func (k *clock) stamp(batch []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	t := ledger.NextStamp(k.last, now.Sub(k.at), k.wall())
	k.note(t, now)
	ledger.StampBatch(batch, t)
}

// lag is how far a batch stamped now would be behind the wall clock.
func (k *clock) lag() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, wall := time.Now(), k.wall()
	return wall.Sub(ledger.NextStamp(k.last, now.Sub(k.at), wall))
}

// now is the time that a batch stamped now would get.
func (k *clock) now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return ledger.NextStamp(k.last, time.Since(k.at), k.wall())
}

// Now is the mesh's time as this node would tell it: what a batch would be
// stamped with now. It is the time by which things fall due, whatever happens to
// the clock of a machine.
func (c *Consensus) Now() time.Time { return c.clock.now() }

// Lags reports whether the time that this node would give a batch is further
// behind its wall clock than by: the mesh stood still, or its clock was set.
func (c *Consensus) Lags(by time.Duration) bool { return c.clock.lag() > by }
