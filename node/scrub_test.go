package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A scrub uses at most its share of a processor, takes the whole period when nobody
// waits for it, speeds up on request, and ends with its context.
func TestScrubKeepsItsPace(t *testing.T) {
	const every = 7 * 24 * time.Hour
	run := func(s *scrubber, work time.Duration, ctx context.Context) (took time.Duration, err error) {
		began := time.Now()
		s.begin(1000)
		for range 100 {
			time.Sleep(work)
			if err = s.pace(ctx, 10, began, every); err != nil {
				break
			}
		}
		s.end(err)
		return time.Since(began), err
	}
	synctest.Test(t, func(t *testing.T) {
		s := newScrubber(every, nil)
		if took, err := run(s, time.Millisecond, t.Context()); err != nil || took < every || took > every+time.Minute {
			t.Errorf("little work: %s, %v, want %s", took, err, every)
		}
		const work = 10 * time.Hour // of 100 pieces: more than 2 % of a week
		if took, err := run(s, work, t.Context()); err != nil || took < 50*100*work-time.Second ||
			took > 50*100*work+time.Minute {
			t.Errorf("much work: %s, %v, want 50 times %s", took, err, 100*work)
		}
		s.wanted = true
		if took, err := run(s, 10*time.Millisecond, t.Context()); err != nil || took != 4*time.Second {
			t.Errorf("demanded: %s, %v, want 4s", took, err)
		}
		if st := s.state(); st.Rounds != 3 || st.Ended == nil || st.Running || st.AllBytes != 3000 {
			t.Errorf("afterwards %+v", st)
		}
		time.AfterFunc(time.Hour, func() { // a request speeds up the current scrub
			s.mu.Lock()
			s.wanted = true
			s.mu.Unlock()
			kick(s.wake)
		})
		if took, err := run(s, time.Millisecond, t.Context()); err != nil || took > time.Hour+time.Minute {
			t.Errorf("asked to hurry after an hour: %s, %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if took, err := run(s, time.Millisecond, ctx); !errors.Is(err, context.DeadlineExceeded) || took != time.Hour {
			t.Errorf("ended after an hour: %s, %v", took, err)
		}
	})
}
