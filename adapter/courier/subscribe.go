package courier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/kernel/topic"
)

const (
	// MaxSubscriptions bounds the subscriptions of one process, maxReaders those of a node.
	MaxSubscriptions = 64
	maxReaders       = 4096
	// topicPage is how many messages of topics are read at once, and how many of a named
	// subscription are in an inbox and not acknowledged.
	topicPage = 64
	// positionEvery is how often a named subscription tells the mesh how far it was read, positionWait
	// bounds telling it, and readAgain is the pause after a failure.
	positionEvery = time.Second
	positionWait  = 10 * time.Second
	readAgain     = time.Second
)

// A TopicMessage is a message that a topic keeps.
type TopicMessage struct {
	Topic  string
	Height uint64
	At     time.Time
	From   string // who published it
	Text   string
	JSON   bool
}

// Topics are the topics of the mesh and of its companies, "" for the mesh.
type Topics interface {
	// Read returns what the topics of a pattern keep from a height on, at most most, in order.
	Read(company, pattern string, from uint64, most int) ([]TopicMessage, error)
	// Head returns the newest height. News is closed when there may be something new to read.
	Head() uint64
	News() <-chan struct{}
	// Subscribe makes or changes a named subscription, and returns up to which height it has read.
	// Acknowledge tells that it has read up to a height.
	Subscribe(ctx context.Context, company, name, pattern string, from *uint64) (uint64, error)
	Acknowledge(ctx context.Context, company, name string, height uint64) error
	// Holds reports whether no other node has subscribed by a name after this one. News is closed when one
	// does.
	Holds(company, name string) bool
}

// An InboxSubscription brings the messages of topics into the inbox of a process, in the order of their
// heights, and waits while the inbox is full. A named one is state of the mesh: its messages are to be
// acknowledged, and whoever subscribes by this name next goes on after the last one that was.
type InboxSubscription struct {
	ID       string     `json:"id"` // on its node
	Process  kernel.PID `json:"process"`
	Pattern  string     `json:"pattern"`
	Name     string     `json:"name"`
	Position uint64     `json:"position"` // height up to which it was read, or acknowledged
	Company  string     `json:"company"`
}

// reader is a subscription with the goroutine that reads for it.
type reader struct {
	mu   sync.Mutex // guards s.Position
	s    InboxSubscription
	stop context.CancelFunc
	done chan struct{}
}

func (r *reader) shown() InboxSubscription {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s
}

func (r *reader) at(height uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.Position = max(r.s.Position, height)
}

// Subscribe subscribes the inbox of a process to the topics of its company, or of the mesh, that a
// pattern selects: from a height, or from what is published next. A name makes it last.
func (c *Courier) Subscribe(ctx context.Context, pid kernel.PID, pattern, name string,
	from *uint64) (InboxSubscription, error) {
	e, ok := c.table.Find(pid)
	switch {
	case c.cfg.Topics == nil:
		return InboxSubscription{}, post.Fail(post.TargetNotFound, "this node has no topics")
	case pid == kernel.KernelPID:
		return InboxSubscription{},
			kernel.Errorf(kernel.BadRequest, "process: required: the node itself subscribes to nothing")
	case !ok || !c.table.Receives(pid):
		return InboxSubscription{},
			post.Fail(post.TargetNotFound, "process %s does not run on this node, or has no inbox", pid)
	}
	if err := topic.CheckPattern(pattern); err != nil {
		return InboxSubscription{}, kernel.Errorf(kernel.BadRequest, "pattern: %v", err)
	}
	if name != "" && topic.Check(name) != nil {
		return InboxSubscription{}, kernel.Errorf(kernel.BadRequest, "name: %v", topic.Check(name))
	}
	if err := e.Capabilities.MayPublish(pattern); err != nil {
		return InboxSubscription{}, post.Fail(post.NotAllowed, "%s", err)
	}
	if no := c.weigh(e, "ipc.send", ""); no != nil {
		return InboxSubscription{}, no
	}
	s := InboxSubscription{Process: pid, Pattern: pattern, Name: name, Company: e.Company, Position: c.cfg.Topics.Head()}
	if from != nil {
		s.Position = max(*from, 1) - 1
	}
	if name != "" {
		var err error
		if s.Position, err = c.cfg.Topics.Subscribe(ctx, e.Company, name, pattern, from); err != nil {
			return InboxSubscription{}, err
		}
	}
	r := &reader{s: s, done: make(chan struct{})}
	before, err := c.enrol(r)
	if err != nil {
		return InboxSubscription{}, err
	}
	if before != nil {
		<-before.done
	}
	if !c.table.Receives(pid) { // it ended meanwhile
		c.cancel(func(o *reader) bool { return o == r })
	}
	return r.shown(), nil
}

// enrol begins to read for a subscription, instead of the one of the same name, which it returns.
func (c *Courier) enrol(r *reader) (before *reader, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for _, o := range c.readers {
		if o.s.Process == r.s.Process {
			own++
		}
		if r.s.Name != "" && o.s.Name == r.s.Name && o.s.Company == r.s.Company {
			before = o
		}
	}
	if before == nil && (own >= MaxSubscriptions || len(c.readers) >= maxReaders) {
		return nil, post.Fail(post.LimitExceeded, "process %s has %d subscriptions and its node %d: end one first",
			r.s.Process, own, len(c.readers))
	}
	if before != nil {
		before.stop()
		c.readers = slices.DeleteFunc(c.readers, func(o *reader) bool { return o == before })
	}
	c.subs++
	r.s.ID = fmt.Sprintf("sub-%d", c.subs)
	ctx, stop := context.WithCancel(c.ctx)
	r.stop = stop
	c.readers = append(c.readers, r)
	c.wg.Go(func() {
		defer close(r.done)
		if before != nil {
			<-before.done
		}
		c.read(ctx, r)
		stop()
	})
	return before, nil
}

// cancel ends subscriptions.
func (c *Courier) cancel(which func(*reader) bool) (ended []*reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers = slices.DeleteFunc(c.readers, func(r *reader) bool {
		if !which(r) {
			return false
		}
		r.stop()
		ended = append(ended, r)
		return true
	})
	return ended
}

// Unsubscribe ends a subscription of a process by its ID, or of any process for the node itself. The
// position of a named one stays.
func (c *Courier) Unsubscribe(pid kernel.PID, id string) error {
	ended := c.cancel(func(r *reader) bool {
		return r.s.ID == id && (pid == kernel.KernelPID || r.s.Process == pid)
	})
	if len(ended) == 0 {
		return post.Fail(post.TargetNotFound, "subscription %.40q: process %s has none of this ID", id, pid)
	}
	<-ended[0].done
	return nil
}

// Subscriptions returns the subscriptions of a process, or of all for the node itself.
func (c *Courier) Subscriptions(pid kernel.PID) []InboxSubscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []InboxSubscription{}
	for _, r := range c.readers {
		if pid == kernel.KernelPID || r.s.Process == pid {
			out = append(out, r.shown())
		}
	}
	return out
}

// read brings messages into the inbox until the subscription ends.
func (c *Courier) read(ctx context.Context, r *reader) {
	after, open := r.shown().Position, handing{c: c, r: r}
	defer open.end()
	for ctx.Err() == nil {
		news := c.cfg.Topics.News()
		if r.s.Name != "" && !c.cfg.Topics.Holds(r.s.Company, r.s.Name) {
			c.lapse(r, post.Fail(post.NotAllowed, "subscription %s was deleted, or another node reads it now", r.s.Name))
			return
		}
		page, err := c.cfg.Topics.Read(r.s.Company, r.s.Pattern, after+1, topicPage-len(open.list))
		if err != nil {
			c.cfg.Logger.Debug("topics could not be read", "pattern", r.s.Pattern, "error", err)
			wait(ctx, readAgain, nil)
			continue
		}
		for _, m := range page {
			if err := c.bring(ctx, r, m, &open); err != nil {
				if ctx.Err() == nil {
					c.lapse(r, err)
				}
				return
			}
			after = m.Height
		}
		switch {
		case len(page) > 0 && len(open.list) < topicPage:
			open.settle(ctx, false)
		case len(open.list) > 0: // the oldest of them decides how far it was read
			open.settle(ctx, true)
		default:
			wait(ctx, time.Minute, news)
		}
	}
}

// wait waits until ctx ends, for a pause, or for news.
func wait(ctx context.Context, d time.Duration, news <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-news:
	}
}

// lapse ends a subscription whose process does not read.
func (c *Courier) lapse(r *reader, why error) {
	c.mu.Lock()
	c.readers = slices.DeleteFunc(c.readers, func(o *reader) bool { return o == r })
	c.mu.Unlock()
	if f, ok := errors.AsType[*post.Failure](why); ok && f.Reason == post.AgentExited {
		return
	}
	if c.cfg.Events != nil {
		pid := r.s.Process
		c.cfg.Events.Add(kernel.Event{Level: kernel.LevelWarn, PID: &pid, Kind: "ipc.unsubscribed",
			Message: fmt.Sprintf("its subscription to %s ended at height %d: %v", r.s.Pattern, r.shown().Position, why)})
	}
}

// bring brings one message into the inbox. Of a plain subscription it waits for room there.
func (c *Courier) bring(ctx context.Context, r *reader, t TopicMessage, open *handing) error {
	now := c.cfg.Wall()
	m := &post.Message{From: kernel.Address{Node: c.cfg.Node}, To: post.Target{Kind: post.ToTopic, Name: t.Topic},
		Payload: post.TextOf(t.Text), Company: r.s.Company, Height: t.Height, Publisher: t.From, Reader: r.s.Process,
		Deadline: now.Add(post.MaxWait)}
	if t.JSON {
		m.Payload = post.Payload{Kind: post.JSON, JSON: json.RawMessage(t.Text)}
	}
	if r.s.Name != "" {
		m.ID = fmt.Sprintf("topic-%s-%s-%015d", strings.ReplaceAll(r.s.Name, "/", "."), r.s.Process, t.Height)
		m.ID = m.ID[:min(len(m.ID), 200)]
		m.Reliable, m.Deadline = true, now.Add(post.MaxKeep) // what is due is sent in the order of the IDs
		c.office.Stamp(now, m)
		ticket, err := c.office.Keep(now, m)
		if err != nil {
			return err
		}
		open.list = append(open.list, handed{m.ID, t.Height, ticket})
		c.kick()
		poke(c.due)
		return nil
	}
	c.office.Stamp(now, m)
	ticket, err := c.office.Send(now, m, kernel.Address{Node: c.cfg.Node, PID: r.s.Process})
	if err == nil {
		err = c.await(ctx, ticket)
	}
	if err == nil {
		r.at(t.Height)
	}
	return err
}

// handed is a message of a named subscription that is not acknowledged.
type handed struct {
	id     string
	height uint64
	ticket *post.Ticket
}

// handing is what a named subscription has in the inbox, in order.
type handing struct {
	c    *Courier
	r    *reader
	list []handed
	told uint64 // the position that the mesh knows
}

// settle notes what was acknowledged, from the oldest on, and tells the mesh. With first it waits for
// the oldest, or for news.
func (h *handing) settle(ctx context.Context, first bool) {
	if first {
		t := time.NewTimer(positionEvery)
		defer t.Stop()
		news := h.c.cfg.Topics.News()
		if len(h.list) >= topicPage {
			news = nil
		}
		select {
		case <-h.list[0].ticket.Done():
		case <-news:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	height := uint64(0)
	for len(h.list) > 0 {
		select {
		case <-h.list[0].ticket.Done():
			if _, err := h.list[0].ticket.Result(); err != nil {
				return // its process has ended: the next reader gets it again
			}
			height = h.list[0].height
			h.list = h.list[1:]
			continue
		default:
		}
		break
	}
	if height == 0 {
		return
	}
	h.r.at(height)
	h.tell()
}

func (h *handing) tell() {
	position := h.r.shown().Position
	if h.r.s.Name == "" || position <= h.told {
		return
	}
	ctx, cancel := context.WithTimeout(h.c.ctx, positionWait)
	defer cancel()
	if err := h.c.cfg.Topics.Acknowledge(ctx, h.r.s.Company, h.r.s.Name, position); err != nil {
		h.c.cfg.Logger.Debug("the position of a subscription could not be told", "name", h.r.s.Name, "error", err)
		return
	}
	h.told = position
}

// end takes what was not acknowledged back.
func (h *handing) end() {
	h.settle(h.c.ctx, false)
	for _, m := range h.list {
		h.c.office.Withdraw(m.id)
	}
}
