package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/ledger/store"
)

// applier is what apply works with. Only the goroutine that holds applying
// touches it. It is a function of the state and may be dropped and rebuilt at
// any entry; nothing in it decides anything that a fresh one would not.
type applier struct {
	l       *Ledger
	pos     Position
	rows    *rowCache
	rising  *rising
	group   *Tx // writes of the group, laid over the committed state
	child   *Tx // of one command, over group
	batch   *store.Batch
	windows map[uint64]*window          // by session
	keys    map[CompanyID]*rememberedOf // idempotency keys, by company

	acts   []actBlock       // of the batch that is being applied
	actors map[actorAt]bool // who is marked

	fresh  []Entry // entered by the group, for the feed
	roster bool    // the group changed a row of the roster
	digest []byte  // what the digest of one raft entry is over
	buf    []byte  // entry bytes and other short-lived encodings
	order  []string
	want   [][]byte // keys to read ahead
	wanted map[string]bool
}

func (a *applier) init(l *Ledger, pos Position) {
	rows := newRowCache(l.room(l.cfg.RowCacheBytes))
	*a = applier{l: l, pos: pos, rows: rows, rising: &rising{map[string]string{}}}
	a.group = NewTx(applyReader{l.span, rows, a.rising})
	a.group.cache = newDecoded(l.room(l.cfg.DecodedBytes))
	a.child = a.group.Child()
	a.windows = map[uint64]*window{}
	a.keys = map[CompanyID]*rememberedOf{}
	a.wanted = map[string]bool{}
	a.actors = map[actorAt]bool{}
}

// applyReader reads the committed state through the row cache.
type applyReader struct {
	span   *store.Span
	rows   *rowCache
	rising *rising
}

func (r applyReader) Get(key []byte) ([]byte, bool) {
	forbidInternal(key)
	if v, ok := r.rows.get(key); ok {
		return v, v != nil
	}
	if r.rising.absent(key, r.last) {
		return nil, false
	}
	v, ok := found(r.span.Get(key))
	r.rows.missed++
	r.rows.put(string(key), v)
	return v, ok
}

// last returns the last key that begins with prefix, or prefix.
func (r applyReader) last(prefix []byte) []byte {
	for k := range r.span.Scan(prefix, PrefixEnd(prefix), true) {
		return bytes.Clone(k)
	}
	return prefix
}

func (r applyReader) Scan(from, to []byte, reverse bool) iter.Seq2[[]byte, []byte] {
	if to == nil || string(from) <= string(rune(internalPrefix)) && string(to) > string(rune(internalPrefix)) {
		forbidInternal([]byte{internalPrefix})
	}
	forbidInternal(from)
	return r.span.Scan(from, to, reverse)
}

func forbidInternal(key []byte) {
	if len(key) > 0 && key[0] == internalPrefix {
		panic(fmt.Sprintf("ledger: a rule reads %q, which depends on how entries are grouped", key))
	}
}

// ApplyBatch carries out committed raft entries, in order and without gaps, as
// one write to the state. It returns one result for each entry: the encoded
// receipts of its commands (see [DecodeReceipts]), or nil for an entry without
// commands, one that was applied before, and all entries from the one on at
// which the ledger stopped ([Ledger.Err] tells why).
//
// The same entries give the same state, chain and results however they are
// grouped. The write is not synced: it becomes durable with the next synced
// write to the store, and entries at or below [Ledger.Applied] are skipped when
// they come again. A gap in the indexes, a failing disk and anything else that
// would let replicas drift apart panics.
func (l *Ledger) ApplyBatch(entries []LogEntry) (results [][]byte) {
	l.applying.Lock()
	defer l.applying.Unlock()
	results = make([][]byte, len(entries))
	if len(entries) == 0 || l.Err() != nil {
		return results
	}
	var began time.Time
	if l.cfg.Clock != nil {
		began = l.cfg.Clock()
	}
	stop := l.apply.entries(entries, results)
	l.publish(stop)
	if l.cfg.Clock != nil {
		l.stats.nanos.Add(uint64(l.cfg.Clock().Sub(began)))
	}
	return results
}

func (l *Ledger) publish(stop error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pos = l.apply.pos
	l.err = stop
	if l.apply.roster {
		l.apply.roster = false
		l.members.forget()
	}
	l.remember(l.apply.fresh)
	clear(l.apply.fresh)
	l.apply.fresh = l.apply.fresh[:0]
	l.wake()
}

// remember keeps the newest entries in memory, where most readers of the feed
// find what they wait for; l.mu is held.
func (l *Ledger) remember(fresh []Entry) {
	l.recent = append(l.recent, fresh...)
	for i := range fresh {
		l.recentSize += fresh[i].size()
	}
	if len(l.recent) <= 2*recentEntries && l.recentSize <= 2*recentBytes {
		return
	}
	from := 0
	for ; from < len(l.recent) && (len(l.recent)-from > recentEntries || l.recentSize > recentBytes); from++ {
		l.recentSize -= l.recent[from].size()
	}
	n := copy(l.recent, l.recent[from:]) // readers have copies
	clear(l.recent[n:])
	l.recent = l.recent[:n]
}

// entries applies and writes a group. It returns why it stopped before the end.
// Damage of the store is such a reason: nothing of the group is kept then, and the
// node rebuilds its state. Any other failure of the disk ends the process.
func (a *applier) entries(entries []LogEntry, results [][]byte) (stop error) {
	before := a.pos
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		failure, ok := r.(StorageError)
		damage, is := errors.AsType[*store.Damage](failure.Err)
		if !ok || !is {
			panic(r)
		}
		a.pos = before
		clear(results)
		stop = damage
	}()
	batches, errs := a.decode(entries)
	a.batch = a.l.span.NewBatch()
	defer func() {
		a.batch.Close()
		a.batch = nil
	}()
	for i, e := range entries {
		if e.Index <= a.pos.Applied {
			continue // replayed
		}
		if e.Index != a.pos.Applied+1 {
			panic(fmt.Sprintf("ledger: raft entry %d after %d", e.Index, a.pos.Applied))
		}
		if errors.Is(errs[i], ErrUpgrade) {
			stop = errs[i]
			a.l.log.Error("ledger: stopped applying", "index", e.Index, "err", stop)
			break
		}
		switch {
		case e.Data == nil:
		case errs[i] != nil:
			results[i] = a.refuseAll(e.Index, 1, Refusal{Code: Invalid, Message: "malformed batch"})
		default:
			results[i] = a.raftEntry(e, batches[i])
		}
		a.pos.Applied = e.Index
		if e.Index%DigestEvery == 0 {
			a.batch.Set(digestKey(e.Index), a.pos.Digest[:])
			if e.Index > digestsKept*DigestEvery {
				a.batch.Delete(digestKey(e.Index - digestsKept*DigestEvery))
			}
		}
	}
	a.commit()
	return stop
}

// decode reads the batches of a group and the rows that they will ask for.
func (a *applier) decode(entries []LogEntry) ([]*Batch, []error) {
	batches, errs := make([]*Batch, len(entries)), make([]error, len(entries))
	for i, e := range entries {
		if e.Data == nil || e.Index <= a.pos.Applied {
			continue
		}
		if batches[i], errs[i] = DecodeBatch(e.Data); errs[i] == nil {
			errs[i] = a.l.known(batches[i])
		}
		if errors.Is(errs[i], ErrUpgrade) {
			break
		}
	}
	a.prefetch(batches)
	return batches, errs
}

// known returns an error that wraps ErrUpgrade when b asks for what only a
// newer version has.
func (l *Ledger) known(b *Batch) error {
	for i := range b.Commands {
		c := &b.Commands[i]
		if _, ok := l.mux[c.Kind]; !ok {
			return fmt.Errorf("%w: command %q", ErrUpgrade, c.Kind)
		}
		var level uint64
		switch c.Kind {
		case KindFeatureRaise:
			var p FeatureRaise
			if Unmarshal(c.Payload, &p) == nil {
				level = p.Level
			}
		case KindGenesis:
			var p Genesis
			if Unmarshal(c.Payload, &p) == nil {
				level = p.Level
			}
		}
		if err := l.knowsLevel(level); err != nil {
			return err
		}
	}
	return nil
}

// knowsLevel returns an error that wraps ErrUpgrade when a feature level is above
// this node's.
func (l *Ledger) knowsLevel(level uint64) error {
	if level > l.cfg.Level {
		return fmt.Errorf("%w: feature level %d, this node has %d", ErrUpgrade, level, l.cfg.Level)
	}
	return nil
}

// Knows reports whether this node can carry out commands of the given kind.
func (l *Ledger) Knows(kind string) bool { _, ok := l.mux[kind]; return ok }

// prefetch reads, in parallel, rows that the commands will probably ask for
// and that are not in memory. While everything is, it does not look.
func (a *applier) prefetch(batches []*Batch) {
	missed := a.rows.missed
	a.rows.missed = 0
	if a.l.cfg.Prefetch == nil || missed < prefetchMin {
		return
	}
	a.want = a.want[:0]
	clear(a.wanted)
	want := func(key []byte) {
		if len(a.want) < prefetchKeys && !a.rows.has(string(key)) && !a.wanted[string(key)] {
			a.wanted[string(key)] = true
			a.want = append(a.want, key)
		}
	}
	for _, b := range batches {
		if b == nil {
			continue
		}
		for i := range b.Commands {
			a.l.cfg.Prefetch(&b.Commands[i], want)
		}
	}
	if len(a.want) < prefetchMin {
		return
	}
	values, err := a.l.span.GetAll(a.want, prefetchWorkers)
	if err != nil {
		panic(StorageError{Err: err})
	}
	for i, key := range a.want {
		a.rows.put(string(key), values[i])
	}
	a.rows.missed = len(a.want)
	a.l.stats.fetched.Add(uint64(len(a.want)))
}

// commit writes the group as one unsynced write and takes its rows into the cache.
func (a *applier) commit() {
	for key, v := range a.group.Writes() { // in order, which is how the memtable takes them fastest
		if v == nil {
			a.batch.DeleteString(key)
		} else {
			a.batch.SetString(key, v)
		}
	}
	pos := a.pos
	if a.l.cfg.Faults.StateAheadOfLog {
		pos.Applied++
	}
	a.batch.Set(positionKey, pos.encode())
	n := a.batch.Len()
	a.l.reads.forget(a.group.writes, a.pos.Applied)
	if err := a.l.span.Commit(a.batch, false); err != nil {
		panic(StorageError{Err: err})
	}
	for key, v := range a.group.writes {
		a.roster = a.roster || strings.HasPrefix(key, rosterPrefix)
		if v != nil {
			a.rising.wrote(key)
		}
		// Most of what is written was read before, or is never read again.
		if a.rows.has(key) {
			a.rows.put(key, v)
		}
	}
	a.group.reset()
	s := &a.l.stats
	s.groups.Add(1)
	s.bytes.Add(uint64(n))
	s.hits.Store(a.rows.hits)
	s.reads.Store(a.rows.total)
}

// raftEntry applies one batch and returns its encoded receipts.
func (a *applier) raftEntry(e LogEntry, b *Batch) []byte {
	a.digest = binary.BigEndian.AppendUint64(append(a.digest[:0], a.pos.Digest[:]...), e.Index)
	a.l.stats.batches.Add(1)
	if refusal := a.refuseBatch(b); refusal != nil {
		return a.refuseAll(e.Index, len(b.Commands), *refusal)
	}
	a.record(e, b)
	a.pos.Time = max(a.pos.Time, b.Time.UnixMilli())

	w := a.window(b)
	w.advance(a, b)
	receipts := make([]Receipt, len(b.Commands))
	fresh := make([]bool, len(b.Commands)) // those that get their outcome here
	var s speaker
	for i := range b.Commands {
		r := &receipts[i]
		if !a.l.cfg.Faults.NoDeduplication && w.outcome(b.First+uint64(i), r, e.Index) {
			a.l.stats.repeated.Add(1)
			continue
		}
		fresh[i] = a.command(e.Index, b, i, r, &s)
		if r.Refusal != nil {
			a.l.stats.refuse(r.Refusal.Code)
		}
	}
	a.endActivity()
	a.l.stats.commands.Add(uint64(len(b.Commands)))
	result := EncodeReceipts(receipts)
	w.keep(a, b, receipts, result, fresh)
	a.endEntry(result)
	return result
}

// refuseBatch returns why a batch as a whole may not be recorded: it is of
// another mesh or of nobody that was ever a member. The leader does not propose
// such a batch (see [Ledger.CheckBatch]).
func (a *applier) refuseBatch(b *Batch) *Refusal {
	if a.pos.Mesh == "" {
		if b.Session == 0 && b.Commands[0].Kind == KindGenesis {
			return nil
		}
		return &Refusal{Code: Unavailable, Message: "this mesh has not been founded"}
	}
	if b.Mesh != a.pos.Mesh {
		return &Refusal{Code: Invalid, Message: "batch of another mesh"}
	}
	if isEpoch(b) {
		return a.refuseEpoch(b)
	}
	if _, ok := nodes.Get(a.group, string(b.Origin)); !ok {
		return &Refusal{Code: Unauthorized, Message: "batch of a node that is not a member"}
	}
	return nil
}

// refuseAll gives n commands the same refusal, without a record or outcome.
func (a *applier) refuseAll(index uint64, n int, f Refusal) []byte {
	rs := make([]Receipt, n)
	for i := range rs {
		rs[i] = Receipt{Index: index, Refusal: &f}
		a.l.stats.refuse(f.Code)
	}
	a.digest = binary.BigEndian.AppendUint64(append(a.digest[:0], a.pos.Digest[:]...), index)
	result := EncodeReceipts(rs)
	a.endEntry(result)
	return result
}

func (a *applier) endEntry(result []byte) {
	a.digest = append(a.digest, result...)
	a.pos.Digest = sha256.Sum256(a.digest)
}

// record stores the batch: a record without bodies that names the one before,
// and the bodies beside it under their company's key.
func (a *applier) record(e LogEntry, b *Batch) {
	rec := batchRecord(a.pos.Batch, e, b)
	a.pos.BatchIndex, a.pos.Batch = e.Index, batchHash(rec)
	a.batch.Set(batchKey(e.Index), rec)
	a.digest = append(a.digest, a.pos.Batch[:]...)

	company := b.Commands[0].Company
	same := true
	for i := range b.Commands {
		same = same && b.Commands[i].Company == company
	}
	if same {
		a.group.Set(payloadKey(company, e.Index), encodeBodies(b, company))
		return
	}
	seen := map[CompanyID]bool{}
	for i := range b.Commands {
		if c := b.Commands[i].Company; !seen[c] {
			seen[c] = true
			a.group.Set(payloadKey(c, e.Index), encodeBodies(b, c))
		}
	}
}

// command gives command i of b its outcome. It returns whether that is final:
// kept for the session. Otherwise it is one that any repetition gets again.
func (a *applier) command(index uint64, b *Batch, i int, r *Receipt, s *speaker) (final bool) {
	r.Index = index
	cmd := &b.Commands[i]
	if f := a.speaks(s, b, cmd); f != nil {
		r.Refusal = f
		return false
	}
	c := &Context{
		Tx: a.child, Now: time.UnixMilli(a.pos.Time).UTC(), Height: a.pos.Height + 1, Cmd: cmd,
		Mesh: b.Mesh, Origin: b.Origin, Session: b.Session, Index: index, Salt: cmd.Salt,
	}
	a.child.reset()
	a.child.entry = c.Height
	value, refusal := a.authorize(c)
	authorized, stopped := refusal == nil, false
	if authorized {
		if a.remembered(c, r) {
			a.l.stats.repeated.Add(1)
			return true
		}
		_, refusal = a.weigh(c)
		stopped = refusal != nil && refusal.Code != Internal
		if refusal == nil {
			value, refusal = a.handle(c)
		}
	}
	r.Value, r.Refusal = value, refusal
	switch {
	case stopped:
		a.stop(c, b, i, r)
	case refusal == nil:
		a.merge()
		outcome := Applied
		if c.deferred {
			outcome = Deferred
		}
		a.enter(c, b, i, outcome, "")
		r.Height = a.pos.Height
		a.moveMesh(c)
	case refusal.Code == Forbidden:
		c.changes = nil
		a.enter(c, b, i, Denied, refusal.Message)
		r.Height = a.pos.Height
	}
	if authorized {
		a.remember(c, r)
	}
	return true
}

// stop keeps what the gate wrote about a command that it refused, and enters it.
func (a *applier) stop(c *Context, b *Batch, i int, r *Receipt) {
	a.merge()
	if c.unentered {
		return
	}
	outcome := Denied
	if c.deferred {
		outcome = Deferred
	}
	a.enter(c, b, i, outcome, r.Refusal.Message)
	r.Height = a.pos.Height
}

// moveMesh follows the two commands that change what the position itself holds.
func (a *applier) moveMesh(c *Context) {
	switch c.Cmd.Kind {
	case KindGenesis:
		a.pos.Mesh = c.Mesh
	case KindTimeStep:
		var p TimeStep
		if err := Unmarshal(c.Cmd.Payload, &p); err != nil {
			panic("ledger: applied time.step does not decode")
		}
		a.pos.Time = max(a.pos.Time, p.To)
	}
}

// merge moves the command's writes into the group and extends the digest by
// them, in the order of their keys.
func (a *applier) merge() {
	a.order = a.order[:0]
	for key := range a.child.writes {
		a.order = append(a.order, key)
	}
	slices.Sort(a.order)
	for _, key := range a.order {
		v := a.child.writes[key]
		a.digest = appendBytes(a.digest, key)
		if v == nil {
			a.digest = append(a.digest, 0)
			// A company is being deleted: what is remembered of its rows is read again.
			switch _, name, _ := strings.Cut(key, "/~"); {
			case strings.HasPrefix(name, idemAtTable[1:]+"/"):
				clear(a.keys)
			case strings.HasPrefix(name, actActorTable[1:]+"/"):
				clear(a.actors)
			}
		} else {
			a.digest = appendBytes(append(a.digest, 1), v)
		}
	}
	a.child.Merge()
}

// enter adds a link to the chain and to the company's activity.
func (a *applier) enter(c *Context, b *Batch, i int, outcome Outcome, reason string) {
	cmd := c.Cmd
	e := Entry{
		Height: a.pos.Height + 1, Time: c.Now, Prev: a.pos.Head, Index: c.Index, Position: uint32(i),
		Batch: a.pos.Batch, PayloadHash: b.hashes[i], Kind: cmd.Kind, Company: cmd.Company,
		Actor: cmd.Actor, Credential: cmd.Credential, Run: cmd.Run,
		Outcome: outcome, Reason: cutText(reason, maxReasonBytes), Changes: c.changes,
	}
	a.buf = AppendEntry(a.buf[:0], &e)
	a.batch.Set(entryKey(e.Height), a.buf)
	a.pos.Height, a.pos.Head = e.Height, EntryHash(a.buf)
	a.digest = append(a.digest, a.pos.Head[:]...)
	a.l.stats.entries.Add(1)
	a.indexActivity(&e)
	e.Hash = a.pos.Head
	a.fresh = append(a.fresh, e)
}

// cutText cuts s to at most n bytes, at the border of a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
