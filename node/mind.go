package node

import (
	"context"
	"fmt"

	memories "github.com/selvage-mesh/selvage/company/memory"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
	"github.com/selvage-mesh/selvage/mind"
)

// A Mind says whether a node looks for likes among memories.
type Mind string

// The values of --mind.
const (
	MindOff  Mind = "off"
	MindOn   Mind = "on"
	MindAuto Mind = "auto" // where there is memory enough: not on small machines
)

// ParseMind reads a value of --mind.
func ParseMind(s string) (Mind, error) {
	switch v := Mind(s); v {
	case MindOff, MindOn, MindAuto:
		return v, nil
	}
	return "", fmt.Errorf("mind %q: give auto, on or off", s)
}

// openMind measures this node, and begins to think about what companies remember, where
// that is switched on.
func (n *Node) openMind(context.Context) error {
	if n.conf.Mind != MindOn && (n.conf.Mind != MindAuto || n.small) {
		return nil
	}
	m := mind.New(mind.Config{View: n.ledger.View, Entries: n.ledger.Entries, Clock: n.conf.Wall, Logger: n.log,
		Leads:     n.consensus.IsLeader,
		Head:      func() uint64 { return n.ledger.Position().Height },
		Companies: companyIDs,
		Search: func(tx *ledger.Tx, company ledger.CompanyID, s index.Search) (index.Found, bool, error) {
			found, far, err := n.recall.Search(tx, company, s)
			return found, far.Ready, err
		},
		Commit: func(ctx context.Context, company ledger.CompanyID, p memories.Link) error {
			r, err := n.submit(ctx, n.command(memories.KindLink, company, p))
			if err != nil {
				return err
			}
			return r.Err()
		}})
	n.mind = m
	n.spawn(func(ctx context.Context) {
		c, err := mind.Calibrate(ctx, n.syncTime, n.conf.Wall)
		if err != nil {
			n.log.Warn("this node was not measured", "error", err)
			return
		}
		n.log.Info("this node was measured", "hash", c.CPU, "sync", c.Sync, "search", c.Search, "tick", c.Tick,
			"interval", c.Interval)
		m.Calibrated(c)
		n.work.facts.measured(c)
	})
	n.spawn(m.Run)
	return nil
}

// thinking says what the mind of this node did.
func (n *Node) thinking() mind.Stat {
	if n.mind == nil {
		return mind.Stat{State: "off"}
	}
	return n.mind.Stat()
}
