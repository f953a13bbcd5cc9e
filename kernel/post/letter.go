package post

import (
	"fmt"
	"time"
)

// A Reason is why a message was not delivered.
type Reason string

// The reasons.
const (
	TargetNotFound   Reason = "target_not_found"
	InboxFull        Reason = "inbox_full"
	Timeout          Reason = "timeout"
	GovernanceDenied Reason = "governance_denied"
	Deferred         Reason = "governance_deferred" // a person would have to approve it
	AgentExited      Reason = "agent_exited"
	Unreachable      Reason = "node_unreachable"
	LimitExceeded    Reason = "resource_limit_exceeded" // of the sender: it has sent as much as it may
	NotAllowed       Reason = "capability_denied"
	NotOpen          Reason = "not_open" // an acknowledgement or a reply that nobody waits for

	// Of a call of a registered service: its provider answered with an error of its own, or with what
	// the contract does not allow; or the breakers of all its providers are open.
	Refused     Reason = "service_refused"
	Broken      Reason = "service_contract"
	CircuitOpen Reason = "service_circuit_open"
)

// A Failure is why a message was not delivered, with what to do about it.
type Failure struct {
	Reason Reason
	Detail string
	// Unsure: the message may have arrived all the same.
	Unsure bool
}

func (f *Failure) Error() string { return string(f.Reason) + ": " + f.Detail }

// Fail returns a failure.
func Fail(r Reason, format string, args ...any) *Failure {
	return &Failure{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

func unsure(r Reason, format string, args ...any) *Failure {
	f := Fail(r, format, args...)
	f.Unsure = true
	return f
}

// A Letter is a message that was not delivered.
type Letter struct {
	Number  uint64 // on its node, from 1
	At      time.Time
	Reason  Reason
	Detail  string
	Message *Message
}

// letters keeps the newest dead letters, in order.
type letters struct {
	list  []Letter
	bytes int
	next  uint64
}

func (l *letters) add(x Letter) {
	l.next++
	x.Number = l.next
	l.list = append(l.list, x)
	l.bytes += x.Message.Payload.Size()
	for len(l.list) > DeadLetterMost || l.bytes > DeadLetterBytes && len(l.list) > 1 {
		l.bytes -= l.list[0].Message.Payload.Size()
		l.list[0] = Letter{}
		l.list = l.list[1:]
	}
}

// take removes letters that match, and returns them.
func (l *letters) take(match func(Letter) bool) (out []Letter) {
	kept := make([]Letter, 0, len(l.list))
	for _, x := range l.list {
		if match(x) {
			out = append(out, x)
			l.bytes -= x.Message.Payload.Size()
		} else {
			kept = append(kept, x)
		}
	}
	l.list = kept
	return out
}
