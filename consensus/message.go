package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A propose stream carries messages both ways, many requests at once. Each is
//
//	4 bytes  length of what follows, big endian, as all numbers here; at most 16 MiB
//	1 byte   version and kind: 0x11 request, 0x12 response
//	8 bytes  ID: chosen by the asking side, repeated in the response
//	a request goes on with
//	1 byte   operation, see op; do not renumber
//	1 byte   hops left: how often the receiver may hand it on
//	4 bytes  how long the sender waits, in milliseconds
//	a response goes on with
//	1 byte   status, see status; do not renumber
//	8 bytes  an index, 0 when there is none
//	and both end with a body.
//
// The side that opened the stream asks, the other answers. A response of an
// unknown ID is dropped (whoever asked has given up); an unknown operation gets
// statusUnsupported; any other malformed message ends the stream.
type message struct {
	kind   byte
	id     uint64
	op     op            // request
	hops   byte          // request
	wait   time.Duration // request, whole milliseconds
	status status        // response
	index  uint64        // response
	body   []byte
}

const (
	kindRequest  = 0x11
	kindResponse = 0x12

	headRequest  = 1 + 8 + 1 + 1 + 4
	headResponse = 1 + 8 + 1 + 8
)

// op is what a request asks for.
type op byte

const (
	opPropose   op = 1 // body: batch; index and body of the answer: raft index, result
	opReadIndex op = 2 // index of the answer: what a strong read waits for
	opProgress  op = 3 // body of the answer: see progress
	opDigest    op = 4 // body: raft index; body of the answer: digest there
	opEnroll    op = 5 // body: server ID to add as a non-voter
	opRemove    op = 6 // body: NodeID to remove, all its incarnations
	opTransfer  op = 7 // body: term (8 bytes) whose leader is to hand leadership to another voter
	opNonvoter  op = 8 // body: server ID, added or demoted to a non-voter
	opAutopilot op = 9 // body of the answer: AutopilotState, JSON
)

// status is how a request ended.
type status byte

const (
	statusOK          status = 1
	statusNotLeader   status = 2 // certainly not carried out; another leads, or nobody
	statusUnknown     status = 3 // perhaps carried out
	statusRefused     status = 4 // certainly not carried out, and not worth repeating; body: why
	statusBusy        status = 5 // certainly not carried out; try again
	statusDiskFull    status = 6 // certainly not carried out
	statusUnsupported status = 7 // an operation of a newer node
	statusAbsent      status = 8 // the answer is that there is none
	lastStatus        status = statusAbsent
)

var errMessage = errors.New("malformed message")

func appendMessage(b []byte, m *message) []byte {
	n := headResponse
	if m.kind == kindRequest {
		n = headRequest
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n+len(m.body)))
	b = append(b, m.kind)
	b = binary.BigEndian.AppendUint64(b, m.id)
	if m.kind == kindRequest {
		b = append(b, byte(m.op), m.hops)
		b = binary.BigEndian.AppendUint32(b, uint32(m.wait.Milliseconds()))
	} else {
		b = append(b, byte(m.status))
		b = binary.BigEndian.AppendUint64(b, m.index)
	}
	return append(b, m.body...)
}

// readMessage reads one message. It returns io.EOF when the stream ends
// between messages.
func readMessage(r io.Reader) (*message, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < headRequest || n > maxMessage {
		return nil, fmt.Errorf("%w: %d bytes", errMessage, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, errors.Join(io.ErrUnexpectedEOF, err)
	}
	m := &message{kind: b[0], id: binary.BigEndian.Uint64(b[1:])}
	switch m.kind {
	case kindRequest:
		m.op, m.hops = op(b[9]), b[10]
		m.wait = time.Duration(binary.BigEndian.Uint32(b[11:])) * time.Millisecond
		m.body = b[headRequest:]
	case kindResponse:
		if n < headResponse {
			return nil, fmt.Errorf("%w: %d bytes", errMessage, n)
		}
		m.status, m.index = status(b[9]), binary.BigEndian.Uint64(b[10:])
		m.body = b[headResponse:]
		if m.status == 0 || m.status > lastStatus {
			return nil, fmt.Errorf("%w: status %d", errMessage, m.status)
		}
	default:
		return nil, fmt.Errorf("%w: kind %#x", errMessage, m.kind)
	}
	return m, nil
}
