package skills

import "testing"

func TestFrontMatter(t *testing.T) {
	for text, want := range map[string][2]string{
		"---\nname: a\ndescription: does b: and c\n---\n# A":                                   {"a", "does b: and c"},
		"---\nname: \"a b\"\ndescription: 'c'\n---\n":                                          {"a b", "c"},
		"---\r\nname: a\r\ndescription: >\r\n  one\r\n  two\r\nmetadata:\r\n  x: y\r\n---\r\n": {"a", "one two"},
		"# no front matter\nname: a":                                                           {"", ""},
		"---\nname: a":                                                                         {"", ""},
		"":                                                                                     {"", ""},
	} {
		if name, description := FrontMatter(text); name != want[0] || description != want[1] {
			t.Errorf("FrontMatter(%q) = %q, %q, want %q", text, name, description, want)
		}
	}
}

func FuzzFrontMatter(f *testing.F) {
	for _, s := range Bundled() {
		f.Add(s.Markdown)
	}
	f.Add("---\n:\n \n---")
	f.Fuzz(func(t *testing.T, text string) {
		if name, description := FrontMatter(text); len(name)+len(description) > len(text) {
			t.Errorf("%q made %q, %q", text, name, description)
		}
	})
}
