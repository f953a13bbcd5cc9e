package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// clocks records the offsets of other nodes' clocks, from the beats that they sent to
// this node while it led. A beat is a few milliseconds old on arrival, far less than the
// differences that matter here.
type clocks struct {
	wall  func() time.Time // this node's clock
	mu    sync.Mutex
	ahead map[identity.NodeID]reading
}

type reading struct {
	by time.Duration // the node's clock minus this one's
	at time.Time
}

// heard records another node's wall clock, in ms since 1970.
func (k *clocks) heard(from identity.NodeID, wall int64) {
	now := k.wall()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ahead == nil {
		k.ahead = map[identity.NodeID]reading{}
	}
	k.ahead[from] = reading{time.UnixMilli(wall).Sub(now), now}
}

// skew returns this node's offset from the median of all clocks, its own included.
func (k *clocks) skew() (off time.Duration, nodes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, now := []time.Duration{0}, k.wall()
	for _, r := range k.ahead {
		if now.Sub(r.at) < clockMemory {
			all = append(all, r.by)
		}
	}
	slices.Sort(all)
	return -all[(len(all)-1)/2], len(all)
}

// mayLead returns an error if this node's clock is wrong: earlier than this program, or
// far from the median.
func (k *clocks) mayLead() error {
	now := k.wall()
	if now.Before(programmed) {
		return fmt.Errorf("this node's clock says %s, before this program was made: set it", now.UTC().Format(time.DateOnly))
	}
	if off, n := k.skew(); n >= 3 && off.Abs() > maxSkew {
		return fmt.Errorf("this node's clock is %s off the others': set it", off.Round(time.Millisecond))
	}
	return nil
}

// programmed is a time that is certainly past. Virtual time in tests begins at midnight
// of 2000-01-01, which must be allowed.
var programmed = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// keepTime moves the mesh's clock forward after no node was up for a while: batches
// alone advance it only as fast as time passes. A node does so while it leads, if its
// clock is plausible. The step is recorded in the chain.
func (n *Node) keepTime(ctx context.Context) {
	behind := 0
	every(ctx, rotateRetry, func() {
		mesh := n.ledger.Time()
		// The time of an idle mesh is that of its newest batch. What counts is how far a batch
		// stamped now would lag.
		if !n.consensus.IsLeader() || mesh.IsZero() || n.clocks.mayLead() != nil || !n.consensus.Lags(maxSkew) {
			behind = 0
			return
		}
		if behind++; behind < stepAfter {
			return
		}
		behind = 0
		if err := n.carryOut(ctx, n.command(ledger.KindTimeStep, "",
			ledger.TimeStep{To: n.conf.Wall().UnixMilli()})); err != nil {
			n.log.Warn("set the mesh's clock forward", "error", err)
			return
		}
		n.log.Info("set the mesh's clock forward", "from", mesh)
	})
}
