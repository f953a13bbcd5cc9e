package post

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/topic"
)

// A Message is an envelope with its payload. It does not change once it was sent.
type Message struct {
	ID      string         `json:"id"`
	From    kernel.Address `json:"from"`
	To      Target         `json:"to"`
	Payload Payload        `json:"payload"`
	At      time.Time      `json:"timestamp"`
	// of waiting for credits, for the reply, or of all attempts of a durable one
	Deadline    time.Time `json:"deadline"`
	Company     string    `json:"company,omitempty"` // of the process that sent it
	Correlation string    `json:"correlation_id,omitempty"`
	Trace       string    `json:"trace_id,omitempty"`
	WantsReply  bool      `json:"wants_reply,omitempty"` // it is a request
	Reliable    bool      `json:"reliable,omitempty"`    // until it is acknowledged
	Durable     bool      `json:"durable,omitempty"`     // reliable, and survives its sender's node
	Attempt     int       `json:"attempt,omitempty"`     // of a reliable one, from 1

	// Of a message that a topic brought: its height there, who published it, and the process of this
	// node that subscribed, to which alone it is sent until it is acknowledged.
	Height    uint64     `json:"height,omitempty"`
	Publisher string     `json:"publisher,omitempty"`
	Reader    kernel.PID `json:"-"`

	Quiet bool `json:"-"` // of this node's kernel: it is no dead letter
}

// A TargetKind is a way to say whom a message is for.
type TargetKind string

// The kinds of targets. The spec's remote node is the Node of any of them.
const (
	ToProcess   TargetKind = "process"
	ToTopic     TargetKind = "topic"
	ToBroadcast TargetKind = "broadcast" // every process of the node, or of the mesh
	ToGroup     TargetKind = "group"     // every process of a supervisor's group
	ToService   TargetKind = "service"
	ToName      TargetKind = "name" // one process of this name
	ToKernel    TargetKind = "kernel"
)

// A Target says whom a message is for. As text and in JSON:
//
//	12  n1:12             process 12, of the sender's node or of node n1
//	name:worker           a running process of this name, anywhere
//	group:app/web         all processes of a group
//	service:mail/send     method send of a service
//	topic:build.done      whoever reads the topic
//	broadcast  kernel     all processes; the node itself
//
// @NODE after a name, a group, a service, broadcast or kernel means those of one node. In JSON
// the forms {"Process":12}, {"ServiceMethod":{…}} and {"RemoteNode":{"node_id":…,"target":…}} are
// read too.
type Target struct {
	Kind   TargetKind
	Node   string // its name or ID; "": see above
	PID    kernel.PID
	Name   string // of a topic, a group, a service or a process
	Method string // of a service
}

// Process is the target of one process.
func Process(a kernel.Address) Target { return Target{Kind: ToProcess, Node: a.Node, PID: a.PID} }

// String writes a target.
func (t Target) String() string {
	s := ""
	switch t.Kind {
	case "":
		return ""
	case ToProcess:
		return kernel.Address{Node: t.Node, PID: t.PID}.String()
	case ToBroadcast, ToKernel:
		s = string(t.Kind)
	default:
		s = string(t.Kind) + ":" + t.Name
	}
	if t.Method != "" {
		s += "/" + t.Method
	}
	if t.Node != "" {
		s += "@" + t.Node
	}
	return s
}

const targetShape = "give a PID, NODE:PID, name:NAME, group:GROUP, service:NAME, service:NAME/METHOD, " +
	"topic:TOPIC, broadcast or kernel"

// ParseTarget reads a target.
func ParseTarget(s string) (Target, error) {
	bad := func(why string) (Target, error) {
		return Target{}, kernel.Errorf(kernel.BadRequest, "to %q: %s; %s", s[:min(len(s), maxName)], why, targetShape)
	}
	if s == "" || len(s) > 3*maxName {
		return bad(fmt.Sprintf("1 to %d bytes", 3*maxName))
	}
	kind, name, named := strings.Cut(s, ":")
	if rest, ok := strings.CutPrefix(s, "process:"); ok {
		kind, s = "", rest
	}
	switch TargetKind(kind) {
	case ToTopic:
		if err := topic.Check(name); err != nil {
			return bad(err.Error())
		}
		return Target{Kind: ToTopic, Name: name}, nil
	case ToName, ToGroup, ToService:
		t := Target{Kind: TargetKind(kind)}
		t.Name, t.Node, _ = cutLast(name, "@")
		if t.Kind == ToService {
			t.Name, t.Method, _ = strings.Cut(t.Name, "/")
		}
		if strings.HasSuffix(name, "@") || !plainName(t.Name) || t.Method != "" && !plainName(t.Method) ||
			len(t.Node) > maxName {
			return bad("a name has letters, digits and . _ - /, at most 200 bytes")
		}
		return t, nil
	}
	if bare, node, at := cutLast(s, "@"); !named && (bare == string(ToBroadcast) || bare == string(ToKernel)) &&
		at == (node != "") {
		return Target{Kind: TargetKind(bare), Node: node}, nil
	}
	a, err := kernel.ParseAddress(s)
	if err != nil {
		return bad("it names nothing")
	}
	return Process(a), nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func plainName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("._-/", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// MarshalText writes a target as String does.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what ParseTarget reads.
func (t *Target) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTarget(string(b))
	return err
}

// UnmarshalJSON reads a text, a PID, or an object with one member.
func (t *Target) UnmarshalJSON(b []byte) (err error) { return t.read(b, 0) }

func (t *Target) read(b []byte, depth int) (err error) {
	var text string
	var pid kernel.PID
	var object map[string]json.RawMessage
	switch {
	case json.Unmarshal(b, &text) == nil:
		for _, bare := range []TargetKind{ToBroadcast, ToKernel} {
			if strings.EqualFold(text, string(bare)) {
				text = string(bare)
			}
		}
		*t, err = ParseTarget(text)
		return err
	case json.Unmarshal(b, &pid) == nil:
		*t = Target{Kind: ToProcess, PID: pid}
		return nil
	case json.Unmarshal(b, &object) != nil || len(object) != 1:
		return kernel.Errorf(kernel.BadRequest, "to: %s", targetShape)
	}
	for member, v := range object {
		switch strings.ReplaceAll(strings.ToLower(member), "_", "") {
		case "process":
			err = json.Unmarshal(v, &t.PID)
			t.Kind = ToProcess
		case "topic", "service", "name", "group":
			if err = json.Unmarshal(v, &text); err == nil {
				*t, err = ParseTarget(strings.ToLower(member) + ":" + text)
			}
		case "servicemethod":
			var m struct{ Service, Method string }
			if err = json.Unmarshal(v, &m); err == nil {
				*t, err = ParseTarget("service:" + m.Service + "/" + m.Method)
			}
		case "remotenode":
			var r struct {
				Node   string          `json:"node_id"`
				Target json.RawMessage `json:"target"`
			}
			if err = json.Unmarshal(v, &r); err == nil && depth == 0 && r.Node != "" && len(r.Node) <= maxName {
				err = t.read(r.Target, 1)
				t.Node = r.Node
				break
			}
			err = errors.New("node_id and target are required, and a target of a node is on that node")
		default:
			err = errors.New(targetShape)
		}
	}
	if err != nil {
		return kernel.Errorf(kernel.BadRequest, "to: %v", err)
	}
	return nil
}

// A PayloadKind is what a message says.
type PayloadKind string

// The kinds of payloads.
const (
	Text       PayloadKind = "text"
	JSON       PayloadKind = "json"
	ToolCall   PayloadKind = "tool_call"
	ToolResult PayloadKind = "tool_result"
	OfSignal   PayloadKind = "signal"
	Binary     PayloadKind = "binary"
	RVF        PayloadKind = "rvf" // a segment of a vector file
)

var payloadKinds = []PayloadKind{Text, JSON, ToolCall, ToolResult, OfSignal, Binary, RVF}

// A Payload is what a message says: of its members those that its kind has.
type Payload struct {
	Kind PayloadKind `json:"kind"`
	Text string      `json:"text,omitempty"`
	// of json; the arguments of a tool_call; the result of a tool_result
	JSON    json.RawMessage `json:"json,omitempty"`
	Tool    string          `json:"tool,omitempty"`         // of tool_call
	Call    string          `json:"call_id,omitempty"`      // of tool_result
	Signal  *Signal         `json:"signal,omitempty"`       //
	Binary  []byte          `json:"binary,omitempty"`       // of binary and rvf
	Segment uint8           `json:"segment_type,omitempty"` // of rvf
}

// TextOf is a payload of text.
func TextOf(s string) Payload { return Payload{Kind: Text, Text: s} }

// A SignalKind is what a signal says.
type SignalKind string

// The signals. The kernel carries out the first four, and answers a ping to itself; the others are
// for whoever receives them.
const (
	Shutdown        SignalKind = "shutdown"
	Kill            SignalKind = "kill"
	Suspend         SignalKind = "suspend"
	Resume          SignalKind = "resume"
	Ping            SignalKind = "ping"
	Pong            SignalKind = "pong"
	ReloadConfig    SignalKind = "reload_config"
	DumpState       SignalKind = "dump_state"
	UserDefined     SignalKind = "user_defined"
	LinkExit        SignalKind = "link_exit"
	MonitorDown     SignalKind = "monitor_down"
	ResourceWarning SignalKind = "resource_warning"
)

var signalKinds = []SignalKind{Shutdown, Kill, Suspend, Resume, Ping, Pong, ReloadConfig, DumpState, UserDefined,
	LinkExit, MonitorDown, ResourceWarning}

// Controls reports whether the kernel carries a signal out instead of delivering it.
func (k SignalKind) Controls() bool { return slices.Index(signalKinds, k) < 4 }

// ByKernel reports whether a signal comes from a kernel alone.
func (k SignalKind) ByKernel() bool { return k == LinkExit || k == MonitorDown || k == ResourceWarning }

// A Signal tells a process something about itself or others.
type Signal struct {
	Kind     SignalKind `json:"kind"`
	User     uint8      `json:"user,omitempty"`     // number of user_defined
	PID      kernel.PID `json:"pid,omitempty"`      // of link_exit and monitor_down: who ended
	Node     string     `json:"node,omitempty"`     // of these: its node, if it is another one
	Ref      string     `json:"ref,omitempty"`      // of monitor_down: the monitor
	Reason   string     `json:"reason,omitempty"`   // why it ended
	Resource string     `json:"resource,omitempty"` // of resource_warning
	Current  int64      `json:"current,omitempty"`
	Limit    int64      `json:"limit,omitempty"`
}

// Size is how many bytes of a payload count.
func (p Payload) Size() int {
	return len(p.Text) + len(p.JSON) + len(p.Binary) + len(p.Tool) + len(p.Call)
}

// Validate reports what is wrong with a payload.
func (p Payload) Validate() error {
	bad := func(format string, args ...any) error {
		return kernel.Errorf(kernel.BadRequest, "payload: "+format, args...)
	}
	if n := p.Size(); n > MaxMessage {
		return bad("%d bytes, at most %d: store what is larger as a file and send its hash", n, MaxMessage)
	}
	if !slices.Contains(payloadKinds, p.Kind) {
		return bad("kind %q: give text, json, tool_call, tool_result, signal, binary or rvf", p.Kind)
	}
	is := func(kinds ...PayloadKind) bool { return slices.Contains(kinds, p.Kind) }
	for _, m := range []struct {
		name            string
		given, may, has bool
	}{
		{"text", p.Text != "", is(Text), true},
		{"json", len(p.JSON) > 0, is(JSON, ToolCall, ToolResult), !is(JSON, ToolResult) || len(p.JSON) > 0},
		{"tool", p.Tool != "", is(ToolCall), !is(ToolCall) || p.Tool != ""},
		{"call_id", p.Call != "", is(ToolResult), !is(ToolResult) || p.Call != ""},
		{"signal", p.Signal != nil, is(OfSignal), !is(OfSignal) || p.Signal != nil},
		{"binary", len(p.Binary) > 0, is(Binary, RVF), true},
		{"segment_type", p.Segment != 0, is(RVF), true},
	} {
		switch {
		case m.given && !m.may:
			return bad("%s does not belong to a payload of kind %s", m.name, p.Kind)
		case !m.has:
			return bad("%s is required for kind %s", m.name, p.Kind)
		}
	}
	switch {
	case len(p.Tool) > maxName || len(p.Call) > maxName:
		return bad("tool and call_id have at most %d bytes", maxName)
	case len(p.JSON) > 0 && !json.Valid(p.JSON):
		return bad("json is not JSON")
	case p.Signal != nil && !slices.Contains(signalKinds, p.Signal.Kind):
		return bad("signal %q: there is none; such as ping, user_defined, shutdown", p.Signal.Kind)
	case p.Signal != nil &&
		max(len(p.Signal.Ref), len(p.Signal.Reason), len(p.Signal.Resource), len(p.Signal.Node)) > maxName:
		return bad("the texts of a signal have at most %d bytes", maxName)
	}
	return nil
}

// Validate reports what is wrong with a message before it is sent at now.
func (m *Message) Validate(now time.Time) error {
	bad := func(format string, args ...any) error { return kernel.Errorf(kernel.BadRequest, format, args...) }
	longest := MaxWait
	if m.Durable {
		longest = MaxKeep
	}
	many := m.To.Kind == ToBroadcast || m.To.Kind == ToGroup || m.To.Kind == ToTopic
	switch {
	case m.To.Kind == "":
		return bad("to: required; %s", targetShape)
	case max(len(m.ID), len(m.Correlation), len(m.Trace)) > maxName:
		return bad("an ID has at most %d bytes", maxName)
	case m.WantsReply && (m.Reliable || m.Durable):
		return bad("a request is not reliable: whoever asks sees whether it was answered, and asks again")
	case many && (m.WantsReply || m.Reliable || m.Durable):
		return bad("to %s: requests and reliable messages are for one receiver", m.To.Kind)
	case m.To.Kind == ToKernel && (m.Reliable || m.Durable):
		return bad("to kernel: the node itself is asked or told, not sent reliable messages")
	case !m.Deadline.After(now):
		return bad("wait: the time for this message is over")
	case m.Deadline.Sub(now) > longest:
		return bad("wait: at most %s", longest)
	}
	return m.Payload.Validate()
}
