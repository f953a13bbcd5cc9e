package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/selvage-mesh/selvage/company/people"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

// A join reply is an encoded membership without the Founder mark. A join request is a
// ledger.NewNode in deterministic CBOR.

// join asks the seeds of the token for admission, and checks that the answer leads to
// the founder of the token's mesh.
func (n *Node) join(ctx context.Context) (membership, error) {
	token, err := identity.DecodeJoinToken(n.conf.Join)
	if err != nil {
		return membership{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	var seeds []netip.AddrPort
	for _, s := range append(slices.Clone(token.Seeds), n.conf.Seeds...) {
		seeds = append(seeds, lookUp(ctx, s)...)
	}
	if len(seeds) == 0 && n.lan == nil {
		return membership{}, fmt.Errorf("no address in the join token can be resolved: %v", token.Seeds)
	}
	if n.lan != nil {
		n.lan.Hurry(true)
		defer n.lan.Hurry(false)
	}
	for {
		err := errors.New("no member of the mesh was seen on the local network")
		var reply []byte
		if at := append(slices.Clone(seeds), n.seenOf(token.Mesh)...); len(at) > 0 {
			if reply, err = n.transport.Join(ctx, at, token, ledger.Marshal(n.self())); err == nil {
				return n.checkReply(token.Mesh, reply)
			}
		}
		// A member without a leader says so; the token's holder retries after a short wait.
		select {
		case <-ctx.Done():
			return membership{}, err
		case <-time.After(time.Second):
			n.log.Info("join: trying again", "error", err)
		}
	}
}

func (n *Node) checkReply(mesh identity.MeshID, reply []byte) (membership, error) {
	m, err := decodeMembership(reply)
	if err != nil {
		return m, err
	}
	m.Founder, m.Founding, m.Met = false, nil, nil
	if m.mesh() != mesh {
		return m, errors.New("the answer is of another mesh than the one that was asked")
	}
	founder, _, err := foundedBy(m.Genesis)
	if err != nil {
		return m, err
	}
	chain, err := identity.DecodeAdmissions(m.Admissions)
	if err != nil {
		return m, err
	}
	if err := identity.VerifyAdmissions(chain, m.mesh(), n.keys.Public(), founder); err != nil {
		return m, fmt.Errorf("admission: %w", err)
	}
	return m, nil
}

// foundedBy reads the founder and the name of the mesh from a genesis.
func foundedBy(genesis []byte) (founder identity.Roster, name string, err error) {
	var g ledger.Genesis
	if err := ledger.Unmarshal(genesis, &g); err != nil {
		return nil, "", fmt.Errorf("genesis: %w", err)
	}
	return newRoster([]ledger.Node{{ID: identity.NodeIDOf(g.Founder.Key), Key: g.Founder.Key}}).member, g.Name, nil
}

// onJoin admits a node that proved to hold a valid token. The admission is a command;
// the reply contains what the new member needs to start.
func (n *Node) onJoin(ctx context.Context, from identity.Certificate, tokenID string, request []byte) ([]byte, error) {
	var node ledger.NewNode
	if err := ledger.Unmarshal(request, &node); err != nil {
		return nil, errors.New("malformed join request")
	}
	if !from.Node.Equal(asKey(node.Key)) {
		return nil, errors.New("the request is of another node key than the handshake")
	}
	receipt, wrapped, err := n.admit(ctx, ledger.NodeAdmit{Node: node, Token: tokenID}, ledger.Actor{},
		ledger.Credential{})
	if err != nil {
		return nil, err
	}
	return n.joinReply(ctx, node.Key, receipt, wrapped)
}

// admit wraps the keys for a node and proposes its admission, and retries if the keys
// were rotated meanwhile. It acts as by, or as this node itself.
func (n *Node) admit(ctx context.Context, p ledger.NodeAdmit, by ledger.Actor,
	with ledger.Credential) (receipt ledger.Receipt, wrapped ledger.NodeKeys, err error) {
	if _, err := n.chain(); err != nil { // before a use of the token is wasted
		return receipt, wrapped, err
	}
	row := ledger.Node{ID: identity.NodeIDOf(p.Node.Key), SealCert: p.Node.SealCert, Labels: p.Node.Labels}
	for range maxAdmitTries {
		if wrapped, err = n.keyring.wrapFor(row); err != nil {
			return receipt, wrapped, err
		}
		p.Wrapped = wrapped
		cmd := n.command(ledger.KindNodeAdmit, "", p)
		if by.Type != "" {
			cmd.Actor, cmd.Credential = by, with
		}
		ctx, cancel := context.WithTimeout(ctx, submitTimeout)
		receipt, err = n.submit(ctx, cmd)
		cancel()
		if err != nil {
			return receipt, wrapped, errors.New("the mesh has no leader now, try again")
		}
		if receipt.Refusal != nil && receipt.Refusal.Code == ledger.Conflict && n.refreshKeys() {
			continue // the keys were rotated meanwhile
		}
		return receipt, wrapped, receipt.Err()
	}
	return receipt, wrapped, errors.New("the mesh's keys are being rotated, try again")
}

// maxAdmitTries bounds the retries when rotations of the keys come between.
const maxAdmitTries = 3

func (n *Node) joinReply(ctx context.Context, key []byte, receipt ledger.Receipt,
	wrapped ledger.NodeKeys) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	if err := n.ledger.WaitApplied(ctx, receipt.Index); err != nil {
		return nil, err
	}
	return n.vouch(key, receipt.Height, wrapped)
}

// vouch returns the reply to a node that was admitted at a height.
func (n *Node) vouch(key []byte, height uint64, wrapped ledger.NodeKeys) ([]byte, error) {
	mine, err := n.chain()
	if err != nil {
		return nil, err
	}
	admission, err := n.keys.Admit(n.Mesh(), key, height)
	if err != nil {
		return nil, err
	}
	m := membership{Genesis: n.member.Genesis,
		Admissions: identity.EncodeAdmissions(append([]identity.Admission{admission}, mine...)), Wrapped: wrapped,
		Epoch: n.member.Epoch}
	err = n.ledger.View(func(tx *ledger.Tx) error {
		m.Roster = ledger.Roster(tx)
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.log.Info("admitted a node", "node", identity.NodeIDOf(key).Short())
	return m.encode(), nil
}

// joinKey returns the key of a join token for transport.
func (n *Node) joinKey(id string) (key []byte, ok bool) {
	err := n.ledger.View(func(tx *ledger.Tx) error {
		t, found := ledger.FindToken(tx, id)
		if !found || !t.Usable(n.conf.Wall().UnixMilli()) {
			return nil
		}
		psk, err := n.keyring.open(tx, tokenAAD(id), t.Sealed)
		key, ok = psk, err == nil
		return err
	})
	if err != nil {
		n.log.Warn("join token does not open", "token", id, "error", err)
	}
	return key, ok
}

// CreateToken creates a join token as the local board, if that may act, and returns its
// text, a secret.
func (n *Node) CreateToken(ctx context.Context, uses int, ttl time.Duration) (string, error) {
	return n.createToken(ctx, ledger.Actor{Type: "user", ID: people.LocalBoard},
		ledger.Credential{Kind: "local"}, uses, ttl)
}

// createToken creates a join token as the actor by.
func (n *Node) createToken(ctx context.Context, by ledger.Actor, with ledger.Credential, uses int,
	ttl time.Duration) (string, error) {
	seeds := []string{n.advertised().String()}
	for _, a := range n.hints() {
		if s := a.String(); len(seeds) < maxAdvertised && s != seeds[0] {
			seeds = append(seeds, s)
		}
	}
	t := identity.NewJoinToken(n.Mesh(), n.keys.ID(), seeds)
	_, data, _ := n.keyring.current()
	cmd := n.command(ledger.KindTokenCreate, "", ledger.TokenCreate{
		ID: t.ID, Sealed: identity.Seal(data, tokenAAD(t.ID), t.PSK[:]), Uses: uint64(max(uses, 0)), TTL: ttl.Milliseconds(),
	})
	cmd.Actor, cmd.Credential = by, with
	receipt, err := n.submit(ctx, cmd)
	if err != nil {
		return "", err
	}
	if err := receipt.Err(); err != nil {
		return "", err
	}
	return identity.EncodeJoinToken(t)
}

// lookUp resolves host:port. It returns nothing if that fails.
func lookUp(ctx context.Context, hostport string) (out []netip.AddrPort) {
	if a, err := netip.ParseAddrPort(hostport); err == nil {
		return []netip.AddrPort{a}
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil
	}
	p, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return nil
	}
	ips, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for _, ip := range ips {
		out = append(out, netip.AddrPortFrom(ip.Unmap(), uint16(p)))
	}
	return out
}

// AddOwner adds an owner key to the mesh on behalf of by, a new one when text is "", and
// returns its text, a secret.
func (n *Node) AddOwner(ctx context.Context, by ledger.Actor, with ledger.Credential, text,
	note string) (string, error) {
	key := identity.NewOwnerKey()
	if text != "" {
		var err error
		if key, err = identity.DecodeOwnerKey(text); err != nil {
			return "", err
		}
	}
	_, data, _ := n.keyring.current()
	cmd := n.command(ledger.KindOwnerAdd, "", ledger.OwnerAdd{ID: key.TokenID(),
		Sealed: identity.Seal(data, tokenAAD(key.TokenID()), key[:]), Note: note})
	cmd.Actor, cmd.Credential = by, with
	receipt, err := n.submit(ctx, cmd)
	if err != nil {
		return "", err
	}
	return identity.EncodeOwnerKey(key), receipt.Err()
}
