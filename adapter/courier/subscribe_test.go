package courier

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	names "github.com/selvage-mesh/selvage/kernel/topic"
	"github.com/selvage-mesh/selvage/kit"
)

// shelf is topics in memory.
type shelf struct {
	bell Bell

	mu        sync.Mutex
	all       []TopicMessage
	positions map[string]uint64
}

func (s *shelf) publish(topic, text string) {
	s.mu.Lock()
	s.all = append(s.all, TopicMessage{Topic: topic, Height: uint64(len(s.all) + 1), Text: text})
	s.mu.Unlock()
	s.bell.Ring()
}

func (s *shelf) Read(_, pattern string, from uint64, most int) (out []TopicMessage, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.all {
		if m.Height >= from && len(out) < most && names.Match(pattern, m.Topic) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (s *shelf) Head() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(len(s.all))
}

func (s *shelf) News() <-chan struct{} { return s.bell.Next() }

func (s *shelf) Subscribe(_ context.Context, _, name, _ string, from *uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from != nil {
		s.positions[name] = max(*from, 1) - 1
	}
	return s.positions[name], nil
}

func (s *shelf) Acknowledge(_ context.Context, _, name string, height uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.positions[name] = max(s.positions[name], height)
	return nil
}

func (s *shelf) Holds(string, string) bool { return true }

// A bench is a shelf as one of several nodes sees it.
type bench struct {
	*shelf
	node    string
	holders map[string]string // by name, under the lock of the shelf
}

func (b bench) Subscribe(ctx context.Context, company, name, pattern string, from *uint64) (uint64, error) {
	b.mu.Lock()
	b.holders[name] = b.node
	b.mu.Unlock()
	b.bell.Ring()
	return b.shelf.Subscribe(ctx, company, name, pattern, from)
}

func (b bench) Holds(_, name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.holders[name] == b.node
}

// A name is read by one process: a subscription on another node takes it over, with what was not
// acknowledged, and the first one gets nothing more.
func TestASubscriptionIsTakenOverByAnotherNode(t *testing.T) {
	t.Parallel()
	w := newTown(t, "n1", "n2")
	s, holders := &shelf{positions: map[string]uint64{}}, map[string]string{}
	for _, n := range []string{"n1", "n2"} {
		w.courier(n).cfg.Topics = bench{s, n, holders}
	}
	c, there := w.courier("n1"), w.courier("n2")
	one, two := w.process(t, "n1", "one"), w.process(t, "n2", "two")
	if _, err := c.Subscribe(t.Context(), one, "a", "jobs", nil); err != nil {
		t.Fatal(err)
	}
	s.publish("a", "first")
	s.publish("a", "second")
	first := receive(t, c, one)
	if err := c.Ack(one, first.ID); err != nil {
		t.Fatal(err)
	}
	kit.Wait{Most: time.Minute, Every: 10 * time.Millisecond}.Until(t, "the first is acknowledged", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.positions["jobs"] == 1
	})
	receive(t, c, one) // the second, and never acknowledged
	if _, err := there.Subscribe(t.Context(), two, "a", "jobs", nil); err != nil {
		t.Fatal(err)
	}
	kit.Wait{Most: time.Minute, Every: 10 * time.Millisecond}.Until(t, "the first node reads no more",
		func() bool { return len(c.Subscriptions(one)) == 0 })
	s.publish("a", "third")
	for _, want := range []string{"second", "third"} {
		if m := receive(t, there, two); m.Payload.Text != want {
			t.Errorf("the other node got %q, want %q", m.Payload.Text, want)
		}
	}
	none(t, c, one)
}

// A subscriber that does not read is waited for: its inbox holds what it has room for, nothing is
// lost, and nothing more is read from the topics. A named one has at most a page in its inbox.
func TestASubscriberThatDoesNotReadIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newTown(t, "n1")
	c, s := w.courier("n1"), &shelf{positions: map[string]uint64{}}
	c.cfg.Topics = s
	const many = 3 * post.InboxMessages
	for i := range many {
		s.publish("a.b", fmt.Sprint(i))
	}
	plain, named := w.process(t, "n1", "plain"), w.process(t, "n1", "named")
	first := uint64(1)
	sub, err := c.Subscribe(t.Context(), plain, "a.*", "", &first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Subscribe(t.Context(), named, "**", "last", &first); err != nil {
		t.Fatal(err)
	}
	standing := func(pid kernel.PID) post.Standing {
		for _, s := range c.Office().Inboxes() {
			if s.PID == pid {
				return s
			}
		}
		return post.Standing{}
	}
	kit.Wait{Most: time.Minute, Every: 5 * time.Millisecond}.Until(t, "the inboxes are as full as they may be",
		func() bool {
			return standing(plain).Queued == post.InboxMessages && standing(named).Queued == topicPage
		})
	if n := len(c.Office().Outbox()); n != topicPage {
		t.Errorf("%d messages of the named one are sent, want %d", n, topicPage)
	}
	read := func(pid kernel.PID, done func(*post.Message)) {
		for i := 0; i < many; {
			all, err := c.Receive(t.Context(), pid, 100, 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range all {
				if m.Payload.Text != fmt.Sprint(i) || m.Height != uint64(i+1) {
					t.Fatalf("message %d says %q at height %d", i, m.Payload.Text, m.Height)
				}
				i++
				done(m)
			}
		}
	}
	read(plain, func(*post.Message) {})
	read(named, func(m *post.Message) {
		if err := c.Ack(named, m.ID); err != nil {
			t.Error(err)
		}
	})
	kit.Wait{Most: time.Minute, Every: 5 * time.Millisecond}.Until(t, "the position is told", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.positions["last"] == many
	})
	if err := c.Unsubscribe(plain, sub.ID); err != nil || len(c.Subscriptions(0)) != 1 {
		t.Errorf("unsubscribed: %v, left %v", err, c.Subscriptions(0))
	}
	c.Ended(named)
	if left := c.Subscriptions(0); len(left) != 0 {
		t.Errorf("of an ended process there is %v", left)
	}
	for pattern, pid := range map[string]kernel.PID{"a..b": plain, "a.b": 999} {
		if _, err := c.Subscribe(t.Context(), pid, pattern, "", nil); err == nil {
			t.Errorf("process %s subscribed to %q", pid, pattern)
		}
	}
}

// One reader streams an inbox: the next one takes over, and begins with what it has not got.
func TestAStreamOfAnInboxResumes(t *testing.T) {
	t.Parallel()
	w := newTown(t, "n1")
	c := w.courier("n1")
	pid := w.process(t, "n1", "reader")
	say := func(text string) {
		if _, err := c.Send(t.Context(), 0, &post.Message{To: post.Process(kernel.Address{PID: pid}),
			Payload: post.TextOf(text)}, false); err != nil {
			t.Fatal(err)
		}
	}
	stream := func(after *uint64, n int) (out []Numbered) {
		err := c.Stream(t.Context(), pid, after, func(m Numbered) bool {
			out = append(out, m)
			return len(out) < n
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for i := range StreamKept + 2 {
		say(fmt.Sprint(i))
	}
	if all := stream(nil, 3); all[2].Number != 3 || all[2].Message.Payload.Text != "2" {
		t.Errorf("the first stream had %+v", all)
	}
	two := uint64(2)
	if all := stream(&two, 2); all[0].Number != 3 || all[1].Number != 4 {
		t.Errorf("after 2 came %d and %d", all[0].Number, all[1].Number)
	}
	if all := stream(nil, 1); all[0].Number != 5 {
		t.Errorf("from now on begins with %d", all[0].Number)
	}
	gone, over := make(chan error, 1), make(chan struct{})
	go func() {
		gone <- c.Stream(t.Context(), pid, nil, func(m Numbered) bool {
			if m.Number == 6 {
				close(over)
			}
			return true
		})
	}()
	<-over
	five := uint64(5)
	if all := stream(&five, 1); all[0].Number != 6 {
		t.Errorf("the second reader began with %d", all[0].Number)
	}
	if err := <-gone; err != nil && context.Cause(t.Context()) == nil && err != context.Canceled {
		t.Errorf("the first reader ended with %v", err)
	}
}
