package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// recordEvery is how often a node records the decisions that it has made.
	recordEvery = time.Second
	// maxUnrecorded bounds the different decisions that wait for it: what comes beyond them is not recorded.
	maxUnrecorded = 200
)

// A localGate weighs acts at this node: tools, calls of models, requests to the network. They are no commands, so they
// do not pass the gate of the ledger. What is worth it is recorded, identical decisions together.
type localGate struct {
	mu      sync.Mutex
	waiting map[string]govern.Decision // guarded by mu
	lost    int                        // guarded by mu
	counter govern.Counter
}

// Weigh asks the constitution, as this node has it, about an act. The act may happen when the answer is nil.
func (n *Node) Weigh(l govern.Local) error {
	var d govern.Decision
	worthy, no := false, error(nil)
	l.Counter, l.At = &n.gate.counter, time.Now()
	if err := n.ledger.View(func(tx *ledger.Tx) error {
		d, worthy, no = govern.WeighLocal(tx,
			l)
		return nil
	}); err != nil {
		return errors.Join(errNotWeighed, err)
	}
	if worthy {
		n.gate.keep(d)
	}
	return no
}

var errNotWeighed = errors.New("the act can not be weighed, so it does not happen")

func (g *localGate) keep(d govern.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := strings.Join([]string{string(d.Company), d.Act.Agent, d.Run, d.Act.Action, d.Said.Verdict.String(),
		d.Said.Reason}, "\x00")
	if was, ok := g.waiting[key]; ok {
		was.Count++
		g.waiting[key] = was
		return
	}
	if len(g.waiting) >= maxUnrecorded {
		g.lost++
		return
	}
	if g.waiting == nil {
		g.waiting = map[string]govern.Decision{}
	}
	g.waiting[key] = d
}

// take returns what waits, by company, in a fixed order.
func (g *localGate) take() (by map[ledger.CompanyID][]govern.Decision, lost int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by = map[ledger.CompanyID][]govern.Decision{}
	for _, key := range slices.Sorted(maps.Keys(g.waiting)) {
		d := g.waiting[key]
		by[d.Company] = append(by[d.Company], d)
	}
	lost, g.lost = g.lost, 0
	clear(g.waiting)
	return by, lost
}

// recordDecisions records what this node has decided, until ctx ends.
func (n *Node) recordDecisions(ctx context.Context) {
	every(ctx, recordEvery, func() {
		by, lost := n.gate.take()
		if lost > 0 {
			n.log.Warn("decisions of the gate were not recorded: too many at once", "decisions", lost)
		}
		for of, list := range by {
			for part := range slices.Chunk(list, govern.MaxRecorded) {
				if err := n.carryOut(ctx, n.command(govern.KindRecord, of, govern.Record{Decisions: part})); err != nil &&
					ctx.Err() == nil {
					n.log.Warn("record decisions of the gate", "company", of, "decisions", len(part), "error", err)
				}
			}
		}
	})
}
