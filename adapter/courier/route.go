package courier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// depart stamps and checks a message that a process sends: who it is, what it may, what it has
// left of its limit, and what the gate says.
func (c *Courier) depart(now time.Time, from kernel.PID, m *post.Message) (kernel.Entry, error) {
	e, ok := c.table.Find(from)
	if !ok || !e.State.Live() {
		return e, post.Fail(post.TargetNotFound, "process %s, which sends, does not run on this node", from)
	}
	m.From, m.Company = kernel.Address{Node: c.cfg.Node, PID: from}, e.Company
	c.office.Stamp(now, m)
	if err := m.Validate(now); err != nil {
		return e, err
	}
	if !e.Capabilities.CanIPC {
		return e, post.Fail(post.NotAllowed, "process %s may not send messages: can_ipc is false", from)
	}
	if s := m.Payload.Signal; s != nil && s.Kind.ByKernel() {
		return e, post.Fail(post.NotAllowed, "signal %s: only a kernel sends it", s.Kind)
	}
	if no := c.weigh(e, actionOf(m.Payload), m.Payload.Tool); no != nil {
		c.buryDenied(m, no)
		return e, no
	}
	if from == kernel.KernelPID {
		return e, nil
	}
	if m.Payload.Kind == post.ToolCall {
		if err := c.charge(from, kernel.ToolCalls); err != nil {
			return e, err
		}
	}
	return e, c.charge(from, kernel.Messages)
}

// buryDenied keeps what the gate did not permit as a dead letter. Where the gate could not be asked, the sender tries
// again.
func (c *Courier) buryDenied(m *post.Message, no *post.Failure) {
	if no.Reason != post.Unreachable {
		c.office.Bury(c.cfg.Wall(), m, no)
	}
}

// charge counts a message, and a tool call too, against the limit of its sender.
func (c *Courier) charge(pid kernel.PID, r kernel.Resource) error {
	if err := c.table.Charge(pid, r, 1); err != nil {
		return post.Fail(post.LimitExceeded, "%s", err)
	}
	return nil
}

// actionOf is what the gate takes a message for.
func actionOf(p post.Payload) string {
	switch p.Kind {
	case post.OfSignal:
		return "ipc.signal"
	case post.ToolCall:
		return "tool." + p.Tool
	}
	return "ipc.send"
}

// weigh asks the gate about an act of a process. A permit is remembered for a moment.
func (c *Courier) weigh(e kernel.Entry, action, tool string) *post.Failure {
	if c.cfg.Weigh == nil {
		return nil
	}
	if _, known := governance.ActionOf(action); action == "ipc.signal" && !known {
		action = "ipc.send" // to tell a process something is to send it a message
	}
	act := Act{Action: action, Company: e.Company, Agent: e.Agent, Run: e.Run, Tool: tool}
	now := c.cfg.Wall()
	c.permitMu.RLock()
	until, ok := c.permits[act]
	c.permitMu.RUnlock()
	if ok && now.Before(until) {
		return nil
	}
	if err := c.cfg.Weigh(act); err != nil {
		if f, ok := errors.AsType[*post.Failure](err); ok {
			return f
		}
		return post.Fail(post.Unreachable, "the gate can not be asked: %v", err)
	}
	c.permitMu.Lock()
	defer c.permitMu.Unlock()
	if len(c.permits) >= maxPermits {
		clear(c.permits)
	}
	c.permits[act] = now.Add(permitFor)
	return nil
}

// handlerGate asks whether the receiver of a tool call may do what it says.
func (c *Courier) handlerGate(pid kernel.PID, m *post.Message) *post.Failure {
	if m.Payload.Kind != post.ToolCall {
		return nil
	}
	e, ok := c.table.Find(pid)
	if !ok {
		return post.Fail(post.AgentExited, "process %s has ended", pid)
	}
	if err := e.Capabilities.MayCall(m.Payload.Tool, nil, nil); err != nil {
		return post.Fail(post.GovernanceDenied, "the receiver: %s", err)
	}
	no := c.weigh(e, actionOf(m.Payload), m.Payload.Tool)
	if no != nil && no.Reason == post.Unreachable {
		no.Reason = post.GovernanceDenied
	}
	return no
}

// find returns the process that a message for one is for, and refuses what its sender may not
// reach. What it can not find is a dead letter.
func (c *Courier) find(ctx context.Context, e kernel.Entry, m *post.Message) (kernel.Address, *post.Failure) {
	to, no := c.locate(ctx, m)
	if no != nil {
		if !m.Reliable {
			c.office.Bury(c.cfg.Wall(), m, no)
		}
		return to, no
	}
	return to, c.reaches(e, to)
}

// reaches says why a process may not send to another, nil if it may.
func (c *Courier) reaches(e kernel.Entry, to kernel.Address) *post.Failure {
	if to.Node == c.cfg.Node {
		if err := e.Capabilities.MaySend(e.Parent, to.PID); err != nil {
			return post.Fail(post.NotAllowed, "%s", err)
		}
		if there, ok := c.table.Find(to.PID); ok && !mayReach(e.Company, there) {
			return post.Fail(post.NotAllowed, "process %s belongs to another company", to.PID)
		}
		return nil
	}
	if e.Capabilities.Scope.Kind != kernel.ScopeAll && e.Capabilities.Scope.Kind != "" {
		return post.Fail(post.NotAllowed, "process %s may send to processes of its own node alone: its ipc_scope is %s",
			e.PID, e.Capabilities.Scope.Kind)
	}
	return nil
}

// mayReach reports whether a process of a company may send to another: companies do not see each
// other's processes, and processes of no company serve all.
func mayReach(company string, to kernel.Entry) bool {
	return company == "" || to.Company == "" || company == to.Company
}

// nodeOf returns the node that a target names, "" for none.
func (c *Courier) nodeOf(t post.Target) (string, *post.Failure) {
	if t.Node == "" {
		return "", nil
	}
	node, err := c.cfg.Resolve(t.Node)
	if err != nil {
		return "", post.Fail(post.TargetNotFound, "%v", err)
	}
	if node != c.cfg.Node && !c.cfg.Alive(node) {
		return node, post.Fail(post.Unreachable, "node %s is down", t.Node)
	}
	return node, nil
}

// locate returns where the target of a message is now.
func (c *Courier) locate(ctx context.Context, m *post.Message) (kernel.Address, *post.Failure) {
	node, no := c.nodeOf(m.To)
	if no != nil {
		return kernel.Address{}, no
	}
	here := node == "" || node == c.cfg.Node
	switch m.To.Kind {
	case post.ToProcess:
		if here && !c.table.Receives(m.To.PID) {
			return kernel.Address{}, post.Fail(post.TargetNotFound,
				"process %s does not run on this node, or has no inbox", m.To.PID)
		}
		if here {
			node = c.cfg.Node
		}
		return kernel.Address{Node: node, PID: m.To.PID}, nil
	case post.ToKernel:
		if here {
			node = c.cfg.Node
		}
		return kernel.Address{Node: node}, nil
	case post.ToTopic: // of a subscription
		if !c.table.Receives(m.Reader) {
			return kernel.Address{}, post.Fail(post.AgentExited, "process %s, which subscribed, has ended", m.Reader)
		}
		return kernel.Address{Node: c.cfg.Node, PID: m.Reader}, nil
	}
	service := m.To.Kind == post.ToService
	if _, all := c.service(m); all != nil {
		return c.provider(m, node, all)
	}
	fits := func(p place) bool {
		return (m.Company == "" || p.company == "" || p.company == m.Company) && (!service || p.role == kernel.RoleService)
	}
	if here {
		if all := slices.DeleteFunc(c.named(m.To.Name), func(p place) bool { return !fits(p) }); len(all) > 0 {
			return c.next(all), nil
		}
	}
	nodes := c.cfg.Nodes()
	if node != "" {
		nodes = slices.DeleteFunc(nodes, func(n string) bool { return n != node })
	}
	all := slices.DeleteFunc(slices.Clone(c.elsewhere(ctx, nodes, m.To.Name)),
		func(p place) bool { return !fits(p) || node != "" && p.Node != node || !c.cfg.Alive(p.Node) })
	if len(all) == 0 {
		return kernel.Address{}, post.Fail(post.TargetNotFound, "no process %s runs on a node that answers", m.To)
	}
	return c.next(all), nil
}

// service returns the registered service that a message is for, and its providers; nil for a name that
// none has. NAME/METHOD is of the service NAME of the mesh if there is one, else NAME/METHOD without a
// method and NAME/SERVICE/METHOD are of an app of the company that sends.
func (c *Courier) service(m *post.Message) (t post.Target, providers []kernel.Address) {
	t = m.To
	if t.Kind != post.ToService || c.cfg.Services == nil {
		return t, nil
	}
	if !strings.Contains(t.Method, "/") {
		if all, known := c.cfg.Services.Providers("", t.Name); known {
			return t, append([]kernel.Address{}, all...)
		}
	}
	if m.Company == "" || t.Method == "" {
		return t, nil
	}
	name, method, _ := strings.Cut(t.Method, "/")
	t.Name, t.Method = t.Name+"/"+name, method
	if all, known := c.cfg.Services.Providers(m.Company, t.Name); known {
		return t, append([]kernel.Address{}, all...)
	}
	return m.To, nil
}

// provider chooses one of the processes that provide a service, on one node or on any for "".
func (c *Courier) provider(m *post.Message, node string, all []kernel.Address) (kernel.Address, *post.Failure) {
	var here, there []place
	for _, a := range all {
		switch {
		case node != "" && a.Node != node:
		case a.Node != c.cfg.Node:
			if c.cfg.Alive(a.Node) {
				there = append(there, place{Address: a})
			}
		case c.table.Receives(a.PID):
			here = append(here, place{Address: a})
		}
	}
	if len(here) > 0 {
		there = here
	}
	if len(there) == 0 {
		return kernel.Address{}, post.Fail(post.TargetNotFound, "%s: none of its providers runs on a node that answers", m.To)
	}
	return c.next(there), nil
}

// callService calls a method of a registered service as a process, with what the message says as its
// parameters. The reply is the result.
func (c *Courier) callService(ctx context.Context, e kernel.Entry, m *post.Message,
	s post.Target) (*post.Message, error) {
	node, no := c.nodeOf(m.To)
	if no != nil {
		return nil, no
	}
	params := m.Payload.JSON
	switch m.Payload.Kind {
	case post.JSON:
	case post.Text:
		params, _ = json.Marshal(m.Payload.Text) // a text can be encoded
	default:
		return nil, kernel.Errorf(kernel.BadRequest, "a method of a service takes json or text, not %s", m.Payload.Kind)
	}
	ctx, cancel := context.WithTimeout(ctx, m.Deadline.Sub(c.cfg.Wall()))
	defer cancel()
	ask := func(ctx context.Context, to kernel.Address, body json.RawMessage) (json.RawMessage, bool, error) {
		if no := c.reaches(e, to); no != nil {
			return nil, true, no
		}
		return c.AskService(ctx, e, to, m.Trace, body)
	}
	result, by, err := c.cfg.Services.Call(ctx, e.Company, node, s.Name, s.Method, params, ask)
	if err != nil {
		return nil, err
	}
	return &post.Message{ID: m.ID + "-reply", From: by, To: post.Process(m.From),
		Payload: post.Payload{Kind: post.JSON, JSON: result}, At: c.cfg.Wall(), Deadline: m.Deadline, Company: e.Company,
		Correlation: m.ID, Trace: m.Trace}, nil
}

// AskService sends a call of a service to a provider as a process. unsent says of an error that the
// provider can not have got it; one that wraps context.DeadlineExceeded, that it did not answer in time.
func (c *Courier) AskService(ctx context.Context, by kernel.Entry, to kernel.Address, trace string,
	body json.RawMessage) (reply json.RawMessage, unsent bool, err error) {
	now := c.cfg.Wall()
	m := &post.Message{From: kernel.Address{Node: c.cfg.Node, PID: by.PID}, Company: by.Company, To: post.Process(to),
		Payload: post.Payload{Kind: post.JSON, JSON: body}, WantsReply: true, Trace: trace}
	if until, ok := ctx.Deadline(); ok {
		m.Deadline = now.Add(time.Until(until))
	}
	c.office.Stamp(now, m)
	if err := m.Validate(now); err != nil {
		return nil, true, err
	}
	answer, err := c.ask(ctx, m, to)
	no, failed := errors.AsType[*post.Failure](err)
	switch {
	case failed && no.Reason == post.Timeout:
		return nil, false, fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case failed:
		return nil, !no.Unsure && slices.Contains([]post.Reason{post.TargetNotFound, post.InboxFull, post.Unreachable,
			post.NotAllowed, post.GovernanceDenied, post.Deferred}, no.Reason), err
	case err != nil:
		return nil, false, err
	case answer.Payload.Kind == post.JSON:
		return answer.Payload.JSON, false, nil
	}
	return json.RawMessage(answer.Payload.Text), false, nil
}

// next takes turns among those that share a name.
func (c *Courier) next(all []place) kernel.Address {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn++
	return all[c.turn%uint64(len(all))].Address
}

// Named returns the processes of this node that have a name and receive.
func (c *Courier) Named(name string) []kernel.Entry {
	return c.table.Select(func(e *kernel.Entry) bool {
		return e.Name == name && e.PID != kernel.KernelPID && e.Capabilities.CanIPC &&
			(e.State == kernel.Running || e.State == kernel.Suspended)
	})
}

func (c *Courier) named(name string) []place { return places(c.cfg.Node, c.Named(name)) }

func places(node string, all []kernel.Entry) (out []place) {
	for _, e := range all {
		out = append(out, place{kernel.Address{Node: node, PID: e.PID}, e.Company, e.Role})
	}
	return out
}

// elsewhere asks other nodes, all at once, where a name is.
func (c *Courier) elsewhere(ctx context.Context, nodes []string, name string) []place {
	c.mu.Lock()
	f, ok := c.found[name]
	c.mu.Unlock()
	if ok && time.Since(f.at) < foundFor && len(f.all) > 0 {
		return f.all
	}
	ctx, cancel := context.WithTimeout(ctx, locateWait)
	defer cancel()
	answers := make(chan []place, len(nodes))
	for _, node := range nodes {
		go func() { // it ends with ctx
			all, err := c.cfg.Locate(ctx, node, name)
			if err != nil {
				c.cfg.Logger.Debug("a node does not say where a process is", "node", node, "name", name, "error", err)
			}
			answers <- places(node, all)
		}()
	}
	f = found{at: time.Now()}
	for range nodes {
		f.all = append(f.all, <-answers...)
	}
	slices.SortFunc(f.all, func(a, b place) int { return strings.Compare(a.String(), b.String()) })
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.found) >= maxFound {
		clear(c.found)
	}
	c.found[name] = f
	return f.all
}

// members returns the processes of this node that a message for many is for.
func (c *Courier) members(t post.Target, company string) []kernel.Entry {
	return c.table.Select(func(e *kernel.Entry) bool {
		if e.PID == kernel.KernelPID || !e.Capabilities.CanIPC || e.State != kernel.Running && e.State != kernel.Suspended ||
			!mayReach(company, *e) {
			return false
		}
		return t.Kind == post.ToBroadcast || e.Group == t.Name || strings.HasPrefix(e.Group, t.Name+"/")
	})
}
