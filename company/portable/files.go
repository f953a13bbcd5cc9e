package portable

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ErrPackage is wrapped by every error about the form of a package. The text says which file
// is wrong, and why.
var ErrPackage = errors.New("company package")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPackage, fmt.Sprintf(format, args...))
}

// A File is one file of a package. Its JSON is its text, or for binary content
// {"encoding":"base64","data":…,"contentType":…}.
type File struct {
	Data        []byte
	Binary      bool
	ContentType string // of a binary file, may be ""
}

// Text returns a text file.
func Text(s string) File { return File{Data: []byte(s)} }

type encodedFile struct {
	Encoding    string `json:"encoding"`
	Data        string `json:"data"`
	ContentType string `json:"contentType,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (f File) MarshalJSON() ([]byte, error) {
	if !f.Binary && utf8.Valid(f.Data) {
		return json.Marshal(string(f.Data))
	}
	return json.Marshal(encodedFile{"base64", base64.StdEncoding.EncodeToString(f.Data), f.ContentType})
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *File) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		var s string
		err := json.Unmarshal(b, &s)
		*f = Text(s)
		return err
	}
	var e encodedFile
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	if e.Encoding != "base64" {
		return malformed("a file is its text, or has the encoding base64")
	}
	data, err := base64.StdEncoding.DecodeString(e.Data)
	if err != nil {
		return malformed("a file's base64: %v", err)
	}
	*f = File{data, true, e.ContentType}
	return nil
}

// Files are the files of a package by their path below its root.
type Files map[string]File

// Rooted checks every path. If all files are in one folder, the one of COMPANY.md, it removes
// that folder from the paths.
func (files Files) Rooted() (Files, error) {
	if len(files) > MaxFiles {
		return nil, malformed("%d files, at most %d can be imported at once", len(files), MaxFiles)
	}
	root, found := "", false
	total := 0
	for name, f := range files {
		if err := checkPath(name); err != nil {
			return nil, err
		}
		if total += len(f.Data); total > MaxBytes {
			return nil, malformed("more than %d MiB", MaxBytes>>20)
		}
		if dir, base := path.Split(path.Clean(name)); base == companyFile && (!found || len(dir) < len(root) ||
			len(dir) == len(root) && dir < root) {
			root, found = dir, true
		}
	}
	if !found {
		return nil, ErrNoCompany
	}
	out := make(Files, len(files))
	for name, f := range files {
		if rest, ok := strings.CutPrefix(path.Clean(name), root); ok {
			if _, twice := out[rest]; twice {
				return nil, malformed("%q is there twice", rest)
			}
			out[rest] = f
		}
	}
	return out, nil
}

// ErrNoCompany is returned for files without a COMPANY.md.
var ErrNoCompany = fmt.Errorf("%w is missing COMPANY.md", ErrPackage)

func checkPath(name string) error {
	clean := path.Clean(name)
	switch {
	case name == "" || len(name) > maxPath || strings.Count(clean, "/") > maxDepth:
		return malformed("a path is empty or too long")
	case !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\"):
		return malformed("path %q", name)
	case path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../"):
		return malformed("path %q leaves the package", name)
	}
	return nil
}

// text returns a text file of a package with line ends "\n". It converts a file without front
// matter, or whose front matter has other line ends: an editor or version control changed
// those. In files that we wrote, a carriage return belongs to the text.
func (files Files) text(name string) (string, error) {
	text, err := files.verbatim(name)
	if text = strings.TrimPrefix(text, "\uFEFF"); !strings.HasPrefix(text, fence) { // some editors write a byte order mark
		text = lines(text)
	}
	return text, err
}

func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// verbatim returns a text file unchanged, for files that are content only.
func (files Files) verbatim(name string) (string, error) {
	f := files[name]
	if len(f.Data) > MaxText {
		return "", malformed("%s is longer than %d bytes", name, MaxText)
	}
	if !utf8.Valid(f.Data) {
		return "", malformed("%s is not text", name)
	}
	return string(f.Data), nil
}

// Paths returns the paths in order.
func (files Files) Paths() []string {
	out := make([]string, 0, len(files))
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// KindOf returns the kind of a package's file, in the contract's words.
func KindOf(name string) string {
	switch dir, base := path.Split(name); {
	case name == companyFile:
		return "company"
	case name == sidecarFile:
		return "extension"
	case name == readmeFile:
		return "readme"
	case base == "AGENTS.md":
		return "agent"
	case base == "PROJECT.md":
		return "project"
	case base == "TASK.md":
		return "issue"
	case base == "TEAM.md":
		return "team"
	case strings.HasPrefix(dir, "skills/") && base == "SKILL.md":
		return "skill"
	}
	return "other"
}

const fence = "---\n"

// page writes front matter and body as one Markdown file. split returns the same body, byte
// for byte.
func page(front any, body string) File {
	text := fence + string(quoted(front)) + fence + "\n"
	if body != "" {
		text += body + "\n"
	}
	return Text(text)
}

// split decodes front matter into v and returns the body. A file without front matter is all
// body.
func split(name, text string, v any) (body string, err error) {
	rest, ok := strings.CutPrefix(text, fence)
	if !ok {
		return text, nil
	}
	rest = "\n" + rest // so that front matter may be empty
	front, body, ok := strings.Cut(rest, "\n"+fence)
	if !ok {
		if front, ok = strings.CutSuffix(rest, "\n---"); !ok && strings.Contains(rest, "\n---\r\n") {
			return split(name, lines(text), v)
		} else if !ok {
			return "", malformed("%s: its front matter does not end", name)
		}
	}
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(front, "\n")), v); err != nil {
		return "", malformed("%s: %s", name, plain(err))
	}
	return strings.TrimSuffix(strings.TrimPrefix(body, "\n"), "\n"), nil
}

// plain returns the text of a YAML error without quotations from the document.
func plain(err error) string {
	if t, ok := errors.AsType[*yaml.TypeError](err); ok && len(t.Errors) > 0 {
		line, what, _ := strings.Cut(t.Errors[0], ":")
		if strings.Contains(what, "already defined") {
			return line + ": a key is there twice"
		}
		return line + ": a value has the wrong type"
	}
	return strings.TrimPrefix(err.Error(), "yaml: ")
}
