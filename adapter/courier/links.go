package courier

import (
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// Link links a process to another one of its node: when one of them crashes, the other gets the
// signal link_exit and is ended too. A process may link itself to its parent, to its children, and to
// those of its own supervisor's group; by says for whom an administrator links them.
func (c *Courier) Link(pid kernel.PID, to post.Target, by kernel.PID) error {
	e, there, err := c.pair(pid, to)
	if err != nil {
		return err
	}
	family := e.Parent == there.PID || there.Parent == e.PID || e.Group != "" && e.Group == there.Group
	if by != kernel.KernelPID && !family {
		return post.Fail(post.NotAllowed,
			"process %s may link itself to its parent, its children and its group, not to process %s: monitor it", pid, there.PID)
	}
	return c.table.Link(pid, there.PID)
}

// Unlink ends a link.
func (c *Courier) Unlink(pid kernel.PID, to post.Target) error {
	_, there, err := c.pair(pid, to)
	if err == nil {
		c.table.Unlink(pid, there.PID)
	}
	return err
}

// Monitor has a process told by the signal monitor_down when another one of its node ends. It returns
// the name of the monitor, which the signal has.
func (c *Courier) Monitor(pid kernel.PID, of post.Target) (ref string, err error) {
	_, there, err := c.pair(pid, of)
	if err != nil {
		return "", err
	}
	return c.table.Monitor(pid, there.PID)
}

// Demonitor ends a monitor of a process.
func (c *Courier) Demonitor(pid kernel.PID, ref string) error {
	for _, m := range c.table.Watches(pid).Monitors {
		if m.Ref == ref {
			c.table.Demonitor(ref)
			return nil
		}
	}
	return post.Fail(post.TargetNotFound, "monitor %.40q: process %s has none of this name", ref, pid)
}

// pair finds two processes of this node of which one is to watch the other.
func (c *Courier) pair(pid kernel.PID, of post.Target) (e, there kernel.Entry, err error) {
	e, ok := c.table.Find(pid)
	switch {
	case pid == kernel.KernelPID:
		return e, there, kernel.Errorf(kernel.BadRequest, "process: required: the node itself is linked to nothing")
	case !ok || !e.State.Live():
		return e, there, post.Fail(post.TargetNotFound, "process %s does not run on this node", pid)
	case of.Kind != post.ToProcess || of.PID == kernel.KernelPID:
		return e, there, kernel.Errorf(kernel.BadRequest, "to: give the PID of a process, or NODE:PID of this node")
	}
	node, no := c.nodeOf(of)
	if no != nil {
		return e, there, no
	}
	if node != "" && node != c.cfg.Node {
		return e, there, kernel.Errorf(kernel.BadRequest, "to: links and monitors are between processes of one node")
	}
	if there, ok = c.table.Find(of.PID); !ok || !there.State.Live() {
		return e, there, post.Fail(post.TargetNotFound, "process %s does not run on this node", of.PID)
	}
	if !mayReach(e.Company, there) {
		return e, there, post.Fail(post.NotAllowed, "process %s belongs to another company", of.PID)
	}
	return e, there, nil
}
