package post

import (
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// An origin is whom an office tells what became of a message: a waiting sender here, another
// node, or the outbox of this node.
type origin struct {
	ticket *Ticket
	node   string // with epoch and seq: a flight of that node
	epoch  uint64
	seq    uint64
	outbox string // ID of a reliable message
}

// A waiter is a message that waits for a credit.
type waiter struct {
	m    *Message
	pid  kernel.PID // at the other node, of waiters of a link
	from origin
}

// An inbox holds what one process has not read. Its credits are what it has room for: a message
// takes one when it enters, and gives it back when it was read; a request when it was answered,
// and a reliable message when it was acknowledged.
type inbox struct {
	pid   kernel.PID
	queue []*Message // from head on
	head  int
	taken map[string]*handed
	used  int // credits: queue and taken
	bytes int
	wait  []waiter
	ready chan struct{} // holds one token while there is something to read; closed at the end; nil: nobody asked
	wake  func()        // see Office.Attend
}

// handed is a request or a reliable message that was read and is not finished.
type handed struct {
	m     *Message
	until time.Time
	again time.Time // from then on a repetition of a reliable one is handed out too
}

func (b *inbox) len() int { return len(b.queue) - b.head }

func (o *Office) fits(b *inbox, m *Message) bool {
	return b.used < o.cfg.inboxMessages && b.bytes+m.Payload.Size() <= InboxBytes
}

func (b *inbox) push(m *Message) {
	if b.head > 64 && b.head*2 > len(b.queue) {
		n := copy(b.queue, b.queue[b.head:])
		clear(b.queue[n:])
		b.queue, b.head = b.queue[:n], 0
	}
	b.queue = append(b.queue, m)
	b.used++
	b.bytes += m.Payload.Size()
	b.signal()
}

func (b *inbox) signal() {
	if b.wake != nil {
		b.wake()
	}
	if b.ready == nil {
		return
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *inbox) pop() *Message {
	m := b.queue[b.head]
	b.queue[b.head] = nil
	if b.head++; b.head == len(b.queue) {
		b.queue, b.head = b.queue[:0], 0
	}
	return m
}

// inbox returns the inbox of a living process, nil for others.
func (o *Office) inbox(pid kernel.PID) *inbox {
	if b := o.inboxes[pid]; b != nil {
		return b
	}
	if !o.cfg.Alive(pid) {
		return nil
	}
	b := &inbox{pid: pid}
	o.inboxes[pid] = b
	return b
}

// put brings a message into the inbox of a process here, or lets it wait for a credit.
func (o *Office) put(now time.Time, m *Message, pid kernel.PID, from origin) {
	if m.Reliable && !o.cfg.bugs.noDeduplication && o.repeated(now, m) {
		o.complete(from, nil)
		return
	}
	if from.node != "" && o.cfg.Admit != nil {
		if no := o.cfg.Admit(m, pid); no != nil {
			o.undelivered(now, m, from, no)
			return
		}
	}
	b := o.inbox(pid)
	switch {
	case b == nil:
		o.undelivered(now, m, from, Fail(TargetNotFound, "process %s does not run on node %s", pid, o.cfg.Node))
	case len(b.wait) == 0 && o.fits(b, m):
		o.held += m.Payload.Size()
		o.enter(b, m, from)
	case o.held+m.Payload.Size() > NodeBytes:
		o.undelivered(now, m, from, Fail(InboxFull, "node %s holds %d bytes of messages, as many as it may",
			o.cfg.Node, o.held))
	case len(b.wait) >= InboxWaiters:
		o.undelivered(now, m, from, Fail(InboxFull, "process %s has %d messages and %d wait for room: it must read", pid,
			b.used, len(b.wait)))
	default:
		o.held += m.Payload.Size()
		b.wait = append(b.wait, waiter{m: m, pid: pid, from: from})
		o.remember(m, pid, false)
	}
}

func (o *Office) enter(b *inbox, m *Message, from origin) {
	b.push(m)
	o.remember(m, b.pid, false)
	o.complete(from, nil)
}

// credit gives credits of an inbox back, and lets in who waits for them.
func (o *Office) credit(b *inbox, m *Message) {
	b.used--
	b.bytes -= m.Payload.Size()
	o.held -= m.Payload.Size()
	if b.used <= o.cfg.inboxMessages/refillPart {
		o.admit(b)
	}
}

// admit lets in who waits for credits of an inbox, as far as there are any.
func (o *Office) admit(b *inbox) {
	for len(b.wait) > 0 && o.fits(b, b.wait[0].m) {
		w := b.wait[0]
		b.wait[0] = waiter{}
		b.wait = b.wait[1:]
		o.enter(b, w.m, w.from)
	}
}

// repeated reports whether a reliable message was here before. One that was handled is
// reported again, one that was handed out and not acknowledged in time is handed out again.
func (o *Office) repeated(now time.Time, m *Message) bool {
	s := o.seen.find(m.ID)
	if s == nil {
		return false
	}
	o.figures.Duplicates++
	if s.done {
		o.report(m)
		return true
	}
	b := o.inboxes[s.pid]
	if b == nil {
		return false // its receiver has ended
	}
	if h, ok := b.taken[m.ID]; ok && m.Attempt > h.m.Attempt && !now.Before(h.again) {
		delete(b.taken, m.ID) // it keeps its credit
		b.queue = append(b.queue, m)
		b.signal()
	}
	return true
}

func (o *Office) remember(m *Message, pid kernel.PID, done bool) {
	if m.Reliable && !o.cfg.bugs.noDeduplication {
		o.seen.keep(m.ID, pid, done)
	}
}

// Take hands out up to most messages of a process, the oldest first. A request is then open until
// it is answered or its deadline has passed; a reliable message until it is acknowledged.
func (o *Office) Take(now time.Time, pid kernel.PID, most int) ([]*Message, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.inbox(pid)
	if b == nil {
		return nil, Fail(TargetNotFound, "process %s does not run on node %s", pid, o.cfg.Node)
	}
	return o.take(now, b, nil, most), nil
}

// TakeSome is Take up to so many bytes of payloads; one message is always handed out.
func (o *Office) TakeSome(now time.Time, pid kernel.PID, most, bytes int) ([]*Message, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.inbox(pid)
	if b == nil {
		return nil, Fail(TargetNotFound, "process %s does not run on node %s", pid, o.cfg.Node)
	}
	n, size := 0, 0
	for _, m := range b.queue[b.head:] {
		if n == most || n > 0 && size >= bytes {
			break
		}
		size += m.Payload.Size()
		n++
	}
	if n == 0 {
		return nil, nil
	}
	return o.take(now, b, make([]*Message, 0, n), n), nil
}

// TakeInto is Take for a reader that brings its own room.
func (o *Office) TakeInto(now time.Time, pid kernel.PID, room []*Message) ([]*Message, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.inbox(pid)
	if b == nil {
		return nil, Fail(TargetNotFound, "process %s does not run on node %s", pid, o.cfg.Node)
	}
	return o.take(now, b, room[:0], cap(room)), nil
}

func (o *Office) take(now time.Time, b *inbox, out []*Message, most int) []*Message {
	for len(out) < most && b.len() > 0 {
		m := b.pop()
		if m.WantsReply && now.After(m.Deadline) {
			o.credit(b, m)
			o.bury(now, m, Fail(Timeout, "process %s read the request when its caller waited no longer", b.pid))
			continue
		}
		o.figures.delivered(now.Sub(m.At))
		if m.WantsReply || m.Reliable {
			if b.taken == nil {
				b.taken = map[string]*handed{}
			}
			until := now.Add(takenFor)
			if m.WantsReply {
				until = m.Deadline
			}
			b.taken[m.ID] = &handed{m, until, now.Add(HandlerTime)}
		} else {
			o.credit(b, m)
		}
		out = append(out, m)
	}
	if b.len() > 0 {
		b.signal()
	} else {
		o.admit(b)
	}
	return out
}

// Ready has a token while a process has something to read. It is closed when the process ends.
func (o *Office) Ready(pid kernel.PID) (<-chan struct{}, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.inbox(pid)
	if b == nil {
		return nil, Fail(TargetNotFound, "process %s does not run on node %s", pid, o.cfg.Node)
	}
	if b.ready == nil {
		b.ready = make(chan struct{}, 1)
		if b.len() > 0 {
			b.ready <- struct{}{}
		}
	}
	return b.ready, nil
}

// Attend has wake called whenever a process may have something to read, for one that does not ask.
// wake is called while the office is locked: it neither waits nor calls it.
func (o *Office) Attend(pid kernel.PID, wake func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.inbox(pid)
	if b == nil {
		return Fail(TargetNotFound, "process %s does not run on node %s", pid, o.cfg.Node)
	}
	if b.wake = wake; b.len() > 0 {
		wake()
	}
	return nil
}

// finish takes a message that was handed out back from its reader.
func (o *Office) finish(pid kernel.PID, id string) (*Message, bool) {
	b := o.inboxes[pid]
	if b == nil || b.taken[id] == nil {
		return nil, false
	}
	m := b.taken[id].m
	if delete(b.taken, id); b.wake != nil && len(b.taken) == 0 {
		b.taken = nil // it may rest for long
	}
	o.credit(b, m)
	return m, true
}

// Holds returns a message that was handed out to a process and is not finished.
func (o *Office) Holds(pid kernel.PID, id string) (*Message, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.inboxes[pid]; b != nil && b.taken[id] != nil {
		return b.taken[id].m, true
	}
	return nil, false
}

// Ack says that a process has handled a reliable message. It may be said again.
func (o *Office) Ack(pid kernel.PID, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	m, ok := o.finish(pid, id)
	switch {
	case ok && m.Reliable:
		o.remember(m, pid, true)
		o.figures.Acknowledged++
		o.report(m)
		return nil
	case ok: // a request that is not answered: its caller waits until its deadline
		return nil
	}
	if s := o.seen.find(id); s != nil && s.done {
		return nil
	}
	if s := o.seen.find(id); s != nil {
		if b := o.inboxes[s.pid]; b != nil && s.pid == pid { // it was put back for another attempt
			for i := b.head; i < len(b.queue); i++ {
				if m := b.queue[i]; m.ID == id {
					b.queue = slices.Delete(b.queue, i, i+1)
					o.credit(b, m)
					o.remember(m, pid, true)
					o.figures.Acknowledged++
					o.report(m)
					return nil
				}
			}
		}
	}
	return Fail(NotOpen,
		"message %s waits for no acknowledgement of process %s: it was not received, or too long ago", id, pid)
}

// report tells the node of a reliable message that it was handled.
func (o *Office) report(m *Message) {
	if m.From.Node == o.cfg.Node {
		o.settled(m.ID, nil)
		return
	}
	o.out(m.From.Node, Frame{Kind: FrameHandled, ID: m.ID})
}

// returned tells the node of a reliable message that it lost its receiver.
func (o *Office) returned(m *Message, why *Failure) {
	if m.From.Node == o.cfg.Node {
		o.back(m.ID, why)
		return
	}
	o.out(m.From.Node, Frame{Kind: FrameBack, ID: m.ID, Reason: why.Reason, Detail: why.Detail})
}

// Refuse takes back a request or a reliable message that was handed out, because a gate says
// that this process may not do what it says. A plain one is a dead letter all the same.
func (o *Office) Refuse(now time.Time, pid kernel.PID, m *Message, f *Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finish(pid, m.ID)
	switch {
	case m.Reliable:
		o.seen.forget(m.ID)
		o.returned(m, f)
		return
	case m.WantsReply:
		o.failCaller(m, f)
	}
	o.bury(now, m, f)
}

// Exited forgets a process that has ended. What it had not read or not answered is dead; reliable
// messages are tried again, for whoever replaces it.
func (o *Office) Exited(now time.Time, pid kernel.PID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range sortedKeys(o.calls) {
		if c := o.calls[id]; c.by == pid {
			delete(o.calls, id)
			c.ticket.end(nil, Fail(AgentExited, "process %s, which asked, has ended", pid))
		}
	}
	b := o.inboxes[pid]
	if b == nil {
		return
	}
	delete(o.inboxes, pid)
	why := Fail(AgentExited, "process %s of node %s ended before it handled the message", pid, o.cfg.Node)
	lose := func(m *Message) {
		o.held -= m.Payload.Size()
		if m.Reliable {
			o.seen.forget(m.ID)
			o.returned(m, why)
			return
		}
		o.bury(now, m, why)
		if m.WantsReply {
			o.failCaller(m, why)
		}
	}
	for _, m := range b.queue[b.head:] {
		lose(m)
	}
	for _, id := range sortedKeys(b.taken) {
		lose(b.taken[id].m)
	}
	for _, w := range b.wait {
		lose(w.m)
		o.complete(w.from, why)
	}
	if b.ready != nil {
		close(b.ready)
	}
}

// An entry of seen says where a reliable message is that came here.
type seenEntry struct {
	pid  kernel.PID
	done bool // it was handled
}

// seen remembers the newest IDs of reliable messages.
type seen struct {
	byID  map[string]*seenEntry
	order []string
}

func (s *seen) find(id string) *seenEntry { return s.byID[id] }
func (s *seen) forget(id string) {
	if e := s.byID[id]; e != nil && !e.done {
		delete(s.byID, id)
	}
}

func (s *seen) keep(id string, pid kernel.PID, done bool) {
	if e := s.byID[id]; e != nil {
		e.pid, e.done = pid, e.done || done
		return
	}
	for len(s.order) >= SeenMost {
		delete(s.byID, s.order[0])
		s.order = s.order[1:]
	}
	s.byID[id] = &seenEntry{pid, done}
	s.order = append(s.order, id)
}
