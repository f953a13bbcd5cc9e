package courier

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
)

// BenchmarkSend measures messages from many senders to one reader of the same node, and what of a
// processor each takes, which a busy machine changes less.
func BenchmarkSend(b *testing.B) {
	w := newTown(b, "a")
	c, table := w.courier("a"), w.table["a"]
	adopt := func(name string) kernel.PID {
		e := kernel.Entry{Kind: kernel.KindNative, Name: name, Capabilities: kernel.DefaultCapabilities()}
		e.Capabilities.Limits.Messages = 0
		e, err := table.Adopt(e, time.Now())
		if err != nil {
			b.Fatal(err)
		}
		return e.PID
	}
	from, near := adopt("from"), adopt("near")
	ctx, stop := context.WithCancel(b.Context())
	var readers sync.WaitGroup
	reads := 0
	readers.Go(func() {
		for ctx.Err() == nil {
			if all, _ := c.Receive(ctx, near, 0, time.Second); len(all) > 0 {
				reads++
			}
		}
	})
	to := post.Process(kernel.Address{Node: "a", PID: near})
	before := processor(b)
	b.SetParallelism(64) // senders that wait for credits
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := c.Send(ctx, from, &post.Message{To: to, Payload: post.TextOf("hello")}, false); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
	b.ReportMetric(float64(processor(b)-before)/float64(b.N), "cpu-ns/msg")
	stop()
	readers.Wait()
	b.ReportMetric(float64(b.N)/float64(reads), "msgs/read")
}

// processor returns the processor time of this process.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
