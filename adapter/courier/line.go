package courier

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/transport"
)

const (
	// lineFrames and lineBytes bound what waits for a stream: all credits of both directions and
	// the answers to them. Beyond that the stream does not move, and is given up.
	lineFrames = 16 * post.LinkWindow
	lineBytes  = 4 * post.LinkBytes
	// dialWait bounds opening a stream, writeWait one write to it. A stream without frames for
	// lineIdle is closed.
	dialWait  = 3 * time.Second
	writeWait = 10 * time.Second
	lineIdle  = time.Minute
)

// A line is the stream to one node, opened while there is something to send. On it this node
// writes; the other one has a stream of its own.
type line struct {
	c    *Courier
	node string

	mu    sync.Mutex // guards what follows
	queue []post.Frame
	bytes int
	last  uint64   // number of the newest frame
	sent  uint64   // number of the newest frame that was given to a stream
	runs  bool     // a goroutine writes
	conn  net.Conn // while it is open
	wake  chan struct{}
}

// out takes a frame for a node. The office calls it while it is locked.
func (c *Courier) out(node string, f post.Frame) {
	c.mu.Lock()
	l := c.lines[node]
	if l == nil {
		l = &line{c: c, node: node, wake: make(chan struct{}, 1)}
		c.lines[node] = l
	}
	c.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = f.Number
	if len(l.queue) >= lineFrames || l.bytes >= lineBytes {
		l.hangUpLocked() // its writer tells the office
		return
	}
	l.queue = append(l.queue, f)
	if f.Message != nil {
		l.bytes += f.Message.Payload.Size()
	}
	if !l.runs && c.ctx.Err() == nil {
		l.runs = true
		c.wg.Go(l.run)
	}
	poke(l.wake)
}

func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hangUpLocked()
}

func (l *line) hangUpLocked() {
	if l.conn != nil {
		l.conn.Close()
	}
}

// take returns what waits.
func (l *line) take() []post.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.queue
	if l.queue, l.bytes = nil, 0; len(all) > 0 {
		l.sent = all[len(all)-1].Number
	}
	return all
}

// run opens the stream and writes until it is idle or broken.
func (l *line) run() {
	err := l.write()
	l.mu.Lock()
	l.runs = false
	l.conn = nil
	if err != nil {
		l.queue, l.bytes = nil, 0
	}
	left, sent, last := len(l.queue) > 0, l.sent, l.last
	if left && l.c.ctx.Err() == nil { // something came while the idle stream was closed
		l.runs = true
		l.c.wg.Go(l.run)
	}
	l.mu.Unlock()
	if err != nil {
		l.c.office.Lost(l.c.cfg.Wall(), l.node, err.Error(), sent, last)
	}
}

func (l *line) write() error {
	if !l.c.cfg.Alive(l.node) {
		return fmt.Errorf("it is down")
	}
	ctx, cancel := context.WithTimeout(l.c.ctx, dialWait)
	conn, err := l.c.cfg.Dial(ctx, l.node)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	l.mu.Lock()
	l.conn = conn
	l.mu.Unlock()
	broken := make(chan struct{})
	go func() { // ends with conn: the other node never writes on it
		_, _ = io.Copy(io.Discard, conn)
		close(broken)
	}()
	w := bufio.NewWriterSize(conn, 64<<10)
	idle := time.NewTimer(lineIdle)
	defer idle.Stop()
	for {
		select {
		case <-l.wake:
		case <-broken:
			return fmt.Errorf("the stream ended")
		case <-l.c.ctx.Done():
			return l.c.ctx.Err()
		case <-idle.C:
			return nil
		}
		for all := l.take(); len(all) > 0; all = l.take() {
			if err := conn.SetWriteDeadline(time.Now().Add(writeWait)); err != nil {
				return err
			}
			for _, f := range all {
				if err := transport.WriteFrame(w, byte(f.Kind), encode(f)); err != nil {
					return err
				}
			}
			if err := w.Flush(); err != nil {
				return err
			}
		}
		idle.Reset(lineIdle)
	}
}

// Serve reads what a node sends on a stream of its own, until it ends.
func (c *Courier) Serve(from string, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(c.ctx, func() { conn.Close() })()
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		typ, b, err := transport.ReadFrame(r)
		if err != nil {
			return
		}
		f, err := decode(typ, b)
		if err != nil {
			c.cfg.Logger.Warn("a message of another node can not be read", "node", from, "error", err)
			return
		}
		if c.ctx.Err() != nil || c.table == nil {
			return
		}
		c.office.Arrive(c.cfg.Wall(), from, f)
		if f.Kind == post.FrameDeliver {
			c.kick()
		}
	}
}

// A frame between couriers is a transport frame whose type is the kind of the office's frame, with
// a wire as deterministic CBOR. Members that are not known are skipped.
type wire struct {
	Epoch   uint64   `cbor:"1,keyasint"`
	Number  uint64   `cbor:"2,keyasint"`
	Asked   uint64   `cbor:"3,keyasint,omitempty"`
	Seq     uint64   `cbor:"4,keyasint,omitempty"`
	PID     uint64   `cbor:"5,keyasint,omitempty"`
	ID      string   `cbor:"6,keyasint,omitempty"`
	Reason  string   `cbor:"7,keyasint,omitempty"`
	Detail  string   `cbor:"8,keyasint,omitempty"`
	Message *wireMsg `cbor:"9,keyasint,omitempty"`
}

type wireMsg struct {
	ID          string       `cbor:"1,keyasint"`
	Node        string       `cbor:"2,keyasint"`
	PID         uint64       `cbor:"3,keyasint"`
	To          string       `cbor:"4,keyasint"`
	Kind        string       `cbor:"5,keyasint"`
	Text        string       `cbor:"6,keyasint,omitempty"`
	JSON        []byte       `cbor:"7,keyasint,omitempty"`
	Tool        string       `cbor:"8,keyasint,omitempty"`
	Call        string       `cbor:"9,keyasint,omitempty"`
	Binary      []byte       `cbor:"10,keyasint,omitempty"`
	Segment     uint8        `cbor:"11,keyasint,omitempty"`
	Signal      *post.Signal `cbor:"12,keyasint,omitempty"`
	At          int64        `cbor:"13,keyasint"` // ns since 1970
	Deadline    int64        `cbor:"14,keyasint"`
	Company     string       `cbor:"15,keyasint,omitempty"`
	Correlation string       `cbor:"16,keyasint,omitempty"`
	Trace       string       `cbor:"17,keyasint,omitempty"`
	WantsReply  bool         `cbor:"18,keyasint,omitempty"`
	Reliable    bool         `cbor:"19,keyasint,omitempty"`
	Durable     bool         `cbor:"20,keyasint,omitempty"`
	Attempt     int          `cbor:"21,keyasint,omitempty"`
}

func encode(f post.Frame) []byte {
	w := wire{Epoch: f.Epoch, Number: f.Number, Asked: f.Asked, Seq: f.Seq, PID: uint64(f.PID), ID: f.ID,
		Reason: string(f.Reason), Detail: f.Detail}
	if f.Message != nil {
		w.Message = wireOf(f.Message)
	}
	return ledger.Marshal(w)
}

func wireOf(m *post.Message) *wireMsg {
	p := m.Payload
	return &wireMsg{ID: m.ID, Node: m.From.Node, PID: uint64(m.From.PID), To: m.To.String(), Kind: string(p.Kind),
		Text: p.Text, JSON: p.JSON, Tool: p.Tool, Call: p.Call,
		Binary: p.Binary, Segment: p.Segment, Signal: p.Signal, At: m.At.UnixNano(), Deadline: m.Deadline.UnixNano(),
		Company: m.Company, Correlation: m.Correlation, Trace: m.Trace,
		WantsReply: m.WantsReply, Reliable: m.Reliable, Durable: m.Durable, Attempt: m.Attempt}
}

func decode(typ byte, b []byte) (post.Frame, error) {
	var w wire
	if err := ledger.Unmarshal(b, &w); err != nil {
		return post.Frame{}, err
	}
	f := post.Frame{Kind: post.FrameKind(typ), Epoch: w.Epoch, Number: w.Number, Asked: w.Asked, Seq: w.Seq,
		PID: kernel.PID(w.PID), ID: w.ID, Reason: post.Reason(w.Reason), Detail: w.Detail}
	if w.Message != nil {
		m, err := w.Message.message()
		if err != nil {
			return f, err
		}
		f.Message = m
	}
	return f, nil
}

func (w *wireMsg) message() (*post.Message, error) {
	to, err := post.ParseTarget(w.To)
	if err != nil {
		return nil, err
	}
	m := &post.Message{ID: w.ID, From: kernel.Address{Node: w.Node, PID: kernel.PID(w.PID)}, To: to,
		Payload: post.Payload{Kind: post.PayloadKind(w.Kind), Text: w.Text, JSON: w.JSON, Tool: w.Tool, Call: w.Call,
			Binary: w.Binary, Segment: w.Segment, Signal: w.Signal},
		At: time.Unix(0, w.At), Deadline: time.Unix(0, w.Deadline), Company: w.Company, Correlation: w.Correlation,
		Trace:      w.Trace,
		WantsReply: w.WantsReply, Reliable: w.Reliable, Durable: w.Durable, Attempt: w.Attempt}
	return m, m.Payload.Validate()
}
