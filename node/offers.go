package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/transport"
)

// offersWait bounds a query of a node's offers including the network, and an answer of a
// model server.
const offersWait = 25 * time.Second

// offers asks a node what it offers to agents. The request is JSON in a frame of
// KindIPC; the answer is a list of offers. A node that does not know the frame closes
// the stream.
func (n *Node) offers(ctx context.Context, on identity.NodeID, look adapter.Look) ([]adapter.Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, offersWait)
	defer cancel()
	if on == n.ID() {
		return n.offersHere(ctx, look), nil
	}
	ask, err := json.Marshal(look)
	if err != nil {
		return nil, err
	}
	typ, payload, err := n.askOnce(ctx, on, ipcOffers, ask)
	if err != nil {
		return nil, err
	}
	var found []adapter.Offer
	if typ != ipcOffered || json.Unmarshal(payload, &found) != nil {
		return nil, fmt.Errorf("node %s does not know how to look", on)
	}
	return found, nil
}

// askOnce sends one frame to a node and reads one, on a stream of its own, until ctx
// ends.
func (n *Node) askOnce(ctx context.Context, on identity.NodeID, typ byte, ask []byte) (byte, []byte, error) {
	c, err := n.transport.Dial(ctx, on, transport.KindIPC)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return 0, nil, err
	}
	if err := transport.WriteFrame(c, typ, ask); err != nil {
		return 0, nil, err
	}
	return transport.ReadFrameMax(c, maxFrame)
}

// answerOffers answers another node's query of this node's offers.
func (n *Node) answerOffers(c net.Conn, payload []byte) error {
	ctx, cancel := context.WithTimeout(n.ctx, offersWait)
	defer cancel()
	var ask adapter.Look
	if err := json.Unmarshal(payload, &ask); err != nil {
		return err
	}
	b, err := json.Marshal(n.offersHere(ctx, ask))
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(keepAliveTimeout)); err != nil {
		return err
	}
	return transport.WriteFrame(c, ipcOffered, b)
}

func (n *Node) offersHere(ctx context.Context, look adapter.Look) []adapter.Offer {
	environ := os.Environ()
	return adapter.Prober{Environ: environ, Has: n.work.runs}.Offers(ctx, adapter.ModelServers(environ), look)
}
