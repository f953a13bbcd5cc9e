package courier

import (
	"context"
	"errors"
	"strings"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// A Sent says what became of a message.
type Sent struct {
	ID        string
	State     string // delivered, acknowledged, kept (it is tried until it is acknowledged), published, or signalled
	Receivers int    // processes of this node, of a message for many
	Nodes     int    // other nodes that it was sent to
}

// Send sends a message as a process of this node. It returns when the message is in the inbox of
// its receiver, or with a *post.Failure. A reliable one is kept, and with wait it returns when it
// was handled.
func (c *Courier) Send(ctx context.Context, from kernel.PID, m *post.Message, wait bool) (Sent, error) {
	now := c.cfg.Wall()
	e, err := c.depart(now, from, m)
	if err != nil {
		return Sent{ID: m.ID}, err
	}
	switch {
	case m.To.Kind == post.ToTopic:
		return c.publish(ctx, e, m)
	case m.To.Kind == post.ToBroadcast || m.To.Kind == post.ToGroup:
		return c.sendToMany(ctx, e, m)
	case m.Reliable:
		return c.keep(ctx, e, m, wait)
	}
	to, no := c.find(ctx, e, m)
	if no != nil {
		return Sent{ID: m.ID}, no
	}
	if m.Payload.Kind == post.OfSignal && m.Payload.Signal.Kind.Controls() {
		m.WantsReply = true
		if _, err := c.ask(ctx, m, kernel.Address{Node: to.Node}); err != nil {
			return Sent{ID: m.ID}, err
		}
		return Sent{ID: m.ID, State: "signalled"}, nil
	}
	t, err := c.office.Send(now, m, to)
	if err != nil {
		return Sent{ID: m.ID}, err
	}
	if err := c.await(ctx, t); err != nil {
		return Sent{ID: m.ID}, err
	}
	return Sent{ID: m.ID, State: "delivered", Receivers: 1}, nil
}

// await waits for a ticket, nil for one that is through.
func (c *Courier) await(ctx context.Context, t *post.Ticket) error {
	if t == nil {
		return nil
	}
	c.kick()
	select {
	case <-t.Done():
		_, err := t.Result()
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return post.Fail(post.Unreachable, "this node stops")
	}
}

// Request sends a request as a process of this node and returns the reply, or a *post.Failure.
func (c *Courier) Request(ctx context.Context, from kernel.PID, m *post.Message) (*post.Message, error) {
	m.WantsReply = true
	e, err := c.depart(c.cfg.Wall(), from, m)
	if err != nil {
		return nil, err
	}
	if s, all := c.service(m); all != nil && s.Method != "" {
		if strings.Contains(s.Name, "/") { // of an app: what a person or an agent does by the command app.call
			if no := c.weigh(e, "app.call", ""); no != nil {
				c.buryDenied(m, no)
				return nil, no
			}
		}
		return c.callService(ctx, e, m, s)
	}
	to, no := c.find(ctx, e, m)
	if no != nil {
		return nil, no
	}
	return c.ask(ctx, m, to)
}

func (c *Courier) ask(ctx context.Context, m *post.Message, to kernel.Address) (*post.Message, error) {
	t, err := c.office.Ask(c.cfg.Wall(), m, to)
	if err != nil {
		return nil, err
	}
	if err := c.await(ctx, t); err != nil {
		c.office.Abandon(m.ID)
		return nil, err
	}
	answer, err := t.Result()
	return answer, err
}

// keep puts a reliable message into the outbox, on disk first if it is durable.
func (c *Courier) keep(ctx context.Context, e kernel.Entry, m *post.Message, wait bool) (Sent, error) {
	if m.To.Kind == post.ToProcess {
		if _, no := c.find(ctx, e, m); no != nil {
			return Sent{ID: m.ID}, no
		}
	} else if e.Capabilities.Scope.Kind != kernel.ScopeAll {
		return Sent{ID: m.ID}, post.Fail(post.NotAllowed,
			"process %s may send to processes that it names by PID alone: its ipc_scope is %s", e.PID, e.Capabilities.Scope.Kind)
	}
	if m.Durable {
		if err := c.journal.keep(m); err != nil {
			return Sent{ID: m.ID}, post.Fail(post.InboxFull, "a durable message could not be stored: %v", err)
		}
	}
	t, err := c.office.Keep(c.cfg.Wall(), m)
	if err != nil {
		if m.Durable {
			c.journal.settle(m.ID)
		}
		return Sent{ID: m.ID}, err
	}
	c.kick()
	poke(c.due)
	if !wait {
		return Sent{ID: m.ID, State: "kept", Receivers: 1}, nil
	}
	if err := c.await(ctx, t); errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return Sent{ID: m.ID, State: "kept", Receivers: 1}, nil
	} else if err != nil {
		return Sent{ID: m.ID}, err
	}
	return Sent{ID: m.ID, State: "acknowledged", Receivers: 1}, nil
}

func (c *Courier) sendToMany(ctx context.Context, e kernel.Entry, m *post.Message) (Sent, error) {
	only, no := c.nodeOf(m.To)
	if no != nil {
		return Sent{ID: m.ID}, no
	}
	out := Sent{ID: m.ID, State: "delivered"}
	if only == "" || only == c.cfg.Node {
		for _, r := range c.members(m.To, m.Company) {
			if r.PID == e.PID || e.Capabilities.MaySend(e.Parent, r.PID) != nil {
				continue
			}
			if c.office.Offer(c.cfg.Wall(), m, r.PID) == nil {
				out.Receivers++
			}
		}
	}
	if e.Capabilities.Scope.Kind != kernel.ScopeAll {
		return out, nil // its scope is of this node
	}
	var tickets []*post.Ticket
	for _, node := range c.cfg.Nodes() {
		if only != "" && only != node {
			continue
		}
		t, err := c.office.Send(c.cfg.Wall(), m, kernel.Address{Node: node})
		if err != nil {
			return out, err
		}
		tickets = append(tickets, t)
	}
	for _, t := range tickets {
		if c.await(ctx, t) == nil {
			out.Nodes++
		}
	}
	if out.Receivers+out.Nodes == 0 {
		return out, post.Fail(post.TargetNotFound, "%s: no other process runs there", m.To)
	}
	return out, nil
}

func (c *Courier) publish(ctx context.Context, e kernel.Entry, m *post.Message) (Sent, error) {
	if err := e.Capabilities.MayPublish(m.To.Name); err != nil {
		return Sent{ID: m.ID}, post.Fail(post.NotAllowed, "%s", err)
	}
	if c.cfg.Publish == nil {
		return Sent{ID: m.ID}, post.Fail(post.TargetNotFound, "this node has no topics")
	}
	ctx, cancel := context.WithTimeout(ctx, publishWait)
	defer cancel()
	if err := c.cfg.Publish(ctx, m.Company, m.To.Name, m.Payload); err != nil {
		return Sent{ID: m.ID}, err
	}
	return Sent{ID: m.ID, State: "published"}, nil
}
