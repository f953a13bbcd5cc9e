package courier

import (
	"cmp"
	"context"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// Receive hands out messages of a process, at most most, waiting up to wait for the first.
func (c *Courier) Receive(ctx context.Context, pid kernel.PID, most int, wait time.Duration) ([]*post.Message, error) {
	most = min(cmp.Or(most, MaxReceive), MaxReceive)
	ready, err := c.office.Ready(pid)
	if err != nil {
		return nil, err
	}
	var late <-chan time.Time
	for {
		got, err := c.takeSome(pid, most)
		if len(got) > 0 || err != nil || wait <= 0 {
			return got, err
		}
		if late == nil {
			t := time.NewTimer(min(wait, MaxLongPoll))
			defer t.Stop()
			late = t.C
		}
		select {
		case _, open := <-ready:
			if !open {
				return nil, post.Fail(post.AgentExited, "process %s has ended", pid)
			}
		case <-late:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.ctx.Done():
			return nil, post.Fail(post.Unreachable, "this node stops")
		}
	}
}

// takeSome takes messages as far as an answer holds them, and asks the gate about tool calls, which
// the receiver is to execute.
func (c *Courier) takeSome(pid kernel.PID, most int) (out []*post.Message, err error) {
	bytes, timed := 0, false
	for len(out) < most && bytes < answerBytes {
		var got []*post.Message
		got, err = c.office.TakeSome(c.cfg.Wall(), pid, most-len(out), answerBytes-bytes)
		if err != nil || len(got) == 0 {
			break
		}
		left := got[:0]
		for _, m := range got {
			timed = timed || m.WantsReply || m.Reliable
			if no := c.handlerGate(pid, m); no != nil {
				c.office.Refuse(c.cfg.Wall(), pid, m, no)
				continue
			}
			left = append(left, m)
			bytes += m.Payload.Size()
		}
		if out == nil {
			out = left
		} else {
			out = append(out, left...)
		}
		if len(left) == len(got) {
			break // none was refused: this is what there is
		}
	}
	if timed {
		c.kick()
	}
	if len(out) > 0 {
		err = nil // what was taken is handed over; the next call says what is wrong
	}
	return out, err
}

// Ack says that a process has handled a message. A durable one is noted on disk first.
func (c *Courier) Ack(pid kernel.PID, id string) error {
	if m, ok := c.office.Holds(pid, id); ok && m.Durable {
		if err := c.journal.handle(id); err != nil {
			return post.Fail(post.InboxFull, "the acknowledgement could not be stored: %v; it is handed out again", err)
		}
	}
	return c.office.Ack(pid, id)
}

// Reply answers a request as the process that received it.
func (c *Courier) Reply(pid kernel.PID, id string, p post.Payload) error {
	if pid != kernel.KernelPID {
		if err := c.charge(pid, kernel.Messages); err != nil {
			return err
		}
	}
	return c.office.Reply(c.cfg.Wall(), pid, id, p)
}

// Replay sends dead letters again, as new attempts of the same messages. A request becomes a plain
// message: its caller waits no longer.
func (c *Courier) Replay(ctx context.Context, numbers []uint64, of post.Reason, most int) (sent, failed int) {
	for _, l := range c.office.TakeLetters(numbers, of, most) {
		m := *l.Message
		m.WantsReply, m.Deadline = false, time.Time{}
		from := m.From.PID
		if e, ok := c.table.Find(from); m.From.Node != c.cfg.Node || !ok || !e.State.Live() {
			from = kernel.KernelPID // who sent it is not here any longer
		}
		if _, err := c.Send(ctx, from, &m, false); err != nil {
			failed++
			continue
		}
		sent++
	}
	return sent, failed
}
