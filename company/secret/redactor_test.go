package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/company/conceal"
	"github.com/selvage-mesh/selvage/company/core"
	"github.com/selvage-mesh/selvage/company/secret"
)

// For any division of a text into pieces, no secret is shown, no other text is lost, and only
// the beginning of a possible secret is held back.
func FuzzRedactor(f *testing.F) {
	f.Add("before secret-one after secret-two", uint8(3))
	f.Add("secret-secret-one", uint8(1))
	f.Fuzz(func(t *testing.T, text string, piece uint8) {
		r := secret.NewRedactor([]string{"secret-one", "secret-two", "abc"})
		n := int(piece)%7 + 1
		got := ""
		for s := text; s != ""; s = s[min(n, len(s)):] {
			got += r.Next(s[:min(n, len(s))])
			if len(r.Held) >= 2*len("secret-one") { // in hexadecimal
				t.Fatalf("holds back %q", r.Held)
			}
		}
		got += r.Rest()
		want := strings.NewReplacer("secret-one", conceal.Redacted, "secret-two", conceal.Redacted).Replace(text)
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// If one value is a prefix of another, no part of the longer one is shown, also in pieces.
func TestRedactorTakesTheLongest(t *testing.T) {
	t.Parallel()
	r := secret.NewRedactor([]string{"canary", "canary-long", "line one is long enough\n  line two is long enough",
		`with"quote`})
	for _, c := range []struct{ in, want string }{
		{"a canary-long b", "a * b"}, {"a canary b", "a * b"}, {"a canary-lon", "a *-lon"}, {"canarycanary-long", "**"},
		{"> line one is long enough\n> line two is long enough", "> *\n> *"}, {`"with\"quote"`, `"*"`}, {`with"quote`, "*"},
		{"can", "can"},
	} {
		want := strings.ReplaceAll(c.want, "*", conceal.Redacted)
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

// A value is not shown in the encodings that tools use, at any offset of a text, also when
// the text comes in pieces.
func TestRedactorKnowsEncodedForms(t *testing.T) {
	t.Parallel()
	const value = "c4n<ry/vä+l&e \"x\""
	r := secret.NewRedactor([]string{value, "short77"})
	escaped, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]string{
		"hex": hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
		"query": url.QueryEscape(value), "path": url.PathEscape(value),
		"small escapes": strings.ToLower(url.QueryEscape(value)), "JSON for HTML": string(escaped),
		"JSON": string(core.AppendJSONString(nil, value)), "JSON, slashes": strings.ReplaceAll(string(escaped), "/", `\/`),
		"%20": strings.ReplaceAll(url.QueryEscape(value), "+", "%20"),
	}
	for n := range 5 {
		for after := range 4 {
			whole := []byte("user:"[:n] + value + "tail"[:after])
			forms[fmt.Sprintf("base64 %d %d", n, after)] = base64.StdEncoding.EncodeToString(whole)
			forms[fmt.Sprintf("base64url %d %d", n, after)] = base64.RawURLEncoding.EncodeToString(whole)
		}
	}
	for name, form := range forms {
		text := "Authorization: " + form + " end"
		got := r.Clean(text)
		if !strings.Contains(got, conceal.Redacted) || !strings.HasSuffix(got, " end") {
			t.Errorf("%s: %q becomes %q", name, text, got)
		}
		if left := strings.ReplaceAll(got, conceal.Redacted,
			""); len(left) > len("Authorization:  end")+16 { // characters that also encode neighbouring bytes
			t.Errorf("%s: %q is left of %q", name, left, text)
		}
		pieces := ""
		for i := range len(text) {
			pieces += r.Next(text[i : i+1])
		}
		if pieces += r.Rest(); pieces != got {
			t.Errorf("%s in pieces: %q, at once %q", name, pieces, got)
		}
	}
	for _, harmless := range []string{hex.EncodeToString([]byte("short77")), "c4n<ry", "YzRu", "nothing of it"} {
		if got := r.Clean(harmless); got != harmless {
			t.Errorf("%q becomes %q", harmless, got)
		}
	}
}
