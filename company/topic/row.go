package topic

import (
	"cmp"
	"slices"

	"github.com/selvage-mesh/selvage/company/core"
	names "github.com/selvage-mesh/selvage/kernel/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

// A Topic is a named sequence of messages. It begins with the first one.
type Topic struct {
	Name      string           `cbor:"1,keyasint" json:"topic"`
	Company   ledger.CompanyID `cbor:"2,keyasint,omitempty" json:"-"`
	Messages  int64            `cbor:"3,keyasint" json:"messages"` // that are kept
	Bytes     int64            `cbor:"4,keyasint" json:"bytes"`
	Published int64            `cbor:"5,keyasint" json:"published"` // that there ever were
	First     uint64           `cbor:"6,keyasint" json:"first"`     // height of the oldest message that is kept, 0: none
	Last      uint64           `cbor:"7,keyasint" json:"last"`      // height of the newest
	LastAt    core.Time        `cbor:"8,keyasint" json:"lastAt"`
	CreatedAt core.Time        `cbor:"9,keyasint" json:"createdAt"`
	Keep      Retention        `cbor:"10,keyasint" json:"keep"`
}

// A Retention is how much of a topic is kept. The oldest messages go first.
type Retention struct {
	Messages int64 `cbor:"1,keyasint" json:"messages"`
	Bytes    int64 `cbor:"2,keyasint" json:"bytes"`
	Seconds  int64 `cbor:"3,keyasint" json:"seconds"`
}

// usual is the retention of a topic of which nobody said otherwise.
var usual = Retention{KeepMessages, KeepBytes, int64(KeepFor.Seconds())}

// A Message is one message of a topic. Height is that of the entry that published it.
type Message struct {
	Topic  string        `cbor:"1,keyasint" json:"topic"`
	Height uint64        `cbor:"2,keyasint" json:"height"`
	Number int64         `cbor:"3,keyasint" json:"number"` // within its topic, from 1
	At     core.Time     `cbor:"4,keyasint" json:"at"`
	From   string        `cbor:"5,keyasint" json:"from"` // node:pid of a process, or the actor as type:id
	Text   string        `cbor:"6,keyasint,omitempty" json:"text"`
	JSON   bool          `cbor:"7,keyasint,omitempty" json:"json"` // Text is JSON
	Run    core.NullText `cbor:"8,keyasint,omitempty" json:"runId"`
}

func (m Message) size() int64 { return int64(len(m.Text) + len(m.Topic) + len(m.From)) }

// A Subscription remembers how far somebody has read what a pattern selects.
type Subscription struct {
	Name      string    `cbor:"1,keyasint" json:"subscription"`
	Pattern   string    `cbor:"2,keyasint" json:"pattern"`
	Position  uint64    `cbor:"3,keyasint" json:"position"` // the last acknowledged height
	By        string    `cbor:"4,keyasint" json:"by"`
	CreatedAt core.Time `cbor:"5,keyasint" json:"createdAt"`
	UpdatedAt core.Time `cbor:"6,keyasint" json:"updatedAt"`
}

// A Total is what a scope has.
type Total struct {
	Topics        int64 `cbor:"1,keyasint"`
	Messages      int64 `cbor:"2,keyasint"`
	Bytes         int64 `cbor:"3,keyasint"`
	Subscriptions int64 `cbor:"4,keyasint"`
}

// Keys, of a company or of the mesh. A name's key is its hash, as a name may have slashes.
//
//	topic/<name>                                   the topic
//	topic-message/<name>/<height, 16 hex digits>   its messages
//	topic-subscription/<name>                      how far somebody has read
//	topic-total/total                              what there is of it
var (
	topics   = both[Topic]{ledger.NewTable[string, Topic]("topic"), ledger.NewMeshTable[string, Topic]("topic")}
	messages = both[Message]{ledger.NewTable[string, Message]("topic-message"),
		ledger.NewMeshTable[string, Message]("topic-message")}
	subscriptions = both[Subscription]{ledger.NewTable[string, Subscription]("topic-subscription"),
		ledger.NewMeshTable[string, Subscription]("topic-subscription")}
	totals = both[Total]{ledger.NewTable[string, Total]("topic-total"),
		ledger.NewMeshTable[string, Total]("topic-total")}
)

const totalKey = "total"

// both is a table of companies and one of the mesh, with rows alike.
type both[T any] struct {
	company *ledger.Table[string, T]
	mesh    *ledger.MeshTable[string, T]
}

func (b both[T]) get(tx *ledger.Tx, of ledger.CompanyID, id string) (T, bool) {
	if of == "" {
		return b.mesh.Get(tx, id)
	}
	return b.company.Get(tx, of, id)
}

func (b both[T]) put(tx *ledger.Tx, of ledger.CompanyID, id string, row T) {
	if of == "" {
		b.mesh.Put(tx, id, row)
		return
	}
	b.company.Put(tx, of, id, row)
}

func (b both[T]) remove(tx *ledger.Tx, of ledger.CompanyID, id string) {
	if of == "" {
		b.mesh.Delete(tx, id)
		return
	}
	b.company.Delete(tx, of, id)
}

func (b both[T]) key(of ledger.CompanyID, id string) []byte {
	if of == "" {
		return b.mesh.Key(id)
	}
	return b.company.Key(of, id)
}

func (b both[T]) all(tx *ledger.Tx, of ledger.CompanyID) (out []T) {
	for _, v := range tx.Prefix(b.key(of, "")) {
		out = append(out, core.DecodeRow[T](v))
	}
	return out
}

func messageID(name string, height uint64) string {
	return core.TextKey(name) + "/" + ledger.Order(height)
}

// Of returns a topic of a company, or of the mesh for "".
func Of(tx *ledger.Tx, of ledger.CompanyID, name string) (Topic, bool) {
	return topics.get(tx, of, core.TextKey(name))
}

// TotalOf returns what a scope has.
func TotalOf(tx *ledger.Tx, of ledger.CompanyID) Total {
	t, _ := totals.get(tx, of, totalKey)
	return t
}

// List returns the topics that a valid pattern selects, by name.
func List(tx *ledger.Tx, of ledger.CompanyID, pattern string) []Topic {
	if !names.IsPattern(pattern) {
		if t, ok := Of(tx, of, pattern); ok {
			return []Topic{t}
		}
		return nil
	}
	out := slices.DeleteFunc(topics.all(tx, of), func(t Topic) bool { return !names.Match(pattern, t.Name) })
	slices.SortFunc(out, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// At returns the message of a topic with a height.
func At(tx *ledger.Tx, of ledger.CompanyID, name string, height uint64) (Message, bool) {
	return messages.get(tx, of, messageID(name, height))
}

// Read returns the messages of the topics that a valid pattern selects, from a height, in
// the order of their heights, at most limit; without those that are too old at now.
func Read(tx *ledger.Tx, of ledger.CompanyID, pattern string, from uint64, limit int, now core.Time) (out []Message) {
	limit = min(limit, MaxPage)
	byHeight := func(a, b Message) int { return cmp.Compare(a.Height, b.Height) }
	for _, t := range List(tx, of, pattern) {
		if t.Last < from || t.Messages == 0 {
			continue
		}
		prefix, page := messages.key(of, core.TextKey(t.Name)+"/"), []Message(nil)
		begin := append(slices.Clone(prefix), ledger.Order(max(from, t.First))...)
		for _, b := range tx.Scan(begin, ledger.PrefixEnd(prefix), false) {
			m := core.DecodeRow[Message](b)
			if len(page) == limit || len(out) == limit && m.Height > out[limit-1].Height {
				break
			}
			if m.At > now-core.Time(1000*t.Keep.Seconds) {
				page = append(page, m)
			}
		}
		out = append(out, page...)
		slices.SortFunc(out, byHeight)
		out = out[:min(len(out), limit)]
	}
	return out
}

// SubscriptionOf returns a subscription of a scope.
func SubscriptionOf(tx *ledger.Tx, of ledger.CompanyID, name string) (Subscription, bool) {
	return subscriptions.get(tx, of, core.TextKey(name))
}

// Subscriptions returns those of a scope, by name.
func Subscriptions(tx *ledger.Tx, of ledger.CompanyID) []Subscription {
	out := subscriptions.all(tx, of)
	slices.SortFunc(out, func(a, b Subscription) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
