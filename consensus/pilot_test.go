package consensus

import "testing"

func TestToleranceCountsLivingVoters(t *testing.T) {
	for _, c := range []struct{ voters, living, want int }{
		{1, 1, 0}, {3, 3, 1}, {3, 2, 0}, {3, 1, 0}, {5, 5, 2}, {5, 4, 1}, {5, 3, 0}, {7, 7, 3}, {2, 2, 0},
	} {
		if got := tolerance(c.voters, c.living); got != c.want {
			t.Errorf("%d of %d voters alive: %d may die, want %d", c.living, c.voters, got, c.want)
		}
	}
}
