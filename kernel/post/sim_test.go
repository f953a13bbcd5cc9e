package post

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// A world is three offices in virtual time, joined by a network that loses, doubles and overtakes
// frames, with processes that read, answer, die and are started again, also on other nodes. It
// notes what was sent and read, and its checks compare.
type world struct {
	r      *rand.Rand
	now    time.Time
	bugs   bugs
	events events
	count  uint64
	nodes  [3]*simNode
	wild   bool // the network and the processes misbehave
	wrong  []string
	plain  map[string]*fate
	sure   map[string]*fate // reliable ones
	asked  map[string]*fate
	names  map[string]kernel.Address // where a named process runs
	met    map[Reason]uint64         // what happened, of the last lives
}

// A fate is what became of a message.
type fate struct {
	m         *Message
	node      *simNode // of its sender
	life      uint64   // the epoch of the sender's node when it was sent
	ticket    *Ticket  // nil: it was delivered at once
	taken     int
	acked     map[int]uint64 // by node: the epoch in which it was acknowledged there
	lastTry   time.Time
	tries     int
	exposed   bool // its receiver's node was killed while it was there
	forgotten bool // its sender's node was killed, and it is not durable
}

type simNode struct {
	number  int
	id      string
	epoch   uint64
	office  *Office // nil: the node is dead
	next    kernel.PID
	procs   map[kernel.PID]string // by name
	outbox  map[string]*Message   // on disk
	handled []string              // on disk
	dead    map[string]bool       // messages in dead letters of any life
}

type event struct {
	at time.Time
	n  uint64
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	x := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return x
}

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.events, event{at: w.now.Add(d), n: w.count, do: do})
}

func (w *world) some(most time.Duration) time.Duration {
	return time.Duration(w.r.Int64N(int64(most))) + time.Microsecond
}

func (w *world) chance(percent int) bool { return w.wild && w.r.IntN(100) < percent }

func (w *world) fault(format string, args ...any) {
	if len(w.wrong) < 5 {
		w.wrong = append(w.wrong, fmt.Sprintf("%s: ", w.now.Sub(epoch0))+fmt.Sprintf(format, args...))
	}
}

var epoch0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(seed uint64, b bugs) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 7)), now: epoch0, bugs: b, wild: true, plain: map[string]*fate{},
		sure: map[string]*fate{}, asked: map[string]*fate{},
		names: map[string]kernel.Address{}, met: map[Reason]uint64{}}
	for i := range w.nodes {
		w.nodes[i] = &simNode{number: i, id: fmt.Sprint("n", i), next: 1, outbox: map[string]*Message{},
			dead: map[string]bool{}}
		w.start(w.nodes[i])
	}
	for i := range 6 {
		w.begin(w.nodes[i%3], fmt.Sprint("w", i))
	}
	return w
}

// start starts a node, with what is on its disk.
func (w *world) start(n *simNode) {
	n.epoch++
	n.procs = map[kernel.PID]string{}
	life := n.epoch
	n.office = New(Config{Node: n.id, Epoch: n.epoch, bugs: w.bugs, inboxMessages: 6, linkWindow: 12,
		Alive:   func(pid kernel.PID) bool { return n.procs[pid] != "" },
		Out:     func(to string, f Frame) { w.carry(n, to, f) },
		Settled: func(id string) { delete(n.outbox, id) }})
	n.office.Handled(n.handled)
	for _, id := range sortedKeys(n.outbox) {
		t, err := n.office.Keep(w.now, n.outbox[id])
		if err != nil {
			w.fault("a durable message is not kept: %v", err)
		}
		f := w.sure[id]
		f.ticket, f.life, f.tries = t, n.epoch, 0
	}
	var beat func()
	beat = func() {
		if n.office == nil || n.epoch != life {
			return
		}
		n.office.Tick(w.now)
		for _, a := range n.office.Due(w.now) {
			w.try(n, a)
		}
		w.after(50*time.Millisecond, beat)
	}
	beat()
}

// try sends an attempt where its target is now.
func (w *world) try(n *simNode, a Attempt) {
	f := w.sure[a.Message.ID]
	if f.tries > 0 {
		if gap := w.now.Sub(f.lastTry); gap < retryAfter(f.tries) {
			w.fault("attempt %d of %s came %s after the one before", f.tries+1, a.Message.ID, gap)
		}
	}
	f.tries++
	f.lastTry = w.now
	to := a.To
	if there := w.node(to.Node); there == nil || there.office == nil || there.procs[to.PID] == "" {
		var ok bool
		if to, ok = w.names[a.Message.To.Name]; !ok {
			n.office.Try(w.now, a.Message.ID, to, Fail(TargetNotFound, "no process is called %s", a.Message.To.Name))
			return
		}
	}
	n.office.Try(w.now, a.Message.ID, to, nil)
}

func (w *world) node(id string) *simNode {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// carry is the network.
func (w *world) carry(from *simNode, to string, f Frame) {
	life := from.epoch
	copies := 1
	switch {
	case w.chance(8):
		copies = 0
	case w.chance(8):
		copies = 2
	}
	for range copies {
		delay := w.some(2 * time.Millisecond)
		if w.chance(10) {
			delay = w.some(300 * time.Millisecond)
		}
		w.after(delay, func() {
			there := w.node(to)
			if there.office == nil || from.epoch != life || from.office == nil {
				return
			}
			g := f
			if f.Message != nil {
				m := *f.Message
				g.Message = &m
			}
			there.office.Arrive(w.now, from.id, g)
		})
	}
}

// begin starts a named process on a node; it reads until it ends.
func (w *world) begin(n *simNode, name string) {
	pid := n.next
	n.next++
	n.procs[pid] = name
	w.names[name] = kernel.Address{Node: n.id, PID: pid}
	life := n.epoch
	var read func()
	read = func() {
		if n.office == nil || n.epoch != life || n.procs[pid] == "" {
			return
		}
		got, err := n.office.Take(w.now, pid, 1+w.r.IntN(8))
		if err != nil {
			w.fault("process %s can not read: %v", name, err)
		}
		for _, m := range got {
			w.received(n, pid, m)
		}
		pause := 20 * time.Millisecond
		if w.chance(3) {
			pause = 7 * time.Second // it hangs, and its inbox fills
		}
		w.after(w.some(pause), read)
	}
	read()
}

func (w *world) received(n *simNode, pid kernel.PID, m *Message) {
	life := n.epoch
	there := func() bool { return n.office != nil && n.epoch == life && n.procs[pid] != "" }
	switch {
	case m.Reliable:
		f := w.sure[m.ID]
		f.taken++
		if at, ok := f.acked[n.number]; ok && (m.Durable || at == n.epoch) {
			w.fault("%s was handled on %s and is handed out there again", m.ID, n.id)
		}
		if w.chance(10) {
			return // the handler fails without a word
		}
		w.after(w.some(time.Second), func() {
			if !there() {
				return
			}
			if m.Durable {
				n.handled = append(n.handled, m.ID)
			}
			if err := n.office.Ack(pid, m.ID); err == nil {
				f.acked[n.number] = n.epoch
			}
		})
	case m.WantsReply:
		f := w.asked[m.ID]
		if f.taken++; f.taken > 1 {
			w.fault("request %s is handed out twice", m.ID)
		}
		if w.chance(10) {
			return
		}
		pause := w.some(time.Second)
		if w.chance(10) {
			pause = 6 * time.Second
		}
		w.after(pause, func() {
			if there() {
				_ = n.office.Reply(w.now, pid, m.ID, TextOf("re: "+m.Payload.Text)) // its caller may wait no longer
			}
		})
	default:
		f := w.plain[m.ID]
		if f.taken++; f.taken > 1 {
			w.fault("%s is handed out twice", m.ID)
		}
	}
}

// end ends a process, which is started again, here or on another node.
func (w *world) end(n *simNode, pid kernel.PID) {
	name := n.procs[pid]
	delete(n.procs, pid)
	delete(w.names, name)
	n.office.Exited(w.now, pid)
	w.again(name, 100*time.Millisecond)
}

func (w *world) again(name string, pause time.Duration) {
	w.after(pause+w.some(time.Second), func() {
		n := w.nodes[w.r.IntN(3)]
		if n.office == nil {
			w.again(name, time.Second)
			return
		}
		w.begin(n, name)
	})
}

// kill kills a node: what is not on its disk is lost.
func (w *world) kill(n *simNode) {
	w.noteLetters(n)
	id := n.id
	for _, all := range []map[string]*fate{w.plain, w.sure, w.asked} {
		for _, f := range all {
			f.exposed = true // it may have been on this node
			if f.node == n {
				f.forgotten = f.forgotten || !f.m.Durable
			}
		}
	}
	for _, pid := range sortedKeys(n.procs) {
		delete(w.names, n.procs[pid])
		w.again(n.procs[pid], 4*time.Second)
	}
	n.office, n.procs = nil, nil
	w.after(3*time.Second, func() {
		for _, other := range w.nodes {
			if other.office != nil && other != n {
				// The network of the simulation takes frames at once.
				other.office.Lost(w.now, id, "it is down", math.MaxUint64, math.MaxUint64)
			}
		}
	})
	w.after(3*time.Second+w.some(6*time.Second), func() { w.start(n) })
}

func (w *world) noteLetters(n *simNode) {
	for _, l := range n.office.DeadLetters(0, DeadLetterMost) {
		n.dead[l.Message.ID] = true
	}
}

// act sends something from somewhere to somebody.
func (w *world) act() {
	n := w.nodes[w.r.IntN(3)]
	if n.office == nil || len(n.procs) == 0 {
		return
	}
	pids := sortedKeys(n.procs)
	m := &Message{From: kernel.Address{Node: n.id, PID: pids[w.r.IntN(len(pids))]}, Payload: TextOf("x")}
	name := fmt.Sprint("w", w.r.IntN(6))
	to, ok := w.names[name]
	if !ok || w.chance(3) {
		to = kernel.Address{Node: fmt.Sprint("n", w.r.IntN(3)), PID: kernel.PID(w.r.IntN(20))} // perhaps nobody
	}
	m.To = Process(to)
	f := &fate{m: m, node: n, life: n.epoch, acked: map[int]uint64{}}
	kind := w.r.IntN(10)
	switch {
	case kind < 2:
		m.To, m.Reliable = Target{Kind: ToName, Name: name}, true
	case kind < 3:
		m.To, m.Durable = Target{Kind: ToName, Name: name}, true
	case kind < 6:
		m.WantsReply = true
	}
	n.office.Stamp(w.now, m)
	m.Payload.Text = m.ID
	if err := m.Validate(w.now); err != nil {
		w.fault("%v", err)
		return
	}
	var err error
	switch {
	case m.Reliable:
		w.sure[m.ID] = f
		if m.Durable {
			n.outbox[m.ID] = m
		}
		f.ticket, err = n.office.Keep(w.now, m)
	case m.WantsReply:
		w.asked[m.ID] = f
		f.ticket, err = n.office.Ask(w.now, m, to)
	default:
		w.plain[m.ID] = f
		f.ticket, err = n.office.Send(w.now, m, to)
	}
	if err != nil {
		w.fault("%s: %v", m.ID, err)
	}
}

func (w *world) run(d time.Duration) {
	for end := w.now.Add(d); len(w.events) > 0 && !w.events[0].at.After(end); {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
}

// play lets the world be wild for a time, and then quiet, and checks.
func play(seed uint64, b bugs) *world {
	w := newWorld(seed, b)
	var act func()
	act = func() {
		if !w.wild {
			return
		}
		for range 1 + w.r.IntN(4) {
			w.act()
		}
		w.after(w.some(60*time.Millisecond), act)
	}
	act()
	var trouble func()
	trouble = func() {
		if !w.wild {
			return
		}
		n := w.nodes[w.r.IntN(3)]
		switch {
		case n.office == nil:
		case w.r.IntN(4) == 0:
			w.kill(n)
		case len(n.procs) > 0:
			w.end(n, sortedKeys(n.procs)[w.r.IntN(len(n.procs))])
		}
		w.after(w.some(4*time.Second), trouble)
	}
	w.after(2*time.Second, trouble)
	w.run(30 * time.Second)
	w.wild = false
	w.run(120 * time.Second) // longer than all attempts of a reliable message
	w.check()
	for _, n := range w.nodes {
		for reason, k := range n.office.Figures().Dead {
			w.met[reason] += k
		}
		w.met["retry"] += n.office.Figures().Retries
		w.met["duplicate"] += n.office.Figures().Duplicates
	}
	return w
}

func over(t *Ticket) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

// check compares what was sent with what was read, when all is quiet.
func (w *world) check() {
	for _, n := range w.nodes {
		if n.office == nil {
			w.fault("%s is down", n.id)
			return
		}
		w.noteLetters(n)
	}
	dead := func(id string) bool {
		return slices.ContainsFunc(w.nodes[:], func(n *simNode) bool { return n.dead[id] })
	}
	for _, id := range sortedKeys(w.plain) {
		f := w.plain[id]
		if f.ticket == nil || f.forgotten {
			if f.taken == 0 && !f.exposed && !dead(id) {
				w.fault("%s was delivered, and nobody read it", id)
			}
			continue
		}
		if !over(f.ticket) {
			w.fault("%s waits for ever", id)
			continue
		}
		_, err := f.ticket.Result()
		var no *Failure
		errors.As(err, &no)
		switch {
		case err == nil && f.taken == 0 && !f.exposed && !dead(id):
			w.fault("%s was delivered, and nobody read it", id)
		case err != nil && !dead(id) && !f.exposed:
			w.fault("%s failed (%v) and is no dead letter", id, err)
		case err != nil && f.taken > 0 && no.Reason != Timeout && no.Reason != Unreachable:
			w.fault("%s was refused (%v) and read", id, err)
		}
	}
	for _, id := range sortedKeys(w.asked) {
		f := w.asked[id]
		if f.forgotten {
			continue
		}
		if !over(f.ticket) {
			w.fault("request %s waits for ever", id)
			continue
		}
		if a, err := f.ticket.Result(); err == nil && a.Payload.Text != "re: "+id {
			w.fault("request %s got the reply %q", id, a.Payload.Text)
		} else if err == nil && f.taken == 0 {
			w.fault("request %s was answered, and nobody read it", id)
		}
	}
	for _, id := range sortedKeys(w.sure) {
		f := w.sure[id]
		switch {
		case f.forgotten:
			continue
		case !over(f.ticket):
			w.fault("reliable %s waits for ever", id)
			continue
		}
		_, err := f.ticket.Result()
		switch {
		case err == nil && len(f.acked) == 0:
			w.fault("reliable %s ended well, and nobody handled it", id)
		case err != nil && f.m.Durable:
			w.fault("durable %s was given up: %v", id, err)
		case err != nil && !dead(id):
			w.fault("reliable %s was given up (%v) and is no dead letter", id, err)
		}
	}
	w.checkCredits()
}

func (w *world) checkCredits() {
	for _, n := range w.nodes {
		o := n.office
		if o.held != 0 || len(o.calls) != 0 || len(o.outbox) != 0 || o.outboxBytes != 0 || len(n.outbox) != 0 {
			w.fault("%s holds %d bytes, %d calls, %d reliable messages (%d bytes, %d on disk) when all is quiet", n.id, o.held,
				len(o.calls), len(o.outbox), o.outboxBytes, len(n.outbox))
		}
		for _, pid := range sortedKeys(o.inboxes) {
			if b := o.inboxes[pid]; b.used != 0 || b.bytes != 0 || len(b.wait) != 0 || len(b.taken) != 0 {
				w.fault("inbox %s:%s lost credits: %d messages and %d bytes are taken", n.id, pid, b.used, b.bytes)
			}
		}
		for _, to := range sortedKeys(o.links) {
			if l := o.links[to]; len(l.flights) != 0 || l.bytes != 0 || len(l.wait) != 0 {
				w.fault("the link from %s to %s lost %d credits", n.id, to, len(l.flights))
			}
		}
	}
}

const seeds = 12

// Nothing is lost in silence, nothing is handled twice, nothing waits for ever: in each of these
// histories of kills, lost, doubled and overtaken frames.
func TestMessagesThroughBadDays(t *testing.T) {
	t.Parallel()
	met := map[Reason]uint64{}
	for seed := range uint64(seeds) {
		w := play(seed, bugs{})
		for _, bad := range w.wrong {
			t.Errorf("seed %d: %s", seed, bad)
		}
		for reason, n := range w.met {
			met[reason] += n
		}
	}
	for _, r := range []Reason{TargetNotFound, InboxFull, Timeout, AgentExited, Unreachable, "retry", "duplicate"} {
		if met[r] == 0 {
			t.Errorf("no history has met %s", r)
		}
	}
	t.Log(met)
}

// The checkers are checked: each planted bug is found.
func TestPlantedBugsAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		bugs       bugs
	}{
		{"no deduplication", "handed out", bugs{noDeduplication: true}},
		{"lost credit", "waits for ever", bugs{loseCredits: true}},
		{"retry without backoff", "after the one before", bugs{noBackoff: true}},
	} {
		found := ""
		for seed := uint64(0); seed < seeds && found == ""; seed++ {
			found = strings.Join(play(seed, c.bugs).wrong, "; ")
		}
		if !strings.Contains(found, c.says) {
			t.Errorf("%s is not found in %d histories; said is: %s", c.name, seeds, found)
			continue
		}
		t.Logf("%s: %s", c.name, found[:min(len(found), 150)])
	}
}

// The same seed is the same history.
func TestHistoriesRepeat(t *testing.T) {
	t.Parallel()
	one, two := fmt.Sprint(play(3, bugs{noDeduplication: true}).wrong),
		fmt.Sprint(play(3, bugs{noDeduplication: true}).wrong)
	if one != two {
		t.Errorf("seed 3 went\n%s\nand then\n%s", one, two)
	}
}
