package courier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// A town is couriers that are joined by pipes.
type town struct {
	mu    sync.Mutex
	nodes map[string]*Courier
	table map[string]*kernel.Table
	dirs  map[string]string
	weigh func(Act) error
}

func newTown(t testing.TB, names ...string) *town {
	w := &town{nodes: map[string]*Courier{}, table: map[string]*kernel.Table{}, dirs: map[string]string{}}
	for _, n := range names {
		w.dirs[n] = t.TempDir()
		w.start(t, n)
	}
	t.Cleanup(func() {
		for _, n := range names {
			w.kill(n)
		}
	})
	return w
}

func (w *town) courier(n string) *Courier {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[n]
}

func (w *town) start(t testing.TB, name string) {
	t.Helper()
	c, err := Open(Config{Node: name, Dir: w.dirs[name],
		Dial: func(_ context.Context, to string) (net.Conn, error) {
			there := w.courier(to)
			if there == nil {
				return nil, errors.New("nobody is there")
			}
			here, other := net.Pipe()
			go there.Serve(name, other)
			return here, nil
		},
		Alive: func(n string) bool { return w.courier(n) != nil },
		Nodes: func() (out []string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for n, c := range w.nodes {
				if c != nil && n != name {
					out = append(out, n)
				}
			}
			return out
		},
		Resolve: func(ref string) (string, error) {
			if w.dirs[ref] == "" {
				return "", fmt.Errorf("node %q: no member has this name", ref)
			}
			return ref, nil
		},
		Locate: func(_ context.Context, node, named string) ([]kernel.Entry, error) {
			if c := w.courier(node); c != nil {
				return c.Named(named), nil
			}
			return nil, errors.New("it is down")
		},
		Weigh: func(a Act) error {
			if w.weigh != nil {
				return w.weigh(a)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	table := kernel.NewTable(kernel.TableConfig{First: kernel.PID(1 + time.Now().UnixNano()%1e9)}, time.Now())
	c.Start(table, func(pid kernel.PID, s string) error {
		if s == "KILL" {
			_, err := table.Exit(pid, kernel.ExitOf(-1, ""), time.Now())
			c.Ended(pid)
			return err
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[name], w.table[name] = c, table
}

func (w *town) kill(name string) {
	c := w.courier(name)
	w.mu.Lock()
	w.nodes[name] = nil
	w.mu.Unlock()
	if c != nil {
		_ = c.Close()
	}
}

// process begins a process on a node.
func (w *town) process(t testing.TB, node, name string, change ...func(*kernel.Entry)) kernel.PID {
	t.Helper()
	e := kernel.Entry{Kind: kernel.KindNative, Name: name, Capabilities: kernel.DefaultCapabilities()}
	e.Capabilities.Limits.Messages = 0
	for _, c := range change {
		c(&e)
	}
	e, err := w.table[node].Adopt(e, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return e.PID
}

func say(t testing.TB, to, text string, change ...func(*post.Message)) *post.Message {
	t.Helper()
	target, err := post.ParseTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	m := &post.Message{To: target, Payload: post.TextOf(text)}
	for _, c := range change {
		c(m)
	}
	return m
}

func reliable(m *post.Message) { m.Reliable = true }
func durable(m *post.Message)  { m.Reliable, m.Durable = true, true }

func receive(t testing.TB, c *Courier, pid kernel.PID) *post.Message {
	t.Helper()
	all, err := c.Receive(t.Context(), pid, 1, 10*time.Second)
	if err != nil || len(all) != 1 {
		t.Fatalf("process %s received %d messages, %v", pid, len(all), err)
	}
	return all[0]
}

func reasonOf(err error) post.Reason {
	if f, ok := errors.AsType[*post.Failure](err); ok {
		return f.Reason
	}
	return ""
}

// Messages, requests and their replies find a process here and on another node, by PID and by
// name.
func TestMessagesReachTheirProcess(t *testing.T) {
	t.Parallel()
	w := newTown(t, "a", "b")
	a, b := w.courier("a"), w.courier("b")
	from, near, far := w.process(t, "a", "from"), w.process(t, "a", "near"), w.process(t, "b", "far")
	for to, at := range map[string]struct {
		c   *Courier
		pid kernel.PID
	}{near.String(): {a, near}, "name:near": {a, near}, "b:" + far.String(): {b, far}, "name:far": {b, far},
		"name:far@b": {b, far}} {
		sent, err := a.Send(t.Context(), from, say(t, to, "hello"), false)
		if err != nil || sent.State != "delivered" {
			t.Errorf("%s: %+v, %v", to, sent, err)
			continue
		}
		if m := receive(t, at.c, at.pid); m.Payload.Text != "hello" || m.From != (kernel.Address{Node: "a", PID: from}) {
			t.Errorf("%s: received %+v", to, m)
		}
		answers := make(chan error, 1)
		go func() {
			m := receive(t, at.c, at.pid)
			answers <- at.c.Reply(at.pid, m.ID, post.TextOf("re: "+m.Payload.Text))
		}()
		answer, err := a.Request(t.Context(), from, say(t, to, "question"))
		if err != nil || answer.Payload.Text != "re: question" {
			t.Errorf("%s: answered %+v, %v", to, answer, err)
		}
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	for to, want := range map[string]post.Reason{"999": post.TargetNotFound, "b:999": post.TargetNotFound,
		"name:none": post.TargetNotFound, "z:1": post.TargetNotFound, "name:near@b": post.TargetNotFound} {
		if _, err := a.Send(t.Context(), from, say(t, to, "x"), false); reasonOf(err) != want {
			t.Errorf("%s: %v, want %s", to, err, want)
		}
	}
	w.kill("b")
	if _, err := a.Send(t.Context(), from, say(t, "b:"+far.String(), "x"), false); reasonOf(err) != post.Unreachable {
		t.Errorf("a node that is down: %v", err)
	}
}

// What a process may not, it may not: by its scope, its limit, its company, and by the gate, where
// a defer does not deliver and says so.
func TestMessagesAreRefused(t *testing.T) {
	t.Parallel()
	w := newTown(t, "a", "b")
	a := w.courier("a")
	to, far := w.process(t, "a", "to"), w.process(t, "b", "far", func(e *kernel.Entry) { e.Company = "two" })
	ofOne := func(e *kernel.Entry) { e.Company = "one" }
	for name, c := range map[string]struct {
		who  func(*kernel.Entry)
		to   string
		want post.Reason
	}{
		"no ipc": {func(e *kernel.Entry) { e.Capabilities.CanIPC = false }, to.String(), post.NotAllowed},
		"parent only": {func(e *kernel.Entry) { e.Capabilities.Scope.Kind = kernel.ScopeParentOnly }, to.String(),
			post.NotAllowed},
		"restricted, there": {func(e *kernel.Entry) { e.Capabilities.Scope.Kind = kernel.ScopeRestricted },
			"b:" + far.String(), post.NotAllowed},
		"limit": {func(e *kernel.Entry) { e.Capabilities.Limits.Messages, e.Use.MessagesSent = 3, 3 },
			to.String(), post.LimitExceeded},
		"another company": {ofOne, "b:" + far.String(), post.NotAllowed},
		"its name":        {ofOne, "name:far", post.TargetNotFound},
		"no company":      {ofOne, to.String(), ""},
	} {
		pid := w.process(t, "a", "who", c.who)
		if _, err := a.Send(t.Context(), pid, say(t, c.to, "x"), false); reasonOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	receive(t, a, to)

	from := w.process(t, "a", "from")
	for _, want := range []post.Reason{post.GovernanceDenied, post.Deferred} {
		w.weigh = func(act Act) error {
			if act.Tool == "rm" {
				return post.Fail(want, "a rule says so")
			}
			return nil
		}
		call := func(m *post.Message) {
			m.Payload = post.Payload{Kind: post.ToolCall, Tool: "rm", JSON: json.RawMessage(`{}`)}
		}
		if _, err := a.Send(t.Context(), from, say(t, to.String(), "", call), false); reasonOf(err) != want {
			t.Errorf("the gate: %v, want %s", err, want)
		}
		if got, _ := a.Receive(t.Context(), to, 1, 0); len(got) != 0 {
			t.Errorf("%s, and delivered", want)
		}
		l := a.Office().TakeLetters(nil, want, 10)
		if len(l) != 1 {
			t.Errorf("%s: dead letters are %+v", want, l)
		}
	}
}

// The second gate asks for the receiver of a tool call.
func TestHandlersGate(t *testing.T) {
	t.Parallel()
	w := newTown(t, "a")
	a := w.courier("a")
	from := w.process(t, "a", "from")
	to := w.process(t, "a", "to", func(e *kernel.Entry) { e.Capabilities.CanExecTools = false })
	errs := make(chan error, 1)
	go func() {
		_, err := a.Request(t.Context(), from, say(t, to.String(), "", func(m *post.Message) {
			m.Payload = post.Payload{Kind: post.ToolCall, Tool: "grep", JSON: json.RawMessage(`{}`)}
		}))
		errs <- err
	}()
	if got, err := a.Receive(t.Context(), to, 1, 300*time.Millisecond); len(got) != 0 || err != nil {
		t.Errorf("a process that may call no tools was told to: %v, %v", got, err)
	}
	if err := <-errs; reasonOf(err) != post.GovernanceDenied {
		t.Errorf("its caller got %v", err)
	}
}

func TestMessagesForMany(t *testing.T) {
	t.Parallel()
	w := newTown(t, "a", "b")
	in := func(g string) func(*kernel.Entry) { return func(e *kernel.Entry) { e.Group = g } }
	from, one, two, three := w.process(t, "a", "from"), w.process(t, "a", "x", in("app/web")),
		w.process(t, "b", "y", in("app")), w.process(t, "b", "z", in("apple"))
	sent, err := w.courier("a").Send(t.Context(), from, say(t, "group:app", "g"), false)
	if err != nil || sent.Receivers != 1 || sent.Nodes != 1 {
		t.Errorf("%+v, %v", sent, err)
	}
	receive(t, w.courier("a"), one)
	receive(t, w.courier("b"), two)
	if got, _ := w.courier("b").Receive(t.Context(), three, 1, 0); len(got) != 0 {
		t.Error("another group got it")
	}
	if sent, err := w.courier("a").Send(t.Context(), from, say(t, "broadcast@b", "b"), false); err != nil ||
		sent.Nodes != 1 || sent.Receivers != 0 {
		t.Errorf("%+v, %v", sent, err)
	}
	receive(t, w.courier("b"), three)
}

// A reliable message that arrives while nobody handles it is handled by whoever takes the name
// over, on another node, and a durable one survives its sender's node.
func TestReliableMessagesAreHandled(t *testing.T) {
	t.Parallel()
	w := newTown(t, "a", "b", "c")
	from, worker := w.process(t, "a", "from"), w.process(t, "b", "worker")
	states := make(chan Sent, 1)
	go func() {
		sent, err := w.courier("a").Send(t.Context(), from, say(t, "name:worker", "job", reliable), true)
		if err != nil {
			t.Error(err)
		}
		states <- sent
	}()
	first := receive(t, w.courier("b"), worker)
	w.kill("b") // in the middle
	successor := w.process(t, "c", "worker")
	second := receive(t, w.courier("c"), successor)
	if second.ID != first.ID || second.Attempt != 2 {
		t.Errorf("handed out again is %+v", second)
	}
	if err := w.courier("c").Ack(successor, second.ID); err != nil {
		t.Error(err)
	}
	if sent := <-states; sent.State != "acknowledged" {
		t.Errorf("the sender got %+v", sent)
	}

	sent, err := w.courier("a").Send(t.Context(), from, say(t, "name:later", "job", durable), false)
	if err != nil || sent.State != "kept" {
		t.Fatalf("%+v, %v", sent, err)
	}
	w.kill("a")
	w.start(t, "a")
	later := w.process(t, "c", "later")
	m := receive(t, w.courier("c"), later)
	if m.ID != sent.ID {
		t.Errorf("received %+v", m)
	}
	if err := w.courier("c").Ack(later, m.ID); err != nil {
		t.Error(err)
	}
	for n := 0; len(w.courier("a").Office().Outbox()) > 0; n++ {
		if time.Sleep(10 * time.Millisecond); n > 500 {
			t.Fatal("it is still in the outbox")
		}
	}
	w.kill("c")
	w.start(t, "c")
	if ids := w.courier("c").journal.handledIDs(); len(ids) != 1 || ids[0] != sent.ID {
		t.Errorf("after a restart these are known as handled: %v", ids)
	}
	if len(w.courier("a").journal.kept) != 0 {
		t.Error("it is still on disk")
	}
}

// Signals that the kernel carries out come from the node, the parent or a supervisor.
func TestSignals(t *testing.T) {
	t.Parallel()
	w := newTown(t, "a", "b")
	signal := func(k post.SignalKind) func(*post.Message) {
		return func(m *post.Message) { m.Payload = post.Payload{Kind: post.OfSignal, Signal: &post.Signal{Kind: k}} }
	}
	stranger, child := w.process(t, "a", "stranger"), w.process(t, "b", "child")
	to := "b:" + child.String()
	if _, err := w.courier("a").Send(t.Context(), stranger, say(t, to, "", signal(post.Kill)),
		false); reasonOf(err) != post.NotAllowed {
		t.Errorf("a stranger: %v", err)
	}
	if _, err := w.courier("a").Send(t.Context(), stranger, say(t, to, "", signal(post.MonitorDown)),
		false); reasonOf(err) != post.NotAllowed {
		t.Errorf("a forged signal: %v", err)
	}
	if _, err := w.courier("a").Send(t.Context(), stranger, say(t, to, "", signal(post.UserDefined)), false); err != nil {
		t.Error(err)
	}
	if m := receive(t, w.courier("b"), child); m.Payload.Signal.Kind != post.UserDefined {
		t.Errorf("received %+v", m)
	}
	if sent, err := w.courier("a").Send(t.Context(), kernel.KernelPID, say(t, to, "", signal(post.Kill)),
		false); err != nil || sent.State != "signalled" {
		t.Errorf("the kernel: %+v, %v", sent, err)
	}
	if e, _ := w.table["b"].Find(child); e.State != kernel.Exited {
		t.Errorf("the process is %s", e.State)
	}
	answer, err := w.courier("a").Request(t.Context(), stranger, say(t, "kernel@b", "", signal(post.Ping)))
	if err != nil || answer.Payload.Signal.Kind != post.Pong {
		t.Errorf("ping: %+v, %v", answer, err)
	}
}

func TestTokensNameTheirProcess(t *testing.T) {
	t.Parallel()
	w := newTown(t, "a")
	a := w.courier("a")
	pid, other := w.process(t, "a", "x"), w.process(t, "a", "y")
	if e, ok := a.Holder(a.Token(pid)); !ok || e.PID != pid {
		t.Errorf("the token names %v, %v", e.PID, ok)
	}
	forged := strings.Replace(a.Token(pid), pid.String(), other.String(), 1)
	for _, bad := range []string{"", TokenPrefix, forged, a.Token(pid) + "0", strings.TrimPrefix(a.Token(pid),
		TokenPrefix), a.Token(999)} {
		if e, ok := a.Holder(bad); ok {
			t.Errorf("%q names %s", bad, e.PID)
		}
	}
	if _, err := w.table["a"].Exit(pid, kernel.ExitOf(0, ""), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, ok := a.Holder(a.Token(pid)); ok {
		t.Error("a process that has ended still speaks")
	}
}

// A journal that is torn or damaged has what was written before.
func TestJournalsMayBeTorn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	j, _, err := openJournal(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		m := say(t, "name:x", fmt.Sprint(n), durable)
		m.ID, m.At, m.Deadline = fmt.Sprint("m", n), now, now.Add(time.Hour)
		if err := j.keep(m); err != nil {
			t.Fatal(err)
		}
	}
	j.settle("m0")
	epoch := j.epoch
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, journalName))
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for n := 0; n <= len(whole); n += 7 {
		if err := os.WriteFile(filepath.Join(dir, journalName), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		j, kept, err := openJournal(dir, now)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if n > 40 && j.epoch <= epoch {
			t.Fatalf("cut at %d: epoch %d is not above %d", n, j.epoch, epoch)
		}
		if last = max(last, len(kept)); len(kept) > 5 {
			t.Fatalf("cut at %d: %d messages", n, len(kept))
		}
		j.close()
	}
	if last < 4 {
		t.Errorf("at most %d messages were read", last)
	}
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 1
	if err := os.WriteFile(filepath.Join(dir, journalName), flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	j, kept, err := openJournal(dir, now)
	if err != nil || len(kept) == 0 || len(kept) > 4 || !j.damaged {
		t.Errorf("a flipped bit: %d messages, damaged %t, %v", len(kept), j.damaged, err)
	}
	if aside, err := os.ReadFile(filepath.Join(dir, journalName+".damaged")); err != nil || !bytes.Equal(aside, flipped) {
		t.Errorf("the damaged file is not set aside: %v", err)
	}
	j.close()
}

// One process sends, another reads, with every check on the way.
func BenchmarkLocalSend(b *testing.B) {
	w := newTown(b, "a")
	a := w.courier("a")
	from, to := w.process(b, "a", "from"), w.process(b, "a", "to")
	target := say(b, to.String(), "").To
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if _, err := a.Send(b.Context(), from, &post.Message{To: target, Payload: post.TextOf("hello")}, false); err != nil {
			b.Fatal(err)
		}
		if n%64 == 63 {
			if got, err := a.Receive(b.Context(), to, 64, 0); err != nil || len(got) != 64 {
				b.Fatal(len(got), err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

// One process asks and waits, another answers.
func BenchmarkLocalRequest(b *testing.B) {
	w := newTown(b, "a")
	a := w.courier("a")
	from, to := w.process(b, "a", "from"), w.process(b, "a", "to")
	go func() {
		for b.Context().Err() == nil {
			all, _ := a.Receive(b.Context(), to, 16, time.Second)
			for _, m := range all {
				_ = a.Reply(to, m.ID, post.TextOf("world"))
			}
		}
	}()
	target := say(b, to.String(), "").To
	var took []time.Duration
	for b.Loop() {
		at := time.Now()
		if _, err := a.Request(b.Context(), from, &post.Message{To: target, Payload: post.TextOf("hello")}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(at))
	}
	report(b, took)
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
}

// offered are services with one provider each, by company/name; those of the mesh have no company.
type offered map[string]kernel.Address

func (o offered) find(company, name string) (a kernel.Address, known bool) {
	if !strings.Contains(name, "/") {
		company = ""
	}
	a, known = o[company+"/"+name]
	return a, known
}

func (o offered) Providers(company, name string) ([]kernel.Address, bool) {
	a, known := o.find(company, name)
	if !known || a.PID == 0 {
		return nil, known
	}
	return []kernel.Address{a}, true
}

func (o offered) Call(ctx context.Context, company, _, name, method string, params json.RawMessage,
	ask Ask) (json.RawMessage, kernel.Address, error) {
	to, _ := o.find(company, name)
	body, err := json.Marshal(map[string]any{"service": name, "method": method, "params": params})
	if err != nil {
		return nil, to, err
	}
	reply, _, err := ask(ctx, to, body)
	return reply, to, err
}

// A process reaches the services of its company's apps as service:APP/SERVICE, on any node, and a service of
// the mesh by its name, which goes first. Those of another company's apps are not there for it. The gate weighs a call
// of an app's method as the command app.call.
func TestServicesOfAppsAreReachedByMessage(t *testing.T) {
	t.Parallel()
	w := newTown(t, "n1", "n2")
	of := func(company string) func(*kernel.Entry) { return func(e *kernel.Entry) { e.Company = company } }
	till := w.process(t, "n2", "till", of("acme"))
	bank := w.process(t, "n2", "bank")
	services := offered{"acme/shop/till": {Node: "n2", PID: till}, "/bank": {Node: "n2", PID: bank},
		"acme/bank/open": {Node: "n2", PID: till}, "acme/shop/closed": {}}
	for _, n := range []string{"n1", "n2"} {
		w.courier(n).cfg.Services = services
	}
	for _, pid := range []kernel.PID{till, bank} {
		go func() {
			for {
				all, err := w.courier("n2").Receive(t.Context(), pid, 1, time.Second)
				if err != nil {
					return
				}
				for _, m := range all {
					_ = w.courier("n2").Reply(pid, m.ID, post.Payload{Kind: post.JSON, JSON: m.Payload.JSON})
				}
			}
		}()
	}
	mine, other, none := w.process(t, "n1", "mine", of("acme")), w.process(t, "n1", "other", of("evil")),
		w.process(t, "n1", "none")
	ask := func(by kernel.PID, to string) (string, error) {
		target, err := post.ParseTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		m := &post.Message{To: target, Payload: post.Payload{Kind: post.JSON, JSON: json.RawMessage("1")},
			Deadline: time.Now().Add(time.Minute)}
		answer, err := w.courier("n1").Request(t.Context(), by, m)
		if err != nil {
			return "", err
		}
		return string(answer.Payload.JSON), nil
	}
	for _, c := range []struct {
		by       kernel.PID
		to, want string
	}{
		{mine, "service:shop/till/sell", `{"method":"sell","params":1,"service":"shop/till"}`},
		{mine, "service:shop/till", "1"}, // no method: the message as it is
		{mine, "service:bank/open", `{"method":"open","params":1,"service":"bank"}`},
		{mine, "service:bank/open/now", `{"method":"now","params":1,"service":"bank/open"}`},
		{none, "service:bank/open", `{"method":"open","params":1,"service":"bank"}`},
		{other, "service:bank/open", `{"method":"open","params":1,"service":"bank"}`},
	} {
		if got, err := ask(c.by, c.to); err != nil || got != c.want {
			t.Errorf("process %s asked %s and got %s, %v", c.by, c.to, got, err)
		}
	}
	for by, to := range map[kernel.PID]string{other: "service:shop/till/sell", none: "service:shop/till/sell",
		mine: "service:shop/closed/sell"} {
		if got, err := ask(by, to); err == nil {
			t.Errorf("process %s asked %s and got %s", by, to, got)
		}
	}
	// A rule about app.call holds for messages too, of methods of apps alone.
	w.weigh = func(a Act) error {
		if a.Action == "app.call" {
			return post.Fail(post.GovernanceDenied, "no calls today")
		}
		return nil
	}
	denied := w.process(t, "n1", "denied", of("acme"), func(e *kernel.Entry) { e.Agent = "ada" })
	for to, want := range map[string]bool{"service:shop/till/sell": false, "service:shop/till": true,
		"service:bank/open": true} {
		_, err := ask(denied, to)
		f, is := errors.AsType[*post.Failure](err)
		if (err == nil) != want || err != nil && (!is || f.Reason != post.GovernanceDenied) {
			t.Errorf("with a rule against calls, %s: %v", to, err)
		}
	}
}
