package node

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The measured delay rises when the node is starved and recovers within a minute. A
// single bad moment counts for a quarter.
func TestHowLateANodeRuns(t *testing.T) {
	t.Parallel()
	now := time.Duration(0)
	p := &pulse{clock: func() time.Duration { return now }}
	run := func(span time.Duration, late ...time.Duration) {
		for i := 0; span > 0; i++ {
			now, span = now+pulseEvery, span-pulseEvery
			p.note(now, late[i%len(late)])
		}
	}
	run(2*time.Minute, 2*time.Millisecond)
	if got := p.Late(); got != 2*time.Millisecond {
		t.Errorf("a calm node is late by %v", got)
	}
	p.note(now, 800*time.Millisecond)
	if got := p.Late(); got != 200*time.Millisecond {
		t.Errorf("after one bad moment it is late by %v, want a quarter of it", got)
	}
	run(10*time.Second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 300*time.Millisecond)
	if got := p.Late(); got != 300*time.Millisecond {
		t.Errorf("a starved node is late by %v, want the second-worst span", got)
	}
	run(30*time.Second, time.Millisecond)
	if got := p.Late(); got < 300*time.Millisecond {
		t.Errorf("it forgot after half a minute: %v", got)
	}
	run(31*time.Second, time.Millisecond)
	if got := p.Late(); got != time.Millisecond {
		t.Errorf("a minute after it was starved it is late by %v", got)
	}
	now += time.Hour // it did not run at all, and has not measured it yet
	if got := p.Late(); got != 0 {
		t.Errorf("what is an hour old counts: %v", got)
	}
}

// The worst stall in the time explains why a node lost something.
func TestWhyANodeCouldNotRun(t *testing.T) {
	t.Parallel()
	p := &pulse{}
	if got := p.why(0); got != "" {
		t.Errorf("a node that ran says %q", got)
	}
	p.remember(stall{ended: 10 * time.Second, took: 9100 * time.Millisecond, load: 31000})
	p.remember(stall{ended: 20 * time.Second, took: time.Second, load: 25500})
	for since, want := range map[time.Duration]string{
		5 * time.Second:  "this node could not run for 9.1 s: load 31",
		10 * time.Second: "this node could not run for 1.0 s: load 25.5",
		20 * time.Second: "",
	} {
		if got := p.why(since); got != want {
			t.Errorf("since %v: %q, want %q", since, got, want)
		}
	}
	for i := range 2 * stallsKept {
		p.remember(stall{ended: time.Duration(100+i) * time.Second, took: time.Second, load: 1000})
	}
	if len(p.stalls) != stallsKept {
		t.Errorf("%d stalls are kept", len(p.stalls))
	}
	p.remember(stall{ended: time.Hour, took: 3 * time.Hour, slept: true})
	if got := p.why(time.Minute); got != "this machine was asleep for 10800.0 s" {
		t.Errorf("after a suspend: %q", got)
	}
}

// After a suspension the boot-time clock has jumped, the clock of timers has not.
func TestAPulseTellsSleepFromHunger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var jump atomic.Int64
		p := &pulse{clock: func() time.Duration { return time.Since(began) + time.Duration(jump.Load()) }}
		go p.beatOn(t.Context())
		time.Sleep(time.Minute)
		if got, why := p.Late(), p.why(0); got != 0 || why != "" {
			t.Errorf("in virtual time nobody is late: %v, %q", got, why)
		}
		jump.Store(int64(time.Hour))
		time.Sleep(time.Second)
		if got, why := p.Late(), p.why(time.Minute); got != 0 || why != "this machine was asleep for 3600.0 s" {
			t.Errorf("after a suspend: %v, %q", got, why)
		}
	})
}
