package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// The company of these tests is a table of notes.
type note struct {
	Text  string `cbor:"1,keyasint"`
	Count int64  `cbor:"2,keyasint,omitempty"`
}

type notePut struct {
	ID   string `cbor:"1,keyasint"`
	Text string `cbor:"2,keyasint"`
}

var (
	notes      = NewTable[string, note]("note")
	notesByLen = NewIndex[string, string]("note-len")
)

func noteMux() Mux {
	m := Mux{}
	put := func(c *Context, p notePut) note {
		n, _ := notes.Get(c.Tx, c.Cmd.Company, p.ID)
		if was, is := Order(uint64(len(n.Text))), Order(uint64(len(p.Text))); was != is {
			notesByLen.Remove(c.Tx, c.Cmd.Company, was, p.ID)
			notesByLen.Add(c.Tx, c.Cmd.Company, is, p.ID)
		}
		n.Text, n.Count = p.Text, n.Count+1
		notes.Put(c.Tx, c.Cmd.Company, p.ID, n)
		c.Record(Change{Action: "note.put", EntityType: "note", EntityID: p.ID})
		return n
	}
	Handle(m, "note.put", func(c *Context, p notePut) (any, error) { return put(c, p), nil })
	Handle(m, "note.refuse", func(c *Context, p notePut) (any, error) {
		put(c, p)
		return nil, Refuse(Conflict, []byte(`{"held":true}`), "note %s is held", p.ID)
	})
	Handle(m, "note.deny", func(c *Context, p notePut) (any, error) {
		put(c, p)
		return nil, Refuse(Forbidden, nil, "not yours")
	})
	Handle(m, "note.panic", func(c *Context, p notePut) (any, error) {
		put(c, p)
		panic("broken invariant")
	})
	Handle(m, "note.fail", func(c *Context, p notePut) (any, error) { put(c, p); return nil, errors.New("not a refusal") })
	Handle(m, "note.count", func(c *Context, p notePut) (any, error) { // scans rows and an index
		n := 0
		for range notes.All(c.Tx, c.Cmd.Company) {
			n++
		}
		ids := ""
		for id := range notesByLen.IDs(c.Tx, c.Cmd.Company, Order(uint64(len(p.Text))), false) {
			ids += id + " "
		}
		notes.Put(c.Tx, c.Cmd.Company, "count", note{Text: ids, Count: int64(n)})
		return int64(n), nil
	})
	Handle(m, "note.delete", func(c *Context, p notePut) (any, error) {
		if n, ok := notes.Get(c.Tx, c.Cmd.Company, p.ID); ok {
			notesByLen.Remove(c.Tx, c.Cmd.Company, Order(uint64(len(n.Text))), p.ID)
			notes.Delete(c.Tx, c.Cmd.Company, p.ID)
		}
		return nil, nil
	})
	Handle(m, "note.many", func(c *Context, p notePut) (any, error) {
		for i := range MaxTouched + 1 {
			notes.Put(c.Tx, c.Cmd.Company, fmt.Sprint(i), note{})
		}
		return nil, nil
	})
	Handle(m, "note.wide", func(c *Context, p notePut) (any, error) {
		n, err := strconv.Atoi(p.Text)
		for i := range n {
			notes.Put(c.Tx, c.Cmd.Company, fmt.Sprint(i), note{})
		}
		c.Widen()
		return nil, err
	})
	Handle(m, "note.erase", func(c *Context, p notePut) (any, error) {
		return ErasePayloads(c.Tx, c.Cmd.Company, 2), nil
	})
	Handle(m, "note.wipe", func(c *Context, p notePut) (any, error) {
		return deleteCompany(c.Tx, c.Cmd.Company, 10+10*len(p.Text)), nil
	})
	Handle(m, "note.defer", func(c *Context, p notePut) (any, error) { c.Defer(); return nil, nil })
	Handle(m, "note.endSession", func(c *Context, p notePut) (any, error) { EndSession(c, c.Session); return nil, nil })
	return m
}

func keysOf(n byte) *identity.Keys { return identity.Derive(sha256.Sum256([]byte{n})) }

// world writes a raft log as the nodes of a mesh would.
type world struct {
	t     testing.TB
	mesh  identity.MeshID
	index uint64
	now   time.Time
	log   []LogEntry
	salt  byte
}

func newWorld(t testing.TB) *world {
	return &world{t: t, now: time.Date(2026, 11, 21, 3, 6, 12, 922e6, time.UTC)}
}

// add appends a batch to the log.
func (w *world) add(origin *identity.Keys, session, first, mark uint64, cmds ...Command) []byte {
	w.t.Helper()
	b := EncodeBatch(w.mesh, origin.ID(), session, first, mark, cmds, origin.Sign)
	w.now = w.now.Add(7 * time.Millisecond)
	StampBatch(b, w.now)
	return w.addRaw(b)
}

func (w *world) addRaw(b []byte) []byte {
	w.index++
	w.log = append(w.log, LogEntry{Index: w.index, Term: 1, Data: b})
	return b
}

func (w *world) command(kind string, company CompanyID, actor Actor, payload any) Command {
	w.salt++
	return Command{Kind: kind, Company: company, Actor: actor, Credential: Credential{Kind: "local"},
		Payload: Marshal(payload), Salt: [16]byte{w.salt, 1}}
}

var board = Actor{"user", "local-board"}

func (w *world) user(kind string, payload any) Command { return w.command(kind, "", board, payload) }

func (w *world) note(kind, id, text string) Command {
	return w.command(kind, "11111111-1111-4111-8111-111111111111", Actor{"agent", "ada"}, notePut{id, text})
}

func asNode(k *identity.Keys) Actor { return Actor{"node", string(k.ID())} }

func newNode(k *identity.Keys, name string) NewNode {
	return NewNode{Key: k.Public(), SealCert: k.Certificate(identity.ForSeal).Encode(), Name: name}
}

// found writes genesis by node 1 and opens its session.
func (w *world) found() (k *identity.Keys) {
	w.t.Helper()
	k = keysOf(1)
	g := Genesis{Name: "test", Founder: newNode(k, "one"), CreatedAt: w.now.UnixMilli(),
		Wrapped: NodeKeys{Node: k.ID(), Epoch: 1, Data: []byte("data"), Gossip: []byte("gossip")}}
	w.addNoop()
	w.mesh = identity.MeshIDOf(Marshal(g))
	w.add(k, 0, 0, 0, w.command(KindGenesis, "", asNode(k), g))
	w.open(k, "first")
	return k
}

func (w *world) addNoop() {
	w.index++
	w.log = append(w.log, LogEntry{Index: w.index, Term: 1})
}

func (w *world) open(k *identity.Keys, nonce string) {
	w.t.Helper()
	w.add(k, 0, 0, 0, w.command(KindSessionOpen, "", asNode(k), SessionOpen{"life-1", nonce}))
}

func openStore(t testing.TB, fs vfs.FS) *store.Store {
	t.Helper()
	s, err := store.Open("db", store.Options{FS: fs, Small: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openLedger(t testing.TB, s *store.Store, change ...func(*Config)) *Ledger {
	t.Helper()
	c := Config{Span: s.Span('s'), Mux: noteMux()}
	for _, f := range change {
		f(&c)
	}
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// newLedger is a ledger in memory that is closed at the end of the test.
func newLedger(t testing.TB, change ...func(*Config)) *Ledger {
	t.Helper()
	s := openStore(t, vfs.NewMem())
	l := openLedger(t, s, change...)
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// apply applies what the world has written since, as one group, and returns
// the receipts of the last batch.
func (w *world) apply(l *Ledger) []Receipt {
	w.t.Helper()
	var last []byte
	for _, r := range l.ApplyBatch(w.log) {
		if r != nil {
			last = r
		}
	}
	w.log = nil
	rs, err := DecodeReceipts(last)
	if err != nil {
		w.t.Fatal(err)
	}
	return rs
}

func wantOK(t testing.TB, rs []Receipt) {
	t.Helper()
	for i, r := range rs {
		if r.Refusal != nil {
			t.Fatalf("command %d refused: %s: %s", i, r.Refusal.Code, r.Refusal.Message)
		}
	}
}

func wantRefusal(t testing.TB, r Receipt, code Code) {
	t.Helper()
	if r.Refusal == nil || r.Refusal.Code != code {
		t.Fatalf("receipt %+v (refusal %+v), want refusal %s", r, r.Refusal, code)
	}
}

// dump returns all rows of a ledger's span.
func dump(l *Ledger) map[string]string {
	out := map[string]string{}
	for k, v := range l.span.Scan(nil, nil, false) {
		out[string(k)] = string(v)
	}
	return out
}

func wantSameState(t testing.TB, got, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("row %q = %x, want %x", k, got[k], v)
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("row %q should not be there", k)
		}
	}
}

func view(t testing.TB, l *Ledger, f func(tx *Tx)) {
	t.Helper()
	if err := l.View(func(tx *Tx) error { f(tx); return nil }); err != nil {
		t.Fatal(err)
	}
}

func session(t testing.TB, l *Ledger, k *identity.Keys) (id uint64) {
	t.Helper()
	view(t, l, func(tx *Tx) {
		s, ok := SessionOf(tx, k.ID())
		if !ok {
			t.Fatal("node has no session")
		}
		id = s.ID
	})
	return id
}

func TestCommandsChangeStateAndChainTogether(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	wantOK(t, w.apply(l))
	s := session(t, l, k)
	w.add(k, s, 1, 1, w.note("note.put", "a", "hello"), w.note("note.put", "a", "world"), w.note("note.refuse", "b", "x"),
		w.note("note.deny", "c", "x"), w.note("note.panic", "d", "x"), w.note("note.fail", "e", "x"),
		w.note("note.defer", "f", ""))
	rs := w.apply(l)
	wantOK(t, rs[:2])
	for i, code := range []Code{Conflict, Forbidden, Internal, Internal} {
		wantRefusal(t, rs[2+i], code)
	}
	var n note
	if err := Unmarshal(rs[1].Value, &n); err != nil || n != (note{"world", 2}) {
		t.Errorf("value = %+v, %v", n, err)
	}
	if got := string(rs[2].Refusal.Detail); got != `{"held":true}` {
		t.Errorf("detail = %s", got)
	}
	view(t, l, func(tx *Tx) {
		if n, ok := notes.Get(tx, "11111111-1111-4111-8111-111111111111", "a"); !ok || n.Count != 2 {
			t.Errorf("note a = %+v, %v", n, ok)
		}
		for _, id := range []string{"b", "c", "d", "e"} {
			if n, ok := notes.Get(tx, "11111111-1111-4111-8111-111111111111", id); ok {
				t.Errorf("note %s = %+v was kept though its command was refused", id, n)
			}
		}
	})
	// genesis, session, two puts, one denial, one deferral
	outcomes := ""
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range l.Entries(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		outcomes += fmt.Sprintf("%d %s %s %s\n", e.Height, e.Kind, e.Outcome, e.Reason)
		if e.Height == 6 {
			cancel()
		}
	}
	want := `1 mesh.genesis applied 
2 session.open applied 
3 note.put applied 
4 note.put applied 
5 note.deny denied not yours
6 note.defer deferred 
`
	if outcomes != want {
		t.Errorf("entries:\n%swant:\n%s", outcomes, want)
	}
	st := l.Stats()
	if st.Refused[Conflict] != 1 || st.Refused[Internal] != 2 || st.Panics != 2 || st.Entries != 6 {
		t.Errorf("stats = %+v", st)
	}
	if _, err := l.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestSequencesHaveOneFinalOutcome(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	w.apply(l)
	s := session(t, l, k)
	first := w.add(k, s, 1, 1, w.note("note.put", "a", "1"), w.note("note.refuse", "a", "2"))
	rs := w.apply(l)
	pos := l.Position()

	w.addRaw(first) // the same bytes again
	again := w.apply(l)
	if fmt.Sprintf("%+v %+v", rs[0], rs[1].Refusal) != fmt.Sprintf("%+v %+v", again[0], again[1].Refusal) {
		t.Errorf("repeated batch got\n%+v, want\n%+v", again, rs)
	}
	// the refused sequence again in another batch with a new one behind it,
	// and what it asks for would be allowed now
	w.add(k, s, 2, 2, w.note("note.put", "a", "2"), w.note("note.put", "a", "3"))
	rs = w.apply(l)
	wantRefusal(t, rs[0], Conflict)
	wantOK(t, rs[1:])
	if got := l.Position().Height - pos.Height; got != 1 {
		t.Errorf("%d entries, want 1", got)
	}
	// sequence 1 is below the mark now
	w.addRaw(first)
	rs = w.apply(l)
	wantRefusal(t, rs[0], Unavailable)
	if rs[0].Refusal.ErrCode != ErrCodeBelowMark {
		t.Errorf("code %q, want %q", rs[0].Refusal.ErrCode, ErrCodeBelowMark)
	}
	wantRefusal(t, rs[1], Conflict) // sequence 2 still has its outcome

	// outcomes below the mark are forgotten
	w.add(k, s, 4, 4, w.note("note.put", "a", "4"))
	wantOK(t, w.apply(l))
	n := 0
	for key := range dump(l) {
		if strings.HasPrefix(key, "m/~outcome/") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d outcome rows, want 1", n)
	}
}

func TestOutcomesSurviveReopening(t *testing.T) {
	s := openStore(t, vfs.NewMem())
	defer s.Close()
	l, w := openLedger(t, s), newWorld(t)
	k := w.found()
	w.apply(l)
	id := session(t, l, k)
	batch := w.add(k, id, 1, 1, w.note("note.put", "a", "1"))
	want := w.apply(l)
	l = openLedger(t, s)
	w.addRaw(batch)
	got := w.apply(l)
	if got[0].Height != want[0].Height || !bytes.Equal(got[0].Value, want[0].Value) {
		t.Errorf("after reopening: %+v, want %+v", got[0], want[0])
	}
}

func TestEndedSessionsAndRevokedNodesAreRefused(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	w.apply(l)
	s := session(t, l, k)
	// the session ends in the middle of a batch
	w.add(k, s, 1, 1, w.note("note.put", "a", "1"), w.note("note.endSession", "", ""), w.note("note.put", "a", "2"))
	rs := w.apply(l)
	wantOK(t, rs[:2])
	wantRefusal(t, rs[2], Unavailable)
	if rs[2].Refusal.ErrCode != ErrCodeSessionEnded {
		t.Errorf("code %q", rs[2].Refusal.ErrCode)
	}
	for key := range dump(l) {
		if strings.HasPrefix(key, "m/~outcome/") || strings.HasPrefix(key, "m/~mark/") {
			t.Errorf("row %s of the ended session is left", key)
		}
	}
	// a new session, then another node joins and ends up revoked
	w.open(k, "second")
	w.apply(l)
	s = session(t, l, k)
	two := keysOf(2)
	w.add(two, s, 1, 1, w.note("note.put", "a", "3"))
	wantRefusal(t, w.apply(l)[0], Unauthorized) // not a member yet
	w.add(k, s, 1, 1, w.user(KindNodeAdmit, NodeAdmit{Node: newNode(two, "two")}))
	wantOK(t, w.apply(l))
	w.add(two, s, 1, 1, w.note("note.put", "a", "3"))
	wantRefusal(t, w.apply(l)[0], Unavailable) // another node's session
	w.add(two, 0, 0, 0, w.note("note.put", "a", "3"))
	wantRefusal(t, w.apply(l)[0], Unavailable) // no session at all
	w.open(two, "x")
	wantOK(t, w.apply(l))
	s2 := session(t, l, two)
	w.add(two, s2, 1, 1, w.note("note.put", "a", "3"))
	wantOK(t, w.apply(l))
	w.add(k, s, 2, 2, w.user(KindNodeRevoke, NodeRevoke{Node: two.ID()}))
	wantOK(t, w.apply(l))
	w.add(two, s2, 2, 2, w.note("note.put", "a", "4"))
	wantRefusal(t, w.apply(l)[0], Unauthorized)
	w.open(two, "y")
	wantRefusal(t, w.apply(l)[0], Unauthorized)
	if _, err := l.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestIdempotencyKeys(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	w.apply(l)
	s, seq := session(t, l, k), uint64(0)
	ask := func(c Command, key, request string) Receipt {
		t.Helper()
		seq++
		c.IdempotencyKey, c.RequestDigest = key, sha256.Sum256([]byte(request))
		w.add(k, s, seq, seq, c)
		return w.apply(l)[0]
	}
	one := ask(w.note("note.put", "a", "1"), "k1", "body")
	if got := ask(w.note("note.put", "a", "2"), "k1", "body"); got.Height != one.Height || got.Index != one.Index ||
		!bytes.Equal(got.Value, one.Value) {
		t.Errorf("repeated key: %+v, want %+v", got, one)
	}
	wantRefusal(t, ask(w.note("note.put", "a", "2"), "k1", "other body"), Unprocessable)
	wantRefusal(t, ask(w.note("note.refuse", "a", "2"), "k2", "body"), Conflict)
	wantRefusal(t, ask(w.note("note.put", "a", "2"), "k2", "body"), Conflict) // refusals too
	other := w.note("note.put", "b", "1")
	other.Actor.ID = "bob"
	if got := ask(other, "k1", "body"); got.Height == one.Height {
		t.Error("another actor's key gave this one's outcome")
	}
	w.now = w.now.Add(IdempotencyWindow)
	if got := ask(w.note("note.put", "a", "2"), "k1", "other body"); got.Refusal != nil || got.Height == one.Height {
		t.Errorf("after a day: %+v, want a new outcome", got)
	}
	// old rows are swept by new ones: k2 of ada and k1 of bob are gone, the new k1 stays
	for range 2 {
		ask(w.note("note.put", "z", ""), "fresh", "body")
	}
	rows := 0
	for key := range dump(l) {
		if strings.Contains(key, "/~idem/") {
			rows++
		}
	}
	if rows != 2 {
		t.Errorf("%d idempotency rows, want 2", rows)
	}
}

func TestAuthorizeIsAskedInsideApply(t *testing.T) {
	l, w := newLedger(t, func(c *Config) {
		c.Authorize = func(c *Context) error {
			if c.Cmd.Credential.ID == "revoked-key" {
				return Refuse(Unauthorized, nil, "the key was revoked")
			}
			if c.Cmd.Credential.ID == "weak" {
				return Refuse(Forbidden, nil, "may not")
			}
			return nil
		}
	}), newWorld(t)
	k := w.found()
	w.apply(l)
	revoked, weak := w.note("note.put", "a", "1"), w.note("note.put", "a", "1")
	revoked.Credential, weak.Credential = Credential{"agent_key", "revoked-key"}, Credential{"agent_key", "weak"}
	w.add(k, session(t, l, k), 1, 1, revoked, weak)
	rs := w.apply(l)
	wantRefusal(t, rs[0], Unauthorized)
	wantRefusal(t, rs[1], Forbidden)
	if rs[0].Height != 0 || rs[1].Height != 3 {
		t.Errorf("heights %d and %d: a denial is an entry, a failed credential is not", rs[0].Height, rs[1].Height)
	}
}

func TestUnknownKindStopsAndNeverRefuses(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	w.apply(l)
	s := session(t, l, k)
	w.add(k, s, 1, 1, w.note("note.put", "a", "1"))
	w.add(k, s, 2, 2, w.note("note.put", "a", "2"), w.note("note.future", "a", "3"))
	w.add(k, s, 4, 4, w.note("note.put", "a", "4"))
	before := l.Applied()
	results := l.ApplyBatch(w.log)
	if results[0] == nil || results[1] != nil || results[2] != nil {
		t.Errorf("results %v: want only the first", results)
	}
	if l.Applied() != before+1 || !errors.Is(l.Err(), ErrUpgrade) {
		t.Errorf("applied %d, err %v", l.Applied(), l.Err())
	}
	if err := l.WaitApplied(t.Context(), before+2); !errors.Is(err, ErrUpgrade) {
		t.Errorf("WaitApplied = %v", err)
	}
	if _, err := l.Snapshot(); !errors.Is(err, ErrUpgrade) {
		t.Errorf("Snapshot = %v", err)
	}
	view(t, l, func(tx *Tx) {
		if n, _ := notes.Get(tx, "11111111-1111-4111-8111-111111111111", "a"); n.Text != "1" {
			t.Errorf("note a = %+v", n)
		}
	})
	// the upgraded program goes on where the old one stopped
	up := openLedger(t, l.span.Store(), func(c *Config) {
		Handle(c.Mux, "note.future", func(c *Context, p notePut) (any, error) { return nil, nil })
	})
	for _, r := range up.ApplyBatch(w.log)[1:] {
		rs, err := DecodeReceipts(r)
		if err != nil {
			t.Fatal(err)
		}
		wantOK(t, rs)
	}
	// a feature level that this version does not know stops it as well
	w.log = nil
	w.add(k, s, 5, 5, w.user(KindFeatureRaise, FeatureRaise{Level: FeatureLevel + 1}))
	up.ApplyBatch(w.log)
	if !errors.Is(up.Err(), ErrUpgrade) {
		t.Errorf("err %v", up.Err())
	}
}

func TestGapInIndexesPanics(t *testing.T) {
	l := newLedger(t)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	l.ApplyBatch([]LogEntry{{Index: 2}})
}

func TestTooManyRowsAreRefused(t *testing.T) {
	l, w := newLedger(t), newWorld(t)
	k := w.found()
	w.apply(l)
	w.add(k, session(t, l, k), 1, 1, w.note("note.many", "", ""), w.note("note.count", "", ""))
	rs := w.apply(l)
	wantRefusal(t, rs[0], TooLarge)
	if got := hex.EncodeToString(rs[1].Value); got != "00" {
		t.Errorf("rows left: %s", got)
	}
	// What comes in as a whole may be wide, up to a bound of
	// its own, and the next command is not.
	w.add(k, session(t, l, k), 3, 3, w.note("note.wide", "", fmt.Sprint(MaxTouchedWide+1)),
		w.note("note.wide", "", fmt.Sprint(MaxTouched+1)), w.note("note.many", "", ""))
	rs = w.apply(l)
	wantRefusal(t, rs[0], TooLarge)
	if rs[1].Refusal != nil {
		t.Errorf("a wide command was refused: %v", rs[1].Refusal)
	}
	wantRefusal(t, rs[2], TooLarge)
}

func TestRulesCanNotReadWhatDependsOnGrouping(t *testing.T) {
	l, w := newLedger(t, func(c *Config) {
		Handle(c.Mux, "note.peek", func(c *Context, p notePut) (any, error) { return c.Position().Height, nil })
		Handle(c.Mux, "note.peekScan", func(c *Context, p notePut) (any, error) {
			for range c.Scan(nil, []byte("z"), false) {
			}
			return nil, nil
		})
	}), newWorld(t)
	k := w.found()
	w.apply(l)
	w.add(k, session(t, l, k), 1, 1, w.note("note.peek", "", ""), w.note("note.peekScan", "", ""))
	for _, r := range w.apply(l) {
		wantRefusal(t, r, Internal)
	}
}

// A part of a handler that refuses leaves neither rows nor lines behind; one
// that succeeds leaves both.
func TestTryKeepsAllOrNothing(t *testing.T) {
	t.Parallel()
	c := &Context{Tx: NewTx(emptyState{}), Cmd: &Command{}}
	c.Record(Change{Action: "first"})
	no := Refuse(Conflict, nil, "no")
	err := c.Try(func(c *Context) error {
		c.Set([]byte("a"), []byte("1"))
		c.Record(Change{Action: "dropped"})
		c.Defer()
		return no
	})
	if err != no || c.Has([]byte("a")) || len(c.Changes()) != 1 || c.deferred {
		t.Errorf("after a refusal: %v, %v, changes %v", err, c.Has([]byte("a")), c.Changes())
	}
	if err := c.Try(func(c *Context) error {
		c.Set([]byte("a"), []byte("1"))
		c.Record(Change{Action: "second"})
		return nil
	}); err != nil || !c.Has([]byte("a")) || len(c.Changes()) != 2 || c.Changes()[1].Action != "second" {
		t.Errorf("after success: %v, changes %v", err, c.Changes())
	}
}

type emptyState struct{}

func (emptyState) Get([]byte) ([]byte, bool) { return nil, false }
func (emptyState) Scan(_, _ []byte, _ bool) iter.Seq2[[]byte, []byte] {
	return func(func([]byte, []byte) bool) {}
}

// deleteCompany is a handler's work that touches many rows: it removes at most limit rows of
// a company, of every table, and returns whether there are more.
func deleteCompany(tx *Tx, company CompanyID, limit int) (more bool) {
	n := 0
	for k := range tx.Prefix(Key("c", string(company), "")) {
		if n == limit {
			return true
		}
		n++
		tx.Delete(k)
	}
	return false
}
