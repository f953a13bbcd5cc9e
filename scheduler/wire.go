package scheduler

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A keep-alive between nodes is one exchange on a stream of its own:
//
//	request  4-byte big-endian length, then the Beat as deterministic CBOR, at most maxBeat bytes
//	answer   one byte: 0 granted, 1 not the leader, 2 the session is over, 3 not granted for another reason
//
// A reader takes an answer that it does not know as not granted, and ignores
// fields of a beat that it does not know.
const (
	maxBeat = 16 << 10

	beatGranted     = 0
	beatNotLeader   = 1
	beatSessionOver = 2
	beatRefused     = 3
)

// SendBeat asks for a lease over c, at whose other end [Leader.Serve] answers,
// and closes c. It is made for [WorkerConfig.KeepAlive].
func SendBeat(ctx context.Context, c net.Conn, b Beat) error {
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	body := ledger.Marshal(b)
	if len(body) > maxBeat {
		return fmt.Errorf("keep-alive of %d bytes exceeds %d", len(body), maxBeat)
	}
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		return fmt.Errorf("send keep-alive: %w", err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return fmt.Errorf("answer to keep-alive: %w", err)
	}
	switch answer[0] {
	case beatGranted:
		return nil
	case beatNotLeader:
		return ErrNotLeader
	case beatSessionOver:
		return ErrSessionOver
	}
	return errors.New("keep-alive was not granted")
}

// Serve answers one keep-alive of the node from, and closes c. A node speaks
// for itself only.
func (l *Leader) Serve(from identity.NodeID, c net.Conn) {
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Lease/2)
	defer cancel()
	_ = c.SetDeadline(time.Now().Add(l.cfg.Lease / 2))
	b, err := readBeat(c)
	if err != nil {
		return
	}
	answer := byte(beatRefused)
	if b.Node == from {
		switch err := l.KeepAlive(ctx, b); {
		case err == nil:
			answer = beatGranted
		case errors.Is(err, ErrSessionOver):
			answer = beatSessionOver
		case errors.Is(err, ErrNotLeader):
			answer = beatNotLeader
		}
	}
	_, _ = c.Write([]byte{answer})
}

func readBeat(r io.Reader) (b Beat, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return b, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxBeat {
		return b, fmt.Errorf("keep-alive of %d bytes exceeds %d", n, maxBeat)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return b, err
	}
	return b, ledger.Unmarshal(body, &b)
}
