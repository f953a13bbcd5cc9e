package discovery

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/grandcat/zeroconf"

	"github.com/selvage-mesh/selvage/identity"
)

// A LAN announces a node by multicast DNS on the local network, service
// _selvage._udp, and looks for others. What is heard there is not authenticated:
// it yields names to show and addresses to try, and grants nothing.
//
// The instance is called by the node's ID. Its TXT record has the strings
//
//	v=1                   other versions are not seen
//	node=<32 hex digits>
//	mesh=<32 hex digits>  left out by a node that has no mesh
//	name=<name of the node>
//	meshname=<name of the mesh>
//
// Unknown strings are ignored.
type LAN struct {
	config LANConfig
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup
	again  chan struct{} // to tell: something else is to be announced
	now    chan struct{} // to look: at once
	flood  floodgate

	mu      sync.Mutex // guards the following
	self    Announcement
	hurry   bool
	sights  map[identity.NodeID]Sighting
	changed chan struct{} // closed and replaced when a sighting is new or has changed
}

// LANConfig says where and how a node is announced.
type LANConfig struct {
	// Interfaces are the names of those to use; none: all that are up, can
	// multicast, and are no tunnels or bridges of containers.
	Interfaces []string
	// Port is the node's peer port. Required.
	Port uint16
	// Only is the one address that the node is reached at, when it is not reached
	// at all of its interfaces'.
	Only netip.Addr
	// Logger; nil discards.
	Logger *slog.Logger
}

// An Announcement is what a node tells the local network about itself.
type Announcement struct {
	Node     identity.NodeID
	Mesh     identity.MeshID // "" while it has none
	Name     string          // shown to people
	MeshName string          // shown to people
}

// A Sighting is a node that was heard on the local network.
type Sighting struct {
	Announcement
	Addrs []netip.AddrPort // where it says it is, the latest first
	Seen  time.Time
}

const (
	lanService = "_selvage._udp"
	lanDomain  = "local."
	lanVersion = "1"
)

// ErrLAN says that the local network can not be used; the error that wraps it says why.
var ErrLAN = errors.New("local network")

// OpenLAN begins to look around; [LAN.Announce] begins to tell. It does not wait,
// and trouble with the network is logged once and tried again.
func OpenLAN(c LANConfig) *LAN {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	l := &LAN{config: c, again: make(chan struct{}, 1), now: make(chan struct{}, 1),
		sights: map[identity.NodeID]Sighting{}, changed: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.flood = floodgate{ctx: l.ctx, tripped: make(chan struct{}, 1)}
	l.done.Go(l.tell)
	l.done.Go(l.look)
	return l
}

// Close takes the announcement back and ends.
func (l *LAN) Close() error {
	l.cancel()
	l.done.Wait()
	l.flood.close()
	return nil
}

// Announce says what is told of this node from now on.
func (l *LAN) Announce(a Announcement) {
	a.Name, a.MeshName = plain(a.Name), plain(a.MeshName)
	l.mu.Lock()
	l.self = a
	l.mu.Unlock()
	offer(l.again)
}

// Hurry looks without pause, or no longer.
func (l *LAN) Hurry(on bool) {
	l.mu.Lock()
	l.hurry = on
	l.mu.Unlock()
	if on {
		offer(l.now)
	}
}

// Look looks around once, now.
func (l *LAN) Look() { offer(l.now); offer(l.again) }

// Sightings returns who was heard lately, by ID.
func (l *LAN) Sightings() []Sighting {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(time.Now())
	out := make([]Sighting, 0, len(l.sights))
	for _, id := range slices.Sorted(maps.Keys(l.sights)) {
		s := l.sights[id]
		s.Addrs = slices.Clone(s.Addrs)
		out = append(out, s)
	}
	return out
}

// Addresses returns where a node of a mesh says it is.
func (l *LAN) Addresses(mesh identity.MeshID, id identity.NodeID) []netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.sights[id]; ok && s.Mesh == mesh && time.Since(s.Seen) < sightAge {
		return slices.Clone(s.Addrs)
	}
	return nil
}

// Changed returns a channel that is closed when somebody new is heard, or
// somebody says something else.
func (l *LAN) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// forget drops what was not heard for long; l.mu is held. A node without a mesh
// is gone sooner: others may wait for it.
func (l *LAN) forget(now time.Time) {
	maps.DeleteFunc(l.sights, func(_ identity.NodeID, s Sighting) bool {
		age := now.Sub(s.Seen)
		return age > sightAge || s.Mesh == "" && age > newcomerAge
	})
}

// tell keeps the node announced, under the addresses that this machine has now.
func (l *LAN) tell() {
	var told *zeroconf.Server
	var what string // told has this
	var since, nextTry time.Time
	var flooded time.Time // when somebody last asked without end
	hush := func(lived time.Duration) {
		if told == nil {
			return
		}
		time.Sleep(max(0, lived-time.Since(since)))
		told.Shutdown()
		told, what = nil, ""
	}
	defer func() { hush(settleServer) }()
	announcing := trouble{log: l.config.Logger, what: "announce"}
	tick := time.NewTicker(addressEvery)
	defer tick.Stop()
	retry := time.NewTimer(0) // of what a flood has ended
	defer retry.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.again:
		case <-tick.C:
		case <-retry.C:
		case <-l.flood.tripped:
			if told == nil {
				continue
			}
			// The library answers each question, however many there are.
			if time.Since(flooded) > floodMemory {
				l.config.Logger.Warn("mDNS: somebody on this network asks without end; answering now and then only")
			}
			hush(floodHeard)
			flooded = time.Now()
			nextTry = flooded.Add(floodQuiet)
			retry.Reset(floodQuiet)
		}
		now := time.Now()
		l.mu.Lock()
		self := l.self
		l.mu.Unlock()
		nics, addrs, err := l.choose()
		if err != nil { // look says so
			hush(settleServer)
			continue
		}
		if now.Before(nextTry) || self.Node == "" {
			continue
		}
		if is := fmt.Sprint(self, addrs, names(nics)); is != what {
			moved := what != ""
			hush(settleServer)
			l.flood.watch(nics)
			if told, err = l.register(self, nics, addrs); err != nil {
				nextTry = now.Add(announcing.note(err))
				continue
			}
			announcing.over()
			what, since = is, now
			if moved {
				offer(l.now)
			}
		}
	}
}

// look asks who is there, now and then, or without pause for a node that has no mesh.
func (l *LAN) look() {
	looking := trouble{log: l.config.Logger, what: "look"}
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.now:
		case <-next.C:
		}
		l.mu.Lock()
		hurry := l.hurry
		l.mu.Unlock()
		pause := jitter(lookEvery)
		if hurry {
			pause = 0
		}
		nics, _, err := l.choose()
		if err == nil {
			err = l.browse(nics, hurry)
		}
		switch {
		case l.ctx.Err() != nil:
			return
		case err != nil:
			pause = looking.note(err)
		default:
			looking.over()
		}
		next.Reset(pause)
	}
}

// A trouble says what does not work once, and how long to wait.
type trouble struct {
	log  *slog.Logger
	what string
	wait time.Duration
}

func (t *trouble) note(err error) time.Duration {
	if t.wait == 0 {
		t.log.Warn("mDNS does not work here; trying again now and then", "what", t.what, "error", err)
	}
	t.wait = min(max(2*t.wait, troubleMin), troubleMax)
	return t.wait
}

func (t *trouble) over() {
	if t.wait != 0 {
		t.log.Info("mDNS works again", "what", t.what)
	}
	t.wait = 0
}

func names(nics []net.Interface) (out []string) {
	for _, n := range nics {
		out = append(out, n.Name)
	}
	return out
}

// virtual are the beginnings of the names of interfaces that lead to containers
// and virtual machines of this host, and not to a network that people plug boxes into.
var virtual = []string{"docker", "br-", "veth", "virbr", "vnet", "cni", "flannel", "podman", "lxc", "lxd", "tap"}

// choose returns the interfaces to use and the addresses to announce.
func (l *LAN) choose() (nics []net.Interface, addrs []netip.Addr, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, nil, err
	}
	for _, nic := range all {
		const need = net.FlagUp | net.FlagMulticast
		if nic.Flags&need != need || nic.Flags&net.FlagLoopback != 0 {
			continue
		}
		if len(l.config.Interfaces) > 0 {
			if !slices.Contains(l.config.Interfaces, nic.Name) {
				continue
			}
		} else if nic.Flags&net.FlagPointToPoint != 0 || slices.ContainsFunc(virtual,
			func(p string) bool { return strings.HasPrefix(nic.Name, p) }) {
			continue
		}
		of, _ := nic.Addrs()
		var here []netip.Addr
		for _, a := range of {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			ip := p.Addr().Unmap()
			if l.config.Only.IsValid() && ip != l.config.Only.WithZone("") || !ip.IsGlobalUnicast() && !ip.IsLinkLocalUnicast() {
				continue
			}
			here = append(here, ip)
		}
		if len(here) == 0 || len(nics) == maxInterfaces {
			continue
		}
		nics, addrs = append(nics, nic), append(addrs, here...)
	}
	if len(nics) == 0 {
		return nil, nil, fmt.Errorf("%w: no interface is up, can multicast and has an address", ErrLAN)
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { // link-local ones are the last that are told
		return cmp.Compare(b2i(a.IsLinkLocalUnicast()), b2i(b.IsLinkLocalUnicast()))
	})
	addrs = slices.Compact(addrs)
	return nics, addrs[:min(len(addrs), maxSightAddrs)], nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (l *LAN) register(a Announcement, nics []net.Interface, addrs []netip.Addr) (*zeroconf.Server, error) {
	text := []string{"v=" + lanVersion, "node=" + string(a.Node), "name=" + a.Name}
	if a.Mesh != "" {
		text = append(text, "mesh="+string(a.Mesh), "meshname="+a.MeshName)
	}
	var ips []string
	for _, ip := range addrs {
		ips = append(ips, ip.String())
	}
	s, err := zeroconf.RegisterProxy(string(a.Node), lanService, lanDomain, int(l.config.Port), string(a.Node),
		ips, text, nics)
	if err != nil {
		return nil, fmt.Errorf("%w: announce: %w", ErrLAN, err)
	}
	return s, nil
}

// browse asks who is there and listens for a while. The library reports each
// instance once and stops asking after the first answer, its own, so that each
// look is a new one.
func (l *LAN) browse(nics []net.Interface, hurry bool) error {
	span := lookFor
	if hurry {
		span = lookFast
	}
	ctx, cancel := context.WithTimeout(l.ctx, span)
	defer cancel()
	heard := make(chan *zeroconf.ServiceEntry, sightBacklog)
	var readers sync.WaitGroup
	var errs []error
	for _, family := range []zeroconf.IPType{zeroconf.IPv4, zeroconf.IPv6} {
		r, err := zeroconf.NewResolver(zeroconf.SelectIfaces(nics), zeroconf.SelectIPTraffic(family))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found := make(chan *zeroconf.ServiceEntry, sightBacklog)
		// It must be read until it is closed, or the library leaks.
		readers.Go(func() {
			n := 0
			for e := range found {
				if n++; n > maxHeard {
					cancel() // somebody floods: enough for this time
					continue
				}
				heard <- e
			}
		})
		if err := r.Browse(ctx, lanService, lanDomain, found); err != nil {
			errs = append(errs, err)
		}
	}
	go func() { readers.Wait(); close(heard) }()
	for e := range heard {
		l.hear(e, nics)
	}
	if len(errs) == 2 {
		return fmt.Errorf("%w: %w", ErrLAN, errors.Join(errs...))
	}
	return nil
}

// hear notes what an instance says of itself, if that can be read.
func (l *LAN) hear(e *zeroconf.ServiceEntry, nics []net.Interface) {
	a, ok := readAnnouncement(e.Text)
	if !ok || e.Port < 1 || e.Port > 65535 {
		return
	}
	var addrs []netip.AddrPort
	for _, raw := range append(slices.Clone(e.AddrIPv4), e.AddrIPv6...) {
		ip, ok := netip.AddrFromSlice(raw)
		ip = ip.Unmap()
		switch {
		case !ok || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback():
		case ip.Is6() && ip.IsLinkLocalUnicast(): // the library does not tell on which it was heard
			for _, nic := range nics {
				addrs = append(addrs, netip.AddrPortFrom(ip.WithZone(nic.Name), uint16(e.Port)))
			}
		default:
			addrs = append(addrs, netip.AddrPortFrom(ip, uint16(e.Port)))
		}
	}
	l.note(a, addrs, time.Now())
}

func (l *LAN) note(a Announcement, addrs []netip.AddrPort, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Node == l.self.Node || len(addrs) == 0 {
		return
	}
	old, known := l.sights[a.Node]
	if !known && len(l.sights) >= maxSights && !l.makeRoom(a, now) {
		return
	}
	// What was heard before stays behind what is new: somebody else may claim the name.
	merged := slices.Clone(addrs[:min(len(addrs), maxSightAddrs)])
	for _, p := range old.Addrs {
		if !slices.Contains(merged, p) && len(merged) < maxSightAddrs {
			merged = append(merged, p)
		}
	}
	l.sights[a.Node] = Sighting{Announcement: a, Addrs: merged, Seen: now}
	if !known || old.Announcement != a || slices.ContainsFunc(merged,
		func(p netip.AddrPort) bool { return !slices.Contains(old.Addrs, p) }) {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// makeRoom drops who is not of this node's mesh for one who is; l.mu is held.
func (l *LAN) makeRoom(a Announcement, now time.Time) bool {
	l.forget(now)
	if len(l.sights) < maxSights {
		return true
	}
	if l.self.Mesh == "" || a.Mesh != l.self.Mesh {
		return false
	}
	for id, s := range l.sights {
		if s.Mesh != l.self.Mesh {
			delete(l.sights, id)
			return true
		}
	}
	return false
}

// readAnnouncement reads a TXT record; anybody may have written it.
func readAnnouncement(text []string) (a Announcement, ok bool) {
	version := ""
	for _, s := range text[:min(len(text), maxText)] {
		k, v, _ := strings.Cut(s, "=")
		switch k {
		case "v":
			version = v
		case "node":
			a.Node = identity.NodeID(v)
		case "mesh":
			a.Mesh = identity.MeshID(v)
		case "name":
			a.Name = plain(v)
		case "meshname":
			a.MeshName = plain(v)
		}
	}
	return a, version == lanVersion && a.Node.Valid() && (a.Mesh == "" || a.Mesh.Valid())
}

// plain makes a name harmless to show: printable characters, at most so many bytes.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	for len(s) > maxLANName {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// ShortMesh shows a mesh as people tell them apart: its name and the beginning of its ID.
func ShortMesh(name string, id identity.MeshID) string {
	short := string(id)
	if _, err := hex.DecodeString(short); err == nil && len(short) >= 8 {
		short = short[:8]
	}
	return strings.TrimSpace(plain(name) + " (" + short + ")")
}
