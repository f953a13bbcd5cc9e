package process

import (
	"encoding/json"
	"time"

	"github.com/selvage-mesh/selvage/company"
)

// The functions below are for adapters whose runs are executed otherwise but look the same.

// Variables returns the contract's variables of a run, with its folders' paths as the command
// sees them, and nothing of the node's environment.
func (a *Adapter) Variables(inv company.Invocation, token, home, scratch string) map[string]string {
	env, _ := a.environment(inv, config{}, token, home, scratch)
	for _, name := range baseNames {
		delete(env, name)
	}
	return env
}

// Result returns resultJson of a run that ended for the reason stop.
func Result(stdout, stderr, stop string, timedOut bool, source string, limit time.Duration) json.RawMessage {
	return result(stdout, stderr, stop, timedOut, source, limit)
}

// Failure returns the outcome of a run that could not be started.
func Failure(format string, args ...any) company.Outcome { return failure(format, args...) }

// Interrupted returns the outcome of a run that its node may not continue.
func Interrupted(why string) company.Outcome { return interrupted(why) }

// Late returns the outcome of a run whose node's lease ended before it started.
func Late() company.Outcome { return late() }

// Sensitive reports whether a variable's name suggests a secret.
func Sensitive(name string) bool { return sensitive(name) }

// Timeout returns the value of timeoutSec, and whether it comes from the configuration or is
// the default.
func Timeout(sec *float64) (d time.Duration, source string) { return config{Timeout: sec}.timeout() }

// Grace returns the value of graceSec.
func Grace(sec *float64) time.Duration { return config{Grace: sec}.grace() }

// Dir holds workspaces/<agent> and scratch/<run>.
func (a *Adapter) Dir() string { return a.cfg.Dir }
