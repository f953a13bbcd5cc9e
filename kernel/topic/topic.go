// Package topic is the names of topics and the patterns that select them. It is pure: rules,
// mailboxes and the API use the same functions.
package topic

import (
	"fmt"
	"strings"
)

const (
	// MaxName bounds the bytes of a name or a pattern, MaxLevels its levels: both stand in
	// keys of messages and are compared for each message.
	MaxName   = 200
	MaxLevels = 16
)

// A name is 1 to MaxLevels levels, divided by dots or slashes: build.done, orders/eu/created.
// A level has letters, digits, and - _ : @ =. Upper and lower case differ.
//
// A pattern is a name in which a level may be
//
//	*  or +        any one level
//	** or > or #   at the end: one level or more
//
// The two divisions are different characters, and a wildcard stands for either.

// Check reports why s is not the name of a topic, nil if it is one.
func Check(s string) error {
	return check(s, func(string, bool) bool { return false })
}

// CheckPattern reports why s is not a pattern, nil if it is one. Every name is a pattern.
func CheckPattern(s string) error {
	return check(s, func(level string, last bool) bool { return one(level) || last && rest(level) })
}

func one(level string) bool  { return level == "*" || level == "+" }
func rest(level string) bool { return level == "**" || level == ">" || level == "#" }

func check(s string, wild func(level string, last bool) bool) error {
	switch {
	case s == "":
		return fmt.Errorf("required")
	case len(s) > MaxName:
		return fmt.Errorf("has %d bytes, at most %d", len(s), MaxName)
	}
	for n := 1; ; n++ {
		at := strings.IndexAny(s, "./")
		level := s
		if at >= 0 {
			level = s[:at]
		}
		switch {
		case n > MaxLevels:
			return fmt.Errorf("has more than %d levels", MaxLevels)
		case level == "":
			return fmt.Errorf("has an empty level: no dot or slash at the ends, and not two together")
		case !plain(level) && !wild(level, at < 0):
			return fmt.Errorf("%q: a level has letters, digits, - _ : @ =; a pattern may have * for one level, "+
				"and ** for all at its end", level)
		}
		if at < 0 {
			return nil
		}
		s = s[at+1:]
	}
}

func plain(level string) bool {
	for _, c := range []byte(level) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == ':', c == '@', c == '=':
		default:
			return false
		}
	}
	return true
}

// IsPattern reports whether a valid pattern has a wildcard.
func IsPattern(s string) bool { return strings.ContainsAny(s, "*+>#") }

// Match reports whether a valid pattern selects a valid name.
func Match(pattern, name string) bool {
	for {
		p, n := strings.IndexAny(pattern, "./"), strings.IndexAny(name, "./")
		level, of := cut(pattern, p), cut(name, n)
		switch {
		case p < 0 && rest(level):
			return true
		case !one(level) && level != of:
			return false
		case p < 0 || n < 0:
			return p < 0 && n < 0
		case pattern[p] != name[n] && !one(level):
			return false
		}
		pattern, name = pattern[p+1:], name[n+1:]
	}
}

func cut(s string, at int) string {
	if at < 0 {
		return s
	}
	return s[:at]
}
