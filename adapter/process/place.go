package process

import (
	"encoding/json"
	"time"

	"github.com/selvage-mesh/selvage/company"
)

// What follows is for adapters whose runs stand elsewhere and look the same.

// Variables are those that a run is told what it is for by, with its folders as
// the command will see them, and nothing of the node's environment.
func (a *Adapter) Variables(inv company.Invocation, token, home, scratch string) map[string]string {
	env, _ := a.environment(inv, config{}, token, home, scratch)
	for _, name := range baseNames {
		delete(env, name)
	}
	return env
}

// Result is resultJson of a run that ended for the reason stop.
func Result(stdout, stderr, stop string, timedOut bool, source string, limit time.Duration) json.RawMessage {
	return result(stdout, stderr, stop, timedOut, source, limit)
}

// Failure is the outcome of a run that could not be begun.
func Failure(format string, args ...any) company.Outcome { return failure(format, args...) }

// Interrupted is the outcome of a run that its node may not go on with.
func Interrupted(why string) company.Outcome { return interrupted(why) }

// Late is the outcome of a run whose node's lease ended before it began.
func Late() company.Outcome { return late() }

// Sensitive tells whether a variable is called like a secret.
func Sensitive(name string) bool { return sensitive(name) }

// Timeout reads timeoutSec, and tells whether the configuration or the default
// says it.
func Timeout(sec *float64) (d time.Duration, source string) { return config{Timeout: sec}.timeout() }

// Grace reads graceSec.
func Grace(sec *float64) time.Duration { return config{Grace: sec}.grace() }

// Dir holds workspaces/<agent> and scratch/<run>.
func (a *Adapter) Dir() string { return a.cfg.Dir }
