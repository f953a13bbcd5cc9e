package consensus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/selvage-mesh/selvage/kit"
)

// A fullPipeline takes one message and has no room for another until its answer
// was taken, as raft's own.
type fullPipeline struct {
	room   chan raft.AppendFuture
	closed chan struct{}
}

func (p *fullPipeline) AppendEntries(a *raft.AppendEntriesRequest,
	r *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	f := future{a, r}
	select {
	case p.room <- f:
		return f, nil
	case <-p.closed:
		return nil, raft.ErrPipelineShutdown
	}
}

func (p *fullPipeline) Consumer() <-chan raft.AppendFuture { return p.room }

func (p *fullPipeline) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

type future struct {
	a *raft.AppendEntriesRequest
	r *raft.AppendEntriesResponse
}

func (f future) Error() error                          { return nil }
func (f future) Start() time.Time                      { return time.Time{} }
func (f future) Request() *raft.AppendEntriesRequest   { return f.a }
func (f future) Response() *raft.AppendEntriesResponse { return f.r }

// After an answer of a newer term, or a refusal, raft takes no more answers. A
// sender that waits for room is let go.
func TestASenderDoesNotWaitForAnEndedPipeline(t *testing.T) {
	for _, last := range []raft.AppendEntriesResponse{{Term: 2, Success: true}, {Term: 1}} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuard(nil, &diskWatch{}, newPace(time.Second), nil)
			below := &fullPipeline{room: make(chan raft.AppendFuture), closed: make(chan struct{})}
			p := newGuardPipeline(below, g, "b", "b")
			if _, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1}, &last); err != nil {
				t.Fatal(err)
			}
			sent := make(chan error, 1)
			go func() {
				var err error
				for err == nil { // the guard holds one answer more
					_, err = p.AppendEntries(&raft.AppendEntriesRequest{Term: 1}, &raft.AppendEntriesResponse{Term: 1, Success: true})
				}
				sent <- err
			}()
			synctest.Wait()
			<-p.Consumer() // and raft is gone
			if err := <-sent; err != raft.ErrPipelineShutdown {
				t.Errorf("sender got %v, want %v", err, raft.ErrPipelineShutdown)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Heartbeats leave together, two moments apart as raft rests between them; what
// verifies does not wait.
func TestHeartbeatsLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const election = 500 * time.Millisecond
		g := newGuard(nil, &diskWatch{}, newPace(election), t.Context().Done())
		began := time.Now()
		for _, peer := range []raft.ServerID{"b", "c", "d"} {
			a := &raft.AppendEntriesRequest{Term: 3}
			g.beat(peer, a.Term) // nothing is known of it: at once
			g.answered(peer, a, &raft.AppendEntriesResponse{Term: 3, Success: true}, g.sending(peer, "", a))
		}
		if d := time.Since(began); d != 0 {
			t.Fatalf("the first heartbeats waited %s", d)
		}
		chances := kit.Rand(t)
		left := map[time.Duration]int{}
		for range 100 {
			for _, peer := range []raft.ServerID{"b", "c", "d"} {
				go func() {
					time.Sleep(time.Millisecond + time.Duration(chances.Int64N(int64(election/10-time.Millisecond))) +
						election/10) // an answer, and raft's rest
					g.beat(peer, 3)
					g.mu.Lock()
					defer g.mu.Unlock()
					left[time.Since(began)]++
				}()
			}
			time.Sleep(election / 5)
		}
		synctest.Wait()
		if len(left) != 100 {
			t.Errorf("heartbeats left at %d moments, want 100", len(left))
		}
		for at, n := range left {
			if at%(election/5) != 0 || n != 3 {
				t.Fatalf("%d heartbeats left after %s", n, at)
			}
		}
		// One that waits is let go by a verification, and so is one that comes then.
		time.Sleep(election / 40)
		began = time.Now()
		gone := make(chan struct{})
		go func() { g.beat("b", 3); close(gone) }()
		synctest.Wait()
		g.verifying()
		<-gone
		g.beat("c", 3)
		if d := time.Since(began); d != 0 {
			t.Errorf("a verification waited %s", d)
		}
	})
}
