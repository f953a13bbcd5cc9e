package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var (
	ada = netip.MustParseAddrPort("10.0.0.1:9470")
	bob = netip.MustParseAddrPort("10.0.0.2:9470")
)

// pair is a network with two endpoints.
func pair(t *testing.T, seed uint64) (*Network, *Endpoint, *Endpoint) {
	t.Helper()
	n := New(seed)
	a, b := n.Endpoint(ada), n.Endpoint(bob)
	t.Cleanup(func() { a.Close(); b.Close() })
	return n, a, b
}

func write(t *testing.T, e *Endpoint, to netip.AddrPort, i int) {
	t.Helper()
	if _, err := e.WriteTo([]byte(fmt.Sprint(i)), net.UDPAddrFromAddrPort(to)); err != nil {
		t.Fatal(err)
	}
}

// drain reads until nothing comes for a second.
func drain(t *testing.T, e *Endpoint) (got []string) {
	t.Helper()
	b := make([]byte, 2000)
	for {
		e.SetReadDeadline(time.Now().Add(time.Second))
		n, from, err := e.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		if from.String() != ada.String() {
			t.Fatalf("packet from %v, want %v", from, ada)
		}
		got = append(got, string(b[:n]))
	}
}

// A perfect link keeps packets and their order; a delay is exact.
func TestPerfectLinkWithDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := pair(t, 1)
		n.Set(ada, bob, Faults{Delay: 30 * time.Millisecond})
		start := time.Now()
		for i := range 100 {
			write(t, a, bob, i)
		}
		buf := make([]byte, 10)
		for i := range 100 {
			m, _, err := b.ReadFrom(buf)
			if err != nil || string(buf[:m]) != fmt.Sprint(i) {
				t.Fatalf("got %q, %v; want %d", buf[:m], err, i)
			}
		}
		if got := time.Since(start); got != 30*time.Millisecond {
			t.Errorf("took %v, want 30ms", got)
		}
	})
}

// Loss, duplication and reordering happen about as often as asked, and the same
// seed gives the same story.
func TestFaultsAreSeededChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		story := func(seed uint64) ([]string, Count) {
			n, a, b := pair(t, seed)
			defer a.Close()
			defer b.Close()
			n.SetAll(Faults{Loss: 0.1, Duplicate: 0.1, Reorder: 0.1})
			for i := range 1000 {
				write(t, a, bob, i)
			}
			return drain(t, b), n.Count(ada, bob)
		}
		got, count := story(7)
		again, _ := story(7)
		other, _ := story(8)
		if !slices.Equal(got, again) {
			t.Error("the same seed gave another story")
		}
		if slices.Equal(got, other) {
			t.Error("another seed gave the same story")
		}
		for what, n := range map[string]int{"lost": count.Lost, "duplicated": count.Duplicated,
			"reordered": count.Reordered} {
			if n < 60 || n > 140 {
				t.Errorf("%s %d of 1000, want about 100", what, n)
			}
		}
		if count.Sent != 1000 || count.Delivered != len(got) || count.Delivered != 1000-count.Lost+count.Duplicated {
			t.Errorf("counts do not add up: %+v, read %d", count, len(got))
		}
		if slices.IsSortedFunc(got, func(a, b string) int { return len(a) - len(b) }) {
			t.Error("nothing was overtaken")
		}
	})
}

// A cut is one way and ends when it is healed.
func TestOneWayCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := pair(t, 1)
		n.Partition([]netip.AddrPort{ada}, []netip.AddrPort{bob})
		n.Set(bob, ada, Faults{}) // only ada → bob stays cut
		write(t, a, bob, 1)
		write(t, b, ada, 2)
		if got := drain(t, b); len(got) != 0 {
			t.Errorf("through a cut came %v", got)
		}
		buf := make([]byte, 10)
		if m, _, err := a.ReadFrom(buf); err != nil || string(buf[:m]) != "2" {
			t.Errorf("the other way: %q, %v", buf[:m], err)
		}
		n.Heal()
		write(t, a, bob, 3)
		if got := drain(t, b); !slices.Equal(got, []string{"3"}) {
			t.Errorf("after healing got %v, want [3]", got)
		}
		if got := n.Total(); got.Cut != 1 || got.Sent != 3 || got.Delivered != 2 {
			t.Errorf("counted %+v", got)
		}
	})
}

// A rate spaces packets out.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := pair(t, 1)
		n.SetAll(Faults{Rate: 1000})
		start := time.Now()
		for range 5 {
			a.WriteTo(make([]byte, 1000), net.UDPAddrFromAddrPort(bob))
		}
		for range 5 {
			if _, _, err := b.ReadFrom(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("5,000 bytes at 1,000 a second took %v, want 5s", got)
		}
	})
}

// What is too large, goes nowhere or finds a full inbox is lost and counted.
func TestWhatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _ := pair(t, 1)
		nobody := netip.MustParseAddrPort("10.0.0.3:1")
		a.WriteTo(make([]byte, MaxPacket+1), net.UDPAddrFromAddrPort(bob))
		write(t, a, nobody, 1)
		for i := range maxInbox + 5 {
			write(t, a, bob, i)
		}
		if got := n.Count(ada, bob); got.Lost != 6 || got.Delivered != maxInbox {
			t.Errorf("lost %d, delivered %d; want 6, %d", got.Lost, got.Delivered, maxInbox)
		}
		if got := n.Count(ada, nobody).Nowhere; got != 1 {
			t.Errorf("nowhere %d, want 1", got)
		}
	})
}

// Close ends a read that waits and frees the address; port 0 finds a free port.
func TestCloseAndAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, _ := pair(t, 1)
		done := make(chan error)
		go func() {
			_, _, err := a.ReadFrom(nil)
			done <- err
		}()
		synctest.Wait()
		a.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("read of a closed endpoint: %v", err)
		}
		if _, err := a.WriteTo(nil, net.UDPAddrFromAddrPort(bob)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write to a closed endpoint: %v", err)
		}
		n.Endpoint(ada).Close() // would panic, were the address in use
		any0 := netip.AddrPortFrom(ada.Addr(), 0)
		x, y := n.Endpoint(any0), n.Endpoint(any0)
		if x.AddrPort() == y.AddrPort() || x.AddrPort().Port() == 0 {
			t.Errorf("port 0 gave %v and %v", x.AddrPort(), y.AddrPort())
		}
	})
}
