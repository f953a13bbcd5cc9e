package governance

import (
	"fmt"
	"strings"
)

// A Level is a part of one, in thousandths: 0 to 1000.
type Level int32

// Most is the highest level.
const Most Level = 1000

// String shows a level as a decimal fraction, "0.7".
func (l Level) String() string {
	s := fmt.Sprintf("%d.%03d", int32(l)/1000, int32(l)%1000)
	s = strings.TrimRight(s, "0")
	return strings.TrimSuffix(s, ".")
}

// ParseLevel reads a decimal fraction from 0 to 1, such as "0.7", "1" or "7e-1", without floating point. Digits after
// the third round up: what is between two levels counts as the higher one.
func ParseLevel(s string) (Level, error) {
	bad := func() (Level, error) { return 0, fmt.Errorf("%.40q: want a number from 0 to 1", s) }
	digits, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	shift, ok := parseExponent(exponent)
	if !ok || len(s) > 40 || strings.HasSuffix(strings.ToLower(s), "e") {
		return bad()
	}
	whole, part, point := strings.Cut(digits, ".")
	if whole == "" || point && part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return bad()
	}
	// The value is all × 10^shift, in thousandths.
	all := strings.TrimLeft(whole+part, "0")
	if all == "" {
		return 0, nil
	}
	shift += 3 - len(part)
	level, rest := 0, false
	for i, d := range all {
		if len(all)-i+shift <= 0 {
			rest = rest || d != '0'
			continue
		}
		if level = level*10 + int(d-'0'); level > int(Most) {
			return bad()
		}
	}
	for ; shift > 0; shift-- {
		if level *= 10; level > int(Most) {
			return bad()
		}
	}
	if rest {
		level++
	}
	if level > int(Most) {
		return bad()
	}
	return Level(level), nil
}

// parseExponent reads the exponent of a number, 0 when there is none.
func parseExponent(s string) (n int, ok bool) {
	s, negative := strings.CutPrefix(s, "-")
	if !negative {
		s = strings.TrimPrefix(s, "+")
	}
	if len(s) > 3 {
		return 0, false
	}
	for _, d := range s {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// A Dimension is one way in which an act can do harm.
type Dimension int

// The dimensions in the order of an effect vector. Do not reorder.
const (
	Risk     Dimension = iota // of loss, damage or cost
	Fairness                  // of treating people wrongly
	Privacy                   // of showing what is private
	Novelty                   // of what nobody has tried here
	Security                  // of opening the way to others
	dimensions
)

// Dimensions lists their names in the order of an effect vector.
var Dimensions = [dimensions]string{"risk", "fairness", "privacy", "novelty", "security"}

func (d Dimension) String() string { return Dimensions[d] }

// An Effect says how much harm an act can do, by dimension.
type Effect [dimensions]Level

// Magnitude returns the length of the vector in thousandths, 0 to 2237. It rounds up, so that comparing it with a whole
// limit is exact.
func (e Effect) Magnitude() Level {
	sum, root := int64(0), int64(0)
	for _, l := range e {
		sum += int64(l) * int64(l)
	}
	for bit := int64(1) << 12; bit > 0; bit >>= 1 {
		if next := root + bit; next*next <= sum {
			root = next
		}
	}
	if root*root < sum {
		root++
	}
	return Level(root)
}

// String shows the vector, "[0.7, 0.5, 0.3, 0.8, 0.6]".
func (e Effect) String() string {
	parts := make([]string, len(e))
	for i, l := range e {
		parts[i] = l.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// raised returns the vector with one dimension raised by more, at most to [Most].
func (e Effect) raised(d Dimension, more Level) Effect {
	e[d] = min(e[d]+more, Most)
	return e
}

// atLeast returns the vector with one dimension not below level.
func (e Effect) atLeast(d Dimension, level Level) Effect {
	e[d] = max(e[d], level)
	return e
}
