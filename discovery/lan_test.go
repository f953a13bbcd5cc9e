package discovery

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/grandcat/zeroconf"

	"github.com/selvage-mesh/selvage/identity"
)

func quietLAN(self Announcement) *LAN {
	return &LAN{config: LANConfig{Logger: slog.New(slog.DiscardHandler)}, self: self,
		sights: map[identity.NodeID]Sighting{}, changed: make(chan struct{})}
}

func lanID(i int) identity.NodeID { return identity.NodeID(fmt.Sprintf("%032x", i+1)) }

func heard(id identity.NodeID, mesh string, port int, ips ...string) *zeroconf.ServiceEntry {
	e := &zeroconf.ServiceEntry{Port: port, Text: []string{"v=1", "node=" + string(id), "name=box", "later=1"}}
	if mesh != "" {
		e.Text = append(e.Text, "mesh="+mesh, "meshname=home")
	}
	for _, s := range ips {
		if ip := net.ParseIP(s); ip.To4() != nil {
			e.AddrIPv4 = append(e.AddrIPv4, ip)
		} else {
			e.AddrIPv6 = append(e.AddrIPv6, ip)
		}
	}
	return e
}

const lanMesh = "0123456789abcdef0123456789abcdef"

func TestWhatIsHeardOnTheLAN(t *testing.T) {
	nics := []net.Interface{{Name: "eth0"}, {Name: "eth1"}}
	l := quietLAN(Announcement{Node: lanID(0)})
	changed := l.Changed()
	l.hear(heard(lanID(1), lanMesh, 9470, "192.0.2.7", "127.0.0.1", "0.0.0.0", "224.0.0.1", "2001:db8::7",
		"fe80::7"), nics)
	got := l.Sightings()
	want := []string{"192.0.2.7:9470", "[2001:db8::7]:9470", "[fe80::7%eth0]:9470", "[fe80::7%eth1]:9470"}
	if len(got) != 1 || fmt.Sprint(got[0].Addrs) != fmt.Sprint(want) || got[0].Mesh != lanMesh ||
		got[0].MeshName != "home" || got[0].Name != "box" {
		t.Fatalf("heard %+v, want addresses %v", got, want)
	}
	select {
	case <-changed:
	default:
		t.Error("a sighting was not told")
	}
	changed = l.Changed()
	l.hear(heard(lanID(1), lanMesh, 9470, "192.0.2.7"), nics) // nothing new
	select {
	case <-changed:
		t.Error("what was known was told again")
	default:
	}
	l.hear(heard(lanID(1), lanMesh, 9470, "192.0.2.8"), nics) // it moved, or somebody says so
	if as := l.Addresses(lanMesh, lanID(1)); len(as) != 5 || as[0] != netip.MustParseAddrPort("192.0.2.8:9470") {
		t.Errorf("addresses after a change: %v", as)
	}
	if l.Addresses("fedcba98765432100123456789abcdef", lanID(1)) != nil {
		t.Error("a node of another mesh has addresses here")
	}

	bad := map[string]*zeroconf.ServiceEntry{
		"itself":         heard(lanID(0), lanMesh, 9470, "192.0.2.9"),
		"no address":     heard(lanID(3), lanMesh, 9470),
		"port 0":         heard(lanID(3), lanMesh, 0, "192.0.2.9"),
		"port 70000":     heard(lanID(3), lanMesh, 70000, "192.0.2.9"),
		"malformed mesh": heard(lanID(3), "../../etc", 9470, "192.0.2.9"),
		"malformed node": heard("nobody", lanMesh, 9470, "192.0.2.9"),
		"no text":        {Port: 9470, AddrIPv4: []net.IP{net.IPv4(192, 0, 2, 9)}},
		"another version": {Port: 9470, AddrIPv4: []net.IP{net.IPv4(192, 0, 2, 9)},
			Text: []string{"v=2", "node=" + string(lanID(3))}},
		"short address": {Port: 9470, AddrIPv4: []net.IP{{1, 2}}, Text: []string{"v=1", "node=" + string(lanID(3))}},
	}
	for what, e := range bad {
		if l.hear(e, nics); len(l.Sightings()) != 1 {
			t.Fatalf("%s: it was believed", what)
		}
	}
}

// Whoever floods the network fills the table, but not with the place of this node's mesh.
func TestSightingsAreBounded(t *testing.T) {
	l := quietLAN(Announcement{Node: lanID(0), Mesh: lanMesh})
	for i := range 4 * maxSights {
		l.hear(heard(lanID(i+10), "fedcba98765432100123456789abcdef", 9470, "192.0.2.7"), nil)
	}
	if n := len(l.Sightings()); n != maxSights {
		t.Errorf("%d are remembered, at most %d", n, maxSights)
	}
	l.hear(heard(lanID(1), lanMesh, 9470, "192.0.2.8"), nil)
	if l.Addresses(lanMesh, lanID(1)) == nil || len(l.Sightings()) != maxSights {
		t.Error("a member found no room among strangers")
	}
	for i := range 3 * maxSightAddrs {
		l.hear(heard(lanID(1), lanMesh, 9470+i, "192.0.2.8"), nil)
	}
	if n := len(l.Addresses(lanMesh, lanID(1))); n != maxSightAddrs {
		t.Errorf("%d addresses are remembered, at most %d", n, maxSightAddrs)
	}
	for id, s := range l.sights { // time passes
		s.Seen = s.Seen.Add(-sightAge - time.Second)
		l.sights[id] = s
	}
	if len(l.Sightings()) != 0 {
		t.Error("who is not heard any more is still there")
	}
}

// Names are shown to people: what comes from the network can not play with their terminal.
func TestNamesFromTheLAN(t *testing.T) {
	for in, want := range map[string]string{
		"pi 4": "pi 4", "\x1b[2Jhome\r\n": "[2Jhome", "a\u202eb": "ab", "\xff\xfe": "",
		strings.Repeat("ä", 60): strings.Repeat("ä", 32),
	} {
		if got := plain(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got := ShortMesh("home\x07", lanMesh); got != "home (01234567)" {
		t.Errorf("a mesh is shown as %q", got)
	}
}

// A network that can not be used is one line in the log.
func TestTroubleIsOneLine(t *testing.T) {
	var log bytes.Buffer
	l := OpenLAN(LANConfig{Interfaces: []string{"there-is-none"}, Port: 9470,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l.Announce(Announcement{Node: lanID(0)})
	for range 20 {
		l.Look()
		time.Sleep(time.Millisecond)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "mDNS does not work here") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	tr := trouble{log: slog.New(slog.NewTextHandler(&log, nil))}
	var last time.Duration
	for range 20 {
		last = tr.note(fmt.Errorf("x"))
	}
	if last != troubleMax {
		t.Errorf("the wait is %v after 20 failures, want %v", last, troubleMax)
	}
}

// A flood of questions is noticed, and what a home asks is none.
func TestFloodOfQuestions(t *testing.T) {
	for what, x := range map[string]struct {
		questions, times int
		every            time.Duration
		flood            bool
	}{
		"a home":                    {4, 100, 50 * time.Millisecond, false},
		"one packet with thousands": {9000, 1, 0, true},
		"many packets":              {1, 1000, time.Millisecond, true},
	} {
		f := floodgate{tripped: make(chan struct{}, 1)}
		now := time.Now()
		for i := range x.times {
			f.note(x.questions, now.Add(time.Duration(i)*x.every))
		}
		if len(f.tripped) == 1 != x.flood {
			t.Errorf("%s: a flood is %v", what, !x.flood)
		}
	}
}

func FuzzAnnouncement(f *testing.F) {
	f.Add("v=1", "node="+string(lanID(1)), "mesh="+lanMesh)
	f.Add("v=1", "node=", "name=\x00")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		got, ok := readAnnouncement([]string{a, b, c})
		if ok && (!got.Node.Valid() || got.Mesh != "" && !got.Mesh.Valid()) {
			t.Errorf("believed %+v", got)
		}
		if len(got.Name) > maxLANName || len(got.MeshName) > maxLANName {
			t.Error("a name is longer than names are")
		}
	})
}
