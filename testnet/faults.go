package testnet

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Faults is the content of a fault file, which every node of a testnet follows.
// An absent file means that everything works.
type Faults struct {
	// Cuts holds for a node's UDP address the addresses that it can not send to.
	Cuts map[string][]string `json:"cuts,omitempty"`
	// Stalled holds the UDP addresses of nodes whose disk does not finish a sync.
	Stalled []string `json:"stalled,omitempty"`
}

// Write replaces the fault file at path in one step.
func (f Faults) Write(path string) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// ReadFaults reads the fault file at path.
func ReadFaults(path string) (f Faults, err error) {
	r, err := os.Open(filepath.Clean(path))
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	} else if err != nil {
		return f, err
	}
	defer r.Close()
	err = json.NewDecoder(io.LimitReader(r, maxFaultFile)).Decode(&f)
	return f, err
}

// A FaultWatcher follows a fault file for one node, whose peer port is at the
// UDP address node.
type FaultWatcher struct {
	path, node string
	cut        atomic.Pointer[map[netip.AddrPort]bool]
	stalled    atomic.Bool
	stop       chan struct{}
	done       chan struct{}
	once       sync.Once
}

// WatchFaults follows the fault file at path until Close.
func WatchFaults(path, node string) *FaultWatcher {
	w := &FaultWatcher{path: path, node: node, stop: make(chan struct{}), done: make(chan struct{})}
	w.cut.Store(&map[netip.AddrPort]bool{})
	w.load()
	go w.follow()
	return w
}

func (w *FaultWatcher) follow() {
	defer close(w.done)
	for {
		select { // at whole intervals of the clock, as heartbeats are: a node at rest wakes once for both
		case <-time.After(pollInterval - time.Duration(time.Now().UnixNano()%int64(pollInterval))):
			w.load()
		case <-w.stop:
			return
		}
	}
}

func (w *FaultWatcher) load() {
	f, err := ReadFaults(w.path)
	if err != nil {
		return // half-written by hand: keep what we have
	}
	cut := map[netip.AddrPort]bool{}
	for _, a := range f.Cuts[w.node] {
		if p, err := netip.ParseAddrPort(a); err == nil {
			cut[p] = true
		}
	}
	w.cut.Store(&cut)
	w.stalled.Store(slices.Contains(f.Stalled, w.node))
}

// Close stops following; all faults end.
func (w *FaultWatcher) Close() {
	w.once.Do(func() {
		close(w.stop)
		<-w.done
		w.cut.Store(&map[netip.AddrPort]bool{})
		w.stalled.Store(false)
	})
}

func (w *FaultWatcher) dropped(to netip.AddrPort) bool {
	return (*w.cut.Load())[netip.AddrPortFrom(to.Addr().Unmap(), to.Port())]
}

// A FaultyConn is a UDP socket that does not send to the addresses that the
// fault file lists. It keeps the socket's own fast paths (the kernel reads in
// batches); because every node of a testnet filters what it sends, a cut that
// is listed on both sides is complete, and one that is listed on one side is a
// one-way cut.
type FaultyConn struct {
	*net.UDPConn
	Faults *FaultWatcher
}

// WriteTo sends b unless the link is cut; a cut link swallows it.
func (c FaultyConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if a, ok := to.(*net.UDPAddr); ok && c.Faults.dropped(a.AddrPort()) {
		return len(b), nil
	}
	return c.UDPConn.WriteTo(b, to)
}

// WriteMsgUDP is WriteTo with control data, as QUIC sends.
func (c FaultyConn) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (int, int, error) {
	if to != nil && c.Faults.dropped(to.AddrPort()) {
		return len(b), len(oob), nil
	}
	return c.UDPConn.WriteMsgUDP(b, oob, to)
}
