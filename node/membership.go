package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A membership is what a node stores outside its state about its mesh: enough to be
// readmitted, and to talk to the other nodes, before it has a state or after losing it.
//
// The file "membership" in the data directory is the line "selvage membership v2", the
// line "sum " and the SHA-256 of the rest in hex, and deterministic CBOR of this struct.
// It is written when the node founds or joins a mesh, when its membership ends, and
// around a change of epoch. It contains no secret in plain text: the keys are wrapped
// for the node. A reader refuses another first line, except "selvage membership v1",
// which is followed by the CBOR: the former format, and the format of the answer to a
// join.
//
// "membership.copy" holds the same bytes and is written afterwards. It is read when the
// first file is missing or damaged. When both are, the node recreates its membership
// from its state; see [Node.regainMembership].
type membership struct {
	Genesis    []byte          `cbor:"1,keyasint"`           // payload of mesh.genesis; the mesh ID is its hash
	Founder    bool            `cbor:"2,keyasint,omitempty"` // this node founded the mesh
	Admissions []byte          `cbor:"3,keyasint,omitempty"` // identity.EncodeAdmissions, empty for the founder
	Wrapped    ledger.NodeKeys `cbor:"4,keyasint"`           // the mesh's keys when it joined
	Roster     []ledger.Node   `cbor:"5,keyasint"`           // the members when it joined
	Over       bool            `cbor:"6,keyasint,omitempty"` // it has left, or was revoked
	Epoch      uint64          `cbor:"7,keyasint,omitempty"` // of the mesh; 0 is the first
	Founding   *founding       `cbor:"8,keyasint,omitempty"` // this node must found that epoch
	Met        *metEpoch       `cbor:"9,keyasint,omitempty"` // a later epoch: this node is left behind
}

const (
	membershipFile   = "membership"
	membershipCopy   = "membership.copy"
	membershipHeader = "selvage membership v1\n"
	membershipSummed = "selvage membership v2\nsum "
)

var errNoMembership = errors.New("no member of a mesh")

func (m membership) mesh() identity.MeshID { return identity.MeshIDOf(m.Genesis) }

func (m membership) encode() []byte { return append([]byte(membershipHeader), ledger.Marshal(m)...) }

// file returns the content of the file.
func (m membership) file() []byte {
	b := ledger.Marshal(m)
	return append(fmt.Appendf(nil, "%s%x\n", membershipSummed, sha256.Sum256(b)), b...)
}

func decodeMembership(b []byte) (m membership, err error) {
	if sum, summed := bytes.CutPrefix(b, []byte(membershipSummed)); summed {
		sum, body, _ := bytes.Cut(sum, []byte("\n"))
		if string(sum) != fmt.Sprintf("%x", sha256.Sum256(body)) {
			return m, errors.New("membership: the file is damaged, it does not have its sum")
		}
		b = append([]byte(membershipHeader), body...)
	}
	rest, ok := bytes.CutPrefix(b, []byte(membershipHeader))
	if !ok {
		return m, errors.New("membership: the file is damaged, or written by another version")
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

// loadMembership reads the file, or its copy if the file is unusable. The error is that
// of the file; it wraps errNoMembership when neither exists.
func loadMembership(dir string) (membership, error) {
	m, err := readMembership(filepath.Join(dir, membershipFile))
	if err == nil {
		return m, nil
	}
	if m, copyErr := readMembership(filepath.Join(dir, membershipCopy)); copyErr == nil {
		return m, nil
	} else if errors.Is(err, errNoMembership) {
		err = copyErr
	}
	return membership{}, err
}

func readMembership(path string) (membership, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return membership{}, errNoMembership
	} else if err != nil {
		return membership{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxMembership+1))
	if err != nil {
		return membership{}, fmt.Errorf("membership: %w", err)
	}
	if len(b) > maxMembership {
		return membership{}, fmt.Errorf("membership: more than %d bytes", maxMembership)
	}
	return decodeMembership(b)
}

// healMembership rewrites the files of a loaded membership if one of them was missing or
// damaged.
func (n *Node) healMembership() error {
	want := n.member.file()
	for _, name := range []string{membershipFile, membershipCopy} {
		got, err := os.ReadFile(filepath.Join(n.conf.Dir, name))
		if err == nil && bytes.Equal(got, want) || name == membershipFile && err == nil && bytes.HasPrefix(got,
			[]byte(membershipHeader)) {
			continue
		}
		if name == membershipFile || err == nil {
			n.log.Warn("a file of the membership was lost or damaged, and is written again from its copy", "file", name)
		}
		return n.saveMember()
	}
	return nil
}

// regainMembership recreates the membership of a node that lost both files from its
// state: the genesis, the members, the keys wrapped for it, and the epoch. The admission
// is not in the state; it is fetched from a peer later (see askAround). A node that is
// not new and whose state lacks any of this does not start: it must never found a mesh
// in place of its own.
func (n *Node) regainMembership() error {
	why := n.unread
	if why == nil {
		return nil
	}
	m, found, err := membershipOf(n.ledger, n.ID())
	if err != nil {
		return err
	}
	if !found {
		if errors.Is(why, errNoMembership) && n.freshLog && !usedBefore(n.conf.Dir) {
			return nil // a new node
		}
		if errors.Is(why, errNoMembership) {
			why = errors.New("membership: the file and its copy are gone")
		}
		return fmt.Errorf("%w, and this node's state is not enough to make them again; put the file back from a copy of "+
			"this disk, "+
			"or move the data directory away, join with a new token, and take the old node out: selvage node remove %s", why,
			n.ID().Short())
	}
	n.log.Warn("the membership file and its copy were lost or damaged, and are made again from the state", "error", why,
		"mesh", m.mesh())
	if err := m.save(n.conf.Dir); err != nil {
		return err
	}
	n.member, n.unread = m, nil
	return n.belong()
}

// admission proves to nodes that do not know this node that it was admitted.
func (n *Node) admission() []byte {
	if b := n.readmitted.Load(); b != nil {
		return *b
	}
	return n.member.Admissions
}

// saveMember writes the membership file with the current members and keys of the state,
// unless the file has them already. The caller holds n.saving.
func (n *Node) saveMember() error {
	m := n.member
	m.Admissions = n.admission()
	if n.known != nil {
		m.Roster = n.known.nodes
		if n.known.keys.Epoch > 0 {
			m.Wrapped = n.known.keys
		}
	}
	b := m.file()
	if bytes.Equal(b, n.saved) {
		return nil
	}
	if err := m.save(n.conf.Dir); err != nil {
		return err
	}
	n.saved = b
	return nil
}

// chain returns the admissions from this node to the founder: none for the founder. It
// fails on a node that lost its own and was not readmitted yet.
func (n *Node) chain() ([]identity.Admission, error) {
	founder, _, err := foundedBy(n.member.Genesis)
	if err != nil {
		return nil, err
	}
	chain, err := identity.DecodeAdmissions(n.admission())
	if _, _, founded := founder(n.ID()); err == nil && len(chain) == 0 && !founded {
		err = errors.New("this node lost its own admission and is being given another; try again, or ask another member")
	}
	return chain, err
}

// readmit accepts an admission from a peer on a node that has lost its own.
func (n *Node) readmit(admissions []byte) {
	if _, err := n.chain(); err == nil || len(admissions) == 0 {
		return
	}
	founder, _, err := foundedBy(n.member.Genesis)
	if err != nil {
		return
	}
	chain, err := identity.DecodeAdmissions(admissions)
	if err == nil {
		err = identity.VerifyAdmissions(chain, n.Mesh(), n.keys.Public(), founder)
	}
	n.saving.Lock()
	defer n.saving.Unlock()
	if err == nil {
		n.readmitted.Store(&admissions)
		err = n.saveMember()
	}
	if err != nil {
		n.log.Warn("an admission in the place of the lost one can not be kept", "error", err)
		return
	}
	n.log.Info("a peer gave an admission in the place of the lost one")
}

// membershipOf reads a member's membership from the state; found is false when the state
// lacks a part of it.
func membershipOf(l *ledger.Ledger, self identity.NodeID) (m membership, found bool, err error) {
	err = l.View(func(tx *ledger.Tx) error {
		_, payload, founded := ledger.Founding(tx)
		if !founded {
			return nil
		}
		m = membership{Genesis: payload, Roster: ledger.Roster(tx), Epoch: ledger.CurrentEpoch(tx).Number}
		m.Wrapped, found = ledger.WrappedFor(tx, self)
		for _, row := range m.Roster {
			if row.ID == self && !row.Member() {
				m.Over, found = true, true
			}
		}
		return nil
	})
	return m, found && err == nil, err
}

// usedBefore reports whether a data directory has traces of an earlier start, other than
// an identity and an empty store.
func usedBefore(dir string) bool {
	all, _ := os.ReadDir(dir)
	return slices.ContainsFunc(all, func(e fs.DirEntry) bool {
		return e.Name() == membershipFile || e.Name() == membershipCopy || strings.HasPrefix(e.Name(), "damaged-") ||
			strings.HasPrefix(e.Name(), "store.")
	})
}

// save writes the file and its copy, each atomically, and syncs them.
func (m membership) save(dir string) error {
	b := m.file()
	for _, name := range []string{membershipFile, membershipCopy} {
		tmp := filepath.Join(dir, name+".new")
		f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openMembership determines the node's mesh: the one of its membership file, the one
// that its token opens, or a new one.
func (n *Node) openMembership(ctx context.Context) (err error) {
	switch {
	case n.Mesh() != "":
		if n.conf.Join != "" {
			n.log.Info("this node is a member already, the join token is not used", "mesh", n.Mesh())
		}
	case n.conf.Join != "":
		n.member, err = n.join(ctx)
	default:
		n.member, err = n.findMesh(ctx)
	}
	if err != nil {
		return err
	}
	if n.Mesh() == "" {
		if err := n.saveMember(); err != nil {
			return err
		}
		n.belongTo(n.member.mesh())
		n.roster.learn(n.member.Roster)
	}
	if _, err := n.keyring.take(n.member.Wrapped); err != nil {
		return err
	}
	n.alone.Store(n.member.Founding != nil && n.member.Founding.Alone)
	n.refreshRoster()
	if m, ok := n.roster.node(n.ID()); ok {
		if stray := strayLabels(n.labels(), m); len(stray) > 0 {
			n.log.Warn("labels that this node was started with are not those of the roster and count for nothing; say them "+
				"with selvage node label", "labels", stray)
		}
	}
	n.showOnLAN()
	return nil
}
