package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A rotaSim is handlers with inboxes, and callers of which in each step one goes on by one thing: what
// happens between any two of them is decided by the seed.
type rotaSim struct {
	*Rota[*simHandler]
	rng      *rand.Rand
	handlers []*simHandler
	callers  []*simCaller
	most     int
}

type simHandler struct {
	turn    Turn[*simHandler]
	inbox   int
	sent    int
	handled int
	callers int // that are in a call of it now
	held    bool
	ended   bool
	cleared int
}

type simCaller struct {
	at   *simHandler // nil: it asks for the next one
	took bool        // it has a message in its hands
	left int         // messages until others have their turn
}

func (s *rotaSim) begin(begin bool) {
	if begin {
		s.callers = append(s.callers, &simCaller{})
	}
}

// step lets one of many things happen.
func (s *rotaSim) step() error {
	h := s.handlers[s.rng.IntN(len(s.handlers))]
	switch n := s.rng.IntN(100); {
	case n < 25 && !h.ended:
		h.inbox++
		h.sent++
		s.begin(s.Wake(&h.turn))
	case n < 28:
		h.held = true
		s.Hold(&h.turn)
	case n < 34:
		h.held = false
		s.begin(s.Release(&h.turn))
	case n < 36 && s.Claim(&h.turn): // it is taken to rest, at once
		if h.callers > 0 {
			return fmt.Errorf("one that is called is claimed")
		}
		s.over(h)
	case n == 36 && !h.ended:
		h.ended = true
		if !s.End(&h.turn) {
			h.cleared++
		}
	case len(s.callers) > 0:
		return s.call(s.rng.IntN(len(s.callers)))
	}
	return nil
}

func (s *rotaSim) over(h *simHandler) {
	ended, begin := s.Done(&h.turn)
	if ended {
		h.cleared++
	}
	s.begin(begin)
}

// call lets a caller do the next thing: ask, take a message, handle it, be done.
func (s *rotaSim) call(n int) error {
	c := s.callers[n]
	h := c.at
	switch {
	case h == nil:
		t := s.Next()
		if t == nil {
			s.callers = append(s.callers[:n], s.callers[n+1:]...)
			return nil
		}
		c.at, c.left = t.Of, 3
		if t.Of.callers++; t.Of.callers > 1 || t.Of.cleared > 0 {
			return fmt.Errorf("%d callers call one, which was cleared %d times", t.Of.callers, t.Of.cleared)
		}
	case c.took:
		c.took = false
		h.handled++
	case h.inbox > 0 && c.left > 0 && s.Free(&h.turn):
		h.inbox--
		if c.left--; c.left == 0 {
			s.begin(s.Wake(&h.turn)) // there may be more: after the others
		}
		c.took = true
	default:
		h.callers--
		c.at = nil
		s.over(h)
	}
	return nil
}

// settled is what must hold when all callers have ended.
func (s *rotaSim) settled() error {
	for len(s.callers) > 0 {
		if err := s.call(s.rng.IntN(len(s.callers))); err != nil {
			return err
		}
	}
	for n, h := range s.handlers {
		switch {
		case !h.held && !h.ended && (h.inbox > 0 || h.handled != h.sent):
			return fmt.Errorf("handler %d rests with %d messages; %d sent, %d handled", n, h.inbox, h.sent, h.handled)
		case h.ended && h.cleared != 1:
			return fmt.Errorf("handler %d has ended and was cleared up %d times", n, h.cleared)
		}
	}
	return nil
}

func simulateRota(seed uint64, bug bool) error {
	s := &rotaSim{rng: rand.New(rand.NewPCG(seed, 0)), most: 1 + int(seed%4)}
	s.Rota = NewRota[*simHandler](s.most)
	s.bug = bug
	for range 1 + seed%7 {
		h := &simHandler{}
		h.turn.Of = h
		s.handlers = append(s.handlers, h)
	}
	for n := range 2000 {
		if err := s.step(); err != nil {
			return err
		}
		if len(s.callers) > s.most {
			return fmt.Errorf("%d callers, of %d", len(s.callers), s.most)
		}
		if n%100 == 99 {
			if err := s.settled(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Each handler is called by one at a time, and no message waits for a call that does not come, in
// whatever order waking, calling, holding, resting and ending fall. A waking that is lost during a
// call is found.
func TestRotaLosesNoTurn(t *testing.T) {
	found := 0
	for seed := range uint64(500) {
		if err := simulateRota(seed, false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if seed < 50 && simulateRota(seed, true) != nil {
			found++
		}
	}
	if found < 20 {
		t.Errorf("a lost waking is found by %d of 50 seeds", found)
	}
}
