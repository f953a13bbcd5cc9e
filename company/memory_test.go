package company

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/ledger"
)

// What an agent keeps is its own, within bounds, and goes with it.
func TestTheMemoryOfAnAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.found(t, "Acme")
	ada, bob := d.agent("Ada"), d.agent("Bob")
	asAda := as{ada, d.run(ada)}
	put := func(who as, agent, key, value string) error {
		return d.do(who, "memory.put", PutMemory{agent, key, value}, nil)
	}
	if err := put(asAda, ada, "customer", "Globex wants it in blue"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, put(asAda, bob, "customer", "x"), ledger.Forbidden, "Only the board or the agent itself can do that")
	wantRefusal(t, put(board, d.id(), "customer", "x"), ledger.NotFound, "Agent not found")
	for _, key := range []string{"", "a b", ".a", "ä", strings.Repeat("k", 129)} {
		wantRefusal(t, put(asAda, ada, key, "x"), ledger.Invalid, "")
	}
	wantRefusal(t, put(asAda, ada, "big", strings.Repeat("x", MaxMemoryValue+1)), ledger.Unprocessable, "")
	d.must(t, board, "memory.put", PutMemory{ada, "customer", "Globex wants it in red"}, nil)
	if m, ok := MemoryOf(d.tx, d.company, ada, "customer"); !ok || m.Value != "Globex wants it in red" || m.CreatedAt == m.UpdatedAt {
		t.Errorf("it keeps %+v", m)
	}
	for n := range MaxMemoryBytes/MaxMemoryValue - 1 {
		d.must(t, asAda, "memory.put", PutMemory{ada, fmt.Sprint("page.", n), strings.Repeat("x", MaxMemoryValue)}, nil)
	}
	wantRefusal(t, put(asAda, ada, "more", strings.Repeat("x", MaxMemoryValue)), ledger.Unprocessable, "")
	d.must(t, asAda, "memory.delete", DropMemory{ada, "page.0"}, nil)
	wantRefusal(t, d.do(asAda, "memory.delete", DropMemory{ada, "page.0"}, nil), ledger.NotFound, "Memory not found")
	d.must(t, asAda, "memory.put", PutMemory{ada, "more", strings.Repeat("x", MaxMemoryValue)}, nil)
	if n := len(MemoriesOf(d.tx, d.company, ada)); n != MaxMemoryBytes/MaxMemoryValue || len(MemoriesOf(d.tx, d.company, bob)) != 0 {
		t.Errorf("it keeps %d memories", n)
	}

	d.must(t, board, "message.send", SendMessage{ID: d.id(), To: ada, Payload: json.RawMessage(`1`)}, nil)
	d.must(t, board, "agent.delete", ChangeAgent{Agent: ada}, nil)
	for k := range d.tx.Writes() {
		if _, ok := d.tx.Get([]byte(k)); ok && strings.Contains(k, ada) && (strings.Contains(k, "memory") || strings.Contains(k, "message")) {
			t.Errorf("%q is left of the agent", k)
		}
	}
}

// Messages wait in order until their agent has done with them; a full inbox takes
// no more.
func TestTheInboxOfAnAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ada, bob := d.agent("Ada"), d.agent("Bob")
	asAda, asBob := as{ada, d.run(ada)}, as{bob, d.run(bob)}
	send := func(who as, to string, n int) error {
		return d.do(who, "message.send", SendMessage{ID: d.id(), To: to, Type: "note", Payload: json.RawMessage(fmt.Sprint(n))}, nil)
	}
	for n := range MaxInbox {
		if err := send([]as{board, asBob}[n%2], ada, n); err != nil {
			t.Fatal(err)
		}
	}
	wantRefusal(t, send(asBob, ada, 0), ledger.Conflict, "The agent's inbox is full: 1024 messages wait")
	wantRefusal(t, send(asBob, d.id(), 0), ledger.NotFound, "Agent not found")
	bad := SendMessage{ID: d.id(), To: bob, Payload: json.RawMessage(`{`)}
	wantRefusal(t, d.do(board, "message.send", bad, nil), ledger.Unprocessable, "")
	got := InboxOf(d.tx, d.company, ada, 3)
	if len(got) != 3 || string(got[0].Payload) != "0" || string(got[2].Payload) != "2" || got[0].FromType != "user" || got[1].From != bob || got[1].FromType != "agent" {
		t.Fatalf("the inbox has %+v", got)
	}
	wantRefusal(t, d.do(asBob, "message.take", TakeMessages{ada, []string{got[0].ID}}, nil), ledger.Forbidden, "")
	wantRefusal(t, d.do(asAda, "message.take", TakeMessages{ada, nil}, nil), ledger.Invalid, "")
	for want := range []int64{2, 0} { // the second time they are gone
		var out map[string]int64
		d.must(t, asAda, "message.take", TakeMessages{ada, []string{got[0].ID, got[2].ID, d.id()}}, &out)
		if out["taken"] != []int64{2, 0}[want] {
			t.Errorf("%d were taken", out["taken"])
		}
	}
	if left := InboxOf(d.tx, d.company, ada, 2); string(left[0].Payload) != "1" || string(left[1].Payload) != "3" {
		t.Errorf("left are %+v", left)
	}
	if err := send(asBob, ada, 0); err != nil {
		t.Error(err)
	}
}
