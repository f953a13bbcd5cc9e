package consensus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// script is a leader and its ledger in a few lines: it keeps the outcome of
// every sequence, as the real one does, and does to an attempt what do says.
type script struct {
	t  *testing.T
	do func(attempt int, b *ledger.Batch) (apply bool, err error) // nil: apply and answer

	mu       sync.Mutex
	attempts int
	session  uint64
	ended    bool
	mark     uint64
	outcomes map[uint64]ledger.Receipt
	runs     map[string]int // how often a payload was carried out
	index    uint64
	sizes    []int
	slow     time.Duration
}

func (s *script) propose(ctx context.Context, data []byte) ([]byte, uint64, error) {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if slow > 0 {
		if err := sleep(ctx, slow); err != nil {
			return nil, 0, ErrNoLeader
		}
	}
	b, err := ledger.DecodeBatch(data)
	if err != nil {
		s.t.Error(err)
		return nil, 0, ErrRefused
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	apply := true
	if b.Session != 0 {
		s.attempts++
		if s.do != nil {
			apply, err = s.do(s.attempts, b)
		}
		s.sizes = append(s.sizes, len(b.Commands))
	}
	if !apply {
		return nil, 0, err
	}
	s.index++
	rs := make([]ledger.Receipt, len(b.Commands))
	for i, cmd := range b.Commands {
		rs[i] = s.carryOut(b, b.First+uint64(i), cmd)
	}
	if err != nil {
		return nil, 0, err
	}
	return ledger.EncodeReceipts(rs), s.index, nil
}

// set changes the script while the Proposer runs.
func (s *script) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *script) carryOut(b *ledger.Batch, seq uint64, cmd ledger.Command) ledger.Receipt {
	refuse := func(code string) ledger.Receipt {
		return ledger.Receipt{Index: s.index, Refusal: &ledger.Refusal{Code: ledger.Unavailable, ErrCode: code,
			Message: code}}
	}
	if cmd.Kind == ledger.KindSessionOpen {
		s.session, s.ended, s.mark, s.outcomes = s.session+100, false, 0, map[uint64]ledger.Receipt{}
		return ledger.Receipt{Index: s.index, Height: 7, Value: ledger.Marshal(ledger.Session{ID: s.session})}
	}
	if b.Session != s.session || s.ended {
		return refuse(ledger.ErrCodeSessionEnded)
	}
	s.mark = max(s.mark, b.Mark)
	if seq < s.mark {
		return refuse(ledger.ErrCodeBelowMark)
	}
	if r, ok := s.outcomes[seq]; ok {
		return r
	}
	if s.runs == nil {
		s.runs = map[string]int{}
	}
	s.runs[string(cmd.Payload)]++
	r := ledger.Receipt{Index: s.index, Height: s.index, Value: cmd.Payload}
	if cmd.Kind == "test.refuse" {
		r = ledger.Receipt{Index: s.index, Refusal: &ledger.Refusal{Code: ledger.Conflict, Message: "no"}}
	}
	s.outcomes[seq] = r
	return r
}

func (s *script) proposer() *Proposer {
	k := identity.Derive([32]byte{1})
	p := NewProposer(ProposerConfig{
		Node: k.ID(), Mesh: func() identity.MeshID { return identity.MeshIDOf([]byte("m")) }, Sign: k.Sign,
		Propose: s.propose, OpenSession: SessionOpener(k.ID(), "one"),
	})
	s.t.Cleanup(func() { _ = p.Close() })
	return p
}

func command(kind, payload string) ledger.Command {
	return ledger.Command{Kind: kind, Actor: board, Credential: local, Payload: []byte(payload)}
}

func TestProposerGathersWhileABatchIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, slow: 10 * time.Millisecond}
		p := s.proposer()
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				r, err := p.Submit(t.Context(), command("test.add", fmt.Sprint(i)))
				if err != nil || string(r.Value) != fmt.Sprint(i) {
					t.Error(i, r, err)
				}
			})
		}
		wg.Wait()
		if len(s.sizes) > 4 {
			t.Errorf("1000 commands at once took batches of %v", s.sizes)
		}
		for id, n := range s.runs {
			if n != 1 {
				t.Errorf("%s was carried out %d times", id, n)
			}
		}
	})
}

// TestProposerSendsAnotherBatchOnlyWhenTheFirstIsLate holds every answer for a
// second and lets commands come one by one.
func TestProposerSendsAnotherBatchOnlyWhenTheFirstIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		p := s.proposer()
		if _, err := p.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.slow = time.Second })
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				if _, err := p.Submit(t.Context(), command("test.add", fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(2 * time.Millisecond)
		}
		if got := p.Stats().Batches; got != maxBatches {
			t.Errorf("%d batches in flight after 200 ms, want %d", got, maxBatches)
		}
		wg.Wait()
	})
}

// TestProposerOneOutcomeWhateverHappens answers attempts by chance: lost before
// or after they were carried out, no leader, busy. Every command has one outcome.
func TestProposerOneOutcomeWhateverHappens(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			s := &script{t: t, slow: 3 * time.Millisecond}
			s.do = func(int, *ledger.Batch) (bool, error) {
				switch rng.IntN(6) {
				case 0:
					return true, ErrOutcomeUnknown
				case 1:
					return false, ErrOutcomeUnknown
				case 2:
					return false, ErrNoLeader
				case 3:
					return false, ErrBusy
				}
				return true, nil
			}
			p := s.proposer()
			var wg sync.WaitGroup
			for i := range 200 {
				time.Sleep(time.Millisecond)
				wg.Go(func() {
					kind := []string{"test.add", "test.refuse"}[i%2]
					r, err := p.Submit(t.Context(), command(kind, fmt.Sprint(i)))
					if err != nil || (r.Refusal != nil) != (i%2 == 1) {
						t.Error("seed", seed, i, r, err)
					}
				})
			}
			wg.Wait()
			for id, n := range s.runs {
				if n != 1 {
					t.Errorf("seed %d: %s was carried out %d times", seed, id, n)
				}
			}
		})
	}
}

// TestProposerEndedSession: what was certainly not carried out goes into a new
// session; what may have been is unknown, never carried out twice.
func TestProposerEndedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		p := s.proposer()
		if _, err := p.Submit(t.Context(), command("test.add", "a")); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.ended = true })
		if r, err := p.Submit(t.Context(), command("test.add", "b")); err != nil || r.Refusal != nil {
			t.Errorf("after the session ended: %+v %v", r, err)
		}
		if got := p.Stats().Sessions; got != 2 {
			t.Errorf("%d sessions were opened, want 2", got)
		}
		first := true
		s.set(func() {
			s.do = func(int, *ledger.Batch) (bool, error) {
				if first {
					first = false
					return true, ErrOutcomeUnknown // carried out, the answer lost, then the session ends
				}
				s.ended, s.do = true, nil
				return true, nil
			}
		})
		if _, err := p.Submit(t.Context(), command("test.add", "c")); !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("an outcome that was forgotten with its session: %v, want ErrOutcomeUnknown", err)
		}
		for id, n := range s.runs {
			if n != 1 {
				t.Errorf("%s was carried out %d times", id, n)
			}
		}
	})
}

func TestProposerRefusedSessionAndErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		s.do = func(int, *ledger.Batch) (bool, error) { return false, fmt.Errorf("leader: %w", store.ErrDiskFull) }
		p := s.proposer()
		if _, err := p.Submit(t.Context(), command("test.add", "a")); !errors.Is(err, store.ErrDiskFull) ||
			errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("full disk: %v", err)
		}
		s.set(func() { s.do = func(int, *ledger.Batch) (bool, error) { return false, ErrRefused } })
		if _, err := p.Submit(t.Context(), command("test.add", "a")); !errors.Is(err, ErrRefused) {
			t.Errorf("refused batch: %v", err)
		}
		if r, err := p.Submit(t.Context(), ledger.Command{Kind: "test.add",
			Payload: make([]byte, ledger.MaxPayload+1)}); err != nil || r.Refusal.Code != ledger.TooLarge {
			t.Errorf("too large: %+v %v", r, err)
		}
		s.set(func() { s.do = func(int, *ledger.Batch) (bool, error) { return false, ErrOutcomeUnknown } })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Submit(ctx, command("test.add", "a")); !errors.Is(err, ErrOutcomeUnknown) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caller gave up: %v", err)
		}
		s.set(func() { s.do = nil })
		time.Sleep(time.Second) // the batch nobody waits for is given up
		if r, err := p.Submit(t.Context(), command("test.add", "b")); err != nil || r.Refusal != nil {
			t.Errorf("after that: %+v %v", r, err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Submit(t.Context(), command("test.add", "c")); !errors.Is(err, ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

func TestProposerQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t}
		p := s.proposer()
		if _, err := p.Session(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.set(func() { s.slow = time.Hour }) // no attempt comes back
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var busy, unknown, unsent int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range maxQueue + ledger.MaxOutstanding + 100 {
			wg.Go(func() {
				_, err := p.Submit(ctx, command("test.add", fmt.Sprint(i)))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, ErrBusy):
					busy++
				case errors.Is(err, ErrOutcomeUnknown):
					unknown++
				case errors.Is(err, context.DeadlineExceeded):
					unsent++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if busy == 0 || unsent == 0 || unknown == 0 || unknown > ledger.MaxOutstanding {
			t.Errorf("busy %d, unknown %d, not sent %d", busy, unknown, unsent)
		}
	})
}
