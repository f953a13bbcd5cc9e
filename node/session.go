package node

import (
	"context"
	"time"

	"github.com/selvage-mesh/selvage/ledger"
)

// keepSession keeps a session for this node: it opens one at the start and another when
// the leader says that it has ended.
func (n *Node) keepSession(ctx context.Context) {
	for {
		id, err := n.proposer.Session(ctx)
		if err != nil {
			return // the node closes
		}
		n.sessionID.Store(id)
		select {
		case <-ctx.Done():
			return
		case over := <-n.sessionEnd:
			if over != id {
				continue
			}
		}
		n.sessionID.Store(0)
		// A command under the ended session is refused, and the proposer then opens a new
		// session. The command itself changes nothing.
		submit, cancel := context.WithTimeout(ctx, submitTimeout)
		_, err = n.submit(submit, n.command(ledger.KindNodeUpdate, "", ledger.NodeUpdate{Node: n.ID()}))
		cancel()
		if err != nil {
			n.log.Debug("open another session", "error", err)
			time.Sleep(rosterRetry)
		}
	}
}

// session returns the session under which this node may act, 0 if it has none.
func (n *Node) session() uint64 { return n.sessionID.Load() }

// sessionOver is called by the scheduler when the leader has ended a session.
func (n *Node) sessionOver(session uint64) {
	select {
	case n.sessionEnd <- session:
	default: // it is being handled
	}
}
