package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/selvage-mesh/selvage/ledger"
)

// WellFormed checks syntax, nesting, encoding, and that no object repeats a name.
func WellFormed(b []byte) error {
	if !json.Valid(b) {
		var any json.RawMessage
		err := json.Unmarshal(b, &any)
		at, text := int64(len(b)), "unexpected end of JSON input"
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			at, text = s.Offset, s.Error()
		}
		return malformed(text, at)
	}
	if !utf8.Valid(b) {
		return malformed("not UTF-8", 0)
	}
	p := position{b: b}
	return p.check(0)
}

func malformed(text string, offset int64) error {
	return &ledger.Refusal{Code: ledger.Invalid, Message: "Malformed JSON",
		Detail: detailOf(map[string]any{"message": text, "offset": offset})}
}

// A position walks valid JSON.
type position struct {
	b []byte
	i int
}

func (p *position) space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// str skips a string and returns it with its quotes.
func (p *position) str() []byte {
	from := p.i
	for p.i++; p.b[p.i] != '"'; p.i++ {
		if p.b[p.i] == '\\' {
			p.i++
		}
	}
	p.i++
	return p.b[from:p.i]
}

// skip skips one value and returns it.
func (p *position) skip() []byte {
	p.space()
	from, depth := p.i, 0
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case '"':
			p.str()
			if depth == 0 {
				return p.b[from:p.i]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return p.b[from:p.i]
			}
			if depth--; depth == 0 {
				p.i++
				return p.b[from:p.i]
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return p.b[from:p.i]
			}
		}
		p.i++
	}
	return p.b[from:p.i]
}

// next moves to the next member or item, from the opening bracket or from the end of a value.
func (p *position) next() bool {
	p.space()
	if p.b[p.i] == ',' {
		p.i++
		p.space()
	}
	if c := p.b[p.i]; c == '}' || c == ']' {
		p.i++
		return false
	}
	return true
}

// member returns a member's name and skips the colon.
func (p *position) member() string {
	name := text(p.str())
	p.space()
	p.i++
	p.space()
	return name
}

func (p *position) check(depth int) error {
	if depth > MaxDepth {
		return malformed("nested too deeply", int64(p.i))
	}
	p.space()
	switch p.b[p.i] {
	case '{':
		p.i++
		var names []string
		var many map[string]bool // used beyond a few names
		for p.next() {
			at := p.i
			name := p.member()
			if many[name] || many == nil && slices.Contains(names, name) {
				return malformed("duplicate key "+strconv.Quote(Cut(name, 64)), int64(at))
			}
			if names = append(names, name); many != nil {
				many[name] = true
			} else if len(names) > 16 {
				many = make(map[string]bool, 64)
				for _, n := range names {
					many[n] = true
				}
			}
			if err := p.check(depth + 1); err != nil {
				return err
			}
		}
	case '[':
		p.i++
		for p.next() {
			if err := p.check(depth + 1); err != nil {
				return err
			}
		}
	default:
		p.skip()
	}
	return nil
}

// text returns the value of a JSON string.
func text(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
