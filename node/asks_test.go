package node

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/identity"
	"github.com/selvage-mesh/selvage/ledger"
)

func someAsk(i int) *waiting {
	return &waiting{Code: fmt.Sprint(i),
		Node: ledger.NewNode{Key: identity.Derive([32]byte{byte(i), byte(i >> 8), 7}).Public()},
		Addr: "192.0.2." + fmt.Sprint(i%200+1), decided: make(chan error, 2)}
}

func TestAsksAreBounded(t *testing.T) {
	now := time.Now()
	add := func(a *asks, i int, now time.Time) error {
		w := someAsk(i)
		return a.add(w, netip.MustParseAddr(w.Addr), now)
	}
	t.Run("number", func(t *testing.T) {
		var a asks
		for i := range maxAsks {
			if err := add(&a, i, now.Add(time.Duration(i)*askEvery)); err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
		}
		if err := add(&a, 99, now.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "wait already") {
			t.Errorf("request %d: %v", maxAsks+1, err)
		}
		if err := add(&a, 3, now.Add(2*time.Hour)); err != nil || len(a.list()) != maxAsks {
			t.Errorf("a node that asks anew: %v, %d wait", err, len(a.list()))
		}
	})
	t.Run("of one address", func(t *testing.T) {
		for _, at := range [][2]string{{"192.0.2.1", "192.0.2.2"}, {"2001:db8::%x", "2001:db8:0:1::1"}} {
			var a asks
			ip := func(i int) netip.Addr {
				if s := at[0]; strings.Contains(s, "%") {
					return netip.MustParseAddr(fmt.Sprintf(s, i+1)) // all of one /64
				}
				return netip.MustParseAddr(at[0])
			}
			for i := range maxAsksFrom + 1 {
				w := someAsk(i)
				w.Addr = ip(i).String()
				if err := a.add(w, ip(i), now); (err != nil) != (i == maxAsksFrom) {
					t.Errorf("%v, request %d: %v", at, i, err)
				}
			}
			w := someAsk(50)
			w.Addr = at[1]
			if err := a.add(w, netip.MustParseAddr(at[1]), now); err != nil {
				t.Errorf("another address: %v", err)
			}
		}
	})
	t.Run("rate", func(t *testing.T) {
		var a asks
		taken := 0
		for i := range 1000 { // ten a second, each disconnecting at once
			w := someAsk(i)
			if a.add(w, netip.MustParseAddr(w.Addr), now.Add(time.Duration(i)*100*time.Millisecond)) == nil {
				taken++
				a.remove(w)
			}
		}
		if most := askBurst + int(100*time.Second/askEvery) + 1; taken > most || taken < askBurst {
			t.Errorf("%d requests in 100 s were taken, at most %d", taken, most)
		}
	})
	t.Run("refused", func(t *testing.T) {
		var a asks
		w := someAsk(1)
		if err := a.add(w, netip.MustParseAddr(w.Addr), now); err != nil {
			t.Fatal(err)
		}
		if a.refuse("9", now) || !a.refuse("1", now) || <-w.decided != errRefusedHere || len(a.list()) != 0 {
			t.Error("it was not refused")
		}
		if err := add(&a, 1, now.Add(time.Minute)); err != errRefusedHere {
			t.Errorf("it asks again: %v", err)
		}
		if err := add(&a, 1, now.Add(askRefused+time.Minute)); err != nil {
			t.Errorf("it asks again much later: %v", err)
		}
		for i := range 3 * maxRefused {
			a.refused[identity.NodeIDOf(someAsk(i+100).Node.Key)] = now
			a.waits[identity.NodeIDOf(w.Node.Key)] = w
			a.refuse("1", now)
			if len(w.decided) > 0 {
				<-w.decided
			}
		}
		if len(a.refused) > maxRefused+1 {
			t.Errorf("%d refusals are remembered", len(a.refused))
		}
	})
	t.Run("settled", func(t *testing.T) {
		var a asks
		w, other := someAsk(1), someAsk(2)
		for _, w := range []*waiting{w, other} {
			if err := a.add(w, netip.MustParseAddr(w.Addr), now); err != nil {
				t.Fatal(err)
			}
		}
		a.settle(newRoster([]ledger.Node{{ID: identity.NodeIDOf(w.Node.Key), Key: w.Node.Key}}))
		if err := <-w.decided; err != nil || len(a.list()) != 1 || len(other.decided) != 0 {
			t.Errorf("%v, %d wait", err, len(a.list()))
		}
	})
}
