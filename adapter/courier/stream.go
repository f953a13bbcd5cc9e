package courier

import (
	"context"
	"slices"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// StreamKept is how many messages of a stream are kept for a reader that comes again, streamBytes what
// their payloads have together at most.
const (
	StreamKept  = 256
	streamBytes = 16 << 20
)

// A Numbered is a message with its number in the stream of its process, from 1.
type Numbered struct {
	Number  uint64
	Message *post.Message
}

// A stream is what the reader of an inbox was sent and may not have got.
type stream struct {
	next  uint64
	kept  []Numbered
	bytes int
	stop  context.CancelFunc // of the one who reads now
	done  chan struct{}      // closed when it reads no more
}

// Stream hands out the messages of a process, each with its number, until give returns false, ctx
// ends, or another one begins to stream. It begins with what is kept above the number after, nil for
// nothing. The newest 256 are kept, until a reader begins above them.
func (c *Courier) Stream(ctx context.Context, pid kernel.PID, after *uint64, give func(Numbered) bool) error {
	if _, err := c.office.Ready(pid); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, before, done := c.takeStream(pid, stop)
	defer close(done)
	c.mu.Lock()
	from := s.next
	c.mu.Unlock()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done():
			return nil
		}
	}
	c.mu.Lock()
	newest := s.next
	c.mu.Unlock()
	if after != nil && *after <= newest { // a larger one is of another process
		from = *after
	} else if after != nil {
		from = 0
	}
	again := c.keptAfter(s, from)
	for _, n := range again {
		if ctx.Err() != nil || !give(n) {
			return nil
		}
	}
	for ctx.Err() == nil {
		got, err := c.Receive(ctx, pid, 1, MaxLongPoll)
		if err != nil || ctx.Err() != nil && len(got) == 0 {
			return err
		}
		for _, m := range got {
			if n := c.number(s, m); !give(n) {
				return nil
			}
		}
	}
	return nil
}

// takeStream makes one the reader of a process's stream, and ends the one before.
func (c *Courier) takeStream(pid kernel.PID, stop context.CancelFunc) (s *stream, before, done chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s = c.streams[pid]; s == nil {
		s = &stream{}
		c.streams[pid] = s
	} else {
		s.stop()
	}
	before, done = s.done, make(chan struct{})
	s.stop, s.done = stop, done
	return s, before, done
}

// keptAfter forgets what a reader has got, up to a number, and returns the rest.
func (c *Courier) keptAfter(s *stream, number uint64) []Numbered {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(n Numbered) bool { return n.Number <= number })
	s.bytes = 0
	for _, n := range s.kept {
		s.bytes += n.Message.Payload.Size()
	}
	return slices.Clone(s.kept)
}

// number keeps a message that is handed out.
func (c *Courier) number(s *stream, m *post.Message) Numbered {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.next++
	n := Numbered{s.next, m}
	s.kept = append(s.kept, n)
	s.bytes += m.Payload.Size()
	for len(s.kept) > StreamKept || s.bytes > streamBytes && len(s.kept) > 1 {
		s.bytes -= s.kept[0].Message.Payload.Size()
		s.kept[0] = Numbered{}
		s.kept = s.kept[1:]
	}
	return n
}
