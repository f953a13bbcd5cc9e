package testkit

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/ledger/store"
	"github.com/selvage-mesh/selvage/node"
)

// A node whose state was changed behind its back disagrees with the majority
// as soon as a command meets the difference. It stops, sets its store aside and
// comes back with its peers' state.
func TestADivergedNodeIsRebuiltFromItsPeers(t *testing.T) {
	t.Parallel()
	confs := make([]node.Config, 3)
	b := Mesh(t, 3, func(i int, c *node.Config) { confs[i] = *c })
	of := b.Company("Acme")
	var goal struct{ ID string }
	b.Must(0, "POST", "/api/companies/"+string(of)+"/goals", map[string]any{"title": "Agree"}, &goal)
	sick := (b.Leader() + 1) % 3
	conf := confs[sick]
	b.Until("the sick node has the goal", func() bool {
		a, err := b.Call(sick, "GET", "/api/goals/"+goal.ID, nil, nil, Strong...)
		return err == nil && a.Status == 200
	})
	if err := b.Nodes[sick].Close(); err != nil {
		t.Fatal(err)
	}
	forget(t, filepath.Join(conf.Dir, "store"), "/goal/"+goal.ID)
	reopen(t, b, sick, conf)

	healthy := (sick + 1) % 3
	var failed error
	for deadline := time.Now().Add(settle); failed == nil && time.Now().Before(deadline); {
		// Each answer is another on the node that lacks the goal, and is what a client is
		// told while that node leads: a busy machine may have made it the leader.
		a, err := b.Ask(healthy, "PATCH", "/api/goals/"+goal.ID, map[string]any{"description": time.Now().String()}, nil)
		if err != nil || a.Status != 200 && a.Status != 404 {
			t.Fatalf("on n%d: %v %d %s", healthy+1, err, a.Status, a.Body)
		}
		select {
		case failed = <-b.Nodes[sick].Failed():
		default:
		}
	}
	if !errors.Is(failed, node.ErrDiverged) {
		t.Fatalf("the node with another state failed with %v", failed)
	}
	if err := b.Nodes[sick].Close(); err != nil {
		t.Fatal(err)
	}
	reopen(t, b, sick, conf)
	b.Until("the rebuilt node votes and agrees", func() bool {
		a, err := b.Call(sick, "GET", "/api/goals/"+goal.ID, nil, nil, Strong...)
		return err == nil && a.Status == 200 && b.Nodes[sick].Role() != "non-voter"
	})
	b.Heads() // all nodes have the same
}

// forget takes the rows away whose keys end so.
func forget(t *testing.T, dir, suffix string) {
	t.Helper()
	s, err := store.Open(dir, store.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	span := s.Span('s')
	batch := span.NewBatch()
	defer batch.Close()
	n := 0
	for k := range span.Scan(nil, nil, false) {
		if strings.HasSuffix(string(k), suffix) {
			batch.Delete(k)
			n++
		}
	}
	if n == 0 {
		t.Fatalf("no row ends in %q", suffix)
	}
	if err := span.Commit(batch, true); err != nil {
		t.Fatal(err)
	}
}

// reopen opens node i of a bed again, with what is in its folder, at ports of its own.
func reopen(t *testing.T, b *Bed, i int, conf node.Config) {
	t.Helper()
	b.Until("the node is open again", func() bool {
		var err error
		conf.Join, conf.HTTP = "", "127.0.0.1:0"
		if conf.Conn, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
			t.Fatal(err)
		}
		n, err := node.Open(t.Context(), conf)
		if err != nil {
			t.Log("open:", err)
			return false
		}
		b.Nodes[i] = n
		return true
	})
}
