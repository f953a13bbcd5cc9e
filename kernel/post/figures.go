package post

import (
	"maps"
	"time"
)

// Buckets are the upper bounds of the histogram of latencies, in ms.
var Buckets = [...]int{1, 5, 10, 25, 50, 100, 250, 500, 1000}

// Figures count what an office did since it began.
type Figures struct {
	Sent         uint64
	Delivered    uint64 // read by their receivers
	Dropped      uint64 // dead letters
	Dead         map[Reason]uint64
	Requests     uint64
	Replies      uint64
	Acknowledged uint64
	Retries      uint64
	Duplicates   uint64                   // recognized, and not delivered
	Latency      [len(Buckets) + 1]uint64 // from sending to reading, by Buckets, and above
	LatencySum   time.Duration

	Waiting int // messages in inboxes
	Letters int
	Pending int // reliable messages that are not acknowledged
	Calls   int // requests that wait for their replies
}

func (f *Figures) delivered(after time.Duration) {
	f.Delivered++
	after = max(after, 0)
	f.LatencySum += after
	for i, ms := range Buckets {
		if after <= time.Duration(ms)*time.Millisecond {
			f.Latency[i]++
			return
		}
	}
	f.Latency[len(Buckets)]++
}

// Figures returns what the office has counted.
func (o *Office) Figures() Figures {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.figures
	f.Dead = maps.Clone(f.Dead)
	for _, b := range o.inboxes {
		f.Waiting += b.len()
	}
	f.Letters, f.Pending, f.Calls = len(o.letters.list), len(o.outbox), len(o.calls)
	return f
}
