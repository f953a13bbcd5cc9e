package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/adapter/courier"
	"github.com/selvage-mesh/selvage/adapter/runlog"
	"github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/llm"
	"github.com/selvage-mesh/selvage/mind"
	"github.com/selvage-mesh/selvage/recall"
	"github.com/selvage-mesh/selvage/sandbox"
)

// A Node is the part of a node that the API uses.
type Node interface {
	// Submit submits a command and returns its final outcome. An error means that the outcome is
	// unknown, or that there is none.
	Submit(ctx context.Context, c ledger.Command) (ledger.Receipt, error)
	// View calls f with the state in the given mode and returns the raft index that the state has
	// at least.
	View(ctx context.Context, at ledger.Read, f func(*ledger.Tx) error) (applied uint64, err error)
	// Entries yields the entries above a height and waits for new ones.
	Entries(ctx context.Context, after uint64) iter.Seq2[ledger.Entry, error]
}

// ErrBind means that an address is not allowed in a mode.
var ErrBind = errors.New("refused to listen")

// CheckBind returns an error if the API may not listen on addr (host:port) in a mode
// (people.LocalTrusted or people.Authenticated). Without authentication only loopback is
// allowed.
func CheckBind(addr, mode string) error {
	switch mode {
	case people.Authenticated, people.LocalTrusted:
	default:
		return fmt.Errorf("%w: mode %q is neither %s nor %s", ErrBind, mode, people.LocalTrusted, people.Authenticated)
	}
	loopback, err := Loopback(addr)
	if err != nil || loopback || mode == people.Authenticated {
		return err
	}
	return fmt.Errorf("%w on %s: without authentication the API is for this machine only; use 127.0.0.1, [::1] or "+
		"localhost, or a mesh with --auth %s", ErrBind, addr, people.Authenticated)
}

// Loopback reports whether an address (host:port) is reachable from this machine only.
func Loopback(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("HTTP address %q: %w", addr, err)
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback(), nil
}

// A Standing is a node's connection to its mesh.
type Standing struct {
	Quorum bool            // a leader was heard within the election time-out
	Leader identity.NodeID // "" when there is none
	Age    time.Duration   // since this node last knew that its state was current
}

// A Quorum is which voters a node hears, without itself.
type Quorum struct {
	Heard, Silent []string // names
	Of            string   // what they are: "others" (default), "voters" for a node that is not one
	Enough        bool     // those heard, with the node, are a majority
	Leaderless    time.Duration
}

// text describes a node's quorum: "n1 hears 0 of 2 others (n2 and n3 are silent)".
func (q Quorum) text(node string) string {
	s := fmt.Sprintf("%s hears %d of %d %s", node, len(q.Heard), len(q.Heard)+len(q.Silent), cmp.Or(q.Of, "others"))
	switch n := len(q.Silent); {
	case n == 1:
		s += " (" + q.Silent[0] + " is silent)"
	case n > 1:
		s += " (" + strings.Join(q.Silent[:n-1], ", ") + " and " + q.Silent[n-1] + " are silent)"
	}
	return s
}

// A Table is what a server serves: routes, and handlers outside the document.
type Table struct {
	Routes   []Route
	Handlers []Handler
	Describe func(version string) ([]byte, error) // the document of Routes; default: it is written
}

// A Handler is served under a pattern of [http.ServeMux] and is not in the document.
type Handler struct {
	Pattern string
	Serve   func(s *Server, w http.ResponseWriter, r *http.Request)
}

// Config is what a server needs. Node and Serves are required. Routes whose function is nil
// answer 503.
type Config struct {
	Node    Node
	Serves  Table
	Name    string // of the node
	Version string // of the program
	NodeID  identity.NodeID
	Mesh    identity.MeshID // the instance in run tokens
	// Sign signs domain ‖ msg with this node's key. Nil: what the node says is not signed.
	Sign func(domain string, msg []byte) []byte

	// DataKeys returns the mesh's data keys, the current one first, then those of earlier epochs.
	// They sign run tokens. Nil on a node without them.
	DataKeys func() []identity.DataKey
	// DigestKey returns the key for digests of requests, which is the same on all nodes and never
	// changes; false: this node does not have it. Nil: digests have no key.
	DigestKey func() (key [32]byte, ok bool)
	// Tools signs and runs tools; nil: there is no sandbox.
	Tools *ToolBench
	// Unseal opens what was sealed with a data key of any epoch. By default it tries DataKeys.
	Unseal func(ctx context.Context, aad, sealed []byte) ([]byte, error)
	// Ready returns nil while the node can serve; see /readyz.
	Ready func(ctx context.Context) error
	// Standing is called for each answer, so it must be cheap.
	Standing func() Standing
	// Quorum is called for answers about a lost quorum.
	Quorum func() Quorum
	// RunLog reads a piece of a run's log from any node; the error wraps runlog.ErrNoLog when
	// there is none.
	RunLog func(ctx context.Context, run entity.Run, offset, limit int64) (runlog.Chunk, error)
	// NodeLog reads a piece of a log on a node, such as that of a workspace operation; errors are
	// those of RunLog.
	NodeLog func(ctx context.Context, on identity.NodeID, ref string, offset, limit int64) (runlog.Chunk, error)
	// Services calls the services of the mesh; nil: this node calls none.
	Services *service.Registry
	// ChargeTool counts a call of a tool on the process of a run of this node, and refuses it at
	// the limit. Optional.
	ChargeTool func(run string) error
	// Processes asks a node about its processes. Boot says where this node is in its life; nil:
	// it runs.
	Processes Processes
	// Post carries the messages of this node's processes; PostOf asks a node about its messages.
	Post   *courier.Courier
	PostOf func(ctx context.Context, on identity.NodeID, ask PostAsk) (PostAnswer, error)
	Boot   func() (kernel.KernelState, kernel.Phase)
	// Offers looks on a node what it offers to agents.
	Offers func(ctx context.Context, on identity.NodeID, look adapter.Look) ([]adapter.Offer, error)
	// Variable reads a variable of this node's environment: a vendor's key that an
	// administrator wants to be kept. nil: none has a value.
	Variable func(name string) string
	// ProbeAdapter checks on a node whether it has what an adapter needs.
	ProbeAdapter func(ctx context.Context, on identity.NodeID, kind string,
		config json.RawMessage) ([]adapter.Finding, error)
	// Models makes the model calls of runs.
	Models *llm.Gateway
	// Recall searches what companies remember; nil: this node has no index of it.
	Recall *recall.Recall
	// Mind says what this node's mind did; nil: it has none.
	Mind func() mind.Stat
	// Blobs stores the bytes of attachments and images.
	Blobs Blobs
	// GitHubArchives is where packages are fetched from; default: GitHub.
	GitHubArchives string
	// CreateToken creates a join token for the caller; its text is shown once.
	CreateToken func(ctx context.Context, by ledger.Actor, with ledger.Credential, uses int,
		ttl time.Duration) (string, error)
	// Joins are the nodes that ask to join.
	Joins Joins
	// Leave removes this node from the mesh for good.
	Leave func(ctx context.Context) error
	// Operator has the functions for operators.
	Operator Operator
	// Backup writes a sealed backup of the mesh, with files if requested.
	Backup func(ctx context.Context, w io.Writer, to []identity.Recipient, files bool) error
	// Unseat removes a node from the raft configuration before it is revoked.
	Unseat func(ctx context.Context, id identity.NodeID) error
	// Alive reports whether gossip considers a node alive.
	Alive func(identity.NodeID) bool
	// Program returns the program version of a live node, "" if unknown.
	Program func(identity.NodeID) string
	// Latency returns the round-trip time from this node to another, if it is connected.
	Latency func(identity.NodeID) (time.Duration, bool)
	// Raft returns the state of consensus on this node.
	Raft func() (consensus.Stats, []consensus.Server)
	// Verify checks the whole chain of this node again.
	Verify func(ctx context.Context) (ledger.Verified, error)
	// Head returns the newest entry's height and the applied raft index, for /readyz and streams.
	Head func() (height, applied uint64)

	// Collectors are added to /metrics. Stats functions return values by name
	// ("selvage_ledger_entries_total") at each scrape.
	Collectors []prometheus.Collector
	Stats      []func() []Stat

	// Board, if set, serves the pages at "/": everything that is not the API's.
	Board http.Handler
	// Hosts are further allowed names in the Host header, besides loopback's and, where everybody
	// needs a credential, addresses. Other names would allow DNS rebinding.
	Hosts []string
	// MetricsFrom are the networks that may read /metrics without a credential where people sign
	// in; runs on this machine may not.
	MetricsFrom []netip.Prefix
	// FromRun reports whether a run of any node holds the client's end of a local TCP connection;
	// an error: unknown. Nil: there are no runs.
	FromRun func(client, server netip.AddrPort) (bool, error)
	// ClaimCode is required of a user on another machine to become the first administrator; ""
	// requires none.
	ClaimCode string
	// Proxied says that all requests come through a proxy that encrypts, and that its
	// X-Forwarded-For and X-Forwarded-Proto are true.
	Proxied bool
	// Wall is this node's clock, by which credentials end and reports are made (commands get the
	// leader's time); default time.Now.
	Wall   func() time.Time
	Logger *slog.Logger // default: discards
}

// Joins has the node's functions for nodes that ask to join, owner keys and the mesh's keys.
type Joins interface {
	// JoinRequests lists the nodes that wait at any member, by code.
	JoinRequests(ctx context.Context) []JoinRequest
	// Approve admits the node that shows a code, for the caller.
	Approve(ctx context.Context, by ledger.Actor, with ledger.Credential, code string) (identity.NodeID, error)
	// Refuse rejects the node that shows a code; false: there is none.
	Refuse(ctx context.Context, code string) bool
	// AddOwner adds an owner key to the mesh, a new one when text is "", and returns it.
	AddOwner(ctx context.Context, by ledger.Actor, with ledger.Credential, text, note string) (string, error)
	// RotateKeys creates new data and gossip keys, for the caller.
	RotateKeys(ctx context.Context, by ledger.Actor, with ledger.Credential) error
}

// An Operator has a node's functions for operators.
type Operator struct {
	Autopilot func(context.Context) (consensus.AutopilotState, error)
	// OwnView is this node's own view, used while there is no leader.
	OwnView func() consensus.AutopilotState
	Doctor  func(context.Context) []Check
	// Scrub starts to read everything that this node stores; Scrubbed returns its progress.
	Scrub, Scrubbed func() ScrubState
	// Logs returns at most limit lines after seq, oldest first.
	Logs func(after uint64, limit int) []LogLine
	// Transfer makes the leader transfer leadership.
	Transfer func(context.Context) error
}

// A ToolBench signs and runs tools.
type ToolBench struct {
	Mesh string
	// Sign signs a statement with this node's key.
	Sign func(skill.ToolStatement) (node string, signature []byte)
	// Check returns what is wrong with a module, as a *sandbox.Error.
	Check func(ctx context.Context, module []byte) error
	// Run runs a module to its end; it stops as soon as the use is no longer allowed.
	Run func(ctx context.Context, use skill.ToolUse, module []byte, call sandbox.Call) (sandbox.Result, error)
}

// A JoinRequest is a node that asks to join.
type JoinRequest struct {
	Code         string // shown on both sides: a person compares
	Node         identity.NodeID
	Name         string
	Labels       []string
	Address      string // where it was seen
	Asked, Until int64  // ms since 1970
}

// A Check is one result of a node's doctor.
type Check struct {
	Name  string `json:"name"`
	Level string `json:"level"` // one of the levels above
	Found string `json:"found"` // one sentence: what was found
	Do    string `json:"do"`    // what to do; "" for nothing
}

// A LogLine is one line of a node's log, as it was written.
type LogLine struct {
	Seq  uint64 `json:"seq"` // counts from 1 in the life of the process
	Line string `json:"line"`
}

// A ScrubState is the progress and the findings of a scrub.
type ScrubState struct {
	EverySeconds int64          `json:"everySeconds" doc:"within what time all is read once; 0: only on demand"`
	Running      bool           `json:"running"`
	Demanded     bool           `json:"demanded" doc:"somebody asked for it, so it hurries"`
	Began        time.Time      `json:"began,omitzero" doc:"the scrub under way, or the last one"`
	Ended        *time.Time     `json:"ended,omitempty" doc:"the last one that read everything"`
	Rounds       uint64         `json:"rounds" doc:"that read everything, since the node was started"`
	Bytes        int64          `json:"bytes" doc:"read by this scrub"`
	TotalBytes   int64          `json:"totalBytes" doc:"that it has to read"`
	AllBytes     int64          `json:"-"` // read by all since the node was started
	Damaged      int            `json:"damaged" doc:"files that it found damaged"`
	Mended       int            `json:"mended" doc:"of those, put right with a peer's bytes"`
	AllDamaged   uint64         `json:"-"` // by all since the node was started
	Found        []ScrubFinding `json:"found" doc:"the first 100 of them"`
	Error        string         `json:"error,omitempty" doc:"why it broke off"`
}

// A ScrubFinding is a damaged file.
type ScrubFinding struct {
	What   string    `json:"what" doc:"store or blob"`
	File   string    `json:"file"`
	Mended bool      `json:"mended"`
	Error  string    `json:"error,omitempty"`
	At     time.Time `json:"at"`
}
