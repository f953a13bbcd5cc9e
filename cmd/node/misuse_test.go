package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
)

// told runs a command line in this process. It returns the exit status and the output.
func told(t *testing.T, args ...string) (status int, out, talk string) {
	t.Helper()
	var o, e strings.Builder
	status = execute(t.Context(), args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

// leaves returns the commands that do something, without groups.
func leaves() (all []*cobra.Command) {
	var walk func(*cobra.Command)
	walk = func(at *cobra.Command) {
		if !at.HasSubCommands() {
			all = append(all, at)
		}
		for _, sub := range at.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	return all
}

// Every command refuses unknown arguments before it calls a node: with status 2 and a
// sentence that names the argument or the flag, and the usage.
func TestGarbageIsMisuse(t *testing.T) {
	t.Setenv("SELVAGE_API_URL", "http://127.0.0.1:1")
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	refuses := func(says string, args ...string) {
		t.Helper()
		status, out, talk := told(t, args...)
		if status != cli.ExitMisused || out != "" || !strings.Contains(talk, says) || !strings.Contains(talk,
			"--help' for usage.") {
			t.Errorf("selvage %q ended with %d: %s%s, want 2 and %q", args, status, out, talk, says)
		}
	}
	for _, cmd := range leaves() {
		words := strings.Fields(cmd.CommandPath())[1:]
		with := func(more ...string) []string { return append(append([]string{}, words...), more...) }
		least, most := cli.Wanted(cmd.Use)
		for n, name := range least {
			refuses(name+" is missing: "+cmd.CommandPath(), with(make([]string, n)...)...)
		}
		if most >= 0 {
			refuses(`"spare" is one argument too many: `+cmd.CommandPath(), with(append(make([]string, most), "spare")...)...)
		}
		refuses("unknown flag: --spare", with("--spare")...)
		refuses("want text, wide, json or yaml", with("-o", "xml")...)
	}
	refuses(`selvage has no command "isue"; did you mean issue`, "isue")
	refuses(`selvage issue doc has no command "gte"; did you mean get?`, "issue", "doc", "gte")
	refuses(`selvage issue has no command "nothing": it has 62, under Everyday; What belongs together; `,
		"issue", "nothing")
	refuses("--limit is 0: want at least 1", "run", "list", "--limit", "0")
	refuses("--limit is -3: want at least 1", "activity", "--limit", "-3")
	refuses(`"c" is not a whole number`, "agent", "budget", "0199c0de-0000-7000-8000-000000000000", "c")
	refuses("an argument is empty", "agent", "delete", "")
	refuses(`required flag(s) "in" not set`, "model", "price", "set", "x")
	refuses("is not a method", "api", "FETCH")
	refuses("is not a path of the API", "api", "GET", "api/health")
	refuses("--data is not JSON", "api", "POST", "/api/companies", "--data", "{")
}

// A name must match one thing: a prefix of several IDs, or of none, is refused.
func TestNamesAreOfOne(t *testing.T) {
	asked := ""
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/companies":
			w.Write([]byte(`[{"id": "c", "name": "Acme"}]`))
		case "/api/companies/c/agents":
			w.Write([]byte(`[{"id": "0199-a", "name": "Ada"}, {"id": "0199-b", "name": "Bob"}, {"id": "0199-c", ` +
				`"name": "bob"}]`))
		default:
			asked = r.Method + " " + r.URL.Path
			w.Write([]byte(`{}`))
		}
	}))
	defer node.Close()
	t.Setenv("SELVAGE_API_URL", node.URL)
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	for _, c := range []struct {
		name, asked, says string
		status            int
	}{
		{name: "ada", asked: "DELETE /api/agents/0199-a"},
		{name: "0199-b", asked: "DELETE /api/agents/0199-b"},
		{name: "0199", says: "more than one agent matches \"0199\": give more of the ID, which is one of 0199-a, " +
			"0199-b, 0199-c\n", status: cli.ExitMisused},
		{name: "Bob", says: "more than one agent matches \"Bob\": give more of the ID, which is one of 0199-b, 0199-c\n",
			status: cli.ExitMisused},
		{name: "", says: "an argument is empty", status: cli.ExitMisused},
		{name: "Eve", says: `no agent "Eve": see selvage agent list`, status: cli.ExitFailed},
	} {
		asked = ""
		status, _, talk := told(t, "agent", "delete", c.name, "--yes")
		if status != c.status || asked != c.asked || !strings.Contains(talk, c.says) {
			t.Errorf("agent delete %q ended with %d, asked %q and said %s, want %+v", c.name, status, asked, talk, c)
		}
	}
	if status, _, talk := told(t, "agent", "pause", ""); status != cli.ExitMisused || asked != "" {
		t.Errorf("agent pause of nobody ended with %d, asked %q and said %s", status, asked, talk)
	}
}

// The refusal of a body names each invalid member.
func TestRefusedBodiesAreReadable(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"error": "Validation error", "details": [{"code": "x", "path": ["policy", "stages", 0], ` +
			`"message": "Required"}, {"path": [], "message": "Too much"}]}`))
	}))
	defer node.Close()
	t.Setenv("SELVAGE_API_URL", node.URL)
	t.Setenv("SELVAGE_CREDENTIALS", t.TempDir()+"/credentials.json")
	status, _, talk := told(t, "issue", "update", "ACM-1", "--priority", "high")
	if want := "selvage: Validation error (HTTP 400): policy.stages.0: Required; Too much\n"; status != cli.ExitFailed ||
		talk != want {
		t.Errorf("ended with %d and %q, want 1 and %q", status, talk, want)
	}
}
