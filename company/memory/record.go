package memory

import (
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/ledger"
	index "github.com/selvage-mesh/selvage/memory"
)

// A Record is one thing that is remembered. Names of agents, projects, issues, comments
// and runs say where it came from; what they name may be gone.
type Record struct {
	ID      string           `cbor:"1,keyasint" json:"id"`
	Company ledger.CompanyID `cbor:"2,keyasint" json:"companyId"`
	// a word, such as note, fact, lesson; outcome: of a closed issue
	Kind       string        `cbor:"3,keyasint" json:"kind"`
	Text       string        `cbor:"4,keyasint" json:"text"`
	Tags       []string      `cbor:"5,keyasint,omitempty" json:"tags"` // sorted
	Agent      core.NullText `cbor:"6,keyasint,omitempty" json:"agentId"`
	Private    bool          `cbor:"7,keyasint,omitempty" json:"private"` // read by Agent and the board alone
	Project    core.NullText `cbor:"8,keyasint,omitempty" json:"projectId"`
	Issue      core.NullText `cbor:"9,keyasint,omitempty" json:"issueId"`
	Comment    core.NullText `cbor:"10,keyasint,omitempty" json:"commentId"`
	Run        core.NullText `cbor:"11,keyasint,omitempty" json:"runId"`
	Importance int64         `cbor:"12,keyasint,omitempty" json:"importance"`
	ExpiresAt  core.Time     `cbor:"13,keyasint,omitempty" json:"expiresAt"`
	Links      []string      `cbor:"14,keyasint,omitempty" json:"links"` // other records

	// Model and Vector are those that the author gave, or with Embedded those that a node had
	// made by a model of the gateway. Each node embeds the text by its words, too, under a
	// model that needs no storing.
	Model  core.NullText `cbor:"15,keyasint,omitempty" json:"model"`
	Vector index.Vector  `cbor:"16,keyasint,omitempty" json:"-"`

	AuthorType string    `cbor:"17,keyasint" json:"authorType"` // agent, user or system
	Author     string    `cbor:"18,keyasint" json:"authorId"`
	Height     uint64    `cbor:"19,keyasint,omitempty" json:"height"` // of the entry that it came from, 0 for an outcome
	CreatedAt  core.Time `cbor:"20,keyasint" json:"createdAt"`
	UpdatedAt  core.Time `cbor:"21,keyasint" json:"updatedAt"`

	Bodies []body `cbor:"22,keyasint,omitempty" json:"-"`

	Embedded bool `cbor:"23,keyasint,omitempty" json:"-"`
	// Replaces are records whose place this one took: it says what they said together. They
	// stay and have its ID as ReplacedBy, and searches leave them out.
	Replaces   []string      `cbor:"25,keyasint,omitempty" json:"replaces"`
	ReplacedBy core.NullText `cbor:"26,keyasint,omitempty" json:"replacedBy"`
	Brought    []body        `cbor:"24,keyasint,omitempty" json:"-"` // the payload of Vector, of several records together
}

// A body is a stored payload that has a text of the record: it is erased with it.
type body struct {
	Index uint64   `cbor:"1,keyasint"`
	Salt  [16]byte `cbor:"2,keyasint"`
}

// size is what a record counts for.
func (r Record) size() int64 { return int64(len(r.Text) + len(r.Vector)) }

// ReadableBy reports whether an agent reads r; the board, "", reads all.
func (r Record) ReadableBy(agent string) bool {
	return !r.Private || agent == "" || string(r.Agent) == agent
}

// Expired reports whether r's time is over.
func (r Record) Expired(now core.Time) bool { return r.ExpiresAt != 0 && r.ExpiresAt <= now }

// Doc is r as an index takes it.
func (r Record) Doc() (index.Doc, bool) {
	id, ok := index.ParseID(r.ID)
	return index.Doc{ID: id, Text: r.Text, Tags: r.Tags, Agent: string(r.Agent), Private: r.Private,
		Project: string(r.Project), Issue: string(r.Issue), Run: string(r.Run),
		Kind: r.Kind, CreatedAt: int64(r.CreatedAt), ExpiresAt: int64(r.ExpiresAt), Importance: int(r.Importance),
		Replaced: r.ReplacedBy != "", Model: string(r.Model), Vector: r.Vector, Given: r.Model != "" && !r.Embedded}, ok
}

// A Count is what the records of a company add up to. Changes counts all changes there
// ever were.
type Count struct {
	Records int64   `cbor:"1,keyasint,omitempty"`
	Bytes   int64   `cbor:"2,keyasint,omitempty"`
	Changes uint64  `cbor:"3,keyasint,omitempty"`
	Models  []Model `cbor:"4,keyasint,omitempty"` // by name
}

// A Model is whose vectors a company has: all of one length.
type Model struct {
	Name    string `cbor:"1,keyasint"`
	Dims    int64  `cbor:"2,keyasint"`
	Records int64  `cbor:"3,keyasint"`
}

// A change names a record that was stored or went.
type change struct {
	ID string `cbor:"1,keyasint"`
}

// Keys of records:
//
//	memory-record/<id>                            the record
//	memory-expiry/<ms, 16 hex digits>/<id>        those that expire, the first first
//	memory-change/<number, 16 hex digits>         which record changed; the last MaxChanges
//	memory-count/total                            what they add up to
var (
	expiry  = ledger.NewIndex[string, string]("memory-expiry")
	records = core.Owned(ledger.NewTable[string, Record]("memory-record").
		Beside(ledger.Indexed(expiry, func(r *Record) string {
			if r.ExpiresAt == 0 {
				return ""
			}
			return ledger.Order(uint64(r.ExpiresAt))
		})))
	changes = ledger.NewTable[string, change]("memory-change")
	counts  = ledger.NewTable[string, Count]("memory-count")
)

const totalKey = "total"

// Of returns a record.
func Of(tx *ledger.Tx, company ledger.CompanyID, id string) (Record, bool) {
	if !core.IsID(id) {
		return Record{}, false
	}
	return records.Get(tx, company, id)
}

// ByID returns a record of any company.
func ByID(tx *ledger.Tx, id string) (Record, bool) {
	of := core.OwnerOf(tx, id)
	if of == "" {
		return Record{}, false
	}
	return records.Get(tx, of, id)
}

// CountOf returns what the records of a company add up to.
func CountOf(tx *ledger.Tx, company ledger.CompanyID) Count {
	n, _ := counts.Get(tx, company, totalKey)
	return n
}

// Each calls f with every record of a company until it says no.
func Each(tx *ledger.Tx, company ledger.CompanyID, f func(Record) bool) {
	for _, r := range records.All(tx, company) {
		if !f(r) {
			return
		}
	}
}

// After calls f with the records of a company whose IDs come after one, "" for all, until
// it says no.
func After(tx *ledger.Tx, company ledger.CompanyID, id string, f func(Record) bool) {
	prefix := records.Key(company, "")
	from := prefix
	if id != "" {
		from = append(records.Key(company, id), 0)
	}
	for _, b := range tx.Scan(from, ledger.PrefixEnd(prefix), false) {
		if !f(core.DecodeRow[Record](b)) {
			return
		}
	}
}

// LastChanged is the record of the last change, "" for none.
func LastChanged(tx *ledger.Tx, company ledger.CompanyID) string {
	ch, _ := changes.Get(tx, company, ledger.Order(CountOf(tx, company).Changes))
	return ch.ID
}

// ChangedSince returns the records of the changes after the change with the number after, at
// most limit, and the number of the last of these changes. last names the record of the
// change after: ok is false when the state has another one there, or keeps it no more.
func ChangedSince(tx *ledger.Tx, company ledger.CompanyID, after uint64, last string, limit int) (ids []string,
	upTo uint64, ok bool) {
	now := CountOf(tx, company).Changes
	if after > now || now-after >= MaxChanges {
		return nil, now, false
	}
	if ch, _ := changes.Get(tx, company, ledger.Order(after)); after > 0 && ch.ID != last {
		return nil, now, false
	}
	upTo = min(now, after+uint64(limit))
	for n := after + 1; n <= upTo; n++ {
		ch, ok := changes.Get(tx, company, ledger.Order(n))
		if !ok {
			return nil, now, false
		}
		ids = append(ids, ch.ID)
	}
	return ids, upTo, true
}

// store writes next in the place of was; the zero next removes it.
func store(tx *ledger.Tx, was, next Record) {
	of, id := next.Company, next.ID
	if next.ID == "" {
		of, id = was.Company, was.ID
	}
	n := CountOf(tx, of)
	if was.ID != "" {
		n.Records, n.Bytes = n.Records-1, n.Bytes-was.size()
		n = n.with(was, -1)
	}
	if next.ID != "" {
		n.Records, n.Bytes = n.Records+1, n.Bytes+next.size()
		n = n.with(next, 1)
		records.Put(tx, of, id, next)
	} else {
		records.Delete(tx, of, id)
		unlike(tx, of, id)
	}
	n.Changes++
	changes.Put(tx, of, ledger.Order(n.Changes), change{id})
	if n.Changes > MaxChanges {
		changes.Delete(tx, of, ledger.Order(n.Changes-MaxChanges))
	}
	counts.Put(tx, of, totalKey, n)
}

// with counts the vector of r.
func (n Count) with(r Record, by int64) Count {
	if r.Model == "" {
		return n
	}
	n.Models = slices.Clone(n.Models)
	at, ok := slices.BinarySearchFunc(n.Models, string(r.Model), func(m Model, name string) int {
		switch {
		case m.Name < name:
			return -1
		case m.Name > name:
			return 1
		}
		return 0
	})
	if !ok {
		n.Models = slices.Insert(n.Models, at, Model{Name: string(r.Model), Dims: int64(r.Vector.Dims())})
	}
	if n.Models[at].Records += by; n.Models[at].Records == 0 {
		n.Models = slices.Delete(n.Models, at, at+1)
	}
	return n
}

// fits refuses a record for which there is no room.
func (n Count) fits(was, next Record) error {
	count, size := n.Records, n.Bytes+next.size()
	if was.ID == "" {
		count++
	} else {
		size -= was.size()
	}
	if count > MaxRecords || size > MaxBytes {
		return ledger.Refuse(ledger.Unprocessable, nil,
			"A company remembers at most %d records with %d bytes of texts and vectors; forget some first", MaxRecords, MaxBytes)
	}
	if next.Model == "" {
		return nil
	}
	at := slices.IndexFunc(n.Models, func(m Model) bool { return m.Name == string(next.Model) })
	switch {
	case at < 0 && len(n.Models) >= MaxModels:
		return ledger.Refuse(ledger.Unprocessable, nil, "model: a company has vectors of at most %d models", MaxModels)
	case at >= 0 && n.Models[at].Dims != int64(next.Vector.Dims()):
		return ledger.Refuse(ledger.Unprocessable, nil, "vector: has %d components, those of the model %s have %d",
			next.Vector.Dims(), next.Model, n.Models[at].Dims)
	}
	return nil
}
