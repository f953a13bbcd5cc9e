package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/adapter/shim"
	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/sandbox"
)

func sandboxCommand(c *cli.CLI) *cobra.Command {
	return cli.Group("sandbox", "Run WebAssembly programs under limits", sandboxRunCommand(c), sandboxCompileCommand())
}

func sandboxRunCommand(c *cli.CLI) *cobra.Command {
	var limits sandbox.Limits
	var dirs, env []string
	var fixed bool
	cmd := &cobra.Command{
		Use: "run FILE.wasm [flags] [-- ARGS]", Short: "Run a program in the sandbox", Args: cobra.MinimumNArgs(1),
		Long: `Run a WebAssembly program (WASI preview 1) under limits that hold: fuel, memory,
time, output. It sees its arguments, the variables and directories that are
given here, and standard input; nothing else of this machine.

Fuel is about one unit an instruction. A program of Go takes two million to
begin; give it --fuel 1000000000. The exit status is the program's own, or 1
when it was ended. With -o json what happened is told as one object.`,
		Example: `  selvage sandbox run hello.wasm --fuel 1000000000 -- world
  selvage sandbox run count.wasm --dir ./books:/books:ro -o json < list.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			call := sandbox.Call{Args: append([]string{filepath.Base(args[0])}, args[1:]...), Env: env, Stdin: cmd.InOrStdin(),
				Limits: limits}
			for _, v := range env {
				if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
					return cli.Misuse(fmt.Errorf("--env %q is not K=V", v))
				}
			}
			for _, d := range dirs {
				dir, err := openDir(d)
				if err != nil {
					return err
				}
				defer dir.Root.Close()
				call.Dirs = append(call.Dirs, dir)
			}
			if fixed {
				call.Fixed = &sandbox.Fixed{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			}
			if !c.ForMachines() {
				call.Stdout, call.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			}
			return sandboxRun(c, cmd, args[0], call)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&limits.Fuel, "fuel", sandbox.DefaultFuel, "units of fuel; an instruction is about one")
	f.Int64Var(&limits.Memory, "memory", sandbox.DefaultMemory, "bytes of memory")
	f.DurationVar(&limits.Time, "timeout", sandbox.DefaultTime, "how long it may take")
	f.IntVar(&limits.Output, "max-output", sandbox.DefaultOutput,
		"bytes of standard output, and as many of standard error")
	f.StringArrayVar(&dirs, "dir", nil, "a directory that it sees, HOST:GUEST or HOST:GUEST:ro")
	f.StringArrayVar(&env, "env", nil, "a variable that it sees, K=V")
	f.BoolVar(&fixed, "fixed", false, "clock and random numbers that are the same each time")
	return cmd
}

func sandboxRun(c *cli.CLI, cmd *cobra.Command, path string, call sandbox.Call) error {
	wasm, err := readModule(path)
	if err != nil {
		if c.Output == "json" { // for example of a file that is not a module
			_ = c.Print(cmd, sandbox.Result{Error: &sandbox.Error{Code: sandbox.InvalidModule, Message: err.Error()}}, nil)
			return exitStatus(cli.ExitFailed)
		}
		return err
	}
	conf := sandbox.Config{Dir: sandboxCache(), Compiler: sandboxCompiler(), Turns: runtime.NumCPU()}
	engine, err := sandbox.Open(conf)
	if err != nil {
		return err
	}
	defer engine.Close()
	res := sandboxResult(cmd.Context(), engine, wasm, call)
	if c.Output == "json" {
		if err := c.Print(cmd, res, nil); err != nil {
			return err
		}
	} else if res.Error != nil {
		return res.Error
	}
	switch {
	case res.Error != nil:
		return exitStatus(cli.ExitFailed)
	case *res.ExitCode != 0:
		return exitStatus(min(uint(*res.ExitCode), 255))
	}
	return nil
}

// sandboxCache is the directory of compiled modules for the current user.
func sandboxCache() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "selvage", "sandbox")
}

// sandboxResult returns the result of a call, also for a refused module.
func sandboxResult(ctx context.Context, e *sandbox.Engine, wasm []byte, call sandbox.Call) sandbox.Result {
	began := time.Now()
	m, err := e.Load(ctx, wasm)
	if err != nil {
		res := sandbox.Result{DurationMs: time.Since(began).Milliseconds()}
		if !errors.As(err, &res.Error) {
			res.Error = &sandbox.Error{Code: sandbox.Cancelled, Message: err.Error()}
		}
		return res
	}
	defer m.Close()
	return m.Run(ctx, call)
}

func readModule(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f,
		sandbox.DefaultModule+1)) // one byte more, so that a large module is refused with its code
}

// openDir opens HOST:GUEST or HOST:GUEST:ro.
func openDir(s string) (d sandbox.Dir, err error) {
	parts := strings.Split(s, ":")
	switch {
	case len(parts) == 3 && parts[2] == "ro":
		d.ReadOnly = true
	case len(parts) != 2:
		return d, cli.Misuse(fmt.Errorf("--dir %q is not HOST:GUEST or HOST:GUEST:ro", s))
	}
	d.Guest = parts[1]
	if !filepath.IsAbs(d.Guest) || filepath.Clean(d.Guest) != d.Guest {
		return d, cli.Misuse(fmt.Errorf("--dir %q: the guest sees it at a clean absolute path", s))
	}
	d.Root, err = os.OpenRoot(cmp.Or(parts[0], "."))
	return d, err
}

// sandboxCompiler is the command that compiles modules in a separate process.
func sandboxCompiler() []string {
	self, err := os.Executable()
	if err != nil {
		return nil // compile in this process
	}
	return []string{self, "sandbox", "compile"}
}

// sandboxCompileCommand is started to compile a large module, which it reads from
// standard input; see sandbox.Compile.
func sandboxCompileCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compile DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_ = shim.Yield() // it works for a run, and uses a whole processor
			if status := sandbox.Compile(args[0], cmd.InOrStdin(), cmd.ErrOrStderr()); status != 0 {
				return exitStatus(status)
			}
			return nil
		},
	}
}
