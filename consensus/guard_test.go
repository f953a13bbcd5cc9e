package consensus

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// A fullPipeline takes one message and has no room for another until its answer
// was taken, as raft's own.
type fullPipeline struct {
	room   chan raft.AppendFuture
	closed chan struct{}
}

func (p *fullPipeline) AppendEntries(a *raft.AppendEntriesRequest, r *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
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
			g := newGuard(nil, &diskWatch{}, time.Second)
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
