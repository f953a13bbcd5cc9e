// Package kit is what tests of all rooms share: golden files, waits and seeds. It imports
// nothing of the module, so that a test of any room can import it. Only tests and other
// test kits do.
package kit

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// mostLines is how many different lines a test shows.
const mostLines = 20

// hexLine is how many bytes a line of [Hex] holds.
const hexLine = 32

// Golden compares got with a file of testdata. With -update it rewrites the file first: look
// at the difference before you commit it, because what nodes stored or sent before would not
// be understood any more.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(b); got != want {
		t.Errorf("%s changed:%s", file, differences(got, want))
	}
}

// Update says that golden files are to be rewritten: for what can not be compared byte by byte.
func Update() bool { return *update }

// Hex returns bytes as lines of hexadecimal digits, for [Golden].
func Hex(b []byte) string {
	var lines strings.Builder
	for len(b) > 0 {
		n := min(hexLine, len(b))
		lines.WriteString(hex.EncodeToString(b[:n]) + "\n")
		b = b[n:]
	}
	return lines.String()
}

// FromHex returns the bytes of a file of testdata that holds them as [Hex] writes them.
func FromHex(t testing.TB, name string) []byte {
	t.Helper()
	s, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(s)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// differences lists the lines in which two texts differ, the first [mostLines] of them.
func differences(got, want string) string {
	var b strings.Builder
	gots, wants := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	shown := 0
	for n := range max(len(gots), len(wants)) {
		g, w := lineAt(gots, n), lineAt(wants, n)
		if g == w {
			continue
		}
		if shown == mostLines {
			b.WriteString("\n…")
			break
		}
		shown++
		fmt.Fprintf(&b, "\nline %d\n got %q\nwant %q", n+1, g, w)
	}
	return b.String()
}

// lineAt returns the n-th line, "" beyond the last.
func lineAt(lines []string, n int) string {
	if n < len(lines) {
		return lines[n]
	}
	return ""
}
