package process

import (
	"encoding/json"
	"testing"
	"time"
)

// timeoutSec is 900 and graceSec 15 if the configuration has no valid value. Both are bounded,
// and timeoutSec 0 means the bound.
func TestTimeoutAndGraceOfARun(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		timeout, grace time.Duration
		source         string
	}{
		`{}`:                                  {900 * time.Second, 15 * time.Second, "default"},
		`{"timeoutSec":null,"graceSec":null}`: {900 * time.Second, 15 * time.Second, "default"},
		`{"timeoutSec":-1,"graceSec":-1}`:     {900 * time.Second, 15 * time.Second, "default"},
		`{"timeoutSec":1.5,"graceSec":0}`:     {1500 * time.Millisecond, 0, "config"},
		`{"timeoutSec":0}`:                    {MaxTimeout, 15 * time.Second, "config"},
		`{"timeoutSec":1e18,"graceSec":1e18}`: {MaxTimeout, MaxGrace, "config"},
	} {
		var c config
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		timeout, source := c.timeout()
		if timeout != want.timeout || source != want.source || c.grace() != want.grace {
			t.Errorf("%s: %s (%s) and %s, want %+v", text, timeout, source, c.grace(), want)
		}
	}
}
