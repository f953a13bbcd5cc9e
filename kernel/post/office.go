package post

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// A Config is what an office needs. All are required but Many, Admit and Settled.
type Config struct {
	Node  string // this node's ID
	Epoch uint64 // larger at each start of the node: IDs are never used twice, and frames of an earlier life are known
	// Alive reports whether a process of this node may receive, Many which processes of this node
	// a message of another is for that is for many, and Admit why a process of this node may not
	// have a message of another, nil if it may. Out takes a frame for another node, and Settled a
	// durable message that needs no more attempts. They are called while the office is locked: they
	// neither wait nor call it.
	Alive   func(kernel.PID) bool
	Many    func(*Message) []kernel.PID
	Admit   func(*Message, kernel.PID) *Failure
	Out     func(to string, f Frame)
	Settled func(id string)

	bugs bugs
	// smaller bounds for tests: messages of an inbox, and on their way to a node
	inboxMessages, linkWindow int
}

// bugs are planted by tests, whose checks must find them.
type bugs struct {
	noDeduplication bool
	loseCredits     bool
	noBackoff       bool
}

// An Office is the post of one node. It is safe for concurrent use.
type Office struct {
	cfg Config

	next atomic.Uint64 // of IDs

	mu          sync.Mutex // guards what follows
	held        int        // bytes in inboxes, and waiting for them
	inboxes     map[kernel.PID]*inbox
	links       map[string]*link
	calls       map[string]*call
	outbox      map[string]*pending
	outboxBytes int
	seen        seen
	letters     letters
	figures     Figures
}

// New returns an office without messages.
func New(c Config) *Office {
	if c.Settled == nil {
		c.Settled = func(string) {}
	}
	c.inboxMessages, c.linkWindow = cmp.Or(c.inboxMessages, InboxMessages), cmp.Or(c.linkWindow, LinkWindow)
	return &Office{cfg: c, inboxes: map[kernel.PID]*inbox{}, links: map[string]*link{}, calls: map[string]*call{},
		outbox: map[string]*pending{},
		seen:   seen{byID: map[string]*seenEntry{}}}
}

// A Ticket is what a sender waits for.
type Ticket struct {
	done   chan struct{}
	answer *Message
	err    error
}

// Done is closed when it is known what became of the message.
func (t *Ticket) Done() <-chan struct{} { return t.done }

// Result is the reply to a request, or why there is none; of other messages nil, or why it
// was not delivered. It is read after Done.
func (t *Ticket) Result() (*Message, error) { return t.answer, t.err }

func newTicket() *Ticket { return &Ticket{done: make(chan struct{})} }

func (t *Ticket) end(answer *Message, f *Failure) {
	select {
	case <-t.done:
		return
	default:
	}
	t.answer = answer
	if f != nil {
		t.err = f
	}
	close(t.done)
}

// Stamp gives a message its ID, its time and, where it has none, its deadline.
func (o *Office) Stamp(now time.Time, m *Message) {
	if m.ID == "" {
		n := o.next.Add(1)
		b := make([]byte, 0, 48)
		b = append(append(append(b, "ipc-"...), o.cfg.Node[:min(12, len(o.cfg.Node))]...), '-')
		b = append(strconv.AppendUint(b, o.cfg.Epoch, 36), '-')
		m.ID = string(strconv.AppendUint(b, n, 10))
	}
	m.At = now
	m.Reliable = m.Reliable || m.Durable
	if m.Deadline.IsZero() {
		switch {
		case m.Durable:
			m.Deadline = now.Add(DefaultKeep)
		case m.Reliable:
			m.Deadline = now.Add(reliableFor)
		default:
			m.Deadline = now.Add(DefaultWait)
		}
	}
}

// Send sends a plain message to a process. A nil ticket means that it is in the inbox already.
func (o *Office) Send(now time.Time, m *Message, to kernel.Address) (*Ticket, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.figures.Sent++
	if to.Node == o.cfg.Node && !m.WantsReply && !m.Reliable {
		if b := o.inbox(to.PID); b != nil && len(b.wait) == 0 && o.fits(b, m) {
			o.held += m.Payload.Size()
			b.push(m)
			return nil, nil
		}
	}
	t := newTicket()
	o.dispatch(now, m, to, origin{ticket: t})
	return t, nil
}

// Offer is Send for one of many receivers: it does not wait for a credit here.
func (o *Office) Offer(now time.Time, m *Message, pid kernel.PID) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.figures.Sent++
	return o.offer(now, m, pid)
}

func (o *Office) offer(now time.Time, m *Message, pid kernel.PID) error {
	b := o.inbox(pid)
	switch {
	case b == nil:
		return Fail(TargetNotFound, "process %s does not run on node %s", pid, o.cfg.Node)
	case len(b.wait) > 0 || !o.fits(b, m) || o.held+m.Payload.Size() > NodeBytes:
		f := Fail(InboxFull, "process %s has %d messages to read: a message for many does not wait for it", pid, b.used)
		o.bury(now, m, f)
		return f
	}
	o.held += m.Payload.Size()
	b.push(m)
	return nil
}

func (o *Office) dispatch(now time.Time, m *Message, to kernel.Address, from origin) {
	if to.Node == o.cfg.Node || to.Node == "" {
		o.put(now, m, to.PID, from)
		return
	}
	o.launch(now, m, to, from)
}

// complete tells the origin of a message that it is in the inbox, or why not.
func (o *Office) complete(from origin, f *Failure) {
	switch {
	case from.ticket != nil:
		from.ticket.end(nil, f)
	case from.node != "":
		a := Frame{Kind: FrameAnswer, Asked: from.epoch, Seq: from.seq}
		if f != nil {
			a.Reason, a.Detail = f.Reason, f.Detail
		}
		o.out(from.node, a)
	case from.outbox != "":
		if f != nil {
			o.back(from.outbox, f)
		}
	}
}

// undelivered ends the way of a message: its sender is told, and it is a dead letter here unless
// it is tried again.
func (o *Office) undelivered(now time.Time, m *Message, from origin, f *Failure) {
	if !m.Reliable {
		o.bury(now, m, f)
	}
	if m.WantsReply && from.ticket != nil {
		o.endCall(m.ID, nil, f)
	}
	o.complete(from, f)
}

// bury makes a message a dead letter.
func (o *Office) bury(at time.Time, m *Message, f *Failure) {
	if m.Quiet {
		return
	}
	o.figures.Dropped++
	if o.figures.Dead == nil {
		o.figures.Dead = map[Reason]uint64{}
	}
	o.figures.Dead[f.Reason]++
	o.letters.add(Letter{At: at, Reason: f.Reason, Detail: f.Detail, Message: m})
}

// Bury makes a message that never came on its way a dead letter: no target, a gate that says no.
func (o *Office) Bury(now time.Time, m *Message, f *Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bury(now, m, f)
}

// A call is a request that waits for its reply.
type call struct {
	m      *Message
	by     kernel.PID
	to     kernel.Address
	ticket *Ticket
}

// Ask sends a request; the ticket has the reply.
func (o *Office) Ask(now time.Time, m *Message, to kernel.Address) (*Ticket, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.calls) >= CallsMost {
		return nil, Fail(InboxFull, "%d requests of this node wait for their replies, as many as may", len(o.calls))
	}
	o.figures.Sent++
	o.figures.Requests++
	c := &call{m: m, by: m.From.PID, to: to, ticket: newTicket()}
	o.calls[m.ID] = c
	if to.Node == o.cfg.Node {
		if b := o.inbox(to.PID); b != nil && len(b.wait) == 0 && o.fits(b, m) {
			o.held += m.Payload.Size()
			b.push(m)
			return c.ticket, nil
		}
	}
	o.dispatch(now, m, to, origin{ticket: newTicket()})
	return c.ticket, nil
}

// Abandon says that nobody waits for the reply to a request any longer. A reply that comes is a dead
// letter.
func (o *Office) Abandon(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endCall(id, nil, unsure(Timeout, "its caller waits no longer"))
}

func (o *Office) endCall(id string, answer *Message, f *Failure) bool {
	c := o.calls[id]
	if c == nil {
		return false
	}
	delete(o.calls, id)
	c.ticket.end(answer, f)
	return true
}

// failCaller tells whoever waits for the reply to a request that there will be none.
func (o *Office) failCaller(m *Message, f *Failure) {
	if m.From.Node == o.cfg.Node {
		o.endCall(m.ID, nil, f)
		return
	}
	o.out(m.From.Node, Frame{Kind: FrameReply, ID: m.ID, Reason: f.Reason, Detail: f.Detail})
}

// Reply answers a request that a process has received.
func (o *Office) Reply(now time.Time, pid kernel.PID, id string, p Payload) error {
	if err := p.Validate(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var asked *Message
	if b := o.inboxes[pid]; b != nil && b.taken[id] != nil && b.taken[id].m.WantsReply {
		asked, _ = o.finish(pid, id) // a reliable message stays to be acknowledged
	}
	if asked == nil {
		return Fail(NotOpen,
			"request %s is not open: it was answered, its caller waits no longer, or process %s has not received it", id, pid)
	}
	answer := &Message{ID: id + "-reply", From: kernel.Address{Node: o.cfg.Node, PID: pid}, To: Process(asked.From),
		Payload: p, At: now, Deadline: asked.Deadline,
		Correlation: id, Trace: asked.Trace}
	if now.After(asked.Deadline) {
		f := Fail(Timeout, "the caller of request %s waited until %s", id, asked.Deadline.UTC().Format(time.RFC3339Nano))
		o.bury(now, answer, f)
		return f
	}
	o.figures.Sent++
	o.figures.Replies++
	if asked.From.Node == o.cfg.Node {
		o.answered(now, answer)
		return nil
	}
	o.out(asked.From.Node, Frame{Kind: FrameReply, ID: id, Message: answer})
	return nil
}

// answered gives a reply to who asked.
func (o *Office) answered(now time.Time, answer *Message) {
	if o.endCall(answer.Correlation, answer, nil) {
		o.figures.delivered(now.Sub(answer.At))
		return
	}
	o.bury(now, answer, Fail(Timeout, "nobody waits for the reply to request %s any longer", answer.Correlation))
}

// Tick ends what waits for longer than it may. It is to be called every 100 ms or so.
func (o *Office) Tick(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, pid := range o.waited(now) {
		b := o.inboxes[pid]
		left := b.wait[:0]
		for _, w := range b.wait {
			if !now.After(w.m.Deadline) {
				left = append(left, w)
				continue
			}
			o.held -= w.m.Payload.Size()
			o.seen.forget(w.m.ID)
			o.undelivered(now, w.m, w.from, Fail(InboxFull, "process %s did not make room in time: it has %d messages to read",
				pid, b.used))
		}
		clear(b.wait[len(left):])
		b.wait = left
		o.admit(b)
		for _, id := range sortedKeys(b.taken) {
			if h := b.taken[id]; now.After(h.until) {
				if h.m.Reliable {
					o.seen.forget(id)
				}
				o.finish(pid, id)
			}
		}
	}
	o.tickLinks(now)
	var late []string
	for id, c := range o.calls {
		if now.After(c.m.Deadline) {
			late = append(late, id)
		}
	}
	slices.Sort(late)
	for _, id := range late {
		c := o.calls[id]
		f := unsure(Timeout, "no reply within %s; it is not known whether process %s has handled the request",
			c.m.Deadline.Sub(c.m.At), c.to)
		o.bury(now, c.m, f)
		o.endCall(id, nil, f)
	}
	o.tickOutbox(now)
}

// waited returns the inboxes in which something has waited for too long, or waits although there is
// room.
func (o *Office) waited(now time.Time) (out []kernel.PID) {
	for pid, b := range o.inboxes {
		late := len(b.wait) > 0 && o.fits(b, b.wait[0].m)
		for _, w := range b.wait {
			late = late || now.After(w.m.Deadline)
		}
		for _, h := range b.taken {
			late = late || now.After(h.until)
		}
		if late {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// Idle reports whether nothing has a deadline, so that no Tick is needed.
func (o *Office) Idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.calls) > 0 || len(o.outbox) > 0 {
		return false
	}
	for _, l := range o.links {
		if len(l.flights) > 0 || len(l.wait) > 0 {
			return false
		}
	}
	for _, b := range o.inboxes {
		if len(b.wait) > 0 || len(b.taken) > 0 {
			return false
		}
	}
	return true
}

// DeadLetters returns the dead letters above a number, the oldest first, at most most.
func (o *Office) DeadLetters(after uint64, most int) []Letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	from, _ := slices.BinarySearchFunc(o.letters.list, after+1,
		func(l Letter, n uint64) int { return cmp.Compare(l.Number, n) })
	list := o.letters.list[from:]
	return slices.Clone(list[:min(most, len(list))])
}

// TakeLetters removes dead letters and returns them: those with the numbers, or at most most of a
// reason, or of all for "".
func (o *Office) TakeLetters(numbers []uint64, of Reason, most int) []Letter {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	return o.letters.take(func(l Letter) bool {
		if len(numbers) > 0 {
			return slices.Contains(numbers, l.Number)
		}
		if n >= most || of != "" && of != l.Reason {
			return false
		}
		n++
		return true
	})
}

// A Standing is how the inbox of a process stands.
type Standing struct {
	PID     kernel.PID
	Queued  int // to be read
	Taken   int // read, and not answered or acknowledged
	Waiting int // senders that wait for a credit
	Credits int // messages for which there is room
	Bytes   int
}

// Inboxes returns how the inboxes stand that were ever used, by PID.
func (o *Office) Inboxes() []Standing {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]Standing, 0, len(o.inboxes))
	for _, pid := range sortedKeys(o.inboxes) {
		b := o.inboxes[pid]
		out = append(out, Standing{pid, b.len(), len(b.taken), len(b.wait), max(0, o.cfg.inboxMessages-b.used), b.bytes})
	}
	return out
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
