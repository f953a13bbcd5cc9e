package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// An op is one operation of client w, its i-th.
type op func(ctx context.Context, w, i int) error

// errConflict is an operation that was refused because another had won.
var errConflict = errors.New("conflict")

// result is what one round measured.
type result struct {
	latencies []time.Duration // of those that succeeded, sorted
	conflicts int
	errors    int
	last      error
	wall      time.Duration
}

func (r *result) n() int { return len(r.latencies) }

func (r *result) rate() float64 { return float64(r.n()) / r.wall.Seconds() }

func (r *result) quantile(q float64) time.Duration {
	if r.n() == 0 {
		return 0
	}
	return r.latencies[int(float64(r.n()-1)*q)].Round(10 * time.Microsecond)
}

// measure runs f from n clients for d.
func measure(ctx context.Context, n int, d time.Duration, f op) *result {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var r result
	start := time.Now()
	for w := range n {
		wg.Go(func() {
			var own result
			for i := 0; time.Since(start) < d && ctx.Err() == nil; i++ {
				t := time.Now()
				switch err := f(ctx, w, i); {
				case err == nil:
					own.latencies = append(own.latencies, time.Since(t))
				case errors.Is(err, errConflict):
					own.conflicts++
				case errors.Is(err, errExhausted):
					return
				default:
					own.errors++
					own.last = err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			r.latencies = append(r.latencies, own.latencies...)
			r.conflicts += own.conflicts
			r.errors += own.errors
			if own.last != nil {
				r.last = own.last
			}
		})
	}
	wg.Wait()
	r.wall = time.Since(start)
	slices.Sort(r.latencies)
	return &r
}
