// Package mesh is the routes about the nodes: members, health, backups, settings, what
// operators look at.
package mesh

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/secret"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// MeshRoutes are about the mesh itself: its members, consensus, join tokens and the
// chain. Only the board may call them.
func MeshRoutes() []api.Route {
	after := api.Param{Name: "after", Type: "integer", Doc: "only entries above this height"}
	limit := api.Param{Name: "limit", Type: "integer", Doc: "at most so many"}
	return []api.Route{
		{Method: "GET", Path: "/api/v1/mesh", Tag: "mesh", Summary: "Tell which mesh this is and how it stands",
			Who: api.Admin, Out: meshInfo{}, Handle: readMesh},
		{Method: "GET", Path: "/api/v1/mesh/members", Tag: "mesh", Summary: "List the members", Who: api.Admin,
			Out: []member{}, Handle: listMembers},
		{Method: "GET", Path: "/api/v1/mesh/raft", Tag: "mesh", Summary: "Tell how consensus stands on this node",
			Who: api.Admin, Out: raftInfo{}, Handle: readRaft},
		api.Read(api.Route{Path: "/api/v1/mesh/tokens", Tag: "mesh", Summary: "List the join tokens", Who: api.Admin},
			listTokens),
		{Method: "POST", Path: "/api/v1/mesh/tokens", Limited: true, Tag: "mesh",
			Summary: "Create a join token; its text is shown once", Who: api.Admin, Status: 201,
			In: createToken{}, Out: createdToken{}, Handle: createJoinToken},
		{Method: "DELETE", Path: "/api/v1/mesh/tokens/{id}", Limited: true, Tag: "mesh", Summary: "Revoke a join token",
			Who: api.Admin, Out: joinToken{}, Handle: revokeToken},
		{Method: "POST", Path: "/api/v1/mesh/nodes/{id}/revoke", Once: true, Tag: "mesh",
			Summary: "Throw a node out of the mesh", Who: api.Admin, In: revokeNode{}, Out: revokedNode{}, Handle: revokeMember},
		{Method: "POST", Path: "/api/v1/mesh/leave", Once: true, Tag: "mesh",
			Summary: "Take this node out of the mesh for good", Who: api.Admin, Status: 202, Out: liveness{}, Handle: leaveMesh},
		{Method: "GET", Path: "/api/v1/mesh/ledger", Tag: "mesh", Summary: "Tell the head of the chain", Who: api.Admin,
			Out: ledgerHead{}, Handle: readLedger},
		{Method: "GET", Path: "/api/v1/mesh/ledger/entries", Tag: "mesh",
			Summary: "List entries of the chain, the oldest first", Who: api.Admin, Out: []entry{},
			Query: []api.Param{after, limit}, Handle: listEntries},
		{Method: "GET", Path: "/api/v1/mesh/ledger/entries/{height}", Tag: "mesh", Summary: "Read one entry", Who: api.Admin,
			Out: entry{}, Handle: readEntry},
		{Method: "GET", Path: "/api/v1/mesh/ledger/records", Tag: "mesh",
			Summary: "List the chain as it is stored, batch by batch, for who checks it without trust in this node",
			Who:     api.Admin, NoTool: true,
			Out: chainRecords{}, Query: []api.Param{{Name: "after", Type: "integer", Doc: "only batches after this raft index"},
				limit}, Handle: listRecords},
		{Method: "POST", Path: "/api/v1/mesh/ledger/verify", Tag: "mesh",
			Summary: "Check every hash and signature of this node's chain from genesis", Who: api.Admin, Out: verified{},
			Handle: verifyChain},
	}
}

var errNotHere = api.Unavailable("This node does not do that now")

type meshInfo struct {
	ID       identity.MeshID `json:"id"`
	Name     string          `json:"name"`
	Node     identity.NodeID `json:"node"`
	Leader   identity.NodeID `json:"leader"`
	Quorum   bool            `json:"quorum"`
	Members  int             `json:"members"`
	Voters   int             `json:"voters"`
	Warning  string          `json:"warning,omitempty"`
	Height   uint64          `json:"height"`
	Applied  uint64          `json:"applied"`
	Features uint64          `json:"features"`
}

func readMesh(rc *api.Request) (api.Response, error) {
	s := rc.Server
	out := meshInfo{ID: s.Cfg.Mesh, Node: s.Cfg.NodeID}
	if s.Cfg.Standing != nil {
		st := s.Cfg.Standing()
		out.Leader, out.Quorum = st.Leader, st.Quorum
	}
	if s.Cfg.Raft != nil {
		stats, _ := s.Cfg.Raft()
		if out.Voters = stats.Voters; out.Voters < 3 {
			out.Warning = "no failover until a third node"
		}
	}
	err := rc.View(func(tx *ledger.Tx) error {
		if g, _, ok := ledger.Founding(tx); ok {
			out.Name = g.Name
		}
		for _, n := range ledger.Roster(tx) {
			if n.Member() {
				out.Members++
			}
		}
		out.Features = ledger.Features(tx)
		return nil
	})
	if s.Cfg.Head != nil {
		out.Height, out.Applied = s.Cfg.Head()
	}
	return api.OK(out), err
}

type member struct {
	ID     identity.NodeID `json:"id"`
	Name   string          `json:"name"`
	Status string          `json:"status"` // "alive", "dead" or "revoked"
	Leader bool            `json:"leader"`
	Voter  bool            `json:"voter"`
	Here   bool            `json:"here"` // this is the answering node
	// Version is the program version of the node, null while unknown.
	Version    core.NullText   `json:"version"`
	Role       string          `json:"role"` // set by its operator: "", "voter" or "observer"
	Labels     []string        `json:"labels"`
	Addresses  []string        `json:"addresses"`
	AdmittedBy identity.NodeID `json:"admittedBy"`
	AdmittedAt core.Time       `json:"admittedAt"`
	Height     uint64          `json:"admittedHeight"`
	RevokedAt  core.Time       `json:"revokedAt"`
	// Endpoint is where the node serves the API over TLS, null if it has announced none.
	Endpoint *people.Endpoint `json:"endpoint"`
	// Scheduling is "open", "cordoned" or "draining".
	Scheduling       string        `json:"scheduling"`
	SchedulingReason core.NullText `json:"schedulingReason"`
	Runs             int           `json:"runs"` // runs that it has not given back
	// Latency is the round-trip time from the answering node, null if they are not connected.
	Latency *float64 `json:"latencyMs"`
}

func memberOf(s *api.Server, n ledger.Node) member {
	m := member{ID: n.ID, Name: n.Name, Status: "alive", Here: n.ID == s.Cfg.NodeID, Role: n.Role,
		Labels: orEmpty(n.Labels), Addresses: orEmpty(n.Addresses), AdmittedBy: n.AdmittedBy,
		AdmittedAt: core.Time(n.Admitted), Height: n.AdmittedAt, RevokedAt: core.Time(n.Revoked)}
	if s.Cfg.Program != nil && n.Member() {
		m.Version = core.NullText(s.Cfg.Program(n.ID))
	}
	if s.Cfg.Latency != nil && n.Member() && !m.Here {
		if d, ok := s.Cfg.Latency(n.ID); ok {
			m.Latency = new(float64(d.Microseconds()) / 1000)
		}
	}
	switch {
	case !n.Member():
		m.Status = "revoked"
	case s.Cfg.Alive != nil && !m.Here && !s.Cfg.Alive(n.ID):
		m.Status = "dead"
	}
	return m
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func listMembers(rc *api.Request) (api.Response, error) {
	s := rc.Server
	out := []member{}
	if err := rc.View(func(tx *ledger.Tx) error {
		for _, n := range ledger.Roster(tx) {
			m := memberOf(s, n).onDuty(tx)
			if e, ok := people.EndpointOf(tx, string(n.ID)); ok && n.Member() {
				m.Endpoint = &e
			}
			out = append(out, m)
		}
		return nil
	}); err != nil || s.Cfg.Raft == nil {
		return api.OK(out), err
	}
	_, servers := s.Cfg.Raft()
	for _, v := range servers {
		for i := range out {
			if out[i].ID == v.Node {
				out[i].Voter, out[i].Leader = out[i].Voter || v.Voter, out[i].Leader || v.Leader
			}
		}
	}
	return api.OK(out), nil
}

type raftInfo struct {
	State         string          `json:"state"`
	Serving       bool            `json:"serving"`
	Term          uint64          `json:"term"`
	Leader        identity.NodeID `json:"leader"`
	Voter         bool            `json:"voter"`
	LastIndex     uint64          `json:"lastIndex"`
	Commit        uint64          `json:"commitIndex"`
	Applied       uint64          `json:"appliedIndex"`
	FirstIndex    uint64          `json:"firstIndex"`
	Snapshot      uint64          `json:"snapshotIndex"`
	LeaderChanges uint64          `json:"leaderChanges"`
	Servers       []raftServer    `json:"servers"`
}

type raftServer struct {
	ID          string          `json:"id"`
	Node        identity.NodeID `json:"node"`
	Voter       bool            `json:"voter"`
	Leader      bool            `json:"leader"`
	LastContact core.Time       `json:"lastContactAt"` // known to the leader only
}

func readRaft(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Raft == nil {
		return api.Response{}, errNotHere
	}
	st, servers := s.Cfg.Raft()
	out := raftInfo{State: st.State, Serving: st.Serving, Term: st.Term, Leader: st.Leader, Voter: st.Voter,
		LastIndex: st.LastIndex,
		Commit:    st.Commit, Applied: st.Applied, FirstIndex: st.LogFirst, Snapshot: st.Snapshot,
		LeaderChanges: st.LeaderChanges, Servers: []raftServer{}}
	for _, v := range servers {
		out.Servers = append(out.Servers, raftServer{v.ID, v.Node, v.Voter, v.Leader, core.TimeOf(v.LastContact)})
	}
	return api.OK(out), nil
}

type joinToken struct {
	ID        string    `json:"id"`
	Note      string    `json:"note"`
	Uses      uint64    `json:"uses"`
	Used      uint64    `json:"used"`
	CreatedAt core.Time `json:"createdAt"`
	ExpiresAt core.Time `json:"expiresAt"`
	RevokedAt core.Time `json:"revokedAt"`
	Usable    bool      `json:"usable"`
	Owner     bool      `json:"owner"` // an owner key: unlimited uses and no expiry
}

func tokenOf(t ledger.Token, now time.Time) joinToken {
	return joinToken{ID: t.ID, Note: t.Note, Uses: t.Uses, Used: t.Used, CreatedAt: core.Time(t.Created),
		ExpiresAt: core.Time(t.Expires),
		RevokedAt: core.Time(t.Revoked), Usable: t.Usable(now.UnixMilli()), Owner: t.Owner}
}

func listTokens(tx *ledger.Tx, rc *api.Request) ([]joinToken, error) {
	out := []joinToken{}
	for _, t := range ledger.Tokens(tx) {
		out = append(out, tokenOf(t, rc.Now()))
	}
	return out, nil
}

type createToken struct {
	Uses int   `json:"uses,omitempty" default:"1" minimum:"1" maximum:"1000" doc:"how many nodes may join with it"`
	TTL  int64 `json:"ttlSeconds,omitempty" default:"3600" minimum:"1" maximum:"2592000" doc:"how long it lasts"`
}

type createdToken struct {
	Token string `json:"token"`
}

func createJoinToken(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[createToken](rc)
	if err != nil {
		return api.Response{}, err
	}
	if s.Cfg.CreateToken == nil {
		return api.Response{}, errNotHere
	}
	token, err := s.Cfg.CreateToken(rc.Context(), rc.Actor, rc.Credential, in.Uses, time.Duration(in.TTL)*time.Second)
	return api.OK(createdToken{token}), err
}

func revokeToken(rc *api.Request) (api.Response, error) {
	t, err := api.Do[ledger.Token](rc, ledger.KindTokenRevoke, "", ledger.TokenRevoke{ID: rc.Path("id")})
	return api.OK(tokenOf(t, rc.Now())), err
}

type revokeNode struct {
	Reason string `json:"reason,omitempty" maxLength:"200"`
}

// A revokedNode is a node that was removed, and the secrets that it could read. They
// must be replaced at their source, because nobody knows what the node copied.
type revokedNode struct {
	member
	Exposed      []exposedSecret `json:"exposed"`      // at most maxExposed
	ExposedTotal int             `json:"exposedTotal"` // before the limit
}

// An exposedSecret is a secret that a revoked node could decrypt.
type exposedSecret struct {
	// "secret", "config" (values in the configuration of something), "join_token" or "owner_key"; the last two were
	// revoked too
	Type      string                      `json:"type"`
	CompanyID core.Null[ledger.CompanyID] `json:"companyId"`
	Company   core.NullText               `json:"company"`
	ID        string                      `json:"id"`
	Name      string                      `json:"name"`
}

// maxExposed bounds the secrets in one answer.
const maxExposed = 2000

// revokeMember takes a NodeID, or a short form that names one member. The order matters:
// it first removes the node's vote, so that the mesh can go on without it.
func revokeMember(rc *api.Request) (api.Response, error) {
	s := rc.Server
	in, err := api.Body[revokeNode](rc)
	if err != nil {
		return api.Response{}, err
	}
	id, err := findNode(rc, rc.Path("id"))
	if err != nil {
		return api.Response{}, err
	}
	out := revokedNode{Exposed: []exposedSecret{}}
	if err := rc.View(func(tx *ledger.Tx) error {
		if n, ok := ledger.FindNode(tx, id); ok && !n.Has(ledger.LabelUntrusted) {
			out.expose(tx, rc.Now())
		}
		return nil
	}); err != nil {
		return api.Response{}, err
	}
	if s.Cfg.Unseat != nil {
		if err := s.Cfg.Unseat(rc.Context(), id); err != nil {
			return api.Response{}, err
		}
	}
	if _, err := rc.Submit(ledger.KindNodeRevoke, "", ledger.NodeRevoke{Node: id, Reason: in.Reason}); err != nil {
		return api.Response{}, err
	}
	err = rc.View(func(tx *ledger.Tx) error {
		n, ok := ledger.FindNode(tx, id)
		if !ok {
			return api.NotFound("Node not found")
		}
		out.member = memberOf(s, n).onDuty(tx)
		return nil
	})
	return api.OK(out), err
}

// expose records what a node with the data key can decrypt.
func (r *revokedNode) expose(tx *ledger.Tx, now time.Time) {
	add := func(e exposedSecret) {
		if r.ExposedTotal++; len(r.Exposed) < maxExposed {
			r.Exposed = append(r.Exposed, e)
		}
	}
	for _, c := range append(entity.Companies(tx), entity.Company{}) { // the last is the mesh itself
		of, name := core.Null[ledger.CompanyID](c.ID), core.NullText(c.Name)
		last := ""
		for v := range secret.SecretVersions(tx, c.ID) {
			if v.Secret == last {
				continue
			}
			last = v.Secret
			shown := v.Secret
			if sec, ok := secret.SecretByID(tx, v.Secret); ok {
				shown = sec.Name
			}
			add(exposedSecret{"secret", of, name, v.Secret, shown})
		}
		for _, o := range company.SealedConfigs(tx, c.ID) {
			add(exposedSecret{"config", of, name, o.ID, o.Type})
		}
	}
	for _, t := range ledger.Tokens(tx) {
		switch {
		case !t.Usable(now.UnixMilli()):
		case t.Owner:
			add(exposedSecret{Type: "owner_key", ID: t.ID, Name: t.Note})
		default:
			add(exposedSecret{Type: "join_token", ID: t.ID, Name: t.Note})
		}
	}
}

func findNode(rc *api.Request, ref string) (id identity.NodeID, err error) {
	err = rc.View(func(tx *ledger.Tx) error {
		for _, n := range ledger.Roster(tx) {
			if string(n.ID) == ref {
				id = n.ID
				return nil
			}
			if n.ID.Short() == ref {
				if id != "" {
					return api.Invalid("More than one node is called %s: give the whole ID", ref)
				}
				id = n.ID
			}
		}
		if id == "" {
			return api.NotFound("Node not found")
		}
		return nil
	})
	return id, err
}

func leaveMesh(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Leave == nil {
		return api.Response{}, errNotHere
	}
	return api.OK(liveness{"leaving"}), s.Cfg.Leave(rc.Context())
}

type ledgerHead struct {
	Height  uint64 `json:"height"`
	Hash    string `json:"hash"`
	Applied uint64 `json:"applied"`
	// Digest is a hash of the state: nodes that have applied the same entries have the same
	// digest.
	Digest string `json:"digest"`
}

func readLedger(rc *api.Request) (api.Response, error) {
	s := rc.Server
	var out ledgerHead
	if s.Cfg.Head == nil {
		return api.Response{}, errNotHere
	}
	err := rc.View(func(tx *ledger.Tx) error {
		at := tx.Position()
		out.Height, out.Applied, out.Digest = at.Height, at.Applied, hex.EncodeToString(at.Digest[:])
		if e, ok := ledger.EntryAt(tx, out.Height); ok {
			out.Hash = hex.EncodeToString(e.Hash[:])
		}
		return nil
	})
	return api.OK(out), err
}

type entry struct {
	Height      uint64           `json:"height"`
	Time        core.Time        `json:"time"`
	Hash        string           `json:"hash"`
	Prev        string           `json:"previousHash"`
	Index       uint64           `json:"index"`
	Position    uint32           `json:"position"`
	PayloadHash string           `json:"payloadHash"`
	Kind        string           `json:"kind"`
	Company     ledger.CompanyID `json:"companyId"`
	Actor       actor            `json:"actor"`
	Credential  actor            `json:"credential"`
	Run         string           `json:"runId"`
	Outcome     ledger.Outcome   `json:"outcome"`
	Reason      string           `json:"reason,omitempty"`
	Changes     []entryChange    `json:"changes"`
}

type actor struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

type entryChange struct {
	Action     string `json:"action"`
	EntityType string `json:"entityType"`
	EntityID   string `json:"entityId"`
}

func entryOf(e ledger.Entry) entry {
	out := entry{Height: e.Height, Time: core.TimeOf(e.Time), Hash: hex.EncodeToString(e.Hash[:]),
		Prev:  hex.EncodeToString(e.Prev[:]),
		Index: e.Index, Position: e.Position, PayloadHash: hex.EncodeToString(e.PayloadHash[:]), Kind: e.Kind,
		Company: e.Company,
		Actor:   actor(e.Actor), Credential: actor{e.Credential.Kind, e.Credential.ID}, Run: e.Run, Outcome: e.Outcome,
		Reason: e.Reason, Changes: []entryChange{}}
	for _, ch := range e.Changes {
		out.Changes = append(out.Changes, entryChange{ch.Action, ch.EntityType, ch.EntityID})
	}
	return out
}

// maxEntries bounds one page of the chain.
const maxEntries = 1000

func listEntries(rc *api.Request) (api.Response, error) {
	after, err := rc.QueryHeight("after")
	if err != nil {
		return api.Response{}, err
	}
	limit, err := rc.QueryInt("limit", 100, 1, maxEntries)
	if err != nil {
		return api.Response{}, err
	}
	out := []entry{}
	err = rc.View(func(tx *ledger.Tx) error {
		for h := after + 1; len(out) < limit; h++ {
			e, ok := ledger.EntryAt(tx, h)
			if !ok {
				return nil
			}
			out = append(out, entryOf(e))
		}
		return nil
	})
	return api.OK(out), err
}

func readEntry(rc *api.Request) (api.Response, error) {
	height, err := parseHeight(rc.Path("height"))
	if err != nil {
		return api.Response{}, err
	}
	var out entry
	err = rc.View(func(tx *ledger.Tx) error {
		e, ok := ledger.EntryAt(tx, height)
		if !ok {
			return api.NotFound("Entry not found")
		}
		out = entryOf(e)
		return nil
	})
	return api.OK(out), err
}

type verified struct {
	OK       bool   `json:"ok"`
	Height   uint64 `json:"height"` // the last valid entry
	Entries  uint64 `json:"entries"`
	Batches  uint64 `json:"batches"`
	Commands uint64 `json:"commands"`
	Erased   uint64 `json:"erased"`
	Bad      uint64 `json:"firstBadHeight,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// verifyChain verifies the whole chain while the caller waits, without a time limit.
func verifyChain(rc *api.Request) (api.Response, error) {
	s := rc.Server
	if s.Cfg.Verify == nil {
		return api.Response{}, errNotHere
	}
	return api.Response{Stream: func(w http.ResponseWriter, r *http.Request) error { return verifyStream(s, w, r) }}, nil
}

func verifyStream(s *api.Server, w http.ResponseWriter, r *http.Request) error {
	leave, err := s.Stream()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := s.Within(r.Context())
	defer cancel()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	v, err := s.Cfg.Verify(ctx)
	out := verified{OK: err == nil, Height: v.Position.Height, Entries: v.Entries, Batches: v.Batches,
		Commands: v.Commands, Erased: v.Erased}
	if bad, ok := ledger.IsBroken(err); ok {
		out.Bad, out.Reason = bad.Height, bad.Reason
	} else if err != nil {
		return err
	}
	_ = control.SetWriteDeadline(time.Now().Add(api.WriteTimeout))
	return api.WriteJSON(w, http.StatusOK, out)
}

func parseHeight(s string) (uint64, error) {
	h, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, api.Invalid("Invalid height: expected a whole number")
	}
	return h, nil
}

// onDuty fills in the fields about a member's runs.
func (m member) onDuty(tx *ledger.Tx) member {
	m.Scheduling = "open"
	if d, ok := company.DutyOf(tx, string(m.ID)); ok {
		m.Scheduling, m.SchedulingReason = "cordoned", core.NullText(d.Reason)
		if d.Drain {
			m.Scheduling = "draining"
		}
	}
	if s, ok := ledger.SessionOf(tx, m.ID); ok {
		m.Runs = len(entity.RunsOfSession(tx, s.ID))
	}
	return m
}
