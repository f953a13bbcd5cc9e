package topic

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	names "github.com/selvage-mesh/selvage/kernel/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

// Publish is the payload of topic.publish. From names a process of the node that publishes
// for it; others publish as themselves.
type Publish struct {
	Topic string `cbor:"1,keyasint"`
	Text  string `cbor:"2,keyasint,omitempty"`
	JSON  bool   `cbor:"3,keyasint,omitempty"` // Text is JSON
	From  string `cbor:"4,keyasint,omitempty"`
}

// Published is what topic.publish answers.
type Published struct {
	Topic  string    `cbor:"1,keyasint" json:"topic"`
	Height uint64    `cbor:"2,keyasint" json:"height"`
	Number int64     `cbor:"3,keyasint" json:"number"`
	At     core.Time `cbor:"4,keyasint" json:"at"`
}

// Keep is the payload of topic.keep, which says how much of a topic is kept; 0 leaves as it
// is. It makes the topic if there is none.
type Keep struct {
	Topic    string `cbor:"1,keyasint"`
	Messages int64  `cbor:"2,keyasint,omitempty"`
	Bytes    int64  `cbor:"3,keyasint,omitempty"`
	Seconds  int64  `cbor:"4,keyasint,omitempty"`
}

// Delete is the payload of topic.delete. It deletes the oldest messages, and with the last
// of them the topic; it is given again while it answers Left.
type Delete struct {
	Topic string `cbor:"1,keyasint"`
}

// Deleted is what topic.delete answers.
type Deleted struct {
	Left int64 `cbor:"1,keyasint"`
}

// Subscribe is the payload of topic.subscribe. One that is there gets the pattern, and with
// From another position. Without From a new one begins with what is published next.
type Subscribe struct {
	Name    string  `cbor:"1,keyasint"`
	Pattern string  `cbor:"2,keyasint"`
	From    *uint64 `cbor:"3,keyasint,omitempty"` // the first height that it reads
}

// Acknowledge is the payload of topic.acknowledge: all messages up to Height have been read.
type Acknowledge struct {
	Name   string `cbor:"1,keyasint"`
	Height uint64 `cbor:"2,keyasint"`
}

// Unsubscribe is the payload of topic.unsubscribe.
type Unsubscribe struct {
	Name string `cbor:"1,keyasint"`
}

const (
	KindPublish     = "topic.publish"
	KindKeep        = "topic.keep"
	KindDelete      = "topic.delete"
	KindSubscribe   = "topic.subscribe"
	KindAcknowledge = "topic.acknowledge"
	KindUnsubscribe = "topic.unsubscribe"

	// Told is the action of the line that a published message leaves. Its entity is the topic,
	// and its height finds the message.
	Told = "topic.published"
)

// Agents of a company talk through tasks and comments: none of this is for them.
var kinds = []company.Kind{
	{Name: KindPublish, From: company.FromRoster, Traits: company.NoWork, Weight: company.Weights.Talk,
		Do: ledger.Typed(publish)},
	{Name: KindKeep, From: company.FromBoard, Traits: company.NoWork, Weight: company.Weights.SetUp,
		Do: ledger.Typed(keep)},
	{Name: KindDelete, From: company.FromBoard, Traits: company.NoWork, Weight: company.Weights.Erase,
		Do: ledger.Typed(remove)},
	{Name: KindSubscribe, From: company.FromRoster, Traits: company.NoWork, Weight: company.Weights.Marks,
		Do: ledger.Typed(subscribe)},
	{Name: KindAcknowledge, From: company.FromRoster, Traits: company.NoWork, Weight: company.Weights.Marks,
		Do: ledger.Typed(acknowledge)},
	{Name: KindUnsubscribe, From: company.FromRoster, Traits: company.NoWork, Weight: company.Weights.Marks,
		Do: ledger.Typed(unsubscribe)},
}

// Rules are the rules of this room.
var Rules = company.Rules{Kinds: kinds, Topics: publisher{}}

// A publisher publishes for other rooms.
type publisher struct{}

// PublishTo publishes a message.
func (publisher) PublishTo(c *ledger.Context, topic, text string, isJSON bool, from string) error {
	_, err := publish(c, Publish{Topic: topic, Text: text, JSON: isJSON, From: from})
	return err
}

func publish(c *ledger.Context, p Publish) (any, error) {
	if err := checkMessage(p); err != nil {
		return nil, err
	}
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	t, err := begun(c, p.Topic)
	if err != nil {
		return nil, err
	}
	m := Message{Topic: t.Name, Height: c.Height, Number: t.Published + 1, At: now, From: p.From, Text: p.Text,
		JSON: p.JSON, Run: core.NullText(c.Cmd.Run)}
	if m.From == "" || core.IsBoard(c) {
		m.From = c.Cmd.Actor.Type + ":" + c.Cmd.Actor.ID
	}
	n := TotalOf(c.Tx, of)
	if n.Bytes+m.size() > MaxBytes {
		return nil, ledger.Refuse(ledger.Unprocessable, nil,
			"the topics have %d bytes, at most %d: delete a topic, or keep less of one", n.Bytes, MaxBytes)
	}
	messages.put(c.Tx, of, messageID(t.Name, c.Height), m)
	t.Messages, t.Bytes, t.Published, t.Last, t.LastAt = t.Messages+1, t.Bytes+m.size(), m.Number, m.Height, now
	if t.First == 0 {
		t.First = m.Height
	}
	n.Messages, n.Bytes = n.Messages+1, n.Bytes+m.size()
	store(c.Tx, of, t, n, now)
	c.Record(ledger.Change{Action: Told, EntityType: "topic", EntityID: t.Name, Details: core.Object{}.Int("bytes",
		int64(len(m.Text))).Int("number", m.Number).Close()})
	return Published{t.Name, m.Height, m.Number, now}, nil
}

func checkMessage(p Publish) error {
	if err := names.Check(p.Topic); err != nil {
		return ledger.Refuse(ledger.Invalid, nil, "topic: %s", err.Error())
	}
	switch {
	case len(p.Text) > MaxText:
		return ledger.Refuse(ledger.TooLarge, nil, "text: %d bytes, at most %d", len(p.Text), MaxText)
	case !utf8.ValidString(p.Text) || strings.ContainsRune(p.Text, 0):
		return ledger.Refuse(ledger.Invalid, nil,
			"text: is not UTF-8, or has a zero byte; encode other bytes, such as in base64")
	case p.JSON && !json.Valid([]byte(p.Text)):
		return ledger.Refuse(ledger.Invalid, nil, "json: is not JSON")
	case len(p.From) > MaxFrom || !utf8.ValidString(p.From):
		return ledger.Refuse(ledger.Invalid, nil, "from: at most %d bytes", MaxFrom)
	}
	return nil
}

// begun returns a topic, a new one if there is none.
func begun(c *ledger.Context, name string) (Topic, error) {
	of := c.Cmd.Company
	if t, ok := Of(c.Tx, of, name); ok {
		return t, nil
	}
	n := TotalOf(c.Tx, of)
	if n.Topics >= MaxTopics {
		return Topic{}, ledger.Refuse(ledger.Unprocessable, nil, "topic: there are %d topics, at most %d; delete one first",
			n.Topics, MaxTopics)
	}
	n.Topics++
	totals.put(c.Tx, of, totalKey, n)
	return Topic{Name: name, Company: of, CreatedAt: core.TimeOf(c.Now), Keep: usual}, nil
}

// store writes a topic and the total, without the messages that are beyond its retention.
func store(tx *ledger.Tx, of ledger.CompanyID, t Topic, n Total, now core.Time) {
	oldest := now - core.Time(1000*t.Keep.Seconds)
	t, n = cut(tx, of, t, n, func(t Topic, m Message) bool {
		return t.Messages > t.Keep.Messages || t.Bytes > t.Keep.Bytes || m.At <= oldest
	})
	topics.put(tx, of, core.TextKey(t.Name), t)
	totals.put(tx, of, totalKey, n)
}

// cut deletes the oldest messages while goes says so, at most maxPruned.
func cut(tx *ledger.Tx, of ledger.CompanyID, t Topic, n Total, goes func(Topic, Message) bool) (Topic, Total) {
	deleted := 0
	for _, b := range tx.Prefix(messages.key(of, core.TextKey(t.Name)+"/")) {
		m := core.DecodeRow[Message](b)
		t.First = m.Height
		if deleted == maxPruned || !goes(t, m) {
			return t, n
		}
		messages.remove(tx, of, messageID(t.Name, m.Height))
		deleted++
		t.Messages, t.Bytes = t.Messages-1, t.Bytes-m.size()
		n.Messages, n.Bytes = n.Messages-1, n.Bytes-m.size()
	}
	t.First = 0
	return t, n
}

func keep(c *ledger.Context, p Keep) (any, error) {
	if err := names.Check(p.Topic); err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "topic: %s", err.Error())
	}
	for _, b := range []struct {
		field    string
		is, most int64
	}{{"messages", p.Messages, MostMessages}, {"bytes", p.Bytes, MostBytes},
		{"seconds", p.Seconds, int64(MostFor / time.Second)}} {
		if b.is < 0 || b.is > b.most {
			return nil, ledger.Refuse(ledger.Invalid, nil, "%s: %d, want 1 to %d, or 0 to leave it", b.field, b.is, b.most)
		}
	}
	t, err := begun(c, p.Topic)
	if err != nil {
		return nil, err
	}
	k := &t.Keep
	for _, f := range []struct {
		to *int64
		is int64
	}{{&k.Messages, p.Messages}, {&k.Bytes, p.Bytes}, {&k.Seconds, p.Seconds}} {
		if f.is > 0 {
			*f.to = f.is
		}
	}
	store(c.Tx, c.Cmd.Company, t, TotalOf(c.Tx, c.Cmd.Company), core.TimeOf(c.Now))
	c.Record(ledger.Change{Action: "topic.kept", EntityType: "topic", EntityID: t.Name,
		Details: core.Object{}.Int("messages", k.Messages).Int("bytes", k.Bytes).Int("seconds", k.Seconds).Close()})
	t, _ = Of(c.Tx, c.Cmd.Company, t.Name)
	return t, nil
}

func remove(c *ledger.Context, p Delete) (any, error) {
	of := c.Cmd.Company
	t, ok := Of(c.Tx, of, p.Topic)
	if !ok {
		return nil, errNoTopic()
	}
	t, n := cut(c.Tx, of, t, TotalOf(c.Tx, of), func(Topic, Message) bool { return true })
	if t.Messages > 0 {
		topics.put(c.Tx, of, core.TextKey(t.Name), t)
	} else {
		n.Topics--
		topics.remove(c.Tx, of, core.TextKey(t.Name))
	}
	totals.put(c.Tx, of, totalKey, n)
	c.Record(ledger.Change{Action: "topic.deleted", EntityType: "topic", EntityID: t.Name,
		Details: core.Object{}.Int("left", t.Messages).Close()})
	return Deleted{t.Messages}, nil
}

func errNoTopic() error { return ledger.Refuse(ledger.NotFound, nil, "Topic not found") }

func subscribe(c *ledger.Context, p Subscribe) (any, error) {
	if err := names.Check(p.Name); err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "subscription: %s", err.Error())
	}
	if err := names.CheckPattern(p.Pattern); err != nil {
		return nil, ledger.Refuse(ledger.Invalid, nil, "pattern: %s", err.Error())
	}
	of, now := c.Cmd.Company, core.TimeOf(c.Now)
	s, ok := SubscriptionOf(c.Tx, of, p.Name)
	if !ok {
		n := TotalOf(c.Tx, of)
		if n.Subscriptions >= MaxSubscriptions {
			return nil, ledger.Refuse(ledger.Unprocessable, nil, "subscription: there are %d, at most %d; delete one first",
				n.Subscriptions, MaxSubscriptions)
		}
		n.Subscriptions++
		totals.put(c.Tx, of, totalKey, n)
		s = Subscription{Name: p.Name, Position: c.Height, CreatedAt: now}
	}
	if p.From != nil {
		s.Position = max(*p.From, 1) - 1
	}
	s.Pattern, s.By, s.UpdatedAt = p.Pattern, c.Cmd.Actor.Type+":"+c.Cmd.Actor.ID, now
	subscriptions.put(c.Tx, of, core.TextKey(s.Name), s)
	c.Record(ledger.Change{Action: "topic.subscribed", EntityType: "topic_subscription", EntityID: s.Name,
		Details: core.Object{}.Str("pattern", s.Pattern).Close()})
	return s, nil
}

func errNoSubscription() error {
	return ledger.Refuse(ledger.NotFound, nil, "Subscription not found")
}

func acknowledge(c *ledger.Context, p Acknowledge) (any, error) {
	s, ok := SubscriptionOf(c.Tx, c.Cmd.Company, p.Name)
	if !ok {
		return nil, errNoSubscription()
	}
	if p.Height > c.Height {
		return nil, ledger.Refuse(ledger.Invalid, nil, "height: %d is higher than the chain, which has %d",
			p.Height, c.Height)
	}
	// A lower one is late, and not an error: acknowledgements may overtake each other.
	s.Position, s.UpdatedAt = max(s.Position, p.Height), core.TimeOf(c.Now)
	subscriptions.put(c.Tx, c.Cmd.Company, core.TextKey(s.Name), s)
	c.Record(ledger.Change{Action: "topic.acknowledged", EntityType: "topic_subscription", EntityID: s.Name,
		Details: core.Object{}.Int("height", int64(s.Position)).Close()})
	return s, nil
}

func unsubscribe(c *ledger.Context, p Unsubscribe) (any, error) {
	of := c.Cmd.Company
	s, ok := SubscriptionOf(c.Tx, of, p.Name)
	if !ok {
		return nil, errNoSubscription()
	}
	n := TotalOf(c.Tx, of)
	n.Subscriptions--
	totals.put(c.Tx, of, totalKey, n)
	subscriptions.remove(c.Tx, of, core.TextKey(s.Name))
	c.Record(ledger.Change{Action: "topic.unsubscribed", EntityType: "topic_subscription", EntityID: s.Name})
	return nil, nil
}
