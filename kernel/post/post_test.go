package post

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
)

// one is an office with these living processes, whose frames are kept.
func one(bound int, pids ...kernel.PID) (o *Office, frames *[]Frame) {
	frames = new([]Frame)
	alive := map[kernel.PID]bool{}
	for _, p := range pids {
		alive[p] = true
	}
	return New(Config{Node: "a", Epoch: 1, Alive: func(p kernel.PID) bool { return alive[p] },
		Out: func(_ string, f Frame) { *frames = append(*frames, f) }, inboxMessages: bound}), frames
}

func message(o *Office, text string, change ...func(*Message)) *Message {
	m := &Message{From: kernel.Address{Node: "a", PID: 1}, To: Process(kernel.Address{PID: 2}), Payload: TextOf(text)}
	for _, c := range change {
		c(m)
	}
	o.Stamp(epoch0, m)
	return m
}

func here(pid kernel.PID) kernel.Address { return kernel.Address{Node: "a", PID: pid} }

func reasonOf(err error) Reason {
	var f *Failure
	if errors.As(err, &f) {
		return f.Reason
	}
	return ""
}

func TestTargetsAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"12": "12", "n1:12": "n1:12", "process:n1:12": "n1:12", "name:worker": "name:worker",
		"name:worker@n2": "name:worker@n2", "group:app/web": "group:app/web",
		"service:mail": "service:mail", "service:mail/send@n1": "service:mail/send@n1",
		"topic:build.done": "topic:build.done", "broadcast": "broadcast", "kernel@n3": "kernel@n3",
	} {
		got, err := ParseTarget(text)
		if err != nil || got.String() != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
		if again, err := ParseTarget(got.String()); err != nil || again != got {
			t.Errorf("%s is read again as %+v, %v", got, again, err)
		}
	}
	for text, want := range map[string]string{
		`12`: "12", `"broadcast"`: "broadcast", `"Kernel"`: "kernel", `{"Process":3}`: "3", `{"Topic":"a.b"}`: "topic:a.b",
		`{"ServiceMethod":{"service":"mail","method":"send"}}`:   "service:mail/send",
		`{"RemoteNode":{"node_id":"n2","target":{"Process":4}}}`: "n2:4",
		`{"remote_node":{"node_id":"n2","target":"kernel"}}`:     "kernel@n2",
	} {
		var got Target
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.String() != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "x", "-1", "name:", "name:a b", "name:a@", "topic:", "topic:a..b", "kernel@",
		"group:@n", ":1", strings.Repeat("9", 700)} {
		if got, err := ParseTarget(bad); err == nil || !strings.Contains(err.Error(), "name:NAME") {
			t.Errorf("%q is read as %s, or %v says too little", bad, got, err)
		}
	}
	for _, bad := range []string{`{}`, `{"Process":1,"Topic":"a"}`, `{"Nobody":1}`, `[1]`,
		`{"RemoteNode":{"node_id":"","target":1}}`,
		`{"RemoteNode":{"node_id":"a","target":{"RemoteNode":{"node_id":"b","target":1}}}}`} {
		var got Target
		if json.Unmarshal([]byte(bad), &got) == nil {
			t.Errorf("%s is read as %s", bad, got)
		}
	}
}

func TestPayloadsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		p    Payload
		says string
	}{
		"text":          {TextOf("x"), ""},
		"no text":       {TextOf(""), ""},
		"json":          {Payload{Kind: JSON, JSON: json.RawMessage(`{"a":1}`)}, ""},
		"no json":       {Payload{Kind: JSON}, "json is required"},
		"broken json":   {Payload{Kind: JSON, JSON: json.RawMessage(`{`)}, "not JSON"},
		"a call":        {Payload{Kind: ToolCall, Tool: "grep", JSON: json.RawMessage(`{}`)}, ""},
		"no tool":       {Payload{Kind: ToolCall}, "tool is required"},
		"a result":      {Payload{Kind: ToolResult, Call: "1", JSON: json.RawMessage(`2`)}, ""},
		"half a result": {Payload{Kind: ToolResult, Call: "1"}, "json is required"},
		"signal":        {Payload{Kind: OfSignal, Signal: &Signal{Kind: UserDefined, User: 7}}, ""},
		"no signal":     {Payload{Kind: OfSignal, Signal: &Signal{Kind: "dance"}}, "there is none"},
		"rvf":           {Payload{Kind: RVF, Segment: 16, Binary: []byte{1}}, ""},
		"two things":    {Payload{Kind: Binary, Binary: []byte{1}, Text: "x"}, "text does not belong"},
		"nothing":       {Payload{}, "kind"},
		"huge":          {Payload{Kind: Binary, Binary: make([]byte, MaxMessage+1)}, "at most"},
	} {
		err := c.p.Validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	o, _ := one(0)
	for says, change := range map[string]func(*Message){
		"to: required":                  func(m *Message) { m.To = Target{} },
		"a request is not reliable":     func(m *Message) { m.WantsReply, m.Reliable = true, true },
		"are for one receiver":          func(m *Message) { m.To, m.Durable = Target{Kind: ToBroadcast}, true },
		"not sent reliable messages":    func(m *Message) { m.To, m.Reliable = Target{Kind: ToKernel}, true },
		"wait: at most":                 func(m *Message) { m.Deadline = epoch0.Add(time.Hour) },
		"wait: the time":                func(m *Message) { m.Deadline = epoch0 },
		"an ID has at most 200 bytes":   func(m *Message) { m.Trace = strings.Repeat("x", 201) },
		"payload: kind \"\": give text": func(m *Message) { m.Payload = Payload{} },
	} {
		if err := message(o, "x", change).Validate(epoch0); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// Without a credit a sender waits in line; a reader gives credits back, and a sender who waits too
// long is told that the inbox is full.
func TestSendersWaitForCredits(t *testing.T) {
	o, _ := one(2, 1, 2)
	var tickets []*Ticket
	for _, text := range []string{"a", "b", "c", "d"} {
		ticket, err := o.Send(epoch0, message(o, text), here(2))
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	if tickets[0] != nil || tickets[1] != nil || over(tickets[2]) || over(tickets[3]) {
		t.Fatal("two messages have credits, and two wait")
	}
	got, _ := o.Take(epoch0, 2, 1)
	if len(got) != 1 || got[0].Payload.Text != "a" || !over(tickets[2]) || over(tickets[3]) {
		t.Fatalf("after %v one more has a credit", got)
	}
	if s := o.Inboxes()[0]; s.Queued != 2 || s.Waiting != 1 || s.Credits != 0 {
		t.Errorf("the inbox stands at %+v", s)
	}
	o.Tick(epoch0.Add(DefaultWait + 1))
	if _, err := tickets[3].Result(); !over(tickets[3]) || reasonOf(err) != InboxFull {
		t.Errorf("who waited too long got %v", err)
	}
	if l := o.DeadLetters(0, 10); len(l) != 1 || l[0].Message.Payload.Text != "d" || l[0].Reason != InboxFull {
		t.Errorf("dead letters: %+v", l)
	}
	got, _ = o.Take(epoch0, 2, 10)
	if len(got) != 2 || o.held != 0 {
		t.Errorf("left are %d messages, %d bytes are held", len(got), o.held)
	}
}

// A full inbox lets in who waits when half of it was read, or it is empty, and at a tick as far as there is
// room.
func TestAFullInboxIsReadDownToHalf(t *testing.T) {
	o, _ := one(8, 1, 2)
	fill := func() (waiting []*Ticket) {
		t.Helper()
		for range 12 {
			ticket, err := o.Send(epoch0, message(o, "x"), here(2))
			if err != nil {
				t.Fatal(err)
			}
			if ticket != nil && !over(ticket) {
				waiting = append(waiting, ticket)
			}
		}
		return waiting
	}
	in := func(all []*Ticket) (n int) {
		for _, ticket := range all {
			if over(ticket) {
				n++
			}
		}
		return n
	}
	take := func(n int) {
		t.Helper()
		if got, err := o.TakeSome(epoch0, 2, n, 1<<20); err != nil || len(got) != n {
			t.Fatalf("took %d, want %d: %v", len(got), n, err)
		}
	}
	waiting := fill()
	take(3)
	if len(waiting) != 4 || in(waiting) != 0 {
		t.Fatalf("%d wait, %d are let in after three of eight", len(waiting), in(waiting))
	}
	o.Tick(epoch0)
	if in(waiting) != 3 {
		t.Errorf("a tick lets in %d, want as many as there is room for", in(waiting))
	}
	take(4)
	if in(waiting) != 4 {
		t.Errorf("half of it is read, and %d of 4 are in", in(waiting))
	}
	if got, _ := o.TakeSome(epoch0, 2, 10, 1); len(got) != 1 {
		t.Errorf("%d messages are taken for a byte, want one", len(got))
	}
	take(4)
	for range 8 { // requests that are not answered keep their credits
		m := message(o, "q", func(m *Message) { m.WantsReply = true })
		if _, err := o.Ask(epoch0, m, here(2)); err != nil {
			t.Fatal(err)
		}
	}
	take(8)
	last, _ := o.Send(epoch0, message(o, "x"), here(2))
	if over(last) {
		t.Error("it is let in without a credit")
	}
	for id := range o.inboxes[2].taken {
		if err := o.Reply(epoch0, 2, id, TextOf("r")); err != nil {
			t.Fatal(err)
		}
		break
	}
	if o.Tick(epoch0); !over(last) {
		t.Error("with one credit it is not let in by a tick")
	}
}

func TestSendersInLineAreBounded(t *testing.T) {
	o, _ := one(1, 1, 2)
	for range 1 + InboxWaiters {
		if ticket, _ := o.Send(epoch0, message(o, "x"), here(2)); ticket != nil && over(ticket) {
			t.Fatal("refused too early")
		}
	}
	ticket, _ := o.Send(epoch0, message(o, "x"), here(2))
	if _, err := ticket.Result(); !over(ticket) || reasonOf(err) != InboxFull {
		t.Errorf("one more got %v", err)
	}
	o.Exited(epoch0, 2)
	if f := o.Figures(); f.Dead[AgentExited] != 1+InboxWaiters || o.held != 0 {
		t.Errorf("after the end: %+v, %d bytes", f.Dead, o.held)
	}
}

func TestRequestsAreAnsweredOnce(t *testing.T) {
	o, _ := one(0, 1, 2)
	ask := func() (*Message, *Ticket) {
		m := message(o, "q", func(m *Message) { m.WantsReply = true })
		ticket, err := o.Ask(epoch0, m, here(2))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := o.Take(epoch0, 2, 1); len(got) != 1 {
			t.Fatal("the request did not arrive")
		}
		return m, ticket
	}
	m, ticket := ask()
	if err := o.Reply(epoch0, 3, m.ID, TextOf("x")); reasonOf(err) != NotOpen {
		t.Errorf("a stranger's reply: %v", err)
	}
	if err := o.Reply(epoch0, 2, m.ID, TextOf("r")); err != nil {
		t.Fatal(err)
	}
	if a, err := ticket.Result(); err != nil || a.Payload.Text != "r" || a.Correlation != m.ID || a.From != here(2) {
		t.Errorf("the reply is %+v, %v", a, err)
	}
	if err := o.Reply(epoch0, 2, m.ID, TextOf("again")); reasonOf(err) != NotOpen {
		t.Errorf("a second reply: %v", err)
	}

	m, ticket = ask()
	late := m.Deadline.Add(time.Millisecond)
	if err := o.Reply(late, 2, m.ID, TextOf("late")); reasonOf(err) != Timeout {
		t.Errorf("a late reply: %v", err)
	}
	o.Tick(late)
	if _, err := ticket.Result(); reasonOf(err) != Timeout {
		t.Errorf("the caller got %v", err)
	}

	_, ticket = ask()
	o.Exited(epoch0, 2)
	if _, err := ticket.Result(); !over(ticket) || reasonOf(err) != AgentExited {
		t.Errorf("the caller of a process that ended got %v", err)
	}
}

// Dead letters are bounded, read in pages, and taken out by number or reason.
func TestDeadLettersAreBounded(t *testing.T) {
	o, _ := one(0, 1)
	for range DeadLetterMost + 5 {
		if ticket, _ := o.Send(epoch0, message(o, "x"), here(9)); !over(ticket) {
			t.Fatal("nobody is there")
		}
	}
	if page := o.DeadLetters(0, 3); len(page) != 3 || page[0].Number != 6 {
		t.Errorf("the oldest are %+v", page)
	}
	if page := o.DeadLetters(DeadLetterMost+4, 3); len(page) != 1 || page[0].Number != DeadLetterMost+5 {
		t.Errorf("the newest is %+v", page)
	}
	if got := o.TakeLetters([]uint64{7, 9}, "", 0); len(got) != 2 || got[1].Number != 9 {
		t.Errorf("taken are %+v", got)
	}
	if got := o.TakeLetters(nil, TargetNotFound, 10); len(got) != 10 || o.Figures().Letters != DeadLetterMost-12 {
		t.Errorf("taken are %d, left %d", len(got), o.Figures().Letters)
	}
	big := message(o, strings.Repeat("x", 15<<20))
	for range 6 {
		o.Bury(epoch0, big, Fail(Timeout, ""))
	}
	if n := o.letters.bytes; n > DeadLetterBytes {
		t.Errorf("dead letters have %d bytes", n)
	}
}

// A reliable message is tried after 5, 10 and 20 s, and given up 30 s after the last attempt.
func TestReliableMessagesAreTriedAgain(t *testing.T) {
	o, _ := one(0, 1)
	m := message(o, "x", func(m *Message) { m.Reliable = true })
	ticket, err := o.Keep(epoch0, m)
	if err != nil {
		t.Fatal(err)
	}
	var at []time.Duration
	now := epoch0
	for ; !over(ticket); now = now.Add(time.Second) {
		o.Tick(now)
		for _, a := range o.Due(now) {
			at = append(at, now.Sub(epoch0))
			o.Try(now, a.Message.ID, here(2), nil)
		}
	}
	want := []time.Duration{0, 5 * time.Second, 15 * time.Second, 35 * time.Second}
	if len(at) != len(want) || at[1] != want[1] || at[3] != want[3] || now.Sub(epoch0) != 66*time.Second {
		t.Errorf("tried at %v, given up before %s", at, now.Sub(epoch0))
	}
	if _, err := ticket.Result(); reasonOf(err) != TargetNotFound {
		t.Errorf("the sender got %v", err)
	}
	if l := o.DeadLetters(0, 5); len(l) != 1 || l[0].Message.ID != m.ID {
		t.Errorf("dead letters: %+v", l)
	}
}

// A reply to a message that is no request is refused, and leaves it to be acknowledged.
func TestAReplyLeavesWhatIsNoRequest(t *testing.T) {
	o, _ := one(0, 1, 2)
	m := message(o, "x", func(m *Message) { m.Reliable = true })
	ticket, err := o.Keep(epoch0, m)
	if err != nil {
		t.Fatal(err)
	}
	o.Try(epoch0, m.ID, here(2), nil)
	if got, _ := o.Take(epoch0, 2, 1); len(got) != 1 {
		t.Fatal("the message did not arrive")
	}
	if err := o.Reply(epoch0, 2, m.ID, TextOf("r")); reasonOf(err) != NotOpen {
		t.Errorf("a reply to what is no request: %v", err)
	}
	if err := o.Ack(2, m.ID); err != nil || !over(ticket) {
		t.Errorf("it is acknowledged: %v, and its sender knows: %v", err, over(ticket))
	}
}

// One who attends is woken for each message, also for one that was there before, and a reader that asks
// is not forgotten for it.
func TestOneWhoAttendsIsWoken(t *testing.T) {
	o, _ := one(0, 1, 2)
	send := func() {
		t.Helper()
		if _, err := o.Send(epoch0, message(o, "x", func(*Message) {}), here(2)); err != nil {
			t.Fatal(err)
		}
	}
	send()
	woken := 0
	if err := o.Attend(2, func() { woken++ }); err != nil || woken != 1 {
		t.Fatalf("woken %d times for what was there, %v", woken, err)
	}
	send()
	ready, err := o.Ready(2)
	if err != nil || woken != 2 || len(ready) != 1 {
		t.Errorf("woken %d times, %d tokens, %v", woken, len(ready), err)
	}
	if got, _ := o.Take(epoch0, 2, 1); len(got) != 1 || woken != 3 {
		t.Errorf("%d taken, woken %d times, want once more for the rest", len(got), woken)
	}
	o.Exited(epoch0, 2)
	if err := o.Attend(9, func() {}); reasonOf(err) != TargetNotFound {
		t.Errorf("attending to nobody: %v", err)
	}
}

// What is not acknowledged is handed out again, after the time that its handler has; what is acknowledged never.
func TestRepetitionsAreRecognized(t *testing.T) {
	o, frames := one(0, 2)
	m := message(o, "x", func(m *Message) { m.Reliable, m.ID = true, "ipc-b-1" })
	now := epoch0
	arrive := func(number uint64, attempt int) {
		c := *m
		c.Attempt = attempt
		o.Arrive(now, "b", Frame{Kind: FrameDeliver, Epoch: 1, Number: number, Seq: number, PID: 2, Message: &c})
	}
	take := func() int { got, _ := o.Take(now, 2, 10); return len(got) }
	arrive(1, 1)
	arrive(1, 1) // the frame is doubled
	arrive(2, 2) // it was not read yet
	if n := take(); n != 1 {
		t.Fatalf("handed out %d times", n)
	}
	now = now.Add(HandlerTime - 1)
	arrive(3, 3)
	if n := take(); n != 0 {
		t.Errorf("its handler works, and it was handed out %d times more", n)
	}
	now = now.Add(1)
	arrive(4, 4)
	if n := take(); n != 1 {
		t.Errorf("not acknowledged, and handed out %d times more", n)
	}
	for range 2 {
		if err := o.Ack(2, m.ID); err != nil {
			t.Error(err)
		}
	}
	arrive(5, 5)
	if n := take(); n != 0 {
		t.Error("acknowledged, and handed out again")
	}
	handled := 0
	for _, f := range *frames {
		if f.Kind == FrameHandled {
			handled++
		}
	}
	if handled != 2 || o.held != 0 {
		t.Errorf("its sender was told %d times, %d bytes are held", handled, o.held)
	}
	if err := o.Ack(2, "other"); reasonOf(err) != NotOpen {
		t.Errorf("an acknowledgement of nothing: %v", err)
	}
}

// One goroutine sends and reads in bursts of 64.
func BenchmarkSendAndTake(b *testing.B) {
	o, _ := one(0, 1, 2)
	room := make([]*Message, 0, 64)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		now := time.Now()
		m := &Message{From: here(1), To: Process(here(2)), Payload: TextOf("hello")}
		o.Stamp(now, m)
		if err := m.Validate(now); err != nil {
			b.Fatal(err)
		}
		if ticket, err := o.Send(now, m, here(2)); err != nil || ticket != nil {
			b.Fatal(ticket, err)
		}
		if n%64 == 63 {
			if got, err := o.TakeInto(now, 2, room); err != nil || len(got) != 64 {
				b.Fatal(len(got), err)
			}
		}
	}
}
