package api

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// Questions about the processes of a node.
const (
	ProcessList    = "list" // of one page, by PID
	ProcessFind    = "find"
	ProcessNamed   = "named" // those of a name that receive messages
	ProcessSpawn   = "spawn"
	ProcessSignal  = "signal"
	ProcessElevate = "elevate"
	ProcessEvents  = "events" // of the kernel's log
)

// ProcessPage is how many processes one answer has at most: they fit a frame between nodes.
const ProcessPage = 400

// A ProcessAsk asks a node about its processes.
type ProcessAsk struct {
	Op           string               `json:"op"`
	PID          kernel.PID           `json:"pid,omitempty"`
	More         bool                 `json:"more,omitempty"` // of ProcessList: only above PID
	All          bool                 `json:"all,omitempty"`  // also those that ended lately
	Name         string               `json:"name,omitempty"` // of ProcessNamed
	Spec         *kernel.Spec         `json:"spec,omitempty"`
	Signal       string               `json:"signal,omitempty"`
	Capabilities *kernel.Capabilities `json:"capabilities,omitempty"`
	Seconds      int64                `json:"seconds,omitempty"` // of ProcessElevate; 0: as long as it lives
	Tail         int                  `json:"tail,omitempty"`
	Level        kernel.EventLevel    `json:"level,omitempty"`
}

// A ProcessAnswer is what the node answers: entries or events, or why not.
type ProcessAnswer struct {
	Entries []kernel.Entry   `json:"entries,omitempty"`
	More    bool             `json:"more,omitempty"` // there are more entries
	Events  []kernel.Event   `json:"events,omitempty"`
	Kind    kernel.ErrorKind `json:"kind,omitempty"`
	Error   string           `json:"error,omitempty"`
}

// Processes asks a node about its processes; an error means that it did not answer.
type Processes func(ctx context.Context, on identity.NodeID, ask ProcessAsk) (ProcessAnswer, error)

// ProcessLogRef names the log of a process on its node.
func ProcessLogRef(pid kernel.PID) string { return runlog.Ref("mesh", "processes", pid.String()) }

// Questions about the messages of a node.
const (
	PostInboxes = "inboxes"
	PostOutbox  = "outbox"
	PostLetters = "letters"
	PostReplay  = "replay"
	PostPurge   = "purge"
)

// PostPage is how many rows one answer about messages has at most, postCut how much of a payload each
// of them shows: they fit a frame between nodes.
const (
	PostPage = 100
	postCut  = 2 << 10
)

// A PostAsk asks a node about its messages.
type PostAsk struct {
	Op      string      `json:"op"`
	After   uint64      `json:"after,omitempty"`
	Limit   int         `json:"limit,omitempty"`
	Numbers []uint64    `json:"numbers,omitempty"`
	Reason  post.Reason `json:"reason,omitempty"`
}

// A PostAnswer is what the node answers.
type PostAnswer struct {
	Inboxes []post.Standing `json:"inboxes,omitempty"`
	Outbox  []PostParcel    `json:"outbox,omitempty"`
	Letters []PostLetter    `json:"letters,omitempty"`
	Done    int             `json:"done,omitempty"`   // replayed or purged
	Failed  int             `json:"failed,omitempty"` // dead letters again
	Error   string          `json:"error,omitempty"`
}

// A PostParcel is a reliable message that was not acknowledged.
type PostParcel struct {
	Message  courier.Shown `json:"message"`
	Attempts int           `json:"attempts"`
	Next     time.Time     `json:"next_attempt"`
	Receiver string        `json:"receiver"` // node:pid of the last attempt
	Why      string        `json:"why"`      // the last attempt failed
}

// A PostLetter is a message that was not delivered.
type PostLetter struct {
	Number  uint64        `json:"number"`
	At      time.Time     `json:"at"`
	Reason  post.Reason   `json:"reason"`
	Detail  string        `json:"detail"`
	Message courier.Shown `json:"message"`
	Cut     bool          `json:"cut"` // more of the payload is kept than is shown
}

// AnswerPost answers a question about the messages of this node.
func AnswerPost(ctx context.Context, c *courier.Courier, ask PostAsk) (out PostAnswer) {
	most := min(cmp.Or(max(ask.Limit, 0), PostPage), PostPage)
	switch ask.Op {
	case PostInboxes:
		out.Inboxes = c.Office().Inboxes()
		from, _ := slices.BinarySearchFunc(out.Inboxes, kernel.PID(ask.After),
			func(s post.Standing, pid kernel.PID) int { return cmp.Compare(s.PID, pid) })
		out.Inboxes = out.Inboxes[from:]
		out.Inboxes = out.Inboxes[:min(len(out.Inboxes), 4*PostPage)]
	case PostOutbox:
		for _, p := range c.Office().Outbox() {
			if len(out.Outbox) == most {
				break
			}
			row := PostParcel{Message: c.Shown(p.Message), Attempts: p.Attempts, Next: p.Next.UTC(), Why: p.Why}
			row.Message.Payload, _ = cutPayload(p.Message.Payload)
			if p.To.Node != "" {
				row.Receiver = c.AddressOf(p.To)
			}
			out.Outbox = append(out.Outbox, row)
		}
	case PostLetters:
		for _, l := range c.Office().DeadLetters(ask.After, most) {
			row := PostLetter{Number: l.Number, At: l.At.UTC(), Reason: l.Reason, Detail: l.Detail, Message: c.Shown(l.Message)}
			row.Message.Payload, row.Cut = cutPayload(l.Message.Payload)
			out.Letters = append(out.Letters, row)
		}
	case PostReplay:
		out.Done, out.Failed = c.Replay(ctx, ask.Numbers, ask.Reason, most)
	case PostPurge:
		out.Done = len(c.Office().TakeLetters(ask.Numbers, ask.Reason, post.DeadLetterMost))
	default:
		out.Error = "this node does not know the question " + ask.Op + " about messages"
	}
	return out
}

// cutPayload returns what a list shows of a payload.
func cutPayload(p post.Payload) (post.Payload, bool) {
	if p.Size() <= postCut {
		return p, false
	}
	p.Text = strings.ToValidUTF8(p.Text[:min(len(p.Text), postCut)], "")
	p.Binary, p.JSON = nil, nil
	return p, true
}
