package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/testnet/testkit"
)

// A line of testdata/story.txt.
type storyLine struct {
	text    string
	args    []string
	input   string
	refused string // text of the expected refusal, "" for none
	waits   bool   // it succeeds eventually
	keep    string // name under which the answer is stored, "" for none
	from    string // member of the answer to store
}

func story(t *testing.T) (lines []storyLine) {
	t.Helper()
	b, err := os.ReadFile("testdata/story.txt")
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(b)) {
		l := storyLine{text: strings.TrimSpace(text)}
		if l.text == "" || strings.HasPrefix(l.text, "#") {
			continue
		}
		rest := l.text
		rest, l.input, _ = strings.Cut(rest, " << ")
		rest, l.from, _ = strings.Cut(rest, " -> ")
		rest, l.refused, _ = strings.Cut(rest, " => ")
		if no, ok := strings.CutPrefix(rest, "! "); ok != (l.refused != "") {
			t.Fatalf("a refusal is ! LINE => TEXT: %s", l.text)
		} else if ok {
			rest = no
		}
		rest, l.waits = strings.CutPrefix(rest, "~ ")
		if l.from != "" {
			l.keep, rest, _ = strings.Cut(rest, " = ")
		}
		for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(rest, -1) {
			l.args = append(l.args, m[1]+m[2])
		}
		lines = append(lines, l)
	}
	return lines
}

// pick follows a path of members and list indexes.
func pick(v any, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		if list, ok := v.([]any); ok {
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(list) {
				return ""
			}
			v = list[n]
			continue
		}
		o, _ := v.(map[string]any)
		v = o[name]
	}
	text, _ := v.(string)
	return text
}

// notJSON are the commands that print a text or an image, whatever -o is.
var notJSON = []string{"selvage org svg", "selvage org png", "selvage audit csv", "selvage issue download",
	"selvage monitor"}

// inTests are the commands that have their own tests.
var inTests = map[string]func(*testing.T){"selvage mcp": TestMCPOverStdio}

// newRoot is every command, of a caller who said nothing.
func newRoot() *cobra.Command { return newRootWith(&cli.CLI{}) }

// tree is every command, to look for one: to make them all takes milliseconds.
var tree = sync.OnceValue(newRoot)

// commandOf returns the command of a line, "" for none.
func commandOf(args []string) string {
	cmd, _, err := tree().Find(args)
	if err != nil || cmd.HasSubCommands() && cmd.Name() != "org" && cmd.Name() != "tree" && cmd.Name() != "raft" {
		return ""
	}
	return cmd.CommandPath()
}

// inScripts returns the commands that the transcripts run.
func inScripts(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bselvage ([^|;>'\n]+)`).FindAllStringSubmatch(string(b), -1) {
			run[commandOf(strings.Fields(m[1]))] = true
		}
	}
	return run
}

// TestEveryVerbIsDriven runs the story, with text output and with -o json. It fails if
// neither it nor a transcript runs a command, or if no command calls an operation of the
// API that is not in notForPeople.
func TestEveryVerbIsDriven(t *testing.T) {
	if testing.Short() {
		t.Skip("the story takes half a minute")
	}
	lines, asked := story(t), map[string]bool{}
	driven := inScripts(t)
	for _, l := range lines {
		cmd := commandOf(l.args)
		if cmd == "" {
			t.Errorf("there is no such command: %s", l.text)
		}
		driven[cmd] = driven[cmd] || l.keep == ""
	}
	for cmd := range inTests {
		driven[cmd] = true
	}
	for _, cmd := range leaves() {
		if !driven[cmd.CommandPath()] && !cmd.Hidden {
			t.Errorf("%s is neither in testdata/story.txt nor in a transcript", cmd.CommandPath())
		}
	}
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	t.Run("text", func(t *testing.T) { tell(t, lines, "text", asked) })
	t.Run("json", func(t *testing.T) { tell(t, lines, "json", asked) })
	if !t.Failed() {
		everyOperationIsAsked(t, asked)
	}
}

// tell runs the story on a node, and records the requests.
func tell(t *testing.T, lines []storyLine, output string, asked map[string]bool) {
	b := testkit.Mesh(t, 1)
	at, err := url.Parse(b.URL(0, ""))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.Method+" "+r.URL.Path] = true // one command at a time
		proxy.ServeHTTP(w, r)
	}))
	defer front.Close()
	t.Setenv("SELVAGE_API_URL", front.URL)
	t.Chdir(t.TempDir())
	t.Setenv("SELVAGE_APP_KEY", filepath.Join(t.TempDir(), "app.key"))
	for name, text := range map[string]string{
		"report.txt": "All is well.\n",
		"which.json": `{"version": 1, "questions": [{"id": "which", "prompt": "Which?", ` +
			`"selectionMode": "single", "options": [{"id": "a", "label": "A"}, {"id": "b", "label": "B"}]}]}`,
		"tasks.json":    `{"version": 1, "tasks": [{"clientKey": "t1", "title": "Try a servo"}]}`,
		"weld/SKILL.md": "---\nname: weld\ndescription: Join metal\n---\n# Weld\nWear a mask.\n",
		"lookout/selvage-app.toml": "name = \"lookout\"\nversion = \"1.0.0\"\ndescription = \"Looks out\"\n" +
			"[[skills]]\nid = \"looking\"\nfile = \"looking.md\"\n",
		"lookout/looking.md": "# Looking\n",
		"newer/selvage-app.toml": "name = \"lookout\"\nversion = \"1.1.0\"\ndescription = \"Looks further\"\n" +
			"[[skills]]\nid = \"looking\"\nfile = \"looking.md\"\n",
		"newer/looking.md": "# Looking far\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	kept := map[string]string{}
	for _, l := range lines {
		args := slices.Clone(l.args)
		for n := range args {
			args[n] = os.Expand(args[n], func(name string) string { return kept[name] })
		}
		as := output
		if l.keep != "" {
			as = "json"
		}
		var out, talk bytes.Buffer
		var status int
		b.Until(l.text, func() bool {
			out.Reset()
			talk.Reset()
			status = execute(t.Context(), append([]string{"-o", as}, args...), strings.NewReader(l.input), &out, &talk)
			return status == 0 || !l.waits
		})
		switch {
		case l.refused != "":
			if said := talk.String(); status != cli.ExitFailed || !strings.Contains(said, l.refused) {
				t.Errorf("%s: ended with %d: %s%s, want 1 and %q", l.text, status, &out, said, l.refused)
			}
			continue
		case status != 0:
			t.Errorf("%s: ended with %d: %s", l.text, status, &talk)
			continue
		case out.Len() == 0 && commandOf(l.args) != "selvage run log":
			t.Errorf("%s: says nothing", l.text)
		}
		var last any
		var err error
		for values := json.NewDecoder(bytes.NewReader(out.Bytes())); err == nil && as == "json" && !slices.Contains(notJSON,
			commandOf(l.args)); {
			err = values.Decode(&last)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%s: no JSON: %v: %.200s", l.text, err, &out)
		}
		if as == "text" && l.args[0] != "api" && json.Valid(out.Bytes()) && bytes.ContainsAny(out.Bytes(), "{[") {
			t.Errorf("%s: not for people: %.200s", l.text, &out)
		}
		if l.keep != "" {
			if kept[l.keep] = pick(last, l.from); kept[l.keep] == "" {
				t.Errorf("%s: there is none in %.400s", l.text, &out)
			}
		}
	}
}
