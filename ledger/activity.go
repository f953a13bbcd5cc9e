package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The activity log of a company is the changes of its entries. Three indexes
// find them, newest first; they name heights, the entry has the rest:
//
//	c/<company>/~act/<height>                    the entries of one batch from that
//	                                             height on that have changes
//	c/<company>/~act-entity/<entity>/<height>    for each entity that an entry changed
//	c/<company>/~act-actor/<hash>/<stretch>      an actor was at work in the batches that
//	                                             begin in a stretch of actStretch heights
//
// where the value of the first is, for each entry: uvarint height above the
// key's, bytes actor type, bytes actor ID, uvarint number of changes, for each of
// them bytes action, bytes entity type, bytes entity ID. An entity is
// <type>.<ID> when both are plain words (so that what was made together lies
// together), else '#' and the hash; a hash is SHA-256 over type and ID, cut to
// 16 bytes, in hex.
//
// One key for a batch and one for a few hundred commands of an actor, instead of
// two for each command: inserting keys is most of what applying a command costs.
const (
	actTable       = "~act"
	actEntityTable = "~act-entity"
	actActorTable  = "~act-actor"
	// actStretch is how many heights a mark of an actor covers: whoever looks for
	// an actor passes over as many entries for each of its marks.
	actStretch = 1024
	// maxActWord bounds the words that stand in keys as they are.
	maxActWord = 64
)

// An Activity is one change as the activity log shows it.
type Activity struct {
	ID      string // UUID (version 8) that follows from the entry and the change's number
	Height  uint64
	Number  int // of the change within its entry
	At      time.Time
	Company CompanyID
	Kind    string
	Actor   Actor
	Run     string
	Change
}

// An ActivityFilter chooses activities. Empty fields choose all.
type ActivityFilter struct {
	EntityType, EntityID string
	Actor                Actor // Type and ID, or either
	Action               string
	Run                  string
	// Before continues a page: only changes older than this one.
	BeforeHeight uint64 // 0: from the newest on
	BeforeNumber int
	// From and To bound the time, both included; zero is no bound.
	From, To time.Time
	// AlsoType chooses changes of entities of this type whoever made them.
	AlsoType string
	Limit    int // at most MaxActivity, which is also what 0 means
}

// heightAfter returns the smallest height whose entry is of a later time than t,
// or one more than the newest.
func heightAfter(tx *Tx, t time.Time) uint64 {
	low, high := uint64(1), tx.Position().Height+1
	for low < high {
		mid := low + (high-low)/2
		if e, ok := EntryAt(tx, mid); ok && e.Time.After(t) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

func pairHash(kind, id string) string {
	var buf [160]byte
	sum := sha256.Sum256(append(appendBytes(buf[:0], kind), id...))
	return hex.EncodeToString(sum[:16])
}

// entityKeyPart returns how an entity is written in keys.
func entityKeyPart(kind, id string) string {
	if plainWord(kind) && plainWord(id) && !strings.Contains(kind, ".") {
		return kind + "." + id
	}
	return "#" + pairHash(kind, id)
}

func plainWord(s string) bool {
	if s == "" || len(s) > maxActWord {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}

// actBlock gathers the changes of one company's entries in a batch.
type actBlock struct {
	company CompanyID
	first   uint64
	value   []byte
}

// indexActivity enters the changes of an entry into the block of its company,
// which endActivity writes, and under their entities.
func (a *applier) indexActivity(e *Entry) {
	if e.Company == "" || len(e.Changes) == 0 {
		return
	}
	n := slices.IndexFunc(a.acts, func(b actBlock) bool { return b.company == e.Company })
	if n < 0 {
		n = len(a.acts)
		a.acts = append(a.acts, actBlock{company: e.Company, first: e.Height, value: make([]byte, 0, 1024)})
	}
	b := &a.acts[n]
	at := Order(e.Height)
	v := binary.AppendUvarint(b.value, e.Height-b.first)
	v = appendBytes(appendBytes(v, e.Actor.Type), e.Actor.ID)
	v = binary.AppendUvarint(v, uint64(len(e.Changes)))
	for i := range e.Changes {
		ch := &e.Changes[i]
		v = appendBytes(appendBytes(appendBytes(v, ch.Action), ch.EntityType), ch.EntityID)
		if i == 0 || ch.EntityID != e.Changes[i-1].EntityID || ch.EntityType != e.Changes[i-1].EntityType {
			a.group.Set(a.group.key("c", string(e.Company), actEntityTable, entityKeyPart(ch.EntityType, ch.EntityID), at), nil)
		}
	}
	b.value = v
	a.markActor(e.Company, e.Actor, b.first/actStretch)
}

// markActor marks that an actor was at work in a stretch. What it does not remember
// to have marked it marks, perhaps once more: that costs less than to look.
func (a *applier) markActor(company CompanyID, actor Actor, stretch uint64) {
	who := actorAt{company, actor, stretch}
	if a.actors[who] {
		return
	}
	if len(a.actors) >= rememberedActors {
		clear(a.actors)
	}
	a.actors[who] = true
	a.group.Set(Key("c", string(company), actActorTable, pairHash(actor.Type, actor.ID), Order(stretch)), nil)
}

type actorAt struct {
	company CompanyID
	actor   Actor
	stretch uint64
}

// endActivity writes the blocks of a batch.
func (a *applier) endActivity() {
	for i := range a.acts {
		a.group.Set(a.group.key("c", string(a.acts[i].company), actTable, Order(a.acts[i].first)), a.acts[i].value)
	}
	clear(a.acts)
	a.acts = a.acts[:0]
}

// Activities returns the newest activities of a company that f chooses, newest
// first. tx is a view. With an entity or an actor it reads little more than what
// belongs to them; other filters pass over at most 200,000 entries.
func Activities(tx *Tx, company CompanyID, f ActivityFilter) []Activity {
	if f.Limit <= 0 || f.Limit > MaxActivity {
		f.Limit = MaxActivity
	}
	if !f.To.IsZero() {
		if end := heightAfter(tx, f.To); f.BeforeHeight == 0 || f.BeforeHeight >= end {
			f.BeforeHeight, f.BeforeNumber = end, 0
		}
	}
	r := activityReader{tx: tx, company: company, f: f}
	switch {
	case f.EntityType != "" && f.EntityID != "":
		prefix := Key("c", string(company), actEntityTable, entityKeyPart(f.EntityType, f.EntityID), "")
		to := PrefixEnd(prefix)
		if f.BeforeHeight != 0 {
			to = append(append(prefix[:len(prefix):len(prefix)], Order(f.BeforeHeight)...),
				0) // the entry itself may have older changes
		}
		for k := range tx.Scan(prefix, to, true) {
			if r.scanned++; !r.take(mustOrder(k, prefix)) {
				break
			}
		}
	case f.Actor.Type != "" && f.Actor.ID != "" && f.AlsoType == "":
		prefix := Key("c", string(company), actActorTable, pairHash(f.Actor.Type, f.Actor.ID), "")
		to := PrefixEnd(prefix)
		if f.BeforeHeight != 0 {
			to = append(append(prefix[:len(prefix):len(prefix)], Order(f.BeforeHeight/actStretch)...), 0)
		}
		for k := range tx.Scan(prefix, to, true) {
			stretch := mustOrder(k, prefix)
			if !r.blocks(stretch*actStretch, (stretch+1)*actStretch-1) {
				break
			}
		}
	default:
		r.blocks(0, math.MaxUint64)
	}
	return r.out
}

// FirstActivity returns the entry that first changed an entity of a company, which most
// often made it, with no other changes than those of the entity.
func FirstActivity(tx *Tx, company CompanyID, entityType, entityID string) (Entry, bool) {
	prefix := Key("c", string(company), actEntityTable, entityKeyPart(entityType, entityID), "")
	r := activityReader{tx: tx, company: company, f: ActivityFilter{EntityType: entityType, EntityID: entityID}}
	for k := range tx.Prefix(prefix) {
		return r.entry(mustOrder(k, prefix)), true
	}
	return Entry{}, false
}

// An activityReader gathers the activities that a filter chooses.
type activityReader struct {
	tx      *Tx
	company CompanyID
	f       ActivityFilter
	out     []Activity
	scanned int
}

// blocks takes what the filter may choose of the batches that begin at a height
// in [low, high], newest first. It returns whether there is room for more.
func (r *activityReader) blocks(low, high uint64) bool {
	if r.f.BeforeHeight != 0 {
		high = min(high, r.f.BeforeHeight)
	}
	prefix := Key("c", string(r.company), actTable, "")
	from := append(prefix[:len(prefix):len(prefix)], Order(low)...)
	to := append(append(prefix[:len(prefix):len(prefix)], Order(high)...), 0)
	var heights []uint64
	for k, v := range r.tx.Scan(from, to, true) {
		heights = r.f.mayChoose(mustOrder(k, prefix), v, heights[:0], &r.scanned)
		for _, height := range slices.Backward(heights) {
			if !r.take(height) {
				return false
			}
		}
		if r.scanned > maxActivityScan {
			return false
		}
	}
	return true
}

// take adds what the filter chooses of the entry at a height. It returns whether
// there is room, and time, for more.
func (r *activityReader) take(height uint64) bool {
	e := r.entry(height)
	if e.Time.Before(r.f.From) {
		return false // entries are in the order of their time
	}
	for n := len(e.Changes) - 1; n >= 0 && len(r.out) < r.f.Limit; n-- {
		if r.f.chooses(&e, n) {
			r.out = append(r.out, activityOf(&e, n))
		}
	}
	return len(r.out) < r.f.Limit && r.scanned <= maxActivityScan
}

// longEntry is how many bytes of an entry take longer to hash than it takes to look up
// what the next one says of it.
const longEntry = 1024

// entry returns the entry at a height. Of one with many changes little is about the
// entity that is asked for: the others are left empty, and its hash is taken from the
// entry after it.
func (r *activityReader) entry(height uint64) Entry {
	b, ok := r.tx.Get(entryKey(height))
	if !ok {
		panic(StorageError{Err: fmt.Errorf("activity of height %d has no entry", height)})
	}
	var skip func(kind, id []byte) bool
	if r.f.EntityType != "" && r.f.EntityID != "" {
		skip = func(kind, id []byte) bool { return string(kind) != r.f.EntityType || string(id) != r.f.EntityID }
	}
	e, err := decodeEntry(b, skip)
	if err != nil {
		panic(StorageError{Err: err})
	}
	if len(b) > longEntry {
		if next, ok := r.tx.Get(entryKey(height + 1)); ok {
			if e.Hash, ok = prevIn(next); ok {
				return e
			}
		}
	}
	e.Hash = EntryHash(b)
	return e
}

// ActivityOf returns the activities of one entry, in order.
func ActivityOf(e Entry) []Activity {
	out := make([]Activity, len(e.Changes))
	for n := range out {
		out[n] = activityOf(&e, n)
	}
	return out
}

func activityOf(e *Entry, n int) Activity {
	return Activity{ID: activityID(e.Hash, n), Height: e.Height, Number: n, At: e.Time, Company: e.Company,
		Kind: e.Kind, Actor: e.Actor, Run: e.Run, Change: e.Changes[n]}
}

// activityID is SHA-256("selvage/activity/v1" ‖ entry hash ‖ number) as a UUID.
func activityID(entry Hash, n int) string {
	b := append([]byte("selvage/activity/v1"), entry[:]...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint32(b, uint32(n)))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// mayChoose appends the heights of a block's entries that f may choose, so that
// most entries need not be read, and counts all of them.
func (f *ActivityFilter) mayChoose(first uint64, block []byte, heights []uint64, scanned *int) []uint64 {
	for p := (parser{b: block}); len(p.b) > 0; {
		height := first + p.uvarint()
		actorType, actorID := p.bytes(), p.bytes()
		other := f.Actor.Type != "" && string(actorType) != f.Actor.Type || f.Actor.ID != "" && string(actorID) != f.Actor.ID
		chosen := false
		for n := p.uvarint(); n > 0 && !p.bad; n-- {
			action, entityType, entityID := p.bytes(), p.bytes(), p.bytes()
			chosen = chosen || (!other || f.AlsoType != "" && string(entityType) == f.AlsoType) &&
				(f.Action == "" || string(action) == f.Action) && (f.EntityType == "" || string(entityType) == f.EntityType) &&
				(f.EntityID == "" || string(entityID) == f.EntityID)
		}
		*scanned++
		if chosen && !p.bad {
			heights = append(heights, height)
		}
	}
	return heights
}

func (f *ActivityFilter) chooses(e *Entry, n int) bool {
	ch := &e.Changes[n]
	return (f.BeforeHeight == 0 || e.Height < f.BeforeHeight || e.Height == f.BeforeHeight && n < f.BeforeNumber) &&
		(f.AlsoType != "" && ch.EntityType == f.AlsoType ||
			(f.Actor.Type == "" || e.Actor.Type == f.Actor.Type) && (f.Actor.ID == "" || e.Actor.ID == f.Actor.ID) &&
				(f.Run == "" || e.Run == f.Run)) &&
		(f.Action == "" || ch.Action == f.Action) && (f.EntityType == "" || ch.EntityType == f.EntityType) &&
		(f.EntityID == "" || ch.EntityID == f.EntityID)
}
