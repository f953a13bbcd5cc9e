package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// A node heals itself when its store can not be trusted: a file of it is damaged, or its
// state differs from the majority's. It marks its data directory, stops, and is opened
// again. It then sets the store aside and returns as a new incarnation, without a vote,
// that gets its state from its peers. If it reaches no quorum within healWait, it puts
// the store back and stops: a person must choose between what the store still has and a
// backup.
//
//	found ──> marked ──> set aside ──> caught up ──> mark removed
//	                         └─ no quorum ──> put back, stopped, marked
var (
	// ErrDiverged ends a node whose state differs from that of a majority of the voters.
	// Open it again to rebuild it.
	ErrDiverged = errors.New("the state differs from the majority's; open the node again to rebuild it from its peers")
	// ErrDamaged ends a running node that found damage in its store. Open it again to
	// rebuild it.
	ErrDamaged = errors.New("the store is damaged; open the node again to rebuild it from its peers")
	// ErrNoHealing ends a node whose store can not be trusted and that found no quorum to
	// rebuild it from.
	ErrNoHealing = errors.New("this node's store can not be trusted and no quorum of its mesh is there to rebuild it from")
)

// noHealing says what a person can do about [ErrNoHealing].
const noHealing = "Start the other voters, then this node. If they are lost for good: selvage recover keeps what " +
	"this store still has, " +
	"selvage snapshot restore starts from a backup in an empty directory. Nothing was removed"

const (
	// rebuildFile in the data directory marks the store as not trusted: a line with the
	// reason, and a line "aside NAME" once the store was set aside under that name.
	rebuildFile = "rebuild"
	// asidePrefix is the prefix of the directory beside the store that holds what was set
	// aside: store, snapshots, and a file with the reason. The next one replaces it.
	asidePrefix = "damaged-"
	asideReason = "REASON"
)

// A rebuild is the content of the rebuild file.
type rebuild struct {
	reason string
	aside  string // name of the directory, "" before it is set aside
}

func readRebuild(dir string) (r rebuild, ok bool, err error) {
	b, err := os.ReadFile(filepath.Join(dir, rebuildFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	} else if err != nil {
		return r, false, err
	}
	reason, rest, _ := strings.Cut(string(b), "\n")
	aside, _ := strings.CutPrefix(strings.TrimSpace(rest), "aside ")
	if !strings.HasPrefix(aside, asidePrefix) || strings.ContainsAny(aside, "/\\") {
		aside = ""
	}
	return rebuild{reason: reason, aside: aside}, true, nil
}

func (r rebuild) save(dir string) error {
	text := strings.ReplaceAll(r.reason, "\n", " ") + "\n"
	if r.aside != "" {
		text += "aside " + r.aside + "\n"
	}
	return writeWhole(filepath.Join(dir, rebuildFile), []byte(text))
}

// markRebuild records why the store is not trusted, unless a reason is recorded already.
func (n *Node) markRebuild(reason string) {
	if _, ok, err := readRebuild(n.conf.Dir); ok && err == nil {
		return
	}
	if err := (rebuild{reason: reason}).save(n.conf.Dir); err != nil {
		n.log.Error("the store could not be marked", "error", err)
	}
}

// diverged is called when voters have different states.
func (n *Node) diverged(d consensus.Divergence) {
	if d.NoMajority {
		err := fmt.Errorf("%w: the voters' states differ at index %d and no majority agrees; writes stop until an "+
			"operator restores a backup", ErrNotReady, d.Index)
		n.log.Error("the node takes no more writes", "error", err)
		n.halted.CompareAndSwap(nil, &err)
		return
	}
	n.markRebuild(fmt.Sprintf("the state differed from the majority's: index %d, own %x, majority %x, %s",
		d.Index, d.Own, d.Majority, n.conf.Wall().UTC().Format(time.RFC3339)))
	n.stopWith(fmt.Errorf("%w (index %d)", ErrDiverged, d.Index))
}

// damaged is called when the open store finds damage. It writes the mark first, because
// the process may crash on the same damage.
func (n *Node) damaged(d *store.Damage) {
	if n.hurt.Swap(true) {
		return
	}
	n.markRebuild(d.Error())
	err := fmt.Errorf("%w: %w", ErrDamaged, d)
	n.halted.CompareAndSwap(nil, &err)
	n.stopWith(err)
}

// mayWrite returns why this node accepts no commands, or nil.
func (n *Node) mayWrite() error {
	if why := n.halted.Load(); why != nil {
		return *why
	}
	return nil
}

// distrusted returns why an error of opening the node means that its store can not be
// trusted, or "".
func distrusted(err error) string {
	if d, ok := errors.AsType[*store.Damage](err); ok {
		return d.Error()
	}
	if errors.Is(err, consensus.ErrLogLost) {
		return consensus.ErrLogLost.Error()
	}
	return ""
}

// startAgain prepares another attempt to open a node whose store can not be trusted: it
// marks the store, or restarts the rebuild.
func startAgain(conf Config, why string) error {
	r, ok, err := readRebuild(conf.Dir)
	if err != nil {
		return err
	}
	if !ok {
		return rebuild{reason: why}.save(conf.Dir)
	}
	if r.aside == "" || !there(conf.FS, conf.FS.PathJoin(conf.FS.PathDir(storeDir(conf)), r.aside, "store")) {
		return nil
	}
	return errors.Join(conf.FS.RemoveAll(storeDir(conf)), conf.FS.RemoveAll(snapshotDir(conf)))
}

// setAside moves a marked store away before it is opened. It can be interrupted anywhere
// and repeated.
func (n *Node) setAside() error {
	r, ok, err := readRebuild(n.conf.Dir)
	if err != nil || !ok {
		return err
	}
	if err := n.mayHeal(); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoHealing, r.reason, err)
	}
	fsys, dir := n.conf.FS, storeDir(n.conf)
	base := fsys.PathDir(dir)
	if r.aside != "" {
		if there(fsys, fsys.PathJoin(base, r.aside, "store")) { // the rebuild continues
			n.healing = &r
			return nil
		}
	} else {
		r.aside = asidePrefix + n.conf.Wall().UTC().Format("20060102T150405Z")
	}
	for _, old := range asides(fsys, base) {
		if old != r.aside {
			if err := fsys.RemoveAll(fsys.PathJoin(base, old)); err != nil {
				return err
			}
		}
	}
	aside := fsys.PathJoin(base, r.aside)
	if err := fsys.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	if err := r.save(n.conf.Dir); err != nil {
		return err
	}
	if err := writeReason(fsys, fsys.PathJoin(aside, asideReason), r.reason); err != nil {
		return err
	}
	// The store is moved last: its directory shows that everything was set aside.
	for _, move := range []struct{ from, to string }{{snapshotDir(n.conf), "snapshots"}, {dir, "store"}} {
		if err := fsys.Rename(move.from, fsys.PathJoin(aside, move.to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(store.SyncDir(fsys, aside), store.SyncDir(fsys, base)); err != nil {
		return err
	}
	n.log.Error("the store can not be trusted: it is set aside, and built anew from the peers", "why", r.reason,
		"kept", aside)
	n.healing = &r
	return nil
}

// putBack undoes setAside on a closed node, and deletes the rebuilt part.
func (n *Node) putBack() error {
	fsys, dir := n.conf.FS, storeDir(n.conf)
	base := fsys.PathDir(dir)
	aside := fsys.PathJoin(base, n.healing.aside)
	for _, move := range []struct{ from, to string }{{"snapshots", snapshotDir(n.conf)}, {"store", dir}} {
		if !there(fsys, fsys.PathJoin(aside, move.from)) {
			continue
		}
		if err := fsys.RemoveAll(move.to); err != nil {
			return err
		}
		if err := fsys.Rename(fsys.PathJoin(aside, move.from), move.to); err != nil {
			return err
		}
	}
	return errors.Join(fsys.RemoveAll(aside), store.SyncDir(fsys, base),
		rebuild{reason: n.healing.reason}.save(n.conf.Dir))
}

func there(fsys vfs.FS, path string) bool {
	_, err := fsys.Stat(path)
	return err == nil
}

// asides returns the names of the directories in base that were set aside.
func asides(fsys vfs.FS, base string) (out []string) {
	names, err := fsys.List(base)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, asidePrefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func writeReason(fsys vfs.FS, path, reason string) error {
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(reason + "\n"))
	return errors.Join(err, f.Sync(), f.Close())
}

// mayHeal returns nil if this node's mesh has other nodes to rebuild from.
func (n *Node) mayHeal() error {
	m, err := loadMembership(n.conf.Dir)
	if err != nil {
		return fmt.Errorf("%w. %s", err, noHealing)
	}
	if m.Over {
		return ErrRevoked
	}
	keys, err := identity.Load(n.conf.Dir, n.machine())
	if err != nil {
		return err
	}
	self := keys.ID()
	others := len(n.conf.Seeds) > 0 || discovery.Remembered(n.conf.Dir, m.mesh(), self) > 0 ||
		slices.ContainsFunc(m.Roster, func(o ledger.Node) bool { return o.Member() && o.ID != self })
	if !others {
		return errors.New("it knows no other node of its mesh. " + noHealing)
	}
	return nil
}

// heal watches a node whose store was set aside until it has caught up. It stops the
// node after healWait without a leader.
func (n *Node) heal(ctx context.Context) {
	began := time.Now()
	heard := began
	every(ctx, healLook, func() {
		if n.healed.Load() {
			return
		}
		if n.Ready(ctx) == nil {
			n.healed.Store(true)
			if err := os.Remove(filepath.Join(n.conf.Dir, rebuildFile)); err != nil {
				n.log.Error("the mark of the rebuilding could not be removed", "error", err)
			}
			n.log.Warn("the store was built anew from the peers", "why", n.healing.reason, "took", time.Since(began).
				Round(time.Millisecond), "kept", n.healing.aside)
			return
		}
		if _, ok := n.consensus.Leader(); ok {
			heard = time.Now()
		}
		if time.Since(heard) < n.conf.HealWait || n.gaveUp.Swap(true) {
			return
		}
		n.stopWith(fmt.Errorf("%w: %s. It heard of no leader for %s. %s", ErrNoHealing, n.healing.reason,
			n.conf.HealWait, noHealing))
	})
}

// snapshotDir is the directory of consensus's snapshots, beside the store.
func snapshotDir(c Config) string { return filepath.Join(filepath.Dir(storeDir(c)), "snapshots") }
