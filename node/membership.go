package node

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A membership is what a node keeps outside its state about the mesh that it
// belongs to: enough to be let in again, and to talk to the others, before it
// has any state, or when it lost it.
//
// The file "membership" in the data directory is the line
// "selvage membership v1" and deterministic CBOR of this struct. It is written
// when the node founds or joins, when its membership ends, and around a change of epoch; nothing in it is secret in the clear (the
// keys are wrapped to the node). Another first line is refused.
type membership struct {
	Genesis    []byte          `cbor:"1,keyasint"`           // payload of mesh.genesis; the mesh ID is its hash
	Founder    bool            `cbor:"2,keyasint,omitempty"` // this node founded the mesh
	Admissions []byte          `cbor:"3,keyasint,omitempty"` // identity.EncodeAdmissions, empty for the founder
	Wrapped    ledger.NodeKeys `cbor:"4,keyasint"`           // the mesh's keys when it joined
	Roster     []ledger.Node   `cbor:"5,keyasint"`           // the members when it joined
	Over       bool            `cbor:"6,keyasint,omitempty"` // it has left, or was thrown out
	Epoch      uint64          `cbor:"7,keyasint,omitempty"` // of the mesh; 0 is the first
	Founding   *founding       `cbor:"8,keyasint,omitempty"` // this node is to found that epoch
	Met        *metEpoch       `cbor:"9,keyasint,omitempty"` // a later epoch: this node is left behind
}

const (
	membershipFile   = "membership"
	membershipHeader = "selvage membership v1\n"
)

var errNoMembership = errors.New("no member of a mesh")

func (m membership) mesh() identity.MeshID { return identity.MeshIDOf(m.Genesis) }

func (m membership) encode() []byte { return append([]byte(membershipHeader), ledger.Marshal(m)...) }

func decodeMembership(b []byte) (m membership, err error) {
	rest, ok := bytes.CutPrefix(b, []byte(membershipHeader))
	if !ok {
		return m, errors.New("membership: written by another version")
	}
	if err := ledger.Unmarshal(rest, &m); err != nil {
		return m, fmt.Errorf("membership: %w", err)
	}
	if len(m.Genesis) == 0 {
		return m, errors.New("membership: no genesis")
	}
	for _, n := range m.Roster {
		if len(n.Key) != ed25519.PublicKeySize || identity.NodeIDOf(n.Key) != n.ID {
			return m, errors.New("membership: roster key does not match its node")
		}
	}
	return m, nil
}

func loadMembership(dir string) (membership, error) {
	path := filepath.Join(dir, membershipFile)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return membership{}, errNoMembership
	} else if err != nil {
		return membership{}, err
	}
	if info.Size() > maxMembership {
		return membership{}, fmt.Errorf("membership: %d bytes", info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return membership{}, err
	}
	return decodeMembership(b)
}

// save writes the file in one step and syncs it.
func (m membership) save(dir string) error {
	tmp := filepath.Join(dir, membershipFile+".new")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(m.encode())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, membershipFile)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
