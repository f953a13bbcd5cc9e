package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// A rate lets Burst requests through at once and one more every Every.
type Rate struct {
	Burst int
	Every time.Duration
}

// Rates of one node, in authenticated mode.
var (
	// SignInRate is per source address, and per account.
	SignInRate = Rate{10, 6 * time.Second}
	SignUpRate = Rate{10, time.Minute}
	// KeyRate is for making and taking away credentials, per source address, and
	// per user.
	KeyRate = Rate{60, time.Second}
)

// maxBuckets bounds the sources and accounts that one node remembers.
const maxBuckets = 8192

// limits remembers who asked how often. Nothing of it is shared between nodes:
// the bound of a mesh is that of a node, times its nodes.
type limits struct {
	Mu      sync.Mutex // guards buckets
	Buckets map[string]bucket
}

// A bucket says when it will be full again; it is then as if it were not there.
type bucket struct{ full time.Time }

// Allow takes one request of a name out of its bucket. When it is empty, it says
// after how long there is one again.
func (l *limits) Allow(name string, r Rate, now time.Time) (ok bool, after time.Duration) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	full := l.Buckets[name].full
	if full.Before(now) {
		full = now
	}
	if missing := full.Sub(now); missing > time.Duration(r.Burst-1)*r.Every {
		return false, missing - time.Duration(r.Burst-1)*r.Every
	}
	if l.Buckets == nil {
		l.Buckets = make(map[string]bucket, 64)
	}
	if _, there := l.Buckets[name]; !there && len(l.Buckets) >= maxBuckets {
		l.makeRoom(now)
	}
	l.Buckets[name] = bucket{full.Add(r.Every)}
	return true, 0
}

// makeRoom forgets the buckets that are full, and if these are few, any others,
// an eighth in all.
func (l *limits) makeRoom(now time.Time) {
	for name, b := range l.Buckets {
		if !b.full.After(now) {
			delete(l.Buckets, name)
		}
	}
	for name := range l.Buckets {
		if len(l.Buckets) <= maxBuckets*7/8 {
			return
		}
		delete(l.Buckets, name)
	}
}

// Source is the address that a request comes from; IPv6 counts by its /64, of
// which one customer has all.
func (s *Server) Source(r *http.Request) string {
	ip, text := s.address(r)
	if ip.Is6() {
		p, _ := ip.Prefix(64)
		return p.String()
	}
	return text
}

// address is where a request comes from, as an address and as text. Behind a proxy
// it is what the proxy saw, which it adds at the end. What is none is text alone.
func (s *Server) address(r *http.Request) (netip.Addr, string) {
	host := r.RemoteAddr
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if s.Cfg.Proxied {
		if list := r.Header.Values("X-Forwarded-For"); len(list) > 0 {
			hops := strings.Split(list[len(list)-1], ",")
			if ip, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-1])); err == nil {
				host = ip.String()
			}
		}
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, host
	}
	ip = ip.Unmap().WithZone("")
	return ip, ip.String()
}
