package company

import (
	"encoding/json"
	"slices"
	"strings"
)

// MinRedacted is the length from which the value of a secret is taken out of
// what a run writes, in bytes: a shorter one would take half the text with it.
const MinRedacted = 4

// A Redactor takes the values of secrets out of a stream of text, also those
// that arrive in pieces: it holds back what may be the beginning of one, which
// is less than the longest value. It is for one goroutine.
type Redactor struct {
	values []string  // longest first
	first  [256]bool // bytes that a value begins with
	held   string
}

// NewRedactor returns a redactor for values. Those shorter than MinRedacted are
// left alone; a value of several lines is also looked for line by line, as
// tools print it with their own indentation.
func NewRedactor(values []string) *Redactor {
	r := &Redactor{}
	add := func(v string) {
		if len(v) >= MinRedacted {
			r.values = append(r.values, v)
			r.first[v[0]] = true
		}
	}
	for _, v := range values {
		add(v)
		// As JSON has it, when that differs.
		if b := AppendJSONString(nil, v); len(b) != len(v)+2 {
			add(string(b[1 : len(b)-1]))
		}
		if trimmed := strings.TrimSpace(v); trimmed != v {
			add(trimmed)
		}
		if strings.Contains(v, "\n") {
			for line := range strings.SplitSeq(v, "\n") {
				if line = strings.TrimSpace(line); len(line) >= 4*MinRedacted {
					add(line)
				}
			}
		}
	}
	slices.SortFunc(r.values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	r.values = slices.Compact(r.values)
	return r
}

// Clean returns a whole text without the values.
func (r *Redactor) Clean(s string) string {
	out, _ := r.scan(s, true)
	return out
}

// Next takes more of the stream and returns what may be shown of it.
func (r *Redactor) Next(s string) string {
	out, held := r.scan(r.held+s, false)
	r.held = strings.Clone(held)
	return out
}

// Rest returns what was held back, at the end of the stream.
func (r *Redactor) Rest() string {
	out := r.Clean(r.held)
	r.held = ""
	return out
}

// scan replaces values from the left, the longest first. Unless s is all there
// is, it stops where a value may go on beyond the end.
func (r *Redactor) scan(s string, all bool) (out, held string) {
	if len(r.values) == 0 {
		return s, ""
	}
	var b strings.Builder
	kept := 0 // begins what is not written yet
	for i := 0; i < len(s); {
		if !r.first[s[i]] {
			i++
			continue
		}
		rest, found := s[i:], 0
		for _, v := range r.values {
			if !all && len(rest) < len(v) && strings.HasPrefix(v, rest) {
				b.WriteString(s[kept:i])
				return b.String(), rest
			}
			if strings.HasPrefix(rest, v) {
				found = len(v)
				break
			}
		}
		if found == 0 {
			i++
			continue
		}
		b.WriteString(s[kept:i])
		b.WriteString(Redacted)
		i += found
		kept = i
	}
	if kept == 0 {
		return s, ""
	}
	b.WriteString(s[kept:])
	return b.String(), ""
}

// CleanJSON returns a JSON value with the values taken out of its texts and
// keys; what is no JSON becomes a text.
func (r *Redactor) CleanJSON(b json.RawMessage) json.RawMessage {
	if len(b) == 0 || len(r.values) == 0 {
		return b
	}
	v, ok := parseJSON(b)
	if !ok {
		return AppendJSONString(nil, r.Clean(string(b)))
	}
	return formatJSON(r.value(v))
}

func (r *Redactor) value(v any) any {
	switch v := v.(type) {
	case string:
		return r.Clean(v)
	case []any:
		for i := range v {
			v[i] = r.value(v[i])
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			clean := r.value(v[k])
			delete(v, k)
			v[r.Clean(k)] = clean
		}
	}
	return v
}

// CleanOutcome returns what became of a run without the values.
func (r *Redactor) CleanOutcome(o Outcome) Outcome {
	for _, s := range []**string{&o.Stdout, &o.Stderr} {
		if *s != nil {
			*s = new(r.Clean(**s))
		}
	}
	o.Error, o.Result = r.Clean(o.Error), r.CleanJSON(o.Result)
	return o
}

// CleanReport returns what a run told of itself without the values.
func (r *Redactor) CleanReport(p Report) Report {
	p.Events = slices.Clone(p.Events)
	for i := range p.Events {
		p.Events[i].Message, p.Events[i].Payload = r.Clean(p.Events[i].Message), r.CleanJSON(p.Events[i].Payload)
	}
	return p
}
