package consensus

import (
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/hashicorp/raft"
)

// A pace is how long this node waits for others, and others for it, before it
// holds them for gone. A machine that has no processor to spare runs this node
// late; then a heartbeat that is late says nothing. So the election time-out
// follows how late this node runs ([Config.Late]), and falls back with it.
//
// What the followers of a starved node think of it is their own affair: where they
// are calm they elect another soon, and that is right. Raft's pre-vote (on by
// default) keeps one starved follower from deposing a leader that the others hear.
//
// A leader goes on sending heartbeats as often as a calm one, however long it is
// patient itself: those that follow it may be calm. And a node that knows of no
// leader has nobody to be patient with: it campaigns as soon as a calm one. The
// others may take it for the leader that it was until a moment ago, and wait for it.
type pace struct {
	base time.Duration // Config.ElectionTimeout
	now  atomic.Int64  // the time-out in force, ns
	conf *atomic.Value // raft's configuration; nil: it is not to be had
}

// newPace is called before raft starts.
func newPace(base time.Duration) *pace {
	p := &pace{base: base}
	p.now.Store(int64(base))
	return p
}

// election is the election time-out in force.
func (p *pace) election() time.Duration { return time.Duration(p.now.Load()) }

// patience is the election time-out of a node that runs late.
func patience(base, late time.Duration) time.Duration {
	return min(max(base, lateTimes*late), max(base, mostPatient))
}

// leadership is how long a leader goes on without having heard a quorum. It is longer
// than the election time-out, because the stall that makes this node patient is over
// before it is measured: when its timers run again the answers of the others still
// wait in the socket, and the leader would step down although nobody has missed it.
func leadership(election time.Duration) time.Duration {
	return min(leaseTimes*election, max(election, mostPatient))
}

// steer takes hold of the configuration that raft works by. How long a leader
// goes on without having heard a quorum (LeaderLeaseTimeout) has to follow too;
// raft reads it anew at each look, but raft.ReloadConfig does not carry
// it, and a configuration whose lease is longer than its heartbeat time-out is
// refused, although nothing depends on that: this room shows leadership by rounds
// of its own (guard.confirmed), never by the lease. Where the field is not found,
// after an upgrade of the library, the lease stays as it was; a test tells.
func (p *pace) steer(r *raft.Raft) {
	f := reflect.ValueOf(r).Elem().FieldByName("conf")
	if !f.IsValid() || f.Type() != reflect.TypeFor[atomic.Value]() {
		return
	}
	p.conf = (*atomic.Value)(unsafe.Pointer(f.UnsafeAddr()))
	if _, ok := p.conf.Load().(raft.Config); !ok {
		p.conf = nil
	}
}

// set makes raft wait so long for its leader, or as its leader.
func (p *pace) set(r *raft.Raft, election time.Duration) error {
	_, leader := r.LeaderWithID()
	leads := r.State() == raft.Leader
	heartbeat, lease := election, p.base // raft refuses to be founded with a lease above its heartbeat time-out
	if leads {
		lease = leadership(election)
	}
	if leads || leader == "" {
		heartbeat = p.base
	}
	p.now.Store(int64(election))
	rc := r.ReloadableConfig()
	if rc.HeartbeatTimeout != heartbeat || rc.ElectionTimeout != election {
		p.lease(p.base) // what is reloaded has to be valid
		rc.HeartbeatTimeout, rc.ElectionTimeout = heartbeat, election
		if err := r.ReloadConfig(rc); err != nil {
			return err
		}
	}
	p.lease(lease)
	return nil
}

// lease is called by pace's goroutine alone, as ReloadConfig is.
func (p *pace) lease(d time.Duration) {
	if p.conf == nil {
		return
	}
	if c, ok := p.conf.Load().(raft.Config); ok && c.LeaderLeaseTimeout != d {
		c.LeaderLeaseTimeout = d
		p.conf.Store(c)
	}
}

// keepPace follows how late this node runs until Close.
func (c *Consensus) keepPace() {
	for {
		changed := c.Changes()
		want, now := patience(c.cfg.ElectionTimeout, c.cfg.Late()), c.pace.election()
		if (want-now).Abs() < now/8 && want != c.cfg.ElectionTimeout {
			want = now
		}
		if want != now {
			c.log.Info("consensus: election time-out follows how late this node runs", "late", c.cfg.Late(), "election", want)
		}
		if err := c.pace.set(c.raft, want); err != nil {
			c.log.Warn("consensus: election time-out could not be set", "election", want, "err", err)
		}
		select {
		case <-c.ctx.Done():
			return
		case <-changed: // another role or leader, another heartbeat time-out
		case <-time.After(paceEvery):
		}
	}
}
