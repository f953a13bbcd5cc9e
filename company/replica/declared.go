// Package replica holds the processes that are declared for the mesh, and where each of
// their replicas runs. They belong to no company: an operator declares them.
//
// A declaration names a specification and how many replicas of it there are to be. The leader
// places each replica on a node, under that node's session, like a run; the node starts it and
// reports how it stands. When the session ends the leader places it elsewhere. What a
// specification says is checked by who declares it and by the node that starts it; the rules
// here know its size alone.
package replica

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

const (
	// MaxDeclared bounds the declarations of a mesh, MaxReplicas the replicas of each: they are
	// in one row, which the leader reads at every look.
	MaxDeclared = 256
	MaxReplicas = 64
	// maxSpec bounds a specification, in bytes, maxLabels the labels of a declaration, maxWhy
	// the reason why a replica stands as it does, in bytes.
	maxSpec   = 128 << 10
	maxLabels = 16
	maxLabel  = 128
	maxWhy    = 500
)

// The states of a replica.
const (
	Waiting  = "waiting" // for a node
	Placed   = "placed"  // its node has not reported yet
	Starting = "starting"
	Running  = "running"
	Failed   = "failed" // its restarts are spent, or it can not be started; it is not started again
	Ended    = "ended"  // it has done its work
)

var states = []string{Waiting, Starting, Running, Failed, Ended}

// Declared is a process that is to run on the mesh.
type Declared struct {
	ID         string          `cbor:"1,keyasint"`
	Name       string          `cbor:"2,keyasint"`
	Spec       json.RawMessage `cbor:"3,keyasint"` // see kernel.Spec
	Generation uint64          `cbor:"4,keyasint"` // incremented when Spec changes
	Labels     []string        `cbor:"5,keyasint,omitempty"`
	Node       string          `cbor:"6,keyasint,omitempty"` // the only node that may run it; "": any
	Module     string          `cbor:"7,keyasint,omitempty"` // the SHA-256 of the module that Spec names
	By         string          `cbor:"8,keyasint"`
	CreatedAt  core.Time       `cbor:"9,keyasint"`
	UpdatedAt  core.Time       `cbor:"10,keyasint"`
	Replicas   []Replica       `cbor:"11,keyasint"`
}

// A Replica is one of the processes of a declaration.
type Replica struct {
	Node     string        `cbor:"1,keyasint,omitempty" json:"node_id"`
	Session  uint64        `cbor:"2,keyasint,omitempty" json:"-"` // of the node; 0: it waits
	State    string        `cbor:"3,keyasint" json:"state"`
	PID      uint64        `cbor:"4,keyasint,omitempty" json:"pid"`
	Restarts int64         `cbor:"5,keyasint,omitempty" json:"restarts"` // on this node
	Exit     int64         `cbor:"6,keyasint,omitempty" json:"exit_code"`
	Error    core.NullText `cbor:"7,keyasint,omitempty" json:"error"`
	At       core.Time     `cbor:"8,keyasint" json:"at"`                  // of the last change
	Moved    int64         `cbor:"9,keyasint,omitempty" json:"failovers"` // how often it went to another node
}

// Over reports whether the replica is not to run any more.
func (r Replica) Over() bool { return r.State == Failed || r.State == Ended }

// Clone returns a copy that shares no memory with d.
func (d Declared) Clone() Declared {
	d.Spec, d.Labels, d.Replicas = slices.Clone(d.Spec), slices.Clone(d.Labels), slices.Clone(d.Replicas)
	return d
}

var declared = ledger.NewMeshTable[string, Declared]("process")

// All returns the declarations by name.
func All(tx *ledger.Tx) (out []Declared) {
	for _, d := range declared.All(tx) {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Declared) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Named returns the declaration of a name.
func Named(tx *ledger.Tx, name string) (Declared, bool) {
	for _, d := range declared.All(tx) {
		if d.Name == name {
			return d, true
		}
	}
	return Declared{}, false
}

// SessionOpen reports whether the session under which a replica was placed goes on.
func SessionOpen(tx *ledger.Tx, r Replica) bool {
	s, ok := ledger.FindSession(tx, r.Session)
	return ok && s.EndedAt == 0 && string(s.Node) == r.Node
}

// Declare is the payload of process.declare. A declaration of the same name is changed: a new
// specification replaces all replicas, another number of replicas adds or ends some.
type Declare struct {
	ID       string          `cbor:"1,keyasint"` // of a new declaration
	Name     string          `cbor:"2,keyasint"`
	Spec     json.RawMessage `cbor:"3,keyasint"`
	Replicas int64           `cbor:"4,keyasint"`
	Labels   []string        `cbor:"5,keyasint,omitempty"`
	Node     string          `cbor:"6,keyasint,omitempty"`
	// Module is the SHA-256 of the module that Spec names, Size its bytes, Nodes those that have
	// stored it.
	Module string   `cbor:"7,keyasint,omitempty"`
	Size   int64    `cbor:"8,keyasint,omitempty"`
	Nodes  []string `cbor:"9,keyasint,omitempty"`
}

// Remove is the payload of process.remove.
type Remove struct {
	ID string `cbor:"1,keyasint"`
}

// Place is the payload of process.place, by which the leader gives a replica to a node's
// session.
type Place struct {
	ID      string `cbor:"1,keyasint"`
	Replica int64  `cbor:"2,keyasint"`
	Node    string `cbor:"3,keyasint"`
	Session uint64 `cbor:"4,keyasint"`
}

// Report is the payload of process.report, by which a node says how a replica stands. The
// state Waiting gives the replica back.
type Report struct {
	ID         string `cbor:"1,keyasint"`
	Replica    int64  `cbor:"2,keyasint"`
	Generation uint64 `cbor:"3,keyasint"`
	Session    uint64 `cbor:"4,keyasint"`
	State      string `cbor:"5,keyasint"`
	PID        uint64 `cbor:"6,keyasint,omitempty"`
	Restarts   int64  `cbor:"7,keyasint,omitempty"`
	Exit       int64  `cbor:"8,keyasint,omitempty"`
	Error      string `cbor:"9,keyasint,omitempty"`
}

// The kinds of commands.
const (
	KindDeclare = "process.declare"
	KindRemove  = "process.remove"
	KindPlace   = "process.place"
	KindReport  = "process.report"

	// What a person has a node do about its processes. The gate weighs the command before the
	// node acts. A node also weighs the action process.spawn before each start by itself.
	KindSpawn   = "process.spawn"
	KindElevate = "process.elevate"
	KindKill    = "process.kill"
)

// Rules are those of this room.
var Rules = company.Rules{
	Kinds: []company.Kind{
		{Name: KindSpawn, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
			Weight: company.Weights.Spawning, Target: company.NodeFirst, Do: ledger.Typed(order)},
		{Name: KindElevate, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
			Weight: company.Weights.Empowering, Target: company.NodeFirst, Do: ledger.Typed(order)},
		{Name: KindKill, From: company.FromBoard, Traits: company.AdminsOnly | company.NoWork,
			Weight: company.Weights.Steering, Target: company.NodeFirst, Do: ledger.Typed(order)},
		{Name: KindDeclare, From: company.FromBoard, Traits: company.AdminsOnly, Weight: company.Weights.MeshSettings,
			Target: onNode, Do: ledger.Typed(declare)},
		{Name: KindRemove, From: company.FromBoard, Traits: company.AdminsOnly, Weight: company.Weights.MeshSettings,
			Do: ledger.Typed(remove)},
		{Name: KindPlace, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(placeReplica)},
		{Name: KindReport, From: company.FromNode, Weight: company.Weights.ByNodes, Do: ledger.Typed(report)},
	},
	NodeLost:  loseReplicas,
	Processes: starter{},
}

// onNode is the node that a process is declared for, "" for any.
func onNode(cmd *ledger.Command) string {
	var p Declare
	if ledger.Unmarshal(cmd.Payload, &p) != nil || p.Node == "" {
		return ""
	}
	return core.NodePath(p.Node)
}

var nameSyntax = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func (p Declare) check(tx *ledger.Tx) error {
	bad := func(format string, args ...any) error { return ledger.Refuse(ledger.Invalid, nil, format, args...) }
	switch {
	case !core.IsID(p.ID):
		return bad("id: a UUID")
	case !nameSyntax.MatchString(p.Name):
		return bad("name: 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit")
	case len(p.Spec) == 0 || len(p.Spec) > maxSpec || !json.Valid(p.Spec):
		return bad("spec: JSON of at most %d bytes", maxSpec)
	case p.Replicas < 1 || p.Replicas > MaxReplicas:
		return bad("replicas: 1 to %d, not %d; remove the declaration to run none", MaxReplicas, p.Replicas)
	case len(p.Labels) > maxLabels || slices.ContainsFunc(p.Labels,
		func(l string) bool { return l == "" || len(l) > maxLabel }):
		return bad("labels: at most %d, each of 1 to %d bytes", maxLabels, maxLabel)
	}
	if p.Node != "" {
		if n, ok := ledger.FindNode(tx, identity.NodeID(p.Node)); !ok || !n.Member() {
			return ledger.Refuse(ledger.NotFound, nil, "Node not found")
		}
	}
	if p.Module != "" {
		return company.CheckBlob(p.Module, p.Size, p.Nodes)
	}
	return nil
}

// A starter declares processes for other rooms.
type starter struct{}

func (starter) declaration(p company.NewProcess) Declare {
	return Declare{ID: core.DerivedID("process", p.Name), Name: p.Name, Spec: p.Spec, Replicas: p.Replicas,
		Labels: p.Labels, Node: p.Node, Module: p.Module, Size: p.Size, Nodes: p.Nodes}
}

// CheckProcess refuses what declare would; a node that is no member is found when it starts.
func (s starter) CheckProcess(p company.NewProcess) error {
	d := s.declaration(p)
	d.Node = ""
	return d.check(nil)
}

// StartProcess declares a process, or starts all its replicas anew.
func (s starter) StartProcess(c *ledger.Context, p company.NewProcess, replace bool) error {
	d, known := Named(c.Tx, p.Name)
	if known && !replace && slices.ContainsFunc(d.Replicas, func(r Replica) bool { return !r.Over() }) {
		return ledger.Refuse(ledger.Conflict, nil, "process %s still runs", p.Name)
	}
	_, err := declareAnew(c, s.declaration(p), true)
	return err
}

// EndProcess removes a process, if it is declared.
func (starter) EndProcess(c *ledger.Context, name string) {
	if d, ok := Named(c.Tx, name); ok {
		_, _ = remove(c, Remove{ID: d.ID})
	}
}

// ProcessOf returns how a process stands.
func (starter) ProcessOf(tx *ledger.Tx, name string) (s company.ProcessState, ok bool) {
	d, ok := Named(tx, name)
	if !ok || len(d.Replicas) == 0 {
		return s, ok
	}
	r := d.Replicas[0]
	s = company.ProcessState{Node: r.Node, Exit: r.Exit, Error: string(r.Error), Moved: r.Moved,
		Ended: r.State == Ended, Running: true}
	for _, r := range d.Replicas {
		s.Running = s.Running && r.State == Running
		if r.State == Failed {
			s.Failed, s.Error = true, string(r.Error)
		}
	}
	return s, true
}

// ForgetProcess removes a process, if it is declared.
func (starter) ForgetProcess(tx *ledger.Tx, name string) {
	if d, ok := Named(tx, name); ok {
		drop(tx, d)
	}
}

func declare(c *ledger.Context, p Declare) (any, error) { return declareAnew(c, p, false) }

// declareAnew declares a process. With anew all replicas of one that is declared begin again.
func declareAnew(c *ledger.Context, p Declare, anew bool) (any, error) {
	if err := p.check(c.Tx); err != nil {
		return nil, err
	}
	now := core.TimeOf(c.Now)
	d, known := Named(c.Tx, p.Name)
	if !known {
		n := 0
		for range declared.All(c.Tx) {
			n++
		}
		if n >= MaxDeclared {
			return nil, ledger.Refuse(ledger.Conflict, nil,
				"the mesh has %d declared processes, as many as it may have: remove one", MaxDeclared)
		}
		if _, taken := declared.Get(c.Tx, p.ID); taken {
			return nil, ledger.Refuse(ledger.Conflict, nil, "a declaration of this ID exists")
		}
		d = Declared{ID: p.ID, Name: p.Name, CreatedAt: now}
	}
	if d.Module != p.Module {
		if d.Module != "" {
			company.UnrefBlob(c.Tx, "", d.Module)
		}
		if p.Module != "" {
			company.RefBlob(c.Tx, "", p.Module, p.Size, p.Nodes)
		}
	}
	if anew || string(d.Spec) != string(p.Spec) {
		d.Generation++
		for i := range d.Replicas {
			r := &d.Replicas[i]
			r.State, r.PID, r.Restarts, r.Exit, r.Error, r.At = Waiting, 0, 0, 0, "", now
			if r.Session != 0 {
				r.State = Placed
			}
		}
	}
	d.Spec, d.Labels, d.Node, d.Module, d.By, d.UpdatedAt = p.Spec, p.Labels, p.Node, p.Module, c.Cmd.Actor.ID, now
	for int64(len(d.Replicas)) < p.Replicas {
		d.Replicas = append(d.Replicas, Replica{State: Waiting, At: now})
	}
	d.Replicas = d.Replicas[:p.Replicas]
	declared.Put(c.Tx, d.ID, d)
	c.Record(ledger.Change{Action: "process.declared", EntityType: "process", EntityID: d.ID,
		Details: core.Object{}.Str("name", d.Name).Int("replicas", p.Replicas).Uint("generation", d.Generation).Close()})
	return d, nil
}

func remove(c *ledger.Context, p Remove) (any, error) {
	d, ok := declared.Get(c.Tx, p.ID)
	if !ok {
		return nil, ledger.Refuse(ledger.NotFound, nil, "No process is declared by this name")
	}
	drop(c.Tx, d)
	c.Record(ledger.Change{Action: "process.removed", EntityType: "process", EntityID: d.ID,
		Details: core.Object{}.Str("name", d.Name).Close()})
	return nil, nil
}

func drop(tx *ledger.Tx, d Declared) {
	if d.Module != "" {
		company.UnrefBlob(tx, "", d.Module)
	}
	declared.Delete(tx, d.ID)
}

// find returns a replica's declaration.
func find(tx *ledger.Tx, id string, replica int64) (Declared, *Replica, error) {
	d, ok := declared.Get(tx, id)
	if !ok || replica < 0 || replica >= int64(len(d.Replicas)) {
		return d, nil, ledger.Refuse(ledger.NotFound, nil, "No such replica is declared")
	}
	d = d.Clone()
	return d, &d.Replicas[replica], nil
}

func placeReplica(c *ledger.Context, p Place) (any, error) {
	d, r, err := find(c.Tx, p.ID, p.Replica)
	if err != nil {
		return nil, err
	}
	to := Replica{Node: p.Node, Session: p.Session, State: Placed, At: core.TimeOf(c.Now), Moved: r.Moved}
	switch {
	case r.Over():
		return nil, ledger.Refuse(ledger.Conflict, nil, "the replica is %s", r.State)
	case !SessionOpen(c.Tx, to):
		return nil, ledger.Refuse(ledger.Conflict, nil, "the session is not an open one of this node")
	case r.Session == p.Session:
		return nil, ledger.Refuse(ledger.Conflict, nil, "the replica has this session")
	}
	if r.Session != 0 {
		to.Moved++
	}
	*r = to
	declared.Put(c.Tx, d.ID, d)
	c.Record(ledger.Change{Action: "process.placed", EntityType: "process", EntityID: d.ID,
		Details: core.Object{}.Str("name", d.Name).Int("replica", p.Replica).Str("nodeId", p.Node).Close()})
	return nil, nil
}

func report(c *ledger.Context, p Report) (any, error) {
	d, r, err := find(c.Tx, p.ID, p.Replica)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Cmd.Actor.Type != "node" || c.Cmd.Actor.ID != r.Node || p.Session != r.Session || !SessionOpen(c.Tx, *r):
		return nil, ledger.Refuse(ledger.Conflict, nil, "only the session that has a replica reports on it")
	case p.Generation != d.Generation:
		return nil, ledger.Refuse(ledger.Conflict, nil, "the declaration was changed")
	case !slices.Contains(states, p.State) || p.Restarts < 0:
		return nil, ledger.Refuse(ledger.Invalid, nil, "malformed report of a process")
	}
	r.State, r.PID, r.Restarts, r.Exit, r.Error, r.At = p.State, p.PID, p.Restarts, p.Exit,
		core.NullText(core.Snippet(p.Error, maxWhy)), core.TimeOf(c.Now)
	if p.State == Waiting {
		r.Node, r.Session, r.PID, r.Moved = "", 0, 0, r.Moved+1
	}
	declared.Put(c.Tx, d.ID, d)
	c.Record(ledger.Change{Action: "process." + p.State, EntityType: "process", EntityID: d.ID,
		Details: core.Object{}.Str("name", d.Name).Int("replica", p.Replica).Str("nodeId", c.Cmd.Actor.ID).Uint("pid", p.PID).
			Int("restarts", p.Restarts).Null("error", string(r.Error)).Close()})
	return nil, nil
}

// loseReplicas takes the replicas from a lost node, so that they are placed elsewhere.
func loseReplicas(c *ledger.Context, node string) {
	for _, d := range All(c.Tx) {
		lost := false
		d = d.Clone()
		for i := range d.Replicas {
			r := &d.Replicas[i]
			if r.Node != node || r.Session == 0 || r.Over() || SessionOpen(c.Tx, *r) {
				continue
			}
			*r = Replica{State: Waiting, Error: "its node was lost", At: core.TimeOf(c.Now), Moved: r.Moved + 1}
			lost = true
		}
		if lost {
			declared.Put(c.Tx, d.ID, d)
		}
	}
}
