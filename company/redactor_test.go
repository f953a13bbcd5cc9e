package company

import (
	"encoding/json"
	"strings"
	"testing"
)

// Whatever the pieces in which text arrives, no secret is shown, nothing else
// is lost, and nothing but a beginning of a secret is held back.
func FuzzRedactor(f *testing.F) {
	f.Add("before secret-one after secret-two", uint8(3))
	f.Add("secret-secret-one", uint8(1))
	f.Fuzz(func(t *testing.T, text string, piece uint8) {
		r := NewRedactor([]string{"secret-one", "secret-two", "abc"})
		n := int(piece)%7 + 1
		got := ""
		for s := text; s != ""; s = s[min(n, len(s)):] {
			got += r.Next(s[:min(n, len(s))])
			if len(r.held) >= len("secret-one") {
				t.Fatalf("holds back %q", r.held)
			}
		}
		got += r.Rest()
		want := strings.NewReplacer("secret-one", Redacted, "secret-two", Redacted).Replace(text)
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A value that another one begins with is not shown in part, also in pieces.
func TestRedactorTakesTheLongest(t *testing.T) {
	t.Parallel()
	r := NewRedactor([]string{"canary", "canary-long", "line one is long enough\n  line two is long enough", `with"quote`})
	for _, c := range []struct{ in, want string }{
		{"a canary-long b", "a * b"}, {"a canary b", "a * b"}, {"a canary-lon", "a *-lon"}, {"canarycanary-long", "**"},
		{"> line one is long enough\n> line two is long enough", "> *\n> *"}, {`"with\"quote"`, `"*"`}, {`with"quote`, "*"}, {"can", "can"},
	} {
		want := strings.ReplaceAll(c.want, "*", Redacted)
		if got := r.Clean(c.in); got != want {
			t.Errorf("%q: got %q, want %q", c.in, got, want)
		}
		got := ""
		for i := range len(c.in) {
			got += r.Next(c.in[i : i+1])
		}
		if got += r.Rest(); got != want {
			t.Errorf("%q in pieces: got %q, want %q", c.in, got, want)
		}
	}
	got := string(r.CleanJSON(json.RawMessage(`{"a":["x canary-long"],"canary":1.50,"n":null}`)))
	if want := `{"***REDACTED***":1.50,"a":["x ***REDACTED***"],"n":null}`; got != want {
		t.Errorf("JSON %s, want %s", got, want)
	}
}
