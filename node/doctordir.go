package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/openclaw"
	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/mesh"
	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/blob"
	"github.com/selvage-mesh/selvage/ledger/store"
	"github.com/selvage-mesh/selvage/purse"
	"github.com/selvage-mesh/selvage/sandbox"
)

// doctorBlobs bounds the bytes of blobs that the doctor hashes; selvage scrub --dir
// reads all.
const doctorBlobs = 1 << 30

// DoctorDir checks the data directory of a node that is not running, or does not start.
func DoctorDir(dir, machine string) []api.Check {
	var f findings
	if _, err := os.Stat(dir); err != nil {
		f.add("directory", mesh.CheckBad, err.Error(), "give the right one with --dir")
		return f
	}
	if err := unfinished(dir); err != nil {
		f.add("directory", mesh.CheckBad, err.Error(), "")
	}
	keys := f.identityOf(dir, machine)
	f.space(dir)
	f.storeOf(dir, keys)
	f.smallFiles(dir)
	f.blobsOf(dir)
	return f
}

// storeOf checks the store, and compares the membership with the state.
func (f *findings) storeOf(dir string, keys *identity.Keys) {
	f.asides(vfs.Default, dir)
	if r, ok, err := readRebuild(dir); err == nil && ok {
		f.add("rebuild", mesh.CheckBad, "the store is not to be trusted: "+r.reason,
			"start the node while the other voters run: it builds its state anew from them. "+noHealing)
	}
	told := false // the membership was reported
	if _, err := os.Stat(filepath.Join(dir, "store")); err == nil {
		err := withStore(dir, false, func(open *store.Store, l *ledger.Ledger) (err error) {
			var damaged []error
			unpaced := func(int64, int64) error { return nil }
			if err := open.Scrub(context.Background(), unpaced, func(d *store.Damage) {
				damaged = append(damaged,
					d)
			}); err != nil {
				return err
			}
			if len(damaged) > 0 {
				return errors.Join(damaged[:min(len(damaged), maxScrubFound)]...)
			}
			p := l.Position()
			f.add("state", mesh.CheckOK, fmt.Sprintf("at height %d, index %d; selvage ledger verify --dir checks all of it",
				p.Height, p.Applied), "")
			told = true
			f.membershipOf(dir, keys, l)
			return nil
		})
		switch {
		case distrusted(err) != "":
			f.add("state", mesh.CheckBad, err.Error(),
				"start the node while the other voters run: it sets this store aside and builds its state anew from them. "+
					noHealing)
		case err != nil:
			f.add("state", mesh.CheckBad, err.Error(), "if a node runs on it, ask that: selvage doctor --api URL")
		}
	}
	if !told {
		f.membershipOf(dir, keys, nil)
	}
}

// identityOf checks the identity, and returns the keys if they can be read.
func (f *findings) identityOf(dir, machine string) *identity.Keys {
	keys, err := identity.Load(dir, machine)
	switch {
	case errors.Is(err, identity.ErrNoIdentity) && usedBefore(dir):
		f.add("identity", mesh.CheckBad, "identity.key is gone, and this directory is a node's",
			"put it back from a copy of this machine's disk; if there is none, move the directory away and join with a new "+
				"token, and take the old node out: selvage node remove NAME")
	case errors.Is(err, identity.ErrNoIdentity):
		f.add("identity", mesh.CheckNote, "no node was ever started here", "selvage up")
	case err != nil:
		f.add("identity", mesh.CheckBad, err.Error(), "")
	default:
		f.add("identity", mesh.CheckOK, "of this machine", "")
	}
	return keys
}

// membershipOf checks the membership. l is the state, nil if it can not be read.
func (f *findings) membershipOf(dir string, keys *identity.Keys, l *ledger.Ledger) {
	m, err := loadMembership(dir)
	if err != nil {
		f.lostMembership(err, dir, keys, l)
		return
	}
	switch {
	case m.Over:
		f.add("membership", mesh.CheckBad, ErrRevoked.Error(), "")
		return
	case m.Met != nil:
		f.add("membership", mesh.CheckBad, m.Met.err().Error(), "")
		return
	}
	for _, name := range []string{membershipFile, membershipCopy} {
		if _, err := readMembership(filepath.Join(dir, name)); err != nil {
			f.add("membership", mesh.CheckWarn, fmt.Sprintf("%s: %v; the other of the two is whole", name, err),
				"start the node: it writes both again")
			return
		}
	}
	f.add("membership", mesh.CheckOK, fmt.Sprintf("of mesh %s in epoch %d", m.mesh().Short(), max(1, m.Epoch)), "")
}

func (f *findings) lostMembership(why error, dir string, keys *identity.Keys, l *ledger.Ledger) {
	if l != nil && keys != nil {
		if m, found, err := membershipOf(l, keys.ID()); err == nil && found {
			f.add("membership", mesh.CheckWarn,
				fmt.Sprintf("%v, in the file and in its copy; the state knows that it is of mesh %s", why, m.mesh().Short()),
				"start the node: it makes them again from its state")
			return
		}
	}
	if errors.Is(why, errNoMembership) && !usedBefore(dir) && (l == nil || l.Position().Height == 0) {
		f.add("membership", mesh.CheckNote, "of no mesh", "selvage up founds one, selvage up --join @token joins one")
		return
	}
	f.add("membership", mesh.CheckBad,
		fmt.Sprintf("%v, in the file and in its copy, and the state does not say enough to make them again", why),
		"put the file back from a copy of this disk, or move the directory away and join with a new token")
}

// smallFiles checks the files that a node recreates when they are damaged.
func (f *findings) smallFiles(dir string) {
	var theMesh identity.MeshID
	if m, err := loadMembership(dir); err == nil {
		theMesh = m.mesh()
	}
	bad := 0
	for _, c := range []struct {
		name string
		err  error
		what string // what the next start does
	}{
		{"peers", discovery.CheckCache(dir, theMesh), "the node uses what can be read, and finds the others by gossip"},
		{"tls/api.pem", checkOwnPair(filepath.Join(dir, "tls", "api.pem")),
			"the node sets it aside and makes another certificate"},
		{"runs/openclaw.key", openclaw.CheckKey(filepath.Join(dir, "runs")),
			"the node sets it aside and draws another key; approve this device on OpenClaw's gateways again"},
		{"runs/place", cli.CheckPlace(filepath.Join(dir, "runs")), "the node draws another name, and sessions begin anew"},
		{"purse", purse.Check(filepath.Join(dir, "purse")),
			"the node sets it aside; what it was about stays held until it is written off"},
		{"sandbox", sandbox.CheckKept(filepath.Join(dir, "sandbox")), "the node throws it away"},
	} {
		if c.err != nil && (c.name != "peers" || theMesh != "") {
			bad++
			f.add("small files", mesh.CheckWarn, c.name+": "+c.err.Error(), "nothing: "+c.what)
		}
	}
	if bad == 0 {
		f.add("small files", mesh.CheckOK, "none is damaged", "")
	}
}

func checkOwnPair(path string) error {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = ownPair(b)
	}
	return err
}

// blobsOf hashes the blobs, up to doctorBlobs bytes.
func (f *findings) blobsOf(dir string) {
	at := filepath.Join(dir, "blobs")
	if _, err := os.Stat(at); err != nil {
		return
	}
	errEnough := errors.New("enough")
	read, bad, first := int64(0), 0, ""
	pace := func(bytes, _ int64) error {
		if read += bytes; read > doctorBlobs {
			return errEnough
		}
		return nil
	}
	k, err := blob.Open(at, blob.Config{})
	if err == nil {
		err = k.Scrub(context.Background(), pace, func(d blob.Digest, _ error) {
			if bad++; bad == 1 {
				first = d.String()
			}
		})
		err = errors.Join(err, k.Close())
	}
	switch {
	case err != nil && !errors.Is(err, errEnough):
		f.add("files", mesh.CheckBad, err.Error(), "")
	case bad > 0:
		f.add("files", mesh.CheckWarn, fmt.Sprintf("%d files do not have their hash any more, the first is blobs/%s/%s", bad,
			first[:2], first),
			"start the node: it brings them from the others. This disk loses data: replace it")
	case errors.Is(err, errEnough):
		f.add("files", mesh.CheckOK, fmt.Sprintf("no rotten one in the first %d MB; selvage scrub --dir reads all",
			doctorBlobs>>20), "")
	default:
		f.add("files", mesh.CheckOK, "no rotten file was found", "")
	}
}
