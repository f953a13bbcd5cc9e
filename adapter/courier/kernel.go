package courier

import (
	"encoding/json"
	"fmt"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// signals are what the kernel does for the signals that it carries out.
var signals = map[post.SignalKind]string{post.Shutdown: "TERM", post.Kill: "KILL", post.Suspend: "STOP",
	post.Resume: "CONT"}

// kernel reads the inbox of the node itself, until the courier closes: signals that it carries out
// and questions to it.
func (c *Courier) kernel() {
	ready, err := c.office.Ready(kernel.KernelPID)
	if err != nil {
		return
	}
	for {
		select {
		case <-ready:
		case <-c.ctx.Done():
			return
		}
		all, err := c.takeSome(kernel.KernelPID, MaxReceive)
		if err != nil {
			return
		}
		for _, m := range all {
			answer, no := c.obey(m)
			switch {
			case !m.WantsReply:
			case no != nil:
				c.office.Refuse(c.cfg.Wall(), kernel.KernelPID, m, no)
			default:
				_ = c.office.Reply(c.cfg.Wall(), kernel.KernelPID, m.ID, answer) // it was checked, or its caller is gone
			}
		}
	}
}

// obey does what a message to the kernel says.
func (c *Courier) obey(m *post.Message) (post.Payload, *post.Failure) {
	s := m.Payload.Signal
	if m.Payload.Kind == post.JSON && m.From.PID == kernel.KernelPID && m.From.Node != c.cfg.Node {
		return c.asked(m)
	}
	if s == nil {
		return post.Payload{}, post.Fail(post.NotAllowed,
			"the kernel takes signals: ping, dump_state, and those for its processes")
	}
	if m.To.Kind == post.ToProcess {
		return c.control(m, *s)
	}
	switch s.Kind {
	case post.Ping:
		return post.Payload{Kind: post.OfSignal, Signal: &post.Signal{Kind: post.Pong}}, nil
	case post.DumpState:
		var state any = struct{}{}
		if c.cfg.State != nil {
			state = c.cfg.State()
		}
		b, err := json.Marshal(state)
		if err != nil {
			return post.Payload{}, post.Fail(post.NotAllowed, "the state can not be written: %v", err)
		}
		return post.Payload{Kind: post.JSON, JSON: b}, nil
	}
	return post.Payload{}, post.Fail(post.NotAllowed, "signal %s: the kernel of a node takes ping and dump_state", s.Kind)
}

// control carries a signal to a process out, if its sender may: a kernel, the parent of the
// process, or a supervisor of the same node and company.
func (c *Courier) control(m *post.Message, s post.Signal) (post.Payload, *post.Failure) {
	e, ok := c.table.Find(m.To.PID)
	if !ok || !e.State.Live() || e.PID == kernel.KernelPID {
		return post.Payload{}, post.Fail(post.TargetNotFound, "process %s does not run on this node", m.To.PID)
	}
	here := m.From.Node == c.cfg.Node
	by, known := c.table.Find(m.From.PID)
	supervises := here && known && by.Role == kernel.RoleSupervisor && mayReach(by.Company, e)
	if m.From.PID != kernel.KernelPID && !(here && e.Parent == m.From.PID) && !supervises {
		return post.Payload{}, post.Fail(post.NotAllowed,
			"signal %s: only the node, its parent and a supervisor may send it to process %s", s.Kind, e.PID)
	}
	if err := c.signal(e.PID, signals[s.Kind]); err != nil {
		return post.Payload{}, post.Fail(post.NotAllowed, "%s", err)
	}
	if c.cfg.Events != nil {
		pid := e.PID
		c.cfg.Events.Add(kernel.Event{Level: kernel.LevelInfo, PID: &pid, Kind: "ipc.signal",
			Message: fmt.Sprintf("%s of %s:%s", s.Kind, c.cfg.Name(m.From.Node), m.From.PID)})
	}
	return post.Payload{Kind: post.JSON, JSON: json.RawMessage(`{"done":true}`)}, nil
}
