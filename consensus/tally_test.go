package consensus

import "testing"

// TestNothingIsAskedOfARaftThatStops: a question that is counted after the wait
// for the others began would wait for ever, since raft leaves it unanswered.
func TestNothingIsAskedOfARaftThatStops(t *testing.T) {
	var calls tally
	answer := make(chan struct{})
	if !calls.Go(func() { <-answer }) {
		t.Fatal("the first question was refused")
	}
	none := calls.none()
	if calls.Go(func() { t.Error("a late question was asked") }) {
		t.Error("a late question was taken")
	}
	select {
	case <-none:
		t.Error("a question is under way, but none was seen")
	default:
	}
	close(answer)
	<-none
}
