package process

import (
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company"
)

// Redacted stands where a secret was.
const Redacted = "***REDACTED***"

// minSecret is the length from which a secret's value is taken out of output: a
// shorter one would take half the text with it.
const minSecret = 6

// sensitive reports whether a variable of that name holds a secret: what the API
// would not show of a configuration, and a little more.
func sensitive(name string) bool {
	if company.SecretName(name) {
		return true
	}
	name = strings.ToLower(name)
	return strings.Contains(name, "auth") || strings.Contains(name, "private") || strings.Contains(name, "secret")
}

// A redactor takes secrets out of a stream of text, also those that arrive in
// pieces: it holds back what may be the beginning of one.
type redactor struct {
	secrets []string // longest first
	held    string
}

func newRedactor(secrets []string) *redactor {
	kept := slices.DeleteFunc(slices.Clone(secrets), func(s string) bool { return len(s) < minSecret })
	slices.SortFunc(kept, func(a, b string) int { return len(b) - len(a) })
	return &redactor{secrets: slices.Compact(kept)}
}

// clean returns s without secrets.
func (r *redactor) clean(s string) string {
	for _, secret := range r.secrets {
		s = strings.ReplaceAll(s, secret, Redacted)
	}
	return s
}

// next takes more of the stream and returns what may be shown of it.
func (r *redactor) next(s string) string {
	s = r.clean(r.held + s)
	keep := 0
	for _, secret := range r.secrets {
		for n := min(len(secret)-1, len(s)); n > keep; n-- {
			if strings.HasSuffix(s, secret[:n]) {
				keep = n
				break
			}
		}
	}
	r.held = s[len(s)-keep:]
	return s[:len(s)-keep]
}

// rest returns what was held back at the end of the stream.
func (r *redactor) rest() string {
	s := r.held
	r.held = ""
	return s
}

// A tail keeps the end of a text.
type tail struct {
	max int
	b   []byte
	cut bool
}

func (t *tail) add(s string) {
	t.b = append(t.b, s...)
	if over := len(t.b) - t.max; over > 0 {
		t.b, t.cut = append(t.b[:0], t.b[over:]...), true
	}
}

// text returns the kept end, which begins with "…" when something is missing.
func (t *tail) text() string {
	s := strings.ToValidUTF8(string(t.b), "\uFFFD")
	if t.cut {
		return "…" + s
	}
	return s
}
