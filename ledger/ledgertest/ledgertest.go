// Package ledgertest founds meshes on a real ledger, for tests: what consensus would order
// is applied at once, by whoever asks.
package ledgertest

import (
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// A World is one copy of the state of a mesh, and the end of its log.
type World struct {
	t      testing.TB
	Ledger *ledger.Ledger
	Keys   *identity.Keys // of the founder
	Mesh   identity.MeshID
	// Stamp is the time of the next batch; it never goes back.
	Stamp func() time.Time
	Index uint64 // of the newest entry
}

// Found opens a ledger, in memory where cfg has no span, and founds a mesh on it. The
// ledger is closed when the test ends.
func Found(t testing.TB, cfg ledger.Config, keys *identity.Keys, g ledger.Genesis, stamp func() time.Time) *World {
	t.Helper()
	if cfg.Span == nil {
		db, err := store.Open("db", store.Options{FS: vfs.NewMem(), Small: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		cfg.Span = db.Span('s')
	}
	l, err := ledger.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &World{t: t, Ledger: l, Keys: keys, Mesh: identity.MeshIDOf(ledger.Marshal(g)), Stamp: stamp}
	w.Must(0, 0, By(keys, ledger.KindGenesis, g))
	return w
}

// Genesis is the founding of a mesh at a time, by the node of keys, which has the mesh's name.
func Genesis(keys *identity.Keys, name string, at time.Time) ledger.Genesis {
	return ledger.Genesis{Name: name, Level: ledger.FeatureLevel, CreatedAt: at.UnixMilli(), Founder: Node(keys, name),
		Wrapped: ledger.NodeKeys{Node: keys.ID(), Epoch: 1, Data: []byte("data"), Gossip: []byte("gossip")}}
}

// Node is a node as it is admitted.
func Node(keys *identity.Keys, name string, labels ...string) ledger.NewNode {
	return ledger.NewNode{Key: keys.Public(), SealCert: keys.Certificate(identity.ForSeal).Encode(), Name: name,
		Labels: labels}
}

// By is a command of a node, under its own credential.
func By(keys *identity.Keys, kind string, payload any) ledger.Command {
	id := string(keys.ID())
	return ledger.Command{Kind: kind, Actor: ledger.Actor{Type: "node", ID: id},
		Credential: ledger.Credential{Kind: "node", ID: id}, Payload: ledger.Marshal(payload)}
}

// OpenSession opens a session of the founder, under which its next commands are numbered
// from 1, and returns its ID.
func (w *World) OpenSession() uint64 {
	w.t.Helper()
	return w.Must(0, 0, By(w.Keys, ledger.KindSessionOpen, ledger.SessionOpen{Incarnation: "life-1",
		Nonce: "first"}))[0].Height
}

// Entry makes the next entry of the log: a batch of commands of a node, numbered from first.
func (w *World) Entry(by *identity.Keys, session, first uint64, cmds ...ledger.Command) ledger.LogEntry {
	b := ledger.EncodeBatch(w.Mesh, by.ID(), session, first, first, cmds, by.Sign)
	ledger.StampBatch(b, w.Stamp())
	w.Index++
	return ledger.LogEntry{Index: w.Index, Term: 1, Data: b}
}

// Apply applies an entry.
func (w *World) Apply(e ledger.LogEntry) []ledger.Receipt {
	w.t.Helper()
	rs, err := ledger.DecodeReceipts(w.Ledger.ApplyBatch([]ledger.LogEntry{e})[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return rs
}

// Must applies commands of the founder, none of which may be refused.
func (w *World) Must(session, first uint64, cmds ...ledger.Command) []ledger.Receipt {
	w.t.Helper()
	rs := w.Apply(w.Entry(w.Keys, session, first, cmds...))
	var failed error
	for _, r := range rs {
		failed = errors.Join(failed, r.Err())
	}
	if failed != nil {
		w.t.Fatal(failed)
	}
	return rs
}
