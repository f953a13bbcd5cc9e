package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A run whose issues are used up, or in which nothing succeeds, ends with an error
// instead of lines of 0/s.
func TestARunThatMeasuresNothingEnds(t *testing.T) {
	for name, c := range map[string]struct {
		part func(context.Context, *bench) error
		want error
	}{
		"no issue is left": {race, errExhausted},
		"nothing succeeds": {func(ctx context.Context, b *bench) error {
			b.row(ctx, "nothing", "", 2, func(context.Context, int,
				int) error {
				time.Sleep(time.Millisecond)
				return errConflict
			})
			return nil
		}, nil},
	} {
		ctx, fail := context.WithCancelCause(t.Context())
		b := &bench{Config: Config{Clients: 2, Rounds: 3, Seconds: 20 * time.Millisecond}, m: &mesh{},
			load: &workload{fail: fail}, fail: fail}
		if err := c.part(ctx, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := context.Cause(ctx); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: the run goes on with %v", name, err)
		}
		fail(nil)
	}
}
