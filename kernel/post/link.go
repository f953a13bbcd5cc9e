package post

import (
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// A FrameKind is what a frame between two offices says.
type FrameKind byte

// The kinds of frames. Sent between versions: do not renumber.
const (
	FrameDeliver FrameKind = 1 // Seq, PID, Message: for a process of yours
	FrameAnswer  FrameKind = 2 // Asked, Seq, Reason, Detail: it is in the inbox, or why not
	FrameHandled FrameKind = 3 // ID: the handler acknowledged this reliable message of yours
	FrameReply   FrameKind = 4 // ID, Message or Reason and Detail: the reply to this request of yours
	FrameBack    FrameKind = 5 // ID, Reason, Detail: this reliable message of yours has lost its receiver
)

// A Frame goes from one office to another. It may be lost, doubled or overtaken.
type Frame struct {
	Kind    FrameKind
	Epoch   uint64 // of the sender
	Number  uint64 // of the sender's frames to this node, from 1
	Asked   uint64 // of FrameAnswer: the epoch of the flight that it answers
	Seq     uint64
	PID     kernel.PID
	ID      string
	Message *Message
	Reason  Reason
	Detail  string
}

// A link is the way to one other node. A message takes a credit when it leaves, and gives it back
// when it was answered, or is given up.
type link struct {
	frames  uint64
	seq     uint64
	flights map[uint64]*flight
	bytes   int
	wait    []waiter

	// of what comes from there
	epoch  uint64
	newest uint64
	window [windowBits / 64]uint64
}

type flight struct {
	m      *Message
	from   origin
	until  time.Time
	number uint64 // of its frame
}

// windowBits is how far a doubled frame may lag behind and still be found: four windows of
// credits.
const windowBits = 4 * LinkWindow

// fresh reports whether a frame was not seen before. One that is too old to tell is not fresh.
func (l *link) fresh(number uint64) bool {
	if number > l.newest+windowBits {
		l.newest = number - windowBits
	}
	for l.newest < number {
		l.newest++
		l.window[l.newest/64%uint64(len(l.window))] &^= 1 << (l.newest % 64)
	}
	if l.newest-number >= windowBits {
		return false
	}
	bit := uint64(1) << (number % 64)
	word := &l.window[number/64%uint64(len(l.window))]
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

func (o *Office) link(node string) *link {
	l := o.links[node]
	if l == nil {
		l = &link{flights: map[uint64]*flight{}}
		o.links[node] = l
	}
	return l
}

func (o *Office) out(node string, f Frame) {
	l := o.link(node)
	l.frames++
	f.Epoch, f.Number = o.cfg.Epoch, l.frames
	o.cfg.Out(node, f)
}

func (o *Office) free(l *link, m *Message) bool {
	return len(l.flights) < o.cfg.linkWindow && l.bytes+m.Payload.Size() <= LinkBytes
}

// launch sends a message to another node, or lets it wait for a credit.
func (o *Office) launch(now time.Time, m *Message, to kernel.Address, from origin) {
	l := o.link(to.Node)
	switch {
	case len(l.wait) == 0 && o.free(l, m):
		o.fly(l, m, to, from, now)
	case len(l.wait) >= LinkWaiters:
		o.undelivered(now, m, from, Fail(InboxFull, "%d messages to node %s are on their way and %d wait", len(l.flights),
			to.Node, len(l.wait)))
	default:
		l.wait = append(l.wait, waiter{m, to.PID, from})
	}
}

func (o *Office) fly(l *link, m *Message, to kernel.Address, from origin, now time.Time) {
	l.seq++
	until := m.Deadline
	if m.Reliable { // this attempt; the outbox makes the next one
		until = now.Add(min(FirstRetry, m.Deadline.Sub(now)))
	}
	l.flights[l.seq] = &flight{m, from, until, l.frames + 1}
	l.bytes += m.Payload.Size()
	o.out(to.Node, Frame{Kind: FrameDeliver, Seq: l.seq, PID: to.PID, Message: m})
}

// land gives the credit of a flight back.
func (o *Office) land(node string, l *link, seq uint64, now time.Time) {
	l.bytes -= l.flights[seq].m.Payload.Size()
	delete(l.flights, seq)
	o.pump(node, l, now)
}

func (o *Office) pump(node string, l *link, now time.Time) {
	for len(l.wait) > 0 && o.free(l, l.wait[0].m) {
		w := l.wait[0]
		l.wait[0] = waiter{}
		l.wait = l.wait[1:]
		o.fly(l, w.m, kernel.Address{Node: node, PID: w.pid}, w.from, now)
	}
}

// Arrive takes a frame of another node.
func (o *Office) Arrive(now time.Time, from string, f Frame) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.link(from)
	if f.Epoch > l.epoch { // the node was started again
		l.epoch, l.newest, l.window = f.Epoch, 0, [windowBits / 64]uint64{}
	}
	if f.Epoch < l.epoch || !l.fresh(f.Number) && !o.cfg.bugs.noDeduplication {
		o.figures.Duplicates++
		return
	}
	switch f.Kind {
	case FrameDeliver:
		if f.Message == nil {
			return
		}
		f.Message.From.Node = from // whoever claims to be another is not believed
		if o.cfg.Many != nil && (f.Message.To.Kind == ToBroadcast || f.Message.To.Kind == ToGroup) {
			for _, pid := range o.cfg.Many(f.Message) {
				_ = o.offer(now, f.Message, pid) // it is a dead letter here
			}
			o.complete(origin{node: from, epoch: f.Epoch, seq: f.Seq}, nil)
			return
		}
		o.put(now, f.Message, f.PID, origin{node: from, epoch: f.Epoch, seq: f.Seq})
	case FrameAnswer:
		fl := l.flights[f.Seq]
		if fl == nil || f.Asked != o.cfg.Epoch {
			return
		}
		o.land(from, l, f.Seq, now)
		if f.Reason == "" {
			o.complete(fl.from, nil)
			return
		}
		no := &Failure{Reason: f.Reason, Detail: f.Detail}
		if fl.m.WantsReply {
			o.endCall(fl.m.ID, nil, no)
		}
		o.complete(fl.from, no)
	case FrameHandled:
		o.settled(f.ID, nil)
	case FrameBack:
		o.back(f.ID, &Failure{Reason: f.Reason, Detail: f.Detail})
	case FrameReply:
		if f.Message != nil {
			f.Message.Correlation = f.ID
			o.answered(now, f.Message)
			return
		}
		o.endCall(f.ID, nil, &Failure{Reason: f.Reason, Detail: f.Detail})
	}
}

// Lost says that the connection to a node is broken: what was on its way there is given up. Frames
// up to the number written may have arrived, later ones up to last can not; those after last are on
// their way by a new connection.
func (o *Office) Lost(now time.Time, node, why string, written, last uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.links[node]
	if l == nil {
		return
	}
	f := unsure(Unreachable, "node %s does not answer (%s); it is not known whether the message arrived", node, why)
	unsent := Fail(Unreachable, "node %s does not answer (%s): the message was not sent", node, why)
	for _, seq := range sortedKeys(l.flights) {
		switch fl := l.flights[seq]; {
		case fl.number > last:
		case fl.number <= written:
			o.giveUp(now, node, l, seq, f)
		default:
			if fl.m.WantsReply && o.endCall(fl.m.ID, nil, unsent) {
				o.bury(now, fl.m, unsent)
			}
			o.giveUp(now, node, l, seq, unsent)
		}
	}
	again := map[string]bool{} // they still have a way
	for _, fl := range l.flights {
		again[fl.m.ID] = true
	}
	for _, w := range l.wait {
		again[w.m.ID] = true
	}
	for _, id := range sortedKeys(o.calls) {
		if c := o.calls[id]; c.to.Node == node && !again[id] {
			o.bury(now, c.m, f)
			o.endCall(id, nil, f)
		}
	}
}

func (o *Office) giveUp(now time.Time, node string, l *link, seq uint64, f *Failure) {
	fl := l.flights[seq]
	switch {
	case !o.cfg.bugs.loseCredits:
		o.land(node, l, seq, now)
	default: // planted: the credit stays taken
		l.flights[seq+1<<40] = &flight{fl.m, origin{}, now.Add(1 << 60), fl.number}
		delete(l.flights, seq)
	}
	if !fl.m.Reliable && !fl.m.WantsReply {
		o.bury(now, fl.m, f)
	}
	o.complete(fl.from, f)
}

func (o *Office) tickLinks(now time.Time) {
	for _, node := range sortedKeys(o.links) {
		l := o.links[node]
		for _, seq := range sortedKeys(l.flights) {
			if fl := l.flights[seq]; now.After(fl.until) {
				o.giveUp(now, node, l, seq, unsure(Timeout,
					"node %s did not answer in time; it is not known whether the message arrived", node))
			}
		}
		left := l.wait[:0]
		for _, w := range l.wait {
			if !now.After(w.m.Deadline) {
				left = append(left, w)
				continue
			}
			o.undelivered(now, w.m, w.from,
				Fail(Timeout, "%d messages to node %s were on their way and not answered: none more was sent",
					len(l.flights), node))
		}
		clear(l.wait[len(left):])
		l.wait = left
	}
}
