package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// troubled matches the message in the first column of docs/troubleshooting.md.
var troubled = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// The program says what docs/troubleshooting.md quotes: each piece between two … is in
// the source, in one string.
func TestTroublesAreQuotedAsTheProgramSaysThem(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != "../..":
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		source.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all := source.String()
	quotes := troubled.FindAllStringSubmatch(string(page), -1)
	for _, q := range quotes {
		for piece := range strings.SplitSeq(q[1], "…") {
			if piece = strings.TrimSpace(piece); piece != "" && !strings.Contains(all, piece) {
				t.Errorf("docs/troubleshooting.md quotes %q, which no source file has", piece)
			}
		}
	}
	if len(quotes) < 25 {
		t.Errorf("%d messages are quoted", len(quotes))
	}
}

// maxParagraph is how many words a paragraph of the pages has at most.
const maxParagraph = 120

var (
	unread = regexp.MustCompile("(?s)```.*?```|<!--.*?-->")
	item   = regexp.MustCompile(`(?m)^ *(?:[-*]|\d+\.) `)
)

// The pages have no long paragraphs, and README names each of them.
func TestPagesAreShortAndListed(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, _ := filepath.Glob("../../docs/decisions/*.md")
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range append(pages, decisions...) {
		if name := "docs/" + filepath.Base(path); i < len(pages) && !strings.Contains(string(readme), "("+name+")") {
			t.Errorf("README.md does not name %s", name)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		plain := item.ReplaceAllString(unread.ReplaceAllString(string(text), "\n\n"), "\n\n")
		for paragraph := range strings.SplitSeq(plain, "\n\n") {
			if n := len(strings.Fields(paragraph)); n > maxParagraph && !strings.HasPrefix(paragraph, "|") {
				t.Errorf("%s: a paragraph has %d words, at most %d: %.60q", path, n, maxParagraph, paragraph)
			}
		}
	}
}
