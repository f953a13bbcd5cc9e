package testnet

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Cuts is the content of a fault file: for each node's UDP address the
// addresses that it can not send to. An absent file means that all links work.
type Cuts map[string][]string

// WriteCuts replaces the fault file at path in one step.
func WriteCuts(path string, c Cuts) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// A FaultyConn is a UDP socket that does not send to the addresses that a fault
// file lists. It keeps the socket's own fast paths (the kernel reads in
// batches); because every node of a testnet filters what it sends, a cut that
// is listed on both sides is complete, and one that is listed on one side is a
// one-way cut.
type FaultyConn struct {
	*net.UDPConn
	path string
	cut  atomic.Pointer[map[netip.AddrPort]bool]
	stop chan struct{}
	done chan struct{}
}

// NewFaultyConn wraps conn and follows the fault file at path until Close.
func NewFaultyConn(conn *net.UDPConn, path string) *FaultyConn {
	c := &FaultyConn{UDPConn: conn, path: path, stop: make(chan struct{}), done: make(chan struct{})}
	c.load()
	go c.follow()
	return c
}

func (c *FaultyConn) follow() {
	defer close(c.done)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.load()
		case <-c.stop:
			return
		}
	}
}

func (c *FaultyConn) load() {
	cut := map[netip.AddrPort]bool{}
	if f, err := os.Open(filepath.Clean(c.path)); err == nil {
		var cuts Cuts
		err = json.NewDecoder(io.LimitReader(f, maxFaultFile)).Decode(&cuts)
		f.Close()
		if err != nil {
			return // half-written by hand: keep what we have
		}
		for _, a := range cuts[c.LocalAddr().String()] {
			if p, err := netip.ParseAddrPort(a); err == nil {
				cut[p] = true
			}
		}
	}
	c.cut.Store(&cut)
}

func (c *FaultyConn) dropped(to netip.AddrPort) bool {
	return (*c.cut.Load())[netip.AddrPortFrom(to.Addr().Unmap(), to.Port())]
}

// WriteTo sends b unless the link is cut; a cut link swallows it.
func (c *FaultyConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if a, ok := to.(*net.UDPAddr); ok && c.dropped(a.AddrPort()) {
		return len(b), nil
	}
	return c.UDPConn.WriteTo(b, to)
}

// WriteMsgUDP is WriteTo with control data, as QUIC sends.
func (c *FaultyConn) WriteMsgUDP(b, oob []byte, to *net.UDPAddr) (int, int, error) {
	if to != nil && c.dropped(to.AddrPort()) {
		return len(b), len(oob), nil
	}
	return c.UDPConn.WriteMsgUDP(b, oob, to)
}

// Close stops following the file and closes the socket.
func (c *FaultyConn) Close() error {
	select {
	case <-c.stop:
		return errors.New("closed twice")
	default:
	}
	close(c.stop)
	<-c.done
	return c.UDPConn.Close()
}
