package scheduler

import "testing"

// Runs go to slower processors last: a node that hashes twice as long as the fastest has a
// worse score by all of the weight, small differences and nodes that were not measured
// have none.
func TestSlowerProcessorsAreTakenLast(t *testing.T) {
	t.Parallel()
	at := func(micros int64) bench {
		return bench{Beat: Beat{Slots: 4, Facts: Facts{HashMicros: micros}}}
	}
	all := []bench{at(100), at(120), at(150), at(200), at(5000), at(0)}
	rateSpeed(all)
	for n, want := range []int64{0, 0, slowWeight / 2, slowWeight, slowWeight, 0} {
		if all[n].slow != want {
			t.Errorf("a processor of %d µs is slower by %d, want %d", all[n].Facts.HashMicros, all[n].slow, want)
		}
		if got := all[n].score("elsewhere", "elsewhere").Score; got != want {
			t.Errorf("a processor of %d µs has the score %d, want %d", all[n].Facts.HashMicros, got, want)
		}
	}
	none := []bench{at(0), at(0)}
	if rateSpeed(none); none[0].slow != 0 || none[1].slow != 0 {
		t.Errorf("processors that were not measured are rated: %+v", none)
	}
	// A run at work weighs more than a processor of half the speed.
	fast := at(100)
	fast.busy = 1
	pair := []bench{fast, at(200)}
	rateSpeed(pair)
	if busy, free := pair[0].score("elsewhere", "elsewhere").Score, pair[1].score("elsewhere", "elsewhere").
		Score; busy <= free {
		t.Errorf("a fast node with one run of four has %d, a free slow one %d", busy, free)
	}
}
