// Package courier carries messages between the processes of a mesh.
//
// The rules are those of package post. A [Courier] gives its office the time, finds the process
// that a target means, asks the gate before a message leaves and before a tool call is handed to
// whoever is to execute it, charges what a process sends to its limit, and keeps one stream to
// each node to which there is something to send. Durable messages are on disk before they count
// as sent.
//
// An idle courier does nothing: it has no timer while no message has a deadline.
package courier

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

const (
	// tick is how often deadlines are looked at while there are any.
	tick = 50 * time.Millisecond
	// MaxReceive bounds the messages of one answer, and answerBytes their payloads together, so
	// that the answer fits the memory of whoever asked; one message is always answered.
	MaxReceive  = 256
	answerBytes = 16 << 20
	// MaxLongPoll bounds how long a receiver waits for a message.
	MaxLongPoll = 30 * time.Second
	// foundFor is how long it is remembered where a name is on other nodes, locateWait bounds
	// asking them. maxFound bounds the names.
	foundFor   = time.Second
	locateWait = 2 * time.Second
	maxFound   = 4096
	// permitFor is how long a permit of the gate counts for the same sender and action: a change
	// of the constitution is felt within it. maxPermits bounds them.
	permitFor  = time.Second
	maxPermits = 4096
	// TokenPrefix begins the token with which a process shows who it is.
	TokenPrefix = "selvage_process_"
	// publishWait bounds publishing to a topic.
	publishWait = 15 * time.Second
)

// An Act is what the gate is asked about.
type Act struct {
	Action  string // "ipc.send", "ipc.signal", or of the tool that a tool call names
	Company string
	Agent   string
	Run     string
	Tool    string
}

// Config is what a courier needs. Node, Dir, Dial, Alive, Nodes, Resolve and Locate are required.
type Config struct {
	Node string // this node's ID
	Dir  string // of the journal of durable messages; it is created
	// Dial opens a stream to a node on which [Courier.Serve] answers.
	Dial func(ctx context.Context, node string) (net.Conn, error)
	// Alive reports whether a node is up as far as this node knows, Nodes returns all that are,
	// without this one. Resolve finds the ID of a node by its ID or name, and Name is its name.
	Alive   func(node string) bool
	Nodes   func() []string
	Resolve func(ref string) (string, error)
	Name    func(node string) string
	// Locate asks a node which of its processes have a name.
	Locate func(ctx context.Context, node, name string) ([]kernel.Entry, error)
	// Weigh asks the gate whether an act may happen: nil, a *post.Failure with GovernanceDenied
	// or Deferred, or why it can not be told. Nil: everything may.
	Weigh func(Act) error
	// Publish publishes to a topic for a process of a company, "" for the mesh.
	Publish func(ctx context.Context, company, topic string, p post.Payload) error
	// Gone reports whether the mesh has ended the session of a node that does not answer: it holds nothing
	// any more. Nil: a node that does not answer is gone.
	Gone func(node string) bool
	// Topics are those of the mesh; nil: there are none to subscribe to.
	Topics Topics
	// Services are those of the registry; nil: there are none.
	Services Services
	// State is what the node answers to the signal dump_state.
	State  func() any
	Wall   func() time.Time // this node's clock; default time.Now
	Events *kernel.EventLog
	Logger *slog.Logger // default: discard
}

// Services are the registered services of the mesh, and those of the apps of its companies, "" for no
// company. An app's service has the name APP/SERVICE.
type Services interface {
	// Providers returns the processes that provide a service now and may be called; known is false
	// for a name that no service has which the company may call.
	Providers(company, name string) (all []kernel.Address, known bool)
	// Call calls a method of a service by ask, at a provider of one node, or of any for "". The
	// error is a *post.Failure, or says what is wrong with the call.
	Call(ctx context.Context, company, node, name, method string, params json.RawMessage, ask Ask) (json.RawMessage,
		kernel.Address, error)
}

// Ask sends a request to a process. unsent says of an error that the process can not have got it.
type Ask func(ctx context.Context, to kernel.Address, body json.RawMessage) (reply json.RawMessage, unsent bool,
	err error)

// A Courier is the post of a running node. It is safe for concurrent use.
type Courier struct {
	cfg     Config
	office  *post.Office
	journal *journal
	secret  [32]byte // of tokens
	ctx     context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup
	work    chan struct{} // something may have a deadline
	due     chan struct{} // something is to be sent at once
	looks   chan struct{} // a process of another node is watched

	// Set by Start, before anything is sent.
	table  *kernel.Table
	signal func(pid kernel.PID, name string) error

	permitMu sync.RWMutex // guards permits, at which each message looks
	permits  map[Act]time.Time

	mu      sync.Mutex // guards what follows
	lines   map[string]*line
	found   map[string]found
	readers []*reader // of topics
	subs    uint64    // subscriptions since the start
	streams map[kernel.PID]*stream
	turn    uint64 // of those that share a name
	far     []*FarWatch
	refs    uint64 // monitors of processes of other nodes since the start
}

type found struct {
	at  time.Time
	all []place
}

// A place is a process of another node that has a name.
type place struct {
	kernel.Address
	company string
	role    kernel.Role
}

// Open reads the journal.
func Open(cfg Config) (*Courier, error) {
	if cfg.Node == "" || !filepath.IsAbs(cfg.Dir) || cfg.Dial == nil || cfg.Alive == nil || cfg.Nodes == nil ||
		cfg.Resolve == nil || cfg.Locate == nil {
		return nil, errors.New("courier: a node, an absolute directory and the ways to other nodes are required")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Wall == nil {
		cfg.Wall = time.Now
	}
	if cfg.Name == nil {
		cfg.Name = func(node string) string { return node }
	}
	j, kept, err := openJournal(cfg.Dir, cfg.Wall())
	if err != nil {
		return nil, err
	}
	if j.damaged {
		cfg.Logger.Error("the journal of messages is damaged: those that follow the damage are lost, the file is set aside",
			"file", filepath.Join(cfg.Dir, journalName+".damaged"))
	}
	c := &Courier{cfg: cfg, journal: j, work: make(chan struct{}, 1), due: make(chan struct{}, 1),
		looks: make(chan struct{}, 1),
		lines: map[string]*line{}, found: map[string]found{}, permits: map[Act]time.Time{},
		streams: map[kernel.PID]*stream{}}
	if _, err := rand.Read(c.secret[:]); err != nil {
		return nil, errors.Join(err, j.close())
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.office = post.New(post.Config{Node: cfg.Node, Epoch: j.epoch,
		Alive: func(pid kernel.PID) bool { return c.table.Receives(pid) },
		Many: func(m *post.Message) (out []kernel.PID) {
			for _, e := range c.members(m.To, m.Company) {
				out = append(out, e.PID)
			}
			return out
		},
		Admit: func(m *post.Message, pid kernel.PID) *post.Failure {
			if e, ok := c.table.Find(pid); ok && !mayReach(m.Company, e) {
				return post.Fail(post.NotAllowed, "process %s belongs to another company", pid)
			}
			return nil
		},
		Out: c.out, Settled: j.settle})
	c.office.Handled(j.handledIDs())
	for _, m := range kept {
		if _, err := c.office.Keep(c.cfg.Wall(), m); err != nil {
			cfg.Logger.Warn("a durable message is not sent again until the next start", "id", m.ID, "error", err)
		}
	}
	return c, nil
}

// Start begins to work, for the processes of a table. Signal sends TERM, KILL, STOP or CONT to
// one of them.
func (c *Courier) Start(table *kernel.Table, signal func(kernel.PID, string) error) {
	c.table, c.signal = table, signal
	c.wg.Go(c.keepTime)
	c.wg.Go(c.kernel)
	c.wg.Go(c.lookAround)
	c.kick()
}

// Close ends the streams. What is not handled and not durable is lost.
func (c *Courier) Close() error {
	c.stop()
	c.mu.Lock()
	for _, l := range c.lines {
		l.hangUp()
	}
	c.mu.Unlock()
	c.wg.Wait()
	return c.journal.close()
}

// Office returns the rules and what they keep.
func (c *Courier) Office() *post.Office { return c.office }

// Table returns the processes that send and receive.
func (c *Courier) Table() *kernel.Table { return c.table }

func (c *Courier) kick() { poke(c.work) }

func poke(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// keepTime gives the office the time while something has a deadline.
func (c *Courier) keepTime() {
	for {
		if c.office.Idle() {
			select {
			case <-c.ctx.Done():
				return
			case <-c.work:
			}
		}
		now := c.cfg.Wall()
		c.office.Tick(now)
		for _, a := range c.office.Due(now) {
			c.try(a)
		}
		select {
		case <-c.ctx.Done():
			return
		case <-c.due:
		case <-time.After(tick):
		}
	}
}

// try sends an attempt of a reliable message: where it was sent before as long as that may have
// it, else where its target is now.
func (c *Courier) try(a post.Attempt) {
	to := a.To
	if to.Node == "" || to.Node != c.cfg.Node && !c.cfg.Alive(to.Node) || to.Node == c.cfg.Node &&
		!c.table.Receives(to.PID) {
		ctx, cancel := context.WithTimeout(c.ctx, locateWait)
		defer cancel()
		var no *post.Failure
		if to, no = c.locate(ctx, a.Message); no != nil {
			c.office.Try(c.cfg.Wall(), a.Message.ID, to, no)
			return
		}
	}
	c.office.Try(c.cfg.Wall(), a.Message.ID, to, nil)
}

// Token returns the token of a process: who has it speaks as this process, on this node, while it
// lives.
func (c *Courier) Token(pid kernel.PID) string {
	return TokenPrefix + pid.String() + "_" + c.seal(pid)
}

func (c *Courier) seal(pid kernel.PID) string {
	h := hmac.New(sha256.New, c.secret[:])
	h.Write(strconv.AppendUint(nil, uint64(pid), 10))
	return hex.EncodeToString(h.Sum(nil)[:24])
}

// Holder returns the living process of a token.
func (c *Courier) Holder(token string) (kernel.Entry, bool) {
	number, seal, ok := strings.Cut(strings.TrimPrefix(token, TokenPrefix), "_")
	n, err := strconv.ParseUint(number, 10, 64)
	pid := kernel.PID(n)
	if !ok || err != nil || !strings.HasPrefix(token, TokenPrefix) || !hmac.Equal([]byte(seal), []byte(c.seal(pid))) {
		return kernel.Entry{}, false
	}
	e, ok := c.table.Find(pid)
	return e, ok && e.State.Live()
}

// OfRun returns the process of a run that this node executes.
func (c *Courier) OfRun(run string) (kernel.Entry, bool) {
	all := c.table.Select(func(e *kernel.Entry) bool { return e.Kind == kernel.KindRun && e.Run == run })
	if len(all) == 0 {
		return kernel.Entry{}, false
	}
	return all[len(all)-1], true
}

// Ended tells that a process reads no more.
func (c *Courier) Ended(pid kernel.PID) {
	c.cancel(func(r *reader) bool { return r.s.Process == pid })
	c.dropFar(func(w *FarWatch) bool { return w.By == pid })
	c.mu.Lock()
	delete(c.streams, pid)
	c.mu.Unlock()
	c.office.Exited(c.cfg.Wall(), pid)
	c.kick()
}

// Watched tells a process that one that it watches has ended.
func (c *Courier) Watched(s kernel.Signal) {
	kind := post.LinkExit
	if s.Kind == kernel.MonitorDown {
		kind = post.MonitorDown
	}
	c.told(s.To, post.Signal{Kind: kind, PID: s.From, Ref: s.Ref, Reason: string(s.Exit.Reason)})
}

// Warned tells a process that it has used much of what it may.
func (c *Courier) Warned(pid kernel.PID, f kernel.Finding) {
	c.told(pid, post.Signal{Kind: post.ResourceWarning, Resource: string(f.Resource), Current: f.Used, Limit: f.Limit})
}

// told delivers a signal of the kernel to a process, which may not read it.
func (c *Courier) told(pid kernel.PID, s post.Signal) {
	if !c.table.Receives(pid) {
		return
	}
	now := c.cfg.Wall()
	m := &post.Message{From: kernel.Address{Node: c.cfg.Node}, To: post.Process(kernel.Address{PID: pid}),
		Payload: post.Payload{Kind: post.OfSignal, Signal: &s}}
	c.office.Stamp(now, m)
	_ = c.office.Offer(now, m, pid) // a full inbox makes it a dead letter
}
