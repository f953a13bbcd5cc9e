package kernel

import (
	"slices"
	"sync"
	"time"
)

// An EventLevel says how much an event matters. They are ordered.
type EventLevel string

// The levels of events.
const (
	LevelDebug EventLevel = "debug"
	LevelInfo  EventLevel = "info"
	LevelWarn  EventLevel = "warn"
	LevelError EventLevel = "error"
)

var levels = []EventLevel{LevelDebug, LevelInfo, LevelWarn, LevelError}

// ParseLevel reads a level; "" is LevelDebug.
func ParseLevel(s string) (EventLevel, error) {
	if s == "" {
		return LevelDebug, nil
	}
	if l := EventLevel(s); slices.Contains(levels, l) {
		return l, nil
	}
	return "", errorf(BadRequest, "level %q: give debug, info, warn or error", s)
}

const (
	// EventLogSize is how many events a node keeps.
	EventLogSize = 1024
	// maxEventText bounds the message of an event, in bytes.
	maxEventText = 1 << 10
)

// An Event is one line of the kernel's log.
type Event struct {
	Seq     uint64     `json:"seq"` // from 1
	At      time.Time  `json:"timestamp"`
	Since   int64      `json:"since_ms"` // since the log began
	Level   EventLevel `json:"level"`
	Phase   Phase      `json:"phase,omitempty"` // of events of booting
	PID     *PID       `json:"pid,omitempty"`   // of events of a process
	Kind    string     `json:"kind,omitempty"`  // such as "process.exit"
	Message string     `json:"message"`
}

// An EventLog keeps the newest events of a node in a ring. It is safe for concurrent use.
type EventLog struct {
	now   func() time.Time
	began time.Time

	mu   sync.Mutex // guards what follows
	ring []Event
	seq  uint64
}

// NewEventLog returns a log that takes the time from now.
func NewEventLog(now func() time.Time) *EventLog { return &EventLog{now: now, began: now()} }

// Add appends an event, and gives it its number and time.
func (l *EventLog) Add(e Event) {
	if len(e.Message) > maxEventText {
		e.Message = e.Message[:maxEventText]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	e.Seq, e.At = l.seq, l.now()
	e.Since = e.At.Sub(l.began).Milliseconds()
	if len(l.ring) < EventLogSize {
		l.ring = append(l.ring, e)
		return
	}
	l.ring[(l.seq-1)%EventLogSize] = e
}

// Tail returns the newest n events from level up, the oldest first; n 0 means all.
func (l *EventLog) Tail(n int, level EventLevel) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []Event{}
	for i := range uint64(len(l.ring)) {
		e := l.ring[(l.seq-1-i)%EventLogSize]
		if slices.Index(levels, e.Level) < slices.Index(levels, level) {
			continue
		}
		out = append(out, e)
		if len(out) == n {
			break
		}
	}
	slices.Reverse(out)
	return out
}
