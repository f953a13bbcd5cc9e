package discovery

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// seek keeps the node in touch: it looks for peers while there are none, calls
// at failed members now and then, which heals a partition, and repeats the
// exchange of tables a few times after the first, see settleJoins.
func (d *Discovery) seek() {
	backoff, settle := rejoinMin, 0
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-d.ctx.Done():
			return
		case <-d.resync:
			settle = max(settle, 1)
			next.Reset(rand.N(settleDelay(settle)))
			continue
		case <-d.now:
			backoff = rejoinMin
		case <-next.C:
		}
		live, failed := d.split()
		var pause time.Duration
		switch {
		case len(live) == 0:
			if d.join(d.candidates()) {
				settle = settleJoins
			}
			pause, backoff = jitter(backoff), min(2*backoff, rejoinMax)
		case settle > 0:
			backoff = rejoinMin
			d.join([]netip.AddrPort{live[rand.IntN(len(live))].Addr})
			settle--
			pause = jitter(settleDelay(settle))
		default:
			backoff = rejoinMin
			if len(failed) > 0 {
				m := failed[rand.IntN(len(failed))]
				as := d.Addresses(m.Meta.Node)
				d.join(as[:min(len(as), joinParallel)])
			}
			pause = jitter(reconnectEvery)
		}
		next.Reset(pause)
	}
}

func settleDelay(left int) time.Duration {
	return time.Second << (settleJoins - min(left, settleJoins))
}

// jitter spreads d by half to both sides.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d+1) }

// split returns the live and the failed members.
func (d *Discovery) split() (live, failed []Member) {
	for _, m := range d.table.list() {
		switch m.State {
		case Live:
			live = append(live, m)
		case Failed:
			failed = append(failed, m)
		}
	}
	return live, failed
}

// candidates returns where peers may be, seeds before what was remembered.
func (d *Discovery) candidates() []netip.AddrPort {
	seeds := shuffle(append(d.lookup(), d.config.Hints()...))
	d.mu.Lock()
	var others []netip.AddrPort
	for _, p := range d.cache {
		others = append(others, p.Addrs...)
	}
	for _, a := range d.claims {
		others = append(others, a)
	}
	d.mu.Unlock()
	all := append(seeds[:min(len(seeds), joinAddresses/2)], shuffle(others)...)
	var as []netip.AddrPort
	for _, a := range all {
		if a = unmap(a); usable(a) && a != *d.at.Load() && !slices.Contains(as, a) && len(as) < joinAddresses {
			as = append(as, a)
		}
	}
	return as
}

func shuffle(as []netip.AddrPort) []netip.AddrPort {
	rand.Shuffle(len(as), func(i, j int) { as[i], as[j] = as[j], as[i] })
	return as
}

// lookup returns the addresses of the seeds; one that has none now is left out.
func (d *Discovery) lookup() (as []netip.AddrPort) {
	for _, s := range d.config.Seeds {
		if a, err := netip.ParseAddrPort(s); err == nil {
			as = append(as, a)
			continue
		}
		host, port, _ := net.SplitHostPort(s)
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(d.ctx, lookupTimeout)
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		cancel()
		if err != nil {
			d.config.Logger.Info("seed not found", "seed", s, "error", err)
			continue
		}
		for _, ip := range ips[:min(len(ips), maxSeedAddresses)] {
			as = append(as, netip.AddrPortFrom(ip, uint16(n)))
		}
	}
	return as
}

// join exchanges tables with whoever is at the addresses, and reports whether
// one did.
func (d *Discovery) join(as []netip.AddrPort) bool {
	var joined atomic.Bool
	var g errgroup.Group
	g.SetLimit(joinParallel)
	for _, a := range as {
		g.Go(func() error {
			if d.ctx.Err() != nil {
				return nil
			}
			if n, err := d.list.Load().Join([]string{a.String()}); n > 0 && err == nil {
				joined.Store(true)
			}
			return nil
		})
	}
	g.Wait()
	return joined.Load()
}
