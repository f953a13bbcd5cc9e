package mind

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	index "github.com/selvage-mesh/selvage/memory"
)

// A Calibration is what was measured of a node when it started. Zero is unknown.
type Calibration struct {
	At       time.Time
	CPU      time.Duration // to hash 64 KiB, the median
	Sync     time.Duration // of the disk, the median
	Search   time.Duration // among calibVectors vectors of calibDims numbers, the median
	Tick     time.Duration // a synthetic tick: a search, an edge and a hash; 95th percentile
	Median   time.Duration // the same, the median
	Interval time.Duration // the smallest band in which such a tick keeps its budget
}

const (
	calibTicks   = 30
	calibDims    = 384
	calibVectors = 500
	calibHash    = 64 << 10
)

// bands are the intervals of ticks that there are.
var bands = []time.Duration{10 * time.Microsecond, 50 * time.Microsecond, 100 * time.Microsecond,
	250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	500 * time.Millisecond, time.Second}

// bandOf returns the smallest band whose budget a tick of p95 keeps.
func bandOf(p95 time.Duration) time.Duration {
	for _, b := range bands {
		if p95 <= budget(b) {
			return b
		}
	}
	return bands[len(bands)-1]
}

// Calibrate measures this machine; sync is what its disk took, measured before. It computes
// for some tens of milliseconds, and stops when ctx ends.
func Calibrate(ctx context.Context, sync time.Duration, wall func() time.Time) (Calibration, error) {
	c := index.NewCollection()
	seed := uint64(1)
	vector := func() []float32 {
		v := make([]float32, calibDims)
		for i := range v { // a linear congruence: the same vectors on every machine
			seed = seed*6364136223846793005 + 1442695040888963407
			v[i] = float32(int64(seed>>33)-1<<30) / (1 << 30)
		}
		return v
	}
	for n := range calibVectors {
		v, err := index.Pack(vector())
		if err != nil {
			return Calibration{}, err
		}
		var id index.ID
		binary.BigEndian.PutUint64(id[8:], uint64(n)+1)
		if err := c.Put(index.Doc{ID: id, Text: "x", Model: "calibration", Vector: v, Given: true}); err != nil {
			return Calibration{}, err
		}
	}
	block, edges := make([]byte, calibHash), map[[2]index.ID]int64{}
	var hashes, searches, ticks []time.Duration
	for range calibTicks {
		if err := ctx.Err(); err != nil {
			return Calibration{}, err
		}
		began := time.Now()
		found, err := c.Search(index.Search{Vector: vector(), Model: "calibration", By: index.ByVectors, Limit: nearest,
			Filter: index.Filter{All: true}})
		if err != nil {
			return Calibration{}, err
		}
		searched := time.Now()
		for _, r := range found.Results {
			edges[[2]index.ID{found.Results[0].ID, r.ID}] = int64(r.Cosine * 1000)
		}
		linked := time.Now()
		sum := sha256.Sum256(block)
		ended := time.Now()
		block[0] = sum[0]
		searches, hashes, ticks = append(searches, searched.Sub(began)), append(hashes, ended.Sub(linked)),
			append(ticks, ended.Sub(began))
	}
	for _, list := range [][]time.Duration{hashes, searches, ticks} {
		slices.Sort(list)
	}
	p95 := ticks[calibTicks*95/100]
	return Calibration{At: wall().UTC(), CPU: hashes[calibTicks/2], Sync: sync, Search: searches[calibTicks/2],
		Tick: p95, Median: ticks[calibTicks/2], Interval: max(bandOf(p95), fastestInterval)}, nil
}
