package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/selvage-mesh/selvage/discovery"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/transport"
)

// ErrSeveralMeshes says that a node without a mesh found more than one.
var ErrSeveralMeshes = errors.New("there is more than one mesh on this network: say which one with --mesh-id (or " +
	"--mesh-name), " +
	"or found another with --found")

// ErrRefused says that a person refused this node.
var ErrRefused = errors.New("the mesh does not take this node: it was refused there; to found a mesh of its own " +
	"start it with --found")

// openLAN starts mDNS if it is configured and usable.
func (n *Node) openLAN(context.Context) error {
	local, err := netip.ParseAddrPort(n.transport.Addr().String())
	switch {
	case n.conf.MDNS == MDNSOff, err != nil:
		return nil
	case local.Addr().Unmap().IsLoopback():
		if n.conf.MDNS != MDNSAuto {
			n.log.Warn("the peer port is on loopback, where there is no local network: mDNS is off", "address", local)
		}
		return nil
	}
	c := discovery.LANConfig{Port: local.Port(), Logger: n.log}
	if n.conf.MDNS != MDNSAuto {
		c.Interfaces = strings.FieldsFunc(n.conf.MDNS, func(r rune) bool { return r == ',' || r == ' ' })
	}
	switch a := n.conf.Advertise; {
	case a.IsValid():
		c.Only, c.Port = a.Addr().Unmap(), a.Port()
	case !local.Addr().IsUnspecified():
		c.Only = local.Addr().Unmap()
	}
	n.lan = discovery.OpenLAN(c)
	n.opened("lan", n.lan.Close)
	return nil
}

// showOnLAN announces the node in its current state.
func (n *Node) showOnLAN() {
	if n.lan != nil {
		n.lan.Announce(discovery.Announcement{Node: n.ID(), Mesh: n.Mesh(), Name: n.conf.Name, MeshName: n.meshName()})
	}
}

// meshName is the name of the node's mesh, "" while it has none.
func (n *Node) meshName() string {
	if n.Mesh() == "" {
		return ""
	}
	_, name, err := foundedBy(n.member.Genesis)
	if err != nil {
		return ""
	}
	return name
}

// ownerKey returns this node's owner key, nil if it has none.
func (n *Node) ownerKey() (*identity.OwnerKey, error) {
	if n.conf.Owner == "" {
		return nil, nil
	}
	k, err := identity.DecodeOwnerKey(n.conf.Owner)
	return &k, err
}

// A foundMesh is a mesh on the local network of which a member has proved its
// membership.
type foundMesh struct {
	id      identity.MeshID
	name    string // of its genesis
	at      netip.AddrPort
	strange int // how many times a member did not know this node's owner key
}

// foreign reports that the mesh does not know this node's owner key. A single member
// that does not know it may just be new.
func (m *foundMesh) foreign() bool { return m.strange >= strangeEnough }

// A search is a node's search for its mesh.
type search struct {
	n     *Node
	owner *identity.OwnerKey
	began time.Time

	mu     sync.Mutex // guards the following
	meshes map[identity.MeshID]*foundMesh
	tried  map[netip.AddrPort]time.Time
	joined *membership // by the owner key
}

// findMesh finds a mesh for a node without one and without a token: it joins by the
// owner key, asks the only mesh that it finds, or founds one.
func (n *Node) findMesh(ctx context.Context) (membership, error) {
	owner, err := n.ownerKey()
	if err != nil {
		return membership{}, err
	}
	looks := n.lan != nil || len(n.conf.Seeds) > 0 && (owner != nil || n.conf.MeshID != "")
	if n.conf.Found || !looks {
		if n.conf.MeshID != "" {
			return membership{}, errors.New("a mesh can only be looked for with mDNS, or at a --seed")
		}
		return n.genesis()
	}
	s := &search{n: n, owner: owner, began: time.Now(), meshes: map[identity.MeshID]*foundMesh{},
		tried: map[netip.AddrPort]time.Time{}}
	if n.lan != nil {
		n.showOnLAN()
		n.lan.Hurry(true)
		defer n.lan.Hurry(false)
	}
	tick := time.NewTicker(lanTick)
	defer tick.Stop()
	for told := false; ; {
		s.greetAll(ctx)
		if s.joined != nil {
			return *s.joined, nil
		}
		switch mine := s.mine(); {
		case ctx.Err() != nil:
			return membership{}, ctx.Err()
		case time.Since(s.began) < lanLook:
		case len(mine) > 1 && owner == nil:
			var list []string
			for _, m := range mine {
				list = append(list, discovery.ShortMesh(m.name, m.id))
			}
			slices.Sort(list)
			return membership{}, fmt.Errorf("%w: %s", ErrSeveralMeshes, strings.Join(list, ", "))
		case len(mine) == 1 && owner == nil:
			return s.ask(ctx, mine[0])
		case s.mayFound():
			return n.genesis()
		case !told && time.Since(s.began) > lanLook+lanUnsure:
			told = true
			n.log.Warn("looking for a mesh that answers", "wanted", n.conf.MeshID)
		}
		select {
		case <-ctx.Done():
			return membership{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// sights returns the nodes heard on the network that may belong to the wanted mesh.
func (s *search) sights() (out []discovery.Sighting) {
	if s.n.lan == nil {
		return nil
	}
	for _, v := range s.n.lan.Sightings() {
		if v.Mesh == "" || strings.HasPrefix(string(v.Mesh), s.n.conf.MeshID) {
			out = append(out, v)
		}
	}
	return out
}

// mine returns the meshes that this node may join.
func (s *search) mine() (out []*foundMesh) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.meshes {
		if !m.foreign() && (s.n.conf.MeshName == "" || s.n.conf.MeshName == m.name) && strings.HasPrefix(string(m.id),
			s.n.conf.MeshID) {
			out = append(out, m)
		}
	}
	return out
}

// mayFound reports whether the node founds a mesh: there is none for it, and no other
// node without a mesh takes precedence.
func (s *search) mayFound() bool {
	n, waited := s.n, time.Since(s.began)
	if n.conf.MeshID != "" {
		return false // only that mesh, or none
	}
	var silent []string
	for _, v := range s.sights() {
		switch {
		case v.Mesh != "" && !s.knows(v.Mesh):
			silent = append(silent, discovery.ShortMesh(v.MeshName, v.Mesh))
		case v.Mesh == "" && v.Node < n.ID() && waited < lanLook+lanYield:
			return false
		}
	}
	if len(silent) > 0 && waited < lanLook+lanUnsure {
		return false
	}
	if len(silent) > 0 {
		n.log.Warn("a mesh is announced on this network, but nobody of it answers; founding another", "announced",
			silent[:min(len(silent), 4)])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.meshes {
		if !m.foreign() && (n.conf.MeshName == "" || n.conf.MeshName == m.name) {
			return false // it may learn the key
		}
		n.log.Warn("there is another mesh on this network", "mesh", discovery.ShortMesh(m.name, m.id))
	}
	return true
}

// knows reports whether everything needed is known about a mesh.
func (s *search) knows(id identity.MeshID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.meshes[id]
	return m != nil && (s.owner == nil || m.foreign())
}

// greetAll contacts the heard nodes of meshes that are not known yet.
func (s *search) greetAll(ctx context.Context) {
	var at []netip.AddrPort
	for _, seed := range s.n.conf.Seeds {
		if s.owner != nil || s.n.conf.MeshID != "" {
			at = append(at, lookUp(ctx, seed)...)
		}
	}
	for _, v := range s.sights() {
		if v.Mesh != "" && !s.knows(v.Mesh) {
			at = append(at, v.Addrs...)
		}
	}
	now := time.Now()
	at = slices.DeleteFunc(at, func(a netip.AddrPort) bool { return now.Sub(s.tried[a]) < greetAgain })
	rand.Shuffle(len(at), func(i, j int) { at[i], at[j] = at[j], at[i] }) // so that many announcements give no advantage
	var wg sync.WaitGroup
	for _, a := range at[:min(len(at), maxGreet)] {
		s.tried[a] = now
		wg.Go(func() { s.greet(ctx, a) })
	}
	wg.Wait()
}

// greet finds out the mesh of the node at an address, and joins it if it knows the owner
// key.
func (s *search) greet(ctx context.Context, at netip.AddrPort) {
	m, name, err := s.n.meet(ctx, at)
	if err != nil {
		s.n.log.Debug("mDNS led to nobody", "address", at, "error", err)
		return
	}
	m.Close()
	f := &foundMesh{id: m.Mesh, name: name, at: at}
	if s.owner != nil {
		reply, err := s.n.transport.Join(ctx, []netip.AddrPort{at}, identity.JoinToken{Mesh: m.Mesh, ID: s.owner.TokenID(),
			PSK: *s.owner}, ledger.Marshal(s.n.self()))
		var joined membership
		if err == nil {
			joined, err = s.n.checkReply(m.Mesh, reply)
		}
		if refusal, ok := errors.AsType[*transport.RefusedError](err); ok && refusal.Reason == transport.BadHandshake {
			f.strange = 1
		} else if err != nil {
			s.n.log.Info("join by the owner key: trying again", "mesh", discovery.ShortMesh(name, m.Mesh), "error", err)
			return
		}
		if err == nil {
			s.mu.Lock()
			s.joined = &joined
			s.mu.Unlock()
			s.n.conf.Notice("joined the mesh " + discovery.ShortMesh(name, m.Mesh) + " by the owner key")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.meshes[m.Mesh]; old != nil {
		old.strange += f.strange
	} else {
		s.n.log.Info("found a mesh", "mesh", m.Mesh, "name", name, "address", at, "after", time.Since(s.began).
			Round(time.Millisecond))
		s.meshes[m.Mesh] = f
	}
}

// meet contacts the node at an address. The result is a proven member of its mesh, and
// the mesh's name.
func (n *Node) meet(ctx context.Context, at netip.AddrPort) (*transport.Member, string, error) {
	ctx, cancel := context.WithTimeout(ctx, greetTimeout)
	defer cancel()
	m, err := n.transport.Greet(ctx, at)
	if err != nil {
		return nil, "", err
	}
	founder, name, err := foundedBy(m.Genesis)
	if err == nil {
		err = m.Vouched(founder)
	}
	if err != nil {
		m.Close()
		return nil, "", err
	}
	return m, name, nil
}

// ask asks a mesh for admission, at one member after another, until a person has
// decided.
func (s *search) ask(ctx context.Context, mesh *foundMesh) (membership, error) {
	n, shown := s.n, discovery.ShortMesh(mesh.name, mesh.id)
	for pause := askAgain; ; pause = min(2*pause, askAgainMax) {
		at := append([]netip.AddrPort{mesh.at}, n.seenOf(mesh.id)...)
		for i, a := range at {
			if slices.Contains(at[:i], a) {
				continue
			}
			m, _, err := n.meet(ctx, a)
			if err != nil {
				n.log.Debug("ask to join", "address", a, "error", err)
				continue
			}
			if m.Mesh != mesh.id {
				m.Close()
				continue
			}
			reply, err := m.Ask(ctx, ledger.Marshal(n.self()), func() {
				pause = askAgain
				n.log.Info("waiting to be let in", "mesh", mesh.id, "name", mesh.name, "member", m.Node.Short(), "code", m.Code)
				n.conf.Notice(fmt.Sprintf("this node asks to join the mesh %s; its code is %s", shown, m.Code))
				n.conf.Notice(fmt.Sprintf("compare it on a member with: selvage pending; let the node in with: selvage approve %s",
					m.Code))
			})
			if err == nil {
				joined, err := n.checkReply(mesh.id, reply)
				if err == nil {
					n.conf.Notice("the mesh " + shown + " let this node in")
					return joined, nil
				}
				n.log.Warn("the answer to this node's request is not what a mesh says", "member", m.Node.Short(), "error", err)
				continue
			}
			refusal, ok := errors.AsType[*transport.RefusedError](err)
			if ok && refusal.ByPeer && refusal.Reason == transport.JoinRefused && refusal.Detail == errRefusedHere.Error() {
				return membership{}, ErrRefused
			}
			n.log.Info("ask to join: trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return membership{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// seenOf returns where members of a mesh were heard on the local network.
func (n *Node) seenOf(mesh identity.MeshID) (out []netip.AddrPort) {
	if n.lan == nil || mesh == "" {
		return nil
	}
	for _, v := range n.lan.Sightings() {
		if v.Mesh == mesh {
			out = append(out, v.Addrs...)
		}
	}
	return out
}

// sightings returns where a node of this mesh was heard; "" means any node.
func (n *Node) sightings(id identity.NodeID) []netip.AddrPort {
	switch {
	case n.lan == nil || n.Mesh() == "":
		return nil
	case id == "":
		return n.seenOf(n.Mesh())
	}
	return n.lan.Addresses(n.Mesh(), id)
}

// strangers returns addresses where nodes of this mesh may be that this node does not
// know: the seeds, and the nodes heard on the local network.
func (n *Node) strangers(ctx context.Context) (out []netip.AddrPort) {
	for _, s := range n.conf.Seeds {
		out = append(out, lookUp(ctx, s)...)
	}
	if n.lan != nil {
		for _, v := range n.lan.Sightings() {
			if v.Mesh == n.Mesh() && !n.roster.isMember(v.Node) {
				out = append(out, v.Addrs...)
			}
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), maxGreet)]
}

// followLAN passes the addresses of heard members to gossip and the transport, and logs
// each other mesh once.
func (n *Node) followLAN(ctx context.Context) {
	if n.lan == nil {
		return
	}
	others := map[identity.MeshID]bool{}
	for {
		changed := n.lan.Changed()
		news := false
		for _, v := range n.lan.Sightings() {
			switch {
			case v.Mesh == n.Mesh() && n.roster.isMember(v.Node):
				for _, a := range v.Addrs {
					n.transport.Learn(v.Node, a)
				}
				news = news || !n.alive(v.Node)
			case v.Mesh != "" && v.Mesh != n.Mesh() && !others[v.Mesh] && len(others) < maxRefused:
				others[v.Mesh] = true
				n.log.Info("another mesh is announced on this network", "mesh", discovery.ShortMesh(v.MeshName, v.Mesh))
			}
		}
		if news {
			n.discovery.Seek()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select { // changes come in bursts
		case <-ctx.Done():
			return
		case <-time.After(lanTick):
		}
	}
}

// advertised is the address that others are told.
func (n *Node) advertised() netip.AddrPort { return *n.advertise.Load() }

func (n *Node) setAdvertise(a netip.AddrPort) { n.advertise.Store(&a) }

// followAddress announces a new address of this machine, unless the address is
// configured, and only when the announced one is gone.
func (n *Node) followAddress(ctx context.Context) {
	local := n.transport.Addr()
	at, err := netip.ParseAddrPort(local.String())
	if n.conf.Advertise.IsValid() || err != nil || !at.Addr().IsUnspecified() || n.conf.Conn != nil {
		return
	}
	every(ctx, addressEvery, func() {
		now := n.advertised()
		if here, any := localAddresses(); !any || slices.Contains(here, now.Addr()) {
			return
		}
		next := advertised(netip.AddrPort{}, local)
		if next == now || next.Addr().IsLoopback() {
			return
		}
		n.log.Info("this node has another address", "was", now, "is", next)
		n.setAdvertise(next)
		if n.discovery == nil {
			return
		}
		if err := n.discovery.SetAdvertise(next); err != nil {
			n.log.Warn("tell gossip of the new address", "error", err)
		}
		if n.lan != nil {
			n.lan.Look()
		}
	})
}

// localAddresses returns this machine's addresses; any is false if it has only loopback
// addresses.
func localAddresses() (out []netip.Addr, any bool) {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			ip := p.Addr().Unmap()
			out = append(out, ip)
			any = any || ip.IsGlobalUnicast()
		}
	}
	return out, any
}

// onLink reports whether an address is in a network of this machine.
func onLink(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && netip.PrefixFrom(p.Addr().Unmap(), p.Bits()).Contains(ip) {
			return true
		}
	}
	return false
}
