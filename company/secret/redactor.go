package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
)

// MinRedacted is the length, in bytes, from which the value of a secret is redacted in
// the output of a run: redacting shorter values would destroy unrelated text. MinEncoded
// is the length from which its encoded forms are redacted too.
const (
	MinRedacted = 4
	MinEncoded  = 8
)

// A Redactor replaces the values of secrets in a stream of text that may arrive in pieces.
// It holds back text that may be the beginning of a value; that is less than the longest
// form of a value. It is not safe for concurrent use.
//
// A value of MinEncoded bytes or more is found as it is, as JSON encodes it, in base64 (both
// alphabets, with or without padding, also inside a longer text such as user:password), in
// hexadecimal, and percent-encoded. Not found are values shorter than MinRedacted, parts of
// a value, values that are encoded twice, compressed, encrypted or reversed, and values with
// line breaks inserted.
type Redactor struct {
	values [256][]string // by their first byte, longest first
	none   bool
	Held   string
}

// NewRedactor returns a redactor for values. It ignores values shorter than MinRedacted. It
// also searches for the single lines of a value of several lines, because tools indent them.
func NewRedactor(values []string) *Redactor {
	r := &Redactor{none: true}
	add := func(v string) {
		if len(v) >= MinRedacted {
			r.none = false
			r.values[v[0]] = append(r.values[v[0]], v)
		}
	}
	for _, v := range values {
		add(v)
		// The JSON encoding, if it differs.
		if b := core.AppendJSONString(nil, v); len(b) != len(v)+2 {
			add(string(b[1 : len(b)-1]))
		}
		trimmed := strings.TrimSpace(v)
		if trimmed != v {
			add(trimmed)
		}
		if len(trimmed) >= MinEncoded {
			encodings(trimmed, add)
			if trimmed != v {
				encodings(v, add)
			}
		}
		if strings.Contains(v, "\n") {
			for line := range strings.SplitSeq(v, "\n") {
				if line = strings.TrimSpace(line); len(line) >= 4*MinRedacted {
					add(line)
				}
			}
		}
	}
	for first, list := range r.values {
		slices.SortFunc(list, func(a, b string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return strings.Compare(a, b)
		})
		r.values[first] = slices.Compact(list)
	}
	return r
}

// encodings adds the forms in which tools encode a value.
func encodings(v string, add func(string)) {
	// Base64 encodes three bytes at a time, so a value has three forms, by its offset in
	// the encoded text. Characters that also encode neighbouring bytes are left out.
	for before := range 3 {
		whole := append(make([]byte, before, before+len(v)), v...)
		from, to := (before*8+5)/6, len(whole)*8/6
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			add(alphabet.EncodeToString(whole)[from:to])
		}
	}
	low := hex.EncodeToString([]byte(v))
	add(low)
	add(strings.ToUpper(low))
	// Escaped: JSON with HTML escapes, and percent-encoding of URLs.
	if b, err := json.Marshal(v); err == nil {
		add(string(b[1 : len(b)-1]))
		add(strings.ReplaceAll(string(b[1:len(b)-1]), "/", `\/`))
	}
	for _, escaped := range []string{url.QueryEscape(v), url.PathEscape(v), strings.ReplaceAll(url.QueryEscape(v),
		"+", "%20")} {
		add(escaped)
		add(lowerEscapes(escaped))
	}
}

// lowerEscapes writes percent-escapes in lower case.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// Clean returns a whole text with the values redacted.
func (r *Redactor) Clean(s string) string {
	out, _ := r.scan(s, true)
	return out
}

// Next takes the next piece of the stream and returns the text that is safe to show.
func (r *Redactor) Next(s string) string {
	out, held := r.scan(r.Held+s, false)
	r.Held = strings.Clone(held)
	return out
}

// Rest returns the text that was held back, at the end of the stream.
func (r *Redactor) Rest() string {
	out := r.Clean(r.Held)
	r.Held = ""
	return out
}

// scan replaces values from left to right, the longest first. Unless all is set, it stops
// where a value may continue after the end of s.
func (r *Redactor) scan(s string, all bool) (out, held string) {
	if r.none {
		return s, ""
	}
	var b strings.Builder
	kept := 0 // start of the text that is not yet written
	for i := 0; i < len(s); {
		candidates := r.values[s[i]]
		if len(candidates) == 0 {
			i++
			continue
		}
		rest, found := s[i:], 0
		for _, v := range candidates {
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
		b.WriteString(conceal.Redacted)
		i += found
		kept = i
	}
	if kept == 0 {
		return s, ""
	}
	b.WriteString(s[kept:])
	return b.String(), ""
}

// CleanJSON returns a JSON value with the values redacted in its strings and keys. Input that
// is no valid JSON becomes a string.
func (r *Redactor) CleanJSON(b json.RawMessage) json.RawMessage {
	if len(b) == 0 || r.none {
		return b
	}
	v, ok := core.ParseJSON(b)
	if !ok {
		return core.AppendJSONString(nil, r.Clean(string(b)))
	}
	return core.FormatJSON(r.value(v))
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
		for _, k := range slices.Sorted(maps.Keys(v)) {
			clean := r.value(v[k])
			delete(v, k)
			v[r.Clean(k)] = clean
		}
	}
	return v
}

// CleanOutcome returns the outcome of a run with the values redacted.
func (r *Redactor) CleanOutcome(o company.Outcome) company.Outcome {
	for _, s := range []**string{&o.Stdout, &o.Stderr} {
		if *s != nil {
			*s = new(r.Clean(**s))
		}
	}
	o.Error, o.Result = r.Clean(o.Error), r.CleanJSON(o.Result)
	return o
}

// CleanReport returns the report of a run with the values redacted.
func (r *Redactor) CleanReport(p company.Report) company.Report {
	p.Events = slices.Clone(p.Events)
	for i := range p.Events {
		p.Events[i].Message, p.Events[i].Payload = r.Clean(p.Events[i].Message), r.CleanJSON(p.Events[i].Payload)
	}
	return p
}
