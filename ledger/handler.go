package ledger

import (
	"fmt"
	"slices"
	"time"
)

// A Context is what a handler works with: the state, the command, and the time
// that the leader gave the batch.
type Context struct {
	*Tx
	Now    time.Time // UTC, whole milliseconds
	Height uint64    // the height that this command's entry gets when it is applied
	Cmd    *Command

	changes []Change
}

// Record adds a line to the summary of the command's entry.
func (c *Context) Record(ch Change) { c.changes = append(c.changes, ch) }

// Changes returns the lines recorded so far.
func (c *Context) Changes() []Change { return c.changes }

// A Handler carries out one kind of command. It returns a value for whoever
// asked, encoded, or a refusal made by [Refuse]; when it refuses, nothing that
// it wrote is kept. Any other error is a broken invariant and is treated as a panic.
type Handler func(c *Context) (value []byte, err error)

// A Mux holds the handlers by kind. A node that meets a kind it does not have
// stops applying and says "upgrade me": it never refuses, because another node
// that knows the kind would not.
type Mux map[string]Handler

// Handle registers f for kind. The payload is decoded into P; a payload that
// does not decode is refused as invalid. What f returns is encoded; a nil
// any is an empty value, and a []byte is passed through as already encoded.
func Handle[P any](m Mux, kind string, f func(c *Context, p P) (any, error)) {
	checkType[P]()
	if _, ok := m[kind]; ok {
		panic("ledger: two handlers for " + kind)
	}
	m[kind] = func(c *Context) ([]byte, error) {
		var p P
		if err := Unmarshal(c.Cmd.Payload, &p); err != nil {
			return nil, Refuse(Invalid, nil, "malformed payload of %s", kind)
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
	child := &Context{Tx: c.Tx.Child(), Now: c.Now, Height: c.Height, Cmd: cmd}
	v, err := h(child)
	if err != nil {
		return nil, err
	}
	child.Tx.Merge()
	c.changes = append(c.changes, child.changes...)
	return v, nil
}
