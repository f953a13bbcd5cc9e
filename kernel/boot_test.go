package kernel

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTheLogKeepsTheNewestEvents(t *testing.T) {
	now := start
	l := NewEventLog(func() time.Time { now = now.Add(time.Second); return now })
	for i := range 3 * EventLogSize {
		l.Add(Event{Level: levels[i%4], Message: fmt.Sprint(i) + strings.Repeat("x", maxEventText)})
	}
	all := l.Tail(0, LevelDebug)
	if len(all) != EventLogSize || all[0].Seq != 2*EventLogSize+1 || all[len(all)-1].Seq != 3*EventLogSize {
		t.Errorf("%d events from %d to %d", len(all), all[0].Seq, all[len(all)-1].Seq)
	}
	for i, e := range all {
		if e.Since != int64(e.Seq)*1000 || len(e.Message) != maxEventText || i > 0 && e.Seq != all[i-1].Seq+1 {
			t.Fatalf("event %+v", e)
		}
	}
	warn := l.Tail(3, LevelWarn)
	if len(warn) != 3 || warn[2].Level != LevelError || warn[1].Level != LevelWarn || warn[0].Level != LevelError {
		t.Errorf("the last warnings are %+v", warn)
	}
	if got := NewEventLog(time.Now).Tail(5, LevelDebug); len(got) != 0 {
		t.Errorf("an empty log has %v", got)
	}
}

// A node goes through its states in order, once; a boot that fails halts.
func TestANodeHasOneLife(t *testing.T) {
	l := NewEventLog(time.Now)
	b := NewBoot(l, start)
	b.Enter(PhaseNetwork, "listening")
	if s, p := b.Status(); s != Booting || p != PhaseNetwork || b.Took(start.Add(time.Second)) != time.Second {
		t.Errorf("it is %s in %s", s, p)
	}
	for _, step := range []struct {
		to KernelState
		ok bool
	}{{Booting, false}, {NodeRunning, true}, {NodeRunning, false}, {Halted, false}, {ShuttingDown, true}, {Booting, false},
		{Halted, true}, {NodeRunning, false}} {
		if err := b.Move(step.to, start.Add(2*time.Second)); (err == nil) != step.ok {
			t.Errorf("to %s: %v", step.to, err)
		}
	}
	if b.Took(start.Add(time.Hour)) != 2*time.Second {
		t.Errorf("booting took %s", b.Took(start.Add(time.Hour)))
	}
	if err := NewBoot(l, start).Move(Halted, start); err != nil {
		t.Error(err)
	}
	if PhaseECC.Tag() != "[ECC]" {
		t.Error(PhaseECC.Tag())
	}
}
