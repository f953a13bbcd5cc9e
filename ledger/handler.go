package ledger

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/identity"
)

// A Context is what a handler works with: the state, the command, and the time
// that the leader gave the batch.
type Context struct {
	*Tx
	Now    time.Time // UTC, whole milliseconds
	Height uint64    // the height that this command's entry gets when it is applied
	Cmd    *Command

	Mesh    identity.MeshID // "" only while genesis is applied
	Origin  identity.NodeID // the node that authenticated the actor and signed the batch
	Session uint64          // the origin's session; 0 for genesis and session.open
	Index   uint64          // raft index of the batch
	// Salt is that of the committed command, also where Cmd is a part of it: with Index it
	// finds the stored payload, see [EraseBody].
	Salt [16]byte

	// Quiet says that the command is carried out as a part of another one (see
	// [Context.Within]): rules then start nothing of themselves, such as runs.
	Quiet bool

	changes   []Change
	deferred  bool
	unentered bool
	wide      bool
	// look gets the decoded payload, and the handler does nothing: see [Payload].
	look func(payload any)
}

// Record adds a line to the summary of the command's entry. More than
// MaxChanges lines, or details of more than MaxChangeBytes in all, are a broken
// invariant: a handler bounds what one command does.
func (c *Context) Record(ch Change) {
	n := len(ch.Details)
	for i := range c.changes {
		n += len(c.changes[i].Details)
	}
	if len(c.changes) == MaxChanges || n > MaxChangeBytes {
		panic(fmt.Sprintf("ledger: %s records too many changes", c.Cmd.Kind))
	}
	c.changes = append(c.changes, ch)
}

// Defer marks the command's entry as deferred: accepted, and waiting for an approval.
func (c *Context) Defer() { c.deferred = true }

// Unenter leaves out the entry of a command that the gate refuses: an earlier entry tells of
// it, and what the gate writes counts it.
func (c *Context) Unenter() { c.unentered = true }

// Widen lets the command write MaxTouchedWide keys: for the one whose point is
// that much becomes true at once, or none of it.
func (c *Context) Widen() { c.wide = true }

// Changes returns the lines recorded so far.
func (c *Context) Changes() []Change { return c.changes }

// Try carries out f, a part of a handler that may refuse on its own: what f
// writes and records is kept when it returns nil, and nothing of it otherwise,
// while the handler goes on.
func (c *Context) Try(f func(c *Context) error) error {
	part := *c
	part.Tx, part.changes = c.Tx.Child(), slices.Clone(c.changes)
	if err := f(&part); err != nil {
		return err
	}
	part.Tx.Merge()
	c.changes, c.deferred = part.changes, part.deferred
	return nil
}

// Within returns a context in which cmd is carried out as a part of this
// command: with the same time and height, and writes that are this command's.
// What it records is not this command's: the handler says once what it did.
func (c *Context) Within(cmd *Command) *Context {
	part := *c
	part.Cmd, part.Quiet, part.changes = cmd, true, nil
	return &part
}

// A Handler carries out one kind of command. It returns a value for whoever
// asked, encoded, or a refusal made by [Refuse]; when it refuses, nothing that
// it wrote is kept. Any other error is a broken invariant and is treated as a panic.
type Handler func(c *Context) (value []byte, err error)

// A Mux holds the handlers by kind. A node that meets a kind it does not have
// stops applying and says "upgrade me": it never refuses, because another node
// that knows the kind would not.
type Mux map[string]Handler

// Handle registers f for kind, see [Typed].
func Handle[P any](m Mux, kind string, f func(c *Context, p P) (any, error)) {
	if _, ok := m[kind]; ok {
		panic("ledger: two handlers for " + kind)
	}
	m[kind] = Typed(f)
}

// Typed returns a handler that decodes the payload into P; a payload that does not
// decode is refused as invalid. What f returns is encoded; a nil any is an empty
// value, and a []byte is passed through as already encoded.
func Typed[P any](f func(c *Context, p P) (any, error)) Handler {
	checkType[P]()
	return func(c *Context) ([]byte, error) {
		var p P
		if err := Unmarshal(c.Cmd.Payload, &p); err != nil {
			return nil, Refuse(Invalid, nil, "malformed payload of %s", c.Cmd.Kind)
		}
		if c.look != nil {
			c.look(p)
			return nil, nil
		}
		v, err := f(c, p)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case nil:
			return nil, nil
		case []byte:
			return v, nil
		default:
			return Marshal(v), nil
		}
	}
}

// Payload returns the payload of a command as h, which [Typed] has made, decodes it; nil where it does not decode.
func Payload(h Handler, cmd *Command) (payload any) {
	_, _ = h(&Context{Cmd: cmd, look: func(p any) { payload = p }}) // a payload that does not decode stays nil
	return payload
}

// Kinds lists the kinds that m handles, sorted.
func (m Mux) Kinds() []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Do runs the handler for c's command on a child of c's state and merges what
// it wrote when it succeeds. A handler uses it to carry out a stored command
// (approving runs what was waiting).
func (m Mux) Do(c *Context, cmd *Command) ([]byte, error) {
	h, ok := m[cmd.Kind]
	if !ok {
		return nil, fmt.Errorf("ledger: no handler for %s", cmd.Kind)
	}
	child := *c
	child.Tx, child.Cmd, child.changes, child.deferred = c.Tx.Child(), cmd, nil, false
	v, err := h(&child)
	if err != nil {
		return nil, err
	}
	child.Tx.Merge()
	for _, ch := range child.changes {
		c.Record(ch)
	}
	return v, nil
}

// weigh asks the configuration's gate.
func (a *applier) weigh(c *Context) (value []byte, f *Refusal) {
	if a.l.cfg.Gate == nil {
		return nil, nil
	}
	return a.guard(c, func() ([]byte, error) { return nil, a.l.cfg.Gate(c) })
}

// authorize asks the configuration's rule.
func (a *applier) authorize(c *Context) (value []byte, f *Refusal) {
	if a.l.cfg.Authorize == nil {
		return nil, nil
	}
	return a.guard(c, func() ([]byte, error) { return nil, a.l.cfg.Authorize(c) })
}

func (a *applier) handle(c *Context) (value []byte, f *Refusal) {
	return a.guard(c, func() ([]byte, error) {
		v, err := a.l.mux[c.Cmd.Kind](c)
		limit := MaxTouched
		if c.wide {
			limit = MaxTouchedWide
		}
		if err == nil && c.Tx.Touched() > limit {
			err = Refuse(TooLarge, nil, "the command would change more than %d rows at once", limit)
		}
		return v, err
	})
}

// guard runs a rule. A panic in it, and an error that is no refusal, become the
// refusal "internal": every node has the same panic. A failing disk does not:
// that is this node's own trouble, and passes on.
func (a *applier) guard(c *Context, f func() ([]byte, error)) (value []byte, refusal *Refusal) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case StorageError:
			panic(r)
		default:
			a.l.stats.panics.Add(1)
			a.l.log.Error("ledger: handler panicked", "kind", c.Cmd.Kind, "index", c.Index, "panic", r, "stack",
				string(debug.Stack()))
			value, refusal = nil, &Refusal{Code: Internal, Message: "internal error"}
		}
	}()
	v, err := f()
	if err == nil {
		return v, nil
	}
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return nil, refusal
	}
	a.l.stats.panics.Add(1)
	a.l.log.Error("ledger: handler failed", "kind", c.Cmd.Kind, "index", c.Index, "err", err)
	return nil, &Refusal{Code: Internal, Message: "internal error"}
}
