package courier

import (
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// Link links a process to another one: when one of them crashes, or the node of one is lost, the other
// gets the signal link_exit and is ended too. A process may link itself to its parent, to its children,
// and to those of its own supervisor's group, on any node; by says for whom an administrator links them.
func (c *Courier) Link(pid kernel.PID, to post.Target, by kernel.PID) error {
	e, of, there, err := c.pair(pid, to)
	if err != nil {
		return err
	}
	if of.Node != c.cfg.Node {
		_, err := c.watchFar(e, of, true, by == kernel.KernelPID)
		return err
	}
	family := e.Parent == there.PID || there.Parent == e.PID || e.Group != "" && e.Group == there.Group
	if by != kernel.KernelPID && !family {
		return post.Fail(post.NotAllowed,
			"process %s may link itself to its parent, its children and its group, not to process %s: monitor it",
			pid, there.PID)
	}
	return c.table.Link(pid, there.PID)
}

// Unlink ends a link.
func (c *Courier) Unlink(pid kernel.PID, to post.Target) error {
	node, no := c.nodeIfKnown(to)
	if no != nil {
		return no
	}
	if node != "" && node != c.cfg.Node {
		c.linkOff(pid, kernel.Address{Node: node, PID: to.PID})
		return nil
	}
	_, _, there, err := c.pair(pid, to)
	if err == nil {
		c.table.Unlink(pid, there.PID)
	}
	return err
}

// Monitor has a process told by the signal monitor_down when another one ends, or its node is lost. It
// returns the name of the monitor, which the signal has.
func (c *Courier) Monitor(pid kernel.PID, of post.Target) (ref string, err error) {
	e, at, there, err := c.pair(pid, of)
	if err != nil {
		return "", err
	}
	if at.Node != c.cfg.Node {
		return c.watchFar(e, at, false, false)
	}
	return c.table.Monitor(pid, there.PID)
}

// Demonitor ends a monitor of a process.
func (c *Courier) Demonitor(pid kernel.PID, ref string) error {
	if len(c.dropFar(func(w *FarWatch) bool { return w.By == pid && w.Ref == ref && ref != "" })) > 0 {
		return nil
	}
	for _, m := range c.table.Watches(pid).Monitors {
		if m.Ref == ref {
			c.table.Demonitor(ref)
			return nil
		}
	}
	return post.Fail(post.TargetNotFound, "monitor %.40q: process %s has none of this name", ref, pid)
}

// nodeIfKnown returns the node that a target names, also one that is down.
func (c *Courier) nodeIfKnown(t post.Target) (string, *post.Failure) {
	node, no := c.nodeOf(t)
	if no != nil && no.Reason == post.Unreachable {
		no = nil
	}
	return node, no
}

// pair finds a process of this node and where the one is that it is to watch; there is that process if it
// is of this node too.
func (c *Courier) pair(pid kernel.PID, of post.Target) (e kernel.Entry, at kernel.Address, there kernel.Entry,
	err error) {
	e, ok := c.table.Find(pid)
	switch {
	case pid == kernel.KernelPID:
		return e, at, there, kernel.Errorf(kernel.BadRequest, "process: required: the node itself is linked to nothing")
	case !ok || !e.State.Live():
		return e, at, there, post.Fail(post.TargetNotFound, "process %s does not run on this node", pid)
	case of.Kind != post.ToProcess || of.PID == kernel.KernelPID:
		return e, at, there, kernel.Errorf(kernel.BadRequest, "to: give the PID of a process, or NODE:PID")
	}
	node, no := c.nodeOf(of)
	if no != nil {
		return e, at, there, no
	}
	if at = (kernel.Address{Node: node, PID: of.PID}); node != "" && node != c.cfg.Node {
		return e, at, there, nil
	}
	at.Node = c.cfg.Node
	if there, ok = c.table.Find(of.PID); !ok || !there.State.Live() {
		return e, at, there, post.Fail(post.TargetNotFound, "process %s does not run on this node", of.PID)
	}
	if !mayReach(e.Company, there) {
		return e, at, there, post.Fail(post.NotAllowed, "process %s belongs to another company", of.PID)
	}
	return e, at, there, nil
}
