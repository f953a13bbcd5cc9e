package ledger

import (
	"encoding/binary"
	"strings"
)

// What Refusal.ErrCode says when a command was refused before it was looked at.
// Such a refusal is not an outcome: the command may have been carried out when
// it came before, under the same sequence.
const (
	ErrCodeSessionEnded = "session_ended"
	ErrCodeBelowMark    = "sequence_below_mark"
	ErrCodeNodeRevoked  = "node_revoked"
	ErrCodeNoSession    = "no_session"
)

// A window is what apply knows of one session's outcomes: those of every
// sequence from the mark on that was carried out, refusals included. Its rows
// are m/~mark/<session>, the mark in 8 bytes, and one row for each run of
// sequences of one batch, m/~outcome/<session>/<first>, the encoded receipts.
type window struct {
	session uint64 // 0: keeps nothing
	mark    uint64
	chunks  []chunk
}

type chunk struct {
	first, n uint64
	receipts []byte
}

func markKey(session uint64) []byte { return Key("m", "~mark", Order(session)) }
func outcomePrefix(session uint64) []byte {
	return Key("m", "~outcome", Order(session), "")
}
func outcomeKey(session, first uint64) []byte {
	return Key("m", "~outcome", Order(session), Order(first))
}

// window returns the window of the batch's session, an empty one when the
// session is not the origin's or has ended.
func (a *applier) window(b *Batch) *window {
	if s, ok := sessions.Get(a.group, Order(b.Session)); !ok || s.EndedAt != 0 || s.Node != b.Origin {
		delete(a.windows, b.Session)
		return &window{}
	}
	if w, ok := a.windows[b.Session]; ok {
		return w
	}
	w := &window{session: b.Session}
	if v, ok := a.group.Get(markKey(b.Session)); ok {
		w.mark = binary.BigEndian.Uint64(v)
	}
	prefix := string(outcomePrefix(b.Session))
	for k, v := range a.group.Prefix([]byte(prefix)) {
		first, err := parseOrder(strings.TrimPrefix(string(k), prefix))
		receipts := append([]byte(nil), v...)
		rs, err2 := DecodeReceipts(receipts)
		if err != nil || err2 != nil {
			panic("ledger: outcomes of session " + Order(b.Session) + " do not decode")
		}
		w.chunks = append(w.chunks, chunk{first, uint64(len(rs)), receipts})
	}
	a.windows[b.Session] = w
	return w
}

// advance moves the mark to that of the batch and forgets what lies below.
func (w *window) advance(a *applier, b *Batch) {
	if w.session == 0 || b.Mark <= w.mark {
		return
	}
	w.mark = b.Mark
	a.group.Set(markKey(w.session), binary.BigEndian.AppendUint64(nil, w.mark))
	kept := w.chunks[:0]
	for _, c := range w.chunks {
		if c.first+c.n <= w.mark {
			a.group.Delete(outcomeKey(w.session, c.first))
		} else {
			kept = append(kept, c)
		}
	}
	clear(w.chunks[len(kept):])
	w.chunks = kept
}

// outcome fills in the receipt of a sequence that has one already, or that is
// too old to have one.
func (w *window) outcome(seq uint64, r *Receipt, index uint64) bool {
	if w.session == 0 {
		return false
	}
	if seq < w.mark {
		*r = Receipt{Index: index, Refusal: &Refusal{Code: Unavailable, ErrCode: ErrCodeBelowMark,
			Message: "the command was answered before"}}
		return true
	}
	for _, c := range w.chunks {
		if c.first <= seq && seq-c.first < c.n {
			rs, err := DecodeReceipts(c.receipts)
			if err != nil {
				panic("ledger: kept outcomes do not decode: " + err.Error())
			}
			*r = rs[seq-c.first]
			return true
		}
	}
	return false
}

// keep stores the receipts of the commands that got their outcome from this
// batch. It stores nothing for a session that the batch itself ended.
func (w *window) keep(a *applier, b *Batch, receipts []Receipt, result []byte, fresh []bool) {
	if w.session == 0 {
		return
	}
	if s, _ := sessions.Get(a.group, Order(w.session)); s.EndedAt != 0 {
		delete(a.windows, w.session)
		return
	}
	for i := 0; i < len(fresh); {
		if !fresh[i] {
			i++
			continue
		}
		end := i
		for end < len(fresh) && fresh[end] {
			end++
		}
		encoded := result
		if end-i < len(receipts) {
			encoded = EncodeReceipts(receipts[i:end])
		}
		first := b.First + uint64(i)
		w.chunks = append(w.chunks, chunk{first, uint64(end - i), encoded})
		a.group.Set(outcomeKey(w.session, first), encoded)
		i = end
	}
}

// speaker caches, for one batch, whether its origin may speak; it is asked
// again for each command, because a command may end the session or revoke the
// node of the batch that it came in.
type speaker struct {
	nodeKey, sessionKey []byte
	node, session       []byte // rows that the answer follows from
	asked               bool
	refusal             *Refusal
}

// speaks returns why the origin of b may not ask for cmd at all, or nil.
func (a *applier) speaks(s *speaker, b *Batch, cmd *Command) *Refusal {
	if a.pos.Mesh == "" {
		return nil // refuseBatch let nothing but genesis pass
	}
	if isEpoch(b) {
		return nil // its handler looks closer: the founder may become a member by it
	}
	if !s.asked {
		s.nodeKey, s.sessionKey = nodes.Key(string(b.Origin)), sessions.Key(Order(b.Session))
	}
	node, _ := a.group.Get(s.nodeKey)
	session, _ := a.group.Get(s.sessionKey)
	if !s.asked || !same(node, s.node) || !same(session, s.session) {
		s.asked, s.node, s.session = true, node, session
		s.refusal = a.ask(b)
	}
	if b.Session == 0 && s.refusal == nil && cmd.Kind != KindSessionOpen && cmd.Kind != KindGenesis {
		return &Refusal{Code: Unavailable, ErrCode: ErrCodeNoSession, Message: "a command needs a session of its node"}
	}
	return s.refusal
}

// same reports whether a and b are the same row: rows are replaced, never changed.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (a *applier) ask(b *Batch) *Refusal {
	if n, ok := nodes.Get(a.group, string(b.Origin)); !ok || n.RevokedAt != 0 {
		return &Refusal{Code: Unauthorized, ErrCode: ErrCodeNodeRevoked, Message: "the node is no longer a member"}
	}
	if b.Session == 0 {
		return nil
	}
	switch s, ok := sessions.Get(a.group, Order(b.Session)); {
	case !ok || s.Node != b.Origin:
		return &Refusal{Code: Unavailable, ErrCode: ErrCodeNoSession, Message: "the session is not the node's"}
	case s.EndedAt != 0:
		return &Refusal{Code: Unavailable, ErrCode: ErrCodeSessionEnded, Message: "the session of the node has ended"}
	}
	return nil
}
