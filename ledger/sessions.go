package ledger

import "github.com/selvage-mesh/selvage/identity"

// A Session is one life of a node's proposer, and its lease: every command is
// (session, sequence), and nothing of a session lands after its end. A node has
// at most one that has not ended.
type Session struct {
	ID          uint64          `cbor:"1,keyasint"` // height of its opening
	Node        identity.NodeID `cbor:"2,keyasint"`
	Incarnation string          `cbor:"3,keyasint"`           // of the node when it opened the session
	Nonce       string          `cbor:"4,keyasint"`           // what the node drew, so that it can ask again
	Opened      int64           `cbor:"5,keyasint"`           // ms since 1970
	EndedAt     uint64          `cbor:"6,keyasint,omitempty"` // height; 0 while it lasts
	Ended       int64           `cbor:"7,keyasint,omitempty"`
	// Lease is the longest lease, in ms, that a leader may grant the session, 0 for
	// the usual one; Leased is the mark of the command that said so.
	Lease  int64     `cbor:"8,keyasint,omitempty"`
	Leased LeaseMark `cbor:"9,keyasint,omitzero"`
}

// maxLease bounds what a session's lease may become, in ms: who waits for a dead
// node waits that long.
const maxLease = 120_000

// A LeaseMark orders the commands about leases: those of a later term of raft, and
// those of one leader as it gave them.
type LeaseMark struct {
	Term  uint64 `cbor:"1,keyasint"`
	Count uint64 `cbor:"2,keyasint"` // grows within the leader's process and is not used twice
}

// After reports whether m was given after o.
func (m LeaseMark) After(o LeaseMark) bool {
	return m.Term > o.Term || m.Term == o.Term && m.Count > o.Count
}

// SessionLease is the payload of session.lease, by which the leader says how long
// a lease it may grant a session from now on; its value is the [Session]. A leader
// that does not know yet that another one has taken over is refused, when that
// one has given one: its mark is not after the session's. How the leader keeps no
// lease from outliving what a later leader waits is told at scheduler.Leader.
type SessionLease struct {
	Session uint64    `cbor:"1,keyasint"`
	Lease   int64     `cbor:"2,keyasint"` // ms; 0 for the usual one
	Mark    LeaseMark `cbor:"3,keyasint"`
}

// SessionOpen is the payload of session.open; its value is the [Session]. The
// batch has session 0. Asking again with the same nonce gives the same session;
// another nonce ends the node's earlier session.
type SessionOpen struct {
	Incarnation string `cbor:"1,keyasint"`
	Nonce       string `cbor:"2,keyasint"`
}

// SessionEnd is the payload of session.end: by its node, or by a user.
type SessionEnd struct {
	Session uint64 `cbor:"1,keyasint"`
}

type sessionRef struct {
	ID uint64 `cbor:"1,keyasint"`
}

var (
	sessions   = NewMeshTable[string, Session]("session")
	sessionsOf = NewMeshTable[string, sessionRef]("session-of") // by node: its session that lasts
)

// FindSession returns a session, also one that has ended.
func FindSession(tx *Tx, id uint64) (Session, bool) { return sessions.Get(tx, Order(id)) }

// SessionOf returns the session of a node that has not ended.
func SessionOf(tx *Tx, node identity.NodeID) (Session, bool) {
	ref, ok := sessionsOf.Get(tx, string(node))
	if !ok {
		return Session{}, false
	}
	return sessions.Get(tx, Order(ref.ID))
}

// OpenSessions returns the sessions of all nodes that have not ended, by node.
func OpenSessions(tx *Tx) (out []Session) {
	for _, ref := range sessionsOf.All(tx) {
		if s, ok := FindSession(tx, ref.ID); ok {
			out = append(out, s)
		}
	}
	return out
}

// EndSession ends a session: no command of it lands from here on, and its
// outcomes are forgotten. A session that has ended is left alone.
func EndSession(c *Context, id uint64) {
	s, ok := FindSession(c.Tx, id)
	if !ok || s.EndedAt != 0 {
		return
	}
	s.EndedAt, s.Ended = c.Height, c.Now.UnixMilli()
	sessions.Put(c.Tx, Order(id), s)
	sessionsOf.Delete(c.Tx, string(s.Node))
	c.Delete(markKey(id))
	for k := range c.Prefix(outcomePrefix(id)) { // at most MaxOutstanding rows
		c.Delete(k)
	}
	c.Record(Change{Action: "session.ended", EntityType: "session", EntityID: Order(id)})
}

func applySessionOpen(c *Context, p SessionOpen) (any, error) {
	if !speaksForItself(c, c.Origin) {
		return nil, Refuse(Forbidden, nil, "a node opens its own session")
	}
	if !plainText(p.Nonce, maxNodeName) || len(p.Incarnation) > maxNodeName || !validKeyPart(p.Incarnation) {
		return nil, Refuse(Invalid, nil, "malformed session")
	}
	if old, ok := SessionOf(c.Tx, c.Origin); ok {
		if old.Nonce == p.Nonce {
			return old, nil
		}
		EndSession(c, old.ID)
	}
	s := Session{ID: c.Height, Node: c.Origin, Incarnation: p.Incarnation, Nonce: p.Nonce, Opened: c.Now.UnixMilli()}
	sessions.Put(c.Tx, Order(s.ID), s)
	sessionsOf.Put(c.Tx, string(s.Node), sessionRef{s.ID})
	c.Record(Change{Action: "session.opened", EntityType: "session", EntityID: Order(s.ID)})
	return s, nil
}

func applySessionEnd(c *Context, p SessionEnd) (any, error) {
	s, ok := FindSession(c.Tx, p.Session)
	if !ok {
		return nil, Refuse(NotFound, nil, "no such session")
	}
	if err := operator(c); err != nil && !speaksForItself(c, s.Node) {
		return nil, err
	}
	EndSession(c, s.ID)
	return nil, nil
}

func applySessionLease(c *Context, p SessionLease) (any, error) {
	if c.Cmd.Actor.Type != "node" {
		return nil, Refuse(Forbidden, nil, "the leader says how long leases are")
	}
	if p.Lease < 0 || p.Lease > maxLease {
		return nil, Refuse(Invalid, nil, "lease: want 0 to %d ms", maxLease)
	}
	s, ok := FindSession(c.Tx, p.Session)
	if !ok || s.EndedAt != 0 {
		return nil, Refuse(NotFound, nil, "no such session")
	}
	if !p.Mark.After(s.Leased) {
		return nil, Refuse(Conflict, nil, "a later leader has said how long the leases of this session are")
	}
	s.Lease, s.Leased = p.Lease, p.Mark
	sessions.Put(c.Tx, Order(s.ID), s)
	c.Record(Change{Action: "session.leased", EntityType: "session", EntityID: Order(s.ID)})
	return s, nil
}
