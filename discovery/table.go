package discovery

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// A State says what gossip believes of a member.
type State byte

// The states of a member.
const (
	Live   State = 1 + iota // answers, or has not yet been found not to
	Left                    // went on purpose
	Failed                  // was declared dead and did not answer the last call
)

func (s State) String() string {
	switch s {
	case Live:
		return "live"
	case Left:
		return "left"
	case Failed:
		return "failed"
	}
	return "unknown"
}

// A Member is what is known of a node by gossip.
type Member struct {
	Meta  Meta
	Addr  netip.AddrPort // of its peer port
	State State
	Since time.Time // when State was entered, by this node's clock
}

// An EventKind says what happened to a member.
type EventKind byte

// The kinds of events.
const (
	Join    EventKind = 1 + iota // a member is live that was not
	Update                       // a live member changed its address or metadata
	Leave                        // a member went on purpose, or is no member any more
	Failure                      // a member was declared dead
)

func (k EventKind) String() string {
	switch k {
	case Join:
		return "join"
	case Update:
		return "update"
	case Leave:
		return "leave"
	case Failure:
		return "failure"
	}
	return "unknown"
}

// An Event is a change of the member table.
type Event struct {
	Kind   EventKind
	Member Member
}

// A table is our own copy of memberlist's nodes, without this node. Only the
// goroutine of Discovery.run writes to it.
type table struct {
	mu      sync.Mutex // guards the following
	members map[identity.NodeID]Member
	changed chan struct{} // closed and replaced at each change
	ended   bool
}

func newTable() *table {
	return &table{members: make(map[identity.NodeID]Member), changed: make(chan struct{})}
}

// at returns who says that it is at an address.
func (t *table) at(a netip.AddrPort) (identity.NodeID, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, m := range t.members {
		if m.Addr == a {
			return id, true
		}
	}
	return "", false
}

func (t *table) get(id identity.NodeID) (Member, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.members[id]
	return m, ok
}

func (t *table) put(m Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members[m.Meta.Node] = m
	t.wake()
}

func (t *table) remove(id identity.NodeID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.members, id)
	t.wake()
}

func (t *table) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.ended = true
		close(t.changed)
	}
}

func (t *table) wake() {
	if !t.ended {
		close(t.changed)
		t.changed = make(chan struct{})
	}
}

// list returns the members by ID.
func (t *table) list() []Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.members), byID)
}

func byID(a, b Member) int { return cmp.Compare(a.Meta.Node, b.Meta.Node) }

func (t *table) snapshot() (members map[identity.NodeID]Member, changed <-chan struct{}, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.members), t.changed, t.ended
}

// events yields the difference between what the reader was told and what is
// true, until ctx or the table ends. There is no queue that a slow reader could
// fill: it is told less often, and what came and went meanwhile it is not told.
func (t *table) events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		told := map[identity.NodeID]Member{}
		for {
			now, changed, ended := t.snapshot()
			for _, e := range difference(told, now) {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
			told = now
			if ended {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}
}

// difference returns the events that lead from one table to another, by ID.
func difference(from, to map[identity.NodeID]Member) []Event {
	var es []Event
	for id, m := range to {
		old, known := from[id]
		was := known && old.State == Live
		switch {
		case m.State == Live && !was:
			es = append(es, Event{Join, m})
		case m.State == Live && (m.Meta != old.Meta || m.Addr != old.Addr):
			es = append(es, Event{Update, m})
		case m.State == Left && (!known || old.State != Left):
			es = append(es, Event{Leave, m})
		case m.State == Failed && (!known || old.State != Failed):
			es = append(es, Event{Failure, m})
		}
	}
	for id, m := range from {
		if _, still := to[id]; !still && m.State == Live {
			m.State = Left
			es = append(es, Event{Leave, m})
		}
	}
	slices.SortFunc(es, func(a, b Event) int { return byID(a.Member, b.Member) })
	return es
}
