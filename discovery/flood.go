package discovery

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// A floodgate listens along and counts the questions on the network.
type floodgate struct {
	ctx     context.Context
	tripped chan struct{} // there are too many

	mu    sync.Mutex // guards the following
	open  []*net.UDPConn
	asked int       // since
	since time.Time // at most floodSpan ago
}

// watch listens on a network, and not on the one before any more.
func (f *floodgate) watch(nics []net.Interface) {
	f.close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for network, group := range map[string]net.IP{"udp4": net.IPv4(224, 0, 0, 251), "udp6": net.ParseIP("ff02::fb")} {
		// A socket on the first hears what those of the library hear on all.
		c, err := net.ListenMulticastUDP(network, &nics[0], &net.UDPAddr{IP: group, Port: 5353})
		if err != nil {
			continue // then the library has no answers to give there either
		}
		f.open = append(f.open, c)
		go f.count(c)
	}
}

func (f *floodgate) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.open {
		c.Close()
	}
	f.open = nil
}

func (f *floodgate) count(c *net.UDPConn) {
	b := make([]byte, 12) // a header; the rest is cut off
	for {
		n, _, err := c.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) || f.ctx.Err() != nil {
			return
		}
		if err != nil && n < len(b) {
			time.Sleep(floodSpan) // not a busy loop, whatever is wrong
			continue
		}
		if n == len(b) && b[2]&0x80 == 0 { // a query
			f.note(int(b[4])<<8|int(b[5]), time.Now())
		}
	}
}

func (f *floodgate) note(questions int, now time.Time) {
	f.mu.Lock()
	if now.Sub(f.since) > floodSpan {
		f.asked, f.since = 0, now
	}
	f.asked += questions
	over := f.asked > floodMost
	f.mu.Unlock()
	if over {
		offer(f.tripped)
	}
}
