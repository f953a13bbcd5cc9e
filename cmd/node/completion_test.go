package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// typedByHand are the arguments without completion: texts, numbers, and IDs that no list
// has.
var typedByHand = []string{"action", "biller", "cents", "command", "cron", "email", "entity", "group", "host", "id",
	"json", "key=value", "lease", "model", "name", "operation", "params", "product",
	"question=option[,option][:text]", "service", "text", "title", "to", "trigger", "url",
	"when", "words", "item=approve|reject|defer[:reason]", "kind", "key", "permission", "user", "method", "path",
	"revision", "version", "label", "type", "file.wasm", "height", "target", "address", "subject",
	"token", "pattern", "app/service"}

// Every command has usage and an example that works as it stands, and each argument has
// a completion or is a text.
func TestCommandsShowExamplesAndComplete(t *testing.T) {
	t.Parallel()
	for _, cmd := range leaves() {
		lines := 0
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
			words := splitWords(line)
			if len(words) == 0 || words[0] != "selvage" {
				continue
			}
			found, rest, err := tree().Find(words[1:])
			if err != nil || !found.HasParent() {
				t.Errorf("%s: there is no such command: %s", cmd.CommandPath(), line)
				continue
			}
			if found.CommandPath() == cmd.CommandPath() {
				lines++
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", cmd.CommandPath(), line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %s: %v", cmd.CommandPath(), line, err)
			}
		}
		if lines == 0 && !cmd.Hidden && cmd.CommandPath() != "selvage mcp" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, word := range cli.Arguments(cmd.Use) {
			_, few := cli.Of(cli.Choices, cmd, word)
			if !few && cli.RowsFor(cmd, word).Path == "" && !cli.IsFile(word) && !strings.Contains(word, "|") &&
				!slices.Contains(typedByHand, word) {
				t.Errorf("%s: nothing completes %s", cmd.CommandPath(), word)
			}
		}
	}
}

// splitWords splits a line as a shell does, with quotes, comments and redirections.
func splitWords(line string) (words []string) {
	for _, end := range []string{" <", " >", " #", " && ", " | "} {
		line, _, _ = strings.Cut(line, end)
	}
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2]+m[3])
	}
	return words
}

// Shells are offered the names of existing things and allowed words, and nothing if no
// node answers.
func TestShellsAreOfferedNames(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"/api/companies": `[{"id": "c", "name": "Acme", "issuePrefix": "ACM"}]`,
			"/api/companies/c/agents": `[{"id": "1", "name": "Ada", "role": "ceo"}, {"id": "2", ` +
				`"name": "Bob", "role": "engineer"}]`,
			"/api/companies/c/issues":            `[{"id": "3", "identifier": "ACM-1", "title": "Weld it"}]`,
			"/api/agents/2/config-revisions":     `[{"id": "r1", "createdAt": "today"}]`,
			"/api/issues/ACM-1/documents":        `[{"key": "plan"}]`,
			"/api/companies/c/members":           `{"members": [{"principalId": "ann", "user": {"name": "Ann"}}]}`,
			"/api/adapters":                      `[{"type": "process", "label": "Command"}]`,
			"/api/companies/c/skills/weld/files": `{}`,
		}
		text, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Write([]byte(text))
	}))
	defer node.Close()
	t.Setenv("SELVAGE_API_URL", node.URL)
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	for _, c := range []struct {
		typed []string
		want  string
	}{
		{[]string{"agent", "show", ""}, "Ada\tceo Bob\tengineer :4"},
		{[]string{"agent", "show", "b"}, "Bob\tengineer :4"},
		{[]string{"agent", "rollback", "Bob", ""}, "r1\ttoday :4"},
		{[]string{"agent", "show", "Bob", ""}, ":4"},
		{[]string{"issue", "doc", "get", "ACM-1", ""}, "plan :4"},
		{[]string{"issue", "create", "x", "--assignee", ""}, "Ada\tceo Bob\tengineer :4"},
		{[]string{"agent", "update", "Bob", "--role", ""},
			"ceo cto cmo cfo security engineer designer pm qa devops researcher general :4"},
		{[]string{"budget", "set", "1", "--window", ""},
			"calendar_month_utc calendar_week_utc calendar_day_utc rolling_24h rolling_7d rolling_30d lifetime :4"},
		{[]string{"issue", "create", "x", "--user", ""}, "ann\tAnn :4"},
		{[]string{"agent", "create", "x", "--adapter", ""}, "process\tCommand :4"},
		{[]string{"issue", "create", "x", "--priority", ""}, "critical high medium low :4"},
		{[]string{"issue", "hold", "put", "ACM-1", ""}, "pause resume cancel restore :4"},
		{[]string{"issue", "move", "ACM-1", "in"}, "in_progress in_review :4"},
		{[]string{"issue", "list", "--company", ""}, "ACM\tAcme :4"},
		{[]string{"-o", ""}, "text wide json yaml :4"},
		{[]string{"node", "role", "n1", ""}, "auto voter observer :4"},
		{[]string{"goal", "show", ""}, ":4"},
		{[]string{"issue", "attach", "ACM-1", ""}, ":0"},
	} {
		_, out, _ := told(t, append([]string{cobra.ShellCompRequestCmd}, c.typed...)...)
		if got := strings.Join(strings.Split(strings.TrimSpace(out), "\n"), " "); got != c.want {
			t.Errorf("selvage %q offers %q, want %q", c.typed, got, c.want)
		}
	}
}

// The completion scripts are generated, and the installed shells can parse theirs.
func TestShellsReadTheirScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		status, script, talk := told(t, "completion", shell)
		if status != 0 || !strings.Contains(script, cobra.ShellCompRequestCmd) {
			t.Errorf("completion %s ended with %d: %s", shell, status, talk)
		}
		path, err := exec.LookPath(shell)
		if err != nil || shell == "powershell" {
			continue
		}
		check := exec.CommandContext(t.Context(), path, "-n")
		check.Stdin = bytes.NewReader([]byte(script))
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s can not read its script: %v: %s", shell, err, out)
		}
	}
}
