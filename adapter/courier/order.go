package courier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/sandbox"
)

// An Order is a message to be sent as a program writes it: in a body of the API, and in a call of
// a module.
type Order struct {
	To          string          `json:"to" minLength:"1" maxLength:"600" doc:"PID, NODE:PID, name:NAME, group:GROUP, service:NAME/METHOD, topic:TOPIC, broadcast or kernel; @NODE after a name means that node"`
	Text        *string         `json:"text,omitempty" nullable:"false" maxLength:"16760832" maxBytes:"16760832"`
	JSON        json.RawMessage `json:"json,omitempty" types:"any" maxBytes:"16760832" doc:"instead of text"`
	Payload     json.RawMessage `json:"payload,omitempty" types:"any" maxBytes:"16760832" doc:"instead of text: an object with kind text, json, tool_call, tool_result, signal, binary or rvf"`
	WaitMs      int64           `json:"wait_ms,omitempty" minimum:"0" maximum:"600000" doc:"how long it may wait for room in the inbox, or a request for its reply; 5000 unless given"`
	Reliable    bool            `json:"reliable,omitempty" doc:"kept and sent again until its receiver acknowledges it"`
	Durable     bool            `json:"durable,omitempty" doc:"reliable, and survives a restart of this node"`
	KeepSec     int64           `json:"keep_seconds,omitempty" minimum:"0" maximum:"604800" doc:"how long a durable message is tried; a day unless given"`
	Await       bool            `json:"await,omitempty" doc:"of a reliable message: answer when it was acknowledged, or after wait_ms"`
	ID          string          `json:"id,omitempty" maxLength:"120" doc:"of a reliable message: sending it again under the same ID delivers it once"`
	Correlation string          `json:"correlation_id,omitempty" maxLength:"200"`
	Trace       string          `json:"trace_id,omitempty" maxLength:"200"`
}

// Message returns the message that an order is about.
func (o Order) Message(now time.Time) (*post.Message, error) {
	to, err := post.ParseTarget(o.To)
	if err != nil {
		return nil, err
	}
	m := &post.Message{ID: o.ID, To: to, Reliable: o.Reliable || o.Durable, Durable: o.Durable, Correlation: o.Correlation,
		Trace: o.Trace}
	switch {
	case o.ID != "" && !m.Reliable:
		return nil, kernel.Errorf(kernel.BadRequest,
			"id: only a reliable message has an ID of its sender; set reliable or durable")
	case o.Await && !m.Reliable:
		return nil, kernel.Errorf(kernel.BadRequest,
			"await: only a reliable message is acknowledged; set reliable or durable")
	case o.KeepSec > 0 && !o.Durable:
		return nil, kernel.Errorf(kernel.BadRequest, "keep_seconds: only a durable message is kept; set durable")
	case o.Durable && o.KeepSec > 0:
		m.Deadline = now.Add(time.Duration(o.KeepSec) * time.Second)
	case !m.Reliable && o.WaitMs > 0:
		m.Deadline = now.Add(time.Duration(o.WaitMs) * time.Millisecond)
	}
	m.Payload, err = payloadOf(o.Text, o.JSON, o.Payload)
	return m, err
}

func payloadOf(text *string, value, payload json.RawMessage) (p post.Payload, err error) {
	given := 0
	for _, is := range []bool{text != nil, value != nil, payload != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return p, kernel.Errorf(kernel.BadRequest, "text, json or payload: give one of them")
	case text != nil:
		return post.TextOf(*text), nil
	case value != nil:
		var b bytes.Buffer
		if json.Compact(&b, value) != nil {
			return p, kernel.Errorf(kernel.BadRequest, "json: is not JSON")
		}
		return post.Payload{Kind: post.JSON, JSON: b.Bytes()}, nil
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return p, kernel.Errorf(kernel.BadRequest, "payload: %v", err)
	}
	return p, p.Validate()
}

// A Reading asks for messages.
type Reading struct {
	Limit  int64 `json:"limit,omitempty" minimum:"0" maximum:"256" doc:"messages; 256 unless given"`
	WaitMs int64 `json:"wait_ms,omitempty" minimum:"0" maximum:"30000" doc:"how long to wait for the first; not at all unless given"`
}

// An Answering is the reply to a request.
type Answering struct {
	Text    *string         `json:"text,omitempty" nullable:"false" maxLength:"16760832" maxBytes:"16760832"`
	JSON    json.RawMessage `json:"json,omitempty" types:"any" maxBytes:"16760832" doc:"instead of text"`
	Payload json.RawMessage `json:"payload,omitempty" types:"any" maxBytes:"16760832" doc:"instead of text: an object with kind"`
}

// Said is the payload of an answer.
func (a Answering) Said() (post.Payload, error) { return payloadOf(a.Text, a.JSON, a.Payload) }

// Calls are what a module may ask its host for about messages: ipc.send, ipc.request, ipc.receive,
// ipc.reply and ipc.ack, with the bodies of the API.
func (c *Courier) Calls(pid kernel.PID) sandbox.Host {
	return sandbox.Host{
		"ipc.send": func(ctx context.Context, request json.RawMessage) (any, error) {
			var o Order
			m, err := ordered(request, &o, c.cfg.Wall())
			if err != nil {
				return nil, hostError(err)
			}
			ctx, cancel := context.WithTimeout(ctx, o.wait())
			defer cancel()
			sent, err := c.Send(ctx, pid, m, o.Await)
			if err != nil {
				return nil, hostError(err)
			}
			return map[string]any{"id": sent.ID, "state": sent.State}, nil
		},
		"ipc.request": func(ctx context.Context, request json.RawMessage) (any, error) {
			var o Order
			m, err := ordered(request, &o, c.cfg.Wall())
			if err != nil {
				return nil, hostError(err)
			}
			answer, err := c.Request(ctx, pid, m)
			if err != nil {
				return nil, hostError(err)
			}
			return c.Shown(answer), nil
		},
		"ipc.receive": func(ctx context.Context, request json.RawMessage) (any, error) {
			var r Reading
			if err := json.Unmarshal(request, &r); err != nil {
				return nil, &sandbox.HostError{Code: "BadRequest", Message: err.Error()}
			}
			all, err := c.Receive(ctx, pid, min(int(r.Limit), 16), time.Duration(r.WaitMs)*time.Millisecond)
			if err != nil {
				return nil, hostError(err)
			}
			return map[string]any{"messages": c.ShownAll(all)}, nil
		},
		"ipc.reply": func(_ context.Context, request json.RawMessage) (any, error) {
			var r struct {
				ID string `json:"id"`
				Answering
			}
			err := json.Unmarshal(request, &r)
			if err != nil {
				return nil, &sandbox.HostError{Code: "BadRequest", Message: err.Error()}
			}
			p, err := r.Said()
			if err == nil {
				err = c.Reply(pid, r.ID, p)
			}
			if err != nil {
				return nil, hostError(err)
			}
			return map[string]any{"id": r.ID}, nil
		},
		"ipc.ack": func(_ context.Context, request json.RawMessage) (any, error) {
			var r struct {
				ID string `json:"id"`
			}
			err := json.Unmarshal(request, &r)
			if err == nil {
				err = c.Ack(pid, r.ID)
			}
			if err != nil {
				return nil, hostError(err)
			}
			return map[string]any{"id": r.ID}, nil
		},
	}
}

func ordered(request json.RawMessage, o *Order, now time.Time) (*post.Message, error) {
	if err := json.Unmarshal(request, o); err != nil {
		return nil, kernel.Errorf(kernel.BadRequest, "%v", err)
	}
	return o.Message(now)
}

// wait bounds the call that sends an order.
func (o Order) wait() time.Duration {
	if o.WaitMs > 0 {
		return time.Duration(o.WaitMs)*time.Millisecond + locateWait
	}
	return post.DefaultWait + locateWait
}

// hostError is an error as a module sees it.
func hostError(err error) error {
	if f, ok := errors.AsType[*post.Failure](err); ok {
		code := "Failed"
		if f.Reason == post.GovernanceDenied || f.Reason == post.Deferred || f.Reason == post.NotAllowed {
			code = "GovernanceDenied"
		}
		return &sandbox.HostError{Code: code, Message: f.Error(), Reason: string(f.Reason)}
	}
	if kernel.KindOf(err) == kernel.BadRequest {
		return &sandbox.HostError{Code: "BadRequest", Message: err.Error()}
	}
	return err
}

// A Shown is a message as programs read it: nodes have their names.
type Shown struct {
	ID          string       `json:"id"`
	From        string       `json:"from"` // node:pid, to which it can be answered
	To          string       `json:"to"`
	Payload     post.Payload `json:"payload"`
	At          time.Time    `json:"timestamp"`
	Deadline    time.Time    `json:"deadline"`
	Company     string       `json:"company"`
	Correlation string       `json:"correlation_id"`
	Trace       string       `json:"trace_id"`
	WantsReply  bool         `json:"wants_reply"` // it is a request: reply to it
	Reliable    bool         `json:"reliable"`    // acknowledge it when it is handled
	Durable     bool         `json:"durable"`
	Attempt     int          `json:"attempt"`   // above 1: it may have been handled before
	Height      uint64       `json:"height"`    // of a message of a topic
	Publisher   string       `json:"publisher"` // of a message of a topic: who published it
}

// Shown describes a message.
func (c *Courier) Shown(m *post.Message) Shown {
	return Shown{m.ID, c.AddressOf(m.From), m.To.String(), m.Payload, m.At.UTC(), m.Deadline.UTC(), m.Company,
		m.Correlation, m.Trace, m.WantsReply, m.Reliable, m.Durable, m.Attempt, m.Height, m.Publisher}
}

// AddressOf writes an address with the name of its node.
func (c *Courier) AddressOf(a kernel.Address) string {
	return kernel.Address{Node: c.cfg.Name(a.Node), PID: a.PID}.String()
}

// ShownAll describes messages; it is never null.
func (c *Courier) ShownAll(all []*post.Message) []Shown {
	out := make([]Shown, 0, len(all))
	for _, m := range all {
		out = append(out, c.Shown(m))
	}
	return out
}
