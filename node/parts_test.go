package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/company/rules"
	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/ledger/ledgertest"
)

func wrapped(t *testing.T, k *identity.Keys, epoch uint64, data, gossip identity.DataKey) ledger.NodeKeys {
	t.Helper()
	w, err := wrapKeys(ledger.Node{ID: k.ID(), SealCert: k.Certificate(identity.ForSeal).Encode()}, epoch, data, gossip)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Keys are taken in the order of their epochs, never older ones afterwards, and keys
// wrapped for another node can not be opened.
func TestKeyringTakesNewerKeysOnly(t *testing.T) {
	own, other := identity.Derive([32]byte{1}), identity.Derive([32]byte{2})
	r := newKeyring(own)
	one, two := identity.DataKey{1}, identity.DataKey{2}
	for _, step := range []struct {
		w       ledger.NodeKeys
		changed bool
	}{
		{wrapped(t, own, 1, one, one), true},
		{wrapped(t, own, 2, two, two), true},
		{wrapped(t, own, 1, one, one), false},
		{wrapped(t, own, 2, one, one), false},
	} {
		if changed, err := r.take(step.w); err != nil || changed != step.changed {
			t.Fatalf("epoch %d: changed %v, %v; want %v", step.w.Epoch, changed, err, step.changed)
		}
	}
	if epoch, data, gossip := r.current(); epoch != 2 || data != two || gossip != two {
		t.Errorf("current is epoch %d", epoch)
	}
	if keys := r.dataKeys(); len(keys) != 2 || keys[0] != two {
		t.Errorf("%d data keys, the first %s; want both, the newest first", len(keys), keys[0].ID())
	}
	if _, err := r.take(wrapped(t, other, 3, one, one)); err == nil {
		t.Error("keys wrapped to another node were opened")
	}
}

// ring records the epochs that a node's gossip accepts, the one in use first.
type ring struct {
	mu     sync.Mutex
	epochs []uint64
}

func (r *ring) KeyEpochs() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.epochs)
}

func (r *ring) UseKey(epoch uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.epochs, epoch)
	r.epochs = slices.Insert(slices.Delete(r.epochs, i, i+1), 0, epoch)
	return nil
}

func (r *ring) RemoveKey(epoch uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.epochs, epoch)
	if i == 0 {
		return errors.New("it is in use")
	}
	r.epochs = slices.Delete(r.epochs, i, i+1)
	return nil
}

// Of two epochs in quick succession gossip uses the newer one, whichever goroutine sets
// it first, and forgets all earlier keys.
func TestGossipTurnsToTheNewestOfTwoEpochs(t *testing.T) {
	for _, order := range [][]uint64{{2, 3}, {3, 2}} {
		synctest.Test(t, func(t *testing.T) {
			own := identity.Derive([32]byte{1})
			keys, accepted := newKeyring(own), &ring{epochs: []uint64{1, 2, 3}}
			for epoch := range uint64(3) {
				key := identity.DataKey{byte(epoch)}
				if _, err := keys.take(wrapped(t, own, epoch+1, key, key)); err != nil {
					t.Fatal(err)
				}
			}
			var wg sync.WaitGroup
			for i, epoch := range order {
				wg.Go(func() {
					time.Sleep(time.Duration(i))
					if err := keys.turnGossip(t.Context(), accepted, epoch, time.Minute); err != nil {
						t.Errorf("turning to %d: %v", epoch, err)
					}
				})
			}
			wg.Wait()
			if got := accepted.KeyEpochs(); !slices.Equal(got, []uint64{3}) {
				t.Errorf("turned to %v: epochs %v are accepted, want 3 alone", order, got)
			}
		})
	}
}

// An untrusted node gets the gossip key and not the data key.
func TestUntrustedNodeGetsNoDataKey(t *testing.T) {
	k := identity.Derive([32]byte{1})
	n := ledger.Node{ID: k.ID(), SealCert: k.Certificate(identity.ForSeal).Encode(),
		Labels: []string{ledger.LabelUntrusted}}
	w, err := wrapKeys(n, 1, identity.DataKey{1}, identity.DataKey{2})
	if err != nil || len(w.Data) != 0 || len(w.Gossip) == 0 {
		t.Errorf("wrapped %+v, %v; want the gossip key only", w, err)
	}
}

// The state takes precedence over what other nodes reported, but a reported revocation
// counts at once.
func TestRosterLearnsWhileBehind(t *testing.T) {
	row := func(seed byte, revoked uint64) ledger.Node {
		k := identity.Derive([32]byte{seed})
		return ledger.Node{ID: k.ID(), Key: k.Public(), RevokedAt: revoked}
	}
	a, b, c := row(1, 0), row(2, 0), row(3, 0)
	r := newRoster([]ledger.Node{a, b})
	forged := c
	forged.Key = b.Key
	if r.learn([]ledger.Node{forged}) {
		t.Error("learned a node whose ID is not that of its key")
	}
	if !r.learn([]ledger.Node{c, row(2, 9)}) {
		t.Error("a new node and a revocation were no news")
	}
	if !r.isMember(c.ID) || r.isMember(b.ID) || !r.isMember(a.ID) {
		t.Errorf("members: a %v, b %v, c %v; want a and c", r.isMember(a.ID), r.isMember(b.ID), r.isMember(c.ID))
	}
	r.set([]ledger.Node{a, b, c})
	if !r.isMember(b.ID) {
		t.Error("what was told outlives what the state says")
	}
}

// A node that catches up from a snapshot older than its admission keeps the members that
// it was told.
func TestOlderStateForgetsNobody(t *testing.T) {
	row := func(seed byte) ledger.Node {
		k := identity.Derive([32]byte{seed})
		return ledger.Node{ID: k.ID(), Key: k.Public()}
	}
	gone, leads, self := row(1), row(2), row(3)
	r := newRoster([]ledger.Node{gone, leads, self})
	gone.RevokedAt = 9
	r.set([]ledger.Node{gone})
	if !r.isMember(leads.ID) || !r.isMember(self.ID) {
		t.Error("the node that leads is unknown to one that has an older state")
	}
	if r.isMember(gone.ID) {
		t.Error("what was told goes before the state")
	}
}

// A read of the members that began before a revocation does not overwrite one that saw
// it.
func TestTheRosterIsTheNewest(t *testing.T) {
	k := identity.Derive([32]byte{1})
	of := func(revoked uint64) []ledger.Node {
		return []ledger.Node{{ID: k.ID(), Key: k.Public(), RevokedAt: revoked}}
	}
	r := newRoster(nil)
	state := atomic.Pointer[[]ledger.Node]{}
	set := func(revoked uint64) { nodes := of(revoked); state.Store(&nodes) }
	set(0)
	held, released, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		r.refresh(func() []ledger.Node {
			nodes := *state.Load()
			close(held)
			<-released
			return nodes
		})
	})
	<-held
	set(9)
	both.Go(func() {
		defer close(done)
		r.refresh(func() []ledger.Node { return *state.Load() })
	})
	select {
	case <-done:
	case <-time.After(300 * time.Millisecond): // it waits for the slow one
	}
	close(released)
	both.Wait()
	if r.isMember(k.ID()) {
		t.Error("a node that was revoked is a member again")
	}
}

// A view of the members has the height of its state, even if the ledger has advanced
// since: otherwise later entries would be skipped.
func TestMembersAreOfTheirHeight(t *testing.T) {
	k := identity.Derive([32]byte{1})
	at := time.UnixMilli(1)
	w := ledgertest.Found(t, ledger.Config{Mux: rules.Handlers()}, k, ledgertest.Genesis(k, "mesh", at),
		func() time.Time { at = at.Add(time.Millisecond); return at })
	l := w.Ledger
	before, _ := l.Head()
	err := l.View(func(tx *ledger.Tx) error {
		w.OpenSession()
		if v := membersOf(tx, k.ID()); v.height != before || len(v.nodes) != 1 {
			t.Errorf("members %+v of height %d, want those of %d", v.nodes, v.height, before)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := l.Head(); after == before {
		t.Error("what came since is no entry")
	}
}

// A node whose clock is far from the others' does not lead. With no or one other node,
// nobody can tell which clock is right.
func TestWrongClockDoesNotLead(t *testing.T) {
	now := time.Now()
	ids := []identity.NodeID{"a", "b", "c"}
	k := clocks{wall: func() time.Time { return now }}
	k.heard(ids[0], now.Add(time.Hour).UnixMilli())
	if err := k.mayLead(); err != nil {
		t.Errorf("two clocks that differ: %v", err)
	}
	k.heard(ids[1], now.Add(time.Hour).UnixMilli())
	if err := k.mayLead(); err == nil {
		t.Error("leads with a clock an hour behind two others")
	}
	k.heard(ids[1], now.UnixMilli())
	if err := k.mayLead(); err != nil {
		t.Errorf("one other is wrong: %v", err)
	}
	now = now.Add(2 * clockMemory)
	if off, n := k.skew(); off != 0 || n != 1 {
		t.Errorf("readings that are too old still count: %s of %d", off, n)
	}
}

func TestAdvertisedAddressIsReachable(t *testing.T) {
	given := netip.MustParseAddrPort("192.0.2.7:9470")
	local := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9470}
	if got := advertised(given, local); got != given {
		t.Errorf("got %v, want the configured %v", got, given)
	}
	if got := advertised(netip.AddrPort{}, local); got.String() != "127.0.0.1:9470" {
		t.Errorf("got %v, want the socket's own", got)
	}
	if got := advertised(netip.AddrPort{}, &net.UDPAddr{IP: net.IPv6unspecified, Port: 9470}); !got.IsValid() ||
		got.Addr().IsUnspecified() || got.Port() != 9470 {
		t.Errorf("a socket on all interfaces is advertised as %v", got)
	}
}

func TestConfigSaysAllThatIsWrong(t *testing.T) {
	err := Config{HTTP: "0.0.0.0:3100", Auth: "local_trusted", TLS: "off", BehindProxy: true, TLSKey: "key", Name: "a/b",
		Slots: -1, MaxProcesses: -1, Profile: ProfileSingle, Seeds: []string{"192.0.2.1:9470", "nowhere"},
		Mesh: "worse", MDNS: MDNSAuto}.withDefaults().Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"data directory", "without authentication", "without TLS", "behind a proxy",
		"both --tls-cert", `mesh address "worse"`, `seed "nowhere"`, "no slash", "slots", "max-processes",
		"takes no --join, --owner or --seed", "leave --mdns out"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
}

// A profile sets what nobody has set, and keeps what somebody has.
func TestProfilesSetWhatIsOpen(t *testing.T) {
	none := func(string) bool { return false }
	for _, c := range []struct {
		profile Profile
		given   func(string) bool
		want    Config
	}{
		{ProfileSingle, none, Config{MDNS: MDNSOff, Mesh: "127.0.0.1:0", Mind: MindOff, Found: true}},
		{ProfileStatic, none, Config{MDNS: MDNSOff, Mesh: ":9470", Mind: MindOff, Found: true}},
		{ProfileDynamic, none, Config{MDNS: MDNSAuto, Mesh: ":9470", Mind: MindAuto}},
		{ProfileCognitive, none, Config{MDNS: MDNSAuto, Mesh: ":9470", Mind: MindOn}},
		{ProfileCognitive, func(flag string) bool { return flag == "mind" }, Config{MDNS: MDNSAuto, Mesh: ":9470",
			Mind: MindAuto}},
	} {
		got := Config{MDNS: MDNSAuto, Mesh: ":9470", Mind: MindAuto}
		c.profile.Apply(&got, c.given)
		if got.Profile != c.profile || got.MDNS != c.want.MDNS || got.Mesh != c.want.Mesh || got.Mind != c.want.Mind ||
			got.Found != c.want.Found {
			t.Errorf("%s gives mdns %s, mesh %s, mind %s, found %v; want %+v", c.profile, got.MDNS, got.Mesh, got.Mind,
				got.Found, c.want)
		}
	}
	if _, err := ParseProfile("huge"); err == nil {
		t.Error("a profile huge was read")
	}
}

// While the API is not served its port says so, and again when the node closes; the API
// follows on the same port.
func TestThePortSaysHowTheNodeStands(t *testing.T) {
	events := kernel.NewEventLog(time.Now)
	n := &Node{conf: Config{Wall: time.Now}, log: slog.New(slog.DiscardHandler), events: events,
		boot: kernel.NewBoot(events, time.Now())}
	l, err := n.bind("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := l.(*port)
	ask := func(path string) (int, string) {
		t.Helper()
		a, err := http.Get("http://" + p.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, _ := io.ReadAll(a.Body)
		return a.StatusCode, string(b)
	}
	n.boot.Enter(kernel.PhaseNetwork, "consensus")
	n.bootOn(p, nil)
	if status, said := ask("/readyz"); status != 503 || !strings.Contains(said, `"state":"booting"`) ||
		!strings.Contains(said, `"phase":"network"`) {
		t.Errorf("while it boots it says %d %s", status, said)
	}
	if status, _ := ask("/healthz"); status != 200 {
		t.Errorf("while it boots /healthz says %d", status)
	}
	for range 3 {
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w,
				"the API")
		})}
		served := make(chan error, 1)
		api := p.hire()
		go func() { served <- server.Serve(api) }()
		if status, said := ask("/readyz"); status != 200 || said != "the API" {
			t.Errorf("the API says %d %s", status, said)
		}
		http.DefaultClient.CloseIdleConnections()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-served
		n.bootOn(p, nil)
		n.lives(kernel.ShuttingDown)
		if status, said := ask("/readyz"); status != 503 || !strings.Contains(said, "shutting down") {
			t.Errorf("while it closes it says %d %s", status, said)
		}
	}
	if err := p.release(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get("http://" + p.Addr().String() + "/readyz"); err == nil {
		t.Error("the port is open after it was closed")
	}
}

// Labels are given to the roster in an operator's form. Those of a later start are only
// reported.
func TestLabelsOfTheStart(t *testing.T) {
	n := &Node{conf: Config{Labels: map[string]string{"zone": "eu", "gpu": ""}}}
	got := n.labels()
	if want := []string{"gpu", "zone=eu"}; !slices.Equal(got, want) {
		t.Errorf("the labels are %q, want %q", got, want)
	}
	if got, want := strayLabels(got, ledger.Node{Labels: []string{"zone=eu"}}), []string{"gpu"}; !slices.Equal(got, want) {
		t.Errorf("the roster lacks %q, want %q", got, want)
	}
}

// Periodic work begins at a multiple of beat, not later than it is due, and stays there.
func TestEveryBeginsAtABeat(t *testing.T) {
	for _, d := range []time.Duration{beat, 4 * beat, 10 * beat, beat / 5} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(beat / 3)
			began := time.Now()
			ctx, stop := context.WithTimeout(t.Context(), 3*d+d/2)
			defer stop()
			var at []time.Duration
			every(ctx, d, func() {
				at = append(at, time.Since(began))
				if d >= beat && time.Now().UnixNano()%int64(beat) != 0 {
					t.Errorf("every %s: called between beats, after %s", d, time.Since(began))
				}
			})
			if len(at) < 3 || at[0] > d || at[0] <= d-beat || at[1]-at[0] != d {
				t.Errorf("every %s: called after %s", d, at)
			}
		})
	}
}
