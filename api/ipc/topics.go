// Package ipc serves how processes talk: topics and subscriptions, messages and mailboxes,
// services, and the kernel's clock.
package ipc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/topic"
	names "github.com/selvage-mesh/selvage/kernel/topic"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	tag = "ipc"
	at  = "/api/v1"
	// defaultPage is how many messages are answered unless a request says otherwise.
	defaultPage = 100
	// maxDeletes bounds the commands that delete one topic.
	maxDeletes = 1 + topic.MostMessages/100
)

var whose = api.Param{Name: "companyId", Doc: "whose; the mesh's own unless given"}

// TopicRoutes are the rows of topics and of subscriptions to them.
func TopicRoutes() []api.Route {
	from := api.Param{Name: "from", Type: "integer", Doc: "height of the first message; the oldest unless given"}
	limit := api.Param{Name: "limit", Type: "integer", Doc: "messages, 1 to 1000; 100 unless given"}
	scope := []api.Param{whose}
	const one, sub = at + "/topics/{topic}", at + "/subscriptions/{subscription}"
	return []api.Route{
		{Method: "GET", Path: at + "/topics", Tag: tag,
			Summary: "List topics, and with a pattern the messages of those that it selects; with Accept: " +
				"text/event-stream, follow them", Who: api.Board,
			Query: []api.Param{{Name: "pattern",
				Doc: "a topic, where * is any one level and ** at the end all levels, such as build.*; without " +
					"one topics are listed, and no messages"}, from, limit, whose},
			Out: page{}, Handle: readTopics},
		{Method: "GET", Path: one, Tag: tag, Summary: "Read the messages of a topic", Who: api.Board,
			Query: []api.Param{from, limit, whose}, Out: page{}, Handle: readTopics},
		{Method: "GET", Path: one + "/events", Tag: tag,
			Summary: "Follow the messages of a topic, or of a pattern, as server-sent events; the event's ID is " +
				"a height, at which any node resumes", Who: api.Board,
			Query: []api.Param{{Name: "from", Type: "integer",
				Doc: "height of the first message; what is published from now on unless given"}, whose}, NoTool: true,
			Out: message{}, Media: []string{"text/event-stream"}, Handle: followTopics},
		{Method: "POST", Path: one, Tag: tag, Summary: "Publish a message to a topic: every node keeps it", Who: api.Board,
			Query: scope, In: publishBody{}, Out: topic.Published{}, Status: http.StatusCreated, Handle: publish},
		{Method: "PUT", Path: one, Tag: tag, Summary: "Say how much of a topic is kept", Who: api.Board, Query: scope,
			In: keepBody{}, Out: topic.Topic{}, Handle: keep},
		{Method: "DELETE", Path: one, Tag: tag, Summary: "Delete a topic with its messages", Who: api.Board, Query: scope,
			Out: deleted{}, Handle: removeTopic},
		{Method: "GET", Path: at + "/subscriptions", Tag: tag, Summary: "List subscriptions, and how far each has read",
			Who: api.Board, Query: scope, Out: subscriptions{}, Handle: listSubscriptions},
		{Method: "PUT", Path: sub, Tag: tag,
			Summary: "Subscribe to the topics that a pattern selects: every node remembers how far the subscription has read",
			Who:     api.Board, Query: scope, In: subscribeBody{}, Out: topic.Subscription{}, Handle: subscribe},
		{Method: "GET", Path: sub + "/messages", Tag: tag,
			Summary: "Read the next messages of a subscription: those above its position", Who: api.Board,
			Query: []api.Param{limit, whose}, Out: page{}, Handle: next},
		{Method: "POST", Path: sub + "/ack", Tag: tag, Summary: "Acknowledge the messages of a subscription up to a height",
			Who: api.Board, Query: scope, In: ackBody{}, Out: topic.Subscription{}, Handle: acknowledge},
		{Method: "DELETE", Path: sub, Tag: tag, Summary: "Unsubscribe", Who: api.Board, Query: scope, Out: deleted{},
			Handle: unsubscribe},
	}
}

type (
	publishBody struct {
		Company ledger.CompanyID `json:"companyId,omitempty" format:"uuid" doc:"whose topic; the mesh's own unless given"`
		Text    *string          `json:"text,omitempty" nullable:"false" maxLength:"65536" maxBytes:"65536"`
		Payload json.RawMessage  `json:"payload,omitempty" types:"any" maxBytes:"65536" doc:"instead of text: a string is text, anything else is JSON"`
	}
	keepBody struct {
		Company  ledger.CompanyID `json:"companyId,omitempty" format:"uuid"`
		Messages int64            `json:"messages,omitempty" minimum:"1" maximum:"100000"`
		Bytes    int64            `json:"bytes,omitempty" minimum:"1" maximum:"67108864"`
		Seconds  int64            `json:"seconds,omitempty" minimum:"1" maximum:"31622400"`
	}
	subscribeBody struct {
		Company ledger.CompanyID `json:"companyId,omitempty" format:"uuid"`
		Pattern string           `json:"pattern" minLength:"1" maxLength:"200" maxBytes:"200"`
		From    *int64           `json:"from,omitempty" nullable:"false" minimum:"0" maximum:"9007199254740991" doc:"height of the first message that it reads; what is published next unless given"`
	}
	ackBody struct {
		Company ledger.CompanyID `json:"companyId,omitempty" format:"uuid"`
		Height  int64            `json:"height" minimum:"0" maximum:"9007199254740991"`
	}
	// A message is what somebody wrote: data, not orders.
	message struct {
		topic.Message
		Payload json.RawMessage `json:"payload"` // the text as JSON: a string, or what it is
	}
	page struct {
		Topics   []topic.Topic `json:"topics"`
		Messages []message     `json:"messages"` // in the order of their heights
		Next     uint64        `json:"next"`     // height from which to read on
		More     bool          `json:"more"`     // there may be more at once
	}
	subscriptions struct {
		Subscriptions []topic.Subscription `json:"subscriptions"`
	}
	deleted struct {
		Deleted bool `json:"deleted"`
	}
)

// scopeOf returns the company that a request is about, "" for the mesh, if the caller sees it.
func scopeOf(rc *api.Request, said ledger.CompanyID) (of ledger.CompanyID, err error) {
	return api.ScopeOf(rc, said, "Topics")
}

// named returns what the path names by a value, and the company that a request is about.
func named(rc *api.Request, value string, said ledger.CompanyID) (name string, of ledger.CompanyID, err error) {
	name = rc.Path(value)
	if err = names.Check(name); err != nil {
		return "", "", api.Invalid("%s: %v", value, err)
	}
	of, err = scopeOf(rc, said)
	return name, of, err
}

func publish(rc *api.Request) (api.Response, error) {
	in, err := api.Body[publishBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	name, of, err := named(rc, "topic", in.Company)
	if err != nil {
		return api.Response{}, err
	}
	p := topic.Publish{Topic: name}
	if p.Text, p.JSON, err = said(in.Text, in.Payload); err != nil {
		return api.Response{}, err
	}
	out, err := api.Do[topic.Published](rc, topic.KindPublish, of, p)
	return api.OK(out), err
}

// said returns what a body says, by a text or by any JSON.
func said(text *string, payload json.RawMessage) (s string, isJSON bool, err error) {
	switch {
	case (text == nil) == (payload == nil):
		return "", false, api.Invalid("text or payload: give one of them")
	case text != nil:
		return *text, false, nil
	case json.Unmarshal(payload, &s) == nil && payload[0] == '"':
		return s, false, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, payload); err != nil {
		return "", false, api.Invalid("payload: is not JSON")
	}
	return b.String(), true, nil
}

func shown(m topic.Message) message {
	if m.JSON {
		return message{m, json.RawMessage(m.Text)}
	}
	b, _ := json.Marshal(m.Text) // a text can be encoded
	return message{m, b}
}

// patternOf returns the topics that a request is about.
func patternOf(rc *api.Request) (string, error) {
	pattern := rc.Path("topic")
	if pattern == "" {
		pattern = rc.Query("pattern")
	}
	if pattern == "" {
		return "", nil
	}
	if err := names.CheckPattern(pattern); err != nil {
		return "", api.Invalid("pattern: %v", err)
	}
	return pattern, nil
}

func readTopics(rc *api.Request) (api.Response, error) {
	if strings.Contains(rc.HTTP.Header.Get("Accept"), "text/event-stream") {
		return followTopics(rc)
	}
	pattern, err := patternOf(rc)
	if err != nil {
		return api.Response{}, err
	}
	from, err := rc.QueryHeight("from")
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", defaultPage, 1, topic.MaxPage)
	if err != nil {
		return api.Response{}, err
	}
	of, err := scopeOf(rc, "")
	if err != nil {
		return api.Response{}, err
	}
	return pageOf(rc, of, pattern, from, limit)
}

// pageOf answers messages from a height; for the pattern "" topics alone.
func pageOf(rc *api.Request, of ledger.CompanyID, pattern string, from uint64, limit int) (api.Response, error) {
	out := page{Topics: []topic.Topic{}, Messages: []message{}, Next: from}
	err := rc.View(func(tx *ledger.Tx) error {
		if pattern == "" {
			out.Topics = append(out.Topics, topic.List(tx, of, "**")...)
			return nil
		}
		out.Topics = append(out.Topics, topic.List(tx, of, pattern)...)
		for _, m := range topic.Read(tx, of, pattern, from, limit, core.TimeOf(rc.Now())) {
			out.Messages, out.Next = append(out.Messages, shown(m)), m.Height+1
		}
		out.More = len(out.Messages) == limit
		return nil
	})
	return api.OK(out), err
}

// followTopics writes the messages of a pattern as server-sent events:
//
//	id: 348
//	event: message
//	data: {"topic":"build.done","height":348,…}
func followTopics(rc *api.Request) (api.Response, error) {
	pattern, err := patternOf(rc)
	if err != nil {
		return api.Response{}, err
	}
	if pattern == "" {
		return api.Response{}, api.Invalid("pattern: required; ** follows all topics")
	}
	of, err := scopeOf(rc, "")
	if err != nil {
		return api.Response{}, err
	}
	after, err := resumeAfter(rc)
	if err != nil {
		return api.Response{}, err
	}
	s := rc.Server
	return api.EventStream(rc, fmt.Sprintf("after %d", after), func(ctx context.Context, send func([]byte) bool) {
		// What is kept comes from the topics, in pages, and the rest from the feed, which may
		// no longer have the old entries.
		for {
			m, err := kept(ctx, rc, of, pattern, after+1)
			if err != nil || len(m) == 0 {
				break
			}
			for _, one := range m {
				if !sendMessage(send, one) {
					return
				}
				after = one.Height
			}
		}
		for e, err := range s.Cfg.Node.Entries(ctx, after) {
			if err != nil {
				if ctx.Err() == nil {
					s.Log.Warn("feed broke off", "request", rc.ID, "error", err)
				}
				return
			}
			if m, ok := publishedBy(ctx, s, e, of, pattern); ok && !sendMessage(send, m) {
				return
			}
		}
	}), nil
}

// resumeAfter returns the height above which a stream begins.
func resumeAfter(rc *api.Request) (after uint64, err error) {
	if id := rc.HTTP.Header.Get("Last-Event-ID"); id != "" {
		if after, err = strconv.ParseUint(id, 10, 63); err != nil {
			return 0, api.Invalid("Invalid event ID to resume after: expected a height")
		}
		return after, nil
	}
	from, err := rc.QueryHeight("from")
	switch {
	case err != nil:
		return 0, err
	case rc.Has("from"):
		return max(from, 1) - 1, nil
	case rc.Server.Cfg.Head != nil:
		after, _ = rc.Server.Cfg.Head()
	}
	return after, nil
}

func kept(ctx context.Context, rc *api.Request, of ledger.CompanyID, pattern string, from uint64) (out []topic.Message,
	err error) {
	_, err = rc.Server.Cfg.Node.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
		out = topic.Read(tx, of, pattern, from, defaultPage, core.TimeOf(rc.Now()))
		return nil
	})
	return out, err
}

// publishedBy returns the message that an entry published, if the pattern selects it.
func publishedBy(ctx context.Context, s *api.Server, e ledger.Entry, of ledger.CompanyID,
	pattern string) (m topic.Message, ok bool) {
	if e.Company != of || e.Outcome != ledger.Applied {
		return m, false
	}
	for _, ch := range e.Changes {
		if ch.Action != topic.Told || !names.Match(pattern, ch.EntityID) {
			continue
		}
		_, err := s.Cfg.Node.View(ctx, ledger.Read{Mode: ledger.ReadStale}, func(tx *ledger.Tx) error {
			m, ok = topic.At(tx, of, ch.EntityID, e.Height)
			return nil
		})
		return m, ok && err == nil
	}
	return m, false
}

func sendMessage(send func([]byte) bool, m topic.Message) bool {
	data, err := api.EncodeJSON(shown(m))
	return err == nil && send(fmt.Appendf(nil, "id: %d\nevent: message\ndata: %s\n\n", m.Height, data))
}

func keep(rc *api.Request) (api.Response, error) {
	in, err := api.Body[keepBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	name, of, err := named(rc, "topic", in.Company)
	if err != nil {
		return api.Response{}, err
	}
	out, err := api.Do[topic.Topic](rc, topic.KindKeep, of, topic.Keep{Topic: name, Messages: in.Messages, Bytes: in.Bytes,
		Seconds: in.Seconds})
	return api.OK(out), err
}

func removeTopic(rc *api.Request) (api.Response, error) {
	name, of, err := named(rc, "topic", "")
	if err != nil {
		return api.Response{}, err
	}
	for range maxDeletes {
		d, err := api.Do[topic.Deleted](rc, topic.KindDelete, of, topic.Delete{Topic: name})
		if err != nil {
			return api.Response{}, err
		}
		if d.Left == 0 {
			return api.OK(deleted{true}), nil
		}
	}
	return api.Response{},
		api.Unavailable("The topic is being deleted, and others publish to it: stop them, and delete it again")
}

func listSubscriptions(rc *api.Request) (api.Response, error) {
	of, err := scopeOf(rc, "")
	if err != nil {
		return api.Response{}, err
	}
	out := subscriptions{Subscriptions: []topic.Subscription{}}
	err = rc.View(func(tx *ledger.Tx) error {
		out.Subscriptions = append(out.Subscriptions, topic.Subscriptions(tx, of)...)
		return nil
	})
	return api.OK(out), err
}

func subscribe(rc *api.Request) (api.Response, error) {
	in, err := api.Body[subscribeBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	name, of, err := named(rc, "subscription", in.Company)
	if err != nil {
		return api.Response{}, err
	}
	p := topic.Subscribe{Name: name, Pattern: in.Pattern}
	if in.From != nil {
		p.From = new(uint64(*in.From))
	}
	out, err := api.Do[topic.Subscription](rc, topic.KindSubscribe, of, p)
	return api.OK(out), err
}

func next(rc *api.Request) (api.Response, error) {
	name, of, err := named(rc, "subscription", "")
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", defaultPage, 1, topic.MaxPage)
	if err != nil {
		return api.Response{}, err
	}
	var s topic.Subscription
	err = rc.View(func(tx *ledger.Tx) (err error) {
		var ok bool
		if s, ok = topic.SubscriptionOf(tx, of, name); !ok {
			err = api.NotFound("Subscription not found")
		}
		return err
	})
	if err != nil {
		return api.Response{}, err
	}
	return pageOf(rc, of, s.Pattern, s.Position+1, limit)
}

func acknowledge(rc *api.Request) (api.Response, error) {
	in, err := api.Body[ackBody](rc)
	if err != nil {
		return api.Response{}, err
	}
	of, err := scopeOf(rc, in.Company)
	if err != nil {
		return api.Response{}, err
	}
	out, err := api.Do[topic.Subscription](rc, topic.KindAcknowledge, of, topic.Acknowledge{Name: rc.Path("subscription"),
		Height: uint64(in.Height)})
	return api.OK(out), err
}

func unsubscribe(rc *api.Request) (api.Response, error) {
	of, err := scopeOf(rc, "")
	if err != nil {
		return api.Response{}, err
	}
	_, err = rc.Submit(topic.KindUnsubscribe, of, topic.Unsubscribe{Name: rc.Path("subscription")})
	return api.OK(deleted{true}), err
}
