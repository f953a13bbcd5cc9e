package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/cli/clitest"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/entity"
)

func TestMain(m *testing.M) { shimtest.Main(m) }

// plainTool's result is its output; its state is .plain in the user's home.
type plainTool struct{}

func (plainTool) Program() string { return "plain" }
func (plainTool) Call(*cli.Run) (cli.Call, error) {
	return cli.Call{State: []string{".plain"}}, nil
}
func (plainTool) Read() cli.Reader { return &said{} }

type said struct{ lines []string }

func (s *said) Line(line []byte) { s.lines = append(s.lines, string(line)) }
func (s *said) Result(string) cli.Result {
	return cli.Result{Summary: strings.Join(s.lines, " ")}
}

// A vendor's command line can write where it works, in its agent's folder, in the folders for
// temporary files and where it keeps its state, but not elsewhere in the home of the user who
// runs the node. Its caches are in the agent's folder.
func TestACommandLineWritesItsOwnFilesOnly(t *testing.T) {
	t.Parallel()
	user, err := os.UserHomeDir()
	if err != nil || strings.HasPrefix(user, "/tmp/") {
		t.Skip("a home that is not below /tmp, where every run may write, is needed")
	}
	home, err := os.MkdirTemp(user, "selvage-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	const script = `try() { echo x 2>/dev/null >"$2" && echo "$1"; } 2>/dev/null
try home "$HOME/new"; try profile "$HOME/.profile"; try state "$HOME/.plain/state"; try work ./new; try agent ` +
		`"$AGENT_HOME/new"; try scratch "$TMPDIR/new"; try tmp "/tmp/selvage-test-$$"; rm -f "/tmp/selvage-test-$$"
mkdir -p "$XDG_CACHE_HOME" "$GOMODCACHE" && try cache "$XDG_CACHE_HOME/new"; cat "$HOME/.netrc"; exit 0`
	if err := os.WriteFile(filepath.Join(home, ".netrc"), []byte("readable\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		config map[string]any
		want   string
	}{
		{"by default", map[string]any{}, "state work agent scratch tmp cache readable"},
		{"what is hidden is not read", map[string]any{"hidden": []string{filepath.Join(home, ".netrc")}},
			"state work agent scratch tmp cache"},
		{"a folder more", map[string]any{"writable": []string{home}},
			"home profile state work agent scratch tmp cache readable"},
	} {
		test.config["env"] = map[string]string{"HOME": home}
		b := clitest.New(t, plainTool{}, test.config, script)
		o := b.Invoke()
		if strings.Contains(b.Log("system"), "no Landlock") {
			t.Skip("this kernel has no Landlock")
		}
		if o.Status != entity.RunSucceeded || clitest.Summary(o) != test.want {
			t.Errorf("%s: %s %s: it wrote %q, want %q", test.name, o.Status, o.Error, clitest.Summary(o), test.want)
		}
		if at := b.Call(0).Env["XDG_CACHE_HOME"]; !strings.HasPrefix(at, b.Dir) {
			t.Errorf("%s: what it fetches lies in %s", test.name, at)
		}
		for _, name := range []string{"new", ".profile"} {
			os.Remove(filepath.Join(home, name))
		}
	}
	open := clitest.New(t, plainTool{}, map[string]any{"landlock": false, "env": map[string]string{"HOME": home}},
		`echo x >"$HOME/new" && echo home; echo "cache=$XDG_CACHE_HOME"`)
	if o := open.Invoke(); o.Status != entity.RunSucceeded || clitest.Summary(o) != "home cache=" {
		t.Errorf("with Landlock off: %s %s: it wrote %q", o.Status, o.Error, clitest.Summary(o))
	}
}
