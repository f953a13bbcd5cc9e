package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/selvage-mesh/selvage/company/govern"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// unfinishedFile in the data directory marks an interrupted operation. It names the
// command that must be run again.
const unfinishedFile = "unfinished"

// unfinished returns why the data directory can not be used, or nil.
func unfinished(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, unfinishedFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("%s was cut off in %s: run it again", strings.TrimSpace(string(b)), dir)
}

// Restored describes the content of a backup.
type Restored struct {
	About      About  `json:"about"`
	Rows       uint64 `json:"rows,omitempty"`
	StateBytes uint64 `json:"stateBytes"`
	Files      uint64 `json:"files"`
	FileBytes  uint64 `json:"fileBytes"`
	Missing    uint64 `json:"filesMissing"` // were not available when it was made
	Epoch      uint64 `json:"epoch"`        // of the restored mesh
	Node       string `json:"node"`         // the node that will found it
}

// Inspect reads a whole backup and checks every hash. It writes nothing.
func Inspect(r io.Reader) (v Restored, err error) {
	a, h, err := openArchive(r)
	if err != nil {
		return v, err
	}
	v.About, v.Epoch = h.About, h.About.Epoch+1
	pos, rows, err := ledger.CheckSnapshot(a)
	if err != nil {
		return v, err
	}
	if err := h.matches(pos); err != nil {
		return v, err
	}
	v.Rows = rows
	return v, a.files(&v, func(d blob.Digest, size int64, r io.Reader) error {
		got, err := blob.Sum(r)
		if err == nil && got != d {
			err = fmt.Errorf("%w: file %s has another hash", errArchive, d)
		}
		return err
	})
}

// matches compares the head with the state.
func (h archiveHead) matches(pos ledger.Position) error {
	if pos.Mesh != identity.MeshIDOf(h.Genesis) || pos.Mesh != h.About.Mesh || pos.Height != h.About.Height ||
		pos.Applied != h.About.Index ||
		fmt.Sprintf("%x", pos.Head) != h.About.Head || fmt.Sprintf("%x", pos.Digest) != h.About.Digest {
		return fmt.Errorf("%w: its state is not the one that it says it is", errArchive)
	}
	return nil
}

// files reads the parts after the state.
func (a *archiveReader) files(v *Restored, take func(blob.Digest, int64, io.Reader) error) error {
	if n, err := io.Copy(io.Discard, a); err != nil {
		return err
	} else if n > 0 {
		return fmt.Errorf("%w: something follows its state", errArchive)
	}
	for {
		typ, err := a.next()
		if err != nil {
			return err
		}
		if typ != partBlob {
			break
		}
		d, size, r, err := a.blob()
		if err != nil {
			return err
		}
		if err := take(d, size, r); err != nil {
			return err
		}
		v.Files++
		v.FileBytes += uint64(size)
	}
	var end archiveEnd
	if err := a.value(partEnd, &end); err != nil {
		return err
	}
	v.StateBytes, v.Missing = a.state, end.MissingBlob
	if end.StateBytes != a.state || end.Blobs != v.Files || end.BlobBytes != v.FileBytes {
		return fmt.Errorf("%w: it has not all that was put in", errArchive)
	}
	if n, err := a.r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fmt.Errorf("%w: something follows its end", errArchive)
	}
	return nil
}

// Restore creates a data directory from a backup (as identity.SealedFile.Open returns
// it), on a machine that has none. A node started on it founds the next epoch of the
// mesh, alone. All nodes that were members when the backup was made are removed, and
// join again with tokens. The next restore restarts an interrupted one; a refused
// restore deletes what it has created.
func Restore(ctx context.Context, dir, machine string, r io.Reader) (v Restored, err error) {
	if err := emptyOrUnfinished(dir); err != nil {
		return v, err
	}
	a, h, err := openArchive(r) // before anything is written
	if err != nil {
		return v, err
	}
	undo, err := madeIn(dir)
	if err != nil {
		return v, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return v, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undo())
		}
	}()
	if err := writeWhole(filepath.Join(dir, unfinishedFile), []byte("selvage snapshot restore\n")); err != nil {
		return v, err
	}
	for _, old := range restoredFiles {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			return v, err
		}
	}
	keys, err := identity.LoadOrCreate(dir, machine)
	if err != nil {
		return v, err
	}
	v.About, v.Node = h.About, string(keys.ID())
	m, err := restoreState(dir, keys, h, a)
	if err != nil {
		return v, err
	}
	v.Epoch = m.Epoch
	files, err := blob.OpenStore(filepath.Join(dir, "blobs"), blob.StoreConfig{})
	if err != nil {
		return v, err
	}
	err = a.files(&v, func(d blob.Digest, size int64, r io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		w, err := files.Create(size)
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
		return w.CommitAs(d)
	})
	if err = errors.Join(err, files.Close()); err != nil {
		return v, err
	}
	if err := m.save(dir); err != nil {
		return v, err
	}
	return v, os.Remove(filepath.Join(dir, unfinishedFile))
}

// restoredFiles are what a restore creates in a data directory, besides the node's keys
// and the mark.
var restoredFiles = []string{"store", "snapshots", "blobs", membershipFile}

// madeIn returns a function that deletes everything that a restore creates in a data
// directory. It keeps what is there already, except a part of an earlier restore.
func madeIn(dir string) (undo func() error, err error) {
	made := restoredFiles
	for _, name := range []string{identity.File, unfinishedFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, os.ErrNotExist) {
			made = append(slices.Clip(made), name)
		} else if err != nil {
			return nil, err
		}
	}
	_, err = os.Stat(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	alone := err != nil
	return func() error {
		if alone {
			return os.RemoveAll(dir)
		}
		var errs []error
		for _, name := range made { // the mark last
			errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
		}
		return errors.Join(errs...)
	}, nil
}

func emptyOrUnfinished(dir string) error {
	if unfinished(dir) != nil {
		return nil
	}
	for _, name := range []string{membershipFile, "store"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s has the state of a node: restore into an empty directory", dir)
		} else if !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// restoreState writes the state into a new store and returns the membership for it.
func restoreState(dir string, keys *identity.Keys, h archiveHead, state io.Reader) (m membership, err error) {
	err = withStore(dir, false, func(s *store.Store, l *ledger.Ledger) error {
		if err := l.Restore(state); err != nil {
			return err
		}
		if err := h.matches(l.Position()); err != nil {
			return err
		}
		if m, err = h.membership(keys, l); err != nil {
			return err
		}
		return consensus.Base(s.Span(spanRaft), vfs.Default, filepath.Join(dir, "snapshots"), keys.ServerID(),
			l.Applied(), h.Term)
	})
	return m, err
}

// membership returns the membership of the restoring node.
func (h archiveHead) membership(keys *identity.Keys, l *ledger.Ledger) (m membership, err error) {
	warrant := identity.Derive(h.Warrant)
	mine, err := warrant.Admit(h.About.Mesh, keys.Public(), h.About.Height)
	if err != nil {
		return m, err
	}
	chain, err := identity.DecodeAdmissions(h.Admissions)
	if err != nil {
		return m, err
	}
	row := ledger.Node{ID: keys.ID(), Key: keys.Public(), SealCert: keys.Certificate(identity.ForSeal).Encode()}
	m = membership{Genesis: h.Genesis, Admissions: identity.EncodeAdmissions(append([]identity.Admission{mine}, chain...)),
		Founding: &founding{Reason: ledger.EpochRestored, Alone: true}}
	if m.Admissions == nil {
		return m, errors.New("the chain of admissions is too long: this mesh was restored too often")
	}
	if m.Wrapped, err = wrapKeys(row, h.KeyEpoch, h.Data, h.Gossip); err != nil {
		return m, err
	}
	err = l.View(func(tx *ledger.Tx) error {
		m.Epoch = ledger.CurrentEpoch(tx).Number + 1
		return nil
	})
	m.Roster = []ledger.Node{row}
	return m, err
}

// hasStore returns an error if a data directory has no store, because opening it would
// create one.
func hasStore(dir string) error {
	_, err := os.Stat(storeDir(Config{Dir: dir, OnDisk: true}))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s has no state of a node", dir)
	}
	return err
}

// withStore opens the store of a stopped node; with salvage also one whose log or
// manifest was truncated. Damage that f finds is an error.
func withStore(dir string, salvage bool, f func(*store.Store, *ledger.Ledger) error) (err error) {
	s, err := store.Open(storeDir(Config{Dir: dir, OnDisk: true}), store.Options{Salvage: salvage})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return readable(func() error { return withLedger(s, f) })
}

func withLedger(s *store.Store, f func(*store.Store, *ledger.Ledger) error) (err error) {
	l, err := ledger.Open(ledger.Config{Span: s.Span(spanState), Mux: rules.Handlers(), Authorize: people.Authorize,
		Gate: govern.Weigh, Prefetch: people.Prefetch})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return f(s, l)
}

// Recovered describes what a survivor continues from.
type Recovered struct {
	Node    identity.NodeID `json:"node"`
	Mesh    identity.MeshID `json:"mesh"`
	Epoch   uint64          `json:"epoch"`   // the epoch that it will found
	Height  uint64          `json:"height"`  // of the newest kept entry
	Applied uint64          `json:"applied"` // raft index of the present state
	Last    uint64          `json:"last"`    // of the last entry of its log
	At      time.Time       `json:"lastAt"`  // when a leader appended it; zero if unknown
	Voters  []ledger.Node   `json:"-"`       // the voters, without this node
	Lost    []string        `json:"lost"`    // their names
	Missing uint64          `json:"firstMissingHeight"`
	Damage  string          `json:"damage,omitempty"` // of the store; the other fields are what can still be read
}

// Recover prepares the one survivor of a mesh whose quorum is permanently lost: it
// founds the mesh's next epoch at its next start. It keeps everything in its log, and
// its members. Entries that the others had committed and that it had not received are
// lost. Without really it only reports. The node must be stopped.
func Recover(ctx context.Context, dir, machine string, really bool) (v Recovered, err error) {
	m, err := loadMembership(dir)
	if err != nil {
		return v, err
	}
	if m.Over {
		return v, ErrRevoked
	}
	if m.Met != nil {
		return v, m.Met.err()
	}
	keys, err := identity.Load(dir, machine)
	if err != nil {
		return v, err
	}
	v.Node, v.Mesh = keys.ID(), m.mesh()
	r, marked, err := readRebuild(dir)
	if err != nil {
		return v, err
	}
	if r.aside != "" && there(vfs.Default, filepath.Join(dir, r.aside, "store")) {
		return v, fmt.Errorf("this node is about to build its state anew from its peers; what it had is in %s. "+
			"Start it: without a quorum it puts that back and stops after %s, and can be recovered then",
			filepath.Join(dir, r.aside), healWait)
	}
	if err := hasStore(dir); err != nil {
		return v, err
	}
	v.Damage = r.reason
	err = withStore(dir, false, func(*store.Store, *ledger.Ledger) error { return nil })
	if d, ok := errors.AsType[*store.Damage](err); ok {
		v.Damage, marked = d.Error(), true
		// A salvaged store no longer shows that it was truncated; the mark keeps it from voting.
		if err := (rebuild{reason: v.Damage}).save(dir); err != nil {
			return v, err
		}
	} else if err != nil {
		return v, err
	}
	err = withStore(dir, marked, func(s *store.Store, l *ledger.Ledger) error {
		tail, err := consensus.ReadTail(s.Span(spanRaft), vfs.Default, filepath.Join(dir, "snapshots"))
		if err != nil {
			return err
		}
		if err := v.look(l, tail); err != nil {
			return err
		}
		again := unfinished(dir) != nil
		switch {
		case v.Applied == 0:
			return errors.New("this node has no state to go on from: recover from another survivor, or restore a backup")
		case tail.Snapshot > v.Applied:
			return errors.New("the state is older than the node's snapshot: start the node once, stop it, and recover then")
		case len(v.Voters) == 0 && !again && !marked:
			return errors.New("this node alone has the say: there is no quorum to be lost, start it with selvage up")
		case !really:
			return nil
		}
		if err := writeWhole(filepath.Join(dir, unfinishedFile), []byte("selvage recover\n")); err != nil {
			return err
		}
		if _, err := consensus.Replay(s.Span(spanRaft), consensus.LedgerState(l)); err != nil {
			return err
		}
		if err := v.look(l, tail); err != nil {
			return err
		}
		if m.Wrapped, err = newestKeys(l, keys.ID(), m.Wrapped); err != nil {
			return err
		}
		m.Epoch, m.Founding = v.Epoch, &founding{Reason: ledger.EpochRecovered}
		if err := m.save(dir); err != nil {
			return err
		}
		if keys, err = identity.Reincarnate(dir, machine); err != nil {
			return err
		}
		if err := consensus.Base(s.Span(spanRaft), vfs.Default, filepath.Join(dir, "snapshots"), keys.ServerID(), l.Applied(),
			max(tail.Term, tail.SnapshotTerm)+1); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(dir, rebuildFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return os.Remove(filepath.Join(dir, unfinishedFile))
	})
	if d, ok := errors.AsType[*store.Damage](err); ok {
		return v, fmt.Errorf("%w. This store can not be recovered: restore a backup with selvage snapshot restore into an "+
			"empty directory, or join the mesh again", d)
	}
	return v, err
}

// look fills in what the state and the log contain.
func (v *Recovered) look(l *ledger.Ledger, tail consensus.Tail) error {
	v.Last, v.At = max(tail.Last, tail.Snapshot), tail.At
	return l.View(func(tx *ledger.Tx) error {
		pos := tx.Position()
		v.Applied, v.Height, v.Missing = pos.Applied, pos.Height, pos.Height+1
		v.Epoch = ledger.CurrentEpoch(tx).Number + 1
		if v.At.IsZero() {
			v.At = time.UnixMilli(pos.Time).UTC()
		}
		v.Voters, v.Lost = nil, []string{}
		for _, id := range tail.Voters {
			if id == v.Node || slices.ContainsFunc(v.Voters, func(n ledger.Node) bool { return n.ID == id }) {
				continue
			}
			n, ok := ledger.FindNode(tx, id)
			if !ok {
				n = ledger.Node{ID: id, Name: id.Short()}
			}
			v.Voters = append(v.Voters, n)
			v.Lost = append(v.Lost, n.Name)
		}
		return nil
	})
}

// newestKeys returns the mesh's keys for a node from the state; those in its membership
// file may be of an earlier epoch.
func newestKeys(l *ledger.Ledger, id identity.NodeID, had ledger.NodeKeys) (ledger.NodeKeys, error) {
	err := l.View(func(tx *ledger.Tx) error {
		if w, ok := ledger.WrappedFor(tx, id); ok {
			had = w
		}
		return nil
	})
	return had, err
}
