package testkit

import (
	"context"
	"github.com/selvage-mesh/selvage/kit"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/kernel"
	"github.com/selvage-mesh/selvage/kernel/post"
	"github.com/selvage-mesh/selvage/node"
)

// resident begins a process on a node that sends and receives without a bound of messages.
func resident(t testing.TB, n *node.Node, name string) kernel.PID {
	t.Helper()
	e := kernel.Entry{Kind: kernel.KindNative, Name: name, Capabilities: kernel.DefaultCapabilities()}
	e.Capabilities.Limits.Messages = 0
	e, err := n.Post().Table().Adopt(e, kit.Now(t))
	if err != nil {
		t.Fatal(err)
	}
	return e.PID
}

// BenchmarkMessages measures messages within a node and between two, over the mesh's own
// transport on one machine, with the gate.
func BenchmarkMessages(b *testing.B) {
	bed := Mesh(b, 3)
	one, two := bed.Nodes[0], bed.Nodes[1]
	from, near, far := resident(b, one, "from"), resident(b, one, "near"), resident(b, two, "far")
	for name, at := range map[string]struct {
		n   *node.Node
		pid kernel.PID
	}{"near": {one, near}, "far": {two, far}} {
		ctx, stop := context.WithCancel(b.Context())
		var readers sync.WaitGroup
		readers.Go(func() {
			for ctx.Err() == nil {
				all, _ := at.n.Post().Receive(ctx, at.pid, 0, time.Second)
				for _, m := range all {
					if m.WantsReply {
						_ = at.n.Post().Reply(at.pid, m.ID, post.TextOf("world"))
					}
				}
			}
		})
		to := post.Process(kernel.Address{Node: string(at.n.ID()), PID: at.pid})
		b.Run("request/"+name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if _, err := one.Post().Request(ctx, from, &post.Message{To: to, Payload: post.TextOf("hello")}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
		})
		b.Run("send/"+name, func(b *testing.B) {
			b.SetParallelism(64) // senders that wait for credits and answers
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := one.Post().Send(ctx, from, &post.Message{To: to, Payload: post.TextOf("hello")}, false); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
		stop()
		readers.Wait()
	}
}

// A node that stops in the middle of a request tells the caller; a reliable message is handled once
// by whoever has the name next.
func TestMessagesBetweenNodes(t *testing.T) {
	bed := Mesh(t, 3)
	from, worker := resident(t, bed.Nodes[0], "from"), resident(t, bed.Nodes[1], "worker")
	say := func(text string, reliable bool) *post.Message {
		return &post.Message{To: post.Target{Kind: post.ToName, Name: "worker"}, Payload: post.TextOf(text),
			Reliable: reliable}
	}
	answered := make(chan error, 1)
	go func() {
		_, err := bed.Nodes[0].Post().Request(t.Context(), from, say("question", false))
		answered <- err
	}()
	receive := func(on int, pid kernel.PID) *post.Message {
		t.Helper()
		all, err := bed.Nodes[on].Post().Receive(t.Context(), pid, 1, 30*time.Second)
		if err != nil || len(all) != 1 {
			t.Fatalf("received %d messages, %v", len(all), err)
		}
		return all[0]
	}
	m := receive(1, worker)
	if err := bed.Nodes[1].Post().Reply(worker, m.ID, post.TextOf("answer")); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := bed.Nodes[0].Post().Request(t.Context(), from, say("question", false))
		answered <- err
	}()
	receive(1, worker)
	sent := make(chan error, 1)
	go func() {
		out, err := bed.Nodes[0].Post().Send(t.Context(), from, say("job", true), true)
		if err == nil && out.State != "acknowledged" {
			t.Errorf("the job is %s", out.State)
		}
		sent <- err
	}()
	receive(1, worker)
	bed.Kill(1)
	if err := <-answered; err == nil {
		t.Error("a node that was killed has answered")
	} else {
		t.Logf("the caller was told: %v", err)
	}
	successor := resident(t, bed.Nodes[2], "worker")
	again := receive(2, successor)
	if again.Payload.Text != "job" || again.Attempt < 2 {
		t.Errorf("handed out again is %+v", again)
	}
	if err := bed.Nodes[2].Post().Ack(successor, again.ID); err != nil {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if got, _ := bed.Nodes[2].Post().Receive(t.Context(), successor, 1, 0); len(got) != 0 {
		t.Error("it was handed out twice")
	}
}
