package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// alive reports whether discovery considers a node alive. A node without discovery knows
// itself alone.
func (n *Node) alive(id identity.NodeID) bool {
	if n.discovery == nil {
		return id == n.ID()
	}
	return n.discovery.Alive(id)
}

// others returns the live members, without this node.
func (n *Node) others() []discovery.Member {
	if n.discovery == nil {
		return nil
	}
	return n.discovery.Live()
}

// peers returns the members that this node may ask for enrollment: first those that are
// alive, then everyone in the roster.
func (n *Node) peers() (out []identity.NodeID) {
	for _, m := range n.others() {
		out = append(out, m.Meta.Node)
	}
	var rest []identity.NodeID
	for id, m := range n.roster.all() {
		if m.Member() && id != n.ID() && !slices.Contains(out, id) {
			rest = append(rest, id)
		}
	}
	slices.Sort(rest)
	return append(out, rest...)
}

// mayVote reports whether a member may become a voter, and returns its zone.
func (n *Node) mayVote(id identity.NodeID) (may bool, zone string) {
	m, ok := n.roster.node(id)
	if !ok || !m.Member() || m.Has(ledger.LabelUntrusted) || m.Role == "observer" {
		return false, ""
	}
	for _, l := range m.Labels {
		if z, ok := strings.CutPrefix(l, "zone="); ok {
			zone = z
		}
	}
	return true, zone
}

// resolve returns possible addresses of a node: from gossip, the peer cache and the
// roster, and the seeds, because whoever answers must prove its identity.
func (n *Node) resolve(id identity.NodeID) (out []netip.AddrPort) {
	if n.discovery != nil {
		out = n.discovery.Addresses(id)
	}
	m, _ := n.roster.node(id)
	for _, a := range m.Addresses {
		if p, err := netip.ParseAddrPort(a); err == nil && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// hints returns addresses where any member may be.
func (n *Node) hints() (out []netip.AddrPort) {
	for id, m := range n.roster.all() {
		if !m.Member() || id == n.ID() {
			continue
		}
		for _, a := range m.Addresses {
			if p, err := netip.ParseAddrPort(a); err == nil {
				out = append(out, p)
			}
		}
	}
	out = append(out, n.sightings("")...)
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out)
}

// announce updates this node's name and address in the roster when they have changed,
// and its role in gossip.
func (n *Node) announce(ctx context.Context) {
	role := ""
	every(ctx, rotateRetry, func() {
		if now := n.Role(); now != role && n.discovery != nil {
			m := n.discovery.Self().Meta
			m.Role = now
			if n.discovery.SetMeta(m) == nil {
				role = now
			}
		}
		m, ok := n.roster.node(n.ID())
		addr := []string{n.advertised().String()}
		if !ok || !m.Member() || m.Name == n.conf.Name && slices.Equal(m.Addresses, addr) {
			return
		}
		name := n.conf.Name
		if err := n.carryOut(ctx, n.command(ledger.KindNodeUpdate, "", ledger.NodeUpdate{Node: n.ID(), Name: &name,
			Addresses: &addr})); err != nil {
			n.log.Warn("tell the mesh this node's name and address", "error", err)
		}
	})
}

// rotateKeys rotates the keys, while this node leads, when a node was revoked: that node
// can decrypt nothing sealed afterwards. It also rotates keys that have become old.
func (n *Node) rotateKeys(ctx context.Context) {
	every(ctx, rotateRetry, func() {
		if !n.consensus.IsLeader() {
			return
		}
		var keys ledger.Keys
		var since time.Time
		err := n.ledger.View(func(tx *ledger.Tx) error {
			keys, since = ledger.CurrentKeys(tx), ledger.KeysSince(tx)
			return nil
		})
		if age := n.conf.Wall().Sub(since); err != nil || keys.Epoch > 1 && age < 2*n.conf.KeyOverlap || !keys.Wanted &&
			(since.IsZero() || age < n.conf.RotateEvery) {
			return
		}
		if err := n.rotate(ctx, ledger.Actor{}, ledger.Credential{}); err != nil {
			n.log.Warn("rotate the mesh's keys", "error", err)
		}
	})
}

// RotateKeys rotates the keys on behalf of by. A rotation that races with an admission
// is refused, and retried for the new members.
func (n *Node) RotateKeys(ctx context.Context, by ledger.Actor, with ledger.Credential) (err error) {
	for range maxAdmitTries {
		if err = n.rotate(ctx, by, with); err == nil {
			return nil
		}
		if refusal, ok := errors.AsType[*ledger.Refusal](err); !ok || refusal.Code != ledger.Conflict ||
			refusal.Detail != nil {
			return err
		}
		select { // this node may not have applied the conflicting entry yet
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rosterRetry):
			n.refreshRoster()
		}
	}
	return err
}

// rotate creates keys for the current members and proposes them, as by or as this node
// itself. It is refused until the previous keys are in use, because gossip holds at most
// three epochs.
func (n *Node) rotate(ctx context.Context, by ledger.Actor, with ledger.Credential) error {
	var keys ledger.Keys
	var members []ledger.Node
	var version uint64
	var since time.Time
	err := n.ledger.View(func(tx *ledger.Tx) error {
		keys, version, members = ledger.CurrentKeys(tx), ledger.RosterVersion(tx), ledger.Roster(tx)
		if keys.Epoch > 1 { // the first keys are in use at once
			since = ledger.KeysSince(tx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if early := 2*n.conf.KeyOverlap - n.conf.Wall().Sub(since); early > 0 {
		return ledger.Refuse(ledger.Conflict, fmt.Appendf(nil, `{"retryAfterMs":%d}`, early.Milliseconds()+1),
			"The mesh's keys were just rotated; others are on their way to use them for another %v",
			early.Round(time.Millisecond))
	}
	epoch, old, _ := n.keyring.current()
	if epoch != keys.Epoch {
		return ledger.Refuse(ledger.Conflict, nil, "This node has not opened the mesh's present keys yet")
	}
	data, gossip := identity.NewDataKey(), identity.NewDataKey()
	p := ledger.KeysRotate{Epoch: epoch + 1, Roster: version, Previous: identity.Seal(data, previousAAD(epoch), old[:])}
	for _, m := range members {
		if !m.Member() {
			continue
		}
		w, err := wrapKeys(m, epoch+1, data, gossip)
		if err != nil {
			return err
		}
		p.Wrapped = append(p.Wrapped, w)
	}
	cmd := n.command(ledger.KindKeysRotate, "", p)
	if by.Type != "" {
		cmd.Actor, cmd.Credential = by, with
	}
	return n.carryOut(ctx, cmd)
}

// takeKeys opens the keys of a new epoch. Gossip keeps using the old key until all nodes
// have the new one, and then forgets it.
func (n *Node) takeKeys(w ledger.NodeKeys) {
	changed, err := n.keyring.take(w)
	if err != nil {
		n.log.Error("the mesh's new keys do not open", "epoch", w.Epoch, "error", err)
		return
	}
	if !changed || n.discovery == nil {
		return
	}
	epoch, _, gossip := n.keyring.current()
	if err := n.discovery.AddKey(discovery.Key{Epoch: epoch, Key: gossip}); err != nil {
		n.log.Error("gossip key", "epoch", epoch, "error", err)
		return
	}
	n.spawn(func(ctx context.Context) {
		if err := n.keyring.turnGossip(ctx, n.discovery, epoch, n.conf.KeyOverlap); err != nil {
			n.log.Warn("gossip key", "epoch", epoch, "error", err)
		}
	})
}

// refreshKeys takes the newest keys from the state. It reports whether they were newer
// than this node's.
func (n *Node) refreshKeys() bool {
	before, _, _ := n.keyring.current()
	n.refreshRoster()
	after, _, _ := n.keyring.current()
	return after > before
}

func asKey(b []byte) ed25519.PublicKey { return ed25519.PublicKey(b) }
