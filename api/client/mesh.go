package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// These methods are for administrators of the mesh. Mesh, Raft, Doctor, Logs, Stacks,
// VerifyLedger, Leave and Snapshot are about the node that answers, which the client
// stays with. For a particular node make a client of that node alone.

// A Mesh is the state of the mesh as one node sees it.
type Mesh struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Node     string `json:"node"`   // the answering node
	Leader   string `json:"leader"` // "" if unknown
	Quorum   bool   `json:"quorum"`
	Members  int    `json:"members"`
	Voters   int    `json:"voters"`
	Warning  string `json:"warning"` // such as "no failover until a third node"
	Height   uint64 `json:"height"`  // of the chain
	Applied  uint64 `json:"applied"` // raft index
	Features uint64 `json:"features"`
}

// A Member is a present or former node of the mesh.
type Member struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Status     string    `json:"status"` // "alive", "dead" or "revoked"
	Leader     bool      `json:"leader"`
	Voter      bool      `json:"voter"`
	Here       bool      `json:"here"`    // this is the answering node
	Version    string    `json:"version"` // of its program, "" while unknown
	Role       string    `json:"role"`    // set by its operator: "", "voter" or "observer"
	Labels     []string  `json:"labels"`
	Addresses  []string  `json:"addresses"`
	AdmittedBy string    `json:"admittedBy"`
	AdmittedAt time.Time `json:"admittedAt"`
	RevokedAt  time.Time `json:"revokedAt"` // zero for a present member
	// Scheduling is "open", "cordoned" or "draining".
	Scheduling       string `json:"scheduling"`
	SchedulingReason string `json:"schedulingReason"`
	Runs             int    `json:"runs"` // runs that it has not given back
	// Latency is the round-trip time from the answering node, nil if they are not connected.
	Latency *float64 `json:"latencyMs"`
}

// Raft is the state of consensus on one node.
type Raft struct {
	State     string       `json:"state"`
	Serving   bool         `json:"serving"`
	Term      uint64       `json:"term"`
	Leader    string       `json:"leader"`
	Voter     bool         `json:"voter"`
	LastIndex uint64       `json:"lastIndex"`
	Commit    uint64       `json:"commitIndex"`
	Applied   uint64       `json:"appliedIndex"`
	Snapshot  uint64       `json:"snapshotIndex"`
	Servers   []RaftServer `json:"servers"`
}

// A RaftServer is one server of the consensus group.
type RaftServer struct {
	ID          string    `json:"id"`
	Node        string    `json:"node"`
	Voter       bool      `json:"voter"`
	Leader      bool      `json:"leader"`
	LastContact time.Time `json:"lastContactAt"` // known to the leader only
}

// An Autopilot is the leader's view of the voters.
type Autopilot struct {
	Term      uint64            `json:"term"`
	Leader    string            `json:"leader"`
	At        time.Time         `json:"at"`
	Voters    int               `json:"voters"`
	Most      int               `json:"mostVoters"`       // number of voters once there are enough nodes
	Tolerance int               `json:"failureTolerance"` // voters that may still fail
	Healthy   bool              `json:"healthy"`
	Next      string            `json:"next"` // the next change, "" for none
	Servers   []Seat            `json:"servers"`
	Names     map[string]string `json:"names"` // node names by ID
	Warning   string            `json:"warning"`
}

// A Seat is one server in the autopilot's view.
type Seat struct {
	Node    string `json:"node"`
	Voter   bool   `json:"voter"`
	Leader  bool   `json:"leader"`
	MayVote bool   `json:"mayVote"`
	Zone    string `json:"zone"`
	Member  bool   `json:"member"`
	Alive   bool   `json:"alive"`
	Halted  bool   `json:"cannotFollow"`  // until it is upgraded
	Stable  int64  `json:"stableSeconds"` // time since it is alive and caught up
	Gone    int64  `json:"goneSeconds"`
}

// A Check is one check of a node's doctor.
type Check struct {
	Name  string `json:"name"`
	Level string `json:"level"` // "ok", "note", "warn" or "bad"
	Found string `json:"found"`
	Do    string `json:"do"` // advice, "" for none
}

// A LogLine is one line of a node's log, as it was written.
type LogLine struct {
	Seq  uint64 `json:"seq"` // counts from 1 in each process
	Line string `json:"line"`
}

// A JoinToken is a join token or owner key without its secret.
type JoinToken struct {
	ID        string    `json:"id"`
	Note      string    `json:"note"`
	Uses      uint64    `json:"uses"`
	Used      uint64    `json:"used"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
	RevokedAt time.Time `json:"revokedAt"`
	Usable    bool      `json:"usable"`
	Owner     bool      `json:"owner"` // an owner key: unlimited uses and no expiry
}

// A JoinRequest is a node that waits to be admitted.
type JoinRequest struct {
	Code      string    `json:"code"` // to compare with the code that the node shows
	NodeID    string    `json:"nodeId"`
	Name      string    `json:"name"`
	Labels    []string  `json:"labels"`
	Address   string    `json:"address"`
	AskedAt   time.Time `json:"askedAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// A Revoked node was removed from the mesh; Exposed are the secrets that it could read.
type Revoked struct {
	Member
	Exposed []Exposed `json:"exposed"`
	Total   int       `json:"exposedTotal"`
}

// An Exposed secret must be replaced at its source.
type Exposed struct {
	Type      string `json:"type"` // "secret", "config", "join_token" or "owner_key"; the last two were revoked too
	CompanyID string `json:"companyId"`
	Company   string `json:"company"`
	ID        string `json:"id"`
	Name      string `json:"name"`
}

// MeshKeys is the epoch of the mesh's keys.
type MeshKeys struct {
	Epoch     uint64    `json:"epoch"`
	RotatedAt time.Time `json:"rotatedAt"`
	Height    uint64    `json:"height"`
	Wanted    bool      `json:"rotationWanted"` // they will be replaced
}

// A LedgerHead is the end of a node's chain.
type LedgerHead struct {
	Height  uint64 `json:"height"`
	Hash    string `json:"hash"`
	Applied uint64 `json:"applied"`
	Digest  string `json:"digest"` // of the state
}

// Verified is the result of verifying a whole chain.
type Verified struct {
	OK      bool   `json:"ok"`
	Height  uint64 `json:"height"` // the last valid entry
	Entries uint64 `json:"entries"`
	Bad     uint64 `json:"firstBadHeight"`
	Reason  string `json:"reason"`
}

const meshPath = "/api/v1/mesh"

func nodePath(node, verb string) string { return meshPath + "/nodes/" + url.PathEscape(node) + verb }

func get[T any](ctx context.Context, c *Client, path string) (out T, err error) {
	return out, c.Get(ctx, path, &out)
}

func post[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	return out, c.Post(ctx, path, in, &out)
}

// Mesh returns the identity and state of the mesh.
func (c *Client) Mesh(ctx context.Context) (Mesh, error) { return get[Mesh](ctx, c, meshPath) }

// Members lists the present members of the mesh and the revoked ones.
func (c *Client) Members(ctx context.Context) ([]Member, error) {
	return get[[]Member](ctx, c, meshPath+"/members")
}

// Raft returns the state of consensus on the node.
func (c *Client) Raft(ctx context.Context) (Raft, error) { return get[Raft](ctx, c, meshPath+"/raft") }

// Autopilot returns the leader's view of the voters, and how many may fail.
func (c *Client) Autopilot(ctx context.Context) (Autopilot, error) {
	return get[Autopilot](ctx, c, meshPath+"/autopilot")
}

// Doctor returns what is wrong with the node and the mesh, and what to do.
func (c *Client) Doctor(ctx context.Context) ([]Check, error) {
	return get[[]Check](ctx, c, meshPath+"/doctor")
}

// Logs returns at most limit lines of the node's log after a line number, oldest first.
// After 0 it returns the newest lines.
func (c *Client) Logs(ctx context.Context, after uint64, limit int) ([]LogLine, error) {
	q := url.Values{"after": {strconv.FormatUint(after, 10)}, "limit": {strconv.Itoa(limit)}}
	return get[[]LogLine](ctx, c, meshPath+"/logs?"+q.Encode())
}

// Stacks returns what every goroutine of the node is doing, as text.
func (c *Client) Stacks(ctx context.Context) (string, error) {
	b, err := c.Raw(ctx, http.MethodGet, meshPath+"/stacks", nil)
	return string(b), err
}

// TransferLeadership makes the leader hand leadership to another voter.
func (c *Client) TransferLeadership(ctx context.Context) (Raft, error) {
	return post[Raft](ctx, c, meshPath+"/raft/transfer", struct{}{})
}

// Unseat removes a node from the consensus group. A member that is alive asks to be
// added again.
func (c *Client) Unseat(ctx context.Context, node string) (Raft, error) {
	return post[Raft](ctx, c, meshPath+"/raft/remove/"+url.PathEscape(node), struct{}{})
}

// Label sets labels of a node; nil removes one, "" sets one without a value.
func (c *Client) Label(ctx context.Context, node string, labels map[string]*string) (out Member, err error) {
	return out, c.Patch(ctx, nodePath(node, ""), map[string]any{"labels": labels}, &out)
}

// SetRole sets whether a node may vote: "voter", "observer" (never), or "auto" (the
// autopilot decides).
func (c *Client) SetRole(ctx context.Context, node, role string) (out Member, err error) {
	return out, c.Patch(ctx, nodePath(node, ""), map[string]any{"role": role}, &out)
}

// Cordon stops new runs from being placed on a node.
func (c *Client) Cordon(ctx context.Context, node, reason string) (Member, error) {
	return post[Member](ctx, c, nodePath(node, "/cordon"), map[string]any{"reason": reason})
}

// Drain cordons a node and makes it transfer leadership. Its runs continue: poll Members
// until Runs is 0.
func (c *Client) Drain(ctx context.Context, node, reason string) (Member, error) {
	return post[Member](ctx, c, nodePath(node, "/cordon"), map[string]any{"drain": true, "reason": reason})
}

// Uncordon ends Cordon or Drain.
func (c *Client) Uncordon(ctx context.Context, node string) (Member, error) {
	return post[Member](ctx, c, nodePath(node, "/uncordon"), struct{}{})
}

// Revoke removes a node from the mesh and returns what it could read.
func (c *Client) Revoke(ctx context.Context, node, reason string) (Revoked, error) {
	return post[Revoked](ctx, c, nodePath(node, "/revoke"), map[string]any{"reason": reason})
}

// Leave removes the answering node from the mesh permanently. It is not retried.
func (c *Client) Leave(ctx context.Context) error {
	_, _, err := c.once(ctx, c.node(), http.MethodPost, meshPath+"/leave", []byte("{}"), newKey())
	return err
}

// Tokens lists the join tokens and owner keys.
func (c *Client) Tokens(ctx context.Context) ([]JoinToken, error) {
	return get[[]JoinToken](ctx, c, meshPath+"/tokens")
}

// CreateToken creates a join token, a secret that admits up to uses nodes within ttl.
func (c *Client) CreateToken(ctx context.Context, uses int, ttl time.Duration) (string, error) {
	out, err := post[struct{ Token string }](ctx, c, meshPath+"/tokens",
		map[string]any{"uses": uses, "ttlSeconds": int64(ttl / time.Second)})
	return out.Token, err
}

// RevokeToken revokes a join token or an owner key.
func (c *Client) RevokeToken(ctx context.Context, id string) (out JoinToken, err error) {
	return out, c.Delete(ctx, meshPath+"/tokens/"+url.PathEscape(id), &out)
}

// AddOwnerKey adds an owner key, with which nodes join without approval: the given one,
// or a new one for "". It returns the key's text, a secret.
func (c *Client) AddOwnerKey(ctx context.Context, key, note string) (string, error) {
	out, err := post[struct{ OwnerKey string }](ctx, c, meshPath+"/owner-keys", map[string]any{"ownerKey": key,
		"note": note})
	return out.OwnerKey, err
}

// JoinRequests lists the nodes that wait for admission at any member.
func (c *Client) JoinRequests(ctx context.Context) ([]JoinRequest, error) {
	return get[[]JoinRequest](ctx, c, meshPath+"/requests")
}

// Approve admits the node that shows a code, after a person has compared the codes.
func (c *Client) Approve(ctx context.Context, code string) (Member, error) {
	return post[Member](ctx, c, meshPath+"/requests/"+url.PathEscape(code)+"/approve", struct{}{})
}

// Reject refuses the node that shows a code.
func (c *Client) Reject(ctx context.Context, code string) error {
	return c.Post(ctx, meshPath+"/requests/"+url.PathEscape(code)+"/reject", struct{}{}, nil)
}

// MeshKeys returns the epoch of the mesh's keys.
func (c *Client) MeshKeys(ctx context.Context) (MeshKeys, error) {
	return get[MeshKeys](ctx, c, meshPath+"/keys")
}

// RotateKeys creates new keys for the mesh. It is refused by an [*Error] of status 409
// until every member has the last ones.
func (c *Client) RotateKeys(ctx context.Context) (MeshKeys, error) {
	return post[MeshKeys](ctx, c, meshPath+"/keys/rotate", struct{}{})
}

// Ledger returns the end of the node's chain.
func (c *Client) Ledger(ctx context.Context) (LedgerHead, error) {
	return get[LedgerHead](ctx, c, meshPath+"/ledger")
}

// VerifyLedger verifies every hash and signature of the node's chain from genesis. Only
// ctx bounds its time; it is not retried.
func (c *Client) VerifyLedger(ctx context.Context) (out Verified, err error) {
	resp, err := c.Open(ctx, http.MethodPost, meshPath+"/ledger/verify", struct{}{})
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return out, fmt.Errorf("answer of POST %s/ledger/verify: %w", meshPath, err)
	}
	return out, nil
}

// A Snapshot says who can open a backup. Whoever can open it can read every secret of
// the mesh.
type Snapshot struct {
	Recipients []string       // public keys (selvage-recipient-…) that can open it
	Passphrase *PassphraseKey // nil for none
	Files      bool           // include attachments and images
}

// A PassphraseKey is the public key derived from a passphrase by argon2id. The
// passphrase is not sent.
type PassphraseKey struct {
	Recipient string
	Salt      []byte
	Time      uint32
	MemoryKiB uint32
	Threads   uint8
}

// Snapshot writes a sealed backup of the mesh, from the answering node's state, to w.
// Only ctx bounds its time; it is not retried. After an error, w holds a part that can
// not be opened.
func (c *Client) Snapshot(ctx context.Context, w io.Writer, s Snapshot) (n int64, err error) {
	in := map[string]any{"files": s.Files}
	if len(s.Recipients) > 0 {
		in["recipients"] = s.Recipients
	}
	if p := s.Passphrase; p != nil {
		in["passphrase"] = map[string]any{"recipient": p.Recipient, "salt": base64.StdEncoding.EncodeToString(p.Salt),
			"time": p.Time, "memoryKiB": p.MemoryKiB, "threads": p.Threads}
	}
	resp, err := c.Open(ctx, http.MethodPost, meshPath+"/snapshot", in)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if n, err = io.CopyBuffer(w, resp.Body, make([]byte, snapshotPiece)); err != nil {
		return n, errors.Join(errors.New("the backup broke off"), err)
	}
	return n, nil
}

// snapshotPiece is the size of the buffer for a backup, in bytes.
const snapshotPiece = 256 << 10

// Open requests a stream, without retries and without a timeout. The caller must close
// the body of the answer. A refusal is an [*Error].
func (c *Client) Open(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("body of %s %s: %w", method, path, err)
		}
	}
	req, err := c.request(ctx, c.node(), method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.stream.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
		return nil, refusal(resp, b)
	}
	return resp, nil
}
