package conceal

import (
	"regexp"
	"strings"
	"testing"
)

// What RedactText finds, as regular expressions: too slow for a document, and
// exactly what is meant.
var (
	inlineSecret = regexp.MustCompile(
		`(?i)((?:api_?key|access_?key|private_?key|token|secret|passw(?:or)?d)[a-z0-9_]*=)([^\s'"]+)`)
	tokenShape = regexp.MustCompile(
		`(?i)\b(bearer\s+)[a-z0-9._~+/=-]{8,}|\b(pcp_(?:[a-z_]+_)?|sk-(?:ant-)?|gh[pousr]_|xox[abp]-)[A-Za-z0-9_-]{8,}|` +
			`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+`)
)

func redactBySpecification(s string) string {
	s = inlineSecret.ReplaceAllString(s, "${1}"+Redacted)
	return tokenShape.ReplaceAllString(s, "${1}"+Redacted)
}

// redactPieces are put together in every order of three by the test and mixed by
// the fuzzer: beginnings, ends and neighbours of credentials.
var redactPieces = []string{
	"API_KEY=", "my_token_2=", "passwd=", "passworD=x", "=", "a=", "Bearer ", "bearer\t\n", "BEARER", "pcp_", "pcp_board_",
	"sk-", "sk-ant-", "ghp_", "ghx_", "xoxb-", "eyJ",
	"abcdefgh", "abcdefg", "a.b", ".", "_", "-", " ", "'", "\"", "\n", "\v", "ſecret=", "toKen=", "ſ", "K",
	"aſk-12345678", "\xff", "\xc5", "é", "1234567890", "/+~", Redacted,
	"eyJabcdefgh.abcdefgh.a", "eyJabcdefgh.abcdefgh", "eyJabcdefgh.", "\u2028",
}

func TestRedactTextIsItsSpecification(t *testing.T) {
	t.Parallel()
	for _, a := range redactPieces {
		for _, b := range redactPieces {
			for _, c := range redactPieces {
				s := a + b + c
				if got, want := RedactText(s), redactBySpecification(s); got != want {
					t.Fatalf("%q\n got %q\nwant %q", s, got, want)
				}
				s = "x" + s + "eyJ" + c + a
				if got, want := RedactText(s), redactBySpecification(s); got != want {
					t.Fatalf("%q\n got %q\nwant %q", s, got, want)
				}
			}
		}
	}
}

func FuzzRedactText(f *testing.F) {
	for _, p := range redactPieces {
		f.Add(p + "abcdefgh")
	}
	f.Add("GET / HTTP/1.1\nAuthorization: Bearer abcdefgh.ijkl\nX: eyJhbGciOi.eyJzdWIi0.sig_-1 ghs_abcdefghij SECRET=a'b")
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := RedactText(s), redactBySpecification(s); got != want {
			t.Fatalf("%q\n got %q\nwant %q", s, got, want)
		}
	})
}

// redactLong are texts of 128 KiB: such as people write, and such as make a
// search read the same run again and again.
func redactLong() map[string]string {
	long := func(piece string) string { return strings.Repeat(piece, 128<<10/len(piece)) }
	return map[string]string{
		"prose":       long("The surveyor goes through each book, page by page, and notes what it sees. "),
		"assignments": long("export API_TOKEN=abcdefgh NAME=x; "),
		"keys":        long("sk-ant-abcdefghijkl "),
		"one run":     long("eyJabcdefgh-"),
		"one name":    long("token_"),
		"equals":      long("="),
		"kelvins":     long("K"),
		"spaces":      "bearer" + long(" "),
	}
}

func BenchmarkRedactText(b *testing.B) {
	for name, s := range redactLong() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				RedactText(s)
			}
		})
	}
}

// It catches a search that begins anew inside a run: the work would grow with
// the square of the length, from a millisecond to minutes.
func TestRedactTextGoesThroughATextOnce(t *testing.T) {
	t.Parallel()
	for name, s := range redactLong() {
		s = strings.Repeat(s, 8)
		if got, want := RedactText(s), redactBySpecification(s); got != want {
			t.Errorf("%s differs from its specification", name)
		}
	}
}
