package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/kit"
	"github.com/selvage-mesh/selvage/testnet"
)

func TestMain(m *testing.M) {
	testscript.Main(seldom{m}, map[string]func(){"selvage": func() {
		var err error
		if cli.Wall, err = kit.ProgramClock(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(run(os.Args[1:]))
	}})
}

// seldom has the tests collect their own garbage less often than the programs that they run.
type seldom struct{ *testing.M }

func (s seldom) Run() int {
	debug.SetGCPercent(400)
	return s.M.Run()
}

// Each script is a transcript that could be in the manual. It gets its own free ports
// and a data directory in its work folder.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			if err := errors.Join(givePorts(e), giveDate(e)); err != nil {
				return err
			}
			e.Defer(func() { // processes that a failed script has left running
				if p, err := testnet.Load(filepath.Join(e.WorkDir, "net")); err == nil {
					p.Down()
				}
			})
			if cache, err := os.UserCacheDir(); err == nil { // for scripts that build programs
				e.Vars = append(e.Vars, "GOCACHE="+cmp.Or(os.Getenv("GOCACHE"), filepath.Join(cache, "go-build")))
			}
			if home, err := os.UserHomeDir(); err == nil {
				e.Setenv("RUSTUP_HOME", cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(home, ".rustup")))
				e.Setenv("CARGO_HOME", cmp.Or(os.Getenv("CARGO_HOME"), filepath.Join(home, ".cargo")))
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond != "rust" {
				return false, fmt.Errorf("no condition %q", cond)
			}
			return rustForWasm(), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually,
		},
	})
}

// rustForWasm reports whether Rust can build programs for the sandbox here.
func rustForWasm() bool {
	at, err := exec.Command("rustc", "--print", "target-libdir", "--target", "wasm32-wasip1").Output()
	if err != nil || exec.Command("cargo", "--version").Run() != nil {
		return false
	}
	_, err = os.Stat(strings.TrimSpace(string(at)))
	return err == nil
}

// givePorts gives a script its own ports, and the address of the first one: HTTP on the
// first four, peers on the others.
func givePorts(e *testscript.Env) error {
	base, err := testnet.FreePorts(8)
	if err != nil {
		return err
	}
	for i := range 8 {
		e.Vars = append(e.Vars, fmt.Sprintf("PORT%d=%d", i, base+i))
	}
	e.Vars = append(e.Vars, fmt.Sprintf("SELVAGE_API_URL=http://127.0.0.1:%d", base))
	return nil
}

// giveDate tells a script the time of its world (NOW), and the programs that it starts.
func giveDate(e *testscript.Env) error {
	clock, err := kit.ProgramClock()
	if err == nil {
		e.Setenv("NOW", clock().UTC().Format(time.RFC3339))
		e.Setenv("SELVAGE_DATE", kit.ProgramDate(clock))
	}
	return err
}

// eventually is the script command "eventually COMMAND...": it repeats COMMAND until it
// succeeds, for at most five minutes.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND...")
	}
	var err error
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = ts.Exec(args[0], args[1:]...); err == nil {
			return
		}
	}
	ts.Fatalf("%v: still failing after five minutes: %v", args, err)
}
