// Package core is the vocabulary of company rules: texts, times, money, JSON, IDs,
// refusals. It knows no noun.
package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// URLKey returns the name of an agent or project in addresses: in lower case, with dashes for
// everything that is not a letter or digit.
func URLKey(name string) string {
	var b strings.Builder
	dash := false
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			dash = b.Len() > 0
			continue
		}
		if dash {
			b.WriteByte('-')
			dash = false
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Assign and AssignText set a field to a value; nil keeps the field.
func Assign[T any](field *T, v *T) {
	if v != nil {
		*field = *v
	}
}

func AssignText[T ~string](field *Null[T], v *T) {
	if v != nil {
		*field = Null[T](*v)
	}
}

// Snippet returns at most n bytes of s, cut between characters.
func Snippet(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// SortedSet returns ids sorted, without duplicates and empty strings.
func SortedSet[T ~string](ids []T) []T {
	out := slices.DeleteFunc(slices.Clone(ids), func(id T) bool { return strings.TrimSpace(string(id)) == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

// TextKey turns free text into a part of a key.
func TextKey(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:16])
}

// Unique returns list without duplicates, in its order.
func Unique[T ~string](list []T) (out []T) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// UintText is n in decimal digits.
func UintText(n uint64) string { return strconv.FormatUint(n, 10) }

// A Null is a T whose empty value is null in JSON: the ID of a row that may be missing.
type Null[T ~string] string

// NullText is a text of that kind.
type NullText = Null[string]

// ID returns s as what it is when it is there.
func (s Null[T]) ID() T { return T(s) }

// MarshalJSON writes null for the empty string.
func (s Null[T]) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// UnmarshalJSON reads a string or null.
func (s *Null[T]) UnmarshalJSON(b []byte) error {
	var p *string
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*s = ""
	if p != nil {
		*s = Null[T](*p)
	}
	return nil
}

// CloneOf returns a pointer to a copy, nil for nil.
func CloneOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
