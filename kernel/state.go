package kernel

import "slices"

// A State is where a process is in its life.
type State string

// The states of a process. Exited is final.
const (
	Starting  State = "starting"
	Running   State = "running"
	Suspended State = "suspended"
	Stopping  State = "stopping"
	Exited    State = "exited"
)

// next lists which states may follow a state.
var next = map[State][]State{
	Starting:  {Running, Exited},
	Running:   {Suspended, Stopping, Exited},
	Suspended: {Running, Stopping, Exited},
	Stopping:  {Exited},
}

// Next returns to if it may follow s, and refuses with InvalidStateTransition if not.
func (s State) Next(to State) (State, error) {
	if slices.Contains(next[s], to) {
		return to, nil
	}
	return s, errorf(InvalidStateTransition, "a process that is %s can not become %s", s, to)
}

// Live reports whether a process in this state has not ended.
func (s State) Live() bool { return next[s] != nil }

// Exit codes that the kernel gives. A program's own codes are 0 to 255.
const (
	ExitOK     = 0
	ExitForced = -1 // it was killed
	ExitReaped = -2 // it had ended, and nobody had said so
	ExitPanic  = -3 // its code panicked or trapped
)

// A Reason is why a process ended.
type Reason string

// The reasons of an end.
const (
	Normal  Reason = "normal"
	Crash   Reason = "crash"
	Killed  Reason = "killed"
	Timeout Reason = "timeout"
)

// An Exit is how a process ended.
type Exit struct {
	Code    int    `json:"code"`
	Reason  Reason `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Failed reports whether an exit counts as a failure, after which a transient process is
// started again.
func (e Exit) Failed() bool { return e.Code != ExitOK || e.Reason != Normal }

// ExitOf returns the exit of a program with this code.
func ExitOf(code int, message string) Exit {
	switch code {
	case ExitOK:
		return Exit{code, Normal, message}
	case ExitForced:
		return Exit{code, Killed, message}
	}
	return Exit{code, Crash, message}
}
