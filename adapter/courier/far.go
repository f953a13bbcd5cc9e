package courier

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

const (
	// lookEvery is how often a node asks another about the processes there that its own ones watch,
	// lookWait bounds the answer, and lookMost the processes of one question.
	lookEvery = time.Second
	lookWait  = 3 * time.Second
	lookMost  = 1000
	// maxFar bounds the links and monitors of one process with processes of other nodes, maxFarNode those
	// of a node.
	maxFar     = 256
	maxFarNode = 10_000
	// reasonNodeLost is the reason of a signal about a process whose node is lost, or was started again.
	reasonNodeLost = "node_lost"
)

// A FarWatch is a monitor that a process of this node has of one on another node, or its end of their link.
//
// Nothing is stored, and no message has to arrive: while there are watches their node asks the other one
// each second how the processes stand. One that has ended is told. A node that does not answer is asked
// again until the mesh has ended its session, which it does after the node's lease: from then on it holds
// no declared process and no run any more.
type FarWatch struct {
	Ref  string // of a monitor; "": it is a link
	By   kernel.PID
	Of   kernel.Address
	life uint64 // epoch of the other node's courier when the watch was made; 0: it is being made
}

// links reports whether w is the end of a link that a process of this node has with one of another.
func (w *FarWatch) links(by kernel.PID, of kernel.Address) bool {
	return w.Ref == "" && w.By == by && w.Of == of
}

// farAsk is what the kernel of a node says to another one's about watches.
type farAsk struct {
	Op    string      `json:"op"` // link, monitor, unlink or look
	Epoch uint64      `json:"epoch"`
	Pair  farPair     `json:"pair"` // of all but look
	Look  []farPair   `json:"look,omitempty"`
	By    farStanding `json:"by"` // of link and monitor
}

// farPair names a process of the node that is asked, and who watches it.
type farPair struct {
	Of   kernel.PID `json:"of"`
	By   kernel.PID `json:"by"`
	Link bool       `json:"link,omitempty"`
}

// farStanding is what decides whether a process may watch another.
type farStanding struct {
	Company string `json:"company,omitempty"`
	Group   string `json:"group,omitempty"`
	Any     bool   `json:"any,omitempty"` // an administrator asks
}

type farAnswer struct {
	Epoch uint64   `json:"epoch"`
	Ends  []farEnd `json:"ends,omitempty"` // of look: those that live and are linked as before are left out
}

type farEnd struct {
	farPair
	Exit   *kernel.Exit `json:"exit,omitempty"`   // it has ended
	Loosed bool         `json:"loosed,omitempty"` // it lives, and the link was ended
}

// addFar notes a watch that is being made.
func (c *Courier) addFar(w *FarWatch) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := 0
	for _, o := range c.far {
		if o.By == w.By {
			own++
		}
	}
	if own >= maxFar || len(c.far) >= maxFarNode {
		return post.Fail(post.LimitExceeded, "process %s watches %d processes of other nodes, its node %d: end one first",
			w.By, own, len(c.far))
	}
	if w.Ref != "" {
		c.refs++
		w.Ref = fmt.Sprintf("mon-far-%d", c.refs)
	}
	c.far = append(c.far, w)
	return nil
}

// dropFar removes watches.
func (c *Courier) dropFar(which func(*FarWatch) bool) (dropped []*FarWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.far = slices.DeleteFunc(c.far, func(w *FarWatch) bool {
		if !which(w) {
			return false
		}
		dropped = append(dropped, w)
		return true
	})
	return dropped
}

// Far returns the links and monitors of a process with processes of other nodes.
func (c *Courier) Far(pid kernel.PID) []FarWatch {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := []FarWatch{}
	for _, w := range c.far {
		if w.By == pid && w.life != 0 {
			out = append(out, *w)
		}
	}
	return out
}

// watchFar makes a watch of a process of another node.
func (c *Courier) watchFar(e kernel.Entry, of kernel.Address, link, admin bool) (ref string, err error) {
	if e.Capabilities.Scope.Kind != kernel.ScopeAll && e.Capabilities.Scope.Kind != "" {
		return "", post.Fail(post.NotAllowed, "process %s may watch processes of its own node alone: its ipc_scope is %s",
			e.PID, e.Capabilities.Scope.Kind)
	}
	w := &FarWatch{By: e.PID, Of: of}
	op := "link"
	if !link {
		op, w.Ref = "monitor", "new"
	} else if slices.ContainsFunc(c.Far(e.PID), func(o FarWatch) bool { return o.links(e.PID, of) }) {
		return "", nil
	}
	if err := c.addFar(w); err != nil {
		return "", err
	}
	a, err := c.askFar(of.Node, farAsk{Op: op, Pair: farPair{Of: of.PID, By: e.PID, Link: link},
		By: farStanding{e.Company, e.Group, admin}})
	c.mu.Lock()
	w.life = a.Epoch
	c.mu.Unlock()
	if err != nil { // a link that the other node has made all the same is ended there at its next look
		c.dropFar(func(o *FarWatch) bool { return o == w })
		return "", err
	}
	if !c.table.Receives(e.PID) { // it ended meanwhile
		c.dropFar(func(o *FarWatch) bool { return o == w })
	}
	poke(c.looks)
	return w.Ref, nil
}

// askFar asks the kernel of another node.
func (c *Courier) askFar(node string, ask farAsk) (a farAnswer, err error) {
	ask.Epoch = c.journal.epoch
	body, err := json.Marshal(map[string]farAsk{"watch": ask})
	if err != nil {
		return a, err
	}
	now := c.cfg.Wall()
	m := &post.Message{From: kernel.Address{Node: c.cfg.Node}, To: post.Target{Kind: post.ToKernel, Node: node},
		Payload: post.Payload{Kind: post.JSON, JSON: body}, WantsReply: true, Deadline: now.Add(lookWait), Quiet: true}
	c.office.Stamp(now, m)
	answer, err := c.ask(c.ctx, m, kernel.Address{Node: node})
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(answer.Payload.JSON, &a)
}

// asked answers the kernel of another node about watches.
func (c *Courier) asked(m *post.Message) (post.Payload, *post.Failure) {
	var in struct {
		Watch *farAsk `json:"watch"`
	}
	if err := json.Unmarshal(m.Payload.JSON, &in); err != nil || in.Watch == nil || len(in.Watch.Look) > lookMost {
		return post.Payload{}, post.Fail(post.NotAllowed, "the kernel of a node takes questions about links and monitors")
	}
	ask, out := in.Watch, farAnswer{Epoch: c.journal.epoch}
	switch ask.Op {
	case "link", "monitor":
		if no := c.mayBeWatched(ask); no != nil {
			return post.Payload{}, no
		}
		if ask.Op == "monitor" {
			break
		}
		back := &FarWatch{By: ask.Pair.Of, Of: kernel.Address{Node: m.From.Node, PID: ask.Pair.By}, life: ask.Epoch}
		c.dropFar(func(o *FarWatch) bool { return o.links(back.By, back.Of) })
		if err := c.addFar(back); err != nil {
			return post.Payload{}, post.Fail(post.LimitExceeded, "%v", err)
		}
		poke(c.looks)
	case "unlink":
		c.dropFar(func(o *FarWatch) bool {
			return o.links(ask.Pair.Of, kernel.Address{Node: m.From.Node, PID: ask.Pair.By})
		})
	case "look":
		for _, p := range ask.Look {
			if end, is := c.endOf(m.From.Node, p); is {
				out.Ends = append(out.Ends, end)
			}
		}
	default:
		return post.Payload{}, post.Fail(post.NotAllowed, "watch %.20q: this version of the node does not know it", ask.Op)
	}
	b, err := json.Marshal(out)
	if err != nil {
		return post.Payload{}, post.Fail(post.NotAllowed, "%v", err)
	}
	return post.Payload{Kind: post.JSON, JSON: b}, nil
}

// mayBeWatched says why a process of this node is not watched from another one, nil if it is.
func (c *Courier) mayBeWatched(ask *farAsk) *post.Failure {
	e, ok := c.table.Find(ask.Pair.Of)
	switch {
	case !ok || !e.State.Live() || e.PID == kernel.KernelPID:
		return post.Fail(post.TargetNotFound, "process %s does not run on node %s", ask.Pair.Of, c.cfg.Name(c.cfg.Node))
	case !mayReach(ask.By.Company, e):
		return post.Fail(post.NotAllowed, "process %s belongs to another company", e.PID)
	case ask.Op == "link" && !ask.By.Any && (e.Group == "" || e.Group != ask.By.Group):
		return post.Fail(post.NotAllowed,
			"a process may link itself to one of its group on another node, not to process %s: monitor it", e.PID)
	}
	return nil
}

// endOf says how a process of this node stands that one of another node watches.
func (c *Courier) endOf(node string, p farPair) (farEnd, bool) {
	e, ok := c.table.Find(p.Of)
	switch {
	case !ok:
		return farEnd{farPair: p, Exit: &kernel.Exit{Code: kernel.ExitReaped, Reason: kernel.Killed,
			Message: "it has ended, and its end is not remembered"}}, true
	case !e.State.Live():
		return farEnd{farPair: p, Exit: e.Exit}, true
	case !p.Link:
		return farEnd{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	linked := slices.ContainsFunc(c.far, func(o *FarWatch) bool {
		return o.links(p.Of, kernel.Address{Node: node, PID: p.By})
	})
	return farEnd{farPair: p, Loosed: true}, !linked
}

// lookAround asks other nodes about the processes that are watched, while there are any.
func (c *Courier) lookAround() {
	for {
		by := map[string][]*FarWatch{}
		c.mu.Lock()
		for _, w := range c.far {
			if w.life != 0 {
				by[w.Of.Node] = append(by[w.Of.Node], w)
			}
		}
		c.mu.Unlock()
		if len(by) == 0 {
			select {
			case <-c.looks:
			case <-c.ctx.Done():
				return
			}
			continue
		}
		var all sync.WaitGroup
		for node, list := range by {
			all.Go(func() { c.look(node, list) })
		}
		all.Wait()
		if wait(c.ctx, lookEvery, nil); c.ctx.Err() != nil {
			return
		}
	}
}

// look asks a node about the processes that are watched there.
func (c *Courier) look(node string, list []*FarWatch) {
	lost := func(w *FarWatch, why string) {
		c.farEnded(w, kernel.Exit{Code: kernel.ExitReaped, Reason: reasonNodeLost, Message: why})
	}
	for part := range slices.Chunk(list, lookMost) {
		ask := farAsk{Op: "look"}
		for _, w := range part {
			ask.Look = append(ask.Look, farPair{Of: w.Of.PID, By: w.By, Link: w.Ref == ""})
		}
		a, err := farAnswer{}, errors.New("it is down")
		if c.cfg.Alive(node) {
			a, err = c.askFar(node, ask)
		}
		if err != nil {
			if c.cfg.Gone == nil || c.cfg.Gone(node) {
				for _, w := range list {
					lost(w, fmt.Sprintf("node %s is lost: %v", c.cfg.Name(node), err))
				}
			}
			return
		}
		for i, w := range part {
			p := ask.Look[i]
			at := slices.IndexFunc(a.Ends, func(e farEnd) bool { return e.farPair == p })
			switch {
			case w.life != a.Epoch:
				lost(w, fmt.Sprintf("node %s was started again", c.cfg.Name(node)))
			case at < 0:
			case a.Ends[at].Loosed:
				c.dropFar(func(o *FarWatch) bool { return o == w })
			case a.Ends[at].Exit != nil:
				c.farEnded(w, *a.Ends[at].Exit)
			}
		}
	}
}

// farEnded tells a process that one of another node has ended, and ends it if they were linked and the other
// one failed.
func (c *Courier) farEnded(w *FarWatch, x kernel.Exit) {
	if len(c.dropFar(func(o *FarWatch) bool { return o == w })) == 0 {
		return // it was ended meanwhile
	}
	s := post.Signal{
		Kind:   post.MonitorDown,
		PID:    w.Of.PID,
		Node:   c.cfg.Name(w.Of.Node),
		Ref:    w.Ref,
		Reason: string(x.Reason),
	}
	if w.Ref != "" {
		c.told(w.By, s)
		return
	}
	if !x.Failed() {
		return
	}
	s.Kind = post.LinkExit
	c.told(w.By, s)
	if c.cfg.Events != nil {
		c.cfg.Events.Add(kernel.Event{Level: kernel.LevelWarn, PID: &w.By, Kind: "process.linked",
			Message: fmt.Sprintf("process %s, to which it is linked, crashed: %s", c.AddressOf(w.Of), x.Message)})
	}
	if err := c.signal(w.By, "TERM"); err != nil {
		c.cfg.Logger.Debug("a linked process could not be ended", "pid", w.By, "error", err)
	}
}

// linkOff ends a link with a process of another node. The other node hears of it now, or at its next look.
func (c *Courier) linkOff(pid kernel.PID, of kernel.Address) {
	if len(c.dropFar(func(o *FarWatch) bool { return o.links(pid, of) })) == 0 ||
		!c.cfg.Alive(of.Node) {
		return
	}
	_, _ = c.askFar(of.Node, farAsk{Op: "unlink", Pair: farPair{Of: of.PID, By: pid, Link: true}}) // within lookWait
}
