package process

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/adapter/shim/shimtest"
	"github.com/selvage-mesh/selvage/company/entity"
)

// A command or service of a workspace can access its own worktree among the node's files, and
// no other one's; in a folder elsewhere it can access none of them.
func TestAShellReachesItsOwnWorktreeOnly(t *testing.T) {
	t.Parallel()
	needLandlock(t, newBed(t, sh("true")))
	data, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, other, project := filepath.Join(data, "runs/git/trees/own"),
		filepath.Join(data, "runs/git/trees/other"), t.TempDir()
	for _, d := range []string{tree, other, project} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "file"), []byte("canary\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := Shell{Argv: append(slices.Clone(shimtest.Command), shim.Floor{Hide: []string{data}}.Args()...),
		Environ: os.Environ()}
	until := shim.BootTime() + time.Minute
	for _, c := range []struct {
		name string
		f    entity.RunFolder
	}{
		{"in a worktree", entity.RunFolder{Dir: tree, Worktree: tree}},
		{"in a folder elsewhere", entity.RunFolder{Dir: project}},
	} {
		end := s.Run(context.Background(),
			ShellCommand{Line: `cat file; cat "$OTHER/file" 2> /dev/null; echo x > "$OTHER/new" && echo WROTE; ` +
				`echo x > new && cat new; [ "$PWD" = "$TREE" ] || cat "$TREE/file"; true`, Folder: c.f,
				Env: map[string]string{"OTHER": other, "TREE": tree}, Limit: time.Minute, Grace: time.Second,
				Authority: func() time.Duration { return until }, Log: func(string, string) {}})
		if end.Error != "" || end.Stdout != "canary\nx\n" {
			t.Errorf("%s: %q, it wrote %q and %q", c.name, end.Error, end.Stdout, end.Stderr)
		}
	}
	if os.Geteuid() != 0 {
		return // the tests of views check whether names are hidden
	}
	end := s.Run(context.Background(), ShellCommand{Line: `ls "$DATA/runs/git/trees"`, Folder: entity.RunFolder{Dir: tree,
		Worktree: tree}, Env: map[string]string{"DATA": data},
		Limit: time.Minute, Grace: time.Second, Authority: func() time.Duration { return until },
		Log: func(string, string) {}})
	if strings.TrimSpace(end.Stdout) != "own" {
		t.Errorf("it sees the names %q", end.Stdout)
	}
}
