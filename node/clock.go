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

// clocks remembers how far the other nodes' clocks are from this one's, as far
// as they sent it beats while it led. A beat is a few milliseconds old when it
// is heard; that is far below what matters here.
type clocks struct {
	mu    sync.Mutex
	ahead map[identity.NodeID]reading
}

type reading struct {
	by time.Duration // the node's clock minus this one's
	at time.Time
}

// heard notes another node's wall clock, in ms since 1970.
func (k *clocks) heard(from identity.NodeID, wall int64, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ahead == nil {
		k.ahead = map[identity.NodeID]reading{}
	}
	k.ahead[from] = reading{time.UnixMilli(wall).Sub(now), now}
}

// skew is how far this node's clock is from the median of all, its own included.
func (k *clocks) skew(now time.Time) (off time.Duration, nodes int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := []time.Duration{0}
	for _, r := range k.ahead {
		if now.Sub(r.at) < clockMemory {
			all = append(all, r.by)
		}
	}
	slices.Sort(all)
	return -all[(len(all)-1)/2], len(all)
}

// mayLead refuses to lead with a clock that is wrong: older than this program,
// or far from what most nodes have.
func (k *clocks) mayLead() error {
	now := time.Now()
	if now.Before(programmed) {
		return fmt.Errorf("this node's clock says %s, before this program was made: set it", now.UTC().Format(time.DateOnly))
	}
	if off, n := k.skew(now); n >= 3 && off.Abs() > maxSkew {
		return fmt.Errorf("this node's clock is %s off the others': set it", off.Round(time.Millisecond))
	}
	return nil
}

// programmed is a time that is certainly past. Virtual time begins at midnight
// of 2000-01-01, which tests need to be allowed.
var programmed = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// keepTime sets the mesh's clock forward after it stood still, because no node
// was up: batches alone advance it only as fast as time passes. A node does so
// while it leads, when its clock may be believed; the step is in the chain.
func (n *Node) keepTime(ctx context.Context) {
	behind := 0
	every(ctx, rotateRetry, func() {
		mesh := n.ledger.Time()
		// An idle mesh's time is that of its newest batch: what counts is how
		// far a batch stamped now would stay behind.
		if !n.consensus.IsLeader() || mesh.IsZero() || n.clocks.mayLead() != nil || !n.consensus.Lags(maxSkew) {
			behind = 0
			return
		}
		if behind++; behind < stepAfter {
			return
		}
		behind = 0
		if err := n.carryOut(ctx, n.command(ledger.KindTimeStep, "", ledger.TimeStep{To: time.Now().UnixMilli()})); err != nil {
			n.log.Warn("set the mesh's clock forward", "error", err)
			return
		}
		n.log.Info("set the mesh's clock forward", "from", mesh)
	})
}
