package skill_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/companytest"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
)

// Only the agent has its memories; they are bounded, and deleted with the agent.
func TestTheMemoryOfAnAgent(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	d.Found(t, "Acme")
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	asAda := companytest.As{Agent: ada, Run: d.Run(ada)}
	put := func(who companytest.As, agent, key, value string) error {
		return d.Do(who, "memory.put", skill.PutMemory{Agent: agent, Key: key, Value: value}, nil)
	}
	if err := put(asAda, ada, "customer", "Globex wants it in blue"); err != nil {
		t.Fatal(err)
	}
	companytest.WantRefusal(t, put(asAda, bob, "customer", "x"), ledger.Forbidden,
		"Only the board or the agent itself can do that")
	companytest.WantRefusal(t, put(companytest.Board, d.ID(), "customer", "x"), ledger.NotFound, "Agent not found")
	for _, key := range []string{"", "a b", ".a", "ä", strings.Repeat("k", 129)} {
		companytest.WantRefusal(t, put(asAda, ada, key, "x"), ledger.Invalid,
			"A key has up to 128 letters, digits, dots, colons, dashes and underscores")
	}
	companytest.WantRefusal(t, put(asAda, ada, "big", strings.Repeat("x", skill.MaxMemoryValue+1)), ledger.Unprocessable,
		"A memory has at most 16384 bytes")
	d.Must(t, companytest.Board, "memory.put", skill.PutMemory{Agent: ada, Key: "customer",
		Value: "Globex wants it in red"}, nil)
	if m, ok := skill.MemoryOf(d.Tx, d.Company, ada, "customer"); !ok || m.Value != "Globex wants it in red" ||
		m.CreatedAt == m.UpdatedAt {
		t.Errorf("it keeps %+v", m)
	}
	for n := range skill.MaxMemoryBytes/skill.MaxMemoryValue - 1 {
		d.Must(t, asAda, "memory.put", skill.PutMemory{Agent: ada, Key: fmt.Sprint("page.", n),
			Value: strings.Repeat("x", skill.MaxMemoryValue)}, nil)
	}
	companytest.WantRefusal(t, put(asAda, ada, "more", strings.Repeat("x", skill.MaxMemoryValue)), ledger.Unprocessable,
		"An agent keeps at most 500 memories of 1048576 bytes in all; delete some first")
	d.Must(t, asAda, "memory.delete", skill.DropMemory{Agent: ada, Key: "page.0"}, nil)
	companytest.WantRefusal(t, d.Do(asAda, "memory.delete", skill.DropMemory{Agent: ada, Key: "page.0"}, nil),
		ledger.NotFound, "Memory not found")
	d.Must(t, asAda, "memory.put", skill.PutMemory{Agent: ada, Key: "more",
		Value: strings.Repeat("x", skill.MaxMemoryValue)}, nil)
	if n := len(skill.MemoriesOf(d.Tx, d.Company, ada)); n != skill.MaxMemoryBytes/skill.MaxMemoryValue ||
		len(skill.MemoriesOf(d.Tx, d.Company, bob)) != 0 {
		t.Errorf("it keeps %d memories", n)
	}

	d.Must(t, companytest.Board, "message.send", skill.SendMessage{ID: d.ID(), To: ada,
		Payload: json.RawMessage(`1`)}, nil)
	d.Must(t, companytest.Board, "agent.delete", company.ChangeAgent{Agent: ada}, nil)
	for k := range d.Tx.Writes() {
		if _, ok := d.Tx.Get([]byte(k)); ok && strings.Contains(k, ada) && (strings.Contains(k, "memory") ||
			strings.Contains(k, "message")) {
			t.Errorf("%q is left of the agent", k)
		}
	}
}

// Messages stay in order until their agent takes them; a full inbox refuses more.
func TestTheInboxOfAnAgent(t *testing.T) {
	t.Parallel()
	d := companytest.NewDesk(t)
	ada, bob := d.Agent("Ada"), d.Agent("Bob")
	asAda, asBob := companytest.As{Agent: ada, Run: d.Run(ada)}, companytest.As{Agent: bob, Run: d.Run(bob)}
	send := func(who companytest.As, to string, n int) error {
		return d.Do(who, "message.send", skill.SendMessage{ID: d.ID(), To: to, Type: "note",
			Payload: json.RawMessage(fmt.Sprint(n))}, nil)
	}
	for n := range skill.MaxInbox {
		if err := send([]companytest.As{companytest.Board, asBob}[n%2], ada, n); err != nil {
			t.Fatal(err)
		}
	}
	companytest.WantRefusal(t, send(asBob, ada, 0), ledger.Conflict, "The agent's inbox is full: 1024 messages wait")
	companytest.WantRefusal(t, send(asBob, d.ID(), 0), ledger.NotFound, "Agent not found")
	bad := skill.SendMessage{ID: d.ID(), To: bob, Payload: json.RawMessage(`{`)}
	companytest.WantRefusal(t, d.Do(companytest.Board, "message.send", bad, nil), ledger.Unprocessable,
		"A message's payload is JSON of at most 16384 bytes")
	got := skill.InboxOf(d.Tx, d.Company, ada, 3)
	if len(got) != 3 || string(got[0].Payload) != "0" || string(got[2].Payload) != "2" || got[0].FromType != "user" ||
		got[1].From != bob || got[1].FromType != "agent" {
		t.Fatalf("the inbox has %+v", got)
	}
	companytest.WantRefusal(t, d.Do(asBob, "message.take", skill.TakeMessages{Agent: ada, IDs: []string{got[0].ID}}, nil),
		ledger.Forbidden, "Only the board or the agent itself can do that")
	companytest.WantRefusal(t, d.Do(asAda, "message.take", skill.TakeMessages{Agent: ada, IDs: nil}, nil), ledger.Invalid,
		"1 to 256 messages are taken at once")
	for want := range []int64{2, 0} { // the second time there is nothing left
		var out map[string]int64
		d.Must(t, asAda, "message.take", skill.TakeMessages{Agent: ada, IDs: []string{got[0].ID, got[2].ID, d.ID()}}, &out)
		if out["taken"] != []int64{2, 0}[want] {
			t.Errorf("%d were taken", out["taken"])
		}
	}
	if left := skill.InboxOf(d.Tx, d.Company, ada, 2); string(left[0].Payload) != "1" || string(left[1].Payload) != "3" {
		t.Errorf("left are %+v", left)
	}
	if err := send(asBob, ada, 0); err != nil {
		t.Error(err)
	}
}
