package node

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// Backup writes a sealed backup of the whole mesh, from this node's state, for its
// recipients: state and chain, the key that decrypts the secrets, and with files the
// attachments and images too. It fetches files that this node lacks from other nodes.
// Not included is what belongs to one node: its identity, workspaces, and run logs that
// are not kept. Memory is bounded. After an error, w holds a part that can not be
// opened.
func (n *Node) Backup(ctx context.Context, w io.Writer, to []identity.Recipient, files bool) (about About, err error) {
	epoch, data, gossip := n.keyring.current()
	if data == (identity.DataKey{}) {
		return about, errors.New("this node does not hold the mesh's data key: take the backup from another one")
	}
	h := archiveHead{Genesis: n.member.Genesis, KeyEpoch: epoch, Data: data, Gossip: gossip, Term: n.consensus.Stats().
		Term, Blobs: files}
	snap, err := n.ledger.Snapshot()
	if err != nil {
		return about, err
	}
	defer snap.Close()
	pos := snap.Position
	h.About = About{Mesh: n.Mesh(), Node: n.ID(), At: n.conf.Wall().UTC().Format(time.RFC3339), Epoch: n.epoch(),
		Index: pos.Applied, Height: pos.Height,
		Head: hex.EncodeToString(pos.Head[:]), Digest: hex.EncodeToString(pos.Digest[:]), Files: files,
		Version: n.conf.Version}
	if err := n.ledger.View(func(tx *ledger.Tx) error {
		g, _, _ := ledger.Founding(tx)
		h.About.Name = g.Name
		return nil
	}); err != nil {
		return about, err
	}
	if h.Warrant, h.Admissions, err = n.warrant(pos.Height); err != nil {
		return about, err
	}
	public, err := json.Marshal(h.About)
	if err != nil {
		return about, err
	}
	sealed, err := identity.SealFile(w, public, to)
	if err != nil {
		return about, err
	}
	a, err := newArchive(sealed)
	if err != nil {
		return about, err
	}
	if err := a.part(partHead, ledger.Marshal(h)); err != nil {
		return about, err
	}
	if err := snap.WriteUnsummed(until{ctx, a}); err != nil {
		return about, err
	}
	if err := snap.Close(); err != nil { // before the files, which may take long
		return about, err
	}
	var end archiveEnd
	if files {
		if end, err = n.backupFiles(ctx, a); err != nil {
			return about, err
		}
	}
	if err := a.end(end); err != nil {
		return about, err
	}
	if end.MissingBlob > 0 {
		n.log.Warn("backup: files that no node has any more were left out", "files", end.MissingBlob)
	}
	return h.About, sealed.Close()
}

// warrant creates a key whose holder may admit itself, for a backup.
func (n *Node) warrant(height uint64) (seed [32]byte, chain []byte, err error) {
	seed = identity.NewDataKey()
	mine, err := n.chain()
	if err != nil {
		return seed, nil, err
	}
	a, err := n.keys.Admit(n.Mesh(), identity.Derive(seed).Public(), height)
	if err != nil {
		return seed, nil, err
	}
	return seed, identity.EncodeAdmissions(append([]identity.Admission{a}, mine...)), nil
}

// until is a writer that fails when its context ends.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u until) Write(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(b)
}

// backupFiles writes each file that the state references once.
func (n *Node) backupFiles(ctx context.Context, a *archiveWriter) (end archiveEnd, err error) {
	refs := map[blob.Digest]blob.Reference{}
	err = n.ledger.View(func(tx *ledger.Tx) error {
		for sum, r := range company.Blobs(tx) {
			if d, err := blob.ParseDigest(sum); err == nil {
				refs[d] = blob.Reference{Digest: d, Size: r.Size}
			}
		}
		return nil
	})
	if err != nil {
		return end, err
	}
	for _, d := range slices.SortedFunc(maps.Keys(refs), blob.Digest.Compare) {
		if err := ctx.Err(); err != nil {
			return end, err
		}
		ref := refs[d]
		c, err := n.blobs.Read(ctx, ref)
		if err != nil {
			end.MissingBlob++
			continue
		}
		err = a.begin(partBlob, uint64(len(d))+uint64(ref.Size))
		if err == nil {
			_, err = a.w.Write(d[:])
		}
		if err == nil {
			_, err = io.CopyN(a.w, c, ref.Size)
		}
		if err = errors.Join(err, c.Close()); err != nil {
			return end, fmt.Errorf("file %s: %w", d, err)
		}
		end.Blobs++
		end.BlobBytes += uint64(ref.Size)
	}
	return end, nil
}

// Backups configures a node's scheduled backups.
type Backups struct {
	Every time.Duration        // 0: never
	Keep  int                  // number to keep; DefaultBackups
	Dir   string               // default: "backups" in the data directory
	To    []identity.Recipient // who can open them
	Files bool                 // include attachments and images
}

const (
	// DefaultBackups is how many backups a schedule keeps: one week of daily ones.
	DefaultBackups = 7
	// BackupSuffix is the file extension of backups.
	BackupSuffix = ".selvage"
	// minBackupEvery is the shortest interval of a schedule, so that the node does other
	// work too.
	minBackupEvery = time.Minute
	// backupTimeout bounds one scheduled backup.
	backupTimeout = 6 * time.Hour
)

// validate returns the errors of a schedule.
func (b Backups) validate() error {
	switch {
	case b.Every == 0:
		return nil
	case b.Every < minBackupEvery:
		return fmt.Errorf("backups every %s: at least %s apart", b.Every, minBackupEvery)
	case len(b.To) == 0:
		return errors.New("a schedule of backups needs somebody who can open them")
	}
	return nil
}

// backUp makes scheduled backups until the node closes. The first is due when the newest
// existing one is old enough, so that a restart neither skips nor repeats one.
func (n *Node) backUp(ctx context.Context) {
	b := n.conf.Backups
	for {
		due := b.Every
		if all, err := backupsIn(b.Dir); err == nil && len(all) > 0 {
			if info, err := os.Stat(all[len(all)-1]); err == nil {
				due -= time.Since(info.ModTime())
			}
		} else {
			due = min(due, minBackupEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(due, time.Second)):
		}
		path, err := n.BackupNow(ctx)
		if err != nil {
			n.log.Error("the scheduled backup was not made", "error", err)
			select { // do not retry at once
			case <-ctx.Done():
				return
			case <-time.After(minBackupEvery):
			}
			continue
		}
		n.log.Info("backup", "file", path)
	}
}

// BackupNow makes a backup as the schedule does, and deletes the oldest beyond Keep.
func (n *Node) BackupNow(ctx context.Context) (path string, err error) {
	ctx, cancel := context.WithTimeout(ctx, backupTimeout)
	defer cancel()
	b := n.conf.Backups
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return "", err
	}
	height, _ := n.ledger.Head()
	at := n.conf.Wall().UTC().Format("20060102T150405Z")
	path = filepath.Join(b.Dir, fmt.Sprintf("%s-%d%s", at, height, BackupSuffix))
	err = WriteBackup(path, func(w io.Writer) error {
		_, err := n.Backup(ctx, w, b.To, b.Files)
		return err
	})
	if err != nil {
		return "", err
	}
	all, err := backupsIn(b.Dir)
	if err != nil {
		return path, err
	}
	for _, old := range all[:max(0, len(all)-b.Keep)] {
		if err := os.Remove(old); err != nil {
			return path, err
		}
	}
	return path, nil
}

// backupsIn lists the backups of a schedule, oldest first.
func backupsIn(dir string) (out []string, err error) {
	names, err := os.ReadDir(dir)
	for _, e := range names {
		stamp, rest, ok := strings.Cut(e.Name(), "-")
		if _, bad := time.Parse("20060102T150405Z", stamp); ok && bad == nil && strings.HasSuffix(rest, BackupSuffix) {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, err // the names are sorted, and begin with the time
}

// WriteBackup creates the file path with the output of write. The file is complete and
// synced, or does not exist. It never replaces a file.
func WriteBackup(path string, write func(io.Writer) error) (err error) {
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s is there already", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".partial-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	long := store.NewLongFile(f)
	if err = write(long); err == nil {
		err = long.Sync()
	}
	long.Close()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
