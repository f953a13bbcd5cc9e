package live

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestRunsAreAtWorkUntilTheyAreOver(t *testing.T) {
	var r Runs
	r.Cancel("a", "")
	asked := 0
	over := r.Begin("a", func() { asked++ })
	r.Cancel("a", "")
	r.Cancel("b", "")
	if asked != 1 || r.Status("a") != entity.PhaseExecute || r.Status("b") != "" {
		t.Errorf("asked %d times; a is %q, b is %q", asked, r.Status("a"), r.Status("b"))
	}
	over()
	r.Cancel("a", "")
	if asked != 1 || r.Status("a") != "" {
		t.Errorf("asked %d times; a is %q", asked, r.Status("a"))
	}
}

// An expired lease gives no authority, just like a missing one.
func TestWatchEndsWhatMayNotGoOn(t *testing.T) {
	for name, until := range map[string]time.Duration{"gone": 0, "past": shim.BootTime(), "held": shim.BootTime() +
		time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			ended := 0
			stop := Watch(t.Context(), company.Invocation{Authority: func() time.Duration { return until }}, func() { ended++ })
			time.Sleep(2*AuthorityEvery + time.Millisecond)
			stop()
			synctest.Wait()
			if (ended > 0) != (name != "held") {
				t.Errorf("%s: ended %d times", name, ended)
			}
		})
	}
}

func TestValues(t *testing.T) {
	var got map[string]Value
	if err := json.Unmarshal([]byte(`{"a":"x","b":{"type":"plain","value":"y"},"c":{}}`), &got); err != nil ||
		got["a"] != "x" || got["b"] != "y" || got["c"] != "" {
		t.Errorf("%v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"a":7}`), &got); err == nil {
		t.Error("a number is no value")
	}
}
