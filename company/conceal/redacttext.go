package conceal

import "strings"

// RedactText hides credentials inside a text: the values of assignments to names of
// secrets (TOKEN=…, up to the next space or quote), and everything that has the form of a
// credential (after "Bearer", with a prefix of Paperclip, OpenAI, GitHub or Slack, JSON web
// tokens). Case does not matter.
//
// Commands with whole documents call it while they are applied, so it scans the text once
// and by hand. inlineSecret and tokenShape in its test specify what it finds.
func RedactText(s string) string { return redactShapes(redactAssignments(s)) }

// secretWords are the words that make a name in a text that of a secret, in lower case.
var secretWords = [...]string{"apikey", "api_key", "accesskey", "access_key", "privatekey", "private_key", "token",
	"secret", "passwd", "password"}

// redactAssignments hides the value in NAME=value where NAME contains one of secretWords. A
// value ends at a space or a quote.
func redactAssignments(s string) string {
	var out []byte
	done := 0 // s[:done] is in out
	for start := 0; start < len(s); {
		at := strings.IndexByte(s[start:], '=')
		if at < 0 {
			break
		}
		at += start
		from := at
		for from > start {
			n := wordBefore(s[start:from])
			if n == 0 {
				break
			}
			from -= n
		}
		start = at + 1
		if at+1 == len(s) || endsRun(s[at+1]) || !hasSecretWord(s[from:at]) {
			continue
		}
		end := at + 1
		for end < len(s) && !endsRun(s[end]) {
			end++
		}
		out = append(append(out, s[done:at+1]...), Redacted...)
		done, start = end, end
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}

func endsRun(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == '\'' || c == '"'
}

// longS and kelvin are the letters outside ASCII that equal s and k when case does not
// matter.
const longS, kelvin = "\u017f", "\u212a"

// wordBefore returns the length in bytes of the letter, digit or underscore at the end of s,
// 0 when s ends in something else.
func wordBefore(s string) int {
	switch {
	case isWord(s[len(s)-1]):
		return 1
	case strings.HasSuffix(s, longS):
		return len(longS)
	case strings.HasSuffix(s, kelvin):
		return len(kelvin)
	}
	return 0
}

func hasSecretWord(name string) bool {
	if len(name) < len("token") { // the shortest
		return false
	}
	name = strings.ReplaceAll(strings.ToLower(name), longS, "s")
	for _, w := range secretWords {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

// isWord knows ASCII only, like word boundaries of regular expressions.
func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// folded returns the letter at s[i] in lower case and its length in bytes; for anything else
// the first byte.
func folded(s string, i int) (c byte, n int) {
	switch c = s[i]; {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A', 1
	case c == longS[0] && strings.HasPrefix(s[i:], longS):
		return 's', len(longS)
	case c == kelvin[0] && strings.HasPrefix(s[i:], kelvin):
		return 'k', len(kelvin)
	}
	return c, 1
}

// after returns the position after prefix, which begins at i; -1 when it does not.
func after(s string, i int, prefix string) int {
	for j := range len(prefix) {
		if i >= len(s) {
			return -1
		}
		c, n := folded(s, i)
		if c != prefix[j] {
			return -1
		}
		i += n
	}
	return i
}

// minShape is the least number of characters of a credential after its mark.
const minShape = 8

// shapeStart are the bytes with which a mark of a credential can begin.
var shapeStart = func() (starts [256]bool) {
	for _, c := range []byte("bBpPsSgGxXeE" + longS[:1]) {
		starts[c] = true
	}
	return starts
}()

// keyMarks are prefixes of keys; everything up to the end of the key is hidden.
var keyMarks = [...]string{"pcp_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "xoxa-", "xoxb-", "xoxp-"}

// redactShapes hides everything that has the form of a credential.
func redactShapes(s string) string {
	r := shapes{s: s}
	var out []byte
	done := 0
	for i := 0; i < len(s); {
		if !shapeStart[s[i]] || i > 0 && isWord(s[i-1]) == isWord(s[i]) || i == 0 && !isWord(s[i]) {
			i++
			continue
		}
		hide, end := r.find(i)
		if end < 0 {
			i++
			continue
		}
		out = append(append(out, s[done:hide]...), Redacted...)
		done, i = end, end
	}
	if done == 0 {
		return s
	}
	return string(append(out, s[done:]...))
}

// shapes remembers the end of the last run of key characters, so that a long run with many
// possible beginnings is read once.
type shapes struct {
	s string
	// The run was read from from and ends at end. signed is the end of a signed token whose
	// first part is this run, or -1.
	from, end, signed int
}

// find returns the part to hide of the credential that begins at i; end is -1 when none
// begins there.
func (r *shapes) find(i int) (hide, end int) {
	c, _ := folded(r.s, i)
	switch c {
	case 'b':
		from := after(r.s, i, "bearer")
		if from < 0 {
			return 0, -1
		}
		hide = from
		for hide < len(r.s) && endsRun(r.s[hide]) && r.s[hide] != '\'' && r.s[hide] != '"' {
			hide++
		}
		if hide == from || !atLeast(r.s, hide, bearerByte) {
			return 0, -1
		}
		return hide, runEnd(r.s, hide, bearerByte)
	case 'e':
		from := after(r.s, i, "eyj")
		if from < 0 || !atLeast(r.s, from, shapeByte) {
			return 0, -1
		}
		r.read(from)
		return i, r.signed
	}
	for _, mark := range keyMarks {
		if from := after(r.s, i, mark); from >= 0 {
			if !atLeast(r.s, from, shapeByte) {
				return 0, -1
			}
			r.read(from)
			return i, r.end
		}
	}
	return 0, -1
}

// read finds the end of the run at from, and what follows it.
func (r *shapes) read(from int) {
	if r.from <= from && from < r.end {
		return
	}
	r.from, r.end, r.signed = from, runEnd(r.s, from, shapeByte), -1
	if r.end == len(r.s) || r.s[r.end] != '.' || !atLeast(r.s, r.end+1, shapeByte) {
		return
	}
	second := runEnd(r.s, r.end+1, shapeByte)
	if second == len(r.s) || r.s[second] != '.' {
		return
	}
	if third := runEnd(r.s, second+1, shapeByte); third > second+1 {
		r.signed = third
	}
}

func shapeByte(c byte) bool { return isWord(c) || c == '-' }

func bearerByte(c byte) bool { return isWord(c) && c != '_' || strings.IndexByte("._~+/=-", c) >= 0 }

// atLeast reports whether minShape characters of a class begin at i.
func atLeast(s string, i int, class func(byte) bool) bool {
	for range minShape {
		if i >= len(s) {
			return false
		}
		c, n := folded(s, i)
		if !class(c) {
			return false
		}
		i += n
	}
	return true
}

// runEnd returns the end of the characters of a class that begin at i.
func runEnd(s string, i int, class func(byte) bool) int {
	for i < len(s) {
		c, n := folded(s, i)
		if !class(c) {
			break
		}
		i += n
	}
	return i
}
