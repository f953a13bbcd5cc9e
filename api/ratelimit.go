package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// A Rate lets Burst requests through at once, then one more each Every.
type Rate struct {
	Burst int
	Every time.Duration
}

// Rates of one node, in authenticated mode.
var (
	// SignInRate is per source address, and per account.
	SignInRate = Rate{10, 6 * time.Second}
	SignUpRate = Rate{10, time.Minute}
	// KeyRate is for creating and revoking credentials, per source address and per user.
	KeyRate = Rate{60, time.Second}
)

// maxBuckets bounds the sources and accounts that one node counts.
const maxBuckets = 8192

// limits counts requests by caller. Nodes do not share it: the rate of a mesh is that of a
// node times the number of nodes.
type limits struct {
	Mu      sync.Mutex // guards buckets
	Buckets map[string]bucket
}

// A bucket says when it will be full again; a full bucket can be forgotten.
type bucket struct{ full time.Time }

// Allow takes one request out of the bucket name. When it is empty, it returns after how long
// the next one is allowed.
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

// makeRoom forgets full buckets, and if these are few, any others, an eighth in total.
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

// Source returns the address that a request comes from. IPv6 addresses count by their /64,
// because one customer has all of it.
func (s *Server) Source(r *http.Request) string {
	ip, text := s.address(r)
	if ip.Is6() {
		p, _ := ip.Prefix(64)
		return p.String()
	}
	return text
}

// address returns where a request comes from, as an address and as text. Behind a proxy it is
// the last address that the proxy added. Anything else is text only.
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
