package ledger

import (
	"crypto/ed25519"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/identity"
)

// The kinds of the mesh's own commands. Persisted: do not rename.
const (
	KindGenesis      = "mesh.genesis"
	KindNodeAdmit    = "node.admit"
	KindNodeUpdate   = "node.update"
	KindNodeRevoke   = "node.revoke"
	KindTokenCreate  = "token.create"
	KindTokenRevoke  = "token.revoke"
	KindOwnerAdd     = "owner.add"
	KindSessionOpen  = "session.open"
	KindSessionEnd   = "session.end"
	KindSessionLease = "session.lease"
	KindTimeStep     = "time.step"
	KindFeatureRaise = "feature.raise"
	KindKeysRotate   = "keys.rotate"
)

// Limits of the roster. Past about 3,000 nodes a mesh is split into regions.
const (
	MaxNodes       = 4096
	maxLabels      = 32
	maxAddresses   = 8
	maxLabelBytes  = 128
	maxNodeName    = 64
	maxWrapped     = 256
	maxSealedBytes = 1024
	// LabelUntrusted marks a node that may speak only for its own runs' actors.
	LabelUntrusted = "untrusted"
)

// A Node is a member of the mesh, or was one: revoked nodes stay in the roster,
// so that what they signed can still be verified.
type Node struct {
	ID       identity.NodeID `cbor:"1,keyasint"`
	Key      []byte          `cbor:"2,keyasint"`           // Ed25519 public key
	SealCert []byte          `cbor:"3,keyasint,omitempty"` // identity.Certificate of its seal key
	Name     string          `cbor:"4,keyasint"`           // for people; need not be unique
	Labels   []string        `cbor:"5,keyasint,omitempty"` // "gpu", "zone=a"; sorted
	// "", "voter" or "observer": what its operator wants it to be
	Role       string          `cbor:"6,keyasint,omitempty"`
	Addresses  []string        `cbor:"7,keyasint,omitempty"`  // host:port hints
	AdmittedBy identity.NodeID `cbor:"8,keyasint,omitempty"`  // itself for the founder
	AdmittedAt uint64          `cbor:"9,keyasint"`            // height
	Token      string          `cbor:"10,keyasint,omitempty"` // the join token it came with
	RevokedAt  uint64          `cbor:"11,keyasint,omitempty"` // height; 0 while it is a member
	Admitted   int64           `cbor:"12,keyasint,omitempty"` // ms since 1970
	Revoked    int64           `cbor:"13,keyasint,omitempty"`
}

// Clone returns a copy that shares nothing with n.
func (n Node) Clone() Node {
	n.Key, n.SealCert = slices.Clone(n.Key), slices.Clone(n.SealCert)
	n.Labels, n.Addresses = slices.Clone(n.Labels), slices.Clone(n.Addresses)
	return n
}

// Member reports whether n was not revoked.
func (n Node) Member() bool { return n.RevokedAt == 0 }

// Has reports whether n carries the label.
func (n Node) Has(label string) bool { return slices.Contains(n.Labels, label) }

// A Genesis is the payload of the command that founds a mesh; the mesh's ID is
// the hash of its bytes ([identity.MeshIDOf]).
type Genesis struct {
	Name         string   `cbor:"1,keyasint"`
	Founder      NewNode  `cbor:"2,keyasint"` // the first member, who signs the batch
	CreatedAt    int64    `cbor:"3,keyasint"` // ms since 1970
	Constitution []byte   `cbor:"4,keyasint,omitempty"`
	Wrapped      NodeKeys `cbor:"5,keyasint"` // the keys of epoch 1, wrapped to the founder
	// Auth says how people prove who they are, "" as the first version did; see [AuthMode].
	Auth string `cbor:"6,keyasint,omitempty"`
	// Owner is the owner key that the founder holds, if it does: nodes that hold it
	// too join by themselves.
	Owner *OwnerAdd `cbor:"7,keyasint,omitempty"`
	// Level is the feature level that the mesh begins with; 0 is 1.
	Level uint64 `cbor:"8,keyasint,omitempty"`
}

// A NewNode is what a node brings along when it is admitted.
type NewNode struct {
	Key       []byte   `cbor:"1,keyasint"`
	SealCert  []byte   `cbor:"2,keyasint,omitempty"`
	Name      string   `cbor:"3,keyasint"`
	Labels    []string `cbor:"4,keyasint,omitempty"`
	Role      string   `cbor:"5,keyasint,omitempty"`
	Addresses []string `cbor:"6,keyasint,omitempty"`
}

// NodeKeys are the mesh's keys of one epoch wrapped to one node's seal key
// (identity.Wrap). Data may be empty: an untrusted node gets only the gossip key.
type NodeKeys struct {
	Node   identity.NodeID `cbor:"1,keyasint"`
	Epoch  uint64          `cbor:"2,keyasint"`
	Data   []byte          `cbor:"3,keyasint,omitempty"`
	Gossip []byte          `cbor:"4,keyasint,omitempty"`
}

// NodeAdmit is the payload of node.admit. The origin is a member; the actor is
// that member when Token names a join token, and otherwise a user.
type NodeAdmit struct {
	Node    NewNode  `cbor:"1,keyasint"`
	Token   string   `cbor:"2,keyasint,omitempty"`
	Wrapped NodeKeys `cbor:"3,keyasint,omitempty"` // of the current epoch; may be left out
}

// NodeUpdate is the payload of node.update: a node about itself, or a user. A
// nil field is left as it is; labels and role are for users.
type NodeUpdate struct {
	Node      identity.NodeID `cbor:"1,keyasint"`
	Name      *string         `cbor:"2,keyasint,omitempty"`
	Addresses *[]string       `cbor:"3,keyasint,omitempty"`
	Labels    *[]string       `cbor:"4,keyasint,omitempty"`
	Role      *string         `cbor:"5,keyasint,omitempty"`
}

// NodeRevoke is the payload of node.revoke: by a user, or a node that leaves.
type NodeRevoke struct {
	Node   identity.NodeID `cbor:"1,keyasint"`
	Reason string          `cbor:"2,keyasint,omitempty"`
}

// A TimeStep is the payload of time.step: an operator, or a leader whose clock
// most nodes confirm, sets the mesh's clock forward.
type TimeStep struct {
	To int64 `cbor:"1,keyasint"` // ms since 1970
}

// A FeatureRaise is the payload of feature.raise, by which an operator, or a leader
// that has heard that all nodes know the level, switches on what it stands for.
type FeatureRaise struct {
	Level uint64 `cbor:"1,keyasint"`
}

type rosterVersion struct {
	Version uint64 `cbor:"1,keyasint"` // height of the last change of who is a member
	Members uint64 `cbor:"2,keyasint"`
}

type features struct {
	Level uint64 `cbor:"1,keyasint"`
}

type genesisRow struct {
	Payload []byte          `cbor:"1,keyasint"`
	Mesh    identity.MeshID `cbor:"2,keyasint"`
}

var (
	nodes      = NewMeshTable[string, Node]("node")
	rosterRow  = NewMeshTable[string, rosterVersion]("roster")
	featureRow = NewMeshTable[string, features]("feature")
	genesisTab = NewMeshTable[string, genesisRow]("genesis")
)

// rosterPrefix is what the keys of the roster begin with.
var rosterPrefix = string(nodes.Key(""))

// theRow is the ID of the only row of a table.
const theRow = "-"

// MeshHandlers returns the handlers of the ledger's own commands. [Open] adds
// them to the configured ones.
func MeshHandlers() Mux {
	m := Mux{}
	Handle(m, KindGenesis, applyGenesis)
	Handle(m, KindNodeAdmit, applyNodeAdmit)
	Handle(m, KindNodeUpdate, applyNodeUpdate)
	Handle(m, KindNodeRevoke, applyNodeRevoke)
	Handle(m, KindTokenCreate, applyTokenCreate)
	Handle(m, KindTokenRevoke, applyTokenRevoke)
	Handle(m, KindOwnerAdd, applyOwnerAdd)
	Handle(m, KindSessionOpen, applySessionOpen)
	Handle(m, KindSessionEnd, applySessionEnd)
	Handle(m, KindSessionLease, applySessionLease)
	Handle(m, KindTimeStep, applyTimeStep)
	Handle(m, KindFeatureRaise, applyFeatureRaise)
	Handle(m, KindKeysRotate, applyKeysRotate)
	Handle(m, KindEpoch, applyEpoch)
	return m
}

// Founding returns the genesis of the mesh and its bytes.
func Founding(tx *Tx) (g Genesis, payload []byte, ok bool) {
	row, ok := genesisTab.Get(tx, theRow)
	if !ok {
		return Genesis{}, nil, false
	}
	if err := Unmarshal(row.Payload, &g); err != nil {
		panic("ledger: stored genesis does not decode: " + err.Error())
	}
	return g, row.Payload, true
}

// Roster returns all nodes that are or were members, by ID.
func Roster(tx *Tx) []Node {
	var out []Node
	for _, n := range nodes.All(tx) {
		out = append(out, n)
	}
	return out
}

// FindNode returns a node of the roster.
func FindNode(tx *Tx, id identity.NodeID) (Node, bool) { return nodes.Get(tx, string(id)) }

// RosterVersion returns the height at which the set of members last changed.
func RosterVersion(tx *Tx) uint64 {
	row, _ := rosterRow.Get(tx, theRow)
	return row.Version
}

// Features returns the feature level of the mesh; 1 before it was ever raised.
func Features(tx *Tx) uint64 {
	if row, ok := featureRow.Get(tx, theRow); ok {
		return row.Level
	}
	return 1
}

// An authRow says how people prove who they are. It is there when that was ever
// said: by the founder, or later.
type authRow struct {
	Mode string `cbor:"1,keyasint"`
}

var authTab = NewMeshTable[string, authRow]("auth-mode")

// AuthMode returns how people prove who they are, "" when nobody ever said. What
// the words mean is for the rooms above.
func AuthMode(tx *Tx) string {
	row, _ := authTab.Get(tx, theRow)
	return row.Mode
}

// SetAuthMode changes what [AuthMode] returns; it is for handlers.
func SetAuthMode(tx *Tx, mode string) { authTab.Put(tx, theRow, authRow{mode}) }

func applyGenesis(c *Context, p Genesis) (any, error) {
	if _, _, ok := Founding(c.Tx); ok {
		return nil, Refuse(Conflict, nil, "the mesh is founded already")
	}
	if p.Auth != "" && !plainText(p.Auth, maxNodeName) {
		return nil, Refuse(Invalid, nil, "malformed mode of authentication")
	}
	if identity.MeshIDOf(c.Cmd.Payload) != c.Mesh {
		return nil, Refuse(Invalid, nil, "the mesh ID is not that of this genesis")
	}
	if !plainText(p.Name, maxNodeName) {
		return nil, Refuse(Invalid, nil, "a mesh has a name of 1 to %d printable characters", maxNodeName)
	}
	n, err := p.Founder.row(c)
	if err != nil {
		return nil, err
	}
	if n.ID != c.Origin {
		return nil, Refuse(Invalid, nil, "genesis is signed by another node than the founder")
	}
	n.AdmittedBy = n.ID
	nodes.Put(c.Tx, string(n.ID), n)
	genesisTab.Put(c.Tx, theRow, genesisRow{c.Cmd.Payload, c.Mesh})
	if p.Auth != "" {
		SetAuthMode(c.Tx, p.Auth)
	}
	if p.Level > 1 {
		featureRow.Put(c.Tx, theRow, features{Level: p.Level})
	}
	keysRow.Put(c.Tx, theRow, Keys{Epoch: 1, RotatedAt: c.Height})
	if err := putWrapped(c, n.ID, 1, p.Wrapped); err != nil {
		return nil, err
	}
	if p.Owner != nil {
		if _, err := putOwner(c, *p.Owner); err != nil {
			return nil, err
		}
	}
	moveRoster(c, +1)
	c.Record(Change{Action: "mesh.founded", EntityType: "mesh", EntityID: string(c.Mesh)})
	return n, nil
}

// row checks what a new node says of itself and makes its roster row.
func (p NewNode) row(c *Context) (Node, error) {
	n, err := p.Check()
	n.AdmittedAt, n.Admitted, n.AdmittedBy = c.Height, c.Now.UnixMilli(), c.Origin
	return n, err
}

// Check returns the roster row of a new node, without who admitted it and when,
// or the refusal that admitting it would meet.
func (p NewNode) Check() (Node, error) {
	if len(p.Key) != ed25519.PublicKeySize {
		return Node{}, Refuse(Invalid, nil, "a node key has %d bytes", ed25519.PublicKeySize)
	}
	n := Node{ID: identity.NodeIDOf(p.Key), Key: p.Key, SealCert: p.SealCert, Name: p.Name, Labels: slices.Clone(p.Labels),
		Role:      p.Role,
		Addresses: p.Addresses}
	if len(p.SealCert) > 0 {
		cert, err := identity.DecodeCertificate(p.SealCert)
		if err != nil || cert.Verify(identity.ForSeal) != nil || identity.NodeIDOf(cert.Node) != n.ID {
			return Node{}, Refuse(Invalid, nil, "the seal key is not certified by the node key")
		}
	}
	return n, n.check()
}

func (n *Node) check() error {
	slices.Sort(n.Labels)
	n.Labels = slices.Compact(n.Labels)
	switch {
	case !plainText(n.Name, maxNodeName):
		return Refuse(Invalid, nil, "a node has a name of 1 to %d printable characters", maxNodeName)
	case len(n.Labels) > maxLabels || slices.ContainsFunc(n.Labels, notLabel):
		return Refuse(Invalid, nil, "a node has at most %d labels of 1 to %d printable characters", maxLabels, maxLabelBytes)
	case len(n.Addresses) > maxAddresses || slices.ContainsFunc(n.Addresses, notLabel):
		return Refuse(Invalid, nil, "a node has at most %d addresses", maxAddresses)
	case n.Role != "" && n.Role != "voter" && n.Role != "observer":
		return Refuse(Invalid, nil, "unknown role %q", n.Role)
	}
	return nil
}

func notLabel(s string) bool { return !plainText(s, maxLabelBytes) }

func plainText(s string, most int) bool {
	if s == "" || len(s) > most || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

func applyNodeAdmit(c *Context, p NodeAdmit) (any, error) {
	n, err := p.Node.row(c)
	if err != nil {
		return nil, err
	}
	old, known := FindNode(c.Tx, n.ID)
	if known && !old.Member() {
		return nil, Refuse(Conflict, nil, "node %s was revoked; it needs a new identity", n.ID.Short())
	}
	if !known { // one that comes again does not use its token up once more
		if err := mayAdmit(c, p.Token); err != nil {
			return nil, err
		}
		n.Token = p.Token
		if row, _ := rosterRow.Get(c.Tx, theRow); row.Members >= MaxNodes {
			return nil, Refuse(Unprocessable, nil, "a mesh has at most %d nodes", MaxNodes)
		}
		moveRoster(c, +1)
	} else {
		if err := byTokenOrOperator(c, p.Token); err != nil {
			return nil, err
		}
		n.AdmittedAt, n.Admitted, n.AdmittedBy, n.Token = old.AdmittedAt, old.Admitted, old.AdmittedBy, old.Token
		n.Labels, n.Role = old.Labels, old.Role
	}
	nodes.Put(c.Tx, string(n.ID), n)
	if p.Wrapped.Node != "" {
		if err := putWrapped(c, n.ID, CurrentKeys(c.Tx).Epoch, p.Wrapped); err != nil {
			return nil, err
		}
	}
	c.Record(Change{Action: "node.admitted", EntityType: "node", EntityID: string(n.ID)})
	return n, nil
}

func applyNodeUpdate(c *Context, p NodeUpdate) (any, error) {
	n, ok := FindNode(c.Tx, p.Node)
	if !ok || !n.Member() {
		return nil, Refuse(NotFound, nil, "no node %s", p.Node.Short())
	}
	self := speaksForItself(c, p.Node)
	if err := operator(c); err != nil && (!self || p.Labels != nil || p.Role != nil) {
		return nil, err
	}
	if p.Name != nil {
		n.Name = *p.Name
	}
	if p.Addresses != nil {
		n.Addresses = *p.Addresses
	}
	if p.Labels != nil {
		n.Labels = *p.Labels
	}
	if p.Role != nil {
		n.Role = *p.Role
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	nodes.Put(c.Tx, string(n.ID), n)
	c.Record(Change{Action: "node.updated", EntityType: "node", EntityID: string(n.ID)})
	return n, nil
}

func applyNodeRevoke(c *Context, p NodeRevoke) (any, error) {
	n, ok := FindNode(c.Tx, p.Node)
	if !ok {
		return nil, Refuse(NotFound, nil, "no node %s", p.Node.Short())
	}
	if err := operator(c); err != nil && !speaksForItself(c, p.Node) {
		return nil, err
	}
	if !n.Member() {
		return n, nil
	}
	if row, _ := rosterRow.Get(c.Tx, theRow); row.Members <= 1 {
		return nil, Refuse(Conflict, nil, "the last node of a mesh can not be revoked")
	}
	n = strike(c, n)
	c.Record(Change{Action: "node.revoked", EntityType: "node", EntityID: string(n.ID)})
	if !n.Has(LabelUntrusted) && !speaksForItself(c, p.Node) {
		endTokens(c)
	}
	return n, nil
}

// endTokens ends all join tokens: a node that is thrown out could read what lets
// others in, and could come back with it.
func endTokens(c *Context) {
	now := c.Now.UnixMilli()
	for id, t := range tokens.All(c.Tx) {
		if t.Usable(now) {
			t.Revoked = now
			tokens.Put(c.Tx, id, t)
			c.Record(Change{Action: "token.revoked", EntityType: "token", EntityID: id})
		}
	}
}

// strike takes a member off the roster: its session ends, it gets no keys any
// more, and the present ones are to be replaced.
func strike(c *Context, n Node) Node {
	n.RevokedAt, n.Revoked = c.Height, c.Now.UnixMilli()
	nodes.Put(c.Tx, string(n.ID), n)
	wrapped.Delete(c.Tx, string(n.ID))
	if s, ok := SessionOf(c.Tx, n.ID); ok {
		EndSession(c, s.ID)
	}
	keys := CurrentKeys(c.Tx)
	keys.Wanted = true
	keysRow.Put(c.Tx, theRow, keys)
	moveRoster(c, -1)
	return n
}

func applyTimeStep(c *Context, p TimeStep) (any, error) {
	if err := operator(c); err != nil && !speaksForItself(c, c.Origin) {
		return nil, err
	}
	if p.To <= c.Now.UnixMilli() || p.To > maxMillis {
		return nil, Refuse(Invalid, nil, "the mesh's clock is only set forward")
	}
	c.Record(Change{Action: "time.stepped", EntityType: "mesh", EntityID: string(c.Mesh)})
	return nil, nil // the applier moves the clock: it is part of the position
}

func applyFeatureRaise(c *Context, p FeatureRaise) (any, error) {
	if err := operator(c); err != nil && (trusted(c) != nil || !speaksForItself(c, c.Origin)) {
		return nil, err
	}
	if now := Features(c.Tx); p.Level <= now {
		return nil, Refuse(Conflict, nil, "the feature level is %d already", now)
	}
	featureRow.Put(c.Tx, theRow, features(p))
	c.Record(Change{Action: "feature.raised", EntityType: "mesh", EntityID: string(c.Mesh)})
	return nil, nil
}

// moveRoster notes that the set of members changed.
func moveRoster(c *Context, by int) {
	row, _ := rosterRow.Get(c.Tx, theRow)
	row.Version = c.Height
	row.Members += uint64(by) // two's complement: -1 takes one away
	rosterRow.Put(c.Tx, theRow, row)
}

// operator refuses who may not change the mesh: only users may, and not
// through a node that is labelled untrusted.
func operator(c *Context) error {
	if err := trusted(c); err != nil {
		return err
	}
	if c.Cmd.Actor.Type != "user" {
		return Refuse(Forbidden, nil, "only the board may do this")
	}
	return nil
}

// trusted refuses what comes through a node that is labelled untrusted.
func trusted(c *Context) error {
	if n, ok := FindNode(c.Tx, c.Origin); ok && n.Has(LabelUntrusted) {
		return Refuse(Forbidden, nil, "an untrusted node may not change the mesh")
	}
	return nil
}

// speaksForItself reports whether node id asks through itself.
func speaksForItself(c *Context, id identity.NodeID) bool {
	return c.Origin == id && c.Cmd.Actor.Type == "node" && c.Cmd.Actor.ID == string(id)
}
