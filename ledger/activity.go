package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// The activity log of a company is the changes of its entries. Three indexes
// find them, newest first; their rows name heights, the entry has the rest:
//
//	c/<company>/~act/<height>               actor and, for each change, action and entity
//	c/<company>/~act-entity/<hash>/<height> for each entity that an entry changed
//	c/<company>/~act-actor/<hash>/<height>  for each entry with changes
//
// where hash is SHA-256 over type and ID, cut to 16 bytes, in hex, and the
// value of the first is: bytes actor type, bytes actor ID, then for each change
// bytes action, bytes entity type, bytes entity ID.
const (
	actTable       = "~act"
	actEntityTable = "~act-entity"
	actActorTable  = "~act-actor"
)

// An Activity is one change as the activity log shows it.
type Activity struct {
	ID      string // UUID (version 8) that follows from the entry and the change's number
	Height  uint64
	Number  int // of the change within its entry
	At      time.Time
	Company string
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

func (a *applier) indexActivity(e *Entry) {
	if e.Company == "" || len(e.Changes) == 0 {
		return
	}
	at := Order(e.Height)
	n := 2 + len(e.Actor.Type) + len(e.Actor.ID)
	for i := range e.Changes {
		n += 3 + len(e.Changes[i].Action) + len(e.Changes[i].EntityType) + len(e.Changes[i].EntityID)
	}
	v := appendBytes(appendBytes(make([]byte, 0, n), e.Actor.Type), e.Actor.ID)
	for i := range e.Changes {
		ch := &e.Changes[i]
		v = appendBytes(appendBytes(appendBytes(v, ch.Action), ch.EntityType), ch.EntityID)
		if i == 0 || ch.EntityID != e.Changes[i-1].EntityID || ch.EntityType != e.Changes[i-1].EntityType {
			a.group.Set(Key("c", e.Company, actEntityTable, pairHash(ch.EntityType, ch.EntityID), at), nil)
		}
	}
	a.group.Set(Key("c", e.Company, actTable, at), v)
	a.group.Set(Key("c", e.Company, actActorTable, pairHash(e.Actor.Type, e.Actor.ID), at), nil)
}

// Activities returns the newest activities of a company that f chooses, newest
// first. tx is a view. With an entity or an actor it reads only what belongs to
// them; other filters pass over at most 200,000 entries.
func Activities(tx *Tx, company string, f ActivityFilter) []Activity {
	if f.Limit <= 0 || f.Limit > MaxActivity {
		f.Limit = MaxActivity
	}
	prefix, full := Key("c", company, actTable, ""), true
	switch {
	case f.EntityType != "" && f.EntityID != "":
		prefix, full = Key("c", company, actEntityTable, pairHash(f.EntityType, f.EntityID), ""), false
	case f.Actor.Type != "" && f.Actor.ID != "" && f.AlsoType == "":
		prefix, full = Key("c", company, actActorTable, pairHash(f.Actor.Type, f.Actor.ID), ""), false
	}
	if !f.To.IsZero() {
		if end := heightAfter(tx, f.To); f.BeforeHeight == 0 || f.BeforeHeight >= end {
			f.BeforeHeight, f.BeforeNumber = end, 0
		}
	}
	to := PrefixEnd(prefix)
	if f.BeforeHeight != 0 {
		to = append(append([]byte(nil), prefix...), Order(f.BeforeHeight)...)
		to = append(to, 0) // the entry itself may have older changes
	}
	var out []Activity
	scanned := 0
	for k, v := range tx.Scan(prefix, to, true) {
		if scanned++; scanned > maxActivityScan || len(out) >= f.Limit {
			break
		}
		if full && !f.mayChoose(v) {
			continue
		}
		e, ok := EntryAt(tx, mustOrder(k, prefix))
		if !ok {
			panic(StorageError{Err: fmt.Errorf("activity of height %s has no entry", strings.TrimPrefix(string(k), string(prefix)))})
		}
		if e.Time.Before(f.From) {
			break // entries are in the order of their time
		}
		for n := len(e.Changes) - 1; n >= 0 && len(out) < f.Limit; n-- {
			if f.chooses(&e, n) {
				out = append(out, activityOf(&e, n))
			}
		}
	}
	return out
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

// mayChoose tests an index row, so that most entries need not be read.
func (f *ActivityFilter) mayChoose(row []byte) bool {
	p := parser{b: row}
	actorType, actorID := p.bytes(), p.bytes()
	other := f.Actor.Type != "" && string(actorType) != f.Actor.Type || f.Actor.ID != "" && string(actorID) != f.Actor.ID
	if other && f.AlsoType == "" {
		return false
	}
	for len(p.b) > 0 {
		action, entityType, entityID := p.bytes(), p.bytes(), p.bytes()
		if other && string(entityType) != f.AlsoType {
			continue
		}
		if (f.Action == "" || string(action) == f.Action) && (f.EntityType == "" || string(entityType) == f.EntityType) &&
			(f.EntityID == "" || string(entityID) == f.EntityID) {
			return true
		}
	}
	return false
}

func (f *ActivityFilter) chooses(e *Entry, n int) bool {
	ch := &e.Changes[n]
	return (f.BeforeHeight == 0 || e.Height < f.BeforeHeight || e.Height == f.BeforeHeight && n < f.BeforeNumber) &&
		(f.AlsoType != "" && ch.EntityType == f.AlsoType ||
			(f.Actor.Type == "" || e.Actor.Type == f.Actor.Type) && (f.Actor.ID == "" || e.Actor.ID == f.Actor.ID) && (f.Run == "" || e.Run == f.Run)) &&
		(f.Action == "" || ch.Action == f.Action) && (f.EntityType == "" || ch.EntityType == f.EntityType) &&
		(f.EntityID == "" || ch.EntityID == f.EntityID)
}
