package post

import (
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// A pending is a reliable message that was not acknowledged.
type pending struct {
	m        *Message
	attempts int
	next     time.Time // of the next attempt, or of giving up
	to       kernel.Address
	why      *Failure // of the last attempt that failed
	ticket   *Ticket
}

// An Attempt is a reliable message that is to be sent now. To is where it was sent before,
// with the zero address for the first time: a repetition goes there as long as that process lives,
// so that it is recognized.
type Attempt struct {
	Message *Message
	To      kernel.Address
	Number  int
}

// Keep puts a reliable message into the outbox; [Office.Due] has it from now on. The ticket ends
// when the handler has acknowledged it, or when it is given up.
func (o *Office) Keep(now time.Time, m *Message) (*Ticket, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.outbox[m.ID]; p != nil {
		return p.ticket, nil
	}
	if len(o.outbox) >= OutboxMost || o.outboxBytes+m.Payload.Size() > OutboxBytes {
		return nil, Fail(InboxFull, "%d reliable messages of this node are not acknowledged, as many as may: try again",
			len(o.outbox))
	}
	o.figures.Sent++
	p := &pending{m: m, next: now, ticket: newTicket()}
	o.outbox[m.ID] = p
	o.outboxBytes += m.Payload.Size()
	return p.ticket, nil
}

// Due returns the reliable messages that are to be sent now, in order of their IDs. Whoever
// sends says so with [Office.Try].
func (o *Office) Due(now time.Time) (out []Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range sortedKeys(o.outbox) {
		if p := o.outbox[id]; !p.next.After(now) {
			out = append(out, Attempt{p.m, p.to, p.attempts + 1})
		}
	}
	return out
}

// Try sends a message of the outbox to a process, or notes why it can not be sent.
func (o *Office) Try(now time.Time, id string, to kernel.Address, no *Failure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.outbox[id]
	if p == nil {
		return
	}
	p.attempts++
	p.next = now.Add(retryAfter(p.attempts))
	if o.cfg.bugs.noBackoff {
		p.next = now.Add(time.Millisecond)
	}
	if p.attempts > 1 {
		o.figures.Retries++
	}
	if no != nil {
		p.why, p.to = no, kernel.Address{}
		return
	}
	p.to, p.why = to, nil
	m := *p.m
	m.Attempt, m.Deadline = p.attempts, p.next
	o.dispatch(now, &m, to, origin{outbox: id})
}

// back notes why an attempt failed. When the receiver is gone the next one looks for another;
// otherwise it may have the message, and gets the repetition too.
func (o *Office) back(id string, f *Failure) {
	p := o.outbox[id]
	if p == nil {
		return
	}
	if p.why = f; f.Reason == TargetNotFound || f.Reason == AgentExited || f.Reason == GovernanceDenied {
		p.to = kernel.Address{}
	}
}

// settled ends a reliable message: the handler acknowledged it, or f says why it is given up.
func (o *Office) settled(id string, f *Failure) {
	p := o.outbox[id]
	if p == nil {
		return
	}
	delete(o.outbox, id)
	o.outboxBytes -= p.m.Payload.Size()
	p.ticket.end(nil, f)
	if p.m.Durable {
		o.cfg.Settled(id)
	}
}

// Withdraw takes a reliable message back that is not acknowledged: it is not sent again.
func (o *Office) Withdraw(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settled(id, Fail(AgentExited, "message %s was taken back", id))
}

// tickOutbox gives up what was tried often enough.
func (o *Office) tickOutbox(now time.Time) {
	for _, id := range sortedKeys(o.outbox) {
		p := o.outbox[id]
		over := p.attempts > ReliableRetries && !now.Before(p.next)
		if p.m.Durable || p.m.Reader != 0 {
			over = now.After(p.m.Deadline)
		}
		if !over {
			continue
		}
		f := p.why
		if f == nil {
			f = Fail(Timeout, "not acknowledged after %d attempts", p.attempts)
		}
		o.bury(now, p.m, f)
		o.settled(id, f)
	}
}

// Handled tells the office what durable messages were handled in an earlier life of the node.
func (o *Office) Handled(ids []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		o.seen.keep(id, 0, true)
	}
}

// A Parcel is a reliable message that is not acknowledged.
type Parcel struct {
	Message  *Message
	Attempts int
	Next     time.Time
	To       kernel.Address
	Why      string // the last attempt failed
}

// Outbox returns the reliable messages of this node that are not acknowledged, by ID.
func (o *Office) Outbox() []Parcel {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]Parcel, 0, len(o.outbox))
	for _, id := range sortedKeys(o.outbox) {
		p := o.outbox[id]
		x := Parcel{Message: p.m, Attempts: p.attempts, Next: p.next, To: p.to}
		if p.why != nil {
			x.Why = p.why.Error()
		}
		out = append(out, x)
	}
	return out
}
