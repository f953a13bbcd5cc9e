package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// ErrDiverged is what a node fails with when a majority of the voters has
// another state than it. What it has is set aside when it is opened again: it
// then comes back as a new incarnation, whose state is its peers'.
var ErrDiverged = errors.New("the state differs from the majority's; open the node again to rebuild it from its peers")

// rebuildFile in the data directory says that the store is not to be trusted.
// It is made when a divergence is found and goes away once the store was set
// aside. The store set aside stays as store.diverged, for whoever looks for the
// cause; the next one replaces it.
const (
	rebuildFile = "rebuild"
	asideSuffix = ".diverged"
)

// diverged hears that voters disagree about the state.
func (n *Node) diverged(d consensus.Divergence) {
	if d.NoMajority {
		err := fmt.Errorf("%w: the voters' states differ at index %d and no majority agrees; writes stop until an operator restores a backup", ErrNotReady, d.Index)
		n.log.Error("the node takes no more writes", "error", err)
		n.halted.CompareAndSwap(nil, &err)
		return
	}
	note := fmt.Sprintf("index %d, own %x, majority %x, %s\n", d.Index, d.Own, d.Majority, time.Now().UTC().Format(time.RFC3339))
	if err := os.WriteFile(filepath.Join(n.conf.Dir, rebuildFile), []byte(note), 0o600); err != nil {
		n.log.Error("the store could not be marked", "error", err)
	}
	n.stopWith(fmt.Errorf("%w (index %d)", ErrDiverged, d.Index))
}

// mayWrite returns why this node takes no commands, or nil.
func (n *Node) mayWrite() error {
	if why := n.halted.Load(); why != nil {
		return *why
	}
	return nil
}

// setAside moves a store away that was found wrong, before it is opened. It may
// be cut off anywhere and begun again.
func (n *Node) setAside() error {
	mark := filepath.Join(n.conf.Dir, rebuildFile)
	why, err := os.ReadFile(mark)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	dir := storeDir(n.conf)
	aside := dir + asideSuffix
	_, err = n.conf.FS.Stat(dir)
	if err == nil {
		if err := n.conf.FS.RemoveAll(aside); err != nil {
			return err
		}
		if err := n.conf.FS.Rename(dir, aside); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := n.conf.FS.RemoveAll(snapshotDir(n.conf)); err != nil {
		return err
	}
	if err := store.SyncDir(n.conf.FS, filepath.Dir(dir)); err != nil {
		return err
	}
	n.log.Warn("the state differed from the majority's: set aside, and built anew from the peers", "was", string(why), "kept", aside)
	return os.Remove(mark)
}

// snapshotDir is where consensus keeps its snapshots, beside the store.
func snapshotDir(c Config) string { return filepath.Join(filepath.Dir(storeDir(c)), "snapshots") }
