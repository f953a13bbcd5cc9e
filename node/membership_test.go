package node

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/ledger"
)

func sampleMembership() membership {
	keys := identity.Derive([32]byte{1})
	n := ledger.Node{ID: keys.ID(), Key: keys.Public(), Name: "one", Addresses: []string{"192.0.2.1:9470"}, AdmittedAt: 1}
	return membership{
		Genesis: ledger.Marshal(ledger.Genesis{Name: "sample", Founder: ledger.NewNode{Key: keys.Public(), Name: "one"},
			CreatedAt: 1_790_000_000_000}),
		Admissions: []byte{0}, Wrapped: ledger.NodeKeys{Node: n.ID, Epoch: 1, Gossip: []byte("wrapped")},
		Roster: []ledger.Node{n},
	}
}

func TestMembershipFileIsAsItWas(t *testing.T) {
	kit.Golden(t, "membership.golden", hex.Dump(sampleMembership().encode())+hex.Dump(sampleMembership().file()))
}

func TestMembershipComesBackFromDisk(t *testing.T) {
	dir := t.TempDir()
	if _, err := loadMembership(dir); !errors.Is(err, errNoMembership) {
		t.Fatalf("an empty directory gives %v", err)
	}
	want := sampleMembership()
	if err := want.save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := loadMembership(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v, %v; want %+v", got, err, want)
	}
	if info, _ := os.Stat(filepath.Join(dir, membershipFile)); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	for _, name := range []string{membershipFile, membershipCopy} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("selvage membership v9\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := loadMembership(dir); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("a newer file gives %v", err)
	}
}

// Every flipped bit and every truncation of the file is detected; the copy is used
// instead.
func TestDamagedMembershipIsFound(t *testing.T) {
	good := sampleMembership().file()
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if _, err := decodeMembership(bad); err == nil {
			t.Errorf("a bit of byte %d flipped is not found", i)
		}
		if _, err := decodeMembership(good[:i]); err == nil {
			t.Errorf("cut to %d bytes is not found", i)
		}
	}
	for _, name := range []string{membershipFile, membershipCopy} {
		for what, damage := range map[string]func(string) error{
			"gone": os.Remove, "cut": func(path string) error { return os.Truncate(path, 40) },
			"zeroed": func(path string) error { return os.WriteFile(path, make([]byte, 100), 0o600) },
		} {
			dir := t.TempDir()
			if err := sampleMembership().save(dir); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if got, err := loadMembership(dir); err != nil || !reflect.DeepEqual(got, sampleMembership()) {
				t.Errorf("%s %s: %+v, %v", name, what, got, err)
			}
		}
	}
}

func FuzzMembership(f *testing.F) {
	f.Add(sampleMembership().encode())
	f.Add(sampleMembership().file())
	f.Add([]byte(membershipHeader))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMembership(b)
		if err != nil {
			return
		}
		again, err := decodeMembership(m.encode())
		if err != nil || !bytes.Equal(again.encode(), m.encode()) {
			t.Errorf("%x does not survive: %v", b, err)
		}
	})
}
