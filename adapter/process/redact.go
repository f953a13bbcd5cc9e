package process

import (
	"strings"

	"github.com/selvage-mesh/selvage/company/conceal"
)

// Redacted replaces a secret.
const Redacted = conceal.Redacted

// sensitive reports whether a variable's name suggests a secret: the names that the API
// redacts in configurations, and a few more.
func sensitive(name string) bool {
	if conceal.SecretName(name) {
		return true
	}
	name = strings.ToLower(name)
	return strings.Contains(name, "auth") || strings.Contains(name, "private") || strings.Contains(name, "secret")
}

// SecretsOf returns the values of variables whose names suggest secrets.
func SecretsOf(env map[string]string) (secrets []string) {
	for k, v := range env {
		if sensitive(k) {
			secrets = append(secrets, v)
		}
	}
	return secrets
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

// text returns the kept end; it begins with "…" if text before it was dropped.
func (t *tail) text() string {
	s := strings.ToValidUTF8(string(t.b), "\uFFFD")
	if t.cut {
		return "…" + s
	}
	return s
}
