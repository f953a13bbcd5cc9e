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

// A question is what this node answers to another that asks, or to itself. Ask and Answer
// travel as JSON, each in one frame of KindIPC, on a stream of their own. A node that does
// not know the frame ends the stream.
type question[Ask, Answer any] struct {
	asks, answers byte          // the types of the two frames
	wait          time.Duration // bounds it, there and back
	here          func(ctx context.Context, ask Ask) Answer
}

// put asks node on, and returns what it answers.
func (q question[Ask, Answer]) put(ctx context.Context, n *Node, on identity.NodeID, ask Ask) (answer Answer,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, q.wait)
	defer cancel()
	if on == n.ID() {
		return q.here(ctx, ask), nil
	}
	b, err := json.Marshal(ask)
	if err != nil {
		return answer, err
	}
	typ, payload, err := n.askOnce(ctx, on, q.asks, b)
	if err != nil {
		return answer, err
	}
	if typ != q.answers || json.Unmarshal(payload, &answer) != nil {
		return answer, fmt.Errorf("node %s does not know how to look", on)
	}
	return answer, nil
}

// answer answers on c what another node asks with payload.
func (q question[Ask, Answer]) answer(ctx context.Context, c net.Conn, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, q.wait)
	defer cancel()
	var ask Ask
	if err := json.Unmarshal(payload, &ask); err != nil {
		return err
	}
	b, err := json.Marshal(q.here(ctx, ask))
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(keepAliveTimeout)); err != nil {
		return err
	}
	return transport.WriteFrame(c, q.answers, b)
}

// askOnce sends one frame to a node and reads one, within the time of ctx.
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

// offersWait bounds looking what a node offers, there and back, an answer of a model
// server included.
const offersWait = 25 * time.Second

// offers looks on a node what it offers to agents.
func (n *Node) offers(ctx context.Context, on identity.NodeID, look adapter.Look) ([]adapter.Offer, error) {
	return n.offersQuestion().put(ctx, n, on, look)
}

func (n *Node) offersQuestion() question[adapter.Look, []adapter.Offer] {
	return question[adapter.Look, []adapter.Offer]{ipcOffers, ipcOffered, offersWait, n.offersHere}
}

func (n *Node) offersHere(ctx context.Context, look adapter.Look) []adapter.Offer {
	environ := os.Environ()
	return adapter.Prober{Environ: environ, Has: n.work.runs}.Offers(ctx, adapter.ModelServers(environ), look)
}
