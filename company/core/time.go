package core

import (
	"strconv"
	"time"
)

// Time is an instant in milliseconds since the Unix epoch, UTC. Zero means none and is null
// in JSON.
type Time int64

// TimeOf converts t, truncated to milliseconds.
func TimeOf(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Std returns t as a time.Time in UTC; zero stays zero.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

const isoMillis = "2006-01-02T15:04:05.000Z"

func (t Time) String() string { return t.Std().Format(isoMillis) }

// MarshalJSON writes an ISO instant with milliseconds and Z, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return t.Std().AppendFormat(make([]byte, 0, len(isoMillis)+2), `"`+isoMillis+`"`), nil
}

// UnmarshalJSON reads any RFC 3339 instant, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = 0
		return nil
	}
	s, err := strconv.Unquote(string(b))
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return err
	}
	*t = TimeOf(at)
	return nil
}
