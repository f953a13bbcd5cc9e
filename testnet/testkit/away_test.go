package testkit

import (
	"context"
	"errors"
	"fmt"
	"github.com/selvage-mesh/selvage/kit"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/node"
	"github.com/selvage-mesh/selvage/scheduler"
)

// A peer is a node that comes and goes.
type peer struct {
	*node.Node
	conf node.Config
	at   string // its peer port
}

// peerAt opens a node, with a port of its own each time.
func peerAt(t *testing.T, conf node.Config) *peer {
	t.Helper()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	log := &Log{}
	conf.HTTP, conf.MeshName, conf.Version, conf.Size, conf.Machine = "none", "testkit", "testkit",
		node.SizeSmall, conf.Name
	conf.Adapters = map[string]scheduler.Adapter{"process": NewHold()}
	conf.TuneConsensus = func(c *consensus.Config) { c.Stabilisation = 200 * time.Millisecond }
	conf.KeyOverlap = 20 * time.Millisecond
	conf.Wall, conf.Logger = kit.Clock(t), slog.New(slog.NewTextHandler(log, nil))
	p := &peer{conf: conf, at: udp.LocalAddr().String()}
	conf.Conn = udp
	ctx, cancel := context.WithTimeout(t.Context(), settle)
	defer cancel()
	if p.Node, err = node.Open(ctx, conf); err != nil {
		t.Fatalf("open %s: %v", conf.Name, err)
	}
	t.Cleanup(func() {
		p.Close()
		if t.Failed() {
			s := log.String()
			t.Logf("log of %s ends:\n%s", conf.Name, s[max(0, len(s)-logTail):])
		}
	})
	return p
}

func (p *peer) token(t *testing.T) string {
	t.Helper()
	s, err := p.CreateToken(t.Context(), 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p *peer) ready(t *testing.T) bool { return p.Ready(t.Context()) == nil }

func (p *peer) epoch(t *testing.T) (epoch uint64) {
	t.Helper()
	if err := p.Ledger().View(func(tx *ledger.Tx) error {
		epoch = ledger.CurrentKeys(tx).Epoch
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return epoch
}

// A node that was away while everybody whom it knew was replaced finds the mesh at
// a seed that it has never heard of, and believes who is there by their admissions.
func TestAwayWhileAllWereReplaced(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("replacing a mesh takes a quarter of a minute")
	}
	dir := t.TempDir()
	conf := func(name, join string) node.Config {
		return node.Config{Dir: filepath.Join(dir, name), Name: name, Join: join}
	}
	n0 := peerAt(t, conf("n0", ""))
	n1 := peerAt(t, conf("n1", n0.token(t)))
	Patient.Until(t, "the node that will be away is a member", func() bool { return n1.ready(t) })
	if err := n1.Close(); err != nil {
		t.Fatal(err)
	}
	n2 := peerAt(t, conf("n2", n0.token(t)))
	Patient.Until(t, "the second is ready", func() bool { return n2.ready(t) })
	n3 := peerAt(t, conf("n3", n2.token(t))) // n2 vouches for it, and n0 for n2
	Patient.Until(t, "the new ones vote", func() bool {
		return n2.Role() != "non-voter" && n3.Role() != "non-voter" &&
			n3.ready(t)
	})
	if err := n0.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n0.Close(); err != nil {
		t.Fatal(err)
	}
	Patient.Until(t, "the new ones go on without those who let them in", func() bool { return n2.ready(t) && n3.ready(t) })
	Patient.Until(t, "there are new keys", func() bool { // n0's leave may have made some a moment ago
		return n2.RotateKeys(t.Context(), ledger.Actor{Type: "user", ID: people.LocalBoard},
			ledger.Credential{Kind: "local"}) == nil
	})

	back := n1.conf
	back.Seeds = []string{n3.at}
	began := time.Now()
	n1 = peerAt(t, back)
	Patient.Until(t, "it is back", func() bool { return n1.ready(t) && n1.epoch(t) == n2.epoch(t) })
	t.Logf("back after %v", time.Since(began).Round(10*time.Millisecond))
	n4 := peerAt(t, conf("n4", n1.token(t))) // what it seals others open, and it lets in who holds it
	Patient.Until(t, "it lets in another", func() bool { return n4.ready(t) })
}

// Of two nodes one has the vote, and leads. When it leaves the other goes on.
func TestTheOnlyVoterLeaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n0 := peerAt(t, node.Config{Dir: filepath.Join(dir, "n0"), Name: "n0"})
	n1 := peerAt(t, node.Config{Dir: filepath.Join(dir, "n1"), Name: "n1", Join: n0.token(t)})
	Patient.Until(t, "the second is ready", func() bool { return n1.ready(t) })
	if n0.Role() != "leader" || n1.Role() != "non-voter" {
		t.Fatalf("they are %s and %s; the test shows nothing", n0.Role(), n1.Role())
	}
	Patient.Until(t, "the first has left", func() bool {
		err := n0.Leave(t.Context())
		if refusal := (*ledger.Refusal)(nil); err != nil &&
			!(errors.As(err, &refusal) && refusal.Code == ledger.Conflict) { // it waits for who has not caught up
			t.Fatal(err)
		}
		return err == nil
	})
	Patient.Until(t, "the other leads", func() bool { return n1.Role() == "leader" && n1.ready(t) })
	if err := n1.Leave(t.Context()); err == nil {
		t.Error("the last node left its mesh")
	}
}

// New keys are drawn again and again while nodes are let in: each rotation or
// admission that collides is made anew, and all end with the same keys.
func TestRotationsRaceWithAdmissions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n0 := peerAt(t, node.Config{Dir: filepath.Join(dir, "n0"), Name: "n0"})
	var tokens []string
	for range 3 {
		tokens = append(tokens, n0.token(t))
	}
	ctx, stop := context.WithCancel(t.Context())
	rotated := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			switch err := n0.RotateKeys(ctx, ledger.Actor{Type: "user", ID: people.LocalBoard},
				ledger.Credential{Kind: "local"}); {
			case err == nil:
				rotated++
			case ctx.Err() == nil:
				t.Log("a rotation was given up:", err) // others may collide with it three times
			}
			time.Sleep(60 * time.Millisecond)
		}
	})
	peers := []*peer{n0}
	for i, token := range tokens {
		name := fmt.Sprintf("n%d", i+1)
		peers = append(peers, peerAt(t, node.Config{Dir: filepath.Join(dir, name), Name: name, Join: token}))
	}
	stop()
	wg.Wait()
	if rotated == 0 {
		t.Error("nothing was rotated; the test shows nothing")
	}
	for _, p := range peers {
		Patient.Until(t, p.Name()+" is ready and has the same keys",
			func() bool { return p.ready(t) && p.epoch(t) == n0.epoch(t) })
	}
	last := peerAt(t, node.Config{Dir: filepath.Join(dir, "last"), Name: "last", Join: peers[3].token(t)})
	Patient.Until(t, "what the newest seals others open", func() bool { return last.ready(t) })
	t.Logf("%d rotations, epoch %d", rotated, n0.epoch(t))
}

// Keys that are old are replaced by themselves.
func TestKeysAreRotatedBySchedule(t *testing.T) {
	t.Parallel()
	n := peerAt(t, node.Config{Dir: t.TempDir(), Name: "n", RotateEvery: 500 * time.Millisecond})
	Patient.Until(t, "new keys were drawn twice", func() bool { return n.epoch(t) >= 3 })
}
