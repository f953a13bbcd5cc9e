package node

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage-mesh/selvage/company/entity"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/store"
)

// start opens a node on a directory, without an API.
func start(t *testing.T, dir string, change ...func(*Config)) *Node {
	t.Helper()
	conf := Config{Dir: dir, HTTP: "none", Mesh: "127.0.0.1:0", Name: filepath.Base(dir), Machine: testMachine,
		Shim: []string{os.Args[0], "-test.run=^$"}}
	conf.TuneConsensus = func(c *consensus.Config) { c.Stabilisation = 100 * time.Millisecond }
	for _, f := range change {
		f(&conf)
	}
	n, err := Open(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// found creates a company.
func found(t *testing.T, n *Node, name string) ledger.Receipt {
	t.Helper()
	id := ledger.CompanyID(uuid.Must(uuid.NewV7()).String())
	cmd := n.command("company.create", id, entity.SaveCompany{ID: id, Name: &name})
	cmd.Actor, cmd.Credential = ledger.Actor{Type: "user", ID: people.LocalBoard}, ledger.Credential{Kind: "local"}
	r, err := n.proposer.Submit(t.Context(), cmd)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Fatalf("company %s: %v", name, err)
	}
	return r
}

// backupOf makes a backup of a node for a new key.
func backupOf(t *testing.T, n *Node) ([]byte, *identity.RecipientKey) {
	t.Helper()
	k := identity.NewRecipientKey()
	var b bytes.Buffer
	if _, err := n.Backup(t.Context(), &b, []identity.Recipient{{Key: k.PublicKey().Bytes()}}, true); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), k
}

func content(t *testing.T, b []byte, k *identity.RecipientKey) io.Reader {
	t.Helper()
	f, err := identity.ReadSealedFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Open(nil, k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cutOff leaves in dir what a crash during a restore leaves.
func cutOff(t *testing.T, dir string, r io.Reader) {
	t.Helper()
	half := crash{from: filepath.Join(t.TempDir(), "half"), to: dir}
	if _, err := Restore(t.Context(), half.from, testMachine, io.MultiReader(io.LimitReader(r, 5000),
		half)); !errors.Is(err, errCrash) {
		t.Fatal("the restore was not cut off:", err)
	}
}

// A crash copies the directory when it is first read from.
type crash struct{ from, to string }

var errCrash = errors.New("crash")

func (c crash) Read([]byte) (int, error) {
	return 0, errors.Join(errCrash, os.CopyFS(c.to, os.DirFS(c.from)), os.Chmod(filepath.Join(c.to, identity.File), 0o600))
}

// A refused restore leaves the directory unchanged, whatever is wrong with the backup.
// So do a recovery and a verification of a directory without state.
func TestWhatIsRefusedLeavesTheDirectoryAsItWas(t *testing.T) {
	n := start(t, filepath.Join(t.TempDir(), "first"))
	found(t, n, "Acme")
	b, key := backupOf(t, n)
	whole, err := io.ReadAll(content(t, b, key))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	var keys *identity.Keys
	for name, bad := range map[string][]byte{"nothing": nil, "no backup": []byte("hello"), "its head": whole[:100],
		"half": whole[:len(whole)/2], "no end": whole[:len(whole)-1], "more": append(bytes.Clone(whole), 0),
		"flipped": flipped} {
		for _, with := range [][]string{nil, {"notes"}, {"notes", identity.File}} {
			dir := t.TempDir()
			for _, file := range with {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if len(with) == 2 {
				if err := os.Remove(filepath.Join(dir, identity.File)); err != nil {
					t.Fatal(err)
				}
				if keys, err = identity.Create(dir, testMachine); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Restore(t.Context(), dir, testMachine, bytes.NewReader(bad)); err == nil {
				t.Errorf("%s: restored", name)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != len(with) {
				t.Errorf("%s over %v: %v is left, %v", name, with, left, err)
			}
			if len(with) == 2 {
				if k, err := identity.Load(dir, testMachine); err != nil || k.ID() != keys.ID() {
					t.Errorf("%s: the keys that were there: %v", name, err)
				}
			}
		}
	}
	dir := t.TempDir()
	if _, err := Recover(t.Context(), dir, testMachine, true); err == nil {
		t.Error("recovered nothing")
	}
	if err := os.WriteFile(filepath.Join(dir, membershipFile), n.member.encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Create(dir, testMachine); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(t.Context(), dir, testMachine, true); err == nil {
		t.Error("recovered a membership without state")
	}
	if _, err := VerifyDir(t.Context(), dir); err == nil {
		t.Error("verified nothing")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v is left, %v", left, err)
	}
}

const testMachine = "0123456789abcdef0123456789abcdef"

// Restoring on an empty machine gives the same chain and head, digest of the state,
// rows, files, and secrets that can be decrypted. The mesh continues in its next epoch.
func TestRestoreOnAnEmptyMachine(t *testing.T) {
	first := start(t, filepath.Join(t.TempDir(), "first"))
	token, err := first.CreateToken(t.Context(), 3, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Acme", "Umbra"} {
		found(t, first, name)
	}
	b, key := backupOf(t, first)
	snap, err := first.ledger.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := snap.Sum()
	if err != nil {
		t.Fatal(err)
	}
	pos := snap.Position
	snap.Close()
	if bytes.Contains(b, []byte("Umbra")) {
		t.Error("the backup can be read by anybody")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := Inspect(content(t, b, key))
	if err != nil || v.About.Height != pos.Height || v.Rows == 0 {
		t.Fatalf("inspect %+v, %v", v, err)
	}

	dir := filepath.Join(t.TempDir(), "second")
	if _, err := Restore(t.Context(), dir, testMachine, io.LimitReader(content(t, b, key), 5000)); err == nil {
		t.Fatal("half a backup was restored")
	}
	if left, err := os.ReadDir(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused restore has left %v, %v", left, err)
	}
	cutOff(t, dir, content(t, b, key))
	if _, err := Open(t.Context(), Config{Dir: dir, HTTP: "none", Machine: testMachine}); err == nil {
		t.Fatal("a node started on half a restored directory")
	}
	v, err = Restore(t.Context(), dir, testMachine, content(t, b, key))
	if err != nil {
		t.Fatal(err)
	}
	if v.Epoch != 2 || v.About.Height != pos.Height {
		t.Errorf("restored %+v", v)
	}
	if _, err := Restore(t.Context(), dir, testMachine, content(t, b, key)); err == nil {
		t.Error("a restore went over a node's state")
	}
	if err := withStore(dir, false, sameState(t, pos, sum)); err != nil {
		t.Fatal(err)
	}

	second := start(t, dir)
	if got := second.Mesh(); got != first.Mesh() {
		t.Errorf("mesh %s, was %s", got, first.Mesh())
	}
	if err := second.ledger.View(func(tx *ledger.Tx) error {
		if e := ledger.CurrentEpoch(tx); e.Number != 2 || e.Founder != second.ID() || e.Reason != ledger.EpochRestored {
			t.Errorf("epoch %+v", e)
		}
		for _, m := range ledger.Roster(tx) {
			if m.Member() != (m.ID == second.ID()) {
				t.Errorf("%s: member %v", m.Name, m.Member())
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	parsed, err := identity.DecodeJoinToken(token)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.ledger.View(func(tx *ledger.Tx) error {
		row, _ := ledger.FindToken(tx, parsed.ID)
		psk, err := second.keyring.open(tx, tokenAAD(row.ID), row.Sealed)
		if err != nil || !bytes.Equal(psk, parsed.PSK[:]) {
			t.Errorf("what was sealed before the backup does not open after it: %v", err)
		}
		if row.Usable(time.Now().UnixMilli()) {
			t.Error("who was a member may come back with a token that it knows")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.ledger.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
	found(t, second, "Later")

	// Others join the restored mesh, which has made a snapshot of its state by then.
	fresh, err := second.CreateToken(t.Context(), 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	third := start(t, filepath.Join(t.TempDir(), "third"), func(c *Config) { c.Join = fresh; c.Machine = "" })
	wantSame(t, second, third)
}

func sameState(t *testing.T, pos ledger.Position, sum ledger.Hash) func(s *store.Store, l *ledger.Ledger) error {
	return func(_ *store.Store, l *ledger.Ledger) error {
		if l.Position() != pos {
			t.Errorf("position %+v, was %+v", l.Position(), pos)
		}
		snap, err := l.Snapshot()
		if err != nil {
			return err
		}
		defer snap.Close()
		got, err := snap.Sum()
		if got != sum {
			t.Error("a row differs")
		}
		return err
	}
}

// wantSame waits until b has the state of a.
func wantSame(t *testing.T, a, b *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	_, index := a.ledger.Digest()
	if err := b.ledger.WaitApplied(ctx, index); err != nil {
		t.Fatalf("the other node has applied %d of %d: %v", b.ledger.Applied(), index, err)
	}
	if a.epoch() != b.epoch() {
		t.Errorf("epochs %d and %d", a.epoch(), b.epoch())
	}
}

// A schedule keeps a number of backups and touches no other file.
func TestBackupsOnASchedule(t *testing.T) {
	key := identity.NewRecipientKey()
	dir := t.TempDir()
	n := start(t, filepath.Join(dir, "n"), func(c *Config) {
		c.Backups = Backups{Every: time.Hour, Keep: 2, Dir: filepath.Join(dir, "kept"),
			To: []identity.Recipient{{Key: key.PublicKey().Bytes()}}}
	})
	if err := os.MkdirAll(n.conf.Backups.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(n.conf.Backups.Dir, "mine.selvage")
	old := filepath.Join(n.conf.Backups.Dir, "20010101T000000Z-7.selvage")
	for _, f := range []string{mine, old} {
		if err := os.WriteFile(f, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var last string
	for range 3 {
		found(t, n, "C")
		path, err := n.BackupNow(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = path
	}
	all, err := backupsIn(n.conf.Backups.Dir)
	if err != nil || len(all) != 2 || all[1] != last {
		t.Errorf("kept %v, %v; want the two newest", all, err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error("a file that is no backup of the schedule went away")
	}
	if err := (Backups{Every: time.Hour}).validate(); err == nil {
		t.Error("a schedule whose backups nobody can open")
	}
}

// A survivor continues with everything in its log. When the others meet it they stop,
// say what to do, and follow once they are told to.
func TestRecoverAfterTheQuorumIsLost(t *testing.T) {
	base := t.TempDir()
	own := func(c *Config) { c.Machine = testMachine }
	a := start(t, filepath.Join(base, "a"), own)
	var nodes []*Node
	for _, name := range []string{"b", "c"} {
		token, err := a.CreateToken(t.Context(), 1, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, start(t, filepath.Join(base, name), own, func(c *Config) { c.Join = token }))
	}
	b, c := nodes[0], nodes[1]
	kit.Wait{Most: 2 * time.Minute}.Until(t, "there are three voters",
		func() bool { return a.consensus.Stats().Voters == 3 })
	r := found(t, a, "Before")
	for _, n := range nodes {
		if err := n.ledger.WaitApplied(t.Context(), r.Index); err != nil {
			t.Fatal(err)
		}
	}
	at := b.advertised()
	for _, n := range []*Node{c, b, a} {
		n.Kill()
	}

	// b and c are lost; a is verified and then recovered.
	v, err := Recover(t.Context(), a.conf.Dir, testMachine, false)
	if err != nil || v.Epoch != 2 || len(v.Lost) != 2 || v.Last < r.Index || v.Missing != v.Height+1 || v.At.IsZero() {
		t.Fatalf("a has %+v, %v", v, err)
	}
	if v, err = Recover(t.Context(), a.conf.Dir, testMachine, true); err != nil {
		t.Fatal(err)
	}
	a = start(t, a.conf.Dir, own, foundsLate)
	if err := a.Ready(t.Context()); err != nil || a.consensus.Stats().Voters != 1 || a.epoch() != 2 {
		t.Fatalf("the survivor: %v, %d voters, epoch %d", err, a.consensus.Stats().Voters, a.epoch())
	}
	found(t, a, "After")

	// b starts again, meets a, and stops.
	conf := Config{Dir: b.conf.Dir, HTTP: "none", Mesh: at.String(), Name: "b", Machine: testMachine,
		Shim: []string{os.Args[0]}, Seeds: []string{a.advertised().String()}}
	b, err = Open(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	a.transport.Learn(b.ID(), b.advertised())
	b.transport.Learn(a.ID(), a.advertised())
	select {
	case err := <-b.Failed():
		if !errors.Is(err, ErrEpoch) {
			t.Errorf("b stopped with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("b goes on in the old epoch")
	}
	if err := b.mayWrite(); !errors.Is(err, ErrEpoch) {
		t.Errorf("b takes commands: %v", err)
	}
	b.Close()
	if _, err := Open(t.Context(), conf); !errors.Is(err, ErrEpoch) {
		t.Errorf("b started again: %v", err)
	}
	if _, err := Recover(t.Context(), conf.Dir, testMachine, true); !errors.Is(err, ErrEpoch) {
		t.Errorf("b founds an epoch of its own: %v", err)
	}
	kept, err := Follow(conf.Dir, testMachine)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the old state was not kept: %v", err)
	}
	b = start(t, conf.Dir, own, func(c *Config) { c.Seeds = conf.Seeds })
	wantSame(t, a, b)
	if _, err := b.ledger.Verify(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// A node founds its mesh even if a proposal takes longer than its timeout.
func TestFoundingTakesItsTime(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a proposal to end")
	}
	t.Parallel()
	n := start(t, t.TempDir(), func(c *Config) {
		tune := c.TuneConsensus
		c.TuneConsensus = func(c *consensus.Config) {
			tune(c)
			verify := c.Verify
			var once sync.Once
			c.Verify = func(data []byte) error {
				once.Do(func() { time.Sleep(6 * time.Second) })
				return verify(data)
			}
		}
	})
	found(t, n, "Acme")
}

// foundsLate delays a node's first try to found an epoch until the node has written
// another entry: its location. If it has already done so, the wait is in vain. The
// second try takes longer than the timeout of a proposal.
func foundsLate(c *Config) {
	tune := c.TuneConsensus
	c.TuneConsensus = func(c *consensus.Config) {
		tune(c)
		verify, newest := c.Verify, c.Time
		var tries atomic.Int32
		c.Verify = func(data []byte) error {
			if b, err := ledger.DecodeBatch(data); err == nil && b.Commands[0].Kind == ledger.KindEpoch {
				switch tries.Add(1) {
				case 1:
					before := newest()
					for end := time.Now().Add(2 * time.Second); newest().Equal(before) && time.Now().Before(end); {
						time.Sleep(time.Millisecond)
					}
				case 2:
					if !testing.Short() {
						time.Sleep(6 * time.Second)
					}
				}
			}
			return verify(data)
		}
	}
}
