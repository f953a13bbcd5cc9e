package scheduler

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// A lateNode is a node whose first reading begins when released is closed.
type lateNode struct {
	Node
	asked    atomic.Bool
	released chan struct{}
}

func (n *lateNode) View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (uint64, error) {
	if !n.asked.Swap(true) {
		<-n.released
	}
	return n.Node.View(ctx, at, f)
}

// What comes between the first look of a leader and the place at which its feed
// begins is not missed.
func TestTheFeedBeginsAfterTheFirstLook(t *testing.T) {
	run(t, 1, func(t *testing.T, m *mesh) {
		p := m.nodes[0]
		p.lead.Lead(false) // another one leads here
		cfg := p.lead.cfg
		late := &lateNode{Node: p, released: make(chan struct{})}
		cfg.Node, cfg.Lease = late, time.Hour // nodes send their beats to the other one
		l := NewLeader(cfg)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { _ = l.Run(ctx); close(over) }()
		time.Sleep(time.Second) // its feed waits
		l.Lead(true)
		time.Sleep(time.Second) // it has looked
		m.agent(acme, "ada", "sleep 1s", `{"heartbeat":{"enabled":true,"intervalSec":30}}`)
		close(late.released)
		m.until(5*time.Minute, "a tick of the timer", func() bool { return len(m.runs(acme)) > 0 })
		stop()
		<-over
	})
}
