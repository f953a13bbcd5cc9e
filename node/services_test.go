package node

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/courier"
	calls "github.com/selvage-mesh/selvage/adapter/service"
	"github.com/selvage-mesh/selvage/company/service"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// A call of a service is a message to its provider that wants a reply; one to a process that is
// not there was not taken, so that another provider can have it.
func TestAServiceIsCalledByMessage(t *testing.T) {
	t.Parallel()
	c, err := courier.Open(courier.Config{Node: "n1", Dir: t.TempDir(),
		Dial:    func(context.Context, string) (net.Conn, error) { return nil, errors.New("there is one node") },
		Alive:   func(n string) bool { return n == "n1" },
		Nodes:   func() []string { return nil },
		Resolve: func(ref string) (string, error) { return ref, nil },
		Locate:  func(context.Context, string, string) ([]kernel.Entry, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	table := kernel.NewTable(kernel.TableConfig{}, time.Now())
	c.Start(table, func(kernel.PID, string) error { return nil })
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	e, err := table.Spawn(kernel.Entry{Kind: kernel.KindNative, Name: "sums"}, nil, time.Now())
	if err == nil {
		err = table.Set(e.PID, kernel.Running)
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			all, err := c.Receive(t.Context(), e.PID, 1, time.Second)
			if err != nil {
				return
			}
			for _, m := range all {
				var in struct {
					Service, Method string
					Params          []int
				}
				reply := `{"error":"what?"}`
				if json.Unmarshal(m.Payload.JSON, &in) == nil && in.Service == "adder" && in.Method == "add" &&
					len(in.Params) == 2 {
					sum, _ := json.Marshal(map[string]int{"result": in.Params[0] + in.Params[1]})
					reply = string(sum)
				}
				_ = c.Reply(e.PID, m.ID, post.Payload{Kind: post.JSON, JSON: json.RawMessage(reply)})
			}
		}
	}()
	n := &Node{}
	n.work.post = c
	r := calls.New(n.askService, nil)
	adder := service.Service{Name: "adder",
		Methods: []service.Method{{Name: "add", Result: json.RawMessage(`{"type":"integer"}`)}}}
	gone, here := calls.Provider{Node: "n1", PID: 999}, calls.Provider{Node: "n1", PID: uint64(e.PID)}
	for range 2 { // one begins with the provider that is gone
		a, err := r.Call(t.Context(), adder, []calls.Provider{gone, here}, "add", json.RawMessage(`[40,2]`), 5*time.Second)
		if err != nil || string(a.Result) != "42" || a.By != here {
			t.Errorf("answered %+v, %v", a, err)
		}
	}
	if _, err := r.Call(t.Context(), adder, []calls.Provider{here}, "add", json.RawMessage(`[]`),
		5*time.Second); !errors.Is(err, calls.ErrRefused) {
		t.Errorf("what the provider refuses: %v", err)
	}
	if _, err := r.Call(t.Context(), adder, []calls.Provider{gone}, "add", json.RawMessage(`[1,2]`),
		5*time.Second); err == nil {
		t.Error("a process that is not there answered")
	}
}
