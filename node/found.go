package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/consensus"
	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// self is this node's description when it founds a mesh or joins one.
func (n *Node) self() ledger.NewNode {
	return ledger.NewNode{
		Key: n.keys.Public(), SealCert: n.keys.Certificate(identity.ForSeal).Encode(), Name: n.conf.Name,
		Labels: n.labels(), Addresses: []string{n.advertised().String()},
	}
}

// labels returns the configured labels in the roster's form, sorted: "key=value", or
// "key" if the value is empty. A node is admitted with them; afterwards only an operator
// changes them.
func (n *Node) labels() (out []string) {
	for k, v := range n.conf.Labels {
		if v != "" {
			k += "=" + v
		}
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// strayLabels returns those of said that are not in the node's row of the roster.
func strayLabels(said []string, row ledger.Node) []string {
	return slices.DeleteFunc(said, row.Has)
}

// genesis creates the membership of a new mesh; found proposes it.
func (n *Node) genesis() (membership, error) {
	if n.conf.HTTP != "none" {
		if err := api.CheckBind(n.conf.HTTP, cmp.Or(n.conf.Auth, people.LocalTrusted)); err != nil {
			return membership{}, err
		}
	}
	self := n.self()
	row := ledger.Node{ID: n.keys.ID(), Key: self.Key, SealCert: self.SealCert, Name: self.Name, Addresses: self.Addresses}
	data := identity.NewDataKey()
	wrapped, err := wrapKeys(row, 1, data, identity.NewDataKey())
	if err != nil {
		return membership{}, err
	}
	name := n.conf.MeshName
	if name == "" { // two new meshes must not have the same name
		name = cut(n.conf.Name, maxName-5) + "-" + string(n.ID())[:4]
	}
	g := ledger.Genesis{Name: name, Founder: self, CreatedAt: n.conf.Wall().UnixMilli(), Wrapped: wrapped,
		Level: n.conf.Level}
	if key, err := n.ownerKey(); err != nil {
		return membership{}, err
	} else if key != nil {
		g.Owner = &ledger.OwnerAdd{ID: key.TokenID(), Sealed: identity.Seal(data, tokenAAD(key.TokenID()), key[:])}
	}
	if n.conf.Auth != people.LocalTrusted { // the mode of a mesh that names none
		g.Auth = n.conf.Auth
	}
	return membership{Genesis: ledger.Marshal(g), Founder: true, Wrapped: wrapped, Roster: []ledger.Node{row}}, nil
}

// found makes sure that the mesh that this node founds has its genesis; an earlier
// attempt may have been interrupted anywhere. It then removes the founder mark, so that
// a founder that loses its disk later can not found the mesh a second time.
func (n *Node) found(ctx context.Context) error {
	if n.member.Founding != nil {
		return n.foundEpoch(ctx)
	}
	if !n.member.Founder {
		return nil
	}
	if height, _ := n.ledger.Head(); height == 0 {
		if err := n.proposeGenesis(ctx); err != nil {
			return err
		}
	}
	n.saving.Lock()
	defer n.saving.Unlock()
	n.member.Founder = false
	return n.saveMember()
}

func (n *Node) proposeGenesis(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, foundTimeout)
	defer cancel()
	if !n.consensus.Bootstrapped() {
		if err := n.consensus.Bootstrap(ctx); err != nil {
			return err
		}
	}
	if err := n.untilLeads(ctx); err != nil {
		return fmt.Errorf("propose genesis: %w", err)
	}
	cmd := n.command(ledger.KindGenesis, "", nil)
	cmd.Payload = n.member.Genesis
	batch := ledger.EncodeBatch(n.Mesh(), n.keys.ID(), 0, 0, 0, []ledger.Command{cmd}, n.keys.Sign)
	for {
		result, _, err := n.consensus.Propose(ctx, batch)
		var receipts []ledger.Receipt
		if err == nil {
			if receipts, err = ledger.DecodeReceipts(result); err == nil {
				err = receipts[0].Err()
			}
		}
		if height, _ := n.ledger.Head(); err == nil || height > 0 {
			break // by this attempt or an earlier one
		}
		// On a slow machine a proposal may take longer than its timeout.
		if !errors.Is(err, consensus.ErrOutcomeUnknown) && !errors.Is(err, consensus.ErrBusy) || ctx.Err() != nil {
			return fmt.Errorf("propose genesis: %w", err)
		}
	}
	n.refreshRoster()
	n.log.Info("founded a mesh", "mesh", n.Mesh(), "name", n.meshName())
	n.conf.Notice("founded the mesh " + discovery.ShortMesh(n.meshName(), n.Mesh()))
	return nil
}

// untilLeads waits until this node, which is alone, leads. On a slow machine that takes
// longer than a proposal's timeout.
func (n *Node) untilLeads(ctx context.Context) error {
	for !n.consensus.IsLeader() {
		select {
		case <-ctx.Done():
			return consensus.ErrNoLeader
		case <-time.After(leadPoll):
		}
	}
	return nil
}

// command returns a command of this node itself.
func (n *Node) command(kind string, company ledger.CompanyID, payload any) ledger.Command {
	c := ledger.Command{
		Kind: kind, Company: company,
		Actor:      ledger.Actor{Type: "node", ID: string(n.keys.ID())},
		Credential: ledger.Credential{Kind: "node", ID: string(n.keys.ID())},
	}
	if payload != nil {
		c.Payload = ledger.Marshal(payload)
	}
	rand.Read(c.Salt[:])
	return c
}

// cut shortens a name to at most most bytes.
func cut(s string, most int) string {
	for len(s) > most {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
