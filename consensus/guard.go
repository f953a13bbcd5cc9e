package consensus

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// errStalled is why a leader with a stalled disk sends nothing.
var errStalled = errors.New("disk of this leader is stalled")

// guard is raft's transport with eight things added:
//
//   - a leader whose disk stalls falls silent, so that another is elected
//     (raft's heartbeats do not touch the disk and would go on for ever);
//   - it counts which followers answered messages sent after a given moment,
//     because raft's VerifyLeader also counts non-voters, with whose help a
//     leader that the voters have replaced would pass;
//   - an empty append after a commit, when no other append carries its index
//     (announce), so that followers learn of it in about a millisecond;
//   - heartbeats to all peers leave together (beat): a leader that has nothing
//     to do wakes once for all of them;
//   - a pipeline whose answers raft no longer takes is closed (guardPipeline);
//   - when each peer last answered, for the autopilot;
//   - a follower whose disk refuses entries is asked again at a steady pace (refused);
//   - a follower that is far behind gets no pipeline: raft's sends one message for
//     each trigger or commit time-out, and without it all that is missing at once.
type guard struct {
	*raft.NetworkTransport
	watch *diskWatch
	pace  *pace
	sends sync.WaitGroup // announcements under way

	every time.Duration   // the multiples of which on the clock are the moments at which heartbeats leave
	done  <-chan struct{} // closed when heartbeats wait no more

	mu    sync.Mutex // guards what follows
	round uint64     // grows with every verification
	peers map[raft.ServerID]*guardPeer
	heard chan struct{} // closed and replaced when a peer answers
	asked chan struct{} // closed and replaced when a verification begins
}

type guardPeer struct {
	address raft.ServerAddress

	// What the leader of term last sent.
	term       uint64
	header     raft.RPCHeader
	sentLast   uint64 // index of the last entry sent
	sentCommit uint64 // highest commit index sent
	matched    uint64 // last entry that it confirmed, outside of pipelines
	announcing bool

	// What the peer confirmed: that in ackTerm we lead, as of round ackRound.
	ackTerm, ackRound uint64
	contact           time.Time // its last answer
}

// newGuard makes a guard for nodes with an election time-out that follows p; its heartbeats do
// not wait for each other once done is closed.
func newGuard(t *raft.NetworkTransport, w *diskWatch, p *pace, done <-chan struct{}) *guard {
	return &guard{NetworkTransport: t, watch: w, pace: p, every: p.base / beats, done: done,
		peers: map[raft.ServerID]*guardPeer{}, heard: make(chan struct{}), asked: make(chan struct{})}
}

func (g *guard) silent() bool { return g.watch.stalled() > g.stall() }

// stall is after how long a write to the log a leader falls silent.
func (g *guard) stall() time.Duration { return stallElections * g.pace.election() }

// sending notes a message to a peer and returns the round it belongs to.
func (g *guard) sending(id raft.ServerID, address raft.ServerAddress, a *raft.AppendEntriesRequest) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[id]
	if p == nil {
		p = &guardPeer{}
		g.peers[id] = p
	}
	if a.Term > p.term {
		p.term, p.sentLast, p.sentCommit, p.matched = a.Term, 0, 0, 0
	}
	p.address, p.header = address, a.RPCHeader
	if n := len(a.Entries); n > 0 {
		p.sentLast = max(p.sentLast, a.Entries[n-1].Index)
	}
	p.sentCommit = max(p.sentCommit, a.LeaderCommitIndex)
	return g.round
}

// answered notes that a peer answered a message of a round.
func (g *guard) answered(id raft.ServerID, a *raft.AppendEntriesRequest, r *raft.AppendEntriesResponse, round uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[id]
	if p == nil {
		return // forgotten meanwhile
	}
	p.contact = time.Now()
	if !r.Success || r.Term != a.Term {
		return
	}
	if n := len(a.Entries); n > 0 && a.Term == p.term {
		p.matched = max(p.matched, a.Entries[n-1].Index)
	}
	switch {
	case a.Term > p.ackTerm:
		p.ackTerm, p.ackRound = a.Term, round
	case a.Term == p.ackTerm:
		p.ackRound = max(p.ackRound, round)
	}
	close(g.heard)
	g.heard = make(chan struct{})
}

func (g *guard) AppendEntries(id raft.ServerID, to raft.ServerAddress, a *raft.AppendEntriesRequest,
	r *raft.AppendEntriesResponse) error {
	if len(a.Entries) == 0 && a.PrevLogEntry == 0 && a.LeaderCommitIndex == 0 { // as raft knows a heartbeat
		g.beat(id, a.Term)
	}
	if g.silent() {
		return errStalled
	}
	round := g.sending(id, to, a)
	if err := g.NetworkTransport.AppendEntries(id, to, a, r); err != nil {
		return err
	}
	g.answered(id, a, r, round)
	if len(a.Entries) > 0 && !r.Success && !r.NoRetryBackoff && r.Term == a.Term {
		g.refused(a.Entries)
		r.NoRetryBackoff = true
	}
	return nil
}

// refused waits until a follower that could not store entries is sent them again.
func (g *guard) refused(entries []*raft.Log) {
	size := 0
	for _, l := range entries {
		size += len(l.Data)
	}
	wait := min(max(time.Duration(size)*time.Second/refusedRate, refusedLeast), refusedMost)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-g.done:
	}
}

// beat holds a heartbeat to a peer back until the next moment at which heartbeats
// leave, unless somebody verifies that this node leads and has not heard from the
// peer yet.
func (g *guard) beat(id raft.ServerID, term uint64) {
	g.mu.Lock()
	p, asked := g.peers[id], g.asked
	awaited := p == nil || p.ackTerm != term || p.ackRound < g.round
	g.mu.Unlock()
	if awaited {
		return
	}
	timer := time.NewTimer(g.every - time.Duration(time.Now().UnixNano()%int64(g.every)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-asked:
	case <-g.done:
	}
}

func (g *guard) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	if g.silent() {
		return nil, errStalled
	}
	if g.behind(id) {
		return nil, raft.ErrPipelineReplicationNotSupported
	}
	p, err := g.NetworkTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return newGuardPipeline(p, g, id, to), nil
}

// behind tells whether a follower lacks more than one message of what is committed.
func (g *guard) behind(id raft.ServerID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.peers[id]
	return p != nil && p.matched > 0 && p.matched+maxAppendEntries < p.sentCommit
}

// A guardPipeline closes the pipeline below it once an answer has passed after
// which raft takes no more of them. Without that raft's sender, which waits there
// for room, would wait for ever: for the follower this leader would be mute
// (heartbeats go on), and this node could not be closed.
type guardPipeline struct {
	raft.AppendPipeline
	g  *guard
	id raft.ServerID
	to raft.ServerAddress

	answers chan raft.AppendFuture
	closing chan struct{} // closed by Close
	passed  chan struct{} // closed when pass has ended
	once    sync.Once
}

func newGuardPipeline(p raft.AppendPipeline, g *guard, id raft.ServerID, to raft.ServerAddress) *guardPipeline {
	gp := &guardPipeline{AppendPipeline: p, g: g, id: id, to: to,
		answers: make(chan raft.AppendFuture), closing: make(chan struct{}), passed: make(chan struct{})}
	go gp.pass()
	return gp
}

// Consumer returns where the answers come.
func (p *guardPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// pass hands answers on until Close, or until the one that ends the pipeline.
func (p *guardPipeline) pass() {
	defer close(p.passed)
	for {
		var f raft.AppendFuture
		select {
		case f = <-p.AppendPipeline.Consumer():
		case <-p.closing:
			return
		}
		select {
		case p.answers <- f:
		case <-p.closing:
			return
		}
		if r := f.Response(); !r.Success || r.Term > f.Request().Term {
			_ = p.AppendPipeline.Close()
			return
		}
	}
}

// Close is called by raft when it has stopped sending.
func (p *guardPipeline) Close() error {
	p.once.Do(func() { close(p.closing) })
	err := p.AppendPipeline.Close()
	<-p.passed
	return err
}

func (p *guardPipeline) AppendEntries(a *raft.AppendEntriesRequest,
	r *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.g.silent() {
		return nil, errStalled
	}
	p.g.sending(p.id, p.to, a)
	return p.AppendPipeline.AppendEntries(a, r)
}

// verifying begins a round and returns it; heartbeats no longer wait for it.
func (g *guard) verifying() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.round++
	close(g.asked)
	g.asked = make(chan struct{})
	return g.round
}

// confirmed counts which of the servers confirmed since the round began that
// the leader of term leads, and returns a channel that tells of the next answer.
func (g *guard) confirmed(round, term uint64, servers []raft.ServerID) (n int, next <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range servers {
		if p := g.peers[id]; p != nil && p.ackTerm == term && p.ackRound >= round {
			n++
		}
	}
	return n, g.heard
}

// contact returns when a peer last answered; zero when it never did.
func (g *guard) contact(id raft.ServerID) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.peers[id]; p != nil {
		return p.contact
	}
	return time.Time{}
}

// forget drops what is known of peers that are not in keep.
func (g *guard) forget(keep map[raft.ServerID]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.peers {
		if !keep[id] {
			delete(g.peers, id)
		}
	}
}

// announce tells the peers that entry index of entryTerm is committed, those
// that were sent the entry but not yet its commit. What it sends is what raft's
// own leader of term would send when it had nothing to append; an answer tells
// nothing new and is dropped, and a loss is made good by raft's own timer.
func (g *guard) announce(index, entryTerm, term uint64) {
	type message struct {
		id raft.ServerID
		to raft.ServerAddress
		a  *raft.AppendEntriesRequest
	}
	var out []message
	g.mu.Lock()
	for id, p := range g.peers {
		if p.term != term || p.sentLast < index || p.sentCommit >= index || p.announcing {
			continue
		}
		p.announcing = true
		out = append(out, message{id, p.address, &raft.AppendEntriesRequest{
			RPCHeader:         p.header,
			Term:              term,
			PrevLogEntry:      index,
			PrevLogTerm:       entryTerm,
			LeaderCommitIndex: index,
		}})
	}
	g.mu.Unlock()
	for _, m := range out {
		g.sends.Go(func() {
			_ = g.AppendEntries(m.id, m.to, m.a, &raft.AppendEntriesResponse{})
			g.mu.Lock()
			defer g.mu.Unlock()
			if p := g.peers[m.id]; p != nil {
				p.announcing = false
			}
		})
	}
}

// wait returns when no announcement is under way.
func (g *guard) wait() { g.sends.Wait() }
