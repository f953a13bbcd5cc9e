package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/selvage-mesh/selvage/cmd/node/cli"
	"github.com/selvage-mesh/selvage/sandbox"
)

// A builtTool is a module built for the sandbox.
type builtTool struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"byteSize"`
	From   string `json:"language"`
}

// toolBuildCommand builds a program for the sandbox with the toolchain of its language,
// and has the sandbox check it.
func toolBuildCommand(c *cli.CLI) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "build DIR", Short: "Build a program of Go or Rust for the sandbox, and check it", Args: cobra.ExactArgs(1),
		Example: `  selvage tool build ./count && selvage tool deploy count count.wasm`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Base(dir) + ".wasm"
			}
			to, err := filepath.Abs(out)
			if err != nil {
				return err
			}
			made := builtTool{File: out}
			if made.From, err = build(cmd, dir, to); err != nil {
				return err
			}
			module, err := readModule(to)
			if err != nil {
				return err
			}
			engine, err := sandbox.Open(sandbox.Config{Dir: sandboxCache(), Compiler: sandboxCompiler()})
			if err != nil {
				return err
			}
			defer engine.Close()
			m, err := engine.Load(cmd.Context(), module)
			if err != nil {
				return err
			}
			defer m.Close()
			sum := sha256.Sum256(module)
			made.SHA256, made.Bytes = hex.EncodeToString(sum[:]), int64(len(module))
			return c.Print(cmd, made, func(w io.Writer) {
				fmt.Fprintf(w, "%s, %d bytes, sha256 %s\n", made.File, made.Bytes, made.SHA256)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the file to write (default: the folder's name with .wasm)")
	return cmd
}

// build runs the toolchain for a folder, with its output on stderr.
func build(cmd *cobra.Command, dir, to string) (language string, err error) {
	run := func(env []string, name string, args ...string) error {
		x := exec.CommandContext(cmd.Context(), name, args...)
		x.Dir, x.Env = dir, append(os.Environ(), env...)
		x.Stdout, x.Stderr = cmd.ErrOrStderr(), cmd.ErrOrStderr()
		if err := x.Run(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "Cargo.toml")); err == nil {
		target, err := os.MkdirTemp("", "selvage-build-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(target)
		if err := run(nil, "cargo", "build", "--release", "--target", "wasm32-wasip1", "--target-dir", target); err != nil {
			return "", err
		}
		made, err := filepath.Glob(filepath.Join(target, "wasm32-wasip1", "release", "*.wasm"))
		if err != nil || len(made) != 1 {
			return "", fmt.Errorf("cargo has made %d modules, one is needed", len(made))
		}
		b, err := os.ReadFile(made[0])
		if err != nil {
			return "", err
		}
		return "rust", os.WriteFile(to, b, 0o644)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return "", cli.Misuse(fmt.Errorf("%s has neither Go files nor a Cargo.toml", dir))
	}
	return "go", run([]string{"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags=-s -w",
		"-o", to, ".")
}
